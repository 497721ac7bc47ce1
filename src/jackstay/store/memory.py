"""Where do sessions live that need not outlast their process? Here, as the bytes the file would hold."""

import threading
import time
from collections.abc import Callable, Iterator

import msgspec

from jackstay.core import ids
from jackstay.core.errors import AlreadyDecided, Conflict, UnknownSession
from jackstay.core.events import Event
from jackstay.core.messages import Message
from jackstay.core.unpacking import EventReader, step_messages
from jackstay.core.wire import convert, decode_head, decode_json, encode
from jackstay.engine.ports import Lease, PendingSession, Posted, Record, SessionInfo, Stored
from jackstay.store import leases, steps
from jackstay.store.steps import Step


class _Session(msgspec.Struct):
    """What is kept of a session. The step list only ever grows."""

    created: float
    title: str = ""
    updated: float = 0.0
    run_id: str | None = None
    lease: Lease | None = None
    head: bytes = b""
    steps: list[Step] = []
    inbox: dict[int, tuple[str, bytes]] = {}
    artifacts: dict[str, str] = {}

    @property
    def version(self) -> int:
        return len(self.steps)


class MemoryStore:
    """The session store in memory (`engine.ports.SessionStore`): the same contract as the file's.

    What is loaded shares nothing with what was committed. `now` gives epoch seconds. Threads may share it.
    """

    def __init__(self, *, now: Callable[[], float] = time.time) -> None:
        self._now = now
        self._lock = threading.Lock()
        self._sessions: dict[str, _Session] = {}
        self._posted = 0

    def commit(self, session_id: str, expected: int, record: Record) -> int:
        """See the port. Without a lease in it, it gives back whichever there is: this store took it."""
        data, head, now = steps.pack(record), encode(record.head), self._now()
        with self._lock:
            kept = self._sessions.get(session_id)
            if kept is None:
                ids.session_id(session_id)
                kept = _Session(now)
            lease, version = record.lease, len(kept.steps)
            rival = leases.rival(kept.lease, lease.owner, now) if lease is not None else None
            leases.admit(session_id, expected, version, rival, now)
            if not version:
                self._sessions[session_id] = kept
            kept.steps.append(steps.next_step(version + 1, None, kept.run_id, record, data))
            kept.head, kept.run_id, kept.lease, kept.updated = head, record.head.run_id, lease, now
            kept.title = kept.title or steps.title(record.appended)
            for artifact in record.artifacts:
                kept.artifacts[artifact.call_id] = artifact.text
            for number in record.drained:
                kept.inbox.pop(number, None)
            return version + 1

    def renew(self, session_id: str, lease: Lease) -> bool:
        """See the port. False also when nobody holds it: what was given back is claimed by a commit only."""
        with self._lock:
            kept = self._sessions.get(session_id)
            if kept is None or kept.lease is None or kept.lease.owner != lease.owner:
                return False
            kept.lease = lease
            return True

    def post(self, session_id: str, *items: Posted, expected: int | None = None) -> int:
        """See the port."""
        data = [(item.key, encode(item)) for item in items]
        with self._lock:
            kept = self._sessions.get(session_id)
            if kept is None:
                raise UnknownSession(session_id)
            if expected is not None and expected != kept.version:
                raise Conflict(session_id, expected, kept.version)
            known = {key for key, _ in kept.inbox.values()}
            for key, _ in data:
                if key in known:
                    raise AlreadyDecided(session_id, key)
                known.add(key)
            for entry in data:
                self._posted += 1
                kept.inbox[self._posted] = entry
            return self._posted

    def delete(self, session_id: str) -> bool:
        """See the port."""
        with self._lock:
            return self._sessions.pop(session_id, None) is not None

    def load(self, session_id: str) -> Stored | None:
        """See the port."""
        with self._lock:
            kept = self._sessions.get(session_id)
            if kept is None:
                return None
            head, found = self._stored(kept), kept.steps.copy()
        messages: list[Message] = []
        for step in found:
            steps.add_messages(step, messages)
        return msgspec.structs.replace(head, state=steps.whole(head.state, messages))

    def head(self, session_id: str) -> Stored | None:
        """See the port."""
        with self._lock:
            kept = self._sessions.get(session_id)
            return None if kept is None else self._stored(kept)

    def _stored(self, kept: _Session) -> Stored:
        return Stored(kept.version, decode_head(kept.head), (), leases.live(kept.lease, self._now()))

    def inbox(self, session_id: str) -> tuple[Posted, ...]:
        """See the port."""
        with self._lock:
            kept = self._sessions.get(session_id)
            if kept is None or not kept.inbox:
                return ()
            items = list(kept.inbox.items())
        return tuple(
            msgspec.structs.replace(convert(decode_json(data), Posted), number=number)
            for number, (_, data) in items
        )

    def posted(self, session_id: str) -> bool:
        """See the port."""
        kept = self._sessions.get(session_id)
        return kept is not None and bool(kept.inbox)

    def events(self, session_id: str, after: int = 0) -> Iterator[Event]:
        """See the port."""
        with self._lock:
            kept = self._sessions.get(session_id)
        if kept is None:
            return
        start, run_id = 0, ""
        for place in range(len(kept.steps) - 1, 0, -1) if after > 0 else ():
            if kept.steps[place].first_seq <= after + 1:
                start = place
                break
        before = kept.steps[:start]
        run_id = next((step.run_id for step in reversed(before) if step.run_id is not None), "")
        reader = EventReader(
            session_id, run_id=run_id, earlier=(step_messages(step.data) for step in reversed(before))
        )
        for step in kept.steps[start:]:
            for event in reader.read(step.data, step.first_seq, step.run_id):
                if event.seq is not None and event.seq > after:
                    yield event

    def artifact(self, session_id: str, call_id: str) -> str | None:
        """See the port."""
        with self._lock:
            kept = self._sessions.get(session_id)
            return None if kept is None else kept.artifacts.get(call_id)

    def pending(self, limit: int = 1000) -> list[PendingSession]:
        """See the port. Calls with a decision in the inbox do not wait any more."""
        with self._lock:
            kept = [(one.head, {key for key, _ in one.inbox.values()}) for one in self._sessions.values()]
        waiting = steps.pending(kept)
        waiting.sort(key=lambda one: min(task.asked_at for task in one.tasks))
        return waiting[:limit]

    def sessions(self, limit: int = 1000) -> list[SessionInfo]:
        """See the port. `waiting` counts the calls that waited when the last step was stored."""
        with self._lock:
            found = [_info(name, kept) for name, kept in reversed(self._sessions.items())]
        found.sort(key=lambda one: one.updated, reverse=True)
        return found[:limit]

    def close(self) -> None:
        """See the port. What is stored stays."""


def _info(name: str, kept: _Session) -> SessionInfo:
    state = decode_head(kept.head)
    return SessionInfo(
        name, kept.created, kept.updated, state.outcome, state.policy.phase.phase, state.turn,
        len(steps.waiting(state)), kept.title, state.usage,
    )  # fmt: skip
