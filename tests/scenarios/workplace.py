"""A place to work under the discipline, made of real parts: a git repository, a home, a store, programs on PATH."""

import asyncio
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from jackstay import HarnessEngine, SQLiteStore
from jackstay.core.events import (
    BackupTakenEvent,
    Event,
    GateBlockedEvent,
    GuidanceEvent,
    HITLPendingEvent,
    PhaseChangedEvent,
    RunEndEvent,
    SkillLoadedEvent,
    ToolCallEndEvent,
    ToolCallStartEvent,
)
from jackstay.core.phase import PhaseState
from jackstay.testing import ScriptedModel, call, says
from jackstay.ward.backup import Backups

TOOLS = ("read", "write", "edit", "bash", "todo")
TURN = ["reason_start", "reason_end"]
TOKEN = "ghp_" + "R4nd0mL00k1ngT0k3nF0rAT35tXyZ9876abcd"[:36]
EVIDENCE = {
    "skill_update": "no skill speaks of this file",
    "decision_record": "the one option was to change the value",
    "registration_check": "no new service, device or port",
    "information_storage": "nothing was learnt that is kept elsewhere",
    "baseline_comparison": "git shows this task's files; port, unit, disk, ssh, temporary, process: not of this task",
    "credential_scan": "the harness has scanned them",
    "commit_housekeeping": "as the user has said",
}


class Workplace:
    """Directories below one temporary directory, and the engine of the moment."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.workspace, self.home = root / "work", root / "home"
        self.user, self.temporary, self.programs = root / "user", root / "tmp", root / "bin"
        for directory in (self.workspace, self.user / ".ssh", self.temporary, self.programs):
            directory.mkdir(parents=True)
        self.file("app.conf").write_bytes(b"a=1\r\nname=\xc3\xa9\r\n")
        self.file("app.conf").chmod(0o640)
        self.git("init", "-q", "-b", "main")
        self.git("config", "user.email", "tester@example.org")
        self.git("config", "user.name", "Tester")
        self.git("add", ".")
        self.git("commit", "-q", "-m", "begin")
        self.store = SQLiteStore(root / "sessions.db")
        self.engine: HarnessEngine
        self.model: ScriptedModel

    def file(self, name: str) -> Path:
        """A file of the workspace."""
        return self.workspace / name

    def git(self, *words: str) -> str:
        """What git says in the workspace."""
        done = subprocess.run(
            ["git", "-C", str(self.workspace), *words], capture_output=True, text=True, check=True
        )
        return done.stdout.strip()

    def program(self, name: str, text: str) -> None:
        """Put a program on PATH."""
        (self.programs / name).write_text(text)
        (self.programs / name).chmod(0o755)

    def script(self, *turns: dict[str, Any] | str, **settings: Any) -> "Workplace":
        """An engine whose model says these turns."""
        self.model = ScriptedModel(turns)
        settings = {"tools": TOOLS, "discipline": "strict", "installed_extensions": False} | settings
        self.engine = HarnessEngine(
            workspace=str(self.workspace), harness_home=str(self.home), session_provider=self.store,
            model=self.model, **settings,
        )  # fmt: skip
        return self

    def say(self, prompt: str | None, session: str = "s1") -> list[Event]:
        """What happens when a person says this, or resumes."""

        async def read() -> list[Event]:
            return [event async for event in self.engine.prompt(prompt).session(session).stream()]

        return asyncio.run(read())

    def phase(self, session: str = "s1") -> PhaseState:
        """Where the session's task stands."""
        return self.engine.get_session(session).state.policy.phase

    @property
    def backups(self) -> Backups:
        """The backup area of the home."""
        return Backups(self.home)


def place(root: Path, monkeypatch: pytest.MonkeyPatch) -> Workplace:
    """A new place, its programs first on PATH, its directories those of the user."""
    made = Workplace(root)
    import os

    monkeypatch.setenv("PATH", f"{made.programs}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("TMPDIR", str(made.temporary))
    monkeypatch.setenv("HOME", str(made.user))
    return made


def told(events: Iterable[Event]) -> list[str]:
    """The events in order, one line each, with the facts that matter; deltas and sizes are left out."""
    lines = (_line(event) for event in events)
    return [line for line in lines if line]


def _line(event: Event) -> str:
    match event:
        case PhaseChangedEvent(before=before, after=after):
            return f"phase {before} -> {after}"
        case GateBlockedEvent(gate=gate, tool_name=tool):
            return f"blocked by {gate}: {tool}"
        case GuidanceEvent(phase=phase):
            return f"guidance {phase}"
        case SkillLoadedEvent(name=name):
            return f"skill {name.partition(':')[2]}"
        case BackupTakenEvent(path=path):
            return f"backup {Path(path).name}"
        case ToolCallStartEvent(tool_name=tool):
            return f"start {tool}"
        case ToolCallEndEvent(tool_name=tool):
            how = "refused" if event.executed is False else "failed" if event.is_error else "done"
            return f"{how} {tool}"
        case _:
            return _plain(event)


def _plain(event: Event) -> str:
    if isinstance(event, HITLPendingEvent):
        return f"waiting {' '.join(task.tool_name for task in event.pending_tasks)}"
    if isinstance(event, RunEndEvent):
        return f"run_end {event.outcome}"
    return "" if event.type in ("reason_delta", "tool_output_delta", "context_size") else event.type


def refusals(events: Iterable[Event]) -> list[str]:
    """What the model read of calls that were refused."""
    return [e.text for e in events if isinstance(e, ToolCallEndEvent) and e.is_error]


def texts(events: Iterable[Event], tool: str) -> list[str]:
    """The results of a tool's calls."""
    return [e.text for e in events if isinstance(e, ToolCallEndEvent) and e.tool_name == tool]


def checks(*items: str) -> dict[str, Any]:
    """A turn that ticks these closing items, with honest evidence."""
    return says(*(call("closure_check", item=item, evidence=EVIDENCE[item]) for item in items))


def set_phase(phase: str, reason: str = "the step is done") -> dict[str, Any]:
    """A turn that declares a phase."""
    return says(call("discipline_set_phase", phase=phase, reason=reason))


PLANNED = (says("[HARNESS: task_started]", call("read", file_path="app.conf")), "The plan.\n\n[HARNESS: plan]")


def executing(place: Workplace, *turns: dict[str, Any] | str, **settings: Any) -> Workplace:
    """The place with a session whose plan the user is about to approve with their next words."""
    place.script(*PLANNED, *turns, **settings)
    place.say("Change the value in app.conf")
    return place
