"""A conversation with durable state, as a program holds it."""

import time
from collections.abc import Callable, Iterator

from jackstay.core.approvals import HITLDecision, HITLTask
from jackstay.core.errors import UnknownSession
from jackstay.core.events import Event, Outcome
from jackstay.core.ids import session_id as checked
from jackstay.core.state import RunState
from jackstay.core.transcript import Transcript
from jackstay.engine.ports import SessionStore, Stored
from jackstay.runtime.below import still_waits


class AgentSession:
    """A session in a store. It keeps nothing itself: what it says is what is stored at that moment.

    `now` gives epoch seconds: the time of decisions made here.
    """

    def __init__(self, session_id: str, store: SessionStore, *, now: Callable[[], float] = time.time) -> None:
        self.session_id: str = checked(session_id)
        self.store, self.now = store, now

    @property
    def state(self) -> RunState:
        """The stored state with all messages; an empty one for a session in which nothing ran yet."""
        stored = self.store.load(self.session_id)
        return stored.state if stored is not None else RunState(self.session_id)

    @property
    def messages(self) -> Transcript:
        """The conversation so far."""
        return self.state.transcript

    @property
    def run_id(self) -> str:
        """The current or last run; the same across suspension and resume."""
        return self._head().run_id

    @property
    def version(self) -> int:
        """How many steps are stored; 0 while nothing is. It changes with everything that happens to the run."""
        stored = self.store.head(self.session_id)
        return stored.version if stored is not None else 0

    @property
    def outcome(self) -> Outcome | None:
        """How the last run ended; None when there was none or it is under way."""
        return self._head().outcome

    def is_pending(self) -> bool:
        """Does a batch of calls wait for people?"""
        return self._head().is_pending

    def pending_tasks(self) -> tuple[HITLTask, ...]:
        """The calls that nobody has decided yet, in the order the model asked for them.

        Those of subagents name the sessions they lie below in `path`.
        """
        decided = {item.key for item in self.store.inbox(self.session_id)}
        return tuple(
            task
            for task in self.waiting_tasks()
            if (still_waits(self.store, task) if task.path else task.call_id not in decided)
        )

    def waiting_tasks(self) -> tuple[HITLTask, ...]:
        """The calls that waited when the session was suspended, those decided since among them."""
        head = self._head()
        return head.batch.waiting if head.batch is not None and head.is_pending else ()

    def decisions(self) -> dict[str, HITLDecision]:
        """Decisions that were submitted and not yet carried out, by call id."""
        posted = self.store.inbox(self.session_id)
        found = {item.key: item.decision for item in posted if item.decision is not None}
        batch = self._head().batch
        if batch is not None:
            found |= {item.call.call_id: item.decision for item in batch.calls if item.decision is not None}
        return found

    def events(self, after: int = 0) -> Iterator[Event]:
        """The stored events with a number above `after`. Raises UnknownSession when nothing is stored."""
        if self.store.head(self.session_id) is None:
            raise UnknownSession(self.session_id)
        return self.store.events(self.session_id, after)

    def _head(self) -> RunState:
        stored: Stored | None = self.store.head(self.session_id)
        return stored.state if stored is not None else RunState(self.session_id)

    def __repr__(self) -> str:
        return f"AgentSession({self.session_id!r})"
