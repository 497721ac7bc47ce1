"""How is a run stopped from outside: by its own program, or by another process through the session's inbox?"""

import asyncio
import contextlib
import logging
from collections.abc import Callable
from typing import Literal

from msgspec.structs import replace

from jackstay.core.errors import AlreadyDecided, Conflict, SessionBusy, StoreError, UnknownSession
from jackstay.core.inputs import Below, Cancelled
from jackstay.core.state import RunState
from jackstay.engine.machine import step
from jackstay.engine.ports import Posted, Record, Stored
from jackstay.engine.stopping import CANCEL
from jackstay.runtime.below import children, sum_of
from jackstay.runtime.commands import person
from jackstay.runtime.session import AgentSession

WATCH_S = 1.0
_KEY = (
    "command/cancel/"  # and the run's id: an order that came too late keeps none out that is meant for the next
)
CancelAnswer = Literal["cancelled", "ordered", "over"]
log = logging.getLogger("jackstay")


class Control:
    """How somebody outside stops a run: for good, or so that it can be taken up again."""

    def __init__(self, above: "Control | None" = None) -> None:
        """`above` is that of the run whose subagent this one is: it is stopped in the same way."""
        self.final = False
        self.by = "an interruption"
        self._above = above

    def said(self) -> tuple[str, bool]:
        """By whom, and whether for good."""
        if self._above is None or self.final:
            return self.by, self.final
        return self._above.said()


class Watch:
    """Looks for an order to cancel every WATCH_S seconds, however long something lasts.

    It looks on once it has stopped the task, which may take its time: what looks also keeps the lease.
    """

    def __init__(self, ordered: Callable[[], str | None], control: Control) -> None:
        self._ordered, self._control = ordered, control
        self._task: asyncio.Task[object] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._heard = False
        self._rang = False

    def start(self) -> None:
        """Watch over the current task."""
        self._task = asyncio.current_task()
        self._arm()

    def stop(self) -> None:
        """Watch no more, and leave nothing of it on the task."""
        if self._timer is not None:
            self._timer.cancel()
        self.heeded()

    def heeded(self) -> bool:
        """Was it this watch alone that stopped the task? Then the task may go on to its end."""
        if not self._rang or self._task is None:
            return False
        self._rang = False
        return self._task.uncancel() == 0

    def _arm(self) -> None:
        self._timer = asyncio.get_running_loop().call_later(WATCH_S, self._ring)

    def _ring(self) -> None:
        self._arm()
        try:
            by = self._ordered()
        except StoreError as problem:  # the next commit will tell it to who runs the session
            log.warning("inbox=unreadable error=%s", problem)
            by = None
        if by is None or self._task is None or self._heard:
            return
        self._control.by, self._control.final = by, True
        self._heard = self._rang = True
        self._task.cancel()


def cancel(session: AgentSession, *, by: str | None = None) -> CancelAnswer:
    """End the session's run for good, from any process; nothing that is still to come of it counts.

    "cancelled": nobody was running it, it is over now, every open call is answered. "ordered": a worker runs it
    and will stop within a second or two; if that one dies, whoever resumes the run ends it. "over": there was
    nothing to cancel. Raises UnknownSession.
    """
    author = by or person()
    while True:
        stored = session.store.load(session.session_id)
        if stored is None:
            raise UnknownSession(session.session_id)
        if not stored.state.is_open:
            return "over"
        if stored.lease is not None:
            return _order(session, stored, author)
        try:
            _end(session, stored, author)
        except (Conflict, SessionBusy):
            continue  # somebody took it up, or ended it, in between
        return "cancelled"


def end_below(session: AgentSession, state: RunState, by: str) -> tuple[Below, ...]:
    """End whatever subagents of a run are not through; what all of them have done by then."""
    for child in children(session.store, state):
        if child.is_open:
            cancel(AgentSession(child.session_id, session.store, now=session.now), by=by)
    done = replace(sum_of(children(session.store, state)), waiting=())
    return (done,) if done.policies else ()


def _order(session: AgentSession, stored: Stored, by: str) -> CancelAnswer:
    run_id = stored.state.run_id
    item = Posted(0, f"{_KEY}{run_id}", command=CANCEL, data={"by": by, "run_id": run_id})
    with contextlib.suppress(AlreadyDecided):  # the same order waits already
        session.store.post(session.session_id, item)
    return "ordered"


def _end(session: AgentSession, stored: Stored, by: str) -> None:
    state = stored.state
    if any(child.is_open for child in children(session.store, state)):
        _order(session, stored, by)  # should we die in between, whoever resumes ends the rest
    made = step(state, Cancelled(session.now(), by, below=end_below(session, state, by)))
    drained = [item.number for item in session.store.inbox(session.session_id)]
    record = Record(made.state, made.appended, made.amended, made.events, made.artifacts, drained)
    session.store.commit(session.session_id, stored.version, record)
