"""What are Hermes's tools called here, and what would a call of one touch? Version 0.19.0's own tools."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from jackstay.core.messages import JsonObject
from jackstay.core.tools import ALL_EFFECTS, READS, Effect
from jackstay.hosts.names import HostTool, Names

HOST = "hermes"
SKILLS = (
    "work-principles", "pre-action-research", "change-safeguard", "work-closure-check", "deploy-register",
    "credential-store-management",
)  # fmt: skip
_WRITES: frozenset[Effect] = frozenset({"reads", "writes"})
_WEB: frozenset[Effect] = frozenset({"reads", "network"})
_READ = HostTool(READS)
_LOOK = HostTool(_WEB)

# Tools whose argument `action` says whether a call only looks: the table has those that do as `tool:action`.
_BY_ACTION = frozenset({"process", "cronjob"})
# A patch with its files inside the text; they are judged as arguments of these names.
PATCH, _FILES = "patch:text", tuple(f"file {number}" for number in range(1, 51))

HERMES = Names(
    HOST,
    {
        "terminal": HostTool(ALL_EFFECTS, "bash", path_args=("workdir",), command_arg="command"),
        "process:list": HostTool(READS, "process"), "process:poll": HostTool(READS, "process"),
        "process:log": HostTool(READS, "process"), "process:wait": HostTool(READS, "process"),
        "read_file": HostTool(READS, "read", path_args=("path",)),
        "write_file": HostTool(_WRITES, "write", path_args=("path",)),
        "patch": HostTool(_WRITES, "edit", path_args=("path",)),
        PATCH: HostTool(_WRITES, "edit", path_args=_FILES),
        "search_files": HostTool(READS, "grep", path_args=("path",)),
        # What a subagent does is judged call by call.
        "delegate_task": HostTool(
            READS, "task", args=frozenset({"goal", "context", "tasks", "role", "background", "toolsets"})
        ),
        "skill_view": HostTool(READS, "skill"), "skills_list": HostTool(READS, "skill"),
        "todo": HostTool(READS, "todo"), "clarify": HostTool(READS, "clarify"),
        "session_search": _READ, "read_terminal": _READ, "tool_search": _READ, "tool_describe": _READ,
        "cronjob:list": HostTool(READS, "cronjob"), "kanban_show": _READ, "kanban_list": _READ,
        "web_search": HostTool(_WEB, "websearch"), "x_search": HostTool(_WEB, "websearch"),
        "web_extract": HostTool(_WEB, "webfetch", url_args=("urls",)),
        "vision_analyze": _LOOK,
        "browser_navigate": HostTool(_WEB, url_args=("url",)),
        "browser_snapshot": _LOOK, "browser_back": _LOOK, "browser_scroll": _LOOK, "browser_vision": _LOOK,
        "browser_get_images": _LOOK,
        "browser_console": HostTool(_WEB, args=frozenset({"clear"})),  # an expression is code that runs
        "ha_list_entities": _LOOK, "ha_get_state": _LOOK, "ha_list_services": _LOOK,
    },
)  # fmt: skip
"""Everything else (memory, skill_manage, execute_code, browser_click, mcp_*, …) has all effects."""


def told_apart(tool: str, args: Mapping[str, Any]) -> tuple[str, JsonObject]:
    """The name by which the table knows just this call, and its arguments with a patch's files among them."""
    if tool in _BY_ACTION:
        return f"{tool}:{args.get('action')}", dict(args)
    if tool != "patch" or args.get("mode") != "patch":
        return tool, dict(args)
    files = tuple(dict.fromkeys(patched(args.get("patch"))))
    if not files or len(files) > len(_FILES):
        return "patch:unread", dict(args)  # nobody knows this one: it has all effects
    return PATCH, {**args, **dict(zip(_FILES, files, strict=False))}


_HEAD = re.compile(
    r"^\s*\*\*\*\s*(?:(?:Update|Add|Delete)\s+File:\s*(?P<file>.+?)"
    r"|Move\s+File:\s*(?P<from>.+?)\s*->\s*(?P<to>.+?))\s*$",
    re.MULTILINE,
)


def patched(text: object) -> Iterator[str]:
    """The files that a patch in Hermes's form names, in order; a moved one under both names."""
    for match in _HEAD.finditer(text if isinstance(text, str) else ""):
        yield from (name for name in match.group("file", "from", "to") if name)


HOST_MADE = (
    "[ASYNC DELEGATION", "[IMPORTANT:", "[Continuing toward your standing goal]", "[SYSTEM", "[System",
    "Review the conversation above",
)  # fmt: skip
"""How messages begin that Hermes writes in its user's place; none of them is a person's word."""


def words_of(message: object) -> str:
    """The text of a user message, which may be a list of parts."""
    if isinstance(message, str):
        return message
    parts = message if isinstance(message, list) else []
    texts = (part.get("text") for part in parts if isinstance(part, dict))
    return "\n".join(text for text in texts if isinstance(text, str))


def by_a_person(message: str) -> bool:
    """Did a person write it, as far as its beginning tells?"""
    return not message.lstrip().startswith(HOST_MADE)
