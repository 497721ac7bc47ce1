"""A secret that model or user wrote is told nowhere, and the tool still gets it: in three real processes."""

import json

import pytest

from jackstay.core.events import GuidanceEvent, HITLDecidedEvent, HITLPendingEvent, ToolCallStartEvent
from jackstay.policy.secrets import plain
from tests.cli.command import Done, Jackstay, bash
from tests.loopback import Loopback

SECRET = plain("ghp_¦k3Jd8sLq0ZxVb7NmYt5RwPa2HgUe9Cf4Ti6o")
MARK = "[redacted:github-token]"
COMMAND = f"echo {SECRET} >> used"
SHOWN = f"echo {MARK} >> used"


def first(jackstay: Jackstay, *words: str) -> Done:
    turn = {**bash(COMMAND), "say": f"I call it with {SECRET}."}
    model = jackstay.script(turn, f"I used {SECRET}.")
    return jackstay("run", "--model", model, "--session", "s1", f"use {SECRET} for it", *words)


def told(done: Done) -> str:
    return done.out + done.err


@pytest.mark.parametrize("how", [(), ("--json",)])
def test_it_waits_without_its_secret_and_runs_with_it_in_another_process(
    jackstay: Jackstay, how: tuple[str, ...]
) -> None:
    begun = first(jackstay, *how)
    assert begun.code == 3
    looks = [begun, *(jackstay(*words) for words in (
        ("pending",), ("pending", "--json"), ("sessions", "show", "s1"), ("sessions", "show", "s1", "--json"),
        ("sessions", "list"), ("sessions", "list", "--json"), ("sessions", "export", "s1"),
        ("phase", "show", "s1"), ("phase", "show", "s1", "--json"),
    ))]  # fmt: skip
    assert SHOWN in looks[1].out
    assert f"use {MARK} for it" in looks[3].out
    approved = jackstay("approve", "s1", "c1", "--comment", f"with {SECRET}", "--json")
    ended = jackstay("resume", "s1", *how)
    after = [
        jackstay("sessions", "show", "s1"),
        jackstay("sessions", "export", "s1"),
        jackstay("audit", "--json"),
    ]
    assert ended.code == 0
    for done in (*looks, approved, ended, *after):
        assert SECRET not in told(done), done
    assert (jackstay.workspace / "used").read_text() == f"{SECRET}\n"
    assert f"I used {MARK}." in ended.out


def test_the_events_are_whole_but_for_the_secret(jackstay: Jackstay) -> None:
    begun = first(jackstay, "--json")
    (task,) = next(event for event in begun.events if isinstance(event, HITLPendingEvent)).pending_tasks
    assert (task.args, task.comment) == ({"command": SHOWN}, f"not read-only: {SHOWN!r} writes used")
    assert task.always_rule is None or SECRET not in task.always_rule
    jackstay("approve", "s1", "c1")
    events = jackstay("resume", "s1", "--json").events
    decided = next(event for event in events if isinstance(event, HITLDecidedEvent))
    started = next(event for event in events if isinstance(event, ToolCallStartEvent))
    assert decided.args == started.args == {"command": SHOWN}


def test_a_person_changes_what_is_around_the_mark(jackstay: Jackstay) -> None:
    first(jackstay)
    changed = jackstay("approve", "s1", "c1", "--set", f"command=echo {MARK} twice >> used", "--json")
    assert json.loads(changed.out)["decision"]["new_args"] == {"command": f"echo {MARK} twice >> used"}
    assert jackstay("resume", "s1").code == 0
    assert (jackstay.workspace / "used").read_text() == f"{SECRET} twice\n"


def test_a_new_secret_that_a_person_gives_runs_and_is_not_told(jackstay: Jackstay) -> None:
    first(jackstay)
    other = plain("ghp_¦R7dKq2LmXv9TzB4nWc8YhJ3sPf6GuE1aQo5i")
    given = jackstay("approve", "s1", "c1", "--set", f"command=echo {other} >> used", "--json")
    ended = jackstay("resume", "s1", "--json")
    assert other not in told(given) + told(ended)
    assert (jackstay.workspace / "used").read_text() == f"{other}\n"


def test_always_grants_the_real_rule_and_shows_it_without_the_secret(jackstay: Jackstay) -> None:
    model = jackstay.script(bash(COMMAND), bash(COMMAND, "c2"), "Done.")
    waits = jackstay("run", "--model", model, "--session", "s1", "go", "--json")
    (task,) = next(event for event in waits.events if isinstance(event, HITLPendingEvent)).pending_tasks
    assert task.always_rule is not None
    assert MARK in task.always_rule
    jackstay("approve", "s1", "c1", "--always")
    ended = jackstay("resume", "s1", "--json")
    assert ended.code == 0  # the second call, equal to the first, is not asked about
    assert SECRET not in told(ended)
    assert (jackstay.workspace / "used").read_text() == f"{SECRET}\n" * 2


def test_the_reason_of_a_person_s_command_is_told_without_its_secret_also_to_the_model(
    jackstay: Jackstay,
) -> None:
    with Loopback(["The plan.\n[HARNESS: casual]", "I look again."]) as server:
        words = ("--discipline", "strict", "--model", f"m@{server.openai_url}", "--session", "s1", "--json")
        jackstay("run", *words, "hello")
        forced = jackstay("phase", "set", "s1", "task_started", "--reason", f"it used {SECRET}, look again")
        after = jackstay("run", *words, "look again")
        read = json.dumps(server.bodies[-1])
    (guidance,) = [event for event in after.events if isinstance(event, GuidanceEvent)]
    assert f"moved the phase to task_started: it used {MARK}, look again" in guidance.text
    shown = jackstay("sessions", "export", "s1")
    assert [SECRET in text for text in (told(forced), told(after), told(shown), read)] == [False] * 4
