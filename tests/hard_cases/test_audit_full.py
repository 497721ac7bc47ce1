"""What cannot be written down does not happen: a full disk under the audit record, for real, while work goes on."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from jackstay.core.phase import Phase
from jackstay.hosts.judge import HostCall, Judge
from jackstay.hosts.names import CLAUDE_CODE
from jackstay.hosts.state import Session
from jackstay.tools.schema import tool
from jackstay.ward.audit import Audit, AuditFailed, AuditRecord
from tests.cli.command import ROOT, Jackstay, bash
from tests.cli.test_discipline import PLAN, edit, planned
from tests.elsewhere import Place, ask, asks, order, reply

WHY = "the audit record cannot be written: [Errno 28] No space left on device; make room or mend the home directory"


def fill(home: Path) -> None:
    """From now on the audit record is on a device that is full."""
    file = home / "audit" / "gates.jsonl"
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    if file.exists():
        file.rename(file.with_name("before"))
    file.symlink_to("/dev/full")


def mend(home: Path) -> None:
    """There is room again, and what was written is there."""
    file = home / "audit" / "gates.jsonl"
    file.unlink()
    if file.with_name("before").exists():
        file.with_name("before").rename(file)


def record(at: float) -> AuditRecord:
    return AuditRecord(at, "s1", "task_started", "research", "bash", "{}", "gate:research", "because", "deny")


# -- the record itself -------------------------------------------------------------------------------------


def test_a_record_that_was_cut_by_a_full_disk_takes_no_other_with_it(tmp_path: Path) -> None:
    audit = Audit(tmp_path)
    audit.append(record(1))
    size = (tmp_path / "audit" / "gates.jsonl").stat().st_size
    child = os.fork()
    if child == 0:  # whose files cannot grow: ten bytes of the record are written, the rest has no room
        import resource
        import signal

        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (size + 10, size + 10))
        try:
            audit.append(record(2))
        except AuditFailed:
            os._exit(7)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    assert (tmp_path / "audit" / "gates.jsonl").stat().st_size == size + 10
    audit.append(record(3))
    assert [one.at for one in audit.records()] == [1, 3]
    assert audit.summary().unreadable == 1


# -- our own runs ------------------------------------------------------------------------------------------


def test_the_disk_fills_while_a_run_goes_on_and_nothing_more_runs(place: Place) -> None:
    home = place.folder / "home"

    @tool(effects={"reads"})
    async def look(name: str) -> str:
        """Look; meanwhile the disk fills up."""
        fill(home)
        return f"saw {name}"

    @tool(effects={"writes"})
    async def put(name: str) -> str:
        """Write."""
        place.count(name)
        return f"put {name}"

    early = reply(asks("put", "p1"), say="[HARNESS: task_started]")
    turns = (early, reply(asks("look", "l1")), reply(asks("put", "p2")), "I see.")
    settings: dict[str, Any] = {"tools": (look, put), "discipline": "strict", "harness_home": str(home)}
    with pytest.raises(AuditFailed) as failed:
        ask(place.engine(*turns, **settings))
    assert str(failed.value) == WHY
    assert (place.counted, place.state.outcome, place.state.policy.phase.phase) == (
        {},
        None,
        Phase.TASK_STARTED,
    )

    with pytest.raises(AuditFailed):  # still full: asking again changes nothing
        ask(place.engine(*turns, **settings), None)
    mend(home)
    done = ask(place.engine(*turns, **settings), None)
    assert order(done)[-2:] == ["reason_end", "run_end"]
    assert [one.tool for one in Audit(home).records()] == ["put", "put"]
    assert place.counted == {}


def test_a_question_that_cannot_be_written_down_is_not_asked(jackstay: Jackstay) -> None:
    fill(jackstay.home)
    model = jackstay.script(bash("touch x"), "Done.")
    done = jackstay("run", "--discipline", "observe", "--model", model, "--session", "s1", "go", "--json")
    assert (done.code, done.err) == (1, f"jackstay: {WHY}\n")
    assert "hitl_pending" not in done.kinds
    assert jackstay("pending").out == "nothing waits\n"
    mend(jackstay.home)
    assert jackstay("resume", "s1").code == 3
    assert not (jackstay.workspace / "x").exists()


@pytest.mark.parametrize(
    "words",
    [("approve", "s1", "--plan"), ("phase", "set", "s1", "executing", "--reason", "I say so")],
    ids=["approve", "phase set"],
)
def test_what_a_person_commands_counts_only_when_it_is_on_record(
    jackstay: Jackstay, words: tuple[str, ...]
) -> None:
    planned(jackstay, edit("5", "30"), "Done.")
    fill(jackstay.home)
    refused = jackstay(*words)
    assert (refused.code, refused.err) == (1, f"jackstay: {WHY}\n")
    (waiting,) = jackstay("pending", "--json").objects
    assert waiting["plan"] == PLAN
    assert jackstay("resume", "s1").code == 3
    assert (jackstay.workspace / "settings.ini").read_text() == "timeout = 5\n"
    mend(jackstay.home)
    assert jackstay(*words).code == 0


FULL_HOME = """
import json, os, subprocess, sys
home, work, argv = sys.argv[1], sys.argv[2], sys.argv[3:]
subprocess.run(["mount", "-t", "tmpfs", "-o", "size=512k,mode=700", "home", home], check=True)
def jackstay(*words):
    done = subprocess.run([*argv, *words], cwd=work, capture_output=True, text=True, check=False)
    return [done.returncode, done.stdout, done.stderr]
said = {"planned": jackstay("run", "--session", "s1", "set it")}
with open(f"{home}/filler", "wb", buffering=0) as filler:
    for size in (4096, 64, 1):
        try:
            while True:
                filler.write(b"x" * size)
        except OSError:
            pass
said["approve"] = jackstay("approve", "s1", "--plan")
said["run"] = jackstay("run", "--session", "s1", "do it at once")
said["resume"] = jackstay("resume", "s1")
said["file"] = open(f"{work}/settings.ini").read()
os.unlink(f"{home}/filler")
said["approved"] = jackstay("approve", "s1", "--plan")
said["resumed"] = jackstay("resume", "s1")
said["changed"] = open(f"{work}/settings.ini").read()
print(json.dumps(said))
"""


MENDS = ("free some space", "make room", "check the disk and its quota")


def test_a_home_on_a_full_disk_lets_nothing_happen_and_loses_nothing(jackstay: Jackstay) -> None:
    jackstay.home.mkdir()
    (jackstay.workspace / "settings.ini").write_text("timeout = 5\n")
    looks = {"say": "[HARNESS: task_started]", "calls": [{"tool": "ls", "args": {}}]}
    jackstay.env["JACKSTAY_MODEL"] = jackstay.script(looks, PLAN, edit("5", "30"), "Done.")
    done = subprocess.run(
        ["unshare", "--map-root-user", "--mount", sys.executable, "-c", FULL_HOME, str(jackstay.home),
         str(jackstay.workspace), sys.executable, "-m", "jackstay"],
        env=jackstay.env, capture_output=True, text=True, timeout=60, check=False, cwd=ROOT,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    assert said["planned"][0] == 3
    for name in ("approve", "run", "resume"):
        code, _, error = said[name]
        assert code == 3 or (code == 1 and any(word in error for word in MENDS)), said[name]
    assert said["approve"][0] == said["run"][0] == 1
    assert said["file"] == "timeout = 5\n"
    assert (said["approved"][0], said["resumed"][0], said["changed"]) == (0, 0, "timeout = 30\n")


# -- hosts -------------------------------------------------------------------------------------------------


def test_a_host_s_refusal_that_cannot_be_written_down_is_a_block_that_says_so(tmp_path: Path) -> None:
    project, home = tmp_path / "project", tmp_path / "home"
    project.mkdir()
    fill(home)
    event = {
        "hook_event_name": "PreToolUse", "session_id": "s1", "cwd": str(project), "tool_name": "Write",
        "tool_input": {"file_path": str(project / "a"), "content": "b"}, "tool_use_id": "toolu_1",
    }  # fmt: skip
    hook = [sys.executable, "-m", "jackstay.cli.hook", "claude-code", "--home", str(home)]
    env = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "PYTHONPATH": str(ROOT / "src")}
    done = subprocess.run(
        hook, input=json.dumps(event).encode(), capture_output=True, env=env, timeout=60, check=False
    )
    assert (done.returncode, done.stdout) == (2, b"")
    assert WHY in done.stderr.decode()


@pytest.mark.parametrize("mode", ["strict", "guided", "observe"])
def test_in_a_host_nothing_that_needs_a_record_passes_without_one_and_reads_go_on(
    tmp_path: Path, mode: str
) -> None:
    project, home = tmp_path / "project", tmp_path / "home"
    project.mkdir()
    home.mkdir(mode=0o700)
    (home / "config.toml").write_text(f'discipline = "{mode}"\n')
    judge, session = Judge(home, CLAUDE_CODE), Session("claude-code", "s1")
    fill(home)

    def before(call_id: str, name: str, **args: object) -> str:
        call = HostCall(call_id, name, dict(args), str(project), str(project))
        return judge.before_call(session, call, can_ask=True).answer

    assert before("toolu_1", "Read", file_path="a.txt") == "allow"
    with pytest.raises(AuditFailed):
        before("toolu_2", "Write", file_path="a.txt", content="b")
    mend(home)
    assert before("toolu_3", "Write", file_path="a.txt", content="b") == {
        "strict": "deny", "guided": "ask", "observe": "allow",
    }[mode]  # fmt: skip
    assert [one.tool for one in Audit(home).records()] == ["write"]
    judge.store.close()


def test_a_host_s_call_that_nobody_judged_is_not_passed_over_either(tmp_path: Path) -> None:
    project, home = tmp_path / "project", tmp_path / "home"
    project.mkdir()
    judge, session = Judge(home, CLAUDE_CODE), Session("claude-code", "s1")
    fill(home)
    call = HostCall("toolu_1", "Bash", {"command": "touch x"}, str(project), str(project))
    with pytest.raises(AuditFailed):
        judge.after_call(session, call)
    judge.store.close()
