"""What does a stored step look like? Events and messages as short rows that do not say a thing twice.

A step is the JSON array `[events, messages, amended]`. Every value is an array that begins with a short tag
and leaves out the trailing fields that hold their defaults; a plain string is a text part. Events leave out
what the reply of their step and the current batch say already (texts, arguments, tool names): the batch is the
last reply with calls and the results after it. Unknown tags and fields of a newer version are read, never
crashed on.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from operator import attrgetter
from typing import Any, NamedTuple

import msgspec

from jackstay.core import events as ev
from jackstay.core.approvals import HITLTask
from jackstay.core.events import BaseEvent, Event, UnknownEvent
from jackstay.core.messages import (
    Image,
    JsonObject,
    Message,
    Part,
    Role,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    UnknownPart,
    Usage,
)
from jackstay.core.transcript import Transcript
from jackstay.core.wire import convert, decode_json, encode

Row = Sequence[Any]
Amended = tuple[int, Message]


def _trimmed(row: tuple[Any, ...], blanks: tuple[Any, ...]) -> tuple[Any, ...]:
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


def _filled(fields: tuple[str, ...], row: Row, blanks: tuple[Any, ...]) -> JsonObject:
    """The values of a row by field; what a newer version put after them is ignored."""
    missing = len(fields) - len(row)
    values = dict(zip(fields, row, strict=False))
    if missing > 0:
        values.update(zip(fields[-missing:], blanks[-missing:], strict=False))
    return values


# -- messages ----------------------------------------------------------------------------------------------


class _PartForm(NamedTuple):
    short: str
    fields: tuple[str, ...]
    blanks: tuple[Any, ...]
    values: Callable[[Any], tuple[Any, ...]]


def _part_form(short: str, kind: type[msgspec.Struct]) -> _PartForm:
    fields = kind.__struct_fields__
    return _PartForm(short, fields, kind.__struct_defaults__, attrgetter(*fields))


_PARTS: dict[type[Any], _PartForm] = {
    kind: _part_form(short, kind)
    for short, kind in (("c", ToolCall), ("r", ToolResult), ("k", Thinking), ("i", Image))
}
_PART_KINDS: dict[str, tuple[type[Any], _PartForm]] = {form.short: (k, form) for k, form in _PARTS.items()}
_ROLES: dict[Role, str] = {"system": "s", "user": "u", "assistant": "a", "tool": "t"}
_ROLE_NAMES: dict[str, Role] = {short: role for role, short in _ROLES.items()}


def pack_message(message: Message) -> Row:
    """A message as a row: role, parts, then pinned and note where they say something."""
    parts: list[Any] = []
    for part in message.parts:
        if isinstance(part, Text):
            parts.append(part.text)
        elif isinstance(part, UnknownPart):
            parts.append(_pack_unknown(part))
        else:
            form = _PARTS[type(part)]
            parts.append((form.short, *_trimmed(form.values(part), form.blanks)))
    role = _ROLES[message.role]
    if message.note is not None:
        return (role, parts, message.pinned, message.note)
    return (role, parts, True) if message.pinned else (role, parts)


def _pack_unknown(part: UnknownPart) -> Any:
    raw = part.raw
    if raw.keys() == {"type", "fields"} and isinstance(raw["type"], str) and isinstance(raw["fields"], list):
        return (raw["type"], *raw["fields"])
    return raw


def unpack_message(row: Row) -> Message:
    """The message of a row; parts that this version does not know become UnknownPart.

    A role of a newer version is read as a note of the harness: it must never pass for the user's word.
    """
    pinned = row[2] if len(row) > 2 else False
    note = row[3] if len(row) > 3 else None
    role = _ROLE_NAMES.get(row[0])
    if role is None:
        role, note = "user", note or f"role {row[0]}"
    return Message(role, tuple([_unpack_part(part) for part in row[1]]), pinned, note)


def _unpack_part(plain: Any) -> Part:
    if isinstance(plain, str):
        return Text(plain)
    if isinstance(plain, dict):
        return UnknownPart(plain)
    known = _PART_KINDS.get(plain[0])
    if known is not None:
        kind, form = known
        try:
            part: Part = convert(_filled(form.fields, plain[1:], form.blanks), kind)
        except msgspec.ValidationError:
            pass  # a newer version gave a field another shape: keep it as it is
        else:
            return part
    return UnknownPart({"type": plain[0], "fields": list(plain[1:])})


# -- events ------------------------------------------------------------------------------------------------


class _Form(NamedTuple):
    """How the events of a kind are laid out: tag, fields in order, what stands for trailing ones left out."""

    short: str
    fields: tuple[str, ...]
    blanks: tuple[Any, ...]
    values: Callable[[Any], tuple[Any, ...]]


_COMMON = ("run_id", "session_id", "seq", "at")


def _form(short: str, kind: type[BaseEvent], *fields: str, blanks: tuple[Any, ...] | None = None) -> _Form:
    names = fields or tuple(name for name in kind.__struct_fields__ if name not in _COMMON)
    return _Form(short, names, kind.__struct_defaults__ if blanks is None else blanks, _getter(names))


def _getter(names: tuple[str, ...]) -> Callable[[Any], tuple[Any, ...]]:
    if len(names) > 1:
        return attrgetter(*names)
    if not names:
        return lambda event: ()
    get = attrgetter(names[0])
    return lambda event: (get(event),)


_FORMS: dict[type[BaseEvent], _Form] = {
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
_EVENT_KINDS = {form.short: (kind, form) for kind, form in _FORMS.items()}
_USAGE_FIELDS, _USAGE_BLANKS = Usage.__struct_fields__, Usage.__struct_defaults__
_usage_values = attrgetter(*_USAGE_FIELDS)


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
        form = _FORMS.get(kind)
        if form is None:
            raise TypeError(f"{kind.__name__} is transient: such events are never stored")
        return (form.short, *_trimmed(form.values(event), form.blanks))

    def _trim(self, event: Event, *values: Any) -> Row:
        form = _FORMS[type(event)]
        return (form.short, *_trimmed(values, form.blanks))

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
    return None if usage is None else _trimmed(_usage_values(usage), _USAGE_BLANKS)


# -- steps -------------------------------------------------------------------------------------------------


class StepMessages(NamedTuple):
    """The messages of a step: new rows, and replacements of earlier ones by position."""

    appended: tuple[Message, ...]
    amended: tuple[Amended, ...]


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
            for _, message in step.amended:
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
        known = _EVENT_KINDS.get(row[0])
        if known is None:
            return _unknown(common, {"type": row[0], "fields": list(row[1:])})
        kind, form = known
        values = _filled(form.fields, row[1:], form.blanks)
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
        values["usage"] = _filled(_USAGE_FIELDS, row, _USAGE_BLANKS)


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
