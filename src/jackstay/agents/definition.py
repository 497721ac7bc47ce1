"""What does an agent's Markdown file say? Front matter with its bounds, and the prompt below it."""

import difflib
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal, get_args

import msgspec

from jackstay.core.errors import ConfigError
from jackstay.core.rules import Behavior, PermissionRule

Origin = Literal["program", "project", "home", "built-in"]
NAME = re.compile(r"[A-Za-z0-9_-]{1,64}\Z")
MAX_BYTES = 256_000
_FENCE = re.compile(r"---[ \t]*\r?\n")
_END = re.compile(r"^---[ \t]*(?:\r?\n|\Z)", re.MULTILINE)
_FOR_OTHERS = frozenset({"color", "icon", "version", "author", "license", "primary"})  # they bound nothing


class BadAgent(ConfigError):
    """An agent's file that does not say what it has to; names the file, the place and the mend."""


class AgentDefinition(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """An agent that others can hand work to. Whatever it is given here, it never gets more than they have.

    `tools` are names and groups, None for all that whoever asks it has. `model` is a name or a Model, None for
    the asker's. `rules` may only object. `hidden`: not listed, but there for those who know its name.
    """

    name: str
    description: str = ""
    prompt: str = ""
    tools: tuple[str, ...] | None = None
    disallowed_tools: tuple[str, ...] = ()
    model: Any = None
    max_turns: int | None = None
    rules: tuple[PermissionRule, ...] = ()
    hidden: bool = False
    enabled: bool = True
    origin: Origin = "program"
    file: str = ""


def read_agent(file: Path, origin: Origin) -> AgentDefinition:
    """The agent in a file; one without front matter is a prompt, and its file's name is its own.

    Raises BadAgent: an agent with half of its bounds is none.
    """
    try:
        data = file.read_bytes()
        text = data.decode("utf-8-sig")
    except OSError as problem:
        raise BadAgent(f"the agent cannot be read: {problem.strerror}", where=str(file)) from problem
    except UnicodeDecodeError as problem:
        raise BadAgent("the agent is not UTF-8", where=str(file)) from problem
    if len(data) > MAX_BYTES:
        raise BadAgent(f"the agent has {len(data)} bytes, at most {MAX_BYTES} are read", where=str(file))
    values, body = _parts(text, file)
    known = {_snake(key): value for key, value in values.items() if key not in _FOR_OTHERS}
    for key in known:
        if key not in _FIELDS:
            near = difflib.get_close_matches(key, _FIELDS, 1)
            hint = f"did you mean {near[0]!r}?" if near else f"known are {', '.join(_FIELDS)}"
            raise BadAgent(f"there is no field {key!r} for agents", where=str(file), hint=hint)
    name = known.pop("name", file.stem)
    if not isinstance(name, str) or not NAME.match(name):
        raise BadAgent(f"name {name!r} is not 1 to 64 letters, digits, '_' or '-'", where=str(file))
    fields = {_FIELDS[key][0]: _FIELDS[key][1](value, f"{file}: {key}") for key, value in known.items()}
    return AgentDefinition(name=name, prompt=body, origin=origin, file=str(file), **fields)


def _parts(text: str, file: Path) -> tuple[dict[str, Any], str]:
    """The values of the front matter, and the body."""
    opened = _FENCE.match(text)
    if opened is None:
        return {}, text.strip()
    closed = _END.search(text, opened.end())
    if closed is None:
        raise BadAgent("front matter is not closed", where=f"{file}:1", hint="end it with a line `---`")
    import yaml  # only once somebody reads an agent

    try:
        values = yaml.load(text[opened.end() : closed.start()], getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    except (yaml.YAMLError, ValueError, RecursionError) as problem:
        mark = getattr(problem, "problem_mark", None)
        line = (mark.line if mark is not None else 0) + 2
        what = getattr(problem, "problem", None) or str(problem).split("\n")[0]
        raise BadAgent(f"front matter is not YAML: {what}", where=f"{file}:{line}") from problem
    if values is None:
        values = {}
    if not isinstance(values, dict):
        raise BadAgent("front matter is not a mapping", where=f"{file}:2", hint="write `description: …`")
    return {str(key): value for key, value in values.items()}, text[closed.end() :].strip()


def _snake(key: str) -> str:
    """`disallowedTools` and `disallowed-tools` are `disallowed_tools`."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", key).replace("-", "_").lower()


# -- fields ------------------------------------------------------------------------------------------------


def _text(value: Any, where: str) -> str:
    if not isinstance(value, str):
        raise BadAgent(f"expected a text, not {value!r}", where=where)
    return " ".join(value.split())


def _flag(value: Any, where: str) -> bool:
    if not isinstance(value, bool):
        raise BadAgent(f"expected true or false, not {value!r}", where=where)
    return value


def _count(value: Any, where: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise BadAgent(f"expected a whole number from 1 up, not {value!r}", where=where)
    return value


def _names(value: Any, where: str) -> tuple[str, ...]:
    """A list of names, or one text with commas between them."""
    names = value.split(",") if isinstance(value, str) else value
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise BadAgent(f"expected a list of names, not {value!r}", where=where)
    return tuple(name.strip() for name in names if name.strip())


def _rules(value: Any, where: str) -> tuple[PermissionRule, ...]:
    if not isinstance(value, list):
        raise BadAgent(f"expected a list of rules, not {value!r}", where=where)
    return tuple(_rule(entry, where) for entry in value)


def _rule(entry: Any, where: str) -> PermissionRule:
    """`{tool: bash, behavior: deny, pattern: git push *, priority: 5}`."""
    if not isinstance(entry, dict):
        raise BadAgent(f"expected a rule, not {entry!r}", where=where, hint=_RULE)
    said = {_snake(str(key)): value for key, value in entry.items()}
    tool, behavior = said.pop("tool", said.pop("tool_name", None)), said.pop("behavior", None)
    pattern, rank = said.pop("pattern", None), said.pop("priority", 0)
    behaves = _BEHAVIORS.get(behavior.lower()) if isinstance(behavior, str) else None
    fits = isinstance(pattern, str | None) and isinstance(rank, int)
    if said or not isinstance(tool, str) or behaves is None or not fits:
        raise BadAgent(f"{entry!r} is not a rule", where=where, hint=_RULE)
    return PermissionRule(tool, behaves, pattern, rank, origin=where)


_BEHAVIORS: dict[str, Behavior] = {one: one for one in get_args(Behavior)}
_RULE = "write `- {tool: bash, behavior: deny, pattern: 'git push *'}`"
_FIELDS: dict[str, tuple[str, Callable[[Any, str], Any]]] = {
    "name": ("name", _text),
    "description": ("description", _text),
    "tools": ("tools", _names),
    "disallowed_tools": ("disallowed_tools", _names),
    "model": ("model", _text),
    "max_turns": ("max_turns", _count),
    "permission_rules": ("rules", _rules),
    "hidden": ("hidden", _flag),
    "enabled": ("enabled", _flag),
}
