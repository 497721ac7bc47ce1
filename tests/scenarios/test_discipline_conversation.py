"""One task through all phases in two languages, as whole event lists (second seed §16.3; spec 03)."""

from dataclasses import dataclass
from pathlib import Path

import pytest

from jackstay.core.events import BackupTakenEvent, GateBlockedEvent, GuidanceEvent
from jackstay.core.phase import Phase
from jackstay.policy.guidance import tokens
from jackstay.testing import call, says
from tests.scenarios.workplace import TOKEN, TURN, Workplace, checks, place, refusals, set_phase, texts, told


@dataclass(frozen=True)
class Words:
    """What the person says, and how the harness begins its refusals in their language."""

    task: str
    question: str
    approval: str
    commit: str
    research: str
    closure: str
    commit_asked: str


CONVERSATIONS = {
    "en": Words(
        "Please set a to 2 in app.conf and prepare the deployment",
        "Can we go ahead with that?",
        "go ahead",
        "commit",
        "Research Gate: no file may be changed while researching",
        "closing is not finished, still open: credential_scan",
        "Uncommitted changes (2): app.conf, deploy.env",
    ),
    "zh": Words(
        "请把 app.conf 里的 a 改成 2，并准备部署",
        "可以吗？",
        "可以",
        "提交",
        "Research Gate: 调研阶段不允许修改文件",
        "关闭检查未完成，尚缺：credential_scan",
        "未提交的修改（2）：app.conf, deploy.env",
    ),
}

EDIT = {"file_path": "app.conf", "old_string": "a=1", "new_string": "a=2"}
SCRIPT = (
    says("[HARNESS: task_started]", call("write", file_path="app.conf", content="a=2\n")),
    says(call("read", file_path="app.conf")),
    "a becomes 2 in one step; the other way would be a new file.\n\n[HARNESS: plan]",
    "That is for you to say.",
    says(call("edit", **EDIT)),
    says(call("read", file_path="app.conf")),
    set_phase("executing"),
    says(call("bash", command="ssh box uptime")),
    set_phase("executing"),
    says(call("write", file_path="deploy.env", content=f"token={TOKEN}\n")),
    "Finished.\n[HARNESS: done]",
    "[HARNESS: done]",
    checks("credential_scan"),
    says(call("write", file_path="deploy.env", content="token_from=store\n")),
    checks(
        "credential_scan", "skill_update", "decision_record", "registration_check", "information_storage",
        "baseline_comparison", "commit_housekeeping",
    ),
    "May these be committed?",
    checks("commit_housekeeping"),
    "All is closed.\n[HARNESS: done]",
)  # fmt: skip

CLOSING_TURN = ["guidance closing", *TURN]
ASKED_FOR = [
    "run_start", *TURN, "phase no_task -> task_started",
    "action_start", "blocked by research: write", "start write", "refused write", "action_end",
    "skill pre-action-research", "guidance task_started", *TURN,
    "action_start", "start read", "done read", "action_end",
    "guidance task_started", *TURN, "phase task_started -> planning", "run_end answered",
]  # fmt: skip
QUESTIONED = ["run_start", "guidance planning", *TURN, "run_end answered"]
APPROVED = [
    "run_start", "phase planning -> executing", "guidance executing", *TURN,
    "action_start", "backup app.conf", "start edit", "done edit", "phase executing -> modifying", "action_end",
    "skill change-safeguard", "guidance modifying", *TURN,
    "action_start", "start read", "done read", "action_end",
    "guidance modifying", *TURN,
    "action_start", "start discipline_set_phase", "done discipline_set_phase", "phase modifying -> executing",
    "action_end", *TURN,
    "action_start", "phase executing -> accessing_device", "start bash", "done bash", "action_end",
    "skill credential-store-management", "guidance accessing_device", *TURN,
    "action_start", "start discipline_set_phase", "done discipline_set_phase",
    "phase accessing_device -> executing", "action_end", *TURN,
    "action_start", "backup deploy.env", "start write", "done write", "phase executing -> modifying",
    "action_end", "guidance modifying", *TURN,
    "phase modifying -> closing", "skill work-closure-check", *CLOSING_TURN,
    "blocked by closure: marker done", *CLOSING_TURN,
    "action_start", "start closure_check", "failed closure_check", "action_end", *CLOSING_TURN,
    "action_start", "backup deploy.env", "start write", "done write", "action_end", *CLOSING_TURN,
    "action_start", *(["start closure_check", "done closure_check"] * 6),
    "start closure_check", "failed closure_check", "action_end", *CLOSING_TURN,
    "warning", "run_end answered",
]  # fmt: skip
COMMITTED = [
    "run_start", *CLOSING_TURN, "action_start", "start closure_check", "done closure_check", "action_end",
    *CLOSING_TURN, "phase closing -> no_task", "run_end answered",
]  # fmt: skip


@pytest.fixture(params=CONVERSATIONS)
def words(request: pytest.FixtureRequest) -> Words:
    return CONVERSATIONS[request.param]


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Workplace:
    made = place(tmp_path, monkeypatch)
    made.program("ssh", "#!/bin/sh\necho up 3 days\n")
    return made


def test_a_task_through_all_phases(work: Workplace, words: Words) -> None:
    before = work.file("app.conf").read_bytes()
    work.script(*SCRIPT)

    asked = work.say(words.task)
    assert told(asked) == ASKED_FOR
    assert words.research in refusals(asked)[0]
    assert work.file("app.conf").read_bytes() == before

    assert told(work.say(words.question)) == QUESTIONED
    assert work.phase().phase is Phase.PLANNING

    worked = work.say(words.approval)
    assert told(worked) == APPROVED
    assert "up 3 days" in texts(worked, "bash")[0]
    bypass = next(event for event in worked if isinstance(event, GateBlockedEvent))
    assert words.closure in bypass.reason
    found = texts(worked, "closure_check")[0]
    assert f"{work.file('deploy.env')}:1 holds a github-token" in found
    assert TOKEN not in found
    assert words.commit_asked in texts(worked, "closure_check")[-1]

    assert told(work.say(words.commit)) == COMMITTED
    assert work.phase().phase is Phase.NO_TASK
    assert work.git("status", "--porcelain") == ""
    assert work.git("show", "HEAD:deploy.env") == "token_from=store"
    work.model.finish()

    taken = next(event for event in worked if isinstance(event, BackupTakenEvent))
    work.file("app.conf").chmod(0o777)
    assert work.backups.restore(taken.backup_id) == (str(work.file("app.conf")),)
    assert work.file("app.conf").read_bytes() == before
    assert work.file("app.conf").stat().st_mode & 0o777 == 0o640

    said = [event for event in (*asked, *worked) if isinstance(event, GuidanceEvent)]
    for event in said:
        assert tokens(event.text) <= (400 if event.phase is Phase.CLOSING else 200), event.text
