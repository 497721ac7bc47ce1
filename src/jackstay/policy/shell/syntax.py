"""What does this text make the shell do: which commands, redirections and substitutions does it contain?

tree-sitter-bash gives the structure; only listed node kinds are followed and every word is read again from
the raw
text. Whatever is left over is named in `opaque`. The walk keeps its own stack: nesting costs memory, never
recursion.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

from .facts import Assignment, Doubt, Redirect, ShellFacts, Word
from .grammar import parser
from .tree_redirects import Redirections
from .tree_words import WORDS, Place
from .words import odd_characters

if TYPE_CHECKING:
    from tree_sitter import Node

LONGEST: Final = 10_000  # characters; longer text is not read
MOST_COMMANDS: Final = 400
SMALL: Final = 600  # characters; shorter text cannot be slow
MOST_MARKS: Final = 200  # of one bracket or bar: beyond that the grammar can need seconds
_CONTAINERS: Final = frozenset(
    ("program", "list", "if_statement", "elif_clause", "else_clause", "while_statement", "do_group",
     "compound_statement", "subshell", "negated_command")
)  # fmt: skip
_TOKENS: Final = frozenset(
    (";", "&", "&&", "||", "\n", "!", "(", ")", "{", "}", "if", "then", "elif", "else", "fi", "while",
     "until",
     "do", "done", "$(", "`", "<(", ">(")
)  # fmt: skip

_OPENERS: Final = frozenset(("if", "then", "elif", "else", "while", "until", "do", "{", "("))
_CLOSERS: Final = frozenset(("fi", "done", "}", ")", "elif_clause", "else_clause", "do_group"))


class Walk(Redirections):
    """One pass over one tree, gathering facts."""

    def container(self, node: Node, place: Place) -> None:
        """Statements in a row, with the tokens that join them."""
        children = node.children
        if children and children[0].type == "((":
            self.expression(node, place)
            return
        todo: list[tuple[Node, Place]] = []
        at = children[0].start_byte if children else node.end_byte
        for position, child in enumerate(children):
            self.gap(at, child.start_byte, node)
            at = max(at, child.end_byte)
            if child.is_named:
                following = children[position + 1].type if position + 1 < len(children) else ""
                todo.append((child, place._replace(background=True) if following == "&" else place))
            elif child.type not in _TOKENS:
                self.doubt(f"the token {child.type!r}", node)
        if _lacks_statement(children):
            self.doubt("a part without a command, which the shell refuses", node)
        self.todo.extend(reversed(todo))

    def pipeline(self, node: Node, place: Place) -> None:
        """Commands joined by `|`."""
        parts = [child for child in node.children if child.is_named and child.type != "comment"]
        if any(not child.is_named and child.type not in ("|", "|&") for child in node.children):
            self.doubt("a token that does not belong into a pipeline", node)
        leading = node.children[0].type in ("|", "|&")  # the rest of a line that began with a here-document
        self.pipelines += 0 if place.pipeline else 1
        number = place.pipeline or self.pipelines
        last = len(parts) - 1
        if any(part.type == "negated_command" for part in parts[not leading :]):
            self.doubt("a negation behind a bar, which the shell refuses", node)
        todo = [
            (
                part,
                place._replace(
                    pipeline=number,
                    piped_in=place.piped_in or leading or position > 0,
                    piped_out=place.piped_out or position < last,
                ),
            )
            for position, part in enumerate(parts)
        ]
        self.between(node)
        self.todo.extend(reversed(todo))

    def between(self, node: Node) -> None:
        at = node.start_byte
        for child in node.children:
            self.gap(at, child.start_byte, node)
            at = max(at, child.end_byte)

    def substitution(self, node: Node, place: Place) -> None:
        """`$(…)`, backquotes, `<(…)`, `>(…)`: their own commands, in their own numbered place."""
        number = self.number(node)
        raw = self.text(node)
        if raw[:1] == "`" and ("\\" in raw or "#" in raw):
            self.doubt("backquotes with escapes or comments inside", node)
        feeds = raw[:2] == ">("
        self.container(
            node,
            place._replace(
                inside=number, pipeline=0, piped_in=feeds, piped_out=raw[:2] == "<(", background=False
            ),
        )

    def lone_redirect(self, node: Node, place: Place) -> None:
        """`$(<file)`: the file's text. As a statement of its own a redirection stands in no other place."""
        redirects: list[Redirect] = []
        if self.redirect(node, redirects, place) or not place.inside:
            self.doubt("a redirection without a program", node)
        self.keep([], [], redirects, place, node)

    def for_loop(self, node: Node, place: Place) -> None:
        words: list[Word] = []
        name = ""
        at = node.start_byte
        for child in node.children:
            self.gap(at, child.start_byte, node)
            before, at = at, max(at, child.end_byte)
            if child.type == "variable_name":
                name = self.text(child)
                if b"\n" in self.source[before : child.start_byte] or not name.isidentifier():
                    self.doubt("the head of a loop is not certain", node)
            elif child.type in WORDS:
                if b"\n" in self.source[before : child.start_byte].replace(b"\\\n", b""):
                    self.doubt("a line break in the list of a loop", node)
                words.extend(self.arguments(child, place))
            elif child.is_named:
                self.todo.append((child, place))
            elif child.type == "select":
                self.doubt("a menu that waits for answers", node)
            elif child.type not in ("for", "in", ";", "\n"):
                self.doubt(f"the token {child.type!r}", node)
        if not words:
            words.append(Word("$@", fixed=False, sources=("@",), many=True))
        self.assignments.append(Assignment(name=name, value=None, words=tuple(words), how="for"))
        self.keep([], [Assignment(name=name, value=None, how="for")], [], place, node.children[1])

    def counting_loop(self, node: Node, place: Place) -> None:
        """`for ((…))`: the head is arithmetic, the body statements."""
        opened = closed = None
        found: list[Node] = []
        for child in node.children:
            if child.type == "((":
                opened = child
            elif child.type == "))":
                closed = child
            elif child.type in ("do_group", "compound_statement"):
                self.todo.append((child, place))
            elif opened is not None and closed is None:
                found.extend(self.inner(child, place) if child.child_count else [])
        if opened is None or closed is None:
            self.doubt("a loop head that is not certain", node)
            return
        head = self.source[opened.end_byte : closed.start_byte].decode("latin-1")
        numbers = tuple(self.number(one) for one in found if one.type == "command_substitution")
        if numbers or "`" in head:
            self.doubt("a substitution in a loop head", node)
        self.evaluate(
            head.replace(";", ","),
            node,
            numbers,
            [name for one in found for name in self.arithmetic_names(one)],
        )

    def case(self, node: Node, place: Place) -> None:
        """`case … esac` and its items: words are looked at, statements queued."""
        todo: list[tuple[Node, Place]] = []
        at = node.start_byte
        pattern_side = True
        self.case_head(node)
        for child in node.children:
            self.gap(at, child.start_byte, node)
            at = max(at, child.end_byte)
            if child.type in WORDS and (pattern_side or node.type == "case_statement"):
                self.pattern(child, place)
            elif child.type == ")":
                pattern_side = False
            elif child.is_named:
                todo.append((child, place))
            elif child.type not in ("case", "in", "esac", "|", "(", ";;", ";&", ";;&", ";", "\n"):
                self.doubt(f"the token {child.type!r}", node)
        self.todo.extend(reversed(todo))

    def case_head(self, node: Node) -> None:
        """`case WORD in` on one line with nothing else in it; patterns without what would end a command."""
        head: list[Node] = []
        for child in node.children:
            if child.type == "case_item":
                break
            head.append(child)
        if node.type == "case_statement":
            kinds = [child.type for child in head if child.type not in ("\n", "comment", "esac")]
            words = [child for child in head if child.type not in ("\n", "comment")]
            plain = len(kinds) == 3 and kinds[0] == "case" and kinds[2] == "in"
            one_line = plain and b"\n" not in self.source[words[0].end_byte : words[1].start_byte]
            apart = plain and self.source[words[2].end_byte : words[2].end_byte + 1].isspace()
            if not (one_line and apart):
                self.doubt("a case whose head is not certain", node)
        for child in head if node.type == "case_item" else ():
            raw = self.text(child) if child.type == "extglob_pattern" else ""
            if any(mark in raw for mark in "&;<>") or raw.count("(") != raw.count(")"):
                self.doubt("a pattern that is not certain", node)

    def function(self, node: Node, place: Place) -> None:
        for child in node.children:
            if child.type == "word":
                self.functions.append(self.text(child))
            elif child.is_named:
                self.todo.append(
                    (child, place._replace(in_function=True, pipeline=0, piped_in=False, piped_out=False))
                )
            elif child.type not in ("(", ")", "function"):
                self.doubt(f"the token {child.type!r}", node)

    def nothing(self, node: Node, place: Place) -> None:
        """A plain `$name`: the word that holds it has said everything."""

    def run(self, root: Node) -> None:
        """Visit everything that can run."""
        self.gap(0, root.start_byte, root)
        self.gap(root.end_byte, len(self.source), root)
        self.todo.append((root, Place()))
        while self.todo:
            node, place = self.todo.pop()
            visit = _VISITS.get(node.type)
            if visit is None:
                self.doubt(f"a part of the grammar that is not listed ({node.type})", node)
            elif len(self.commands) > MOST_COMMANDS:
                self.doubt("more commands than are read", node)
                return
            else:
                visit(self, node, place)

    def facts(self, text: str) -> ShellFacts:
        return ShellFacts(
            text=text,
            commands=tuple(self.commands),
            redirects=tuple(self.redirects),
            substitutions=tuple(self.substitutions),
            assignments=tuple(self.assignments),
            arithmetic=tuple(self.arithmetic),
            functions=tuple(self.functions),
            comments=tuple(self.comments),
            opaque=tuple(dict.fromkeys(self.doubts)),
        )


def _lacks_statement(children: Sequence[Node]) -> bool:
    """Is there a keyword or bracket with nothing to run between it and the next one?"""
    waits = False
    for child in children:
        if child.type in _OPENERS or child.type in _CLOSERS:
            if waits:
                return True
            waits = child.type in _OPENERS
        elif child.is_named and child.type != "comment":
            waits = False
    return waits


_VISITS: Final[dict[str, Callable[[Walk, Node, Place], None]]] = {
    **dict.fromkeys(_CONTAINERS, Walk.container),
    "pipeline": Walk.pipeline,
    "command": Walk.command,
    "redirected_statement": Walk.redirected,
    "declaration_command": Walk.declaration,
    "unset_command": Walk.declaration,
    "variable_assignment": Walk.lone_assignment,
    "variable_assignments": Walk.lone_assignment,
    "test_command": Walk.test,
    "for_statement": Walk.for_loop,
    "c_style_for_statement": Walk.counting_loop,
    "case_statement": Walk.case,
    "case_item": Walk.case,
    "function_definition": Walk.function,
    "comment": Walk.comment,
    "command_substitution": Walk.substitution,
    "process_substitution": Walk.substitution,
    "arithmetic_expansion": Walk.expression,
    "expansion": Walk.expansion,
    "file_redirect": Walk.lone_redirect,
    "simple_expansion": Walk.nothing,
}


def unread(text: str, why: str) -> ShellFacts:
    """Facts of a text that is not read at all."""
    return ShellFacts(text=text, opaque=(Doubt(why, text[:60]),))


def parse(text: str) -> ShellFacts:
    """Read a command text. Never raises, whatever the text; what is not understood is in `opaque`."""
    if len(text) > LONGEST:
        return unread(text, f"the text is longer than {LONGEST} characters")
    if len(text) > SMALL and any(text.count(mark) > MOST_MARKS for mark in "()[{}|"):
        return unread(text, f"the text nests or joins more than {MOST_MARKS} parts")
    if not text.isprintable():
        odd = odd_characters(text)
        if odd is not None:
            return unread(text, odd)
    source = text.encode("utf-8")
    tree = parser().parse(source)
    root = tree.root_node
    walk = Walk(source)
    if root.has_error:
        walk.doubts.append(Doubt("the text does not parse as shell", text[:200]))
    walk.run(root)
    return walk.facts(text)
