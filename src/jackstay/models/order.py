"""Does each call have its result directly after it, as every provider demands? If not, put it there.

The run machine keeps transcripts in order; this is the second line: one request refused for its order would
be refused for ever, because the same history is sent again.
"""

from collections.abc import Iterable, Sequence

import msgspec

from jackstay.core.messages import Message, Part, ToolCall, ToolResult, observation
from jackstay.core.transcript import Transcript

NO_RESULT = "No result of this call was recorded."


class _Seen(msgspec.Struct, frozen=True, gc=False):
    """How things stand after a message: the calls still to be answered, and whether all was in order so far."""

    waiting: tuple[str, ...] = ()
    sound: bool = True


def in_order(transcript: Transcript) -> Transcript:
    """The transcript itself when it is in order (nearly always; checked once per message), else a mended one.

    In the mended one results follow their calls in call order, a call without a result gets one that says so,
    and a result without a call is dropped.
    """
    seen = transcript.scanned("order", _see)
    if not seen or (seen[-1].sound and not seen[-1].waiting):
        return transcript
    return Transcript(_mended(list(transcript)))


def _see(before: _Seen | None, message: Message) -> _Seen:
    waiting, sound = (before.waiting, before.sound) if before else ((), True)
    if message.role == "tool":
        for result in _results(message.parts):
            sound = sound and waiting[:1] == (result.call_id,)
            waiting = waiting[1:]
    elif waiting or message.role == "assistant":
        sound = sound and not waiting
        waiting = tuple(call.call_id for call in message.calls)
    return _Seen(waiting, sound)


def _mended(messages: Sequence[Message]) -> Iterable[Message]:
    for position, message in enumerate(messages):
        if message.role == "tool":
            continue
        yield message
        if message.role == "assistant" and message.calls:
            yield from _answers(message.calls, messages[position + 1 :])


def _answers(calls: Iterable[ToolCall], after: Iterable[Message]) -> Iterable[Message]:
    found: dict[str, ToolResult] = {}
    for message in after:
        if message.role == "tool":
            for result in _results(message.parts):
                found.setdefault(result.call_id, result)
        elif message.role == "assistant" and message.calls:
            break
    for call in calls:
        missing = ToolResult(call.call_id, NO_RESULT, is_error=True, executed=None)
        yield observation(found.get(call.call_id, missing))


def _results(parts: Iterable[Part]) -> Iterable[ToolResult]:
    return (part for part in parts if isinstance(part, ToolResult))
