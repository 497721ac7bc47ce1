"""The shared layer: one session of a host, moment by moment, without a host."""

import sqlite3
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from jackstay.core.errors import JackstayError
from jackstay.core.phase import Phase
from jackstay.hosts.judge import HostCall, Judge, Verdict
from jackstay.hosts.names import CLAUDE_CODE
from jackstay.hosts.state import Session
from jackstay.ward.audit import Audit
from jackstay.ward.backup import Backups

ME = Session("claude-code", "s1")


class Desk:
    """A judge with a project, and calls as a host makes them."""

    def __init__(self, tmp_path: Path) -> None:
        self.project, self.home = tmp_path / "project", tmp_path / "home"
        self.project.mkdir()
        self.judge = Judge(self.home, CLAUDE_CODE)
        self.count = 0

    def call(self, tool: str, **args: object) -> HostCall:
        self.count += 1
        return HostCall(f"toolu_{self.count}", tool, dict(args), str(self.project), str(self.project))

    def before(self, tool: str, *, session: Session = ME, can_ask: bool = False, **args: object) -> Verdict:
        return self.judge.before_call(session, self.call(tool, **args), can_ask=can_ask)

    def runs(self, tool: str, *, session: Session = ME, **args: object) -> str:
        call = self.call(tool, **args)
        assert self.judge.before_call(session, call, can_ask=False).answer == "allow"
        after = self.judge.after_call(session, call)
        assert not after.unjudged
        return after.answer or after.text

    def says(self, text: str) -> None:
        self.judge.assistant_said(ME, text, str(self.project))

    def hears(self, text: str) -> str:
        return self.judge.user_said(ME, text, str(self.project))

    @property
    def phase(self) -> Phase:
        found = self.judge.store.read(ME)
        assert found is not None
        return found.policy.phase.phase

    def approved(self) -> None:
        self.says("[HARNESS: task_started]")
        self.runs("Read", file_path="a.txt")
        self.says("Put b into a.\n[HARNESS: plan]")
        self.hears("go ahead")


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


def test_the_way_of_a_task(desk: Desk) -> None:
    """From the first refused write to the last tick."""
    (desk.project / "a.txt").write_text("a")
    assert "task_started" in desk.judge.session_started(ME, str(desk.project))
    assert desk.before("Write", file_path="a.txt", content="b").answer == "deny"
    assert desk.phase is Phase.TASK_STARTED
    assert desk.before("Write", file_path="a.txt", content="b").answer == "deny", (
        "the same again is refused again"
    )
    desk.runs("Bash", command="cat a.txt")
    desk.says("Put b into a.\n[HARNESS: plan]")
    desk.hears("可以吗？")
    assert desk.phase is Phase.PLANNING
    desk.hears("可以")
    assert desk.phase is Phase.EXECUTING
    assert "modifying" in desk.runs("Write", file_path="a.txt", content="b")
    assert desk.phase is Phase.MODIFYING
    kept = Backups(desk.home).list(path=str(desk.project / "a.txt"))
    assert [copy.was for copy in kept[0].copies] == ["file"]
    desk.says("[HARNESS: done]")
    assert desk.judge.keeps_going(ME, str(desk.project)) is not None
    desk.says("[HARNESS: done]")
    assert desk.phase is Phase.CLOSING
    own = "mcp__jackstay__closure_check"
    for item in ("skill_update", "decision_record", "registration_check", "information_storage"):
        desk.runs(own, item=item, evidence="looked: nothing to be recorded for a one-letter change")
    for item in ("credential_scan", "baseline_comparison", "commit_housekeeping"):
        desk.runs(
            own,
            item=item,
            evidence="git, port, disk, temporary, process, unit, connection: of other programs here",
        )
    assert desk.judge.keeps_going(ME, str(desk.project)) is None
    desk.says("[HARNESS: done]")
    assert desk.phase is Phase.NO_TASK
    gates = [record.gate for record in Audit(desk.home).records()]
    assert gates[:2] == ["start", "research"]


def test_a_question_is_kept_and_passes_once(desk: Desk) -> None:
    """Nobody can be asked: the call waits in our store, and passes once after a person said yes."""
    desk.judge.session_started(ME, str(desk.project))
    desk.says("[HARNESS: task_started]")
    desk.runs("Read", file_path="a.txt")
    desk.says("[HARNESS: plan]")
    asked = desk.before("Write", file_path="a.txt", content="b")
    assert (asked.answer, bool(asked.question)) == ("deny", True)
    assert asked.question in asked.reason
    assert [one.id for one in desk.judge.store.questions()] == [asked.question]
    assert desk.judge.store.answer(asked.question, "approve", by="ada")
    other = desk.before("Write", file_path="a.txt", content="c")
    assert (other.answer, other.question != asked.question) == ("deny", True)
    assert desk.before("Write", file_path="a.txt", content="b") == Verdict("allow", "", True, "")
    assert desk.before("Write", file_path="a.txt", content="b").answer == "deny"


def test_in_a_dialog_the_host_asks(desk: Desk) -> None:
    desk.judge.session_started(ME, str(desk.project))
    desk.says("[HARNESS: task_started]")
    desk.runs("Read", file_path="a.txt")
    desk.says("[HARNESS: plan]")
    assert desk.before("Write", can_ask=True, file_path="a.txt", content="b").answer == "ask"
    assert desk.judge.store.questions() == []


def test_a_subagent_is_bound_by_its_session(desk: Desk) -> None:
    desk.says("[HARNESS: task_started]")
    desk.judge.session_started(ME, str(desk.project))
    desk.judge.assistant_said(ME, "[HARNESS: task_started]", str(desk.project))
    by_agent, by_id = Session(ME.host, ME.id, "agent1"), Session(ME.host, "child")
    desk.judge.store.link(ME.host, "child", ME.id, "subagent")
    for child in (by_agent, by_id):
        assert desk.before("Bash", session=child, command="touch x").answer == "deny"
        move = desk.before(
            "mcp__jackstay__discipline_set_phase", session=child, phase="executing", reason="now"
        )
        assert move.answer == "deny"
        desk.judge.assistant_said(child, "[HARNESS: casual]", str(desk.project))
    assert desk.phase is Phase.TASK_STARTED


def test_a_continued_session_goes_on(desk: Desk) -> None:
    desk.judge.assistant_said(ME, "[HARNESS: task_started]", str(desk.project))
    desk.judge.store.link(ME.host, "after-compression", ME.id, "continued")
    desk.runs("Read", session=Session(ME.host, "after-compression"), file_path="a.txt")
    desk.judge.assistant_said(Session(ME.host, "after-compression"), "[HARNESS: plan]", str(desk.project))
    assert desk.phase is Phase.PLANNING


@pytest.mark.parametrize(
    "command",
    [
        "claude -p hello --safe-mode", "jackstay host approve abc", "jackstay phase set s executing --reason x",
        "env claude", "cd /tmp && hermes plugins disable work-principles", "python -m jackstay.cli.main approve x",
        "npx @anthropic-ai/claude-code", "echo '{\"disableAllHooks\": true}' > x.json",
    ],
)  # fmt: skip
def test_nothing_disarms_the_harness(desk: Desk, command: str) -> None:
    desk.approved()
    assert desk.phase is Phase.EXECUTING
    assert desk.before("Bash", command=command, can_ask=True).answer == "deny"


@pytest.mark.parametrize(
    "command", ["claude --version", "jackstay doctor", "jackstay audit --json", "jackstay host status"]
)
def test_looking_at_the_harness_is_no_offence(desk: Desk, command: str) -> None:
    desk.approved()
    assert desk.before("Bash", command=command).answer == "allow"


def test_a_call_nobody_judged_is_told(desk: Desk) -> None:
    desk.approved()
    assert desk.judge.after_call(ME, desk.call("Bash", command="touch x")).unjudged
    assert [record.gate for record in Audit(desk.home).records()] == ["unjudged"]


def test_parallel_calls_lose_nothing(desk: Desk) -> None:
    """200 calls from 8 threads, each with a judge of its own: every one is refused, the gate stays armed."""
    desk.says("[HARNESS: task_started]")
    calls = [desk.call("Bash", command=f"touch f{number}") for number in range(100)]
    reads = [desk.call("Read", file_path=f"f{number}") for number in range(100)]

    def judged(pair: tuple[HostCall, HostCall]) -> tuple[str, str]:
        mine = Judge(desk.home, CLAUDE_CODE)
        try:
            answers = tuple(mine.before_call(ME, call, can_ask=False).answer for call in pair)
            mine.after_call(ME, pair[1])
        finally:
            mine.store.close()
        return answers[0], answers[1]

    with ThreadPoolExecutor(8) as pool:
        found = set(pool.map(judged, zip(calls, reads, strict=True)))
    assert found == {("deny", "allow")}
    assert desk.phase is Phase.TASK_STARTED


def _break(path: Path, how: str) -> None:
    if how == "junk":
        path.write_bytes(b"[]" * 4096)
    elif how == "newer":
        with sqlite3.connect(path) as connection:
            connection.execute("PRAGMA user_version = 99")
        connection.close()
    elif how == "foreign":
        path.unlink()
        with sqlite3.connect(path) as connection:
            connection.execute("CREATE TABLE other (x)")
        connection.close()
    else:
        path.unlink()
        path.mkdir()


@pytest.mark.parametrize("how", ["junk", "newer", "foreign", "folder"])
def test_a_broken_store_raises(desk: Desk, how: str) -> None:
    """The adapter blocks on whatever is raised here."""
    desk.approved()
    desk.judge.store.close()
    for companion in desk.home.glob("hosts.db-*"):
        companion.unlink()
    _break(desk.home / "hosts.db", how)
    with pytest.raises(JackstayError, match=r"hosts\.db"):
        desk.before("Bash", command="touch x")


def test_a_broken_row_goes_on_as_lost(desk: Desk) -> None:
    desk.approved()
    desk.judge.store.close()
    with sqlite3.connect(desk.home / "hosts.db") as connection:
        connection.execute("UPDATE sessions SET state = ?", (b'{"policy": {"phase": {"phase": "bogus"}}}',))
    connection.close()
    assert desk.before("Bash", command="touch x").answer == "deny"
    assert desk.phase is Phase.TASK_STARTED


def test_a_row_of_another_version_is_left_alone(desk: Desk) -> None:
    desk.approved()
    desk.judge.store.close()
    with sqlite3.connect(desk.home / "hosts.db") as connection:
        connection.execute("UPDATE sessions SET state = ?", (b'{"schema": 2, "phase": "executing"}',))
    connection.close()
    with pytest.raises(JackstayError, match="newer"):
        desk.before("Bash", command="touch x")
