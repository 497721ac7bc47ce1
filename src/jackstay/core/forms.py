"""How is each event and message part laid out in a stored step?

Every value is an array that begins with a short tag and leaves out the trailing fields that hold their
defaults. This is the one table that writing (`core.packing`) and reading (`core.unpacking`) share.
"""

from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import Any, NamedTuple

import msgspec

from jackstay.core import events as ev
from jackstay.core.events import BaseEvent
from jackstay.core.messages import Image, JsonObject, Message, Role, Thinking, ToolCall, ToolResult, Usage

Row = Sequence[Any]
Amended = tuple[int, Message]


def trimmed(row: tuple[Any, ...], blanks: tuple[Any, ...]) -> tuple[Any, ...]:
    """The row without the trailing values that a reader would fill in from `blanks`."""
    if not blanks or row[-1] != blanks[-1]:
        return row
    keep = len(row)
    plain = keep - len(blanks)
    if row[plain:] == blanks:  # the usual case, in one comparison
        return row[:plain]
    for blank in reversed(blanks):
        if row[keep - 1] != blank:
            break
        keep -= 1
    return row[:keep]


def filled(fields: tuple[str, ...], row: Row, blanks: tuple[Any, ...]) -> JsonObject:
    """The values of a row by field; what a newer version put after them is ignored."""
    missing = len(fields) - len(row)
    values = dict(zip(fields, row, strict=False))
    if missing > 0:
        values.update(zip(fields[-missing:], blanks[-missing:], strict=False))
    return values


class PartForm(NamedTuple):
    short: str
    fields: tuple[str, ...]
    blanks: tuple[Any, ...]
    values: Callable[[Any], tuple[Any, ...]]


def _part_form(short: str, kind: type[msgspec.Struct]) -> PartForm:
    fields = kind.__struct_fields__
    return PartForm(short, fields, kind.__struct_defaults__, attrgetter(*fields))


PARTS: dict[type[Any], PartForm] = {
    kind: _part_form(short, kind)
    for short, kind in (("c", ToolCall), ("r", ToolResult), ("k", Thinking), ("i", Image))
}
PART_KINDS: dict[str, tuple[type[Any], PartForm]] = {form.short: (k, form) for k, form in PARTS.items()}
ROLES: dict[Role, str] = {"system": "s", "user": "u", "assistant": "a", "tool": "t"}
ROLE_NAMES: dict[str, Role] = {short: role for role, short in ROLES.items()}


class EventForm(NamedTuple):
    """How the events of a kind are laid out: tag, fields in order, what stands for trailing ones left out."""

    short: str
    fields: tuple[str, ...]
    blanks: tuple[Any, ...]
    values: Callable[[Any], tuple[Any, ...]]


_COMMON = ("run_id", "session_id", "seq", "at")


def _form(short: str, kind: type[BaseEvent], *fields: str, blanks: tuple[Any, ...] | None = None) -> EventForm:
    names = fields or tuple(name for name in kind.__struct_fields__ if name not in _COMMON)
    return EventForm(short, names, kind.__struct_defaults__ if blanks is None else blanks, _getter(names))


def _getter(names: tuple[str, ...]) -> Callable[[Any], tuple[Any, ...]]:
    if len(names) > 1:
        return attrgetter(*names)
    if not names:
        return lambda event: ()
    get = attrgetter(names[0])
    return lambda event: (get(event),)


EVENTS: dict[type[BaseEvent], EventForm] = {
    ev.RunStartEvent: _form("rs", ev.RunStartEvent),
    ev.ContextSizeEvent: _form("cs", ev.ContextSizeEvent),
    ev.ReasonStartEvent: _form("ms", ev.ReasonStartEvent),
    ev.ReasonEndEvent: _form(
        "me", ev.ReasonEndEvent, "turn", "usage", "error", "text", "calls", blanks=(None, None, None, None)
    ),
    ev.HITLPendingEvent: _form("hp", ev.HITLPendingEvent),
    ev.HITLDecidedEvent: _form(
        "hd", ev.HITLDecidedEvent, "call_id", "decision", "comment", "tool_name", "args",
        blanks=(None, None, None),
    ),
    ev.ActionStartEvent: _form("as", ev.ActionStartEvent, blanks=(None,)),
    ev.ToolCallStartEvent: _form("ts", ev.ToolCallStartEvent, blanks=(None, None)),
    ev.ToolCallEndEvent: _form(
        "te", ev.ToolCallEndEvent,
        "call_id", "duration_ms", "is_error", "executed", "text", "tool_name", "args",
        blanks=(False, True, None, None, None),
    ),
    ev.ActionEndEvent: _form("ae", ev.ActionEndEvent),
    ev.RunEndEvent: _form(
        "re", ev.RunEndEvent, "outcome", "is_abnormal", "usage", "error", "text", blanks=(None, None)
    ),
    ev.PhaseChangedEvent: _form("pc", ev.PhaseChangedEvent),
    ev.GateBlockedEvent: _form("gb", ev.GateBlockedEvent),
    ev.GuidanceEvent: _form("gu", ev.GuidanceEvent),
    ev.SkillLoadedEvent: _form("sk", ev.SkillLoadedEvent),
    ev.LoopDetectedEvent: _form("ld", ev.LoopDetectedEvent),
    ev.BackupTakenEvent: _form("bt", ev.BackupTakenEvent),
    ev.PlanUpdatedEvent: _form("pu", ev.PlanUpdatedEvent),
    ev.RuleAddedEvent: _form("ra", ev.RuleAddedEvent),
    ev.AnchorSetEvent: _form("an", ev.AnchorSetEvent),
    ev.WarningEvent: _form("wa", ev.WarningEvent),
    ev.ErrorEvent: _form("er", ev.ErrorEvent),
    ev.UnknownEvent: _form("uk", ev.UnknownEvent),
}  # fmt: skip
EVENT_KINDS = {form.short: (kind, form) for kind, form in EVENTS.items()}
USAGE_FIELDS, USAGE_BLANKS = Usage.__struct_fields__, Usage.__struct_defaults__
usage_values = attrgetter(*USAGE_FIELDS)
