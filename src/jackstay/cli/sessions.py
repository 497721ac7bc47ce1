"""`jackstay sessions`: what is stored, in full, to take along, or to forget."""

import re
import sys
import time
from pathlib import Path

import click
import msgspec

from jackstay.cli.main import FAILED
from jackstay.cli.plain import clip, safe
from jackstay.cli.screen import Paint
from jackstay.cli.stored import open_store
from jackstay.cli.switches import home_option, json_option, session_argument
from jackstay.cli.transcript import clock, transcript_lines
from jackstay.core.errors import JackstayError, SessionBusy, UnknownSession
from jackstay.core.wire import encode
from jackstay.engine.ports import SessionInfo, SessionStore

_UNITS = {"m": 60.0, "h": 3600.0, "d": 86400.0, "w": 604800.0}
OPEN = "open"  # under way, or interrupted


@click.group()
def sessions() -> None:
    """List, show, export or delete what is stored."""


@sessions.command("list")
@click.option(
    "--outcome",
    type=click.Choice([OPEN, "answered", "pending", "rejected", "limit", "failed", "cancelled", "stopped"]),
    help="Only sessions whose last run ended so; open: under way or interrupted.",
)
@click.option("--since", metavar="AGE", help="Only those used within AGE: 30m, 12h, 7d, 2w.")
@click.option("--grep", metavar="TEXT", help="Only those whose id or first prompt has TEXT in it.")
@click.option("--limit", type=click.IntRange(min=1), default=50, show_default=True, help="At most so many.")
@home_option
@json_option
def list_sessions(limit: int, home: str | None, as_json: bool, **filters: str | None) -> None:
    """The sessions, the latest first."""
    wanted = Filter(**filters)
    oldest = time.time() - _seconds(wanted.since) if wanted.since is not None else 0.0
    stored = open_store(home).sessions(sys.maxsize)
    found = [one for one in stored if one.updated >= oldest and wanted.fits(one)][:limit]
    for one in found:
        click.echo(encode(one) if as_json else _row(one))
    if not found and not as_json:
        click.echo("no session matches" if stored else "no sessions")


class Filter(msgspec.Struct, frozen=True):
    """Which sessions are asked for; None: whichever."""

    outcome: str | None = None
    since: str | None = None
    grep: str | None = None

    def fits(self, one: SessionInfo) -> bool:
        """Is the session one of them, its age aside?"""
        if self.outcome is not None and (one.outcome or OPEN) != self.outcome:
            return False
        return self.grep is None or self.grep.lower() in f"{one.session_id} {one.title}".lower()


def _row(one: SessionInfo) -> str:
    waiting = f" ({one.waiting})" if one.outcome == "pending" else ""
    state = f"{one.outcome or OPEN}{waiting}"
    return f"{one.session_id:<20} {clock(one.updated)}  {state:<12} {safe(clip(one.title, 60))}"


def _seconds(text: str) -> float:
    found = re.fullmatch(r"(\d+(?:\.\d+)?)([mhdw])", text.strip())
    if found is None:
        raise click.UsageError(f"--since {text!r} is no age: write 30m, 12h, 7d or 2w")
    return float(found[1]) * _UNITS[found[2]]


@sessions.command("show")
@session_argument
@home_option
@json_option
def show_session(session: str, home: str | None, as_json: bool) -> None:
    """A session as it can be read; with --json its events, one per line."""
    store = open_store(home)
    stored = store.load(session)
    if stored is None:
        raise UnknownSession(session)
    if as_json:
        for event in store.events(session):
            click.echo(encode(event))
        return
    state = stored.state
    click.echo(f"session {session} · {state.outcome or OPEN} · {state.settings.get('workspace', '')}")
    for loss in stored.dropped:
        click.echo(Paint(sys.stdout)("yellow", f"warning: {loss}"))
    for line in transcript_lines(state, store.events(session)):
        click.echo(line)


@sessions.command("export")
@session_argument
@click.option(
    "--output",
    "-o",
    type=click.Path(dir_okay=False),
    metavar="FILE",
    help="Write here (readable by you alone).",
)
@click.option("--force", is_flag=True, help="Write over a file that is there.")
@home_option
@json_option
def export_session(session: str, output: str | None, force: bool, home: str | None, as_json: bool) -> None:
    """A session as one JSON object: its head, messages and events. (--json changes nothing: it is JSON.)"""
    data = _exported(open_store(home), session)
    if output is None:
        click.echo(data)
        return
    path = Path(output)
    if path.exists() and not force:
        raise click.UsageError(f"{output} exists: choose another name, or say --force")
    path.touch(mode=0o600)
    path.write_bytes(data + b"\n")


def _exported(store: SessionStore, session: str) -> bytes:
    stored = store.load(session)
    if stored is None:
        raise UnknownSession(session)
    state = stored.state
    whole = {
        "session_id": session, "run_id": state.run_id, "agent": state.agent, "outcome": state.outcome,
        "text": state.text, "usage": state.usage, "settings": state.settings, "policy": state.policy,
        "messages": list(state.transcript), "events": list(store.events(session)), "dropped": stored.dropped,
    }  # fmt: skip
    return encode(whole)


@sessions.command("delete")
@session_argument
@click.option("--yes", is_flag=True, help="Do not ask.")
@home_option
@json_option
def delete_session(session: str, yes: bool, home: str | None, as_json: bool) -> int:
    """Forget a session and everything of it."""
    store = open_store(home)
    _refuse_while_it_runs(store, session)
    if not yes:
        if not sys.stdin.isatty():
            raise click.UsageError(f"deleting cannot be undone: say --yes to delete session {session}")
        if not click.confirm(f"Forget session {session} and everything of it?", err=True):
            return FAILED
    if not store.delete(session):
        raise JackstayError(f"session {session!r} was not deleted: somebody else was faster")
    click.echo(encode({"session_id": session, "deleted": True}) if as_json else f"deleted {session}")
    return 0


def _refuse_while_it_runs(store: SessionStore, session: str) -> None:
    from jackstay.store.leases import live

    stored, now = store.head(session), time.time()
    if stored is None:
        raise UnknownSession(session)
    lease = live(stored.lease, now)
    if lease is not None:
        raise SessionBusy(session, lease.owner, lease.until - now)
