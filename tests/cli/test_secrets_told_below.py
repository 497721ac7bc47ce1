"""A secret in the work of a subagent is told nowhere, neither as its parent's events nor by looking at its session."""

from pathlib import Path
from typing import Any

import pytest

from jackstay.core.events import HITLPendingEvent, SubagentEvent
from jackstay.policy.secrets import plain
from tests.cli.command import Done, Jackstay, bash
from tests.loopback import Loopback
from tests.subagents.test_surfaces import builder as builder  # the fixture

SECRET = plain("ghp_¦k3Jd8sLq0ZxVb7NmYt5RwPa2HgUe9Cf4Ti6o")
MARK = "[redacted:github-token]"
COMMAND = f"echo {SECRET} >> used"
LOOK = {"say": "[HARNESS: task_started]", "calls": [{"tool": "ls", "args": {}, "id": "c0"}]}
PLAN = {"say": f"[HARNESS: plan]\nI write {SECRET}.", **{"calls": bash(COMMAND)["calls"]}}


def hand_on() -> dict[str, Any]:
    args = {"agent_name": "builder", "prompt": f"use {SECRET}", "description": f"with {SECRET}"}
    return {"say": f"I hand {SECRET} on.", "calls": [{"tool": "task", "args": args, "id": "c1"}]}


ANCHOR = {"calls": [{"tool": "anchor_set", "args": {"key": "mission", "value": f"use {SECRET}"}, "id": "c2"}]}
EARLY = {"say": f"First {SECRET}.", **{"calls": bash(COMMAND, "c3")["calls"]}}
ABOVE = (LOOK, hand_on(), f"It used {SECRET}.")
BELOW = {
    "off": (bash(COMMAND), f"I used {SECRET}."),
    "strict": (ANCHOR, EARLY, PLAN, f"I used {SECRET}."),
}


def run(jackstay: Jackstay, server: Loopback, mode: str, *words: str) -> Done:
    model = ("--model", f"m@{server.openai_url}", "--session", "s1")
    return jackstay("run", "--discipline", mode, "--tools", "task,bash,ls", *model, f"use {SECRET}", *words)


@pytest.mark.parametrize("how", [(), ("--json",)], ids=["for people", "as JSON"])
@pytest.mark.parametrize("mode", BELOW)
def test_from_the_first_event_to_the_last_look(builder: Jackstay, mode: str, how: tuple[str, ...]) -> None:
    def answer(body: dict[str, Any]) -> dict[str, Any]:
        said = sum(message["role"] == "assistant" for message in body["messages"])
        below = "You build things." in str(body["messages"][0])
        turn = (BELOW[mode] if below else ABOVE)[said]
        return {"say": turn} if isinstance(turn, str) else turn

    with Loopback(answer) as server:
        begun = run(builder, server, mode, *how)
        assert begun.code == 3, begun
        if how:
            inner = [e for e in begun.events if isinstance(e, SubagentEvent)]
            (task,) = next(e for e in begun.events if isinstance(e, HITLPendingEvent)).pending_tasks
            assert (len(task.path), task.args) == (1, {"command": f"echo {MARK} >> used"})
            assert inner
        approved = builder("approve", "s1", "c1", "--comment", f"with {SECRET}", *how)
        ended = builder("resume", "s1", *how)
        assert (approved.code, ended.code) == (0, 0)
    sessions = [row["session_id"] for row in builder("sessions", "list", "--json").objects]
    assert len(sessions) == 2
    looks = [builder(*words) for name in sessions for words in (
        ("sessions", "show", name), ("sessions", "show", name, "--json"), ("sessions", "export", name),
        ("phase", "show", name), ("phase", "show", name, "--json"), ("audit", "--session", name), ("pending",),
    )]  # fmt: skip
    for done in (begun, approved, ended, *looks, builder("sessions", "list"), builder("audit", "--json")):
        assert SECRET not in done.out + done.err, done
    assert (builder.workspace / "used").read_text() == f"{SECRET}\n"
    kept = [file for file in Path(builder.home).rglob("*") if file.is_file() and "sessions" not in file.name]
    assert [str(file) for file in kept if SECRET.encode() in file.read_bytes()] == []
