"""A sandbox by bubblewrap: namespaces of the Linux kernel, no privileges needed."""

import shutil
import stat
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

from jackstay.core.errors import ConfigError
from jackstay.sandbox.profile import Profile

INSTALL = "install it with: apt-get install bubblewrap"
_TRIAL_S = 10.0


class Bubblewrap:
    """Confines commands with `bwrap`. Made by `find`, which proves that it works here."""

    name = "bwrap"

    def __init__(self, program: str) -> None:
        self._program = program

    @classmethod
    def find(cls) -> "Bubblewrap":
        """The bubblewrap of this machine, tried out once.

        Raises ConfigError with the command that installs it when it is missing, with its own words when the
        system does not let it work.
        """
        program = shutil.which("bwrap")
        if program is None:
            raise ConfigError("the sandbox 'bwrap' is not installed", hint=INSTALL)
        found = cls(program)
        try:
            trial = subprocess.run(
                found.wrap(("true",), Profile()), capture_output=True, text=True, timeout=_TRIAL_S, check=False
            )
        except (OSError, subprocess.SubprocessError) as problem:
            raise ConfigError(f"the sandbox 'bwrap' does not work here: {problem}", hint=_ALLOW) from problem
        if trial.returncode != 0:
            raise ConfigError(f"the sandbox 'bwrap' does not work here: {trial.stderr.strip()}", hint=_ALLOW)
        return found

    def wrap(self, argv: Sequence[str], profile: Profile) -> tuple[str, ...]:
        """The words that run `argv` so confined, in the directory they are started in."""
        return (self._program, *_options(profile), "--", *argv)


_ALLOW = (
    "allow unprivileged user namespaces (sysctl kernel.unprivileged_userns_clone=1), or name another sandbox"
)


def _options(profile: Profile) -> Iterator[str]:
    yield from ("--ro-bind", "/", "/", "--dev", "/dev")  # this /dev has a /dev/shm of its own
    yield from ("--unshare-user", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try")
    if not profile.processes:
        yield from ("--unshare-pid", "--proc", "/proc")
    if not profile.network:
        yield "--unshare-net"
    yield from ("--die-with-parent", "--new-session", "--cap-drop", "ALL", "--setenv", "TMPDIR", "/dev/shm")
    for place in profile.writable:
        yield from ("--bind", place, place)
    for place in profile.hidden:
        yield from _hide(place)


def _hide(place: str) -> Iterator[str]:
    try:
        found = Path(place).lstat()
    except OSError:
        return  # nothing there to hide
    if stat.S_ISDIR(found.st_mode):
        yield from ("--tmpfs", place)
    else:
        yield from ("--ro-bind", "/dev/null", place)
