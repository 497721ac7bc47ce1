"""Where do sessions live? In one SQLite file, a row per commit; several processes may use it at once."""

import sqlite3
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec

from jackstay.core import ids
from jackstay.core.errors import AlreadyDecided, Conflict, UnknownSession
from jackstay.core.events import Event
from jackstay.core.phase import Phase
from jackstay.core.state import RunState
from jackstay.core.unpacking import EventReader, StepMessages, step_messages
from jackstay.core.wire import encode
from jackstay.engine.ports import Lease, PendingSession, Posted, Record, SessionInfo, Stored
from jackstay.store import leases, steps, tables
from jackstay.store.database import Database, Synchronous
from jackstay.store.steps import Mended, Step
from jackstay.store.tables import SHIFT

PAGE = 200  # steps that a reader of events takes in at a time


class _Tear(msgspec.Struct, frozen=True):
    """What the next commit of a damaged session has to put right: the steps after `last` go aside."""

    version: int
    last: int
    chain: int
    mended: Mended


class _Hold(msgspec.Struct, gc=False):
    """A lease taken through this store, and what the session came to with the commit that took it last.

    `run_id` is the run that is under way, None when there is none. `posted`: something may wait in the inbox.
    """

    owner: str
    key: int
    version: int
    chain: int
    run_id: str | None
    phase: Phase
    posted: bool

    def awaits(self, expected: int, record: Record) -> bool:
        """Is this the run's next step, one that leaves all columns but the counters as they are?"""
        head, lease = record.head, record.lease
        if self.version != expected or lease is None or lease.owner != self.owner or record.drained:
            return False
        if head.run_id != self.run_id or head.outcome is not None:
            return False
        return head.policy.phase.phase is self.phase and not steps.title(record.appended)


class SQLiteStore:
    """The session store in a file (`engine.ports.SessionStore`).

    `synchronous="normal"` survives the death of the process at any point; `"full"` also survives a power cut
    without losing the last steps, for one disk flush per commit. `now` gives epoch seconds. A call waits up to
    `wait_s` seconds for another process to finish its commit. Threads may share a store; they take turns.
    """

    def __init__(
        self,
        path: str | Path,
        *,
        synchronous: Synchronous = "normal",
        now: Callable[[], float] = time.time,
        wait_s: float = 5.0,
    ) -> None:
        self.database = Database(Path(path), synchronous=synchronous, wait_s=wait_s)
        self.now = now
        self._held: dict[str, _Hold] = {}  # a commit without a lease gives back the one taken here
        self._tears: dict[str, _Tear] = {}

    # -- writing -------------------------------------------------------------------------------------------

    def commit(self, session_id: str, expected: int, record: Record) -> int:
        """See the port. Without a lease it passes while none is live or this store took the one there is."""
        tear = self._tears.get(session_id)
        if tear is not None and tear.version != expected:
            tear = None
        if tear is not None and tear.mended.filled:
            record = msgspec.structs.replace(record, appended=[*tear.mended.filled, *record.appended])
        data, now, version = steps.pack(record), self.now(), expected + 1
        hold = self._held.get(session_id) if tear is None else None
        with self.database.writing as connection:
            if (
                hold is not None
                and hold.awaits(expected, record)
                and _follows(connection, hold, record, data, now)
            ):
                return version
            key, chain, run_id = self._admitted(connection, session_id, expected, record, now)
            if tear is not None:
                tables.set_aside(connection, key, tear.last, expected)
                chain, run_id = tear.chain, None
            step = steps.next_step(version, chain, run_id, record, data)
            values = tables.values(version, step.checksum, record, now)
            if key:
                connection.execute(tables.UPDATE, (*values, key))
            else:
                key = connection.execute(tables.INSERT, (*values, session_id)).lastrowid or 0
            tables.add(connection, key, step, record)
            if record.lease is not None:
                self._held[session_id] = _hold(connection, key, step, record.head, record.lease.owner)
        self._tears.pop(session_id, None)
        if record.lease is None:
            self._held.pop(session_id, None)
        return version

    def _admitted(
        self, connection: sqlite3.Connection, session_id: str, expected: int, record: Record, now: float
    ) -> tuple[int, int, str | None]:
        """The session's key, chain and run, once the commit is known to be allowed; key 0 for a new one."""
        row = connection.execute(tables.FIND, (session_id,)).fetchone()
        if row is None:
            ids.session_id(session_id)
            leases.admit(session_id, expected, 0, None, now)
            return 0, steps.seed(session_id), None
        key, version, chain, run_id, holder, until = row
        hold = self._held.get(session_id)
        held = hold.owner if hold is not None else None
        owner = record.lease.owner if record.lease is not None else held
        rival = leases.rival(tables.lease(holder, until), owner, now)
        leases.admit(session_id, expected, version, rival, now)
        return key, chain, run_id

    def renew(self, session_id: str, lease: Lease) -> bool:
        """See the port. False also when nobody holds it: what was given back is claimed by a commit only."""
        with self.database.writing as connection:
            changed = connection.execute(
                "UPDATE sessions SET lease_until = ? WHERE id = ? AND lease_owner = ?",
                (lease.until, session_id, lease.owner),
            ).rowcount
        return changed > 0

    def post(self, session_id: str, *items: Posted, expected: int | None = None) -> int:
        """See the port."""
        number: int | None = None
        with self.database.writing as connection:
            row = connection.execute(tables.FIND, (session_id,)).fetchone()
            if row is None:
                raise UnknownSession(session_id)
            key, version, *_ = row
            if expected is not None and expected != version:
                raise Conflict(session_id, expected, version)
            for item in items:
                try:
                    number = connection.execute(tables.POST, (key, item.key, encode(item))).lastrowid
                except sqlite3.IntegrityError:
                    raise AlreadyDecided(session_id, item.key) from None
            if hold := self._held.get(session_id):
                hold.posted = True
        return number or 0

    def posted(self, session_id: str) -> bool:
        """See the port."""
        hold = self._held.get(session_id)
        return hold is None or hold.posted

    def delete(self, session_id: str) -> bool:
        """See the port. What was deleted is also wiped from the file."""
        with self.database.looking as connection:
            connection.execute("PRAGMA secure_delete = ON").fetchone()
        with self.database.writing as connection:
            key = tables.key_of(connection, session_id)
            if key is not None:
                tables.delete(connection, key)
        with self.database.looking as connection:
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
            connection.execute("PRAGMA secure_delete = FAST").fetchone()
        self._held.pop(session_id, None)
        self._tears.pop(session_id, None)
        return key is not None

    # -- reading -------------------------------------------------------------------------------------------

    def load(self, session_id: str) -> Stored | None:
        """See the port. What was dropped is set aside in the file by the next commit, not by looking at it."""
        with self.database.reading as connection:
            row = tables.session(connection, session_id)
            if row is None:
                return None
            head = steps.opened(session_id, row.head, row.chain, row.checksum)
            found = tables.steps_after(connection, row.key * SHIFT)
            rows = steps.read(session_id, found, end=row.chain)
        lease = leases.live(row.lease, self.now())
        if rows.tear is None:
            return Stored(row.version, steps.whole(head, rows.messages), (), lease)
        mended = steps.mend(head, rows)
        self._tears[session_id] = _Tear(row.version, rows.version, rows.chain, mended)
        return Stored(row.version, mended.state, (steps.loss(session_id, head, rows),), lease)

    def head(self, session_id: str) -> Stored | None:
        """See the port."""
        with self.database.looking as connection:
            row = tables.session(connection, session_id)
        if row is None:
            return None
        head = steps.opened(session_id, row.head, row.chain, row.checksum)
        return Stored(row.version, head, (), leases.live(row.lease, self.now()))

    def inbox(self, session_id: str) -> tuple[Posted, ...]:
        """See the port."""
        with self.database.looking as connection:
            found = tables.inbox(connection, session_id)
        return tuple([tables.posted(number, item) for number, item in found])

    def events(self, session_id: str, after: int = 0) -> Iterator[Event]:
        """See the port. Of a damaged session: those before the damage."""
        with self.database.reading as connection:
            key = tables.key_of(connection, session_id)
            if key is None:
                return
            start = tables.start_for(connection, session_id, key, after)
        reader = EventReader(session_id, run_id=start.run_id, earlier=self._earlier(key, start.id))
        at, chain = start.id, start.chain
        while True:
            with self.database.looking as connection:
                page = list(steps.readable(tables.steps_after(connection, at, limit=PAGE)))
            for step in page:
                if not steps.fits(chain, step):
                    return
                at, chain = key * SHIFT + step.version, step.checksum
                for event in reader.read(step.data, step.first_seq, step.run_id):
                    if event.seq is not None and event.seq > after:
                        yield event
            if len(page) < PAGE:
                return

    def _earlier(self, key: int, at: int) -> Iterator[StepMessages]:
        """The messages of the steps up to the one with this id, latest first."""
        while True:
            with self.database.looking as connection:
                found = tables.step_up_to(connection, key, at)
            if found is None:
                return
            at = found[0] - 1
            yield step_messages(found[2])

    def artifact(self, session_id: str, call_id: str) -> str | None:
        """See the port."""
        with self.database.looking as connection:
            return tables.artifact(connection, session_id, call_id)

    def pending(self, limit: int = 1000) -> list[PendingSession]:
        """See the port. Calls with a decision in the inbox do not wait any more."""
        with self.database.reading as connection:
            return steps.pending(tables.waiting(connection))[:limit]

    def sessions(self, limit: int = 1000) -> list[SessionInfo]:
        """See the port. `waiting` counts the calls that waited when the last step was stored."""
        with self.database.looking as connection:
            return tables.listed(connection, limit)

    def check(self, *, repair: bool = False) -> list[str]:
        """What is wrong with the file, a sentence each; with `repair` also what was done about it."""
        from jackstay.store.check import check

        return check(self, repair=repair)

    def close(self) -> None:
        """See the port. The store may be used again afterwards."""
        self.database.close()


def _follows(connection: sqlite3.Connection, hold: _Hold, record: Record, data: bytes, now: float) -> bool:
    """Commit the step that a hold awaits; False when it is not so simple, and then nothing is changed.

    Nothing is looked up: the conditions of the update say whether all is as we left it and nothing is posted.
    """
    step = steps.next_step(hold.version + 1, hold.chain, hold.run_id, record, data)
    counters = tables.counters(step.version, step.checksum, record, now)
    where = (hold.key, hold.version, hold.owner)
    if not connection.execute(tables.UPDATE_COUNTERS, (*counters, *where)).rowcount:
        return False
    tables.add(connection, hold.key, step, record)
    hold.version, hold.chain, hold.posted = step.version, step.checksum, False
    return True


def _hold(connection: sqlite3.Connection, key: int, step: Step, head: RunState, owner: str) -> _Hold:
    run_id = head.run_id if head.outcome is None else None
    posted = tables.is_posted(connection, key)
    return _Hold(owner, key, step.version, step.checksum, run_id, head.policy.phase.phase, posted)
