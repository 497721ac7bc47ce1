"""How are plugins switched on in Hermes's config.yaml, so that everything else in it stays as it was written?

Hermes's own command writes the file anew and loses its comments; here single lines are changed, and the outcome
is read back and compared before anything is written.
"""

import re
from collections.abc import Sequence
from typing import Any

from jackstay.core.errors import ConfigError

_ITEM = re.compile(r"^(?P<indent>\s*)-\s+(?P<quote>['\"]?)(?P<name>[^'\"#]+?)(?P=quote)\s*(?:#.*)?$")


def switched_on(text: str, names: Sequence[str], *, where: str) -> str:
    """The text with these plugins enabled and not disabled. Raises ConfigError naming the file as `where`."""
    before = _read(text, where)
    enabled, disabled = _lists(before)
    missing = [name for name in names if name not in enabled]
    lines = text.splitlines(keepends=True)
    if set(names) & set(disabled):
        lines = _without(lines, "disabled", names)
    if missing:
        lines = _with(lines, missing, before)
    return _checked(before, "".join(lines), ([*enabled, *missing], _minus(disabled, names)), where)


def switched_off(text: str, names: Sequence[str], *, where: str) -> str:
    """The text without these plugins among the enabled ones. Raises ConfigError."""
    before = _read(text, where)
    enabled, disabled = _lists(before)
    if not set(names) & set(enabled):
        return text
    lines = _without(text.splitlines(keepends=True), "enabled", names)
    return _checked(before, "".join(lines), (_minus(enabled, names), disabled), where)


def enabled(text: str, *, where: str) -> list[str]:
    """The plugins that Hermes would load: enabled and not disabled."""
    on, off = _lists(_read(text, where))
    return _minus(on, off)


def _read(text: str, where: str) -> dict[str, Any]:
    import yaml  # only where a configuration is read

    try:
        found = yaml.load(text, getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    except yaml.YAMLError as problem:
        raise ConfigError(
            f"it is no YAML: {problem}", where=where, hint="mend it, then install again"
        ) from problem
    if found is None:
        return {}
    if not isinstance(found, dict):
        raise ConfigError("it is no mapping", where=where, hint="mend it, then install again")
    return found


def _lists(config: dict[str, Any]) -> tuple[list[str], list[str]]:
    plugins = config.get("plugins") or {}
    found = (
        [plugins.get(key) or [] for key in ("enabled", "disabled")] if isinstance(plugins, dict) else [[], []]
    )
    on, off = ([str(name) for name in names] if isinstance(names, list) else [] for names in found)
    return on, off


def _minus(names: Sequence[str], gone: Sequence[str]) -> list[str]:
    return [name for name in names if name not in gone]


def _checked(before: dict[str, Any], text: str, wanted: tuple[list[str], list[str]], where: str) -> str:
    """The text, if reading it gives what was there before, with just these lists changed."""
    after = _read(text, where)
    if _lists(after) != wanted or _rest(after) != _rest(before):
        raise ConfigError(
            "its plugins section is written in a way that cannot be changed line by line", where=where,
            hint="`hermes plugins enable work-principles` and `hermes plugins enable context-anchor` do it",
        )  # fmt: skip
    return text


def _rest(config: dict[str, Any]) -> dict[str, Any]:
    """Everything but the two lists."""
    plugins = config.get("plugins")
    others = (
        {k: v for k, v in plugins.items() if k not in ("enabled", "disabled")}
        if isinstance(plugins, dict)
        else {}
    )
    return {**{key: value for key, value in config.items() if key != "plugins"}, "plugins": others}


def _block(lines: list[str]) -> tuple[int, int] | None:
    """The lines below `plugins:`, as (first, one past the last); None where there is no such section."""
    start = next((n for n, line in enumerate(lines) if re.match(r"plugins:\s*(#.*)?$", line)), None)
    if start is None:
        return None
    end = start + 1
    for number in range(start + 1, len(lines)):
        if re.match(r"[^\s#-]", lines[number]):
            break
        if lines[number].strip() and not lines[number].lstrip().startswith("#"):
            end = number + 1
    return start + 1, end


def _key(lines: list[str], name: str) -> tuple[int, re.Match[str]] | None:
    """The line of a key in the plugins section; `rest` is what follows the colon."""
    place = _block(lines)
    for number in range(*place) if place else ():
        match = re.match(rf"(?P<indent>\s+){name}:(?P<rest>.*)", lines[number])
        if match:
            return number, match
    return None


def _items(lines: list[str], start: int) -> list[int]:
    """The lines with the items of the list whose key is at `start`."""
    found = []
    for number in range(start + 1, len(lines)):
        if _ITEM.match(lines[number].rstrip("\r\n")):
            found.append(number)
        elif lines[number].strip() and not lines[number].lstrip().startswith("#"):
            break
    return found


def _with(lines: list[str], names: Sequence[str], config: dict[str, Any]) -> list[str]:
    end = "\r\n" if lines and lines[0].endswith("\r\n") else "\n"
    if lines and not lines[-1].endswith("\n"):
        lines = [*lines[:-1], lines[-1] + end]
    place = _block(lines)
    if place is None:
        fresh = ["plugins:", "  enabled:", *(f"    - {name}" for name in names)]
        return [*lines, *(line + end for line in fresh)] if "plugins" not in config else lines
    found = _key(lines, "enabled")
    if found is None:
        indent = re.match(r"\s*", lines[place[0]])[0] if place[1] > place[0] else "  "  # type: ignore[index] # matches all
        fresh = [f"{indent}enabled:", *(f"{indent}  - {name}" for name in names)]
        return [*lines[: place[0]], *(line + end for line in fresh), *lines[place[0] :]]
    number, match = found
    if "[" in match["rest"]:
        head, _, tail = lines[number].partition("]")
        comma = "" if head.rstrip().endswith("[") else ", "
        return [*lines[:number], f"{head}{comma}{', '.join(names)}]{tail}", *lines[number + 1 :]]
    items = _items(lines, number)
    first = _ITEM.match(lines[items[0]].rstrip("\r\n")) if items else None
    indent = first["indent"] if first else match["indent"] + "  "
    after = items[-1] + 1 if items else number + 1
    return [*lines[:after], *(f"{indent}- {name}{end}" for name in names), *lines[after:]]


def _without(lines: list[str], key: str, names: Sequence[str]) -> list[str]:
    found = _key(lines, key)
    if found is None:
        return lines
    number, match = found
    if "[" in match["rest"]:
        head, _, rest = lines[number].partition("[")
        inside, _, tail = rest.partition("]")
        left = [part for part in inside.split(",") if part.strip().strip("'\"") not in names]
        return [*lines[:number], f"{head}[{','.join(left).strip()}]{tail}", *lines[number + 1 :]]
    items = _items(lines, number)
    gone = {n for n in items if (_ITEM.match(lines[n].rstrip("\r\n")) or {"name": ""})["name"].strip() in names}
    kept = [line for n, line in enumerate(lines) if n not in gone]
    if items and len(gone) == len(items):
        kept[number] = kept[number].replace(f"{key}:", f"{key}: []", 1)
    return kept
