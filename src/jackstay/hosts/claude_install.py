"""Which files make Claude Code ask us, and how are they put in place and taken away?

Only our own entries change; what stood there before is kept beside the record of what was done.
"""

import os
import shlex
import shutil
import subprocess
import sys
from importlib import resources
from pathlib import Path
from typing import Any, Literal

import msgspec
from msgspec import Struct

from jackstay._version import __version__
from jackstay.core import wire
from jackstay.core.errors import ConfigError
from jackstay.core.messages import JsonObject
from jackstay.hosts.claude_code import EVENTS, HOST
from jackstay.hosts.json_text import plain, put, shown, without

Scope = Literal["user", "project"]
MARK = "jackstay.cli.hook"
START = f"from {MARK} import main; main()"  # as `-m` does, in a third of the time: runpy imports a lot
HOST_WAITS_S = 60
KILL_AFTER_S = 30
BLOCKING = frozenset({"PreToolUse", "UserPromptSubmit"})
SKILLS = (
    "work-principles", "pre-action-research", "change-safeguard", "work-closure-check", "deploy-register",
    "credential-store-management",
)  # fmt: skip

COMMANDS = {
    "approve-plan": (
        "---\ndescription: Approve the plan that was put to you\ndisable-model-invocation: true\n---\n"
        "I approve the plan. $ARGUMENTS\n"
    ),
    "phase": (
        "---\ndescription: Move the phase yourself, whatever the table says\n"
        "argument-hint: PHASE [reason]\ndisable-model-invocation: true\n---\n"
        "I have moved the phase: $ARGUMENTS\n"
    ),
}


class Edit(Struct, frozen=True, gc=False):
    """One file that is written: its text before (None: it did not exist) and after, and the pieces put in."""

    path: str
    before: str | None
    after: str
    pieces: tuple[str, ...] = ()


class Installed(Struct, frozen=True, gc=False):
    """What an installation has done, kept so that it can be undone."""

    scope: str
    home: str
    edits: tuple[Edit, ...]
    version: str = __version__


class Place(Struct, frozen=True, gc=False):
    """Where Claude Code looks. `config` is its configuration directory, `servers` the file with MCP servers."""

    settings: Path
    servers: Path
    config: Path


def place_of(
    scope: Scope, project: Path, *, environ: "os._Environ[str] | dict[str, str]" = os.environ
) -> Place:
    """The files of a scope. A project's go into its local settings: they name this machine's interpreter."""
    if scope == "project":
        folder = project / ".claude"
        return Place(folder / "settings.local.json", project / ".mcp.json", folder)
    chosen = environ.get("CLAUDE_CONFIG_DIR")
    folder = Path(chosen).absolute() if chosen else Path.home() / ".claude"
    servers = folder / ".claude.json" if chosen else Path.home() / ".claude.json"
    return Place(folder / "settings.json", servers, folder)


# -- what is written ---------------------------------------------------------------------------------------


def interpreter() -> list[str]:
    """The command that starts our Python as itself, whatever a project's settings put into the environment.

    Raises ConfigError when the package cannot be started from elsewhere.
    """
    for flags in (["-I"], ["-E", "-P"]):
        command = [sys.executable, *flags]
        tried = subprocess.run([*command, "-c", f"import {MARK}"], cwd="/", capture_output=True, check=False)
        if tried.returncode == 0:
            return command
    raise ConfigError(
        "this Python finds jackstay only through its environment",
        hint="install the package with pip and try again",
    )


def hook_command(python: list[str], home: Path, event: str) -> str:
    """The shell line of one hook. Whatever happens to our process but a whole answer becomes a block.

    A whole answer is a status of 0 and one JSON object; a process in our place that ends well and says nothing,
    or something else, has not answered.
    """
    words = [*python, "-c", START, HOST, "--home", str(home)]
    stopper = shutil.which("timeout")
    if stopper is not None:
        words = [stopper, "-k", "1", str(KILL_AFTER_S), *words]
    line = shlex.join(words)
    if event not in BLOCKING:
        return line
    why = "jackstay could not be asked, so this is blocked: run jackstay doctor"
    whole = """[ $code = 0 ] && case $said in '{'*'}') printf '%s\\n' "$said" && exit 0;; esac"""
    return f'said=$({line}); code=$?; {whole}; [ $code = 2 ] || echo "{why}" >&2; exit 2'


def hooks(python: list[str], home: Path) -> dict[str, JsonObject]:
    """One group for each event that is needed."""
    return {
        event: {"hooks": [
            {"type": "command", "command": hook_command(python, home, event), "timeout": HOST_WAITS_S}
        ]}
        for event in EVENTS
    }  # fmt: skip


def server(python: list[str]) -> JsonObject:
    """The MCP server with our tools."""
    return {"type": "stdio", "command": python[0], "args": [*python[1:], "-m", MARK, "tools"], "env": {}}


def denials(home: Path) -> list[str]:
    """The host's own rules for the worst calls: the second line, for a hook that never started."""
    places = [f"/{home}/**", "~/.claude/settings.json", "~/.claude/settings.local.json",
              ".claude/settings.json", ".claude/settings.local.json"]  # fmt: skip
    return [f"{tool}({place})" for place in places for tool in ("Edit", "Write")]


def planned(scope: Scope, place: Place, home: Path, *, python: list[str]) -> list[Edit]:
    """Every file that an installation writes. Raises ConfigError for one that cannot be edited."""
    additions: list[tuple[tuple[str, ...], Any, bool]] = [
        (("hooks", event), group, True) for event, group in hooks(python, home).items()
    ]
    additions += [(("permissions", "deny"), rule, True) for rule in reversed(denials(home))]
    if scope == "project":
        additions.append((("enabledMcpjsonServers",), "jackstay", True))
    edits = [
        _edit(place.settings, additions),
        _edit(place.servers, [(("mcpServers", "jackstay"), server(python), False)]),
    ]
    for name, text in {**_commands(), **_skills()}.items():
        path = place.config / name
        if not path.exists():
            edits.append(Edit(str(path), None, text))
    return edits


def _edit(path: Path, additions: list[tuple[tuple[str, ...], Any, bool]]) -> Edit:
    before = path.read_text("utf-8") if path.exists() else None
    text, pieces = before or "", []
    try:
        for at, value, item in additions:
            text, piece = put(text, at, value, item=item)
            pieces.append(piece)
    except ConfigError as problem:
        raise ConfigError(problem.problem, hint=problem.hint, where=str(path)) from problem
    return Edit(str(path), before, text, tuple(pieces))


def _commands() -> dict[str, str]:
    return {f"commands/{name}.md": text for name, text in COMMANDS.items()}


def _skills() -> dict[str, str]:
    """The skills' files below `skills/`, as the package ships them."""
    root = resources.files("jackstay").joinpath("skills", "data")
    found: dict[str, str] = {}
    for name in SKILLS:
        folder = root / name
        found[f"skills/{name}/SKILL.md"] = (folder / "SKILL.md").read_text("utf-8")
        for reference in (folder / "references").iterdir():
            found[f"skills/{name}/references/{reference.name}"] = reference.read_text("utf-8")
    return found


# -- done and undone ---------------------------------------------------------------------------------------


def record_file(home: Path, place: Place) -> Path:
    """Where an installation into this place is recorded."""
    from hashlib import sha256

    name = sha256(str(place.settings).encode()).hexdigest()[:12]
    return home / "hosts" / f"{HOST}-{name}.json"


def installed(home: Path, place: Place) -> Installed | None:
    """What was installed there; None for nothing. Raises ConfigError when the record cannot be read."""
    path = record_file(home, place)
    try:
        found: Installed = wire.convert(wire.decode_json(path.read_bytes()), Installed)
    except FileNotFoundError:
        return None
    except (OSError, ValueError, msgspec.ValidationError) as problem:
        raise ConfigError(f"{path} cannot be read: {problem}", hint="take our entries out by hand") from problem
    return found


def apply(scope: Scope, place: Place, home: Path, edits: list[Edit]) -> None:
    """Write the files, the record first: what was done can be undone even when this is cut short."""
    from jackstay.config.paths import ensure_private

    ensure_private(home / "hosts")
    record = Installed(scope, str(home), tuple(edits))
    _write(record_file(home, place), wire.encode(record).decode())
    for edit in edits:
        _write(Path(edit.path), edit.after)


def uninstall(home: Path, place: Place) -> list[str]:
    """Take our entries away; what was done, a line a file. What we made and nobody changed is removed."""
    found = installed(home, place)
    if found is None:
        return []
    told = [line for edit in found.edits if (line := _undo(edit, found.home)) is not None]
    record_file(home, place).unlink()
    return told


def _undo(edit: Edit, home: str) -> str | None:
    path = Path(edit.path)
    if not path.exists():
        return None
    text = path.read_text("utf-8")
    if text == edit.after:
        if edit.before is None:
            path.unlink()
            _remove_empty(path.parent)
            return f"removed  {path}"
        _write(path, edit.before)
        return f"restored {path}"
    if not edit.pieces:
        return f"kept     {path}: it was changed since"
    left = without(text, edit.pieces)
    if left is None:
        left = shown(_cleaned(plain(text), home))
    if left != text:
        _write(path, left)
    return f"edited   {path}"


def _remove_empty(folder: Path) -> None:
    """Remove what we made and left empty, never Claude's own folder."""
    while folder.name != ".claude" and not folder.name.startswith(".") and not any(folder.iterdir()):
        folder.rmdir()
        folder = folder.parent


def _cleaned(settings: Any, home: str) -> Any:
    """Rewritten settings without our entries, for a file that the host has laid out anew."""
    if not isinstance(settings, dict):
        return settings
    kept = dict(settings)
    if isinstance(kept.get("hooks"), dict):
        kept["hooks"] = {
            event: [group for group in groups if MARK not in str(group)] if isinstance(groups, list) else groups
            for event, groups in kept["hooks"].items()
        }
    permissions, ours = kept.get("permissions"), denials(Path(home))
    if isinstance(permissions, dict) and isinstance(permissions.get("deny"), list):
        kept["permissions"] = {**permissions, "deny": [one for one in permissions["deny"] if one not in ours]}
    servers = kept.get("mcpServers")
    if isinstance(servers, dict):
        kept["mcpServers"] = {name: one for name, one in servers.items() if MARK not in str(one)}
    return kept


def _write(path: Path, text: str) -> None:
    """Whole or not at all, with the mode the file had."""
    path.parent.mkdir(parents=True, exist_ok=True)
    target = path.resolve()  # a link stays a link
    mode = target.stat().st_mode & 0o777 if target.exists() else 0o600
    temporary = target.with_name(f".{target.name}.{os.getpid()}")
    temporary.write_text(text, "utf-8")
    temporary.chmod(mode)
    temporary.replace(target)


# -- a plugin folder ---------------------------------------------------------------------------------------


def plugin(home: Path, *, python: list[str]) -> dict[str, str]:
    """The files of a plugin for `claude --plugin-dir`, by their path below it."""
    manifest = {
        "name": "jackstay", "version": __version__,
        "description": "Holds the agent to a discipline: research, approved plan, backups, closing checklist",
    }  # fmt: skip
    groups = {event: [group] for event, group in hooks(python, home).items()}
    return {
        ".claude-plugin/plugin.json": shown(manifest),
        "hooks/hooks.json": shown({"hooks": groups}),
        ".mcp.json": shown({"mcpServers": {"jackstay": server(python)}}),
        **_commands(),
        **_skills(),
    }


def write_plugin(folder: Path, files: dict[str, str]) -> None:
    """Write a plugin folder. Raises ConfigError when there is something else in its place."""
    if folder.exists() and any(folder.iterdir()) and not (folder / ".claude-plugin" / "plugin.json").exists():
        raise ConfigError(f"{folder} is not empty and no plugin", hint="choose another folder")
    for name, text in files.items():
        _write(folder / name, text)
