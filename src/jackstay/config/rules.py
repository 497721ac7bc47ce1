"""Which permission rules does a file hold? TOML `[[rules]]` as values, errors with file, line and key."""

import difflib
import re
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from jackstay.core.errors import ConfigError
from jackstay.core.rules import PermissionRule
from jackstay.policy.examples import check_rules, failures

_KEYS: dict[str, type] = {
    "tool": str, "behavior": str, "pattern": str, "priority": int, "literal": bool, "match": list,
    "not_match": list,
}  # fmt: skip
_BEHAVIORS = ("allow", "ask", "deny")
_LAST = -1_000_000  # the rank of what an untrusted project asks for: below everything its user has said


class LoadedRules(msgspec.Struct, frozen=True, gc=False):
    """The rules of a file, and what to tell its author."""

    rules: tuple[PermissionRule, ...]
    warnings: tuple[str, ...] = ()


def load_rules(path: Path, *, trusted: bool = True, check: bool = True) -> LoadedRules:
    """The `[[rules]]` of a TOML file; other keys of the file are left to others.

    Raises ConfigError (file, line, key, mend) for unreadable TOML, unknown or missing keys, wrong values, and
    rules whose own examples fail. A file that is not trusted can narrow, never widen: its allow rules are left
    out, its asks rank below every other rule. `check` holds every rule against its own examples.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as problem:
        raise ConfigError(f"cannot be read: {problem}", where=str(path)) from problem
    return parse_rules(text, where=str(path), trusted=trusted, check=check)


def parse_rules(text: str, *, where: str, trusted: bool = True, check: bool = True) -> LoadedRules:
    """The same for a text; `where` names it in errors."""
    try:
        plain = tomllib.loads(text)
    except tomllib.TOMLDecodeError as problem:
        raise ConfigError(f"is not TOML: {problem}", where=where) from problem
    items = plain.get("rules", [])
    if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
        raise ConfigError("rules: must be tables", hint="begin each with [[rules]]", where=where)
    spots = _Spots(text, where)
    rules = [_rule(item, spots, number) for number, item in enumerate(items)]
    for rule in rules:
        for failure in failures(rule) if check else ():
            raise ConfigError(failure, where=rule.origin)
    kept, warnings = (rules, []) if trusted else _narrowed(rules)
    return LoadedRules(tuple(kept), (*warnings, *(warning.text for warning in check_rules(kept))))


def _rule(item: Mapping[str, Any], spots: "_Spots", number: int) -> PermissionRule:
    for key, value in item.items():
        _check_key(key, value, spots, number)
    for key in ("tool", "behavior"):
        if not item.get(key):
            raise ConfigError(f"{key}: is missing", hint=f"every rule needs {key} =", where=spots.at(number))
    if item["behavior"] not in _BEHAVIORS:
        problem = f"behavior: {item['behavior']!r} is not one of {', '.join(_BEHAVIORS)}"
        raise ConfigError(problem, where=spots.at(number, "behavior"))
    return PermissionRule(
        item["tool"], item["behavior"], item.get("pattern"), item.get("priority", 0),
        item.get("literal", False),
        tuple(item.get("match", ())), tuple(item.get("not_match", ())), spots.at(number),
    )  # fmt: skip


def _check_key(key: str, value: Any, spots: "_Spots", number: int) -> None:
    kind = _KEYS.get(key)
    if kind is None:
        near = difflib.get_close_matches(key, _KEYS, 1)
        hint = f"did you mean {near[0]!r}?" if near else f"known keys: {', '.join(_KEYS)}"
        raise ConfigError(f"{key}: is not a key of a rule", hint=hint, where=spots.at(number, key))
    fits = isinstance(value, kind) and not (kind is int and isinstance(value, bool))
    if isinstance(value, list) and fits:
        fits = all(isinstance(entry, str) for entry in value)
    if not fits or value == "":
        wanted = {str: "a text", int: "a whole number", bool: "true or false", list: "a list of texts"}[kind]
        raise ConfigError(f"{key}: {value!r} is not {wanted}", where=spots.at(number, key))


def _narrowed(rules: Sequence[PermissionRule]) -> tuple[list[PermissionRule], list[str]]:
    kept = [
        rule if rule.behavior == "deny" else rule.priority(_LAST) for rule in rules if rule.behavior != "allow"
    ]
    dropped = [
        f"{rule.origin}: '{rule.text}' is left out, since this project is not trusted and may only narrow what "
        "is allowed (`jackstay trust DIR` changes that)"
        for rule in rules
        if rule.behavior == "allow"
    ]
    return kept, dropped


class _Spots:
    """Where rules and their keys stand in the text."""

    def __init__(self, text: str, where: str) -> None:
        self._lines = text.split("\n")
        self._where = where
        self._heads = [
            n for n, line in enumerate(self._lines) if re.match(r"\s*\[\[\s*[\"']?rules[\"']?\s*\]\]", line)
        ]

    def at(self, number: int, key: str | None = None) -> str:
        """`file:line` of the n-th rule, or of one of its keys."""
        if number >= len(self._heads):
            return self._where
        head = self._heads[number]
        last = self._heads[number + 1] if number + 1 < len(self._heads) else len(self._lines)
        name = re.compile(rf"\s*[\"']?{re.escape(key)}[\"']?\s*=") if key else None
        line = next((n for n in range(head + 1, last) if name and name.match(self._lines[n])), head)
        return f"{self._where}:{line + 1}"
