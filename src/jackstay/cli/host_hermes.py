"""`jackstay host … hermes`: the steps shown or done, and whether Hermes really asks us."""

from collections.abc import Iterator
from pathlib import Path

import click

from jackstay.cli.host_looks import Looked
from jackstay.core.errors import ConfigError
from jackstay.hosts import install_hermes
from jackstay.hosts.install_hermes import Step


def carry_out(found: list[Step], *, dry_run: bool, done: str) -> None:
    """Show each step, do it unless `dry_run`, and say at the end what was reached."""
    for step in found:
        click.echo(f"would {step.text}" if dry_run else step.text)
        if not dry_run:
            step.do()
    if not found:
        click.echo("nothing to do")
    elif dry_run:
        click.echo("nothing was written")
    else:
        click.echo(done)


def findings(home: Path) -> Iterator[Looked]:
    """What was found of Hermes: a line a plugin as the second seed prints them, a forbidden call's fate."""
    at = install_hermes.places(home)
    if not at.hermes.is_dir():
        yield Looked("ok", "hermes: not installed")
        return
    lines = install_hermes.status_lines(at)
    again = "jackstay host install hermes"
    for line in lines:
        held = "  enabled  " in line
        yield Looked("ok" if held or "not installed" in line else "problem", line, "" if held else again)
    if "  enabled  " not in lines[0]:
        return
    try:
        refused = install_hermes.probe(at)
    except ConfigError as problem:
        yield Looked("warning", f"Hermes could not be asked: {problem}")
        return
    if refused is None:
        yield Looked("problem", "a forbidden call would have run: Hermes does not ask work-principles", again)
    else:
        yield Looked("ok", "a forbidden call was refused through Hermes's own hooks")
