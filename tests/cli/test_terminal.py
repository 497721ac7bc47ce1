"""On a terminal: words as they come, a status line, approvals asked inline."""

from tests.cli.command import Jackstay, Terminal, bash

PROMPT = "[?] help: "


def test_an_approval_is_asked_inline_and_the_run_goes_on_in_the_same_process(jackstay: Jackstay) -> None:
    script = jackstay.script({**bash("echo ran >> count"), "say": "I count."}, "Counted.")
    terminal = Terminal(jackstay, "run", "--model", script, "--session", "s1", "go")
    asked = terminal.expect(PROMPT)
    assert "I count." in asked
    assert "command: echo ran >> count" in asked
    assert jackstay.count() == 0
    terminal.type("a\n")
    code, rest = terminal.end()
    assert (code, jackstay.count()) == (0, 1)
    assert "Counted." in rest
    assert "\x1b[3" in asked + rest


def test_what_is_edited_runs(jackstay: Jackstay) -> None:
    terminal = Terminal(jackstay, "run", "--model", jackstay.script(bash("echo ran >> count"), "Fine."), "go")
    terminal.expect(PROMPT)
    terminal.type("e\n")
    terminal.expect("name=value (empty: done): ")
    terminal.type("comand=x\n")
    terminal.expect("did you mean 'command'?")
    terminal.type("command=echo other >> count\n")
    terminal.expect("name=value (empty: done): ")
    terminal.type("\n")
    assert "command: echo other >> count" in terminal.expect(PROMPT)
    terminal.type("approve\n")
    assert terminal.end()[0] == 0
    assert (jackstay.workspace / "count").read_text() == "other\n"


def test_a_rejection_takes_a_reason_and_ends_with_5(jackstay: Jackstay) -> None:
    script = jackstay.script(bash("echo ran >> count"), "Never said.")
    terminal = Terminal(jackstay, "run", "--model", script, "--session", "s1", "go")
    terminal.expect(PROMPT)
    terminal.type("what?\n")
    terminal.expect("is none of them")
    terminal.type("r\n")
    terminal.expect("why (for the model; empty: no reason): ")
    terminal.type("too loud\n")
    assert (terminal.end()[0], jackstay.count()) == (5, 0)
    assert "too loud" in jackstay("sessions", "show", "s1").out


def test_always_adds_the_rule_that_was_shown(jackstay: Jackstay) -> None:
    script = jackstay.script(bash("echo ran >> count", "c1"), bash("echo ran >> count", "c2"), "Twice.")
    terminal = Terminal(jackstay, "run", "--model", script, "--session", "s1", "go")
    assert "always would add: allow bash(echo ran >> count)" in terminal.expect(PROMPT)
    terminal.type("w\n")
    code, rest = terminal.end()
    assert (code, jackstay.count()) == (0, 2)
    assert "rule added: allow bash(echo ran >> count)" in rest


def test_later_leaves_it_waiting_with_the_commands(jackstay: Jackstay) -> None:
    script = jackstay.script(bash("echo ran >> count"), "Fine.")
    terminal = Terminal(jackstay, "run", "--model", script, "--session", "s1", "go")
    terminal.expect(PROMPT)
    terminal.type("q\n")
    code, rest = terminal.end()
    assert (code, jackstay.count()) == (3, 0)
    assert "jackstay approve s1 c1" in rest


def test_what_was_typed_before_the_question_is_no_answer(jackstay: Jackstay) -> None:
    script = jackstay.script(bash("echo ran >> count"), "Fine.")
    terminal = Terminal(jackstay, "run", "--model", script, "--session", "s1", "go")
    terminal.type("a\n")
    terminal.expect(PROMPT)
    terminal.type("q\n")
    assert (terminal.end()[0], jackstay.count()) == (3, 0)


def test_ctrl_c_at_the_question_leaves_it_waiting(jackstay: Jackstay) -> None:
    script = jackstay.script(bash("echo ran >> count"), "Fine.")
    terminal = Terminal(jackstay, "run", "--model", script, "--session", "s1", "go")
    terminal.expect(PROMPT)
    terminal.type("\x03")
    code, rest = terminal.end()
    assert (code, jackstay.count()) == (3, 0)
    assert "jackstay resume s1" in rest


def test_no_color_means_no_colours(jackstay: Jackstay) -> None:
    script = jackstay.script({"say": "Looking.", "calls": [{"tool": "ls", "args": {}}]}, "Nothing.")
    terminal = Terminal(jackstay, "run", "--model", script, "go", env={"NO_COLOR": "1"})
    code, text = terminal.end()
    assert code == 0
    assert "Looking." in text
    assert "\x1b[3" not in text
    assert "\x1b[2m" not in text


def test_the_status_line_tells_turn_tokens_and_phase(jackstay: Jackstay) -> None:
    script = jackstay.script(
        {
            "say": "Hi.",
            "usage": {"input_tokens": 1200, "output_tokens": 34},
            "calls": [{"tool": "ls", "args": {}}],
        },
        "Bye.",
    )
    code, text = Terminal(jackstay, "run", "--model", script, "go").end()
    assert code == 0
    assert "no_task · turn 2 · 1,234 tokens" in text


def test_a_long_indented_text_is_shown_line_by_line(jackstay: Jackstay) -> None:
    jackstay.settings('[[rules]]\ntool = "write"\nbehavior = "ask"\n')
    content = "def f():\n            return 1\n"
    call = {"tool": "write", "args": {"file_path": "f.py", "content": content}}
    terminal = Terminal(
        jackstay, "run", "--model", jackstay.script({"say": "", "calls": [call]}, "Done."), "go"
    )
    asked = terminal.expect(PROMPT)
    assert "    | def f():\n      |             return 1\n" in asked
    terminal.type("a\n")
    assert terminal.end()[0] == 0
    assert (jackstay.workspace / "f.py").read_text() == content


def test_the_demo_asks_the_person_who_watches_and_goes_without_git(jackstay: Jackstay) -> None:
    terminal = Terminal(jackstay, "demo", env={"PATH": str(jackstay.workspace)})
    terminal.expect("git is not installed, so this showing has no commit (apt-get install git)")
    terminal.expect("[a]pprove the plan and the commit, approve but [l]eave uncommitted, [q]uit")
    terminal.type("l\n")
    terminal.expect("[a]pprove, [r]eject or [s]kip")
    terminal.type("a\n")
    code, rest = terminal.end()
    assert code == 0
    assert "every call carried out once (12 calls)" in rest


PLAN = (
    {"say": "[HARNESS: task_started]", "calls": [{"tool": "ls", "args": {}}]},
    "I would write x.\n\n[HARNESS: plan]",
)
WRITE = {"say": "", "calls": [{"tool": "write", "args": {"file_path": "x", "content": "1"}}]}
PLAN_PROMPT = "or say what should be different: "


def test_a_plan_is_approved_inline_and_the_run_goes_on(jackstay: Jackstay) -> None:
    script = jackstay.script(*PLAN, WRITE, "Written.")
    terminal = Terminal(jackstay, "run", "--discipline", "strict", "--model", script, "--session", "s1", "go")
    asked = terminal.expect(PLAN_PROMPT)
    assert "I would write x." in asked
    assert "phase: task_started → planning" in asked
    terminal.type("x\n")
    terminal.expect("is none of them")
    terminal.type("a\n")
    code, rest = terminal.end()
    assert (code, (jackstay.workspace / "x").read_text()) == (0, "1")
    assert "phase: planning → executing" in rest
    assert [one["tool"] for one in jackstay("audit", "--json").objects[1:]] == ["approve --plan"]


def test_a_plan_is_answered_with_words(jackstay: Jackstay) -> None:
    script = jackstay.script(*PLAN, "Then y.\n\n[HARNESS: plan]")
    terminal = Terminal(jackstay, "run", "--discipline", "strict", "--model", script, "--session", "s1", "go")
    terminal.expect(PLAN_PROMPT)
    terminal.type("rather in y\n")
    assert "Then y." in terminal.expect(PLAN_PROMPT)
    terminal.type("q\n")
    code, rest = terminal.end()
    assert code == 3
    assert "jackstay approve s1 --plan" in rest


def test_the_status_line_tells_the_gate_that_holds(jackstay: Jackstay) -> None:
    script = jackstay.script(*PLAN)
    terminal = Terminal(jackstay, "run", "--discipline", "strict", "--model", script, "go")
    terminal.expect("task_started [research gate] · turn ")
    terminal.expect(PLAN_PROMPT)
    terminal.type("\x03")
    assert terminal.end()[0] == 3


def test_no_color_holds_for_a_verdict_too(jackstay: Jackstay) -> None:
    words = ("policy", "check", "ls")
    assert (
        Terminal(jackstay, *words, env={"NO_COLOR": ""}).end()[1].startswith("\x1b[32mallow\x1b[0m  bash: ls\n")
    )
    assert Terminal(jackstay, *words, env={"NO_COLOR": "1"}).end()[1].startswith("allow  bash: ls\n")
