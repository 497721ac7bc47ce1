"""What do the operands of a listed program mean, and what do its options do to them?"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Final

from . import effects as fx
from .checks import CHECKS
from .effects import Call, Judge
from .facts import Word
from .options import Seen, scan
from .table import Spec, find, lists, subcommand

_OPTION_SAYS: Final = {
    "!": (fx.EXECUTES, "runs {}"),
    "~": (fx.WRITES, "changes something"),
    "^": (fx.SENDS, "sends {}"),
    "$": (fx.CREDENTIALS, "shows secrets"),
}
_LESS_START: Final = re.compile(r"\+\+?(?:[gGF]|[0-9]+[gGp%]?|/[^\x00-\x1f!]*|\?[^\x00-\x1f!]*)?")


def by_entry(judge: Judge, call: Call, spec: Spec) -> None:
    """Judge a call of a program with an entry, following its sub-commands."""
    if spec.entry.sub:
        by_subcommand(judge, call, spec)
        return
    words = call.arguments
    if spec.entry.stop:  # options end at the first operand; what looks like one later is not
        seen, at = scan(spec, words, call.scope, stop=True)
        seen.operands.extend(words[at:])
        seen.odd += [
            (word.text, "has an option behind its operands") for word in words[at:] if word.text[:1] == "-"
        ]
    else:
        seen, _ = scan(spec, words, call.scope)
    apply(judge, call, spec, seen)


def by_subcommand(judge: Judge, call: Call, spec: Spec) -> None:
    """Options of the program, its sub-command, then the sub-command's own."""
    words = call.arguments
    seen, at = scan(spec, words, call.scope, stop=True)
    rest = words[at:]
    group = spec.entry.sub.get(rest[0].text) if rest and rest[0].fixed else None
    names: list[Word] = []
    if group is not None and group.group:
        names.append(rest[0])
        inner = subcommand(spec.name, rest[0].text)
        more, at = scan(inner or spec, rest[1:], call.scope, stop=True)
        seen.odd += more.odd
        seen.options += more.options
        rest = rest[1 + at :]
    taken, chosen = _longest(spec, [*names, *rest])
    if chosen is None:
        if not rest and not names:
            _alone(judge, call, spec, seen)
        elif spec.entry.sub.get("") is None and _plain(spec) and not names and not rest[0].text.isalpha():
            apply(judge, call, spec, _joined(seen, scan(spec, rest, call.scope)[0]))
        elif names and not rest:
            options(judge, call, spec, seen)
        else:
            what = " ".join([*(word.text for word in names), rest[0].text])
            kind = spec.entry.effect or fx.EXECUTES
            judge.note(kind, what, call.text, f"is not one of the questions {spec.name} can answer ({what})")
        return
    own, _ = scan(chosen, rest[taken - len(names) :], call.scope)
    reader = fx.READERS.get(chosen.entry.reader)
    apply(judge, call, chosen, _joined(seen, own)) if reader is None else reader(judge, call, chosen)


def _plain(spec: Spec) -> bool:
    return spec.entry.operands != "none"


def _joined(first: Seen, second: Seen) -> Seen:
    second.odd = first.odd + second.odd
    second.options = first.options + second.options
    second.names |= first.names
    return second


def _longest(spec: Spec, words: Sequence[Word]) -> tuple[int, Spec | None]:
    for count in (3, 2, 1):
        if len(words) >= count and all(word.fixed for word in words[:count]):
            name = " ".join(word.text for word in words[:count])
            chosen = subcommand(spec.name, name) if name in spec.entry.sub else None
            if chosen is not None and not chosen.entry.group:
                return count, chosen
    return 0, None


def _alone(judge: Judge, call: Call, spec: Spec, seen: Seen) -> None:
    base = find(spec.name)
    name = spec.name if base is None else base.name
    if name in lists().lone or "--version" in seen.names or "--help" in seen.names:
        options(judge, call, spec, seen)
    elif _plain(spec):
        apply(judge, call, spec, seen)
    elif (
        len(call.words) == 2
        and call.words[1].text in ("--version", "--help", "-v", "-V", "-h")
        and not seen.odd
    ):
        options(judge, call, spec, seen)
    else:
        judge.unproven(call, f"is not known to be harmless without a sub-command of {spec.name}")


def apply(judge: Judge, call: Call, spec: Spec, seen: Seen) -> None:
    """What the options do, then what the operands do."""
    entry = spec.entry
    if entry.free:
        return
    options(judge, call, spec, seen)
    if spec.need and not spec.need & seen.names:
        wanted = ", ".join(sorted(spec.need)[:4])
        judge.note(
            entry.effect or fx.OPAQUE, spec.name, call.text, entry.says or f"only asks with one of {wanted}"
        )
        return
    kind = entry.operands
    operands = seen.operands
    if entry.plus:
        operands = [word for word in operands if not word.text.startswith("+")]
    if "@" in seen.marks():
        kind = "text"
    elif kind == "pattern":
        kind = "files"
        operands = operands if "%" in seen.marks() else operands[1:]
    if kind == "lookup":  # a value that is computed could carry data away as well as a name
        judge.looks_up(
            [one.value for one in seen.options if one.value is not None and not one.value.fixed], call
        )
    OPERANDS[kind](judge, call, spec, operands)
    if entry.check:
        CHECKS[entry.check](judge, call, seen)
    ending(judge, call, spec, seen)


def options(judge: Judge, call: Call, spec: Spec, seen: Seen) -> None:
    """The effects of the options, by their marks; what could not be placed is said."""
    for text, why in seen.odd:
        judge.note(fx.OPAQUE, text, f"{call.name} {text}" if text not in call.name else call.text, why)
    for given in seen.options:
        for mark in given.option.marks:
            evidence = f"{call.name} {given.written}"
            value = given.value
            if mark == ">":
                if value is None:
                    judge.note(fx.WRITES, "", evidence, f"writes a file ({given.name})")
                else:
                    judge.writes(value, evidence)
            elif mark == "<" and value is not None:
                judge.reads((value,), evidence)
            elif mark == "*":
                judge.never_ends(call)
            elif mark in _OPTION_SAYS:
                kind, says = _OPTION_SAYS[mark]
                what = value.text if value is not None else given.name
                judge.note(kind, what, evidence, says.format(what))
    del spec


def ending(judge: Judge, call: Call, spec: Spec, seen: Seen) -> None:
    """Readers that wait for a person or never end."""
    entry = spec.entry
    quiet = call.place.piped_out or any(one.op.startswith((">", "&>")) for one in call.place.redirects)
    if (
        not entry.ends
        or (entry.pager and not quiet and not call.place.inside)
        or (spec.bounded_by and not spec.bounded_by & seen.names)
    ):
        judge.never_ends(call)
    if entry.less:
        for word in seen.operands:
            if word.text.startswith("+") and not _LESS_START.fullmatch(word.text):
                judge.note(fx.EXECUTES, word.text, call.text, f"gives {spec.name} the command {word.text}")


# -- kinds of operands ------------------------------------------------------------------------------------


def _text(judge: Judge, call: Call, spec: Spec, operands: Sequence[Word]) -> None:
    """Words that are only compared or printed."""


def _files(judge: Judge, call: Call, spec: Spec, operands: Sequence[Word]) -> None:
    judge.reads(operands, call.text)


def _list(judge: Judge, call: Call, spec: Spec, operands: Sequence[Word]) -> None:
    for word in operands:
        judge.note(fx.READS, word.text, call.text, f"reads {word.text}")


def _none(judge: Judge, call: Call, spec: Spec, operands: Sequence[Word]) -> None:
    if operands:
        judge.note(
            spec.entry.effect or fx.WRITES,
            operands[0].text,
            call.text,
            f"may change something: {spec.name} is only known to ask when it is given no {operands[0].text}",
        )


def _one(judge: Judge, call: Call, spec: Spec, operands: Sequence[Word]) -> None:
    if any(word.many for word in operands):
        judge.unproven(call, "may be given a second file, which it would write")
    elif len(operands) > 1:
        judge.writes(operands[1], call.text)
        if operands[1].fixed and operands[1].text == "/dev/null":
            return
    judge.reads(operands[:1], call.text)


def _one_word(judge: Judge, call: Call, spec: Spec, operands: Sequence[Word]) -> None:
    if len(operands) > 1 or any(word.many for word in operands):
        judge.note(
            fx.SERVICE, operands[0].text, call.text, "sets something when it is given more than one word"
        )


def _plus(judge: Judge, call: Call, spec: Spec, operands: Sequence[Word]) -> None:
    for word in operands:
        if not word.text.startswith("+") or word.many:
            judge.note(fx.SERVICE, word.text, call.text, "sets the clock")


def _assign(judge: Judge, call: Call, spec: Spec, operands: Sequence[Word]) -> None:
    for word in operands:
        if "=" in word.text or word.many or not (word.fixed or call.scope.texts(word)):
            judge.note(fx.SERVICE, word.text, call.text, f"sets {word.text}")


def _lookup(judge: Judge, call: Call, spec: Spec, operands: Sequence[Word]) -> None:
    judge.looks_up(operands, call)


def _kube(judge: Judge, call: Call, spec: Spec, operands: Sequence[Word]) -> None:
    """Resources of a cluster; the contents of secrets are secrets."""
    shown = [given for given in call.words if given.text.startswith(("-o", "--output", "--template"))]
    names = [part for word in operands[:1] for part in re.split(r"[,/]", word.text)]
    if shown and any(name in ("secret", "secrets") for name in names):
        judge.note(fx.CREDENTIALS, "secrets", call.text, "shows the contents of secrets")


def _write(judge: Judge, call: Call, spec: Spec, operands: Sequence[Word]) -> None:
    entry = spec.entry
    if not operands or entry.says:
        judge.note(entry.effect or fx.WRITES, spec.name, call.text, entry.says or "writes what it is given")
    for word in operands:
        judge.writes(word, call.text)


def _delete(judge: Judge, call: Call, spec: Spec, operands: Sequence[Word]) -> None:
    if not operands:
        judge.note(fx.DELETES, "", call.text, "deletes what it is given")
    for word in operands:
        judge.note(fx.DELETES, word.text, call.text, f"deletes {word.text}")


def _copy(judge: Judge, call: Call, spec: Spec, operands: Sequence[Word]) -> None:
    seen = scan(spec, call.arguments, call.scope)[0]
    if spec.name == "install" and not seen.names.isdisjoint(("-d", "--directory")):
        _write(judge, call, spec, operands)
        return
    into = next((given.value for given in seen.options if given.name in _INTO), None)
    sources = operands if into is not None else operands[:-1]
    judge.reads(sources, call.text)  # where there is an option for it, that says what is written
    if into is not None:
        _puts(judge, call, sources, f"{into.text}/")
        return
    target = operands[-1].text if operands else ""
    judge.note(fx.WRITES, target, call.text, f"writes {target}" if target else "writes what it is given")
    if seen.names.isdisjoint(("-T", "--no-target-directory")):
        _puts(judge, call, sources, f"{target}/" if len(operands) > 2 else target)


def _puts(judge: Judge, call: Call, sources: Sequence[Word], target: str) -> None:
    """What lies in the target afterwards, for certain when it is written as a directory."""
    surely = target.endswith(("/", "/.", "/..")) or target in (".", "..")
    for source in sources:
        name = source.text.rstrip("/").rpartition("/")[2]
        if name not in ("", ".", ".."):
            place = f"{target.rstrip('/') or '/'}/{name}".replace("//", "/")
            says = f"writes {place}" if surely else f"writes {place} if {target} is a directory"
            judge.note(fx.WRITES, place, call.text, says)


def _move(judge: Judge, call: Call, spec: Spec, operands: Sequence[Word]) -> None:
    given = scan(spec, call.arguments, call.scope)[0].names
    for word in operands[:-1] if given.isdisjoint(_INTO) else operands:
        judge.note(fx.DELETES, word.text, call.text, f"moves {word.text} away")
    _copy(judge, call, spec, operands)


_INTO: Final = frozenset(("-t", "--target-directory"))


def _mode(judge: Judge, call: Call, spec: Spec, operands: Sequence[Word]) -> None:
    if len(operands) < 2:
        judge.note(fx.WRITES, "", call.text, "changes what it is given")
    for word in operands[1:]:
        judge.note(fx.WRITES, word.text, call.text, f"changes {word.text}")


def _refuse(judge: Judge, call: Call, spec: Spec, operands: Sequence[Word]) -> None:
    judge.note(
        spec.entry.effect or fx.EXECUTES, spec.name, call.text, spec.entry.says or "is not known to only read"
    )


def _iw(judge: Judge, call: Call, spec: Spec, operands: Sequence[Word]) -> None:
    words = [word.text for word in operands]
    if words and not (len(words) <= 2 and words[-1] in ("info", "link", "scan-dump", "get")):
        judge.note(fx.SERVICE, words[-1], call.text, "may change a network device")


OPERANDS: Final[dict[str, Callable[[Judge, Call, Spec, Sequence[Word]], None]]] = {
    "text": _text, "files": _files, "list": _list, "none": _none, "one": _one, "one-word": _one_word,
    "plus": _plus,
    "assign": _assign, "lookup": _lookup, "kube": _kube, "write": _write, "delete": _delete, "copy": _copy,
    "move": _move, "mode": _mode, "refuse": _refuse, "iw": _iw,
}  # fmt: skip
