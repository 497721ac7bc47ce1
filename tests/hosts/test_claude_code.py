"""The discipline inside the real Claude Code: whole conversations against a scripted model."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from jackstay.core.phase import Phase
from jackstay.ward.audit import Audit
from jackstay.ward.backup import Backups
from tests.hosts.claude import Claude
from tests.hosts.messages_server import MessagesServer, text, use

pytestmark = [pytest.mark.hosts, pytest.mark.timeout(150)]

OWN = "mcp__jackstay__"
LOOKED = (
    "looked: one file was written; git, port, disk, temporary, process, unit and connection: what differs is of "
    "other programs on this machine"
)


@pytest.fixture
def claude(tmp_path: Path) -> Iterator[Claude]:
    with MessagesServer().running() as server:
        machine = Claude(tmp_path, server).installed()
        yield machine
        machine.dismiss()


def _approved(claude: Claude, *turns: list[dict[str, object]]) -> None:
    """As far as an approved plan, with `turns` for the approving prompt."""
    claude.server.scripts["task"] = [
        [text("[HARNESS: task_started]"), use("Bash", command="ls", description="d")],
        [text("Write it down.\n\n[HARNESS: plan]")],
        *turns,
        [text("done with it")],
    ]
    claude.says("<<task>> please")
    assert claude.phase is Phase.PLANNING
    claude.says("go ahead")


@pytest.mark.case("claude-code", "a whole task, from the first refused write to done", "enforced")
@pytest.mark.case("claude-code", "a question is no approval", "enforced")
@pytest.mark.case("claude-code", "a backup before each write", "enforced")
@pytest.mark.case("claude-code", "an early end of closing", "enforced")
def test_one_task_from_the_first_refusal_to_done(claude: Claude) -> None:
    file = claude.project / "a.txt"
    file.write_text("before\n")
    ticks = [
        use(f"{OWN}closure_check", item=item, evidence=LOOKED)
        for item in ("credential_scan", "skill_update", "decision_record", "registration_check",
                     "information_storage", "baseline_comparison", "commit_housekeeping")
    ]  # fmt: skip
    claude.server.scripts["task"] = [
        [use("Bash", command="echo x > first", description="d")],
        [text("So it is a task.\n\n[HARNESS: task_started]"), use("Read", file_path=str(file))],
        [use("Write", file_path=str(file), content="early\n")],
        [text("My plan: put 'after' into a.txt.\n\n[HARNESS: plan]")],
        [text("Shall I?")],
        [use("Write", file_path=str(file), content="after\n")],
        [use("Bash", command="echo more >> a.txt", description="d")],
        [text("[HARNESS: done]")],
        [text("[HARNESS: done]")],
        [use(f"{OWN}discipline_set_phase", phase="no_task", reason="it is done")],
        ticks,
        [text("All is ticked.\n\n[HARNESS: done]")],
    ]
    claude.says("<<task>> change a.txt")
    assert not (claude.project / "first").exists()
    assert file.read_text() == "before\n"
    assert claude.phase is Phase.PLANNING
    assert "Research Gate" in claude.read_by_model
    claude.says("可以吗？")
    assert claude.phase is Phase.PLANNING
    claude.says("可以")
    assert file.read_text() == "after\nmore\n"
    kept = Backups(claude.home).list(path=str(file))
    assert {copy.was for backup in kept for copy in backup.copies} == {"file"}
    assert len(kept) == 2, "each write has its own backup"
    assert claude.phase is Phase.NO_TASK, claude.read_by_model[-3000:]
    seen = claude.read_by_model
    assert "The closing checklist is open" in seen
    assert "modifying" in seen, "the guidance of a phase that a call has moved to"
    assert [one.gate for one in Audit(claude.home).records()][:2] == ["start", "research"]


@pytest.mark.case("claude-code", "before the plan, all host questions off: {}", "enforced")
@pytest.mark.parametrize(
    "call",
    [
        use("NotebookEdit", notebook_path="{project}/n.ipynb", new_source="x", cell_type="code", edit_mode="insert"),
        use("Edit", file_path="{project}/a.txt", old_string="a", new_string="b"),
        use("Write", file_path="b.txt", content="b"),
        use("Bash", command="cd . && touch b.txt", description="d"),
        use("Bash", command="ls && (cat a.txt; echo > b.txt)", description="d"),
        use("mcp__files__write", path="b.txt"),
    ],
    ids=["NotebookEdit", "Edit", "Write", "cd-and", "subshell", "mcp"],
)  # fmt: skip
def test_what_has_effects_waits_for_the_plan(claude: Claude, call: dict[str, object]) -> None:
    """Under research, with all of the host's own questions switched off; the retry is refused like the first."""
    (claude.project / "a.txt").write_text("a")
    (claude.project / "n.ipynb").write_text('{"cells": [], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}')
    claude.with_files_server()
    place = str(claude.project)
    call = json.loads(json.dumps(call).replace("{project}", place))
    # What was not read is refused by the host before it asks anybody: read first, so that we are asked.
    reads = [use("Read", file_path=f"{place}/{name}") for name in ("a.txt", "n.ipynb")]
    claude.server.scripts["task"] = [
        [text("[HARNESS: task_started]"), *reads],
        [call],
        [call],
        [text("stopped")],
    ]
    result = claude.says("<<task>> go", "--dangerously-skip-permissions")
    assert [one["tool_name"] for one in result["permission_denials"]] == [call["name"]] * 2
    names = sorted(path.name for path in claude.project.iterdir() if not path.name.startswith("."))
    assert names == ["a.txt", "n.ipynb"]
    assert (claude.project / "a.txt").read_text() == "a"
    assert claude.phase is Phase.TASK_STARTED


def test_multiedit_is_no_tool_of_this_version(claude: Claude) -> None:
    """Our table knows it for the versions that have it; this one has not, and says so to the model."""
    file = claude.project / "a.txt"
    file.write_text("a")
    edit = use("MultiEdit", file_path=str(file), edits=[{"old_string": "a", "new_string": "b"}])
    claude.server.scripts["task"] = [[edit], [text("stopped")]]
    claude.says("<<task>> go")
    assert file.read_text() == "a"
    assert "No such tool available: MultiEdit" in claude.read_by_model


@pytest.mark.case("claude-code", "eight calls at once keep the gate", "enforced")
@pytest.mark.case("claude-code", "a subagent of a session under research", "enforced")
def test_parallel_calls_and_a_subagent(claude: Claude) -> None:
    """Eight calls at once do not disarm the gate, and a subagent is bound by its session's phase."""
    touches = [use("Bash", command=f"touch p{number}", description="d") for number in range(4)]
    reads = [use("Read", file_path=str(claude.project / "a.txt")) for _ in range(4)]
    (claude.project / "a.txt").write_text("a")
    claude.server.scripts["task"] = [
        [text("[HARNESS: task_started]"), *reads, *touches],
        [use("Agent", description="d", prompt="<<sub>> write", subagent_type="general-purpose")],
        [text("stopped")],
    ]
    claude.server.scripts["sub"] = [
        [use("Bash", command="touch sub1", description="d")],
        [text("[HARNESS: casual]"), use(f"{OWN}discipline_set_phase", phase="executing", reason="I want to")],
        [use("Bash", command="touch sub2", description="d")],
        [text("[HARNESS: casual]")],
    ]
    claude.says("<<task>> go")
    assert sorted(path.name for path in claude.project.iterdir()) == ["a.txt"]
    refused = [one.gate for one in Audit(claude.home).records()]
    assert refused == ["research"] * 6, "four of the session, two of its subagent"
    assert claude.phase is Phase.TASK_STARTED


@pytest.mark.case("claude-code", "nobody to ask: kept, approved, passes once", "enforced")
def test_headless_question_is_kept_and_passes_once(claude: Claude) -> None:
    """In planning, with nobody to ask: the write waits in our store, and the retried call runs once."""
    write = use("Write", file_path=str(claude.project / "a.txt"), content="b")
    again = use("Bash", command="rm a.txt", description="d")
    claude.server.scripts["task"] = [
        [text("[HARNESS: task_started]"), use("Bash", command="ls", description="d")],
        [text("[HARNESS: plan]")],
        [write], [text("I wait.")],
        [write], [again], [text("written")],
    ]  # fmt: skip
    claude.says("<<task>> go")
    claude.says("what about it?")
    assert not (claude.project / "a.txt").exists()
    line = claude.jackstay("host", "pending").stdout
    assert line.split()[0] in claude.read_by_model
    claude.jackstay("host", "approve", line.split()[0])
    claude.says("somebody has decided, I think")
    assert (claude.project / "a.txt").read_text() == "b"
    assert claude.phase is Phase.PLANNING
    assert "rm a.txt" in claude.jackstay("host", "pending").stdout


@pytest.mark.case("claude-code", "a person's commands, not the model's", "enforced")
def test_a_persons_commands(claude: Claude) -> None:
    """`/approve-plan` and `/phase` are the user's; the model cannot call them."""
    claude.server.scripts["task"] = [
        [text("[HARNESS: task_started]"), use("Bash", command="ls", description="d")],
        [text("[HARNESS: plan]"), use("Skill", skill="approve-plan")],
        [text("waiting")],
        [use("Write", file_path=str(claude.project / "a.txt"), content="b")],
        [text("written")],
        [text("moved")],
    ]
    claude.says("<<task>> go")
    assert claude.phase is Phase.PLANNING
    claude.says("/approve-plan")
    assert (claude.project / "a.txt").read_text() == "b"
    claude.says("/phase planning think again")
    assert claude.phase is Phase.PLANNING


@pytest.mark.case("claude-code", "hooks, home, a host without us", "enforced")
def test_the_agent_cannot_disarm_it(claude: Claude) -> None:
    """With an approved plan and every host question off: no touching of hooks, home, or a host without us."""
    settings = claude.settings.read_text()
    _approved(
        claude,
        [use("Bash", command=f"echo '{{}}' > {claude.settings}", description="d"),
         use("Bash", command="claude -p hi --setting-sources project", description="d"),
         use("Bash", command="jackstay host uninstall claude-code", description="d"),
         use("Bash", command=f"rm -rf {claude.home}", description="d"),
         use("Write", file_path=str(claude.project / ".claude/settings.json"), content='{"disableAllHooks": true}')],
    )  # fmt: skip
    refused = [one.gate for one in Audit(claude.home).records() if one.verdict == "deny"]
    assert refused.count("permission") == 4
    assert "denied by your permission settings" in claude.read_by_model, "the host's own rule, put there by us"
    assert claude.settings.read_text() == settings
    assert (claude.home / "hosts.db").exists()
    assert not (claude.project / ".claude").exists()
    assert claude.phase is Phase.EXECUTING


@pytest.mark.case("claude-code", "the host's plan mode on", "enforced")
def test_plan_mode_changes_nothing(claude: Claude) -> None:
    """The host's own plan mode beside ours: the write is refused, reading is not."""
    claude.server.scripts["task"] = [
        [text("[HARNESS: task_started]"), use("Bash", command="ls", description="d")],
        [use("Bash", command="touch x", description="d")],
        [text("stopped")],
    ]
    claude.says("<<task>> go", "--permission-mode", "plan")
    assert "Research Gate" in claude.read_by_model
    assert not (claude.project / "x").exists()
    assert claude.phase is Phase.TASK_STARTED


@pytest.mark.case("claude-code", "resumed without a record of it", "enforced")
def test_a_resumed_session_goes_on_where_it_was(claude: Claude) -> None:
    """Also without a record of it: then as a lost session, under the research gate."""
    _approved(claude)
    assert claude.phase is Phase.EXECUTING
    for path in claude.home.glob("hosts.db*"):
        path.unlink()
    claude.server.scripts["task"] += [[use("Bash", command="touch x", description="d")], [text("stopped")]]
    assert len(claude.says("go on")["permission_denials"]) == 1
    assert not (claude.project / "x").exists()
    assert claude.phase is Phase.TASK_STARTED


@pytest.mark.case("claude-code", "the plugin folder alone", "enforced")
def test_the_plugin_folder_alone(tmp_path: Path) -> None:
    """Hooks, commands, skills and tools from `--plugin-dir`, nothing in the user's settings."""
    with MessagesServer().running() as server:
        claude = Claude(tmp_path, server)
        folder = tmp_path / "plugin"
        claude.jackstay("host", "install", "claude-code", "--plugin", str(folder))
        assert not claude.settings.exists()
        own = "mcp__plugin_jackstay_jackstay__"
        server.scripts["task"] = [
            [use(f"{own}discipline_set_phase", phase="task_started", reason="a task")],
            [use("Bash", command="touch x", description="d")],
            [use("Bash", command="ls", description="d")],
            [text("[HARNESS: plan]")],
            [use("Bash", command="touch y", description="d")],
            [text("written")],
        ]
        claude.says("<<task>> go", "--plugin-dir", str(folder))
        assert claude.phase is Phase.PLANNING
        claude.says("/jackstay:approve-plan", "--plugin-dir", str(folder))
        assert [path.name for path in claude.project.iterdir()] == ["y"]
        claude.dismiss()
