"""What is in a command line, as permission rules see it: every simple command, every target, every doubt."""

from collections.abc import Iterable
from functools import lru_cache
from typing import Any

import msgspec

from jackstay.core.facts import Use
from jackstay.core.tools import READS, Effect
from jackstay.policy.patterns import HOLE, INNER, REDIRECT


class Part(msgspec.Struct, frozen=True, gc=False):
    """One simple command after unwrapping.

    `words` are its arguments with quotes removed, HOLE for one that cannot be read. `redirects` are those to
    and from files, `assignments` stand before it. `outer` is the position of the command that starts this
    one, -1 for none; `plain` means that it starts it with nothing of its own added (time, timeout, nice),
    `by_words` that all commands around it have it among their words, `unknown` that it may run what its words
    name, `blind` that it surely runs something which cannot be seen. `exact` is the text for what permits:
    everything in it, words kept apart, redirections out of reach of `*`; `forms` are those for what forbids:
    the command by every name a rule could have used. `made_part` makes both.
    """

    words: tuple[str, ...]
    assignments: tuple[str, ...] = ()
    redirects: tuple[str, ...] = ()
    outer: int = -1
    plain: bool = False
    by_words: bool = True
    unknown: bool = False
    blind: bool = False
    exact: str = ""
    forms: tuple[str, ...] = ()

    @property
    def shown(self) -> str:
        """The command for a person."""
        return " ".join((*self.assignments, *self.words, *self.redirects)).replace(HOLE, "…")


def made_part(words: tuple[str, ...], *, without_options: Iterable[tuple[str, ...]] = (), **rest: Any) -> Part:
    """A part with its texts made.

    `without_options` is the command without the program's own options before its sub-command, by every way
    they can be read: `git -C /x push` is a `git push` to a rule that forbids one.
    """
    made = Part(words, **rest)
    forms = (*_forms(made), *(form for bare in without_options for form in _forms(Part(bare, **rest))))
    return msgspec.structs.replace(made, exact=_exact(made), forms=tuple(dict.fromkeys(forms)))


def _exact(made: Part) -> str:
    words = [word.replace(" ", INNER) for word in (*made.assignments, *made.words)]
    return " ".join([*words, *(REDIRECT + redirect for redirect in made.redirects)])


def _forms(made: Part) -> tuple[str, ...]:
    bare = " ".join(made.words)
    found = [bare, " ".join((*made.assignments, bare))]
    if made.words and "/" in made.words[0]:
        found.append(" ".join((made.words[0].rpartition("/")[2], *made.words[1:])))
    found += [f"{form} {redirect}" for form in tuple(found) for redirect in made.redirects]
    return tuple(dict.fromkeys(" ".join(form.split(" ")).strip() for form in found))


class Target(msgspec.Struct, frozen=True, gc=False):
    """A place the command touches: `paths` are all it can be, as far as the text says; () when it does not.

    `globs` means that their `*`, `?` and `[` stand for file names.
    """

    said: str
    use: Use
    paths: tuple[str, ...] = ()
    globs: bool = False


class Line(msgspec.Struct, frozen=True, gc=False):
    """A whole command line, and what is to be known about it.

    `doubt` says what cannot be read for certain, `danger` which shape never to let pass unseen, `unproven` why
    it was not shown to change nothing (None: it was), `credentials` which secret it gives away, `beyond` what
    it does besides reading and writing files. `fed` are texts that may be run though nobody can be sure,
    `listening` is a shell that runs what it is fed. `moves` are the directories it changes to, `says` its
    effects in sentences with the words that show them. `names`, `hosts` and `maybe` are the paths, addresses
    and commands that the words of commands whose doings are not known file by file could be about.
    """

    text: str
    parts: tuple[Part, ...] = ()
    targets: tuple[Target, ...] = ()
    network: tuple[str, ...] = ()
    moves: tuple[str | None, ...] = ()
    effects: frozenset[Effect] = READS
    doubt: str | None = None
    danger: str | None = None
    unproven: str | None = None
    credentials: str | None = None
    beyond: str | None = None
    fed: tuple[str, ...] = ()
    listening: str | None = None
    says: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()
    maybe: tuple[str, ...] = ()


@lru_cache(2048)
def read_line(text: str) -> Line:
    """Read a command line once. Never raises, whatever the text."""
    from jackstay.policy.reading import line_of  # the analyser is loaded with the first command

    return line_of(text)
