"""The weak spots found in the original discipline, W1 to W15, each met by a whole run."""

import sqlite3
from pathlib import Path

import anyio
import pytest

from jackstay import HITL, HITLDecision, PermissionRule, tool
from jackstay.core.errors import JackstayError, StoreError
from jackstay.core.events import GateBlockedEvent, WarningEvent
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
        return says(
            *(reads if number % 2 else [one for pair in zip(reads, writes, strict=False) for one in pair])
        )

    messages = [message(number) for number in range(100)]
    work.script(
        says("[HARNESS: task_started]", READ),
        *messages,
        "Enough.",
        max_turns=200,
        compression_threshold=(5000, 0.9),
    )
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
    assert [line for line in told(done) if "blocked" in line] == [
        "blocked by research: write",
        "blocked by research: bash",
    ]
    assert untouched(work)


@pytest.mark.parametrize(
    "command", ["touch new.txt", 'python3 -c \'open("new.txt", "w")\'', "sh -c 'date > new.txt'"]
)
def test_w4_w15_nothing_with_effects_runs_before_a_task_is_declared(work: Workplace, command: str) -> None:
    work.script(says(call("bash", command=command)), "I see.")
    assert "blocked by start: bash" in told(work.say("Hello"))
    assert untouched(work)


def test_w4_small_talk_stays_small_talk(work: Workplace) -> None:
    work.script(says(READ, call("read", file_path="nothing.txt")), "[HARNESS: casual]\nHello!")
    done = told(work.say("Hello, what is in app.conf?"))
    assert sorted(done[6:8]) == ["done read", "failed read"]  # as they finish
    assert done[:6] + done[8:] == [
        "run_start", "reason_start", "reason_end", "action_start", "start read", "start read",
        "action_end", "reason_start", "reason_end", "run_end answered",
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
                "edit": ScriptedModel(
                    [*PLANNED, says(call("write", file_path="new.txt", content="x")), "Done."]
                ),
                "look": ScriptedModel(
                    [says("[HARNESS: task_started]", READ), says(*[READ] * 8), says(WRITE), "Seen."]
                ),
            }

        async def reply(self, request, tell):
            await anyio.sleep(0)
            return await self.parts[request.transcript[0].text].reply(request, tell)

        async def close(self) -> None:
            pass

    work.script("x")
    work.engine.set_model(ByTask())

    async def both(first: str, second: str | None) -> None:
        async with anyio.create_task_group() as group:
            group.start_soon(work.engine.prompt(first).session("a").call)
            if second is not None:
                group.start_soon(work.engine.prompt(second).session("b").call)

    anyio.run(both, "edit", None)
    anyio.run(both, "go ahead", "look")
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
    work.script(
        says(WRITE), says(WRITE, call("bash", command=secret)), says(READ), "The plan.\n\n[HARNESS: plan]",
        says(call("bash", command=secret)), "[HARNESS: done]", "[HARNESS: done]", "Bye.",
        permission_rules=(PermissionRule.deny("bash", "*psql*"),),
    )  # fmt: skip
    work.say("Change it")
    done = work.say("go ahead")
    records = [(r.phase, r.gate, r.tool, r.rule, r.verdict) for r in Audit(work.home).records()]
    assert records == [
        ("no_task", "start", "write", "gate:start", "deny"),
        ("task_started", "research", "write", "gate:research", "deny"),
        ("task_started", "deny bash(*psql*)", "bash", "deny bash(*psql*)", "deny"),
        ("executing", "deny bash(*psql*)", "bash", "deny bash(*psql*)", "deny"),
        ("closing", "closure", "marker done", "gate:closure", "deny"),
    ]
    assert "hunter2" not in (work.home / "audit" / "gates.jsonl").read_text()
    assert [e.reason for e in done if isinstance(e, GateBlockedEvent) and "hunter2" in e.reason] == []
    notes = [note.text for request in work.model.requests for note in request.notes]
    assert [text for text in notes if "hunter2" in text] == []


def test_w12_when_a_refusal_cannot_be_recorded_nothing_goes_on(work: Workplace) -> None:
    """Fail closed: no call of the message runs, the session stays as it was, and the text says what to mend."""
    work.script(says("[HARNESS: task_started]", READ), says(call("bash", command="touch new.txt")), "x")
    work.home.mkdir()
    (work.home / "audit").write_text("in the way")
    with pytest.raises(
        JackstayError, match=r"the audit record cannot be written: .*make room or mend the home"
    ):
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
    assert [line for line in told(done) if line.startswith(("done", "refused"))] == [
        "done kanban_list",
        "refused memory",
    ]


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
    assert done[:6] == [
        "run_start",
        "hitl_decided",
        "action_start",
        "backup app.conf",
        "start write",
        "done write",
    ]
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
    work.file("make.sh").write_text("printf 'key=%s\\n' AKIAQ3EGZ7XWLR2VBN5M > out.env\n")
    work.git("add", ".")
    work.git("commit", "-q", "-m", "a script")
    executing(
        work, says(call("bash", command="sh make.sh")), "[HARNESS: done]", checks("credential_scan"), "a", "b"
    )
    done = work.say("go ahead")
    assert f"{work.file('out.env')}:1 holds a" in texts(done, "closure_check")[0]


def test_the_first_command_whose_changes_nobody_can_name_has_the_workspace_copied_before_it(
    work: Workplace,
) -> None:
    work.file("make.sh").write_text("echo gone > app.conf\n")
    executing(work, says(call("bash", command="sh make.sh")), says(call("bash", command="sh make.sh")), "Made.")
    before = work.file("app.conf").read_bytes()
    done = work.say("go ahead")
    assert [line for line in told(done) if line.startswith(("backup", "start"))] == [
        "backup work", "start bash", "start bash",
    ]  # fmt: skip
    (kept,) = work.backups.list(session="s1")
    work.backups.restore(kept.id, only=str(work.file("app.conf")))
    assert work.file("app.conf").read_bytes() == before


def test_a_person_approves_the_plan_from_outside(work: Workplace) -> None:
    work.script(*PLANNED, says(WRITE), "Written.")
    work.say("Change it")
    work.store.post("s1", Posted(0, "plan:1", command="approve_plan", data={"by": "ann"}))
    done = work.say("Any news?")
    assert told(done)[:3] == ["run_start", "phase planning -> executing", "guidance executing"]
    assert work.phase().approved_by == "ann"


def test_the_plan_is_shown_beside_the_call_that_waits_for_it(work: Workplace) -> None:
    work.script(*PLANNED, says(WRITE), tools=(*TOOLS, "hitl"), hitl_enabled=True)
    work.say("Change it")
    work.say("Hm")
    (task,) = work.engine.get_session("s1").pending_tasks()
    assert task.comment.endswith("\nThe plan:\nThe plan.\n\n[HARNESS: plan]")


def test_what_an_interceptor_made_of_a_call_is_what_is_remembered(work: Workplace) -> None:
    class Rewrites(Interceptor):
        """Makes a write of every read of a certain file."""

        async def on_tool_call_start(self, trace, call: ToolCall) -> ToolCall | None:
            if call.args.get("limit") != 1:
                return None
            return ToolCall(call.call_id, "write", {"file_path": "app.conf", "content": "gone\n"})

    def extend(engine, name, builder) -> None:
        builder.default_interceptor_add(Rewrites())

    executing(work, says(call("read", file_path="app.conf", limit=1)), "Done.", extensions=(extend,))
    assert "phase executing -> modifying" in told(work.say("go ahead"))
    assert work.phase().changed == (str(work.file("app.conf")),)
    assert work.backups.list(path=str(work.file("app.conf"))) != []


def test_what_a_cancelled_call_had_begun_has_to_be_closed(work: Workplace) -> None:
    """A call that was broken off counts as work: small talk is no way out, its file is on the record."""
    executing(work, says(call("bash", command="echo begun > new.txt; echo begun; sleep 600")))

    async def cancel() -> None:
        stream = work.engine.prompt("go ahead").session("s1").stream()
        async for event in stream:
            if event.type == "tool_output_delta":
                break
        await stream.cancel()

    anyio.run(cancel)
    assert (work.phase().acted, work.phase().changed) == (True, (str(work.file("new.txt")),))
    assert work.phase().phase is Phase.EXECUTING
    work.script("[HARNESS: casual]", "a", "b")
    assert "phase executing -> closing" in told(work.say("Hello"))


def test_a_check_that_had_waited_beside_a_rejected_call_compares_with_the_beginning_too(
    work: Workplace,
) -> None:
    left = work.temporary / "left.txt"
    note = call("write", file_path="notes/x.md", content="x")
    claim = call("closure_check", item="baseline_comparison", evidence="compared all of it by hand")
    executing(
        work, says(call("bash", command=f"date > {left}")), "[HARNESS: done]", says(note, claim), "a", "b",
        tools=(*TOOLS, "hitl"), hitl_enabled=True,
        permission_rules=(PermissionRule.ask("write"), PermissionRule.allow("bash")),
    )  # fmt: skip
    asked = work.say("go ahead")
    assert told(asked)[-2:] == ["waiting write", "run_end pending"]
    session = work.engine.get_session("s1")
    HITL.submit(session, session.pending_tasks()[0].call_id, HITLDecision.reject(continue_run=True))
    assert f"a temporary file is left: {left}" in texts(work.say(None), "closure_check")[0]


# -- housekeeping ------------------------------------------------------------------------------------------


def closing_with_commit(work: Workplace, *turns: dict) -> list[str]:
    """What item 7 said when the user had these calls' work committed."""
    executing(work, *turns, "[HARNESS: done]", "Commit?", "Commit?")
    work.say("go ahead")
    work.script(checks("commit_housekeeping"), "a", "b", "c")
    return texts(work.say("commit"), "closure_check")


def test_only_the_task_s_own_files_are_committed_deleted_and_scripted_ones_included(work: Workplace) -> None:
    work.file("old.txt").write_text("old\n")
    work.file("make.sh").write_text("echo made > made.txt\n")
    work.git("add", ".")
    work.git("commit", "-q", "-m", "more")
    work.file("mine.txt").write_text("the user's own\n")
    work.git("add", "mine.txt")
    outside = work.temporary / "x.txt"
    (said,) = closing_with_commit(
        work,
        says(call("bash", command="rm old.txt")),
        says(call("bash", command="sh make.sh")),
        says(call("bash", command=f"date > {outside}")),
        says(call("edit", file_path="app.conf", old_string="a=1", new_string="a=2")),
    )
    assert said.startswith("commit_housekeeping is ticked.")
    assert work.git("show", "--name-status", "--format=", "HEAD").split() == [
        "M", "app.conf", "A", "made.txt", "D", "old.txt",
    ]  # fmt: skip
    assert work.git("status", "--porcelain") == "A  mine.txt"


def test_a_commit_that_the_repository_refuses_is_told_in_its_words(work: Workplace) -> None:
    hook = work.file(".git/hooks/pre-commit")
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\necho no commits on fridays >&2\nexit 1\n")
    hook.chmod(0o755)
    (said,) = closing_with_commit(
        work, says(call("edit", file_path="app.conf", old_string="a=1", new_string="a=2"))
    )
    assert said == "git would not do it: no commits on fridays"


def test_a_repository_that_cannot_be_asked_is_not_taken_for_none(work: Workplace) -> None:
    work.file(".git/HEAD").write_text("nonsense")
    (said,) = closing_with_commit(work, says(call("write", file_path="new.txt", content="x")))
    assert said.startswith("git would not do it: ")


def test_components_add_items_that_have_to_be_ticked_too(work: Workplace) -> None:
    work.home.mkdir()
    (work.home / "registry.toml").write_text(
        '[[components]]\nname = "proxy"\n[[components.lifecycle.closure]]\nid = "proxy_reload"\ncheck = "reload it"\n'
    )
    executing(work, "[HARNESS: done]", "[HARNESS: done]", "a")
    work.say("go ahead")
    assert "8. [ ] proxy_reload: reload it" in work.model.requests[-1].notes[-1].text
    assert "proxy_reload" in work.phase().required
