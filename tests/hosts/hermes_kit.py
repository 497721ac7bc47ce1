"""The real Hermes Agent for tests: its own environment, built once and kept; an isolated home; a scripted model."""

import fcntl
import hashlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from tests.hosts.chat_server import ChatServer, Turn, says

HERMES = "hermes-agent[mcp]==0.19.0"
NEEDED = ("msgspec", "tree-sitter", "tree-sitter-bash", "platformdirs")  # all that the plugins need
ROOT = Path(__file__).parents[2]
DRIVER = Path(__file__).with_name("hermes_driver.py")
BUILD_TIMEOUT_S = 600
RUN_TIMEOUT_S = 100
SUBAGENT_TIMEOUT_S = 30


def cache() -> Path:
    """Where built environments are kept: JACKSTAY_TEST_CACHE, or the user's cache directory."""
    given = os.environ.get("JACKSTAY_TEST_CACHE")
    base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return Path(given) if given else base / "jackstay-tests"


def environment() -> Path:
    """The directory of an environment with Hermes and this checkout; built by whoever needs it first."""
    key = "\n".join(["2", HERMES, *NEEDED, sys.version, str(ROOT)])
    place = cache() / f"hermes-{hashlib.sha256(key.encode()).hexdigest()[:12]}"
    place.parent.mkdir(parents=True, exist_ok=True)
    with place.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (place / "ready").exists():
            _build(place)
    return place


def _build(place: Path) -> None:
    clean = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "PYTHONHOME")}
    steps: Sequence[Sequence[str]] = (
        [sys.executable, "-m", "venv", "--clear", str(place)],
        [str(place / "bin/python"), "-m", "pip", "install", "-q", HERMES, *NEEDED, "hatchling"],
    )
    for step in steps:
        done = subprocess.run(step, env=clean, capture_output=True, text=True, timeout=BUILD_TIMEOUT_S)
        if done.returncode:
            raise RuntimeError(
                f"Hermes's environment could not be built in {place}: `{' '.join(step)}` ended with "
                f"{done.returncode}: {done.stderr[-1500:]}. It needs Python 3.11 to 3.13 and a package index."
            )
    (found,) = place.glob("lib/python3*/site-packages")
    line = f"import os, sys; 'JACKSTAY_ABSENT' in os.environ or sys.path.append({str(ROOT / 'src')!r})\n"
    (found / "jackstay-checkout.pth").write_text(line)  # no entry points: tests add them
    (place / "ready").touch()


NOISE = """
def before(args=None, **_):
    text = str(args)
    print("}{ noise", flush=True)
    if "RAISE" in text:
        raise RuntimeError("noise")
    if "APPROVE" in text:
        return {"action": "approve", "message": "somebody else says yes"}
    return {"action": "block"} if "EMPTY" in text else "junk"

def register(ctx):
    ctx.register_hook("pre_tool_call", before)
"""


class Host:
    """One user's Hermes: an empty home, a workspace, and the model server it talks to."""

    def __init__(self, root: Path, server: ChatServer) -> None:
        self.server = server
        self.home = root / "home"
        self.hermes = self.home / ".hermes"
        self.jackstay = self.home / ".local/share/jackstay"
        self.workspace = root / "work"
        for folder in (self.hermes, self.workspace):
            folder.mkdir(parents=True)
        self.config = self.hermes / "config.yaml"
        self.config.write_text(
            "# my own words\n"
            f"model:\n  provider: custom\n  default: probe-model\n  base_url: {self.url}\n"
            "  api_key: sk-x\n  context_length: 200000  # tokens\n"
            "skills:\n  creation_nudge_interval: 0\nmemory:\n  nudge_interval: 0\n"
        )

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server.port}/v1"

    @property
    def python(self) -> Path:
        """Hermes's own interpreter."""
        return environment() / "bin/python"

    def env(self, **more: str) -> dict[str, str]:
        bin_ = environment() / "bin"
        return {
            "PATH": f"{bin_}:/usr/bin:/bin", "HOME": str(self.home), "HERMES_HOME": str(self.hermes),
            "NO_PROXY": "127.0.0.1", "TERM": "dumb", "COLUMNS": "250", "LANG": "C.UTF-8", **more,
        }  # fmt: skip

    def run(self, *command: str, **more: str) -> subprocess.CompletedProcess[str]:
        """A program of Hermes's environment, to its end."""
        return subprocess.run(
            [str(environment() / "bin" / command[0]), *command[1:]], cwd=self.workspace, env=self.env(**more),
            stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=RUN_TIMEOUT_S,
        )  # fmt: skip

    def ok(self, *command: str) -> str:
        """The same, for one that has to succeed; its output."""
        done = self.run(*command)
        assert done.returncode == 0, f"{command} ended with {done.returncode}: {done.stdout}{done.stderr}"
        return done.stdout

    def install(self) -> None:
        """What `jackstay host install hermes` does."""
        code = (
            "from pathlib import Path; from jackstay.hosts import install_hermes as i\n"
            f"for step in i.install_steps(i.places(Path({str(self.jackstay)!r}))): step.do()"
        )
        self.ok("python", "-c", code)

    def noise(self) -> None:
        """A plugin of somebody else that is asked before ours: it prints, raises, and says strange things."""
        folder = self.hermes / "plugins" / "aaa-noise"
        folder.mkdir(parents=True)
        (folder / "plugin.yaml").write_text("name: aaa-noise\nkind: standalone\n")
        (folder / "__init__.py").write_text(NOISE)
        self.config.write_text(self.config.read_text() + "plugins:\n  enabled:  # mine\n    - aaa-noise\n")

    @contextmanager
    def driver(self, **more: str) -> Iterator["Driver"]:
        """The real agent in one process, for many turns."""
        read, write = os.pipe()
        process = subprocess.Popen(
            [str(environment() / "bin/python"), str(DRIVER), self.url, str(write)], cwd=self.workspace,
            env=self.env(HERMES_YOLO_MODE="1", **more), stdin=subprocess.PIPE, stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE, text=True, pass_fds=[write],
        )  # fmt: skip
        os.close(write)
        with os.fdopen(read) as answers:
            driver = Driver(self, process, answers)
            try:
                yield driver
            finally:
                driver.close()

    def state(self, session: str) -> dict[str, Any]:
        """The stored policy state of a session, as plain JSON."""
        import sqlite3

        connection = sqlite3.connect(self.jackstay / "hosts.db")
        try:
            row = connection.execute("SELECT state FROM sessions WHERE id = ?", (session,)).fetchone()
        finally:
            connection.close()
        assert row is not None, f"no state is stored for session {session}"
        found: dict[str, Any] = json.loads(row[0])
        return dict(found["policy"].get("phase", {}))

    def phase(self, session: str) -> str:
        return str(self.state(session).get("phase", "no_task"))


class Driver:
    """One running process of Hermes."""

    def __init__(self, host: Host, process: "subprocess.Popen[str]", answers: Any) -> None:
        self.host, self.process, self._answers = host, process, answers
        self.done: set[str] = set()  # what tests that share it have prepared

    def send(self, op: str, **told: Any) -> None:
        assert self.process.stdin is not None
        try:
            self.process.stdin.write(json.dumps({"op": op, **told}) + "\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            pytest.fail(self._ended())

    def ask(self, op: str, **told: Any) -> Any:
        self.send(op, **told)
        line = self._answers.readline()
        assert line, self._ended()
        answer = json.loads(line)
        assert not (isinstance(answer, dict) and "raised" in answer), answer
        return answer

    def _ended(self) -> str:
        """Why Hermes is gone, in its last words."""
        code, said = self.process.wait(20), self.process.stderr
        return f"Hermes ended with {code}: {said.read()[-3000:] if said is not None else ''}"

    def turn(self, session: str, text: str, *replies: Turn, **more: Any) -> "Seen":
        """A user's message, answered by the scripted replies; everything the model was sent."""
        self.host.server.script(replies)
        answer = self.ask("turn", session=session, text=text, **more)
        until = time.monotonic() + SUBAGENT_TIMEOUT_S  # Hermes starts subagents beside the turn and goes on
        while self.host.server.left and time.monotonic() < until:
            time.sleep(0.02)
        assert self.host.server.left == 0, f"{self.host.server.left} replies were not asked for: {answer}"
        return Seen(self.host.server.requests, str(answer["text"]))

    def call(self, session: str, tool: str, **args: Any) -> str:
        """One call through Hermes's dispatch; its result."""
        return str(self.ask("tool", session=session, tool=tool, args=args))

    def close(self) -> None:
        if self.process.poll() is None and self.process.stdin is not None:
            self.process.stdin.close()
            try:
                self.process.wait(20)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        if self.process.stderr is not None:
            self.process.stderr.close()
        if self.process.stdin is not None and not self.process.stdin.closed:
            with suppress(BrokenPipeError):  # words that it was not there any more to read
                self.process.stdin.close()


class Seen:
    """What the model was sent during one turn."""

    def __init__(self, requests: list[dict[str, Any]], answer: str) -> None:
        self.requests, self.answer = list(requests), answer

    @property
    def context(self) -> str:
        """The last user message of the first request: the person's words and what was put beside them."""
        return self._texts(self.requests[0], "user")[-1]

    @property
    def results(self) -> list[str]:
        """The results of this turn's calls, in order."""
        before = len(self._texts(self.requests[0], "tool"))
        return self._texts(self.requests[-1], "tool")[before:]

    @staticmethod
    def _texts(request: dict[str, Any], role: str) -> list[str]:
        found = [m["content"] for m in request["messages"] if m["role"] == role]
        return [c if isinstance(c, str) else "".join(p.get("text", "") for p in c) for c in found]


__all__ = ["Driver", "Host", "Seen", "cache", "environment", "says"]
