"""Which reply do the pieces of a stream make? The same for every wire format.

Parts keep the order in which they began. A call whose arguments cannot be trusted is marked with `problem` and
keeps what the model wrote; nothing is ever guessed into arguments.
"""

import json
import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Literal

from jackstay.core.messages import JsonObject, Message, Part, Text, Thinking, ToolCall, Usage
from jackstay.core.tools import ToolSpec
from jackstay.core.wire import decode_json, encode
from jackstay.engine.ports import Reply, Stop, Tell

if TYPE_CHECKING:
    from jackstay.models.faults import Peer

DEEPEST_ARGS = 64  # levels of nesting in a call's arguments
LONGEST_UNREADABLE = 2_000  # characters of unreadable arguments that are shown to the model again
CUT = "the call was cut off by the output limit; it was not run: send it again in smaller pieces"

# What a wire says about the end: ours, or "broken" for a server that gave up in the middle.
Ending = Stop | Literal["broken"]


class Words:
    """A run of text, or of thinking when it has a source."""

    __slots__ = ("pieces", "redacted", "signature", "source")

    def __init__(self, source: str | None) -> None:
        self.source = source
        self.pieces: list[str] = []
        self.signature: str | None = None
        self.redacted: str | None = None

    def part(self) -> Part | None:
        text = "".join(self.pieces)
        if self.source is None:
            return Text(text) if text else None
        if not text and self.signature is None and self.redacted is None:
            return None
        return Thinking(text, self.signature, self.redacted, self.source)


class Slot:
    """A call as it comes in."""

    __slots__ = ("args", "call_id", "cut", "extra", "name", "pieces")

    def __init__(self, call_id: str = "", name: str = "") -> None:
        self.call_id, self.name = call_id, name
        self.pieces: list[str] = []
        self.args: JsonObject | None = None  # given whole, as an object
        self.extra: JsonObject | None = None
        self.cut = False

    def part(self, specs: dict[str, ToolSpec]) -> ToolCall:
        if self.args is not None and not self.pieces:
            raw, args, problem = to_json(self.args).decode(), self.args, _too_deep(self.args)
        else:
            raw = "".join(self.pieces)
            args, problem = read_args(raw, specs.get(self.name))
        if not self.name:
            problem = "the call names no tool"
        elif self.cut:
            problem = CUT
        if problem is not None:
            return ToolCall(self.call_id, self.name, {}, problem, raw, self.extra)
        return ToolCall(self.call_id, self.name, args, extra=self.extra)


class Assembly:
    """Collects one reply. `say` and `think` also tell it on, piece by piece."""

    __slots__ = ("_last", "_parts", "_tell", "model", "usage")

    def __init__(self, tell: Tell) -> None:
        self._tell = tell
        self._parts: list[Words | Slot] = []
        self._last: Words | Slot | None = None
        self.usage = Usage()
        self.model: str | None = None

    def say(self, piece: str) -> None:
        """A piece of text."""
        last = self._last
        if type(last) is not Words or last.source is not None:
            last = self.words(None)
        last.pieces.append(piece)
        self._tell(piece, False)

    def think(self, piece: str, source: str) -> None:
        """A piece of thinking from this wire field."""
        last = self._last
        if type(last) is not Words or last.source != source:
            last = self.words(source)
        last.pieces.append(piece)
        self._tell(piece, True)

    def write(self, words: Words, piece: str) -> None:
        """A piece of this run of text or thinking."""
        self._last = words
        words.pieces.append(piece)
        self._tell(piece, words.source is not None)

    def words(self, source: str | None) -> Words:
        """Begin a run of text or thinking."""
        self._last = begun = Words(source)
        self._parts.append(begun)
        return begun

    def call(self, call_id: str, name: str) -> Slot:
        """Begin a call."""
        self._last = begun = Slot(call_id, name)
        self._parts.append(begun)
        return begun

    def touch(self, slot: Slot) -> None:
        """This call is the one that is being written: a cut would hit it."""
        self._last = slot

    def reply(self, ending: Ending, peer: "Peer", specs: Iterable[ToolSpec], why: str) -> Reply:
        """The reply as it stands at its end. `why` is the provider's word for how it ended.

        Raises ModelError when the server gave up, when nothing was said, or when nothing but a refusal was.
        """
        if ending == "broken":
            raise peer.error("server", f"gave up in the middle of its answer ({why})")
        if ending in ("length", "refused") and isinstance(self._last, Slot):
            self._last.cut = True
        known = {spec.name: spec for spec in specs}
        found = (part.part(known) if isinstance(part, Slot) else part.part() for part in self._parts)
        message = Message("assistant", tuple(part for part in found if part is not None))
        if not message.calls and not message.text.strip():
            if ending == "refused":
                raise peer.error("bad_request", f"refused to answer ({why})")
            if not any(isinstance(part, Thinking) for part in message.parts):
                raise peer.error("empty_reply", f"answered with neither text nor calls ({why})")
        stop: Stop = ending
        if message.calls and stop in ("end", "other"):
            stop = "calls"
        elif not message.calls and stop == "calls":
            stop = "end"
        return Reply(message, self.usage, stop, self.model)


# -- arguments ---------------------------------------------------------------------------------------------


def read_args(raw: str, spec: ToolSpec | None) -> tuple[JsonObject, str | None]:
    """The arguments that this text holds, and why they cannot be used (then the arguments are empty).

    No text at all means "no arguments", which is only believed where the tool demands none.
    """
    if not raw.strip():
        needed = spec.parameters.get("required") if spec is not None else None
        if not needed:
            return {}, None
        return (
            {},
            f"no arguments arrived; {spec.name if spec else 'the tool'} needs {', '.join(map(str, needed))}",
        )
    try:
        args = decode_json(raw)
    except RecursionError:
        return {}, f"the arguments are nested more than {DEEPEST_ARGS} levels deep"
    except ValueError as problem:
        return {}, f"the arguments are not valid JSON: {problem}"
    if not isinstance(args, dict):
        return {}, f"the arguments must be a JSON object, not {_json_name(args)}"
    deep = _too_deep(args)
    return ({} if deep else args), deep


def _json_name(value: Any) -> str:
    names = {list: "an array", str: "a string", bool: "a boolean", type(None): "null"}
    return names.get(type(value), "a number")


def _too_deep(args: JsonObject) -> str | None:
    level: list[Any] = [args]
    for _ in range(DEEPEST_ARGS):
        level = [inner for value in level for inner in _inside(value) if isinstance(inner, dict | list)]
        if not level:
            return None
    return f"the arguments are nested more than {DEEPEST_ARGS} levels deep"


def _inside(value: Any) -> Iterable[Any]:
    return value.values() if isinstance(value, dict) else value


def args_to_send(call: ToolCall) -> JsonObject:
    """The arguments as the model shall see them again: its own, or, where they were unreadable, its words.

    Providers refuse a history with malformed arguments, so those are wrapped.
    """
    if call.problem is None or not call.raw:
        return call.args
    args, problem = read_args(call.raw, None)
    if problem is None and len(call.raw) <= LONGEST_UNREADABLE:
        return args
    return {"unreadable_arguments": call.raw[:LONGEST_UNREADABLE]}


_NOT_IN_A_NAME = re.compile(r"[^A-Za-z0-9_-]")


def name_to_send(tool: str) -> str:
    """A tool's name as providers accept it in a history, whatever the model made up."""
    return _NOT_IN_A_NAME.sub("_", tool)[:64] or "unnamed"


# -- text --------------------------------------------------------------------------------------------------


def read_json(data: bytes) -> Any:
    """JSON as servers write it: with broken UTF-8 or half characters at times. Raises ValueError for junk."""
    try:
        return decode_json(data)
    except RecursionError:
        raise ValueError("nested too deeply") from None
    except ValueError:
        # not msgspec: it refuses half of an escaped surrogate pair, which servers that slice UTF-16 send
        try:
            return _mended(json.loads(data.decode("utf-8", "replace")))
        except RecursionError:
            raise ValueError("nested too deeply") from None


def to_json(value: Any) -> bytes:
    """JSON bytes; text that cannot be encoded (a tool's stray half characters) is mended, not refused."""
    try:
        return encode(value)
    except UnicodeEncodeError:
        return encode(_mended(value))


def _mended(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    if isinstance(value, dict):
        return {_mended(key): _mended(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_mended(item) for item in value]
    return value
