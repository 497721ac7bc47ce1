"""`jackstay trust DIR`: the user vouches for a project's settings as they are now."""

from pathlib import Path

import click

from jackstay.cli.override import by_a_person
from jackstay.cli.plain import safe
from jackstay.cli.switches import home_option, json_option
from jackstay.config.load import FILE, read
from jackstay.config.paths import home as home_path
from jackstay.config.trusted import PROJECT_DIR, Trust
from jackstay.core.wire import encode


@click.command()
@click.argument("directory", metavar="[DIR]", required=False, type=click.Path(file_okay=False))
@click.option("--remove", is_flag=True, help="Trust it no more.")
@click.option("--list", "listing", is_flag=True, help="Show the trusted projects.")
@home_option
@json_option
def trust(directory: str | None, remove: bool, listing: bool, home: str | None, as_json: bool) -> None:
    """Let the settings in DIR/.jackstay widen what is allowed there.

    Trust holds for the settings as they are now: a changed file has to be trusted again.

    \b
    Examples:
      jackstay trust .
      jackstay trust --list
      jackstay trust --remove ~/code/old

    Exits 0, or 2 when the settings cannot be read.
    """
    trusted = Trust(home_path(home))
    if listing:
        known = sorted(trusted.entries())
        if not known and not as_json:
            click.echo("no project is trusted")
        for path in known:
            state = "trusted" if trusted.holds(Path(path)) else "changed since it was trusted"
            click.echo(encode({"path": path, "state": state}) if as_json else f"{safe(path)}  {state}")
        return
    if directory is None:
        raise click.UsageError("name a directory, or say --list")
    by_a_person()
    project = Path(directory).resolve()
    if remove:
        done = "trusted no more" if trusted.remove(project) else "was not trusted"
    elif not project.is_dir():
        raise click.UsageError(f"there is no directory {directory}")
    else:
        read(project / PROJECT_DIR / FILE)  # what cannot be read is not trusted
        trusted.add(project)
        done = "trusted"
    click.echo(encode({"path": str(project), "state": done}) if as_json else f"{safe(str(project))}: {done}")
