"""How is an OpenAI-compatible chat-completions server asked, and what do its chunks say?

One adapter for all of them: what differs is a row in `families.DIALECTS`, or is learnt from the server's first
refusal (`stream_options`, the name of the output limit).
"""

import functools
from typing import Any

from jackstay.core.errors import ErrorInfo, ModelError
from jackstay.core.messages import Image, JsonObject, Message, Text, Thinking, ToolCall, ToolResult, Usage
from jackstay.core.tools import ToolSpec
from jackstay.core.wire import decode_json
from jackstay.engine.ports import ModelRequest, Reply, Tell
from jackstay.models.assemble import (
    Assembly,
    Ending,
    Slot,
    args_to_send,
    name_to_send,
    read_args,
    read_json,
    to_json,
)
from jackstay.models.endpoint import Endpoint, ToolLists, joined, more_fields
from jackstay.models.families import Dialect, dialect_of, family_of
from jackstay.models.faults import Peer
from jackstay.models.http import Client
from jackstay.models.order import in_order

_ENDINGS: dict[str, Ending] = {
    "stop": "end", "eos": "end", "eos_token": "end", "stop_sequence": "end", "end_turn": "end",
    "tool_calls": "calls", "function_call": "calls", "tool_use": "calls",
    "length": "length", "max_tokens": "length", "model_length": "length",
    "model_context_window_exceeded": "length",
    "content_filter": "refused", "refusal": "refused", "safety": "refused", "recitation": "refused",
    "prohibited_content": "refused", "blocklist": "refused", "sensitive": "refused",
    "error": "broken", "network_error": "broken", "insufficient_system_resource": "broken", "abort": "broken",
}  # fmt: skip

_THINKING_FIELDS = ("reasoning_content", "reasoning", "thinking")
_CAPS = {"max_tokens": "max_completion_tokens", "max_completion_tokens": "max_tokens"}


class OpenAIModel:
    """A model behind an OpenAI-compatible server; `base_url` ends where `/chat/completions` begins."""

    def __init__(self, endpoint: Endpoint) -> None:
        family = family_of(endpoint.model)
        self.name = endpoint.name or endpoint.model
        self.context_length = endpoint.context_length or (family.context_length if family else None)
        self._max_output_tokens = endpoint.max_output_tokens
        self._peer = endpoint.peer()
        headers = {"content-type": "application/json", "accept": "text/event-stream"}
        if endpoint.key:
            headers["authorization"] = f"Bearer {endpoint.key}"
        url = joined(endpoint.base_url, "/chat/completions")
        self._client = Client(url, self._peer, headers, endpoint.http)
        dialect = dialect_of(endpoint.host, endpoint.model)
        self._head = b'{"model":' + to_json(endpoint.model) + b',"stream":true' + more_fields(endpoint.body)
        self._tools = ToolLists(_describe)
        self._encode = functools.partial(_encode, dialect=dialect)
        self._derived = f"openai:{dialect}"  # what a message becomes depends on the dialect and nothing else
        self._cap, self._swapped, self._wants_usage = dialect.cap, False, "stream_options" not in endpoint.body

    async def reply(self, request: ModelRequest, tell: Tell) -> Reply:
        """Ask once; a server that refuses an optional field is asked without it, and never with it again."""
        while True:
            ear = _Ear(tell, self._peer)
            try:
                await self._client.ask(self._body(request), ear)
            except ModelError as problem:
                if not self._concede(problem.info):
                    raise
                continue
            return ear.reply(request.tools)

    async def close(self) -> None:
        """Give back connections. The model may be used again afterwards."""
        await self._client.close()

    def _body(self, request: ModelRequest) -> bytes:
        messages: list[bytes] = []
        if request.system:
            messages.append(to_json({"role": "system", "content": request.system}))
        messages += in_order(request.transcript).derived(self._derived, self._encode)
        messages += [self._encode(note) for note in request.notes]
        said = list(filter(None, messages)) or [b""]
        said[0] = self._before_messages(request) + said[0]  # so that one join copies the history once
        said[-1] += self._after_messages(request)
        return b",".join(said)

    def _before_messages(self, request: ModelRequest) -> bytes:
        head = self._head
        if self._wants_usage:
            head += b',"stream_options":{"include_usage":true}'
        if (most := request.max_output_tokens or self._max_output_tokens) is not None:
            head += b',"%s":%d' % (self._cap.encode(), most)
        return head + b',"messages":['

    def _after_messages(self, request: ModelRequest) -> bytes:
        if not request.tools:
            return b"]}"
        return b'],"tools":[' + self._tools.encoded(request.tools) + b"]}"

    def _concede(self, info: ErrorInfo) -> bool:
        """Did the server refuse a field that can be left out or renamed? Then do so from now on."""
        if info.kind != "bad_request" or info.status not in (400, 422):
            return False
        if self._wants_usage and "stream_options" in info.message:
            self._wants_usage = False
            return True
        if not self._swapped and self._cap in info.message and _CAPS[self._cap] in info.message:
            self._cap, self._swapped = _CAPS[self._cap], True
            return True
        return False


# -- what we say -------------------------------------------------------------------------------------------


def _describe(tool: ToolSpec) -> JsonObject:
    function = {"name": tool.name, "description": tool.description, "parameters": tool.parameters}
    return {"type": "function", "function": function}


def _encode(message: Message, *, dialect: Dialect) -> bytes:
    """A message's wire form; several objects with commas between them, or none, where one message is that."""
    match message.role:
        case "assistant":
            plain = _assistant(message, dialect)
            return b"" if plain is None else to_json(plain)
        case "tool":
            results = [part for part in message.parts if isinstance(part, ToolResult)]
            return b",".join(
                to_json({"role": "tool", "tool_call_id": result.call_id, "content": result.text})
                for result in results
            )
        case role:
            content = _content(message)
            return to_json({"role": role, "content": content}) if content else b""


def _content(message: Message) -> str | list[JsonObject]:
    if not any(isinstance(part, Image) for part in message.parts):
        return message.text
    content: list[JsonObject] = []
    for part in message.parts:
        if isinstance(part, Text) and part.text:
            content.append({"type": "text", "text": part.text})
        elif isinstance(part, Image):
            url = f"data:{part.media};base64,{part.data}"
            content.append({"type": "image_url", "image_url": {"url": url}})
    return content


def _assistant(message: Message, dialect: Dialect) -> JsonObject | None:
    text, calls = message.text, message.calls
    if not text and not calls:
        return None
    plain: JsonObject = {"role": "assistant", "content": text or None}
    for field in dialect.thinking:
        said = [p for p in message.parts if isinstance(p, Thinking) and p.source == field]
        if field == "reasoning_details":
            details = [detail for part in said for detail in decode_json(part.redacted or "[]")]
            if details:
                plain[field] = details
        elif said:
            plain[field] = "".join(part.text for part in said)
    if calls:
        plain["tool_calls"] = [_call(call, dialect) for call in calls]
    return plain


def _call(call: ToolCall, dialect: Dialect) -> JsonObject:
    arguments = to_json(args_to_send(call)).decode()
    function = {"name": name_to_send(call.tool), "arguments": arguments}
    plain: JsonObject = {"id": call.call_id, "type": "function", "function": function}
    if dialect.extras and call.extra and "extra_content" in call.extra:
        plain["extra_content"] = call.extra["extra_content"]
    return plain


# -- what we hear ------------------------------------------------------------------------------------------


class _Ear:
    """Hears one answer, streamed or whole."""

    __slots__ = ("_assembly", "_by_index", "_current", "_details", "_done", "_peer", "_refused", "_why")

    def __init__(self, tell: Tell, peer: Peer) -> None:
        self._assembly, self._peer = Assembly(tell), peer
        self._by_index: dict[int, Slot] = {}
        self._current: Slot | None = None
        self._details: list[JsonObject] = []
        self._done = self._refused = False
        self._why: str | None = None

    def hear(self, name: str, data: bytes) -> bool:
        """One event of the stream."""
        try:
            chunk = decode_json(data)
        except (ValueError, RecursionError):
            chunk = None
        if type(chunk) is not dict:
            if data.startswith(b"[DONE]"):
                self._done = True
                return True
            chunk = self._object(data)
        if name == "error" or chunk.get("error"):
            raise self._peer.told(chunk)
        self._chunk(chunk)
        return False

    def whole(self, data: bytes) -> None:
        """An answer in one piece."""
        chunk = self._object(data)
        if chunk.get("error"):
            raise self._peer.told(chunk)
        if not chunk.get("choices"):
            raise self._junk(data)
        self._chunk(chunk)
        self._done = True

    def reply(self, tools: tuple[ToolSpec, ...]) -> Reply:
        """What was said, once the stream has ended."""
        if self._why is None and not self._done:
            raise self._peer.error("broken_reply", "ended its stream in the middle of the answer")
        if self._details:
            self._assembly.words("reasoning_details").redacted = to_json(self._details).decode()
        why = self._why or "no finish reason"
        ending: Ending = "refused" if self._refused else _ENDINGS.get(why.lower(), "other")
        return self._assembly.reply(ending, self._peer, tools, why)

    def _object(self, data: bytes) -> JsonObject:
        try:
            chunk = read_json(data)
        except ValueError:
            raise self._junk(data) from None
        if type(chunk) is list and chunk:  # Gemini wraps its errors
            chunk = chunk[0]
        if type(chunk) is not dict:
            raise self._junk(data)
        return chunk

    def _junk(self, data: bytes) -> ModelError:
        sample = data[:200].decode("utf-8", "replace")
        return self._peer.error("broken_reply", f"sent something that is no chat completion: {sample!r}")

    def _chunk(self, chunk: JsonObject) -> None:
        choices = chunk.get("choices")
        if choices and type(choices) is list and type(choices[0]) is dict:
            choice = choices[0]
            delta = choice.get("delta") or choice.get("message")
            if type(delta) is dict:
                self._delta(delta)
            reason = choice.get("finish_reason")
            if reason:
                self._why = str(reason)
                self._usage(choice.get("usage"))  # where Moonshot has it
        if usage := chunk.get("usage"):
            self._usage(usage)
        if self._assembly.model is None:
            self._assembly.model = _text(chunk.get("model")) or None

    def _delta(self, delta: JsonObject) -> None:
        content = delta.get("content")
        more = not content or len(delta) > 1  # nearly every delta is text and nothing else
        if more:
            self._beside_content(delta)
        if content:
            if type(content) is str:
                self._assembly.say(content)
            else:
                self._content_parts(content)
        if more:
            self._calls(delta)

    def _beside_content(self, delta: JsonObject) -> None:
        for field in _THINKING_FIELDS:  # servers in transition send the same piece in two of them
            piece = delta.get(field)
            if piece and type(piece) is str:
                self._assembly.think(piece, field)
                break
        for detail in _list_of(delta.get("reasoning_details")):
            _add_detail(self._details, detail)
        refusal = delta.get("refusal")
        if refusal and type(refusal) is str:
            self._refused = True
            self._assembly.say(refusal)

    def _content_parts(self, content: Any) -> None:
        for part in _list_of(content):  # Mistral's form
            if type(text := part.get("text")) is str and text:
                self._assembly.say(text)
            for inner in _list_of(part.get("thinking")):
                if type(text := inner.get("text")) is str and text:
                    self._assembly.think(text, "thinking")

    def _calls(self, delta: JsonObject) -> None:
        for fragment in _list_of(delta.get("tool_calls")):
            function = fragment.get("function")
            self._fragment(fragment, function if type(function) is dict else {})
        legacy = delta.get("function_call")
        if type(legacy) is dict:
            self._fragment({"index": 0}, legacy)

    def _fragment(self, fragment: JsonObject, function: JsonObject) -> None:
        call_id, name = _text(fragment.get("id")), _text(function.get("name"))
        arguments, index = function.get("arguments"), fragment.get("index")
        if type(index) is int:
            slot = self._by_index.get(index)
            if slot is None or _begins_anew(slot, call_id, name, arguments):
                slot = self._by_index[index] = self._assembly.call(call_id, name)
        else:
            slot = self._current
            if slot is None or _begins_anew(slot, call_id, name, arguments):
                slot = self._assembly.call(call_id, name)
        self._current = slot
        self._assembly.touch(slot)
        slot.call_id = slot.call_id or call_id
        if name and name != slot.name and not slot.pieces:
            slot.name += name
        _add_arguments(slot, arguments)
        if type(extra := fragment.get("extra_content")) is dict:
            slot.extra = {"extra_content": extra}

    def _usage(self, usage: Any) -> None:
        if type(usage) is not dict:
            return
        details = usage.get("prompt_tokens_details")
        cached = details.get("cached_tokens") if type(details) is dict else None
        cost = usage.get("cost")
        self._assembly.usage = Usage(
            _count(usage.get("prompt_tokens")),
            _count(usage.get("completion_tokens")),
            _count(cached) or _count(usage.get("prompt_cache_hit_tokens")),
            cost=float(cost) if isinstance(cost, int | float) else 0.0,
        )


def _begins_anew(slot: Slot, call_id: str, name: str, arguments: Any) -> bool:
    """Does a fragment for the place of `slot` begin another call?

    Servers that give every call the index 0, or no index, can only be told by a second id with a name, or by a
    name and arguments after arguments that were complete.
    """
    if not name:
        return False
    if call_id and slot.call_id and call_id != slot.call_id:
        return True
    if not slot.name or not arguments:
        return False
    return slot.args is not None or (bool(slot.pieces) and read_args("".join(slot.pieces), None)[1] is None)


def _add_arguments(slot: Slot, arguments: Any) -> None:
    match arguments:
        case None:
            pass
        case str():
            slot.pieces.append(arguments)
        case dict():
            slot.args = arguments
        case list() if all(isinstance(piece, str) for piece in arguments):
            slot.pieces += arguments
        case _:
            slot.pieces.append(to_json(arguments).decode())  # not an object: `read_args` will say so


def _add_detail(details: list[JsonObject], detail: JsonObject) -> None:
    """OpenRouter's reasoning details come in pieces: neighbours of one kind and index are one."""
    last = details[-1] if details else None
    if last is None or any(last.get(key) != detail.get(key) for key in ("type", "index")):
        details.append(dict(detail))
        return
    for key, value in detail.items():
        if key in ("text", "summary", "data") and isinstance(value, str):
            last[key] = (last.get(key) or "") + value
        elif value is not None:
            last[key] = value


def _list_of(value: Any) -> list[JsonObject]:
    items = value if isinstance(value, list) else [value]
    return [item for item in items if isinstance(item, dict)]


def _text(value: Any) -> str:
    return value if isinstance(value, str) else "" if value is None else str(value)


def _count(value: Any) -> int:
    return value if type(value) is int and value > 0 else 0
