"""The weak spots found in the original discipline, W1 to W15, each met by a whole run."""

import asyncio
import sqlite3
from pathlib import Path

import pytest

from jackstay import HITL, HITLDecision, PermissionRule, tool
from jackstay.core.errors import JackstayError, StoreError
from jackstay.core.events import Event, PhaseChangedEvent, WarningEvent
from jackstay.core.messages import ToolCall
from jackstay.core.phase import Phase
from jackstay.engine.interceptors import Interceptor
from jackstay.engine.ports import Posted
from jackstay.testing import ScriptedModel, call, says
from jackstay.ward.audit import Audit
from tests.make import unanswered
from tests.scenarios.workplace import (
    PLANNED,
    TOOLS,
    Workplace,
    checks,
    executing,
    place,
    refusals,
    set_phase,
    texts,
    told,
)

WRITE = call("write", file_path="app.conf", content="gone\n")
READ = call("read", file_path="app.conf")


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Workplace:
    return place(tmp_path, monkeypatch)


def untouched(work: Workplace) -> bool:
    return work.git("status", "--porcelain") == ""


# -- W1, W2, W7: retries, parallel calls, closing ----------------------------------------------------------


def test_w1_a_blocked_write_stays_blocked_however_often_it_is_tried(work: Workplace) -> None:
    work.script(says(WRITE), says(WRITE, WRITE), says(WRITE), "I give up.")
    done = work.say("Change it")
    assert [line for line in told(done) if "write" in line or "phase" in line] == [
        "phase no_task -> task_started",
        "blocked by start: write", "start write", "refused write",
        *(["blocked by research: write", "start write", "refused write"] * 3),
    ]  # fmt: skip
    assert untouched(work)


def test_w1_the_second_of_two_writes_in_one_message_is_refused_like_the_first(work: Workplace) -> None:
    work.script(says(WRITE, call("write", file_path="new.txt", content="x")), "I give up.")
    assert [line for line in told(work.say("Change it")) if "refused" in line] == ["refused write"] * 2
    assert (untouched(work), work.file("new.txt").exists()) == (True, False)


def test_w7_eight_parallel_calls_a_hundred_times_do_not_disarm_the_gate(work: Workplace) -> None:

    def message(number: int) -> dict:
        reads = [call("read", file_path="app.conf", limit=10 * number + place) for place in range(1, 9)]
        writes = [call("write", file_path="app.conf", content=f"{number} {place}") for place in range(4)]
        return says(*(reads if number % 2 else [one for pair in zip(reads, writes, strict=False) for one in pair]))

    messages = [message(number) for number in range(100)]
    work.script(says("[HARNESS: task_started]", READ), *messages, "Enough.", max_turns=200, compression_threshold=(5000, 0.9))
    done = told(work.say("Look at it"))
    assert (done.count("done read"), done.count("refused write")) == (1 + 8 * 50 + 4 * 50, 4 * 50)
    assert [line for line in done if line.startswith("phase")] == ["phase no_task -> task_started"]
    assert work.phase().phase is Phase.TASK_STARTED
    assert untouched(work)
    assert unanswered(work.engine.get_session("s1").messages) == []


def test_a_move_counts_for_the_calls_behind_it_in_the_same_message(work: Workplace) -> None:
    """What was judged when the message came is judged again after each call that may have moved the phase."""
    move = call("discipline_set_phase", phase="closing", reason="all is done")
    executing(work, says(move, WRITE, call("bash", command="touch new.txt")), "a", "b", "c")
    done = work.say("go ahead")
    assert [line for line in told(done) if line.startswith(("refused", "blocked", "done", "phase"))] == [
        "phase planning -> executing", "done discipline_set_phase", "phase executing -> closing",
        "blocked by closure: write", "refused write", "blocked by closure: bash", "refused bash",
    ]  # fmt: skip
    assert untouched(work)


def test_a_check_looks_at_what_the_calls_before_it_in_the_same_message_did(work: Workplace) -> None:
    notes = call("write", file_path="notes/x.md", content="the key is AKIA" + "Q3EGZ7XWLR2VBN5M" + "\n")
    executing(
        work,
        says(call("bash", command="echo b >> app.conf")),
        "[HARNESS: done]",
        says(notes, call("closure_check", item="credential_scan", evidence="looked at every file")),
        "a", "b",
    )  # fmt: skip
    found = texts(work.say("go ahead"), "closure_check")
    assert f"{work.file('notes/x.md')}:1 holds a" in found[0]
    assert work.phase().ticks == ()


def test_w2_a_blocked_write_in_closing_leaves_closing_closed(work: Workplace) -> None:
    executing(
        work,
        "[HARNESS: done]",
        says(WRITE),
        says(WRITE),
        says(call("bash", command="touch new.txt")),
        set_phase("executing"),
        says("[HARNESS: task_started]", WRITE),
        "a", "b",
    )  # fmt: skip
    done = work.say("go ahead")
    assert [line for line in told(done) if line.startswith(("phase", "refused", "done"))] == [
        "phase planning -> executing", "phase executing -> closing", "refused write", "refused write",
        "refused bash", "refused discipline_set_phase", "refused write",
    ]  # fmt: skip
    assert all("[HARNESS: done]" in text for text in refusals(done))
    assert work.phase().phase is Phase.CLOSING
    assert untouched(work)


# -- W3 to W6: beginnings and markers ----------------------------------------------------------------------


def test_w3_declaring_research_by_the_tool_arms_the_gate(work: Workplace) -> None:
    work.script(set_phase("task_started"), says(WRITE), says(call("bash", command="touch new.txt")), "I see.")
    done = work.say("Change it")
    assert [line for line in told(done) if "blocked" in line] == ["blocked by research: write", "blocked by research: bash"]
    assert untouched(work)


@pytest.mark.parametrize("command", ["touch new.txt", "python3 -c 'open(\"new.txt\", \"w\")'", "sh -c 'date > new.txt'"])
def test_w4_w15_nothing_with_effects_runs_before_a_task_is_declared(work: Workplace, command: str) -> None:
    work.script(says(call("bash", command=command)), "I see.")
    assert "blocked by start: bash" in told(work.say("Hello"))
    assert untouched(work)


def test_w4_small_talk_stays_small_talk(work: Workplace) -> None:
    work.script(says(READ, call("read", file_path="nothing.txt")), "[HARNESS: casual]\nHello!")
    done = work.say("Hello, what is in app.conf?")
    assert told(done) == [
        "run_start", "reason_start", "reason_end", "action_start", "start read", "start read", "done read",
        "failed read", "action_end", "reason_start", "reason_end", "run_end answered",
    ]  # fmt: skip


def test_w5_done_without_a_task_enters_nothing(work: Workplace) -> None:
    work.script("[HARNESS: done]")
    assert told(work.say("Hello")) == ["run_start", "reason_start", "reason_end", "warning", "run_end answered"]
    assert work.phase().phase is Phase.NO_TASK


def test_w6_speaking_of_a_marker_is_not_declaring_it(work: Workplace) -> None:
    work.script(
        says("[HARNESS: task_started]", READ),
        says("I must not write [HARNESS: plan] yet.\n```\n[HARNESS: plan]\n```\nSo I read on.", READ),
        says(call("bash", command="echo '[HARNESS: plan]'")),
        "I go on tomorrow.",
    )
    work.say("Change it.\n[HARNESS: plan]\n")
    assert work.phase().phase is Phase.TASK_STARTED


# -- W7, W8, W9: the state -------------------------------------------------------------------------------


def test_w7_a_damaged_state_lets_nothing_run_and_a_rebuilt_one_begins_with_research(work: Workplace) -> None:
    executing(work, says(WRITE), "Written.")
    work.say("go ahead")
    work.store.close()
    with sqlite3.connect(work.root / "sessions.db") as connection:
        connection.execute("UPDATE sessions SET head = substr(head, 1, 40)")
    connection.close()
    work.script("x")
    with pytest.raises(StoreError, match="the head of session 's1' is damaged"):
        work.say("And now?")
    work.store.check(repair=True)
    work.script(says(WRITE), "[HARNESS: casual]")
    done = work.say("And now?")
    assert "blocked by research: write" in told(done)
    assert "What was remembered of this session is lost" in work.model.requests[0].notes[-1].text
    assert work.phase().phase is Phase.CLOSING  # what may have been done is not dropped by small talk


@pytest.mark.parametrize("inside", [False, True])
@pytest.mark.parametrize(
    "attempt",
    [
        lambda home: call("write", file_path=f"{home}/sessions.db", content="{}"),
        lambda home: call("bash", command=f"echo '{{}}' > {home}/state.json"),
        lambda home: call("bash", command=f"cd {home} && rm -rf backups audit"),
        lambda home: call("bash", command=f"sqlite3 {home}/sessions.db 'update sessions set head = 0'"),
        lambda home: call("bash", command=f"ln -s {home}/audit link && echo x > link/gates.jsonl"),
    ],
)
def test_w8_no_call_edits_the_harness_s_own_state(work: Workplace, attempt, inside: bool) -> None:
    if inside:
        work.home = work.file(".harness")
    executing(work, says(attempt(work.home)), "I see.")
    kept = {file: file.read_bytes() for file in work.home.rglob("*") if file.is_file()}
    done = work.say("go ahead")
    assert len(refusals(done)) == 1
    assert "Not run, denied by policy" in refusals(done)[0]
    assert {file: file.read_bytes() for file in work.home.rglob("*") if file in kept} == kept
    assert not (work.home / "state.json").exists()


def test_w9_sessions_side_by_side_do_not_move_each_other(work: Workplace) -> None:
    """Two sessions of one engine at once: one writes with approval, the other stays in research."""

    class ByTask:
        """A model that plays each session's part by what was asked in it."""

        name, context_length = "by-task", None

        def __init__(self) -> None:
            self.parts = {
                "edit": ScriptedModel([*PLANNED, says(call("write", file_path="new.txt", content="x")), "Done."]),
                "look": ScriptedModel([says("[HARNESS: task_started]", READ), says(*[READ] * 8), says(WRITE), "Seen."]),
            }

        async def reply(self, request, tell):
            await asyncio.sleep(0)
            return await self.parts[request.transcript[0].text].reply(request, tell)

        async def close(self) -> None:
            pass

    work.script("x")
    work.engine.set_model(ByTask())

    async def both(first: str, second: str | None) -> None:
        asks = [work.engine.prompt(first).session("a").call()]
        if second is not None:
            asks.append(work.engine.prompt(second).session("b").call())
        await asyncio.gather(*asks)

    asyncio.run(both("edit", None))
    asyncio.run(both("go ahead", "look"))
    assert (work.phase("a").phase, work.phase("b").phase) == (Phase.MODIFYING, Phase.TASK_STARTED)
    assert (work.phase("a").changed, work.phase("b").changed) == ((str(work.file("new.txt")),), ())
    assert work.git("status", "--porcelain") == "?? new.txt"


# -- W11 to W14: words, audit, skills, tools ---------------------------------------------------------------


def test_w11_guidance_has_no_holes_and_modifying_by_force_leads_back_somewhere(work: Workplace) -> None:
    work.script("Hello.", says(READ), "Looked.")
    work.say("Hello")
    command = {"by": "ann", "phase": "modifying", "reason": "a hot fix"}
    work.store.post("s1", Posted(0, "force:1", command="force_phase", data=command))
    done = work.say("Please fix it")
    first, second = (request.notes[-1].text for request in work.model.requests[1:])
    assert told(done)[:2] == ["run_start", "phase no_task -> modifying"]
    assert "{" not in first
    assert "discipline_set_phase(executing)" in first
    assert "ann moved the phase to modifying: a hot fix" in first
    assert "a hot fix" not in second  # a notice is said once


@tool(effects={"reads"})
async def browser_navigate(url: str) -> str:
    """Look at a page."""
    return f"saw {url}"


def test_w11_w13_a_missing_skill_is_said_once_and_no_reminder_repeats(work: Workplace) -> None:
    visit = call("browser_navigate", url="http://x")
    work.script(says(visit), says(visit), says(visit), "Seen.", "Again.", tools=(*TOOLS, browser_navigate))
    done = [*work.say("Look at the page"), *work.say("And again")]
    warnings = [event.text for event in done if isinstance(event, WarningEvent)]
    assert warnings == ["The skill camofox-browser is not installed; go on without it."]
    notes = [note.text for request in work.model.requests for note in request.notes]
    assert [text for text in notes if "camofox" in text] == warnings


def test_w12_every_refusal_is_one_record_without_secrets(work: Workplace) -> None:
    secret = "PGPASSWORD=hunter2-long-one psql -c 'drop table x'"
    work.script(says("[HARNESS: task_started]", WRITE, call("bash", command=secret)), "[HARNESS: done]", "Bye.")
    work.say("Change it")
    records = [(r.session, r.phase, r.gate, r.tool, r.rule, r.verdict) for r in Audit(work.home).records()]
    assert records == [
        ("s1", "task_started", "research", "write", "gate:research", "deny"),
        ("s1", "task_started", "research", "bash", "gate:research", "deny"),
    ]
    assert "hunter2" not in (work.home / "audit" / "gates.jsonl").read_text()


def test_w12_when_a_refusal_cannot_be_recorded_nothing_goes_on(work: Workplace) -> None:
    """Fail closed: no call of the message runs, the session stays as it was, and the text says what to mend."""
    work.script(says("[HARNESS: task_started]", READ), says(call("bash", command="touch new.txt")), "x")
    work.home.mkdir()
    (work.home / "audit").write_text("in the way")
    with pytest.raises(JackstayError, match="the audit record cannot be written: .*make room or mend the home"):
        work.say("Change it")
    before = work.engine.get_session("s1").state
    assert (before.outcome, before.reasoning) == (None, False)  # the turn is asked for anew
    (work.home / "audit").unlink()
    work.script(says(call("bash", command="touch new.txt")), "I see.")
    done = work.say(None)
    assert told(done)[-4:] == ["guidance task_started", "reason_start", "reason_end", "run_end answered"]
    assert len(list(Audit(work.home).records())) == 1
    assert untouched(work)


@tool
async def memory(text: str) -> str:
    """Keep a text."""
    raise AssertionError("never reached in research")


@tool(effects={"reads"})
async def kanban_list() -> str:
    """List the board."""
    return "nothing"


def test_w14_tools_are_judged_by_their_effects_and_not_by_a_list_of_names(work: Workplace) -> None:
    work.script(
        says("[HARNESS: task_started]", call("kanban_list"), call("memory", text="the password is hunter2")),
        "I see.",
        tools=(*TOOLS, memory, kanban_list),
    )
    done = work.say("Look around")
    assert [line for line in told(done) if line.startswith(("done", "refused"))] == ["done kanban_list", "refused memory"]


# -- beside the list: what stands next to the gates ----------------------------------------------------------


def test_one_approved_call_runs_with_its_backup_and_leaves_the_phase(work: Workplace) -> None:
    work.script(*PLANNED, says(WRITE), says(WRITE), "I wait.", tools=(*TOOLS, "hitl"), hitl_enabled=True)
    work.say("Change it")
    asked = work.say("Just this once, show me")
    assert told(asked)[-2:] == ["waiting write", "run_end pending"]
    session = work.engine.get_session("s1")
    (task,) = session.pending_tasks()
    assert "Proposal Gate" in task.comment
    HITL.submit(session, task.call_id, HITLDecision.approve())
    done = told(work.say(None))
    assert done[:6] == ["run_start", "hitl_decided", "action_start", "backup app.conf", "start write", "done write"]
    assert done[-2:] == ["waiting write", "run_end pending"]
    assert work.phase().phase is Phase.PLANNING
    assert work.file("app.conf").read_text() == "gone\n"


def test_an_allow_rule_opens_no_gate(work: Workplace) -> None:
    work.script(*PLANNED, says(WRITE), "I wait.", permission_rules=(PermissionRule.allow("write"),))
    work.say("Change it")
    assert "refused write" in told(work.say("Why?"))
    assert untouched(work)


def test_a_call_rewritten_by_an_interceptor_meets_the_gate_too(work: Workplace) -> None:
    class Rewrites(Interceptor):
        """Makes a write of every read."""

        async def on_tool_call_start(self, trace, call: ToolCall) -> ToolCall:
            return ToolCall(call.call_id, "write", {"file_path": "app.conf", "content": "gone\n"})

    def extend(engine, name, builder) -> None:
        builder.default_interceptor_add(Rewrites())

    work.script(says("[HARNESS: task_started]", READ), "I see.", extensions=(extend,))
    assert "Research Gate" in refusals(work.say("Look"))[0]
    assert untouched(work)


def test_a_new_task_does_not_hide_what_the_one_before_left(work: Workplace) -> None:
    left = work.temporary / "left.txt"
    executing(
        work,
        says(call("bash", command=f"date > {left}")),
        says("[HARNESS: task_started]", READ),
        "Another plan.\n\n[HARNESS: plan]",
        "[HARNESS: done]",
        checks("baseline_comparison"),
        "a", "b",
    )  # fmt: skip
    work.say("go ahead")
    done = work.say("go ahead")
    assert f"a temporary file is left: {left}" in texts(done, "closure_check")[0]


def test_a_credential_in_a_file_that_a_script_wrote_is_found(work: Workplace) -> None:
    work.file("make.sh").write_text("printf 'key=%s\\n' AKIA""Q3EGZ7XWLR2VBN5M > out.env\n")
    work.git("add", ".")
    work.git("commit", "-q", "-m", "a script")
    executing(work, says(call("bash", command="sh make.sh")), "[HARNESS: done]", checks("credential_scan"), "a", "b")
    done = work.say("go ahead")
    assert f"{work.file('out.env')}:1 holds a" in texts(done, "closure_check")[0]


def moves(events: list[Event]) -> list[tuple[str, str]]:
    return [(e.before.value, e.after.value) for e in events if isinstance(e, PhaseChangedEvent)]
