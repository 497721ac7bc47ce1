"""Which messages belong together, and how a broken history is made whole for a provider."""

from collections.abc import Iterable, Sequence

import msgspec
from msgspec.structs import replace

from jackstay.core.messages import Image, Message, Text, ToolCall, ToolResult, UnknownPart, observation
from jackstay.engine.compaction.clip import SUMMARY
from jackstay.engine.compaction.tokens import message_tokens

NO_RESULT = (
    "No result: the run ended before this call returned one. It may have taken effect wholly, partly or not "
    "at all; look before you repeat it."
)


class Line(msgspec.Struct, frozen=True, gc=False):
    """A message of the coming transcript; `at` is the position it had in the old one if it is unchanged."""

    message: Message
    tokens: int
    at: int | None = None


class Unit(msgspec.Struct, frozen=True, gc=False):
    """Messages that stay or go together: a single one, or a reply with calls and all its observations.

    `batch` marks the latter; `open` ones are still pending or running. A `stray` is an observation without
    its call: it can be summarised but never shown again.
    """

    lines: tuple[Line, ...]
    pinned: bool = False
    batch: bool = False
    open: bool = False
    stray: bool = False

    @property
    def tokens(self) -> int:
        """The tokens of all its messages."""
        return sum(line.tokens for line in self.lines)

    @property
    def summary(self) -> bool:
        """Is it an earlier summary of the harness?"""
        return self.lines[0].message.note == SUMMARY


def new_line(message: Message) -> Line:
    """A message that was not in the old transcript as it is now."""
    return Line(message, message_tokens(message))


def units_of(messages: Sequence[Message], counts: Sequence[int], pending: frozenset[str]) -> list[Unit]:
    """The messages as units, in order; `counts` are their tokens, `pending` the calls that wait or run.

    Afterwards every call outside a pending batch has exactly one observation, in the order of the calls, and
    what stood between them stands behind them. Replies without any content are left out.
    """
    made: list[Unit] = []
    at = 0
    while at < len(messages):
        message = messages[at]
        if message.role == "assistant" and (calls := message.calls):
            unit = _whole_batch(messages, counts, at, calls)
            if unit is None:
                end = _end_of_batch(messages, at)
                made.extend(_batch(messages, counts, range(at, end), pending))
            else:
                end = at + len(unit.lines)
                made.append(unit)
            at = end
            continue
        if message.role == "tool":
            made.append(Unit((Line(message, counts[at], at),), stray=True))
        elif message.role != "assistant" or _says_something(message):
            made.append(Unit((Line(message, counts[at], at),), pinned=message.pinned))
        at += 1
    return made


def _end_of_batch(messages: Sequence[Message], start: int) -> int:
    """Behind the last observation of the reply at `start`."""
    ids = {call.call_id for call in messages[start].calls}
    missing, end = set(ids), start + 1
    for at in range(start + 1, len(messages)):
        message = messages[at]
        if message.role == "assistant" or not (missing or message.role == "tool"):
            break
        answered = {result.call_id for result in _results(message)}
        if answered & ids:
            missing -= answered
            end = at + 1
    return end


def _batch(
    messages: Sequence[Message], counts: Sequence[int], span: range, pending: frozenset[str]
) -> Iterable[Unit]:
    reply = messages[span.start]
    calls = {call.call_id: call for call in reply.calls[::-1]}
    head = Line(reply, counts[span.start], span.start)
    if len(calls) != len(reply.calls):
        head = new_line(replace(reply, parts=tuple(_once(reply))))
    answers, between = _sorted_out(messages, counts, span, frozenset(calls))
    is_open = any(call_id in pending for call_id in calls)
    lines = [head]
    for call_id in dict.fromkeys(call.call_id for call in reply.calls):
        if call_id in answers:
            lines.append(answers[call_id])
        elif not is_open:
            lines.append(new_line(observation(ToolResult(call_id, NO_RESULT, is_error=True, executed=None))))
    pinned = any(line.message.pinned for line in lines)
    return [Unit(tuple(lines), pinned=pinned, batch=True, open=is_open), *between]


def _sorted_out(
    messages: Sequence[Message], counts: Sequence[int], span: range, ids: frozenset[str]
) -> tuple[dict[str, Line], list[Unit]]:
    """The first observation of each call, and what else stood between the reply and the last of them."""
    answers: dict[str, Line] = {}
    between: list[Unit] = []
    for at in span[1:]:
        message = messages[at]
        results = _results(message) if message.role == "tool" else []
        if not results:
            lost = message.role == "tool"
            between.append(Unit((Line(message, counts[at], at),), pinned=message.pinned, stray=lost))
        for result in results:
            alone = len(message.parts) == 1
            line = Line(message, counts[at], at) if alone else new_line(observation(result))
            if result.call_id not in ids:
                between.append(Unit((line,), stray=True))
            elif result.call_id not in answers:
                answers[result.call_id] = line
    return answers, between


def _whole_batch(
    messages: Sequence[Message], counts: Sequence[int], start: int, calls: tuple[ToolCall, ...]
) -> Unit | None:
    """The batch as it stands, where nothing in it has to be mended: the usual case."""
    end = start + 1 + len(calls)
    if end > len(messages) or (end < len(messages) and messages[end].role == "tool"):
        return None
    lines, pinned = [Line(messages[start], counts[start], start)], messages[start].pinned
    seen: set[str] = set()
    for at, call in enumerate(calls, start + 1):
        message = messages[at]
        result = message.parts[0] if len(message.parts) == 1 else None
        if not isinstance(result, ToolResult) or result.call_id != call.call_id or call.call_id in seen:
            return None
        seen.add(call.call_id)
        pinned = pinned or message.pinned
        lines.append(Line(message, counts[at], at))
    return Unit(tuple(lines), pinned=pinned, batch=True)


def _once(reply: Message) -> Iterable[object]:
    seen: set[str] = set()
    for part in reply.parts:
        if isinstance(part, ToolCall):
            if part.call_id in seen:
                continue
            seen.add(part.call_id)
        yield part


def _results(message: Message) -> list[ToolResult]:
    return [part for part in message.parts if isinstance(part, ToolResult)]


def _says_something(message: Message) -> bool:
    return any(
        (isinstance(part, Text) and part.text.strip()) or isinstance(part, Image | UnknownPart)
        for part in message.parts
    )
