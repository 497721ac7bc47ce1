"""The discipline by command, in real processes: plans, phases, the audit record, backups, closing items."""

import json
import re
import shlex
import subprocess

import pytest

from jackstay.core.events import BackupTakenEvent, GateBlockedEvent, GuidanceEvent, PhaseChangedEvent
from jackstay.policy.secrets import plain
from tests.cli.command import Done, Jackstay, Turn, argv
from tests.loopback import Loopback

LOOK: Turn = {"say": "[HARNESS: task_started]", "calls": [{"tool": "ls", "args": {}}]}
PLAN = "I would set the timeout to 30 in settings.ini.\n\n[HARNESS: plan]"


def edit(old: str, new: str, say: str = "") -> Turn:
    """A turn that edits settings.ini."""
    args = {"file_path": "settings.ini", "old_string": old, "new_string": new}
    return {"say": say, "calls": [{"tool": "edit", "args": args}]}


def planned(jackstay: Jackstay, *turns: Turn | str, session: str = "s1") -> Done:
    """A strict run that has put its plan and waits for a person."""
    (jackstay.workspace / "settings.ini").write_text("timeout = 5\n")
    model = jackstay.script(LOOK, PLAN, *turns, name=f"{session}.json")
    words = ("--discipline", "strict", "--model", model, "--session", session)
    return jackstay("run", *words, "set the timeout to 30", "--json")


def test_a_plan_waits_is_approved_in_a_second_process_and_carried_out_in_a_third(jackstay: Jackstay) -> None:
    early = edit("5", "30", "[HARNESS: task_started]")
    (jackstay.workspace / "settings.ini").write_text("timeout = 5\n")
    model = jackstay.script(early, LOOK, PLAN, edit("5", "30"), "The timeout is 30.")
    first = jackstay("run", "--discipline", "strict", "--model", model, "--session", "s1", "go", "--json")
    assert first.code == 3
    assert [event.gate for event in first.events if isinstance(event, GateBlockedEvent)] == ["research"]
    assert "jackstay approve s1 --plan" in first.err
    assert (jackstay.workspace / "settings.ini").read_text() == "timeout = 5\n"

    assert jackstay("resume", "s1").code == 3  # nobody has approved anything
    approved = jackstay("approve", "s1", "--plan")
    assert approved.out.splitlines() == [
        "the plan of session s1 is approved; executing begins when it goes on",
        "go on with: jackstay resume s1",
    ]
    assert jackstay("pending").out == "nothing waits\n"
    again = jackstay("approve", "s1", "--plan")
    assert (again.code, again.err) == (
        1, "jackstay: the plan of session 's1' is approved already: `jackstay resume s1` goes on with it\n",
    )  # fmt: skip

    last = jackstay("resume", "s1", "--json")
    assert last.code == 0
    assert {event.run_id for event in last.events} == {first.events[0].run_id}
    assert last.kinds[:4] == ["run_start", "phase_changed", "guidance", "reason_start"]
    assert (jackstay.workspace / "settings.ini").read_text() == "timeout = 30\n"
    moves = [(e.before, e.after) for e in last.events if isinstance(e, PhaseChangedEvent)]
    assert moves == [("planning", "executing"), ("executing", "modifying")]
    resumed_again = jackstay("resume", "s1", "--json")
    assert (resumed_again.code, resumed_again.kinds) == (0, ["run_start", "run_end"])

    shown = jackstay("sessions", "show", "s1").out
    assert shown.startswith("session s1 · answered · modifying · ")
    assert "phase: planning → executing (approved by " in shown
    assert "refused by the research gate: edit: Research Gate" in shown
    row = jackstay("sessions", "list").out
    assert "answered     modifying        go" in row


def test_pending_shows_a_plan_that_waits_with_what_to_type(jackstay: Jackstay) -> None:
    planned(jackstay)
    shown = jackstay("pending").out
    assert "  |" in shown
    assert "I would set the timeout to 30 in settings.ini." in shown
    assert "approve: jackstay approve s1 --plan" in shown
    assert jackstay("pending", "s1").out == shown
    unnamed = jackstay("approve", "s1")
    assert (unnamed.code, "but a plan: `jackstay approve s1 --plan`" in unnamed.err) == (1, True)
    (one,) = jackstay("pending", "--json").objects
    assert (one["session_id"], one["plan"]) == ("s1", PLAN)


def test_a_comment_goes_with_the_approval(jackstay: Jackstay) -> None:
    planned(jackstay, "I do it.")
    assert jackstay("approve", "s1", "--plan", "--comment", "not before noon", "--json").objects == [
        {"session_id": "s1", "run_id": jackstay("phase", "show", "s1", "--json").objects[0]["run_id"],
         "plan": "approved", "by": jackstay("audit", "--json").objects[1]["rule"].removeprefix("person:")}
    ]  # fmt: skip
    jackstay("resume", "s1")
    messages = json.loads(jackstay("sessions", "export", "s1").out)["messages"]
    told = [message for message in messages if message.get("note") == "approval"]
    assert [part["text"].partition(" They say: ")[2] for m in told for part in m["parts"]] == [
        "not before noon"
    ]


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (("s1", "--plan"), "no plan waits for approval in session 's1': its phase is no_task"),
        (("s1", "c1", "--plan"), "--plan approves the plan and nothing else"),
        (("none", "--plan"), "no session 'none' is stored"),
    ],
)
def test_what_is_no_plan_is_not_approved(jackstay: Jackstay, words: tuple[str, ...], problem: str) -> None:
    strict = ("--discipline", "strict", "--session", "s1")
    jackstay("run", *strict, "--model", jackstay.script("Hello."), "hello")
    done = jackstay("approve", *words)
    assert done.code == (2 if "c1" in words else 1)
    assert problem in done.err


def test_a_run_that_holds_no_discipline_waits_for_no_plan(jackstay: Jackstay) -> None:
    done = jackstay("run", "--model", jackstay.script("No task.\n\n[HARNESS: plan]"), "--session", "s1", "go")
    assert done.code == 0
    assert "its discipline is off" in jackstay("approve", "s1", "--plan").err


def test_a_person_overrides_the_phase_and_it_is_on_record(jackstay: Jackstay) -> None:
    planned(jackstay, "Nothing to do.")
    assert jackstay("phase", "set", "s1", "executing").code == 2  # no reason
    assert jackstay("phase", "set", "s1", "flying", "--reason", "x").code == 2
    assert jackstay("phase", "set", "none", "planning", "--reason", "x").code == 1
    done = jackstay("phase", "set", "s1", "no_task", "--reason", "abandoned: sk-ant-REDACTED")
    assert done.out.splitlines()[0] == "session s1 goes to no_task with its next request (now: planning)"
    shown = jackstay("phase", "show", "s1")
    assert shown.out.splitlines()[0] == "planning  (transient)"
    assert "  gate       proposal (social)" in shown.out
    assert "taken up with the next request" in shown.out

    after = jackstay("resume", "s1", "--json")
    assert after.code == 0
    assert after.kinds == ["run_start", "phase_changed", "run_end"]
    (now,) = jackstay("phase", "show", "s1", "--json").objects
    assert (now["phase"], now["gate"], now["commanded"]) == ("no_task", "start", [])
    counts, record = jackstay("audit", "--json").objects
    assert (counts["total"], counts["by_gate"], counts["by_verdict"]) == (1, {"override": 1}, {"allow": 1})
    assert (record["tool"], record["reason"], record["phase"]) == (
        "phase set",
        "planning → no_task",
        "planning",
    )
    assert record["rule"].startswith("person:")
    assert "planning → no_task" in jackstay("sessions", "show", "s1").out


def test_the_audit_counts_what_gates_decided(jackstay: Jackstay) -> None:
    assert jackstay("audit").out == "no gate has closed\n"
    planned(jackstay, edit("5", "30"), "Waiting.", session="s1")
    early = edit("5", "30", "[HARNESS: task_started]")
    model = jackstay.script(early, "I see.", name="s2.json")
    jackstay("run", "--discipline", "strict", "--model", model, "--session", "s2", "go")
    jackstay("approve", "s1", "--plan")
    counts, *records = jackstay("audit", "--json", "--since", "1h").objects
    assert (counts["type"], counts["total"]) == ("audit_summary", 2)
    assert counts["by_gate"] == {"research": 1, "proposal": 1}
    assert [(one["session"], one["verdict"]) for one in records] == [("s2", "deny"), ("s1", "allow")]
    assert len(jackstay("audit", "--json", "--session", "s2").objects) == 2
    shown = jackstay("audit", "--session", "s2").out.splitlines()
    assert shown[0] == "1 decision"
    assert "  by gate     research 1" in shown
    assert jackstay("audit", "--since", "soon").code == 2


def test_a_backup_brings_a_file_back_byte_for_byte_and_can_be_undone(jackstay: Jackstay) -> None:
    file = jackstay.workspace / "settings.ini"
    write = {"say": "", "calls": [{"tool": "write", "args": {"file_path": "settings.ini", "content": "gone"}}]}
    planned(jackstay, write, "Done.")
    file.write_bytes(b"timeout = 5\r\n\xff\x00")
    file.chmod(0o640)
    jackstay("approve", "s1", "--plan")
    done = jackstay("resume", "s1", "--json")
    (taken,) = [event for event in done.events if isinstance(event, BackupTakenEvent)]
    assert file.read_text() == "gone"

    (listed,) = jackstay("backup", "list", "--path", "settings.ini", "--json").objects
    assert (listed["id"], listed["session"], listed["why"]) == (taken.backup_id, "s1", "before write")
    assert listed["copies"][0]["path"] == str(file)
    assert jackstay("backup", "list", "--session", "other").out == "no backup matches\n"
    back = jackstay("backup", "restore", taken.backup_id)
    assert back.out.splitlines()[0] == f"back: {file}"
    assert (file.read_bytes(), file.stat().st_mode & 0o777) == (b"timeout = 5\r\n\xff\x00", 0o640)

    undo = back.out.splitlines()[1].removeprefix("undo with: jackstay ").split()
    assert jackstay(*undo).code == 0
    assert file.read_text() == "gone"
    assert jackstay("backup", "restore", "nothing-here").err == (
        "jackstay: there is no backup nothing-here: `jackstay backup list` shows them\n"
    )
    only = jackstay("backup", "restore", taken.backup_id, "--only", "other.ini")
    assert (only.code, "holds no copy of other.ini" in only.err) == (1, True)


REGISTRY = """\
components:
  - name: queue
    lifecycle:
      closure:
        - {id: queue_drained, check: no message is left, severity: required, command: queuectl depth dead}
"""


def test_closing_items_of_components_are_synced_into_the_checklist(jackstay: Jackstay) -> None:
    missing = jackstay("lifecycle", "check")
    assert (missing.code, "name it with --registry FILE" in missing.err) == (2, True)
    (jackstay.workspace / "registry.yaml").write_text(REGISTRY)
    assert "name a document with --document FILE" in jackstay("lifecycle", "check").err
    skill = jackstay.workspace / ".jackstay/skills/work-closure-check/SKILL.md"
    skill.parent.mkdir(parents=True)
    skill.write_text("---\nname: work-closure-check\ndescription: How we close.\n---\n\n# Closing\n")
    stale = jackstay("lifecycle", "check")
    assert (stale.code, "is out of date: run `jackstay lifecycle sync`" in stale.out) == (1, True)
    synced = jackstay("lifecycle", "sync", "--json")
    assert synced.objects == [
        {
            "type": "lifecycle", "document": str(skill), "state": "written",
            "items": [{"id": "queue_drained", "component": "queue", "severity": "required"}],
        }
    ]  # fmt: skip
    assert "- [ ] `queue_drained` (required): no message is left" in skill.read_text()
    assert jackstay("lifecycle", "check").code == 0
    assert "up to date" in jackstay("lifecycle", "sync").out


def test_sessions_and_backups_complete_after_the_new_commands(jackstay: Jackstay) -> None:
    planned(jackstay, edit("5", "30"), "Done.", session="alpha")
    jackstay("approve", "alpha", "--plan")
    jackstay("resume", "alpha")
    taken = jackstay("backup", "list", "--json").objects[0]["id"]

    def complete(words: str, position: int) -> list[str]:
        asked = {"_JACKSTAY_COMPLETE": "bash_complete", "COMP_WORDS": words, "COMP_CWORD": str(position)}
        return [line.partition(",")[2] for line in jackstay(env=asked).out.splitlines()]

    assert complete("jackstay phase show ", 3) == ["alpha"]
    assert complete("jackstay phase set alpha clo", 4) == ["closing"]
    assert complete("jackstay audit --session a", 3) == ["alpha"]
    assert complete("jackstay backup restore ", 3) == [taken]


def test_the_doctor_names_records_that_cannot_be_written(jackstay: Jackstay) -> None:
    jackstay.waiting()
    (jackstay.home / "audit").write_text("in the way")
    (jackstay.home / "backups").write_text("in the way")
    model = {"JACKSTAY_MODEL": jackstay.script("x")}
    found = {one["check"]: one for one in jackstay("doctor", "--json", env=model).objects}
    for name in ("audit", "backups"):
        assert found[name]["state"] == "problem"
        assert str(jackstay.home / name) in found[name]["text"]
        assert found[name]["mend"]


def test_the_doctor_warns_of_a_skill_that_cannot_be_read(jackstay: Jackstay) -> None:
    skill = jackstay.workspace / ".jackstay/skills/broken/SKILL.md"
    skill.parent.mkdir(parents=True)
    skill.write_text("no front matter\n")
    model = {"JACKSTAY_MODEL": jackstay.script("x")}
    found = [one for one in jackstay("doctor", "--json", env=model).objects if one["check"] == "skills"]
    assert [one["state"] for one in found] == ["warning", "ok"]
    assert str(skill) in found[0]["text"]


def leaving(jackstay: Jackstay, *closing: Turn | str) -> None:
    """A strict task that has changed a file in which a key stands, and wants to close."""
    (jackstay.workspace / "settings.ini").write_text("timeout = 5\n")
    write = edit("5", f"30\nkey = {plain('ghp_¦k3Jd8sLq0ZxVb7NmYt5RwPa2HgUe9Cf4Ti6o')}")
    model = jackstay.script(LOOK, PLAN, write, *closing)
    jackstay("run", "--discipline", "strict", "--model", model, "--session", "s1", "set the timeout to 30")
    jackstay("approve", "s1", "--plan")


def checks(*items: str, say: str = "") -> Turn:
    """A turn that ticks closing items."""
    evidence = (
        "nothing to do: git, ports, units, disk, ssh, temporary files and processes of others were looked at"
    )
    calls = [{"tool": "closure_check", "args": {"item": item, "evidence": evidence}} for item in items]
    return {"say": say, "calls": calls}


BY_HAND = (
    "skill_update",
    "decision_record",
    "registration_check",
    "information_storage",
    "baseline_comparison",
)


def test_a_person_lets_a_leftover_stay_and_closing_goes_on(jackstay: Jackstay) -> None:
    leaving(
        jackstay, checks("credential_scan", *BY_HAND, "commit_housekeeping", say="[HARNESS: done]"),
        "The key is one of yours: it has to stay.", "I wait for you.", "I still wait for you.",
        checks("credential_scan"), "[HARNESS: done]\nClosed.",
    )  # fmt: skip
    stuck = jackstay("resume", "s1", "--json")
    assert stuck.code == 0
    path = str(jackstay.workspace / "settings.ini")
    (now,) = jackstay("phase", "show", "s1", "--json").objects
    assert (now["phase"], now["open"]) == ("closing", ["credential_scan"])
    assert now["findings"] == [
        {"item": "credential_scan", "subject": path, "text": f"{path}:2 holds a github-token"}
    ]
    assert f"  found      {path}: {path}:2 holds a github-token" in jackstay("phase", "show", "s1").out
    wrong = jackstay("phase", "let-stay", "s1", "other.ini", "--reason", "x")
    assert (wrong.code, f"what can stay is: {path}, credential_scan" in wrong.err) == (1, True)
    assert jackstay("phase", "let-stay", "s1", "settings.ini").code == 2  # no reason

    done = jackstay("phase", "let-stay", "s1", "settings.ini", "--reason", "made up for the tests")
    assert done.out.splitlines() == ["may stay: settings.ini", "go on with: jackstay resume s1"]
    assert "let stay: settings.ini by " in jackstay("phase", "show", "s1").out
    ended = jackstay("resume", "s1", "--json")
    assert ended.code == 0
    assert {event.run_id for event in ended.events} == {stuck.events[0].run_id}
    (moved,) = [event for event in ended.events if isinstance(event, PhaseChangedEvent)]
    assert (moved.before, moved.after) == ("closing", "no_task")
    _, *records = jackstay("audit", "--json").objects
    (record,) = [one for one in records if one["tool"] == "let-stay"]
    assert (record["gate"], record["call"], record["reason"], record["verdict"]) == (
        "closure", path, "made up for the tests", "allow",
    )  # fmt: skip
    assert record["rule"].startswith("person:")


def test_a_person_ticks_an_item_that_nobody_else_can(jackstay: Jackstay) -> None:
    leaving(jackstay, checks(*BY_HAND, "commit_housekeeping", say="[HARNESS: done]"), "Stuck.", "Stuck.", "Stuck.",
            "[HARNESS: done]\nClosed.")  # fmt: skip
    jackstay("resume", "s1")
    jackstay("phase", "let-stay", "s1", "credential_scan", "--reason", "I scanned it with another tool")
    ended = jackstay("resume", "s1", "--json")
    assert [event.after for event in ended.events if isinstance(event, PhaseChangedEvent)] == ["no_task"]
    _, *records = jackstay("audit", "--json").objects
    assert [one["call"] for one in records if one["tool"] == "let-stay"] == ["credential_scan"]


def test_nothing_can_stay_where_nothing_is_being_closed(jackstay: Jackstay) -> None:
    planned(jackstay)
    done = jackstay("phase", "let-stay", "s1", "pid:1", "--reason", "x")
    assert (done.code, "nothing is being closed: the phase is planning" in done.err) == (1, True)


@pytest.mark.parametrize(
    "words",
    [
        ("approve", "s1", "--plan"), ("approve", "s1", "--all"), ("reject", "s1", "c1"), ("skip", "s1", "c1"),
        ("phase", "set", "s1", "executing", "--reason", "x"), ("phase", "let-stay", "s1", "a", "--reason", "x"),
        ("trust", "."),
    ],
    ids=" ".join,
)  # fmt: skip
def test_what_a_person_says_no_command_of_an_agent_can_say(jackstay: Jackstay, words: tuple[str, ...]) -> None:
    planned(jackstay)
    done = jackstay(*words, env={"JACKSTAY_SESSION": "s1"})
    assert (done.code, "from a command of session 's1': nothing was changed" in done.err) == (1, True)
    (now,) = jackstay("phase", "show", "s1", "--json").objects
    assert (now["phase"], now["commanded"]) == ("planning", [])


def test_taking_the_mark_away_does_not_hide_where_a_command_came_from(jackstay: Jackstay) -> None:
    planned(jackstay)
    line = shlex.join(["env", "-u", "JACKSTAY_SESSION", *argv("approve", "s1", "--plan")])
    env = {**jackstay.env, "JACKSTAY_SESSION": "s1"}
    done = subprocess.run(
        ["sh", "-c", f"{line}; exit $?"],
        env=env,
        cwd=jackstay.workspace,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, "this is for a person to say" in done.stderr) == (1, True)


CHINESE_PLAN = "我会把 settings.ini 里的超时改成 30。\n\n[HARNESS: plan]"


def notes_read(server: Loopback) -> str:
    """All that the harness has said to the model, in the last request."""
    return "\n".join(
        message["content"] for message in server.bodies[-1]["messages"]
        if message["role"] == "user" and isinstance(message["content"], str)
    )  # fmt: skip


def test_a_conversation_in_chinese_stays_chinese_in_every_process(jackstay: Jackstay) -> None:
    (jackstay.workspace / "settings.ini").write_text("timeout = 5\n")
    turns = [LOOK, {"say": CHINESE_PLAN}, edit("5", "30"), {"say": "[HARNESS: done]"}, *[{"say": "等待。"}] * 3]
    with Loopback(turns, by_turn=True) as server:
        model = f"m@{server.openai_url}"
        words = ("--discipline", "strict", "--model", model, "--session", "s1")
        assert jackstay("run", *words, "请把超时改成 30").code == 3
        jackstay("approve", "s1", "--plan", "--comment", "ok")
        ended = jackstay("resume", "s1", "--json")
        assert ended.code == 0
        read = notes_read(server)
    assert "已批准方案：请执行。 用户说：ok" in read
    guidance = [event.text for event in ended.events if isinstance(event, GuidanceEvent)]
    assert any(text.startswith("[阶段: closing]") for text in guidance)
    assert all(re.search("[\u4e00-\u9fff]", text) for text in guidance)


def test_the_language_of_the_settings_goes_with_the_run(jackstay: Jackstay) -> None:
    settings = jackstay.settings('language = "zh"\n')
    planned(jackstay, {"say": "[HARNESS: done]", "calls": []}, "Waiting.", "Waiting.", "Waiting.")
    settings.write_text("")
    jackstay("approve", "s1", "--plan")
    ended = jackstay("resume", "s1", "--json")
    guidance = [event.text for event in ended.events if isinstance(event, GuidanceEvent)]
    assert guidance
    assert all(re.search("[\u4e00-\u9fff]", text) for text in guidance)
