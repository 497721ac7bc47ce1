"""What can a variable or a substitution of this command text hold?

Only what the text itself assigns is known. The question is always the same: may this value put a word or an
option where
none is written?
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from itertools import product
from typing import Final

from .facts import GLOB, HOLE, UNKNOWN, Assignment, ShellFacts, SimpleCommand, Word
from .table import lists

PLAIN_NAMES: Final = frozenset(
    ("HOME", "PWD", "OLDPWD", "TMPDIR", "USER", "LOGNAME", "HOSTNAME", "SHELL", "UID", "EUID", "PPID",
     "RANDOM",
     "SECONDS", "LINENO", "COLUMNS", "LINES", "BASHPID", "SHLVL", "HOSTTYPE", "OSTYPE", "MACHTYPE",
     "BASH_VERSION",
     "LANG", "TERM", "EPOCHSECONDS", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME", "XDG_RUNTIME_DIR",
     "VIRTUAL_ENV", "CONDA_PREFIX", "GOPATH", "GOROOT", "JAVA_HOME", "CARGO_HOME", "NVM_DIR", "PATH")
)  # fmt: skip
"""Variables whose usual value neither begins with a dash nor holds options."""
NUMBERS: Final = frozenset(("0", "?", "#", "$", "!"))
MOST_TEXTS: Final = 16
_NUMBER: Final = re.compile(r"-?[0-9]+")
_DATE: Final = re.compile(r"\+%[smdHMSYjuwynNU]")
_STAT: Final = re.compile(r"%[sYXZWaugihbB]")


class Scope:
    """The variables, loops and substitutions of one text."""

    __slots__ = ("facts", "values")

    def __init__(self, facts: ShellFacts, outer: Scope | None = None) -> None:
        self.facts = facts
        self.values: dict[str, list[Word]] = {}
        for name, values in outer.values.items() if outer is not None else ():
            self.values[name] = [value if value.fixed else _ANYTHING for value in values]
        for one in facts.assignments:
            self.assign(one)
        for command in facts.commands:
            for at, word in enumerate(command.words):
                if word.text in _BINDERS:
                    self.bind(command.words[at:])
                elif at and "=" in word.text and any(one.text in _SETTERS for one in command.words[:at]):
                    name, _, value = word.text.partition("=")
                    self.assign(Assignment(name, Word(value, fixed=word.fixed, sources=word.sources)))

    def assign(self, one: Assignment) -> None:
        self.values.setdefault(one.name, []).extend((one.value,) if one.value is not None else one.words)

    def bind(self, words: tuple[Word, ...]) -> None:
        """`read`, `mapfile`, `printf -v`, `getopts`, `set --`: names whose values come from elsewhere."""
        for word in words[1:]:
            name = word.text.removeprefix("-v") if words[0].text == "printf" else word.text
            if word.fixed and name.isidentifier():
                self.values.setdefault(name, []).append(_ANYTHING)
        for name in _BINDERS[words[0].text]:
            self.values.setdefault(name, []).append(_ANYTHING)

    def may_dash(self, word: Word) -> bool:
        """Whether the word could begin with a dash, or bring another that does."""
        if word.fixed:
            return word.text[:1] == "-"
        if not word.sources:
            return False
        if _ends_as_directory(word):
            return False
        return any(self.dashes(source, split=word.many) for source in word.sources)

    def dashes(self, source: str, *, split: bool) -> bool:
        """Whether a value from this source could begin with a dash, or hold such a word when it is split."""
        todo, seen = [source], set()
        while todo:
            here = todo.pop()
            if here in seen or here in NUMBERS:
                continue
            seen.add(here)
            if here[:1] == "(":
                if not self.plain_output(int(here[1:])):
                    return True
                continue
            values = None if here in (GLOB, UNKNOWN) else self.values.get(here.lstrip("@"))
            if values is None:
                if here not in PLAIN_NAMES:
                    return True
                continue
            if any(_dashed(value, split=split) for value in values):
                return True
            for value in values:
                todo.extend(() if _ends_as_directory(value) else value.sources)
                todo.extend(value.inner if split else ())
        return False

    def outputs(self, number: int) -> list[SimpleCommand]:
        """The commands whose output a substitution gives."""
        return [one for one in self.facts.commands if one.inside == number and not one.piped_out and one.words]

    def plain_output(self, number: int) -> bool:
        """Whether a substitution gives one word that does not begin with a dash, whatever it prints."""
        ends = self.outputs(number)
        if len(ends) != 1:
            return False
        name, *words = ends[0].words
        plain = lists().plain_output
        if name.text in plain:
            return _answers_plainly(name.text, words)
        if words and f"{name.text} {words[0].text}" in plain:
            return _answers_plainly(f"{name.text} {words[0].text}", words[1:])
        return self.counts(number)

    def counts(self, number: int) -> bool:
        """Whether a substitution can only give a number."""
        ends = self.outputs(number)
        if len(ends) != 1 or not ends[0].words[0].fixed:
            return False
        name, *arguments = ends[0].words
        options = [word.text for word in arguments if word.fixed and word.text[:1] == "-"]
        rest = [
            word.text if word.fixed else "" for word in arguments if not (word.fixed and word.text[:1] == "-")
        ]
        sure = _COUNTERS.get(name.text)
        return sure is not None and sure(options, rest)

    def numeric(self, source: str) -> bool:
        """Whether a value from this source can only be a number (an unset name counts as 0)."""
        todo, seen = [source], set()
        while todo:
            here = todo.pop()
            if here in seen or here in NUMBERS:
                continue
            seen.add(here)
            if here[:1] == "(":
                if not self.counts(int(here[1:])):
                    return False
                continue
            if not here.isidentifier() or here in _TEXTS or here.startswith(_TEXT_FAMILIES):
                return False
            for value in self.values.get(here, ()):
                if value.fixed:
                    if not _NUMBER.fullmatch(value.text or "0"):
                        return False
                elif value.value is None:
                    return False
                else:
                    todo.append(value.value)
        return True

    def texts(self, word: Word) -> list[str] | None:
        """Every text the word can have, when the command text itself says so; None when it does not."""
        if word.fixed:
            return [word.text]
        if word.many and (word.globs or HOLE not in word.shape):
            return None
        choices: list[list[str]] = []
        for source in word.inner:
            options = self._choices(source)
            if options is None:
                return None
            choices.append(options)
        if not choices or word.shape.count(HOLE) != len(choices):
            return None
        texts: list[str] = []
        for picked in product(*choices):
            pieces = word.shape.split(HOLE)
            texts.append("".join(a + b for a, b in zip(pieces, (*picked, ""), strict=True)))
            if len(texts) > MOST_TEXTS:
                return None
        if word.many and any(len(text.split()) != 1 or set("*?[") & set(text) for text in texts):
            return None
        return texts

    def _choices(self, source: str) -> list[str] | None:
        values = self.values.get(source)
        if values and all(value.fixed for value in values):
            return [value.text for value in values][: MOST_TEXTS + 1]
        return ["1"] if values is not None and self.numeric(source) else ["1"] if source in NUMBERS else None

    def fixed(self, words: Iterable[Word]) -> bool:
        """Whether the text itself determines all these words."""
        return all(word.fixed or self.texts(word) is not None for word in words)


_ANYTHING: Final = Word("", fixed=False, sources=(UNKNOWN,), many=True, inner=(UNKNOWN,))
_TEXTS: Final = frozenset(("_", "DIRSTACK", "FUNCNAME", "OPTARG", "PWD", "OLDPWD"))
_TEXT_FAMILIES: Final = ("BASH_", "COMP_", "READLINE_")
"""Variables the shell itself fills with pieces of text."""
_QUESTIONS: Final = {
    "git rev-parse": r"--(?:show-toplevel|show-prefix|abbrev-ref|short(?:=\d+)?|git-dir|git-common-dir|verify|"
    r"quiet|show-cdup|show-superproject-working-tree|is-[a-z-]+|absolute-git-dir|symbolic-full-name)|-q",
    "git branch": r"--show-current",
    "git rev-list": r"--(?:count|all|no-merges|merges|first-parent|max-parents=0|max-count=\d+|tags|"
    r"branches)|-n?\d*",
    "command": r"-[vV]",
    "date": r"-[uRI]\w*|--(?:utc|iso-8601|rfc-)\S*|-[dr].*|--(?:date|reference)=.*|"
    r"\+(?!-)(?:(?![ \t\n]-).)*",
}
"""Options under which a program of plain answers still answers plainly; the others take any of theirs."""


def _answers_plainly(name: str, words: Iterable[Word]) -> bool:
    """Whether its options and operands leave a program no way to print what looks like an option."""
    allowed = _QUESTIONS.get(name)
    marked = "-" if name != "date" else "-+"
    for word in words:
        text = word.text
        if not word.fixed and word.shape[:1] != "-" and text[:1] != "+":
            continue
        if text[:1] in marked and (not word.fixed or (allowed and not re.fullmatch(allowed, text, re.DOTALL))):
            return False
    return name != "command" or any(word.text in ("-v", "-V") for word in words)


def _ends_as_directory(value: Word) -> bool:
    """Names matched by `*/`: no option ends with a slash and does harm."""
    return value.sources == (GLOB,) and value.text[-1:] == "/"


def _dashed(value: Word, *, split: bool) -> bool:
    text = value.text
    if not value.fixed:
        return value.globs and split and not _ends_as_directory(value)
    return (
        text[:1] == "-"
        or (split and re.search(r"[ \t\n]-", text) is not None)
        or (split and text[:1] in ("*", "?", "["))
    )


_COUNTERS: Final[dict[str, Callable[[list[str], list[str]], bool]]] = {
    "wc": lambda options, rest: not rest and len("".join(options).replace("-", "")) == 1,
    "nproc": lambda options, rest: not rest,
    "grep": lambda options, rest: options in (["-c"], ["--count"]) and len(rest) <= 2 and all(rest),
    "date": lambda options, rest: not options and len(rest) == 1 and _DATE.fullmatch(rest[0]) is not None,
    "stat": lambda options, rest: (
        _STAT.fullmatch("".join(options).removeprefix("-L").removeprefix("-c") or rest[0]) is not None
        if "".join(options).removeprefix("-L").startswith("-c") and rest
        else False
    ),
    "id": lambda options, rest: options in (["-u"], ["-g"]) and not rest,
    "seq": lambda options, rest: bool(rest) and all(_NUMBER.fullmatch(text) for text in options + rest),
    "git": lambda options, rest: rest[:1] == ["rev-list"] and options == ["--count"] and all(rest),
    "echo": lambda options, rest: not options and len(rest) == 1 and _NUMBER.fullmatch(rest[0]) is not None,
}
"""Programs that print nothing but a number, when their options and operands are such."""
_SETTERS: Final = frozenset(("env", "sudo", "doas", "command", "time"))
_BINDERS: Final[dict[str, tuple[str, ...]]] = {
    "read": ("REPLY",),
    "mapfile": ("MAPFILE",),
    "readarray": ("MAPFILE",),
    "printf": (),
    "getopts": ("OPTARG",),
    "wait": (),
}
