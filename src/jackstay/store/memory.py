"""Where do sessions live that need not outlast their process? Here, as lines of JSON."""

import threading
import time
from bisect import bisect_right
from collections.abc import Callable, Iterator
from typing import Any

import msgspec
from msgspec.structs import astuple, replace

from jackstay.core import ids
from jackstay.core.errors import AlreadyDecided, Conflict, UnknownSession
from jackstay.core.events import Event
from jackstay.core.forms import EVENT_KINDS, EVENTS
from jackstay.core.messages import Message
from jackstay.core.state import RunState
from jackstay.core.wire import convert, decode_head, decode_json, encode
from jackstay.engine.ports import Lease, PendingSession, Posted, Record, SessionInfo, Stored
from jackstay.store import leases, steps

_SHORT: dict[type, str] = {kind: form.short for kind, form in EVENTS.items()}


class _Session(msgspec.Struct):
    """What is kept of a session: a line of JSON a commit, those of a request that is over in one piece.

    A line is an `_Added`. `firsts` are the numbers of the pieces' first events, `whole` is how many pieces hold
    requests that are over.
    """

    created: float
    head: RunState | bytes
    title: str = ""
    updated: float = 0.0
    version: int = 0
    lease: Lease | None = None
    pieces: list[bytes] = []
    firsts: list[int] = []
    whole: int = 0
    inbox: dict[int, tuple[str, bytes]] = {}
    artifacts: dict[str, str] = {}

    def add(self, record: Record, line: bytes) -> None:
        """Keep the line of a commit, and its head: a run that goes on has it anyway, otherwise as JSON."""
        head, events = record.head, record.events
        seq = events[0].seq if events else None
        self.firsts.append(head.seq + 1 if seq is None else seq)
        self.pieces.append(line)
        self.head = head if record.lease else encode(head)
        if record.lease is None:
            self.pieces[self.whole :] = [b"\n".join(self.pieces[self.whole :])]
            del self.firsts[self.whole + 1 :]
            self.whole += 1

    def added(self) -> Iterator["_Added"]:
        """What the commits added, in order."""
        return _read(self.pieces.copy())

    def added_after(self, seq: int) -> Iterator["_Added"]:
        """The same, without what is known to hold no event with a number above `seq`."""
        return _read(self.pieces[max(0, bisect_right(self.firsts, seq + 1) - 1) :])


class _Added(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """What a commit added. Events stand as their kinds, by short names, and their values."""

    kinds: tuple[str, ...]
    values: tuple[tuple[Any, ...], ...]
    appended: tuple[Message, ...]
    amended: tuple[tuple[int, Message], ...]

    @property
    def events(self) -> Iterator[Event]:
        """The events, in order."""
        for short, values in zip(self.kinds, self.values, strict=True):
            kind = EVENT_KINDS[short][0]
            yield convert(dict(zip(kind.__struct_fields__, values, strict=True)), kind)


def _line(record: Record) -> bytes:
    """The record as an `_Added`, in JSON. Raises TypeError for transient events."""
    try:
        kinds = [_SHORT[type(event)] for event in record.events]
    except KeyError as kind:
        raise TypeError(f"{kind} is transient: such events are never stored") from None
    return encode((kinds, list(map(astuple, record.events)), record.appended, record.amended))


def _read(pieces: list[bytes]) -> Iterator[_Added]:
    for piece in pieces:
        for line in piece.split(b"\n"):
            yield convert(decode_json(line), _Added)


def _encoded(head: RunState | bytes) -> bytes:
    return head if isinstance(head, bytes) else encode(head)


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
        line, now = _line(record), self._now()
        with self._lock:
            kept = self._sessions.get(session_id)
            if kept is None:
                ids.session_id(session_id)
                kept = _Session(now, record.head)
            lease, version, held = record.lease, kept.version, kept.lease
            if version != expected or (lease and held and lease.owner != held.owner):
                rival = leases.rival(held, lease.owner, now) if lease is not None else None
                leases.admit(session_id, expected, version, rival, now)
            if not version:
                self._sessions[session_id] = kept
            kept.add(record, line)
            kept.version, kept.lease, kept.updated = version + 1, lease, now
            if not kept.title:
                kept.title = steps.title(record.appended)
            if record.artifacts or record.drained:
                kept.artifacts |= {artifact.call_id: artifact.text for artifact in record.artifacts}
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
            found, added = self._stored(kept), kept.added()
        messages: list[Message] = []
        for step in added:
            for place, message in step.amended:
                messages[place] = message
            messages.extend(step.appended)
        return replace(found, state=steps.whole(found.state, messages))

    def head(self, session_id: str) -> Stored | None:
        """See the port."""
        with self._lock:
            kept = self._sessions.get(session_id)
            return None if kept is None else self._stored(kept)

    def _stored(self, kept: _Session) -> Stored:
        head = decode_head(_encoded(kept.head))
        return Stored(kept.version, head, (), leases.live(kept.lease, self._now()))

    def inbox(self, session_id: str) -> tuple[Posted, ...]:
        """See the port."""
        with self._lock:
            kept = self._sessions.get(session_id)
            if kept is None or not kept.inbox:
                return ()
            items = list(kept.inbox.items())
        return tuple(replace(convert(decode_json(data), Posted), number=number) for number, (_, data) in items)

    def posted(self, session_id: str) -> bool:
        """See the port."""
        kept = self._sessions.get(session_id)
        return kept is not None and bool(kept.inbox)

    def events(self, session_id: str, after: int = 0) -> Iterator[Event]:
        """See the port."""
        with self._lock:
            kept = self._sessions.get(session_id)
            added = kept.added_after(after) if kept is not None else iter(())
        for step in added:
            for event in step.events:
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
            kept = [
                (_encoded(one.head), {key for key, _ in one.inbox.values()}) for one in self._sessions.values()
            ]
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
    state = decode_head(_encoded(kept.head))
    return SessionInfo(
        name, kept.created, kept.updated, state.outcome, state.policy.phase.phase, state.turn,
        len(steps.waiting(state)), kept.title, state.usage,
    )  # fmt: skip
