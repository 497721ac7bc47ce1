"""What a person says about a session of a host: to one that is known, and in person."""

import os
import subprocess
from pathlib import Path

import pytest

from jackstay.core.phase import Phase
from jackstay.core.state import PolicyState
from jackstay.hosts.state import HostStore, Session
from tests.cli.command import Jackstay, argv

KNOWN = Session("claude-code", "6f1c2e")


@pytest.fixture
def hosted(jackstay: Jackstay) -> Jackstay:
    jackstay.home.mkdir(mode=0o700)
    store = HostStore(jackstay.home)
    with store.change(KNOWN, PolicyState(mode="strict"), at=1.0):
        pass
    store.close()
    return jackstay


def phases(jackstay: Jackstay) -> dict[str, Phase]:
    store = HostStore(jackstay.home)
    found = {session.id: state.policy.phase.phase for session, state, _ in store.sessions()}
    store.close()
    return found


SET = ("host", "phase", "claude-code", "6f1c2e", "planning", "--reason", "think again")


def test_a_person_moves_the_phase_of_a_session_that_is_known(hosted: Jackstay) -> None:
    assert hosted(*SET).out == "the phase is planning\n"
    assert phases(hosted) == {"6f1c2e": Phase.PLANNING}


@pytest.mark.parametrize(
    "words",
    [("phase", "claude-code", "6f1c2f", "planning", "--reason", "x"), ("approve-plan", "hermes", "6f1c2e")],
)
def test_a_mistyped_session_is_named_and_none_is_opened(hosted: Jackstay, words: tuple[str, ...]) -> None:
    done = hosted("host", *words)
    told = f"jackstay: no session {words[2]!r} of {words[1]} is known: `jackstay host status {words[1]}` shows"
    assert (done.code, done.out, done.err.startswith(told)) == (1, "", True)
    assert phases(hosted) == {"6f1c2e": Phase.NO_TASK}


@pytest.mark.parametrize(
    "words",
    [SET, ("host", "approve-plan", "claude-code", "6f1c2e"), ("host", "approve", "1"), ("host", "reject", "1")],
)
def test_a_command_of_an_agent_says_none_of_it(hosted: Jackstay, words: tuple[str, ...]) -> None:
    done = hosted(*words, env={"JACKSTAY_SESSION": "s1"})
    assert (done.code, "this is for a person to say" in done.err) == (1, True)
    assert phases(hosted) == {"6f1c2e": Phase.NO_TASK}


def test_hermes_is_installed_whole_although_nobody_reads_the_steps(jackstay: Jackstay) -> None:
    settings = Path(jackstay.env["HOME"]) / ".hermes" / "config.yaml"
    settings.parent.mkdir()
    settings.write_text("model: x\n")
    reads, writes = os.pipe()
    os.close(reads)
    with os.fdopen(writes, "w") as gone:
        done = subprocess.run(
            argv("host", "install", "hermes"), env=jackstay.env, cwd=jackstay.workspace, stdout=gone,
            stderr=subprocess.PIPE, text=True, check=False,
        )  # fmt: skip
    assert (done.returncode, done.stderr) == (1, "")
    assert jackstay("host", "install", "hermes", "--dry-run").out == "nothing to do\n"
    assert "work-principles" in settings.read_text()
