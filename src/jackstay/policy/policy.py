"""The five questions in one hand: what somebody who writes a host adapter holds."""

from collections.abc import Iterable

from jackstay.core.decision import Decision
from jackstay.core.facts import CallFacts
from jackstay.core.messages import JsonObject, ToolCall, ToolResult
from jackstay.core.phase import Mode, Phase
from jackstay.core.state import PolicyState
from jackstay.policy import anchor, discipline, own_tools, sessions
from jackstay.policy.checklist import Checked
from jackstay.policy.data import BUILT_IN, PolicyData, problems
from jackstay.policy.discipline import Preparation, Weighed
from jackstay.policy.guidance import SESSION_TEXT
from jackstay.policy.moves import Outcome
from jackstay.policy.own_tools import Answered


class Policy:
    """The discipline with its words and tables; holds no session: every answer is about the state given.

    For one call, in this order: `prepare` (copy away what it names), `weigh` or `decide`, and `observe` when it
    has run. For a turn: `hear` what a person wrote, `guidance` then `told`, `note` what the model answered.
    """

    def __init__(self, data: PolicyData = BUILT_IN) -> None:
        self._data = data

    @property
    def data(self) -> PolicyData:
        """The words and tables in use."""
        return self._data

    def replace_data(self, data: PolicyData) -> list[str]:
        """Use other words and tables from the next question on; unfit ones are not taken, with the reasons."""
        found = problems(data)
        if not found:
            self._data = data
        return found

    def start(self, known: PolicyState | None = None, *, mode: Mode = "strict") -> PolicyState:
        """The state of a session: the one it has, or a new one in no_task."""
        return known if known is not None else PolicyState(mode=mode)

    def session_text(self, language: str = "en") -> str:
        """What teaches the markers, once, at a session's start."""
        return SESSION_TEXT.get(self._data.language or language, SESSION_TEXT["en"])

    def guidance(self, state: PolicyState) -> str | None:
        """What the model should read with its next turn, or None."""
        return discipline.guidance(state, data=self._data)

    def told(self, state: PolicyState) -> PolicyState:
        """The state after its guidance was delivered."""
        return discipline.told(state, data=self._data)

    def anchor(self, state: PolicyState) -> str | None:
        """The context anchor's block, or None."""
        return anchor.block(state.anchor)

    def prepare(self, state: PolicyState, call: ToolCall, facts: CallFacts) -> Preparation:
        """What has to be copied away before `weigh` is asked."""
        return discipline.prepare(state, call, facts, data=self._data)

    def decide(self, state: PolicyState, call: ToolCall, facts: CallFacts) -> Decision:
        """May this call run now? Allow means no objection."""
        return discipline.decide(state, call, facts, data=self._data)

    def weigh(self, state: PolicyState, call: ToolCall, facts: CallFacts) -> Weighed:
        """The decision with the state that goes with it."""
        return discipline.weigh(state, call, facts, data=self._data)

    def observe(self, state: PolicyState, call: ToolCall, facts: CallFacts, result: ToolResult) -> Outcome:
        """Take in what a call has done."""
        return discipline.observe(state, call, facts, result, data=self._data)

    def note(self, state: PolicyState, assistant_text: str) -> Outcome:
        """Follow the markers of an assistant's text."""
        return discipline.note(state, assistant_text, data=self._data)

    def hear(self, state: PolicyState, user_text: str, *, by: str = "user") -> Outcome:
        """Take in what a person wrote; never what a host or the harness wrote in their name."""
        return discipline.hear(state, user_text, by=by, data=self._data)

    def set_phase(self, state: PolicyState, args: JsonObject) -> Answered:
        """Carry out a call of `discipline_set_phase` that `weigh` has let pass."""
        return own_tools.set_phase(state, args, data=self._data)

    def closure_check(self, state: PolicyState, args: JsonObject, checked: Checked | None = None) -> Answered:
        """Carry out a call of `closure_check`, with the harness's own result where the item needs one."""
        return own_tools.closure_check(state, args, checked=checked, data=self._data)

    def anchor_set(self, state: PolicyState, args: JsonObject) -> Answered:
        """Carry out a call of `anchor_set`."""
        return own_tools.anchor_set(state, args)

    def approve_plan(self, state: PolicyState, *, by: str) -> Outcome:
        """A person approves the plan by command."""
        return sessions.approve_plan(state, by=by, data=self._data)

    def force_phase(self, state: PolicyState, phase: Phase, reason: str, *, by: str) -> Outcome:
        """A person moves the phase, whatever the table says."""
        return sessions.force_phase(state, phase, reason, by=by, data=self._data)

    def let_stay(self, state: PolicyState, subjects: Iterable[str], reason: str, *, by: str) -> Outcome:
        """A person lets leftovers stay that closing has found, or ticks items of the checklist."""
        return sessions.let_stay(state, subjects, reason, by=by, data=self._data)

    def lost(self, state: PolicyState, why: str) -> PolicyState:
        """What a known session goes on with when its state could not be read."""
        return sessions.lost(state, why, data=self._data)
