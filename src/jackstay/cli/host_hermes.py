"""`jackstay host … hermes`: the steps shown or done, and whether Hermes really asks us."""

from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from jackstay.cli.host_looks import Looked
from jackstay.core.errors import ConfigError
from jackstay.hosts import install_hermes


def carried_out(
    do: Literal["install", "uninstall"], home: Path, *, dry_run: bool, folder: str | None = None
) -> Iterator[str]:
    """The steps, each told before it is done (or not done: `dry_run`), and what was reached.

    With `folder` only the private copy is written, there.
    """
    at = install_hermes.places(home)
    if folder is not None:
        at = install_hermes.Places(at.home, at.hermes, Path(folder).absolute())
        steps, done = (
            install_hermes.private_copy(at),
            f"now link Hermes's plugins and skills to {at.copy}",
        )
    elif do == "install":
        steps = install_hermes.install_steps(at)
        done = "installed: new sessions of hermes are held to the discipline; `jackstay host status hermes`"
    else:
        steps, done = install_hermes.uninstall_steps(at), "taken out; sessions, backups and audit stay"
    for step in steps:
        yield f"would {step.text}" if dry_run else step.text
        if not dry_run:
            step.do()
    yield "nothing to do" if not steps else "nothing was written" if dry_run else done


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
    yield Looked(
        "warning", "Hermes started with --safe-mode loads no plugin: then nobody is asked",
        "see docs/hosts/hermes.md, what Hermes cannot enforce",
    )  # fmt: skip
