"""What happens to the calls of a reply once they are judged? Carried out in order, reads side by side."""

from msgspec.structs import replace

from jackstay.core.effects import GrantAlways, Judge, RunTool
from jackstay.core.events import (
    ActionEndEvent,
    ActionStartEvent,
    BackupTakenEvent,
    GateBlockedEvent,
    HITLPendingEvent,
    RunEndEvent,
    ToolCallEndEvent,
    ToolCallStartEvent,
)
from jackstay.core.facts import CallFacts
from jackstay.core.inputs import Cancelled, Observed
from jackstay.core.messages import Message, Part, ToolCall, ToolResult, snapshot
from jackstay.core.state import Batch, BatchCall
from jackstay.engine import discipline, loops, subagents, texts
from jackstay.engine.bounds import RunBounds
from jackstay.engine.draft import Draft
from jackstay.engine.judging import ask_again, judge
from jackstay.policy.gates import CLOSURE_CHECK

# -- suspending --------------------------------------------------------------------------------------------


def suspend(draft: Draft, batch: Batch) -> None:
    """Wait for people: tell what waits, end this request, keep the batch as it is."""
    batch = replace(batch, calls=tuple(_bound(item, draft) for item in batch.calls))
    draft.batch = batch
    draft.set(outcome="pending", reasoning=False, text=texts.waiting(batch.waiting))
    draft.tell(HITLPendingEvent, batch.waiting)
    draft.tell(RunEndEvent, "pending", True, draft.state.text, draft.state.usage)


def _bound(item: BatchCall, draft: Draft) -> BatchCall:
    """The task bound to the phase in which it is shown; facts are gathered before the reply moves the phase."""
    task = item.task
    if task is None or not task.digest or "@" in task.digest:
        return item
    return replace(item, task=replace(task, digest=digest_in(draft, task.digest)))


def digest_in(draft: Draft, digest: str) -> str:
    """What a decision is bound to: the digest of the facts, in the phase of this moment."""
    return f"{digest}@{draft.state.policy.phase.phase}" if digest else ""


# -- carrying out ------------------------------------------------------------------------------------------


def start(draft: Draft, batch: Batch, bounds: RunBounds) -> bool:
    """Begin the batch, or take it up again. True when every call of it is done with."""
    draft.tell(ActionStartEvent, tuple([c.call.call_id for c in batch.calls if c.result is None]))
    return advance(draft, batch, bounds)


def advance(draft: Draft, batch: Batch, bounds: RunBounds, *, fresh: int = -1) -> bool:
    """Take up the next calls of a batch that has begun. True when none is left and the action has ended.

    `fresh` is the position of a call that was judged just now.
    """
    calls = list(batch.calls)
    index, count = _first_open(calls), len(calls)
    while index < count:
        current = calls[index]
        if current.refusal is not None:
            calls[index] = _refuse(draft, current, current.refusal)
            index += 1
            continue
        if batch.ran and index != fresh and _is_stale(current):
            draft.do(Judge((current.call,)))
            break
        if current.call.tool in discipline.OWN_TOOLS:
            calls[index] = _answer(draft, current, bounds)
            batch = replace(batch, ran=True)  # it may have moved the phase
            index += 1
            continue
        for position in range(index, _end_of_stretch(calls, index)):
            if calls[position].result is None:
                calls[position] = _take_up(draft, calls[position], bounds)
        break
    if index == count:
        return _through(draft, batch, calls, bounds)
    draft.batch = Batch(tuple(calls), True, _say_results(draft, batch, calls), batch.ran)
    return False


def _through(draft: Draft, batch: Batch, calls: list[BatchCall], bounds: RunBounds) -> bool:
    """Every call is done with: the action ends. True."""
    _say_results(draft, batch, calls)
    draft.tell(ActionEndEvent)
    loops.end_batch(draft, calls, bounds)
    return True


def _first_open(calls: list[BatchCall]) -> int:
    for index, item in enumerate(calls):
        if item.result is None:
            return index
    return len(calls)


def _is_stale(item: BatchCall) -> bool:
    """Has what ran before it in the batch outdated the judgement of a call?"""
    if item.call.tool in discipline.OWN_TOOLS:
        return item.call.tool == CLOSURE_CHECK  # its facts are a look at the world
    return not item.facts.reads_only


def _end_of_stretch(calls: list[BatchCall], index: int) -> int:
    """Up to where calls may run together from `index` on: one call, or a stretch of calls that only read."""
    end = index + 1
    if end < len(calls) and calls[index].facts.reads_only:
        while end < len(calls) and _may_join(calls[end]):
            end += 1
    return end


def _may_join(item: BatchCall) -> bool:
    return item.facts.reads_only and item.refusal is None and item.call.tool not in discipline.OWN_TOOLS


def _answer(draft: Draft, item: BatchCall, bounds: RunBounds) -> BatchCall:
    """A call of one of the harness's own tools: answered here, since what it changes is the run's own state."""
    call = item.call
    draft.tell(ToolCallStartEvent, call.call_id, call.tool, snapshot(call.args))
    result, outcome = discipline.own_answer(draft, call, item.facts, bounds)
    done = finish(draft, item, result, 0.0)
    discipline.tell(draft, outcome)
    return done


def _take_up(draft: Draft, item: BatchCall, bounds: RunBounds) -> BatchCall:
    call = item.call
    if item.status == "started":  # its subagents go on where a suspension or a crash has left them
        draft.do(RunTool(call))
        return item
    if draft.state.policy.mode != "off":
        discipline.take_up(draft, call, item.facts, bounds)
    for path, backup_id in item.facts.backups:
        draft.tell(BackupTakenEvent, path, backup_id)
    draft.tell(ToolCallStartEvent, call.call_id, call.tool, snapshot(call.args))
    draft.effects.append(RunTool(call))
    return replace(item, status="started")


def _refuse(draft: Draft, item: BatchCall, result: ToolResult) -> BatchCall:
    call = item.call
    if item.gate is not None:
        draft.tell(GateBlockedEvent, item.gate, call.tool, item.why or result.text)
    draft.tell(ToolCallStartEvent, call.call_id, call.tool, snapshot(call.args))
    done = finish(draft, item, result, 0.0)
    discipline.may_have_run(draft, call, item.facts, result)
    return done


def finish(draft: Draft, item: BatchCall, result: ToolResult, took_s: float) -> BatchCall:
    """The call with its result, told."""
    call = item.call
    draft.tell(
        ToolCallEndEvent, call.call_id, call.tool, snapshot(call.args), result.is_error, result.executed,
        result.text, int(took_s * 1e6 + 0.5) / 1000,
    )  # fmt: skip
    return replace(item, status="finished", result=result, below=())


def _record(draft: Draft, batch: Batch, calls: list[BatchCall]) -> Batch:
    """The batch with its calls as they are now, its known results said."""
    return replace(batch, calls=tuple(calls), told=_say_results(draft, batch, calls))


def _say_results(draft: Draft, batch: Batch, calls: list[BatchCall]) -> int:
    """Known results go into the transcript, in call order. How many of them stand there now."""
    told = batch.told
    for item in calls[told:]:
        if item.result is None:
            break
        draft.say(Message("tool", (item.result,)))
        told += 1
    return told


def observed(draft: Draft, seen: Observed, bounds: RunBounds) -> bool:
    """A tool has returned. True when that was the last call; a result nobody waits for is ignored.

    Where subagents wait for people the run waits with them, once everything that runs beside them has returned.
    """
    batch = draft.batch
    if batch is None:
        return False
    calls = list(batch.calls)
    call_id = seen.result.call_id
    for index, item in enumerate(calls):  # noqa: B007 - the position is used below
        if item.call.call_id == call_id and item.status == "started":
            break
    else:
        return False
    if seen.call is not None:
        item = replace(item, call=seen.call, facts=seen.facts or item.facts)
        amend_call(draft, seen.call)
    if seen.below is not None:
        subagents.take_in(draft, seen.below, bounds)
    if seen.below is not None and seen.below.waiting:
        calls[index] = replace(item, below=seen.below.waiting)
    else:
        calls[index] = _returned(draft, item, seen, bounds)
    left = [c for c in calls if c.result is None]
    if not left:
        return _through(draft, batch, calls, bounds)
    batch = replace(batch, ran=True)
    running = [c for c in left if c.status == "started"]
    if not running:
        return advance(draft, replace(batch, calls=tuple(calls)), bounds)
    batch = _record(draft, batch, calls)
    if all(c.below for c in running):
        draft.tell(ActionEndEvent)
        suspend(draft, replace(batch, started=False))
    else:
        draft.batch = batch
    return False


def _returned(draft: Draft, item: BatchCall, seen: Observed, bounds: RunBounds) -> BatchCall:
    result, outcome = _with_comment(item, seen.result) if item.decision is not None else seen.result, None
    if draft.state.policy.mode != "off":
        result, outcome = discipline.observe(draft, item.call, item.facts, result, bounds)
    done = finish(draft, item, result, seen.took_s)
    if outcome is not None:
        discipline.tell(draft, outcome)
    if result.truncated and not draft.state.recallable:
        draft.set(recallable=True)  # the text the model reads names the tool that reads the rest
    return done


def amend_call(draft: Draft, call: ToolCall) -> None:
    """The transcript shows a call as it is executed, not as it was first asked for."""
    transcript = draft.transcript
    for index in range(len(transcript) - 1, -1, -1):
        message = transcript[index]
        if any(_is_call(part, call.call_id) for part in message.parts):
            parts = tuple(call if _is_call(part, call.call_id) else part for part in message.parts)
            draft.amend(index, replace(message, parts=parts))
            return


def _is_call(part: Part, call_id: str) -> bool:
    return isinstance(part, ToolCall) and part.call_id == call_id


def _with_comment(item: BatchCall, result: ToolResult) -> ToolResult:
    if item.decision is None or not item.decision.is_approved or not item.decision.remark:
        return result
    return replace(result, text=texts.with_comment(result.text, item.decision.remark))


def judged(draft: Draft, calls: tuple[ToolCall, ...], facts: tuple[CallFacts, ...], bounds: RunBounds) -> bool:
    """The next call was judged once more, on the state of this moment; the stricter answer holds."""
    batch = draft.batch
    if batch is None:
        return False
    items = list(batch.calls)
    index = _first_open(items)
    if index >= len(items) or items[index].call.call_id != calls[0].call_id:
        return False
    before, now = items[index], judge(draft, calls[0], facts[0], bounds)
    if now.task is not None and before.decision is not None and before.decision.is_approved:
        now = _as_approved(draft, before, facts[0], bounds)
    items[index] = now
    batch = replace(batch, calls=tuple(items))
    if batch.waiting:
        draft.tell(ActionEndEvent)
        suspend(draft, replace(batch, started=False))
        return False
    return advance(draft, batch, bounds, fresh=index)


def _as_approved(draft: Draft, item: BatchCall, facts: CallFacts, bounds: RunBounds) -> BatchCall:
    """The call under the approval it has, unless it has become another one while the batch ran."""
    shown = item.task.digest if item.task is not None else ""
    what = texts.changed(shown, digest_in(draft, facts.digest), among=texts.WHAT_RUNS)
    if what:
        return ask_again(draft, item, facts, what, bounds)
    return replace(item, facts=facts)


# -- ending early ------------------------------------------------------------------------------------------


def give_up(
    draft: Draft,
    batch: Batch,
    text: str,
    *,
    stopped: Cancelled | None = None,
) -> None:
    """Answer every open call with the text; running ones are told as ended, with what they had put out.

    `stopped` says which were running and what they had put out. If it is resumable, those that have not begun
    stay open, and those whose subagents can go on.
    """
    calls = list(batch.calls)
    for index, item in enumerate(calls):
        call_id = item.call.call_id
        if item.result is not None or (stopped is not None and stopped.resumable and _goes_on(item)):
            continue
        if item.status == "started":
            said = _broken_off(call_id, text, stopped)
            calls[index] = finish(draft, item, said, 0.0)
            discipline.may_have_run(draft, item.call, item.facts, said)
        elif stopped is None or not stopped.resumable:
            result = ToolResult(call_id, texts.not_run(text), is_error=True, executed=False)
            calls[index] = replace(item, status="finished", result=result)
    left = _record(draft, replace(batch, ran=True, started=False), calls)
    if batch.started:
        draft.tell(ActionEndEvent)
    draft.batch = left if any(c.result is None for c in calls) else None


def _goes_on(item: BatchCall) -> bool:
    return item.status == "started" and item.facts.spawns


def _broken_off(call_id: str, text: str, stopped: Cancelled | None) -> ToolResult:
    """What is to be said of a call that was stored as started: it ran, it never began, or nobody knows."""
    if stopped is not None and call_id in stopped.unbegun:
        return ToolResult(call_id, texts.not_run(text), is_error=True, executed=False)
    if stopped is not None and call_id in stopped.partial:
        return ToolResult(call_id, texts.interrupted(text, stopped.partial[call_id]), is_error=True)
    return ToolResult(call_id, f"{texts.interrupted(text)} {texts.LOOK}", is_error=True, executed=None)


def grant(draft: Draft, item: BatchCall) -> None:
    """A person said "always" about this call."""
    if item.decision is not None and item.decision.is_approved and item.decision.always:
        draft.do(GrantAlways(item.call, item.task.always_rule if item.task else None))
