"""A call waits in one process, a person decides in a second, the run goes on in a third."""

from typing import Any

import pytest

from jackstay.core.events import (
    HITLDecidedEvent,
    HITLPendingEvent,
    ReasonEndEvent,
    RunEndEvent,
    RunStartEvent,
    ToolCallEndEvent,
    ToolCallStartEvent,
)
from tests.cli.command import Jackstay, bash
from tests.loopback import Loopback

TWO = {
    "say": "",
    "calls": [
        {"tool": "bash", "args": {"command": "echo one >> count"}, "id": "a"},
        {"tool": "bash", "args": {"command": "echo two >> count"}, "id": "b"},
    ],
}


def test_run_approve_resume_is_one_run_and_the_tool_runs_once(jackstay: Jackstay) -> None:
    with Loopback([bash("echo ran >> count"), {"say": "Done."}], by_turn=True) as server:
        first = jackstay("run", "--model", f"m@{server.openai_url}", "--session", "s1", "--json", "go")
        assert (first.code, jackstay.count()) == (3, 0)
        undecided = jackstay("resume", "s1", "--json")
        assert (undecided.code, undecided.kinds) == (3, ["run_start", "hitl_pending", "run_end"])
        assert len(server.requests) == 1
        approved = jackstay("approve", "s1", "c1", "--comment", "go ahead")
        assert (approved.code, approved.out) == (0, "approved c1 (bash)\ngo on with: jackstay resume s1\n")
        assert jackstay.count() == 0
        last = jackstay("resume", "s1", "--json")
        assert len(server.requests) == 2
    assert last.code == 0
    assert last.kinds == [
        "run_start", "hitl_decided", "action_start", "tool_call_start", "tool_call_end", "action_end",
        "reason_start", "reason_end", "run_end",
    ]  # fmt: skip
    assert jackstay.count() == 1
    assert len({event.run_id for event in (*first.events, *undecided.events, *last.events)}) == 1
    begun = last.events[0]
    assert isinstance(begun, RunStartEvent)
    assert begun.resumed
    decided = next(event for event in last.events if isinstance(event, HITLDecidedEvent))
    assert (decided.call_id, decided.comment, decided.is_approved) == ("c1", "go ahead", True)


def test_what_waits_is_shown_whole_with_its_commands(jackstay: Jackstay) -> None:
    jackstay.waiting("echo one\necho two >> count")
    shown = jackstay("pending")
    assert shown.code == 0
    lines = shown.out.splitlines()
    assert lines[:5] == [
        "session s1:",
        "  c1  bash",
        "    command:",
        "      | echo one",
        "      | echo two >> count",
    ]
    assert lines[-2:] == [
        "decide:  jackstay approve s1 c1   (or: reject, skip)",
        "go on:   jackstay resume s1",
    ]
    (one,) = jackstay("pending", "s1", "--json").objects
    assert (one["session_id"], one["call_id"], one["tool_name"]) == ("s1", "c1", "bash")
    assert one["args"] == {"command": "echo one\necho two >> count"}


def test_what_could_deceive_the_eye_is_written_out(jackstay: Jackstay) -> None:
    jackstay.waiting("echo \u202e safe \x1b[8m; rm x")
    shown = jackstay("pending", "s1").out
    assert "\\u202e" in shown
    assert "\\e[8m" in shown
    assert "\x1b" not in shown


def test_rejecting_the_only_call_ends_the_run_with_5(jackstay: Jackstay) -> None:
    jackstay.waiting()
    assert jackstay("reject", "s1", "c1", "--comment", "not like this").code == 0
    done = jackstay("resume", "s1", "--json")
    assert (done.code, jackstay.count()) == (5, 0)
    assert done.kinds == ["run_start", "hitl_decided", "run_end"]


def test_a_skipped_call_does_not_run_and_its_comment_is_the_result(jackstay: Jackstay) -> None:
    jackstay.waiting()
    assert jackstay("skip", "s1", "c1", "--comment", "it was run already").code == 0
    done = jackstay("resume", "s1", "--json")
    end = next(event for event in done.events if isinstance(event, ToolCallEndEvent))
    assert (done.code, jackstay.count()) == (0, 0)
    assert (end.text, end.is_error, end.executed) == ("it was run already", False, False)


def test_changed_arguments_run_in_place_of_those_asked_for(jackstay: Jackstay) -> None:
    jackstay.waiting()
    assert (
        jackstay("approve", "s1", "c1", "--set", "command=echo other >> count", "--set", "timeout=5").code == 0
    )
    done = jackstay("resume", "s1", "--json")
    start = next(event for event in done.events if isinstance(event, ToolCallStartEvent))
    assert done.code == 0
    assert start.args == {"command": "echo other >> count", "timeout": 5}
    assert (jackstay.workspace / "count").read_text() == "other\n"


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        (["approve", "s1"], 2, "name the calls, or say --all; waiting are: c1"),
        (
            ["approve", "s1", "c1", "--set", "comand=x"],
            2,
            "takes no argument 'comand'; did you mean 'command'?",
        ),
        (
            ["approve", "s1", "c1", "--set", "timeout=soon"],
            2,
            "do not fit 'bash': argument 'timeout' must be a number",
        ),
        (["approve", "s1", "c1", "--set", "nonsense"], 2, "'nonsense' is not of the form name=value"),
        (["reject", "s1", "c1", "--all"], 2, "--all means every call that waits: name calls, or say --all"),
        (["approve", "s1", "--all", "--set", "command=x"], 2, "--set changes the arguments of one call"),
        (
            ["approve", "s1", "zzz"],
            1,
            "call 'zzz' does not wait for a decision in session 's1'; waiting are: c1",
        ),
        (["approve", "nowhere", "c1"], 1, "no session 'nowhere' is stored"),
        (["resume", "nowhere"], 1, "no session 'nowhere' is stored"),
        (["pending", "nowhere"], 1, "no session 'nowhere' is stored"),
        (["resume", "../../etc"], 2, "is not a session id"),
    ],
)
def test_a_wrong_decision_changes_nothing_and_says_why(
    jackstay: Jackstay, words: list[str], code: int, told: str
) -> None:
    jackstay.waiting()
    done = jackstay(*words)
    assert (done.code, done.out) == (code, "")
    assert told in " ".join(done.err.split())
    assert len(jackstay("pending", "--json").objects) == 1


def test_the_first_decision_stands(jackstay: Jackstay) -> None:
    jackstay.waiting()
    assert jackstay("reject", "s1", "c1").code == 0
    second = jackstay("approve", "s1", "c1")
    assert second.code == 1
    assert "has been decided already" in second.err
    assert (
        "all that waited in session 's1' is decided: `jackstay resume s1`"
        in jackstay("skip", "s1", "--all").err
    )
    assert jackstay("pending").out == "nothing waits\n"
    assert jackstay("resume", "s1").code == 5


def test_a_half_decided_batch_waits_on_without_asking_the_model(jackstay: Jackstay) -> None:
    with Loopback([TWO, {"say": "Done."}], by_turn=True) as server:
        jackstay("run", "--model", f"m@{server.openai_url}", "--session", "s1", "go")
        one = jackstay("approve", "s1", "a")
        assert one.out.splitlines()[-1] == "1 more wait; go on with: jackstay resume s1"
        still = jackstay("resume", "s1", "--json")
        pending = next(event for event in still.events if isinstance(event, HITLPendingEvent))
        assert (still.code, [task.call_id for task in pending.pending_tasks]) == (3, ["b"])
        assert (len(server.requests), jackstay.count()) == (1, 0)
        assert jackstay("reject", "s1", "--all", "--json").objects[0]["decision"]["kind"] == "reject"
        done = jackstay("resume", "s1", "--json")
    assert (done.code, jackstay.count()) == (0, 1)
    assert [e.call_id for e in done.events if isinstance(e, HITLDecidedEvent)] == ["a", "b"]


def test_a_finished_session_resumes_to_its_outcome_and_asks_nobody(jackstay: Jackstay) -> None:
    with Loopback([{"say": "All done."}]) as server:
        jackstay("run", "--model", f"m@{server.openai_url}", "--session", "s1", "go")
        again = jackstay("resume", "s1", "--json")
        assert len(server.requests) == 1
    end = again.events[-1]
    assert isinstance(end, RunEndEvent)
    assert (again.code, again.kinds, end.text) == (0, ["run_start", "run_end"], "All done.")


def test_the_settings_of_a_run_go_with_it(jackstay: Jackstay, tmp_path: Any) -> None:
    other = tmp_path / "elsewhere"
    other.mkdir()
    script = jackstay.script(bash("pwd > where"), "Done.")
    words = ["run", "--model", script, "--session", "s1", "--workspace", str(other), "--tools", "bash,ls"]
    assert jackstay(*words, "--deny", "write", "--max-turns", "9", "--discipline", "off", "go").code == 3
    jackstay("approve", "s1", "--all")
    done = jackstay("resume", "s1")
    assert (done.code, done.err.splitlines()[0]) == (0, f"note: the session works in {other}")
    assert (other / "where").read_text().strip() == str(other)
    settings = jackstay("sessions", "export", "s1").objects[0]["settings"]
    kept = {
        name: settings[name]
        for name in ("model", "tools", "workspace", "max_turns", "discipline", "hitl_enabled")
    }
    assert kept == {
        "model": script, "tools": ["bash", "ls", "hitl"], "workspace": str(other), "max_turns": 9,
        "discipline": "off", "hitl_enabled": True,
    }  # fmt: skip
    assert [(rule["behavior"], rule["tool"]) for rule in settings["permission_rules"]] == [("deny", "write")]


def test_another_model_may_finish_what_one_began(jackstay: Jackstay) -> None:
    jackstay.waiting()
    jackstay("approve", "s1", "--all")
    with Loopback([{"say": "Finished by another."}]) as server:
        done = jackstay("resume", "s1", "--model", f"m@{server.openai_url}", "--json")
    said = [event.text for event in done.events if isinstance(event, ReasonEndEvent)]
    assert (done.code, said, jackstay.count()) == (0, ["Finished by another."], 1)


def test_a_script_named_from_elsewhere_is_found_again(jackstay: Jackstay) -> None:
    jackstay.script(bash("echo ran >> count"), "Done.")
    words = ["--model", "script:../script.json", "--session", "s1"]
    assert jackstay("run", *words, "go").code == 3
    jackstay("approve", "s1", "--all")
    jackstay.workspace, there = jackstay.home, jackstay.workspace
    assert jackstay("resume", "s1").code == 0
    assert (there / "count").exists()
