"""`jackstay extensions list`: what other packages add here, where it comes from, and what is wrong with it."""

import click

from jackstay.cli.main import FAILED
from jackstay.cli.plain import safe
from jackstay.cli.switches import home_option, json_option
from jackstay.core.wire import encode
from jackstay.runtime.extensions import GROUP, installed


@click.group()
def extensions() -> None:
    """Show the installed extensions.

    \b
    Example:
      jackstay extensions list
    """


@extensions.command("list", short_help="The extensions of the installed packages.")
@home_option
@json_option
def list_extensions(home: str | None, as_json: bool) -> int:
    """The extensions of the installed packages: name, package, and why one cannot be loaded.

    \b
    Example:
      jackstay extensions list --json

    Exits 0, or 1 when one of them cannot be loaded.
    """
    found = list(installed())
    for one in found:
        if as_json:
            click.echo(encode({"name": one.name, "origin": one.origin, "error": one.error}))
        else:
            state = f"cannot be loaded: {one.error}" if one.error is not None else "loaded"
            click.echo(f"{safe(one.name)}  {safe(one.origin)}  {safe(state)}")
    if not found and not as_json:
        click.echo(f"no extensions are installed (packages offer them as entry points of {GROUP!r})")
    return FAILED if any(one.error is not None for one in found) else 0
