"""Where does a here-document end, what expands in it, and what follows its operator on the line?"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from .expansions import account_for
from .facts import Redirect, Word
from .tree_commands import Commands
from .tree_words import WORDS, Place
from .words import Unreadable

if TYPE_CHECKING:
    from tree_sitter import Node

_DELIMITER: Final = re.compile(r"""[A-Za-z0-9_.+-]+|'[^'\n]*'|"[^"$`\\\n]*"|\\[A-Za-z0-9_]+""")
_ESCAPED: Final = re.compile(r"\\[\\`$]")  # stands for the character itself in a here-document
_SUSPECT: Final = re.compile(r"`|\$\[|\\\n")


class Redirections(Commands):
    """Statements with redirections behind them."""

    def redirected(self, node: Node, place: Place) -> None:
        """A statement with redirections after it."""
        body: Node | None = None
        redirects: list[Redirect] = []
        extra: list[Word] = []
        at = node.start_byte
        for child in node.children:
            self.gap(at, child.start_byte, node)
            at = max(at, child.end_byte)
            if child.type in ("file_redirect", "herestring_redirect"):
                extra.extend(self.redirect(child, redirects, place))
            elif child.type == "heredoc_redirect":
                extra.extend(self.heredoc(child, redirects, place))
            elif child.type == "comment":
                self.comment(child, place)
            elif body is None and child.is_named:
                body = child
            else:
                self.doubt(f"a part of the grammar that is not listed ({child.type})", node)
        self.runs_on(body, node)
        if body is not None and body.type == "command":
            self.simple(body, redirects, place, node, extra)
        elif body is None and not extra:
            self.keep([], [], redirects, place, node)
        elif body is None:
            self.doubt("a redirection before a program name", node)
        else:
            if extra:
                self.doubt("words after a redirection", node)
            self.keep([], [], redirects, place, node)
            self.todo.append((body, place))

    def runs_on(self, body: Node | None, node: Node) -> None:
        """`}2>f` is a word to bash, not a bracket and a redirection."""
        if (
            body is not None
            and body.type != "command"
            and self.source[body.end_byte : body.end_byte + 1].isalnum()
        ):
            self.doubt("a bracket or keyword that runs into a number", node)

    def heredoc(self, node: Node, into: list[Redirect], place: Place) -> list[Word]:
        """A here-document and whatever follows its operator on the same line."""
        extra: list[Word] = []
        start = body = end = None
        for child in node.children:
            kind = child.type
            if kind == "heredoc_start":
                start = child
            elif kind == "heredoc_body":
                body = child
            elif kind == "heredoc_end":
                end = child
            elif kind == "file_redirect":
                extra.extend(self.redirect(child, into, place))
            elif kind in WORDS:
                extra.extend(self.arguments(child, place))
            elif child.is_named and kind != "file_descriptor":
                self.todo.append((child, place._replace(piped_in=place.piped_in or kind == "pipeline")))
            elif kind not in ("<<", "<<-", "&&", "||", ";", "&", "file_descriptor"):
                self.doubt(f"the token {kind!r}", node)
        if start is None:
            self.doubt("a here-document without a delimiter", node)
        else:
            self.here_body(node, start, body, end, place)
            into.append(Redirect(op="<<", target=Word(self.text(start)), text=f"<<{self.text(start)}"))
        return extra

    def here_body(self, node: Node, start: Node, body: Node | None, end: Node | None, place: Place) -> None:
        """Check by our own count of lines that the here-document ends where the tree says, and what expands
        in it."""
        line = self.source[node.start_byte :].partition(b"\n")[0].rstrip(b" \t")
        if line.endswith((b"&&", b"||", b"|", b"|&", b"<<", b"<<-")):
            self.doubt("a here-document in the midst of a command", node)
        delimiter = self.text(start)
        if not _DELIMITER.fullmatch(delimiter) or end is None:
            self.doubt("a here-document whose end is not certain", node)
            return
        quoted = delimiter[0] in "'\"\\"
        plain = delimiter.strip("'\"") if delimiter[0] in "'\"" else delimiter.removeprefix("\\")
        first = self.source.find(b"\n", start.end_byte) + 1
        last = _terminator(self.source, first, plain.encode(), strip=node.children[0].type == "<<-")
        if (
            first == 0
            or last != end.start_byte
            or any(low <= start.start_byte < high for low, high in self.bodies)
        ):
            self.doubt("a here-document whose end is not certain", node)
            return
        if b"<<" in self.source[start.end_byte : first]:
            self.doubt("two here-documents on one line", node)
        self.bodies.append((first, last))
        if quoted:
            return
        found = self.inner(body, place) if body is not None else []
        text = self.source[first:last].decode("latin-1")
        try:
            account_for(text, 0, {self.begin(one) - first for one in found})
        except Unreadable as odd:
            self.doubt(str(odd) + " in a here-document", node)
        if _SUSPECT.search(_ESCAPED.sub("", text)):
            self.doubt("backquotes or joined lines in a here-document", node)


def _terminator(source: bytes, first: int, delimiter: bytes, *, strip: bool) -> int:
    """Byte offset of the delimiter that ends the here-document beginning at `first`, or -1."""
    at = first
    while at < len(source):
        end = source.find(b"\n", at)
        end = len(source) if end < 0 else end
        line = source[at:end]
        bare = line.lstrip(b"\t") if strip else line
        if bare == delimiter:
            return end - len(bare)
        at = end + 1
    return -1
