"""How is Anthropic's Messages API asked, and what do its events say?

Consecutive messages of one side become one message, as the API demands. Each message's bytes are made once,
together with the seam to the message before it, so that a request's history is one join.
"""

from typing import Any

import msgspec

from jackstay.core.errors import ModelError
from jackstay.core.messages import Image, JsonObject, Message, Part, Text, Thinking, ToolCall, ToolResult, Usage
from jackstay.core.tools import ToolSpec
from jackstay.engine.ports import ModelRequest, Reply, Tell
from jackstay.models.assemble import (
    Assembly,
    Ending,
    Slot,
    Words,
    args_to_send,
    name_to_send,
    read_json,
    to_json,
)
from jackstay.models.endpoint import Endpoint, ToolLists, joined, more_fields
from jackstay.models.families import family_of
from jackstay.models.faults import Peer
from jackstay.models.http import Client
from jackstay.models.order import in_order

VERSION = "2023-06-01"
DEFAULT_MAX_TOKENS = 8_192  # the API demands a cap; every model takes this one
SOURCE = "anthropic"  # of thinking that goes back there

_ENDINGS: dict[str, Ending] = {
    "end_turn": "end", "stop_sequence": "end", "tool_use": "calls", "max_tokens": "length",
    "model_context_window_exceeded": "length", "refusal": "refused", "pause_turn": "other",
}  # fmt: skip

_CACHE = b',"cache_control":{"type":"ephemeral"}}'


class AnthropicModel:
    """A Claude model; `base_url` is what ANTHROPIC_BASE_URL holds (with or without `/v1`)."""

    def __init__(self, endpoint: Endpoint) -> None:
        family = family_of(endpoint.model)
        self.name = endpoint.name or endpoint.model
        self.context_length = endpoint.context_length or (family.context_length if family else None)
        known = family.max_output_tokens if family else None
        self._max_tokens = endpoint.max_output_tokens or known or DEFAULT_MAX_TOKENS
        self._peer = endpoint.peer()
        headers = {
            "content-type": "application/json",
            "accept": "text/event-stream",
            "anthropic-version": VERSION,
        }
        if endpoint.key:
            headers["x-api-key"] = endpoint.key
        url = joined(endpoint.base_url.rstrip("/").removesuffix("/v1"), "/v1/messages")
        self._client = Client(url, self._peer, headers, endpoint.http)
        self._head = b'{"model":' + to_json(endpoint.model) + b',"stream":true' + more_fields(endpoint.body)
        self._tools = ToolLists(_describe)

    async def reply(self, request: ModelRequest, tell: Tell) -> Reply:
        """Ask once. Raises ModelError and nothing else."""
        ear = _Ear(tell, self._peer)
        await self._client.ask(self._body(request), ear)
        return ear.reply(request.tools)

    async def close(self) -> None:
        """Give back connections. The model may be used again afterwards."""
        await self._client.close()

    def _body(self, request: ModelRequest) -> bytes:
        pieces = [self._head, b',"max_tokens":%d' % (request.max_output_tokens or self._max_tokens)]
        if request.system.strip():
            system = to_json({"type": "text", "text": request.system})
            pieces += [b',"system":[', system[:-1], _CACHE, b"]"]
        if request.tools:
            pieces += [b',"tools":[', self._tools.encoded(request.tools)[:-1], _CACHE, b"]"]
        spans = in_order(request.transcript).scanned("anthropic", _extend)
        last = spans[-1] if spans else None
        pieces.append(b',"messages":[')
        pieces += [span.data for span in spans]
        if last is not None and last.side == "user" and last.data:
            pieces[-1:] = [last.data[:-1], _CACHE]  # the newest stored block: notes come after it and change
        for note in request.notes:
            last = _extend(last, note)
            pieces.append(last.data)
        pieces.append(b"]}]}" if last is not None and last.side else b"]}")
        return b"".join(pieces)


# -- what we say -------------------------------------------------------------------------------------------


def _describe(tool: ToolSpec) -> JsonObject:
    return {"name": tool.name, "description": tool.description, "input_schema": tool.parameters}


class _Span(msgspec.Struct, frozen=True, gc=False):
    """A message's bytes in the request, and whose message is open after them ("" before the first one)."""

    data: bytes
    side: str = ""


_OPEN = {side: b'{"role":"%s","content":[' % side.encode() for side in ("user", "assistant")}
_OPENING = _OPEN["user"] + b'{"type":"text","text":"(the conversation goes on)"}'  # it must begin with a user


def _extend(before: _Span | None, message: Message) -> _Span:
    now = before.side if before is not None else ""
    side = "assistant" if message.role == "assistant" else "user"
    data = b",".join(to_json(block) for block in _blocks(message))
    if not data:
        return _Span(b"", now)
    if now == side:
        return _Span(b"," + data, side)
    if now:
        return _Span(b"]}," + _OPEN[side] + data, side)
    return _Span((_OPENING + b"]}," if side == "assistant" else b"") + _OPEN[side] + data, side)


def _blocks(message: Message) -> list[JsonObject]:
    if message.role != "assistant":
        return [block for part in message.parts if (block := _block(part)) is not None]
    # The API refuses text behind a call, and thinking as the last word.
    calls = message.calls
    first = message.parts.index(calls[0]) if calls else len(message.parts)
    late = [part for part in message.parts[first:] if isinstance(part, Text)]
    others = [part for part in message.parts[first:] if not isinstance(part, Text)]
    found = [b for part in (*message.parts[:first], *late, *others) if (b := _block(part)) is not None]
    while found and found[-1]["type"] not in ("text", "tool_use"):
        found.pop()
    return found


def _block(part: Part) -> JsonObject | None:
    match part:
        case Text(text=text):
            return {"type": "text", "text": text} if text.strip() else None
        case Thinking(source="anthropic", redacted=str(data)):
            return {"type": "redacted_thinking", "data": data}
        case Thinking(source="anthropic", signature=str(signature)):
            return {"type": "thinking", "thinking": part.text, "signature": signature}
        case Image():
            return {"type": "image", "source": {"type": "base64", "media_type": part.media, "data": part.data}}
        case ToolCall():
            block = {"type": "tool_use", "id": part.call_id, "name": name_to_send(part.tool)}
            return {**block, "input": args_to_send(part)}
        case ToolResult():
            result: JsonObject = {"type": "tool_result", "tool_use_id": part.call_id}
            if part.text.strip():
                result["content"] = part.text
            return {**result, "is_error": True} if part.is_error else result
        case _:
            return None  # thinking of another provider; a part of a newer version


# -- what we hear ------------------------------------------------------------------------------------------


class _Ear:
    """Hears one answer, streamed or whole."""

    __slots__ = ("_assembly", "_blocks", "_done", "_peer", "_usage", "_why")

    def __init__(self, tell: Tell, peer: Peer) -> None:
        self._assembly, self._peer = Assembly(tell), peer
        self._blocks: dict[Any, Words | Slot] = {}
        self._usage: JsonObject = {}
        self._done = False
        self._why: str | None = None

    def hear(self, name: str, data: bytes) -> bool:
        """One event of the stream; kinds that are not known are passed over, as the API asks."""
        event = self._object(data)
        match event.get("type"):
            case "content_block_delta":
                self._delta(event)
            case "content_block_start":
                self._start(event.get("index"), event.get("content_block"))
            case "message_start":
                self._message(event.get("message"))
            case "message_delta":
                self._message(event.get("delta"))
                self._count(event.get("usage"))
            case "message_stop":
                self._done = True
                return True
            case "error":
                raise self._peer.told(event)
            case None if name == "error" or "error" in event:
                raise self._peer.told(event)
            case _:
                pass
        return False

    def whole(self, data: bytes) -> None:
        """An answer in one piece."""
        message = self._object(data)
        if message.get("type") == "error" or "error" in message:
            raise self._peer.told(message)
        if not isinstance(message.get("content"), list):
            raise self._junk(data)
        for index, block in enumerate(message["content"]):
            self._start(index, block)
        self._message(message)
        self._done = True

    def reply(self, tools: tuple[ToolSpec, ...]) -> Reply:
        """What was said, once the stream has ended."""
        if self._why is None and not self._done:
            raise self._peer.error("broken_reply", "ended its stream in the middle of the answer")
        usage, why = self._usage, self._why or "no stop reason"
        read, written = usage.get("cache_read_input_tokens", 0), usage.get("cache_creation_input_tokens", 0)
        inputs = usage.get("input_tokens", 0) + read + written  # theirs leaves the cached ones out
        self._assembly.usage = Usage(inputs, usage.get("output_tokens", 0), read, written)
        return self._assembly.reply(_ENDINGS.get(why, "other"), self._peer, tools, why)

    def _object(self, data: bytes) -> JsonObject:
        try:
            event = read_json(data)
        except ValueError:
            raise self._junk(data) from None
        if not isinstance(event, dict):
            raise self._junk(data)
        return event

    def _junk(self, data: bytes) -> ModelError:
        sample = data[:200].decode("utf-8", "replace")
        return self._peer.error("broken_reply", f"sent something that is no Messages event: {sample!r}")

    def _message(self, message: Any) -> None:
        if not isinstance(message, dict):
            return
        if isinstance(model := message.get("model"), str):
            self._assembly.model = model
        if isinstance(why := message.get("stop_reason"), str):
            self._why = why
        self._count(message.get("usage"))

    def _count(self, usage: Any) -> None:
        """Counts are running totals: the latest of each stands."""
        if isinstance(usage, dict):
            self._usage |= {key: n for key, n in usage.items() if type(n) is int and n >= 0}

    def _start(self, index: Any, block: Any) -> None:
        kind = block.get("type") if isinstance(block, dict) else None
        if kind == "text":
            self._begin(index, self._assembly.words(None), block.get("text"))
        elif kind == "thinking":
            words = self._assembly.words(SOURCE)
            words.signature = _text(block.get("signature")) or None
            self._begin(index, words, block.get("thinking"))
        elif kind == "redacted_thinking":
            words = self._assembly.words(SOURCE)
            words.redacted = _text(block.get("data"))
        elif kind == "tool_use":
            slot = self._assembly.call(_text(block.get("id")), _text(block.get("name")))
            if given := block.get("input"):
                if isinstance(given, dict):
                    slot.args = given
                else:
                    slot.pieces.append(to_json(given).decode())
            self._blocks[index] = slot

    def _begin(self, index: Any, words: Words, text: Any) -> None:
        self._blocks[index] = words
        if text and isinstance(text, str):
            self._assembly.write(words, text)

    def _delta(self, event: JsonObject) -> None:
        block, delta = self._blocks.get(event.get("index")), event.get("delta")
        if block is None or type(delta) is not dict:
            return  # of a block kind that we do not know
        kind = delta.get("type")
        if type(block) is Words:
            if kind in ("text_delta", "thinking_delta"):
                piece = delta.get("text" if kind == "text_delta" else "thinking")
                if piece and type(piece) is str:
                    self._assembly.write(block, piece)
            elif kind == "signature_delta":
                block.signature = (block.signature or "") + _text(delta.get("signature"))
        elif type(block) is Slot and kind == "input_json_delta":
            self._assembly.touch(block)
            block.pieces.append(_text(delta.get("partial_json")))


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""
