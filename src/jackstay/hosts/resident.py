"""A hook's process that stays for the next events, so that they need not load everything again.

It is only ever faster: a hook that finds no resident, or gets no whole answer, judges by itself. Each event is
answered by a fork of its own, so that one that hangs or dies takes nothing with it.
"""

from __future__ import annotations

import gc
import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from jackstay.hosts.claude_code import answer

if TYPE_CHECKING:
    import socket

IDLE_S = 900.0
TICK_S = 5.0  # how soon it notices that its socket is gone
DEADLINE_S = 15
MOST_BYTES = 64_000_000


def judged_here(home: str, data: bytes) -> bytes:
    """The answer to one event. Raises whatever goes wrong."""
    return answer(data, Path(home)).stdout


def stay(home: str, path: str, environment: tuple[str, ...]) -> None:
    """Leave a process behind that answers the next events; returns at once, also where that cannot be.

    It has its own session and no open files of the caller, and ends by itself: after 15 idle minutes, when its
    socket is removed or replaced, when the installed package changes.
    """
    try:
        if os.fork() != 0:
            return
    except OSError:  # it would only have been faster
        return
    try:
        nowhere = os.open(os.devnull, os.O_RDWR)
        for descriptor in (0, 1, 2):
            os.dup2(nowhere, descriptor)  # first of all: until then the host waits for this process
        os.setsid()
        os.chdir("/")
        # Here and not above: the hook that has answered needs none of it.
        import signal

        from jackstay.config.paths import ensure_private

        signal.alarm(0)
        ensure_private(Path(path).parent)
        _serve(home, path, environment)
    finally:
        os._exit(0)


def _serve(home: str, path: str, environment: tuple[str, ...]) -> None:
    import signal
    import socket

    listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    temporary = f"{path}.{os.getpid()}"
    listening.bind(temporary)
    Path(temporary).chmod(0o600)
    mine = Path(temporary).stat().st_ino
    Path(temporary).rename(path)
    listening.listen(64)
    listening.settimeout(TICK_S)
    package, user = _package(), os.environ.get("HOME", "")
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    gc.enable()
    gc.freeze()
    idle = 0.0
    while idle < IDLE_S and _inode(path) == mine:
        try:
            line, _ = listening.accept()
        except TimeoutError:
            idle += TICK_S
            continue
        idle = 0.0
        if _package() != package:
            break
        if os.fork() == 0:
            listening.close()
            _answer_one(line, home, user, environment)
        line.close()
    if _inode(path) == mine:
        with suppress(OSError):
            Path(path).unlink()


def _answer_one(line: socket.socket, home: str, user: str, environment: tuple[str, ...]) -> None:
    """Answer and end; whatever goes wrong ends without an answer, and the hook judges by itself."""
    import signal

    try:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(DEADLINE_S)
        line.settimeout(DEADLINE_S)
        *values, data = _parts(line)
        said = dict(zip(environment, (os.fsdecode(value) for value in values), strict=True))
        if said.get("HOME") == user:
            environ = {name: value for name, value in said.items() if value}
            line.sendall(b"A" + answer(data, Path(home), environ=environ).stdout + b"Z")
            line.close()
    finally:
        os._exit(0)


def _parts(line: socket.socket) -> list[bytes]:
    received = bytearray()
    while piece := line.recv(65536):
        received += piece
        if len(received) > MOST_BYTES:
            raise ValueError("the event is too large")
    parts, at = list[bytes](), 0
    while at < len(received):
        size = int.from_bytes(received[at : at + 4], "big")
        parts.append(bytes(received[at + 4 : at + 4 + size]))
        at += 4 + size
    return parts


def _package() -> tuple[tuple[str, int], ...]:
    """Which files this process was made of, and from when."""
    found = (getattr(module, "__file__", None) for name, module in list(sys.modules.items())
             if name.startswith("jackstay"))  # fmt: skip
    return tuple(sorted((file, os.stat(file).st_mtime_ns) for file in found if file))  # noqa: PTH116 - many, quickly


def _inode(path: str) -> int:
    try:
        return os.stat(path).st_ino  # noqa: PTH116 - asked at every event
    except OSError:
        return 0
