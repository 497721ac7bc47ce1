"""What does a command line consist of, as far as its text can be read for certain?"""

from __future__ import annotations

from msgspec import Struct

UNKNOWN = "??"
"""Source of a value nobody can tell from the text."""
HOLE = "\x01"
"""Stands for an expansion in the shape of a word; no readable text contains it."""
GLOB = "*"
"""Source of a value that depends on the file names of a directory."""


class Word(Struct, frozen=True, gc=False):
    """One word of a command, quotes removed.

    `fixed` promises that the shell passes exactly `text`, as one argument. Otherwise `text` keeps the
    expansions as
    written and `sources` names everything that could put an unseen word, or an unseen beginning, in this
    place:
    a variable name, `(N` for substitution N, `*` for file names, `??` for anything.
    """

    text: str
    fixed: bool = True
    sources: tuple[str, ...] = ()
    many: bool = False
    value: str | None = None  # the source that is the whole word, when there is exactly one
    home: bool = False  # begins with an unquoted ~
    inner: tuple[str, ...] = ()  # the source of every expansion in it, in order
    shape: str = ""  # the text with HOLE for every expansion
    globs: bool = False


class Assignment(Struct, frozen=True, gc=False):
    """`name=value`; `value` is None for an array or an appended value, whose words are in `words`."""

    name: str
    value: Word | None
    words: tuple[Word, ...] = ()
    how: str = ""  # "for", or "expression" when an expansion or a sum assigns


class Redirect(Struct, frozen=True, gc=False):
    """One redirection: operator, target word and the text it was written as."""

    op: str
    target: Word
    text: str
    fd: str = ""


class SimpleCommand(Struct, frozen=True, gc=False):
    """One simple command in its place: words with the program first, what feeds it and what it feeds."""

    words: tuple[Word, ...]
    text: str
    assignments: tuple[Assignment, ...] = ()
    redirects: tuple[Redirect, ...] = ()
    inside: int = 0  # number of the substitution it belongs to, 0 for none
    pipeline: int = 0  # number of the pipeline it is a part of, 0 for none
    piped_in: bool = False
    piped_out: bool = False
    background: bool = False
    in_function: bool = False

    @property
    def program(self) -> str | None:
        """The program's name as written, or None when it is not literal."""
        first = self.words[0] if self.words else None
        return first.text if first is not None and first.fixed else None

    @property
    def argv(self) -> tuple[str | None, ...]:
        """The arguments with None for each that is not literal."""
        return tuple(word.text if word.fixed else None for word in self.words)


class Arithmetic(Struct, frozen=True, gc=False):
    """An arithmetic expression and the names and substitutions whose text the shell would evaluate in it."""

    text: str
    names: tuple[str, ...]
    substitutions: tuple[int, ...]


class Substitution(Struct, frozen=True, gc=False):
    """A command or process substitution: its number, how it is opened (`$(`, backquote, `<(` or `>(`), its
    text."""

    number: int
    opener: str
    text: str


class Doubt(Struct, frozen=True, gc=False):
    """Something that could not be read for certain, with the words that cause it."""

    why: str
    words: str


class ShellFacts(Struct, frozen=True, gc=False):
    """Everything read from one command text. Nothing in it is executed unseen unless `opaque` says so."""

    text: str
    commands: tuple[SimpleCommand, ...] = ()
    redirects: tuple[Redirect, ...] = ()
    substitutions: tuple[Substitution, ...] = ()
    assignments: tuple[Assignment, ...] = ()
    arithmetic: tuple[Arithmetic, ...] = ()
    functions: tuple[str, ...] = ()
    comments: tuple[str, ...] = ()
    opaque: tuple[Doubt, ...] = ()
