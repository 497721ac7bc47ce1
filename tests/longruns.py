"""Long runs for tests: a tool that finds facts, a model that calls it turn after turn, and the same over HTTP."""

import asyncio
import re
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from jackstay import HarnessEngine, MemoryStore, tool
from jackstay.core.errors import ErrorInfo, ModelError
from jackstay.core.events import ContextSizeEvent, Event
from jackstay.core.messages import Message, ToolCall, ToolResult, Usage, assistant
from jackstay.core.transcript import Transcript
from jackstay.engine.compaction.composite import CompositeCompressionStrategy
from jackstay.engine.compaction.hierarchy import HierarchicalCompressionStrategy
from jackstay.engine.compaction.interceptor import ContextCompressionInterceptor
from jackstay.engine.compaction.keyinfo import KeyInfoExtractionStrategy
from jackstay.engine.ports import ModelRequest, Reply, Tell

FACT = re.compile(r"fact-\d+ is known")
Failure = str | ErrorInfo | None


def looks(filler: int = 0) -> Any:
    """The tool `look(n)`: another fact for each n, followed by so many characters."""

    @tool(effects={"reads"})
    async def look(n: int) -> str:
        """Look at number n."""
        return f"fact-{n} is known" + f" and so is the rest of {n}, word by word;" * (filler // 40)

    return look


def composite() -> CompositeCompressionStrategy:
    return CompositeCompressionStrategy(KeyInfoExtractionStrategy(), HierarchicalCompressionStrategy())


def compression(max_messages: int = 15, **more: Any) -> ContextCompressionInterceptor:
    """The interceptor with the default strategy."""
    return ContextCompressionInterceptor(max_messages, strategy=composite(), **more)


def is_question(request: ModelRequest) -> bool:
    """Is this a question for a summary?"""
    return request.max_output_tokens is not None


class Worker:
    """A model that calls `look` once a turn, `calls` times in each run, and then says that it is done.

    `before(number)` may raise or return another message for a turn, counted from 0 within the run by what the
    request shows. Questions for a summary are kept apart and answered by `summarise`.
    """

    name = "worker"

    def __init__(
        self, calls: int, *, window: int | None = 128_000, per_turn: int = 1, run: str = "c",
        summarise: Callable[[str], Message] = lambda text: assistant("- it goes on well"),
        before: Callable[[int, ModelRequest], Message | None] = lambda number, request: None,
    ) -> None:  # fmt: skip
        self.calls, self.context_length, self.per_turn, self.run = calls, window, per_turn, run
        self.summarise, self.before = summarise, before
        self.requests: list[ModelRequest] = []
        self.questions: list[ModelRequest] = []

    async def reply(self, request: ModelRequest, tell: Tell) -> Reply:
        if is_question(request):
            self.questions.append(request)
            return Reply(self.summarise(asked(request)), Usage(100, 7))
        self.requests.append(request)
        done = sum_of_calls(request.transcript, self.run)
        message = self.before(done, request)
        if message is None and done >= self.calls:
            message = assistant("done")
        if message is None:
            numbers = range(done, done + self.per_turn)
            message = assistant("", *(ToolCall(named(n, self.run), "look", {"n": n}) for n in numbers))
        return Reply(message, Usage(0, 5))

    async def close(self) -> None:
        """Nothing to close."""


def named(n: int, run: str = "c") -> str:
    """The id of a run's call for number n, as long as those of providers."""
    return f"look-{run}{n:04}"


def asked(request: ModelRequest) -> str:
    """The text of a question."""
    return request.transcript[0].text


def sum_of_calls(transcript: Transcript, run: str) -> int:
    """How many of its calls a run has made, by the number of the last one that can be seen."""
    for message in reversed(list(transcript)):
        for part in reversed(message.parts):
            if isinstance(part, ToolResult) and (found := re.fullmatch(rf"look-{run}(\d+)", part.call_id)):
                return int(found[1]) + 1
            if message.pinned and message.role == "user":
                return 0
    return 0


def overflow(text: str = "prompt is too long") -> ModelError:
    return ModelError(ErrorInfo("overflow", text, 400))


def engine(
    model: Any, *, store: Any = None, filler: int = 0, tools: Sequence[Any] = (), **more: Any
) -> HarnessEngine:
    """An engine with the tool `look`, and turns enough."""
    settings = {"max_turns": 1_000, "installed_extensions": False, "auto_rethink": False} | more
    return HarnessEngine(
        model=model, tools=(looks(filler), *tools), session_provider=store or MemoryStore(), **settings
    )  # fmt: skip


def run(made: HarnessEngine, prompt: str | None = "find all facts", session: str = "s") -> list[Event]:
    """The events of one request, to its end."""

    async def read() -> list[Event]:
        return [event async for event in made.prompt(prompt).session(session).stream()]

    return asyncio.run(read())


def passes(events: Sequence[Event]) -> list[ContextSizeEvent]:
    """The compressions among the events."""
    return [event for event in events if isinstance(event, ContextSizeEvent) and event.compressed]


def facts_in(transcript: Transcript) -> list[str]:
    """The facts that observations still show whole."""
    return [found for message in transcript if message.role == "tool" for found in FACT.findall(shown(message))]


def shown(message: Message) -> str:
    return "\n".join(getattr(part, "text", "") for part in message.parts)


def summarised(questions: Sequence[str]) -> list[Counter[str]]:
    """For each strategy of the composite: how often each fact was put before its summariser."""
    kinds: dict[str, Counter[str]] = {}
    for text in questions:
        kind = "rolling" if "The account so far:" in text else "list"
        kinds.setdefault(kind, Counter()).update(FACT.findall(text))
    return list(kinds.values())
