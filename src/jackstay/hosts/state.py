"""What does a host's session stand at? One row a session in `hosts.db`, one transaction a change."""

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from jackstay.core import wire
from jackstay.core.errors import NewerSchema, StoreError
from jackstay.core.state import PolicyState
from jackstay.policy import sessions
from jackstay.store.database import Database, Layout

STATE_SCHEMA = 1  # of a row's content; a row of a newer version is left alone
WAIT_S = 5.0  # for another process's transaction
MAX_ID = 512

Link = Literal["subagent", "continued"]
Said = Literal["", "approve", "reject"]

_SCHEMA = (
    """
    CREATE TABLE sessions (
        host TEXT NOT NULL, id TEXT NOT NULL, state BLOB NOT NULL, at REAL NOT NULL, PRIMARY KEY (host, id)
    ) WITHOUT ROWID;
    CREATE TABLE links (
        host TEXT NOT NULL, id TEXT NOT NULL, parent TEXT NOT NULL, kind TEXT NOT NULL, PRIMARY KEY (host, id)
    ) WITHOUT ROWID;
    CREATE TABLE judged (
        host TEXT NOT NULL, session TEXT NOT NULL, call TEXT NOT NULL, at REAL NOT NULL,
        PRIMARY KEY (host, session, call)
    ) WITHOUT ROWID;
    CREATE TABLE questions (
        id TEXT PRIMARY KEY, host TEXT NOT NULL, session TEXT NOT NULL, tool TEXT NOT NULL, call TEXT NOT NULL,
        reason TEXT NOT NULL, at REAL NOT NULL, said TEXT NOT NULL DEFAULT '', remark TEXT NOT NULL DEFAULT '',
        person TEXT NOT NULL DEFAULT ''
    ) WITHOUT ROWID;
    """,
)


def _steps() -> Sequence[str]:
    return _SCHEMA


LAYOUT = Layout(0x6A636B68, len(_SCHEMA), _steps, "hosts' state")  # "jckh"


class Session(Struct, frozen=True, gc=False):
    """Whose session is meant: the host's name, its session id, and for a subagent its own id.

    A subagent is judged by its session's state and cannot move it.
    """

    host: str
    id: str
    agent: str = ""


class HostState(Struct, frozen=True, gc=False, omit_defaults=True):
    """What is remembered of a session beside its policy state.

    `told` is the phase whose guidance the model has read last. `read_to` counts the bytes of the host's
    transcript that were read (-1: none yet), `echo` is a text that was noted before the transcript had it.
    `nudges` counts how often the model was sent back to the checklist, `look` is the machine's state from
    before the task.
    """

    policy: PolicyState
    schema: int = STATE_SCHEMA
    told: str = ""
    read_to: int = -1
    echo: str = ""
    nudges: int = 0
    look: str = ""


class Question(Struct, frozen=True, gc=False):
    """A call that waits for a person, or waits to be tried again now that one has spoken.

    `call` is the redacted call as people read it, `said` the person's answer, empty while there is none.
    """

    id: str
    host: str
    session: str
    tool: str
    call: str
    reason: str
    at: float
    said: Said = ""
    remark: str = ""
    person: str = ""


class Change:
    """One session's row inside a transaction. Assign `state`; it is written when the transaction ends well.

    `new` tells that the session had no row.
    """

    def __init__(
        self, connection: sqlite3.Connection, session: Session, state: HostState, *, new: bool
    ) -> None:
        self.state, self.new = state, new
        self._connection, self._session = connection, session

    def keep(self, policy: PolicyState) -> None:
        """Put another policy state in."""
        self.state = replace(self.state, policy=policy)

    def judged(self, call_id: str, at: float) -> None:
        """Remember that this call was judged and may run."""
        self._connection.execute(
            "INSERT OR REPLACE INTO judged VALUES (?, ?, ?, ?)",
            (self._session.host, self._session.id, call_id, at),
        )

    def was_judged(self, call_id: str) -> bool:
        """Was it, and has nobody asked before?"""
        done = self._connection.execute(
            "DELETE FROM judged WHERE host = ? AND session = ? AND call = ?",
            (self._session.host, self._session.id, call_id),
        )
        return done.rowcount > 0

    def question(self, question_id: str) -> Question | None:
        """The question of this id, answered or not."""
        row = self._connection.execute("SELECT * FROM questions WHERE id = ?", (question_id,)).fetchone()
        return None if row is None else Question(*row)

    def ask(self, question: Question) -> None:
        """Put a question; one that is there already keeps its answer."""
        self._connection.execute(
            "INSERT OR IGNORE INTO questions (id, host, session, tool, call, reason, at) "
            "VALUES (?, ?, ?, ?, ?, ?, ?)",
            (question.id, question.host, question.session, question.tool, question.call, question.reason,
             question.at),
        )  # fmt: skip

    def settle(self, question_id: str) -> None:
        """The answer was used: it holds for one call."""
        self._connection.execute("DELETE FROM questions WHERE id = ?", (question_id,))


class HostStore:
    """The states of all hosts' sessions in one home. Safe under threads and processes.

    Whatever is wrong with the file (locked, corrupt, read-only, full, of a newer version) is a StoreError.
    """

    def __init__(self, home: Path | str, *, wait_s: float = WAIT_S) -> None:
        self.path = Path(home) / "hosts.db"
        self._database = Database(self.path, synchronous="normal", wait_s=wait_s, layout=LAYOUT)

    def close(self) -> None:
        """Give the connection back."""
        self._database.close()

    @contextmanager
    def change(self, session: Session, start: PolicyState, *, at: float) -> Iterator[Change]:
        """The session's row for one change, `start` where it has none. Raises StoreError.

        Nothing is written when the block raises. A row that cannot be read goes on as a lost session does.
        """
        with self._database.writing as connection:
            session = replace(session, id=_root(connection, session))
            row = connection.execute(
                "SELECT state FROM sessions WHERE host = ? AND id = ?", (session.host, session.id)
            ).fetchone()
            state = HostState(start) if row is None else _state(row[0], start)
            change = Change(connection, session, state, new=row is None)
            yield change
            if change.new or change.state is not state:
                connection.execute(
                    "INSERT OR REPLACE INTO sessions VALUES (?, ?, ?, ?)",
                    (session.host, session.id, wire.encode(change.state), at),
                )

    def read(self, session: Session) -> HostState | None:
        """The session's state as it is now; None when it has none."""
        with self._database.reading as connection:
            row = connection.execute(
                "SELECT state FROM sessions WHERE host = ? AND id = ?",
                (session.host, _root(connection, session)),
            ).fetchone()
        return None if row is None else _state(row[0], PolicyState(mode="strict"))

    def link(self, host: str, child: str, parent: str, kind: Link) -> None:
        """From now on `child` is `parent`'s subagent, or `parent` under another id."""
        if child == parent:
            return
        with self._database.writing as connection:
            connection.execute("INSERT OR IGNORE INTO links VALUES (?, ?, ?, ?)", (host, child, parent, kind))

    def subagent_of(self, session: Session) -> str | None:
        """The session whose subagent this is; None when it is none."""
        with self._database.reading as connection:
            for kind, parent in _way_up(connection, session):
                if kind == "subagent":
                    return parent
        return None

    def sessions(self, host: str | None = None) -> list[tuple[Session, HostState, float]]:
        """All sessions, the latest first, with the time of their last change in epoch seconds."""
        with self._database.reading as connection:
            rows = connection.execute(
                "SELECT host, id, state, at FROM sessions WHERE ?1 IS NULL OR host = ?1 ORDER BY at DESC",
                (host,),
            ).fetchall()
        lost = PolicyState(mode="strict")
        return [(Session(where, name), _state(data, lost), at) for where, name, data, at in rows]

    def questions(self) -> list[Question]:
        """The questions nobody has answered, the oldest first."""
        with self._database.reading as connection:
            rows = connection.execute("SELECT * FROM questions WHERE said = '' ORDER BY at").fetchall()
        return [Question(*row) for row in rows]

    def answer(self, question_id: str, said: Said, *, by: str, remark: str = "") -> bool:
        """Answer a question; False when there is none of this id that is open."""
        with self._database.writing as connection:
            done = connection.execute(
                "UPDATE questions SET said = ?, person = ?, remark = ? WHERE id = ? AND said = ''",
                (said, by, remark, question_id),
            )
        return done.rowcount > 0


def _state(data: bytes, start: PolicyState) -> HostState:
    try:
        plain: Any = wire.decode_json(data)
        found = plain.get("schema", STATE_SCHEMA) if isinstance(plain, dict) else 0
        if isinstance(found, int) and found > STATE_SCHEMA:
            raise NewerSchema("the session's state", found, STATE_SCHEMA)
        state: HostState = wire.convert(plain, HostState)
    except (ValueError, TypeError, msgspec.ValidationError) as problem:
        return HostState(sessions.lost(start, f"its state cannot be read: {problem}"))
    return state


def _root(connection: sqlite3.Connection, session: Session) -> str:
    """The id under which the session's state is kept."""
    if not session.id or len(session.id) > MAX_ID:
        raise StoreError(f"the host gave a session id of {len(session.id)} characters: 1 to {MAX_ID} are right")
    last = session.id
    for _, parent in _way_up(connection, session):
        last = parent
    return last


def _way_up(connection: sqlite3.Connection, session: Session) -> Iterator[tuple[str, str]]:
    seen = {session.id}
    current = session.id
    while True:
        row = connection.execute(
            "SELECT kind, parent FROM links WHERE host = ? AND id = ?", (session.host, current)
        ).fetchone()
        if row is None or row[1] in seen:
            return
        current = row[1]
        seen.add(current)
        yield row[0], current
