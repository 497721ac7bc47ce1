"""One move of the phase with everything that goes with it: notices, skills, host."""

from msgspec import Struct
from msgspec.structs import replace

from jackstay.core.phase import Phase, PhaseState
from jackstay.core.state import PolicyState
from jackstay.policy import anchor as anchors
from jackstay.policy.data import PolicyData
from jackstay.policy.deeds import Deed
from jackstay.policy.happenings import Happening, SkillWanted
from jackstay.policy.hints import ON_ENTRY
from jackstay.policy.phases import Entered, Trigger, enter
from jackstay.policy.refusals import Refusals
from jackstay.policy.secrets import redact

MAX_NOTICES, MAX_NOTICE, MAX_WANTED = 4, 400, 6


class Outcome(Struct, frozen=True, gc=False):
    """The state after something was said or done, and what that amounts to."""

    state: PolicyState
    happenings: tuple[Happening, ...] = ()

    def then(self, after: "Outcome") -> "Outcome":
        """This followed by what came of its state."""
        return Outcome(after.state, (*self.happenings, *after.happenings))

    def telling(self, *more: Happening) -> "Outcome":
        """The same state with more to tell."""
        return Outcome(self.state, (*self.happenings, *more))


def refusals(state: PolicyState, data: PolicyData) -> Refusals:
    """The refusals of this moment, in the language at hand."""
    return Refusals(data.texts_for(state.language), state.phase, required=data.required)


def move(state: PolicyState, trigger: Trigger, why: str, data: PolicyData) -> Outcome:
    """Pull one trigger. A move the table does not allow changes nothing but the next guidance,
    which says so.
    """
    say = refusals(state, data)
    entered = enter(state.phase, trigger, why, required=data.required, why_not=say.move)
    if entered.refused is None:
        return arrive(state, entered)
    reason = entered.refused.reason
    text = say.bypass(reason) if entered.refused.bypass else f"{reason}. {say.way}"
    return Outcome(replace(state, phase=with_notice(entered.state, text)), (entered.refused,))


def arrive(state: PolicyState, entered: Entered) -> Outcome:
    """The state after a move: the new phase's skill is wanted; leaving a device goes back to this host."""
    phase = entered.state
    if entered.moved is None:
        return Outcome(replace(state, phase=phase))
    fresh: tuple[str, ...] = ()
    skill = ON_ENTRY.get(phase.phase)
    if skill is not None and phase.phase is not state.phase.phase:
        before, phase = phase.wanted, with_wanted(phase, (skill,))
        fresh = tuple(name for name in phase.wanted if name not in before)
    anchor = state.anchor
    if state.phase.phase is Phase.ACCESSING_DEVICE and phase.phase is not Phase.ACCESSING_DEVICE:
        anchor = replace(anchor, host=anchor.local)
    told = (SkillWanted(name, f"phase {phase.phase}") for name in fresh)
    return Outcome(replace(state, phase=phase, anchor=anchor), (entered.moved, *told))


def at_host(state: PolicyState, deed: Deed) -> PolicyState:
    """While in accessing_device the anchor names the machine that is worked on."""
    if state.phase.phase is not Phase.ACCESSING_DEVICE or not deed.remotes:
        return state
    return replace(state, anchor=replace(state.anchor, host=anchors.clean(deed.remotes[0].host, 100)))


def with_wanted(phase: PhaseState, names: tuple[str, ...]) -> PhaseState:
    """Once per task and skill; one that is known to be missing is not wanted again."""
    fresh = tuple(
        n for n in names if n not in phase.skills and n not in phase.wanted and n not in phase.missing
    )
    return replace(phase, wanted=bounded(phase.wanted, fresh, MAX_WANTED)) if fresh else phase


def with_notice(phase: PhaseState, text: str) -> PhaseState:
    """Something to be said once, with the next guidance; no secret is."""
    text = redact(text)[:MAX_NOTICE]
    return phase if text in phase.notices else replace(phase, notices=(*phase.notices, text)[-MAX_NOTICES:])


def bounded(old: tuple[str, ...], more: tuple[str, ...], limit: int) -> tuple[str, ...]:
    """Both without repetition, the newest `limit` of them."""
    return tuple(dict.fromkeys((*old, *more)))[-limit:]
