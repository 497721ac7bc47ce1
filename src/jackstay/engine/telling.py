"""What of a step is told, and what is only kept? Nobody reads a secret who does not need it to go on.

The state, the messages and the effects keep what was really said: the tools need it, in this process or the
next. Events, approval cards and final texts are for others to read, so they lose their secrets here, before
they are stored or published: this is the one place. What tools say loses them before it comes in.
"""

from collections.abc import Callable
from typing import Any, TypeVar

from msgspec.structs import replace

from jackstay.core.approvals import HITLDecision, HITLTask
from jackstay.core.errors import ErrorInfo
from jackstay.core.events import (
    BackupTakenEvent,
    Event,
    GateBlockedEvent,
    GuidanceEvent,
    HITLDecidedEvent,
    HITLPendingEvent,
    LoopDetectedEvent,
    PhaseChangedEvent,
    PlanUpdatedEvent,
    ReasonEndEvent,
    RuleAddedEvent,
    RunEndEvent,
    ToolCallEndEvent,
    ToolCallStartEvent,
    WarningEvent,
)
from jackstay.core.messages import JsonObject, Message, Part, Text, Thinking, ToolCall, ToolResult
from jackstay.core.state import BatchCall, RunState
from jackstay.engine.draft import Step
from jackstay.policy.masking import redact_once, redact_value

T = TypeVar("T")


def told(made: Step) -> Step:
    """The step as it may be stored and told; the very same one where there is nothing to take out."""
    clean: dict[str, JsonObject] = {}  # arguments looked through: a call that starts repeats those of its reply
    for event in made.events:
        if type(event) not in _TELL:
            continue
        if type(event) is ToolCallStartEvent and clean.get(event.call_id) == event.args:
            continue
        if _TELL[type(event)](event) is not event:
            return _without_secrets(made)
        if type(event) is ReasonEndEvent:
            for call in event.calls:
                clean[call.call_id] = call.args
    return made


def _without_secrets(made: Step) -> Step:
    state, events = made.state, []
    for event in made.events:
        tell = _TELL.get(type(event))
        shown: Event = event if tell is None else tell(event)
        if isinstance(shown, HITLPendingEvent):
            state = _with_cards(state)
        elif isinstance(shown, RunEndEvent) and shown.seq is not None:
            state = _ended(state, shown)
        events.append(shown)
    return replace(made, state=state, events=tuple(events))


def _with_cards(state: RunState) -> RunState:
    """The state with the tasks as people are to see them; the calls beside them stay as they will run."""
    batch = state.batch
    if batch is None:
        return state
    return replace(state, batch=replace(batch, calls=tuple(_with_card(item) for item in batch.calls)))


def _with_card(item: BatchCall) -> BatchCall:
    if item.task is None or item.result is not None:
        return item
    card = told_task(item.task)
    return item if card is item.task else replace(item, task=card)


def _ended(state: RunState, event: RunEndEvent) -> RunState:
    """The state whose last words are those that were told: they are for people, nothing goes on from them."""
    if state.outcome != event.outcome or (state.text == event.text and state.error == event.error):
        return state
    return replace(state, text=event.text, error=event.error)


# -- values ------------------------------------------------------------------------------------------------


# Arguments without their secrets; the very same ones where there are none.
told_args: Callable[[JsonObject], JsonObject] = redact_value


def told_task(task: HITLTask) -> HITLTask:
    """The card of a waiting call: all of it can be seen but its secrets. Its digest is the real call's."""
    args, comment = told_args(task.args), redact_once(task.comment)
    rule = redact_once(task.always_rule) if task.always_rule is not None else None
    same = args is task.args and comment is task.comment and rule is task.always_rule
    return task if same else replace(task, args=args, comment=comment, always_rule=rule)


def told_decision(decision: HITLDecision) -> HITLDecision:
    """What a person said, without secrets."""
    remark = redact_once(decision.remark) if decision.remark is not None else None
    args = told_args(decision.new_args) if decision.new_args is not None else None
    same = remark is decision.remark and args is decision.new_args
    return decision if same else replace(decision, remark=remark, new_args=args)


def told_error(error: ErrorInfo) -> ErrorInfo:
    """The error without what servers and adapters repeat of keys."""
    message = redact_once(error.message)
    return error if message is error.message else replace(error, message=message)


def told_message(message: Message) -> Message:
    """The message for people to read. What goes back to a provider is never made of this one."""
    parts = _each(_told_part, message.parts)
    return message if parts is message.parts else replace(message, parts=parts)


def _told_part(part: Part) -> Part:
    match part:
        case Text() | Thinking() | ToolResult():
            text = redact_once(part.text)
            return part if text is part.text else replace(part, text=text)
        case ToolCall():
            return _told_call(part)
        case _:
            return part


def _each(tell: Callable[[T], T], items: tuple[T, ...]) -> tuple[T, ...]:
    """All of them told; the very same ones where there is nothing to take out."""
    for item in items:
        if tell(item) is not item:
            return tuple(map(tell, items))
    return items


def _told_call(call: ToolCall) -> ToolCall:
    args = told_args(call.args)
    raw = redact_once(call.raw) if call.raw is not None else None
    return call if args is call.args and raw is call.raw else replace(call, args=args, raw=raw)


# -- events ------------------------------------------------------------------------------------------------


def _reply(event: ReasonEndEvent) -> ReasonEndEvent:
    text, calls = redact_once(event.text), _each(_told_call, event.calls)
    error = told_error(event.error) if event.error is not None else None
    same = text is event.text and calls is event.calls and error is event.error
    return event if same else replace(event, text=text, calls=calls, error=error)


def _pending(event: HITLPendingEvent) -> HITLPendingEvent:
    tasks = _each(told_task, event.pending_tasks)
    return event if tasks is event.pending_tasks else replace(event, pending_tasks=tasks)


def _decided(event: HITLDecidedEvent) -> HITLDecidedEvent:
    args, decision = told_args(event.args), told_decision(event.decision)
    if args is event.args and decision is event.decision:
        return event
    return replace(event, args=args, comment=decision.remark, decision=decision)


def _start(event: ToolCallStartEvent) -> ToolCallStartEvent:
    args = redact_value(event.args)
    return event if args is event.args else replace(event, args=args)


def _end(event: ToolCallEndEvent) -> ToolCallEndEvent:
    args, text = redact_value(event.args), redact_once(event.text)
    return event if args is event.args and text is event.text else replace(event, args=args, text=text)


def _run_end(event: RunEndEvent) -> RunEndEvent:
    text = redact_once(event.text)
    error = told_error(event.error) if event.error is not None else None
    return event if text is event.text and error is event.error else replace(event, text=text, error=error)


def _field(name: str) -> Callable[[Any], Any]:
    """For events with one telling text."""

    def tell(event: Any) -> Any:
        was = getattr(event, name)
        told = redact_once(was)
        return event if told is was else replace(event, **{name: told})

    return tell


_TELL: dict[type[Event], Callable[[Any], Any]] = {
    ReasonEndEvent: _reply,
    HITLPendingEvent: _pending,
    HITLDecidedEvent: _decided,
    ToolCallStartEvent: _start,
    ToolCallEndEvent: _end,
    RunEndEvent: _run_end,
    PhaseChangedEvent: _field("why"),
    GateBlockedEvent: _field("reason"),
    GuidanceEvent: _field("text"),
    LoopDetectedEvent: _field("text"),
    PlanUpdatedEvent: _field("text"),
    RuleAddedEvent: _field("rule"),
    BackupTakenEvent: _field("path"),
    WarningEvent: _field("text"),
}
