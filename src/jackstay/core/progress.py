"""Which part of a run's state moves with every step, and which stays?

A step of a run that goes its way counts on, asks, and judges a batch. Only that part is stored with it; the
whole state is stored where something else changed.
"""

from operator import attrgetter

import msgspec

from jackstay.core.anchor import Anchor
from jackstay.core.context import Memory
from jackstay.core.loops import LoopWindow
from jackstay.core.messages import NO_USAGE, Usage
from jackstay.core.state import Batch, PolicyState, RunState


class Progress(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """How far a run has come: the fields of `RunState` of these names, and those of its policy.

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
    loop: LoopWindow = LoopWindow()
    anchor: Anchor = Anchor()


_OF_STATE = ("seq", "turn", "calls_made", "rows", "active_s", "reasoning", "usage", "batch", "memory")
_OF_POLICY = ("loop", "anchor")
_read = attrgetter(*_OF_STATE, *(f"policy.{name}" for name in _OF_POLICY))

settled = attrgetter(
    *(name for name in RunState.__struct_fields__ if name not in (*_OF_STATE, "policy", "transcript")),
    *(f"policy.{name}" for name in PolicyState.__struct_fields__ if name not in _OF_POLICY),
)  # all that is no progress, as a tuple: where it is equal, the progress tells the whole difference


def progress(state: RunState, at: float) -> Progress:
    """How far the run has come."""
    return Progress(at, *_read(state))


def advanced(state: RunState, made: Progress) -> RunState:
    """The state with this progress in place of its own."""
    policy = msgspec.structs.replace(state.policy, loop=made.loop, anchor=made.anchor)
    return msgspec.structs.replace(state, policy=policy, **{name: getattr(made, name) for name in _OF_STATE})
