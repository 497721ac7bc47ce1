"""What are the parts of a command in the tree: its words, assignments and redirections?"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from jackstay.policy.late import late

from .facts import UNKNOWN, Arithmetic, Assignment, Redirect, SimpleCommand, Word
from .tree_expressions import Expressions
from .tree_words import WORDS, Place
from .words import PLAIN

if TYPE_CHECKING:
    from tree_sitter import Node


class Commands(Expressions):
    """Simple commands, declarations and conditions."""

    def command(self, node: Node, place: Place) -> None:
        self.simple(node, [], place, node)

    def simple(
        self, node: Node, outer: list[Redirect], place: Place, whole: Node, extra: Iterable[Word] = ()
    ) -> None:
        """A simple command: assignments, redirections, the program and its arguments."""
        words: list[Word] = []
        assignments: list[Assignment] = []
        redirects: list[Redirect] = []
        at = node.start_byte
        for child in node.children:
            self.gap(at, child.start_byte, node)
            if b"\n" in self.source[at : self.begin(child)].replace(b"\\\n", b""):
                self.doubt("a line break inside a command", node)  # the grammar reads on where bash stops
            at = max(at, child.end_byte)
            kind = child.type
            if kind == "command_name":
                words.append(self.program(child, place))
            elif kind in WORDS:
                words.extend(self.arguments(child, place))
            elif kind == "variable_assignment":
                assignments.append(self.assigned(child, place))
            elif kind in ("file_redirect", "herestring_redirect"):
                words.extend(self.redirect(child, redirects, place))
            elif kind == "subshell" and len(words) == 1 and words[0].text == "time":
                self.todo.append((child, place))
                words[0] = Word(":")  # the keyword times what stands in the brackets
            elif kind != "comment":
                self.doubt(f"a part of the grammar that is not listed ({kind})", node)
        self.keep([*words, *extra], assignments, [*redirects, *outer], place, whole)

    def keep(
        self,
        words: list[Word],
        assignments: list[Assignment],
        redirects: list[Redirect],
        place: Place,
        whole: Node,
    ) -> None:
        self.commands.append(
            SimpleCommand(
                words=tuple(words),
                text=self.text(whole)[:500],
                assignments=tuple(assignments),
                redirects=tuple(redirects),
                inside=place.inside,
                pipeline=place.pipeline,
                piped_in=place.piped_in,
                piped_out=place.piped_out,
                background=place.background,
                in_function=place.in_function,
            )
        )

    def program(self, node: Node, place: Place) -> Word:
        children = node.children
        if len(children) != 1 or children[0].type not in WORDS:
            if PLAIN.fullmatch(self.text(node)):
                return Word(self.text(node))
            self.doubt("a program name that is not plain text", node)
            return Word(self.text(node), fixed=False, sources=(UNKNOWN,))
        word = self.word(children[0], place)
        if not word.fixed:
            self.doubt("the program's name is not written out", node)
        elif not word.text.isascii():
            self.doubt("the program's name has look-alike characters", node)
        return word

    def assigned(self, node: Node, place: Place) -> Assignment:
        """`name=value`, `name[i]=value`, `name=(…)`; noted for the whole text as well."""
        children = node.children
        name = self.text(children[0])
        if children[0].type == "subscript":
            name = name.partition("[")[0]
            found = self.inner(children[0], place)
            numbers = tuple(self.number(one) for one in found if one.type == "command_substitution")
            inner = [name for one in found for name in self.arithmetic_names(one)]
            self.evaluate(
                self.holed(children[0]).partition("[")[2].removesuffix("]"), children[0], numbers, inner
            )
        if not (name.isascii() and name.isidentifier()):
            self.doubt("a variable's name that is none to the shell", node)
        value: Word | None = None
        words: tuple[Word, ...] = ()
        for child in children[2:]:
            if child.type == "array":
                words = tuple(word for word in self.array(child, place))
            else:
                value = self.word(child, place)
        if len(children) > 3 or (len(children) > 1 and children[1].type not in ("=", "+=")):
            self.doubt("an assignment of an unlisted form", node)
        if len(children) > 2:
            self.gap(children[1].end_byte, children[2].start_byte, node)
            if children[1].end_byte != children[2].start_byte:
                self.doubt("a blank after the equals sign", node)
        if len(children) > 1 and children[1].type == "+=" and value is not None:
            words, value = (value,), None
        elif value is None and not words and len(children) == 2:
            value = Word("")
        one = Assignment(name=name, value=value, words=words)
        self.assignments.append(one)
        return one

    def array(self, node: Node, place: Place) -> Iterable[Word]:
        at = node.start_byte
        for child in node.children:
            self.gap(at, child.start_byte, node)
            at = max(at, child.end_byte)
            if not child.is_named:
                continue
            if child.type == "comment":
                continue
            word = self.word(child, place)
            if self.text(child)[:1] == "[":
                index = re.match(r"\[([A-Za-z0-9_.-]+)\]=", self.text(child))
                if index is None:
                    self.doubt("an array subscript that is itself an expression", child)
                else:
                    names = re.findall(r"[A-Za-z_]\w*", index.group(1))
                    self.arithmetic.append(Arithmetic(self.text(child), tuple(names), ()))
            yield word

    def redirect(self, node: Node, into: list[Redirect], place: Place) -> list[Word]:
        """One redirection; further words the grammar hangs on it are arguments of the command and are
        returned."""
        fd = op = ""
        words: list[Word] = []
        at = node.start_byte
        for child in node.children:
            self.gap(at, child.start_byte, node)
            before, at = at, max(at, child.end_byte)
            if child.type == "file_descriptor":
                fd = self.text(child)
            elif not child.is_named and not op:
                op = child.type
            elif child.type in WORDS:
                glued = op == "<" and self.source[before : before + 1] == b"<"  # `<<(` is read as `< <(`
                if glued or b"\n" in self.source[before : child.start_byte] or self.is_descriptor(child):
                    self.doubt("a redirection without a target", node)
                words.extend(self.arguments(child, place) if words else (self.word(child, place),))
            else:
                self.doubt(f"a part of the grammar that is not listed ({child.type})", node)
        if not words and op not in ("<&-", ">&-"):
            self.doubt("a redirection without a target", node)
        target = words[0] if words else Word("-")
        one = Redirect(op=op, target=target, text=f"{fd}{op}{target.text}", fd=fd)
        into.append(one)
        self.redirects.append(one)
        return words[1:]

    def is_descriptor(self, node: Node) -> bool:
        """Is it the number of the redirection that follows it without a blank?"""
        return self.source[node.end_byte : node.end_byte + 1] in (b"<", b">") and self.text(node).isdigit()

    def declaration(self, node: Node, place: Place) -> None:
        """`declare`, `export`, `local`, `readonly`, `typeset`, `unset`."""
        words: list[Word] = []
        assignments: list[Assignment] = []
        at = node.start_byte
        for child in node.children:
            self.gap(at, child.start_byte, node)
            at = max(at, child.end_byte)
            if child.type == "variable_assignment":
                one = self.assigned(child, place)
                assignments.append(one)
                words.append(Word(f"{one.name}=", fixed=False))
            elif child.type in WORDS:
                words.extend(self.arguments(child, place))
            elif child.type == "variable_name" or (not child.is_named and child.type.isalpha()):
                words.append(Word(self.text(child)))
            else:
                self.doubt(f"a part of the grammar that is not listed ({child.type})", node)
        self.keep(words, assignments, [], place, node)

    def lone_assignment(self, node: Node, place: Place) -> None:
        nodes = [node] if node.type == "variable_assignment" else node.children
        self.keep([], [self.assigned(child, place) for child in nodes], [], place, node)

    def test(self, node: Node, place: Place) -> None:
        """`[ … ]` and `[[ … ]]`, as a command named by its opening bracket."""
        if node.children[0].type not in ("[", "[["):
            self.expression(node, place)
            return
        words: list[Word] = []
        if self.source[node.children[0].end_byte : node.children[0].end_byte + 1] not in (b" ", b"\t", b"\n"):
            self.doubt("a bracket that may be part of a name", node)
        closing = node.children[-1].start_byte
        if not self.source[closing - 1 : closing].isspace():
            self.doubt("a bracket that may be part of a name", node)
        stack = list(reversed(node.children))
        at = node.start_byte
        while stack:
            here = stack.pop()
            if here.type in WORDS:
                words.extend(
                    self.arguments(here, place)
                    if node.children[0].type == "["
                    else (self.pattern(here, place),)
                )
            elif here.type == "regex":
                words.append(self.regex(here))
            elif here.child_count:
                stack.extend(reversed(here.children))
                continue
            else:
                words.append(Word(self.text(here), value="operator"))
            self.gap(at, here.start_byte, node)
            at = max(at, here.end_byte)
        self.keep(words, [], [], place, node)

    def pattern(self, node: Node, place: Place) -> Word:
        """A word of `[[ … ]]` or a case pattern: patterns are matched there, not expanded to file names."""
        raw = self.text(node)
        if node.type == "extglob_pattern" and not any(mark in raw for mark in "$`'\"\\<>"):
            return Word(raw, fixed=False)
        return self.word(node, place)

    def regex(self, node: Node) -> Word:
        raw = self.text(node)
        if re.search(r"`|\$[A-Za-z0-9_{(\[@*#?!'\"-]|[<>]\(", raw):
            self.doubt("an expansion the grammar does not see", node)
        if not _is_whole(raw):
            self.doubt("a regular expression whose end is not certain", node)
        return Word(raw, fixed=False)


_QUOTED: Final = late(r"""\\.|'[^']*'|"[^"]*"|\[[^\]\s]*\]""")


def _is_whole(regex: str) -> bool:
    """Does a regular expression of `[[ … =~ … ]]` hold no blank and close every bracket it opens?"""
    bare = _QUOTED.sub("", regex)
    return not re.search(r"\s", bare) and bare.count("(") == bare.count(")")
