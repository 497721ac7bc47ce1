"""Every command judged read-only is run in a throw-away directory and must leave the file tree as it was."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from jackstay.policy.shell import analyse_command

from .corpus import corpus

RUNNER = Path(__file__).with_name("sandbox_runner.py")
INSTALL = "this test runs commands in a sandbox; install it with: apt-get install bubblewrap"


def test_read_only_commands_leave_no_trace(tmp_path):
    if shutil.which("bwrap") is None:
        pytest.fail(INSTALL)
    commands = [line.command for line in corpus() if analyse_command(line.command).read_only]
    assert len(commands) > 1000
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "commands.json").write_text(json.dumps(commands), "utf-8")
    (tmp_path / "work").mkdir()
    inside = [
        "bwrap", "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--bind", str(tmp_path / "work"),
        "/mnt",
        "--ro-bind", str(tmp_path / "in"), "/media", "--tmpfs", "/tmp", "--unshare-net", "--unshare-pid",
        "--unshare-ipc",
        "--die-with-parent", "--new-session", "--clearenv", "--setenv", "PATH",
        "/usr/local/bin:/usr/bin:/bin",
        "--chdir", "/mnt", os.path.realpath(sys.executable), "-I", str(copied(tmp_path)),
    ]  # fmt: skip
    done = subprocess.run(
        inside, capture_output=True, text=True, timeout=110, check=False, stdin=subprocess.DEVNULL
    )
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert report["changed"] == []
    assert report["ran"] == len(commands)
    assert report["succeeded"] > 300  # most programs of the corpus need not be installed, the everyday ones are


def copied(tmp_path: Path) -> Path:
    """The runner, where the sandbox can read it."""
    target = tmp_path / "in" / "runner.py"
    target.write_text(RUNNER.read_text("utf-8"), "utf-8")
    os.chmod(target, 0o644)  # noqa: PTH101  (readable inside the sandbox)
    return Path("/media/runner.py")
