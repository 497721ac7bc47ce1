"""`ssh host` in `jackstay run`: it enters accessing_device, and the work returns to where it came from."""

import os
from typing import Any

import pytest

from jackstay.core.events import GateBlockedEvent, GuidanceEvent, PhaseChangedEvent, SkillLoadedEvent
from tests.cli.command import Done, Jackstay, Turn
from tests.cli.test_discipline import LOOK, PLAN, edit


def ssh(command: str, say: str = "") -> Turn:
    return {"say": say, "calls": [{"tool": "bash", "args": {"command": command}}]}


def back(phase: str = "executing") -> Turn:
    return {"calls": [{"tool": "discipline_set_phase", "args": {"phase": phase, "reason": "seen"}}]}


@pytest.fixture
def remote(jackstay: Jackstay) -> Jackstay:
    """With a program named ssh first on PATH, that writes down what it was called with."""
    programs = jackstay.home.parent / "bin"
    programs.mkdir()
    (programs / "ssh").write_text('#!/bin/sh\necho "$*" >> "$TMPDIR/calls"\necho up 3 days\n')
    (programs / "ssh").chmod(0o755)
    jackstay.env["PATH"] = f"{programs}{os.pathsep}{os.environ['PATH']}"
    return jackstay


def run(jackstay: Jackstay, *turns: Turn | str, allow: str = "bash(nothing)") -> Done:
    (jackstay.workspace / "settings.ini").write_text("timeout = 5\n")
    words = ("--discipline", "strict", "--model", jackstay.script(*turns), "--session", "s1", "--json")
    return jackstay("run", *words, "--allow", allow, "look at the box")


def moves(done: Done) -> list[tuple[str, str]]:
    return [(str(e.before), str(e.after)) for e in done.events if isinstance(e, PhaseChangedEvent)]


def calls(jackstay: Jackstay) -> list[str]:
    log = jackstay.home.parent / "calls"
    return log.read_text().splitlines() if log.exists() else []


def anchor(jackstay: Jackstay) -> Any:
    return jackstay("sessions", "export", "s1").objects[0]["policy"]["anchor"]


THERE_AND_BACK = [
    ("executing", "accessing_device"), ("accessing_device", "executing"), ("executing", "modifying"),
]  # fmt: skip


def test_a_look_at_a_host_that_a_rule_allows_enters_and_returns(remote: Jackstay) -> None:
    run(
        remote,
        LOOK,
        PLAN,
        ssh("ssh box uptime"),
        back(),
        edit("5", "30"),
        "Done.",
        allow="bash(ssh box uptime)",
    )
    remote("approve", "s1", "--plan")
    done = remote("resume", "s1", "--json")
    assert moves(done) == [("planning", "executing"), *THERE_AND_BACK]
    there = [e.text for e in done.events if isinstance(e, GuidanceEvent) and e.phase == "accessing_device"]
    assert len(there) == 1
    assert "Look in the credential store" in there[0]
    skills = [e.name for e in done.events if isinstance(e, SkillLoadedEvent)]
    assert skills == ["work-principles:credential-store-management", "work-principles:change-safeguard"]
    assert (calls(remote), "host" in anchor(remote)) == (["box uptime"], False)  # here again


@pytest.mark.parametrize("command", ["ssh box", "ssh -t admin@box", "ssh box 'systemctl restart x'"])
def test_a_login_or_an_effect_there_waits_for_a_person_and_enters_as_it_runs(
    remote: Jackstay, command: str
) -> None:
    run(remote, LOOK, PLAN, ssh(command), back(), edit("5", "30"), "Done.")
    remote("approve", "s1", "--plan")
    asked = remote("resume", "s1", "--json")
    assert (asked.code, moves(asked), calls(remote)) == (3, [("planning", "executing")], [])
    remote("approve", "s1", "--all")
    done = remote("resume", "s1", "--json")
    assert (moves(done), len(calls(remote))) == (THERE_AND_BACK, 1)


def test_a_login_that_a_person_rejects_moves_nothing(remote: Jackstay) -> None:
    run(remote, LOOK, PLAN, ssh("ssh box"), "I stay here.")
    remote("approve", "s1", "--plan")
    remote("resume", "s1")
    remote("reject", "s1", "--all", "--continue")
    assert moves(remote("resume", "s1", "--json")) == []
    assert (remote("phase", "show", "s1", "--json").objects[0]["phase"], calls(remote)) == ("executing", [])


def test_out_of_research_a_host_is_looked_at_and_not_changed(remote: Jackstay) -> None:
    asked = run(
        remote, LOOK, ssh("ssh box 'systemctl restart x'"), ssh("ssh box uptime"), ssh("ssh box 'touch x'"),
        back("task_started"), PLAN,
    )  # fmt: skip
    assert (asked.code, moves(asked)) == (3, [("no_task", "task_started")])
    remote("approve", "s1", "--all")
    done = remote("resume", "s1", "--json")
    assert moves(done) == [
        ("task_started", "accessing_device"), ("accessing_device", "task_started"), ("task_started", "planning"),
    ]  # fmt: skip
    refused = [e.gate for seen in (asked, done) for e in seen.events if isinstance(e, GateBlockedEvent)]
    assert (refused, calls(remote)) == (["research", "research"], ["box uptime"])  # where it returns to judges
