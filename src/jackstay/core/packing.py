"""What does a stored step look like? Events and messages as short rows that do not say a thing twice.

A step is the JSON array `[events, messages, amended]`. Every value is an array that begins with a short tag
and leaves out the trailing fields that hold their defaults; a plain string is a text part. Events leave out
what the reply of their step and the current batch say already (texts, arguments, tool names): the batch is the
last reply with calls and the results after it. `core.unpacking` reads it.
"""

from collections.abc import Callable, Iterable, Sequence
from operator import attrgetter
from typing import Any

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
    parts = [_PARTS[type(part)](part) for part in message.parts]
    role = ROLES[message.role]
    if message.note is not None:
        return (role, parts, message.pinned, message.note)
    return (role, parts, True) if message.pinned else (role, parts)


def _pack_part(part: Any) -> Row:
    form = PARTS[type(part)]
    return (form.short, *trimmed(form.values(part), form.blanks))


def _pack_call(call: ToolCall) -> Row:
    if call.problem is None and call.raw is None and call.extra is None:
        return ("c", call.call_id, call.tool, call.args)
    return _pack_part(call)


def _pack_result(result: ToolResult) -> Row:
    if result.executed is True and not result.is_error and not result.truncated:
        return ("r", result.call_id, result.text)
    return _pack_part(result)


def _pack_unknown(part: UnknownPart) -> Any:
    raw = part.raw
    if raw.keys() == {"type", "fields"} and isinstance(raw["type"], str) and isinstance(raw["fields"], list):
        return (raw["type"], *raw["fields"])
    return raw


_PARTS: dict[type[Any], Callable[[Any], Any]] = {
    Text: attrgetter("text"),
    UnknownPart: _pack_unknown,
    **dict.fromkeys(PARTS, _pack_part),
    ToolCall: _pack_call,
    ToolResult: _pack_result,
}


def _same(one: Any, other: Any) -> bool:
    """Equal as JSON: 1, 1.0 and True differ, and so does the order of keys."""
    return one is other or (one == other and encode(one) == encode(other))


def _says(message: Message, text: str, calls: tuple[ToolCall, ...]) -> bool:
    """Are these the words and calls of the message?"""
    words, found = "", 0
    for part in message.parts:
        if isinstance(part, ToolCall):
            if found == len(calls) or not (part is calls[found] or _same(part, calls[found])):
                return False
            found += 1
        elif isinstance(part, Text):
            words += part.text
    return found == len(calls) and words == text


class _Packer:
    """Packs the events of one step against what its reader will know by then.

    That is the reply of the step, if there is one, and the batch that the transcript ends with: its calls by id
    with their places in it, and the results after. There is no batch where two of its calls share an id.
    """

    __slots__ = ("_answers", "_calls", "_said")

    def __init__(self, transcript: Transcript, appended: Sequence[Message], *, amends: bool) -> None:
        self._calls: dict[str, tuple[int, ToolCall]] = {}
        self._answers: Sequence[Message] = ()
        self._said: Message | None = None
        for message in appended:
            if message.role == "assistant":
                self._said = message
                break
        if not amends:
            self._learn(*transcript.last_batch())

    def _learn(self, reply: Message | None, answers: Sequence[Message]) -> None:
        if reply is None or reply.role != "assistant":
            return
        calls = reply.calls
        found = {call.call_id: (place, call) for place, call in enumerate(calls)}
        if len(found) == len(calls):
            self._calls, self._answers = found, answers

    def rows(self, events: Iterable[Event], run_id: str) -> list[Row]:
        """The events as rows; a row of another time or run is announced by one that holds just these."""
        rows: list[Row] = []
        at: float | None = None
        run = run_id
        for event in events:
            if event.at != at or event.run_id != run:
                rows.append((event.at,) if event.run_id == run else (event.at, event.run_id))
                at, run = event.at, event.run_id
            rows.append(_EVENTS.get(type(event), _refuse)(self, event))
        return rows

    def _trim(self, event: Event, *values: Any) -> Row:
        form = EVENTS[type(event)]
        return (form.short, *trimmed(values, form.blanks))

    def _reason_end(self, event: ev.ReasonEndEvent) -> Row:
        said, usage = self._said, _pack_usage(event.usage)
        told = said is not None and _says(said, event.text, event.calls)
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
        if self._place(task)[1]:
            del plain["tool_name"], plain["args"]
        return plain

    def _decided(self, event: ev.HITLDecidedEvent) -> Row:
        call = (None, None) if self._place(event)[1] else (event.tool_name, event.args)
        return self._trim(event, event.call_id, event.decision, event.comment, *call)

    def _action_start(self, event: ev.ActionStartEvent) -> Row:
        whole = bool(event.calls) and event.calls == tuple(self._calls)
        return ("as",) if whole else ("as", event.calls)

    def _tool_start(self, event: ev.ToolCallStartEvent) -> Row:
        place, known = self._place(event)
        return ("ts", place) if known else ("ts", place, event.tool_name, event.args)

    def _tool_end(self, event: ev.ToolCallEndEvent) -> Row:
        place, known = self._place(event)
        told = self._answered(event.call_id) == event.text
        if known and told and event.executed is True and not event.is_error:
            return ("te", place, event.duration_ms)
        call = (None, None) if known else (event.tool_name, event.args)
        text = None if told else event.text
        return self._trim(event, place, event.duration_ms, event.is_error, event.executed, text, *call)

    def _answered(self, call_id: str) -> str | None:
        """The text of the batch's last result for this call."""
        for message in reversed(self._answers):
            for part in reversed(message.parts):
                if isinstance(part, ToolResult) and part.call_id == call_id:
                    return part.text
        return None

    def _place(self, event: Any) -> tuple[int | str, bool]:
        """The call's place in the batch, or its id; and does the batch say its tool and arguments?"""
        found = self._calls.get(event.call_id)
        if found is None:
            return event.call_id, False
        place, call = found
        return place, call.tool == event.tool_name and _same(call.args, event.args)


def _pack_event(packer: _Packer, event: Any) -> Row:
    form = EVENTS[type(event)]
    return (form.short, *trimmed(form.values(event), form.blanks))


def _refuse(packer: _Packer, event: Any) -> Row:
    raise TypeError(f"{type(event).__name__} is transient: such events are never stored")


_EVENTS: dict[type[Any], Callable[[_Packer, Any], Row]] = {
    **dict.fromkeys(EVENTS, _pack_event),
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
    if usage is None:
        return None
    if usage.output_tokens and not (usage.cache_read_tokens or usage.cache_write_tokens or usage.cost):
        return (usage.input_tokens, usage.output_tokens)
    return trimmed(usage_values(usage), USAGE_BLANKS)


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
