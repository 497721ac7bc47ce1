"""kill -9 and Ctrl-C at any point: another process goes on, and no finished tool runs again."""

import signal
from typing import Any

from jackstay.core.events import HITLPendingEvent, RunStartEvent, ToolCallEndEvent
from tests.cli.command import Done, Jackstay, bash, released, wait_until
from tests.loopback import Loopback

COUNT = "echo ran >> count"
BLOCKED = "echo ran >> count; cat pipe"


def hangs_at(*numbers: int, turns: list[dict[str, Any]]) -> Any:
    """A server's script by turn that, at these requests (from 1 up), goes silent in mid-answer instead."""
    asked = 0

    def answer(body: dict[str, Any]) -> dict[str, Any]:
        nonlocal asked
        asked += 1
        turn = turns[sum(message["role"] == "assistant" for message in body["messages"])]
        return {"say": "I was about to", "fault": "hang", "at": 2} if asked in numbers else turn

    return answer


def resumed(done: Done, run_id: str) -> None:
    begun = done.events[0]
    assert isinstance(begun, RunStartEvent)
    assert (begun.resumed, begun.run_id) == (True, run_id)


def test_killed_while_the_model_answers_it_is_asked_again(jackstay: Jackstay) -> None:
    with Loopback(hangs_at(1, turns=[{"say": "Here I am."}])) as server:
        run = jackstay.start("run", "--model", f"m@{server.openai_url}", "--session", "s1", "--json", "go")
        run_id = run.until("reason_delta").run_id
        run.kill()
        done = jackstay("resume", "s1", "--json")
        assert [
            message["content"] for message in server.bodies[1]["messages"] if message["role"] == "user"
        ] == ["go"]
    resumed(done, run_id)
    assert (done.code, done.kinds) == (0, ["run_start", "reason_start", "reason_end", "run_end"])


def test_killed_while_a_tool_runs_a_person_is_asked_and_nothing_is_repeated_by_itself(
    jackstay: Jackstay,
) -> None:
    with (
        released(jackstay.workspace / "pipe"),
        Loopback([bash(BLOCKED), {"say": "Done."}], by_turn=True) as server,
    ):
        model = ["--model", f"m@{server.openai_url}", "--allow", "bash"]
        run = jackstay.start("run", *model, "--session", "s1", "--json", "go")
        run_id = run.until("tool_call_start").run_id
        wait_until(lambda: jackstay.count() == 1)
        run.kill()
        asked = jackstay("resume", "s1", "--json")
        resumed(asked, run_id)
        pending = next(event for event in asked.events if isinstance(event, HITLPendingEvent))
        assert (asked.code, [task.indeterminate for task in pending.pending_tasks]) == (3, [True])
        assert jackstay("skip", "s1", "c1", "--comment", "it had run").code == 0
        done = jackstay("resume", "s1", "--json")
    end = next(event for event in done.events if isinstance(event, ToolCallEndEvent))
    assert (done.code, jackstay.count()) == (0, 1)
    assert (end.text, end.executed) == ("it had run", None)


def test_killed_while_a_tool_runs_and_nobody_to_ask_the_model_is_told(jackstay: Jackstay) -> None:
    with (
        released(jackstay.workspace / "pipe"),
        Loopback([bash(BLOCKED), {"say": "Done."}], by_turn=True) as server,
    ):
        model = ["--model", f"m@{server.openai_url}", "--allow", "bash", "--no-hitl"]
        run = jackstay.start("run", *model, "--session", "s1", "--json", "go")
        run.until("tool_call_start")
        wait_until(lambda: jackstay.count() == 1)
        run.kill()
        done = jackstay("resume", "s1", "--json")
    end = next(event for event in done.events if isinstance(event, ToolCallEndEvent))
    assert (done.code, jackstay.count(), end.executed) == (0, 1, None)
    assert "may have run" in end.text


def test_killed_between_two_tools_the_first_does_not_run_again(jackstay: Jackstay) -> None:
    calls = [
        {"tool": "bash", "args": {"command": "echo first >> first"}, "id": "a"},
        {"tool": "bash", "args": {"command": BLOCKED}, "id": "b"},
    ]
    turns = [{"say": "", "calls": calls}, {"say": "Done."}]
    with released(jackstay.workspace / "pipe"), Loopback(turns, by_turn=True) as server:
        model = ["--model", f"m@{server.openai_url}", "--allow", "bash"]
        run = jackstay.start("run", *model, "--session", "s1", "--json", "go")
        run.until("tool_call_end")
        wait_until(lambda: jackstay.count() == 1)
        run.kill()
        assert jackstay("resume", "s1").code == 3
        assert jackstay("skip", "s1", "--all").code == 0
        done = jackstay("resume", "s1", "--json")
        results = [message["content"] for message in server.bodies[-1]["messages"] if message["role"] == "tool"]
    assert (done.code, jackstay.count("first"), jackstay.count()) == (0, 1, 1)
    assert len(results) == 2


def test_killed_after_a_tool_its_result_is_kept(jackstay: Jackstay) -> None:
    turns = [bash(COUNT), {"say": "Done."}]
    with Loopback(hangs_at(2, turns=turns)) as server:
        model = ["--model", f"m@{server.openai_url}", "--allow", "bash"]
        run = jackstay.start("run", *model, "--session", "s1", "--json", "go")
        run.until("tool_call_end")
        run_id = run.until("reason_delta").run_id
        run.kill()
        done = jackstay("resume", "s1", "--json")
    resumed(done, run_id)
    assert (done.code, done.kinds) == (0, ["run_start", "reason_start", "reason_end", "run_end"])
    assert jackstay.count() == 1


def test_ctrl_c_while_the_model_answers_suspends_and_names_the_way_on(jackstay: Jackstay) -> None:
    with Loopback(hangs_at(1, turns=[{"say": "Here I am."}])) as server:
        run = jackstay.start("run", "--model", f"m@{server.openai_url}", "--session", "s1", "--json", "go")
        run_id = run.until("reason_delta").run_id
        stopped = run.interrupt()
        assert (stopped.code, stopped.kinds) == (130, ["reason_end", "run_end"])
        assert stopped.err.splitlines()[-1] == "suspended; nothing is lost. Go on with: jackstay resume s1"
        assert jackstay("sessions", "list", "--outcome", "open", "--json").objects[0]["session_id"] == "s1"
        done = jackstay("resume", "s1", "--json")
    resumed(done, run_id)
    assert done.code == 0


def test_ctrl_c_while_a_tool_runs_stops_it_and_keeps_what_it_said(jackstay: Jackstay) -> None:
    command = "echo ran >> count; echo so far; cat pipe; echo ran >> count"
    with (
        released(jackstay.workspace / "pipe"),
        Loopback([bash(command), {"say": "Done."}], by_turn=True) as server,
    ):
        model = ["--model", f"m@{server.openai_url}", "--allow", "bash"]
        run = jackstay.start("run", *model, "--session", "s1", "--json", "go")
        run.until("tool_output_delta")
        stopped = run.interrupt()
        assert (stopped.code, stopped.kinds) == (130, ["tool_call_end", "action_end", "run_end"])
        end = stopped.events[0]
        assert isinstance(end, ToolCallEndEvent)
        assert (end.is_error, "so far" in end.text) == (True, True)
    with Loopback([{"say": ""}, {"say": "Done."}], by_turn=True) as server:
        done = jackstay("resume", "s1", "--json", "--model", f"m@{server.openai_url}")
    assert (done.code, jackstay.count()) == (0, 1)


def test_a_session_that_runs_elsewhere_is_not_run_twice(jackstay: Jackstay) -> None:
    with Loopback(hangs_at(1, turns=[{"say": "Here I am."}])) as server:
        run = jackstay.start("run", "--model", f"m@{server.openai_url}", "--session", "s1", "--json", "go")
        run.until("reason_delta")
        second, forgotten = jackstay("resume", "s1", "--json"), jackstay("sessions", "delete", "s1", "--yes")
        assert run.interrupt().code == 130
    for refused in (second, forgotten):
        assert (refused.code, refused.out) == (1, "")
        assert "session 's1' is being run by" in refused.err
    assert jackstay("sessions", "delete", "s1", "--yes").code == 0


STUBBORN = """
import asyncio
from jackstay import tool

@tool(effects={"reads"})
async def dawdle() -> str:
    \"""Does not want to stop.\"""
    while True:
        try:
            await asyncio.sleep(600)
        except asyncio.CancelledError:
            pass

def extension(engine, agent_name, builder):
    builder.default_tool_add(dawdle)
"""


def test_ctrl_c_twice_ends_it_at_once(jackstay: Jackstay) -> None:
    (jackstay.workspace / "stubborn.py").write_text(STUBBORN)
    package = jackstay.workspace / "stubborn-1.0.dist-info"
    package.mkdir()
    (package / "METADATA").write_text("Metadata-Version: 2.1\nName: stubborn\nVersion: 1.0\n")
    (package / "entry_points.txt").write_text("[jackstay.extensions]\nstubborn = stubborn:extension\n")
    jackstay.env["PYTHONPATH"] += f":{jackstay.workspace}"
    script = jackstay.script({"say": "", "calls": [{"tool": "dawdle", "args": {}}]}, "Done.")
    run = jackstay.start("run", "--model", script, "--session", "s1", "--json", "go")
    run.until("tool_call_start")
    run.process.send_signal(signal.SIGINT)
    assert run.process.stderr is not None
    assert b"once more ends it at once" in run.process.stderr.readline()
    assert run.interrupt().code == 130
    assert jackstay("sessions", "list", "--outcome", "open", "--json").objects[0]["session_id"] == "s1"
