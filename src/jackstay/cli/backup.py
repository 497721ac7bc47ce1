"""`jackstay backup`: which copies were taken before changes, and how does a file come back?"""

import sys
import time
from pathlib import Path

import click

from jackstay.cli.ages import AGE, clock
from jackstay.cli.completing import complete_backup, complete_session
from jackstay.cli.plain import command_line, safe, shown
from jackstay.cli.screen import Paint
from jackstay.cli.switches import SESSION, home_option, json_option
from jackstay.config.paths import home as home_path
from jackstay.core.wire import decode_json, encode
from jackstay.ward.backup import Backup, BackupError, Backups

SHOWN_COPIES = 5
_WAS = {"file": "", "link": " (a link)", "absent": " (did not exist)", "directory": " (a directory)"}


@click.group()
def backup() -> None:
    """Bring files back as they were before a change.

    \b
    Examples:
      jackstay backup list --session s-4f1c
      jackstay backup restore 1764501234567-0a1b2c3d4e
    """


@backup.command("list", short_help="The backups, the latest first.")
@click.option(
    "--session", type=SESSION, shell_complete=complete_session, help="Only what this session changed."
)
@click.option("--path", metavar="FILE", type=click.Path(), help="Only those that hold this file.")
@click.option("--since", type=AGE, metavar="AGE", help="Only those of the last 30m, 24h, 7d, 2w.")
@click.option(
    "--limit", type=click.IntRange(min=1), default=50, show_default=True, metavar="N", help="At most so many."
)
@home_option
@json_option
def list_backups(limit: int, home: str | None, as_json: bool, **wanted: str | float | None) -> None:
    """The backups, the latest first: id, time, session, the call before which it was taken, files.

    \b
    Examples:
      jackstay backup list --path src/app.py
      jackstay backup list --since 24h --json

    Exits 0, also when there is none.
    """
    found = _found(home, wanted)[:limit]
    for one in found:
        if as_json:
            click.echo(encode({"type": "backup", **decode_json(encode(one))}))
        else:
            click.echo("\n".join(_lines(one)))
    if not found and not as_json:
        click.echo("no backup matches" if any(wanted.values()) else "no backups")


def _found(home: str | None, wanted: dict[str, str | float | None]) -> list[Backup]:
    path, session, since = wanted["path"], wanted["session"], wanted["since"]
    whole = str(Path(str(path)).absolute()) if path is not None else None
    oldest = time.time() - float(since) if since is not None else 0.0
    listed = Backups(home_path(home)).list(session=str(session) if session else None, path=whole)
    return [one for one in listed if one.at >= oldest]


def _lines(one: Backup) -> list[str]:
    paint = Paint(sys.stdout)
    lines = [f"{paint('bold', one.id)}  {clock(one.at)}  {safe(one.session)}  {safe(one.why)}"]
    lines += [f"  {shown(copy.path)}{_WAS[copy.was]}" for copy in one.copies[:SHOWN_COPIES]]
    if len(one.copies) > SHOWN_COPIES:
        lines.append(f"  … and {len(one.copies) - SHOWN_COPIES} more files")
    lines += [f"  not copied: {shown(path)}" for path in one.skipped[:SHOWN_COPIES]]
    return lines


@backup.command("restore", short_help="Bring the files of a backup back.")
@click.argument("backup_id", metavar="BACKUP_ID", shell_complete=complete_backup)
@click.option("--only", metavar="FILE", type=click.Path(), help="Bring back just this file of it.")
@home_option
@json_option
def restore_backup(backup_id: str, only: str | None, home: str | None, as_json: bool) -> None:
    """Bring the files of a backup back, byte for byte and with their mode.

    What did not exist then is removed. The files as they are now are backed up first, so that this can be
    undone in the same way.

    \b
    Examples:
      jackstay backup restore 1764501234567-0a1b2c3d4e
      jackstay backup restore 1764501234567-0a1b2c3d4e --only src/app.py

    Exits 0 when all are back, 1 when one could not be brought back.
    """
    backups = Backups(home_path(home))
    wanted = backups.get(backup_id)
    path = str(Path(only).absolute()) if only is not None else None
    paths = [copy.path for copy in wanted.copies if path is None or copy.path == path]
    if not paths:
        raise BackupError(
            f"backup {backup_id} holds no copy of {only}: `jackstay backup list` shows what it holds"
        )
    before = backups.take(paths, session=wanted.session, why=f"before restoring {backup_id}", at=time.time())
    back = backups.restore(backup_id, only=path)
    if as_json:
        click.echo(encode({"type": "backup_restored", "id": backup_id, "paths": back, "undo": before.id}))
        return
    for restored in back:
        click.echo(f"back: {shown(restored)}")
    click.echo(f"undo with: {command_line('backup', 'restore', before.id, home=home)}")
