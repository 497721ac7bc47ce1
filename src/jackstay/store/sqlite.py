"""Where do sessions live? In one SQLite file, a row per commit; several processes may use it at once."""

import sqlite3
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import msgspec

from jackstay.core import ids
from jackstay.core.errors import AlreadyDecided, Conflict, UnknownSession
from jackstay.core.events import Event
from jackstay.core.unpacking import EventReader, StepMessages, step_messages
from jackstay.core.wire import encode
from jackstay.engine.ports import Commit, Lease, PendingSession, Posted, Record, SessionInfo, Stored
from jackstay.store import leases, steps, tables
from jackstay.store.database import Database, Synchronous
from jackstay.store.holds import CHAIN, Hold, Next, held
from jackstay.store.steps import Mended
from jackstay.store.tables import SHIFT, Found

PAGE = 200  # steps that a reader of events takes in at a time


class _Tear(msgspec.Struct, frozen=True):
    """What the next commit of a damaged session has to put right: the steps after `last` go aside."""

    version: int
    last: int
    chain: int
    mended: Mended


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
        self._held: dict[str, Hold] = {}  # a commit without a lease gives back the one taken here
        self._posted: set[str] = set()  # sessions in whose inbox something may wait
        self._tears: dict[str, _Tear] = {}

    # -- writing -------------------------------------------------------------------------------------------

    def commit(self, session_id: str, expected: int, record: Record) -> int:
        """See the port. Without a lease it passes while none is live or this store took the one there is."""
        hold, made = self._held.get(session_id), None
        if hold is not None and not self._tears:
            made = hold.next(expected, record, self.now())
            if made is not None and made[1] is None:
                self._posted.discard(session_id)  # what is posted from here on comes again, or is in the way
                try:
                    stored = self.database.changed(tables.ADVANCE, made[0])
                except BaseException:
                    self._posted.add(session_id)
                    raise
                if stored:
                    hold.version, hold.chain = expected + 1, made[0][CHAIN]
                    return expected + 1
                self._posted.add(session_id)
                made = None
        with self.database.writing as connection:
            after = self._write(connection, Commit(session_id, expected, record), hold, made, alone=True)
        self._keep(session_id, after)
        return expected + 1

    def commit_all(self, commits: Sequence[Commit]) -> list[int | Exception]:
        """See the port."""
        outcomes: list[int | Exception] = []
        after: dict[str, Hold | None] = {}
        with self.database.writing as connection:
            for commit in commits:
                session_id = commit.session_id
                hold = after[session_id] if session_id in after else self._held.get(session_id)
                try:
                    made = None
                    if hold is not None and not self._tears:
                        made = hold.next(commit.expected, commit.record, self.now())
                    after[session_id] = self._write(connection, commit, hold, made, alone=False)
                except sqlite3.IntegrityError as problem:
                    outcomes.append(self.database.explained(problem))
                except sqlite3.Error:
                    raise
                except Exception as problem:  # this one's alone, and nothing of it is written
                    outcomes.append(problem)
                else:
                    outcomes.append(commit.expected + 1)
        for session_id, hold in after.items():
            self._keep(session_id, hold)
        return outcomes

    def _write(
        self,
        connection: sqlite3.Connection,
        commit: Commit,
        hold: Hold | None,
        made: Next | None,
        *,
        alone: bool,
    ) -> Hold | None:
        """Write the commit, which a hold may have awaited; what is held once that is stored."""
        session_id, expected, record = commit
        if hold is not None and made is not None and tables.advance(connection, made[0]):
            row, values = made
            self._posted.discard(session_id)
            if values is None:
                return hold.after(row)
            connection.execute(tables.UPDATE, values)
            if record.lease is None:
                tables.settle(connection, hold.key)
            return held(record, hold.key, expected + 1, row[CHAIN])
        if alone:
            return self._place(connection, commit, hold)
        with tables.savepoint(connection):
            return self._place(connection, commit, hold)

    def _keep(self, session_id: str, after: Hold | None) -> None:
        """The commit is stored."""
        self._tears.pop(session_id, None)
        if after is None:
            self._held.pop(session_id, None)
        else:
            self._held[session_id] = after

    def _place(self, connection: sqlite3.Connection, commit: Commit, hold: Hold | None) -> Hold | None:
        """Write a commit of which nothing is known beforehand."""
        session_id, expected, record = commit
        now = self.now()
        if expected == 0:
            ids.session_id(session_id)
            step = steps.next_step(1, steps.seed(session_id), None, record)
            values = tables.values(1, step.checksum, record, now)
            key = tables.begin(connection, session_id, values, step, record)
            if key is not None:
                return held(record, key, 1, step.checksum)
        tear = self._tears.get(session_id)
        if tear is not None and tear.version != expected:
            tear = None
        if tear is not None and tear.mended.filled:
            record = msgspec.structs.replace(record, appended=[*tear.mended.filled, *record.appended])
        found = _admitted(connection, commit, hold, now)
        chain, run_id = (found.chain, found.run_id) if tear is None else (tear.chain, None)
        step = steps.next_step(expected + 1, chain, run_id, record)
        values = tables.values(step.version, step.checksum, record, now)
        if tear is not None:
            tables.set_aside(connection, found.key, tear.last, expected)
        connection.execute(tables.UPDATE, (*values, found.key))
        waits = tables.add(connection, found.key, step, record)
        (self._posted.add if waits else self._posted.discard)(session_id)
        return held(record, found.key, step.version, step.checksum)

    def renew(self, session_id: str, lease: Lease) -> bool:
        """See the port. False also when nobody holds it: what was given back is claimed by a commit only."""
        with self.database.writing as connection:
            return tables.renew(connection, session_id, lease)

    def post(self, session_id: str, *items: Posted, expected: int | None = None) -> int:
        """See the port."""
        number = 0
        with self.database.writing as connection:
            found = tables.found(connection, session_id)
            if found is None:
                raise UnknownSession(session_id)
            if expected is not None and expected != found.version:
                raise Conflict(session_id, expected, found.version)
            for item in items:
                try:
                    number = tables.post(connection, found.key, item.key, encode(item))
                except sqlite3.IntegrityError:
                    raise AlreadyDecided(session_id, item.key) from None
            self._posted.add(session_id)
        return number

    def posted(self, session_id: str) -> bool:
        """See the port."""
        return session_id in self._posted or session_id not in self._held

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
        self._keep(session_id, None)
        self._posted.discard(session_id)
        return key is not None

    # -- reading -------------------------------------------------------------------------------------------

    def load(self, session_id: str) -> Stored | None:
        """See the port. What was dropped is set aside in the file by the next commit, not by looking at it."""
        with self.database.looking as connection:
            if tables.session(connection, session_id) is None:  # the usual case in a busy server
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


def _admitted(connection: sqlite3.Connection, commit: Commit, hold: Hold | None, now: float) -> Found:
    """The session as it is stored, once the commit is known to be allowed."""
    session_id, expected, record = commit
    found = tables.found(connection, session_id)
    if found is None:
        raise Conflict(session_id, expected, 0)
    taken = hold.owner if hold is not None else None
    owner = record.lease.owner if record.lease is not None else taken
    leases.admit(session_id, expected, found.version, leases.rival(found.lease, owner, now), now)
    return found
