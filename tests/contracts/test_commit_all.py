"""Several commits at once: each as if it were alone, all in one transaction."""

import os
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from jackstay.core.errors import Conflict, SessionBusy, StoreError
from jackstay.core.events import ReasonDeltaEvent
from jackstay.core.messages import ToolCall, user
from jackstay.engine.ports import Artifact, Commit, GroupStore, Lease, Posted, Record, Stored
from jackstay.store.memory import MemoryStore
from jackstay.store.sqlite import SQLiteStore
from tests.contracts.made import Play
from tests.contracts.test_sqlite_file import tamper

OWNER, OTHER = "elsewhere:1:1", "elsewhere:2:2"
UNTIL = 1e12
HERE = Path(__file__).parent


class Collecting(Play):
    """A play whose commits are collected, to be stored together."""

    def __init__(self, session_id: str, *, lease: Lease | None = None) -> None:
        super().__init__(None, session_id)
        self.lease = lease or Lease(OWNER, UNTIL)
        self.commits: list[Commit] = []

    def commit(self, record: Record) -> Record:
        self.commits.append(Commit(self.session_id, self.version, record))
        self.version += 1
        self.told += record.events
        return record

    def made(self) -> list[Commit]:
        commits, self.commits = self.commits, []
        return commits


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "s.db"


@pytest.fixture
def store(path: Path) -> Iterator[SQLiteStore]:
    made = SQLiteStore(path)
    yield made
    assert made.check() == []
    made.close()


def plays(store: SQLiteStore, count: int = 4) -> list[Collecting]:
    """Sessions in mid-run, stored together from their first step on."""
    made = [Collecting(f"s{number}") for number in range(count)]
    for verb in (lambda play: play.begins(), lambda play: play.turn(0), lambda play: play.turn(1)):
        for play in made:
            verb(play)
        commits = [commit for play in made for commit in play.made()]
        assert store.commit_all(commits) == [commit.expected + 1 for commit in commits]
    return made


def stored_as(store: SQLiteStore, path: Path, *made: Collecting) -> None:
    """What is stored, here and in the file, is what the plays have come to."""
    other = SQLiteStore(path)
    for play in made:
        for reader in (store, other):
            assert reader.load(play.session_id) == Stored(play.version, play.state, (), play.lease)
            assert list(reader.events(play.session_id)) == play.told
    other.close()


def test_the_file_is_a_group_store_and_the_memory_is_none(store: SQLiteStore) -> None:
    assert isinstance(store, GroupStore)
    assert not isinstance(MemoryStore(), GroupStore)


def test_nothing_at_all_is_stored_at_once(store: SQLiteStore) -> None:
    assert store.commit_all([]) == []


def test_several_steps_of_several_sessions_are_stored_in_their_order(store: SQLiteStore, path: Path) -> None:
    made = plays(store)
    stored_as(store, path, *made)
    for play in made:
        play.turn(2)
    store.commit_all([commit for pair in zip(*(play.made() for play in made), strict=True) for commit in pair])
    stored_as(store, path, *made)
    for play in made:
        play.answers()
        play.lease = None
    assert store.commit_all([commit for play in made for commit in play.made()]) == [8] * 4
    stored_as(store, path, *made)


def test_a_whole_session_may_be_one_group(store: SQLiteStore, path: Path) -> None:
    play = Collecting("s1")
    play.begins()
    play.turn(0)
    call = ToolCall("call_a", "ls", {})
    play.asks(call)
    play.observes((call, "head"), artifacts=[Artifact("call_a", "whole")])
    play.turn(1)
    play.answers()
    play.lease = None
    assert store.commit_all(play.made()) == list(range(1, 9))
    stored_as(store, path, play)
    assert store.artifact("s1", "call_a") == "whole"
    assert store.commit("s1", 8, Record(play.state)) == 9


def refusals() -> dict[str, tuple[Any, type[Exception]]]:
    """What may be wrong with one commit: how it is made so, and what it is told."""

    def other_version(store: SQLiteStore, path: Path, commit: Commit) -> Commit:
        return commit._replace(expected=commit.expected + 3)

    def stored_by_another(store: SQLiteStore, path: Path, commit: Commit) -> Commit:
        other = SQLiteStore(path)
        other.commit(*commit)
        other.close()
        return commit

    def held_by_another(store: SQLiteStore, path: Path, commit: Commit) -> Commit:
        tamper(path, "UPDATE sessions SET lease_owner = ? WHERE id = ?", OTHER, commit.session_id)
        tamper(path, "UPDATE steps SET run_id = ? WHERE run_id = ? AND id / ? = 3", OTHER, OWNER, 1 << 32)
        return commit

    def deleted(store: SQLiteStore, path: Path, commit: Commit) -> Commit:
        other = SQLiteStore(path)
        other.delete(commit.session_id)
        other.close()
        return commit

    def transient(store: SQLiteStore, path: Path, commit: Commit) -> Commit:
        event = ReasonDeltaEvent("run-1", commit.session_id, None, 0.5, "no")
        return commit._replace(record=replace(commit.record, events=[event]))

    def unspeakable(store: SQLiteStore, path: Path, commit: Commit) -> Commit:
        return commit._replace(record=replace(commit.record, appended=[user("\ud800")]))

    def artifact(store: SQLiteStore, path: Path, commit: Commit) -> Commit:
        """Found out when everything else of the commit is written already."""
        return commit._replace(record=replace(commit.record, artifacts=[Artifact("call_x", "\ud800")]))

    def step_is_there(store: SQLiteStore, path: Path, commit: Commit) -> Commit:
        """So is this."""
        step = (3 << 32) + commit.expected + 1
        tamper(path, "UPDATE steps SET id = -1 WHERE id = ?", step - 1)
        tamper(path, "UPDATE sessions SET version = ?, lease_owner = NULL WHERE key = 3", commit.expected)
        tamper(path, "INSERT INTO steps VALUES (?, 1, NULL, 0, x'')", step)
        return commit

    return {
        "version": (other_version, Conflict), "stored by another": (stored_by_another, Conflict),
        "held by another": (held_by_another, SessionBusy), "deleted": (deleted, Conflict),
        "transient": (transient, TypeError), "no text": (unspeakable, UnicodeEncodeError),
        "no artifact": (artifact, UnicodeEncodeError), "step is there": (step_is_there, StoreError),
    }  # fmt: skip


@pytest.mark.parametrize("what", refusals())
def test_what_is_wrong_with_one_commit_is_told_to_it_alone_and_nothing_of_it_is_written(
    path: Path, what: str
) -> None:
    store = SQLiteStore(path)
    made = plays(store)
    bad = made[2]
    before = bad.state, bad.version
    for play in made:
        call = ToolCall("call_5", "ls", {})
        play.asks(call)
    commits = [commit for play in made for commit in play.made()]
    spoil, kind = refusals()[what]
    commits[2] = spoil(store, path, commits[2])
    rows = dump(path, 3)
    outcomes = store.commit_all(commits)
    assert isinstance(outcomes[2], kind)
    assert [outcome for place, outcome in enumerate(outcomes) if place != 2] == [6] * 3
    assert dump(path, 3) == rows
    stored_as(store, path, made[0], made[1], made[3])
    alone = SQLiteStore(path)
    alone._held.update(store._held)
    with pytest.raises(type(outcomes[2])):
        alone.commit(*commits[2])
    alone.close()
    if kind not in (Conflict, SessionBusy, StoreError):  # it was this record's fault: the run may go on
        bad.state, bad.version = before
        assert store.commit("s2", bad.version, Record(bad.state, lease=bad.lease)) == 6
    store.close()


def dump(path: Path, key: int) -> list[Any]:
    """All rows of a session."""
    connection = sqlite3.connect(path)
    found = [
        connection.execute("SELECT * FROM sessions WHERE key = ?", (key,)).fetchall(),
        connection.execute("SELECT * FROM steps WHERE id / ? = ? ORDER BY id", (1 << 32, key)).fetchall(),
        connection.execute("SELECT * FROM artifacts WHERE session = ?", (key,)).fetchall(),
    ]
    connection.close()
    return found


def test_a_post_in_between_makes_one_of_them_go_the_slow_way(store: SQLiteStore, path: Path) -> None:
    made = plays(store)
    other = SQLiteStore(path)
    other.post("s1", Posted(0, "cancel", command="cancel"))
    other.close()
    for play in made:
        play.turn(5)
    store.commit_all([commit for play in made for commit in play.made()])
    stored_as(store, path, *made)
    assert [store.posted(play.session_id) for play in made] == [False, True, False, False]
    assert [item.key for item in store.inbox("s1")] == ["cancel"]


def test_a_locked_file_keeps_all_from_being_stored_and_all_go_on_afterwards(path: Path) -> None:
    store = SQLiteStore(path, wait_s=0.05)
    made = plays(store)
    known = {play.session_id: store.load(play.session_id) for play in made}
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    for play in made:
        play.turn(5)
    commits = [commit for play in made for commit in play.made()]
    with pytest.raises(StoreError, match="locked"):
        store.commit_all(commits)
    other.execute("ROLLBACK")
    other.close()
    assert {play.session_id: store.load(play.session_id) for play in made} == known
    assert store.commit_all(commits) == [6, 7] * 4
    stored_as(store, path, *made)
    store.close()


FULL = """
import resource, signal, sys
from pathlib import Path
from jackstay.core.errors import StoreError
from jackstay.store.sqlite import SQLiteStore
from tests.contracts.test_commit_all import plays, stored_as
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
path = Path(sys.argv[1])
store = SQLiteStore(path)
made = plays(store)
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]), resource.RLIM_INFINITY))
number, before = 10, None
try:
    while True:
        before = [(play.state, play.version, list(play.told)) for play in made]
        for play in made:
            play.turn(number)
        store.commit_all([commit for play in made for commit in play.made()])
        number += 1
except StoreError as problem:
    print(number, problem)
for play, (state, version, told) in zip(made, before):
    play.state, play.version, play.told = state, version, told
stored_as(store, path, *made)
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
for play in made:
    play.commits.clear()
    play.turn(99)
assert all(isinstance(one, int) for one in store.commit_all([c for play in made for c in play.made()]))
stored_as(store, path, *made)
assert store.check() == []
print("sound")
"""


@pytest.mark.parametrize("size", [150_000, 151_000, 0])
def test_a_full_disk_stores_none_of_them_and_afterwards_all_go_on(path: Path, size: int) -> None:
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join([str(HERE), *sys.path])}
    done = subprocess.run(
        [sys.executable, "-c", FULL, str(path), str(size)],
        env=environ, text=True, capture_output=True, timeout=60,
    )  # fmt: skip
    assert done.stderr == ""
    first, second = done.stdout.splitlines()
    assert "this step was not stored, everything before it is" in first
    assert second == "sound"


def test_a_forked_child_knows_nothing_of_what_its_parent_stores(store: SQLiteStore, path: Path) -> None:
    made = plays(store)
    for play in made:
        play.turn(5)
    commits = [commit for play in made for commit in play.made()]
    child = os.fork()
    if child == 0:
        try:
            outcomes = store.commit_all(commits)
            store.close()
            os._exit(0 if outcomes == [6, 7] * 4 else 1)
        finally:
            os._exit(2)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert [type(outcome) for outcome in store.commit_all(commits)] == [Conflict] * 8
    stored_as(store, path, *made)


def test_threads_that_store_groups_and_single_steps_lose_none(store: SQLiteStore, path: Path) -> None:
    failures: list[BaseException] = []
    groups = [[Collecting(f"g{group}-{number}") for number in range(3)] for group in range(3)]
    singles = [Collecting(f"one-{number}") for number in range(3)]

    def work(made: list[Collecting], *, at_once: bool) -> None:
        try:
            for turn in range(20):
                for play in made:
                    play.turn(turn) if turn else play.begins()
                commits = [commit for play in made for commit in play.made()]
                if at_once:
                    assert store.commit_all(commits) == [commit.expected + 1 for commit in commits]
                else:
                    for commit in commits:
                        store.commit(*commit)
        except BaseException as problem:
            failures.append(problem)

    threads = [threading.Thread(target=work, args=(made,), kwargs={"at_once": True}) for made in groups]
    threads += [threading.Thread(target=work, args=([one],), kwargs={"at_once": False}) for one in singles]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    stored_as(store, path, *(play for group in groups for play in group), *singles)


def test_two_threads_that_store_the_same_steps_store_each_once(store: SQLiteStore, path: Path) -> None:
    made = plays(store)
    for turn in range(20):
        for play in made:
            play.turn(turn)
        commits = [commit for play in made for commit in play.made()]
        outcomes: list[list[int | Exception]] = []
        gate = threading.Barrier(2)

        def store_them(commits: list[Commit] = commits, outcomes: Any = outcomes, gate: Any = gate) -> None:
            gate.wait()
            outcomes.append(store.commit_all(commits))

        threads = [threading.Thread(target=store_them) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        won = [sum(isinstance(one, int) for one in outcome) for outcome in outcomes]
        assert sorted(won) == [0, len(commits)]
    stored_as(store, path, *made)
