"""`jackstay lifecycle`: which closing items do components add, and does the checklist people read show them?"""

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from jackstay.cli.main import FAILED
from jackstay.cli.plain import safe
from jackstay.cli.switches import home_option, json_option
from jackstay.config.paths import home as home_path
from jackstay.core.errors import ConfigError
from jackstay.core.wire import encode
from jackstay.ward import lifecycle as ward
from jackstay.ward.lifecycle import Registry, read_registry

F = TypeVar("F", bound=Callable[..., Any])
REGISTRIES = tuple(
    f"{place}registry.{kind}" for place in ("", ".jackstay/") for kind in ("yaml", "yml", "toml", "json")
)
SKILL = "work-closure-check"


@click.group()
def lifecycle() -> None:
    """Show and sync the closing items of components.

    A registry file lists components; each may add items to the checklist that ends a task:

    \b
      components:
        - name: queue
          lifecycle:
            closure:
              - id: queue_drained
                check: no message is left in the dead-letter queue
                severity: required
                command: queuectl depth dead

    `jackstay lifecycle sync` writes them into the document people and agents read, `jackstay lifecycle check`
    tells whether it is up to date.
    """


def _places(command: F) -> F:
    for option in reversed(
        (
            click.option(
                "--registry",
                metavar="FILE",
                type=click.Path(dir_okay=False),
                help="The registry (default: registry.yaml, .toml or .json here or in .jackstay).",
            ),
            click.option(
                "--document",
                metavar="FILE",
                type=click.Path(dir_okay=False),
                help=f"The document (default: your own or the project's skill {SKILL}).",
            ),
            home_option,
            json_option,
        )
    ):
        command = option(command)
    return command


@lifecycle.command(short_help="Write the items into the document.")
@_places
def sync(registry: str | None, document: str | None, home: str | None, as_json: bool) -> None:
    """Write the items of all components into the document, between its two marks or at its end.

    \b
    Examples:
      jackstay lifecycle sync
      jackstay lifecycle sync --registry ops/registry.yaml --document CLOSING.md

    Exits 0, or 2 when the registry cannot be read or there is no document.
    """
    found, path = _registry(registry), _document(document, home)
    changed = ward.sync(path, found)
    _say(as_json, path, found, "written" if changed else "up to date")


@lifecycle.command(short_help="Is the document up to date?")
@_places
def check(registry: str | None, document: str | None, home: str | None, as_json: bool) -> int:
    """Tell whether the document shows the items of all components as they are.

    \b
    Example:
      jackstay lifecycle check --registry ops/registry.yaml --document CLOSING.md

    Exits 0 when it does, 1 when it is out of date, 2 when the registry cannot be read.
    """
    found, path = _registry(registry), _document(document, home)
    problem = ward.check(path, found)
    _say(as_json, path, found, problem or "up to date")
    return FAILED if problem else 0


def _say(as_json: bool, document: Path, registry: Registry, state: str) -> None:
    items = registry.items
    if as_json:
        told = [{"id": one.id, "component": one.component, "severity": one.severity} for one in items]
        click.echo(encode({"type": "lifecycle", "document": str(document), "state": state, "items": told}))
        return
    for one in items:
        click.echo(f"{one.id}  {one.severity}  from {safe(one.component)}: {safe(one.how['en'])}")
    if not items:
        click.echo("no component adds an item")
    click.echo(state if str(document) in state else f"{document}: {state}")


def _registry(given: str | None) -> Registry:
    if given is not None:
        return read_registry(Path(given))
    path = next((Path(name) for name in REGISTRIES if Path(name).is_file()), None)
    if path is None:
        raise ConfigError(
            "there is no registry here", hint="name it with --registry FILE; --help shows its form"
        )
    return read_registry(path)


def _document(given: str | None, home: str | None) -> Path:
    if given is not None:
        return Path(given)
    from jackstay.skills.catalog import Catalog, places

    where = places(workspace=str(Path.cwd()), home=str(home_path(home)), user=str(Path.home()))
    own = next(
        (one for one in Catalog(where).found.skills if one.name == SKILL and one.origin != "built-in"), None
    )
    if own is None:
        raise ConfigError(
            f"there is no skill {SKILL} of your own to write into",
            hint="name a document with --document FILE",
        )
    return Path(own.file)
