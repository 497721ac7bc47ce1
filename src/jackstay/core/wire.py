"""How values become bytes and back: the only file that knows JSON.

What a newer version wrote is read, not crashed on: unknown fields are ignored, an unknown tag becomes an
UnknownEvent. How the store writes messages and events is `core.packing`'s matter.
"""

from collections.abc import Callable
from functools import cache
from typing import Any

import msgspec

from jackstay.core.approvals import HITLDecision
from jackstay.core.errors import NewerSchema, StoreError
from jackstay.core.events import Event, UnknownEvent
from jackstay.core.messages import JsonObject
from jackstay.core.progress import Progress
from jackstay.core.state import SCHEMA, RunState
from jackstay.core.transcript import Transcript


def _encode_extension(value: Any) -> Any:
    if isinstance(value, Transcript):
        return len(value)
    raise NotImplementedError(type(value))  # msgspec asks for exactly this error


def _decode_extension(kind: type, value: Any) -> Any:
    if kind is Transcript:
        return Transcript()
    raise NotImplementedError(kind)


_encoder = msgspec.json.Encoder(enc_hook=_encode_extension)
_sorted = msgspec.json.Encoder(order="deterministic")
_any = msgspec.json.Decoder()

encode = _encoder.encode  # any value of this package, or plain JSON data, as JSON bytes
encode_into = _encoder.encode_into
canonical = _sorted.encode  # JSON with sorted keys: equal data, equal bytes
convert: Callable[..., Any] = msgspec.convert  # plain data as a given type; ValidationError names the path


# Made when they are first asked: a process that judges one call decodes neither runs nor events.
@cache
def _head() -> msgspec.json.Decoder[RunState]:
    return msgspec.json.Decoder(RunState, dec_hook=_decode_extension)


@cache
def _progress() -> msgspec.json.Decoder[Progress]:
    return msgspec.json.Decoder(Progress)


@cache
def _events() -> msgspec.json.Decoder[Event]:
    return msgspec.json.Decoder(Event)


@cache
def _decision() -> msgspec.json.Decoder[HITLDecision]:
    return msgspec.json.Decoder(HITLDecision)


def decode_json(data: bytes | str) -> Any:
    """Plain JSON data; raises ValueError when it is none."""
    return _any.decode(data)


def schema(kind: type[msgspec.Struct]) -> JsonObject:
    """The JSON schema of a struct's object form, self-contained; raises TypeError where there is none."""
    _, named = msgspec.json.schema_components([kind], ref_template="#/$defs/{name}")
    own: JsonObject = named.pop(kind.__name__)
    own.pop("title", None)
    return {**own, "$defs": named} if named else own


# -- heads -------------------------------------------------------------------------------------------------


def decode_head(data: bytes) -> RunState:
    """A stored head. Raises NewerSchema when this version must leave it alone, StoreError when it is broken."""
    try:
        state: RunState = _head().decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError) as problem:
        found = _schema_of(data)
        if found > SCHEMA:
            raise NewerSchema("the session", found, SCHEMA) from problem
        text = f"the session's head cannot be read: {problem}; run `jackstay doctor` to repair the store"
        raise StoreError(text) from problem
    if state.schema > SCHEMA:
        raise NewerSchema("the session " + state.session_id, state.schema, SCHEMA)
    return state


def decode_progress(data: bytes) -> Progress:
    """How far a run has come since its head was stored. Raises StoreError when it cannot be read."""
    try:
        return _progress().decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError) as problem:
        text = f"a session's progress cannot be read: {problem}; run `jackstay doctor` to repair the store"
        raise StoreError(text) from problem


def _schema_of(data: bytes) -> int:
    try:
        plain = _any.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return 0
    found = plain.get("schema", 0) if isinstance(plain, dict) else 0
    return found if isinstance(found, int) else 0


# -- decisions -------------------------------------------------------------------------------------------


def decode_decision(data: bytes) -> HITLDecision:
    """A posted decision."""
    return _decision().decode(data)


# -- events as people and programs read them ---------------------------------------------------------------


def decode_event(data: bytes | str) -> Event:
    """One JSON object as an event; an unknown tag becomes an UnknownEvent."""
    try:
        return _events().decode(data)
    except msgspec.ValidationError:
        plain = _any.decode(data)
        if not isinstance(plain, dict):
            raise
        return _unknown(plain, plain)


def _unknown(common: JsonObject, raw: JsonObject) -> UnknownEvent:
    return UnknownEvent(
        str(common.get("run_id", "")), str(common.get("session_id", "")), common.get("seq"),
        float(common.get("at") or 0.0), raw,
    )  # fmt: skip
