"""Commands judged read-only run none of the programs a repository names (hard case 11)."""

import os
import subprocess
from pathlib import Path

import pytest

from jackstay.policy.neutral import FIXED_PATH, neutral_environment
from jackstay.ward.gitconfig import program_keys

_PROGRAMS = {
    "core.fsmonitor": "touch {0}/fsmonitor; false",
    "core.pager": "touch {0}/pager; cat",
    "diff.external": "touch {0}/external; true",
    "diff.x.textconv": "touch {0}/textconv; cat",
    "diff.y.command": "touch {0}/command; true",
    "filter.z.clean": "touch {0}/clean; cat",
    "filter.z.smudge": "cat",
    "filter.z.required": "true",
}


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    def git(*words: str) -> None:
        subprocess.run(
            ("git", "-c", "user.email=a@b.c", "-c", "user.name=n", *words), cwd=tmp_path / "r", check=True,
            capture_output=True, env={"PATH": FIXED_PATH, "HOME": str(tmp_path)},
        )  # fmt: skip

    (tmp_path / "r").mkdir()
    git("init")
    (tmp_path / "r" / "a.txt").write_text("one\n")
    (tmp_path / "r" / "b.bin").write_text("one\n")
    (tmp_path / "r" / ".gitattributes").write_text("*.txt diff=x filter=z\n*.bin diff=y\n")
    git("add", ".")
    git("commit", "-m", "first")
    for key, value in _PROGRAMS.items():
        git("config", key, value.format(tmp_path))
    (tmp_path / "r" / "a.txt").write_text("one\ntwo\n")
    (tmp_path / "r" / "b.bin").write_text("one\ntwo\n")
    return tmp_path


def run_all(repository: Path, env: dict[str, str]) -> list["subprocess.CompletedProcess[str]"]:
    return [
        subprocess.run(
            ("git", *words),
            cwd=repository / "r",
            env=env,
            capture_output=True,
            text=True,
            timeout=20,
            check=False,
        )
        for words in (("status",), ("diff",), ("--paginate", "log", "-p"))
    ]


def traces(repository: Path) -> set[str]:
    return {path.name for path in repository.iterdir()} - {"r"}


def test_the_programs_would_run_otherwise(repository: Path) -> None:
    run_all(repository, {"PATH": os.environ["PATH"], "HOME": str(repository)})
    assert {"fsmonitor", "external", "clean"} <= traces(repository)


def test_in_the_neutral_environment_none_runs_and_git_still_answers(repository: Path) -> None:
    base = {
        **os.environ,
        "HOME": str(repository),
        "GIT_EXTERNAL_DIFF": "touch external",
        "GIT_PAGER": "touch pager",
    }
    env = neutral_environment(base, program_keys([str(repository / "r")], base))
    status, diff, log = run_all(repository, env)
    assert traces(repository) == set()
    assert [done.returncode for done in (status, diff, log)] == [0, 0, 0]
    assert "modified:   a.txt" in status.stdout
    assert diff.stdout.count("+two") == 2
    assert "+one" in log.stdout


def test_without_a_repository_or_git_there_are_no_keys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert not [
        key
        for key in program_keys([str(tmp_path)], {"HOME": str(tmp_path)})
        if key.endswith(("external", "command", "textconv", "clean", "smudge"))
    ]
    assert program_keys([str(tmp_path / "none")], {}) == ()


def test_what_makes_programs_do_more_than_they_say_is_cleared() -> None:
    base = {
        "HOME": "/h", "LANG": "C", "TERM": "x", "BASH_ENV": "/e", "LD_PRELOAD": "/l.so", "GIT_DIR": "/g",
        "GIT_CONFIG_COUNT": "9", "BASH_FUNC_ls%%": "() { rm x; }", "LESSOPEN": "|x", "PATH": ".:/w/bin",
        "PYTHONSTARTUP": "x", "RIPGREP_CONFIG_PATH": "x", "PROMPT_COMMAND": "x",
    }  # fmt: skip
    env = neutral_environment(base)
    assert {name: env[name] for name in ("HOME", "LANG", "TERM", "PATH", "GIT_OPTIONAL_LOCKS", "GIT_PAGER", "PAGER")} == {
        "HOME": "/h", "LANG": "C", "TERM": "x", "PATH": FIXED_PATH, "GIT_OPTIONAL_LOCKS": "0", "GIT_PAGER": "cat",
        "PAGER": "cat",
    }  # fmt: skip
    gone = (
        "BASH_ENV",
        "LD_PRELOAD",
        "GIT_DIR",
        "BASH_FUNC_ls%%",
        "LESSOPEN",
        "PYTHONSTARTUP",
        "PROMPT_COMMAND",
    )
    assert not [name for name in gone if name in env]
