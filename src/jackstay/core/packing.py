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
    parts = []
    for part in message.parts:
        parts.append(_PARTS[type(part)](part))
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
    if one is other:
        return True
    if one != other:
        return False
    if type(one) is not dict:
        return bool(encode(one) == encode(other))
    for value in one.values():
        if type(value) is not str:
            return bool(encode(one) == encode(other))
    return list(one) == list(other)  # long texts are not encoded to compare them


def _says(message: Message, text: str, calls: tuple[ToolCall, ...]) -> bool:
    """Are these the words and calls of the message?"""
    words, found = "", 0
    for part in message.parts:
        if type(part) is ToolCall:
            if found == len(calls) or not (part is calls[found] or _same(part, calls[found])):
                return False
            found += 1
        elif type(part) is Text:
            words += part.text
    return found == len(calls) and words == text


class _Known(msgspec.Struct, gc=False):
    """What the reader of a step will know by then.

    That is the reply of the step, if there is one, and the batch that the transcript ends with: its calls by id
    with their places in it, and the texts of the results after. There is no batch where two of its calls share
    an id.
    """

    said: Message | None = None
    calls: dict[str, tuple[int, ToolCall]] = {}
    answers: dict[str, str] = {}

    def says(self, event: Any) -> bool:
        """Does the batch say the tool and arguments of the event's call?"""
        found = self.calls.get(event.call_id)
        return found is not None and found[1].tool == event.tool_name and _same(found[1].args, event.args)


def _known(transcript: Transcript, appended: Sequence[Message], *, amends: bool) -> _Known:
    said = None
    for message in appended:
        if message.role == "assistant":
            said = message
            break
    if amends:
        return _Known(said)
    reply, results = transcript.last_batch()
    if reply is None or reply.role != "assistant":
        return _Known(said)
    calls: dict[str, tuple[int, ToolCall]] = {}
    count = 0
    for part in reply.parts:
        if type(part) is ToolCall:
            calls[part.call_id] = (count, part)
            count += 1
    return _Known(said, calls, _answers(results)) if len(calls) == count else _Known(said)


def _answers(results: Sequence[Message]) -> dict[str, str]:
    answers: dict[str, str] = {}
    for message in results:
        for part in message.parts:
            if type(part) is ToolResult:
                answers[part.call_id] = part.text
    return answers


# -- events ------------------------------------------------------------------------------------------------


def _rows(known: _Known, events: Iterable[Event], run_id: str) -> list[Row]:
    """The events as rows; a row of another time or run is announced by one that holds just these."""
    rows: list[Row] = []
    at, run = None, run_id
    for event in events:
        if event.at != at or event.run_id != run:
            at = event.at
            rows.append((at,) if event.run_id == run else (at, event.run_id))
            run = event.run_id
        rows.append(_EVENTS.get(type(event), _refuse)(known, event))
    return rows


def _trim(event: Event, *values: Any) -> Row:
    form = EVENTS[type(event)]
    return (form.short, *trimmed(values, form.blanks))


def _reason_start(known: _Known, event: ev.ReasonStartEvent) -> Row:
    return ("ms", event.turn)


def _reason_end(known: _Known, event: ev.ReasonEndEvent) -> Row:
    said, usage = known.said, _pack_usage(event.usage)
    told = said is not None and _says(said, event.text, event.calls)
    if told and event.error is None and usage is not None:
        return ("me", event.turn, usage)
    words = (None, None) if told else (event.text, event.calls)
    return _trim(event, event.turn, usage, event.error, *words)


def _run_end(known: _Known, event: ev.RunEndEvent) -> Row:
    text = None if known.said is not None and known.said.text == event.text else event.text
    return _trim(event, event.outcome, event.is_abnormal, _pack_usage(event.usage), event.error, text)


def _pending(known: _Known, event: ev.HITLPendingEvent) -> Row:
    return ("hp", [_task(known, task) for task in event.pending_tasks])


def _task(known: _Known, task: HITLTask) -> JsonObject:
    plain: JsonObject = msgspec.to_builtins(task)
    if known.says(task):
        del plain["tool_name"], plain["args"]
    return plain


def _decided(known: _Known, event: ev.HITLDecidedEvent) -> Row:
    call = (None, None) if known.says(event) else (event.tool_name, event.args)
    return _trim(event, event.call_id, event.decision, event.comment, *call)


def _action_start(known: _Known, event: ev.ActionStartEvent) -> Row:
    whole = bool(event.calls) and event.calls == tuple(known.calls)
    return ("as",) if whole else ("as", event.calls)


def _action_end(known: _Known, event: ev.ActionEndEvent) -> Row:
    return ("ae",)


def _tool_start(known: _Known, event: ev.ToolCallStartEvent) -> Row:
    found = known.calls.get(event.call_id)
    if found is None:
        return ("ts", event.call_id, event.tool_name, event.args)
    place, call = found
    if call.tool == event.tool_name and _same(call.args, event.args):
        return ("ts", place)
    return ("ts", place, event.tool_name, event.args)


def _tool_end(known: _Known, event: ev.ToolCallEndEvent) -> Row:
    place: int | str = event.call_id
    said, found = False, known.calls.get(event.call_id)
    if found is not None:
        place, call = found
        said = call.tool == event.tool_name and _same(call.args, event.args)
    told = known.answers.get(event.call_id) == event.text
    if said and told and event.executed is True and not event.is_error:
        return ("te", place, event.duration_ms)
    call_fields = (None, None) if said else (event.tool_name, event.args)
    text = None if told else event.text
    return _trim(event, place, event.duration_ms, event.is_error, event.executed, text, *call_fields)


def _context_size(known: _Known, event: ev.ContextSizeEvent) -> Row:
    if event.compressed or event.messages_before or event.tokens_before or event.strategy is not None:
        return _any(known, event)
    return ("cs", event.messages, event.tokens, event.limit)


def _any(known: _Known, event: Any) -> Row:
    form = EVENTS[type(event)]
    return (form.short, *trimmed(form.values(event), form.blanks))


def _refuse(known: _Known, event: Any) -> Row:
    raise TypeError(f"{type(event).__name__} is transient: such events are never stored")


_EVENTS: dict[type[Any], Callable[[_Known, Any], Row]] = {
    **dict.fromkeys(EVENTS, _any),
    ev.ContextSizeEvent: _context_size,
    ev.ReasonStartEvent: _reason_start,
    ev.ReasonEndEvent: _reason_end,
    ev.RunEndEvent: _run_end,
    ev.HITLPendingEvent: _pending,
    ev.HITLDecidedEvent: _decided,
    ev.ActionStartEvent: _action_start,
    ev.ActionEndEvent: _action_end,
    ev.ToolCallStartEvent: _tool_start,
    ev.ToolCallEndEvent: _tool_end,
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
    transcript: Transcript,
    run_id: str,
) -> bytes:
    """One step as bytes. `transcript` is what there is after it; `run_id` is the run the step belongs to.

    `amended` must not touch the batch under way. Raises TypeError for transient events.
    """
    known = _known(transcript, appended, amends=bool(amended))
    messages = []
    for message in appended:
        messages.append(pack_message(message))
    step: list[Any] = [_rows(known, events, run_id), messages]
    if amended:
        step.append([(place, pack_message(message)) for place, message in amended])
    return encode(step)
