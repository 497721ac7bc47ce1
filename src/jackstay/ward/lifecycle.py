"""Which components add items to the closing checklist, and are they written where people read them?

A registry file lists components; each may bring `lifecycle.closure` items. `sync` writes them between two marks
of a document (a skill), `check` tells whether it is up to date.
"""

import re
import tomllib
from pathlib import Path
from typing import Any, Literal

from msgspec import Struct, ValidationError

from jackstay.core import wire
from jackstay.core.errors import ConfigError
from jackstay.policy.checklist import SEVEN, Item, Severity

BEGIN, END = "<!-- LIFECYCLE_ITEMS_BEGIN -->", "<!-- LIFECYCLE_ITEMS_END -->"
_ID = re.compile(r"[a-z][a-z0-9_]{1,40}\Z")
Stage = Literal["planned", "active", "stable", "deprecated"]


class ClosureItem(Struct, frozen=True, gc=False, omit_defaults=True, forbid_unknown_fields=True):
    """An item a component adds: `check` says what to look at, `command` how (shown, never run by itself)."""

    id: str
    check: str
    severity: Severity = "required"
    command: str = ""


class Lifecycle(Struct, frozen=True, gc=False, omit_defaults=True):
    """What a component asks for at certain moments; other moments than closing are left to others."""

    closure: tuple[ClosureItem, ...] = ()


class Component(Struct, frozen=True, gc=False, omit_defaults=True):
    """One entry of the registry."""

    name: str
    stage: Stage = "active"
    description: str = ""
    lifecycle: Lifecycle = Lifecycle()


class Registry(Struct, frozen=True, gc=False, omit_defaults=True):
    """All components of a registry file."""

    components: tuple[Component, ...] = ()

    @property
    def items(self) -> tuple[Item, ...]:
        """The closing items of all components in use, in the registry's order."""
        return tuple(
            Item(one.id, {"en": one.check}, {"en": one.check}, severity=one.severity, component=component.name,
                 command=one.command)
            for component in self.components if component.stage != "deprecated"
            for one in component.lifecycle.closure
        )  # fmt: skip


def read_registry(file: Path) -> Registry:
    """The registry in a TOML, YAML or JSON file. Raises ConfigError naming the file, the place and the mend."""
    try:
        text = file.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as problem:
        raise ConfigError(f"the registry cannot be read: {problem}", where=str(file)) from problem
    try:
        registry: Registry = wire.convert(_plain(file, text), Registry)
    except ValidationError as problem:
        raise ConfigError(
            str(problem), where=str(file), hint="see docs: closing items of components"
        ) from problem
    _check_ids(file, registry)
    return registry


def checklist(registry: Registry) -> tuple[Item, ...]:
    """The seven items of every task and those the components add."""
    return (*SEVEN, *registry.items)


def block(registry: Registry) -> str:
    """The items as the document shows them, between the marks."""
    lines = [BEGIN, "## Items of components", ""]
    for component in registry.components:
        items = component.lifecycle.closure if component.stage != "deprecated" else ()
        if items:
            lines += [f"### From {component.name}", ""]
            lines += [f"- [ ] `{item.id}` ({item.severity}): {' '.join(item.check.split())}" for item in items]
            lines += [
                line for item in items if item.command for line in ("", "```sh", item.command.strip(), "```")
            ]
            lines.append("")
    if len(lines) == 3:
        lines += ["No component adds any.", ""]
    return "\n".join([*lines, END])


def synced(document: str, registry: Registry) -> str:
    """The document with the block in its place: between its marks, or at its end."""
    start, end = document.find(BEGIN), document.find(END)
    fresh = block(registry)
    if start >= 0 and end > start:
        return document[:start] + fresh + document[end + len(END) :]
    return f"{document.rstrip()}\n\n{fresh}\n"


def check(document: Path, registry: Registry) -> str | None:
    """Why the document is not up to date, with what to do; None when it is."""
    if not document.is_file():
        return f"{document} is not there: `jackstay lifecycle sync` needs the document to write into"
    text = document.read_text("utf-8")
    return (
        None if synced(text, registry) == text else f"{document} is out of date: run `jackstay lifecycle sync`"
    )


def sync(document: Path, registry: Registry) -> bool:
    """Bring the document up to date; True when it was changed. Raises ConfigError when it is not there."""
    if not document.is_file():
        raise ConfigError("the document to write into is not there", where=str(document))
    text = document.read_text("utf-8")
    fresh = synced(text, registry)
    if fresh == text:
        return False
    beside = document.with_name(f".{document.name}.jackstay")
    beside.write_text(fresh, "utf-8")
    beside.chmod(document.stat().st_mode & 0o777)
    beside.replace(document)
    return True


def _plain(file: Path, text: str) -> Any:
    try:
        if file.suffix == ".toml":
            return tomllib.loads(text)
        if file.suffix == ".json":
            return wire.decode_json(text)
        import yaml  # only for registries written in it

        return yaml.load(text, getattr(yaml, "CSafeLoader", yaml.SafeLoader)) or {}
    except Exception as problem:  # three parsers, three families of errors, one answer
        raise ConfigError(f"the registry cannot be read: {problem}", where=str(file)) from problem


def _check_ids(file: Path, registry: Registry) -> None:
    seen = {item.id for item in SEVEN}
    for item in registry.items:
        if not _ID.match(item.id):
            raise ConfigError(
                f"closing item {item.id!r}: an id is small letters, digits and '_'", where=str(file)
            )
        if item.id in seen:
            raise ConfigError(
                f"closing item {item.id!r} is given twice, or is one of the seven", where=str(file)
            )
        seen.add(item.id)
