"""What does a stored step look like? Events and messages as short rows that do not say a thing twice.

A step is the JSON array `[events, messages, amended]`. Every value is an array that begins with a short tag
and leaves out the trailing fields that hold their defaults; a plain string is a text part. Events leave out
what the reply of their step and the current batch say already (texts, arguments, tool names): the batch is the
last reply with calls and the results after it. `core.unpacking` reads it.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import msgspec

from jackstay.core import events as ev
from jackstay.core.approvals import HITLTask
from jackstay.core.events import Event
from jackstay.core.forms import EVENTS, PARTS, ROLES, USAGE_BLANKS, Amended, Row, trimmed, usage_values
from jackstay.core.messages import JsonObject, Message, Text, ToolCall, ToolResult, UnknownPart, Usage
from jackstay.core.transcript import Transcript
from jackstay.core.wire import encode


def pack_message(message: Message) -> Row:
    """A message as a row: role, parts, then pinned and note where they say something."""
    parts: list[Any] = []
    for part in message.parts:
        if isinstance(part, Text):
            parts.append(part.text)
        elif isinstance(part, UnknownPart):
            parts.append(_pack_unknown(part))
        else:
            form = PARTS[type(part)]
            parts.append((form.short, *trimmed(form.values(part), form.blanks)))
    role = ROLES[message.role]
    if message.note is not None:
        return (role, parts, message.pinned, message.note)
    return (role, parts, True) if message.pinned else (role, parts)


def _pack_unknown(part: UnknownPart) -> Any:
    raw = part.raw
    if raw.keys() == {"type", "fields"} and isinstance(raw["type"], str) and isinstance(raw["fields"], list):
        return (raw["type"], *raw["fields"])
    return raw


def _same(one: Any, other: Any) -> bool:
    """Equal as JSON: 1, 1.0 and True differ, and so does the order of keys."""
    return one is other or (one == other and encode(one) == encode(other))


def _same_calls(some: tuple[ToolCall, ...], others: tuple[ToolCall, ...]) -> bool:
    return len(some) == len(others) and all(map(_same, some, others))


class _Batch(NamedTuple):
    """The last reply with calls: its calls by id with their places in it, and the texts of their results."""

    calls: dict[str, ToolCall]
    places: dict[str, int]
    results: dict[str, str]


_NO_BATCH = _Batch({}, {}, {})


def _batch_at_the_end(transcript: Transcript) -> _Batch:
    """The batch that the transcript ends with; none where two of its calls share an id."""
    reply, answers = transcript.last_batch()
    if reply is None or reply.role != "assistant":
        return _NO_BATCH
    calls: dict[str, ToolCall] = {}
    places: dict[str, int] = {}
    results: dict[str, str] = {}
    for part in reply.parts:
        if isinstance(part, ToolCall):
            if part.call_id in calls:
                return _NO_BATCH
            places[part.call_id] = len(places)
            calls[part.call_id] = part
    for one in answers:
        for said in one.parts:
            if isinstance(said, ToolResult):
                results[said.call_id] = said.text
    return _Batch(calls, places, results)


class _Packer:
    """Packs the events of one step against what its reader will know by then."""

    __slots__ = ("_batch", "_said")

    def __init__(self, transcript: Transcript, appended: Sequence[Message], *, amends: bool) -> None:
        self._batch = _NO_BATCH if amends else _batch_at_the_end(transcript)
        self._said: Message | None = None
        for message in appended:
            if message.role == "assistant":
                self._said = message
                break

    def rows(self, events: Iterable[Event], run_id: str) -> list[Row]:
        """The events as rows; a row of another time or run is announced by one that holds just these."""
        rows: list[Row] = []
        at: float | None = None
        run = run_id
        for event in events:
            if event.run_id != run:
                at, run = event.at, event.run_id
                rows.append((at, run))
            elif event.at != at:
                at = event.at
                rows.append((at,))
            kind = type(event)
            pack = _PACK.get(kind)
            rows.append(self._row(kind, event) if pack is None else pack(self, event))
        return rows

    def _row(self, kind: type[Any], event: Event) -> Row:
        form = EVENTS.get(kind)
        if form is None:
            raise TypeError(f"{kind.__name__} is transient: such events are never stored")
        return (form.short, *trimmed(form.values(event), form.blanks))

    def _trim(self, event: Event, *values: Any) -> Row:
        form = EVENTS[type(event)]
        return (form.short, *trimmed(values, form.blanks))

    def _reason_end(self, event: ev.ReasonEndEvent) -> Row:
        said, usage = self._said, _pack_usage(event.usage)
        told = said is not None and said.text == event.text and _same_calls(said.calls, event.calls)
        if told and event.error is None and usage is not None:
            return ("me", event.turn, usage)
        words = (None, None) if told else (event.text, event.calls)
        return self._trim(event, event.turn, usage, event.error, *words)

    def _run_end(self, event: ev.RunEndEvent) -> Row:
        text = None if self._said is not None and self._said.text == event.text else event.text
        usage = _pack_usage(event.usage)
        return self._trim(event, event.outcome, event.is_abnormal, usage, event.error, text)

    def _pending(self, event: ev.HITLPendingEvent) -> Row:
        return ("hp", [self._task(task) for task in event.pending_tasks])

    def _task(self, task: HITLTask) -> JsonObject:
        plain: JsonObject = msgspec.to_builtins(task)
        if self._says(task.call_id, task.tool_name, task.args):
            del plain["tool_name"], plain["args"]
        return plain

    def _decided(self, event: ev.HITLDecidedEvent) -> Row:
        return self._trim(event, event.call_id, event.decision, event.comment, *self._call(event))

    def _action_start(self, event: ev.ActionStartEvent) -> Row:
        whole = bool(event.calls) and event.calls == tuple(self._batch.places)
        return ("as",) if whole else ("as", event.calls)

    def _tool_start(self, event: ev.ToolCallStartEvent) -> Row:
        name = self._batch.places.get(event.call_id, event.call_id)
        if self._says(event.call_id, event.tool_name, event.args):
            return ("ts", name)
        return ("ts", name, event.tool_name, event.args)

    def _tool_end(self, event: ev.ToolCallEndEvent) -> Row:
        name = self._batch.places.get(event.call_id, event.call_id)
        text = None if self._batch.results.get(event.call_id) == event.text else event.text
        known = self._says(event.call_id, event.tool_name, event.args)
        if known and text is None and event.executed is True and not event.is_error:
            return ("te", name, event.duration_ms)
        call = (None, None) if known else (event.tool_name, event.args)
        return self._trim(event, name, event.duration_ms, event.is_error, event.executed, text, *call)

    def _call(self, event: Any) -> tuple[Any, Any]:
        known = self._says(event.call_id, event.tool_name, event.args)
        return (None, None) if known else (event.tool_name, event.args)

    def _says(self, call_id: str, tool: str, args: JsonObject) -> bool:
        call = self._batch.calls.get(call_id)
        return call is not None and call.tool == tool and _same(call.args, args)


_PACK: dict[type[Any], Callable[[_Packer, Any], Row]] = {
    ev.ReasonStartEvent: lambda packer, event: ("ms", event.turn),
    ev.ActionEndEvent: lambda packer, event: ("ae",),
    ev.ReasonEndEvent: _Packer._reason_end,
    ev.RunEndEvent: _Packer._run_end,
    ev.HITLPendingEvent: _Packer._pending,
    ev.HITLDecidedEvent: _Packer._decided,
    ev.ActionStartEvent: _Packer._action_start,
    ev.ToolCallStartEvent: _Packer._tool_start,
    ev.ToolCallEndEvent: _Packer._tool_end,
}


def _pack_usage(usage: Usage | None) -> Row | None:
    return None if usage is None else trimmed(usage_values(usage), USAGE_BLANKS)


def pack_step(
    events: Iterable[Event],
    appended: Sequence[Message],
    amended: Sequence[Amended],
    *,
    transcript: Transcript,
    run_id: str,
) -> bytes:
    """One step as bytes. `transcript` is what there is after it; `run_id` is the run the step belongs to.

    `amended` must not touch the batch under way. Raises TypeError for transient events.
    """
    rows = _Packer(transcript, appended, amends=bool(amended)).rows(events, run_id)
    step: list[Any] = [rows, [pack_message(message) for message in appended]]
    if amended:
        step.append([(place, pack_message(message)) for place, message in amended])
    return encode(step)
