"""What is different on this machine after a task?

Two looks at the same things, and what the second has that the first had not. A source that cannot be asked is
named in the look; nothing here raises, and every command has a time limit.
"""

import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from msgspec import Struct

from jackstay.core.phase import Finding
from jackstay.engine.ports import WORKSPACE_MARK
from jackstay.policy.checklist import BASELINE, Checked

COMMAND_TIMEOUT_S = 5.0
MAX_ENTRIES = 500
DISK_SLACK_BYTES = 1_000_000_000
PROC = Path("/proc")

ELSEWHERE = "started by something else"

Source = Callable[["Place"], dict[str, str]]


class Place(Struct, frozen=True, gc=False):
    """Where to look: the workspace, the directory of temporary files, the user's home.

    `mark` is a `NAME=value` that the environment of this task's own processes holds, "" when there is none.
    """

    workspace: str
    temporary: str = "/tmp"
    home: str = ""
    mark: str = ""


class Look(Struct, frozen=True, gc=False, omit_defaults=True):
    """What was there at one moment, by source: subject → how to say it; `missing` are silent sources."""

    entries: dict[str, dict[str, str]] = {}
    missing: dict[str, str] = {}


class Difference(Struct, frozen=True, gc=False):
    """Something the second look has and the first had not.

    `residue` is certainly this task's: it has to go, or a person says it stays.
    """

    source: str
    subject: str
    text: str
    residue: bool


def look(place: Place) -> Look:
    """Look at everything there is to look at; takes well under a second, and at most the time limits in all."""
    entries: dict[str, dict[str, str]] = {}
    missing: dict[str, str] = {}
    for name, source in SOURCES.items():
        try:
            entries[name] = dict(list(source(place).items())[:MAX_ENTRIES])
        except _NoAnswer as problem:
            missing[name] = str(problem)
        except (OSError, ValueError) as problem:
            missing[name] = f"{type(problem).__name__}: {problem}"
    return Look(entries, missing)


def compare(before: Look, after: Look, *, mine: frozenset[str] = frozenset()) -> tuple[Difference, ...]:
    """What came to be between two looks, of the sources both could ask; `mine` are paths this task wrote."""
    return tuple(
        Difference(name, subject, text, _is_residue(name, subject, text, mine))
        for name in SOURCES
        if name in before.entries
        for subject, text in after.entries.get(name, {}).items()
        if subject not in before.entries[name] and not (name == "disk" and _within_slack(before, after))
    )


def checked(before: Look | None, after: Look, *, mine: frozenset[str] = frozenset()) -> Checked:
    """The comparison as the result of the closing item.

    `mine` are the paths this task has written. Residue has to go, each by itself; other differences are
    accounted for source by source, and so is a source that has fallen silent.
    """
    if before is None:
        text = "there is no look from before the task: say what was compared by hand"
        return Checked(True, "no baseline", (Finding(BASELINE, "compared", text, residue=False),))
    differences = compare(before, after, mine=mine)
    findings = [Finding(BASELINE, one.subject, one.text) for one in differences if one.residue]
    for name, word in WORDS.items():
        rest = [one.text for one in differences if one.source == name and not one.residue]
        if rest or (name in after.missing and name not in before.missing):
            said = "; ".join(rest[:10]) or f"{name} could not be asked again"
            findings.append(Finding(BASELINE, word, said, residue=False))
    asked = ", ".join(name for name in SOURCES if name in before.entries and name in after.entries)
    count = len(differences)
    summary = f"compared {asked}: {count or 'no'} difference{'' if count == 1 else 's'}"
    if before.missing:
        summary += f" (not asked: {', '.join(before.missing)})"
    return Checked(not any(one.residue for one in findings), summary, tuple(findings))


def _is_residue(source: str, subject: str, text: str, mine: frozenset[str]) -> bool:
    if source == "temporary files":
        return subject in mine or any(path.startswith(f"{subject}/") for path in mine)
    return source == "background processes" or (source == "SSH connections" and ELSEWHERE not in text)


def _within_slack(before: Look, after: Look) -> bool:
    """Has the disk filled by no more than one step?"""
    then, now = (int(next(iter(one.entries["disk"]), "disk:0").partition(":")[2]) for one in (before, after))
    return now - then <= 1


# -- sources -----------------------------------------------------------------------------------------------


class _NoAnswer(Exception):
    """A source that cannot be asked here; the text says why."""


def _run(*command: str) -> str:
    """The output of a command that only looks, without pager or prompt. Raises _NoAnswer."""
    if shutil.which(command[0]) is None:
        raise _NoAnswer(f"{command[0]} is not installed")
    environment = {"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C", "GIT_OPTIONAL_LOCKS": "0"}
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            timeout=COMMAND_TIMEOUT_S,
            stdin=subprocess.DEVNULL,
            env=environment,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise _NoAnswer(f"{command[0]} gave no answer within {COMMAND_TIMEOUT_S:.0f} s") from None
    if done.returncode != 0:
        first = done.stderr.decode("utf-8", "replace").strip().split("\n")[0][:120]
        raise _NoAnswer(f"{command[0]} failed: {first or f'exit {done.returncode}'}")
    return done.stdout.decode("utf-8", "replace")


# What a repository's own configuration could make git run while it only looks.
GIT_LOOK = ("git", "--no-pager", "-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null")


def git_status(workspace: str) -> tuple[str, ...]:
    """The uncommitted paths of the repository around `workspace`, from its root. Raises OSError if unknown."""
    try:
        return _uncommitted(workspace)
    except _NoAnswer as problem:
        raise OSError(str(problem)) from problem


def task_files(changed: Iterable[str], workspace: str, before: Look | None) -> tuple[str, ...]:
    """Every file this task may have changed, as absolute paths, for the credential scan.

    `changed` are those it wrote by name. What git calls uncommitted now and did not in the look from before the
    task comes with them: a script writes files that no call named. Where git cannot be asked, `changed` is all.
    """
    named = tuple(changed)
    if before is None or "git status" not in before.entries:
        return named
    try:
        root = Path(_run(*GIT_LOOK, "-C", workspace, "rev-parse", "--show-toplevel").rstrip("\n"))
        dirty = _uncommitted(workspace, untracked="all")
    except _NoAnswer:
        return named
    known = tuple(before.entries["git status"])
    fresh = [
        path
        for path in dirty
        if not any(path == old or (old.endswith("/") and path.startswith(old)) for old in known)
    ]
    return tuple(dict.fromkeys((*named, *(str(root / path) for path in fresh))))


def _uncommitted(workspace: str, *, untracked: str = "normal") -> tuple[str, ...]:
    listed = _run(
        *GIT_LOOK, "-C", workspace, "status", "--porcelain=v1", "-z", f"--untracked-files={untracked}"
    )
    found: list[str] = []
    rest = iter(listed.split("\0"))
    for entry in rest:
        if entry:
            found.append(entry[3:])
            if entry[0] in "RC":
                next(rest, None)  # where it was renamed from
    return tuple(found)


def _git(place: Place) -> dict[str, str]:
    return {path: f"{path} is not committed" for path in _uncommitted(place.workspace)}


_LISTENING = "0A"


def _ports(place: Place) -> dict[str, str]:
    found: dict[str, str] = {}
    for table in ("tcp", "tcp6"):
        file = PROC / "net" / table
        if file.exists():
            for line in file.read_text("ascii").splitlines()[1:]:
                fields = line.split()
                if fields[3] == _LISTENING:
                    port = int(fields[1].rsplit(":", 1)[1], 16)
                    found[f"port:{port}"] = f"something listens on port {port}"
    if not (PROC / "net" / "tcp").exists():
        raise _NoAnswer("/proc/net/tcp is not there")
    return dict(sorted(found.items()))


def _units(place: Place) -> dict[str, str]:
    listed = _run("systemctl", "list-units", "--failed", "--plain", "--no-legend", "--no-pager")
    names = [line.split()[0] for line in listed.splitlines() if line.split()]
    return {f"unit:{name}": f"the unit {name} has failed" for name in names}


def _disk(place: Place) -> dict[str, str]:
    """Free space in steps, so that small changes are none."""
    usage = shutil.disk_usage(place.workspace)
    used = usage.used // DISK_SLACK_BYTES
    return {f"disk:{used}": f"about {used} GB of the workspace's disk are used"}


def _ssh(place: Place) -> dict[str, str]:
    found: dict[str, str] = {}
    for pid, words, directory in _processes():
        if words[0].rsplit("/", 1)[-1].rstrip(":") in ("ssh", "autossh"):
            blank = _is_blank(directory) and not _is_of_another_home(words, place)
            whose = "" if _is_ours(directory, place) or blank else f", {ELSEWHERE}"
            found[f"pid:{pid}"] = f"an SSH connection is open (pid {pid}: {' '.join(words)[:100]}{whose})"
    for socket in _control_sockets(place):
        found[str(socket)] = f"an SSH control socket is left: {socket}"
    return found


def _control_sockets(place: Place) -> Iterator[Path]:
    places = [Path(place.home) / ".ssh", Path(place.home) / ".ssh" / "sockets", Path(place.temporary)]
    for directory in places if place.home else places[2:]:
        try:
            yield from sorted(
                entry for entry in directory.iterdir() if entry.is_socket() and _is_control(entry)
            )
        except OSError:
            continue


def _is_control(entry: Path) -> bool:
    """ssh's master sockets are named by the user: by host and port, or by a word that says what they are."""
    return entry.parent.name in (".ssh", "sockets") or bool(
        re.search(r"ssh|control|master|mux|cm-|@", entry.name)
    )


def _temporary(place: Place) -> dict[str, str]:
    """Our user's own top-level entries of the temporary directory."""
    found: dict[str, str] = {}
    with os.scandir(place.temporary) as entries:
        for entry in entries:
            try:
                ours = entry.stat(follow_symlinks=False).st_uid == os.getuid()
            except OSError:
                continue
            if ours:
                found[entry.path] = f"a temporary file is left: {entry.path}"
    return dict(sorted(found.items()))


def _background(place: Place) -> dict[str, str]:
    """Processes that carry this task's mark in their environment."""
    if not place.mark:
        return {}
    found: dict[str, str] = {}
    for pid, words, directory in _processes():
        if pid != os.getpid() and _is_ours(directory, place):
            found[f"pid:{pid}"] = f"a process is still running (pid {pid}: {' '.join(words)[:100]})"
    return found


_BELOW = re.compile(rb"(?:\.[0-9a-f]{10})*")  # of each session between


def _is_ours(directory: Path, place: Place) -> bool:
    """Does a process carry this task's mark, or that of a subagent, whose session's name begins with it?

    Without a mark every process of the user may be the task's.
    """
    if not place.mark:
        return True
    try:
        entries = (directory / "environ").read_bytes().split(b"\0")
    except OSError:
        return False
    own, elsewhere = place.mark.encode(), f"{WORKSPACE_MARK}=".encode()
    if any(
        entry.startswith(elsewhere) and entry != elsewhere + os.fsencode(place.workspace) for entry in entries
    ):
        return False  # a session of the same name in another workspace
    return any(entry.startswith(own) and _BELOW.fullmatch(entry[len(own) :]) for entry in entries)


def _is_blank(directory: Path) -> bool:
    """Has the process written over its environment, as ssh's master does with its title?"""
    try:
        return not (directory / "environ").read_bytes().strip(b"\0")
    except OSError:
        return False


def _is_of_another_home(words: list[str], place: Place) -> bool:
    """Is it ssh's master with its socket in the `.ssh` of a home that is not ours?"""
    socket = Path(words[1] if len(words) > 1 else "")
    return ".ssh" in socket.parts[:-1] and bool(place.home) and not socket.is_relative_to(place.home)


def _processes() -> Iterator[tuple[int, list[str], Path]]:
    """The processes of our user that have a command line: pid, words, directory below /proc."""
    if not PROC.is_dir():
        raise _NoAnswer("/proc is not there")
    for directory in PROC.iterdir():
        if not directory.name.isdigit():
            continue
        try:
            if directory.stat().st_uid != os.getuid():
                continue
            line = (directory / "cmdline").read_bytes()
        except OSError:
            continue
        words = [word.decode("utf-8", "replace") for word in line.rstrip(b"\0").split(b"\0")]
        if words[0]:
            # ssh's master rewrites its title into one word: "ssh: /path/to/socket [mux]"
            yield int(directory.name), words[0].split(" ") + words[1:], directory


SOURCES: dict[str, Source] = {
    "git status": _git,
    "listening ports": _ports,
    "failed units": _units,
    "disk": _disk,
    "SSH connections": _ssh,
    "temporary files": _temporary,
    "background processes": _background,
}
# What the evidence has to speak of when a source has changed.
WORDS: dict[str, str] = {
    "git status": "git",
    "listening ports": "port",
    "failed units": "unit",
    "disk": "disk",
    "SSH connections": "ssh",
    "temporary files": "temporary",
    "background processes": "process",
}
