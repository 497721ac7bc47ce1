"""What is a host's tool called here, and what may a call of it do? One table a host."""

import re
from collections.abc import Iterator

from msgspec import Struct

from jackstay.core.messages import JsonObject, ToolCall
from jackstay.core.tools import ALL_EFFECTS, READS, Effect, ToolSpec
from jackstay.policy.gates import OWN_TOOLS


class HostTool(Struct, frozen=True, gc=False):
    """What is known of one of a host's tools.

    `name` is what our rules call it ("" keeps the host's name). `path_args`, `url_args` and `command_arg` name
    the host's arguments with paths, addresses and a command; `patch_args` those with a text that names files in
    it. Where `args` are given, a call with any other argument has all effects.
    """

    effects: frozenset[Effect]
    name: str = ""
    path_args: tuple[str, ...] = ()
    url_args: tuple[str, ...] = ()
    command_arg: str | None = None
    patch_args: tuple[str, ...] = ()
    args: frozenset[str] | None = None


class Names(Struct, frozen=True):
    """A host's tools. `own` matches the names of the harness's own there, with our name in a group."""

    host: str
    tools: dict[str, HostTool]
    own: str = r"(.+)"


class Known(Struct, frozen=True, gc=False):
    """A host's call in our words."""

    call: ToolCall
    spec: ToolSpec
    own: bool = False


def known(names: Names, tool: str, args: JsonObject, call_id: str) -> Known:
    """The call with what it may do. A tool nobody knows has all effects."""
    own = re.fullmatch(names.own, tool)
    if own is not None and own[1] in OWN_TOOLS:
        return Known(ToolCall(call_id, own[1], args), ToolSpec(own[1], "", {}, READS), own=True)
    entry = names.tools.get(tool)
    if entry is None:
        return Known(ToolCall(call_id, tool, args), ToolSpec(tool, "", {}, ALL_EFFECTS))
    effects = entry.effects
    if entry.args is not None and not args.keys() <= entry.args:
        effects = ALL_EFFECTS
    path_args = entry.path_args
    inside = [path for name in entry.patch_args for path in patched(args.get(name))]
    if inside:
        found = {f"file {number}": path for number, path in enumerate(inside, 1)}
        args, path_args = {**args, **found}, (*path_args, *found)
    name = entry.name or tool
    spec = ToolSpec(
        name, "", {}, effects, path_args=path_args, url_args=entry.url_args, command_arg=entry.command_arg
    )
    return Known(ToolCall(call_id, name, args), spec)


_HEADS = re.compile(
    r"^(?:\*\*\* (?:(?:Add|Update|Delete) File|Move to):[ \t]*(?P<star>.+?)"
    r"|(?:---|\+\+\+) (?!/dev/null)(?:[ab]/)?(?P<diff>[^\t\n]+?))[ \t]*\r?$",
    re.MULTILINE,
)


def patched(text: object) -> Iterator[str]:
    """The files that a patch names, each once, in order."""
    if not isinstance(text, str):
        return
    found = (match["star"] or match["diff"] for match in _HEADS.finditer(text))
    yield from dict.fromkeys(found)


_WRITES: frozenset[Effect] = frozenset({"reads", "writes"})
_WEB: frozenset[Effect] = frozenset({"reads", "network"})
_READ = HostTool(READS)
_AGENT = HostTool(
    READS, "task",
    args=frozenset({"description", "prompt", "subagent_type", "run_in_background", "model", "resume", "name"}),
)  # fmt: skip
_TODO = HostTool(READS, "todo")

CLAUDE_CODE = Names(
    "claude-code",
    {
        "Bash": HostTool(ALL_EFFECTS, "bash", command_arg="command"),
        "Monitor": HostTool(ALL_EFFECTS, "bash", command_arg="command"),
        "Edit": HostTool(_WRITES, "edit", path_args=("file_path",)),
        "MultiEdit": HostTool(_WRITES, "edit", path_args=("file_path",)),
        "Write": HostTool(_WRITES, "write", path_args=("file_path",)),
        "NotebookEdit": HostTool(_WRITES, "edit", path_args=("notebook_path",)),
        "Read": HostTool(READS, "read", path_args=("file_path",)),
        "NotebookRead": HostTool(READS, "read", path_args=("notebook_path",)),
        "Grep": HostTool(READS, "grep", path_args=("path",)),
        "Glob": HostTool(READS, "glob", path_args=("path",)),
        "LS": HostTool(READS, "ls", path_args=("path",)),
        "WebFetch": HostTool(_WEB, "webfetch", url_args=("url",)),
        "WebSearch": HostTool(_WEB, "websearch"),
        # What a subagent does is judged call by call; other arguments (a worktree of its own) do more.
        "Agent": _AGENT,
        "Task": _AGENT,
        "TodoWrite": _TODO, "TaskCreate": _TODO, "TaskUpdate": _TODO, "TaskGet": _TODO, "TaskList": _TODO,
        "AskUserQuestion": HostTool(READS, "clarify"),
        "EnterPlanMode": HostTool(READS, "clarify"),
        "ExitPlanMode": HostTool(READS, "clarify"),
        "Skill": HostTool(READS, "skill"),
        "SlashCommand": HostTool(READS, "skill"),
        "BashOutput": _READ, "TaskOutput": _READ, "ToolSearch": _READ, "LSP": _READ,
        "ListMcpResourcesTool": _READ, "ReadMcpResourceTool": _READ,
    },
    own=r"mcp__(?:plugin_jackstay_)?jackstay__(.+)",
)  # fmt: skip
