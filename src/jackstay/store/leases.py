"""Who runs a session, is that process still alive, and may this commit go through?"""

import os
import zlib
from functools import lru_cache
from pathlib import Path

from jackstay.core.errors import Conflict, SessionBusy
from jackstay.engine.ports import Lease

_DEAD = ("Z", "X", "x")  # process states: zombie, dead
_START = 19  # where the start time stands among the fields of /proc/PID/stat after the name


def this_process(nonce: str = "") -> str:
    """This process as the owner of a lease: `host:pid:starttime`, with `:nonce` when one is given.

    The host part also names the boot and the PID namespace (`name~mark`): a process number means nothing
    outside them.
    """
    owner = _process(os.getpid())  # not remembered without the pid: a fork is another process
    return f"{owner}:{nonce}" if nonce else owner


@lru_cache(maxsize=4)
def _process(pid: int) -> str:
    return f"{_host()}:{pid}:{_start_time(pid)}"


def is_gone(owner: str) -> bool:
    """Is this owner shown to be dead? A process of this host that has ended, or whose number another has now.

    False when it lives and whenever that cannot be told: an owner elsewhere is judged by its lease's end only.
    """
    host, _, rest = owner.partition(":")
    pid, _, rest = rest.partition(":")
    started = rest.partition(":")[0]
    if host != _host() or not (pid.isascii() and pid.isdigit() and started):
        return False
    stat = _stat(int(pid))
    if len(stat) > _START:
        return stat[0] in _DEAD or stat[_START] != started
    return not _answers(int(pid))


def live(lease: Lease | None, now: float) -> Lease | None:
    """The lease while it binds anybody: not run out, its owner not known to be gone."""
    return lease if lease is not None and lease.until > now and not is_gone(lease.owner) else None


def rival(lease: Lease | None, owner: str | None, now: float) -> Lease | None:
    """The stored lease if it keeps `owner` out: somebody else's, and live."""
    return live(lease, now) if lease is not None and lease.owner != owner else None


def admit(session_id: str, expected: int, found: int, rival: Lease | None, now: float) -> None:
    """Let a commit at version `expected` pass where version `found` is stored, or say why not.

    Raises SessionBusy when a rival holds the lease, Conflict when the versions differ.
    """
    if rival is not None:
        raise SessionBusy(session_id, rival.owner, rival.until - now)
    if found != expected:
        raise Conflict(session_id, expected, found)


@lru_cache(maxsize=1)
def _host() -> str:
    mark = zlib.crc32(_boot().encode() + _namespace().encode())
    return f"{os.uname().nodename.replace(':', '_')}~{mark:08x}"


def _boot() -> str:
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="utf-8").strip()
    except OSError:
        return ""


def _namespace() -> str:
    try:
        return str(Path("/proc/self/ns/pid").readlink())
    except OSError:
        return ""


def _answers(pid: int) -> bool:
    """Where /proc does not show it: can the process be sent signals?"""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError):
        return True
    return True


def _start_time(pid: int) -> str:
    """When the process began, in clock ticks since boot; 0 where the system does not show it."""
    stat = _stat(pid)
    return stat[_START] if len(stat) > _START else "0"


def _stat(pid: int) -> list[str]:
    """The fields of /proc/PID/stat after the command's name, which may itself hold blanks and brackets."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return []
    return text.rpartition(")")[2].split()
