"""Which names does an expression or `${…}` evaluate, and is its form one of the listed ones?"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

from .expansions import account_for, read_arithmetic, read_braced
from .facts import UNKNOWN, Arithmetic, Assignment, Word
from .tree_words import QUIET, Place, TreeText
from .words import Unreadable

if TYPE_CHECKING:
    from tree_sitter import Node


class Expressions(TreeText):
    """Arithmetic and parameter expansions."""

    def expression(self, node: Node, place: Place) -> None:
        """`$((…))`, `((…))` or the head of a C-style loop."""
        found = self.inner(node, place) if node.type != "arithmetic_expansion" else self.below(node, place)
        raw = self.text(node)
        holes = self.holed(node)
        spans = {self.begin(one) - self.begin(node) for one in found} | {0}
        numbers = tuple(self.number(one) for one in found if one.type == "command_substitution")
        names = [name for one in found for name in self.arithmetic_names(one)]
        self.evaluate(holes, node, numbers, names)
        try:
            account_for(self.source[self.begin(node) : node.end_byte].decode("latin-1"), 0, spans)
        except Unreadable as odd:
            self.doubt(str(odd), node)
        if not self.ascii and not raw.isascii():
            self.doubt("unusual characters in an expression", node)

    def arithmetic_names(self, node: Node) -> list[str]:
        """The names an expansion inside an expression puts there as text."""
        if node.type == "arithmetic_expansion" or node.type == "command_substitution":
            return []
        text = self.text(node)
        if node.type == "simple_expansion":
            return [] if text[1:] in QUIET else [text[1:]]
        match = re.fullmatch(r"\$\{(#?)(\w+)(?:\[[@*]\])?\}", text)
        return [UNKNOWN] if match is None else [] if match.group(1) else [match.group(2)]

    def below(self, node: Node, place: Place) -> list[Node]:
        """The outermost expansions strictly below a node that is one itself."""
        found: list[Node] = []
        for child in node.children:
            found.extend(self.inner(child, place))
        return found

    def evaluate(self, text: str, node: Node, numbers: tuple[int, ...], names: Iterable[str]) -> None:
        """Note an expression; its assignments count as assignments of numbers."""
        inner = re.sub(r"^\$?\(\(|\)\)$|^\$\[|\]$", "", text)
        try:
            more, assigned = read_arithmetic(inner)
        except Unreadable as odd:
            self.doubt(str(odd), node)
            return
        self.arithmetic.append(
            Arithmetic(text=self.text(node)[:160], names=(*names, *more), substitutions=numbers)
        )
        self.assignments.extend(
            Assignment(name, Word("0", fixed=False, value="0", inner=("0",)), how="expression")
            for name in assigned
        )

    def expansion(self, node: Node, place: Place) -> None:
        """`${…}`: only the listed forms."""
        found = self.below(node, place)
        raw = self.text(node)
        spans = {0} | {self.begin(one) - self.begin(node) for one in found}
        try:
            account_for(self.source[self.begin(node) : node.end_byte].decode("latin-1"), 0, spans)
            braced = read_braced(self.holed(node))
        except Unreadable as odd:
            self.doubt(str(odd), node)
            return
        if braced.assigns is not None:
            self.assignments.append(
                Assignment(braced.assigns, Word(raw, fixed=False, sources=(UNKNOWN,)), how="expression")
            )
        if braced.arithmetic is not None:
            numbers = tuple(self.number(one) for one in found if one.type == "command_substitution")
            names = [name for one in found for name in self.arithmetic_names(one)]
            self.evaluate(braced.arithmetic, node, numbers, names)
