"""Is the guard inside Claude Code alive? Looked at by sending a forbidden call through its hook."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal

import msgspec

from jackstay.core import wire
from jackstay.core.errors import ConfigError

State = Literal["ok", "warning", "problem"]
PROBE_S = 60


class Looked(msgspec.Struct, frozen=True, omit_defaults=True):
    """One thing that was looked at. `mend` is what to do about it."""

    state: State
    text: str
    mend: str = ""


def findings(home: Path, project: Path) -> Iterator[Looked]:
    """What was found of Claude Code and our place in it; one line only where it is not used here at all."""
    from jackstay.hosts.claude_install import installed, place_of

    held = False
    for scope in ("user", "project"):
        place = place_of(scope, project)
        if installed(home, place) is None:
            continue
        held = True
        yield from _entries(place.settings, scope)
    if not held:
        yield Looked("ok", "claude-code: not installed", "jackstay host install claude-code")
        return
    yield from _switched_off(project)


def _entries(settings: Path, scope: str) -> Iterator[Looked]:
    from jackstay.hosts.claude_code import EVENTS
    from jackstay.hosts.claude_install import MARK
    from jackstay.hosts.json_text import plain

    again = "jackstay host install claude-code" + (" --project" if scope == "project" else "")
    try:
        found: Any = plain(settings.read_text("utf-8"))
    except (OSError, ConfigError) as problem:
        yield Looked("problem", f"claude-code: {settings} cannot be read: {problem}", again)
        return
    groups = found.get("hooks", {}) if isinstance(found, dict) else {}
    commands = {event: _ours(groups.get(event), MARK) for event in EVENTS}
    missing = [event for event, command in commands.items() if command is None]
    if missing:
        yield Looked("problem", f"claude-code: {settings} lacks our hooks for {', '.join(missing)}", again)
    command = commands["PreToolUse"]
    if command is not None:
        yield _probed(command, settings, again)


def _ours(groups: Any, mark: str) -> str | None:
    for group in groups if isinstance(groups, list) else []:
        for hook in group.get("hooks", []) if isinstance(group, dict) else []:
            command = hook.get("command") if isinstance(hook, dict) else None
            if isinstance(command, str) and mark in command:
                return command
    return None


def _probed(command: str, settings: Path, again: str) -> Looked:
    """Send a write that has to be refused through the very command that the host would start."""
    with TemporaryDirectory() as folder:
        event = {
            "session_id": f"doctor-{Path(folder).name}", "cwd": folder, "hook_event_name": "PreToolUse",
            "tool_name": "Write", "tool_input": {"file_path": f"{folder}/probe", "content": "x"},
            "tool_use_id": "probe",
        }  # fmt: skip
        try:
            done = subprocess.run(
                ["/bin/sh", "-c", command], input=wire.encode(event), capture_output=True, timeout=PROBE_S,
                cwd=folder, check=False,
            )  # fmt: skip
        except (OSError, subprocess.SubprocessError) as problem:
            return Looked("problem", f"claude-code: the hook of {settings} cannot be started: {problem}", again)
    if done.returncode == 0 and b'"deny"' in done.stdout:
        return Looked("ok", f"claude-code: a forbidden write was refused by the hook of {settings}")
    if done.returncode == 2:
        why = done.stderr.decode("utf-8", "replace").strip()
        return Looked("problem", f"claude-code: the hook blocks everything: {why}", again)
    return Looked("problem", f"claude-code: the hook of {settings} lets a forbidden write pass", again)


def _switched_off(project: Path) -> Iterator[Looked]:
    from jackstay.hosts.json_text import plain

    for path in (project / ".claude" / "settings.json", project / ".claude" / "settings.local.json"):
        try:
            found = plain(path.read_text("utf-8"))
        except (OSError, ConfigError):
            continue
        if isinstance(found, dict) and found.get("disableAllHooks") is True:
            yield Looked(
                "problem", f"claude-code: {path} switches all hooks off, ours too",
                "take disableAllHooks out, or start claude with --setting-sources user",
            )  # fmt: skip
    if sys.platform == "linux" and not Path("/etc/claude-code/managed-settings.json").exists():
        yield Looked(
            "warning", "claude-code: a project's settings can switch hooks off (no managed settings here)",
            "see docs/hosts/claude-code.md, what the host cannot enforce",
        )  # fmt: skip
