"""The store's file under real trouble: other processes, kill -9, full disks, foreign hands, damage."""

import asyncio
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import msgspec
import pytest

from jackstay import HarnessEngine, tool
from jackstay.core.errors import NewerSchema, SessionBusy, StoreError
from jackstay.core.messages import ToolCall, ToolResult, assistant, note, observation, user
from jackstay.core.state import Batch
from jackstay.core.transcript import Transcript
from jackstay.core.wire import encode
from jackstay.engine.ports import Lease, Posted, Record, Stored
from jackstay.models.scripted import ScriptedModel
from jackstay.store import database, leases
from jackstay.store.sqlite import SQLiteStore
from jackstay.store.steps import LOST
from jackstay.store.tables import END
from tests.contracts.made import Play
from tests.elsewhere import asks, reply

HERE = Path(__file__).parent
WRITE = ToolCall("call_w", "write", {"file_path": "a", "content": "text"})


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "home" / "sessions.db"


@pytest.fixture
def store(path: Path) -> Iterator[SQLiteStore]:
    made = SQLiteStore(path)
    yield made
    made.close()


def worker(mode: str, path: Path, *rest: str) -> subprocess.Popen[str]:
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join([str(HERE), *sys.path])}
    command = [sys.executable, str(HERE / "racer.py"), mode, str(path), *rest]
    return subprocess.Popen(command, env=environ, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE)


def ended(process: subprocess.Popen[str]) -> str:
    said, _ = process.communicate(timeout=60)
    return said


def tamper(path: Path, statement: str, *values: object) -> None:
    connection = sqlite3.connect(path)
    connection.execute(statement, values)
    connection.commit()
    connection.close()


# -- several processes -------------------------------------------------------------------------------------


def test_two_processes_that_race_for_a_session_lose_no_step(store: SQLiteStore, path: Path) -> None:
    Play(store).begins()
    racers = [worker("race", path, "60") for _ in range(2)]
    assert [ended(racer) for racer in racers] == ["60\n", "60\n"]
    stored = store.load("s1")
    assert stored is not None
    assert (stored.version, stored.dropped) == (121, ())
    texts = [message.text for message in stored.state.transcript][1:]
    assert len(set(texts)) == 120
    assert store.check() == []


def test_a_lease_is_held_against_other_processes_and_free_when_its_owner_is_killed(
    store: SQLiteStore, path: Path
) -> None:
    play = Play(store)
    play.begins()
    first = worker("hold", path)
    assert first.stdout is not None
    assert first.stdout.readline() == "held\n"
    second = worker("hold", path)
    assert second.stdout is not None
    assert second.stdout.readline() == "SessionBusy\n"
    ended(second)
    with pytest.raises(SessionBusy):
        store.commit("s1", 2, Record(play.state))
    first.send_signal(signal.SIGKILL)
    os.waitid(os.P_PID, first.pid, os.WEXITED | os.WNOWAIT)  # dead, but not yet buried
    assert store.commit("s1", 2, Record(play.state)) == 3
    ended(first)


@pytest.mark.parametrize("seed", range(4))
def test_kill_9_amid_commits_leaves_every_step_that_was_told_and_no_gap(path: Path, seed: int) -> None:
    chance = random.Random(seed)
    process = worker("commit", path)
    assert process.stdout is not None
    told = 0
    for _ in range(chance.randrange(1, 60)):
        told = int(process.stdout.readline())
    process.send_signal(signal.SIGKILL)
    rest = process.communicate()[0].split()
    told = int(rest[-1]) if rest else told
    store = SQLiteStore(path)
    stored = store.load("s1")
    assert stored is not None
    assert stored.version >= told
    assert stored.dropped == ()
    assert [e.seq for e in store.events("s1")] == list(range(1, stored.state.seq + 1))
    assert store.check() == []
    store.close()


def test_a_file_kept_locked_is_reported_and_nothing_is_stored(path: Path) -> None:
    store = SQLiteStore(path, wait_s=0.05)
    play = Play(store)
    play.begins()
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(StoreError, match=r"locked for 0\.05 s: wait for it or end it"):
        play.turn(1)
    other.execute("ROLLBACK")
    other.close()
    assert store.head("s1") is not None
    assert store.head("s1").version == 1  # type: ignore[union-attr] - asserted above
    store.close()


def test_threads_take_turns(store: SQLiteStore) -> None:
    failures: list[BaseException] = []

    def work(name: str) -> None:
        try:
            play = Play(store, name)
            play.begins()
            for number in range(20):
                play.turn(number)
            assert list(store.events(name)) == play.told
        except BaseException as problem:
            failures.append(problem)

    threads = [threading.Thread(target=work, args=(f"s{n}",)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert store.check() == []


def test_a_forked_child_opens_the_file_anew(store: SQLiteStore) -> None:
    play = Play(store)
    play.begins()
    child = os.fork()
    if child == 0:  # whatever happens, the child must not go on with the test run
        try:
            play.turn(1)
            store.close()
            os._exit(0)
        finally:
            os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    stored = store.load("s1")
    assert stored is not None
    assert (stored.version, len(stored.state.transcript)) == (3, 3)
    assert store.check() == []


def test_a_child_forked_while_another_thread_held_the_store_is_not_kept_waiting(store: SQLiteStore) -> None:
    Play(store).begins()
    inside, leave = threading.Event(), threading.Event()

    def hold() -> None:
        with store.database.looking:
            inside.set()
            leave.wait(10)

    thread = threading.Thread(target=hold)
    thread.start()
    inside.wait(10)
    child = os.fork()
    if child == 0:
        try:
            signal.alarm(5)
            os._exit(0 if store.load("s1") is not None else 1)
        finally:
            os._exit(1)
    leave.set()
    thread.join()
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


# -- whose file it is --------------------------------------------------------------------------------------


def mode(path: Path) -> int:
    return path.stat().st_mode & 0o777


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o277])
def test_files_are_for_their_owner_only_whatever_the_umask(path: Path, umask: int) -> None:
    before = os.umask(umask)
    try:
        store = SQLiteStore(path)
        Play(store).begins()
        found = {file.name: mode(file) for file in path.parent.iterdir()}
        assert found == {"sessions.db": 0o600, "sessions.db-wal": 0o600, "sessions.db-shm": 0o600}
        assert mode(path.parent) == 0o700
        store.close()
    finally:
        os.umask(before)


def test_rights_of_others_on_an_existing_file_are_taken_away(store: SQLiteStore, path: Path) -> None:
    Play(store).begins()
    store.close()
    path.chmod(0o644)
    store.sessions()
    assert mode(path) == 0o600


@pytest.mark.parametrize("name", ["sessions.db", "sessions.db-wal", "sessions.db-shm"])
def test_a_link_in_the_place_of_a_file_is_refused(path: Path, tmp_path: Path, name: str) -> None:
    path.parent.mkdir()
    (path.parent / name).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(StoreError, match="is a symbolic link"):
        SQLiteStore(path).sessions()
    assert not (tmp_path / "elsewhere").exists()


def test_what_is_no_file_is_refused(path: Path) -> None:
    path.mkdir(parents=True)
    with pytest.raises(StoreError, match="is not a plain file"):
        SQLiteStore(path).sessions()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file to another user")
def test_a_file_of_another_user_is_refused(store: SQLiteStore, path: Path) -> None:
    Play(store).begins()
    store.close()
    os.chown(path, 65534, 65534)
    with pytest.raises(StoreError, match="belongs to another user"):
        store.sessions()


def test_no_database_is_refused_and_left_alone(path: Path) -> None:
    path.parent.mkdir()
    path.write_bytes(b"my diary, dear to me " * 100)
    with pytest.raises(StoreError, match="is not a session store: move it away"):
        SQLiteStore(path).sessions()
    assert path.read_bytes() == b"my diary, dear to me " * 100


def test_a_database_of_another_program_is_refused_and_left_alone(path: Path) -> None:
    path.parent.mkdir()
    tamper(path, "CREATE TABLE bookmarks (url TEXT)")
    before = path.read_bytes()
    with pytest.raises(StoreError, match="a database of another program"):
        SQLiteStore(path).sessions()
    assert path.read_bytes() == before


def test_a_file_that_cannot_be_made_is_reported_with_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match=r"cannot be opened .* choose another home with --home"):
        SQLiteStore(tmp_path / "file" / "sessions.db").sessions()


# -- disks -------------------------------------------------------------------------------------------------

FULL = """
import resource, signal, sys
from pathlib import Path
from tests.contracts.made import Play
from jackstay.core.errors import StoreError
from jackstay.store.sqlite import SQLiteStore
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
store = SQLiteStore(sys.argv[1])
play = Play(store)
play.begins()
resource.setrlimit(resource.RLIMIT_FSIZE, (150_000, resource.RLIM_INFINITY))
number = 0
try:
    while True:
        play.turn(number)
        number += 1
except StoreError as problem:
    print(play.version, problem)
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
stored = store.load("s1")
print(stored.version, stored.dropped, len(store.check()))
store.commit("s1", stored.version, __import__("jackstay.engine.ports").engine.ports.Record(stored.state))
"""


def test_a_full_disk_loses_the_step_that_did_not_fit_and_nothing_else(path: Path) -> None:
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join([str(HERE), *sys.path])}
    done = subprocess.run(
        [sys.executable, "-c", FULL, str(path)], env=environ, text=True, capture_output=True, timeout=60
    )
    assert done.stderr == ""
    first, second = done.stdout.splitlines()
    version, _, words = first.partition(" ")
    assert "this step was not stored, everything before it is" in words
    assert int(version) > 10
    assert second == f"{version} () 0"


READ_ONLY = """
import os, sys
from tests.contracts.made import Play
from jackstay.core.errors import StoreError
from jackstay.store.sqlite import SQLiteStore
if os.geteuid() == 0:
    os.setgid(65534)
    os.setuid(65534)
store = SQLiteStore(sys.argv[1])
try:
    Play(store, "s2").begins()
except StoreError as problem:
    print(problem)
"""


def test_a_read_only_file_is_reported_with_what_to_do() -> None:
    home = Path(tempfile.mkdtemp())
    try:
        store = SQLiteStore(home / "sessions.db")
        Play(store).begins()
        store.close()
        if os.geteuid() == 0:  # root may write everything: let somebody else try
            os.chown(home, 65534, 65534)
            os.chown(home / "sessions.db", 65534, 65534)
        (home / "sessions.db").chmod(0o400)
        environ = {**os.environ, "PYTHONPATH": os.pathsep.join([str(HERE), *sys.path])}
        done = subprocess.run(
            [sys.executable, "-c", READ_ONLY, str(home / "sessions.db")],
            env=environ, text=True, capture_output=True, timeout=60,
        )  # fmt: skip
        assert done.stderr == ""
        assert "sessions.db cannot be written: make the file and its directory writable" in done.stdout
    finally:
        shutil.rmtree(home)


# -- schema ------------------------------------------------------------------------------------------------


def test_a_store_of_a_newer_version_is_refused_and_left_alone(store: SQLiteStore, path: Path) -> None:
    Play(store).begins()
    store.close()
    tamper(path, f"PRAGMA user_version = {database.SCHEMA + 1}")
    with pytest.raises(NewerSchema, match=r"written by a newer jackstay .* upgrade"):
        store.sessions()


def test_a_session_of_a_newer_version_is_refused_and_the_others_are_not(store: SQLiteStore, path: Path) -> None:
    ours, theirs = Play(store, "ours"), Play(store, "theirs")
    ours.begins()
    theirs.state = msgspec.structs.replace(theirs.state, schema=99)
    theirs.begins()
    theirs.suspends(WRITE)
    with pytest.raises(NewerSchema):
        store.load("theirs")
    assert store.load("ours") == Stored(1, ours.state)
    assert [info.session_id for info in store.sessions()] == ["theirs", "ours"]
    assert store.pending() == []


def test_the_schema_number_is_that_of_the_last_step() -> None:
    assert len(database.schema_steps()) == database.SCHEMA


def test_an_older_file_is_brought_up_to_date_in_one_transaction(path: Path, store: SQLiteStore) -> None:
    play = Play(store)
    play.begins()
    store.close()
    connection = sqlite3.connect(path, isolation_level=None)
    steps = (*database.schema_steps(), "ALTER TABLE sessions ADD COLUMN colour TEXT;\nCREATE TABLE t (x);\n")
    broken = (*steps, "CREATE TABLE u (x);\nCREATE TABLE t (x);\n")
    with pytest.raises(sqlite3.OperationalError, match="already exists"):
        database.migrate(connection, broken)
    assert connection.execute("PRAGMA user_version").fetchone() == (database.SCHEMA,)
    assert connection.execute("SELECT count(*) FROM sqlite_master WHERE name IN ('t', 'u')").fetchone() == (0,)
    database.migrate(connection, steps)
    assert connection.execute("PRAGMA user_version").fetchone() == (database.SCHEMA + 1,)
    assert connection.execute("SELECT id, colour FROM sessions").fetchall() == [("s1", None)]
    database.migrate(
        connection, steps[:1]
    )  # by an older process that asked for the version before we were here
    assert connection.execute("PRAGMA user_version").fetchone() == (database.SCHEMA + 1,)
    connection.execute(f"PRAGMA user_version = {database.SCHEMA}")
    connection.close()
    assert store.load("s1") == Stored(1, play.state)


@pytest.mark.parametrize(("synchronous", "number"), [("normal", 1), ("full", 2)])
def test_a_file_is_flushed_as_asked_whether_it_is_new_or_empty_or_was_there(
    tmp_path: Path, synchronous: database.Synchronous, number: int
) -> None:
    (tmp_path / "empty.db").touch()
    for name in ("new.db", "empty.db", "new.db"):
        store = SQLiteStore(tmp_path / name, synchronous=synchronous)
        with store.database.looking as connection:
            asked = "SELECT synchronous, journal_mode FROM pragma_synchronous, pragma_journal_mode"
            assert connection.execute(asked).fetchone() == (number, "wal")
        assert store.sessions() == []
        store.close()


# -- damage ------------------------------------------------------------------------------------------------


def five_turns(store: SQLiteStore) -> Play:
    play = Play(store)
    play.begins()
    for number in range(5):
        play.turn(number)
    return play


def step_id(version: int) -> int:
    return (1 << 32) + version


@pytest.mark.parametrize(
    "change", ["CAST(replace(CAST(data AS TEXT), 'src/3', 'src/X') AS BLOB)", "'text'", "7", "x''"]
)
def test_a_changed_step_costs_what_comes_after_it_and_says_so(
    store: SQLiteStore, path: Path, change: str
) -> None:
    play = five_turns(store)
    store.close()
    tamper(path, f"UPDATE steps SET data = {change} WHERE id = ?", step_id(8))
    stored = store.load("s1")
    assert stored is not None
    assert stored.version == 11
    assert stored.dropped == (
        "session 's1' is damaged after event 20: the next step was changed, or one before it is missing; "
        "12 events and the messages stored with them were dropped, everything before is intact",
    )
    assert list(stored.state.transcript) == list(play.state.transcript)[:7]
    assert stored.state.seq == 20
    assert list(store.events("s1")) == play.told[:20]


@pytest.mark.parametrize("column", ["first_seq", "checksum", "data"])
@pytest.mark.parametrize("value", ["'text'", "x'00'", "1.5"])
def test_a_column_of_another_type_is_damage_like_any_other(
    store: SQLiteStore, path: Path, column: str, value: str
) -> None:
    play = five_turns(store)
    store.close()
    tamper(path, f"UPDATE steps SET {column} = {value} WHERE id = ?", step_id(8))
    stored = store.load("s1")
    assert stored is not None
    assert len(stored.dropped) == 1
    assert list(store.events("s1")) == play.told[:20]
    assert list(stored.state.transcript) == list(play.state.transcript)[:7]


@pytest.mark.parametrize(("lost", "left"), [(11, 10), (8, 7), (1, 0)])
def test_a_lost_step_shows_wherever_it_was(store: SQLiteStore, path: Path, lost: int, left: int) -> None:
    five_turns(store)
    store.close()
    tamper(path, "DELETE FROM steps WHERE id = ?", step_id(lost))
    stored = store.load("s1")
    assert stored is not None
    assert len(stored.dropped) == 1
    assert stored.state.seq == (0, 2, 5, 8, 11, 14, 17, 20, 23, 26, 29, 32)[left]


def test_a_step_of_another_session_does_not_pass_for_ones_own(store: SQLiteStore, path: Path) -> None:
    five_turns(store)
    other = Play(store, "s2")
    other.begins()
    store.close()
    for column in ("data", "checksum"):
        theirs = f"(SELECT {column} FROM steps WHERE id = ?1)"
        tamper(path, f"UPDATE steps SET {column} = {theirs} WHERE id = ?1 + (1 << 32)", step_id(1))
    stored = store.load("s2")
    assert stored is not None
    assert stored.dropped != ()


def test_a_damaged_session_goes_on_from_where_it_is_sound(store: SQLiteStore, path: Path) -> None:
    play = five_turns(store)
    store.close()
    tamper(path, "UPDATE steps SET data = x'00' WHERE id = ?", step_id(8))
    stored = store.load("s1")
    assert stored is not None
    assert stored.state.rows == len(stored.state.transcript)
    again = Play(store)
    again.version, again.state, again.told = stored.version, stored.state, play.told[:20]
    again.turn(7)
    again.answers()
    assert store.load("s1") == Stored(14, again.state)
    assert list(store.events("s1")) == again.told
    assert list(store.events("s1", 21)) == again.told[21:]
    assert store.check() == []
    store.close()
    connection = sqlite3.connect(path)
    assert connection.execute("SELECT count(*) FROM steps WHERE id < 0").fetchone() == (4,)  # set aside
    connection.close()
    assert store.delete("s1") is True
    connection = sqlite3.connect(path)
    assert connection.execute(f"SELECT count(*) FROM steps WHERE id < {END}").fetchone() == (0,)
    connection.close()


def test_a_lost_result_leaves_a_remark_so_that_the_transcript_stays_valid(
    store: SQLiteStore, path: Path
) -> None:
    play = five_turns(store)
    store.close()
    tamper(path, "DELETE FROM steps WHERE id >= ?", step_id(5))  # the result of call_1
    stored = store.load("s1")
    assert stored is not None
    kept = list(play.state.transcript)[:4]
    lost = observation(ToolResult("call_1", LOST, is_error=True, executed=None))
    assert list(stored.state.transcript) == [*kept, lost]
    assert store.commit("s1", stored.version, Record(stored.state)) == 12
    assert store.load("s1") == Stored(12, stored.state)


def test_a_run_whose_beginning_was_lost_keeps_its_id(store: SQLiteStore, path: Path) -> None:
    play = Play(store)
    play.begins()
    play.turn(1)
    play.run_id = "run-2"
    play.begins("again")
    store.close()
    tamper(path, "DELETE FROM steps WHERE id = ?", step_id(4))
    stored = store.load("s1")
    assert stored is not None
    again = Play(store, run_id="run-2")
    again.version, again.state = stored.version, stored.state
    again.turn(2)
    assert [event.run_id for event in store.events("s1")][8:] == ["run-2"] * 6


def test_a_batch_whose_result_was_lost_tells_it_again(store: SQLiteStore, path: Path) -> None:
    one, two = ToolCall("call_1", "ls", {}), ToolCall("call_2", "ls", {})
    play = Play(store)
    play.begins()
    play.asks(one, two)
    entries = play.state.batch.calls if play.state.batch else ()
    for number, call in enumerate((one, two)):
        result = ToolResult(call.call_id, f"result {number}")
        entries = tuple(
            msgspec.structs.replace(entry, status="finished", result=result) if entry.call == call else entry
            for entry in entries
        )
        batch = Batch(entries, started=True, told=number + 1)
        play.commit(play.record([observation(result)], (), state={"batch": batch}))
    store.close()
    tamper(path, "DELETE FROM steps WHERE id = ?", step_id(4))
    stored = store.load("s1")
    assert stored is not None
    assert stored.state.batch == Batch(entries, started=True, told=1)
    assert list(stored.state.transcript) == list(play.state.transcript)[:3]


def test_a_view_ends_where_the_rows_do(store: SQLiteStore, path: Path) -> None:
    play = five_turns(store)
    rows = list(play.state.transcript)
    summary = note("summary", "what happened")
    view = ((11, 12), (1, 11), (12, -1))
    state = msgspec.structs.replace(play.state, view=view, transcript=Transcript([summary, *rows[1:]]))
    store.commit("s1", 11, Record(state, [summary]))
    store.close()
    tamper(path, "DELETE FROM steps WHERE id > ?", step_id(9))
    stored = store.load("s1")
    assert stored is not None
    assert list(stored.state.transcript) == rows[1:9]
    more = [user(str(number)) for number in range(4)]
    grown = msgspec.structs.replace(stored.state, transcript=stored.state.transcript.append(*more))
    store.commit("s1", 12, Record(grown, more))
    assert store.load("s1") == Stored(13, grown)


def test_open_approvals_outlive_the_loss_of_the_messages_they_came_from(store: SQLiteStore, path: Path) -> None:
    play = Play(store)
    play.begins()
    play.turn(1)
    play.suspends(WRITE)
    store.close()
    tamper(path, "DELETE FROM steps WHERE id >= ?", step_id(4))
    stored = store.load("s1")
    assert stored is not None
    assert len(stored.dropped) == 1
    assert stored.state.batch == play.state.batch
    assert list(stored.state.transcript) == [*list(play.state.transcript)[:3], assistant("", WRITE)]
    assert [one.tasks[0].call_id for one in store.pending()] == ["call_w"]
    store.commit("s1", stored.version, Record(stored.state))
    assert store.load("s1") == Stored(5, stored.state)


def test_a_damaged_head_is_refused_and_rebuilt_by_the_doctor(store: SQLiteStore, path: Path) -> None:
    play = five_turns(store)
    store.close()
    tamper(path, "UPDATE sessions SET head = CAST(replace(CAST(head AS TEXT), 'run-1', 'run-2') AS BLOB)")
    with pytest.raises(StoreError, match="the head of session 's1' is damaged: run `jackstay doctor --repair`"):
        store.load("s1")
    assert [info.session_id for info in store.sessions()] == ["s1"]
    assert len(store.check()) == 1
    assert "rebuilt from its events" in store.check(repair=True)[0]
    stored = store.load("s1")
    assert stored is not None
    assert stored.state.transcript == play.state.transcript
    assert (stored.state.run_id, stored.state.seq, stored.state.outcome) == ("run-1", 32, "failed")
    assert stored.state.rows == len(stored.state.transcript)  # or a later change would fall on another message
    assert store.check() == []


def test_the_doctor_repairs_a_torn_session(store: SQLiteStore, path: Path) -> None:
    five_turns(store)
    store.close()
    tamper(path, "UPDATE steps SET data = x'00' WHERE id = ?", step_id(8))
    before = store.check()
    assert len(before) == 1
    assert store.check(repair=True) == [
        *before, "session 's1' goes on from there; the damaged steps were set aside",
    ]  # fmt: skip
    assert store.check() == []
    stored = store.load("s1")
    assert stored is not None
    assert (stored.version, stored.dropped, stored.state.seq) == (12, (), 20)
    assert stored.state.rows == len(stored.state.transcript)


def test_the_doctor_leaves_a_session_alone_that_somebody_runs(store: SQLiteStore, path: Path) -> None:
    five_turns(store)
    store.close()
    tamper(path, "UPDATE steps SET data = x'00' WHERE id = ?", step_id(8))
    tamper(path, "UPDATE sessions SET lease_owner = 'elsewhere:1:2', lease_until = 1e12")
    found = store.check(repair=True)
    assert len(found) == 2
    assert "is being run by elsewhere:1:2" in found[1]


def test_the_doctor_leaves_a_broken_file_alone_while_somebody_runs(
    store: SQLiteStore, path: Path, twelve: list[Play]
) -> None:
    tamper(path, "UPDATE sessions SET lease_owner = 'elsewhere:1:2', lease_until = 1e12 WHERE id = 's00'")
    left = truncate(path, 0.9)
    assert store.check(repair=True)[1] == "not repaired: s00 run just now; end them and try again"
    assert path.read_bytes() == left


def test_several_processes_may_make_the_file_at_once(path: Path) -> None:
    workers = [worker("begin", path, f"s{number}") for number in range(4)]
    assert [ended(one) for one in workers] == ["begun\n"] * 4
    store = SQLiteStore(path)
    assert (len(store.sessions()), store.check()) == (4, [])
    store.close()


def test_the_doctor_deletes_rows_that_belong_to_nobody(store: SQLiteStore, path: Path) -> None:
    five_turns(store)
    store.post("s1", Posted(0, "cancel", command="cancel"))
    store.close()
    tamper(path, "DELETE FROM sessions")
    assert store.check() == ["11 rows of steps belong to no session", "1 rows of inbox belong to no session"]
    assert store.check(repair=True)[0] == "11 rows of steps belong to no session: deleted"
    assert store.check() == []


@pytest.fixture
def twelve(store: SQLiteStore) -> list[Play]:
    """Twelve sessions whose steps come to some fifty pages."""
    plays = [Play(store, f"s{number:02}") for number in range(12)]
    for play in plays:
        play.begins("words " * 300)
    for turn in range(8):
        for play in plays:
            play.turn(turn)
    store.close()
    return plays


def truncate(path: Path, share: float) -> bytes:
    with path.open("r+b") as file:
        file.truncate(int(path.stat().st_size * share) // database.PAGE_BYTES * database.PAGE_BYTES)
    return path.read_bytes()


def test_a_truncated_file_opens_to_what_is_left_and_is_never_written(
    store: SQLiteStore, path: Path, twelve: list[Play]
) -> None:
    left = truncate(path, 0.6)
    assert len(store.sessions()) == 12
    loaded = {play.session_id: store.load(play.session_id) for play in twelve}
    whole = [play for play in twelve if loaded[play.session_id] == Stored(17, play.state)]
    torn = [stored for stored in loaded.values() if stored is not None and stored.dropped]
    assert (len(whole) > 1, len(torn) > 1, len(whole) + len(torn)) == (True, True, 12)
    for play in twelve:
        told = list(store.events(play.session_id))
        assert told == play.told[: len(told)]
    with pytest.raises(StoreError, match=r"is damaged .* run `jackstay doctor --repair`"):
        whole[1].turn(9)
    assert path.read_bytes() == left

    said = store.check(repair=True)
    assert "ends too early" in said[0]
    assert said[1].startswith("saved 12 sessions")
    assert store.check() == []
    assert (path.parent / "sessions.db.damaged-1").read_bytes() == left
    for name, before in loaded.items():
        after = store.load(name)
        assert (before is not None, after is not None) == (True, True)
        assert after.state == before.state  # type: ignore[union-attr] - asserted above
    whole[0].turn(9)
    assert store.load(whole[0].session_id) == Stored(19, whole[0].state)


@pytest.mark.parametrize("share", [0.15, 0.2, 0.3, 0.5, 0.8, 0.99])
def test_whatever_is_cut_off_the_doctor_makes_a_sound_store_of_the_rest(
    store: SQLiteStore, path: Path, twelve: list[Play], share: float
) -> None:
    truncate(path, share)
    before = store.check()
    assert "ends too early" in before[0]
    store.check(repair=True)
    assert store.check() == []
    for play in twelve:
        stored = store.load(play.session_id)
        if stored is not None:
            told = list(store.events(play.session_id))
            assert told == play.told[: len(told)]
            said = list(stored.state.transcript)
            last = len(said) - 1 if stored.state.transcript and LOST in str(said[-1]) else len(said)
            assert said[:last] == list(play.state.transcript)[:last]


@pytest.mark.parametrize("seed", range(6))
def test_a_page_of_junk_never_makes_a_wrong_session(path: Path, seed: int) -> None:
    store = SQLiteStore(path)
    play = Play(store)
    play.begins("words " * 300)
    for turn in range(60):
        play.turn(turn)
    store.close()
    chance = random.Random(seed)
    pages = path.stat().st_size // database.PAGE_BYTES
    with path.open("r+b") as file:
        file.seek(chance.randrange(1, pages) * database.PAGE_BYTES + 300)
        file.write(chance.randbytes(700))
    try:
        stored = store.load("s1")
    except StoreError:
        stored = None
    if stored is not None and stored.dropped:
        assert list(store.events("s1")) == play.told[: stored.state.seq]
    elif stored is not None:
        assert stored == Stored(121, play.state)
    else:
        assert any("doctor" in line or "damaged" in line for line in store.check())
    store.close()


# -- size --------------------------------------------------------------------------------------------------


def test_200_small_tool_turns_fit_into_72_kb_schema_included(store: SQLiteStore, path: Path) -> None:
    store.sessions()
    store.close()
    empty = path.stat().st_size
    play = Play(store)
    play.begins()
    for number in range(200):
        play.turn(number)
    play.answers()
    store.close()
    assert path.stat().st_size <= 72_000
    assert (path.stat().st_size - empty) / 200 <= 360


@pytest.mark.parametrize("at_once", [1, 3])
def test_a_run_of_200_tool_turns_takes_at_most_80_kb(tmp_path: Path, at_once: int) -> None:
    @tool(effects={"reads"}, idempotent=True)
    async def ls(path: str) -> str:
        """List files."""
        return f"{path}.py"

    store = SQLiteStore(tmp_path / "s.db")

    def made() -> HarnessEngine:
        turns = [reply(asks("ls", f"call_{number}", path=f"src/{number}")) for number in range(200)]
        return HarnessEngine(
            model=ScriptedModel([*turns, "done"]), session_provider=store, tools=(ls,), max_turns=500,
            installed_extensions=False, workspace=str(tmp_path), harness_home=str(tmp_path / "home"),
            compression_threshold=(10_000, 0.99),
        )  # fmt: skip

    async def run() -> None:
        async with asyncio.TaskGroup() as group:
            for number in range(at_once):
                group.create_task(made().prompt("look around").session(f"s{number}").call())

    asyncio.run(run())
    assert [(info.outcome, info.turn) for info in store.sessions()] == [("answered", 201)] * at_once
    store.close()
    assert (tmp_path / "s.db").stat().st_size <= 80_000 * at_once


def test_the_bytes_of_a_message_are_at_most_twice_its_json_at_any_length_of_history(
    store: SQLiteStore, path: Path
) -> None:
    play = Play(store)
    play.begins()
    said = 0
    sizes = []
    for block in range(4):
        before = len(play.state.transcript)
        for number in range(50):
            call = ToolCall(f"call_{block}_{number}", "bash", {"command": f"grep -rn 'word {number}' src"})
            play.asks(call, text="Let me look at that, then decide what to change.")
            play.observes((call, f"src/a.py:{number}: a line of code that was found\n" * 5))
        said = sum(len(encode(m)) for m in play.state.transcript.since(before))
        store.close()
        sizes.append(path.stat().st_size)
    grown = [b - a for a, b in pairwise(sizes)]
    assert all(size <= 1.6 * said for size in grown)
    assert max(grown) - min(grown) <= 3 * database.PAGE_BYTES


def test_a_deleted_session_leaves_no_word_in_the_file(store: SQLiteStore, path: Path) -> None:
    Play(store, "s0").begins("kept words")
    Play(store, "s1").begins("my very secret words")
    assert any(b"very secret" in file.read_bytes() for file in path.parent.iterdir())
    store.delete("s1")
    assert not any(b"very secret" in file.read_bytes() for file in path.parent.iterdir())


def test_owners_of_this_process_are_alive_and_those_of_the_past_are_not() -> None:
    me = leases.this_process("engine-1")
    host, pid, start, nonce = me.split(":")
    assert (int(pid), nonce) == (os.getpid(), "engine-1")
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    cases = {
        me: False,
        f"{host}:{pid}:{int(start) + 1}": True,  # the number was given to another process
        f"{host}:{gone.pid}:{start}": True,
        f"other{host}:{gone.pid}:{start}": False,
        "worker-a": False,
        "": False,
        f"{host}:x:y": False,
        f"{host}:{gone.pid}": False,
        f"{host}:{'9' * 40}:1": False,
    }
    assert {owner: leases.is_gone(owner) for owner in cases} == cases


def test_a_lease_in_the_file_of_a_process_that_is_gone_is_not_shown(store: SQLiteStore) -> None:
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    play = Play(store)
    play.lease = Lease(f"{leases.this_process().split(':')[0]}:{gone.pid}:1", 1e12)
    play.begins()
    stored = store.head("s1")
    assert stored is not None
    assert stored.lease is None
