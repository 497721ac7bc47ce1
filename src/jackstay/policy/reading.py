"""How do the shell analyser's findings look to permission rules?"""

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from shlex import join, quote

from jackstay.core.facts import Use
from jackstay.core.tools import ALL_EFFECTS, READS, Effect
from jackstay.policy.lines import Line, Part, Target, made_part
from jackstay.policy.naming import commands_named, hosts_named, paths_named, works_in
from jackstay.policy.patterns import HOLE, has_pattern
from jackstay.policy.shell import effects as shell
from jackstay.policy.shell import table
from jackstay.policy.shell.effects import (
    CREDENTIALS,
    DELETES,
    ENVIRONMENT,
    EXECUTES,
    LOOKUP,
    OPAQUE,
    PRIVILEGE,
    PROCESS,
    SENDS,
    SERVICE,
    WRITES,
)  # fmt: skip
from jackstay.policy.shell.effects import READS as READS_FILE
from jackstay.policy.shell.effects import Part as ShellPart
from jackstay.policy.shell.environment import power_of
from jackstay.policy.shell.facts import Redirect, SimpleCommand
from jackstay.policy.shell.verdict import ShellVerdict, analyse_command


def line_of(text: str) -> Line:
    """The analyser's verdict about a text, in the words of rules. Never raises, whatever the text."""
    verdict = analyse_command(text)
    effects = verdict.effects
    parts = tuple(_parts(verdict))
    unsure = () if verdict.read_only else tuple(part for part in parts if _touches_unnamed(part, effects))
    return Line(
        text,
        parts=parts,
        targets=tuple(_targets(verdict)),
        network=(*verdict.network_targets, *_sockets(effects)),
        moves=tuple(_moves(verdict)),
        effects=READS if verdict.read_only else _kinds(effects),
        doubt=_doubt(effects),
        danger=_sentence(verdict.dangers[0]) if verdict.dangers else None,
        unproven=verdict.reason,
        credentials=_credentials(verdict),
        beyond=_beyond(verdict),
        fed=tuple(_fed(verdict, parts)),
        listening=_listening(verdict),
        says=tuple(map(_sentence, effects)),
        names=paths_named(unsure),
        maybe=commands_named(unsure, list(_given(verdict))) if unsure else (),
        hosts=hosts_named([part for part in parts if part in unsure or _speaks(part, effects)]),
    )


_KINDS: dict[str, frozenset[Effect]] = {
    READS_FILE: frozenset({"reads"}),
    CREDENTIALS: frozenset({"reads"}),
    WRITES: frozenset({"reads", "writes"}),
    DELETES: frozenset({"reads", "writes"}),
    LOOKUP: frozenset({"reads", "network"}),
    SENDS: frozenset({"reads", "network"}),
    EXECUTES: ALL_EFFECTS,
    PROCESS: frozenset({"reads", "executes"}),
    SERVICE: frozenset({"reads", "writes", "executes"}),
    PRIVILEGE: frozenset({"reads", "executes"}),
    ENVIRONMENT: frozenset({"reads", "executes"}),
    OPAQUE: ALL_EFFECTS,
}


def _kinds(effects: Sequence[shell.Effect]) -> frozenset[Effect]:
    """What tools declare, for what a command does; a kind that is not listed can be anything."""
    return frozenset[Effect]().union(*(_KINDS.get(one.kind, ALL_EFFECTS) for one in effects))


# Wrappers whose inner command stands among their own words; any other runs a text, or on another machine.
_BY_WORDS = frozenset({
    "sudo", "doas", "env", "time", "timeout", "nice", "ionice", "nohup", "stdbuf", "setsid", "command",
    "builtin", "exec", "xargs", "find", "fd", "chrt", "taskset", "unbuffer"
})  # fmt: skip
_ADD_NOTHING = frozenset({"time", "timeout", "nice", "ionice", "stdbuf", "command"})
_OWN_WORD = re.compile(
    r"-?[0-9.]+[smhd]?|-[nskcp]|-[ioe][L0-9]+|[A-Z]{3,4}|--foreground|--preserve-status|idle"
)
_KEEPS_NOTHING = frozenset({"/dev/null", "/dev/stdout", "/dev/stderr", "/dev/tty"})


# Programs that write and remove just the files they name; what others write may lie anywhere.
_NAMES_ITS_FILES = frozenset({
    "chmod", "cp", "install", "mkdir", "mv", "rm", "rmdir", "sed", "sort", "tee", "touch", "truncate", "unlink",
})  # fmt: skip


def _touches_unnamed(part: Part, effects: Sequence[shell.Effect]) -> bool:
    """May this command touch more than its effects name? Not when it only reads, or names what it writes."""
    name = part.words[0].rpartition("/")[2] if part.words else ""
    if name in _NAMES_ITS_FILES:
        return any(one.kind in (OPAQUE, EXECUTES) and _program(one) == name for one in effects)
    return HOLE in part.words or bool(part.assignments) or not analyse_command(join(part.words)).read_only


def _speaks(part: Part, effects: Sequence[shell.Effect]) -> bool:
    """Does this command use the network?"""
    name = part.words[0].rpartition("/")[2] if part.words else ""
    return any(one.kind in (LOOKUP, SENDS) and _program(one) == name for one in effects)


def _beyond(verdict: ShellVerdict) -> str | None:
    """The first effect that is more than reading, writing or removing files which are named."""
    redirected = {one.target.text for one in verdict.redirects}
    for one in verdict.effects:
        if one.kind in (READS_FILE, CREDENTIALS):
            continue
        named = one.target in redirected or _program(one) in _NAMES_ITS_FILES
        if one.kind not in (WRITES, DELETES) or not named:
            return _sentence(one)
    return None


def _is_file(effect: shell.Effect) -> bool:
    """Is the target of a write a file, and not the option that says so?"""
    return effect.kind in (READS_FILE, DELETES) or not effect.target.startswith("-")


def _sentence(effect: shell.Effect) -> str:
    return f"'{effect.evidence}' {effect.says}"


def _doubt(effects: Sequence[shell.Effect]) -> str | None:
    """Where the text hides what it runs: unreadable, or a wrapper whose command is not to be seen."""
    for one in effects:
        if one.kind == OPAQUE and (
            not one.target or one.says.startswith(_RUNS_TEXT) or _is_wrapper(_program(one))
        ):
            return _sentence(one)
    return None


_RUNS_TEXT = (
    "cannot be read for certain",
    "evaluates ",
    "may evaluate ",
)  # what is evaluated can hold commands


def _program(effect: shell.Effect) -> str:
    return effect.evidence.split(" ", 1)[0].rpartition("/")[2]


def _is_wrapper(name: str) -> bool:
    return table.wrapper(name) is not None or name in _TEXT_RUNNERS


_TEXT_RUNNERS = frozenset(
    {"bash", "sh", "dash", "zsh", "ksh", "eval", "source", ".", "trap", "ssh", "su", "watch", "coproc"}
)


@lru_cache(1024)
def _is_program(name: str) -> bool:
    """Does the analyser know what a program of this name does?"""
    return table.known(name) or name in table.changes() or name in shell.BUILTINS or _is_wrapper(name)


_SHELLS = frozenset({"bash", "sh", "dash", "zsh", "ksh", "ash", "fish"})
_MOST_FED = 64
_MOST_WORDS = 12


def _fed(verdict: ShellVerdict, parts: Sequence[Part]) -> list[str]:
    """Texts that may be run, nobody can be sure: what an unknown program is given, what a shell reads."""
    texts = [text for part in parts if part.unknown for text in _rests(part.words)]
    if not _SHELLS.isdisjoint(word.rpartition("/")[2] for part in parts for word in part.words):
        texts += verdict.text.split("\n")[1:]
        texts += [one.target.text for one in verdict.redirects if one.op == "<<<"]
        texts += [text for part in parts for text in (" ".join(part.words[1:]), *part.words[1:]) if " " in text]
    return [text for text in dict.fromkeys(texts) if text.strip() and text != verdict.text][:_MOST_FED]


def _given(verdict: ShellVerdict) -> Iterator[str]:
    """Texts of the line that reach a program by its input: here-documents, here-strings, what echo prints."""
    yield from verdict.text.split("\n")[1:]
    yield from (one.target.text for one in verdict.redirects if one.op == "<<<")
    for part in verdict.commands:
        if part.argv[:1] in (("echo",), ("printf",)):
            yield " ".join(word for word in part.argv[1:] if word is not None)


def _rests(words: Sequence[str]) -> Iterator[str]:
    """Each end of the words as a command, and each word that could be a text of commands."""
    for start in range(1, min(len(words), _MOST_WORDS)):
        yield " ".join('"$_"' if word == HOLE else quote(word) for word in words[start:])
        if " " in words[start]:
            yield words[start]


def _listening(verdict: ShellVerdict) -> str | None:
    """A shell that is given neither a text nor a file: it runs what comes in."""
    outers = set(_outers(verdict.commands))
    for number, part in enumerate(verdict.commands):
        name = (part.argv[0] or "").rpartition("/")[2] if part.argv else ""
        if (
            name in _SHELLS
            and number not in outers
            and all((word or "x").startswith("-") for word in part.argv[1:])
        ):
            return f"'{part.text}' runs what it is fed"
    return None


def _credentials(verdict: ShellVerdict) -> str | None:
    """The words that read a secret or use a store of secrets."""
    found = next((_sentence(one) for one in verdict.effects if one.kind == CREDENTIALS), None)
    if found is None and verdict.credential:
        return f"{verdict.text.strip()[:80]!r} uses a credential store"
    return found


def _moves(verdict: ShellVerdict) -> Iterator[str | None]:
    if any(one.name in ("CDPATH", "HOME") for one in verdict.facts.assignments):
        yield None  # then nobody can tell where `cd x` and `~` lead
    for part in verdict.commands:
        yield from works_in(part.argv)
        if part.argv[:1] in (("cd",), ("pushd",), ("popd",)):
            words = [word for word in part.argv[1:] if word is None or not re.fullmatch(r"-[LPe@n]+|--", word)]
            known = len(words) <= 1 and part.argv[0] != "popd" and words != ["-"]
            yield (words[0] if words else "~") if known else None


def _parts(verdict: ShellVerdict) -> Iterator[Part]:
    """Every simple command in the order it was found, each after the one that starts it."""
    alone = [one for one in map(_alone, verdict.facts.commands) if one is not None]
    written = iter([one for one in verdict.facts.commands if one.words])
    commands = verdict.commands
    outers = _outers(commands)
    starting = set(outers)
    yield from alone
    for position, found in enumerate(commands):
        words = tuple(HOLE if word is None else word for word in found.argv)
        place = next(written, None) if not found.wrappers else None
        outer = outers[position]
        name = words[0].rpartition("/")[2] if words else ""
        unseen = _is_wrapper(name) and len(words) > 1 and position not in starting
        yield made_part(
            words,
            without_options=[(name, *words[1 + at :]) for at in table.subcommand_places(name, words[1:])],
            assignments=tuple(_assignments(place)) if place else (),
            redirects=tuple(_redirects(place.redirects)) if place else (),
            outer=len(alone) + outer if outer >= 0 else -1,
            plain=outer >= 0 and _adds_nothing(commands[outer], found),
            by_words=_BY_WORDS.issuperset(found.wrappers),
            unknown=unseen or not _is_program(name),
            blind=unseen and not _runs_file(name, words),
        )


def _runs_file(name: str, words: Sequence[str]) -> bool:
    """Is this a shell given a script by name?"""
    return name in _SHELLS | {"source", "."} and not words[1].startswith(("-", HOLE))


def _alone(command: SimpleCommand) -> Part | None:
    """Redirections, or assignments that can change what runs, without a command."""
    assignments, redirects = tuple(_assignments(command)), tuple(_redirects(command.redirects))
    if command.words or not (assignments or redirects):
        return None
    return made_part((), assignments=assignments, redirects=redirects)


def _outers(commands: Sequence[ShellPart]) -> list[int]:
    """For each command the position of the one that starts it, -1 for none."""
    return [_outer(part, commands, position) if part.wrappers else -1 for position, part in enumerate(commands)]


def _outer(part: ShellPart, commands: Sequence[ShellPart], before: int) -> int:
    for position in range(before - 1, -1, -1):
        earlier = commands[position]
        if earlier.wrappers == part.wrappers[:-1] and earlier.argv:
            name = (earlier.argv[0] or "").rpartition("/")[2]
            if name == part.wrappers[-1].rpartition("/")[2]:
                return position
    return -1


def _adds_nothing(outer: ShellPart, inner: ShellPart) -> bool:
    """Is the outer command one of those that only measure or bound the inner one?"""
    own = outer.argv[1 : len(outer.argv) - len(inner.argv)]
    ends_with_inner = outer.argv[len(outer.argv) - len(inner.argv) :] == inner.argv
    return (
        ends_with_inner
        and outer.argv[0] in _ADD_NOTHING
        and all(word is not None and _OWN_WORD.fullmatch(word) for word in own)
    )


def _assignments(command: SimpleCommand) -> Iterator[str]:
    """Those that can change what runs: `NAME=value`."""
    for one in command.assignments:
        if power_of(one.name, exported=bool(command.words)) is not None:
            yield f"{one.name}={one.value.text if one.value is not None and one.value.fixed else HOLE}"


def _redirects(redirects: Sequence[Redirect]) -> Iterator[str]:
    """Those to and from files: `> target`, with the descriptor where it is not the usual one."""
    for one in redirects:
        if one.op in ("<<", "<<-", "<<<", "<&-", ">&-") or one.target.text in _KEEPS_NOTHING:
            continue
        if one.op in ("<&", ">&") and one.target.fixed and one.target.text.rstrip("-").isdigit():
            continue
        yield f"{one.op} {one.target.text if one.target.fixed else HOLE}"


def _targets(verdict: ShellVerdict) -> Iterator[Target]:
    values = _values(verdict)
    for one in verdict.effects:
        if one.kind in (READS_FILE, WRITES, DELETES) and _is_file(one):
            use: Use = "reads" if one.kind == READS_FILE else "writes" if one.kind == WRITES else "deletes"
            paths = tuple(_spelled(one.target, values))
            yield Target(one.target or one.evidence, use, paths, any(has_pattern(path) for path in paths))


def _sockets(effects: Sequence[shell.Effect]) -> Iterator[str]:
    """The addresses of bash's own network files."""
    for one in effects:
        socket = re.match(r"/dev/(tcp|udp)/([^/]+)/([^/]+)", one.target)
        if socket is not None:
            yield "{}://{}:{}".format(*socket.groups())


def _values(verdict: ShellVerdict) -> dict[str, tuple[str, ...] | None]:
    """What variables hold as far as the text says; None where it assigns something that is not written out."""
    assigned: dict[str, tuple[str, ...] | None] = {"PWD": (".",), "HOME": ("~",)}
    for one in verdict.facts.assignments:
        words = one.words or ((one.value,) if one.value is not None else ())
        known = all(word.fixed or word.globs for word in words) and not any("$" in word.text for word in words)
        before = assigned.get(one.name, ())
        assigned[one.name] = (*before, *(word.text for word in words)) if known and before is not None else None
    return assigned


_VARIABLE = re.compile(r"\$(?:\{([A-Za-z_][A-Za-z0-9_]*)\}|([A-Za-z_][A-Za-z0-9_]*))")
_MOST_SPELLINGS = 32


def _spelled(target: str, values: dict[str, tuple[str, ...] | None]) -> list[str]:
    """Every path the target can be as far as the text says; [] when it does not say."""
    found = [target]
    while any("$" in path for path in found):
        following: list[str] = []
        for path in found:
            variable = _VARIABLE.search(path)
            known = values.get(variable[1] or variable[2]) if variable else None
            if variable is None or not known:
                return []
            if "~" in known and variable.start() > 0:
                return []
            following += [path[: variable.start()] + value + path[variable.end() :] for value in known]
        found = following
        if len(found) > _MOST_SPELLINGS:
            return []
    return [] if any(char in path for path in found for char in "`…{}\x01") or target == "" else found
