"""Runs the real command in real processes, with a home and a workspace of its own."""

import json
import os
import pty
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

from jackstay.core.events import Event, UnknownEvent
from jackstay.core.wire import decode_event

LIMIT_S = 30.0
ROOT = Path(__file__).resolve().parents[2]
Turn = dict[str, Any]


def bash(command: str, call_id: str = "c1") -> Turn:
    """A turn that asks for one bash call."""
    return {"say": "", "calls": [{"tool": "bash", "args": {"command": command}, "id": call_id}]}


class Done(NamedTuple):
    """A finished command."""

    code: int
    out: str
    err: str

    @property
    def events(self) -> list[Event]:
        """Its stdout as events; fails where a line is none."""
        return [event_of(line) for line in self.out.splitlines()]

    @property
    def kinds(self) -> list[str]:
        """The tags of the stored events, context sizes aside."""
        return [
            e.type for e in self.events if e.type not in ("reason_delta", "tool_output_delta", "context_size")
        ]

    @property
    def objects(self) -> list[Any]:
        """Its stdout as JSON lines."""
        return [json.loads(line) for line in self.out.splitlines()]


def event_of(line: str | bytes) -> Event:
    event = decode_event(line)
    assert not isinstance(event, UnknownEvent), line
    return event


class Jackstay:
    """`jackstay(…)` runs a command to its end; `start(…)` leaves it running."""

    def __init__(self, folder: Path) -> None:
        self.home = folder / "home"
        self.workspace = folder / "work"
        self.workspace.mkdir()
        self.env: dict[str, str] = {
            "PATH": os.environ["PATH"],
            "HOME": str(folder),
            "JACKSTAY_HOME": str(self.home),
            "PYTHONPATH": str(ROOT / "src"),
            "LC_ALL": "C.UTF-8",
            "TMPDIR": str(folder),
        }

    def __call__(self, *words: str, stdin: str | None = None, env: Mapping[str, str] | None = None) -> Done:
        done = subprocess.run(
            argv(*words),
            input=stdin,
            stdin=subprocess.DEVNULL if stdin is None else None,
            capture_output=True,
            text=True,
            cwd=self.workspace,
            env={**self.env, **(env or {})},
            timeout=LIMIT_S,
            check=False,
        )
        assert "Traceback" not in done.stderr, done.stderr
        return Done(done.returncode, done.stdout, done.stderr)

    def start(self, *words: str) -> "Started":
        return Started(
            subprocess.Popen(
                argv(*words),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                cwd=self.workspace,
                env=self.env,
            )
        )

    def script(self, *turns: Turn | str, name: str = "script.json") -> str:
        """A model that says these turns, by its name."""
        path = self.home.parent / name
        path.write_text(json.dumps({"turns": [{"say": t} if isinstance(t, str) else t for t in turns]}))
        return f"script:{path}"

    def settings(self, text: str, *, project: bool = False) -> Path:
        """A config.toml of the user, or of the project."""
        folder = self.workspace / ".jackstay" if project else self.home
        folder.mkdir(mode=0o700, exist_ok=True)
        path = folder / "config.toml"
        path.write_text(text)
        return path

    def waiting(self, command: str = "echo ran >> count", session: str = "s1", then: str = "Done.") -> Done:
        """A run that waits for the approval of one bash call."""
        done = self("run", "--model", self.script(bash(command), then), "--session", session, "go", "--json")
        assert done.code == 3, done
        return done

    def count(self, name: str = "count") -> int:
        """How often the counting tool really ran."""
        path = self.workspace / name
        return len(path.read_text().splitlines()) if path.exists() else 0


def argv(*words: str) -> list[str]:
    """The command line. What is tested here is the run, so `run` holds no discipline unless a test names one."""
    if words[:1] == ("run",) and "--discipline" not in words:
        words = ("run", "--discipline", "off", *words[1:])
    return [sys.executable, "-m", "jackstay", *words]


class Started:
    """A running command whose events are read as they come."""

    def __init__(self, process: "subprocess.Popen[bytes]") -> None:
        self.process = process
        self.seen: list[Event] = []

    def until(self, kind: str) -> Event:
        """Read to the next event of this tag."""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            event = event_of(line)
            self.seen.append(event)
            if event.type == kind:
                return event
        raise AssertionError(f"no {kind}: {[e.type for e in self.seen]} {self.stderr()}")

    def kill(self) -> None:
        """kill -9, and nothing left of it."""
        self.process.kill()
        self.process.communicate(timeout=LIMIT_S)

    def interrupt(self) -> Done:
        """Ctrl-C, and wait for the end."""
        self.process.send_signal(signal.SIGINT)
        return self.end()

    def end(self) -> Done:
        """Wait for the end; `out` is what was not read yet."""
        out, err = self.process.communicate(timeout=LIMIT_S)
        return Done(self.process.returncode, out.decode(), err.decode())

    def stderr(self) -> str:
        assert self.process.stderr is not None
        return self.process.stderr.read().decode()


def wait_until(true: Callable[[], bool]) -> None:
    """Wait for something another process does."""
    deadline = time.monotonic() + LIMIT_S
    while not true():
        assert time.monotonic() < deadline, "it never came"
        time.sleep(0.01)


@contextmanager
def released(fifo: Path) -> Iterator[None]:
    """A pipe that commands can block on; whoever still does is let go at the end."""
    os.mkfifo(fifo)
    try:
        yield
    finally:
        with suppress(OSError):  # nobody blocks on it
            os.close(os.open(fifo, os.O_WRONLY | os.O_NONBLOCK))


class Terminal:
    """The command on a terminal of its own."""

    def __init__(self, jackstay: Jackstay, *words: str, env: Mapping[str, str] | None = None) -> None:
        pid, self._fd = pty.fork()
        if pid == 0:
            os.chdir(jackstay.workspace)
            os.execve(sys.executable, argv(*words), {**jackstay.env, "TERM": "xterm", **(env or {})})
        self._pid = pid
        self.text = ""

    def expect(self, words: str) -> str:
        """Read until the words appear behind what was expected before; the text up to them."""
        deadline = time.monotonic() + LIMIT_S
        while words not in self.text:
            assert time.monotonic() < deadline, self.text
            if not self._read():
                break
        before, found, self.text = self.text.partition(words)
        assert found, f"{words!r} never came: {before!r}"
        return before + found

    def type(self, text: str) -> None:
        os.write(self._fd, text.encode())

    def end(self) -> tuple[int, str]:
        """Exit code, and what was not expected yet."""
        while self._read():
            pass
        os.close(self._fd)
        _, status = os.waitpid(self._pid, 0)
        return os.waitstatus_to_exitcode(status), self.text

    def _read(self) -> bool:
        ready, _, _ = select.select([self._fd], [], [], LIMIT_S)
        try:
            data = os.read(self._fd, 65536) if ready else b""
        except OSError:  # Linux says so at the end
            data = b""
        self.text += data.decode("utf-8", "replace").replace("\r\n", "\n")
        return bool(data)
