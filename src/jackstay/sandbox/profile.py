"""What may a confined process touch? Plain data, whatever enforces it."""

from collections.abc import Iterable

import msgspec


class Profile(msgspec.Struct, frozen=True, gc=False):
    """What a process may touch: everything may be read but `hidden`, only `writable` written.

    Paths are canonical. `hidden` directories and files look empty. `network` and `processes` (seeing those of
    others) are all or nothing. Temporary files go to a place of the process's own, named by TMPDIR.
    """

    writable: tuple[str, ...] = ()
    hidden: tuple[str, ...] = ()
    network: bool = False
    processes: bool = False


_LOOKS_AT_NETWORK = frozenset({
    "ss", "ip", "netstat", "ifconfig", "iwconfig", "nmcli", "route", "arp", "lsof", "hostname",
    "resolvectl", "dig", "nslookup", "host", "getent", "ping", "curl", "wget", "git", "docker", "podman",
    "kubectl", "helm", "systemctl", "gh", "glab", "apt", "apt-cache", "pip", "npm"
})  # fmt: skip


def read_view(programs: Iterable[str], *, hidden: tuple[str, ...] = ()) -> Profile:
    """The view of a command judged read-only: nothing can be written.

    It sees other processes, as `ps` must, and has the network only when one of its programs looks at it.
    """
    return Profile((), hidden, network=not _LOOKS_AT_NETWORK.isdisjoint(programs), processes=True)


def work_view(workspace: str, *, hidden: tuple[str, ...] = (), network: bool = False) -> Profile:
    """The view of a command that works in a workspace: writes stay in it."""
    return Profile((workspace,), hidden, network)
