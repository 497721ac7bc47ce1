"""The harness's own tools: what they say of themselves, and what a call of one does to the state."""

from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from jackstay.core.messages import JsonObject
from jackstay.core.phase import Finding, Phase, PhaseState
from jackstay.core.state import PolicyState
from jackstay.core.tools import READS, ToolSpec
from jackstay.policy import anchor as anchors
from jackstay.policy.checklist import COMMIT, Checked, tick
from jackstay.policy.data import BUILT_IN, PolicyData
from jackstay.policy.gates import ANCHOR_SET, CLOSURE_CHECK, SET_PHASE
from jackstay.policy.guidance import way_on
from jackstay.policy.happenings import Happening, MoveRefused
from jackstay.policy.moves import move
from jackstay.policy.phases import SETS, open_items


class Answered(Struct, frozen=True, gc=False):
    """What a call of one of these tools came to: the new state, the model's result, what happened."""

    state: PolicyState
    text: str
    is_error: bool = False
    happenings: tuple[Happening, ...] = ()


def _schema(**properties: JsonObject) -> JsonObject:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def _text(description: str) -> JsonObject:
    return {"type": "string", "minLength": 1, "description": description}


SET_PHASE_SPEC = ToolSpec(
    SET_PHASE,
    "Declare the phase your work is in. Phases: no_task (idle, small talk), task_started (research; read "
    "only), planning (propose a plan and wait for the user's approval), executing (approved work), "
    "modifying (files are being changed), accessing_device (credentials and remote machines), closing "
    "(checklist before the end). Only the user's own words lead from planning to executing. The same is "
    "declared in a reply by a marker alone on a line: [HARNESS: task_started] (a real task), [HARNESS: "
    "plan] (this is my plan), [HARNESS: casual] (small talk only), [HARNESS: done] (finished: opens the "
    "closing checklist, and leaves it when every item is ticked).",
    _schema(
        phase={"type": "string", "enum": [phase.value for phase in Phase], "description": "the phase to enter"},
        reason=_text("why, in one sentence"),
    ),
    effects=READS,
    idempotent=True,
)

CLOSURE_CHECK_SPEC = ToolSpec(
    CLOSURE_CHECK,
    "Tick one item of the closing checklist with evidence: what was looked at and what came of it. Items: "
    "credential_scan, skill_update, decision_record, registration_check, information_storage, "
    "baseline_comparison, commit_housekeeping. The first and the last two are checked by the harness "
    "itself; a bare claim ticks nothing.",
    _schema(item=_text("the item's id"), evidence=_text("what was looked at and what came of it")),
    effects=READS,
    idempotent=True,
)

ANCHOR_SET_SPEC = ToolSpec(
    ANCHOR_SET,
    "Keep a short fact in front of you for the whole session. key: mission, task, or a name of your own "
    "(at most 20 facts, the oldest goes first); value: one line, empty to remove it. Never a credential.",
    _schema(key=_text("mission, task, or a name"), value={"type": "string", "description": "one line"}),
    effects=READS,
    idempotent=True,
)

SPECS: tuple[ToolSpec, ...] = (SET_PHASE_SPEC, CLOSURE_CHECK_SPEC, ANCHOR_SET_SPEC)


def set_phase(state: PolicyState, args: JsonObject, *, data: PolicyData = BUILT_IN) -> Answered:
    """`discipline_set_phase(phase, reason)`: both required; says what changed, what is allowed, what leaves."""
    wanted, reason = _word(args, "phase"), _word(args, "reason")
    if wanted not in set(Phase) or not reason:
        phases = ", ".join(Phase)
        problem = (
            f"phase has to be one of {phases}" if wanted not in set(Phase) else "reason is missing: say why"
        )
        return Answered(state, f"{SET_PHASE}: {problem}", is_error=True)
    texts = data.texts_for(state.language)
    if state.mode == "off":
        return Answered(state, texts.notes["unchanged"].format(phase=state.phase.phase, way="").strip())
    outcome = move(state, SETS[Phase(wanted)], anchors.clean(reason, 150), data)
    after = outcome.state
    way = _way(after, data)
    refused = next((one for one in outcome.happenings if isinstance(one, MoveRefused)), None)
    if refused is not None:
        # The result tells it; only an attempt to leave closing early is also said with the next guidance.
        kept = (
            after if refused.bypass else replace(after, phase=replace(after.phase, notices=state.phase.notices))
        )
        return Answered(kept, f"{refused.reason}. {way}", True, outcome.happenings)
    if after.phase.phase is state.phase.phase and not outcome.happenings:
        return Answered(after, texts.notes["unchanged"].format(phase=after.phase.phase, way=way))
    allowed = texts.notes[f"allowed:{after.phase.phase}"]
    said = texts.notes["changed_set"].format(
        phase=after.phase.phase, before=state.phase.phase, allowed=allowed, way=way
    )
    return Answered(
        after, " ".join([said, *_left_behind(state.phase, after.phase, texts.notes)]), False, outcome.happenings
    )


def closure_check(
    state: PolicyState, args: JsonObject, *, checked: Checked | None = None, data: PolicyData = BUILT_IN
) -> Answered:
    """`closure_check(item, evidence)`; `checked` is the harness's own result for the items that need one."""
    ticked = tick(state.phase, _word(args, "item"), _word(args, "evidence"), items=data.items, checked=checked)
    after = replace(state, phase=ticked.state)
    notes = data.texts_for(state.language).notes
    if ticked.problem:
        return Answered(after, ticked.problem, True, ticked.happenings)
    left = open_items(after.phase, data.required)
    rest = notes["rest"].format(open=", ".join(left)) if left else notes["all_ticked"]
    return Answered(
        after, notes["ticked"].format(item=_word(args, "item"), rest=rest), False, ticked.happenings
    )


def anchor_set(state: PolicyState, args: JsonObject) -> Answered:
    """`anchor_set(key, value)`: what was kept is shown as it was kept."""
    key, value = args.get("key"), args.get("value")
    if not isinstance(key, str) or not isinstance(value, str) or not anchors.clean(key, anchors.MAX_KEY):
        return Answered(
            state, f"{ANCHOR_SET}: key and value have to be texts, the key not empty", is_error=True
        )
    anchor, told = anchors.put(state.anchor, key, value)
    kept = told[0] if told else None
    text = "unchanged" if kept is None else f"{kept.key}: {kept.value}" if kept.value else f"{kept.key} removed"
    return Answered(replace(state, anchor=anchor), text, False, told)


def checked_commit(
    state: PolicyState, dirty: tuple[str, ...], *, committed: str = "", data: PolicyData = BUILT_IN
) -> Checked:
    """Item 7 in the light of `git status`: `dirty` are uncommitted paths, `committed` names a commit just made.

    With uncommitted changes only the user's word ticks it: "leave uncommitted", or "commit", which the caller
    has carried out before it asks (`commit_wanted`).
    """
    if committed:
        return Checked(True, f"committed as {committed}")
    if not dirty:
        return Checked(True, "git status: nothing uncommitted")
    if state.phase.commit_word == "leave":
        return Checked(True, f"{len(dirty)} left uncommitted, as the user said")
    text = data.texts_for(state.language).notes["commit_asked"]
    said = text.format(count=len(dirty), files=", ".join(dirty[:8]))
    return Checked(False, said, (Finding(COMMIT, "uncommitted", said),))


def commit_wanted(state: PolicyState) -> bool:
    """Has the user confirmed the commit of this task?"""
    return state.phase.phase is Phase.CLOSING and state.phase.commit_word == "commit"


def _left_behind(before: PhaseState, after: PhaseState, notes: dict[str, str]) -> list[str]:
    """What is still to be done for the changes, named when modifying is left."""
    if before.phase is not Phase.MODIFYING or after.phase is Phase.MODIFYING:
        return []
    said = []
    if before.unverified:
        said.append(notes["unverified"].format(files=", ".join(before.unverified[:10])))
    if before.replaced:
        said.append(notes["pattern"].format(strings=", ".join(repr(text) for text in before.replaced)))
    return said


def _way(state: PolicyState, data: PolicyData) -> str:
    return way_on(state.phase, data.texts_for(state.language), required=data.required)


def _word(args: JsonObject, name: str) -> str:
    value: Any = args.get(name)
    return value.strip() if isinstance(value, str) else ""
