"""What may only a person command, and what does a session begin with when it is lost or has a parent?"""

from collections.abc import Iterable

from msgspec.structs import replace

from jackstay.core.phase import Phase, PhaseState
from jackstay.core.state import PolicyState
from jackstay.policy import anchor as anchors
from jackstay.policy import checklist
from jackstay.policy.data import BUILT_IN, PolicyData
from jackstay.policy.happenings import Happening, Reminded, Warned
from jackstay.policy.moves import Outcome, arrive, bounded, move, with_notice
from jackstay.policy.phases import Trigger, force
from jackstay.policy.record import MAX_UNVERIFIED, with_changed

# -- a person's commands -----------------------------------------------------------------------------------


def approve_plan(state: PolicyState, *, by: str, data: PolicyData = BUILT_IN) -> Outcome:
    """A person approves the plan by command; outside planning nothing changes and a warning says so."""
    if state.phase.phase is not Phase.PLANNING:
        return Outcome(state, (Warned(f"no plan waits for approval: the phase is {state.phase.phase}"),))
    return approved(state, f"approved by {by}", by=by, data=data)


def force_phase(
    state: PolicyState, phase: Phase, reason: str, *, by: str, data: PolicyData = BUILT_IN
) -> Outcome:
    """A person moves the phase, whatever the table says. Never to be offered as a tool."""
    entered = force(state.phase, phase, reason, by=by, required=data.required)
    text = (
        data.texts_for(state.language).notes["forced"].format(by=by, phase=phase, reason=anchors.clean(reason))
    )
    outcome = arrive(state, entered)
    return Outcome(replace(outcome.state, phase=with_notice(outcome.state.phase, text)), outcome.happenings)


def let_stay(
    state: PolicyState, subjects: Iterable[str], reason: str, *, by: str, data: PolicyData = BUILT_IN
) -> Outcome:
    """A person lets leftovers stay that closing has found, or ticks items. Never to be offered as a tool."""
    phase, kept = state.phase, []
    happenings: tuple[Happening, ...] = ()
    for subject in subjects:
        done = checklist.let_stay(phase, subject, reason, by=by, required=data.required)
        happenings = (*happenings, *done.happenings, *((Warned(done.problem),) if done.problem else ()))
        phase = done.state
        kept += [] if done.problem else [subject]
    if kept:
        text = data.texts_for(state.language).notes["let_stay"]
        phase = with_notice(phase, text.format(by=by, subjects=", ".join(kept), reason=anchors.clean(reason)))
    return Outcome(replace(state, phase=phase), happenings)


def approved(state: PolicyState, why: str, *, by: str, data: PolicyData = BUILT_IN) -> Outcome:
    """The plan is approved by `by`: executing begins, and its one reminder is said."""
    outcome = move(state, Trigger.APPROVAL, why, data)
    phase = replace(outcome.state.phase, approved_by=by)
    said = Reminded(data.texts_for(state.language).notes["approved"])
    return Outcome(replace(outcome.state, phase=phase), (*outcome.happenings, said))


def lost(state: PolicyState, why: str, *, data: PolicyData = BUILT_IN) -> PolicyState:
    """What a known session goes on with when its state could not be read: as task_started, and it is said."""
    text = data.texts_for(state.language).notes["lost"].format(why=anchors.clean(why, 120))
    phase = PhaseState(Phase.TASK_STARTED, reason="state lost", acted=True, notices=(text,))
    return replace(state, phase=phase)


def child_of(parent: PolicyState) -> PolicyState:
    """What a subagent begins with: its parent's phase and bounds, its own notices and anchor."""
    phase = replace(
        parent.phase,
        notices=(),
        wanted=(),
        proposed=False,
        skills=(),
        changed=(),
        changed_more=0,
        unverified=(),
    )
    return replace(parent, phase=phase, held="")


def absorb(parent: PolicyState, child: PolicyState) -> PolicyState:
    """The parent after a subagent has ended: its record has the child's changes, its phase stays."""
    mine, its = parent.phase, child.phase
    phase = replace(
        with_changed(mine, its.changed, its.changed_more),
        looked=mine.looked or its.looked,
        acted=mine.acted or its.acted,
        snapshot=mine.snapshot or its.snapshot,
        unverified=bounded(mine.unverified, its.unverified, MAX_UNVERIFIED),
    )
    return replace(parent, phase=phase)
