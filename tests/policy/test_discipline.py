"""Gates and moves, one sentence of the second seed or of its measured weak spots (W…) a test."""

import pytest
from msgspec.structs import replace

from jackstay.core import wire
from jackstay.core.decision import ALLOW, Ask, Deny
from jackstay.core.facts import CallFacts, PathFact
from jackstay.core.messages import ToolCall
from jackstay.core.phase import Finding, Phase, PhaseState
from jackstay.core.state import PolicyState, RunState
from jackstay.policy import discipline, own_tools, sessions
from jackstay.policy.checklist import Checked
from jackstay.policy.deeds import deed_of
from jackstay.policy.discipline import Preparation
from jackstay.policy.gates import Kind, kind_of
from jackstay.policy.happenings import (
    Blocked,
    ItemTicked,
    MoveRefused,
    PhaseMoved,
    Reminded,
    SkillWanted,
    Warned,
)
from tests.policy.acts import (
    BLOCKED,
    FAILED,
    KINDS,
    OK,
    REQUIRED,
    UNKNOWN,
    at,
    own,
    reading,
    running,
    ticks,
    unknown,
    writing,
)

P = Phase


def verdicts(state: PolicyState) -> dict[str, str]:
    """What every kind of call gets."""
    return {str(kind): type(discipline.decide(state, *act)).__name__.lower() for kind, act in KINDS.items()}


# -- gates -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("state", "refused", "asked"),
    [
        (at(P.NO_TASK), "write execute credential store remote_read remote_effect remote_open", ""),
        (at(P.TASK_STARTED), "write execute store remote_effect remote_open", ""),
        (at(P.PLANNING), "", "write execute store remote_effect remote_open"),
        (at(P.EXECUTING), "", "remote_open"),
        (at(P.MODIFYING), "", "remote_open"),
        (at(P.ACCESSING_DEVICE), "write execute", "remote_open"),
        (at(P.ACCESSING_DEVICE, P.TASK_STARTED), "write execute store remote_effect remote_open", ""),
        (at(P.ACCESSING_DEVICE, P.PLANNING), "write execute", "store remote_effect remote_open"),
        (at(P.ACCESSING_DEVICE, P.CLOSING), "write execute store remote_effect remote_open", ""),
        (at(P.CLOSING), "write execute credential store remote_effect remote_open", ""),
    ],
    ids=lambda value: str(getattr(getattr(value, "phase", ""), "phase", "")),
)  # fmt: skip
def test_what_each_phase_lets_run(state: PolicyState, refused: str, asked: str) -> None:
    expected = {str(kind): "allow" for kind in Kind}
    expected |= {name.replace("_", " "): "deny" for name in refused.split()}
    expected |= {name.replace("_", " "): "ask" for name in asked.split()}
    assert verdicts(state) == expected


@pytest.mark.parametrize(
    ("state", "act", "english", "chinese"),
    [
        (at(P.TASK_STARTED), writing(), "Research Gate: no file may be changed while researching", "Research Gate: 调研阶段不允许修改文件"),
        (at(P.TASK_STARTED), running("make"), "Research Gate: commands are limited to those shown to be read-only", "Research Gate: 终端命令限于只读操作"),
        (at(P.ACCESSING_DEVICE), running("make"), "Device Gate: in accessing_device only credential tools", "设备访问阶段：仅允许凭证操作"),
        (at(P.CLOSING), running("make"), "Closure Gate: only [HARNESS: done] leaves closing", "Closure Gate: 仅 [HARNESS: done] 可退出"),
        (at(P.CLOSING), own("discipline_set_phase", phase="executing", reason="r"), "Closure Gate: only [HARNESS: done]", "Closure Gate: 仅 [HARNESS: done] 可退出"),
    ],
)  # fmt: skip
def test_a_refusal_begins_with_the_seed_s_words_and_names_the_way_on(
    state: PolicyState, act: tuple, english: str, chinese: str
) -> None:
    for language, words in (("en", english), ("zh", chinese)):
        decision = discipline.decide(replace(state, language=language), *act)
        assert isinstance(decision, Deny)
        assert decision.reason.startswith(words)
        assert decision.instead
        assert ("The way on" in decision.reason) == (language == "en")


def test_an_unknown_tool_has_all_effects() -> None:
    assert isinstance(discipline.decide(at(P.TASK_STARTED), *unknown()), Deny)
    assert isinstance(discipline.decide(at(P.TASK_STARTED), ToolCall("c", "mcp_x", {}), CallFacts()), Deny)


def test_the_name_of_a_harmless_tool_does_not_make_one_with_effects_harmless() -> None:
    for name in ("todo", "clarify"):
        assert isinstance(discipline.decide(at(P.TASK_STARTED), ToolCall("c", name, {}), CallFacts()), Deny)
        assert discipline.decide(at(P.TASK_STARTED), *own(name)) == ALLOW


def test_web_reads_are_research_and_memory_writes_are_not() -> None:
    web = (ToolCall("c", "webfetch", {"url": "https://x"}), CallFacts(effects=frozenset({"reads", "network"})))
    assert discipline.decide(at(P.TASK_STARTED), *web) == ALLOW
    memory = (ToolCall("c", "memory", {"action": "add"}), CallFacts(effects=frozenset({"reads", "writes"})))
    assert isinstance(discipline.decide(at(P.TASK_STARTED), *memory), Deny)


@pytest.mark.parametrize("argument", [["ls"], {"a": 1}, None, 3])
def test_a_command_that_is_no_text_is_not_read_as_one(argument: object) -> None:
    act = (ToolCall("c", "bash", {"command": argument}), CallFacts(command_arg="command"))
    assert isinstance(discipline.decide(at(P.TASK_STARTED), *act), Deny)


@pytest.mark.parametrize("phase", [P.EXECUTING, P.MODIFYING, P.PLANNING])
def test_without_a_backup_nothing_named_is_written(phase: Phase) -> None:
    none = discipline.decide(at(phase), *writing(backup="none"))
    assert none == Deny(none.reason, "gate:modify", none.instead)  # type: ignore[union-attr]  # a Deny has both
    assert "/w/a.py has not been backed up" in none.reason
    impossible = discipline.decide(at(phase), *writing(backup="impossible", problem="over the limit"))
    assert isinstance(impossible, Deny)
    assert "cannot be backed up, so it is not written: over the limit" in impossible.reason


def test_what_has_to_be_copied_away_is_asked_for_before_the_decision() -> None:
    assert discipline.prepare(at(P.EXECUTING), *writing(backup="none")) == Preparation(("/w/a.py",))
    assert discipline.prepare(at(P.PLANNING), *writing(backup="none")) == Preparation(("/w/a.py",))
    assert discipline.prepare(at(P.EXECUTING), *running("make")) == Preparation((), snapshot=True)
    assert discipline.prepare(at(P.EXECUTING, snapshot=True), *running("make")) == Preparation()
    for state in (at(P.TASK_STARTED), at(P.NO_TASK), at(P.CLOSING)):
        assert discipline.prepare(state, *writing(backup="none")) == Preparation()
    assert discipline.prepare(at(P.EXECUTING), *reading()) == Preparation()


def test_a_shell_write_names_its_targets_and_needs_the_same_backup() -> None:
    out = PathFact("out", "/w/out", "writes", True)
    assert isinstance(discipline.decide(at(P.EXECUTING), *running("ls > out", paths=(out,))), Deny)
    assert discipline.decide(at(P.EXECUTING), *running("ls > out", paths=(out,), backup="taken")) == ALLOW


# -- starting ----------------------------------------------------------------------------------------------


def test_the_first_call_with_effects_starts_a_task_and_is_refused() -> None:
    weighed = discipline.weigh(at(P.NO_TASK), *writing())
    assert isinstance(weighed.decision, Deny)
    assert "Phase is now task_started" in weighed.decision.reason
    assert weighed.state.phase.phase is P.TASK_STARTED
    assert weighed.happenings == (
        PhaseMoved(P.NO_TASK, P.TASK_STARTED, "a call of write would have effects"),
        SkillWanted("work-principles:pre-action-research", "phase task_started"),
        Blocked("start", P.NO_TASK, "write", weighed.decision.reason, "deny"),
    )


def test_w4_reads_and_failed_looks_in_small_talk_start_nothing() -> None:
    for result in (OK, FAILED):
        after = discipline.observe(at(P.NO_TASK), *reading(), result).state
        assert after.phase.phase is P.NO_TASK


def test_planning_needs_one_look_that_worked() -> None:
    state = at(P.TASK_STARTED)
    refused = discipline.note(state, "[HARNESS: plan]")
    assert refused.state.phase.phase is P.TASK_STARTED
    assert [type(one) for one in refused.happenings] == [MoveRefused]
    for result in (FAILED, BLOCKED, UNKNOWN):
        assert not discipline.observe(state, *reading(), result).state.phase.looked
    assert not discipline.observe(state, *KINDS[Kind.HARNESS], OK).state.phase.looked
    for act in (reading(), running("git log"), running("ssh box uptime")):
        looked = discipline.observe(state, *act, OK).state
        assert discipline.note(looked, "[HARNESS: plan]").state.phase.phase is P.PLANNING


# -- approval ----------------------------------------------------------------------------------------------


def test_a_question_is_no_approval_and_plain_words_are() -> None:
    state = at(P.PLANNING, proposed=True)
    assert discipline.hear(state, "可以吗？").state.phase.phase is P.PLANNING
    heard = discipline.hear(state, "可以")
    assert (heard.state.phase.phase, heard.state.phase.approved_by, heard.state.language) == (
        P.EXECUTING,
        "user",
        "zh",
    )
    assert heard.happenings[0] == PhaseMoved(P.PLANNING, P.EXECUTING, "approved by user: 可以")
    assert isinstance(heard.happenings[1], Reminded)
    assert discipline.guidance(heard.state) is None  # the reminder travels once, with the move


def test_words_before_a_plan_was_put_approve_nothing_and_it_is_said_what_is_missing() -> None:
    heard = discipline.hear(at(P.PLANNING), "go ahead")
    assert heard.state.phase.phase is P.PLANNING
    assert "no plan has been put to them" in (discipline.guidance(heard.state) or "")


def test_a_plan_is_put_by_the_marker_s_message_or_the_todo_list() -> None:
    looked = at(P.TASK_STARTED, looked=True)
    said = discipline.note(looked, "1. Fix add().\n[HARNESS: plan]").state
    assert discipline.hear(said, "go ahead").state.phase.phase is P.EXECUTING
    by_tool = own_tools.set_phase(looked, {"phase": "planning", "reason": "r"}).state
    assert not by_tool.phase.proposed
    listed = discipline.observe(by_tool, *own("todo", todos=["fix add()"]), OK).state
    assert discipline.hear(listed, "go ahead").state.phase.phase is P.EXECUTING


@pytest.mark.parametrize("phase", [phase for phase in Phase if phase is not P.PLANNING])
def test_approval_words_mean_nothing_elsewhere(phase: Phase) -> None:
    assert discipline.hear(at(phase, proposed=True), "可以").state.phase.phase is phase


def test_an_agent_cannot_set_executing_itself() -> None:
    for state in (at(P.PLANNING, proposed=True), at(P.TASK_STARTED), at(P.NO_TASK)):
        answered = own_tools.set_phase(state, {"phase": "executing", "reason": "the user said so"})
        assert answered.is_error
        assert "an agent cannot approve its own plan" in answered.text
        assert answered.state.phase.phase is state.phase.phase


def test_approving_one_call_runs_it_and_leaves_the_phase() -> None:
    state = at(P.PLANNING, proposed=True)
    assert isinstance(discipline.decide(state, *writing()), Ask)
    after = discipline.observe(state, *writing(), OK).state
    assert (after.phase.phase, after.phase.acted, after.phase.changed) == (P.PLANNING, True, ("/w/a.py",))
    # and small talk does not get rid of it
    assert discipline.note(after, "[HARNESS: casual]").state.phase.phase is P.CLOSING


def test_a_person_s_command_approves_and_does_nothing_where_nothing_waits() -> None:
    approved = sessions.approve_plan(at(P.PLANNING), by="ann")
    assert (approved.state.phase.phase, approved.state.phase.approved_by) == (P.EXECUTING, "ann")
    nothing = sessions.approve_plan(at(P.CLOSING), by="ann")
    assert nothing.happenings == (Warned("no plan waits for approval: the phase is closing"),)


# -- modifying ---------------------------------------------------------------------------------------------


def test_the_first_write_that_worked_enters_modifying() -> None:
    after = discipline.observe(at(P.EXECUTING), *writing(), OK)
    assert (after.state.phase.phase, after.state.phase.returns_to) == (P.MODIFYING, P.EXECUTING)
    assert after.happenings == (
        PhaseMoved(P.EXECUTING, P.MODIFYING, "write wrote /w/a.py"),
        SkillWanted("work-principles:change-safeguard", "phase modifying"),
        Reminded(
            "/w/a.py was changed, phase is now modifying: verify it, then go back with discipline_set_phase(executing)."
        ),
    )


@pytest.mark.parametrize("result", [BLOCKED, FAILED, UNKNOWN])
def test_w1_a_blocked_or_failed_write_moves_nothing_and_a_retry_meets_the_same_gate(result: object) -> None:
    for phase in (P.EXECUTING, P.NO_TASK, P.TASK_STARTED, P.CLOSING):
        state = at(phase)
        before = discipline.decide(state, *writing(backup="none"))
        after = discipline.observe(state, *writing(backup="none"), result).state  # type: ignore[arg-type]  # a result
        assert after.phase.phase is phase
        assert discipline.decide(after, *writing(backup="none")) == before


def test_w1_two_writes_in_one_message_are_both_refused() -> None:
    state = at(P.NO_TASK)
    for _ in range(2):
        weighed = discipline.weigh(state, *writing())
        assert isinstance(weighed.decision, Deny)
        state = discipline.observe(weighed.state, *writing(), BLOCKED).state
    assert state.phase.phase is P.TASK_STARTED


def test_a_call_without_named_targets_is_no_write_for_this_gate() -> None:
    after = discipline.observe(at(P.EXECUTING), *running("make", snapshot=True), OK).state
    assert after.phase == PhaseState(P.EXECUTING, acted=True, snapshot=True)


def test_leaving_modifying_names_unverified_files_and_the_strings_that_were_replaced() -> None:
    edited = discipline.observe(
        at(P.EXECUTING), *writing(tool="edit", old_string="colour(", new_string="color("), OK
    ).state
    back = own_tools.set_phase(edited, {"phase": "executing", "reason": "done"})
    assert "Not verified since it was changed: /w/a.py." in back.text
    assert "Look for the same pattern elsewhere: 'colour('." in back.text
    read = discipline.observe(edited, *reading("/w/a.py"), OK).state
    assert "Not verified" not in own_tools.set_phase(read, {"phase": "executing", "reason": "done"}).text
    tested = discipline.observe(edited, *running("pytest"), OK).state
    assert "Not verified" not in own_tools.set_phase(tested, {"phase": "executing", "reason": "done"}).text
    failed = discipline.observe(edited, *running("pytest"), FAILED).state
    assert "Not verified" in own_tools.set_phase(failed, {"phase": "executing", "reason": "done"}).text


# -- devices -----------------------------------------------------------------------------------------------


def test_ssh_moves_to_accessing_device_first_and_comes_back() -> None:
    weighed = discipline.weigh(at(P.EXECUTING), *running("ssh box 'systemctl restart nginx'"))
    assert weighed.decision == ALLOW
    assert (weighed.state.phase.phase, weighed.state.phase.returns_to) == (P.ACCESSING_DEVICE, P.EXECUTING)
    assert (
        SkillWanted("work-principles:credential-store-management", "phase accessing_device")
        in weighed.happenings
    )
    back = own_tools.set_phase(weighed.state, {"phase": "executing", "reason": "done"})
    assert back.state.phase.phase is P.EXECUTING


def test_what_the_phase_before_forbids_stays_forbidden_on_the_other_machine() -> None:
    research = at(P.TASK_STARTED)
    weighed = discipline.weigh(research, *running("ssh box 'rm -rf /srv'"))
    assert isinstance(weighed.decision, Deny)
    assert weighed.state == research
    there = discipline.weigh(research, *running("ssh box uptime")).state
    assert (there.phase.phase, there.phase.returns_to) == (P.ACCESSING_DEVICE, P.TASK_STARTED)
    assert isinstance(discipline.decide(there, *running("ssh box 'rm -rf /srv'")), Deny)
    asked = discipline.weigh(at(P.PLANNING), *running("ssh box 'rm -rf /srv'"))
    assert isinstance(asked.decision, Ask)
    assert asked.state == at(P.PLANNING)


@pytest.mark.parametrize(
    "command",
    ["ssh -o ProxyCommand='touch x' box uptime", "ssh -L 1:h:2 box uptime", "ssh -fN box uptime", "ssh box \"$CMD\"",
     "ssh box uptime > out; rm x", "scp a box:/b", "rsync -a a box:b", "ssh box uptime && make", "sudo ssh box uptime",
     "ssh box 'cat a > b'", "autossh box uptime", "sshpass -p x ssh box reboot"],
)  # fmt: skip
def test_in_research_a_remote_command_is_read_only_here_and_there_or_refused(command: str) -> None:
    assert isinstance(discipline.decide(at(P.TASK_STARTED), *running(command)), Deny)


@pytest.mark.parametrize(
    ("command", "host"),
    [("ssh box uptime", "box"), ("ssh -p 22 -i k u@box.example.org ls -la", "box.example.org"), ("ssh ssh://u@box:22 ls", "box"),
     ("ssh -4 2001:db8::1 uptime", "2001:db8::1"), ("cd /x && ssh box df -h", "box"), ("/usr/bin/ssh box uptime", "box")],
)  # fmt: skip
def test_the_machine_is_read_from_the_command(command: str, host: str) -> None:
    deed = deed_of(*running(command))
    assert [remote.host for remote in deed.remotes] == [host]
    assert kind_of("bash", deed) is Kind.REMOTE_READ


@pytest.mark.parametrize("command", ["ssh -V", "grep ssh f", "man ssh", "rsync --version", "ls ~/x"])
def test_what_only_mentions_ssh_reaches_nothing(command: str) -> None:
    assert deed_of(*running(command)).remotes == ()


def test_redirecting_a_remote_command_writes_here() -> None:
    out = PathFact("out", "/w/out", "writes", True)
    act = running("ssh box uptime > out", paths=(out,))
    assert deed_of(*act).targets == ("/w/out",)
    assert isinstance(discipline.decide(at(P.EXECUTING), *act), Deny)  # not backed up


@pytest.mark.parametrize(
    ("command", "kind"),
    [("gpg --decrypt f.gpg", Kind.CREDENTIAL), ("gpg --batch --decrypt f", Kind.CREDENTIAL), ("pass show x", Kind.CREDENTIAL),
     ("gpg -d f | grep user", Kind.CREDENTIAL), ("vault kv get secret/x", Kind.CREDENTIAL), ("op item get x", Kind.CREDENTIAL),
     ("ssh-add -l", Kind.CREDENTIAL), ("cat ~/.ssh/id_rsa", Kind.CREDENTIAL),
     ("pass insert x", Kind.STORE), ("gpg -o out -d f", Kind.STORE), ("gpg --import k", Kind.STORE), ("vault kv put a b=c", Kind.STORE),
     ("ssh-add key", Kind.STORE), ("pass show x; make", Kind.EXECUTE)],
)  # fmt: skip
def test_credential_programs_look_or_change(command: str, kind: Kind) -> None:
    assert kind_of("bash", deed_of(*running(command))) is kind


# -- skills ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("act", "skill"),
    [
        ((ToolCall("c", "browser_navigate", {"url": "x"}), CallFacts(effects=frozenset({"reads", "network"}))), "camofox-browser"),
        ((ToolCall("c", "browser_click", {"ref": "x"}), CallFacts()), "camofox-browser"),
        ((ToolCall("c", "skill_manage", {"action": "patch"}), CallFacts()), "skill-creator"),
        (running("pass show x"), "work-principles:credential-store-management"),
        (running("gpg --batch --decrypt f"), "work-principles:credential-store-management"),
    ],
)  # fmt: skip
def test_tool_use_wants_a_skill_once_a_task(act: tuple, skill: str) -> None:
    state = discipline.observe(at(P.EXECUTING), *act, OK)
    assert SkillWanted(skill, act[0].tool) in state.happenings
    loaded = discipline.loaded(state.state, skill)
    assert skill in loaded.phase.skills
    assert discipline.observe(loaded, *act, OK).state.phase.wanted == ()


def test_listing_skills_wants_none() -> None:
    act = (ToolCall("c", "skill_manage", {"action": "delete"}), CallFacts())
    assert discipline.observe(at(P.EXECUTING), *act, OK).state.phase.wanted == ()


def test_a_missing_skill_is_said_to_be_missing_once() -> None:
    act = (ToolCall("c", "browser_click", {}), CallFacts())
    state = discipline.observe(at(P.EXECUTING), *act, OK).state
    missing = discipline.not_installed(state, "camofox-browser")
    assert missing.happenings == (Warned("The skill camofox-browser is not installed; go on without it."),)
    again = discipline.observe(discipline.told(missing.state), *act, OK).state
    assert again.phase.wanted == ()
    assert discipline.guidance(again) is None


# -- closing -----------------------------------------------------------------------------------------------


def test_done_from_work_opens_the_checklist_and_early_done_names_what_is_open() -> None:
    opened = discipline.note(at(P.MODIFYING, acted=True), "Finished.\n[HARNESS: done]")
    assert opened.state.phase.required == REQUIRED
    early = discipline.note(opened.state, "[HARNESS: done]")
    assert early.state.phase.phase is P.CLOSING
    (refused,) = early.happenings
    assert isinstance(refused, MoveRefused)
    assert refused.bypass
    assert all(item in refused.reason for item in REQUIRED)
    assert "Closing cannot be bypassed" in (discipline.guidance(early.state) or "")
    done = replace(opened.state, phase=replace(opened.state.phase, ticks=ticks()))
    assert discipline.note(done, "[HARNESS: done]").state.phase.phase is P.NO_TASK


@pytest.mark.parametrize("marker", ["task_started", "plan", "casual"])
def test_other_markers_are_refused_in_closing(marker: str) -> None:
    outcome = discipline.note(at(P.CLOSING, ticks=ticks()), f"[HARNESS: {marker}]")
    assert outcome.state.phase.phase is P.CLOSING
    assert [type(one) for one in outcome.happenings] == [MoveRefused]


def test_set_phase_no_task_in_closing_meets_the_same_checks() -> None:
    assert own_tools.set_phase(at(P.CLOSING), {"phase": "no_task", "reason": "r"}).is_error
    assert (
        own_tools.set_phase(at(P.CLOSING, ticks=ticks()), {"phase": "no_task", "reason": "r"}).state.phase.phase
        is P.NO_TASK
    )


def test_w2_a_blocked_write_in_closing_stays_in_closing() -> None:
    state = at(P.CLOSING)
    weighed = discipline.weigh(state, *writing())
    assert isinstance(weighed.decision, Deny)
    after = discipline.observe(weighed.state, *writing(), BLOCKED).state
    assert after.phase.phase is P.CLOSING
    assert isinstance(discipline.decide(after, *running("touch f")), Deny)


def test_w3_there_is_no_second_switch_that_could_disagree_with_the_phase() -> None:
    armed = own_tools.set_phase(at(P.NO_TASK), {"phase": "task_started", "reason": "r"}).state
    marked = discipline.note(at(P.NO_TASK), "[HARNESS: task_started]").state
    assert verdicts(armed) == verdicts(marked) == verdicts(at(P.TASK_STARTED))
    freed = sessions.force_phase(marked, P.EXECUTING, "r", by="ann").state
    assert verdicts(freed) == verdicts(at(P.EXECUTING))


def test_w5_done_without_a_task_enters_nothing_and_closing_can_be_left() -> None:
    assert discipline.note(at(P.NO_TASK), "[HARNESS: done]").state.phase.phase is P.NO_TASK


def test_casual_after_effects_counts_as_done() -> None:
    outcome = discipline.note(at(P.EXECUTING, acted=True), "[HARNESS: casual]")
    assert outcome.state.phase.phase is P.CLOSING
    assert any(isinstance(one, Warned) for one in outcome.happenings)
    assert discipline.note(at(P.EXECUTING), "[HARNESS: casual]").state.phase.phase is P.NO_TASK


EVIDENCE = "looked at every changed file by hand"


def check(
    state: PolicyState, item: str, evidence: str = EVIDENCE, checked: Checked | None = None
) -> own_tools.Answered:
    return own_tools.closure_check(state, {"item": item, "evidence": evidence}, checked=checked)


def test_a_bare_claim_ticks_nothing() -> None:
    for evidence in ("", "done", "ok", "n/a", "完成", "没问题", "yes.", "x"):
        assert check(at(P.CLOSING), "skill_update", evidence).is_error
    assert check(at(P.CLOSING), "credential_scan").is_error  # the harness has not looked
    assert "the checklist opens with closing" in check(at(P.EXECUTING), "skill_update").text
    assert "no closing item" in check(at(P.CLOSING), "nonsense").text


def test_ticks_carry_evidence_and_say_what_is_left() -> None:
    ticked = check(
        at(P.CLOSING, ticks=ticks("skill_update", "decision_record")),
        "skill_update",
        "none needed: a one-line fix",
    )
    assert ticked.text == "skill_update is ticked. Still open: decision_record."
    assert ticked.happenings == (ItemTicked("skill_update", "none needed: a one-line fix"),)
    last = check(ticked.state, "decision_record", "记录在 docs/decisions/004.md")
    assert "declare [HARNESS: done] on its own line" in last.text


LEAK = Finding("credential_scan", "/w/app.py", "/w/app.py:3 holds a github-token")


def test_a_credential_in_a_changed_file_stops_closing_until_it_is_gone_and_closing_opens_just_that_file() -> (
    None
):
    state = at(P.CLOSING)
    failed = check(
        state, "credential_scan", checked=Checked(False, "scanned 2 changed files, 1 credential found", (LEAK,))
    )
    assert failed.is_error
    assert "/w/app.py:3 holds a github-token" in failed.text
    assert discipline.decide(failed.state, *writing("/w/app.py")) == ALLOW
    assert isinstance(discipline.decide(failed.state, *writing("/w/app.py", backup="none")), Deny)
    assert isinstance(discipline.decide(failed.state, *writing("/w/other.py")), Deny)
    mended = discipline.observe(failed.state, *writing("/w/app.py"), OK).state
    assert mended.phase.phase is P.CLOSING
    passed = check(
        mended, "credential_scan", checked=Checked(True, "scanned 2 changed files, no credentials found")
    )
    assert not passed.is_error
    assert isinstance(discipline.decide(passed.state, *writing("/w/app.py")), Deny)  # shut again


def test_a_write_in_closing_takes_the_credential_tick_back() -> None:
    state = at(P.CLOSING, ticks=ticks("decision_record"))
    after = discipline.observe(state, *writing("/w/docs/decisions/4.md"), OK)
    assert after.happenings == (ItemTicked("credential_scan", ""),)
    assert "credential_scan" not in {tick.item for tick in after.state.phase.ticks}


@pytest.mark.parametrize(
    ("open_item", "path", "allowed"),
    [("skill_update", "/w/.jackstay/skills/x/SKILL.md", True), ("decision_record", "/w/docs/decisions/004-x.md", True),
     ("registration_check", "/w/infra/registry.yaml", True), ("information_storage", "/w/NOTES.md", True),
     ("skill_update", "/w/docs/decisions/004-x.md", False), ("commit_housekeeping", "/w/app.py", False),
     ("decision_record", "/w/src/app.py", False)],
)  # fmt: skip
def test_closing_opens_what_an_open_item_needs_and_no_more(open_item: str, path: str, allowed: bool) -> None:
    only = at(P.CLOSING, ticks=ticks(open_item))
    assert (discipline.decide(only, *writing(path)) == ALLOW) == allowed
    assert isinstance(discipline.decide(at(P.CLOSING, ticks=ticks()), *writing(path)), Deny)


def test_what_the_baseline_found_can_be_ended_and_nothing_else() -> None:
    left = (
        Finding("baseline_comparison", "pid:4711", "an SSH connection is open (pid 4711)"),
        Finding("baseline_comparison", "/tmp/left", "left"),
    )
    state = check(at(P.CLOSING), "baseline_comparison", checked=Checked(False, "compared", left)).state
    assert discipline.decide(state, *running("kill 4711")) == ALLOW
    for command in ("kill 1", "kill 4711 1", "kill $PID", "kill 4711; make", "kill -9 -1", "pkill ssh"):
        assert isinstance(discipline.decide(state, *running(command)), Deny), command
    gone = PathFact("/tmp/left", "/tmp/left", "deletes")
    assert discipline.decide(state, *running("rm /tmp/left", paths=(gone,), backup="taken")) == ALLOW


def test_a_difference_that_may_stay_has_to_be_accounted_for() -> None:
    port = Finding("baseline_comparison", "port", "something listens on port 8080", residue=False)
    silent = check(at(P.CLOSING), "baseline_comparison", checked=Checked(True, "compared", (port,)))
    assert "say in the evidence what became of port" in silent.text
    spoken = check(
        at(P.CLOSING),
        "baseline_comparison",
        "port 8080 is the service that was asked for",
        Checked(True, "compared", (port,)),
    )
    assert not spoken.is_error


def test_commit_housekeeping_is_the_user_s_word() -> None:
    state = at(P.CLOSING)
    assert own_tools.checked_commit(state, ()).ok
    asked = own_tools.checked_commit(state, ("app.py", "b.py"))
    assert not asked.ok
    assert "Uncommitted changes (2): app.py, b.py" in asked.summary
    waiting = check(state, "commit_housekeeping", checked=asked).state
    leave = discipline.hear(waiting, "leave it uncommitted").state
    assert own_tools.checked_commit(leave, ("app.py",)).ok
    commit = discipline.hear(waiting, "可以").state  # the question that waits is about the commit
    assert own_tools.commit_wanted(commit)
    assert not own_tools.checked_commit(commit, ("app.py",)).ok  # not before it is committed
    assert own_tools.checked_commit(commit, (), committed="1a2b3c4").ok
    assert not own_tools.commit_wanted(discipline.hear(state, "可以").state)
    assert isinstance(discipline.decide(commit, *running("git commit -m x")), Deny)


# -- sessions ----------------------------------------------------------------------------------------------


def test_w7_a_lost_state_goes_on_as_task_started_and_says_so() -> None:
    state = sessions.lost(PolicyState(mode="strict"), "Extra data at byte 41")
    assert isinstance(discipline.decide(state, *writing()), Deny)
    assert "What was remembered of this session is lost (Extra data at byte 41)" in (
        discipline.guidance(state) or ""
    )
    assert (
        discipline.note(state, "[HARNESS: casual]").state.phase.phase is P.CLOSING
    )  # nobody knows what was done


def test_w9_a_subagent_inherits_phase_and_bounds_and_moves_only_itself() -> None:
    parent = at(P.PLANNING, proposed=True)
    child = sessions.child_of(parent)
    assert verdicts(child) == verdicts(parent)
    assert discipline.hear(child, "可以").state.phase.phase is P.PLANNING  # nothing was put to anybody there
    worker = sessions.child_of(at(P.EXECUTING, approved_by="user", changed=("/w/b",)))
    worked = discipline.observe(worker, *writing("/w/a"), OK).state
    absorbed = sessions.absorb(at(P.EXECUTING, changed=("/w/b",)), worked)
    assert absorbed.phase.phase is P.EXECUTING
    assert (absorbed.phase.acted, absorbed.phase.changed, absorbed.phase.unverified) == (
        True,
        ("/w/b", "/w/a"),
        ("/w/a",),
    )


def test_a_new_session_costs_the_store_nothing_and_a_full_one_stays_bounded() -> None:
    assert wire.encode(RunState("s")) == b'{"session_id":"s","transcript":0}'
    state = at(P.EXECUTING)
    for number in range(500):
        state = discipline.observe(
            state, *writing(f"/w/{number}", tool="edit", old_string=f"s{number}"), OK
        ).state
        state = discipline.note(state, "[HARNESS: nothing] x").state
        state = discipline.observe(state, ToolCall("c", "browser_click", {}), CallFacts(), OK).state
        state = own_tools.set_phase(state, {"phase": "executing", "reason": "r" * 10_000}).state
        state = discipline.note(state, "[HARNESS: done]" if number == 400 else "").state
    assert len(state.phase.changed) == 200
    assert state.phase.changed_more > 0
    assert len(wire.encode(state)) < 16_000
    head = RunState("s", policy=state)
    assert wire.decode_head(wire.encode(head)).policy == state


def test_w14_secrets_do_not_get_into_reasons() -> None:
    decision = discipline.decide(at(P.TASK_STARTED), *running("PGPASSWORD=hunter2 psql -c 'drop table x'"))
    assert isinstance(decision, Deny)
    assert "hunter2" not in decision.reason


def test_set_phase_says_what_changed_what_is_allowed_and_what_leaves() -> None:
    answered = own_tools.set_phase(at(P.NO_TASK), {"phase": "task_started", "reason": "a real task"})
    assert answered.text == (
        "Phase is now task_started (before: no_task). Reads and read-only shell commands run; anything else is refused. "
        "The way on: read something first, then propose the plan with [HARNESS: plan] on its own line, or drop the "
        "task with [HARNESS: casual] on its own line."
    )
    assert own_tools.set_phase(at(P.EXECUTING), {"phase": "executing", "reason": "r"}).text.startswith(
        "Phase is already executing."
    )
    for args in (
        {"phase": "executing"},
        {"phase": "bogus", "reason": "r"},
        {"reason": "r"},
        {"phase": 3, "reason": "r"},
        {"phase": "closing", "reason": " "},
    ):
        assert own_tools.set_phase(at(P.EXECUTING), args).is_error


def test_a_refused_set_phase_is_told_by_its_result_and_not_twice() -> None:
    answered = own_tools.set_phase(at(P.NO_TASK), {"phase": "closing", "reason": "r"})
    assert answered.is_error
    assert discipline.guidance(answered.state) is None


def test_the_tool_s_description_carries_the_phases_and_markers() -> None:
    text = own_tools.SET_PHASE_SPEC.description
    assert all(phase.value in text for phase in Phase)
    assert all(f"[HARNESS: {marker}]" in text for marker in ("task_started", "plan", "casual", "done"))
