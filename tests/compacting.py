"""A driver for compression in tests: plans, asks a scripted summariser, applies."""

from collections.abc import Callable, Sequence

from msgspec.structs import replace

from jackstay.core.messages import Message, ToolCall, ToolResult, assistant, observation
from jackstay.core.transcript import Transcript
from jackstay.engine.compaction.measure import measured
from jackstay.engine.compaction.params import CompressionParams
from jackstay.engine.compaction.plan import Memory, Surroundings, plan
from jackstay.engine.compaction.rebuild import Compacted, apply, finish, prepare
from jackstay.engine.compaction.summary import SummaryJob
from jackstay.engine.ports import Reply

Summariser = Callable[[SummaryJob], Reply | None]


def says(text: str) -> Summariser:
    """A summariser that always answers this."""
    return lambda job: Reply(assistant(text))


def fails(job: SummaryJob) -> Reply | None:
    """A summariser that never answers, or too late."""
    return None


def context_tokens(transcript: Transcript, around: Surroundings) -> int:
    """How many tokens the next request will have, as well as is known."""
    raw = measured(transcript).tokens + around.overhead
    return around.memory.calibration.correct(raw, len(transcript))


def learn(memory: Memory, transcript: Transcript, overhead: int, input_tokens: int) -> Memory:
    """The memory after a reply: the provider counted `input_tokens` for the request with this transcript.

    `overhead` is what the surroundings of that request said.
    """
    estimated = measured(transcript).tokens + overhead
    return replace(memory, calibration=memory.calibration.learn(input_tokens, estimated, len(transcript)))


def compress(
    transcript: Transcript,
    params: CompressionParams,
    around: Surroundings,
    summariser: Summariser = fails,
) -> Compacted | None:
    """One moment before a reason turn, as the run performs it."""
    found = plan(transcript, params, around)
    if found is None:
        return None
    jobs = prepare(found)
    summary = finish(found, [summariser(job) for job in jobs]) if jobs else None
    return apply(found, summary)


def turn(number: int, text: str = "", *, calls: int = 1) -> list[Message]:
    """A reply with calls, and their observations."""
    ids = [f"c{number}" if calls == 1 else f"c{number}_{n}" for n in range(calls)]
    reply = assistant("", *(ToolCall(one, "bash", {"command": f"step {one}"}) for one in ids))
    return [reply, *(observation(ToolResult(one, text or f"fact-{one} is known")) for one in ids)]


def broken(messages: Sequence[Message], pending: frozenset[str] = frozenset()) -> str | None:
    """Why a provider would refuse these messages, or None."""
    waiting: list[str] = []
    for at, message in enumerate(messages):
        results = [part.call_id for part in message.parts if isinstance(part, ToolResult)]
        if message.role == "tool":
            if not results or any(one not in waiting for one in results):
                return f"message {at} is a result without its call"
            if waiting[: len(results)] != results:
                return f"message {at} is out of the order of its calls"
            waiting = waiting[len(results) :]
            continue
        if waiting and not set(waiting) & pending:
            return f"message {at} comes before the results of {waiting}"
        waiting = [] if message.role != "assistant" else waiting
        if message.role == "assistant":
            if not message.text.strip() and not message.calls:
                return f"message {at} says nothing"
            waiting = [call.call_id for call in message.calls]
            if len(set(waiting)) != len(waiting):
                return f"message {at} has a call id twice"
    if waiting and not set(waiting) & pending:
        return f"the last calls {waiting} have no results"
    return None


def again(around: Surroundings, memory: Memory) -> Surroundings:
    """The same surroundings a turn later."""
    return Surroundings(around.context_length, around.overhead, memory)
