"""The real Claude Code against a scripted model server, in a home of its own, with no credentials."""

import fcntl
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from jackstay.core.phase import Phase
from jackstay.core.state import PolicyState
from jackstay.hosts.state import HostStore, Session
from tests.hosts.messages_server import MessagesServer

VERSIONS = ("2.1.197", "2.1.332")  # they differ in wording, in events, and in what they write
FILES_SERVER = Path(__file__).with_name("files_server.py")
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "jackstay-tests"
MISSING = (
    "the tests of the Claude Code adapter run the real program: npm (Node 20 or later) has to be there, and "
    f"`npm install @anthropic-ai/claude-code@VERSION` has to work once; its result is kept in {CACHE}"
)


def binary(version: str) -> Path:
    """The real program, installed once and kept. Fails with what is missing; never skips."""
    folder = CACHE / f"claude-code-{version}"
    program = folder / "node_modules" / ".bin" / "claude"
    CACHE.mkdir(parents=True, exist_ok=True)
    with (CACHE / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "complete").exists():
            _install(folder, version)
    return program


def _install(folder: Path, version: str) -> None:
    npm = shutil.which("npm")
    assert npm is not None, MISSING
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    done = subprocess.run(
        [npm, "install", "--no-audit", "--no-fund", "--prefix", str(folder), f"@anthropic-ai/claude-code@{version}"],
        capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL, timeout=100,
    )  # fmt: skip
    assert done.returncode == 0, f"{MISSING}\n{done.stderr[-2000:]}"
    (folder / "complete").touch()


class Claude:
    """One machine with Claude Code on it: a user's home, a project, our home, and the model's script."""

    def __init__(self, root: Path, server: MessagesServer, version: str) -> None:
        self.server, self.version = server, version
        self.user, self.project, self.home = root / "user", root / "project", root / "jackstay"
        for folder in (self.user, self.project):
            folder.mkdir()
        self.env = {
            "PATH": os.environ["PATH"], "HOME": str(self.user), "JACKSTAY_HOME": str(self.home), "IS_SANDBOX": "1",
            "ANTHROPIC_BASE_URL": server.url, "ANTHROPIC_API_KEY": "sk-ant-dummy-0000",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "DISABLE_TELEMETRY": "1", "DISABLE_AUTOUPDATER": "1",
            "DISABLE_ERROR_REPORTING": "1", "LANG": "C.UTF-8",
        }  # fmt: skip
        self.session = ""

    @property
    def settings(self) -> Path:
        return self.user / ".claude" / "settings.json"

    def jackstay(self, *words: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        """Our own command, as this user types it in the project."""
        done = subprocess.run(
            [sys.executable, "-m", "jackstay", *words], cwd=self.project,
            env={**self.env, "PYTHONPATH": os.environ.get("PYTHONPATH", "")},
            capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL, timeout=60,
        )  # fmt: skip
        assert not check or done.returncode == 0, done.stdout + done.stderr
        return done

    def installed(self) -> "Claude":
        self.jackstay("host", "install", "claude-code")
        return self

    def says(self, prompt: str, *flags: str) -> dict[str, Any]:
        """One prompt in the session (a new one at first), until the model has nothing more to do."""
        done = subprocess.run(
            [*self._command(prompt), *flags], cwd=self.project, env=self.env, capture_output=True, text=True,
            check=False, stdin=subprocess.DEVNULL, timeout=100,
        )  # fmt: skip
        assert done.stdout, done.stderr
        result: dict[str, Any] = json.loads(done.stdout)
        self.session = result["session_id"]
        return result

    def killed(self, prompt: str, *, after_s: float) -> None:
        """One prompt in the session; the program and all it has started are killed before it ends."""
        process = subprocess.Popen(
            self._command(prompt), cwd=self.project, env=self.env, stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
        )  # fmt: skip
        time.sleep(after_s)
        assert process.poll() is None, "it has ended by itself"
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()

    def _command(self, prompt: str) -> list[str]:
        resume = ["--resume", self.session] if self.session else []
        return [
            str(binary(self.version)), "-p", prompt, "--output-format", "json", "--model", "claude-sonnet-4-5",
            "--permission-mode", "bypassPermissions", *resume,
        ]  # fmt: skip

    def with_files_server(self) -> None:
        """A user's own MCP server with a tool that writes a file."""
        servers = self.user / ".claude.json"
        known = json.loads(servers.read_text())
        known["mcpServers"]["files"] = {"type": "stdio", "command": sys.executable, "args": [str(FILES_SERVER)]}
        servers.write_text(json.dumps(known))

    def dismiss(self) -> None:
        """Let the process go that answers this home's hooks."""
        (self.home / "hosts" / "hook.sock").unlink(missing_ok=True)

    @property
    def policy(self) -> PolicyState:
        store = HostStore(self.home)
        state = store.read(Session("claude-code", self.session))
        store.close()
        assert state is not None
        return state.policy

    @property
    def phase(self) -> Phase:
        return self.policy.phase.phase

    @property
    def read_by_model(self) -> str:
        """The messages of the last request, as text."""
        return json.dumps(self.server.bodies[-1]["messages"], ensure_ascii=False)

    def only(self, event: str) -> None:
        """Take our hooks for all other events out."""
        settings = json.loads(self.settings.read_text())
        settings["hooks"] = {event: settings["hooks"][event]}
        self.settings.write_text(json.dumps(settings))

    def replaced(self, old: str, new: str) -> None:
        """Something in every hook's shell line is another."""
        settings = self.settings.read_text()
        assert old in settings
        self.settings.write_text(settings.replace(old, new))
