"""What both versions of Claude Code have written to their hooks, recorded: each event is read and answered."""

import json
from pathlib import Path
from typing import Any

import pytest

from jackstay.core.phase import Phase
from jackstay.hosts.claude_code import EVENTS, answer
from jackstay.hosts.state import HostStore, Session
from tests.hosts.claude import VERSIONS

RECORDED = Path(__file__).with_name("events")
ANSWERS = {
    "SessionStart:startup": "context", "SessionStart:resume": "context", "SessionStart:compact": "context",
    "PreToolUse:Bash": "deny", "PreToolUse:Bash:in_subagent": "deny",
    "PostToolUse:Bash": "unjudged", "PostToolUse:Bash:in_subagent": "unjudged", "PostToolUse:Agent": "unjudged",
    "PostToolUseFailure:Bash": "unjudged",
}  # fmt: skip
"""In a home that knows nothing yet: to every other event nothing is said."""


def _recorded(version: str) -> dict[str, dict[str, Any]]:
    lines = (RECORDED / f"claude-code-{version}.jsonl").read_text().splitlines()
    return {one["name"]: one["stdin"] for one in map(json.loads, lines)}


def _said(event: dict[str, Any], home: Path) -> str:
    output = answer(json.dumps(event).encode(), home, environ={"CLAUDE_CODE_ENTRYPOINT": "sdk-cli"}).output
    if output is None:
        return "nothing"
    said = output["hookSpecificOutput"]
    assert said["hookEventName"] == event["hook_event_name"]
    if "without having been judged" in said.get("additionalContext", ""):
        return "unjudged"
    return str(said.get("permissionDecision", "context"))


@pytest.mark.parametrize("version", VERSIONS)
def test_every_recorded_event_is_answered(version: str, tmp_path: Path) -> None:
    events = _recorded(version)
    said = {name: _said(event, tmp_path / str(number)) for number, (name, event) in enumerate(events.items())}
    assert said == {name: ANSWERS.get(name, "nothing") for name in events}
    assert {event["hook_event_name"] for event in events.values()} >= set(EVENTS)


@pytest.mark.parametrize("version", VERSIONS)
def test_a_recorded_conversation_moves_one_state(version: str, tmp_path: Path) -> None:
    """The session's events in their order: one row, in which the refused call has begun the task."""
    events = _recorded(version)
    session = events["SessionStart:startup"]["session_id"]
    names = ("SessionStart:startup", "UserPromptSubmit", "PreToolUse:Bash", "Stop", "SessionStart:resume")
    said = [_said(events[name] | {"session_id": session}, tmp_path) for name in names]
    assert said == ["context", "nothing", "deny", "nothing", "context"]
    store = HostStore(tmp_path)
    found = [(one, state.policy.phase.phase) for one, state, _ in store.sessions()]
    store.close()
    assert found == [(Session("claude-code", session), Phase.TASK_STARTED)]


@pytest.mark.parametrize("version", VERSIONS)
def test_a_subagents_recorded_call_belongs_to_its_session(version: str, tmp_path: Path) -> None:
    event = _recorded(version)["PreToolUse:Bash:in_subagent"]
    assert event["agent_id"]
    assert _said(event, tmp_path) == "deny"
    store = HostStore(tmp_path)
    found = [one.id for one, _, _ in store.sessions()]
    store.close()
    assert found == [event["session_id"]]
