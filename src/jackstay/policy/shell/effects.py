"""What would running this command do, and which words say so?

`judge` goes over the commands of a text, unwraps the wrappers, and asks the table or a reader of its own
about each. The
work list grows as inner commands are found; nothing here recurses.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from msgspec import Struct

from . import table
from .environment import power_of
from .facts import UNKNOWN, Assignment, Doubt, Redirect, ShellFacts, SimpleCommand, Word
from .scope import Scope
from .secrets import holds_secret, secrets_among
from .syntax import parse

READS: Final = "reads"
WRITES: Final = "writes"
DELETES: Final = "deletes"
EXECUTES: Final = "executes"
LOOKUP: Final = "network-read"
SENDS: Final = "network-send"
PROCESS: Final = "process"
SERVICE: Final = "service"
PRIVILEGE: Final = "privilege"
ENVIRONMENT: Final = "env"
CREDENTIALS: Final = "credentials"
OPAQUE: Final = "opaque"
HARMLESS: Final = frozenset((READS, LOOKUP))

MOST_INNER: Final = 64
DEEPEST: Final = 8
_QUIET_TARGETS: Final = frozenset(
    ("/dev/null", "/dev/stdout", "/dev/stderr", "/dev/fd/1", "/dev/fd/2", "/dev/tty")
)


class Effect(Struct, frozen=True, gc=False):
    """One thing a command does: its kind, what it does it to, the words that show it, and how to say it."""

    kind: str
    target: str
    evidence: str
    says: str


class Part(Struct, frozen=True, gc=False):
    """One simple command after unwrapping: its words, the wrappers around it, and whether another machine
    runs it."""

    text: str
    argv: tuple[str | None, ...]
    wrappers: tuple[str, ...] = ()
    remote: bool = False


class Call(NamedTuple):
    """A command about to be judged."""

    words: Sequence[Word]
    place: SimpleCommand
    scope: Scope
    wrappers: tuple[str, ...] = ()
    bounded: bool = False

    @property
    def name(self) -> str:
        """The program's name."""
        return self.words[0].text

    @property
    def text(self) -> str:
        """The words, for people."""
        return " ".join(word.text for word in self.words)[:160]

    @property
    def arguments(self) -> Sequence[Word]:
        """Everything after the program."""
        return self.words[1:]


class Judge:
    """Everything found out about one text so far."""

    __slots__ = (
        "bounded",
        "calls",
        "directories",
        "effects",
        "interactive",
        "network",
        "parts",
        "remote",
        "spoken",
        "texts",
    )

    def __init__(self) -> None:
        self.effects: list[Effect] = []
        self.parts: list[Part] = []
        self.calls: list[Call] = []
        self.texts: list[tuple[ShellFacts, tuple[str, ...], Scope | None]] = []
        self.interactive = False
        self.directories: list[str] = []
        self.network: list[str] = []
        self.remote: list[str] = []
        self.spoken = 0

    # -- saying what was found ----------------------------------------------------------------------------

    def note(self, kind: str, target: str, evidence: str, says: str) -> None:
        self.effects.append(Effect(kind, target, evidence[:160], says))

    def unproven(self, call: Call, why: str) -> None:
        self.note(OPAQUE, call.name, call.text, why)

    def writes(self, target: Word, evidence: str) -> None:
        """The command writes a file, unless it is one that keeps nothing."""
        if not (target.fixed and target.text in _QUIET_TARGETS):
            self.note(WRITES, target.text, evidence, f"writes {target.text}")

    def reads(self, paths: Sequence[Word], evidence: str) -> None:
        """The command reads what is in these files; secrets are said to be secrets."""
        for path in paths:
            self.effects.append(Effect(READS, path.text, evidence, f"reads {path.text}"))
        secret = secrets_among([path.text for path in paths], self.directories)
        if secret is not None:
            self.note(CREDENTIALS, secret, evidence, f"reads {secret}, a place for secrets")

    def looks_up(self, targets: Sequence[Word], call: Call) -> None:
        """The command asks the network about names that are written out; anything computed could carry data
        away."""
        for target in targets:
            self.network.append(target.text)
            if call.scope.texts(target) is None:
                self.note(SENDS, target.text, call.text, f"sends what {target.text} stands for to the network")
            else:
                self.note(LOOKUP, target.text, call.text, f"looks up {target.text}")

    def never_ends(self, call: Call) -> None:
        """The command waits or follows; in the background it would stay behind."""
        if call.bounded:
            return
        self.interactive = True
        if call.place.background:
            self.note(PROCESS, call.name, call.text, "stays behind as a process")

    # -- the work list ------------------------------------------------------------------------------------

    def inner(self, call: Call, words: Sequence[Word], *, bounded: bool = False) -> None:
        """Judge the command a wrapper runs."""
        if len(self.calls) > MOST_INNER or len(call.wrappers) >= DEEPEST:
            self.unproven(call, "wraps more commands than are read")
            return
        self.calls.append(
            call._replace(words=words, wrappers=(*call.wrappers, call.name), bounded=bounded or call.bounded)
        )

    def text(self, call: Call, text: str) -> None:
        """Judge a piece of text that is run as shell code; it inherits what the text around it assigns."""
        if len(call.wrappers) >= DEEPEST or len(self.texts) > MOST_INNER:
            self.unproven(call, "nests more shell texts than are read")
            return
        self.texts.append((parse(text), (*call.wrappers, call.name), call.scope))

    def run(self, facts: ShellFacts) -> None:
        """Judge a text and everything found inside it."""
        self.texts.append((facts, (), None))
        at = 0
        while at < len(self.texts):
            inner, wrappers, outer = self.texts[at]
            at += 1
            self.one_text(inner, wrappers, outer)

    def one_text(self, facts: ShellFacts, wrappers: tuple[str, ...], outer: Scope | None) -> None:
        for doubt in facts.opaque:
            self.note(OPAQUE, "", doubt.words, f"cannot be read for certain: {doubt.why}")
        scope = Scope(facts, outer)
        self.shape(facts, scope)
        for command in facts.commands:
            self.surroundings(command, scope)
            if command.words:
                self.calls.append(Call(command.words, command, scope, wrappers))
            while self.calls:
                self.command(self.calls.pop(), facts)

    def shape(self, facts: ShellFacts, scope: Scope) -> None:
        """What the text does as a whole: functions, arithmetic, directories it changes to."""
        for name in facts.functions:
            if (
                table.known(name)
                or name in BUILTINS
                or not name.isidentifier()
                or name.startswith("command_not")
            ):
                self.note(EXECUTES, name, name, f"redefines {name}")
        for one in facts.assignments:
            why = power_of(one.name, exported=False) if one.how == "expression" else None
            if why is not None:
                self.note(ENVIRONMENT, one.name, facts.text[:160], why)
        for sum_ in facts.arithmetic:
            bad = [name for name in sum_.names if not scope.numeric(name)]
            bad += [f"substitution {number}" for number in sum_.substitutions if not scope.counts(number)]
            if bad:
                self.note(OPAQUE, bad[0], sum_.text, "evaluates text that may not be a number")
        for command in facts.commands:
            if len(command.words) > 1 and any(word.text in ("cd", "pushd") for word in command.words[:-1]):
                self.directories.append(command.words[-1].text)

    def surroundings(self, command: SimpleCommand, scope: Scope) -> None:
        """Assignments and redirections of one command."""
        exports = bool(command.words)
        for one in command.assignments:
            self.assignment(one, command, exported=exports and command.words[0].text not in _SHELL_ONLY)
        for redirect in command.redirects:
            self.redirect(redirect, command, scope)

    def assignment(self, one: Assignment, command: SimpleCommand, *, exported: bool) -> None:
        why = power_of(one.name, exported=exported)
        if one.value is not None and one.value.text.startswith("()"):
            why = f"gives {one.name} the form of an exported function"
        splits = one.name == "IFS" and command.program in ("read", "mapfile", "readarray")
        plain = one.name.endswith("PAGER") and one.value in (Word("cat"), Word(""))
        if why is not None and not splits and not plain:
            self.note(ENVIRONMENT, one.name, command.text[:160], why)

    def prints(self, call: Call) -> None:
        """A command that puts out its words: among them may be a variable that holds a secret."""
        for word in call.arguments:
            for name in (word.text,) if call.name == "printenv" else word.inner:
                asked_only = f"{{{name}:+" in word.text or f"{{{name}+" in word.text
                if holds_secret(name) and not asked_only and name not in call.scope.values:
                    self.note(CREDENTIALS, name, call.text, f"shows what {name} holds")

    def redirect(self, one: Redirect, command: SimpleCommand, scope: Scope) -> None:
        target = one.target
        if one.op in ("<<", "<<-", "<<<", "<&-", ">&-"):
            return
        if one.op in ("<&", ">&") and target.fixed and _DESCRIPTOR.fullmatch(target.text):
            return
        if _connects(target, scope):
            self.note(SENDS, target.text, one.text, f"opens a network connection to {target.text}")
        elif one.op == "<":
            self.reads((target,), one.text)
        elif one.op in (">", ">>", ">|", "&>", "&>>", ">&", "<>"):
            if not (target.fixed and target.text in _QUIET_TARGETS):
                self.note(WRITES, target.text, command.text[:160], f"writes {target.text}")
        else:
            self.note(OPAQUE, target.text, one.text, f"redirects in an unlisted way ({one.op})")

    def command(self, call: Call, facts: ShellFacts) -> None:
        """One command: name it, then ask what knows about it."""
        program = call.words[0]
        wrappers = call.wrappers
        self.parts.append(
            Part(
                call.text,
                tuple(word.text if word.fixed else None for word in call.words),
                wrappers,
                "ssh" in wrappers,
            )
        )
        name = program.text
        if not program.fixed:
            self.note(
                OPAQUE, name, call.text, "cannot be read for certain: the program's name is not written out"
            )
            return
        if "/" in name:
            head, _, tail = name.rpartition("/")
            if head not in SYSTEM_PLACES:
                self.note(EXECUTES, name, call.text, f"runs {name}, which is no program of the system")
                return
            call = call._replace(words=(Word(tail), *call.words[1:]))
            name = tail
        elif name in facts.functions:
            if call.place.in_function or wrappers:
                self.note(OPAQUE, name, call.text, "calls a function from a function or a wrapper")
            return
        if name in _PRINTERS:
            self.prints(call)
        known = BUILTINS.get(name) if "/" not in program.text else None
        if known is not None:
            known(self, call)
            return
        self.program(name, call)

    def program(self, name: str, call: Call) -> None:
        arguments = call.arguments
        if len(arguments) == 1 and arguments[0].fixed and arguments[0].text in ("--version", "--help"):
            spec = table.find(name)
            if name in table.lists().asks_version or (spec is not None and not spec.entry.effect):
                return
        if name in table.lists().asks_help and _asks_help(arguments):
            return
        spec = table.wrapper(name)
        if spec is not None:
            READERS["wrapper"](self, call, spec)
            return
        spec = table.find(name)
        if spec is not None:
            READERS.get(spec.entry.reader, by_table)(self, call, spec)
            return
        change = table.changes().get(name)
        if change is not None:
            kind = SENDS if change[0] == "network" else change[0]
            self.note(kind, name, call.text, change[1])
            return
        self.note(EXECUTES, name, call.text, f"runs {name}, which is not a known program")


_PRINTERS: Final = frozenset(("echo", "printf", "printenv"))
_DESCRIPTOR: Final = re.compile(r"[0-9]+-?|-")
_SOCKETS: Final = ("/dev/tcp/", "/dev/udp/")


def _connects(target: Word, scope: Scope) -> bool:
    """Whether a redirection may open a network connection, which bash does for names below /dev/tcp."""
    if target.fixed:
        return target.text.startswith(_SOCKETS)
    texts = scope.texts(target)
    if texts is not None:
        return any(text.startswith(_SOCKETS) for text in texts)
    begins = [value.text for name in target.inner for value in scope.values.get(name, ())]
    return (
        "/dev/" in target.text
        or any(text.startswith("/dev") for text in begins)
        or any(place in scope.facts.text for place in _SOCKETS)
    )


Reader = Callable[[Judge, Call, "table.Spec"], None]
Builtin = Callable[[Judge, Call], None]
BUILTINS: Final[dict[str, Builtin]] = {}
READERS: Final[dict[str, Reader]] = {}
SYSTEM_PLACES: Final = frozenset(
    ("/bin", "/usr/bin", "/sbin", "/usr/sbin", "/usr/local/bin", "/usr/local/sbin", "/opt/homebrew/bin")
)
_SHELL_ONLY: Final = frozenset(("declare", "typeset", "local", "readonly", "export", "unset"))
ANY: Final = Word("…", fixed=False, sources=(UNKNOWN,), many=True, inner=(UNKNOWN,))
"""Arguments nobody can see yet: what xargs will add."""


def _asks_help(arguments: Sequence[Word]) -> bool:
    """`git commit --help`, `docker help run`: help about a sub-command, and nothing else."""
    *names, last = arguments or (Word(""),)
    plain = all(word.fixed and word.text.replace("-", "").isalpha() and word.text[:1] != "-" for word in names)
    runs = any(word.text in ("run", "exec", "x", "dlx", "tool") for word in names)
    if arguments and arguments[0].fixed and arguments[0].text == "help":
        return plain and last.fixed and last.text.replace("-", "").isalpha() and last.text[:1] != "-"
    return bool(names) and last.fixed and last.text == "--help" and plain and len(names) <= (1 if runs else 3)


def by_table(judge: Judge, call: Call, spec: table.Spec) -> None:
    """Judge a call by its table entry; filled in by `operands` (which needs Judge)."""
    from .operands import by_entry

    by_entry(judge, call, spec)


__all__ = ["ANY", "BUILTINS", "HARMLESS", "READERS", "Call", "Doubt", "Effect", "Judge", "Part"]
