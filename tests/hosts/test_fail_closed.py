"""Whatever is wrong with us, the host's call does not run: the real Claude Code, one fault at a time."""

import shutil
import sqlite3
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from jackstay.hosts.claude_install import KILL_AFTER_S
from tests.hosts.claude import Claude
from tests.hosts.messages_server import MessagesServer, text, use

pytestmark = [pytest.mark.hosts, pytest.mark.timeout(150)]


@pytest.fixture
def claude(tmp_path: Path) -> Iterator[Claude]:
    with MessagesServer().running() as server:
        machine = Claude(tmp_path, server).installed()
        yield machine
        if machine.home.is_dir():
            machine.dismiss()


def _hook_becomes(claude: Claude, program: str) -> None:
    """The interpreter in every hook is replaced; the rest of the shell line stays as it was installed."""
    claude.replaced(sys.executable, program)


def _program(claude: Claude, body: str) -> None:
    path = claude.user / "python"
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)
    _hook_becomes(claude, str(path))


def _store(claude: Claude) -> Path:
    return claude.home / "hosts.db"


def _home_is_a_file(claude: Claude) -> None:
    shutil.rmtree(claude.home)
    claude.home.write_text("junk")


def _newer(claude: Claude) -> None:
    with sqlite3.connect(_store(claude)) as connection:
        connection.execute("PRAGMA user_version = 99")
    connection.close()


def _hangs(claude: Claude) -> None:
    claude.replaced(f" {KILL_AFTER_S} ", " 1 ")
    _program(claude, "exec sleep 100")


FAULTS: dict[str, Callable[[Claude], object]] = {
    "interpreter missing": lambda claude: _hook_becomes(claude, "/nowhere/python"),
    "package broken at import": lambda claude: _program(claude, "echo 'ModuleNotFoundError' >&2; exit 1"),
    "hook is killed": lambda claude: _program(claude, "kill -9 $$"),
    "hook ends with 1": lambda claude: _program(claude, "cat >/dev/null; exit 1"),
    "hook hangs": _hangs,
    "disk is full": lambda claude: _program(claude, f'ulimit -f 0; exec {sys.executable} "$@"'),
    "home cannot be written": lambda claude: claude.replaced(f"--home {claude.home}", "--home /proc/none"),
    "store is junk": lambda claude: _store(claude).write_bytes(b"[]" * 5000),
    "store is a folder": lambda claude: _store(claude).mkdir(parents=True),
    "home is a file": _home_is_a_file,
    "store is newer": _newer,
    "settings are broken": lambda claude: (claude.home / "config.toml").write_text("discipline = 7"),
}


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.case("claude-code", "fault: {}", "enforced")
def test_the_call_does_not_run(claude: Claude, fault: str) -> None:
    """The prompt still comes through where the fault begins after it; the call is blocked with a sentence."""
    FAULTS[fault](claude)
    # Only the tool's hook stays: the prompt's would block the conversation before it.
    claude.only("PreToolUse")
    claude.server.scripts["task"] = [[use("Bash", command="touch x", description="d")], [text("stopped")]]
    result = claude.says("<<task>> go")
    assert not (claude.project / "x").exists()
    assert len(result["permission_denials"]) == 1
    assert "jackstay" in claude.read_by_model


@pytest.mark.case("claude-code", "a prompt that cannot be heard", "enforced")
def test_a_blocked_prompt_says_why(claude: Claude) -> None:
    """A person whose prompt cannot be heard is told, and nothing goes to the model."""
    _store(claude).write_bytes(b"[]" * 5000)
    claude.server.scripts["task"] = [[text("never")]]
    claude.says("<<task>> go")
    assert claude.server.bodies == []


@pytest.mark.parametrize("fault", ["locked", "frozen"])
@pytest.mark.case("claude-code", "fault: {}", "enforced")
def test_what_hangs_is_a_block(claude: Claude, fault: str) -> None:
    """Another process keeps the store locked; the resident is stopped and answers nobody."""
    claude.server.scripts["task"] = [
        [text("hello")], [use("Bash", command="touch x", description="d")], [text("stopped")],
    ]  # fmt: skip
    claude.says("<<task>> go")
    claude.only("PreToolUse")
    if fault == "locked":
        other = sqlite3.connect(_store(claude), isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        result = claude.says("do it")
        other.close()
    else:
        line = claude.home / "hosts" / "hook.sock"
        line.unlink()
        import socket

        silent = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        silent.bind(str(line))
        silent.listen()
        result = claude.says("do it")
        silent.close()
    assert not (claude.project / "x").exists()
    assert len(result["permission_denials"]) == 1


@pytest.mark.case("claude-code", "a project with a package of our name", "enforced")
def test_a_project_cannot_take_the_interpreter_over(claude: Claude) -> None:
    """A package of our name in the project, and a path in its settings, are not what the hook imports."""
    evil = claude.project / "jackstay"
    evil.mkdir()
    (evil / "__init__.py").write_text("import os; os._exit(0)")
    (claude.project / ".claude").mkdir()
    (claude.project / ".claude" / "settings.json").write_text(
        f'{{"env": {{"PYTHONPATH": "{claude.project}"}}}}'
    )
    claude.server.scripts["task"] = [[use("Bash", command="touch x", description="d")], [text("stopped")]]
    assert len(claude.says("<<task>> go")["permission_denials"]) == 1
    assert not (claude.project / "x").exists()
    assert "task_started" in claude.read_by_model


@pytest.mark.case("claude-code", "a project switches all hooks off", "impossible; `jackstay doctor` says so")
def test_a_project_can_switch_all_hooks_off_and_doctor_says_so(claude: Claude) -> None:
    """The hole that is left (see docs/hosts/claude-code.md), its cure, and who tells."""
    (claude.project / ".claude").mkdir()
    (claude.project / ".claude" / "settings.json").write_text('{"disableAllHooks": true}')
    claude.server.scripts["task"] = [[use("Bash", command="touch x", description="d")], [text("done")]]
    told = claude.jackstay("host", "status", "claude-code", check=False)
    assert (told.returncode, "switches all hooks off" in told.stdout) == (1, True)
    claude.says("<<task>> go", "--setting-sources", "user")
    assert not (claude.project / "x").exists()
    claude.session = ""
    claude.says("<<task>> go")
    assert (claude.project / "x").exists()
