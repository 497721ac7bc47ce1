"""What a run tells: the event union (first seed §4.3; names and tags are the interface)."""

from typing import Any, ClassVar, Literal

import msgspec

from jackstay.core.approvals import HITLDecision, HITLTask
from jackstay.core.errors import ErrorInfo
from jackstay.core.messages import JsonObject, ToolCall, Usage
from jackstay.core.phase import Phase

Outcome = Literal["answered", "pending", "rejected", "limit", "failed", "cancelled", "stopped"]


class BaseEvent(msgspec.Struct, frozen=True, gc=False, tag_field="type"):
    """What every event has: the run and session it belongs to, its number in the session, seconds since 1970.

    `seq` counts the stored events of a session from 1 without gaps; it is None for the transient ones.
    """

    run_id: str
    session_id: str
    seq: int | None
    at: float

    tag: ClassVar[str] = ""

    @property
    def type(self) -> str:
        """The tag this event carries in JSON."""
        return str(self.__struct_config__.tag)


class RunStartEvent(BaseEvent, frozen=True, gc=False, tag="run_start"):
    """A run begins, or goes on under its old id."""

    resumed: bool = False


class ContextSizeEvent(BaseEvent, frozen=True, gc=False, tag="context_size"):
    """How large the context is; after a compression also how large it was."""

    messages: int
    tokens: int
    limit: int
    compressed: bool = False
    messages_before: int = 0
    tokens_before: int = 0
    strategy: str | None = None


class ReasonStartEvent(BaseEvent, frozen=True, gc=False, tag="reason_start"):
    """The model is asked."""

    turn: int


class ReasonDeltaEvent(BaseEvent, frozen=True, gc=False, tag="reason_delta"):
    """Words as they come. Transient: never stored, never numbered."""

    text: str
    thinking: bool = False


class ReasonEndEvent(BaseEvent, frozen=True, gc=False, tag="reason_end"):
    """The model has answered, or failed for good (`error`)."""

    turn: int
    text: str
    calls: tuple[ToolCall, ...] = ()
    usage: Usage | None = None
    error: ErrorInfo | None = None


class HITLPendingEvent(BaseEvent, frozen=True, gc=False, tag="hitl_pending"):
    """Calls wait for a person; nothing of their batch has run."""

    pending_tasks: tuple[HITLTask, ...]


class HITLDecidedEvent(BaseEvent, frozen=True, gc=False, tag="hitl_decided"):
    """A person has decided about a call; `args` are those it will run with."""

    call_id: str
    tool_name: str
    args: JsonObject
    comment: str | None
    decision: HITLDecision

    @property
    def is_approved(self) -> bool:
        """May the call run?"""
        return self.decision.is_approved

    @property
    def is_rejected(self) -> bool:
        """Was it turned down?"""
        return self.decision.is_rejected

    @property
    def is_skipped(self) -> bool:
        """Does the comment stand in for its result?"""
        return self.decision.is_skipped


class ActionStartEvent(BaseEvent, frozen=True, gc=False, tag="action_start"):
    """The calls of a reply are about to be carried out."""

    calls: tuple[str, ...] = ()


class ToolCallStartEvent(BaseEvent, frozen=True, gc=False, tag="tool_call_start"):
    """A call is taken up."""

    call_id: str
    tool_name: str
    args: JsonObject


class ToolOutputDeltaEvent(BaseEvent, frozen=True, gc=False, tag="tool_output_delta"):
    """Output of a running tool as it comes. Transient."""

    call_id: str
    text: str


class ToolCallEndEvent(BaseEvent, frozen=True, gc=False, tag="tool_call_end"):
    """A call is done with; `executed` is False where its tool never ran and None where nobody can know."""

    call_id: str
    tool_name: str
    args: JsonObject
    is_error: bool
    executed: bool | None
    text: str
    duration_ms: float


class ActionEndEvent(BaseEvent, frozen=True, gc=False, tag="action_end"):
    """All calls of the reply are done with, or wait."""


class RunEndEvent(BaseEvent, frozen=True, gc=False, tag="run_end"):
    """This request has ended. With outcome `pending` the task itself goes on after a decision."""

    outcome: Outcome
    is_abnormal: bool
    text: str
    usage: Usage
    error: ErrorInfo | None = None


class PhaseChangedEvent(BaseEvent, frozen=True, gc=False, tag="phase_changed"):
    """The discipline moved to another phase."""

    before: Phase
    after: Phase
    why: str


class GateBlockedEvent(BaseEvent, frozen=True, gc=False, tag="gate_blocked"):
    """A gate or rule refused a call."""

    gate: str
    tool_name: str
    reason: str


class GuidanceEvent(BaseEvent, frozen=True, gc=False, tag="guidance"):
    """Phase guidance went to the model with this turn."""

    phase: Phase
    text: str


class SkillLoadedEvent(BaseEvent, frozen=True, gc=False, tag="skill_loaded"):
    """A skill's text was given to the model."""

    name: str
    why: str


class LoopDetectedEvent(BaseEvent, frozen=True, gc=False, tag="loop_detected"):
    """The same thing keeps happening."""

    kind: str
    count: int
    text: str


class BackupTakenEvent(BaseEvent, frozen=True, gc=False, tag="backup_taken"):
    """A file was copied away before it is changed."""

    path: str
    backup_id: str


class PlanUpdatedEvent(BaseEvent, frozen=True, gc=False, tag="plan_updated"):
    """The todo list changed."""

    text: str


class RuleAddedEvent(BaseEvent, frozen=True, gc=False, tag="rule_added"):
    """A permission rule was added because a person said "always"."""

    rule: str
    by: str


class AnchorSetEvent(BaseEvent, frozen=True, gc=False, tag="anchor_set"):
    """The context anchor changed."""

    key: str
    value: str


class SubagentEvent(BaseEvent, frozen=True, gc=False, tag="subagent"):
    """Something happened in a subagent's run: `event` as it is told there. Transient: stored in its session."""

    agent: str
    child_session_id: str
    event: JsonObject


class WarningEvent(BaseEvent, frozen=True, gc=False, tag="warning"):
    """Something a person should know; the run goes on."""

    text: str


class ErrorEvent(BaseEvent, frozen=True, gc=False, tag="error"):
    """Something failed beside the run's own course."""

    error: ErrorInfo


class UnknownEvent(BaseEvent, frozen=True, gc=False, tag="unknown"):
    """An event written by a newer version, kept as it was."""

    raw: dict[str, Any]


Event = (
    RunStartEvent | ContextSizeEvent | ReasonStartEvent | ReasonDeltaEvent | ReasonEndEvent
    | HITLPendingEvent | HITLDecidedEvent | ActionStartEvent | ToolCallStartEvent | ToolOutputDeltaEvent
    | ToolCallEndEvent | ActionEndEvent | RunEndEvent | PhaseChangedEvent | GateBlockedEvent | GuidanceEvent
    | SkillLoadedEvent | LoopDetectedEvent | BackupTakenEvent | PlanUpdatedEvent | RuleAddedEvent
    | AnchorSetEvent | SubagentEvent | WarningEvent | ErrorEvent | UnknownEvent
)  # fmt: skip

TRANSIENT = (ReasonDeltaEvent, ToolOutputDeltaEvent, SubagentEvent)


def kinds(events: "list[Event] | tuple[Event, ...]", *, deltas: bool = False) -> list[str]:
    """The tags of the events in order, without the transient ones unless asked for."""
    return [event.type for event in events if deltas or not isinstance(event, TRANSIENT)]
