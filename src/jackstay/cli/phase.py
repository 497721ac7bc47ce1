"""`jackstay phase`: which phase is a session in, and what does a person override?"""

import sys
from typing import Any

import click

from jackstay.cli.override import Override, by_a_person, written_down
from jackstay.cli.plain import command_line, safe, shown
from jackstay.cli.screen import Paint
from jackstay.cli.stored import open_store, stored_state
from jackstay.cli.switches import home_option, json_option, session_argument
from jackstay.core.phase import Finding, Phase, PhaseState
from jackstay.core.state import RunState
from jackstay.core.wire import decode_json, encode
from jackstay.engine.ports import Posted
from jackstay.policy.data import BUILT_IN
from jackstay.policy.gates import GATES
from jackstay.policy.guidance import way_on
from jackstay.policy.masking import redact_value
from jackstay.policy.phases import open_items
from jackstay.policy.secrets import redact
from jackstay.runtime.commands import commands, let_stay, person, set_phase
from jackstay.runtime.session import AgentSession


@click.group()
def phase() -> None:
    """Show or override the phase of a session.

    \b
    Examples:
      jackstay phase show s-4f1c
      jackstay phase set s-4f1c executing --reason "approved on the phone"
      jackstay phase let-stay s-4f1c pid:4711 --reason "the dev server is mine"
    """


@phase.command("show", short_help="The phase, its gate, and what leads on.")
@session_argument
@home_option
@json_option
def show_phase(session: str, home: str | None, as_json: bool) -> None:
    """The phase, its gate, what leads on, the open closing items, and what was commanded meanwhile.

    \b
    Example:
      jackstay phase show s-4f1c

    Exits 0, or 1 when there is no such session.
    """
    store = open_store(home)
    state = stored_state(store, session)
    posted = commands(AgentSession(session, store))
    if as_json:
        click.echo(encode(redact_value(decode_json(encode(_object(state, posted))))))
        return
    for line in _lines(state, posted):
        click.echo(redact(line))


def _object(state: RunState, posted: tuple[Posted, ...]) -> dict[str, Any]:
    now, gate = state.policy.phase, GATES[state.policy.phase.phase]
    return {
        "session_id": state.session_id, "run_id": state.run_id, "phase": now.phase, "kind": now.phase.kind,
        "returns_to": now.returns_to, "reason": now.reason, "gate": gate.name, "strength": gate.strength,
        "discipline": state.policy.mode, "approved_by": now.approved_by, "changed": now.changed,
        "unverified": now.unverified, "ticks": now.ticks, "open": _open(now),
        "findings": _found(now), "kept": now.kept,
        "commanded": [{"command": item.command, **(item.data or {})} for item in posted],
    }  # fmt: skip


def _open(now: PhaseState) -> tuple[str, ...]:
    return open_items(now, BUILT_IN.required) if now.phase is Phase.CLOSING else ()


def _found(now: PhaseState) -> tuple[Finding, ...]:
    """What keeps items open; that of ticked ones is settled."""
    return tuple(one for one in now.findings if one.item in _open(now))


def _lines(state: RunState, posted: tuple[Posted, ...]) -> list[str]:
    now, gate = state.policy.phase, GATES[state.policy.phase.phase]
    back = f", returns to {now.returns_to}" if now.returns_to is not None else ""
    lines = [f"{Paint(sys.stdout)('bold', now.phase)}  ({now.phase.kind}{back})"]
    if state.policy.mode != "strict":
        lines.append(f"  discipline {state.policy.mode}")
    if now.reason:
        lines.append(f"  since      {safe(now.reason)}")
    if gate.strength != "none":
        lines.append(f"  gate       {gate.name} ({gate.strength})")
    if now.approved_by:
        lines.append(f"  approved   by {safe(now.approved_by)}")
    lines += [f"  changed    {shown(path)}" for path in now.changed]
    lines += [f"  ticked     {tick.item}: {safe(tick.evidence)}" for tick in now.ticks]
    lines += [
        f"  stays      {shown(one.finding.subject)} (by {safe(one.by)}: {safe(one.reason)})" for one in now.kept
    ]
    lines += [f"  open       {item}" for item in _open(now)]
    lines += [f"  found      {shown(one.subject)}: {safe(one.text)}" for one in _found(now)]
    way = way_on(now, BUILT_IN.texts_for(""), required=BUILT_IN.required)
    lines.append(f"  way on     {way}")
    return lines + [f"  commanded  {_said(item)}, taken up with the next request" for item in posted]


def _said(item: Posted) -> str:
    data = item.data or {}
    match item.command:
        case "force_phase":
            what = f"phase {data.get('phase')}"
        case "approve_plan":
            what = "the plan is approved"
        case "cancel":
            what = "its run is cancelled"
        case "let_stay":
            what = f"let stay: {', '.join(map(str, data.get('subjects', ())))}"
        case _:
            what = str(item.command)
    reason = data.get("reason") or data.get("comment")
    return safe(f"{what} by {data.get('by', 'somebody')}{f': {reason}' if reason else ''}")


@phase.command("set", short_help="Move a session to another phase; it is recorded.")
@session_argument
@click.argument("phase", type=click.Choice([phase.value for phase in Phase]))
@click.option("--reason", required=True, metavar="TEXT", help="Why; it is recorded with your name.")
@home_option
@json_option
def set_phase_of(session: str, phase: str, reason: str, home: str | None, as_json: bool) -> None:
    """Move a session to PHASE, whatever the table of moves says. It is recorded in the audit.

    It takes effect with the session's next request. No agent can do this.

    \b
    Examples:
      jackstay phase set s-4f1c no_task --reason "abandoned, nothing was deployed"
      jackstay phase set s-4f1c executing --reason "approved on the phone"

    Exits 0 when it is stored, 1 when there is no such session.
    """
    if not reason.strip():
        raise click.UsageError("--reason is empty: say why, it is what the audit will show")
    by_a_person()
    store = open_store(home)
    state = stored_state(store, session)
    written_down(
        home, state, Override("override", "phase set", reason, f"{state.policy.phase.phase} → {phase}")
    )
    set_phase(AgentSession(session, store), Phase(phase), reason)
    if as_json:
        said = {
            "session_id": session,
            "run_id": state.run_id,
            "before": state.policy.phase.phase,
            "phase": phase,
        }
        click.echo(encode({**said, "by": person(), "reason": reason}))
        return
    click.echo(f"session {session} goes to {phase} with its next request (now: {state.policy.phase.phase})")
    click.echo(f"go on with: {command_line('run', '--session', session, 'go on', home=home)}")


@phase.command("let-stay", short_help="Let leftovers stay that closing has found; it is recorded.")
@session_argument
@click.argument("subjects", nargs=-1, required=True, metavar="SUBJECT...")
@click.option("--reason", required=True, metavar="TEXT", help="Why; it is recorded with your name.")
@home_option
@json_option
def let_stay_of(session: str, subjects: tuple[str, ...], reason: str, home: str | None, as_json: bool) -> None:
    """Let leftovers stay that the closing checks have found, so that the session can close.

    SUBJECT is what `jackstay phase show` says was found (a path, pid:N, ssh:HOST), or an open item's id, which
    is ticked in your name. It takes effect when the session goes on, and is recorded in the audit. No agent can
    do this.

    \b
    Examples:
      jackstay phase let-stay s-4f1c pid:4711 --reason "the dev server is mine"
      jackstay phase let-stay s-4f1c tests/keys.py --reason "a made-up key"

    Exits 0 when it is stored, 1 when there is no such session or nothing of that name was found.
    """
    if not reason.strip():
        raise click.UsageError("--reason is empty: say why, it is what the audit will show")
    by_a_person()
    store = open_store(home)
    run_id = stored_state(store, session).run_id
    let_stay(AgentSession(session, store), subjects, reason)
    if as_json:
        click.echo(encode({
            "session_id": session, "run_id": run_id, "subjects": subjects, "by": person(), "reason": reason,
        }))  # fmt: skip
        return
    click.echo(f"may stay: {', '.join(map(shown, subjects))}")
    click.echo(f"go on with: {command_line('resume', session, home=home)}")
