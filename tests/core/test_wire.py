"""JSON of heads and events: what went in comes out, and what a newer version wrote is read."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jackstay.core import wire
from jackstay.core.approvals import HITLDecision, HITLTask
from jackstay.core.errors import ErrorInfo, NewerSchema, StoreError
from jackstay.core.events import Event, UnknownEvent, WarningEvent
from jackstay.core.facts import CallFacts
from jackstay.core.messages import ToolCall, ToolResult, Usage
from jackstay.core.phase import PhaseState
from jackstay.core.rules import PermissionRule
from jackstay.core.state import SCHEMA, Batch, BatchCall, PolicyState, RunState
from jackstay.core.transcript import Transcript

words = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
numbers = st.integers(-(2**53), 2**53)
floats = st.floats(allow_nan=False, allow_infinity=False).map(lambda x: x + 0.0)  # -0.0 is left out like 0.0
json_values = st.recursive(
    st.none() | st.booleans() | numbers | floats | words,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words, inner, max_size=3),
    max_leaves=6,
)
objects = st.dictionaries(words, json_values, max_size=3)

PLAIN = {str: words, int: numbers, float: floats, bool: st.booleans(), type(None): st.none()}


def made(kind: type[Any]) -> st.SearchStrategy[Any]:
    """Values of a struct from the types of its fields."""
    fields = {f.name: of(f.type) for f in msgspec.structs.fields(kind)}
    return st.builds(kind, **fields)


def of(hint: Any) -> st.SearchStrategy[Any]:
    if isinstance(hint, type) and issubclass(hint, msgspec.Struct):
        return made(hint)
    if hint in PLAIN:
        return PLAIN[hint]
    args = getattr(hint, "__args__", ())
    origin = getattr(hint, "__origin__", None)
    if origin is tuple:
        if args[-1] is Ellipsis:
            return st.lists(of(args[0]), max_size=3).map(tuple)
        return st.tuples(*map(of, args))
    if origin is frozenset:
        return st.frozensets(of(args[0]))
    if origin is dict:
        return objects
    if args and origin is None:  # a union
        return st.one_of(*map(of, args))
    return st.from_type(hint)


events = of(Event)
batches = st.builds(
    Batch,
    st.lists(
        st.builds(
            BatchCall, made(ToolCall), st.builds(CallFacts, digest=words, invalid=st.none() | words),
            st.sampled_from(["reserved", "started", "finished"]), st.none() | made(HITLTask),
            st.none() | made(HITLDecision), st.none() | made(ToolResult), st.none() | words,
            st.none() | made(ToolResult),
        ),
        max_size=3,
    ).map(tuple),
    st.booleans(), st.integers(0, 3), st.booleans(),
)  # fmt: skip
states = st.builds(
    RunState,
    words, run_id=words, seq=st.integers(0), turn=st.integers(0),
    outcome=st.sampled_from([None, "answered", "pending", "failed"]), text=words,
    error=st.none() | made(ErrorInfo), batch=st.none() | batches, reasoning=st.booleans(), usage=made(Usage),
    active_s=floats, settings=objects, view=of(tuple[tuple[int, int], ...]),
    policy=st.builds(PolicyState, made(PhaseState), of(tuple[PermissionRule, ...])),
    transcript=st.just(Transcript()),
)  # fmt: skip


@given(states)
def test_decoding_an_encoded_state_gives_the_state(state: RunState) -> None:
    assert wire.decode_head(wire.encode(state)) == state


@given(events)
def test_decoding_an_encoded_event_gives_the_event(event: Event) -> None:
    assert wire.decode_event(wire.encode(event)) == event


@given(json_values)
def test_canonical_bytes_are_equal_for_equal_data_in_any_order(value: Any) -> None:
    def turned(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: turned(item) for key, item in reversed(value.items())}
        return [turned(item) for item in value] if isinstance(value, list) else value

    assert wire.canonical(turned(value)) == wire.canonical(value)
    assert wire.decode_json(wire.canonical(value)) == value


def test_an_unknown_tag_becomes_an_unknown_event_that_keeps_everything() -> None:
    plain = {"type": "teleported", "run_id": "r", "session_id": "s", "seq": 7, "at": 1.5, "where": "home"}
    event = wire.decode_event(wire.encode(plain))
    assert event == UnknownEvent("r", "s", 7, 1.5, plain)


def test_unknown_fields_of_known_events_are_ignored() -> None:
    plain = {
        "type": "warning", "run_id": "r", "session_id": "s", "seq": 7, "at": 1.5, "text": "t", "colour": "red",
    }  # fmt: skip
    assert wire.decode_event(wire.encode(plain)) == WarningEvent("r", "s", 7, 1.5, "t")


def test_unknown_fields_of_a_head_are_ignored() -> None:
    plain = wire.decode_json(wire.encode(RunState("s", "r", seq=3)))
    assert wire.decode_head(wire.encode({**plain, "mood": "sunny"})) == RunState("s", "r", seq=3)


@pytest.mark.parametrize("extra", [{}, {"outcome": "ascended"}, {"turn": "many"}])
def test_a_head_of_a_newer_schema_says_so_whatever_else_it_holds(extra: dict[str, Any]) -> None:
    plain = {"session_id": "s", "schema": SCHEMA + 1, **extra}
    with pytest.raises(NewerSchema, match="upgrade jackstay"):
        wire.decode_head(wire.encode(plain))


@pytest.mark.parametrize(
    "data", [b"", b"{", b"[]", b'{"session_id": 3}', b"\xff\xfe", b'{"session_id":"\xff"}']
)
def test_a_broken_head_is_a_store_error_with_a_way_out(data: bytes) -> None:
    with pytest.raises(StoreError, match="jackstay doctor"):
        wire.decode_head(data)


def test_data_that_is_no_event_is_refused() -> None:
    with pytest.raises(ValueError, match=r"Expected `object`, got `array`|got `array`"):
        wire.decode_event(b"[1]")


def test_what_json_cannot_hold_is_refused() -> None:
    with pytest.raises(NotImplementedError):
        wire.encode({"what": object()})


def test_decisions_survive_the_wire() -> None:
    decision = HITLDecision.approve(always_allow=True, modified_args={"a": [1]}).comment("yes")
    assert wire.decode_decision(wire.encode(decision)) == decision
