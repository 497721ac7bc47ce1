"""Every decision of a gate leaves one record that can be counted, and no secret."""

import multiprocessing
import stat
from pathlib import Path

from jackstay.core.messages import ToolCall
from jackstay.core.phase import Phase
from jackstay.policy.happenings import Blocked
from jackstay.ward.audit import Audit, AuditRecord, record_of

CALL = ToolCall("c1", "bash", {"command": "PGPASSWORD=hunter2 psql", "env": {"password": "hunter2"}})


def record(
    at: float, gate: str = "research", tool: str = "bash", phase: str = "task_started", verdict: str = "deny"
) -> AuditRecord:
    return AuditRecord(at, "s1", phase, gate, tool, "{}", f"gate:{gate}", "because", verdict)


def test_a_record_says_who_what_why_and_keeps_no_secret() -> None:
    made = record_of(
        Blocked("research", Phase.TASK_STARTED, "bash", "the password is hunter2", "deny"),
        CALL,
        session="s1",
        rule="gate:research",
        at=7.5,
    )
    assert made == AuditRecord(
        7.5, "s1", "task_started", "research", "bash",
        '{"command":"PGPASSWORD=[redacted:command-password] psql","env":{"password":"[redacted:password]"}}',
        "gate:research", "the password is [redacted:password-in-words]", "deny",
    )  # fmt: skip


def test_counts_by_gate_phase_and_tool_since_a_time(tmp_path: Path) -> None:
    audit = Audit(tmp_path)
    audit.append(record(1), record(2, "closure", "write", "closing"), record(3), record(4, verdict="ask"))
    summary = audit.summary(since=2, recent=2)
    assert (summary.total, summary.by_gate, summary.by_phase, summary.by_tool, summary.by_verdict) == (
        3, {"research": 2, "closure": 1}, {"task_started": 2, "closing": 1}, {"bash": 2, "write": 1}, {"deny": 2, "ask": 1},
    )  # fmt: skip
    assert [one.at for one in summary.recent] == [3, 4]
    assert [one.at for one in audit.records()] == [1, 2, 3, 4]


def test_w12_an_empty_home_and_foreign_lines_are_no_crash(tmp_path: Path) -> None:
    audit = Audit(tmp_path)
    assert audit.summary().total == 0
    audit.append()
    audit.append(record(1))
    with (tmp_path / "audit/gates.jsonl").open("ab") as file:
        file.write(b'\xff\xfe junk\n{"at": "yesterday"}\n[]\n\n{"at": 2.0, "torn')
    audit.append(record(3))
    summary = audit.summary()
    assert (summary.total, summary.unreadable) == (2, 4)  # what follows a torn record is not lost with it


def test_the_file_is_the_owner_s_alone(tmp_path: Path) -> None:
    Audit(tmp_path).append(record(1))
    assert stat.S_IMODE((tmp_path / "audit/gates.jsonl").stat().st_mode) == 0o600
    assert stat.S_IMODE((tmp_path / "audit").stat().st_mode) == 0o700


def _append_many(home: str, worker: int) -> None:
    audit = Audit(home)
    for number in range(200):
        audit.append(record(number, tool=f"tool{worker}"))


def test_processes_that_append_at_once_lose_nothing(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    workers = [context.Process(target=_append_many, args=(str(tmp_path), worker)) for worker in range(3)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    summary = Audit(tmp_path).summary()
    assert (summary.total, summary.unreadable) == (600, 0)
    assert set(summary.by_tool.values()) == {200}
