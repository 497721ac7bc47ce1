"""`jackstay approve`, `reject`, `skip`: decide what waits, from any terminal."""

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import click
import msgspec
from msgspec.structs import replace

from jackstay.cli.amend_args import amended, tool_of
from jackstay.cli.override import PLAN_APPROVED, by_a_person, written_down
from jackstay.cli.plain import command_line
from jackstay.cli.stored import open_store, stored_state
from jackstay.cli.switches import calls_argument, home_option, json_option, session_argument
from jackstay.core.approvals import HITLDecision, HITLTask
from jackstay.core.errors import AmbiguousCall, JackstayError
from jackstay.core.wire import encode
from jackstay.engine.telling import told_decision
from jackstay.runtime.commands import approve_plan, person, plan_to_approve, plan_waits
from jackstay.runtime.hitl import HITL, why_not
from jackstay.runtime.session import AgentSession

F = TypeVar("F", bound=Callable[..., Any])


def deciding(command: F) -> F:
    """What the three verbs share."""
    for option in reversed(
        (
            session_argument,
            calls_argument,
            click.option("--all", "every", is_flag=True, help="All calls that wait in the session."),
            click.option("--comment", metavar="TEXT", help="What the model reads with it."),
            home_option,
            json_option,
        )
    ):
        command = option(command)
    return command


@click.command()
@deciding
@click.option("--plan", is_flag=True, help="Approve the plan that waits, instead of calls.")
@click.option("--always", is_flag=True, help="Also add the rule that was shown, for the rest of the session.")
@click.option(
    "--set",
    "settings",
    multiple=True,
    metavar="ARG=VALUE",
    help="Run the call with another argument; VALUE is JSON, or else plain text. May be given several times.",
)
def approve(
    session: str,
    call_ids: tuple[str, ...],
    comment: str | None,
    **rest: Any,
) -> None:
    """Let waiting calls run, or a plan be carried out, once the session is resumed.

    \b
    Examples:
      jackstay approve s-4f1c call_3
      jackstay approve s-4f1c --all --comment "only this once"
      jackstay approve s-4f1c call_3 --set timeout=60
      jackstay approve s-4f1c --plan

    Exits 0 when it is stored, 1 when there is no such session or call or it was decided already.
    """
    always, settings, plan = rest.pop("always"), rest.pop("settings"), rest.pop("plan")
    if plan:
        if call_ids or always or settings or rest["every"]:
            raise click.UsageError("--plan approves the plan and nothing else: decide the calls by themselves")
        _approve_plan(session, comment, Where(**rest))
        return

    def decide(task: HITLTask) -> HITLDecision:
        if always and task.always_rule is None:
            raise click.UsageError(f"no rule can be added for {task.call_id}: approve it without --always")
        args = amended(task, settings, tool_of(task, rest["home"])) if settings else None
        return HITLDecision.approve(always, comment=comment, modified_args=args)

    if settings and (rest["every"] or len(call_ids) > 1):
        raise click.UsageError("--set changes the arguments of one call: name just that one")
    if settings and always:
        raise click.UsageError(
            "--always adds the rule that was shown for the unchanged call: leave out --set or --always"
        )
    _decide(session, call_ids, decide, Where(**rest))


@click.command()
@deciding
@click.option(
    "--continue", "go_on", is_flag=True, help="Let the run go on even if this was its only waiting call."
)
def reject(session: str, call_ids: tuple[str, ...], comment: str | None, go_on: bool, **rest: Any) -> None:
    """Turn waiting calls down. Rejecting the only one ends the run.

    \b
    Examples:
      jackstay reject s-4f1c call_3 --comment "not on this branch"
      jackstay reject s-4f1c --all --continue

    Exits 0 when it is stored, 1 when there is no such session or call or it was decided already.
    """
    _decide(session, call_ids, lambda task: HITLDecision.reject(comment, continue_run=go_on), Where(**rest))


@click.command()
@deciding
def skip(session: str, call_ids: tuple[str, ...], comment: str | None, **rest: Any) -> None:
    """Go on without running waiting calls; the comment stands in for their result.

    \b
    Example:
      jackstay skip s-4f1c call_3 --comment "I ran it myself: 12 passed"

    Exits 0 when it is stored, 1 when there is no such session or call or it was decided already.
    """
    _decide(session, call_ids, lambda task: HITLDecision.skip(comment), Where(**rest))


class Where(msgspec.Struct, frozen=True):
    """Which home is meant, whether all calls are, and how the answer is printed."""

    every: bool
    home: str | None
    as_json: bool


def _approve_plan(session_id: str, comment: str | None, where: Where) -> None:
    """Record and post it, and say what comes next."""
    by_a_person()
    store = open_store(where.home)
    session = AgentSession(session_id, store)
    state = stored_state(store, session_id)
    if comment and session.pending_tasks():
        raise click.UsageError("calls wait in this session too: give the comment with their decision")
    plan_to_approve(session)
    written_down(where.home, state, replace(PLAN_APPROVED, said=comment or ""))
    approve_plan(session, comment=comment)
    if where.as_json:
        said = {"session_id": session_id, "run_id": state.run_id, "plan": "approved", "by": person()}
        click.echo(encode(said))
        return
    click.echo(f"the plan of session {session_id} is approved; executing begins when it goes on")
    left = len(session.pending_tasks())
    if left:
        click.echo(f"{left} calls wait as well, see: {command_line('pending', session_id, home=where.home)}")
    click.echo(f"go on with: {command_line('resume', session_id, home=where.home)}")


def _decide(
    session_id: str, call_ids: Sequence[str], decide: Callable[[HITLTask], HITLDecision], where: Where
) -> None:
    by_a_person()
    store = open_store(where.home)
    run_id = stored_state(store, session_id).run_id
    session = AgentSession(session_id, store)
    waiting = {task.key: task for task in HITL.get_pending_tasks(session)}
    if where.every and call_ids:
        raise click.UsageError("--all means every call that waits: name calls, or say --all")
    wanted = list(waiting) if where.every else call_ids
    chosen = [_find(session, waiting, call_id) for call_id in wanted]
    if not chosen:
        raise _nothing_chosen(session, waiting)
    decisions = {task.key: decide(task) for task in chosen}
    HITL.submit_all(session, decisions)
    for key, decision in decisions.items():
        task = waiting[key]
        if where.as_json:
            said = {
                "call_id": task.call_id,
                "tool_name": task.tool_name,
                "path": task.path,
                "decision": told_decision(decision),
            }
            click.echo(encode({"session_id": session_id, "run_id": run_id, **said}))
        else:
            click.echo(f"{_DONE[decision.kind]} {key} ({task.tool_name})")
    if not where.as_json:
        left = len(HITL.get_pending_tasks(session))
        also = f"{left} more wait; " if left else ""
        click.echo(f"{also}go on with: {command_line('resume', session_id, home=where.home)}")


_DONE = {"approve": "approved", "reject": "rejected", "skip": "skipped"}


def _find(session: AgentSession, waiting: dict[str, HITLTask], call_id: str) -> HITLTask:
    found = [task for task in waiting.values() if call_id in (task.key, task.call_id)]
    if len(found) > 1:
        raise AmbiguousCall(call_id, tuple(task.key for task in found))
    if found:
        return found[0]
    raise why_not(session, call_id, tuple(waiting))


def _nothing_chosen(session: AgentSession, waiting: dict[str, HITLTask]) -> Exception:
    if waiting:
        return click.UsageError(f"name the calls, or say --all; waiting are: {', '.join(waiting)}")
    name = session.session_id
    if plan_waits(session):
        return JackstayError(f"no call waits in session {name!r}, but a plan: `jackstay approve {name} --plan`")
    if session.outcome == "pending":
        return JackstayError(
            f"all that waited in session {name!r} is decided: `jackstay resume {name}` goes on"
        )
    return JackstayError(f"nothing waits in session {name!r}: `jackstay pending` shows what waits elsewhere")
