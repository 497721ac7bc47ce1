"""What does a stored step say? Its messages, and its events with everything that packing left out.

Unknown tags and fields of a newer version are read, never crashed on.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

import msgspec

from jackstay.core.events import Event, UnknownEvent
from jackstay.core.forms import (
    EVENT_KINDS,
    PART_KINDS,
    ROLE_NAMES,
    USAGE_BLANKS,
    USAGE_FIELDS,
    Amended,
    Row,
    filled,
)
from jackstay.core.messages import JsonObject, Message, Part, Text, ToolCall, ToolResult, UnknownPart
from jackstay.core.transcript import Transcript
from jackstay.core.wire import convert, decode_json


class StepMessages(NamedTuple):
    """The messages of a step: new rows, and replacements of earlier ones by position."""

    appended: tuple[Message, ...]
    amended: tuple[Amended, ...]


def step_messages(data: bytes) -> StepMessages:
    """The messages of a step. Raises ValueError when the bytes are no step."""
    return _messages_of(_opened(data))


def count_events(data: bytes) -> int:
    """How many events a step holds. Raises ValueError when the bytes are no step."""
    return sum(isinstance(row[0], str) for row in _opened(data)[0])


def _opened(data: bytes) -> list[Any]:
    step = decode_json(data)
    if not isinstance(step, list) or len(step) < 2:
        raise ValueError("not a step")
    return step


def _messages_of(step: list[Any]) -> StepMessages:
    amended = step[2] if len(step) > 2 else ()
    return StepMessages(
        tuple([unpack_message(row) for row in step[1]]),
        tuple([(place, unpack_message(row)) for place, row in amended]),
    )


def unpack_message(row: Row) -> Message:
    """The message of a row; parts that this version does not know become UnknownPart.

    A role of a newer version is read as a note of the harness: it must never pass for the user's word.
    """
    pinned = row[2] if len(row) > 2 else False
    note = row[3] if len(row) > 3 else None
    role = ROLE_NAMES.get(row[0])
    if role is None:
        role, note = "user", note or f"role {row[0]}"
    return Message(role, tuple([_unpack_part(part) for part in row[1]]), pinned, note)


def _unpack_part(plain: Any) -> Part:
    if isinstance(plain, str):
        return Text(plain)
    if isinstance(plain, dict):
        return UnknownPart(plain)
    known = PART_KINDS.get(plain[0])
    if known is not None:
        kind, form = known
        try:
            part: Part = convert(filled(form.fields, plain[1:], form.blanks), kind)
        except msgspec.ValidationError:
            pass  # a newer version gave a field another shape: keep it as it is
        else:
            return part
    return UnknownPart({"type": plain[0], "fields": list(plain[1:])})


class EventReader:
    """Reads the steps of one session in order and gives back their whole events.

    A reader that does not begin with the first step is told the run it begins in, and `earlier`: the messages
    of the steps before, latest step first. It draws from them only until it has the batch an event speaks of.
    """

    def __init__(self, session_id: str, *, run_id: str = "", earlier: Iterable[StepMessages] = ()) -> None:
        self._session_id = session_id
        self._run_id = run_id
        self._earlier: Iterator[StepMessages] = iter(earlier)
        self._calls: dict[str, ToolCall] | None = None
        self._amended: dict[str, ToolCall] = {}  # calls of the batch as a later step has rewritten them
        self._results: dict[str, str] = {}

    def read(self, data: bytes, first_seq: int, run_id: str | None = None) -> list[Event]:
        """The events of a step, numbered from `first_seq`; `run_id` where the step begins another run.

        Raises ValueError when the bytes are no step.
        """
        step = _opened(data)
        messages = _messages_of(step)
        for message in messages.appended:
            self._learn(message)
        self._amended |= {call.call_id: call for _, message in messages.amended for call in message.calls}
        if run_id is not None:
            self._run_id = run_id
        said = next((m for m in messages.appended if m.role == "assistant"), None)
        return self._events(step[0], first_seq, said)

    def _events(self, rows: Iterable[Row], first_seq: int, said: Message | None) -> list[Event]:
        found: list[Event] = []
        at, run_id, seq = 0.0, self._run_id, first_seq
        for row in rows:
            if not isinstance(row[0], str):
                at, run_id = (row[0], row[1]) if len(row) > 1 else (row[0], run_id)
                continue
            common = {"run_id": run_id, "session_id": self._session_id, "seq": seq, "at": at}
            found.append(self._event(row, common, said))
            seq += 1
        return found

    def _learn(self, message: Message) -> None:
        if message.role == "assistant" and message.calls:
            self._calls, self._results = {call.call_id: call for call in message.calls}, {}
            self._amended = {}
        elif message.role == "tool":
            for part in message.parts:
                if isinstance(part, ToolResult):
                    self._results[part.call_id] = part.text

    def _batch(self) -> dict[str, ToolCall]:
        """The calls of the current batch, looked for in earlier steps where it began in one of them."""
        while self._calls is None:
            step = next(self._earlier, None)
            if step is None:
                self._calls = {}
                break
            for _, message in reversed(step.amended):  # the last one stands
                for call in message.calls:
                    self._amended.setdefault(call.call_id, call)
            for message in reversed(step.appended):
                self._learn_backwards(message)
        return {name: self._amended.get(name, call) for name, call in self._calls.items()}

    def _learn_backwards(self, message: Message) -> None:
        if self._calls is not None:
            return
        if message.role == "assistant" and message.calls:
            self._calls = {call.call_id: call for call in message.calls}
        elif message.role == "tool":
            for part in reversed(message.parts):
                if isinstance(part, ToolResult):
                    self._results.setdefault(part.call_id, part.text)

    def _event(self, row: Row, common: JsonObject, said: Message | None) -> Event:
        known = EVENT_KINDS.get(row[0])
        if known is None:
            return _unknown(common, {"type": row[0], "fields": list(row[1:])})
        kind, form = known
        values = filled(form.fields, row[1:], form.blanks)
        try:
            restore = _RESTORE.get(row[0])
            if restore is not None:
                restore(self, values, said)
            event: Event = convert({**common, **values}, kind)
        except (msgspec.ValidationError, LookupError, TypeError):
            return _unknown(common, {"type": kind.__struct_config__.tag, **values})
        return event

    def _reason_end(self, values: JsonObject, said: Message | None) -> None:
        if values["text"] is None and said is not None:
            values["text"], values["calls"] = said.text, msgspec.to_builtins(said.calls)
        _restore_usage(values)

    def _run_end(self, values: JsonObject, said: Message | None) -> None:
        if values["text"] is None and said is not None:
            values["text"] = said.text
        _restore_usage(values)

    def _pending(self, values: JsonObject, said: Message | None) -> None:
        for task in values["pending_tasks"]:
            if "args" not in task:
                call = self._batch()[task["call_id"]]
                task["tool_name"], task["args"] = call.tool, call.args

    def _action_start(self, values: JsonObject, said: Message | None) -> None:
        if values["calls"] is None:
            values["calls"] = list(self._batch())

    def _tool_call(self, values: JsonObject, said: Message | None) -> None:
        if isinstance(values["call_id"], int):
            values["call_id"] = list(self._batch())[values["call_id"]]
        if values["args"] is None:
            call = self._batch()[values["call_id"]]
            values["tool_name"], values["args"] = call.tool, call.args

    def _tool_end(self, values: JsonObject, said: Message | None) -> None:
        self._tool_call(values, said)
        if values["text"] is None:
            self._batch()  # whose results may lie in earlier steps
            values["text"] = self._results[values["call_id"]]


_RESTORE: dict[str, Callable[[EventReader, JsonObject, Message | None], None]] = {
    "me": EventReader._reason_end,
    "re": EventReader._run_end,
    "hp": EventReader._pending,
    "hd": EventReader._tool_call,
    "as": EventReader._action_start,
    "ts": EventReader._tool_call,
    "te": EventReader._tool_end,
}


def _restore_usage(values: JsonObject) -> None:
    row = values["usage"]
    if isinstance(row, list):
        values["usage"] = filled(USAGE_FIELDS, row, USAGE_BLANKS)


def _unknown(common: JsonObject, raw: JsonObject) -> UnknownEvent:
    return UnknownEvent(common["run_id"], common["session_id"], common["seq"], common["at"], raw)


def message_rows(rows: Iterable[Message], view: tuple[tuple[int, int], ...]) -> Transcript:
    """The transcript that a view of the stored message rows makes."""
    stored = list(rows)
    if not view:
        return Transcript(stored)
    return Transcript(
        message for start, end in view for message in stored[start : len(stored) if end < 0 else end]
    )
