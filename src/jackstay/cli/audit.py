"""`jackstay audit`: which gates closed, when, and on what?"""

import sys
import time

import click

from jackstay.cli.ages import AGE, clock
from jackstay.cli.completing import complete_session
from jackstay.cli.plain import clip, safe, shown
from jackstay.cli.screen import Paint
from jackstay.cli.switches import SESSION, home_option, json_option
from jackstay.config.paths import home as home_path
from jackstay.core.wire import decode_json, encode
from jackstay.ward.audit import Audit, AuditRecord, Summary, summed


@click.command()
@click.option("--since", type=AGE, metavar="AGE", help="Only the last 30m, 24h, 7d, 2w (default: everything).")
@click.option("--session", type=SESSION, shell_complete=complete_session, help="Only this session.")
@click.option(
    "--recent", type=click.IntRange(min=0), default=20, show_default=True, metavar="N",
    help="Show so many of the latest decisions one by one.",
)  # fmt: skip
@home_option
@json_option
def audit(since: float | None, session: str | None, recent: int, home: str | None, as_json: bool) -> None:
    """Count the decisions of gates, and show the latest: refusals, questions, a person's overrides.

    \b
    Examples:
      jackstay audit --since 24h
      jackstay audit --session s-4f1c --recent 5
      jackstay audit --json | grep '"verdict":"deny"'

    With --json the counts come first, then one line a decision.

    Exits 0, also when nothing is recorded.
    """
    found = Audit(home_path(home))
    oldest = time.time() - since if since is not None else 0.0
    summary = (
        found.summary(since=oldest, recent=recent)
        if session is None
        else summed((one for one in found.records(since=oldest) if one.session == session), recent=recent)
    )
    if as_json:
        _print_json(summary)
        return
    if not summary.total:
        click.echo("no gate has closed" + (" in that time" if since is not None else ""))
    else:
        _print(summary)
    if summary.unreadable:
        click.echo(f"{summary.unreadable} lines of the record cannot be read", err=True)


def _print_json(summary: Summary) -> None:
    counts = decode_json(encode(summary))
    click.echo(encode({"type": "audit_summary", **{k: v for k, v in counts.items() if k != "recent"}}))
    for record in summary.recent:
        click.echo(encode({"type": "audit", **decode_json(encode(record))}))


def _print(summary: Summary) -> None:
    paint = Paint(sys.stdout)
    click.echo(f"{summary.total} decision{'' if summary.total == 1 else 's'}")
    for name, counts in (
        ("verdict", summary.by_verdict), ("gate", summary.by_gate), ("phase", summary.by_phase),
        ("tool", summary.by_tool),
    ):  # fmt: skip
        said = ", ".join(f"{safe(key)} {count}" for key, count in counts.items())
        click.echo(f"  by {name:<8} {said}")
    for record in summary.recent:
        click.echo("")
        click.echo(_row(record, paint))
        click.echo(f"  {shown(clip(record.call))}" if record.call not in ("", "{}") else "  (no arguments)")
        click.echo(f"  {safe(clip(record.reason))}")


_COLOURS = {"allow": "green", "ask": "yellow", "deny": "red"}


def _row(record: AuditRecord, paint: Paint) -> str:
    verdict = paint(_COLOURS.get(record.verdict, "dim"), f"{safe(record.verdict):<5}")
    where = f"{safe(record.session)} · {safe(record.phase)} · {safe(record.rule)}"
    return f"{clock(record.at)}  {verdict} {shown(record.tool)}  ({where})"
