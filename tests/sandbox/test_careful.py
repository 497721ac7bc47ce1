"""Commands judged read-only are started so that they only read; others as they are."""

import os
import subprocess
from pathlib import Path

import pytest

from jackstay.engine.ports import Launch
from jackstay.policy.neutral import FIXED_PATH, neutral_environment
from jackstay.sandbox.bwrap import Bubblewrap
from jackstay.sandbox.careful import careful
from jackstay.sandbox.profile import read_view


def bash(command: str, cwd: str = "/", **env: str) -> Launch:
    return Launch(("/bin/bash", "-c", command), cwd, {"PATH": os.environ["PATH"], "HOME": "/nowhere", **env})


def run(launch: Launch) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        launch.argv, cwd=launch.cwd, env=launch.env, capture_output=True, text=True, timeout=20, check=False
    )


def test_a_read_only_command_gets_the_neutral_environment() -> None:
    wanted = bash("ls -la", BASH_ENV="/tmp/evil", GIT_DIR="/x")
    assert careful(None)(wanted) == Launch(wanted.argv, "/", neutral_environment(wanted.env))
    assert careful(None)(wanted).env["PATH"] == FIXED_PATH


@pytest.mark.parametrize("command", ["make", "ls > x", "git push", "eval $X", "ls; rm x"])
def test_every_other_command_is_started_as_it_is_or_as_the_next_launcher_says(command: str) -> None:
    wanted, other = bash(command), Launch(("other",), "/", {})
    assert careful(None)(wanted) == wanted
    assert careful(None, then=lambda launch: other)(wanted) == other


def test_what_is_no_shell_with_a_text_is_not_touched() -> None:
    wanted = Launch(("/bin/ls", "-l"), "/", {"A": "1"})
    assert careful(None)(wanted) == wanted


def test_with_a_sandbox_a_read_only_command_runs_in_a_read_view() -> None:
    sandbox = Bubblewrap.find()
    wanted = bash("cat /etc/hostname | wc -l")
    launched = careful(sandbox, hidden=("/root/.ssh",))(wanted)
    assert launched.argv == sandbox.wrap(wanted.argv, read_view(["cat", "wc"], hidden=("/root/.ssh",)))
    assert run(launched).stdout.strip().isdigit()


def test_a_repository_that_names_programs_runs_none_of_them_and_could_not_write(tmp_path: Path) -> None:
    repository = tmp_path.resolve() / "r"
    repository.mkdir()
    for words in (
        ("init",), ("config", "core.fsmonitor", f"touch {tmp_path}/ran; false"), ("config", "diff.external", f"touch {tmp_path}/ran"),
    ):  # fmt: skip
        subprocess.run(("git", *words), cwd=repository, check=True, capture_output=True)
    (repository / "a").write_text("x\n")
    subprocess.run(
        ("git", "-c", "core.fsmonitor=false", "add", "a"), cwd=repository, check=True, capture_output=True
    )
    (repository / "a").write_text("y\n")
    for sandbox in (None, Bubblewrap.find()):
        done = run(careful(sandbox)(bash("git status --short && git diff", str(repository))))
        assert (done.returncode, done.stdout.splitlines()[0]) == (0, "AM a")
        assert "+y" in done.stdout
        assert sorted(p.name for p in tmp_path.iterdir()) == ["r"]
