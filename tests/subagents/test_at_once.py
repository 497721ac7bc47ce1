"""Runs with subagents beside other runs in one file: their steps are stored together, and none is lost."""

import asyncio
import sqlite3
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from jackstay import AgentDefinition, HarnessEngine, SQLiteStore, tool
from jackstay.core.events import Event
from jackstay.engine.ports import ToolContext
from jackstay.models.scripted import ScriptedModel
from tests.elsewhere import asks, reply
from tests.make import unanswered
from tests.runtime.test_commits import all_of, rounds, run
from tests.subagents.team import multitask

BELOW = [reply(asks("look", "a"), asks("look", "b")), reply(asks("put", "c")), "part done"]
ABOVE = [reply(asks("look", "x")), reply(multitask("one", "two")), reply(asks("put", "y")), "all done"]


class Script:
    """A model that gives every session its script from the beginning."""

    name, context_length = "script", None

    def __init__(self, turns: list[Any]) -> None:
        self._turns = turns

    async def reply(self, request: Any, tell: Any) -> Any:
        await asyncio.sleep(0)
        return await ScriptedModel(self._turns).reply(request, tell)

    async def close(self) -> None: ...


class Office:
    """An engine whose main agent hands work to two others, on a file."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "s.db"
        self.store, self.other = SQLiteStore(self.path), SQLiteStore(self.path)
        self.did: Counter[tuple[str, str]] = Counter()

        @tool(effects={"reads"}, idempotent=True)
        async def look(name: str) -> str:
            """Look."""
            await rounds(ord(name) % 3)
            return f"saw {name}"

        @tool(effects={"writes"})
        async def put(name: str, context: ToolContext) -> str:
            """Write."""
            self.did[context.session_id, name] += 1
            await asyncio.sleep(0)
            return f"put {name}"

        worker = AgentDefinition(name="worker", description="works", model=Script(BELOW))
        self.engine = HarnessEngine(
            model=Script(ABOVE), session_provider=self.store, tools=(look, put, "multitask"), agents=(worker,),
            installed_extensions=False, workspace=str(folder.parent), harness_home=str(folder / "home"),
        )  # fmt: skip

    async def ask(self, name: str, text: str | None = "go") -> str:
        return (await self.engine.prompt(text).session(name).call()).outcome

    def family(self, name: str) -> list[list[Event]]:
        """The events of a session and of those below it."""
        states = [self.other.head(info.session_id) for info in self.other.sessions()]
        below = [one.state.session_id for one in states if one and one.state.parent]
        mine = [child for child in below if self.parent(child) == name]
        return [list(self.other.events(session)) for session in (name, *sorted(mine))]

    def parent(self, child: str) -> str:
        stored = self.other.head(child)
        assert stored is not None
        assert stored.state.parent is not None
        return stored.state.parent.session_id

    def judge(self) -> None:
        """Nothing is left half done: no progress, no lease, no call without its result, nothing done twice."""
        for info in self.other.sessions():
            stored = self.other.load(info.session_id)
            assert stored is not None
            assert (stored.dropped, stored.lease) == ((), None)
            seqs = [event.seq for event in self.other.events(info.session_id)]
            assert seqs == list(range(1, stored.state.seq + 1))
            if stored.state.outcome is not None:
                assert unanswered(stored.state.transcript) == []
        assert all(count == 1 for count in self.did.values())
        assert self.other.check() == []
        connection = sqlite3.connect(self.path)
        asked = "SELECT count(*) FROM steps WHERE id & 4294967295 = 4294967295"
        assert connection.execute(asked).fetchone() == (0,)
        connection.close()

    def close(self) -> None:
        self.store.close()
        self.other.close()


@pytest.fixture
def office(tmp_path: Path) -> Any:
    made = Office(tmp_path)
    yield made
    made.close()


def test_families_at_once_tell_what_a_family_alone_tells(office: Office, tmp_path: Path) -> None:
    (tmp_path / "alone").mkdir()
    alone = Office(tmp_path / "alone")
    run(lambda: alone.ask("s"), alone.store)
    run(lambda: all_of(*(office.ask(f"s{number}") for number in range(3))), office.store)
    office.judge()
    expected = alone.family("s")
    assert len(expected) == 3
    for number in range(3):
        found = office.family(f"s{number}")
        assert [[event.type for event in events] for events in found] == [
            [event.type for event in events] for events in expected
        ]
    assert len(office.did) == 9
    alone.close()


@pytest.mark.parametrize("final", [True, False])
def test_a_family_stopped_at_any_point_leaves_the_others_alone(office: Office, *, final: bool) -> None:
    points = range(0, 75, 3)

    async def work() -> None:
        for point in points:
            other = asyncio.ensure_future(office.ask(f"o{point}"))
            stream = office.engine.prompt("go").session(f"s{point}").stream()
            waiting = asyncio.ensure_future(stream.wait())
            await rounds(point)
            await (stream.cancel("eve") if final else stream.interrupt("eve"))
            with suppress(asyncio.CancelledError):
                await waiting
            assert await other == "answered"

    run(work, office.store)
    office.judge()
    outcomes: Counter[str | None] = Counter()
    for point in points:
        stored = office.other.head(f"s{point}")
        if stored is None:
            continue
        outcomes[stored.state.outcome] += 1
        if not final and stored.state.outcome is None:
            assert run(lambda name=f"s{point}": office.ask(name, None), office.store) in ("answered", "pending")
    office.judge()
    assert outcomes["cancelled" if final else None] > 10
