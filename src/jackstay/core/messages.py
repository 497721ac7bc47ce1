"""What is said between a person, a model and its tools."""

from typing import Any, Literal

import msgspec

Role = Literal["system", "user", "assistant", "tool"]
JsonObject = dict[str, Any]


class Text(msgspec.Struct, frozen=True, gc=False, tag="text"):
    """Plain words."""

    text: str


class Thinking(msgspec.Struct, frozen=True, gc=False, omit_defaults=True, tag="thinking"):
    """A model's reasoning; `signature` and `redacted` go back to the provider byte for byte."""

    text: str
    signature: str | None = None
    redacted: str | None = None
    source: str | None = None  # the wire field or model family it came from; only that one gets it back


class Image(msgspec.Struct, frozen=True, gc=False, tag="image"):
    """A picture: media type and base64 data."""

    media: str
    data: str


class ToolCall(msgspec.Struct, frozen=True, gc=False, omit_defaults=True, tag="tool_call"):
    """A call the model asked for.

    `problem` is set when the arguments could not be read or were cut off; such a call never runs, and `raw`
    keeps what the model wrote. `extra` is what a provider wants back beside the call (signatures).
    """

    call_id: str
    tool: str
    args: JsonObject
    problem: str | None = None
    raw: str | None = None
    extra: JsonObject | None = None


class ToolResult(msgspec.Struct, frozen=True, gc=False, omit_defaults=True, tag="tool_result"):
    """What came of a call. `executed` is None where nobody can know; `truncated` counts characters cut out."""

    call_id: str
    text: str
    is_error: bool = False
    executed: bool | None = True
    truncated: int = 0


class UnknownPart(msgspec.Struct, frozen=True, gc=False, tag="unknown"):
    """A part written by a newer version, kept as it was."""

    raw: JsonObject


Part = Text | Thinking | Image | ToolCall | ToolResult | UnknownPart


class Message(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """One message. `pinned` ones (META_FIRST, the seed's original-intent chain) are never compressed.

    `note` marks a message of the harness itself (a corrective note, a summary): it never counts as the
    user's wish.
    """

    role: Role
    parts: tuple[Part, ...]
    pinned: bool = False
    note: str | None = None

    @property
    def text(self) -> str:
        """All plain words of the message."""
        words = ""
        for part in self.parts:
            if type(part) is Text:
                words += part.text
        return words

    @property
    def calls(self) -> tuple[ToolCall, ...]:
        """The calls it asks for, in order."""
        calls: list[ToolCall] = []
        for part in self.parts:
            if type(part) is ToolCall:
                calls.append(part)
        return tuple(calls)


class Usage(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """Tokens as the provider counted them; `input_tokens` includes the cached ones. Cost in US dollars."""

    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    cost: float = 0.0

    def plus(self, other: "Usage") -> "Usage":
        """Both together."""
        return Usage(
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
            self.cache_read_tokens + other.cache_read_tokens,
            self.cache_write_tokens + other.cache_write_tokens,
            self.cost + other.cost,
        )

    @property
    def total_tokens(self) -> int:
        """Input and output together."""
        return self.input_tokens + self.output_tokens


NO_USAGE = Usage()


def user(text: str, *, pinned: bool = False) -> Message:
    """A message of the user."""
    return Message("user", (Text(text),), pinned=pinned)


def note(kind: str, text: str) -> Message:
    """A message of the harness to the model; providers see it as user text, the record knows better."""
    return Message("user", (Text(text),), note=kind)


def assistant(text: str, *calls: ToolCall) -> Message:
    """A message of the model."""
    words: tuple[Part, ...] = (Text(text),) if text else ()
    return Message("assistant", (*words, *calls))


def observation(result: ToolResult) -> Message:
    """What the model reads of a call."""
    return Message("tool", (result,))


def snapshot(value: Any) -> Any:
    """A copy of plain JSON data that shares nothing mutable with the original."""
    if isinstance(value, dict):
        for item in value.values():
            if type(item) not in _ATOMS:
                return {name: snapshot(item) for name, item in value.items()}
        return value.copy()
    if isinstance(value, list):
        return [v if type(v) in _ATOMS else snapshot(v) for v in value]
    return value


_ATOMS = frozenset({str, int, float, bool, type(None)})
