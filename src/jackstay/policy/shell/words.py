"""What argument does a word become once the shell has removed its quotes?

The scanner reads the raw text of a word itself and uses the syntax tree only to know where expansions lie:
a `$` or a
backquote that the tree does not account for is a doubt, not a character.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from typing import NamedTuple

from jackstay.policy.late import late

from .facts import GLOB, HOLE, UNKNOWN, Word

PLAIN = late(r"[A-Za-z0-9_./:,@%+=-]+")
_ESCAPES = {
    "a": "\a", "b": "\b", "e": "\x1b", "E": "\x1b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v",
    "\\": "\\", "'": "'", '"': '"', "?": "?",
}  # fmt: skip
_ANSI = late(r"\\(?:x([0-9A-Fa-f]{1,2})|u([0-9A-Fa-f]{1,4})|([0-7]{1,3})|(.))", re.DOTALL)
_STARTS_EXPANSION = late(r"\$[A-Za-z0-9_{(\[@*#?$!-]")
_BRACES = late(r"\{([^{}]*(?:,|\.\.)[^{}]*)\}")
_HISTORY = late(r"![^=\s(]")
_ODD = late(r"[^\x20-\x7e\t\n]")
_BIDI = late("[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
MOST_BRACES = 64


class Unreadable(Exception):
    """A piece of text cannot be read for certain; the message says what is odd about it."""


class Span(NamedTuple):
    """Where an expansion lies in a word (character offsets) and the source its value comes from."""

    end: int
    source: str
    safe: bool  # can never become several words or begin with a dash


def odd_characters(text: str) -> str | None:
    """Say what makes the text untrustworthy before any parsing, or None."""
    if "\r" in text:
        return "a carriage return, which the shell does not treat as the end of a line"
    for match in _ODD.finditer(text):
        char = match.group()
        kind = unicodedata.category(char)
        if kind in ("Cc", "Cs", "Cn", "Co", "Zl", "Zp") or char == "\ufeff" or _BIDI.match(char):
            return f"an invisible or control character (U+{ord(char):04X})"
    return None


def hidden_outside_quotes(char: str) -> bool:
    """Blanks and format characters that look like something else when no quotes surround them."""
    return char > "\x7e" and unicodedata.category(char) in ("Zs", "Cf")


def decode_ansi_c(body: str) -> str:
    """The text of `$'body'`; raises Unreadable for an escape that is not in the manual's table."""

    def one(match: re.Match[str]) -> str:
        hexa, uni, octal, letter = match.groups()
        code = int(hexa or uni, 16) if hexa or uni else int(octal, 8) if octal else -1
        if code == 0 or code > 0x7E:
            msg = "an escape for a character that cannot be shown"
            raise Unreadable(msg)
        if code > 0:
            return chr(code)
        if letter not in _ESCAPES:
            msg = f"the escape \\{letter}"
            raise Unreadable(msg)
        return _ESCAPES[letter]

    return _ANSI.sub(one, body)


class _Scan:
    """State of one pass over a raw word."""

    __slots__ = (
        "braces",
        "first",
        "globs",
        "many",
        "out",
        "pieces",
        "quoted",
        "raw",
        "shape",
        "sources",
        "spans",
    )

    def __init__(self, raw: str, spans: Mapping[int, Span]) -> None:
        self.raw = raw
        self.spans = spans
        self.out: list[str] = []
        self.shape: list[str] = []
        self.sources: list[str] = []
        self.many = False
        self.globs = False
        self.braces = False
        self.quoted = False
        self.first: bool = True  # nothing that has text has been seen yet
        self.pieces = 0

    def literal(self, text: str) -> None:
        if text:
            if self.first and self.sources and text[0] == "-":
                self.sources.append(UNKNOWN)  # what stands before may be empty
            self.out.append(text)
            self.shape.append(text)
            self.first = False
            self.pieces += 1

    def expansion(self, at: int, *, quoted: bool) -> int:
        span = self.spans[at]
        self.out.append(self.raw[at : span.end])
        self.shape.append(HOLE)
        self.pieces += 1
        if span.safe:
            self.first = False
            return span.end
        spread = not quoted or span.source.startswith("@")
        self.many = self.many or spread
        if self.first or spread:
            self.sources.append(span.source)
        return span.end

    def dollar(self, at: int, *, quoted: bool) -> int:
        if at in self.spans:
            return self.expansion(at, quoted=quoted)
        if _STARTS_EXPANSION.match(self.raw, at):
            msg = "an expansion the grammar does not see"
            raise Unreadable(msg)
        self.literal("$")
        return at + 1

    def single(self, at: int) -> int:
        end = self.raw.find("'", at + 1)
        if end < 0:
            msg = "an open quote"
            raise Unreadable(msg)
        self.quoted = True
        self.literal(self.raw[at + 1 : end])
        return end + 1

    def ansi(self, at: int) -> int:
        end = at + 2
        while end < len(self.raw) and self.raw[end] != "'":
            end += 2 if self.raw[end] == "\\" else 1
        if end >= len(self.raw):
            msg = "an open quote"
            raise Unreadable(msg)
        self.quoted = True
        self.literal(decode_ansi_c(self.raw[at + 2 : end]))
        return end + 1

    def double(self, at: int) -> int:
        raw, size = self.raw, len(self.raw)
        self.quoted = True
        at += 1
        while at < size:
            char = raw[at]
            if char == '"':
                return at + 1
            if char == "$":
                at = self.dollar(at, quoted=True)
            elif char == "`":
                if at not in self.spans:
                    msg = "a backquote the grammar does not see"
                    raise Unreadable(msg)
                at = self.expansion(at, quoted=True)
            elif char == "\\" and at + 1 < size:
                following = raw[at + 1]
                self.literal(
                    following if following in '$`"\\' else "" if following == "\n" else char + following
                )
                at += 2
            else:
                end = at + 1
                while end < size and raw[end] not in '"$`\\':
                    end += 1
                self.literal(raw[at:end])
                at = end
        msg = "an open quote"
        raise Unreadable(msg)

    def bare(self, at: int) -> int:
        char = self.raw[at]
        if char in " \t\n<>|&;()" or hidden_outside_quotes(char):
            msg = f"the character {char!r} in the middle of a word"
            raise Unreadable(msg)
        if char in "*?[":
            if self.first and not _safe_class(self.raw, at):
                self.sources.append(GLOB)
            self.globs = self.many = True
        elif char == "{":
            self.braces = self.braces or _BRACES.search(self.raw, at) is not None
        elif char == "!" and at == 0 and _HISTORY.match(self.raw):
            msg = "history expansion"
            raise Unreadable(msg)
        self.literal(char)
        return at + 1

    def step(self, at: int) -> int:
        char = self.raw[at]
        if char == "'":
            return self.single(at)
        if char == '"':
            return self.double(at)
        if char == "$" and self.raw.startswith("$'", at):
            return self.ansi(at)
        if char == "$" and self.raw.startswith('$"', at):
            msg = "a translated string"
            raise Unreadable(msg)
        if char == "$":
            return self.dollar(at, quoted=False)
        if at in self.spans:
            return self.expansion(at, quoted=False)
        if char == "`":
            msg = "a backquote the grammar does not see"
            raise Unreadable(msg)
        if char == "\\":
            self.quoted = True
            self.literal("" if self.raw[at + 1 : at + 2] == "\n" else self.raw[at + 1 : at + 2])
            return at + 2
        return self.bare(at)


def _safe_class(raw: str, at: int) -> bool:
    """Whether a bracket expression at the start of a word can only match letters and digits."""
    return re.match(r"\[[A-Za-z0-9]+(?:-[A-Za-z0-9]+)*\]", raw[at:]) is not None and "--" not in raw[at:]


def read_word(raw: str, spans: Mapping[int, Span]) -> Word:
    """The word as the shell passes it on; raises Unreadable rather than guess."""
    scan = _Scan(raw, spans)
    at, size = 0, len(raw)
    while at < size:
        at = scan.step(at)
    fixed = not (scan.sources or scan.many or scan.braces or spans)
    if scan.braces:
        scan.sources.append(UNKNOWN)
    value = next(iter(spans.values())).source if len(spans) == 1 and scan.pieces == 1 else None
    return Word(
        text="".join(scan.out),
        fixed=fixed,
        sources=tuple(scan.sources),
        many=scan.many or scan.braces,
        value=value,
        home=raw[:1] == "~",
        inner=tuple(spans[at].source for at in sorted(spans)),
        shape="" if fixed else "".join(scan.shape),
        globs=scan.globs,
    )


def spread_braces(raw: str) -> list[str] | None:
    """The words a brace expansion of plain text becomes, or None when it has to stay a doubt."""
    todo, done = [raw], []
    while todo:
        word = todo.pop()
        match = _BRACES.search(word)
        if match is None:
            done.append(word)
            continue
        parts = _alternatives(match.group(1))
        if parts is None or len(todo) + len(done) + len(parts) > MOST_BRACES:
            return None
        head, tail = word[: match.start()], word[match.end() :]
        todo.extend(head + part + tail for part in reversed(parts))
    return done


def _alternatives(body: str) -> list[str] | None:
    if "," in body:
        return body.split(",")
    match = re.fullmatch(r"(\d{1,4})\.\.(\d{1,4})", body)
    if match is None:
        return None
    low, high = int(match.group(1)), int(match.group(2))
    if abs(high - low) >= MOST_BRACES:
        return None
    step = 1 if high >= low else -1
    return [str(number) for number in range(low, high + step, step)]
