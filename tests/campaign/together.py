"""Several missions at once in one process that is killed: between its groups of steps, and within them."""

import asyncio
import os
import signal
import sqlite3
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from jackstay import HITL, AgentSession, HarnessEngine, HITLDecision, HITLInterceptor, SQLiteStore, tool
from jackstay.core.errors import SessionBusy
from jackstay.core.events import TRANSIENT, Event, ToolCallEndEvent, ToolCallStartEvent
from jackstay.core.wire import decode_event, encode
from jackstay.engine.ports import ToolContext
from jackstay.models.scripted import ScriptedModel
from tests.campaign.mission import BUSY, ENDED, WAITS, Kill, KillingStore, count, live
from tests.campaign.supervise import KILLED, MOST_WORKERS, check_bodies, ended, fork
from tests.elsewhere import asks, reply
from tests.make import unanswered

SESSIONS = ("one", "two", "three")
TURNS = [
    reply(asks("look", "a")),
    reply(asks("tally", "b"), asks("look", "c"), asks("tally", "d")),
    reply(asks("look", "e")),
    reply(asks("tally", "f")),
    reply(asks("look", "g"), asks("look", "h")),
    "All done.",
]
TALLIES = "bdf"


class Script:
    """A model that gives every session the script from its beginning."""

    name, context_length = "script", None

    async def reply(self, request: Any, tell: Any) -> Any:
        return await ScriptedModel(TURNS).reply(request, tell)

    async def close(self) -> None: ...


def engine(folder: Path, kill: Kill, statement: int) -> HarnessEngine:
    @tool(effects={"reads"}, idempotent=True)
    async def look(name: str) -> str:
        """Look."""
        await asyncio.sleep(0)
        return f"saw {name}"

    @tool(effects={"writes"})
    async def tally(name: str, context: ToolContext) -> str:
        """Count."""
        count(folder, f"{context.session_id}:{name}")
        await asyncio.sleep(0)
        return f"counted {name}"

    store = SQLiteStore(folder / "s.db")
    if statement:
        with store.database.looking as connection:
            connection.set_trace_callback(_dying_at(statement))
    return HarnessEngine(
        workspace=str(folder / "work"), harness_home=str(folder / "home"), model=Script(),
        session_provider=KillingStore(store, kill), tools=(look, tally, "hitl"), hitl_enabled=True,
        hitl_interceptor=HITLInterceptor().on_sensitive_tool("deploy"), installed_extensions=False,
    )  # fmt: skip


def _dying_at(number: int) -> Any:
    """Die when the database is about to carry out its writing statement of this number, those of triggers too."""
    left = number

    def traced(statement: str) -> None:
        nonlocal left
        if statement.lstrip("- ").startswith(("INSERT", "UPDATE", "DELETE", "COMMIT", "BEGIN")):
            left -= 1
            if left == 0:
                os.kill(os.getpid(), signal.SIGKILL)

    return traced


def work(folder: Path, kill: Kill = live, *, statement: int = 0) -> int:
    """Begin all missions or take them up, at once; how they stand when these requests have ended."""
    made = engine(folder, kill, statement)
    log = os.open(folder / "told", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)

    async def one(name: str) -> None:
        with suppress(SessionBusy):
            prompt = None if made.store.head(name) is not None else "go"
            async for event in made.prompt(prompt).session(name).stream():
                if not isinstance(event, TRANSIENT) and event.seq is not None:
                    os.write(log, encode(event) + b"\n")

    async def run() -> None:
        async with asyncio.TaskGroup() as group:
            for name in SESSIONS:
                group.create_task(one(name))

    asyncio.run(run())
    outcomes = {made.get_session(name).outcome for name in SESSIONS}
    if outcomes == {"answered"}:
        return ENDED
    return WAITS if "pending" in outcomes else BUSY


def decide(folder: Path) -> int:
    """Say of each call that may have run that it is not to run again."""
    store = SQLiteStore(folder / "s.db")
    for name in SESSIONS:
        session = AgentSession(name, store)
        for task in HITL.get_pending_tasks(session):
            assert task.indeterminate
            HITL.submit(session, task, HITLDecision.skip("it may have run"), by="somebody else")
    store.close()
    return ENDED


def killed(folder: Path, kill: Kill, *, statement: int = 0) -> Counter[str] | None:
    """Kill a worker, have others finish, and judge; None where the worker ended before it was killed."""
    how = ended(fork(lambda: work(folder, kill, statement=statement)))
    if how != KILLED:
        return None
    total = Counter(kills=1, ahead=_ahead(folder))
    for _ in range(MOST_WORKERS):
        if how == WAITS:
            assert ended(fork(lambda: decide(folder))) == ENDED
        how = ended(fork(lambda: work(folder)))
        if how == ENDED:
            return total + judge(folder)
    raise AssertionError("the runs do not get on")


def _ahead(folder: Path) -> int:
    """In how many sessions the progress was ahead of the row when the worker died."""
    connection = sqlite3.connect(folder / "s.db")
    (found,) = connection.execute(
        "SELECT count(*) FROM sessions WHERE EXISTS (SELECT 1 FROM steps WHERE id = key * 4294967296 + version + 1)"
    ).fetchone()
    connection.close()
    return int(found)


def judge(folder: Path) -> Counter[str]:
    """Raises AssertionError unless nothing was lost and nothing done twice, in any of the sessions."""
    store = SQLiteStore(folder / "s.db")
    counted = Counter((folder / "work" / "count").read_text().split())
    told = [decode_event(line) for line in (folder / "told").read_bytes().splitlines()]
    assert store.check() == []
    total: Counter[str] = Counter()
    for name in SESSIONS:
        stored = store.load(name)
        assert stored is not None
        assert (stored.dropped, stored.lease, stored.state.outcome) == ((), None, "answered")
        events = list(store.events(name))
        assert [event.seq for event in events] == list(range(1, stored.state.seq + 1))
        _check_told([event for event in told if event.session_id == name], events)
        assert unanswered(stored.state.transcript) == []
        check_bodies(stored.state)
        total += _check_calls(name, events, counted)
    assert not counted
    store.close()
    return total


def _check_told(told: Sequence[Event], stored: Sequence[Event]) -> None:
    by_seq = {event.seq: event for event in stored}
    assert all(by_seq.get(event.seq) == event for event in told), "what was told is not what is stored"
    assert len({event.seq for event in told}) == len(told), "an event was told twice"


def _check_calls(name: str, events: Sequence[Event], counted: Counter[str]) -> Counter[str]:
    ends = {event.call_id: event.executed for event in events if isinstance(event, ToolCallEndEvent)}
    starts = Counter(event.call_id for event in events if isinstance(event, ToolCallStartEvent))
    assert sorted(ends) == list("abcdefgh")
    for call_id in TALLIES:
        times = counted.pop(f"{name}:{call_id}", 0)
        assert times in {True: (1,), False: (0,), None: (0, 1)}[ends[call_id]], f"{call_id} ran {times} times"
        assert starts[call_id] <= 1 + (ends[call_id] is None)
    return Counter(
        {True: "ran", False: "not run", None: "nobody knows"}[executed] for executed in ends.values()
    )
