"""The five risks of the second seed's §16.2.1, each as an agent that takes it: stopped, and told what it did."""

import contextlib
import os
import re
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from jackstay.core.phase import Phase
from jackstay.testing import call, says
from tests.scenarios.workplace import (
    PLANNED,
    TURN,
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


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Workplace:
    return place(tmp_path, monkeypatch)


def test_1_acting_without_research(work: Workplace) -> None:
    before = work.file("app.conf").read_bytes()
    work.script(says(WRITE), says(WRITE), says("[HARNESS: plan]", WRITE), "I give up.")
    done = work.say("Change the value in app.conf")
    first, second, third = refusals(done)
    assert "No task is declared" in first
    assert f"write {work.file('app.conf')}" in first
    assert second.startswith(
        "Not run, denied by policy: Research Gate: no file may be changed while researching"
    )
    assert f"write {work.file('app.conf')}" in second
    assert "read something first, then propose the plan" in third
    assert work.file("app.conf").read_bytes() == before
    assert work.phase().phase is Phase.TASK_STARTED
    skipped = work.model.requests[-1].notes[-1].text
    assert "planning needs at least one look first: nothing has been read since the task began" in skipped


def test_2_acting_without_an_approved_plan(work: Workplace) -> None:
    work.script(
        *PLANNED,
        says("I take that as a yes.", WRITE),
        set_phase("executing", "my user surely agrees"),
        says(WRITE),
        "I wait.",
    )
    work.say("Change the value in app.conf")
    done = work.say("Hm, what would that cost?")
    written, approved, again = refusals(done)
    for text in (written, again):
        assert "Proposal Gate: waiting for your user's 可以 / go ahead on the plan" in text
        assert f"write {work.file('app.conf')}" in text
        assert "forbidden" not in text
    assert "an agent cannot approve its own plan" in approved
    assert work.phase().phase is Phase.PLANNING
    assert work.git("status", "--porcelain") == ""


def test_3_changing_without_a_backup(work: Workplace) -> None:
    """No write without its copy: what is too large to be copied is not written, what is written comes back."""
    with work.file("huge.bin").open("wb") as huge:
        huge.truncate(70_000_000)
    executing(
        work,
        says(call("bash", command="echo x > huge.bin")),
        says(call("bash", command="echo gone > app.conf")),
        "Stopped.",
    )
    before = work.file("app.conf").read_bytes()
    done = work.say("go ahead")
    assert told(done)[4:] == [
        *TURN[1:], "action_start", "blocked by modify: bash", "start bash", "refused bash", "action_end", *TURN,
        "action_start", "backup app.conf", "start bash", "done bash", "phase executing -> modifying",
        "action_end", "skill change-safeguard", "guidance modifying", *TURN, "run_end answered",
    ]  # fmt: skip
    assert (
        f"Modify Gate: {work.file('huge.bin')} cannot be backed up, so it is not written" in refusals(done)[0]
    )
    assert work.file("huge.bin").stat().st_size == 70_000_000
    assert work.file("app.conf").read_bytes() == b"gone\n"
    (kept,) = work.backups.list(path=str(work.file("app.conf")))
    work.backups.restore(kept.id)
    assert work.file("app.conf").read_bytes() == before


MASTER = """#!{python}
# Stands in for ssh with ControlPersist: answers, and leaves a process with its control socket that a signal ends.
import os, signal, socket, sys, time
path = os.path.expanduser("~/.ssh/cm-box")
if os.fork() == 0:
    os.setsid()
    socket.socket(socket.AF_UNIX).bind(path)
    for stream in (0, 1, 2):
        os.dup2(os.open(os.devnull, os.O_RDWR), stream)
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
    wait = "import os, signal; open({pid!r}, 'w').write(str(os.getpid())); "
    wait += "signal.sigwait([signal.SIGTERM]); os.unlink(" + repr(path) + ")"
    os.execv(sys.executable, ["ssh: " + path + " [mux]", "-c", wait])
while not os.path.exists({pid!r}) or not os.path.getsize({pid!r}):
    time.sleep(0.01)
print("up 3 days")
"""


@pytest.fixture
def master(work: Workplace) -> Iterator[Path]:
    pid = work.root / "master.pid"
    work.program("ssh", MASTER.format(python=sys.executable, pid=str(pid)))
    yield pid
    if pid.exists():
        end(int(pid.read_text()))


def end(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def test_4_not_cleaning_up(work: Workplace, master: Path) -> None:
    """An SSH master with its socket, a temporary file and an uncommitted change, one by one found and named."""
    left = work.temporary / "left.txt"
    executing(
        work,
        says(call("bash", command="ssh -o ControlMaster=auto -o ControlPersist=yes box uptime")),
        set_phase("executing"),
        says(call("bash", command=f"date > {left}")),
        says(call("edit", file_path="app.conf", old_string="a=1", new_string="a=2")),
        "All done.\n[HARNESS: done]",
        checks(
            "credential_scan", "skill_update", "decision_record", "registration_check", "information_storage",
            "baseline_comparison", "commit_housekeeping",
        ),
        "All is clean, I promise.\n[HARNESS: done]",
        "As I said.",
    )  # fmt: skip
    done = work.say("go ahead")
    pid, socket = int(master.read_text()), work.user / ".ssh" / "cm-box"
    compared, committed = texts(done, "closure_check")[-2:]
    assert f"an SSH connection is open (pid {pid}: ssh: {socket} [mux]" in compared
    assert f"an SSH control socket is left: {socket}" in compared
    assert f"a temporary file is left: {left}" in compared
    assert "Uncommitted changes (1): app.conf" in committed
    assert told(done)[-9:] == [
        "guidance closing", *TURN, "blocked by closure: marker done", "guidance closing", *TURN,
        "warning", "run_end answered",
    ]  # fmt: skip
    assert work.phase().phase is Phase.CLOSING

    work.script(
        says(call("bash", command=f"kill {pid}"), call("bash", command=f"rm {left}")),
        *["I have ended what I had begun."] * 3,
        checks("baseline_comparison", "credential_scan", "commit_housekeeping"),
        "Clean now.\n[HARNESS: done]",
    )
    cleaned = work.say("Clean up after yourself")
    assert refusals(cleaned) == []
    wait_until_gone(pid, socket)
    closed = work.say("leave it uncommitted")
    assert refusals(closed) == []
    assert told(closed)[-2:] == ["phase closing -> no_task", "run_end answered"]
    assert (left.exists(), socket.exists()) == (False, False)
    assert work.git("status", "--porcelain") == "M app.conf"


def wait_until_gone(pid: int, socket: Path) -> None:
    """Until the process is gone, or a zombie that nobody has reaped, and its socket with it."""
    commands = Path(f"/proc/{pid}/cmdline")
    while socket.exists() or (commands.exists() and commands.read_bytes()):
        os.sched_yield()


def test_4_a_background_process_is_found_by_its_session_s_mark_and_closing_lets_it_be_ended(
    work: Workplace,
) -> None:
    executing(
        work,
        says(call("bash", command="sleep 600 > sleep.log 2>&1 &")),
        "All done.\n[HARNESS: done]",
        checks("baseline_comparison"),
        "As I said.",
    )
    compared = texts(work.say("go ahead"), "closure_check")[0]
    found = re.search(r"a process is still running \(pid (\d+): sleep 600\)", compared)
    assert found is not None, compared
    pid = int(found[1])
    try:
        work.script(
            says(call("bash", command="kill 1")), says(call("bash", command=f"kill {pid}")), *["Ended."] * 3
        )
        ended = work.say("Clean up")
        assert [line for line in told(ended) if line.endswith(" bash")] == [
            "blocked by closure: bash", "start bash", "refused bash", "start bash", "done bash",
        ]  # fmt: skip
    finally:
        end(pid)
    wait_until_gone(pid, work.user / "none")
    work.script(checks("baseline_comparison"), *["Ended."] * 3)
    assert refusals(work.say("Check again")) == []


def test_5_mixing_phases(work: Workplace) -> None:
    """Research, planning and work in one breath: each part is judged by the phase that holds at that moment."""
    work.script(
        says(
            "[HARNESS: task_started]\nLet me look and change at once.",
            call("read", file_path="app.conf"),
            WRITE,
            call("discipline_set_phase", phase="modifying", reason="I am changing things"),
        ),
        says("[HARNESS: plan]", WRITE),
        "The plan.\n\n[HARNESS: plan]",
        says("Closing and changing.\n[HARNESS: done]", WRITE),
        "Stopped.",
        "Stopped.",
        "Stopped.",
    )
    mixed = work.say("Change the value in app.conf")
    assert told(mixed) == [
        "run_start", *TURN, "phase no_task -> task_started",
        "action_start", "start read", "done read", "blocked by research: write", "start write", "refused write",
        "start discipline_set_phase", "failed discipline_set_phase", "warning", "action_end",
        "skill pre-action-research", "guidance task_started", *TURN, "phase task_started -> planning",
        "action_start", "blocked by proposal: write", "start write", "refused write", "action_end",
        "guidance planning", *TURN, "run_end answered",
    ]  # fmt: skip
    assert "set_phase modifying does nothing in task_started" in refusals(mixed)[1]
    closing = work.say("go ahead")
    assert told(closing)[:8] == [
        "run_start", "phase planning -> executing", "guidance executing", *TURN, "phase executing -> closing",
        "action_start", "blocked by closure: write",
    ]  # fmt: skip
    assert "Closure Gate: only [HARNESS: done] leaves closing" in refusals(closing)[0]
    assert work.git("status", "--porcelain") == ""
