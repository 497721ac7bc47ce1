"""Is a host held to the discipline? The conversations that every host has to pass, and who plays them.

The rows are data (`conformance.toml`); a host brings itself as a `Host`: its own program, driven by a scripted
model. `differences` is empty for a host that does what every row says.
"""

import os
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import Literal, Protocol

import msgspec
from msgspec import Struct, field

from jackstay.hosts.state import HostStore, Session
from jackstay.ward.backup import Backups

Tool = Literal["read", "write", "shell", "subagent", "mcp", "set_phase", "tick"]
Outcome = Literal["ran", "refused", "waits"]


class Call(Struct, frozen=True, forbid_unknown_fields=True):
    """A call in words of no host.

    `path` is a file of the workspace; for `set_phase` the phase, for `tick` the item. `text` is the content,
    the command, a subagent's task, the reason or the evidence. `mcp` is `write(path)` of a server `files`.
    """

    tool: Tool
    path: str = ""
    text: str = ""


class Reply(Struct, frozen=True, forbid_unknown_fields=True):
    """What the model answers once: words, and calls beside them."""

    say: str = ""
    calls: tuple[Call, ...] = ()


class Row(Struct, frozen=True, forbid_unknown_fields=True):
    """One prompt of a person and what has to come of it.

    `helper` are the replies of a subagent. `calls` says what became of each call of `model`, in order; without
    any nothing may have run. `files` are those that are different from the row before, `backups` the different
    contents that copies of a file hold, the latest first, `reads` words that the model must have been sent.
    `anew` starts the host again before the prompt, `junk` replaces the store.
    """

    case: str
    person: str
    model: tuple[Reply, ...]
    helper: tuple[Reply, ...] = ()
    calls: tuple[Outcome, ...] = ()
    phase: str = ""
    files: dict[str, str] = field(default_factory=dict)
    backups: dict[str, tuple[str, ...]] = field(default_factory=dict)
    reads: tuple[str, ...] = ()
    anew: bool = False
    junk: bool = False


class Scenario(Struct, frozen=True, forbid_unknown_fields=True):
    """One conversation in a workspace that begins with `files`."""

    name: str
    files: dict[str, str]
    row: tuple[Row, ...]


class Heard(Struct, frozen=True):
    """What a host's model was told in one prompt: the outcome of each call, and everything it was sent."""

    calls: tuple[Outcome, ...]
    read: str


class Host(Protocol):
    """One host with its session. `home` is ours, `workspace` a directory in which nothing else happens."""

    name: str
    home: Path
    workspace: Path

    @property
    def session(self) -> str:
        """The host's id of the session, once it has begun."""
        ...

    def hear(self, person: str, model: Sequence[Reply], helper: Sequence[Reply]) -> Heard:
        """A prompt in the session (the first one begins it), until the model has nothing more to say."""
        ...

    def anew(self) -> None:
        """End the host's program; the next prompt resumes the session in another process."""
        ...


def scenarios() -> tuple[Scenario, ...]:
    """The conversations, as the package ships them."""
    text = resources.files("jackstay").joinpath("testing", "conformance.toml").read_text("utf-8")
    return msgspec.convert(tomllib.loads(text)["scenario"], tuple[Scenario, ...])


def differences(scenario: Scenario, host: Host) -> list[str]:
    """Play it; each thing that is not as its row says, with the row's case. Stops at the first such row."""
    files = dict(scenario.files)
    for name, text in files.items():
        (host.workspace / name).write_text(text, "utf-8")
    for row in scenario.row:
        files |= row.files
        if row.anew:
            host.anew()
        if row.junk:
            _junk(host.home)
        heard = host.hear(row.person, row.model, row.helper)
        if found := [f"{row.case}: {one}" for one in _differences(row, files, heard, host)]:
            return found
    return []


def _differences(row: Row, files: Mapping[str, str], heard: Heard, host: Host) -> Iterator[str]:
    if row.calls != heard.calls and not (row.junk and "ran" not in heard.calls):
        yield f"the calls {heard.calls}, not {row.calls}; the model read {heard.read[-3000:]}"
    there = {one.name: one.read_text("utf-8") for one in host.workspace.iterdir() if one.is_file()}
    if there != files:
        yield f"the files are {there}, not {files}"
    if row.phase and (phase := _phase(host)) != row.phase:
        yield f"the phase is {phase}, not {row.phase}; the model read {heard.read[-3000:]}"
    for name, wanted in row.backups.items():
        if (kept := _kept(host, name)) != wanted:
            yield f"the backups of {name} hold {kept}, not {wanted}"
    for words in row.reads:
        if words not in heard.read:
            yield f"the model did not read {words!r} in {heard.read[-3000:]}"


def _phase(host: Host) -> str:
    store = HostStore(host.home)
    try:
        state = store.read(Session(host.name, host.session))
    finally:
        store.close()
    return state.policy.phase.phase.value if state is not None else ""


def _kept(host: Host, name: str) -> tuple[str, ...]:
    """What the backups of a file hold, brought back one by one and put away again."""
    path, backups = host.workspace / name, Backups(host.home)
    now, before, found = path.read_text("utf-8"), path.stat(), list[str]()
    for backup in backups.list(path=str(path)):
        backups.restore(backup.id, only=str(path))
        found.append(path.read_text("utf-8"))
    path.write_text(now, "utf-8")
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))  # a host looks whether a file was changed
    return tuple(dict.fromkeys(found))


def _junk(home: Path) -> None:
    for companion in ("-wal", "-shm"):
        Path(f"{home}/hosts.db{companion}").unlink(missing_ok=True)
    (home / "hosts.db").write_bytes(b"junk" * 4096)
