"""Which part of a run's state moves with every step, and which stays?

A step of a run that goes its way counts on, asks, and judges a batch. Only that part is stored with it; the
whole state is stored where something else changed.
"""

from typing import Any

import msgspec
from msgspec.structs import astuple, replace

from jackstay.core.anchor import Anchor
from jackstay.core.context import Memory
from jackstay.core.loops import LoopWindow
from jackstay.core.messages import NO_USAGE, Usage
from jackstay.core.state import Batch, PolicyState, RunState

Values = tuple[Any, ...]


class Progress(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """How far a run has come: the fields of `RunState` of these names, then those of its policy.

    `at` is when, in epoch seconds.
    """

    at: float
    seq: int
    turn: int
    calls_made: int
    rows: int
    active_s: float
    reasoning: bool
    usage: Usage = NO_USAGE
    batch: Batch | None = None
    memory: Memory = Memory()
    notes: tuple[str, ...] = ()
    loop: LoopWindow = LoopWindow()
    anchor: Anchor = Anchor()


_STATE, _POLICY = RunState.__struct_fields__, PolicyState.__struct_fields__
_MOVES, _ENDS = _STATE.index("seq"), _STATE.index("policy")
_LEADS = _POLICY.index("loop")


def settled(state: RunState) -> Values:
    """The values that stay: where they are equal, the progress tells all that differs but the messages."""
    policy = state.policy
    return (
        state.session_id, state.run_id, state.agent, state.schema, state.outcome, state.text, state.error,
        state.closing_turn, state.overflows, state.overflow_limit, state.compacted_at, state.recallable,
        state.nudges, state.settings, state.view, state.parent,
        policy.phase, policy.rules, policy.held, policy.mode, policy.language,
    )  # fmt: skip


def progress(state: RunState, at: float) -> Progress:
    """How far the run of this state has come."""
    policy = state.policy
    return Progress(
        at, state.seq, state.turn, state.calls_made, state.rows, state.active_s, state.reasoning, state.usage,
        state.batch, state.memory, state.notes, policy.loop, policy.anchor,
    )  # fmt: skip


def advanced(state: RunState, made: Progress) -> RunState:
    """The state with this progress in place of its own."""
    values = astuple(made)[1:]
    own = dict(zip(_STATE[_MOVES:_ENDS], values, strict=False))
    policy = dict(zip(_POLICY[_LEADS:], values[len(own) :], strict=True))
    return replace(state, policy=replace(state.policy, **policy), **own)
