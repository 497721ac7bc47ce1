"""The five questions of the discipline: guidance, decide, observe, note, hear. Pure, the same in every host.

State goes in and comes out as a value; what a change amounts to is told as happenings beside it.
"""

from msgspec import Struct
from msgspec.structs import replace

from jackstay.core.decision import ALLOW, Allow, Ask, Decision, Deny
from jackstay.core.facts import CallFacts
from jackstay.core.messages import ToolCall, ToolResult
from jackstay.core.phase import Language, Mode, Phase, PhaseState
from jackstay.core.state import PolicyState
from jackstay.policy import anchor as anchors
from jackstay.policy import gates
from jackstay.policy.approval_words import about_commit, approves
from jackstay.policy.checklist import COMMIT, CREDENTIAL_SCAN, untick
from jackstay.policy.data import BUILT_IN, PolicyData
from jackstay.policy.deeds import deed_of
from jackstay.policy.gates import GATES, SET_PHASE, Case, Kind, case_of
from jackstay.policy.guidance import (
    MAX_CLOSING_TOKENS,
    MAX_TOKENS,
    fitting,
    language_of,
    phase_text,
    tokens,
)
from jackstay.policy.happenings import Blocked, Happening, Reminded, SkillWanted, Warned
from jackstay.policy.hints import skills_for
from jackstay.policy.markers import Marker, markers
from jackstay.policy.moves import Outcome, at_host, bounded, move, refusals, with_notice, with_wanted
from jackstay.policy.phases import MARKS, Trigger, open_items
from jackstay.policy.record import recorded
from jackstay.policy.refusals import Refusals
from jackstay.policy.sessions import approved

MAX_SKILLS = 32


class Weighed(Struct, frozen=True, gc=False):
    """What the discipline answers to a call.

    `state` is to be kept when the call is refused, and again just before it runs. `gate` names who answered,
    "" for nobody. `withheld` is the answer that mode `observe` only records.
    """

    decision: Decision
    state: PolicyState
    happenings: tuple[Happening, ...] = ()
    gate: str = ""
    withheld: Decision | None = None


class Preparation(Struct, frozen=True, gc=False):
    """What has to be copied away before the call may be decided: named files, the whole workspace,
    or nothing.
    """

    targets: tuple[str, ...] = ()
    snapshot: bool = False


# -- guidance ----------------------------------------------------------------------------------------------


def guidance(state: PolicyState, *, data: PolicyData = BUILT_IN) -> str | None:
    """What the model should read with its next turn; None when there is nothing to say.

    The steady phases add nothing of their own. Call `told` once it has been delivered, so that nothing repeats.
    """
    if state.mode == "off":
        return None
    phase, texts = state.phase, data.texts_for(state.language)
    language = data.language or state.language or "en"
    text = phase_text(phase, texts, items=data.items, language=language) or ""
    more = list(phase.notices)
    if data.skill_call is not None:
        more += [texts.notes["skill"].format(call=data.skill_call.format(name)) for name in phase.wanted]
    room = (MAX_CLOSING_TOKENS if phase.phase is Phase.CLOSING else MAX_TOKENS) - tokens(text)
    return "\n".join(filter(None, [text, *fitting(more, room)])) or None


def told(state: PolicyState, *, data: PolicyData = BUILT_IN) -> PolicyState:
    """The state after its guidance was delivered: notices are said once, a host's skills are named once."""
    phase = state.phase
    if not phase.notices and (data.skill_call is None or not phase.wanted):
        return state
    if data.skill_call is not None:
        phase = replace(phase, skills=bounded(phase.skills, phase.wanted, MAX_SKILLS), wanted=())
    return replace(state, phase=replace(phase, notices=()))


def loaded(state: PolicyState, name: str) -> PolicyState:
    """The state after a wanted skill's text was put before the model."""
    phase = state.phase
    left = tuple(one for one in phase.wanted if one != name)
    return replace(state, phase=replace(phase, wanted=left, skills=bounded(phase.skills, (name,), MAX_SKILLS)))


def not_installed(state: PolicyState, name: str, *, data: PolicyData = BUILT_IN) -> Outcome:
    """The state after a wanted skill was not found: said once in a session, never again."""
    phase = replace(state.phase, wanted=tuple(one for one in state.phase.wanted if one != name))
    if name in phase.missing:
        return Outcome(replace(state, phase=phase))
    text = data.texts_for(state.language).notes["missing"].format(skill=name)
    phase = with_notice(replace(phase, missing=bounded(phase.missing, (name,), MAX_SKILLS)), text)
    return Outcome(replace(state, phase=phase), (Warned(text),))


# -- decide ------------------------------------------------------------------------------------------------


def decide(state: PolicyState, call: ToolCall, facts: CallFacts, *, data: PolicyData = BUILT_IN) -> Decision:
    """May this call run now, as far as the discipline has a say? Allow means no objection."""
    return weigh(state, call, facts, data=data).decision


def weigh(state: PolicyState, call: ToolCall, facts: CallFacts, *, data: PolicyData = BUILT_IN) -> Weighed:
    """The decision with the move it brings about: a first effect starts a task, a remote command moves it."""
    if state.mode == "off":
        return Weighed(ALLOW, state)
    case = case_of(call, facts)
    if case.kind is Kind.READ or (case.kind is Kind.HARNESS and call.tool != SET_PHASE):
        return Weighed(ALLOW, state)
    say = refusals(state, data)
    if case.kind is Kind.HARNESS:
        return _weigh_set_phase(state, call, say)
    first = _device_first(state, case, data)
    answer, gate = _answer(first.state.phase, case, data)
    decision = say.decision(answer, gate, case, first.state.phase)
    if isinstance(decision, Allow):
        return Weighed(decision, first.state, first.happenings)
    after = _refused(state, call, decision, gate, data)
    if state.mode != "observe":
        return Weighed(_as_mode_has_it(decision, state.mode), after.state, after.happenings, gate)
    kept = first.state if first.happenings else after.state
    return Weighed(ALLOW, kept, (*first.happenings, *after.happenings), gate, decision)


def prepare(
    state: PolicyState, call: ToolCall, facts: CallFacts, *, data: PolicyData = BUILT_IN
) -> Preparation:
    """What the driver copies away before it asks `decide`: nothing for a call that is refused anyway."""
    if state.mode == "off":
        return Preparation()
    case = case_of(call, replace(facts, backup="taken"))
    if case.kind in (Kind.READ, Kind.HARNESS):
        return Preparation()
    answer, _ = _answer(_device_first(state, case, data).state.phase, case, data)
    if answer == "deny" and state.mode == "strict":
        return Preparation()
    return Preparation(case.deed.targets, case.deed.unbounded and not state.phase.snapshot)


def _weigh_set_phase(state: PolicyState, call: ToolCall, say: Refusals) -> Weighed:
    wanted = call.args.get("phase")
    if state.phase.phase is not Phase.CLOSING or wanted == Phase.NO_TASK or state.mode == "observe":
        return Weighed(ALLOW, state)
    reason = say.set_phase_in_closing(str(wanted)[:40])
    phase = with_notice(state.phase, say.bypass(reason))
    blocked = Blocked("closure", state.phase.phase, call.tool, reason, "deny")
    return Weighed(Deny(reason, "gate:closure", say.way), replace(state, phase=phase), (blocked,), "closure")


_DEVICE_KINDS = frozenset({Kind.CREDENTIAL, Kind.STORE, Kind.REMOTE_READ, Kind.REMOTE_EFFECT, Kind.REMOTE_OPEN})


def _device_first(state: PolicyState, case: Case, data: PolicyData) -> Outcome:
    """A remote or credential command moves to accessing_device before it is judged."""
    if case.kind not in _DEVICE_KINDS:
        return Outcome(state)
    outcome = move(state, Trigger.DEVICE, case.deed.summary, data)
    return Outcome(at_host(outcome.state, case.deed), outcome.happenings)


def _answer(phase: PhaseState, case: Case, data: PolicyData) -> tuple[gates.Answer, str]:
    """The table's answer with what depends on the call filled in, and the gate that gives it."""
    answer = gates.answer(phase.phase, case.kind, phase.returns_to)
    if answer == "opened":
        left = open_items(phase, data.required)
        found = frozenset(finding.subject for finding in phase.findings if finding.item in left)
        opened = gates.opened(case.deed, case.call.tool, items=data.items, left=left, found=found)
        answer = "backup" if opened else "deny"
    if answer in ("backup", "ask") and case.deed.targets and case.facts.backup != "taken":
        return "deny", "modify"
    return ("allow" if answer == "backup" else answer), GATES[phase.phase].name


def _as_mode_has_it(decision: Decision, mode: Mode) -> Decision:
    """In mode `guided` a hard gate asks."""
    return Ask(decision.reason, decision.rule) if mode == "guided" and isinstance(decision, Deny) else decision


def _refused(state: PolicyState, call: ToolCall, decision: Ask | Deny, gate: str, data: PolicyData) -> Outcome:
    """The state after a refusal: the first call with effects starts a task, nothing else moves."""
    outcome = Outcome(state)
    if state.phase.phase is Phase.NO_TASK:
        outcome = move(state, Trigger.EFFECT, f"a call of {call.tool} would have effects", data)
    shown = _as_mode_has_it(decision, state.mode)
    verdict = "allow" if state.mode == "observe" else "ask" if isinstance(shown, Ask) else "deny"
    return outcome.telling(Blocked(gate, state.phase.phase, call.tool, decision.reason, verdict))


# -- observe -----------------------------------------------------------------------------------------------


def observe(
    state: PolicyState, call: ToolCall, facts: CallFacts, result: ToolResult, *, data: PolicyData = BUILT_IN
) -> Outcome:
    """Take in what a call has done. A call that did not run changes nothing, one that failed moves no phase."""
    if state.mode == "off" or result.executed is False:
        return Outcome(state)
    case = case_of(call, facts)
    phase = recorded(state.phase, case, result)
    names = skills_for(call.tool, call.args, case.deed, hints=data.hints)
    if names:
        phase = with_wanted(phase, names)
    wanted = tuple(SkillWanted(name, call.tool) for name in phase.wanted if name not in state.phase.wanted)
    outcome = Outcome(replace(state, phase=phase), wanted)
    return outcome if result.is_error or result.executed is None else _after_success(outcome, case, data)


def anchored(state: PolicyState, call: ToolCall, facts: CallFacts, result: ToolResult, *, at: float) -> Outcome:
    """The context anchor after a call, at `at` epoch seconds; it works in every mode, and without the rest."""
    if result.executed is False:
        return Outcome(state)
    deed = deed_of(call, facts)
    anchor = anchors.observe(state.anchor, call.tool, deed, at=at)
    anchor, told_anchor = anchors.annotate(anchor, () if result.is_error else deed.comments)
    return Outcome(replace(state, anchor=anchor), told_anchor)


def _after_success(outcome: Outcome, case: Case, data: PolicyData) -> Outcome:
    """The moves that a call brings about by having worked."""
    call, deed, kind = case.call, case.deed, case.kind
    before = outcome.state.phase.phase
    if kind in (Kind.WRITE, Kind.EXECUTE) and deed.targets:
        outcome = outcome.then(move(outcome.state, Trigger.WRITE, f"{call.tool} wrote {deed.targets[0]}", data))
        if outcome.state.phase.phase is not before:
            text = data.texts_for(outcome.state.language).notes["modifying"]
            return outcome.telling(
                Reminded(text.format(target=deed.targets[0], back=outcome.state.phase.returns_to))
            )
    if kind in (Kind.REMOTE_EFFECT, Kind.REMOTE_OPEN) and before in (Phase.EXECUTING, Phase.MODIFYING):
        # Approved by a person after an Ask, which moves nothing.
        outcome = outcome.then(move(outcome.state, Trigger.DEVICE, deed.summary or kind, data))
        return Outcome(at_host(outcome.state, deed), outcome.happenings)
    if before is Phase.CLOSING and deed.targets:
        phase, taken_back = untick(outcome.state.phase, CREDENTIAL_SCAN)
        return outcome.then(Outcome(replace(outcome.state, phase=phase), taken_back))
    return outcome


# -- note and hear -----------------------------------------------------------------------------------------


def note(state: PolicyState, assistant_text: str, *, data: PolicyData = BUILT_IN) -> Outcome:
    """Follow the markers an assistant's text declares, each judged by the table in turn."""
    outcome = Outcome(state)
    if state.mode == "off":
        return outcome
    for marker in markers(assistant_text):
        outcome = outcome.then(_marked(outcome.state, marker, data))
    return outcome


def _marked(state: PolicyState, marker: Marker, data: PolicyData) -> Outcome:
    outcome = move(state, MARKS[marker], f"marker {marker}", data)
    after = outcome.state.phase
    if marker is Marker.PLAN and after.phase is Phase.PLANNING:
        return Outcome(replace(outcome.state, phase=replace(after, proposed=True)), outcome.happenings)
    if marker is Marker.CASUAL and after.phase is Phase.CLOSING is not state.phase.phase:
        text = data.texts_for(state.language).notes["casual"]
        warned = Outcome(replace(outcome.state, phase=with_notice(after, text)), outcome.happenings)
        return warned.telling(Warned(text))
    return outcome


def hear(state: PolicyState, user_text: str, *, by: str = "user", data: PolicyData = BUILT_IN) -> Outcome:
    """Take in a person's words: their language, their approval of a proposed plan, their word about committing.

    Only for what a person wrote: messages that a host or the harness made in their name must not come here.
    """
    if state.mode == "off":
        return Outcome(state)
    state = replace(state, language=_language(state, user_text))
    yes = approves(user_text, data.words)
    phase = state.phase
    word = about_commit(user_text, data.words)
    if yes and not word and phase.phase is Phase.CLOSING and any(one.item == COMMIT for one in phase.findings):
        word = "commit"  # the question that waits is about the commit
    if word and phase.phase is not Phase.NO_TASK:
        phase = replace(phase, commit_word=word)
        state = replace(state, phase=phase)
    if not yes or phase.phase is not Phase.PLANNING:
        return Outcome(state)
    if not phase.proposed:
        text = data.texts_for(state.language).notes["nothing_put"]
        return Outcome(replace(state, phase=with_notice(phase, text)))
    return approved(state, f"approved by {by}: {anchors.clean(user_text, 60)}", by=by, data=data)


def _language(state: PolicyState, text: str) -> Language:
    """The user's language; an "ok" in between does not turn a Chinese conversation English."""
    shown = language_of(text)
    letters = sum(char.isalpha() for char in text)
    return state.language if not shown or (shown == "en" and state.language and letters < 12) else shown
