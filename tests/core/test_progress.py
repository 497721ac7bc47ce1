"""The part of a state that moves with every step: stored alone, it makes one state of another."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import astuple, replace

from jackstay.core.anchor import Anchor
from jackstay.core.context import Memory
from jackstay.core.loops import LoopWindow
from jackstay.core.messages import Usage
from jackstay.core.phase import PhaseState
from jackstay.core.progress import Progress, advanced, progress, settled
from jackstay.core.state import PolicyState, RunState
from jackstay.core.transcript import Transcript
from jackstay.core.wire import decode_progress, encode
from tests.core.test_wire import batches, floats, made, of, states, words

moves = st.fixed_dictionaries({
    "seq": st.integers(0), "turn": st.integers(0), "calls_made": st.integers(0), "rows": st.integers(0),
    "active_s": floats, "reasoning": st.booleans(), "usage": made(Usage), "batch": st.none() | batches,
    "memory": made(Memory),
})  # fmt: skip
policies = st.builds(
    PolicyState, phase=made(PhaseState), held=words, mode=st.sampled_from(["off", "guided", "strict"]),
    loop=of(LoopWindow), anchor=made(Anchor),
)  # fmt: skip


@given(states, policies, moves, of(LoopWindow), made(Anchor), floats)
def test_a_state_and_the_progress_of_another_make_the_other_where_the_rest_is_equal(
    state: RunState, policy: PolicyState, moved: dict[str, Any], loop: LoopWindow, anchor: Anchor, at: float
) -> None:
    a = replace(state, policy=policy)
    b = replace(a, policy=replace(policy, loop=loop, anchor=anchor), transcript=Transcript(), **moved)
    assert settled(a) == settled(b)
    made_of_b = decode_progress(encode(progress(b, at)))
    assert made_of_b.at == at
    assert advanced(a, made_of_b) == b
    assert advanced(b, decode_progress(encode(progress(a, at)))) == replace(a, transcript=Transcript())


@given(states, st.sampled_from(sorted({*RunState.__struct_fields__} - {"transcript", "policy"})))
def test_another_value_of_a_field_shows_in_one_part_of_the_state(state: RunState, name: str) -> None:
    shows_in_one_part(state, replace(state, **{name: OTHER}))


@given(states, st.sampled_from(sorted(PolicyState.__struct_fields__)))
def test_another_value_of_a_field_of_policy_shows_in_one_part_of_the_state(state: RunState, name: str) -> None:
    shows_in_one_part(state, replace(state, policy=replace(state.policy, **{name: OTHER})))


OTHER: Any = ("a value that no field has",)


def shows_in_one_part(state: RunState, other: RunState) -> None:
    stays = settled(state) == settled(other)
    assert stays is not (progress(state, 1.5) == progress(other, 1.5))


def test_every_field_is_in_one_of_the_parts_and_the_progress_has_the_names_of_those_that_move() -> None:
    state = RunState("s")
    moved = astuple(progress(state, 1.5))[1:]
    of_state = set(RunState.__struct_fields__) - {"transcript", "policy"}
    assert len(settled(state)) + len(moved) == len(of_state) + len(PolicyState.__struct_fields__)
    names = Progress.__struct_fields__[1:]
    assert len(names) == len(moved)
    assert set(names) <= of_state | set(PolicyState.__struct_fields__)
    known = dict(zip(names, moved, strict=True))
    own = {name: getattr(state, name) for name in names if name in of_state}
    policy = {name: getattr(state.policy, name) for name in names if name not in of_state}
    assert known == own | policy


def test_progress_before_which_fields_were_added_at_the_end_is_read_with_their_defaults() -> None:
    whole = astuple(Progress(1.5, 7, 2, 3, 4, 0.5, True))
    for length in range(7, len(whole) + 1):
        assert decode_progress(encode(whole[:length])) == Progress(1.5, 7, 2, 3, 4, 0.5, True)
