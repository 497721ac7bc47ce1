"""How long a call may wait for a person, said on the command line or in the settings and kept with the run."""

import time
from typing import Any

import pytest

from jackstay.core.events import ToolCallEndEvent
from jackstay.engine.texts import EXPIRED
from tests.cli.command import Jackstay, bash


def waits(jackstay: Jackstay) -> dict[str, Any]:
    (task,) = jackstay("pending", "s1", "--json").objects
    return task


def test_after_the_deadline_no_answer_is_taken_and_the_model_reads_that_nobody_answered(
    jackstay: Jackstay,
) -> None:
    model = jackstay.script(bash("echo ran >> count"), "Done.")
    words = ["--model", model, "--session", "s1", "--approval-deadline", "0.005m"]
    assert jackstay("run", *words, "go").code == 3
    task = waits(jackstay)
    assert task["on_deadline"] == "deny"
    time.sleep(max(0.0, task["deadline"] - time.time()) + 0.05)
    assert "(that time is up), then it is denied" in jackstay("pending").out
    late = jackstay("approve", "s1", "c1")
    assert (late.code, late.out) == (1, "")
    assert "the time to answer about call 'c1' of session 's1' ended" in late.err
    done = jackstay("resume", "s1", "--json")
    (end,) = [event for event in done.events if isinstance(event, ToolCallEndEvent)]
    assert (done.code, end.text, end.executed, jackstay.count()) == (0, EXPIRED, False, 0)


def test_the_deadline_goes_with_the_run_into_other_processes(jackstay: Jackstay) -> None:
    model = jackstay.script(bash("echo ran >> count"), bash("echo ran >> count", "c2"), "Done.")
    jackstay("run", "--model", model, "--session", "s1", "--approval-deadline", "2h", "go")
    shown = jackstay("pending", "s1").out.splitlines()
    (until,) = [line.strip() for line in shown if "until:" in line]
    assert until.startswith("until: 20")
    assert until.endswith(", then it is denied, at the next resume")
    assert jackstay("approve", "s1", "c1").code == 0
    assert jackstay("resume", "s1").code == 3
    task = waits(jackstay)
    assert (task["call_id"], task["on_deadline"]) == ("c2", "deny")
    assert task["deadline"] - task["asked_at"] == 7200


def test_a_flag_of_resume_changes_it_for_what_is_asked_from_then_on(jackstay: Jackstay) -> None:
    model = jackstay.script(bash("echo ran >> count"), bash("echo ran >> count", "c2"), "Done.")
    jackstay("run", "--model", model, "--session", "s1", "--approval-deadline", "2h", "go")
    jackstay("resume", "s1", "--approval-deadline", "1h")
    assert waits(jackstay)["deadline"] - waits(jackstay)["asked_at"] == 7200
    jackstay("approve", "s1", "c1")
    jackstay("resume", "s1", "--approval-deadline", "1h", "--on-deadline", "keep")
    task = waits(jackstay)
    assert (task["deadline"] - task["asked_at"], task.get("on_deadline", "keep")) == (3600, "keep")


def test_the_settings_say_it_too_and_whom_it_is_put_to_then(jackstay: Jackstay) -> None:
    jackstay.settings('approval_deadline = 0.3\non_deadline = "escalate"\nescalate_to = "the team lead"\n')
    jackstay.waiting()
    task = waits(jackstay)
    assert (task["on_deadline"], task["escalate_to"]) == ("escalate", "the team lead")
    time.sleep(max(0.0, task["deadline"] - time.time()) + 0.05)
    assert jackstay("resume", "s1").code == 3
    assert "  put to: the team lead" in jackstay("pending", "s1").out
    assert jackstay("approve", "s1", "c1").code == 0
    assert jackstay("resume", "s1").code == 0
    assert jackstay.count() == 1


def test_without_any_a_call_waits_as_long_as_it_takes(jackstay: Jackstay) -> None:
    jackstay.waiting()
    assert "deadline" not in waits(jackstay)
    assert "until:" not in jackstay("pending", "s1").out


def test_a_project_that_is_not_trusted_may_shorten_it_and_nothing_else(jackstay: Jackstay) -> None:
    jackstay.settings("approval_deadline = 7200\n")
    jackstay.settings(
        'approval_deadline = 3600\non_deadline = "keep"\nescalate_to = "me@example.org"\n', project=True
    )
    done = jackstay.waiting()
    assert [key for key in ("approval_deadline", "on_deadline", "escalate_to") if f"{key}: left out" in done.err] == [
        "on_deadline", "escalate_to",
    ]  # fmt: skip
    task = waits(jackstay)
    assert (task["deadline"] - task["asked_at"], task["on_deadline"]) == (3600, "deny")
    assert "escalate_to" not in task


@pytest.mark.parametrize("age", ["soon", "2", "-1h", "0h"])
def test_what_is_no_length_of_time_is_a_usage_error(jackstay: Jackstay, age: str) -> None:
    done = jackstay("run", "--model", jackstay.script("Hi."), f"--approval-deadline={age}", "go")
    assert (done.code, done.out) == (2, "")
    assert "approval" in done.err


def test_what_follows_a_deadline_is_said_only_together_with_one(jackstay: Jackstay) -> None:
    words = ("run", "--model", jackstay.script("Done."), "--on-deadline", "keep", "go")
    alone = jackstay(*words)
    assert (alone.code, "--on-deadline: no deadline is set" in alone.err) == (2, True)
    jackstay.settings("approval_deadline = 60\n")
    assert jackstay(*words).code == 0
