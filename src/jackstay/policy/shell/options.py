"""Which of these words are options, which are their values, and is every option one that is listed?"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final, NamedTuple

from .facts import Word
from .scope import Scope
from .table import Option, Spec

_NUMBER: Final = re.compile(r"-[0-9]+[a-zA-Z]?")


class Given(NamedTuple):
    """An option as it was given."""

    name: str
    option: Option
    value: Word | None
    written: str


class Seen:
    """The options and operands of one command, and the words that could not be placed."""

    __slots__ = ("names", "odd", "operands", "options")

    def __init__(self) -> None:
        self.options: list[Given] = []
        self.operands: list[Word] = []
        self.odd: list[tuple[str, str]] = []
        self.names: set[str] = set()

    def marks(self) -> str:
        """Every mark of every option given."""
        return "".join(given.option.marks for given in self.options)


class _Scan:
    __slots__ = ("at", "scope", "seen", "spec", "words")

    def __init__(self, spec: Spec, words: Sequence[Word], scope: Scope) -> None:
        self.spec = spec
        self.scope = scope
        self.words = words
        self.at = 0
        self.seen = Seen()

    def take(self) -> Word | None:
        if self.at >= len(self.words):
            return None
        self.at += 1
        return self.words[self.at - 1]

    def give(self, name: str, option: Option, value: Word | None, written: str) -> None:
        self.seen.options.append(Given(name, option, value, written))
        self.seen.names.add(name)

    def odd(self, word: Word, why: str) -> None:
        self.seen.odd.append((word.text, why))

    def separate(self, name: str, option: Option, written: str) -> None:
        """An option whose values, if it has any, are the next words."""
        value: Word | None = None
        for _ in range(max(option.takes, 0)):
            value = self.take()
            if value is not None and value.many and self.spec.exposed and self.scope.may_dash(value):
                self.odd(value, "could bring an option along")
            written = f"{written} {value.text}" if value is not None else written
        self.give(name, option, value, written)

    def long(self, word: Word) -> None:
        text = word.text
        options = self.spec.options
        option = options.get(text)
        if option is not None:
            self.separate(text, option, text)
            return
        name, equals, value = text.partition("=")
        option = options.get(name)
        if option is None or not equals or option.takes == 0:
            self.odd(word, self.unlisted(name))
            return
        self.give(name, option, Word(value, fixed=word.fixed, sources=word.sources, inner=word.inner), text)

    def unlisted(self, name: str) -> str:
        longer = sorted(known for known in self.spec.options if known.startswith(name) and len(name) > 2)
        hint = f" ({name} may be short for {longer[0]})" if longer else ""
        return f"has an option {name} that is not known to be harmless{hint}"

    def cluster(self, word: Word) -> None:
        text = word.text
        for position in range(1, len(text)):
            name = f"-{text[position]}"
            option = self.spec.options.get(name)
            if option is None:
                self.odd(word, self.unlisted(name))
                return
            if option.takes == 0:
                self.give(name, option, None, text)
                continue
            rest = text[position + 1 :]
            if rest:
                value = Word(rest, fixed=word.fixed, sources=word.sources, inner=word.inner)
                self.give(name, option, value, text)
            elif option.takes > 0:
                self.separate(name, option, text)
            else:
                self.give(name, option, None, text)
            return

    def option(self, word: Word) -> None:
        text = word.text
        if self.spec.entry.number and _NUMBER.fullmatch(text):
            return
        if text[:2] == "--" or self.spec.words:
            if self.spec.words and text[:2] != "--" and text not in self.spec.options and "=" not in text:
                self.cluster(word)
            else:
                self.long(word)
        else:
            self.cluster(word)


def scan(spec: Spec, words: Sequence[Word], scope: Scope, *, stop: bool = False) -> tuple[Seen, int]:
    """Place every word. With `stop`, end at the first operand and say where the rest begins."""
    state = _Scan(spec, words, scope)
    seen = state.seen
    ended = False
    while (word := state.take()) is not None:
        text = word.text
        if not word.fixed and not ended and spec.exposed and word.sources and scope.may_dash(word):
            state.odd(word, "could become an option")
        elif not word.fixed and not ended and not spec.exposed:
            known = scope.texts(word) or ()
            seen.odd += [(one, "is put in by an expansion") for one in known if one[:1] == "-"]
        dashed = text[:1] == "-" and len(text) > 1 and (word.fixed or not word.sources or word.shape[:1] == "-")
        if ended or not dashed or (spec.entry.negative and _NUMBER.fullmatch(text)):
            if stop:
                return seen, state.at - 1
            seen.operands.append(word)
        elif text == "--":
            ended = True
            if stop:
                return seen, state.at
        else:
            state.option(word)
    return seen, state.at
