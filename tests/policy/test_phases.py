"""Every phase × every trigger, as rows (second seed §16.3.1; the table is written out here a second time)."""

import itertools

import pytest
from msgspec.structs import replace

from jackstay.core.phase import Phase, PhaseState
from jackstay.policy.happenings import MoveRefused, PhaseMoved
from jackstay.policy.phases import SETS, TABLE, Trigger, enter, force, open_items
from tests.policy.acts import REQUIRED, ticks

P, T = Phase, Trigger

# phase -> trigger -> where it leads, in the words of the specification; everything absent stays.
MOVES: dict[Phase, dict[Trigger, Phase | str]] = {
    P.NO_TASK: {T.MARK_TASK_STARTED: P.TASK_STARTED, T.SET_TASK_STARTED: P.TASK_STARTED, T.EFFECT: P.TASK_STARTED},
    P.TASK_STARTED: {
        T.MARK_PLAN: "planning, if looked", T.SET_PLANNING: "planning, if looked",
        T.MARK_CASUAL: "no_task, or closing if acted",
        T.SET_ACCESSING_DEVICE: P.ACCESSING_DEVICE, T.DEVICE: P.ACCESSING_DEVICE,
    },
    P.PLANNING: {
        T.APPROVAL: P.EXECUTING, T.MARK_TASK_STARTED: P.TASK_STARTED, T.SET_TASK_STARTED: P.TASK_STARTED,
        T.MARK_CASUAL: "no_task, or closing if acted",
        T.SET_ACCESSING_DEVICE: P.ACCESSING_DEVICE, T.DEVICE: P.ACCESSING_DEVICE,
    },
    P.EXECUTING: {
        T.WRITE: P.MODIFYING, T.SET_MODIFYING: P.MODIFYING,
        T.MARK_TASK_STARTED: P.TASK_STARTED, T.SET_TASK_STARTED: P.TASK_STARTED,
        T.MARK_PLAN: P.PLANNING, T.SET_PLANNING: P.PLANNING,
        T.MARK_DONE: P.CLOSING, T.SET_CLOSING: P.CLOSING, T.MARK_CASUAL: "no_task, or closing if acted",
        T.SET_ACCESSING_DEVICE: P.ACCESSING_DEVICE, T.DEVICE: P.ACCESSING_DEVICE,
    },
    P.MODIFYING: {
        T.SET_EXECUTING: P.EXECUTING,  # back
        T.MARK_TASK_STARTED: P.TASK_STARTED, T.SET_TASK_STARTED: P.TASK_STARTED,
        T.MARK_PLAN: P.PLANNING, T.SET_PLANNING: P.PLANNING,
        T.MARK_DONE: P.CLOSING, T.SET_CLOSING: P.CLOSING, T.MARK_CASUAL: "no_task, or closing if acted",
        T.SET_ACCESSING_DEVICE: P.ACCESSING_DEVICE, T.DEVICE: P.ACCESSING_DEVICE,
    },
    P.ACCESSING_DEVICE: {
        T.SET_EXECUTING: P.EXECUTING,  # back
        T.MARK_TASK_STARTED: P.TASK_STARTED, T.SET_TASK_STARTED: P.TASK_STARTED,
        T.MARK_CASUAL: "no_task, or closing if acted",
    },
    P.CLOSING: {T.MARK_DONE: "no_task, if ticked", T.SET_NO_TASK: "no_task, if ticked"},
}  # fmt: skip

ROWS = list(itertools.product(Phase, Trigger, [False, True]))


def state_in(phase: Phase, *, good: bool) -> PhaseState:
    """The phase from work that is going well (looked, clean, ticked), or not."""
    back = P.EXECUTING if phase.kind == "temporary" else None
    required = REQUIRED if phase is P.CLOSING else ()
    done = ticks() if good and phase is P.CLOSING else ()
    return PhaseState(phase, back, looked=good, acted=not good, required=required, ticks=done)


def expected(phase: Phase, trigger: Trigger, *, good: bool) -> Phase:
    match MOVES[phase].get(trigger):
        case None:
            return phase
        case Phase() as to:
            return to
        case "planning, if looked":
            return P.PLANNING if good else phase
        case "no_task, or closing if acted":
            return P.NO_TASK if good else P.CLOSING
        case _:
            return P.NO_TASK if good else phase


@pytest.mark.parametrize(("phase", "trigger", "good"), ROWS)
def test_every_phase_and_every_trigger(phase: Phase, trigger: Trigger, good: bool) -> None:
    before = state_in(phase, good=good)
    if phase is P.NO_TASK:
        before = replace(before, acted=False)
    entered = enter(
        before, trigger, "because", required=REQUIRED, why_not=lambda state, tried: f"not by {tried}"
    )
    to = expected(phase, trigger, good=good)
    assert entered.state.phase is to
    if to is not phase:
        assert entered.moved == PhaseMoved(phase, to, "because")
        assert entered.refused is None
    else:
        assert entered.moved is None
        assert entered.state == before
        asked = trigger in SETS.values() or trigger.startswith("marker")
        ours = {str(SETS[phase]), f"marker {'plan' if phase is P.PLANNING else phase}"}
        quiet = (phase is not P.CLOSING and str(trigger) in ours) or (
            phase is P.NO_TASK and trigger is T.MARK_CASUAL
        )
        refused = MoveRefused(phase, trigger, f"not by {trigger}", phase is P.CLOSING)
        assert entered.refused == (refused if asked and not quiet else None)


def test_the_table_lists_every_phase() -> None:
    assert set(TABLE) == set(Phase)


@pytest.mark.parametrize("back", [phase for phase in Phase if phase.kind != "temporary"])
@pytest.mark.parametrize("phase", [P.MODIFYING, P.ACCESSING_DEVICE])
def test_a_temporary_phase_returns_to_where_it_came_from_and_keeps_everything(
    phase: Phase, back: Phase
) -> None:
    before = PhaseState(phase, back, looked=True, proposed=True, required=REQUIRED, ticks=ticks("skill_update"))
    entered = enter(before, SETS[back], "done here", required=REQUIRED, why_not=lambda *_: "no")
    assert entered.state == replace(before, phase=back, returns_to=None, reason="done here")


def test_temporary_phases_do_not_nest() -> None:
    modifying = PhaseState(P.MODIFYING, P.EXECUTING)
    entered = enter(modifying, T.DEVICE, "ssh", required=REQUIRED, why_not=lambda *_: "no")
    assert (entered.state.phase, entered.state.returns_to) == (P.ACCESSING_DEVICE, P.EXECUTING)


def test_a_new_task_forgets_approval_and_ticks_and_remembers_what_was_changed() -> None:
    before = PhaseState(P.EXECUTING, looked=True, proposed=True, approved_by="user", acted=True, snapshot=True,
                        changed=("/w/a",), unverified=("/w/a",), skills=("s",), ticks=ticks())  # fmt: skip
    entered = enter(before, T.MARK_TASK_STARTED, "next", required=REQUIRED, why_not=lambda *_: "no")
    assert entered.state == PhaseState(
        P.TASK_STARTED, reason="next", acted=True, changed=("/w/a",), unverified=("/w/a",)
    )


def test_planning_again_needs_a_new_approval() -> None:
    before = PhaseState(P.EXECUTING, proposed=True, approved_by="user")
    after = enter(before, T.MARK_PLAN, "again", required=REQUIRED, why_not=lambda *_: "no").state
    assert (after.phase, after.proposed, after.approved_by) == (P.PLANNING, False, "")


@pytest.mark.parametrize("start", list(Phase))
@pytest.mark.parametrize("to", list(Phase))
def test_a_person_can_force_any_phase_from_any_other(start: Phase, to: Phase) -> None:
    entered = force(state_in(start, good=False), to, "I say so", by="ann", required=REQUIRED)
    assert entered.moved == PhaseMoved(start, to, "ann: I say so")
    assert entered.state.phase is to
    assert (entered.state.returns_to is not None) == (to.kind == "temporary")


def test_closing_items_cannot_be_lost_by_a_change_of_the_list() -> None:
    state = PhaseState(P.CLOSING, required=("a", "b"), ticks=ticks())
    assert open_items(state, ("b", "c")) == ("a", "b", "c")
