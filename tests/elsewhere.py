"""One session in a file, asked and decided about from several places, as several processes would."""

import asyncio
import os
from collections import Counter
from pathlib import Path
from typing import Any

from jackstay import HITL, AgentSession, HarnessEngine, HITLInterceptor, SQLiteStore, tool
from jackstay.core.approvals import HITLTask
from jackstay.core.events import Event, ToolCallEndEvent
from jackstay.core.messages import ToolResult
from jackstay.core.state import RunState
from jackstay.engine.ports import SessionStore
from jackstay.models.scripted import ScriptedModel
from tests.make import tags, unanswered

HOUR = 3600.0


def reply(*calls: dict[str, Any], say: str = "") -> dict[str, Any]:
    """A turn of a script."""
    return {"say": say, "calls": list(calls)}


def asks(tool_name: str, call_id: str, **args: Any) -> dict[str, Any]:
    """A call of a turn."""
    return {"tool": tool_name, "id": call_id, "args": args or {"name": call_id}}


class Place:
    """A store file, a clock that tests set, and a file in which the tools count that they ran."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.at = folder, 1_800_000_000.0
        self.work = folder / "work"
        self.work.mkdir(parents=True)
        self._open: list[SQLiteStore] = []

    def store(self) -> SQLiteStore:
        """The file, opened once more."""
        store = SQLiteStore(self.folder / "s.db")
        self._open.append(store)
        return store

    def now(self) -> float:
        return self.at

    def engine(self, *turns: Any, store: SessionStore | None = None, **settings: Any) -> HarnessEngine:
        """Another process: it knows the script and what is stored."""
        given = {
            "workspace": str(self.work), "harness_home": str(self.folder / "home"),
            "tools": (*self.tools(), "hitl"), "hitl_enabled": True,
            "hitl_interceptor": HITLInterceptor().on_sensitive_tool("deploy"), "installed_extensions": False,
            "session_provider": store or self.store(), "clock": self.now, "model": ScriptedModel(turns),
        }  # fmt: skip
        return HarnessEngine(**{**given, **settings})

    def tools(self) -> list[Any]:
        @tool(effects={"reads"}, idempotent=True)
        async def look(name: str) -> str:
            """Look."""
            self.count(name)
            return f"saw {name}"

        @tool(effects={"writes"})
        async def put(name: str) -> str:
            """Write."""
            self.count(name)
            return f"put {name}"

        @tool(effects={"writes"})
        async def deploy(name: str) -> str:
            """Deploy."""
            self.count(name)
            return f"deployed {name}"

        return [look, put, deploy]

    def session(self) -> AgentSession:
        """The session, as somebody elsewhere sees it."""
        return AgentSession("s", self.store(), now=self.now)

    @property
    def state(self) -> RunState:
        return self.session().state

    def waiting(self) -> dict[str, HITLTask]:
        return {task.call_id: task for task in HITL.get_pending_tasks(self.session())}

    def count(self, name: str) -> None:
        descriptor = os.open(self.folder / "count", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        os.write(descriptor, f"{name}\n".encode())
        os.close(descriptor)

    @property
    def counted(self) -> Counter[str]:
        path = self.folder / "count"
        return Counter(path.read_text().split()) if path.exists() else Counter()

    def results(self) -> dict[str, ToolResult]:
        """What the model reads of each call; fails where a provider would not take the conversation."""
        assert unanswered(self.state.transcript) == []
        return self.results_so_far()

    def results_so_far(self) -> dict[str, ToolResult]:
        """The same while calls are still open."""
        parts = [part for message in self.state.transcript for part in message.parts]
        return {part.call_id: part for part in parts if isinstance(part, ToolResult)}

    def close(self) -> None:
        for store in self._open:
            store.close()


def ask(engine: HarnessEngine, text: str | None = "go") -> list[Event]:
    """One request in session "s" to its end; its events."""

    async def run() -> list[Event]:
        return [event async for event in engine.prompt(text).session("s").stream()]

    return asyncio.run(run())


def ends(events: list[Event]) -> list[ToolCallEndEvent]:
    return [event for event in events if isinstance(event, ToolCallEndEvent)]


def order(events: list[Event]) -> list[str]:
    """The tags, context sizes aside."""
    return [tag for tag in tags(events) if tag != "context_size"]
