"""Sentences of the second seed as they come true in `jackstay run`, with the real command and real tools."""

import re

import pytest

from jackstay.core.events import (
    GateBlockedEvent,
    GuidanceEvent,
    PhaseChangedEvent,
    SkillLoadedEvent,
    ToolCallEndEvent,
)
from tests.cli.command import Done, Jackstay, Turn
from tests.cli.test_discipline import LOOK, PLAN, edit
from tests.loopback import Loopback

# 16.3.4, those of the list that reach nothing beyond this machine
ALLOWED = (
    "cat a", "ls", "head a", "tail a", "grep x a", "find .", "stat a", "df", "du", "ps", "which ls", "systemctl status x",
    "journalctl -n 1", "docker ps", "docker images", "podman ps", "ip addr", "git status", "git log", "git diff", "nvidia-smi",
)  # fmt: skip
BLOCKED = (
    "git push", "git commit -m x", "git merge x", "git reset", "docker run x", "docker rm x", "docker build .",
    "systemctl start x", "systemctl stop x", "systemctl restart x",
)  # fmt: skip


def shells(*commands: str, say: str = "") -> Turn:
    return {"say": say, "calls": [{"tool": "bash", "args": {"command": command}} for command in commands]}


def run(jackstay: Jackstay, *turns: Turn | str, prompt: str = "set the timeout to 30") -> Done:
    (jackstay.workspace / "settings.ini").write_text("timeout = 5\n")
    words = ("--discipline", "strict", "--session", "s1", "--model", jackstay.script(*turns), "--json")
    return jackstay("run", *words, "--allow", "bash(pass ls)", prompt)


def go_on(jackstay: Jackstay) -> Done:
    jackstay("approve", "s1", "--plan")
    return jackstay("resume", "s1", "--json")


def blocked(done: Done) -> list[tuple[str, str]]:
    return [(event.gate, event.tool_name) for event in done.events if isinstance(event, GateBlockedEvent)]


def moves(done: Done) -> list[tuple[str, str]]:
    return [(event.before, event.after) for event in done.events if isinstance(event, PhaseChangedEvent)]


def skills(done: Done) -> list[str]:
    return [event.name for event in done.events if isinstance(event, SkillLoadedEvent)]


def ran(done: Done) -> list[bool | None]:
    return [event.executed for event in done.events if isinstance(event, ToolCallEndEvent)]


def test_in_research_and_closing_the_terminal_is_read_only_as_listed(jackstay: Jackstay) -> None:
    both = (*ALLOWED, *BLOCKED)
    first = run(jackstay, shells(*both, say="[HARNESS: task_started]"), PLAN, shells(*both, say="[HARNESS: done]"),
                "I wait.", "I wait.", "I wait.")  # fmt: skip
    wanted = [True] * len(ALLOWED) + [False] * len(BLOCKED)
    assert (ran(first), blocked(first)) == (wanted, [("research", "bash")] * len(BLOCKED))
    second = go_on(jackstay)
    assert (ran(second), blocked(second)) == (wanted, [("closure", "bash")] * len(BLOCKED))


def test_only_done_leaves_closing_and_every_other_marker_brings_a_warning(jackstay: Jackstay) -> None:
    others = [f"[HARNESS: {marker}]" for marker in ("task_started", "plan", "casual", "done")]
    first = run(jackstay, LOOK, PLAN, edit("5", "30"), "[HARNESS: done]", *others[:2], "Waiting.")
    done = go_on(jackstay)
    assert first.code == 3
    assert moves(done)[-1] == ("modifying", "closing")
    assert [tool for gate, tool in blocked(done) if gate == "closure"] == ["marker task_started", "marker plan"]
    guidance = [event.text for event in done.events if isinstance(event, GuidanceEvent)]
    assert any("Closing cannot be bypassed" in text for text in guidance)
    (now,) = jackstay("phase", "show", "s1", "--json").objects
    assert now["phase"] == "closing"


def test_steady_phases_are_silent_and_the_others_guide(jackstay: Jackstay) -> None:
    first = run(
        jackstay,
        LOOK,
        PLAN,
        {"say": "", "calls": [{"tool": "ls", "args": {}}]},
        edit("5", "30"),
        "Done so far.",
    )
    second = go_on(jackstay)
    told = [
        str(event.phase)
        for done in (first, second)
        for event in done.events
        if isinstance(event, GuidanceEvent)
    ]
    assert told[0] == "task_started"
    assert set(told) <= {"task_started", "planning", "executing", "modifying"}
    # executing says one thing, once: the reminder of the move itself
    reminders = [
        event.text for event in second.events if isinstance(event, GuidanceEvent) and event.phase == "executing"
    ]
    assert len(reminders) == 1
    assert "approved the plan" in reminders[0]


def test_skills_come_by_phase_and_by_tool_and_a_credential_tool_moves_to_accessing_device(
    jackstay: Jackstay,
) -> None:
    back = {"phase": "executing", "reason": "the key is there"}
    first = run(
        jackstay, LOOK, PLAN, shells("pass ls"), edit("5", "30"),
        {"say": "", "calls": [{"tool": "discipline_set_phase", "args": back}]}, edit("5", "30"),
        "[HARNESS: done]", "Waiting.", "Waiting.", "Waiting.",
    )  # fmt: skip
    second = go_on(jackstay)
    assert skills(first) == ["work-principles:pre-action-research"]
    assert skills(second) == [
        "work-principles:credential-store-management", "work-principles:change-safeguard",
        "work-principles:work-closure-check",
    ]  # fmt: skip
    assert blocked(second)[0] == ("device", "edit")  # nothing but credentials there
    assert moves(second) == [
        ("planning", "executing"), ("executing", "accessing_device"), ("accessing_device", "executing"),
        ("executing", "modifying"), ("modifying", "closing"),
    ]  # fmt: skip
    guidance = [event.text for event in second.events if isinstance(event, GuidanceEvent)]
    assert any("Look in the credential store" in text for text in guidance)


def test_the_soul_stands_in_the_prompt_of_every_session_and_the_markers_are_taught_once(
    jackstay: Jackstay,
) -> None:
    (jackstay.workspace / "SOUL.md").write_text("Speak plainly.\n")
    with Loopback([{"say": "[HARNESS: casual]\nHello."}]) as server:
        words = ("--discipline", "strict", "--model", f"m@{server.openai_url}")
        assert jackstay("run", *words, "hello").code == 0
        system = next(one["content"] for one in server.bodies[0]["messages"] if one["role"] == "system")
    assert "Speak plainly." in system
    assert len(re.findall(r"HARNESS: task_started", system)) == 1


@pytest.mark.parametrize("prompt", ["Set the timeout to 30.", "把超时改成 30"])
def test_a_simple_task_after_a_new_session_enters_research_by_itself(jackstay: Jackstay, prompt: str) -> None:
    done = run(jackstay, edit("5", "30"), "I look first.", prompt=prompt)
    assert (moves(done), blocked(done)) == ([("no_task", "task_started")], [("start", "edit")])
    assert (jackstay.workspace / "settings.ini").read_text() == "timeout = 5\n"
