"""How does a run end before its work is done?"""

from jackstay.core.errors import ErrorInfo
from jackstay.core.events import ReasonEndEvent
from jackstay.core.inputs import Below, Cancelled, Command
from jackstay.engine import acting, subagents, texts
from jackstay.engine.bounds import RunBounds
from jackstay.engine.draft import Draft

CANCEL = "cancel"  # the command; its detail names the run it is about
_MOVED_ON = ErrorInfo("cancelled", texts.MOVED_ON)


def close_open_run(draft: Draft, below: tuple[Below, ...], bounds: RunBounds) -> None:
    """A new prompt ends what was under way, every open call answered: nothing stale can match later."""
    state = draft.state
    if not state.is_open:
        return
    for one in below:
        subagents.take_in(draft, one, bounds)
    if state.reasoning:
        draft.tell(ReasonEndEvent, state.turn, "", (), None, _MOVED_ON)
    if draft.batch is not None:
        acting.give_up(draft, draft.batch, texts.MOVED_ON)
    if not state.is_pending:
        draft.end("cancelled", texts.MOVED_ON)


def cancel(draft: Draft, cancelled: Cancelled, bounds: RunBounds) -> None:
    """Stop a run that is under way or waits; one that has ended stays as it is."""
    state = draft.state
    if not state.is_open or (cancelled.resumable and state.is_pending):
        return
    for below in cancelled.below:
        subagents.take_in(draft, below, bounds)
    text = texts.cancelled(cancelled.by)
    if state.reasoning:
        draft.tell(ReasonEndEvent, state.turn, "", (), None, ErrorInfo("cancelled", text))
    if draft.batch is not None:
        acting.give_up(draft, draft.batch, text, stopped=cancelled)
    if cancelled.resumable:
        if state.reasoning:  # its end was told: the turn is asked for anew when the run goes on
            draft.set(turn=state.turn - 1, reasoning=False)
        draft.tell_end("cancelled", text)
    else:
        draft.end("cancelled", text)


def ordered(commands: tuple[Command, ...], run_id: str) -> Command | None:
    """The command to cancel this run, if there is one."""
    return next((c for c in commands if c.name == CANCEL and c.detail.get("run_id") == run_id), None)
