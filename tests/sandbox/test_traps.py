"""What a repository or an environment lays out for readers, and none of it runs when a command is started
with care (hard case 11). Each trap leaves a trace; that it works at all is seen first.
"""

import os
import stat
import subprocess
from pathlib import Path

import pytest

from jackstay.core.errors import ConfigError
from jackstay.engine.ports import Launch
from jackstay.policy.neutral import FIXED_PATH
from jackstay.policy.shell import analyse_command
from jackstay.runtime.confine import command_launcher
from jackstay.runtime.options import Options
from jackstay.sandbox.bwrap import Bubblewrap
from jackstay.sandbox.careful import careful

_SETTINGS = (
    "core.fsmonitor", "core.pager", "core.sshCommand", "core.gitProxy", "core.askPass", "core.editor",
    "core.alternateRefsCommand", "diff.external", "diff.evil.textconv", "diff.evil.command", "filter.evil.clean",
    "filter.evil.smudge", "filter.evil.process", "gpg.program", "gpg.ssh.program", "pager.log", "pager.diff",
    "remote.origin.uploadpack", "merge.evil.driver", "interactive.diffFilter", "trailer.x.cmd",
)  # fmt: skip
_HOOKS = ("post-index-change", "reference-transaction", "post-checkout", "pre-auto-gc", "fsmonitor-watchman")


class Trapped:
    """A repository with every trap in it, and in it a sub-module and another repository with the same."""

    def __init__(self, root: Path) -> None:
        self.root, self.traces = root, root / "traces"
        self.traces.mkdir()
        (root / "home").mkdir()
        other = self.repository("other")
        self.main = self.repository("main")
        self.git(self.main, "submodule", "add", str(other), "module")
        self.git(self.main, "commit", "-m", "with a module")
        self.git(self.main, "remote", "add", "origin", str(other))
        nested = self.repository("main/nested")
        module = self.main / ".git" / "modules" / "module"
        (other / "a.txt").write_text("two\n")
        for name, directory in (("main", self.main / ".git"), ("nested", nested / ".git"), ("module", module)):
            self.arm(directory, name)
        for place in (self.main, nested, self.main / "module"):
            (place / "a.txt").write_text("two\n")  # as long as before: git has to look into it
            os.utime(place / "a.txt", (1, 1))

    def git(self, place: Path, *words: str) -> None:
        settings = ("protocol.file.allow=always", "user.name=n", "user.email=a@b.c", "core.fsmonitor=false")
        given = [word for setting in settings for word in ("-c", setting)]
        env = {"PATH": FIXED_PATH, "HOME": str(self.root / "home")}
        subprocess.run(("git", *given, *words), cwd=place, check=True, capture_output=True, env=env)

    def repository(self, name: str) -> Path:
        place = self.root / name
        place.mkdir()
        self.git(place, "init")
        (place / "a.txt").write_text("one\n")
        self.git(place, "add", "a.txt")
        self.git(place, "commit", "-m", "first")
        return place

    def arm(self, directory: Path, name: str) -> None:
        """Settings, attributes and hooks of a repository; the drivers are called as nowhere else."""
        for setting in _SETTINGS:
            key = setting.replace("evil", f"evil-{name}")
            command = f"touch {self.traces}/{name}-{key}; cat"
            self.git(self.root, "config", "--file", str(directory / "config"), key, command)
        self.git(self.root, "config", "--file", str(directory / "config"), "log.showSignature", "true")
        (directory / "info" / "attributes").write_text(f"* diff=evil-{name} filter=evil-{name}\n")
        for hook in _HOOKS:
            script = directory / "hooks" / hook
            script.write_text(f"#!/bin/sh\ntouch {self.traces}/{name}-{hook}\n")
            script.chmod(script.stat().st_mode | stat.S_IXUSR)

    def start(self, launch: Launch) -> set[str]:
        """The traces that running this leaves."""
        for old in self.traces.iterdir():
            old.unlink()
        subprocess.run(
            launch.argv, cwd=launch.cwd, env=launch.env, capture_output=True, timeout=30, check=False,
            stdin=subprocess.DEVNULL,
        )  # fmt: skip
        return {trace.name for trace in self.traces.iterdir()}

    def wanted(self, command: str, **env: str) -> Launch:
        base = {"PATH": os.environ["PATH"], "HOME": str(self.root / "home"), **env}
        return Launch(("/bin/bash", "-c", command), str(self.main), base)


@pytest.fixture(scope="module")
def trapped(tmp_path_factory: pytest.TempPathFactory) -> Trapped:
    return Trapped(tmp_path_factory.mktemp("traps").resolve())


# What each reader would set off, started as it is.
_SPRUNG = {
    "git status": "main-core.fsmonitor",
    "git diff": "main-diff.evil-main.command",
    "git log -p": "main-diff.evil-main.textconv",
    "git ls-remote origin": "main-remote.origin.uploadpack",
    "git blame a.txt": "main-diff.evil-main.textconv",
    "git hash-object a.txt": "main-filter.evil-main.process",
    "git -C nested diff": "nested-diff.evil-nested.command",
    "cd nested && git log -p": "nested-diff.evil-nested.textconv",
    "git --git-dir=nested/.git --work-tree=nested diff": "nested-diff.evil-nested.command",
    "for d in */; do git -C $d diff; done": "nested-diff.evil-nested.command",
}
_READERS = (
    *_SPRUNG, "git show", "git diff HEAD", "git status -vv", "git status --short", "git describe --dirty --always",
    "git ls-files -m", "git diff-files -p", "git diff-index -p HEAD", "git remote show origin", "git grep one",
    "git branch -vv", "git stash list", "git submodule status", "git submodule summary", "git log --stat",
    "git -C module diff", "git -C module status", "cd module; git log -p", "git shortlog HEAD", "git fsck",
    "git -C main/nested diff", "git log -p | less", "git config --list", "git check-attr -a a.txt",
)  # fmt: skip


@pytest.mark.parametrize("command", _SPRUNG)
def test_the_trap_works_when_the_command_is_started_as_it_is(trapped: Trapped, command: str) -> None:
    assert _SPRUNG[command] in trapped.start(trapped.wanted(command))


@pytest.mark.parametrize("command", _READERS)
def test_none_of_it_runs_when_the_command_is_started_with_care(trapped: Trapped, command: str) -> None:
    assert analyse_command(command).reason is None
    assert trapped.start(careful(None)(trapped.wanted(command))) == set()


def test_git_still_answers(trapped: Trapped) -> None:
    launch = careful(None)(trapped.wanted("git status --short; git diff; git -C nested log -p"))
    done = subprocess.run(
        launch.argv, cwd=launch.cwd, env=launch.env, capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines()[:2] == [" M a.txt", "?? nested/"]
    assert done.stdout.count("+two") == 1
    assert done.stdout.count("+one") == 1


_BY_ENVIRONMENT = {
    "BASH_ENV": ("ls", "{0}/script"),
    "BASH_FUNC_ls%%": ("ls", "() {{ touch {0}/traces/function; }}"),
    "PATH": ("ls", "{0}/bin:/usr/bin:/bin"),
    "GIT_EXTERNAL_DIFF": ("git -C ../other diff", "touch {0}/traces/external"),
    "GIT_SSH_COMMAND": ("git ls-remote ssh://h/r", "touch {0}/traces/ssh"),
    "GIT_CONFIG_GLOBAL": ("git status", "{0}/gitconfig"),
    "PS4": ("set -x; ls", "$(touch {0}/traces/ps4)"),
    "LESSOPEN": ("less main/a.txt", "|touch {0}/traces/lessopen; cat %s"),
    "RIPGREP_CONFIG_PATH": ("rg one", "{0}/ripgreprc"),
}


@pytest.mark.parametrize("name", _BY_ENVIRONMENT)
def test_no_variable_makes_a_reader_run_something(trapped: Trapped, name: str) -> None:
    command, value = _BY_ENVIRONMENT[name]
    (trapped.root / "bin").mkdir(exist_ok=True)
    for script in (trapped.root / "script", trapped.root / "bin" / "ls"):
        script.write_text(f"#!/bin/sh\ntouch {trapped.traces}/{name}\n")
        script.chmod(0o755)
    (trapped.root / "gitconfig").write_text(f'[core]\n\tfsmonitor = "touch {trapped.traces}/global; false"\n')
    (trapped.root / "ripgreprc").write_text(f"--pre\n{trapped.root}/script\n")
    wanted = trapped.wanted(command, **{name: value.format(trapped.root)})
    assert analyse_command(command).reason is None
    assert trapped.start(careful(None)(wanted)) == set()
    if name in ("BASH_ENV", "BASH_FUNC_ls%%", "PATH", "GIT_EXTERNAL_DIFF", "GIT_CONFIG_GLOBAL"):
        assert trapped.start(wanted)


def test_in_the_view_not_even_a_program_of_the_repository_could_write(trapped: Trapped) -> None:
    sandbox = Bubblewrap.find()
    wanted = trapped.wanted("git -C nested diff; git status")
    argv = careful(sandbox)(wanted).argv
    assert trapped.start(Launch(argv, wanted.cwd, wanted.env)) == set()  # in the environment as it was


def test_a_sandbox_that_is_required_and_missing_is_an_error(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ConfigError, match="the sandbox 'bwrap' is not installed"):
        command_launcher(Options(workspace=str(tmp_path), sandbox="bwrap"), ())
