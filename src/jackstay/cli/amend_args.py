"""Which arguments does a person want in place of those a call came with? Checked by the tool's schema."""

import difflib
from collections.abc import Iterable
from typing import Any

import click

from jackstay.core.approvals import HITLTask
from jackstay.core.messages import JsonObject, snapshot
from jackstay.core.wire import decode_json
from jackstay.engine.ports import Tool


def amended(task: HITLTask, settings: Iterable[str], tool: Tool | None) -> JsonObject:
    """The call's arguments with these `name=value` texts in their place.

    A value is JSON where it can be read as such, else the text itself. Raises click.UsageError for a text of
    another form, a name the tool does not take, and arguments that do not fit its schema.
    """
    args: JsonObject = snapshot(task.args)
    properties = _properties(task, tool)
    for setting in settings:
        name, equals, text = setting.partition("=")
        if not equals or not name:
            raise click.UsageError(f"{setting!r} is not of the form name=value")
        if name not in properties:
            raise click.UsageError(_unknown(task, name, properties))
        args[name] = _value(text, properties[name])
    problem = tool.check(args) if tool is not None else None
    if problem is not None:
        raise click.UsageError(f"the arguments do not fit {task.tool_name!r}: {problem}")
    return args


def _properties(task: HITLTask, tool: Tool | None) -> JsonObject:
    """What the tool takes: by its schema, or where that is not known here, what the call came with."""
    if tool is None:
        return {name: {} for name in task.args}
    found: JsonObject = tool.spec.parameters.get("properties", {})
    return found


def _unknown(task: HITLTask, name: str, properties: JsonObject) -> str:
    near = difflib.get_close_matches(name, properties, 1)
    hint = f"did you mean {near[0]!r}?" if near else f"it takes: {', '.join(properties) or 'nothing'}"
    return f"{task.tool_name!r} takes no argument {name!r}; {hint}"


def _value(text: str, schema: Any) -> Any:
    try:
        value = decode_json(text)
    except ValueError:
        return text
    wants_text = isinstance(schema, dict) and schema.get("type") == "string"
    return text if wants_text and not isinstance(value, str) else value


def tool_of(task: HITLTask, home: str | None) -> Tool | None:
    """The built-in tool behind a call, for its schema; None for a tool that only an extension knows."""
    from jackstay.config.paths import home as home_path
    from jackstay.tools.registry import BUILT_IN, built_in

    if task.tool_name not in BUILT_IN:
        return None
    return built_in(task.tool_name, str(home_path(home) / "sessions"))
