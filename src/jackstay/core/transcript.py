"""The messages of a session as a value that grows without being copied."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

from jackstay.core.messages import Message, ToolCall, ToolResult

T = TypeVar("T")


class _Log:
    """What transcripts share that grew out of each other: messages, and what was made of them."""

    __slots__ = ("calls", "derived", "items", "results")

    def __init__(self, messages: Iterable[Message]) -> None:
        self.items: list[Message] = []
        self.derived: dict[str, list[Any]] = {}
        self.calls: dict[str, ToolCall] = {}
        self.results: dict[str, ToolResult] = {}
        self.grow(messages)

    def grow(self, messages: Iterable[Message]) -> None:
        """Add messages, and remember their calls and results by id."""
        for message in messages:
            self.items.append(message)
            for part in message.parts:
                if type(part) is ToolResult:
                    self.results[part.call_id] = part
                elif type(part) is ToolCall:
                    self.calls[part.call_id] = part


class Transcript:
    """An immutable sequence of messages.

    Appending to the newest value is O(what is appended): values share one growing log and differ in their
    length. What is derived from a message once (wire bytes, token counts) is remembered beside it by
    `derived`, so that a run of n turns does n pieces of such work and not n².
    """

    __slots__ = ("_length", "_log")

    def __init__(self, messages: Iterable[Message] = ()) -> None:
        self._log = _Log(messages)
        self._length = len(self._log.items)

    def append(self, *messages: Message) -> "Transcript":
        """This transcript followed by the messages; the receiver stays as it is."""
        if not messages:
            return self
        log = self._log
        if len(log.items) != self._length:  # somebody else has grown the shared log: part from it
            return Transcript((*self, *messages))
        log.grow(messages)
        grown = Transcript.__new__(Transcript)
        grown._log, grown._length = log, len(log.items)
        return grown

    def amend(self, index: int, message: Message) -> "Transcript":
        """This transcript with another message at `index` (a rare change: everything is copied)."""
        messages = list(self)
        messages[index] = message
        return Transcript(messages)

    def derived(self, key: str, make: Callable[[Message], T]) -> list[T]:
        """`make` of each message, in order, computed once per message and key. Read it, do not change it."""
        made = self._log.derived.setdefault(key, [])
        if len(made) < self._length:
            made.extend([make(message) for message in self._log.items[len(made) : self._length]])
        return made if len(made) == self._length else made[: self._length]

    def scanned(self, key: str, make: Callable[[T | None, Message], T]) -> list[T]:
        """Like `derived`, for what depends on the messages before as well.

        `make` gets what was made of the message before (None for the first one) and the message.
        """
        made = self._log.derived.get(key)
        if made is None:
            made = self._log.derived[key] = []
        length = self._length
        if len(made) != length:
            if len(made) > length:
                return made[:length]
            last = made[-1] if made else None
            for message in self._log.items[len(made) : length]:
                last = make(last, message)
                made.append(last)
        return made

    def call(self, call_id: str) -> ToolCall | None:
        """The call of this id, as the model asked for it."""
        return self._log.calls.get(call_id)

    def result(self, call_id: str) -> ToolResult | None:
        """What came of the call of this id."""
        return self._log.results.get(call_id)

    def last_batch(self) -> tuple[Message | None, list[Message]]:
        """The last message that is no tool result, and the results after it."""
        items, at = self._log.items, self._length
        while at and items[at - 1].role == "tool":
            at -= 1
        return (items[at - 1] if at else None), items[at : self._length]

    def since(self, length: int) -> list[Message]:
        """The messages from position `length` on."""
        return self._log.items[length : self._length]

    def __len__(self) -> int:
        return self._length

    def __iter__(self) -> Iterator[Message]:
        return iter(self._log.items[: self._length])

    def __getitem__(self, index: int) -> Message:
        items = self._log.items
        return items[index] if self._length == len(items) else items[: self._length][index]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Transcript) and list(self) == list(other)

    def __hash__(self) -> int:
        return hash(tuple(self))

    def __repr__(self) -> str:
        return f"Transcript({list(self)!r})"
