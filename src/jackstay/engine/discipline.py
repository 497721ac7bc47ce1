"""Where the discipline takes part in a run: what it hears, judges, observes and says, told as events."""

from collections.abc import Iterable
from typing import assert_never

from msgspec.structs import replace

from jackstay.core.decision import Ask
from jackstay.core.events import (
    AnchorSetEvent,
    GateBlockedEvent,
    GuidanceEvent,
    PhaseChangedEvent,
    SkillLoadedEvent,
    WarningEvent,
)
from jackstay.core.facts import CallFacts
from jackstay.core.inputs import Command
from jackstay.core.messages import Part, Text, ToolCall, ToolResult
from jackstay.core.phase import Phase
from jackstay.core.transcript import Transcript
from jackstay.engine.bounds import RunBounds
from jackstay.engine.draft import Draft
from jackstay.policy import anchor, discipline, sessions
from jackstay.policy.gates import ANCHOR_SET, CLOSURE_CHECK, GATES, SET_PHASE
from jackstay.policy.happenings import (
    AnchorMoved,
    Blocked,
    Happening,
    ItemTicked,
    MoveRefused,
    PhaseMoved,
    Reminded,
    SkillWanted,
    Warned,
)
from jackstay.policy.markers import Marker, markers
from jackstay.policy.moves import Outcome, with_notice
from jackstay.policy.own_tools import Answered, anchor_set, closure_check, set_phase
from jackstay.policy.phases import open_items

OWN_TOOLS = frozenset({SET_PHASE, CLOSURE_CHECK, ANCHOR_SET})
MOST_NUDGES = 2
MOST_OF_PLAN = 2000  # characters of a plan shown beside a call


def begin(draft: Draft, parts: Iterable[Part], commands: Iterable[Command], bounds: RunBounds) -> None:
    """A person has spoken: the mode of the engine holds, posted commands count, the words are heard."""
    obey(draft, commands, bounds)
    if bounds.discipline == "off":
        return
    words = "".join(part.text for part in parts if isinstance(part, Text))
    _take(draft, discipline.hear(draft.state.policy, words, data=bounds.data))


def obey(draft: Draft, commands: Iterable[Command], bounds: RunBounds) -> None:
    """A request begins: the mode of the engine holds, and what a person commanded from outside is done."""
    if draft.state.policy.mode != bounds.discipline:
        draft.set(policy=replace(draft.state.policy, mode=bounds.discipline))
    for command in commands:
        policy = draft.state.policy
        if command.name == "approve_plan":
            _approve_plan(draft, command, bounds)
        elif command.name == "force_phase":
            phase = Phase(command.detail["phase"])
            reason = str(command.detail.get("reason", ""))
            _take(draft, sessions.force_phase(policy, phase, reason, by=command.by, data=bounds.data))
        elif command.name == "let_stay":
            subjects, reason = command.detail["subjects"], str(command.detail.get("reason", ""))
            _take(draft, sessions.let_stay(policy, subjects, reason, by=command.by, data=bounds.data))


def _approve_plan(draft: Draft, command: Command, bounds: RunBounds) -> None:
    """A person approved the plan as it stood at event number `seq`; what came later they have not seen."""
    policy = draft.state.policy
    if command.detail.get("seq", draft.state.seq) != draft.state.seq:
        draft.tell(
            WarningEvent, f"the plan has moved on since {command.by} approved it: it waits for approval again"
        )
        return
    approved = sessions.approve_plan(policy, by=command.by, data=bounds.data)
    _take(draft, approved)
    comment = str(command.detail.get("comment") or "")
    if comment and approved.state.phase.phase is Phase.EXECUTING:
        _take(draft, discipline.hear(draft.state.policy, comment, by=command.by, data=bounds.data))


def read_markers(draft: Draft, text: str, bounds: RunBounds) -> None:
    """Follow the markers in what the model has said."""
    _take(draft, discipline.note(draft.state.policy, text, data=bounds.data))


def puts_plan(draft: Draft, text: str) -> bool:
    """Does this reply put the plan that the task goes by from here on?"""
    return draft.state.policy.phase.phase is Phase.PLANNING and Marker.PLAN in markers(text)


def guide(draft: Draft, bounds: RunBounds) -> tuple[str, ...]:
    """What the model reads with its next turn and nobody stores: anchor, wanted skills, phase guidance.

    It counts as said once the model has answered (`delivered`): a crash or a failed request loses none of it.
    """
    policy = draft.state.policy
    notes: list[str] = []
    block = anchor.block(policy.anchor)
    if block is not None:
        notes.append(block)
    for name in policy.phase.wanted:
        notes += _skill(draft, name, bounds)
    policy = draft.state.policy
    said = discipline.guidance(policy, data=bounds.data)
    if said is not None:
        notes.append(said)
        draft.tell(GuidanceEvent, policy.phase.phase, said)
    return tuple(notes)


def delivered(draft: Draft, bounds: RunBounds) -> None:
    """The model has answered: what it was told with the request is not said again."""
    policy = draft.state.policy
    for name in policy.phase.wanted:
        policy = discipline.loaded(policy, name)
    draft.set(policy=discipline.told(policy, data=bounds.data))


def _skill(draft: Draft, name: str, bounds: RunBounds) -> list[str]:
    language = bounds.data.language or draft.state.policy.language
    text = bounds.skills.get((name, language))
    if text is None:
        _take(draft, discipline.not_installed(draft.state.policy, name, data=bounds.data))
        return []
    draft.tell(SkillLoadedEvent, name, f"phase {draft.state.policy.phase.phase}")
    return [f"Skill {name}:\n{text}"]


def weigh(draft: Draft, call: ToolCall, facts: CallFacts, bounds: RunBounds) -> discipline.Weighed | None:
    """What the discipline answers to a call; None where it has no say."""
    policy = draft.state.policy
    return None if policy.mode == "off" else discipline.weigh(policy, call, facts, data=bounds.data)


def keep(draft: Draft, weighed: discipline.Weighed) -> None:
    """Keep what came of weighing a call that will not run now; its refusal is told in its turn."""
    told = tuple(one for one in weighed.happenings if not isinstance(one, Blocked))
    _take(draft, Outcome(weighed.state, told))


def take_up(draft: Draft, call: ToolCall, facts: CallFacts, bounds: RunBounds) -> None:
    """The call is about to run: the moves it brings about come first."""
    weighed = weigh(draft, call, facts, bounds)
    if weighed is not None and weighed.decision.severity == 0:
        _take(draft, Outcome(weighed.state, weighed.happenings))


def with_plan(ask: Ask, transcript: Transcript) -> str:
    """Why a person is asked; where a plan waits for approval, with the plan beside it."""
    if ask.rule != f"gate:{GATES[Phase.PLANNING].name}":
        return ask.reason
    for position in range(len(transcript) - 1, -1, -1):
        message = transcript[position]
        if message.role == "assistant" and Marker.PLAN in markers(message.text):
            return f"{ask.reason}\nThe plan:\n{message.text.strip()[:MOST_OF_PLAN]}"
    return ask.reason


def observe(
    draft: Draft, call: ToolCall, facts: CallFacts, result: ToolResult, bounds: RunBounds
) -> tuple[ToolResult, Outcome | None]:
    """The result as the model reads it, with reminders that belong to it, and what is to be told after it."""
    policy = draft.state.policy
    if policy.mode == "off" or result.executed is False:
        return result, None
    outcome = discipline.observe(policy, call, facts, result, data=bounds.data)
    outcome = outcome.then(discipline.anchored(outcome.state, call, facts, result, at=draft.at))
    reminders = [one.text for one in outcome.happenings if isinstance(one, Reminded)]
    if reminders:
        result = replace(result, text="\n\n".join([result.text, *reminders]))
    said = tuple(one for one in outcome.happenings if not isinstance(one, Reminded))
    return result, Outcome(outcome.state, said)


def may_have_run(draft: Draft, call: ToolCall, facts: CallFacts, result: ToolResult) -> None:
    """Keep what a call may have done that was broken off, by a cancel or a crash; it moves nothing."""
    if result.executed is not False:
        _take(draft, discipline.observe(draft.state.policy, call, facts, replace(result, is_error=True)))


def tell(draft: Draft, outcome: Outcome | None) -> None:
    """Keep and tell what `observe` found."""
    if outcome is not None:
        _take(draft, outcome)


def own_answer(draft: Draft, call: ToolCall, facts: CallFacts, bounds: RunBounds) -> tuple[ToolResult, Outcome]:
    """What one of the harness's own tools answers, and what is to be told after it."""
    policy, args = draft.state.policy, call.args
    answered: Answered
    if call.tool == SET_PHASE:
        answered = set_phase(policy, args, data=bounds.data)
    elif call.tool == CLOSURE_CHECK:
        answered = closure_check(policy, args, checked=facts.checked, data=bounds.data)
    else:
        answered = anchor_set(policy, args)
    return ToolResult(call.call_id, answered.text, answered.is_error), Outcome(
        answered.state, answered.happenings
    )


def wants_another_turn(draft: Draft, bounds: RunBounds) -> bool:
    """Must the model be sent back to the closing checklist? At most twice a run; then a warning is all."""
    state = draft.state
    phase = state.policy.phase
    if state.policy.mode in ("off", "observe") or phase.phase is not Phase.CLOSING or state.parent is not None:
        return False  # what a subagent has done is closed by its parent
    left = open_items(phase, bounds.data.required)
    if not left:
        return False
    if state.nudges < MOST_NUDGES:
        draft.set(nudges=state.nudges + 1)
        return True
    draft.tell(WarningEvent, f"the run ends with closing items open: {', '.join(left)}")
    return False


def _take(draft: Draft, outcome: Outcome) -> None:
    draft.set(policy=outcome.state)
    for happening in outcome.happenings:
        _tell(draft, happening)


def _tell(draft: Draft, happening: Happening) -> None:
    match happening:
        case PhaseMoved(before=before, after=after, why=why):
            draft.tell(PhaseChangedEvent, before, after, why)
        case MoveRefused(phase=phase, trigger=trigger, reason=reason, bypass=bypass):
            if bypass:
                draft.tell(GateBlockedEvent, "closure", str(trigger), reason)
            else:
                draft.tell(WarningEvent, f"{phase} stays: {reason}")
        case Blocked(gate=gate, tool=tool, reason=reason):
            draft.tell(GateBlockedEvent, gate, tool, reason)
        case Warned(text=text):
            draft.tell(WarningEvent, text)
        case Reminded(text=text):
            policy = draft.state.policy
            draft.set(policy=replace(policy, phase=with_notice(policy.phase, text)))
        case AnchorMoved(key=key, value=value):
            draft.tell(AnchorSetEvent, key, value)
        case SkillWanted() | ItemTicked():
            pass  # told when the skill is loaded, and by the result of the call that ticked
        case _:
            assert_never(happening)
