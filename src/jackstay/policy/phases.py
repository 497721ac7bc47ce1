"""Which phase follows which, and why: the transition table as data, and `enter`."""

from collections.abc import Callable
from enum import StrEnum
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from jackstay.core.phase import Phase, PhaseState
from jackstay.policy.happenings import MoveRefused, PhaseMoved
from jackstay.policy.markers import Marker


class Trigger(StrEnum):
    """Everything that may move the phase, a person's force apart."""

    MARK_TASK_STARTED = "marker task_started"
    MARK_PLAN = "marker plan"
    MARK_CASUAL = "marker casual"
    MARK_DONE = "marker done"
    SET_NO_TASK = "set_phase no_task"
    SET_TASK_STARTED = "set_phase task_started"
    SET_PLANNING = "set_phase planning"
    SET_EXECUTING = "set_phase executing"
    SET_MODIFYING = "set_phase modifying"
    SET_ACCESSING_DEVICE = "set_phase accessing_device"
    SET_CLOSING = "set_phase closing"
    APPROVAL = "the user's approval of the plan"
    EFFECT = "a call with effects"
    WRITE = "a write that succeeded"
    DEVICE = "a remote or credential command"


SETS: dict[Phase, Trigger] = {phase: Trigger(f"set_phase {phase}") for phase in Phase}
MARKS: dict[Marker, Trigger] = {marker: Trigger(f"marker {marker}") for marker in Marker}
ASKED_FOR = frozenset({*SETS.values(), *MARKS.values()})  # the agent asks; a refusal is told

Guard = Literal["", "looked", "returns", "clean", "acted", "ticked"]


class Row(Struct, frozen=True, gc=False):
    """One line of the table: where to, under which condition; `to` None means back to `returns_to`."""

    to: Phase | None
    guard: Guard = ""


T = Trigger
_NEW_TASK = (Row(Phase.TASK_STARTED),)
_PLAN = (Row(Phase.PLANNING),)
_CLOSE = (Row(Phase.CLOSING),)
_DEVICE = (Row(Phase.ACCESSING_DEVICE),)
_BACK = (Row(None, "returns"),)
_CASUAL = (Row(Phase.NO_TASK, "clean"), Row(Phase.CLOSING, "acted"))
_DONE = (Row(Phase.NO_TASK, "ticked"),)

TABLE: dict[Phase, dict[Trigger, tuple[Row, ...]]] = {
    Phase.NO_TASK: {
        T.MARK_TASK_STARTED: _NEW_TASK,
        T.SET_TASK_STARTED: _NEW_TASK,
        T.EFFECT: _NEW_TASK,
        T.MARK_CASUAL: _CASUAL,
    },
    Phase.TASK_STARTED: {
        T.MARK_PLAN: (Row(Phase.PLANNING, "looked"),),
        T.SET_PLANNING: (Row(Phase.PLANNING, "looked"),),
        T.MARK_CASUAL: _CASUAL,
        T.SET_ACCESSING_DEVICE: _DEVICE,
        T.DEVICE: _DEVICE,
    },
    Phase.PLANNING: {
        T.APPROVAL: (Row(Phase.EXECUTING),),
        T.MARK_TASK_STARTED: _NEW_TASK,
        T.SET_TASK_STARTED: _NEW_TASK,
        T.MARK_CASUAL: _CASUAL,
        T.SET_ACCESSING_DEVICE: _DEVICE,
        T.DEVICE: _DEVICE,
    },
    Phase.EXECUTING: {
        T.WRITE: (Row(Phase.MODIFYING),),
        T.SET_MODIFYING: (Row(Phase.MODIFYING),),
        T.MARK_TASK_STARTED: _NEW_TASK,
        T.SET_TASK_STARTED: _NEW_TASK,
        T.MARK_PLAN: _PLAN,
        T.SET_PLANNING: _PLAN,
        T.MARK_DONE: _CLOSE,
        T.SET_CLOSING: _CLOSE,
        T.MARK_CASUAL: _CASUAL,
        T.SET_ACCESSING_DEVICE: _DEVICE,
        T.DEVICE: _DEVICE,
    },
    Phase.MODIFYING: {
        **{trigger: _BACK for trigger in SETS.values()},
        T.MARK_TASK_STARTED: _NEW_TASK,
        T.SET_TASK_STARTED: (*_BACK, *_NEW_TASK),
        T.MARK_PLAN: _PLAN,
        T.SET_PLANNING: (*_BACK, *_PLAN),
        T.MARK_DONE: _CLOSE,
        T.SET_CLOSING: (*_BACK, *_CLOSE),
        T.MARK_CASUAL: _CASUAL,
        T.SET_ACCESSING_DEVICE: _DEVICE,
        T.DEVICE: _DEVICE,
    },
    Phase.ACCESSING_DEVICE: {
        **{trigger: _BACK for trigger in SETS.values()},
        T.MARK_TASK_STARTED: _NEW_TASK,
        T.SET_TASK_STARTED: (*_BACK, *_NEW_TASK),
        T.MARK_CASUAL: _CASUAL,
    },
    Phase.CLOSING: {
        T.MARK_DONE: _DONE,
        T.SET_NO_TASK: _DONE,
    },
}


# Asking for the phase one is in: nothing to refuse. Closing is left out, nothing but `done` is said there.
_ALREADY: dict[Phase, tuple[Trigger, ...]] = {
    Phase.NO_TASK: (T.SET_NO_TASK,),
    Phase.TASK_STARTED: (T.SET_TASK_STARTED, T.MARK_TASK_STARTED),
    Phase.PLANNING: (T.SET_PLANNING, T.MARK_PLAN),
    Phase.EXECUTING: (T.SET_EXECUTING,),
    Phase.MODIFYING: (T.SET_MODIFYING,),
    Phase.ACCESSING_DEVICE: (T.SET_ACCESSING_DEVICE,),
}


class Entered(Struct, frozen=True, gc=False):
    """What came of a trigger: the state after it, and the move or the refusal (neither,
    where nothing had to).
    """

    state: PhaseState
    moved: PhaseMoved | None = None
    refused: MoveRefused | None = None


WhyNot = Callable[[PhaseState, Trigger], str]


def enter(
    state: PhaseState, trigger: Trigger, why: str, *, required: tuple[str, ...], why_not: WhyNot
) -> Entered:
    """Apply a trigger. `required` are the closing items policy asks for now; `why_not` words a refusal.

    A pair that the table does not list, or whose conditions do not hold, changes nothing; where the agent asked
    for the move this is told as MoveRefused.
    """
    for row in TABLE[state.phase].get(trigger, ()):
        if _holds(row, state, trigger, required):
            return _follow(state, row, why, required)
    if trigger not in ASKED_FOR or trigger in _ALREADY.get(state.phase, ()):
        return Entered(state)
    refused = MoveRefused(state.phase, trigger, why_not(state, trigger), state.phase is Phase.CLOSING)
    return Entered(state, refused=refused)


def force(state: PhaseState, phase: Phase, reason: str, *, by: str, required: tuple[str, ...]) -> Entered:
    """A person moves the phase, from anywhere to anywhere; never to be offered as a tool."""
    why = f"{by}: {reason}"
    after = _to(state, phase, required)
    if phase in (Phase.EXECUTING, Phase.MODIFYING):
        after = replace(after, approved_by=by)
    return Entered(replace(after, reason=why[:200]), PhaseMoved(state.phase, phase, why))


def open_items(state: PhaseState, required: tuple[str, ...] = ()) -> tuple[str, ...]:
    """The closing items still to be ticked: those asked for when closing was opened and those asked for now."""
    done = {tick.item for tick in state.ticks}
    wanted = dict.fromkeys((*state.required, *required))
    return tuple(item for item in wanted if item not in done)


def _holds(row: Row, state: PhaseState, trigger: Trigger, required: tuple[str, ...]) -> bool:
    match row.guard:
        case "":
            return True
        case "looked":
            return state.looked
        case "returns":
            return state.returns_to is not None and SETS[state.returns_to] is trigger
        case "clean":
            return not state.acted
        case "acted":
            return state.acted
        case "ticked":
            return not open_items(state, required)


def _follow(state: PhaseState, row: Row, why: str, required: tuple[str, ...]) -> Entered:
    to = row.to if row.to is not None else state.returns_to or Phase.TASK_STARTED
    after = replace(state, phase=to, returns_to=None) if row.to is None else _to(state, to, required)
    if state.phase is to is Phase.NO_TASK:  # small talk in small talk
        return Entered(state)
    return Entered(replace(after, reason=why[:200]), PhaseMoved(state.phase, to, why))


def _to(state: PhaseState, phase: Phase, required: tuple[str, ...]) -> PhaseState:
    """The state on arrival: what each phase forgets and what it opens."""
    match phase:
        case Phase.NO_TASK:
            return PhaseState(missing=state.missing, notices=state.notices)
        case Phase.TASK_STARTED:
            # What was done and not yet closed stays on the record: a new task is no way around closing.
            return PhaseState(
                phase, acted=state.acted, changed=state.changed, changed_more=state.changed_more,
                unverified=state.unverified, replaced=state.replaced, missing=state.missing,
                notices=state.notices,
            )  # fmt: skip
        case Phase.PLANNING:
            return replace(_plain(state, phase), proposed=False, approved_by="")
        case Phase.EXECUTING:
            return _plain(state, phase)
        case Phase.MODIFYING | Phase.ACCESSING_DEVICE:
            back = state.returns_to if state.phase.kind == "temporary" else state.phase
            if phase is Phase.MODIFYING and back is Phase.NO_TASK:
                back = Phase.EXECUTING  # only a person's force comes here; the work it allows has to be closed
            return replace(_plain(state, phase), returns_to=back)
        case Phase.CLOSING:
            return replace(_plain(state, phase), required=required, ticks=(), findings=())


def _plain(state: PhaseState, phase: Phase) -> PhaseState:
    return replace(state, phase=phase, returns_to=None)
