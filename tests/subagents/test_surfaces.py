"""Subagents over real HTTP, and as the command line shows them: three processes, one run."""

import time
from pathlib import Path
from typing import Any

import pytest

from jackstay import HarnessEngine, MemoryStore
from jackstay.core.events import HITLPendingEvent, SubagentEvent
from jackstay.engine.texts import EXPIRED
from jackstay.models.registry import open_model
from tests.cli.command import Jackstay, Terminal, released, wait_until
from tests.loopback import Loopback
from tests.shapes import check_anthropic, check_openai
from tests.subagents.team import below, results, told

RUN = ("run", "--session", "s1", "--discipline", "off", "--tools", "task,bash")
HAND_ON = {"calls": [{"tool": "task", "args": {"agent_name": "builder", "prompt": "build it"}, "id": "c1"}]}
COUNT = {"calls": [{"tool": "bash", "args": {"command": "echo ran >> count"}, "id": "c1"}]}


def answer(body: dict[str, Any]) -> dict[str, Any]:
    """Who asks is told by the system prompt, how far they are by their own replies."""
    said = sum(message["role"] == "assistant" for message in body["messages"])
    if "You build things." in str(body.get("system") or body["messages"][0]):
        return (COUNT, {"say": "It is built."})[said]
    return (HAND_ON, {"say": "All is done."})[said]


@pytest.fixture
def builder(tmp_path: Path) -> Jackstay:
    jackstay = Jackstay(tmp_path)
    folder = jackstay.home / "agents"
    folder.mkdir(parents=True, mode=0o700)
    jackstay.home.chmod(0o700)
    (folder / "builder.md").write_text("---\ndescription: builds\ntools: [bash]\n---\nYou build things.\n")
    return jackstay


@pytest.mark.parametrize("kind", ["openai", "anthropic"])
def test_over_http_parent_and_subagent_ask_the_same_server(
    tmp_path: Path, builder: Jackstay, kind: str
) -> None:
    with Loopback(answer) as server:
        name = f"m@{server.openai_url}" if kind == "openai" else f"anthropic:m@{server.url}"
        made = HarnessEngine(
            model=open_model(name, env={"ANTHROPIC_API_KEY": "k"}), tools=("task", "bash"), sandbox="none",
            session_provider=MemoryStore(), installed_extensions=False, harness_home=str(builder.home),
            workspace=str(builder.workspace),
        )  # fmt: skip
        events = told(made)
        for body in server.bodies:
            (check_openai if kind == "openai" else check_anthropic)(body)
    assert results(events) == [("c1", False, "It is built.")]
    assert [r[:2] for r in results(below(events))] == [("c1", False)]
    assert made.get_session("s").state.usage.total_tokens == 60, "four answers, two of them the subagent's"
    assert (builder.workspace / "count").read_text() == "ran\n"


def test_three_processes_one_run(builder: Jackstay) -> None:
    with Loopback(answer) as server:
        first = builder(*RUN, "--model", f"m@{server.openai_url}", "--json", "go")
        assert first.code == 3
        (waiting,) = next(e for e in first.events if isinstance(e, HITLPendingEvent)).pending_tasks
        (child,) = waiting.path
        assert {e.child_session_id for e in first.events if isinstance(e, SubagentEvent)} == {child}
        (shown,) = builder("pending", "--json").objects
        assert (shown["session_id"], shown["call_id"], shown["path"]) == ("s1", "c1", [child])
        approved = builder("approve", "s1", "c1")
        assert approved.out == f"approved {child}/c1 (bash)\ngo on with: jackstay resume s1\n"
        second = builder("approve", "s1", "c1")
        assert (second.code, "decided already and the first decision stands" in second.err) == (1, True)
        assert builder.count() == 0
        last = builder("resume", "s1")
    assert (last.code, last.out, builder.count()) == (0, "All is done.\n", 1)
    told_aside = [line for line in last.err.splitlines() if "builder" in line]
    assert told_aside == [
        "  builder: goes on", "  builder: approved bash", "  builder: → bash  echo ran >> count",
        "  builder: answered: It is built.",
    ]  # fmt: skip


def test_a_subagents_session_is_shown_resumed_and_deleted_through_its_parent(builder: Jackstay) -> None:
    with Loopback(answer) as server:
        builder(*RUN, "--model", f"m@{server.openai_url}", "go")
        listed = [row["session_id"] for row in builder("sessions", "list", "--json").objects]
        (child,) = set(listed) - {"s1"}
        gone = builder("sessions", "delete", child, "--yes")
        assert (gone.code, "subagent of 's1', whose run is not over: end it" in gone.err) == (1, True)
        refused = builder("resume", child, "--model", f"m@{server.openai_url}")
        assert (refused.code, "prompt or resume 's1' instead" in refused.err) == (1, True)
        builder("approve", "s1", "--all")
        builder("resume", "s1")
    assert f"  subagent's session: {child}" in builder("sessions", "show", "s1").out.splitlines()
    assert "echo ran >> count" in builder("sessions", "show", child).out
    builder("sessions", "delete", "s1", "--yes")
    assert builder("sessions", "list", "--json").objects == []


def test_an_agent_is_asked_by_name_and_keeps_its_name_on_resume(builder: Jackstay) -> None:
    with Loopback(answer) as server:
        asked = builder(*RUN, "--agent", "builder", "--model", f"m@{server.openai_url}", "--json", "go")
        assert (asked.code, [spec["function"]["name"] for spec in server.bodies[0]["tools"]]) == (3, ["bash"])
        builder("approve", "s1", "--all")
        assert builder("resume", "s1").out == "It is built.\n"
    assert builder.count() == 1


def test_a_deadline_holds_below_and_a_late_or_second_answer_is_told_why(builder: Jackstay) -> None:
    """The flag of the run counts for its subagent's call, in every process."""
    with Loopback(answer) as server:
        words = (*RUN, "--model", f"m@{server.openai_url}", "--approval-deadline", "0.01m")
        assert builder(*words, "go").code == 3
        (task,) = builder("pending", "s1", "--json").objects
        assert (round(task["deadline"] - task["asked_at"], 3), task["on_deadline"]) == (0.6, "deny")
        time.sleep(max(0.0, task["deadline"] - time.time()) + 0.05)
        late = builder("approve", "s1", "c1")
        assert (late.code, late.out) == (1, "")
        assert f"the time to answer about call 'c1' of session '{task['path'][0]}' ended" in late.err
        done = builder("resume", "s1", "--json")
        after = builder("approve", "s1", f"{task['path'][0]}/c1")
    assert (done.code, builder.count()) == (0, 0)
    assert [end[1:] for end in results(below(done.events)) if end[0] == "c1"] == [(True, EXPIRED)]
    assert (
        after.code,
        "waits no more and nothing was changed; what became of it: Not run: nobody" in after.err,
    ) == (
        1,
        True,
    )


def test_cancelled_from_another_terminal_nothing_below_can_be_approved(builder: Jackstay) -> None:
    with Loopback(answer) as server:
        builder(*RUN, "--model", f"m@{server.openai_url}", "go")
        assert builder("cancel", "s1").out == "the run of session s1 is cancelled\n"
        assert builder("pending").out == "nothing waits\n"
        late = builder("approve", "s1", "c1")
        assert builder("resume", "s1").code == 130
    assert (late.code, late.out, builder.count()) == (1, "", 0)
    assert "waits no more and nothing was changed; what became of it:" in late.err


def test_on_a_terminal_a_subagents_call_is_asked_about_inline(builder: Jackstay) -> None:
    with Loopback(answer) as server:
        terminal = Terminal(builder, *RUN, "--model", f"m@{server.openai_url}", "go")
        asked = terminal.expect("[?] help: ")
        assert "/c1  bash" in asked
        assert "command: echo ran >> count" in asked
        terminal.type("a\n")
        code, rest = terminal.end()
    assert (code, builder.count()) == (0, 1)
    assert "builder: answered: It is built." in rest


def test_killed_while_a_subagents_tool_runs_nothing_is_repeated_and_no_second_one_begins(
    builder: Jackstay,
) -> None:
    blocked = {"calls": [{"tool": "bash", "args": {"command": "echo ran >> count; cat pipe"}, "id": "c1"}]}

    def blocking(body: dict[str, Any]) -> dict[str, Any]:
        said = answer(body)
        return blocked if said is COUNT else said

    with released(builder.workspace / "pipe"), Loopback(blocking) as server:
        run = builder.start(*RUN, "--model", f"m@{server.openai_url}", "--allow", "bash", "--json", "go")
        run.until("tool_call_start")
        wait_until(lambda: builder.count() == 1)
        run.kill()
        listed = {row["session_id"] for row in builder("sessions", "list", "--json").objects}
        assert builder("resume", "s1", "--json").code == 3
        ((waiting,),) = [builder("pending", "s1", "--json").objects]
        assert (waiting["indeterminate"], {"s1", *waiting["path"]}) == (True, listed)
        assert builder("skip", "s1", "--all", "--comment", "exit code 0: it had run").code == 0
        done = builder("resume", "s1")
    assert (done.code, done.out, builder.count()) == (0, "All is done.\n", 1)
    assert {row["session_id"] for row in builder("sessions", "list", "--json").objects} == listed
