"""Where do sessions live? In one SQLite file, a row per commit; several processes may use it at once."""

import sqlite3
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec

from jackstay.core import ids
from jackstay.core.errors import AlreadyDecided, Conflict, UnknownSession
from jackstay.core.events import Event
from jackstay.core.progress import progress, settled
from jackstay.core.unpacking import EventReader, StepMessages, step_messages
from jackstay.core.wire import encode
from jackstay.engine.ports import Lease, PendingSession, Posted, Record, SessionInfo, Stored
from jackstay.store import leases, steps, tables
from jackstay.store.database import Database, Synchronous
from jackstay.store.steps import Mended
from jackstay.store.tables import SHIFT, Found

ROW_S = 10.0  # a running session's row is renewed when its lease is this much behind, in seconds
PAGE = 200  # steps that a reader of events takes in at a time


class _Tear(msgspec.Struct, frozen=True):
    """What the next commit of a damaged session has to put right: the steps after `last` go aside."""

    version: int
    last: int
    chain: int
    mended: Mended


class _Hold(msgspec.Struct, gc=False):
    """A lease taken through this store, and what the session came to with the commit that took it last.

    `until` and `settled` are those of the session's row. `posted`: something may wait in the inbox.
    """

    owner: str
    until: float
    key: int
    version: int
    chain: int
    run_id: str
    settled: tuple[object, ...]
    posted: bool

    def awaits(self, expected: int, record: Record) -> bool:
        """Is this the next step of the run, with nothing beside it?"""
        lease = record.lease
        return (
            self.version == expected
            and (lease is None or lease.owner == self.owner)
            and record.head.run_id == self.run_id
            and not record.drained
            and not record.artifacts
        )

    def covers(self, record: Record) -> bool:
        """May the session's row stay as it is when the progress is stored with the step?"""
        lease = record.lease
        return (
            lease is not None
            and lease.until - self.until < ROW_S
            and settled(record.head) == self.settled
            and not steps.title(record.appended)
        )


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
        hold = self._held.get(session_id)
        if hold is None or self._tears or not hold.awaits(expected, record) or not self._advance(hold, record):
            self._place(session_id, expected, record)
        if record.lease is None:
            self._held.pop(session_id, None)
        return expected + 1

    def _advance(self, hold: _Hold, record: Record) -> bool:
        """Commit the step that a hold awaits; False when it is not so simple, and then nothing is changed.

        Nothing is looked up: the statement itself finds out whether all is as we left it and nothing is posted.
        """
        now, version, data = self.now(), hold.version + 1, steps.pack(record)
        first_seq = steps.first_seq(record)
        chain = steps.link(hold.chain, first_seq, None, data)
        row = (hold.key, hold.owner, hold.key * SHIFT + version, first_seq, chain, bytearray(data))
        if hold.covers(record):
            made = bytearray(encode(progress(record.head, now)))
            done = self.database.changed(tables.ADVANCE, (*row, made, steps.seal(chain, made)))
        else:
            with self.database.writing as connection:
                done = tables.advance(connection, row)
                if done:
                    values = tables.values(version, chain, record, now)
                    connection.execute(tables.UPDATE, (*values, hold.key))
            if done and record.lease is not None:
                hold.until, hold.settled = record.lease.until, settled(record.head)
        if done:
            hold.version, hold.chain, hold.posted = version, chain, False
        return done

    def _place(self, session_id: str, expected: int, record: Record) -> None:
        """Commit a step of which nothing is known beforehand."""
        tear = self._tears.get(session_id)
        if tear is not None and tear.version != expected:
            tear = None
        if tear is not None and tear.mended.filled:
            record = msgspec.structs.replace(record, appended=[*tear.mended.filled, *record.appended])
        data, now, version = steps.pack(record), self.now(), expected + 1
        with self.database.writing as connection:
            if expected == 0 and (begun := self._begun(connection, session_id, record, data, now)) is not None:
                key, step, posted = begun
            else:
                found = self._admitted(connection, session_id, expected, record, now)
                key, chain, run_id = found.key, found.chain, found.run_id
                if tear is not None:
                    tables.set_aside(connection, found.key, tear.last, expected)
                    chain, run_id = tear.chain, None
                step = steps.next_step(version, chain, run_id, record, data)
                connection.execute(tables.UPDATE, (*tables.values(version, step.checksum, record, now), key))
                if found.moving:
                    tables.settle(connection, key, expected)
                tables.add(connection, key, step, record)
                posted = found is not None and tables.is_posted(connection, key)
            if record.lease is not None:
                self._held[session_id] = _Hold(
                    record.lease.owner, record.lease.until, key, version, step.checksum, record.head.run_id,
                    settled(record.head), posted,
                )  # fmt: skip
        self._tears.pop(session_id, None)

    def _begun(self, connection, session_id, record, data, now):
        """The session is new."""
        ids.session_id(session_id)
        step = steps.next_step(1, steps.seed(session_id), None, record, data)
        key = tables.begin(connection, session_id, tables.values(1, step.checksum, record, now))
        if key is None:
            return None
        tables.add(connection, key, step, record)
        return key, step, False

    def _admitted(
        self, connection: sqlite3.Connection, session_id: str, expected: int, record: Record, now: float
    ) -> Found:
        """The session as it is stored, once the commit is known to be allowed."""
        found = tables.found(connection, session_id)
        if found is None:
            ids.session_id(session_id)
            raise Conflict(session_id, expected, 0)
        hold = self._held.get(session_id)
        held = hold.owner if hold is not None else None
        owner = record.lease.owner if record.lease is not None else held
        leases.admit(session_id, expected, found.version, leases.rival(found.lease, owner, now), now)
        return found

    def renew(self, session_id: str, lease: Lease) -> bool:
        """See the port. False also when nobody holds it: what was given back is claimed by a commit only."""
        with self.database.writing as connection:
            changed = connection.execute(
                "UPDATE sessions SET lease_until = ? WHERE id = ? AND lease_owner = ?",
                (lease.until, session_id, lease.owner),
            ).rowcount
        if changed and (hold := self._held.get(session_id)):
            hold.until = lease.until
        return changed > 0

    def post(self, session_id: str, *items: Posted, expected: int | None = None) -> int:
        """See the port."""
        number: int | None = None
        with self.database.writing as connection:
            found = tables.found(connection, session_id)
            if found is None:
                raise UnknownSession(session_id)
            if expected is not None and expected != found.version:
                raise Conflict(session_id, expected, found.version)
            for item in items:
                try:
                    number = connection.execute(tables.POST, (found.key, item.key, encode(item))).lastrowid
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
        with self.database.looking as connection:
            if tables.key_of(connection, session_id) is None:
                return None
        with self.database.reading as connection:
            row = tables.session(connection, session_id)
            if row is None:
                return None
            head = steps.opened(session_id, row.head, row.progress)
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
        head = steps.opened(session_id, row.head, row.progress)
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
