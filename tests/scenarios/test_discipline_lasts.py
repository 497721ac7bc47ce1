"""The phase survives what a run survives: kill -9, another process, another model, compression, a change of mode."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from msgspec.structs import replace

from jackstay import HITL, ConfigError, HITLDecision
from jackstay.core.events import (
    ContextSizeEvent,
    GuidanceEvent,
    PhaseChangedEvent,
    SkillLoadedEvent,
    ToolCallEndEvent,
)
from jackstay.core.messages import assistant
from jackstay.core.phase import Phase
from jackstay.engine.ports import ModelRequest, Reply, Tell
from jackstay.policy.data import BUILT_IN
from jackstay.policy.guidance import tokens
from jackstay.testing import ScriptedModel, call, says
from jackstay.ward.audit import Audit
from tests.make import unanswered
from tests.scenarios.test_discipline_conversation import (
    APPROVED,
    ASKED_FOR,
    COMMITTED,
    CONVERSATIONS,
    QUESTIONED,
    SCRIPT,
)
from tests.scenarios.workplace import PLANNED, TOOLS, Workplace, executing, place, refusals, set_phase, told

ROOT = Path(__file__).resolve().parents[2]
WRITE = call("write", file_path="app.conf", content="gone\n")
READ = call("read", file_path="app.conf")
WORDS = CONVERSATIONS["en"]


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Workplace:
    made = place(tmp_path, monkeypatch)
    made.program("ssh", "#!/bin/sh\necho up 3 days\n")
    return made


# -- kill -9 and other processes -----------------------------------------------------------------------------

DEATHS = (
    "phase planning -> executing",
    "phase executing -> modifying",
    "phase modifying -> executing",
    "guidance accessing_device",
    "skill work-closure-check",
    "blocked by closure: marker done",
    "failed closure_check",
    "backup deploy.env",
    "run_end answered",
)


PARTS = {
    WORDS.task: SCRIPT[:3],
    WORDS.question: SCRIPT[3:4],
    WORDS.approval: SCRIPT[4:16],
    WORDS.commit: SCRIPT[16:],
}


def mortal(work: Workplace, prompt: str, dies_at: str, script: Path | None = None) -> int:
    """The exit code of another process that gets the prompt, or resumes, and dies when told to."""
    if script is None:
        script = work.root / "script.json"
        if prompt:
            turns = [turn if isinstance(turn, dict) else {"say": turn} for turn in PARTS[prompt]]
            script.write_text(json.dumps({"turns": turns}))
    command = [sys.executable, "-m", "tests.scenarios.mortal", str(work.root), str(script), prompt, dies_at]
    environment = {**os.environ, "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}"}
    return subprocess.run(command, cwd=ROOT, env=environment, check=False, timeout=60).returncode


def test_a_task_killed_again_and_again_goes_on_in_the_phase_it_was_in(work: Workplace) -> None:
    assert mortal(work, WORDS.task, "") == 0
    assert mortal(work, WORDS.question, "") == 0
    prompt = WORDS.approval
    for line in DEATHS:
        assert mortal(work, prompt, line) == -signal.SIGKILL, line
        prompt = ""
    assert mortal(work, WORDS.commit, "") == 0
    session = work.script("x").engine.get_session("s1")
    events = list(session.events())
    moved = [f"phase {e.before} -> {e.after}" for e in events if isinstance(e, PhaseChangedEvent)]
    lived = [*ASKED_FOR, *QUESTIONED, *APPROVED, *COMMITTED]
    assert moved == [line for line in lived if line.startswith("phase")]
    assert [e.seq for e in events] == list(range(1, len(events) + 1))
    assert unanswered(session.messages) == []
    told_of = [e.name.partition(":")[2] for e in events if isinstance(e, SkillLoadedEvent)]
    assert told_of.count("work-closure-check") == 2  # once before the process died, and again for the model
    ran = [e.tool_name for e in events if isinstance(e, ToolCallEndEvent) and e.executed and not e.is_error]
    assert ran.count("edit") == 1
    assert work.git("show", "HEAD:app.conf").splitlines()[0] == "a=2"
    assert work.phase().phase is Phase.NO_TASK


def test_a_call_that_may_have_run_when_its_process_died_is_work_to_be_closed(work: Workplace) -> None:
    executing(work)
    script = work.root / "script.json"
    script.write_text(
        json.dumps({"turns": [says(call("bash", command="echo x > new.txt")), {"say": "I look."}]})
    )
    assert mortal(work, "go ahead", "start bash", script=script) == -signal.SIGKILL
    assert mortal(work, "", "", script=script) == 0
    assert (work.phase().acted, work.phase().changed) == (True, (str(work.file("new.txt")),))


# -- models, compression, modes ------------------------------------------------------------------------------


def test_a_switch_of_the_model_keeps_phase_approval_and_record(work: Workplace) -> None:
    executing(work, says(WRITE), "Written.")
    work.say("go ahead")
    before = work.phase()
    other = ScriptedModel([says(READ), "Verified."], name="another")
    work.engine.set_model(other)
    assert told(work.say("And now verify it"))[:4] == [
        "run_start",
        "guidance modifying",
        "reason_start",
        "reason_end",
    ]
    assert (work.phase().phase, work.phase().approved_by, work.phase().changed) == (
        Phase.MODIFYING, before.approved_by, before.changed,
    )  # fmt: skip
    assert (before.unverified, work.phase().unverified) == (before.changed, ())


class Summarising(ScriptedModel):
    """A script that also sums up when it is asked to, without a turn of its own for that."""

    async def reply(self, request: ModelRequest, tell: Tell) -> Reply:
        if request.max_output_tokens is not None:
            return Reply(assistant("The value in app.conf is being changed."))
        return await super().reply(request, tell)


def test_compression_again_and_again_changes_nothing_in_the_course_of_a_task(work: Workplace) -> None:
    work.script(*SCRIPT)
    work.model = Summarising(SCRIPT)
    work.engine.set_model(work.model)
    work.engine.set_compression_threshold(4, 0.75)
    said = [work.say(words) for words in (WORDS.task, WORDS.question, WORDS.approval, WORDS.commit)]
    course = [[line for line in told(events) if line != "warning"] for events in said]
    lived = [ASKED_FOR, QUESTIONED, APPROVED, COMMITTED]
    assert course == [[line for line in lines if line != "warning"] for lines in lived]
    passes = [e for events in said for e in events if isinstance(e, ContextSizeEvent) and e.compressed]
    assert len(passes) >= 3
    work.model.finish()


def test_guidance_as_it_reaches_the_model_is_short_and_silent_in_steady_phases(work: Workplace) -> None:
    work.script(*SCRIPT)
    events = [
        e for words in (WORDS.task, WORDS.question, WORDS.approval, WORDS.commit) for e in work.say(words)
    ]
    guided = {e.text: e.phase for e in events if isinstance(e, GuidanceEvent)}
    seen: list[str] = []
    for request in work.model.requests:
        notes = [note.text for note in request.notes]
        rest = [text for text in notes if not text.startswith(("[CONTEXT ANCHOR]", "Skill work-principles:"))]
        assert len(rest) <= 1
        seen += [guided[text].value for text in rest] or ["silent"]
        for text in rest:
            assert tokens(text) <= (400 if guided[text] is Phase.CLOSING else 200)
    assert seen == [
        "silent", "task_started", "task_started", "planning",
        "executing",  # the reminder that travels with the approval, once
        "modifying", "modifying", "silent", "accessing_device", "silent", "modifying", *["closing"] * 7,
    ]  # fmt: skip
    loaded = [e.name.partition(":")[2] for e in events if isinstance(e, SkillLoadedEvent)]
    assert loaded == [
        "pre-action-research",
        "change-safeguard",
        "credential-store-management",
        "work-closure-check",
    ]
    prompts = {request.system for request in work.model.requests}
    assert len(prompts) == 1
    assert prompts.pop().count("[HARNESS: plan]") == 1


def test_the_anchor_stands_before_the_model_and_survives_compression(work: Workplace) -> None:
    turns = (
        says(call("anchor_set", key="mission", value="tidy app.conf")),
        says(
            call(
                "bash",
                command="ls #anchor:fact owner=ann password=Zk8qTq2xP9 #anchor:fact db_password=Zk8qTq2xP9",
            )
        ),
        *[says(call("read", file_path="app.conf", limit=number)) for number in range(1, 7)],
        "[HARNESS: task_started]",
        says(call("bash", command="ssh box uptime")),
        "Up.",
    )
    work.script("x")
    work.model = Summarising(turns)
    work.engine.set_model(work.model)
    work.engine.set_compression_threshold(4, 0.75)
    events = [*work.say("Look at it"), *work.say("And at the box")]
    assert any(isinstance(e, ContextSizeEvent) and e.compressed for e in events)
    anchor = work.model.requests[-1].notes[0].text
    assert anchor.startswith("[CONTEXT ANCHOR]")
    assert "tidy app.conf" in anchor
    assert "owner" in anchor
    assert "box" in anchor
    assert "Zk8qTq2xP9" not in "".join(note.text for request in work.model.requests for note in request.notes)


def test_in_guided_mode_a_hard_gate_asks(work: Workplace) -> None:
    work.script(
        says("[HARNESS: task_started]", WRITE), "Written.",
        discipline="guided", tools=(*TOOLS, "hitl"), hitl_enabled=True,
    )  # fmt: skip
    assert told(work.say("Change it"))[-2:] == ["waiting write", "run_end pending"]
    session = work.engine.get_session("s1")
    (task,) = session.pending_tasks()
    assert task.comment.startswith("Research Gate: no file may be changed while researching")
    HITL.submit(session, task.call_id, HITLDecision.approve())
    assert "done write" in told(work.say(None))
    assert work.backups.list(path=str(work.file("app.conf"))) != []
    assert [record.verdict for record in Audit(work.home).records()] == ["ask"]


def test_in_observe_mode_everything_runs_and_what_would_have_been_is_recorded(work: Workplace) -> None:
    work.script(says("[HARNESS: task_started]", WRITE), "Written.\n[HARNESS: done]", discipline="observe")
    done = told(work.say("Change it"))
    assert done[4:9] == [
        "action_start", "blocked by research: write", "backup app.conf", "start write", "done write",
    ]  # fmt: skip
    assert [(r.gate, r.tool, r.verdict) for r in Audit(work.home).records()] == [("research", "write", "allow")]
    assert work.file("app.conf").read_text() == "gone\n"


def test_switched_off_it_is_not_there(work: Workplace) -> None:
    work.script(says("[HARNESS: task_started]", WRITE), "Written.\n[HARNESS: done]", discipline="off")
    assert told(work.say("Change it")) == [
        "run_start", "reason_start", "reason_end", "action_start", "start write", "done write", "action_end",
        "reason_start", "reason_end", "run_end answered",
    ]  # fmt: skip
    offered = {spec.name for spec in work.model.requests[0].tools}
    assert offered == {"read", "write", "edit", "bash", "todo"}
    assert work.model.requests[0].notes == ()
    assert not work.home.joinpath("audit").exists()


def test_the_mode_may_change_between_two_requests_of_a_live_session(work: Workplace) -> None:
    work.script(*PLANNED, says(WRITE), "Seen.", says(WRITE), "Seen.", says(WRITE), "Seen.")
    work.say("Change it")
    assert "refused write" in told(work.say("Why?"))
    work.engine.set(discipline="off")
    assert "done write" in told(work.say("Just do it this once"))
    work.engine.set(discipline="strict")
    assert "refused write" in told(work.say("Why again?"))
    assert work.phase().phase is Phase.PLANNING


def test_a_resumed_run_takes_up_the_mode_of_its_engine(work: Workplace) -> None:
    work.script(
        *PLANNED,
        says(WRITE),
        says(WRITE),
        "Seen.",
        tools=(*TOOLS, "hitl"),
        hitl_enabled=True,
        discipline="guided",
    )
    work.say("Change it")
    work.say("Why?")
    session = work.engine.get_session("s1")
    HITL.submit(session, session.pending_tasks()[0].call_id, HITLDecision.skip("later"))
    work.engine.set(discipline="off")
    assert "done write" in told(work.say(None))


# -- language, data, skills ----------------------------------------------------------------------------------


def test_the_language_of_the_settings_beats_the_user_s(work: Workplace) -> None:
    work.script(says("[HARNESS: task_started]", WRITE), "好。", language="zh")
    done = work.say("Change it, please")
    assert "Research Gate: 调研阶段不允许修改文件" in refusals(done)[0]
    notes = [note.text for note in work.model.requests[-1].notes]
    assert any(text.startswith("[阶段: task_started]") for text in notes)
    assert any(text.startswith("Skill work-principles:pre-action-research") and "研" in text for text in notes)
    assert "独占一行" in work.model.requests[-1].system


def test_new_policy_data_counts_from_the_next_turn_on_and_unfit_data_keeps_the_old(work: Workplace) -> None:
    work.script(*PLANNED, "Waiting.", "Waiting.", "Waiting.")
    work.say("Change it")
    work.say("Hm?")
    english = BUILT_IN.texts["en"]
    ours = replace(english, phases={**english.phases, Phase.PLANNING: "[phase: planning] Ask ann."})
    work.engine.set(policy_data=replace(BUILT_IN, texts={**BUILT_IN.texts, "en": ours}))
    work.say("Hm?")
    with pytest.raises(ConfigError, match="policy_data is unfit: items: credential_scan has to stay required"):
        work.engine.set(policy_data=replace(BUILT_IN, items=BUILT_IN.items[1:]))
    work.say("Hm?")
    before, after, last = (request.notes[-1].text for request in work.model.requests[-3:])
    assert before.startswith("[phase: planning] Consult")
    assert after == last == "[phase: planning] Ask ann."
    assert len({request.system for request in work.model.requests}) == 1


def test_a_skill_of_the_project_is_loaded_once_a_task(work: Workplace) -> None:
    folder = work.workspace / ".agents" / "skills" / "camofox-browser"
    folder.mkdir(parents=True)
    (folder / "SKILL.md").write_text(
        "---\nname: camofox-browser\ndescription: Look at pages with it.\n---\nGo slowly.\n"
    )
    from tests.scenarios.test_discipline_weak_spots import browser_navigate

    visit = call("browser_navigate", url="http://x")
    work.script(
        says("[HARNESS: task_started]", visit), says(visit), "Seen.", tools=(*TOOLS, browser_navigate),
    )  # fmt: skip
    done = work.say("Look")
    loaded = [e.name for e in done if isinstance(e, SkillLoadedEvent)]
    assert loaded == ["work-principles:pre-action-research", "camofox-browser"]
    texts = [note.text for request in work.model.requests for note in request.notes]
    assert [text for text in texts if "Go slowly." in text] == ["Skill camofox-browser:\nGo slowly."]


def test_a_phase_that_an_agent_sets_is_told_in_the_result(work: Workplace) -> None:
    executing(work, set_phase("modifying"), set_phase("planning"), set_phase("executing"), "Waiting.")
    done = work.say("go ahead")
    results = [e.text for e in done if isinstance(e, ToolCallEndEvent)]
    assert results[0].startswith(
        "Phase is now modifying (before: executing). Writes run once their target is backed up."
    )
    assert results[1].startswith("Phase is now planning (before: modifying).")
    assert "an agent cannot approve its own plan" in results[2]
