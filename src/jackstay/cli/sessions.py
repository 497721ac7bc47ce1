"""`jackstay sessions`: what is stored, in full, to take along, or to forget."""

import sys
import time
from pathlib import Path
from typing import Any

import click
import msgspec

from jackstay.cli.ages import AGE, clock
from jackstay.cli.main import FAILED
from jackstay.cli.plain import clip, safe
from jackstay.cli.screen import Paint
from jackstay.cli.stored import open_store
from jackstay.cli.switches import home_option, json_option, session_argument
from jackstay.cli.transcript import transcript_lines
from jackstay.core.errors import JackstayError, SessionBusy, UnknownSession
from jackstay.core.phase import Phase
from jackstay.core.wire import decode_json, encode
from jackstay.engine.ports import SessionInfo, SessionStore
from jackstay.engine.telling import told_message
from jackstay.policy.masking import redact_value
from jackstay.policy.secrets import redact

OPEN = "open"  # under way, or interrupted


@click.group()
def sessions() -> None:
    """List, show, export or delete what is stored.

    \b
    Examples:
      jackstay sessions list --outcome pending
      jackstay sessions show s-4f1c
    """


@sessions.command("list", short_help="The sessions, the latest first.")
@click.option(
    "--outcome",
    type=click.Choice([OPEN, "answered", "pending", "rejected", "limit", "failed", "cancelled", "stopped"]),
    help="Only sessions whose last run ended so; open: under way or interrupted.",
)
@click.option("--since", type=AGE, metavar="AGE", help="Only those used within AGE: 30m, 12h, 7d, 2w.")
@click.option("--grep", metavar="TEXT", help="Only those whose id or first prompt has TEXT in it.")
@click.option("--limit", type=click.IntRange(min=1), default=50, show_default=True, help="At most so many.")
@home_option
@json_option
def list_sessions(limit: int, home: str | None, as_json: bool, **filters: Any) -> None:
    """The sessions, the latest first: id, last use, outcome, phase, first prompt.

    \b
    Examples:
      jackstay sessions list --since 7d --grep "failing test"
      jackstay sessions list --outcome pending --json

    Exits 0, also when there is none.
    """
    wanted = Filter(**filters)
    oldest = time.time() - wanted.since if wanted.since is not None else 0.0
    stored = open_store(home).sessions(sys.maxsize)
    found = [one for one in stored if one.updated >= oldest and wanted.fits(one)][:limit]
    for one in found:
        click.echo(encode(one) if as_json else _row(one))
    if not found and not as_json:
        click.echo("no session matches" if stored else "no sessions")


class Filter(msgspec.Struct, frozen=True):
    """Which sessions are asked for; None: whichever."""

    outcome: str | None = None
    since: float | None = None
    grep: str | None = None

    def fits(self, one: SessionInfo) -> bool:
        """Is the session one of them, its age aside?"""
        if self.outcome is not None and (one.outcome or OPEN) != self.outcome:
            return False
        return self.grep is None or self.grep.lower() in f"{one.session_id} {one.title}".lower()


def _row(one: SessionInfo) -> str:
    waiting = f" ({one.waiting})" if one.outcome == "pending" else ""
    state = f"{one.outcome or OPEN}{waiting}"
    phase = f"{one.phase:<16} " if one.phase is not Phase.NO_TASK else f"{'':<17}"
    return f"{one.session_id:<20} {clock(one.updated)}  {state:<12} {phase}{safe(clip(one.title, 60))}"


@sessions.command("show", short_help="A session as it can be read.")
@session_argument
@home_option
@json_option
def show_session(session: str, home: str | None, as_json: bool) -> None:
    """A session as it can be read: words, calls, approvals, phases, gates. With --json its events.

    \b
    Examples:
      jackstay sessions show s-4f1c
      jackstay sessions show s-4f1c --json | grep '"type":"gate_blocked"'

    Exits 0, or 1 when there is no such session.
    """
    store = open_store(home)
    stored = store.load(session)
    if stored is None:
        raise UnknownSession(session)
    if as_json:
        for event in store.events(session):
            click.echo(encode(event))
        return
    state = stored.state
    phase = f" · {state.policy.phase.phase}" if state.policy.mode != "off" else ""
    click.echo(f"session {session} · {state.outcome or OPEN}{phase} · {state.settings.get('workspace', '')}")
    for loss in stored.dropped:
        click.echo(Paint(sys.stdout)("yellow", f"warning: {loss}"))
    for line in transcript_lines(state, store.events(session)):
        click.echo(line)


@sessions.command("export", short_help="A session as one JSON object.")
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
    """A session as one JSON object: its head, messages and events. (--json changes nothing: it is JSON.)

    \b
    Example:
      jackstay sessions export s-4f1c --output s-4f1c.json

    Exits 0, 1 when there is no such session, 2 when the file exists already or cannot be written.
    """
    data = _exported(open_store(home), session)
    if output is None:
        click.echo(data)
        return
    path = Path(output)
    if path.exists() and not force:
        raise click.UsageError(f"{output} exists: choose another name, or say --force")
    try:
        path.touch(mode=0o600)
        path.write_bytes(data + b"\n")
    except OSError as problem:
        raise click.UsageError(
            f"{output} cannot be written: {problem.strerror}; choose another place"
        ) from problem


def _exported(store: SessionStore, session: str) -> bytes:
    stored = store.load(session)
    if stored is None:
        raise UnknownSession(session)
    state = stored.state
    whole = {
        "session_id": session, "run_id": state.run_id, "agent": state.agent, "outcome": state.outcome,
        "text": redact(state.text), "usage": state.usage, "settings": redact_value(state.settings),
        "policy": redact_value(decode_json(encode(state.policy))),
        "messages": [told_message(message) for message in state.transcript],
        "events": list(store.events(session)), "dropped": stored.dropped,
    }  # fmt: skip
    return encode(whole)


@sessions.command("delete", short_help="Forget a session and everything of it.")
@session_argument
@click.option("--yes", is_flag=True, help="Do not ask.")
@home_option
@json_option
def delete_session(session: str, yes: bool, home: str | None, as_json: bool) -> int:
    """Forget a session and everything of it, its subagents included. Backups and the audit record stay.

    \b
    Example:
      jackstay sessions delete s-4f1c --yes

    Exits 0 when it is gone, 1 when it is not there, is being run, belongs to a run that is not over, or you
    said no.
    """
    store = open_store(home)
    _refuse_while_it_runs(store, session)
    _refuse_while_its_parent_goes_on(store, session)
    if not yes:
        if not sys.stdin.isatty():
            raise click.UsageError(f"deleting cannot be undone: say --yes to delete session {session}")
        if not click.confirm(f"Forget session {session} and everything of it?", err=True):
            return FAILED
    below = _below(store, session)
    if not store.delete(session):
        raise JackstayError(f"session {session!r} was not deleted: somebody else was faster")
    for name in below:
        store.delete(name)
    click.echo(encode({"session_id": session, "deleted": True}) if as_json else f"deleted {session}")
    return 0


ALL = 1_000_000


def _below(store: SessionStore, session: str) -> list[str]:
    """The sessions of its subagents, and of theirs."""
    heads = [store.head(one.session_id) for one in store.sessions(ALL)]
    parents = [
        (head.state.session_id, head.state.parent.session_id)
        for head in heads
        if head is not None and head.state.parent is not None
    ]
    found = [session]
    for name in found:
        found += [child for child, parent in parents if parent == name]
    return found[1:]


def _refuse_while_it_runs(store: SessionStore, session: str) -> None:
    """Somebody runs it, or it is a piece of another session, which would begin it a second time."""
    from jackstay.store.leases import live

    stored, now = store.head(session), time.time()
    if stored is None:
        raise UnknownSession(session)
    lease = live(stored.lease, now)
    if lease is not None:
        raise SessionBusy(session, lease.owner, lease.until - now)


def _refuse_while_its_parent_goes_on(store: SessionStore, session: str) -> None:
    """A run whose subagent's session is gone would have the same work done again."""
    stored = store.head(session)
    parent = stored.state.parent if stored is not None else None
    above = store.head(parent.session_id) if parent is not None else None
    if parent is None or above is None or above.state.run_id != parent.run_id or not above.state.is_open:
        return
    raise JackstayError(
        f"session {session!r} is that of a subagent of {parent.session_id!r}, whose run is not over: end it "
        f"first with `jackstay cancel {parent.session_id}`, or delete {parent.session_id!r} with all below it"
    )
