"""Several runs at once on one file: what is told is stored, none harms another, each is as if it were alone."""

import asyncio
import gc
import sqlite3
import threading
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from jackstay import (
    AgentSession,
    HarnessEngine,
    Interceptor,
    SQLiteStore,
    cancel,
    tool,
)
from jackstay.core.errors import Conflict, SessionBusy, StoreError, UnknownSession
from jackstay.core.events import TRANSIENT, Event
from jackstay.core.messages import user
from jackstay.core.state import RunState
from jackstay.core.transcript import Transcript
from jackstay.core.wire import decode_json, encode
from jackstay.engine.ports import Commit, Lease, ModelRequest, Posted, Record, Reply, Tell, ToolContext
from jackstay.models.scripted import ScriptedModel
from jackstay.runtime.commits import commits_of
from tests.elsewhere import asks, reply
from tests.make import unanswered

TURNS = [
    reply(asks("look", "a")),
    reply(asks("look", "b"), asks("look", "c"), asks("look", "d")),
    reply(asks("put", "e")),
    reply(asks("put", "f"), asks("look", "g")),
    "done",
]
PUTS = ("e", "f")


class Checked(Interceptor):
    """Looks, when an event is told, whether another connection finds it stored, and keeps it."""

    name = "checked"

    def __init__(self, path: Path) -> None:
        self.other = SQLiteStore(path)
        self.told: dict[str, list[Event]] = {}
        self.missing: list[Event] = []
        self.holds_up, self.held_up = False, asyncio.Event()
        self.fails = ""

    async def on_agent_start(self, trace: Any) -> None:
        if self.holds_up:
            self.held_up.set()
            await asyncio.Event().wait()

    async def on_reason_start(self, trace: Any, request: ModelRequest) -> ModelRequest:
        if trace.session_id == self.fails:
            raise ValueError(self.fails)
        return request

    def on_event(self, event: Event) -> None:
        if event.seq is None:
            return
        self.told.setdefault(event.session_id, []).append(event)
        stored = next(iter(self.other.events(event.session_id, event.seq - 1)), None)
        if stored != event:
            self.missing.append(event)


class Office:
    """An engine on a file, whose tools take a few rounds of the loop and count what they did."""

    def __init__(
        self, folder: Path, turns: Sequence[Any] = TURNS, *, look: Any = None, store: Any = SQLiteStore,
        **settings: Any,
    ) -> None:  # fmt: skip
        folder.mkdir(parents=True, exist_ok=True)
        self.path = folder / "s.db"
        self.store: SQLiteStore = store(self.path, **settings)
        self.checked = Checked(self.path)
        self.did: Counter[tuple[str, str]] = Counter()
        own_look, put = self.tools()
        self.engine = HarnessEngine(
            model=_Anew(turns), session_provider=self.store, tools=(look or own_look, put),
            extensions=(self._extend,), installed_extensions=False, workspace=str(folder.parent), harness_home=str(folder / "home"),
        )  # fmt: skip

    def _extend(self, engine: object, name: str, builder: Any) -> None:
        builder.default_interceptor_add(self.checked)

    def tools(self) -> tuple[Any, ...]:
        @tool(effects={"reads"}, idempotent=True)
        async def look(name: str) -> str:
            """Look, for one round of the loop or some."""
            for _ in range(ord(name) % 3):
                await asyncio.sleep(0)
            return f"saw {name}"

        @tool(effects={"writes"})
        async def put(name: str, context: ToolContext) -> str:
            """Write."""
            await asyncio.sleep(0)
            self.did[context.session_id, name] += 1
            await asyncio.sleep(0)
            return f"put {name}"

        return look, put

    async def ask(self, name: str, text: str | None = "go") -> str:
        return (await self.engine.prompt(text).session(name).call()).outcome

    def state(self, name: str) -> RunState:
        stored = self.checked.other.load(name)
        assert stored is not None
        assert stored.dropped == ()
        return stored.state

    def events(self, name: str) -> list[Event]:
        return list(self.checked.other.events(name))

    def judge(self, *names: str) -> None:
        """What was told is what is stored, in its order, and nothing before it was."""
        assert self.checked.missing == []
        for name in names:
            told, stored = self.checked.told.get(name, []), self.events(name)
            assert told == stored
            assert [event.seq for event in stored] == list(range(1, len(stored) + 1))

    def close(self) -> None:
        assert self.checked.other.check() == []
        self.store.close()
        self.checked.other.close()


class _Anew:
    """A model that gives every run the script from its beginning."""

    name, context_length = "script", None

    def __init__(self, turns: Sequence[Any]) -> None:
        self.turns = turns

    async def reply(self, request: ModelRequest, tell: Tell) -> Reply:
        await asyncio.sleep(0)
        return await ScriptedModel(self.turns).reply(request, tell)

    async def close(self) -> None: ...


@pytest.fixture
def office(tmp_path: Path) -> Iterator[Office]:
    made = Office(tmp_path / "office")
    yield made
    made.close()


def run(work: Callable[[], Awaitable[Any]], store: SQLiteStore) -> Any:
    """Do the work in a loop of its own; fails when anything is left over or went unheard."""
    complaints: list[str] = []

    async def main() -> Any:
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _, context: complaints.append(str(context)))
        async with asyncio.timeout(60):
            made = await work()
        commits = commits_of(store)
        assert commits is not None
        assert commits.runs == 0
        assert commits._promised == []
        left = asyncio.all_tasks() - {asyncio.current_task()}
        assert left == set()
        return made

    made = asyncio.run(main())
    gc.collect()
    assert complaints == []
    return made


def plain(events: Sequence[Event]) -> list[Any]:
    """What events say, without times and names of runs and sessions."""

    def bare(value: Any) -> Any:
        if isinstance(value, dict):
            return {
                key: bare(one)
                for key, one in value.items()
                if key not in ("run_id", "session_id") and not isinstance(one, float)
            }
        return [bare(one) for one in value] if isinstance(value, list) else value

    return [bare(decode_json(encode(event))) for event in events]


def alone(folder: Path) -> list[Any]:
    """The events of the run when it has the store for itself."""
    single = Office(folder)
    run(lambda: single.ask("one"), single.store)
    single.judge("one")
    made = plain(single.events("one"))
    single.close()
    return made


async def all_of(*works: Coroutine[Any, Any, Any]) -> list[Any]:
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(work) for work in works]
    return [task.result() for task in tasks]


async def rounds(count: int) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


# -- several at once ---------------------------------------------------------------------------------------


def test_runs_at_once_tell_what_a_run_alone_tells_and_only_what_is_stored(
    office: Office, tmp_path: Path
) -> None:
    names = [f"s{number}" for number in range(6)]

    async def work() -> list[str]:
        return await all_of(*map(office.ask, names))

    assert run(work, office.store) == ["answered"] * 6
    office.judge(*names)
    expected = alone(tmp_path / "alone")
    assert [plain(office.events(name)) for name in names] == [expected] * 6
    assert office.did == Counter({(name, put): 1 for name in names for put in PUTS})
    assert all(info.outcome == "answered" for info in office.checked.other.sessions())
    assert progress_rows(office.path) == 0


def progress_rows(path: Path) -> int:
    connection = sqlite3.connect(path)
    (count,) = connection.execute("SELECT count(*) FROM steps WHERE id & 4294967295 = 4294967295").fetchone()
    connection.close()
    return int(count)


def test_runs_that_begin_and_end_at_different_times(office: Office, tmp_path: Path) -> None:
    """So that steps with parallel calls are promised while others run, and stored at once when they do not."""
    expected = alone(tmp_path / "alone")
    names = [f"s{late}-{number}" for late in range(40) for number in range(2)]

    async def work() -> None:
        for late in range(40):

            async def second(late: int = late) -> None:
                await rounds(late)
                await office.ask(f"s{late}-1")

            await all_of(office.ask(f"s{late}-0"), second())

    run(work, office.store)
    office.judge(*names)
    for name in names:
        assert plain(office.events(name)) == expected


# -- stopping ----------------------------------------------------------------------------------------------

POINTS = range(0, 60, 1)


@pytest.mark.parametrize("final", [True, False])
def test_a_stream_stopped_at_any_point_tells_all_that_is_stored(
    office: Office, tmp_path: Path, *, final: bool
) -> None:
    expected = alone(tmp_path / "alone")

    async def work() -> None:
        for point in POINTS:
            other = asyncio.ensure_future(office.ask(f"o{point}"))
            stream = office.engine.prompt("go").session(f"s{point}").stream()
            told = []

            async def read(stream: Any = stream, told: list[Event] = told) -> None:
                async for event in stream:
                    told.append(event)

            reader = asyncio.ensure_future(read())
            await rounds(point)
            await (stream.cancel("eve") if final else stream.interrupt("eve"))
            await reader
            assert await other == "answered"
            durable = [event for event in told if not isinstance(event, TRANSIENT) and event.seq is not None]
            assert durable == office.events(f"s{point}")

    run(work, office.store)
    judge_stopped(office, expected, final=final)


def judge_stopped(office: Office, expected: list[Any], *, final: bool) -> None:
    """Runs s0, s1, … were stopped at their points, o0, o1, … were not."""
    outcomes = Counter()
    for point in POINTS:
        office.judge(f"o{point}")
        assert plain(office.events(f"o{point}")) == expected
        stored = office.checked.other.load(f"s{point}")
        if stored is None:  # stopped before anything had begun
            outcomes["nothing"] += 1
            continue
        office.judge(f"s{point}")
        outcomes[stored.state.outcome] += 1
        assert stored.lease is None
        if not final and stored.state.outcome is None:
            assert run(lambda name=f"s{point}": office.ask(name, None), office.store) in ("answered", "pending")
            office.judge(f"s{point}")
        assert unanswered(office.state(f"s{point}").transcript) == []
        assert all(office.did[f"s{point}", name] <= 1 for name in PUTS)
    assert progress_rows(office.path) == 0
    assert outcomes["answered"] > 0
    assert outcomes["cancelled" if final else None] > 20


def test_a_task_cancelled_at_any_point_leaves_a_run_that_can_be_resumed(office: Office, tmp_path: Path) -> None:
    expected = alone(tmp_path / "alone")

    async def work() -> None:
        for point in POINTS:
            other = asyncio.ensure_future(office.ask(f"o{point}"))
            task = asyncio.ensure_future(office.ask(f"s{point}"))
            await rounds(point)
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task
            assert await other == "answered"

    run(work, office.store)
    judge_stopped(office, expected, final=False)


def test_all_of_many_cancelled_at_one_point(office: Office) -> None:
    async def work() -> None:
        for point in POINTS:
            tasks = [asyncio.ensure_future(office.ask(f"s{point}-{number}")) for number in range(4)]
            await rounds(point)
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)

    run(work, office.store)
    names = [f"s{point}-{number}" for point in POINTS for number in range(4)]
    office.judge(*[name for name in names if office.checked.other.head(name) is not None])
    assert all(count == 1 for count in office.did.values())


def test_a_call_with_a_time_limit_of_its_callers(office: Office) -> None:
    async def work() -> None:
        for number in range(20):
            other = asyncio.ensure_future(office.ask(f"o{number}"))
            with suppress(TimeoutError):
                async with asyncio.timeout(number * 0.0005):
                    await office.ask(f"s{number}")
            assert await other == "answered"

    run(work, office.store)
    names = [f"s{number}" for number in range(20)]
    office.judge(*[name for name in names if office.checked.other.head(name) is not None])


def test_an_order_through_the_inbox_ends_one_of_many(tmp_path: Path) -> None:
    """The second look of the first session has it cancelled by another process."""
    ordered = asyncio.Event()

    @tool(effects={"reads"}, idempotent=True)
    async def look(name: str, context: ToolContext) -> str:
        """Look."""
        if name == "c" and context.session_id == "s0" and not ordered.is_set():
            ordered.set()
            assert cancel(AgentSession("s0", office.checked.other), by="eve") == "ordered"
        await asyncio.sleep(0)
        return f"saw {name}"

    office = Office(tmp_path / "office", look=look)

    async def work() -> list[str]:
        return await all_of(*(office.ask(f"s{number}") for number in range(3)))

    assert run(work, office.store) == ["cancelled", "answered", "answered"]
    office.judge("s0", "s1", "s2")
    assert office.did["s0", "e"] == 0
    assert office.checked.other.inbox("s0") == ()
    office.close()


def test_what_a_run_was_to_take_in_waits_on_when_it_is_stopped_before_its_first_step(tmp_path: Path) -> None:
    """A worker died, its run was ordered to end, and who takes it up is stopped before that is done."""
    office = Office(tmp_path / "office")
    office.store.commit("s0", 0, Record(under_way("s0"), [user("go")], lease=Lease("elsewhere:1:1", 1.0)))
    session = AgentSession("s0", office.store)
    number = office.store.post("s0", Posted(0, "x", command="cancel", data={"run_id": "r1", "by": "eve"}))
    office.checked.holds_up = True

    async def work() -> None:
        stream = office.engine.prompt(None).session("s0").stream()
        waiting = asyncio.ensure_future(stream.wait())
        await office.checked.held_up.wait()
        await stream.interrupt("a restart")
        await waiting

    run(work, office.store)
    assert [item.number for item in office.store.inbox("s0")] == [number]
    office.checked.holds_up = False
    assert run(lambda: office.ask("s0", None), office.store) == "cancelled"
    assert session.outcome == "cancelled"
    assert office.store.inbox("s0") == ()
    office.close()


def under_way(name: str) -> RunState:
    """The state of a run that has been asked something."""
    return RunState(name, "r1", rows=1, transcript=Transcript([user("go")]))


# -- failures ----------------------------------------------------------------------------------------------


async def outcomes_of(*works: Coroutine[Any, Any, Any]) -> list[Any]:
    """What came of each, its exception included."""

    async def one(work: Coroutine[Any, Any, Any]) -> Any:
        try:
            return await work
        except Exception as problem:
            return problem

    return await all_of(*map(one, works))


def taking(victim: str, act: Callable[[], None]) -> Any:
    """A tool that does this, as somebody else would, when the session looks for the first time."""
    done = asyncio.Event()

    @tool(effects={"reads"}, idempotent=True)
    async def look(name: str, context: ToolContext) -> str:
        """Look, for one round of the loop or some."""
        if context.session_id == victim and not done.is_set():
            done.set()
            act()
        for _ in range(ord(name) % 3):
            await asyncio.sleep(0)
        return f"saw {name}"

    return look


def steal(path: Path) -> None:
    connection = sqlite3.connect(path)
    with connection:
        connection.execute(
            "UPDATE sessions SET lease_owner = 'elsewhere:9:9', lease_until = 1e12 WHERE id = 's1'"
        )
        connection.execute(
            "UPDATE steps SET run_id = 'elsewhere:9:9' WHERE id & 4294967295 = 4294967295"
            " AND id / 4294967296 = (SELECT key FROM sessions WHERE id = 's1')"
        )
    connection.close()


def move_on(path: Path) -> None:
    """Another worker stores a step, and gives the session back."""
    steal(path)
    other = SQLiteStore(path)
    stored = other.load("s1")
    assert stored is not None
    lease = Lease("elsewhere:9:9", 1e12)
    other.commit("s1", stored.version, Record(replace(stored.state, outcome="failed"), lease=lease))
    other.commit("s1", stored.version + 1, Record(replace(stored.state, outcome="failed")))
    other.close()


def delete(path: Path) -> None:
    other = SQLiteStore(path)
    other.delete("s1")
    other.close()


@pytest.mark.parametrize(("act", "kind"), [(steal, SessionBusy), (move_on, Conflict), (delete, Conflict)])
def test_a_run_that_cannot_go_on_harms_no_other(tmp_path: Path, act: Any, kind: type[Exception]) -> None:
    expected = alone(tmp_path / "alone")
    path = tmp_path / "office" / "s.db"
    look = taking("s1", lambda: act(path))
    office = Office(tmp_path / "office", look=look)
    names = [f"s{number}" for number in range(4)]
    outcomes = run(lambda: outcomes_of(*map(office.ask, names)), office.store)
    assert isinstance(outcomes[1], kind)
    assert [one for one in outcomes if not isinstance(one, Exception)] == ["answered"] * 3
    for name in ("s0", "s2", "s3"):
        office.judge(name)
        assert plain(office.events(name)) == expected
    assert office.checked.missing == []
    told, stored = office.checked.told["s1"], office.events("s1")
    assert stored == [] if act is delete else told == stored
    office.close()


def test_a_file_that_is_locked_stops_all_and_all_can_be_resumed(tmp_path: Path) -> None:
    path = tmp_path / "office" / "s.db"
    locks: list[sqlite3.Connection] = []

    def lock() -> None:
        locks.append(sqlite3.connect(path, isolation_level=None))
        locks[0].execute("BEGIN IMMEDIATE")

    later = [0.0]
    office = Office(
        tmp_path / "office", look=taking("s1", lock), wait_s=0.05, now=lambda: time.time() + later[0]
    )
    names = [f"s{number}" for number in range(4)]
    outcomes = run(lambda: outcomes_of(*map(office.ask, names)), office.store)
    assert all(isinstance(outcome, StoreError) for outcome in outcomes)
    locks[0].close()
    office.judge(*names)
    later[0] = 61.0  # the leases that could not be given back have run out
    assert run(lambda: outcomes_of(*(office.ask(name, None) for name in names)), office.store) == (
        ["answered"] * 4
    )
    office.judge(*names)
    assert office.did == Counter({(name, put): 1 for name in names for put in PUTS})
    office.close()


def test_after_failures_of_every_kind_no_run_is_counted_any_more(office: Office) -> None:
    async def work() -> list[Any]:
        sessions = [office.engine.prompt(text).session(name) for text, name in (("go", "s0"), (None, "s9"))]
        failing = office.engine.prompt("go").session("failing")
        busy = office.engine.prompt("go").session("busy")
        office.store.commit("busy", 0, Record(under_way("busy"), lease=Lease("elsewhere:1:1", 1e12)))
        office.checked.fails = "failing"
        made = await outcomes_of(*(one.call() for one in (*sessions, failing, busy)))
        office.checked.fails = ""
        return made

    answered, unknown, failing, busy = run(work, office.store)
    assert answered.outcome == "answered"
    assert isinstance(unknown, UnknownSession)
    assert (isinstance(failing, Exception) or failing.outcome) == "failed"
    assert isinstance(busy, SessionBusy)
    office.judge("s0")


class Interrupted(SQLiteStore):
    """A store in whose group the program is told to end, once."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.left = 6

    def commit_all(self, commits: Sequence[Commit]) -> list[int | Exception]:
        self.left -= 1
        if self.left == 0:
            raise KeyboardInterrupt
        return super().commit_all(commits)


def test_a_program_that_is_told_to_end_tells_nothing_that_is_not_stored(tmp_path: Path) -> None:
    turns = [reply(asks("look", "a")), reply(asks("put", "e")), reply(asks("put", "f")), "done"]
    office = Office(tmp_path / "office", turns, store=Interrupted)
    names = [f"s{number}" for number in range(4)]
    with pytest.raises(KeyboardInterrupt):
        asyncio.run(outcomes_of(*map(office.ask, names)))
    office.judge(*names)
    outcomes = run(lambda: outcomes_of(*(office.ask(name, None) for name in names)), office.store)
    assert all(outcome in ("answered", "pending") for outcome in outcomes)
    office.judge(*names)
    assert all(count == 1 for count in office.did.values())
    office.close()


# -- several loops -----------------------------------------------------------------------------------------


def test_threads_with_loops_of_their_own_share_a_store(office: Office, tmp_path: Path) -> None:
    expected = alone(tmp_path / "alone")
    failures: list[BaseException] = []

    def work(thread: int) -> None:
        try:
            for number in range(3):
                name = f"s{thread}-{number}"
                if number % 2:
                    assert office.engine.prompt("go").session(name).call_sync().outcome == "answered"
                else:
                    list(office.engine.prompt("go").session(name).stream_sync())
        except BaseException as problem:
            failures.append(problem)

    def work_at_once() -> None:
        try:
            asyncio.run(all_of(*(office.ask(f"t-{number}") for number in range(6))))
        except BaseException as problem:
            failures.append(problem)

    threads = [threading.Thread(target=work, args=(thread,)) for thread in range(3)]
    threads.append(threading.Thread(target=work_at_once))
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert failures == []
    names = [
        *(f"s{thread}-{number}" for thread in range(3) for number in range(3)),
        *(f"t-{n}" for n in range(6)),
    ]
    office.judge(*names)
    for name in names:
        assert plain(office.events(name)) == expected


# -- stores made from another ------------------------------------------------------------------------------


class Mirrored(SQLiteStore):
    """Hands on the numbers of all that is stored."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.mirror: list[tuple[str, int]] = []

    def commit(self, session_id: str, expected: int, record: Record) -> int:
        version = super().commit(session_id, expected, record)
        self.mirror.append((session_id, version))
        return version


class MirroredInGroups(Mirrored):
    def commit_all(self, commits: Sequence[Commit]) -> list[int | Exception]:
        outcomes = super().commit_all(commits)
        self.mirror += [(one.session_id, one.expected + 1) for one in commits]
        return outcomes


@pytest.mark.parametrize("kind", [Mirrored, MirroredInGroups])
def test_a_store_that_changes_commit_sees_the_commits_of_runs_at_once(
    tmp_path: Path, kind: type[Mirrored]
) -> None:
    store = kind(tmp_path / "s.db")
    names = [f"s{number}" for number in range(4)]

    async def work() -> None:
        engine = HarnessEngine(model=ScriptedModel(["done"] * 4), session_provider=store)
        async with asyncio.TaskGroup() as group:
            for name in names:
                group.create_task(engine.prompt("go").session(name).call())

    asyncio.run(work())
    assert sorted(store.mirror) == [(name, version) for name in names for version in (1, 2)]
    store.close()
