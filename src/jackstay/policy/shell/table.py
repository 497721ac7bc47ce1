"""What is written down about a program?

The table is a text of JSON made from programs.toml; one entry is decoded when its program is first met.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Final, NamedTuple

import msgspec

HARM: Final = frozenset(">!~^$")
_TOKEN: Final = re.compile(r"(.+?)(:\?|=\?|[:=]\d?|)([<>!~^*$%@]*)")
_LETTER: Final = re.compile(r"([^:])(:\??|)([<>!~^*$%@]*)")
_COUNTED: Final = frozenset(("none", "one", "plus", "assign", "lookup", "one-word", "mode"))


class Entry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One entry as it is written in programs.toml."""

    short: str = ""
    long: str = ""
    word: str = ""
    operands: str = "none"
    style: str = "gnu"
    need: str = ""
    deny: str = ""
    like: str = ""
    reader: str = ""
    effect: str = ""
    says: str = ""
    interactive_unless: str = ""
    number: bool = False
    negative: bool = False
    free: bool = False
    plus: bool = False
    pager: bool = False
    less: bool = False
    environment: bool = False
    ends: bool = True
    group: bool = False
    stop: bool = False
    inherit: bool = True
    bounds: bool = False
    exposed: bool = False
    skip: int = 0
    check: str = ""
    sub: dict[str, Entry] = {}


class Option(NamedTuple):
    """How many values an option takes (-1: one, if attached) and what it does."""

    takes: int
    marks: str


class Spec(NamedTuple):
    """An entry ready for use."""

    name: str
    entry: Entry
    options: dict[str, Option]
    need: frozenset[str]
    bounded_by: frozenset[str]
    exposed: bool  # an option smuggled in could do harm
    words: bool  # options are whole words behind one dash


class Lists(msgspec.Struct, frozen=True):
    """The lists at the end of the table."""

    lone: frozenset[str]
    plain_output: frozenset[str]
    asks_help: frozenset[str]
    asks_version: frozenset[str]


@lru_cache(maxsize=1)
def _table() -> dict[str, msgspec.Raw]:
    from ._programs import TABLE

    return msgspec.json.decode(TABLE, type=dict[str, msgspec.Raw])


@lru_cache(maxsize=1)
def lists() -> Lists:
    """The named lists of programs."""
    return msgspec.json.decode(_table()["lists"], type=Lists)


@lru_cache(maxsize=1)
def _wrappers() -> dict[str, Entry]:
    return msgspec.json.decode(_table()["wrappers"], type=dict[str, Entry])


@lru_cache(maxsize=1)
def changes() -> dict[str, tuple[str, str]]:
    """Programs that always change something: name to (effect, what it says)."""
    raw = msgspec.json.decode(_table()["changes"])
    says = raw.pop("says")
    return {name: (kind, says[kind]) for kind, names in raw.items() for name in names.split()}


_RESERVED: Final = frozenset(("wrappers", "changes", "lists"))


def known(program: str) -> bool:
    """Whether the program is in the table under any heading."""
    return (program in _table() and program not in _RESERVED) or program in _wrappers() or program in changes()


@lru_cache(maxsize=1024)
def find(program: str) -> Spec | None:
    """The entry of a program, or None when nothing is known about it."""
    raw = _table().get(program)
    if raw is None or program in _RESERVED:
        return None
    return prepare(program, _resolve(program))


@lru_cache(maxsize=1024)
def _resolve(program: str) -> Entry:
    entry = msgspec.json.decode(_table()[program], type=Entry)
    if not entry.like:
        return entry
    base = _resolve(entry.like)
    return msgspec.structs.replace(_over(base, entry), sub={**base.sub, **entry.sub})


def _over(base: Entry, entry: Entry) -> Entry:
    """`base` with every field that `entry` writes itself."""
    plain = Entry()
    own = {name: getattr(entry, name) for name in Entry.__struct_fields__}
    kept = {
        name: value
        for name, value in own.items()
        if value != getattr(plain, name) and name not in ("like", "sub")
    }
    return msgspec.structs.replace(base, **kept)


@lru_cache(maxsize=256)
def wrapper(program: str) -> Spec | None:
    """The entry of a program that runs the command it is given, or None."""
    entry = _wrappers().get(program)
    return None if entry is None else prepare(program, entry)


@lru_cache(maxsize=2048)
def subcommand(program: str, name: str) -> Spec | None:
    """The entry of a sub-command, its own options and the program's; None when it is not listed."""
    spec = find(program)
    if spec is None:
        return None
    entry = spec.entry.sub.get(name)
    if entry is None:
        return None
    if entry.like:
        entry = _over(spec.entry.sub[entry.like], entry)
    own = prepare(f"{program} {name}", entry)
    group = spec.entry.sub.get(name.partition(" ")[0])
    shared = dict(spec.options) if spec.entry.inherit and entry.inherit else {}
    if group is not None and group.group:
        shared.update(prepare(program, group).options)
    options = {**shared, **own.options}
    return own._replace(
        options=options,
        exposed=own.exposed or spec.entry.exposed or _exposed(options, entry),
        words=own.words or spec.words,
    )


def subcommand_places(program: str, words: Sequence[str]) -> tuple[int, ...]:
    """Where the sub-command can stand, behind options of the program itself; () where none are in front of it.

    An option that the table does not list may take the next word or not: both places then.
    """
    if not words or words[0][:1] != "-":
        return ()
    spec = find(program)
    if spec is None or not spec.entry.sub:
        return ()
    found: set[int] = set()
    open_places = {0}
    while open_places:
        at = min(open_places)
        open_places.remove(at)
        if at >= len(words):
            continue
        text = words[at]
        if text == "--":
            found.add(at + 1)
        elif text[:1] != "-":
            found.add(at)
        else:
            open_places |= {at + 1 + taken for taken in _taken(spec, text)}
    return tuple(sorted(found))


def _taken(spec: Spec, text: str) -> tuple[int, ...]:
    """How many of the words behind it an option may take."""
    option = spec.options.get(text)
    if option is not None:
        return (max(option.takes, 0),)
    return (0,) if "=" in text else (0, 1)


def prepare(name: str, entry: Entry) -> Spec:
    """Read the option strings of an entry."""
    options: dict[str, Option] = {}
    for token in entry.short.split():
        for letter, arity, marks in _LETTER.findall(token):
            options[f"-{letter}"] = Option(0 if not arity else -1 if arity == ":?" else 1, marks)
    for token in entry.long.split():
        word, option = _token(token)
        options[f"--{word}"] = option
    for token in entry.word.split():
        word, option = _token(token)
        options[f"-{word}"] = option
        options.setdefault(f"--{word}", option)
    for token in _names(entry.deny):
        options.pop(token, None)
    return Spec(
        name=name,
        entry=entry,
        options=options,
        need=_names(entry.need),
        bounded_by=_names(entry.interactive_unless),
        exposed=_exposed(options, entry),
        words=entry.style == "word",
    )


def _exposed(options: dict[str, Option], entry: Entry) -> bool:
    return (
        bool(
            entry.exposed
            or entry.need
            or entry.deny
            or entry.reader
            or (entry.check and entry.check != "chosen")
        )
        or entry.operands in _COUNTED
        or any(HARM.intersection(option.marks) for option in options.values())
    )


def _token(token: str) -> tuple[str, Option]:
    match = _TOKEN.fullmatch(token)
    if match is None:  # the table is ours: a test reads every entry
        raise ValueError(token)
    name, arity, marks = match.groups()
    takes = 0 if not arity else -1 if arity[-1] == "?" else int(arity[1:] or 1)
    return name, Option(takes, marks)


def _names(text: str) -> frozenset[str]:
    return frozenset(token if token[0] == "-" else f"-{token}" for token in text.split())
