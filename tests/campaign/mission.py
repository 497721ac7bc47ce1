"""The run that the crash campaign kills: its tools, its script, and the workers that carry it on."""

import asyncio
import os
import resource
import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from jackstay import HITL, AgentSession, HarnessEngine, HITLDecision, HITLInterceptor, SQLiteStore, tool
from jackstay.core.errors import Conflict, SessionBusy, StoreError
from jackstay.core.events import TRANSIENT, Event
from jackstay.core.wire import encode
from jackstay.engine.ports import Commit, Lease, PendingSession, Posted, Record, SessionInfo, Stored, Tool
from jackstay.models.scripted import ScriptedModel

SESSION = "mission"
ENDED, WAITS, BUSY, STORE_FAILED = 0, 3, 4, 5  # how a worker's process ends

Kill = Callable[[int, str], None]  # (number of the commit in this process, "before" or "after")


class KillingStore:
    """A session store that hands everything on, and lets `kill` have its way around every commit."""

    def __init__(self, store: SQLiteStore, kill: Kill) -> None:
        self.store, self._kill, self._commits = store, kill, 0

    def commit(self, session_id: str, expected: int, record: Record) -> int:
        self._commits += 1
        self._kill(self._commits, "before")
        version = self.store.commit(session_id, expected, record)
        self._kill(self._commits, "after")
        return version

    def commit_all(self, commits: Sequence[Commit]) -> list[int | Exception]:
        self._commits += 1
        self._kill(self._commits, "before")
        outcomes = self.store.commit_all(commits)
        self._kill(self._commits, "after")
        return outcomes

    def load(self, session_id: str) -> Stored | None:
        return self.store.load(session_id)

    def head(self, session_id: str) -> Stored | None:
        return self.store.head(session_id)

    def renew(self, session_id: str, lease: Lease) -> bool:
        return self.store.renew(session_id, lease)

    def post(self, session_id: str, *items: Posted, expected: int | None = None) -> int:
        return self.store.post(session_id, *items, expected=expected)

    def inbox(self, session_id: str) -> tuple[Posted, ...]:
        return self.store.inbox(session_id)

    def posted(self, session_id: str) -> bool:
        return self.store.posted(session_id)

    def events(self, session_id: str, after: int = 0) -> Iterator[Event]:
        return self.store.events(session_id, after)

    def artifact(self, session_id: str, call_id: str) -> str | None:
        return self.store.artifact(session_id, call_id)

    def pending(self, limit: int = 1000) -> list[PendingSession]:
        return self.store.pending(limit)

    def sessions(self, limit: int = 1000) -> list[SessionInfo]:
        return self.store.sessions(limit)

    def delete(self, session_id: str) -> bool:
        return self.store.delete(session_id)

    def close(self) -> None:
        self.store.close()


def die_at(number: int, when: str) -> Kill:
    """Kill this very process -9 right before or after its commit of this number."""

    def kill(commit: int, moment: str) -> None:
        if (commit, moment) == (number, when):
            os.kill(os.getpid(), signal.SIGKILL)

    return kill


def turn_read_only(number: int) -> Kill:
    """From this process's commit of this number on nothing it writes reaches the disk; reading goes on."""

    def kill(commit: int, moment: str) -> None:
        if (commit, moment) == (number, "before"):
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))

    return kill


def live(commit: int, moment: str) -> None:
    """Kill nothing."""


# -- the mission -------------------------------------------------------------------------------------------

TURNS: list[dict[str, Any]] = [
    {"say": "Looking around.", "calls": [{"tool": "look", "args": {"name": n}, "id": f"look-{n}"} for n in "abc"]},
    {"say": "", "calls": [
        {"tool": "tally", "args": {"name": "tally-1"}, "id": "tally-1"},
        {"tool": "bash", "args": {"command": "echo bash-1 >> count; sleep 0.01"}, "id": "bash-1"},
        {"tool": "tally", "args": {"name": "tally-2"}, "id": "tally-2"},
    ]},
    {"say": "Now the risky part.", "calls": [
        {"tool": "look", "args": {"name": "d"}, "id": "look-d"},
        {"tool": "deploy", "args": {"name": "deploy-1"}, "id": "deploy-1"},
        {"tool": "tally", "args": {"name": "tally-3"}, "id": "tally-3"},
        {"tool": "deploy", "args": {"name": "deploy-2"}, "id": "deploy-2"},
        {"tool": "look", "args": {"name": "e"}, "id": "look-e"},
    ]},
    {"say": "", "calls": [
        {"tool": "bash", "args": {"command": "sleep 0.01; echo bash-2 >> count"}, "id": "bash-2"},
        {"tool": "write", "args": {"file_path": "report.txt", "content": "all well\n"}, "id": "write-1"},
    ]},
    {"say": "All done."},
]  # fmt: skip
CALLS = [call["id"] for turn in TURNS for call in turn.get("calls", ())]
GATED = {"deploy-1": HITLDecision.approve(), "deploy-2": HITLDecision.reject("not this one")}


def count(folder: Path, name: str) -> None:
    """A side effect that nothing can take back: one more line, in one write."""
    descriptor = os.open(folder / "work" / "count", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    os.write(descriptor, f"{name}\n".encode())
    os.close(descriptor)


def tools(folder: Path) -> list[Tool | str]:
    @tool(effects={"reads"}, idempotent=True)
    async def look(name: str) -> str:
        """Look at something, for a moment."""
        await asyncio.sleep(0.002)
        return f"saw {name}"

    @tool(effects={"writes"})
    async def tally(name: str) -> str:
        """Count."""
        count(folder, name)
        await asyncio.sleep(0.001)
        return f"counted {name}"

    @tool(effects={"writes"})
    async def deploy(name: str) -> str:
        """Deploy."""
        await asyncio.sleep(0.001)
        count(folder, name)
        return f"deployed {name}"

    return [look, tally, deploy, "bash", "write", "hitl"]


def engine(folder: Path, kill: Kill, *, hitl: bool = True) -> HarnessEngine:
    hitl_interceptor = HITLInterceptor().on_sensitive_tool("deploy")
    return HarnessEngine(
        workspace=str(folder / "work"), harness_home=str(folder / "home"),
        session_provider=KillingStore(SQLiteStore(folder / "s.db"), kill),
        model=ScriptedModel(TURNS), tools=tuple(tools(folder)), hitl_enabled=hitl,
        hitl_interceptor=hitl_interceptor, installed_extensions=False,
    )  # fmt: skip


def work(folder: Path, kill: Kill = live) -> int:
    """Begin the mission or take it up; how it stands when this request has ended."""
    made = engine(folder, kill)
    log = os.open(folder / "told", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)

    async def run() -> str | None:
        prompt = None if made.store.head(SESSION) is not None else "go"
        async for event in made.prompt(prompt).session(SESSION).stream():
            if not isinstance(event, TRANSIENT) and event.seq is not None:
                with suppress(OSError):  # the disk may be read-only by now: what was told is not written down
                    os.write(log, encode(event) + b"\n")
        return made.get_session(SESSION).outcome

    try:
        outcome = asyncio.run(run())
    except (SessionBusy, Conflict):
        return BUSY
    except StoreError:
        return STORE_FAILED
    return WAITS if outcome == "pending" else ENDED


def decide(folder: Path) -> int:
    """Answer one call that waits, as another process would: one at a time, the last one first."""
    store = SQLiteStore(folder / "s.db")
    session = AgentSession(SESSION, store)
    for task in reversed(HITL.get_pending_tasks(session)):
        answer = HITLDecision.skip("it may have run") if task.indeterminate else GATED[task.call_id]
        HITL.submit(session, task, answer, by="somebody else")
        break
    store.close()
    return ENDED
