"""What does a call consist of, as rules see it: commands, paths, addresses, or words?"""

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import msgspec

from jackstay.core.facts import CallFacts, PathFact, Use
from jackstay.core.messages import JsonObject, ToolCall
from jackstay.core.wire import decode_json
from jackstay.policy.lines import Line, read_line
from jackstay.policy.paths import climbs, directories, lexical, mark_of, within
from jackstay.policy.urls import Address, read_address

ALIASES = {
    "list": "ls", "todoread": "todo", "todowrite": "todo", "subagent": "task", "skill_view": "skill",
    "multitask": "task",
    "terminal": "bash", "shell": "bash", "web_fetch": "webfetch", "web_search": "websearch",
    "multiedit": "edit", "read_file": "read", "write_file": "write",
}  # fmt: skip

# What arguments mean when nobody has declared them: the names that the built-in tools and most hosts use.
_COMMAND_ARGS = ("command", "cmd")
_PATH_ARGS = ("file_path", "path", "notebook_path", "filename", "workdir")
_URL_ARGS = ("url", "link", "address")
_COMMAND_TOOLS = frozenset({"bash"})
_WRITERS = frozenset({"write", "edit"})


class Subject(msgspec.Struct, frozen=True, gc=False):
    """A call taken apart. `broken` says why an argument is not what its tool needs."""

    tool: str
    line: Line | None = None
    paths: tuple[PathFact, ...] = ()
    addresses: tuple[Address, ...] = ()
    words: tuple[str, ...] = ()
    broken: str | None = None

    @property
    def network(self) -> tuple[Address, ...]:
        """All addresses the call would speak to, also those of its command."""
        return self.addresses if self.line is None else (*self.addresses, *map(read_address, self.line.network))


@lru_cache(1024)
def tool_key(name: str) -> str:
    """The one name of a tool: lower case, aliases undone."""
    lowered = name.lower()
    return ALIASES.get(lowered, lowered)


def subject_of(call: ToolCall, facts: CallFacts) -> Subject:
    """Take a call apart; what nobody has resolved is taken as written."""
    tool = tool_key(call.tool)
    command_arg = facts.command_arg or _named(tool, call.args)
    if command_arg is not None:
        return _command(tool, call.args.get(command_arg), facts)
    urls = facts.url_args or tuple(name for name in _URL_ARGS if name in call.args)
    paths = facts.paths or tuple(_as_written(tool, call.args, facts))
    if not urls and not paths:
        words = call.args if tool != "task" else tasks_in(call.args) or call.args
        return Subject(tool, words=tuple(_leaves(words)))
    given = [call.args.get(name) for name in urls if call.args.get(name) is not None]
    wrong = next((value for value in given if not isinstance(value, str)), None)
    if wrong is not None:
        return Subject(tool, paths=paths, broken=f"the address {wrong!r} is not a text")
    return Subject(tool, paths=paths, addresses=tuple(read_address(str(value)) for value in given))


def tasks_in(args: JsonObject) -> list[Any] | None:
    """The pieces of work that a call of `task` or `multitask` hands on; None where there is no list of them.

    Some models send the list as JSON text.
    """
    if "tasks" not in args:
        return [args]
    tasks = args["tasks"]
    if isinstance(tasks, str):
        try:
            tasks = decode_json(tasks)
        except ValueError:
            return None
    return tasks if isinstance(tasks, list) else None


def _named(tool: str, args: JsonObject) -> str | None:
    if tool not in _COMMAND_TOOLS:
        return None
    return next((name for name in _COMMAND_ARGS if name in args), "command")


def _command(tool: str, command: Any, facts: CallFacts) -> Subject:
    if command is None:
        return Subject(tool, paths=facts.paths, broken="there is no command")
    if not isinstance(command, str):
        return Subject(tool, paths=facts.paths, broken=f"the command {command!r} is not a text")
    line = read_line(command)
    return Subject(tool, line, facts.paths or tuple(_as_read(line, facts)))


def _as_read(line: Line, facts: CallFacts) -> Iterator[PathFact]:
    """What a command touches, where nobody has looked: as its words say."""
    starts = directories(line.moves, facts.cwd, lambda move, start: lexical(move, start, facts.home))
    for target in line.targets:
        if not target.paths or not starts or (target.globs and _wild(target.paths)):
            yield PathFact(target.said, "", target.use)
            continue
        for path in target.paths:
            for start in starts:
                yield path_fact(path, facts, said=target.said, use=target.use, start=start)


def _wild(written: tuple[str, ...]) -> bool:
    """Could file names take the place of a directory below the root, or name hidden files?"""
    return any(_WILD.search(path) for path in written)


_WILD = re.compile(r"^/[^*?\[]*[*?\[][^/]*/|^/[^/]*[*?\[]|(^|/)\.[^/]*[*?\[]|^~[^/]*[*?\[]")


def _as_written(tool: str, args: JsonObject, facts: CallFacts) -> Iterator[PathFact]:
    for name in _PATH_ARGS:
        said = args.get(name)
        if isinstance(said, str):
            yield path_fact(said, facts, said=said, use="writes" if tool in _WRITERS else "reads")


def path_fact(path: str, facts: CallFacts, *, said: str, use: Use, start: str | None = None) -> PathFact:
    """A path nobody has resolved, links unknown; `start` is where it begins if not in the call's directory."""
    real = lexical(path, facts.cwd if start is None else start, facts.home)
    if facts.workspace:
        inside = within(real, facts.workspace) and "..\\" not in path
    else:
        inside = not path.startswith(("/", "~")) and not climbs(path) and not start
    return PathFact(said, real, use, inside, mark_of(real, use=use))


def _leaves(value: Any) -> Iterator[str]:
    """Every value of the arguments as text."""
    match value:
        case dict():
            for item in value.values():
                yield from _leaves(item)
        case list() | tuple():
            for item in value:
                yield from _leaves(item)
        case str():
            yield value
        case None | True | False:
            yield str(value).lower()
        case _:
            yield str(value)


def base_of(facts: CallFacts) -> str:
    """The directory that relative paths of rules begin in."""
    return facts.workspace or facts.cwd
