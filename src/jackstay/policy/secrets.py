"""Where in a text is a secret? Finding and redacting by the table of `secret_kinds`, in any text, fast."""

import re
from bisect import bisect
from collections.abc import Iterator
from functools import lru_cache
from math import log2

from msgspec import Struct

from jackstay.policy.late import late
from jackstay.policy.secret_kinds import KINDS, SecretKind

MAX_TEXT = 4_000_000  # characters looked at; the rest of a longer text is cut off by `redact`


class Secret(Struct, frozen=True, gc=False):
    """A secret found: its kind and where its characters stand."""

    kind: str
    start: int
    end: int


class _Ready(Struct, frozen=True, gc=False):
    kind: SecretKind
    keywords: tuple[str, ...]
    pattern: re.Pattern[str]  # late: of fifty kinds most never meet one of their keywords


def secrets_in(text: str) -> list[Secret]:
    """The secrets of a text in order, none overlapping; of two that do, the table's earlier kind stands."""
    found: list[tuple[int, int, str]] = []  # kept sorted; none overlap
    for ready, start, end in _places(text):
        for match in ready.pattern.finditer(text, start, end):
            begin, stop = match.span("secret")
            at = bisect(found, (begin, stop, ""))
            free = (at == 0 or found[at - 1][1] <= begin) and (at == len(found) or stop <= found[at][0])
            if free and _believable(match["secret"], ready.kind):
                found.insert(at, (begin, stop, ready.kind.name))
    return [Secret(kind, begin, stop) for begin, stop, kind in found]


def redact(text: str) -> str:
    """The text with every secret replaced by `[redacted:KIND]`; the same string when there is none."""
    if len(text) > MAX_TEXT:
        text = text[:MAX_TEXT] + "…"
    found = secrets_in(text)
    if not found:
        return text
    pieces: list[str] = []
    done = 0
    for secret in found:
        pieces += [text[done : secret.start], f"[redacted:{secret.kind}]"]
        done = secret.end
    return "".join([*pieces, text[done:]])


def is_marked(text: str) -> bool:
    """Does it hold a mark that `redact` has left, of a kind that the table knows?"""
    return any(found in _names() for found in _MARK.findall(text))


_MARK = re.compile(r"\[redacted:([a-z0-9-]+)\]")


@lru_cache(maxsize=1)
def _names() -> frozenset[str]:
    return frozenset(kind.name for kind in KINDS)


def entropy(text: str) -> float:
    """Shannon entropy of the characters in bits each."""
    if not text:
        return 0.0
    counts = [text.count(char) for char in set(text)]
    return -sum(n / len(text) * log2(n / len(text)) for n in counts)


def problems() -> list[str]:
    """What the table's own examples show to be wrong; empty when all of them hold."""
    found = []
    for kind in KINDS:
        for example in kind.examples:
            names = {secret.kind for secret in secrets_in(plain(example))}
            if kind.name not in names:
                found.append(f"{kind.name}: {example!r} should be found, is {sorted(names)}")
        for example in kind.not_examples:
            if any(secret.kind == kind.name for secret in secrets_in(plain(example))):
                found.append(f"{kind.name}: {example!r} should not be found")
    return found


def plain(example: str) -> str:
    """An example without the marks that keep this source itself from looking like a leak."""
    return example.replace("¦", "")


@lru_cache(maxsize=1)
def _ready() -> tuple[_Ready, ...]:
    return tuple(
        _Ready(
            kind,
            tuple(map(str.lower, kind.keywords)),
            late(kind.pattern, re.MULTILINE if kind.case else re.MULTILINE | re.IGNORECASE),
        )
        for kind in KINDS
    )


@lru_cache(maxsize=1)
def _words() -> tuple[str, ...]:
    return tuple(dict.fromkeys(word for ready in _ready() for word in ready.keywords))


def _places(text: str) -> Iterator[tuple[_Ready, int, int]]:
    """Which kind to try on which stretch of the text: the lines, or the surroundings, of its keywords.

    Plain substring look-ups first: a hundred of them cost less than one case-blind alternation.
    """
    lowered = _lower(text)
    present = {word for word in _words() if word in lowered}
    if not present:
        return
    known: dict[tuple[tuple[str, ...], int], list[tuple[int, int]]] = {}
    for ready in _ready():
        if present.isdisjoint(ready.keywords):
            continue
        key = (ready.keywords, ready.kind.reach)
        if key not in known:
            known[key] = _stretches(lowered, ready.keywords, ready.kind.reach)
        for start, end in known[key]:
            yield ready, start, end


def _stretches(lowered: str, words: tuple[str, ...], reach: int) -> list[tuple[int, int]]:
    found: set[tuple[int, int]] = set()
    for word in words:
        at = lowered.find(word)
        while at >= 0:
            start, end = lowered.rfind("\n", 0, at) + 1, lowered.find("\n", at)
            end = len(lowered) if end < 0 else end
            if reach:
                end = min(len(lowered), at + reach)
            found.add((start, end))
            at = lowered.find(word, at + len(word) if reach else end)
    return _merged(sorted(found)) if reach else sorted(found)


def _merged(stretches: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Overlapping surroundings as one, so that nothing is looked at twice."""
    merged: list[tuple[int, int]] = []
    for start, end in stretches:
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return merged


def _lower(text: str) -> str:
    """Lower case, character for character (a few letters outside ASCII grow when lowered)."""
    lowered = text.lower()
    if len(lowered) == len(text):
        return lowered
    return "".join(char.lower() if char.isascii() else char for char in text)


_STANDS_FOR = late(
    r"x{5,}|\*{3,}|\.{3}|<[^>]*>|\$\{|\$\(|\{\{|%\(|(.)\1{7}|^\$[A-Za-z_]+$|^%[A-Za-z_]+%$", re.IGNORECASE
)
# Words that say so themselves; a value with a format of its own is taken for real all the same.
_SAYS_SO = late(
    r"example|placeholder|your[_-]?|change[_-]?me|dummy|sample|redacted|1234567890(?!\d*[a-z])|0123456789|"
    r"abcdef(?:gh|012)",
    re.IGNORECASE,
)
# Words joined by signs, and capitals: names of things, not the things.
_NAME_LIKE = late(r"[A-Za-z]+\d{0,2}(?:[_.\-/:][A-Za-z]*\d{0,2})+\Z|[A-Z_]+\d{0,2}\Z")
_STAND_INS = frozenset(
    [
        "pass",
        "passw",
        "passwd",
        "password",
        "password1",
        "password123",
        "pwd",
        "pw",
        "secret",
        "secret1",
        "token",
        "user",
        "username",
        "test",
        "test123",
        "none",
        "null",
        "true",
        "false",
        "string",
        "str",
        "bytes",
        "optional",
        "admin",
        "root",
        "foo",
        "bar",
        "baz",
        "hunter",
    ]
)


def _believable(value: str, kind: SecretKind) -> bool:
    """Could this be a real one: not a placeholder, and as random as its kind has to be?"""
    if _STANDS_FOR.search(value) or value.lower() in _STAND_INS:
        return False
    if not kind.telling and _SAYS_SO.search(value):
        return False
    if kind.mixed and (not _is_mixed(value) or _NAME_LIKE.match(value)):
        return False
    return entropy(value) >= kind.entropy


def _is_mixed(value: str) -> bool:
    return any(char.isdigit() for char in value) and any(char.isalpha() for char in value)
