"""Which tools does a list of names mean?"""

import difflib
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import NamedTuple

from jackstay.core.errors import ConfigError, UnknownTool
from jackstay.engine.ports import Launcher, Tool

BUILT_IN: tuple[str, ...] = ("read", "write", "edit", "glob", "grep", "ls", "bash", "todo", "webfetch")
"""The tools that `build` makes itself."""

HITL = "hitl"  # a switch, not a tool

_OTHERS_PUBLIC = ("skill", "websearch", "codesearch", "code", "lsp", "task", "multitask")
_OTHERS = (
    "generate",
    "mcp",
    "openapi",
    "memory",
    "discipline_set_phase",
    "closure_check",
    "anchor_set",
    "recall",
)
_OF_THE_SYSTEM = frozenset((*BUILT_IN, *_OTHERS_PUBLIC, *_OTHERS))

_GROUPS: Mapping[str, tuple[str, ...]] = {
    "*": (*BUILT_IN, *_OTHERS_PUBLIC),
    "**": (*BUILT_IN, *_OTHERS_PUBLIC, *_OTHERS, HITL),
    "pi": ("read", "write", "edit", "bash"),
}
_ALIASES: Mapping[str, str] = {
    "list": "ls", "todoread": "todo", "todowrite": "todo", "subagent": "task", "restapi": "openapi",
    "skill_view": "skill",
}  # fmt: skip
_IMPLIED: Mapping[str, tuple[str, ...]] = {"edit": ("read", "write")}


class ToolChoice(NamedTuple):
    """The tools an agent gets, each once, and whether its sensitive calls wait for a person."""

    names: tuple[str, ...]
    hitl: bool


def expand(
    names: Iterable[str], *, disallowed: Iterable[str] = (), provided: Collection[str] = ()
) -> ToolChoice:
    """The tools that these names, groups and aliases mean, whatever their case.

    `provided` are further tools that exist: the user's own, and those other layers make. A group stands for
    those of its members that exist. `edit` brings read and write along; disallowing it takes away edit alone.
    Raises UnknownTool, and ConfigError for a tool of the system that this version or setting does not have.
    """
    there = _Known(provided)
    taken = {name for given in disallowed for name in there.meant(given, must_exist=False)}
    wanted: dict[str, None] = {}
    for given in names:
        for name in there.meant(given, must_exist=True):
            wanted.update(dict.fromkeys((name, *_IMPLIED.get(name, ()))))
    kept = [name for name in wanted if name not in taken]
    return ToolChoice(tuple(name for name in kept if name != HITL), HITL in kept)


def narrow(
    names: Iterable[str] | None, *, disallowed: Iterable[str] = (), among: Collection[str]
) -> tuple[str, ...]:
    """Those of the tools `among` that these names mean; None means all of them.

    What the system knows and is not among them is left out. Raises UnknownTool for what nothing answers to.
    """
    there = _Known(among)
    wanted = set(among)
    if names is not None:
        meant = [name for given in names for name in there.meant(given, must_exist=False)]
        wanted = {each for name in meant for each in (name, *_IMPLIED.get(name, ()))}
    taken = {name for given in disallowed for name in there.meant(given, must_exist=False)}
    return tuple(name for name in among if name in wanted and name not in taken)


def build(
    choice: ToolChoice,
    *,
    sessions_dir: str,
    launcher: Launcher | None = None,
    provided: Mapping[str, Tool] | None = None,
) -> tuple[Tool, ...]:
    """The chosen tools, in their order; one that is provided stands in for a built-in of the same name.

    `sessions_dir` is where plans are kept, `launcher` confines the commands of bash.
    """
    given = provided or {}
    return tuple(
        given[name] if name in given else built_in(name, sessions_dir, launcher) for name in choice.names
    )


def built_in(name: str, sessions_dir: str, launcher: Launcher | None = None) -> Tool:
    """One of the BUILT_IN tools. Imported when asked for: nobody pays for what the agent does not use."""
    if name in ("read", "write", "edit", "ls"):
        from jackstay.tools import files

        tools: dict[str, Tool] = {"read": files.read, "write": files.write, "edit": files.edit, "ls": files.ls}
        return tools[name]
    if name in ("grep", "glob"):
        from jackstay.tools import search

        return search.grep if name == "grep" else search.glob
    if name == "bash":
        from jackstay.tools.bash import bash_tool

        return bash_tool(launcher)
    if name == "todo":
        from jackstay.tools.todo import todo_tool

        return todo_tool(sessions_dir)
    if name == "webfetch":
        from jackstay.tools.web import webfetch_tool

        return webfetch_tool()
    raise UnknownTool(name, _nearest(name, BUILT_IN))


class _Known:
    """What exists here, and what a given name means of it."""

    def __init__(self, provided: Collection[str]) -> None:
        self._exact = {*BUILT_IN, HITL, *provided}
        self._folded = {name.casefold(): name for name in (*provided, *BUILT_IN, HITL)}

    def meant(self, given: str, *, must_exist: bool) -> Iterator[str]:
        """The names behind one given name; raises where it means nothing."""
        word = given.strip()
        folded = word.casefold()
        name = _ALIASES.get(folded, folded)
        if word in self._exact:
            yield word
        elif folded in _GROUPS:
            yield from (member for member in _GROUPS[folded] if member in self._exact)
        elif name in self._folded:
            yield self._folded[name]
        elif name in _OF_THE_SYSTEM:
            if must_exist:
                raise ConfigError(f"the tool {word!r} is not part of this set-up", hint=_ABSENT)
        else:
            raise UnknownTool(word, _nearest(folded, (*self._folded, *_ALIASES, *_GROUPS)))


_ABSENT = "this version does not ship it or no extension provides it: leave it out, or add a tool of that name"


def _nearest(name: str, known: Collection[str]) -> str | None:
    found = difflib.get_close_matches(name, known, 1, 0.5)
    return found[0] if found else None
