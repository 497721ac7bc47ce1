"""A person at a terminal: a program on a pseudo-terminal, keys typed into it, and what stands on the screen."""

import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import time
from collections.abc import Mapping
from contextlib import suppress
from fcntl import ioctl
from pathlib import Path

_CONTROLS = re.compile(
    rb"\x1b(?:\[[0-9;?<>=]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[()][A-Z0-9]|[=>78cDEHM])"
)
_REQUESTS = {b"\x1b[c": b"\x1b[?62;c", b"\x1b[6n": b"\x1b[1;1R"}  # what a terminal answers to a program


class Terminal:
    """One program in a terminal of 50 lines of 200 characters; ended with everything it has started."""

    def __init__(self, command: str, *, cwd: Path, env: Mapping[str, str]) -> None:
        ours, theirs = pty.openpty()
        ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 50, 200, 0, 0))
        self._process = subprocess.Popen(
            ["sh", "-c", f"exec {command}"], cwd=cwd, env={**env, "TERM": "xterm-256color"},
            stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True,
        )  # fmt: skip
        os.close(theirs)
        self._line, self._seen = ours, b""

    def __enter__(self) -> "Terminal":
        return self

    def __exit__(self, *raised: object) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        os.close(self._line)

    @property
    def screen(self) -> str:
        """Everything that was written so far, without controls and without blanks: programs draw these by moving."""
        return "".join(_CONTROLS.sub(b"", self._seen).decode("utf-8", "replace").split())

    def type(self, keys: str) -> None:
        """Type, and press Enter a moment after: programs take what comes at once for pasted text."""
        os.write(self._line, keys.encode())
        time.sleep(0.5)
        os.write(self._line, b"\r")

    def ended(self, *, within_s: float) -> int:
        """The exit code of a program that ends by itself, once all it wrote was read."""
        self.shows("\0", within_s=within_s)
        return self._process.wait(1)

    def shows(self, words: str, *, within_s: float = 60) -> bool:
        """Do these words come onto the screen?"""
        wanted, until = "".join(words.split()), time.monotonic() + within_s
        while wanted not in self.screen and time.monotonic() < until:
            if select.select([self._line], [], [], 0.1)[0]:
                try:
                    piece = os.read(self._line, 65536)
                except OSError:  # the program has ended
                    break
                self._seen += piece
                for request, answer in _REQUESTS.items():
                    if request in piece:
                        os.write(self._line, answer)
        return wanted in self.screen
