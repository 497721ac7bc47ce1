"""What is asked of the tables, and how do their rows become values? (`schema/*.sql` explains the columns.)"""

import contextlib
import sqlite3
from collections.abc import Iterator
from typing import Any

import msgspec

from jackstay.core.errors import StoreError
from jackstay.core.messages import NO_USAGE, Usage
from jackstay.core.phase import Phase
from jackstay.core.wire import convert, decode_json, decode_progress, encode
from jackstay.engine.ports import Lease, Posted, Record, SessionInfo
from jackstay.store import steps
from jackstay.store.database import primary
from jackstay.store.steps import Sealed, Step, Unreadable

DAMAGE = (sqlite3.SQLITE_CORRUPT, -1)  # error codes of rows that cannot be read
SHIFT = 1 << 32  # a step's id is its session's key times this plus the version
PROGRESS = SHIFT - 1  # and the place of its progress comes after all versions
END = (SHIFT // 2 - 1) * SHIFT  # the row of steps that no step comes after

_FIND = "SELECT key, version, chain, run_id, lease_owner, lease_until FROM sessions WHERE id = ?"
_TAIL = "SELECT id, checksum, data, first_seq FROM steps WHERE id > ? AND id <= ? ORDER BY id DESC LIMIT 2"
INSERT = """
    INSERT OR IGNORE INTO sessions (version, chain, run_id, lease_owner, lease_until, updated, outcome, phase,
        turn, waiting, waiting_since, usage, checksum, head, title, id, created)
    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?6)"""
UPDATE = """
    UPDATE sessions SET version = ?1, chain = ?2, run_id = ?3, lease_owner = ?4, lease_until = ?5, updated = ?6,
        outcome = ?7, phase = ?8, turn = ?9, waiting = ?10, waiting_since = ?11, usage = ?12, checksum = ?13,
        head = ?14, title = CASE title WHEN '' THEN ?15 ELSE title END
    WHERE key = ?16"""
ADVANCE = """
    INSERT INTO advances (owner, id, first_seq, checksum, data, progress, seal, until)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?)"""
_RENEW = "UPDATE sessions SET lease_until = ? WHERE id = ? AND lease_owner = ?"
_RENEW_PROGRESS = f"""
    UPDATE steps SET first_seq = ? WHERE id = (SELECT key FROM sessions WHERE id = ?) * {SHIFT} + {PROGRESS}"""
_POST = "INSERT INTO inbox (session, key, item) VALUES (?, ?, ?)"
_INSERT_STEP = "INSERT INTO steps (id, first_seq, checksum, data, run_id) VALUES (?, ?, ?, ?, ?)"
_INSERT_ARTIFACT = "INSERT OR REPLACE INTO artifacts (session, call_id, text) VALUES (?, ?, ?)"
_EXPECT = "INSERT OR REPLACE INTO steps (id, first_seq, checksum, data, run_id) VALUES (?, 0, ?, x'', ?)"
_INTERRUPT = "UPDATE steps SET run_id = NULL WHERE id = ?"
_SETTLE = "DELETE FROM steps WHERE id = ?"
_HEAD_COLUMNS = "key, version, chain, lease_owner, lease_until, checksum, head, id"
_HEAD = f"SELECT {_HEAD_COLUMNS} FROM sessions WHERE id = ?"
_STEPS = "SELECT id, first_seq, run_id, checksum, data FROM steps WHERE id > ? AND id <= ? ORDER BY id LIMIT ?"
_STEP_BACK = "SELECT id, checksum, data FROM steps WHERE id > ? AND id <= ? ORDER BY id DESC LIMIT 1"
_STEP_OF_SEQ = "SELECT id FROM steps WHERE id > ? AND id < ? AND first_seq <= ? ORDER BY id DESC LIMIT 1"
_RUN_BEFORE = (
    "SELECT run_id FROM steps WHERE id > ? AND id <= ? AND run_id IS NOT NULL ORDER BY id DESC LIMIT 1"
)
_LIST_COLUMNS = "id, created, updated, outcome, phase, turn, waiting, title, usage"
_LIST = f"""
    SELECT * FROM (SELECT {_LIST_COLUMNS}, NULL FROM sessions WHERE lease_owner IS NULL
        ORDER BY updated DESC, key DESC LIMIT ?)
    UNION ALL
    SELECT {_LIST_COLUMNS}, (SELECT data FROM steps WHERE id = key * {SHIFT} + {PROGRESS}
        AND EXISTS (SELECT 1 FROM steps WHERE id = key * {SHIFT} + version + 1))
    FROM sessions WHERE lease_owner IS NOT NULL"""
_INBOX = """
    SELECT number, item FROM inbox WHERE session = (SELECT key FROM sessions WHERE id = ?) ORDER BY number"""
_IS_POSTED = "SELECT 1 FROM inbox WHERE session = ? LIMIT 1"
_ARTIFACT = """
    SELECT text FROM artifacts WHERE session = (SELECT key FROM sessions WHERE id = ?) AND call_id = ?"""
_KEYS = {"sessions": "key", "steps": "id", "inbox": "number", "artifacts": "session"}  # the order on disk
_PHASES: dict[str, Phase] = {phase.value: phase for phase in Phase}


class SessionRow(msgspec.Struct, frozen=True, gc=False):
    """A session as its row and its newest step tell it.

    `progress` is None where the head tells it all, `is_cut` when what should tell whether it does is gone.
    """

    key: int
    version: int
    chain: int
    lease: Lease | None
    head: Sealed
    progress: Sealed | None
    is_cut: bool

    @property
    def is_sound(self) -> bool:
        """Are head and progress what was stored?"""
        return self.head.is_sound and (self.progress is None or self.progress.is_sound)


class Found(msgspec.Struct, frozen=True, gc=False):
    """A session as a commit finds it."""

    key: int
    version: int
    chain: int
    run_id: str
    lease: Lease | None


class Start(msgspec.Struct, frozen=True, gc=False):
    """The step after which a reader begins: its id and checksum, and the run it belongs to."""

    id: int
    chain: int
    run_id: str = ""


# Data goes in as bytearray, which sqlite3 takes as it is: for bytes (and None) it would look for an adapter.


def values(version: int, chain: int, record: Record, now: float) -> tuple[object, ...]:
    """What a commit writes into the session's row, in the order of INSERT and UPDATE."""
    head, lease = record.head, record.lease
    data = bytearray(encode(head))
    tasks = steps.waiting(head)
    return (
        version, chain, head.run_id,
        lease and lease.owner, lease and lease.until,
        now, head.outcome, head.policy.phase.phase.value, head.turn,
        len(tasks), min(task.asked_at for task in tasks) if tasks else None,
        _usage(head.usage), steps.seal(data, chain), data, steps.title(record.appended),
    )  # fmt: skip


def _usage(usage: Usage) -> bytearray:
    return bytearray() if usage == NO_USAGE else bytearray(encode(msgspec.structs.astuple(usage)))


def begin(
    connection: sqlite3.Connection, session_id: str, row: tuple[object, ...], step: Step, record: Record
) -> int | None:
    """Write the first commit of a session; its key, or None where there is one of that name."""
    made = connection.execute(INSERT, (*row, session_id))
    key = made.lastrowid if made.rowcount else None
    if key is not None:
        _add(connection, key, step, record)
        if record.lease is not None:
            place = (key * SHIFT + PROGRESS, 0, step.checksum, bytearray(), record.lease.owner)
            connection.execute(_INSERT_STEP, place)
    return key


def add(connection: sqlite3.Connection, key: int, step: Step, record: Record) -> bool:
    """What a commit writes into the other tables. True when something waits in the inbox after it."""
    _add(connection, key, step, record)
    for number in record.drained:
        connection.execute("DELETE FROM inbox WHERE number = ? AND session = ?", (number, key))
    waits = connection.execute(_IS_POSTED, (key,)).fetchone() is not None
    if record.lease is None:
        settle(connection, key)
    else:
        owner = None if waits else record.lease.owner
        connection.execute(_EXPECT, (key * SHIFT + PROGRESS, step.checksum, owner))
    return waits


def _add(connection: sqlite3.Connection, key: int, step: Step, record: Record) -> None:
    step_id, data = key * SHIFT + step.version, bytearray(step.data)
    connection.execute(_INSERT_STEP, (step_id, step.first_seq, step.checksum, data, step.run_id))
    for artifact in record.artifacts:
        connection.execute(_INSERT_ARTIFACT, (key, artifact.call_id, artifact.text))


def set_aside(connection: sqlite3.Connection, key: int, after: int, version: int) -> None:
    """Take the steps from the one after `after` up to `version` out of the session without deleting them."""
    connection.execute(
        "UPDATE steps SET id = -id WHERE id > ? AND id <= ?", (key * SHIFT + after, key * SHIFT + version)
    )


def delete(connection: sqlite3.Connection, key: int) -> None:
    """Everything of a session, what was set aside included."""
    first, last = key * SHIFT, (key + 1) * SHIFT
    connection.execute("DELETE FROM steps WHERE id > ? AND id < ?", (first, last))
    connection.execute("DELETE FROM steps WHERE id > ? AND id < ?", (-last, -first))
    connection.execute("DELETE FROM inbox WHERE session = ?", (key,))
    connection.execute("DELETE FROM artifacts WHERE session = ?", (key,))
    connection.execute("DELETE FROM sessions WHERE key = ?", (key,))


def key_of(connection: sqlite3.Connection, session_id: str) -> int | None:
    """The session's key in the other tables."""
    row = connection.execute("SELECT key FROM sessions WHERE id = ?", (session_id,)).fetchone()
    return None if row is None else int(row[0])


def session(connection: sqlite3.Connection, session_id: str) -> SessionRow | None:
    """The session's row."""
    try:
        row = connection.execute(_HEAD, (session_id,)).fetchone()
    except sqlite3.DatabaseError as problem:  # the index may be damaged where the row is not
        row = next(
            (row for row in readable(connection, "sessions", _HEAD_COLUMNS) if row[-1] == session_id), None
        )
        if primary(problem) not in DAMAGE or row is None:
            raise
    if row is None:
        return None
    key, version, chain, owner, until, checksum, data, _ = row
    head = Sealed(data, chain, checksum)
    if owner is None:
        return SessionRow(key, version, chain, None, head, None, is_cut=False)
    tail = _tail(connection, key, version, chain)
    is_cut = tail.progress is None
    if tail.version == version and (
        tail.progress is None or (not tail.progress.data and tail.progress.is_sound)
    ):
        return SessionRow(key, version, chain, lease(owner, until), head, None, is_cut)
    progress = tail.progress or Sealed(None, tail.chain, None)
    return SessionRow(key, tail.version, tail.chain, lease(owner, tail.until or until), head, progress, is_cut)


def found(connection: sqlite3.Connection, session_id: str) -> Found | None:
    """What a commit has to know of the session."""
    row = connection.execute(_FIND, (session_id,)).fetchone()
    if row is None:
        return None
    key, version, chain, run_id, owner, until = row
    if owner is None:
        return Found(key, version, chain, run_id, None)
    tail = _tail(connection, key, version, chain)
    return Found(key, tail.version, tail.chain, run_id, lease(owner, tail.until or until))


def post(connection: sqlite3.Connection, key: int, name: str, item: bytes) -> int:
    """Put an item into the inbox; its number. The run that is under way has to look before its next step."""
    connection.execute(_INTERRUPT, (key * SHIFT + PROGRESS,))
    return connection.execute(_POST, (key, name, item)).lastrowid or 0


def advance(connection: sqlite3.Connection, row: tuple[object, ...]) -> bool:
    """Store the step that a hold awaits as part of a transaction; False when it is not as it was left."""
    try:
        connection.execute(ADVANCE, row)
    except sqlite3.IntegrityError:
        return False
    return True


def settle(connection: sqlite3.Connection, key: int) -> None:
    """The row of the session tells it all from here on."""
    connection.execute(_SETTLE, (key * SHIFT + PROGRESS,))


class _Tail(msgspec.Struct, frozen=True, gc=False):
    """Where a run stands that is under way: the last step's version and checksum, and how it has come there.

    `until` is when its lease ends, None when that of the session's row counts.
    """

    version: int
    chain: int
    progress: Sealed | None = None
    until: float | None = None


def _tail(connection: sqlite3.Connection, key: int, version: int, chain: int) -> _Tail:
    """What has come after the session's row, which has this version and checksum."""
    place = key * SHIFT + PROGRESS
    rows = connection.execute(_TAIL, (key * SHIFT + version, place)).fetchall()
    made = rows.pop(0) if rows and rows[0][0] == place else None
    if rows:
        version, chain = rows[0][0] % SHIFT, rows[0][1]
    if made is None:
        return _Tail(version, chain)
    until = made[3] if rows and isinstance(made[3], int | float) else None  # damage makes other types of it
    return _Tail(version, chain, Sealed(made[2], chain, made[1]), until)


def renew(connection: sqlite3.Connection, session_id: str, lease: Lease) -> bool:
    """Write down when the lease ends now; False when its owner does not hold it."""
    held = connection.execute(_RENEW, (lease.until, session_id, lease.owner)).rowcount > 0
    if held:
        connection.execute(_RENEW_PROGRESS, (lease.until, session_id))
    return held


@contextlib.contextmanager
def savepoint(connection: sqlite3.Connection) -> Iterator[None]:
    """What fails inside is taken back alone."""
    connection.execute("SAVEPOINT alone")
    try:
        yield
    except BaseException:
        if connection.in_transaction:  # a full disk has ended it
            connection.execute("ROLLBACK TO alone")
        raise
    finally:
        if connection.in_transaction:
            connection.execute("RELEASE alone")


def lease(owner: str | None, until: float | None) -> Lease | None:
    """The lease in a row, if there is one."""
    return Lease(owner, until) if owner is not None and until is not None else None


def steps_after(connection: sqlite3.Connection, start: int, *, limit: int = -1) -> Iterator[Step]:
    """The session's steps after the one with id `start`. Raises Unreadable where the file is damaged."""
    end = (start // SHIFT) * SHIFT + PROGRESS - 1
    try:
        for step_id, first_seq, run_id, checksum, data in connection.execute(_STEPS, (start, end, limit)):
            yield Step(step_id % SHIFT, first_seq, run_id, checksum, data)
    except sqlite3.DatabaseError as problem:
        if primary(problem) not in DAMAGE:
            raise
        raise Unreadable(str(problem)) from problem


def step_up_to(connection: sqlite3.Connection, key: int, step_id: int) -> tuple[int, int, bytes] | None:
    """The last step of a session up to this id: its id, checksum and data."""
    found: tuple[int, int, bytes] | None = connection.execute(_STEP_BACK, (key * SHIFT, step_id)).fetchone()
    return found


def start_for(connection: sqlite3.Connection, session_id: str, key: int, after: int) -> Start:
    """Where to begin reading for the events with seq > `after`.

    Looked for from the end: whoever follows a session asks about its last steps.
    """
    floor = key * SHIFT
    found = (
        connection.execute(_STEP_OF_SEQ, (floor, floor + PROGRESS, after + 1)).fetchone() if after > 0 else None
    )
    before = step_up_to(connection, key, found[0] - 1) if found is not None else None
    if before is None:
        return Start(floor, steps.seed(session_id))
    run = connection.execute(_RUN_BEFORE, (floor, before[0])).fetchone()
    return Start(before[0], before[1], run[0] if run is not None else "")


def waiting(connection: sqlite3.Connection) -> Iterator[tuple[bytes, set[str]]]:
    """The head of each session with undecided calls, longest wait first, and the keys in its inbox."""
    for key, head in connection.execute(
        "SELECT key, head FROM sessions WHERE waiting_since IS NOT NULL ORDER BY waiting_since, key"
    ):
        yield head, {row[0] for row in connection.execute("SELECT key FROM inbox WHERE session = ?", (key,))}


def listed(connection: sqlite3.Connection, limit: int) -> list[SessionInfo]:
    """The sessions, the latest first; of a damaged file those that can be read."""
    try:
        infos = [_info(row) for row in connection.execute(_LIST, (limit,))]
    except sqlite3.DatabaseError as problem:
        if primary(problem) not in DAMAGE:
            raise
        infos = [_info((*row, None)) for row in readable(connection, "sessions", _LIST_COLUMNS)]
    return sorted(infos, key=lambda info: info.updated, reverse=True)[:limit]


def readable(connection: sqlite3.Connection, table: str, columns: str = "*") -> Iterator[tuple[Any, ...]]:
    """The rows of a table that a damaged file still gives: from either end towards the damage."""
    key = _KEYS[table]
    for direction in ("ASC", "DESC"):
        try:
            yield from connection.execute(
                f"SELECT {columns} FROM {table} NOT INDEXED ORDER BY {key} {direction}"
            )
        except sqlite3.DatabaseError:
            continue  # this way it ends here; the other way may reach what lies behind
        return


def _info(row: tuple[Any, ...]) -> SessionInfo:
    name, created, updated, outcome, phase, turn, waits, title, usage, progress = row
    known = _PHASES.get(phase, Phase.NO_TASK)  # a newer version may have others
    used = Usage(*decode_json(usage)) if usage else NO_USAGE
    if progress is not None:
        with contextlib.suppress(StoreError):  # a damaged one must not hide the sessions that are sound
            made = decode_progress(progress)
            updated, turn, used = made.at, made.turn, made.usage
    return SessionInfo(name, created, updated, outcome, known, turn, waits, title, used)


def inbox(connection: sqlite3.Connection, session_id: str) -> list[tuple[int, bytes]]:
    """What waits in a session's inbox, oldest first."""
    return connection.execute(_INBOX, (session_id,)).fetchall()


def posted(number: int, data: bytes) -> Posted:
    """An item of the inbox. Raises StoreError when it cannot be read."""
    try:
        item: Posted = convert(decode_json(data), Posted)
    except ValueError as problem:
        raise StoreError(
            f"item {number} of the inbox cannot be read ({problem}): it is damaged or was posted by a newer "
            "jackstay; run `jackstay doctor`"
        ) from problem
    return msgspec.structs.replace(item, number=number)


def artifact(connection: sqlite3.Connection, session_id: str, call_id: str) -> str | None:
    """The whole text behind a shortened observation."""
    row = connection.execute(_ARTIFACT, (session_id, call_id)).fetchone()
    return None if row is None else str(row[0])
