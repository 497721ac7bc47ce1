"""In which words is a call or a move refused? Each names the gate, the reason and the way on."""

from jackstay.core.decision import ALLOW, Ask, Decision, Deny
from jackstay.core.facts import CallFacts
from jackstay.core.phase import Phase, PhaseState
from jackstay.policy.deeds import Deed
from jackstay.policy.gates import Answer, Case, Kind
from jackstay.policy.guidance import Texts, way_on
from jackstay.policy.phases import SETS, Trigger, open_items

_RESEARCH: dict[Kind, str] = {
    Kind.WRITE: "research:write",
    Kind.EXECUTE: "research:execute",
    Kind.REMOTE_EFFECT: "research:remote",
    Kind.REMOTE_OPEN: "research:remote",
}


class Refusals:
    """The refusals of one moment: a language, a phase, the closing items that are asked for now."""

    def __init__(self, texts: Texts, phase: PhaseState, *, required: tuple[str, ...]) -> None:
        self._texts, self._phase, self._required = texts, phase, required

    @property
    def way(self) -> str:
        """The way on from here."""
        return way_on(self._phase, self._texts, required=self._required)

    def decision(self, answer: Answer, gate: str, case: Case, judged_in: PhaseState) -> Decision:
        """The answer as a decision with its words; `judged_in` is the phase that gave it."""
        if answer == "allow":
            return ALLOW
        deed, kind = case.deed, case.kind
        if gate == "modify" and answer == "deny":
            return Deny(self._no_backup(deed, case.facts), "gate:modify", self.way)
        key = self._key(gate, kind, judged_in)
        host = deed.remotes[0].host if deed.remotes else ""
        reason = self._texts.gates[key].format(doubt=deed.doubt or deed.summary or str(kind), host=host)
        rule = f"gate:{key.partition(':')[0]}"
        if answer == "ask":
            return Ask(reason, rule)
        way = self.way if key != "start" else self._from_start()
        return Deny(f"{reason} {way}", rule, way)

    def set_phase_in_closing(self, wanted: str) -> str:
        """Why set_phase does not run in closing."""
        return f"{self._texts.gates['closure:set_phase'].format(phase=wanted)} {self.way}"

    def bypass(self, reason: str) -> str:
        """The warning after somebody tried to leave closing early."""
        return self._texts.notes["bypass"].format(reason=reason.rstrip(".。"))

    def move(self, state: PhaseState, trigger: Trigger) -> str:
        """Why a trigger changes nothing here."""
        phase = state.phase
        words = {"trigger": str(trigger), "phase": str(phase), "back": str(state.returns_to or "")}
        words["open"] = ", ".join(open_items(state, self._required))
        key = "unlisted"
        if phase is Phase.CLOSING:
            key = "ticked"
        elif trigger is SETS[Phase.EXECUTING] and phase in (Phase.PLANNING, Phase.TASK_STARTED, Phase.NO_TASK):
            key = "approval"
        elif phase is Phase.TASK_STARTED and trigger in (Trigger.MARK_PLAN, Trigger.SET_PLANNING):
            key = "looked"
        elif trigger is Trigger.SET_NO_TASK:
            key = "no_task"
        elif phase.kind == "temporary" and trigger in SETS.values():
            key = "returns"
        return self._texts.refused[key].format(**words)

    def _key(self, gate: str, kind: Kind, judged_in: PhaseState) -> str:
        if gate == "device":
            if kind is Kind.REMOTE_OPEN and judged_in.returns_to in (Phase.EXECUTING, Phase.PLANNING):
                return "device:interactive"
            if kind not in (Kind.REMOTE_EFFECT, Kind.REMOTE_OPEN, Kind.STORE):
                return "device:other"
            gate = {Phase.PLANNING: "proposal", Phase.CLOSING: "closure"}.get(
                judged_in.returns_to or Phase.NO_TASK, "research"
            )
        if gate == "research":
            return _RESEARCH.get(kind, "research:other")
        if gate in ("reminder", "modify"):
            return "device:interactive"
        return {"closure": "closure:other"}.get(gate, gate)

    def _no_backup(self, deed: Deed, facts: CallFacts) -> str:
        if facts.backup == "impossible":
            text = self._texts.gates["modify:impossible"]
            return text.format(target=deed.targets[0], problem=facts.backup_problem or "unknown")
        return self._texts.gates["modify:none"].format(target=deed.targets[0])

    def _from_start(self) -> str:
        return way_on(PhaseState(Phase.TASK_STARTED), self._texts)
