"""Which settings hold here? Built-in ones under the user's under the project's, each wrong one named."""

import difflib
import re
import stat
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from jackstay.config.model import KEYS, MODEL_KEYS, Config, Key, ModelSettings
from jackstay.config.narrow import narrowed
from jackstay.config.rules import parse_rules
from jackstay.config.trusted import PROJECT_DIR, Trust
from jackstay.core.errors import ConfigError

FILE = "config.toml"
_MOST_BYTES = 1 << 20


class Loaded(msgspec.Struct, frozen=True):
    """The settings that hold, the files they came from, and what a person should know about them."""

    config: Config
    files: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


def load(home: Path, workspace: Path, *, base: Config) -> Loaded:
    """The settings for work in `workspace`: `base` under `home`'s file under the project's.

    Raises ConfigError naming file, line, key and the mend for the first thing that is wrong in a file. What an
    untrusted project's file would widen is left out, with a warning.
    """
    user = home / FILE
    found = read(user)
    loaded = Loaded(base) if found is None else Loaded(base.under(found.config), (str(user),), found.warnings)
    project = workspace / PROJECT_DIR / FILE
    if _same(project.parent, home):
        return loaded  # a home inside the workspace is never read as the project's settings
    trusted = Trust(home).holds(workspace)
    found = read(project, trusted=trusted)
    if found is None:
        return loaded
    config, warnings = found.config, found.warnings
    if not trusted:
        config, refused = narrowed(loaded.config, config)
        warnings = (*warnings, *(_refusal(project, key, workspace) for key in refused))
    return Loaded(loaded.config.under(config), (*loaded.files, str(project)), (*loaded.warnings, *warnings))


def _same(one: Path, other: Path) -> bool:
    return one.resolve() == other.resolve()


def _refusal(path: Path, key: str, workspace: Path) -> str:
    spots = Spots(path.read_text(encoding="utf-8"), str(path))
    return (
        f"{spots.at(key)}: {key}: left out, since this project is not trusted and may only narrow what is "
        f"allowed (`jackstay trust {workspace}` changes that)"
    )


def read(path: Path, *, trusted: bool = True) -> Loaded | None:
    """The settings of one file; None when there is no such file. Raises ConfigError as `load` does."""
    text = _text(path)
    if text is None:
        return None
    try:
        plain = tomllib.loads(text)
    except tomllib.TOMLDecodeError as problem:
        line = re.search(r"at line (\d+)", str(problem))
        where = f"{path}:{line[1]}" if line else str(path)
        raise ConfigError(
            f"is not TOML: {problem}", hint='texts need quotes: key = "text"', where=where
        ) from problem
    spots = Spots(text, str(path))
    for key, value in plain.items():
        _check(key, value, KEYS, spots.at(key))
    rules = parse_rules(text, where=str(path), trusted=trusted)
    models = {name: _model(name, table, spots) for name, table in plain.get("models", {}).items()}
    said = {key: value for key, value in plain.items() if key not in ("rules", "models")}
    config = msgspec.convert({**said}, Config)
    return Loaded(
        msgspec.structs.replace(config, rules=rules.rules, models=models), (str(path),), rules.warnings
    )


def _text(path: Path) -> str | None:
    """The whole file, or None. Anything but a plain file of modest size is refused: it may not be ours."""
    try:
        found = path.stat()
        if not stat.S_ISREG(found.st_mode):
            raise ConfigError("is not a plain file", hint="move it away", where=str(path))
        if found.st_size > _MOST_BYTES:
            raise ConfigError("is larger than 1 MB", hint="settings are not that long", where=str(path))
        return path.read_text(encoding="utf-8")
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as problem:
        hint = "make it readable, or choose another home with --home"
        raise ConfigError(f"cannot be read: {problem.strerror}", hint=hint, where=str(path)) from problem
    except UnicodeDecodeError as problem:
        raise ConfigError(f"is not UTF-8: {problem}", hint="save it as UTF-8", where=str(path)) from problem


def _model(name: str, table: Any, spots: "Spots") -> ModelSettings:
    if not isinstance(table, dict):
        where = spots.at("models", name)
        raise ConfigError(
            f"models.{name}: {table!r} is not a table", hint=f"write [models.{name}]", where=where
        )
    for key, value in table.items():
        _check(key, value, MODEL_KEYS, spots.at("models", name, key))
    settings = msgspec.convert(table, ModelSettings)
    if settings.model is None and settings.base_url is None:
        hint = 'write model = "openai:NAME" or base_url = "http://…/v1"'
        raise ConfigError(
            f"models.{name}: says neither model nor base_url", hint=hint, where=spots.at("models", name)
        )
    return settings


def _check(key: str, value: Any, keys: Mapping[str, Key], where: str) -> None:
    known = keys.get(key)
    if known is None:
        near = difflib.get_close_matches(key, keys, 1)
        hint = f"did you mean {near[0]!r}?" if near else f"known keys: {', '.join(keys)}"
        raise ConfigError(f"{key}: there is no such key", hint=hint, where=where)
    if not known.fits(value):
        raise ConfigError(f"{key}: {value!r} does not fit", hint=f"it must be {known.wanted}", where=where)


class Spots:
    """Where keys stand in a file, for messages. TOML's own reader does not say."""

    def __init__(self, text: str, where: str) -> None:
        self._lines = text.split("\n")
        self._where = where

    def at(self, *path: str) -> str:
        """`file:line` of a key, given with the tables around it; the file alone where it is not found."""
        table: tuple[str, ...] = ()
        for number, line in enumerate(self._lines, 1):
            head = re.match(r"\s*\[\[?\s*([^\]]+?)\s*\]\]?", line)
            if head:
                table = _dotted(head[1])
                if table[: len(path)] == path:
                    return f"{self._where}:{number}"
                continue
            entry = re.match(r"\s*([\w\-.\"']+)\s*=", line)
            if entry and (*table, *_dotted(entry[1]))[: len(path)] == path:
                return f"{self._where}:{number}"
        return self._where


def _dotted(text: str) -> tuple[str, ...]:
    return tuple(piece.strip().strip("\"'") for piece in text.split("."))
