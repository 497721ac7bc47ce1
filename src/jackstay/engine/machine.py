"""What happens next? `step(state, input)` is the whole run, as a pure function."""

from typing import assert_never

from msgspec.structs import replace

from jackstay.core.events import (
    ReasonEndEvent,
    RunStartEvent,
    WarningEvent,
)
from jackstay.core.facts import CallFacts
from jackstay.core.inputs import (
    Begin,
    CallFailed,
    Cancelled,
    Input,
    Judged,
    Observed,
    Replied,
    Resumed,
    Retried,
    Summarised,
)
from jackstay.core.messages import NO_USAGE, Message, ToolCall, ToolResult
from jackstay.core.state import Batch, BatchCall, RunState
from jackstay.engine import acting, context, discipline, judging, loops, resuming, stopping, texts, turns
from jackstay.engine.bounds import DEFAULT_BOUNDS, RunBounds
from jackstay.engine.draft import Draft, Step
from jackstay.engine.overflow import limit_named_in
from jackstay.engine.telling import told


def step(state: RunState, happened: Input, bounds: RunBounds = DEFAULT_BOUNDS) -> Step:
    """The step that this input leads to, told without secrets. Pure: equal arguments, equal answers."""
    draft = Draft(state, state, happened.at, state.seq, state.transcript, state.batch, state.active_s)
    match happened:
        case Replied():
            _replied(draft, happened, bounds)
        case Observed():
            _observed(draft, happened, bounds)
        case Summarised():
            _summarised(draft, happened, bounds)
        case Begin():
            _begin(draft, happened, bounds)
        case Judged():
            _judged(draft, happened, bounds)
        case Resumed():
            made = resuming.resume(draft, happened, bounds)
            return told(made) if bounds.redacts else made
        case Retried():
            draft.tell(WarningEvent, texts.retried(happened.error, happened.attempt))
        case CallFailed():
            _failed(draft, happened, bounds)
        case Cancelled():
            stopping.cancel(draft, happened, bounds)
        case _:
            assert_never(happened)
    made = draft.step()
    return told(made) if bounds.redacts else made


# -- beginning ---------------------------------------------------------------------------------------------


def _begin(draft: Draft, begin: Begin, bounds: RunBounds) -> None:
    state = draft.state
    stopping.close_open_run(draft, begin.below, bounds)
    draft.set(
        run_id=begin.run_id, agent=begin.agent, settings=begin.settings, turn=0, outcome=None, text="",
        error=None, closing_turn=False, nudges=0, reasoning=False, usage=NO_USAGE, overflows=0,
        overflow_limit=None, notes=(),
    )  # fmt: skip
    draft.batch, draft.active_s = None, 0.0
    draft.tell(RunStartEvent)
    if state.parent is None:
        loops.forget(draft)
        discipline.begin(draft, begin.parts, begin.commands, bounds)
    else:  # nobody has spoken: what its parent did and was allowed goes on here
        discipline.obey(draft, begin.commands, bounds)
    context.unpin_earlier(draft, bounds.session_window)
    draft.say(Message("user", begin.parts, pinned=True))
    turns.next_turn(draft, bounds)


# -- the model has answered --------------------------------------------------------------------------------


def _replied(draft: Draft, reply: Replied, bounds: RunBounds) -> None:
    if context.was_cut(draft, reply, bounds):
        return
    state, message = draft.state, turns.name_calls(draft.state, reply.message)
    calls, text = message.calls, message.text
    draft.state = replace(
        state, usage=state.usage.plus(reply.usage), reasoning=False, calls_made=state.calls_made + len(calls),
        memory=context.learnt(state, reply.usage, bounds), overflows=0, overflow_limit=None, notes=(),
    )  # fmt: skip
    draft.active_s += reply.took_s
    draft.tell(ReasonEndEvent, state.turn, text, calls, reply.usage)
    if state.policy.mode != "off":
        discipline.delivered(draft, bounds)
        discipline.read_markers(draft, text, bounds)
        if discipline.puts_plan(draft, text):
            message = context.as_plan(draft, message)
    draft.say(message)
    if state.closing_turn:
        if calls:
            unrun = Batch(tuple(BatchCall(call) for call in calls))
            acting.give_up(draft, unrun, texts.LIMIT)
        draft.end("limit", text)
    elif not calls:
        loops.after_words(draft, text, bounds)
        if draft.state.outcome is None and discipline.wants_another_turn(draft, bounds):
            turns.next_turn(draft, bounds)
        elif draft.state.outcome is None:
            draft.end("answered", text)
    else:
        _take_batch(draft, calls, reply.facts, bounds)


def _take_batch(
    draft: Draft, calls: tuple[ToolCall, ...], facts: tuple[CallFacts, ...], bounds: RunBounds
) -> None:
    spent = turns.spent_means(draft, bounds)
    if spent is not None:
        refused = tuple(
            BatchCall(
                c, refusal=ToolResult(c.call_id, texts.not_run(texts.LIMIT), is_error=True, executed=False)
            )
            for c in calls
        )
        batch = Batch(refused)
    else:
        judged = []
        for at, call in enumerate(calls):
            judged.append(judging.judge(draft, call, facts[at], bounds))
        batch = Batch(tuple(judged))
    if batch.waiting:
        acting.suspend(draft, batch)
    elif acting.start(draft, batch, bounds):
        turns.next_turn(draft, bounds)


def _observed(draft: Draft, seen: Observed, bounds: RunBounds) -> None:
    draft.active_s += seen.took_s
    if acting.observed(draft, seen, bounds):
        turns.next_turn(draft, bounds)


def _judged(draft: Draft, judged: Judged, bounds: RunBounds) -> None:
    if acting.judged(draft, judged.calls, judged.facts, bounds):
        turns.next_turn(draft, bounds)


def _summarised(draft: Draft, summarised: Summarised, bounds: RunBounds) -> None:
    if context.summarised(draft, summarised, bounds):
        turns.ask(draft, bounds)


def _failed(draft: Draft, failed: CallFailed, bounds: RunBounds) -> None:
    error = failed.error
    draft.active_s += failed.took_s
    if error.kind == "overflow" and context.shrink(draft, limit_named_in(error.message), bounds):
        return
    draft.tell(ReasonEndEvent, draft.state.turn, "", (), None, error)
    draft.end("failed", error.message, error=error)
