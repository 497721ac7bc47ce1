"""A run under way in a file: after each step everybody sees the whole of it, and nothing of it is lost unsaid."""

import asyncio
import sqlite3
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from jackstay import HITL, AgentSession, HarnessEngine, HITLDecision, HITLInterceptor, tool
from jackstay.core.errors import AlreadyDecided, Conflict, SessionBusy, StoreError
from jackstay.core.messages import Message, ToolCall
from jackstay.core.rules import PermissionRule
from jackstay.core.state import RunState
from jackstay.engine.ports import Artifact, Commit, Lease, Posted, Record, Stored
from jackstay.models.scripted import ScriptedModel
from jackstay.store import database
from jackstay.store.memory import MemoryStore
from jackstay.store.sqlite import SQLiteStore
from jackstay.store.steps import LOST
from jackstay.store.tables import END
from tests.contracts.made import Play
from tests.elsewhere import asks, reply
from tests.make import unanswered

OWNER, OTHER = "elsewhere:1:1", "elsewhere:2:2"


class Clock:
    """The time, as a test sets it."""

    def __init__(self) -> None:
        self.at = 1_800_000_000.0

    def __call__(self) -> float:
        return self.at


class Place:
    """One file, opened as often as wanted, each time as another process would."""

    def __init__(self, path: Path) -> None:
        self.path, self.clock = path, Clock()
        self._open: list[SQLiteStore] = []

    def store(self) -> SQLiteStore:
        made = SQLiteStore(self.path, now=self.clock)
        self._open.append(made)
        return made

    def run(self, name: str = "s1", *, turns: int = 3, store: SQLiteStore | None = None) -> Play:
        """A session in mid-run: its row says version 1, and the rest is progress."""
        play = Play(store or self.store(), name)
        play.state = replace(
            play.state, policy=replace(play.state.policy, rules=(PermissionRule("ls", "allow"),))
        )
        play.lease = Lease(OWNER, self.clock() + 60)
        play.begins()
        for number in range(turns):
            play.turn(number)
        assert self.row(name) == (1, OWNER)
        return play

    def row(self, name: str = "s1") -> Any:
        return self.ask("SELECT version, lease_owner FROM sessions WHERE id = ?", name)[0]

    def ask(self, statement: str, *values: object) -> list[Any]:
        connection = sqlite3.connect(self.path)
        with connection:
            found = connection.execute(statement, values).fetchall()
        connection.close()
        return found

    def progress(self) -> int:
        """How many rows of progress there are."""
        return int(self.ask("SELECT count(*) FROM steps WHERE id & 4294967295 = 4294967295")[0][0])

    def shut(self) -> None:
        """All processes end."""
        for store in self._open:
            store.close()


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    made = Place(tmp_path / "s.db")
    yield made
    made.shut()


def step_id(version: int) -> int:
    return (1 << 32) + version


PROGRESS = step_id((1 << 32) - 1)


# -- what others see ---------------------------------------------------------------------------------------


class Mirrored(SQLiteStore):
    """A file's store that has each commit also go into memory, and compares what others see then."""

    def __init__(self, place: Place) -> None:
        super().__init__(place.path, now=place.clock)
        self.clock, self.other = place.clock, place.store()
        self.memory = MemoryStore(now=place.clock)
        self.compared = self.behind = 0

    def commit(self, session_id: str, expected: int, record: Record) -> int:
        self.clock.at += 0.25
        made = super().commit(session_id, expected, record)
        assert self.memory.commit(session_id, expected, record) == made
        self.compare(session_id)
        return made

    def commit_all(self, commits: Sequence[Commit]) -> list[int | Exception]:
        self.clock.at += 0.25
        made = super().commit_all(commits)
        assert [self.memory.commit(*commit) for commit in commits] == made
        for commit in commits:
            self.compare(commit.session_id)
        return made

    def post(self, session_id: str, *items: Posted, expected: int | None = None) -> int:
        number = super().post(session_id, *items, expected=expected)
        assert self.memory.post(session_id, *items, expected=expected) == number
        self.compare(session_id)
        return number

    def compare(self, name: str) -> None:
        memory = self.memory
        for store in (self, self.other):
            assert store.load(name) == memory.load(name)
            assert store.head(name) == memory.head(name)
            assert list(store.events(name)) == list(memory.events(name))
            last = memory.head(name).state.seq  # type: ignore[union-attr] - it was just committed
            for after in (last - 1, last // 2):
                assert list(store.events(name, after)) == list(memory.events(name, after))
            assert sorted(store.sessions(), key=str) == sorted(memory.sessions(), key=str)
            assert store.inbox(name) == memory.inbox(name)
            assert store.posted(name) or not memory.inbox(name)
            assert sorted(store.pending(), key=str) == sorted(memory.pending(), key=str)
        self.compared += 1
        with self.database.looking as connection:
            (version,) = connection.execute("SELECT version FROM sessions WHERE id = ?", (name,)).fetchone()
        self.behind += version != memory.head(name).version  # type: ignore[union-attr] - as above


@tool(effects={"reads"}, idempotent=True)
async def look(name: str) -> str:
    """Look."""
    await asyncio.sleep(0)
    return f"saw {name}" * (9000 if name == "long" else 1)


@tool(effects={"writes"})
async def deploy(name: str) -> str:
    """Deploy."""
    await asyncio.sleep(0)
    return f"deployed {name}"


TURNS = [
    reply(asks("look", "a"), say="[HARNESS: plan]"),
    reply(asks("look", "b"), asks("look", "c"), asks("look", "d"), say="I look at three."),
    reply(asks("look", "long")),
    reply(asks("look", "e"), asks("deploy", "f"), say="Now the risky part."),
    reply(asks("look", "g"), asks("look", "g", name="again")),
    "done",
]


@pytest.mark.parametrize("at_once", [1, 3])
def test_after_every_commit_of_a_run_all_stores_give_the_same_answers(place: Place, at_once: int) -> None:
    store = Mirrored(place)
    names = [f"s{number}" for number in range(at_once)]

    async def ask(text: str | None, name: str) -> None:
        made = HarnessEngine(
            workspace=str(place.path.parent), harness_home=str(place.path.parent / "home"),
            session_provider=store, model=ScriptedModel(TURNS), tools=(look, deploy, "hitl"), hitl_enabled=True,
            hitl_interceptor=HITLInterceptor().on_sensitive_tool("deploy"), installed_extensions=False,
            discipline="guided",
        )  # fmt: skip
        await made.prompt(text).session(name).call()

    async def all_ask(text: str | None) -> None:
        async with asyncio.TaskGroup() as group:
            for name in names:
                group.create_task(ask(text, name))

    asyncio.run(all_ask("go"))
    assert [info.outcome for info in store.sessions()] == ["pending"] * at_once
    for name in names:
        session = AgentSession(name, store, now=place.clock)
        (task,) = HITL.get_pending_tasks(session)
        HITL.submit(session, task, HITLDecision.approve())
    asyncio.run(all_ask(None))
    assert [info.outcome for info in store.sessions()] == ["answered"] * at_once
    assert store.compared >= 18 * at_once
    assert store.behind >= 2 * at_once
    assert place.progress() == 0
    assert store.check() == []
    store.close()


# -- what comes between ------------------------------------------------------------------------------------


def test_what_another_store_posts_in_mid_run_is_known_after_the_next_step(place: Place) -> None:
    play, other = place.run(), place.store()
    assert isinstance(play.store, SQLiteStore)
    assert not play.store.posted("s1")
    number = other.post("s1", Posted(0, "cancel", command="cancel"), expected=play.version)
    play.turn(7)
    assert play.store.posted("s1")
    assert [item.number for item in play.store.inbox("s1")] == [number]
    assert other.load("s1") == Stored(play.version, play.state, (), play.lease)
    play.turn(8)
    assert play.store.posted("s1")
    play.commit(play.record([], [], drained=[number]))
    assert not play.store.posted("s1")
    before = place.row()
    play.turn(9)
    assert place.row() == before  # the quick way again
    assert other.inbox("s1") == ()
    assert other.load("s1") == Stored(play.version, play.state, (), play.lease)
    with pytest.raises(Conflict):
        other.post("s1", Posted(0, "x", command="x"), expected=play.version - 1)


def test_what_a_store_posts_itself_is_not_forgotten_when_the_next_step_cannot_be_stored(place: Place) -> None:
    store = SQLiteStore(place.path, now=place.clock, wait_s=0.05)
    play = place.run(store=store)
    store.post("s1", Posted(0, "cancel", command="cancel"))
    with pytest.raises(AlreadyDecided):
        store.post("s1", Posted(0, "cancel", command="cancel"))
    other = sqlite3.connect(place.path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    state, version = play.state, play.version
    with pytest.raises(StoreError, match="locked"):
        play.turn(4)
    other.execute("ROLLBACK")
    other.close()
    assert store.posted("s1")
    play.state, play.version = state, version
    play.turn(4)
    assert store.posted("s1")
    store.close()


def test_a_lease_that_ran_out_may_be_taken_and_its_first_owner_stores_nothing_more(place: Place) -> None:
    play, other = place.run(), place.store()
    place.clock.at += 50
    play.lease = Lease(OWNER, place.clock() + 5)
    play.turn(4)  # the lease now ends five seconds from here
    stored = other.load("s1")
    assert stored is not None
    assert stored.lease == play.lease
    theirs = Record(replace(stored.state, turn=99), lease=Lease(OTHER, place.clock() + 65))
    place.clock.at += 4
    with pytest.raises(SessionBusy):
        other.commit("s1", play.version, theirs)
    place.clock.at += 2
    version = other.commit("s1", play.version, theirs)
    with pytest.raises(SessionBusy):
        play.turn(5)
    assert other.load("s1") == Stored(version, theirs.head, (), theirs.lease)
    other.commit("s1", version, Record(theirs.head))
    with pytest.raises(Conflict):
        play.turn(5)
    assert place.progress() == 0


def test_a_renewed_lease_holds_until_then_and_the_next_step_moves_it_on(place: Place) -> None:
    play, other = place.run(), place.store()
    assert isinstance(play.store, SQLiteStore)
    for ahead in (300, 20):
        until = place.clock() + ahead
        assert play.store.renew("s1", Lease(OWNER, until))
        stored = other.head("s1")
        assert stored is not None
        assert stored.lease == Lease(OWNER, until)
        assert not other.renew("s1", Lease(OTHER, until))
        play.lease = Lease(OWNER, until + 3)
        play.turn(ahead)
        stored = other.head("s1")
        assert stored is not None
        assert stored.lease == play.lease


def test_a_session_deleted_by_another_store_in_mid_run_is_not_written_to(place: Place) -> None:
    play, other = place.run(), place.store()
    assert other.delete("s1")
    with pytest.raises(Conflict):
        play.turn(4)
    assert place.ask(f"SELECT * FROM steps WHERE id < {END}") == []
    assert other.check() == []


@pytest.mark.parametrize("turns", [0, 1, 3])
def test_a_session_deleted_and_made_anew_gets_nothing_of_the_run_that_was_there(
    place: Place, turns: int
) -> None:
    """Even where the new one has the key of the old."""
    play, other = place.run(turns=2), place.store()
    other.delete("s1")
    anew = Play(other, "s2" if turns == 1 else "s1", run_id="run-2")
    anew.lease = Lease(OTHER, place.clock() + 60)
    anew.begins("something else")
    for number in range(turns):
        anew.turn(number)
    with pytest.raises((Conflict, SessionBusy)):
        play.turn(4)
    assert other.load(anew.session_id) == Stored(anew.version, anew.state, (), anew.lease)
    anew.turn(9)
    anew.answers()
    assert list(place.store().events(anew.session_id)) == anew.told
    assert (other.check(), place.progress()) == ([], 0)


def test_of_two_writers_at_one_version_one_wins(place: Place) -> None:
    """Both are the same owner, so that nothing but the version keeps the second out."""
    play, other = place.run(), place.store()
    twin = Play(other)
    twin.state, twin.version, twin.lease, twin.told = play.state, play.version, play.lease, list(play.told)
    twin.turn(4)
    with pytest.raises(Conflict):
        play.turn(4)
    twin.turn(5)
    with pytest.raises(Conflict):
        play.turn(4)
    assert place.store().load("s1") == Stored(twin.version, twin.state, (), twin.lease)
    assert list(place.store().events("s1")) == twin.told


def test_a_run_given_up_is_taken_up_by_another_store_and_ends_without_progress(place: Place) -> None:
    play = place.run()
    place.clock.at += 61
    other = place.store()
    stored = other.load("s1")
    assert stored == Stored(play.version, play.state)
    again = Play(other)
    again.state, again.version, again.told = play.state, play.version, play.told
    again.lease = Lease(OTHER, place.clock() + 60)
    again.commit(again.record([], []))
    assert place.row() == (play.version + 1, OTHER)
    (line,) = other.sessions()
    assert (line.turn, line.usage, line.updated) == (again.state.turn, again.state.usage, place.clock())
    again.turn(4)
    assert place.progress() == 1
    again.answers()
    assert (place.row(), place.progress()) == ((again.version, None), 0)
    assert place.store().load("s1") == Stored(again.version, again.state)
    assert list(place.store().events("s1")) == again.told
    assert other.check() == []


def test_what_lies_beside_progress_is_stored_with_it(place: Place) -> None:
    play = place.run()
    call = ToolCall("call_x", "ls", {})
    play.asks(call)
    play.observes((call, "head"), artifacts=[Artifact("call_x", "whole")])
    play.commit(play.record([], [], amended=[(0, Message("user", ()))]))
    play.turn(5)
    other = place.store()
    assert other.artifact("s1", "call_x") == "whole"
    stored = other.load("s1")
    assert stored is not None
    assert stored.state.transcript[0] == Message("user", ())


# -- files of the first schema -----------------------------------------------------------------------------


def as_schema_1(path: Path) -> None:
    """Bring a file whose rows are whole back to what the first schema made of it."""
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("DROP VIEW advances")
    connection.execute("DELETE FROM steps WHERE id & 4294967295 = 4294967295 OR id = ?", (END,))
    connection.execute("PRAGMA user_version = 1")
    tables = {name: sql for name, sql in connection.execute("SELECT name, sql FROM sqlite_master")}
    fresh = sqlite3.connect(":memory:", isolation_level=None)
    for statement in database._statements(database.schema_steps()[0]):
        fresh.execute(statement)
    assert tables == {name: sql for name, sql in fresh.execute("SELECT name, sql FROM sqlite_master")}
    connection.close()
    fresh.close()


class Whole(SQLiteStore):
    """A store that writes the session's row with each step, as all did."""

    def commit(self, session_id: str, expected: int, record: Record) -> int:
        self._held.clear()
        return super().commit(session_id, expected, record)


def old_file(place: Place) -> tuple[Play, Play]:
    """A file of the first schema: a session in mid-run in it, and one that has ended."""
    store = Whole(place.path, now=place.clock)
    over = Play(store, "s0")
    over.begins()
    over.turn(1)
    over.answers()
    play = Play(store, "s1")
    play.lease = Lease(OWNER, place.clock() + 60)
    play.begins()
    play.turn(0)
    play.asks(ToolCall("call_m", "ls", {}))
    store.close()
    as_schema_1(place.path)
    return over, play


def test_a_file_of_the_first_schema_goes_on_with_a_session_in_mid_run(place: Place) -> None:
    over, play = old_file(place)
    store = place.store()
    assert store.load("s1") == Stored(play.version, play.state, (), play.lease)
    assert store.load("s0") == Stored(over.version, over.state)
    assert store.check() == []
    assert place.ask("PRAGMA user_version") == [(database.SCHEMA,)]
    again = Play(store)
    again.state, again.version, again.told, again.lease = play.state, play.version, play.told, play.lease
    again.observes((ToolCall("call_m", "ls", {}), "text"))
    row = place.row()
    again.turn(5)
    assert place.row() == row
    again.answers()
    assert place.store().load("s1") == Stored(again.version, again.state)
    assert list(place.store().events("s1")) == again.told
    assert (store.check(), place.progress()) == ([], 0)


# -- damage ------------------------------------------------------------------------------------------------

DAMAGES = {
    "progress deleted": f"DELETE FROM steps WHERE id = {PROGRESS}",
    "progress emptied": f"UPDATE steps SET data = x'' WHERE id = {PROGRESS}",
    "progress cut": f"UPDATE steps SET data = substr(data, 1, length(data) - 3) WHERE id = {PROGRESS}",
    "progress nulled": f"UPDATE steps SET data = 'text' WHERE id = {PROGRESS}",
    "progress changed": f"""UPDATE steps SET data = CAST(replace(CAST(data AS TEXT), '2', '3') AS BLOB)
        WHERE id = {PROGRESS}""",
    "its checksum": f"UPDATE steps SET checksum = checksum + 1 WHERE id = {PROGRESS}",
    "last step": f"DELETE FROM steps WHERE id = {step_id(7)}",
    "all steps since": f"DELETE FROM steps WHERE id > {step_id(1)} AND id < {PROGRESS}",
    "all since": f"DELETE FROM steps WHERE id > {step_id(1)} AND id < {END}",
    "last checksum": f"UPDATE steps SET checksum = 'x' WHERE id = {step_id(7)}",
}


def test_a_lease_that_is_no_time_is_read_from_the_row(place: Place) -> None:
    play = place.run(turns=3)
    place.ask(f"UPDATE steps SET first_seq = 'text' WHERE id = {PROGRESS}")
    stored = place.store().load("s1")
    assert stored is not None
    assert (stored.state, stored.lease) == (play.state, play.lease)


UNSEEN = {"all since"}  # nothing tells of it but that nothing is there


@pytest.mark.parametrize("what", DAMAGES)
@pytest.mark.parametrize("in_call", [False, True])
def test_damage_in_mid_run_is_noticed_and_the_doctor_keeps_all_that_is_left(
    place: Place, what: str, in_call: bool
) -> None:
    play = place.run(turns=3)
    if in_call:
        play.asks(ToolCall("call_9", "deploy", {}))
    place.shut()
    place.ask(DAMAGES[what].replace(str(step_id(7)), str(step_id(play.version))))
    place.clock.at += 61
    store = place.store()
    (line,) = store.sessions()
    assert (line.session_id, line.outcome) == ("s1", None)
    if what not in UNSEEN:
        with pytest.raises(StoreError, match="doctor"):
            store.load("s1")
        with pytest.raises(StoreError, match="doctor"):
            store.head("s1")
    before = store.check()
    assert len(before) >= 1
    said = store.check(repair=True)
    assert any("the run was ended, its settings are kept" in line for line in said)
    assert store.check() == []
    stored = store.load("s1")
    assert stored is not None
    assert stored.dropped == ()
    state = stored.state
    assert (state.outcome, state.batch, state.run_id) == ("failed", None, play.run_id)
    assert (state.settings, state.policy) == (play.state.settings, play.state.policy)
    assert unanswered(state.transcript) == []
    told = list(store.events("s1"))
    assert told == play.told[: len(told)]
    messages = [message for message in state.transcript if LOST not in str(message)]
    assert messages == list(play.state.transcript)[: len(messages)]
    if "step" not in what and "since" not in what and what != "last checksum":
        assert told == play.told
        assert messages == list(play.state.transcript)
    goes_on(store, state, stored.version, told)
    assert place.progress() == 0


def goes_on(store: SQLiteStore, state: RunState, version: int, told: list[Any]) -> None:
    """A new run in the repaired session, to its end."""
    again = Play(store, run_id="run-2")
    again.state, again.version, again.told = state, version, told
    again.lease = Lease(OTHER, store.now() + 60)
    again.begins("go on")
    again.turn(20)
    again.answers()
    assert store.load("s1") == Stored(again.version, again.state)
    assert list(store.events("s1")) == again.told
    assert store.check() == []


@pytest.mark.parametrize("in_call", [False, True])
def test_a_session_whose_own_head_is_damaged_in_mid_run_is_rebuilt_to_one_that_a_provider_takes(
    place: Place, *, in_call: bool
) -> None:
    play = place.run(turns=3)
    if in_call:
        play.asks(ToolCall("call_9", "deploy", {}))
    place.shut()
    place.ask("UPDATE sessions SET head = substr(head, 3)")
    before = place.path.read_bytes()
    assert any(f"{OWNER} runs it" in line for line in place.store().check(repair=True))
    place.shut()
    assert place.path.read_bytes() == before
    place.clock.at += 61
    store = place.store()
    assert "rebuilt from its events" in store.check(repair=True)[0]
    assert store.check() == []
    stored = store.load("s1")
    assert stored is not None
    assert list(store.events("s1")) == play.told
    assert unanswered(stored.state.transcript) == []
    goes_on(store, stored.state, stored.version, play.told)


def test_a_step_for_a_file_that_has_become_shorter_says_so(place: Place) -> None:
    store = place.store()
    play = place.run(turns=30, store=store)
    store.close()
    with place.path.open("r+b") as file:
        file.truncate(place.path.stat().st_size // 2 // database.PAGE_BYTES * database.PAGE_BYTES)
    left = place.path.read_bytes()
    with pytest.raises(StoreError, match=r"is damaged .* run `jackstay doctor --repair`"):
        play.turn(40)
    assert place.path.read_bytes() == left


def test_damage_of_a_session_that_somebody_runs_is_left_alone(place: Place) -> None:
    play = place.run()
    place.ask(DAMAGES["progress changed"])
    before = place.path.read_bytes()
    said = place.store().check(repair=True)
    assert f"{OWNER} runs it" in said[0]
    assert place.path.read_bytes() == before
    with pytest.raises(StoreError):
        place.store().load("s1")
    assert place.row() == (1, OWNER)
    assert play.version == 7


def test_a_damaged_progress_hides_no_other_session(place: Place) -> None:
    store = place.store()
    place.run("s1", store=store)
    other = place.run("s2", store=store)
    place.ask(DAMAGES["progress cut"])
    assert {line.session_id for line in place.store().sessions()} == {"s1", "s2"}
    assert place.store().load("s2") == Stored(other.version, other.state, (), other.lease)


def test_a_damaged_step_before_the_progress_costs_what_follows_it_as_elsewhere(place: Place) -> None:
    play = place.run(turns=4)
    place.shut()
    place.ask(f"UPDATE steps SET data = x'00' WHERE id = {step_id(5)}")
    place.clock.at += 61
    store = place.store()
    stored = store.load("s1")
    assert stored is not None
    assert len(stored.dropped) == 1
    assert (stored.version, stored.state.settings) == (play.version, play.state.settings)
    assert list(store.events("s1")) == play.told[: stored.state.seq]
    assert len(store.check(repair=True)) == 2
    assert store.check() == []
    assert place.progress() == 0


@pytest.mark.parametrize("old", [False, True])
@pytest.mark.parametrize("share", [0.3, 0.6, 0.8, 0.9, 0.95, 0.99])
def test_what_is_left_of_a_cut_file_with_runs_in_mid_air_is_rescued(
    place: Place, *, old: bool, share: float
) -> None:
    store = Whole(place.path, now=place.clock) if old else place.store()
    plays = [Play(store, f"s{number:02}") for number in range(12)]
    for play in plays:
        play.lease = Lease(OWNER, place.clock() + 60)
        play.begins("words " * 300)
    for turn in range(8):
        for play in plays:
            play.turn(turn)
    store.close()
    if old:
        as_schema_1(place.path)
    with place.path.open("r+b") as file:
        size = int(place.path.stat().st_size * share)
        file.truncate(size // database.PAGE_BYTES * database.PAGE_BYTES)
    place.clock.at += 61
    store = place.store()
    assert "ends too early" in store.check()[0]
    said = " ".join(store.check(repair=True))
    assert store.check() == []
    for play in plays:
        stored = store.load(play.session_id)
        if stored is None:
            continue
        told = list(store.events(play.session_id))
        assert told == play.told[: len(told)]
        assert told == play.told or repr(play.session_id) in said  # no loss is passed over in silence
        assert unanswered(stored.state.transcript) == []
    store.close()
