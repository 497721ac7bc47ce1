"""`jackstay run` against real model servers: what it prints, what it leaves, how it ends."""

import os
import re
import subprocess
import sys

import pytest

from jackstay.core.events import RunEndEvent, RunStartEvent, ToolCallEndEvent
from tests.cli.command import LIMIT_S, Jackstay, argv, bash
from tests.loopback import Loopback

TURN = ["reason_start", "reason_end", "action_start", "tool_call_start", "tool_call_end", "action_end"]
WORK = [
    {"say": "I write it.", "calls": [{"tool": "write", "args": {"file_path": "a.txt", "content": "hello\n"}}]},
    {"say": "I check it.", "calls": [{"tool": "bash", "args": {"command": "wc -c < a.txt"}}]},
    {"say": "It has six bytes."},
]


@pytest.mark.parametrize("wire", ["openai", "anthropic"])
def test_tools_really_run_and_every_line_is_an_event(jackstay: Jackstay, wire: str) -> None:
    with Loopback(WORK, by_turn=True) as server:
        model = f"loop@{server.openai_url}" if wire == "openai" else "anthropic:loop"
        env = {"ANTHROPIC_BASE_URL": server.url}
        done = jackstay("run", "--model", model, "--allow", "bash", "--json", "write and check", env=env)
        assert len(server.requests) == 3
    assert (done.code, done.err) == (0, "")
    assert done.kinds == ["run_start", *TURN, *TURN, "reason_start", "reason_end", "run_end"]
    assert (jackstay.workspace / "a.txt").read_text() == "hello\n"
    ends = [event for event in done.events if isinstance(event, ToolCallEndEvent)]
    assert [(e.tool_name, e.is_error, e.executed) for e in ends] == [
        ("write", False, True),
        ("bash", False, True),
    ]
    assert "6" in ends[1].text
    last = done.events[-1]
    assert isinstance(last, RunEndEvent)
    assert (last.outcome, last.is_abnormal, last.text) == ("answered", False, "It has six bytes.")
    assert last.usage.total_tokens == 45
    numbered = [event.seq for event in done.events if event.seq is not None]
    assert numbered == list(range(1, len(numbered) + 1))


def test_without_a_terminal_stdout_is_the_answer_alone(jackstay: Jackstay) -> None:
    script = jackstay.script({"say": "Looking.", "calls": [{"tool": "ls", "args": {}}]}, "Nothing here.")
    done = jackstay("run", "--model", script, "--session", "s1", "what is there?")
    assert (done.code, done.out) == (0, "Nothing here.\n")
    assert re.sub(r"\d+\.\d s", "0.0 s", done.err).splitlines() == [
        "Looking.",
        "→ ls  {}",
        "  ✓ 0.0 s  . is empty",
        "session s1",
    ]


def test_the_prompt_comes_from_stdin(jackstay: Jackstay) -> None:
    with Loopback([{"say": "yes"}]) as server:
        done = jackstay("run", "--model", f"m@{server.openai_url}", "-", stdin="is it\nso?")
        assert server.bodies[0]["messages"][-1]["content"] == "is it\nso?"
    assert (done.code, done.out) == (0, "yes\n")


def test_a_new_prompt_goes_on_in_an_old_session_with_its_model_and_workspace(jackstay: Jackstay) -> None:
    with Loopback([{"say": "one"}, {"say": "two"}]) as server:
        jackstay("run", "--model", f"m@{server.openai_url}", "--session", "s1", "--max-turns", "7", "first")
        done = jackstay("run", "--session", "s1", "--json", "second")
        said = [message["content"] for message in server.bodies[1]["messages"] if message["role"] != "system"]
    assert done.code == 0
    assert said == ["first", "one", "second"]
    assert isinstance(done.events[0], RunStartEvent)
    assert not done.events[0].resumed


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        ({"status": 401, "error": "bad key"}, "bad key"),
        ({"status": 400, "error": "no such model"}, "no such model"),
    ],
)
def test_a_model_that_refuses_ends_in_words_and_exit_code_1(
    jackstay: Jackstay, answer: dict[str, object], words: str
) -> None:
    with Loopback([answer]) as server:
        done = jackstay("run", "--model", f"m@{server.openai_url}", "hello")
    assert (done.code, done.out) == (1, "")
    assert "failed: " in done.err
    assert words in done.err


def test_the_turn_limit_is_exit_code_4_with_a_last_turn_that_sums_up(jackstay: Jackstay) -> None:
    again = {"say": "", "calls": [{"tool": "ls", "args": {}}]}
    with Loopback([again, again, {"say": "I got this far."}]) as server:
        done = jackstay("run", "--model", f"m@{server.openai_url}", "--max-turns", "2", "go")
        assert [bool(body.get("tools")) for body in server.bodies] == [True, True, False]
    assert (done.code, done.out) == (4, "I got this far.\n")


def test_without_people_a_sensitive_call_is_refused_and_the_model_told(jackstay: Jackstay) -> None:
    jackstay.settings('[[rules]]\ntool = "bash"\nbehavior = "ask"\n')
    script = jackstay.script(bash("echo ran >> count"), "I could not.")
    done = jackstay("run", "--model", script, "--no-hitl", "--json", "go")
    assert done.code == 0
    assert jackstay.count() == 0
    end = next(event for event in done.events if isinstance(event, ToolCallEndEvent))
    assert (end.is_error, end.executed) == (True, False)


def test_a_deny_rule_holds_whatever_is_allowed(jackstay: Jackstay) -> None:
    script = jackstay.script(bash("echo ran >> count"), "I could not.")
    done = jackstay("run", "--model", script, "--allow", "bash", "--deny", "bash(echo *)", "--json", "go")
    assert done.code == 0
    assert "gate_blocked" in done.kinds
    assert jackstay.count() == 0


def test_only_the_named_tools_are_offered(jackstay: Jackstay) -> None:
    with Loopback([{"say": "fine"}]) as server:
        jackstay("run", "--model", f"m@{server.openai_url}", "--tools", "read, ls", "go")
        assert {tool["function"]["name"] for tool in server.bodies[0]["tools"]} == {"read", "ls"}


def test_json_keeps_what_people_read_off_stdout(jackstay: Jackstay) -> None:
    done = jackstay.waiting()
    assert done.kinds == ["run_start", "reason_start", "reason_end", "hitl_pending", "run_end"]
    assert "jackstay approve s1 c1" in done.err
    assert "jackstay resume s1" in done.err


def test_terminal_escapes_of_a_model_are_shown_not_obeyed(jackstay: Jackstay) -> None:
    looking = {"say": "a\x1b[2Jb", "calls": [{"tool": "ls", "args": {}}]}
    done = jackstay("run", "--model", jackstay.script(looking, "c"), "go")
    assert done.err.startswith("a\\u001b[2Jb\n")


def test_a_reader_that_leaves_suspends_the_run(jackstay: Jackstay) -> None:
    script = jackstay.script({"say": "word " * 60000}, "never said")
    process = subprocess.Popen(
        argv("run", "--model", script, "--session", "s1", "--json", "go"),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=jackstay.workspace,
        env=jackstay.env,
    )
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.readline()
    process.stdout.close()
    complaint = process.stderr.read()
    process.stderr.close()
    assert process.wait(LIMIT_S) != 0
    assert b"Traceback" not in complaint
    assert b"Broken" not in complaint


def test_a_listing_into_a_closed_pipe_is_quiet(jackstay: Jackstay) -> None:
    jackstay.waiting()
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(
        argv("sessions", "show", "s1"),
        stdin=subprocess.DEVNULL, stdout=writing, stderr=subprocess.PIPE, text=True,
        cwd=jackstay.workspace, env=jackstay.env, timeout=LIMIT_S, check=False,
    )  # fmt: skip
    os.close(writing)
    assert (done.returncode, done.stderr) == (1, "")


def test_a_loop_ends_the_run_with_4_where_the_ladder_is_switched_on(jackstay: Jackstay) -> None:
    look = {"say": "", "calls": [{"tool": "ls", "args": {}}]}
    script = jackstay.script(*[look] * 6, "never said")
    done = jackstay("run", "--model", script, "--discipline", "off", "go")
    assert (done.code, done.out) == (0, "never said\n")
    jackstay.settings('loop_rungs = ["remind", "stop"]\n')
    done = jackstay("run", "--model", script, "--discipline", "off", "--json", "go")
    assert done.code == 4
    assert [event.outcome for event in done.events if isinstance(event, RunEndEvent)] == ["stopped"]
    assert done.kinds.count("loop_detected") == 2


@pytest.mark.parametrize("closed", [">&-", "2>&-", ">&- 2>&-"])
def test_a_stream_that_the_caller_closed_changes_no_exit_code(closed: str) -> None:
    done = subprocess.run(
        ["sh", "-c", f'exec "$0" -m jackstay --version {closed}', sys.executable],
        capture_output=True,
        check=False,
        text=True,
    )
    assert (done.returncode, done.stderr) == (0, "")
