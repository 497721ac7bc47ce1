"""How is a command started so that it can be bounded, watched, and ended with everything it started?"""

import contextlib
import errno
import os
import signal
import subprocess
import time
from collections.abc import Callable, Collection, Iterator
from pathlib import Path

import anyio
from anyio import CancelScope

from jackstay.core.errors import ToolFailed
from jackstay.engine.ports import Launch

CHUNK = 1 << 16
GRACE_S = 1.0  # between asking a process tree to end and ending it
_POLL_S = 0.02
_MARK = "JACKSTAY_CALL"  # in the environment of every descendant: finds those that left the session


class Capture:
    """What a stream said, in bounded memory: its first and its last bytes, and how many there were."""

    def __init__(self, head: int = 4 << 20, tail: int = 1 << 20) -> None:
        self.total = 0
        self._head, self._tail = bytearray(), bytearray()
        self._head_size, self._tail_size = head, tail

    def add(self, data: bytes) -> None:
        """Take in the next piece."""
        self.total += len(data)
        room = self._head_size - len(self._head)
        if room > 0:
            self._head += data[:room]
            data = data[room:]
        if data:
            self._tail += data
            if len(self._tail) > 2 * self._tail_size:
                del self._tail[: -self._tail_size]

    def parts(self) -> tuple[bytes, int, bytes]:
        """The beginning, how many bytes are missing after it, and the end."""
        tail = bytes(self._tail[-self._tail_size :])
        return bytes(self._head), self.total - len(self._head) - len(tail), tail


class Process:
    """A started command: in a session of its own, without input, its outputs in two pipes."""

    def __init__(self, launch: Launch, mark: str, *, pass_fds: Collection[int] = ()) -> None:
        self._mark = f"{_MARK}={mark}".encode()
        self.stdout, out = os.pipe()
        self.stderr, err = os.pipe()
        try:
            self._popen = subprocess.Popen(
                launch.argv, cwd=launch.cwd, env={**launch.env, _MARK: mark}, stdin=subprocess.DEVNULL,
                stdout=out, stderr=err, start_new_session=True, pass_fds=pass_fds,
            )  # fmt: skip
        except (OSError, ValueError) as problem:
            os.close(self.stdout)
            os.close(self.stderr)
            raise ToolFailed(_not_started(launch, problem)) from problem
        finally:
            os.close(out)
            os.close(err)
        self.pid = self._popen.pid
        self._exit_handle = _exit_handle(self.pid)
        os.set_blocking(self.stdout, False)
        os.set_blocking(self.stderr, False)

    async def exited(self) -> None:
        """Return once the command itself has ended, whatever it left running."""
        if self._exit_handle is not None:
            await anyio.wait_readable(self._exit_handle)
            return
        while self._popen.poll() is None:
            await anyio.sleep(_POLL_S)

    def reap(self) -> int | None:
        """The exit code (negative: the signal that ended it); None while it runs."""
        return self._popen.poll()

    async def pump(self, stream: int, hear: Callable[[bytes], None]) -> None:
        """Hand on what comes from one of the two outputs until nobody can write to it any more."""
        while True:
            await anyio.wait_readable(stream)
            try:
                data = os.read(stream, CHUNK)
            except BlockingIOError:
                continue
            if not data:
                return
            hear(data)

    def survivors(self) -> list[str]:
        """What this command started and left running, as `pid name`."""
        family = [pid for pid in _family(self.pid, self._mark) if pid != self.pid]
        return [f"{pid} {_name(pid)}" for pid in family]

    async def end(self) -> None:
        """End the command and everything it started: asked first, made to after a grace period."""
        with CancelScope(shield=True):
            asked = self._signal(signal.SIGTERM)
            deadline = time.monotonic() + GRACE_S
            while any(_running(pid) for pid in asked) and time.monotonic() < deadline:
                await anyio.sleep(_POLL_S)
            for _ in range(25):  # a tree that forks while it is being ended needs more than one round
                left = self._signal(signal.SIGKILL)
                if not any(_running(pid) for pid in left):
                    break
                await anyio.sleep(_POLL_S)

    def close(self) -> None:
        """Give back pipes and handles, and reap the command if it has ended."""
        for handle in (self.stdout, self.stderr, self._exit_handle):
            if handle is not None:
                os.close(handle)
        self._popen.poll()

    def _signal(self, number: int) -> list[int]:
        """Send the signal to all of the family; returns them."""
        family = _family(self.pid, self._mark)
        # the leader is not reaped before this, so its group id cannot belong to anybody else
        for send, target in [(os.killpg, self.pid), *((os.kill, pid) for pid in family)]:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                send(target, number)
        return family


# -- the process tree ------------------------------------------------------------------------------------------

_PROC = Path("/proc")


def _exit_handle(pid: int) -> int | None:
    """A descriptor that becomes readable when the process ends, where the system has such a thing."""
    opened = getattr(os, "pidfd_open", None)
    if opened is None:
        return None
    try:
        handle: int = opened(pid)
    except OSError:
        return None
    return handle


def _family(leader: int, mark: bytes) -> list[int]:
    """What runs of the leader, its session, its descendants, and whatever else carries its mark."""
    facts = dict(_processes())
    found = {pid for pid, (_, session) in facts.items() if session == leader or pid == leader}
    grew = True
    while grew:
        more = {pid for pid, (parent, _) in facts.items() if parent in found} - found
        found |= more
        grew = bool(more)
    found |= {pid for pid in facts if pid not in found and pid != os.getpid() and mark in _environment(pid)}
    return sorted(found) if facts else [leader]


def _processes() -> Iterator[tuple[int, tuple[int, int]]]:
    """Every process that runs: its parent and its session. Nothing where there is no /proc."""
    for entry in os.scandir(_PROC) if _PROC.is_dir() else ():
        if entry.name.isdigit():
            fields = _stat(int(entry.name))
            if fields and fields[0] != b"Z":
                yield int(entry.name), (int(fields[1]), int(fields[3]))


def _stat(pid: int) -> list[bytes]:
    """State, parent, group, session … of a process; nothing when it is gone."""
    try:
        data = (_PROC / str(pid) / "stat").read_bytes()
    except OSError:
        return []
    return data.rpartition(b")")[2].split()


def _running(pid: int) -> bool:
    if not _PROC.is_dir():
        with contextlib.suppress(OSError):
            os.kill(pid, 0)
            return True
        return False
    fields = _stat(pid)
    return bool(fields) and fields[0] != b"Z"


def _name(pid: int) -> str:
    try:
        return (_PROC / str(pid) / "comm").read_text(errors="replace").strip()
    except OSError:
        return "(gone)"


def _environment(pid: int) -> list[bytes]:
    try:
        return (_PROC / str(pid) / "environ").read_bytes().split(b"\0")
    except OSError:
        return []


def _not_started(launch: Launch, problem: OSError | ValueError) -> str:
    if isinstance(problem, OSError) and problem.errno == errno.E2BIG:
        return "the command is too long for this system: write it to a file and run that"
    if isinstance(problem, ValueError):
        return f"the command cannot be started: {problem}"
    return f"{launch.argv[0]} cannot be started: {problem.strerror or problem}"
