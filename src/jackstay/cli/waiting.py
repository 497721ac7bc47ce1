"""How does a waiting call look to the person who decides, and which commands decide it?"""

import json
from collections.abc import Iterable
from typing import Any

from jackstay.cli.ages import clock
from jackstay.cli.plain import command_line, shown
from jackstay.core.approvals import HITLTask, OnDeadline
from jackstay.core.messages import JsonObject
from jackstay.core.wire import decode_json, encode

_THEN: dict[OnDeadline, str] = {
    "keep": "it waits on", "escalate": "it is put to somebody else", "deny": "it is denied, at the next resume",
}  # fmt: skip
_INDENT = 40  # blanks in front of a line that are taken as they are


def task_lines(task: HITLTask, *, now: float = 0.0) -> list[str]:
    """The whole call as it would run, nothing clipped and nothing hidden, and why it waits.

    A deadline before `now`, in epoch seconds, is told as one that has passed.
    """
    lines = [f"{task.key}  {shown(task.tool_name)}"]
    for name, value in task.args.items():
        lines += _argument(name, value)
    lines.append(f"  why: {shown(task.comment)}")
    if task.deadline is not None:
        passed = " (that time is up)" if task.deadline < now else ""
        lines.append(f"  until: {clock(task.deadline)}{passed}, then {_THEN[task.on_deadline]}")
    if task.escalated_to:
        lines.append(f"  put to: {shown(task.escalated_to)}")
    if task.always_rule is not None:
        lines.append(f"  always would add: {shown(task.always_rule)}")
    return lines


def _argument(name: str, value: Any) -> list[str]:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    rows = text.split("\n")
    if len(rows) == 1:
        return [f"  {shown(name)}: {shown(text)}"]
    return [f"  {shown(name)}:", *(f"    | {_row(row)}" for row in rows)]


def _row(row: str) -> str:
    """A line of a longer text: its indentation is no padding."""
    rest = row.lstrip(" ")
    indent = min(len(row) - len(rest), _INDENT)
    return row[:indent] + shown(row[indent:])


def task_object(session_id: str, run_id: str, task: HITLTask) -> JsonObject:
    """The call for `--json`."""
    plain: JsonObject = decode_json(encode(task))
    defaults = {"always_rule": None, "indeterminate": False}
    return {"session_id": session_id, "run_id": run_id, **defaults, **plain}


def how_to_decide(session_id: str, tasks: Iterable[HITLTask], home: str | None) -> list[str]:
    """The commands that decide what waits and go on afterwards."""
    ids = [task.key for task in tasks]
    chosen = ids if len(ids) == 1 else ["--all"]
    return [
        f"decide:  {command_line('approve', session_id, *chosen, home=home)}   (or: reject, skip)",
        f"go on:   {command_line('resume', session_id, home=home)}",
    ]


def plan_lines(plan: str) -> list[str]:
    """The plan in the agent's words, line by line."""
    return ["a plan waits for approval:", *(f"  | {_row(row)}".rstrip() for row in plan.strip().split("\n"))]


def how_to_approve(session_id: str, home: str | None) -> list[str]:
    """The commands that approve a plan and go on, or talk about it."""
    return [
        f"approve: {command_line('approve', session_id, '--plan', home=home)}",
        f"go on:   {command_line('resume', session_id, home=home)}",
        f"or say:  {command_line('run', '--session', session_id, 'what should be different', home=home)}",
    ]


def plan_note(session_id: str, plan: str, home: str | None) -> str:
    """All of it, for the end of a run that has put a plan."""
    lines = [f"  {line}" for line in plan_lines(plan)]
    return "\n".join([f"in session {session_id}:", *lines, *how_to_approve(session_id, home)])


def waiting_note(session_id: str, tasks: Iterable[HITLTask], home: str | None) -> str:
    """All of it, for the end of a run that waits."""
    found = list(tasks)
    lines = [f"waiting for approval in session {session_id}:"]
    for task in found:
        lines += [f"  {line}" for line in task_lines(task)]
    return "\n".join([*lines, *how_to_decide(session_id, found, home)])
