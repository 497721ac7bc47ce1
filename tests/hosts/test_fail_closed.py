"""Whatever is wrong with us, the host's call does not run: the real Claude Code, one fault at a time."""

import shutil
import socket
import sqlite3
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from jackstay.hosts.claude_install import KILL_AFTER_S
from tests.hosts.claude import VERSIONS, Claude
from tests.hosts.messages_server import text, use

pytestmark = [pytest.mark.hosts, pytest.mark.timeout(150)]


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


def _broken_package(claude: Claude) -> None:
    """Half an upgrade: our own package raises as soon as it is imported."""
    package = claude.user / "broken" / "jackstay"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("raise RuntimeError('half an upgrade')\n")
    _program(claude, f'shift; PYTHONPATH={package.parent} exec {sys.executable} -P "$@"')


def _read_only(claude: Claude) -> None:
    """The home lies on a file system that is mounted read-only."""
    home = claude.home
    _program(claude, f'exec bwrap --dev-bind / / --ro-bind {home} {home} {sys.executable} "$@"')


FAULTS: dict[str, Callable[[Claude], object]] = {
    "raises": lambda claude: (claude.home / "config.toml").write_text("discipline = 7"),
    "is killed": lambda claude: _program(claude, "kill -9 $$"),
    "ends with 1": lambda claude: _program(claude, "cat >/dev/null; exit 1"),
    "times out": _hangs,
    "prints junk": lambda claude: _program(claude, "echo '}{ allow'; exit 0"),
    "prints nothing": lambda claude: _program(claude, "exit 0"),
    "store corrupt": lambda claude: _store(claude).write_bytes(b"[]" * 5000),
    "store read-only": _read_only,
    "disk full": lambda claude: _program(claude, f'ulimit -f 0; exec {sys.executable} "$@"'),
    "state of another version": _newer,
    "package broken at import": _broken_package,
    "interpreter missing": lambda claude: _hook_becomes(claude, "/nowhere/python"),
    "store is a folder": lambda claude: _store(claude).mkdir(parents=True),
    "home is a file": _home_is_a_file,
    "home is nowhere": lambda claude: claude.replaced(f"--home {claude.home}", "--home /proc/none"),
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


@pytest.mark.case("claude-code", "fault: store locked", "enforced")
def test_a_locked_store_is_a_block(claude: Claude) -> None:
    """Another process keeps it locked."""
    _greeted(claude)
    other = sqlite3.connect(_store(claude), isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    result = claude.says("do it")
    other.close()
    assert not (claude.project / "x").exists()
    assert len(result["permission_denials"]) == 1


@pytest.mark.parametrize("bare_claude", VERSIONS[-1:], indirect=True)  # what waits is ours, not the host's
@pytest.mark.case("claude-code", "fault: resident silent", "enforced")
def test_a_resident_that_answers_nobody_is_a_block(claude: Claude) -> None:
    _greeted(claude)
    claude.dismiss()
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as silent:
        silent.bind(str(claude.home / "hosts" / "hook.sock"))
        silent.listen()
        result = claude.says("do it")
    assert not (claude.project / "x").exists()
    assert len(result["permission_denials"]) == 1


def _greeted(claude: Claude) -> None:
    """A session that is there already; its next prompt brings a write."""
    claude.server.scripts["task"] = [
        [text("hello")], [use("Bash", command="touch x", description="d")], [text("stopped")],
    ]  # fmt: skip
    claude.says("<<task>> go")
    claude.only("PreToolUse")


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
