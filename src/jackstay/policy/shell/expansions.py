"""Is this `${…}` or arithmetic text one that only reads, and what does it read?"""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import NamedTuple

from jackstay.policy.late import late

from .facts import UNKNOWN
from .words import Unreadable

_PARTS = late(r"\$\{([#!]?)([A-Za-z_]\w*|\d+|[@*#?$!-])(\[[^\]]*\])?(.*)\}", re.DOTALL | re.ASCII)
_PATTERN_OPS = ("//", "/#", "/%", "/", "##", "#", "%%", "%", "^^", "^", ",,", ",", "~~", "~")
_WORD_OPS = (":-", "-", ":+", "+", ":?", "?")
_SAFE_CASTS = frozenset("QUuLaKkA")
_ACTIVE = late(r"`|\$[({\[]|[<>]\(")
_QUOTED = late(r"""\\.|'[^']*'|"[^"]*\"""", re.DOTALL)
_NUMBER = late(r"(?:0[xX][0-9a-fA-F]+|[0-9]+(?:#[0-9a-zA-Z]+)?)")
_ARITHMETIC = late(r"[\w\s+\-*/%<>=!&|^~?:,()#$\[\]{}@\x01]*", re.ASCII)
_COUNT = late(r"\$\{#[A-Za-z_]\w*(?:\[[@*]\])?\}|\$#|\$\?|\$\$", re.ASCII)
_SUBSCRIPT = late(r"\[\s*(?:\$?[A-Za-z_]\w*|\$\{[A-Za-z_]\w*\}|\d+|-\d+)\s*\]", re.ASCII)
_VARIABLE = late(r"\$\{([A-Za-z_]\w*|\d+)\}|\$([A-Za-z_]\w*|[0-9@*!_-])|([A-Za-z_]\w*)", re.ASCII)
_ASSIGNED = late(
    r"([A-Za-z_]\w*)(?:\[[^\]]*\])?\s*(?:(?:[+\-*/%&|^]|<<|>>)?=(?!=)|\+\+|--)|(?:\+\+|--)\s*([A-Za-z_]\w*)",
    re.ASCII,
)
SPECIAL_NUMBERS = frozenset("?#$!")


class Braced(NamedTuple):
    """What `${…}` reads: the name, the source its value counts as, and what it assigns or evaluates on the
    way."""

    name: str
    source: str
    safe: bool = False
    assigns: str | None = None
    arithmetic: str | None = None


def account_for(text: str, offset: int, spans: Collection[int]) -> None:
    """Raise Unreadable when the text holds an active character that begins none of the known expansions."""
    for match in _ACTIVE.finditer(text):
        at = match.start()
        slashes = len(text[:at]) - len(text[:at].rstrip("\\"))
        if slashes % 2 == 0 and offset + at not in spans:
            msg = "an expansion the grammar does not see"
            raise Unreadable(msg)


def read_braced(raw: str) -> Braced:
    """Say what `${…}` does; `raw` has substitutions inside replaced by HOLE. Raises Unreadable for unlisted
    forms."""
    match = _PARTS.fullmatch(raw)
    if match is None or _QUOTED.sub("", raw).count("'") or _QUOTED.sub("", raw).count('"'):
        msg = f"the expansion {raw[:40]}"
        raise Unreadable(msg)
    mark, name, index, rest = match.groups()
    every = index in ("[@]", "[*]")
    subscript = None if index is None or every else index[1:-1]
    if mark == "!":
        if (every and not rest) or (index is None and rest in ("*", "@")):
            return Braced(name, UNKNOWN)
        msg = f"the indirect expansion {raw[:40]}"
        raise Unreadable(msg)
    if mark == "#":
        if rest:
            msg = f"the expansion {raw[:40]}"
            raise Unreadable(msg)
        return Braced(name, name, safe=True, arithmetic=subscript)
    source = "@" + name if every or name == "@" else UNKNOWN if index is not None else name
    if not rest:
        return Braced(name, source, safe=name in SPECIAL_NUMBERS, arithmetic=subscript)
    return _operator(raw, Braced(name, source, arithmetic=subscript), rest)


def _operator(raw: str, plain: Braced, rest: str) -> Braced:
    if rest[0] == "@" and len(rest) == 2 and rest[1] in _SAFE_CASTS:
        return plain._replace(source=UNKNOWN)
    if rest.startswith((":=", "=")):
        return plain._replace(source=UNKNOWN, assigns=plain.name)
    for operator in _WORD_OPS:
        if rest.startswith(operator):
            tail = rest[len(operator) :]
            kept = operator in (":?", "?") or re.fullmatch(r"(?:[A-Za-z0-9_./][\w./:@%+=-]*)?", tail, re.ASCII)
            return plain._replace(source=plain.source if kept and operator not in (":+", "+") else UNKNOWN)
    if rest[0] == ":":
        inner = rest[1:]
        both = inner if plain.arithmetic is None else f"{plain.arithmetic},{inner}"
        return plain._replace(source=UNKNOWN, arithmetic=both)
    if rest.startswith(_PATTERN_OPS):
        return plain._replace(source=plain.source if rest[0] in "%^,~" else UNKNOWN)
    msg = f"the expansion {raw[:40]}"
    raise Unreadable(msg)


def read_arithmetic(text: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Names whose text the shell would evaluate, and names assigned; raises Unreadable for anything else."""
    if not _ARITHMETIC.fullmatch(text):
        msg = "an arithmetic expression with quotes or unusual characters"
        raise Unreadable(msg)
    assigned = tuple(first or second for first, second in _ASSIGNED.findall(text))
    rest = _COUNT.sub("0", text)
    indices = "".join(_SUBSCRIPT.findall(rest))
    rest = _SUBSCRIPT.sub(" ", rest)
    if any(mark in rest for mark in "[]@"):
        msg = "an array subscript that is itself an expression"
        raise Unreadable(msg)
    names = [a or b or c for a, b, c in _VARIABLE.findall(_NUMBER_WORD.sub(" ", rest + " " + indices))]
    return tuple(dict.fromkeys(names)), assigned


_NUMBER_WORD = late(r"(?<![\w$#{])(?:0[xX][0-9a-fA-F]+|[0-9]+(?:#[0-9a-zA-Z]+)?)")
