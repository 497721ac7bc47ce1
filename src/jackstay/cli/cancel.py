"""`jackstay cancel`: end a run for good, from any terminal."""

import click

from jackstay.cli.plain import command_line
from jackstay.cli.stored import open_store, stored_state
from jackstay.cli.switches import home_option, json_option, session_argument
from jackstay.core.state import RunState
from jackstay.core.wire import encode
from jackstay.runtime.commands import person
from jackstay.runtime.control import CancelAnswer
from jackstay.runtime.control import cancel as cancel_run
from jackstay.runtime.session import AgentSession


@click.command()
@session_argument
@home_option
@json_option
def cancel(session: str, home: str | None, as_json: bool) -> None:
    """End the run of a session for good, whether it waits, was interrupted, or is under way elsewhere.

    A process that runs it stops within a second or two, its tools with their processes. Every open call is
    answered as cancelled, so a new prompt may follow. To stop for now and go on later, press Ctrl-C there.

    \b
    Examples:
      jackstay cancel s-4f1c
      jackstay cancel s-4f1c --json

    Exits 0 when it is over or will be, also when there was nothing to cancel; 1 when there is no such session.
    """
    store = open_store(home)
    answer = cancel_run(AgentSession(session, store))
    state = stored_state(store, session)
    if as_json:
        said = {"session_id": session, "run_id": state.run_id, "answer": answer, "by": person()}
        click.echo(encode({**said, "outcome": state.outcome}))
        return
    click.echo(_said(answer, state, home))


def _said(answer: CancelAnswer, state: RunState, home: str | None) -> str:
    name = state.session_id
    match answer:
        case "cancelled":
            return f"the run of session {name} is cancelled"
        case "ordered":
            look = command_line("sessions", "show", name, home=home)
            return f"session {name} is being run: it stops within a second or two, see: {look}"
        case "over":
            return f"nothing to cancel: the last run of session {name} has ended ({state.outcome})"
