"""How large is the context, and what is done when it is too large? (first seed §3)"""

from collections.abc import Callable

from msgspec.structs import replace

from jackstay.core.context import Memory
from jackstay.core.effects import CallModel, Summarise, SummaryJob
from jackstay.core.errors import ErrorInfo
from jackstay.core.events import ContextSizeEvent, Event, WarningEvent
from jackstay.core.inputs import Replied, Summarised
from jackstay.core.messages import Message, Usage
from jackstay.core.phase import Phase
from jackstay.core.state import RunState
from jackstay.engine import texts
from jackstay.engine.bounds import RunBounds
from jackstay.engine.compaction.measure import measured
from jackstay.engine.compaction.plan import Forced, Plan, Surroundings, has_room, plan
from jackstay.engine.compaction.rebuild import Compacted, apply, finish, prepare
from jackstay.engine.draft import Draft
from jackstay.engine.overflow import is_silent_overflow, limit_named_in
from jackstay.engine.ports import Reply


def ready(draft: Draft, bounds: RunBounds) -> bool:
    """May the model be asked now? If not, questions for a summary were asked, and their answers come first."""
    params, state = bounds.compression, draft.state
    if params is None or not params.enabled:
        return True
    size, memory = measured(draft.transcript), _memory(state, bounds)
    tokens = memory.calibration.correct(size.tokens + bounds.overhead, size.messages)
    window = bounds.context_length or params.default_context_length
    if state.overflows or not has_room(size, tokens, params, memory, window):
        found = plan(draft.transcript, params, _around(state, bounds))
        if found is not None:
            return _begin(draft, found, bounds)
    draft.tell(ContextSizeEvent, size.messages, tokens, memory.window or window)
    return True


def shrink(draft: Draft, limit: int | None, bounds: RunBounds) -> bool:
    """The request was too long: is it being made smaller? False when nothing can be gained any more.

    `limit` is the window in tokens that the model named.
    """
    params, state = bounds.compression, draft.state
    if params is None or not params.enabled or state.overflows >= params.max_retries:
        return False
    draft.set(overflows=state.overflows + 1, overflow_limit=limit)
    found = plan(draft.transcript, params, _around(draft.state, bounds))
    if found is None or found.futile:
        return False
    if _begin(draft, found, bounds):
        ask_again(draft)
    return True


def was_cut(draft: Draft, reply: Replied, bounds: RunBounds) -> bool:
    """Did the model see only part of what it was sent, and is it asked again with less?

    Some servers cut a request that is too long instead of refusing it. What they answered then is not taken,
    unless nothing can be made smaller.
    """
    seen, window = reply.usage.input_tokens, bounds.context_length
    if not is_silent_overflow("end", seen, window) or not shrink(draft, window, bounds):
        return False
    state = draft.state
    draft.set(usage=state.usage.plus(reply.usage))
    draft.active_s += reply.took_s
    draft.tell(WarningEvent, texts.was_cut(seen))
    return True


def summarised(draft: Draft, answers: Summarised, bounds: RunBounds) -> bool:
    """The answers are in: the context is rebuilt. True when that was for a turn which had not begun."""
    state, params = draft.state, bounds.compression
    draft.set(usage=state.usage.plus(answers.usage))
    draft.active_s += answers.took_s
    found = plan(draft.transcript, params, _around(state, bounds, answers.events)) if params else None
    if found is not None:
        if prepare(found, bounds.summary_window) == answers.jobs:
            replies = [Reply(message) if message is not None else None for message in answers.answers]
            _rebuild(draft, apply(found, finish(found, replies) if replies else None), bounds)
        elif not _begin(draft, found, bounds):  # settings were changed meanwhile: other messages go now
            return False
    if not state.reasoning:
        return True
    ask_again(draft)
    return False


def shorter(state: RunState, bounds: RunBounds, error: ErrorInfo, times: int) -> tuple[SummaryJob, ...]:
    """The questions of the moment in fewer words: one of them was too long, for the `times`-th time."""
    params = bounds.compression
    found = plan(state.transcript, params, _around(state, bounds)) if params else None
    if found is None:
        return ()
    window = min(bounds.summary_window or found.room.limit, found.before.tokens)
    named = limit_named_in(error.message)
    return prepare(found, min(named or window // 2, window) >> (times - 1))


def ask_again(draft: Draft) -> None:
    """The same turn, with what is left."""
    state = draft.state
    draft.do(CallModel(state.turn, state.closing_turn, state.notes))


def learnt(state: RunState, usage: Usage, bounds: RunBounds) -> Memory:
    """What the provider counted corrects the estimate. `state` is that of the request, without the reply."""
    memory, params, counted = _memory(state, bounds), bounds.compression, usage.input_tokens
    known = memory.calibration
    if params is None or not params.enabled or not (counted or known.real):
        return memory
    size = measured(state.transcript)
    learnt = known.learn(counted, size.tokens + bounds.overhead, size.messages)
    return memory if learnt is known else replace(memory, calibration=learnt)


def _memory(state: RunState, bounds: RunBounds) -> Memory:
    """What is known of this model; of another one nothing counts."""
    memory = state.memory
    return memory if memory.model == bounds.model else Memory(model=bounds.model)


def _begin(draft: Draft, found: Plan, bounds: RunBounds) -> bool:
    """Rebuild at once where nobody needs to be asked; True then."""
    jobs = prepare(found, bounds.summary_window)
    if jobs:
        draft.do(Summarise(jobs))
        return False
    _rebuild(draft, apply(found, None), bounds)
    return True


def _rebuild(draft: Draft, done: Compacted, bounds: RunBounds) -> None:
    draft.set(memory=replace(done.memory, model=bounds.model))
    if done.changed:
        draft.rebuild([(line.at, line.message) for line in done.lines])
        draft.artifacts.extend(done.originals)
        draft.set(recallable=True)
    draft.tell(
        ContextSizeEvent, done.after.messages, done.after.tokens, done.limit, done.changed,
        done.before.messages, done.before.tokens, done.strategy,
    )  # fmt: skip
    draft.set(compacted_at=draft.seq)
    if done.warning is not None:
        draft.tell(WarningEvent, done.warning)


def _around(state: RunState, bounds: RunBounds, events: tuple[Event, ...] = ()) -> Surroundings:
    forced = Forced(state.overflows, state.overflow_limit) if state.overflows else None
    memory = _memory(state, bounds)
    return Surroundings(
        context_length=bounds.context_length, overhead=bounds.overhead, memory=memory, forced=forced,
        events=events,
    )  # fmt: skip


def as_plan(draft: Draft, reply: Message) -> Message:
    """The reply that puts a plan, to be said: it stays to the letter, in place of the plan before it."""
    _unpin(draft, lambda index, message: message.role == "assistant")
    return replace(reply, pinned=True)


def unpin_earlier(draft: Draft, window: int) -> None:
    """Prompts of earlier runs beyond the last `window` messages take part in compression like all else.

    So does the plan of a task that is over; of one that is under way it does not.
    """
    over = draft.state.policy.phase.phase in (Phase.NO_TASK, Phase.TASK_STARTED)
    earlier = len(draft.transcript) - window
    _unpin(draft, lambda index, message: over if message.role == "assistant" else index < earlier)


def _unpin(draft: Draft, which: Callable[[int, Message], bool]) -> None:
    for index, message in enumerate(list(draft.transcript)):
        if message.pinned and which(index, message):
            draft.amend(index, replace(message, pinned=False))
