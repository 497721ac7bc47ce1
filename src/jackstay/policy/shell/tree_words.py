"""What does the syntax tree say about one word, and is every byte of it accounted for?"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final, NamedTuple

from .expansions import read_braced
from .facts import HOLE, UNKNOWN, Arithmetic, Assignment, Doubt, Redirect, SimpleCommand, Substitution, Word
from .words import PLAIN, Span, Unreadable, read_word, spread_braces

if TYPE_CHECKING:
    from tree_sitter import Node

EXPANSIONS: Final = frozenset(
    ("simple_expansion", "expansion", "command_substitution", "process_substitution", "arithmetic_expansion")
)
WORDS: Final = frozenset(
    ("word", "string", "raw_string", "ansi_c_string", "translated_string", "concatenation", "number",
     "brace_expression", "extglob_pattern")
) | EXPANSIONS  # fmt: skip
QUIET: Final = frozenset(("?", "#", "$", "!"))
_ENDS_A_WORD: Final = frozenset(bytes((byte,)) for byte in b" \t\n;&|()<>=`[!")
_GAP: Final = re.compile(rb"[ \t\n]*|(?:\\\n)*[ \t\n](?:[ \t\n]|\\\n)*")


class Place(NamedTuple):
    """Where a node stands: what feeds it, what it feeds, which substitution or function it belongs to."""

    inside: int = 0
    pipeline: int = 0
    piped_in: bool = False
    piped_out: bool = False
    background: bool = False
    in_function: bool = False


class TreeText:
    """A tree, its source and the facts gathered so far."""

    def __init__(self, source: bytes) -> None:
        self.source = source
        self.ascii = source.isascii()
        self.todo: list[tuple[Node, Place]] = []
        self.commands: list[SimpleCommand] = []
        self.redirects: list[Redirect] = []
        self.substitutions: list[Substitution] = []
        self.assignments: list[Assignment] = []
        self.arithmetic: list[Arithmetic] = []
        self.functions: list[str] = []
        self.comments: list[str] = []
        self.doubts: list[Doubt] = []
        self.numbers: dict[int, int] = {}  # start byte of a substitution -> its number
        self.pipelines = 0
        self.bodies: list[tuple[int, int]] = []  # heredoc bodies already read

    def text(self, node: Node) -> str:
        return self.source[self.begin(node) : node.end_byte].decode("utf-8", "replace")

    def begin(self, node: Node) -> int:
        """First byte of an expansion; the grammar counts blanks before it inside double quotes as its own."""
        start = node.start_byte
        while self.source[start : start + 1] in (b" ", b"\t", b"\n"):
            start += 1
        return start

    def doubt(self, why: str, node: Node) -> None:
        self.doubts.append(Doubt(why, self.text(node)[:200]))

    def gap(self, start: int, end: int, node: Node) -> None:
        """Nothing but blanks may lie between two neighbours: what lies there is not in the tree."""
        between = self.source[start:end]
        if between not in (b"", b" ") and not _GAP.fullmatch(between):
            self.doubts.append(Doubt("text the grammar skips", self.text(node)[:200]))

    def apart(self, start: int) -> bool:
        """Whether something that ends a word stands before this byte: two words that touch are one to the
        shell."""
        before = self.source[:start] if start < 64 else self.source[start - 64 : start]
        if not before:
            return True
        if before[-1:] not in _ENDS_A_WORD:
            return False
        bare = before[:-1].rstrip(b"\\")
        return (len(before) - 1 - len(bare)) % 2 == 0 or before[-1:] == b"\n"

    def inner(self, node: Node, place: Place) -> list[Node]:
        """The outermost expansions inside a node; each is queued to be looked at."""
        found: list[Node] = []
        stack = [node] if node.type in EXPANSIONS else list(reversed(node.children))
        while stack:
            here = stack.pop()
            if here.type in EXPANSIONS:
                found.append(here)
            elif here.child_count:
                stack.extend(reversed(here.children))
        for one in found:
            self.number(one)
        self.todo.extend((one, place) for one in reversed(found))
        return found

    def number(self, node: Node) -> int:
        """The number of a substitution, given out on first sight."""
        if node.type not in ("command_substitution", "process_substitution"):
            return 0
        known = self.numbers.get(self.begin(node))
        if known is None:
            known = len(self.substitutions) + 1
            self.numbers[self.begin(node)] = known
            text = self.text(node)
            opener = "`" if text[:1] == "`" else text[:2]
            self.substitutions.append(Substitution(known, opener, text))
        return known

    def span(self, node: Node, start: int) -> tuple[int, Span]:
        """Where an expansion lies in the word that begins at byte `start`, and what it can become."""
        first = self.begin(node)
        begin, end = first - start, node.end_byte - start
        if not self.ascii:
            begin = len(self.source[start:first].decode())
            end = begin + len(self.source[first : node.end_byte].decode())
        kind = node.type
        if kind == "command_substitution":
            return begin, Span(end, f"({self.number(node)}", safe=False)
        if kind == "process_substitution":
            return begin, Span(end, "/dev/fd", safe=True)
        if kind == "arithmetic_expansion":
            return begin, Span(end, "0", safe=False)
        text = self.text(node)
        if kind == "simple_expansion":
            name = text[1:]
            return begin, Span(end, "@" if name in ("@", "*") else name, safe=name in QUIET)
        try:
            braced = read_braced(self.holed(node))
        except Unreadable:
            return begin, Span(end, UNKNOWN, safe=False)
        return begin, Span(end, braced.source, safe=braced.safe)

    def holed(self, node: Node) -> str:
        """The text of a node with every expansion inside it replaced by a hole."""
        pieces: list[str] = []
        at = self.begin(node)
        stack = list(reversed(node.children))
        while stack:
            here = stack.pop()
            if here.type in EXPANSIONS:
                pieces.append(self.source[at : self.begin(here)].decode("utf-8", "replace"))
                pieces.append(HOLE)
                at = here.end_byte
            elif here.child_count:
                stack.extend(reversed(here.children))
        pieces.append(self.source[at : node.end_byte].decode("utf-8", "replace"))
        return "".join(pieces)

    def word(self, node: Node, place: Place) -> Word:
        """Read one word; a doubt about it is noted and the word is then known to be unknown."""
        raw = self.text(node)
        kind = node.type
        if b"\n" in self.source[node.start_byte : self.begin(node)]:
            self.doubt("a word that begins on the line before", node)
        if not self.apart(node.start_byte):
            self.doubt("a word that touches the one before it", node)
        if kind in ("word", "number") and PLAIN.fullmatch(raw):
            return Word(raw)
        if kind == "raw_string":
            return Word(raw[1:-1])
        if kind not in WORDS:
            self.doubt(f"a part of the grammar that is not listed ({kind})", node)
            return Word(raw, fixed=False, sources=(UNKNOWN,), many=True)
        spans = dict(self.span(one, self.begin(node)) for one in self.inner(node, place))
        try:
            return read_word(raw, spans)
        except Unreadable as odd:
            self.doubt(str(odd), node)
            return Word(raw, fixed=False, sources=(UNKNOWN,), many=True)

    def arguments(self, node: Node, place: Place) -> Iterable[Word]:
        """The words one written word becomes: several when it is a plain brace expansion."""
        word = self.word(node, place)
        raw = self.text(node)
        if word.fixed or "{" not in raw or any(mark in raw for mark in "'\"\\$`*?["):
            return (word,)
        spread = spread_braces(raw)
        return (word,) if spread is None else [Word(text) for text in spread if text]

    def comment(self, node: Node, place: Place) -> None:
        del place
        start = node.start_byte
        before = self.source[start - 1 : start] if start else b""
        if before not in (b"", b" ", b"\t", b"\n", b";", b"&", b"|", b"(", b")") or (
            start > 1 and self.source[start - 2 : start - 1] == b"\\"
        ):
            self.doubt("a # that may not begin a comment", node)
        self.comments.append(self.text(node))
