"""`jackstay pending`: which calls and plans wait for a person?"""

import time

import click

from jackstay.cli.completing import complete_session
from jackstay.cli.plain import command_line
from jackstay.cli.stored import open_store, stored_state
from jackstay.cli.switches import SESSION, home_option, json_option
from jackstay.cli.waiting import how_to_approve, how_to_decide, plan_lines, task_lines, task_object
from jackstay.core.phase import Phase
from jackstay.core.state import RunState
from jackstay.core.wire import encode
from jackstay.engine.ports import PendingSession, SessionStore
from jackstay.runtime.commands import plan_of, plan_waits
from jackstay.runtime.session import AgentSession

MOST = 1000


@click.command()
@click.argument("session", type=SESSION, required=False, shell_complete=complete_session)
@home_option
@json_option
def pending(session: str | None, home: str | None, as_json: bool) -> None:
    """Show the calls and plans that wait for a person, in one session or in all.

    \b
    Examples:
      jackstay pending
      jackstay pending s-4f1c --json

    Exits 0, whether anything waits or not; 1 when there is no such session.
    """
    store = open_store(home)
    calls, plans = _calls(store, session), _plans(store, session)
    if as_json:
        _print_json(calls, plans)
        return
    for name in dict.fromkeys((*calls, *plans)):
        click.echo(_said(name, calls.get(name), plans.get(name), home))
    if not calls and not plans:
        click.echo("nothing waits")


def _print_json(calls: dict[str, PendingSession], plans: dict[str, RunState]) -> None:
    for one in calls.values():
        for task in one.tasks:
            click.echo(encode(task_object(one.session_id, one.run_id, task)))
    for state in plans.values():
        said = {"session_id": state.session_id, "run_id": state.run_id, "plan": plan_of(state)}
        click.echo(encode(said))


def _said(name: str, calls: PendingSession | None, plan: RunState | None, home: str | None) -> str:
    """All that waits in a session, and the commands that decide it."""
    tasks = calls.tasks if calls is not None else ()
    lines = [line for task in tasks for line in task_lines(task, now=time.time())]
    lines += plan_lines(plan_of(plan)) if plan is not None else []
    if not tasks:
        commands = how_to_approve(name, home)
    else:
        decide, go_on = how_to_decide(name, tasks, home)
        of_plan = [f"plan:    {command_line('approve', name, '--plan', home=home)}"] if plan is not None else []
        commands = [decide, *of_plan, go_on]
    return "\n".join([f"session {name}:", *(f"  {line}" for line in lines), *commands])


def _calls(store: SessionStore, session: str | None) -> dict[str, PendingSession]:
    if session is None:
        return {one.session_id: one for one in store.pending()}
    state = stored_state(store, session)
    tasks = AgentSession(session, store).pending_tasks()
    return {session: PendingSession(session, state.run_id, tasks)} if tasks else {}


def _plans(store: SessionStore, session: str | None) -> dict[str, RunState]:
    planning = [one.session_id for one in store.sessions(MOST) if one.phase is Phase.PLANNING]
    found = [AgentSession(name, store) for name in ([session] if session is not None else planning)]
    return {one.session_id: one.state for one in found if plan_waits(one)}
