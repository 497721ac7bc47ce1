"""How is the store's file opened, kept private and brought up to date, and what do its failures mean?"""

import os
import sqlite3
import stat
import threading
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from types import TracebackType
from typing import Literal, NamedTuple
from weakref import WeakSet

from jackstay.core.errors import NewerSchema, StoreError

Synchronous = Literal["normal", "full"]

APPLICATION = 0x6A636B73  # "jcks": which program's database this is
PAGE_BYTES = 2048  # half of SQLite's own: a commit copies each page it touches into the log
_FILE, _DIRECTORY = 0o600, 0o700
_inherited: list[sqlite3.Connection] = []  # of a parent process: neither used nor closed here
_open_here: "WeakSet[Database]" = WeakSet()


@cache
def schema_steps() -> tuple[str, ...]:
    """The SQL that brings a file from each schema version to the next, in order."""
    folder = Path(__file__).parent / "schema"
    return tuple(path.read_text(encoding="utf-8") for path in sorted(folder.glob("*.sql")))


SCHEMA = 2  # the number of schema steps there are


class Layout(NamedTuple):
    """Which file this is: its application id, its schema's number and steps, and its name in messages."""

    application: int
    schema: int
    steps: Callable[[], Sequence[str]]
    what: str


SESSIONS = Layout(APPLICATION, SCHEMA, schema_steps, "session store")


class Scope:
    """A stretch of work on the database: holds it, ends the transaction, gives failures their words."""

    __slots__ = ("_begin", "_connection", "_database", "_writes")

    def __init__(self, database: "Database", begin: str | None, *, writes: bool = False) -> None:
        self._database, self._begin, self._writes = database, begin, writes
        self._connection: sqlite3.Connection  # of whoever is inside: the lock lets one in at a time

    def __enter__(self) -> sqlite3.Connection:
        database = self._database
        database.lock.acquire()
        try:
            connection = self._connection = database.connection()
            if database.damaged and self._writes:
                raise StoreError(database.meaning(sqlite3.SQLITE_CORRUPT, "it ends too early"))
            if self._begin is not None:
                connection.execute(self._begin)
        except BaseException as problem:
            database.lock.release()
            if isinstance(problem, sqlite3.Error):
                raise database.explained(problem) from problem
            raise
        return connection

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        connection, database = self._connection, self._database
        try:
            try:
                if self._writes and problem is None:
                    connection.execute("COMMIT")
            finally:
                if self._begin is not None and connection.in_transaction:
                    connection.execute("ROLLBACK")
        except sqlite3.Error as failure:
            raise database.explained(failure) from failure
        finally:
            database.lock.release()
        if isinstance(problem, sqlite3.Error):
            raise database.explained(problem) from problem


class Database:
    """One SQLite file and one connection to it, opened when first used and shared by threads in turn.

    `looking` is for a single statement, `reading` for several that have to see one state, `writing` for
    changes. Each raises StoreError for whatever SQLite reports.
    """

    def __init__(
        self, path: Path, *, synchronous: Synchronous, wait_s: float, layout: Layout = SESSIONS
    ) -> None:
        self.path = path
        self._layout = layout
        self.lock = threading.Lock()
        self.looking = Scope(self, None)
        self.reading = Scope(self, "BEGIN")
        self.writing = Scope(self, "BEGIN IMMEDIATE", writes=True)
        self.damaged = False
        self._synchronous, self._wait_s = synchronous, wait_s
        self._open: sqlite3.Connection | None = None
        self._cursor: sqlite3.Cursor | None = None  # kept for the statement that nearly every commit is

    def connection(self) -> sqlite3.Connection:
        """The open connection; only while holding the lock."""
        if self._open is None:
            _mind_forks()
            self._open = self._opened()
            _open_here.add(self)
        return self._open

    def changed(self, statement: str, row: Sequence[object]) -> bool:
        """Carry out one writing statement, a transaction of its own; False where a constraint is against it."""
        with self.lock:
            try:
                cursor = self._cursor
                if cursor is None:
                    cursor = self._cursor = self.connection().cursor()
                cursor.execute(statement, row)
            except sqlite3.IntegrityError:
                return False
            except sqlite3.Error as problem:
                raise self.explained(problem) from problem
        return True

    def forget(self) -> None:
        """In a forked child: the connection is the parent's, and whoever held the lock is not here."""
        if self._open is not None:
            _inherited.append(self._open)
        self._open, self._cursor, self.lock = None, None, threading.Lock()

    def close(self) -> None:
        """Give the connection back. The next use opens another."""
        with self.lock:
            if self._open is not None:
                self._open.close()
            self._open = self._cursor = None

    def explained(self, problem: sqlite3.Error) -> StoreError:
        """The failure with what it means here and what to do about it."""
        if self.damaged:  # it is open for reading only, and not because anybody's rights are missing
            return StoreError(self.meaning(sqlite3.SQLITE_CORRUPT, "it ends too early"))
        return StoreError(self.meaning(primary(problem), str(problem)))

    def meaning(self, code: int, problem: str) -> str:
        """What a primary error code of SQLite means here and what to do about it."""
        text = _MEANING.get(code, _UNKNOWN)
        return text.format(path=self.path, folder=self.path.parent, problem=problem, wait=f"{self._wait_s:g}")

    # -- opening -------------------------------------------------------------------------------------------

    def _opened(self) -> sqlite3.Connection:
        try:
            created = secure(self.path)
        except OSError as problem:
            raise StoreError(self.meaning(sqlite3.SQLITE_CANTOPEN, problem.strerror or "")) from problem
        connection = sqlite3.connect(
            self.path, timeout=self._wait_s, isolation_level=None, check_same_thread=False, cached_statements=64
        )
        try:
            self._prepare(connection, created=created)
        except BaseException:
            connection.close()
            raise
        return connection

    def _prepare(self, connection: sqlite3.Connection, *, created: bool) -> None:
        try:
            self._set_up(connection, 0 if created else self._recognise(connection))
        except sqlite3.DatabaseError as problem:
            if primary(problem) != sqlite3.SQLITE_CORRUPT:
                raise
            self.damaged = True  # the file may end early: read what is there, write nothing
            connection.execute("PRAGMA writable_schema = ON")
            connection.execute("PRAGMA query_only = ON")
            self._recognise(connection)

    def _set_up(self, connection: sqlite3.Connection, version: int) -> None:
        if version == 0:  # a new file
            connection.execute(f"PRAGMA page_size = {PAGE_BYTES}")
            if self._synchronous == "normal":  # there is nothing yet that a power cut could take: no flush
                connection.execute("PRAGMA synchronous = OFF")
        connection.execute("PRAGMA journal_mode = WAL")
        if version < self._layout.schema:
            migrate(connection, self._layout.steps(), application=self._layout.application)
        connection.execute(f"PRAGMA synchronous = {self._synchronous}")

    def _recognise(self, connection: sqlite3.Connection) -> int:
        """The file's schema version. Raises unless it is this program's, of a known version, or still empty."""
        version = _pragma(connection, "user_version")
        application = _pragma(connection, "application_id")
        if application != self._layout.application and (version or _has_tables(connection)):
            raise StoreError(
                f"{self.path} is a database of another program: nothing was changed; "
                "choose another home with --home"
            )
        if version > self._layout.schema:
            raise NewerSchema(f"the {self._layout.what} {self.path}", version, self._layout.schema)
        return version


@cache
def _mind_forks() -> None:
    if hasattr(os, "register_at_fork"):  # where there is no fork there is nothing to mind
        os.register_at_fork(after_in_child=_forked)


def _forked() -> None:
    for database in _open_here:
        database.forget()


def migrate(connection: sqlite3.Connection, steps: Sequence[str], *, application: int = APPLICATION) -> None:
    """Bring the file to schema `len(steps)`, all steps in one transaction."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        there = _pragma(connection, "user_version")  # asked again: another process may have been here
        for script in steps[there:]:
            for statement in _statements(script):
                connection.execute(statement)
        if there < len(steps):
            connection.execute(f"PRAGMA application_id = {application}")
            connection.execute(f"PRAGMA user_version = {len(steps)}")
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


@cache
def _statements(script: str) -> tuple[str, ...]:
    """The statements one by one, without comments: the file keeps their text in its first page."""
    found, statement = [], ""
    for line in script.splitlines():
        statement += line.partition("--")[0].strip() + " "
        if sqlite3.complete_statement(statement):
            found.append(statement)
            statement = ""
    return tuple(found)


def primary(problem: sqlite3.Error) -> int:
    """The error's primary code; -1 for those that Python raises itself, as for text that is no UTF-8."""
    code = getattr(problem, "sqlite_errorcode", None)
    return -1 if code is None else code & 0xFF


def _pragma(connection: sqlite3.Connection, name: str) -> int:
    return int(connection.execute(f"PRAGMA {name}").fetchone()[0])


def _has_tables(connection: sqlite3.Connection) -> bool:
    return connection.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone() is not None


# -- the file itself ---------------------------------------------------------------------------------------


def secure(path: Path) -> bool:
    """Make sure that the file and its companions are ours, plain and private; create what is missing.

    True when the file was missing. Raises StoreError for a link, a foreign owner or something that is no file,
    OSError when it cannot be had.
    """
    _make_folder(path.parent)
    for companion in ("-wal", "-shm"):
        _inspect(Path(f"{path}{companion}"))
    if _inspect(path):
        return False
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, _FILE)
    except FileExistsError:  # another process was faster; its file has to stand the same look
        _inspect(path)
        return False
    os.fchmod(descriptor, _FILE)  # whatever the umask says
    os.close(descriptor)
    return True


def _make_folder(folder: Path) -> None:
    if folder.is_dir():
        return
    _make_folder(folder.parent)
    try:
        folder.mkdir(_DIRECTORY)
    except FileExistsError:
        return
    folder.chmod(_DIRECTORY)


def _inspect(path: Path) -> bool:
    """Is it there? Raises StoreError unless it is a plain file of ours; takes other people's rights away."""
    try:
        found = path.lstat()
    except FileNotFoundError:
        return False
    if stat.S_ISLNK(found.st_mode):
        raise StoreError(f"{path} is a symbolic link: the session store must be a plain file; remove the link")
    if not stat.S_ISREG(found.st_mode):
        raise StoreError(f"{path} is not a plain file: move it away or choose another home with --home")
    if found.st_uid != os.geteuid():
        raise StoreError(
            f"{path} belongs to another user (uid {found.st_uid}): use a home of your own "
            "(--home or JACKSTAY_HOME)"
        )
    if found.st_mode & 0o077:
        path.chmod(_FILE)
    return True


_UNKNOWN = "the session store {path} failed: {problem}; run `jackstay doctor`"
_LOCKED = "another process has kept {path} locked for {wait} s: wait for it or end it, then try again"
_MEANING: dict[int, str] = {
    sqlite3.SQLITE_FULL: (
        "the disk is full ({path}): this step was not stored, everything before it is; free some space, "
        "then resume"
    ),
    sqlite3.SQLITE_IOERR: (
        "{path} cannot be read or written ({problem}): this step was not stored, everything before it is; "
        "check the disk and its quota, then resume"
    ),
    sqlite3.SQLITE_READONLY: (
        "{path} cannot be written: make the file and its directory writable (chmod u+w), or choose another "
        "home with --home"
    ),
    sqlite3.SQLITE_CANTOPEN: (
        "{path} cannot be opened ({problem}): check that {folder} is there and writable, or choose another "
        "home with --home"
    ),
    sqlite3.SQLITE_BUSY: _LOCKED,
    sqlite3.SQLITE_LOCKED: _LOCKED,
    sqlite3.SQLITE_NOTADB: (
        "{path} is not a session store: move it away or choose another home with --home; nothing was changed"
    ),
    sqlite3.SQLITE_CORRUPT: (
        "the session store {path} is damaged ({problem}): run `jackstay doctor --repair`, which saves what can "
        "be read into a new file and keeps the old one"
    ),
}
