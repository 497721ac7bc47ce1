"""Is the session store sound, and what can be done where it is not? (`jackstay doctor` asks.)"""

import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from jackstay.core.errors import JackstayError, StoreError
from jackstay.core.state import PolicyState, RunState
from jackstay.core.transcript import Transcript
from jackstay.core.unpacking import EventReader
from jackstay.engine.ports import Record
from jackstay.policy.sessions import lost
from jackstay.store import leases, steps, tables
from jackstay.store.database import Database
from jackstay.store.steps import Rows, Step
from jackstay.store.tables import SHIFT

if TYPE_CHECKING:
    from jackstay.store.sqlite import SQLiteStore

_HOPELESS = (
    "{path} could not be repaired: move it away to go on with a new store; `sqlite3 FILE .recover` may save "
    "some of it"
)
_ORPHANS = {
    "steps": f"abs(id) / {SHIFT} NOT IN (SELECT key FROM sessions) AND id < {tables.END}",
    "inbox": "session NOT IN (SELECT key FROM sessions)",
    "artifacts": "session NOT IN (SELECT key FROM sessions)",
}
_PLACEHOLDER = """
    INSERT OR IGNORE INTO sessions (key, id, version, chain, run_id, created, updated, phase, turn, waiting,
        title, usage, checksum, head)
    VALUES (?, ?, 0, 0, '', 0, 0, 'no_task', 0, 0, '', x'', -1, x'')"""
_CUT = (
    "the record of how far the run of session {!r} has come is damaged or missing, and what it did last may be "
    "lost: {}"
)
_UNMOVED = f"""
    INSERT OR IGNORE INTO steps SELECT key * {SHIFT} + {tables.PROGRESS}, 0, NULL, chain, x'' FROM sessions
    WHERE lease_owner IS NOT NULL"""  # a file of schema 1 has whole heads only
_COPIED = ("inbox", "artifacts", "steps", "sessions")  # sessions last: what they point to is there by then


def check(store: "SQLiteStore", *, repair: bool) -> list[str]:
    """What is wrong, a sentence each; with `repair` also what was done about it. Raises StoreError."""
    try:
        found = _structure(store.database)
    except StoreError as problem:
        return [str(problem), *([_HOPELESS.format(path=store.database.path)] if repair else [])]
    broken = bool(found)
    if broken and repair:
        busy = _running(store.database, store.now())
        if busy:
            return [*found, f"not repaired: {', '.join(busy)} run just now; end them and try again"]
        found.append(_rescue(store.database))
    if repair or not broken:
        found += _orphans(store.database, repair=repair)
    for session_id in _names(store.database):
        found += _session(store, session_id, repair=repair)
    return found


# -- the file ----------------------------------------------------------------------------------------------


def _structure(database: Database) -> list[str]:
    with database.looking as connection:
        if database.damaged:
            return [f"{database.path} ends too early: sessions in the missing part are lost"]
        try:
            lines = [str(row[0]) for row in connection.execute("PRAGMA integrity_check(20)")]
        except sqlite3.DatabaseError as problem:
            lines = [str(problem)]
    return [f"{database.path} is damaged: {line}" for line in lines if line != "ok"]


def _rescue(database: Database) -> str:
    """Copy what can be read into a new file, which takes the place of the old one."""
    fresh_path = _unused(database.path, "rescued")
    fresh = Database(fresh_path, synchronous="full", wait_s=1.0)
    copied = {}
    with database.looking as old, fresh.writing as new:
        for table in _COPIED:
            copied[table] = _copy(old, new, table)
        copied["sessions"] += _named(old, new)
        if old.execute("PRAGMA user_version").fetchone() < (2,):
            new.execute(_UNMOVED)
    fresh.close()
    database.close()
    kept = _unused(database.path, "damaged")
    kept.hardlink_to(database.path)  # there is a store under the name at every moment
    for companion in ("-wal", "-shm"):  # the old file's log must never be read into the new one
        part = Path(f"{database.path}{companion}")
        if part.exists():
            part.rename(f"{kept}{companion}")
    fresh_path.replace(database.path)
    database.damaged = False
    return (
        f"saved {copied['sessions']} sessions and {copied['steps']} steps in a new file; the old one is {kept}"
    )


def _running(database: Database, now: float) -> list[str]:
    """The sessions that a live process works on."""
    with database.looking as connection:
        rows = list(tables.readable(connection, "sessions", "id, lease_owner, lease_until"))
    return [
        str(name) for name, owner, until in rows if leases.live(tables.lease(owner, until), now) is not None
    ]


def _unused(path: Path, what: str) -> Path:
    number = 1
    while (candidate := path.with_name(f"{path.name}.{what}-{number}")).exists():
        number += 1
    return candidate


def _copy(old: sqlite3.Connection, new: sqlite3.Connection, table: str) -> int:
    """Copy the rows that can be read; how many they were."""
    count = 0
    for row in tables.readable(old, table):
        marks = ", ".join("?" * len(row))
        count += new.execute(f"INSERT OR IGNORE INTO {table} VALUES ({marks})", row).rowcount
    return count


def _named(old: sqlite3.Connection, new: sqlite3.Connection) -> int:
    """Make rows for sessions that only the index of names still knows; how many they were.

    Their heads are empty and fit no checksum: they are rebuilt from the steps like other damaged ones.
    """
    count = 0
    try:
        for name, key in old.execute("SELECT id, key FROM sessions INDEXED BY sqlite_autoindex_sessions_1"):
            count += new.execute(_PLACEHOLDER, (key, name)).rowcount
    except sqlite3.DatabaseError:
        pass  # what else the index held is lost
    return count


def _orphans(database: Database, *, repair: bool) -> list[str]:
    found = []
    with database.writing if repair else database.reading as connection:
        for table, condition in _ORPHANS.items():
            (count,) = connection.execute(f"SELECT count(*) FROM {table} WHERE {condition}").fetchone()
            if count:
                found.append(f"{count} rows of {table} belong to no session{': deleted' if repair else ''}")
                if repair:
                    connection.execute(f"DELETE FROM {table} WHERE {condition}")
    return found


# -- sessions ----------------------------------------------------------------------------------------------


def _names(database: Database) -> list[str]:
    with database.looking as connection:
        return [str(name) for (name,) in tables.readable(connection, "sessions", "id")]


def _session(store: "SQLiteStore", session_id: str, *, repair: bool) -> list[str]:
    """The damage of one session. Repairing is a commit that adds nothing to what loading has mended."""
    found = []
    try:
        found += _head(store, session_id, repair=repair)
        stored = store.load(session_id)
        if stored is None:
            return found
        found += stored.dropped
        if stored.dropped and repair:
            store.commit(session_id, stored.version, Record(stored.state))
            found.append(f"session {session_id!r} goes on from there; the damaged steps were set aside")
        elif not stored.dropped:
            found += _numbering(store.database, session_id, stored.state.seq)
    except JackstayError as problem:  # a head that cannot be read, a session somebody runs just now
        found.append(str(problem))
    return found


def _head(store: "SQLiteStore", session_id: str, *, repair: bool) -> list[str]:
    """Make a new head for a session whose own is damaged, or the progress of whose run is."""
    with store.database.writing if repair else store.database.reading as connection:
        row = tables.session(connection, session_id)
        if row is None or (row.is_sound and not row.is_cut):
            return []
        lease = leases.live(row.lease, store.now())
        if lease is not None:
            busy = f"the record of session {session_id!r} is damaged, and {lease.owner} runs it: end that first"
            return [] if row.is_sound else [busy]
        if not repair:
            return [_CUT.format(session_id, "run `jackstay doctor --repair`")] if row.is_sound else []
        kept = list(steps.readable(tables.steps_after(connection, row.key * SHIFT)))
        rows = steps.read(session_id, kept)
        state, said = (_ended if row.head.is_sound else _rebuilt)(session_id, row, kept, rows)
        version, chain = row.version, row.chain if isinstance(row.chain, int) else 0  # damage makes others
        if version == 0 and kept:  # a row made for a session that had lost its own
            version, chain = kept[-1].version, kept[-1].checksum
        mended = steps.mend(state, rows)
        record = Record(mended.state, mended.filled)
        if mended.filled and rows.chain == chain:  # else loading finds a tear, and fills it in
            step = steps.next_step(version + 1, chain, None, record)
            version, chain = step.version, step.checksum
            tables.add(connection, row.key, step, record)
        else:
            record = Record(state, rows.messages)
        connection.execute(tables.UPDATE, (*tables.values(version, chain, record, store.now()), row.key))
        tables.settle(connection, row.key)
    return [said]


def _rebuilt(session_id: str, row: tables.SessionRow, kept: Sequence[Step], rows: Rows) -> tuple[RunState, str]:
    """The state where nothing but the steps is left."""
    run_id = next((step.run_id for step in reversed(kept) if step.run_id), "")
    state = RunState(
        session_id, run_id, seq=rows.seq, outcome="failed", transcript=Transcript(rows.messages),
        rows=len(rows.messages), policy=lost(PolicyState(), "its record was damaged"),
    )  # fmt: skip
    return state, (
        f"the head of session {session_id!r} was damaged: rebuilt from its events; its settings, rules and "
        "open approvals are lost, its messages are not"
    )


def _ended(session_id: str, row: tables.SessionRow, kept: Sequence[Step], rows: Rows) -> tuple[RunState, str]:
    """The state of a run of which only the head from before its last steps is left, and those steps.

    Nobody knows which of its calls ran: it is over, and none of them is carried out again.
    """
    head = steps.opened(session_id, row.head, None)
    head = replace(head, batch=None, reasoning=False, outcome="failed", seq=rows.seq, rows=len(rows.messages))
    return steps.whole(head, rows.messages), _CUT.format(session_id, "the run was ended, its settings are kept")


def _numbering(database: Database, session_id: str, last: int) -> list[str]:
    """Do the events count from 1 to `last` without a gap?"""
    with database.reading as connection:
        key = tables.key_of(connection, session_id)
        found = [] if key is None else list(tables.steps_after(connection, key * SHIFT))
    reader, expected = EventReader(session_id), 1
    for step in found:
        if step.first_seq != expected:
            return [f"session {session_id!r}: event {step.first_seq} stands where {expected} should"]
        expected += len(reader.read(step.data, step.first_seq, step.run_id))
    if expected - 1 != last:
        return [f"session {session_id!r} has {expected - 1} events and a head that counts {last}"]
    return []
