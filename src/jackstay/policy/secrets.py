"""Where in a text is a secret? Finding and redacting by the table of `secret_kinds`, in any text, fast."""

import re
from bisect import bisect
from collections.abc import Iterator
from functools import lru_cache

from msgspec import Struct

from jackstay.policy.believable import believable
from jackstay.policy.keywords import Reading, begin
from jackstay.policy.late import late
from jackstay.policy.secret_kinds import KINDS, SecretKind

LEAST_CHARS = 9  # no kind fits into fewer
FEW_CHARS = 400  # in which every keyword is looked for at once
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


def secrets_in(text: str, *, config: bool = False) -> list[Secret]:
    """The secrets of a text in order, none overlapping; of two that do, the table's earlier kind stands.

    `config`: the text is a file of settings, in which a password of ordinary words is one.
    """
    found: list[tuple[int, int, str]] = []  # kept sorted; none overlap
    for ready, start, end in _places(text, config):
        for match in ready.pattern.finditer(text, start, end):
            begin, stop = match.span("secret")
            at = bisect(found, (begin, stop, ""))
            free = (at == 0 or found[at - 1][1] <= begin) and (at == len(found) or stop <= found[at][0])
            if free and believable(match["secret"], ready.kind):
                found.insert(at, (begin, stop, ready.kind.name))
    return [Secret(kind, begin, stop) for begin, stop, kind in found]


def redact(text: str) -> str:
    """The text with every secret replaced by `[redacted:KIND]`; the same string when there is none."""
    if len(text) < LEAST_CHARS:
        return text
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


def problems() -> list[str]:
    """What the table's own examples show to be wrong; empty when all of them hold."""
    found = []
    for kind in KINDS:
        for example in kind.examples:
            names = {secret.kind for secret in secrets_in(plain(example), config=kind.config)}
            if kind.name not in names:
                found.append(f"{kind.name}: {example!r} should be found, is {sorted(names)}")
        for example in kind.not_examples:
            if any(secret.kind == kind.name for secret in secrets_in(plain(example), config=kind.config)):
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


# What many keywords have in common: where none of these occurs, a third of the look-ups says so.
_SHARED = (
    "pa", "ke", "gl", "xox", "sk", "gh", "re", "pi", "_v1_", "pwd", "s_", "rk", "ia", "hv", "ca", "at", "co",
)  # fmt: skip


@lru_cache(maxsize=1)
def _words() -> tuple[tuple[str, tuple[str, ...]], ...]:
    """The keywords in groups, each behind a piece that all of the group hold."""
    groups: dict[str, list[str]] = {}
    for word in dict.fromkeys(word for ready in _ready() for word in ready.keywords):
        groups.setdefault(next((piece for piece in _SHARED if piece in word), word), []).append(word)
    return tuple((piece, tuple(words)) for piece, words in groups.items())


@lru_cache(maxsize=1)
def reading() -> Reading:
    """Reads a text in lower case until its first keyword is FOUND: without one there is no secret in it."""
    return begin(word for _, words in _words() for word in words)


@lru_cache(maxsize=1)
def _spelt() -> tuple[dict[str, frozenset[str]], frozenset[str]]:
    """The characters of each keyword and shared piece, and of all of them."""
    spelt = {text: frozenset(text) for piece, words in _words() for text in (piece, *words)}
    return spelt, frozenset().union(*spelt.values())


def _present(lowered: str) -> set[str]:
    """The keywords in it. Many a long text lacks a letter that rules most of them out: that is asked first."""
    if len(lowered) <= FEW_CHARS:
        return {word for piece, words in _words() if piece in lowered for word in words if word in lowered}
    spelt, letters = _spelt()
    there = {char for char in letters if char in lowered}
    return {
        word
        for piece, words in _words()
        if spelt[piece] <= there and piece in lowered
        for word in words
        if spelt[word] <= there and word in lowered
    }


def _places(text: str, config: bool) -> Iterator[tuple[_Ready, int, int]]:
    """Which kind to try on which stretch of the text: the lines, or the surroundings, of its keywords.

    Plain substring look-ups first: a hundred of them cost less than one case-blind alternation.
    """
    lowered = _lower(text)
    present = _present(lowered)
    if not present:
        return
    known: dict[tuple[tuple[str, ...], int], list[tuple[int, int]]] = {}
    for ready in _ready():
        if present.isdisjoint(ready.keywords) or (ready.kind.config and not config):
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
