"""How does a run go on that waits for people, or that was interrupted?"""

from typing import assert_never

from msgspec.structs import replace

from jackstay.core.approvals import HITLDecision, HITLTask
from jackstay.core.events import HITLDecidedEvent, RuleAddedEvent, RunStartEvent
from jackstay.core.facts import CallFacts
from jackstay.core.inputs import Cancelled, Resumed
from jackstay.core.messages import ToolCall, ToolResult, note, snapshot
from jackstay.core.phase import Phase
from jackstay.core.state import Batch, BatchCall, RunState
from jackstay.engine import acting, discipline, judging, stopping, texts, turns
from jackstay.engine.bounds import RunBounds
from jackstay.engine.draft import Draft, Step
from jackstay.policy.masking import unredacted
from jackstay.policy.permissions import granted


def calls_to_judge(state: RunState, decisions: dict[str, HITLDecision]) -> tuple[ToolCall, ...]:
    """The open calls of the batch as they would run under these decisions: `Resumed` brings their facts."""
    if state.batch is None:
        return ()
    open_calls = (item for item in state.batch.calls if item.result is None)
    return tuple(_effective(item, decisions.get(item.call.call_id)) for item in open_calls)


def _effective(item: BatchCall, decision: HITLDecision | None) -> ToolCall:
    said = item.decision or decision
    if said is not None and said.is_approved and said.new_args is not None:
        return replace(item.call, args=snapshot(unredacted(said.new_args, item.call.args)))
    return item.call


def resume(draft: Draft, resumed: Resumed, bounds: RunBounds) -> Step:
    """Go on with the run that is there: undecided calls wait on, decided ones take effect, the rest follows."""
    state = draft.state
    draft.tell(RunStartEvent, True)
    if state.outcome is not None and not state.is_pending:
        return _after_the_end(draft, resumed, bounds)
    order = stopping.ordered(resumed.commands, state.run_id)
    if order is not None:
        stopping.cancel(draft, Cancelled(draft.at, order.by, below=resumed.ended), bounds)
        return draft.step()
    said = _obey(draft, resumed, bounds)
    if draft.batch is None:
        turn = state.turn - 1 if state.reasoning else state.turn
        draft.set(turn=turn, reasoning=False, overflows=0, overflow_limit=None, notes=())
        if said is not None:
            draft.say(note("approval", said))
        turns.next_turn(draft, bounds)
        return draft.step()
    facts = {
        call.call_id: (call, replace(fact, digest=acting.digest_in(draft, fact.digest)))
        for call, fact in zip(resumed.calls, resumed.facts, strict=True)
    }
    batch = _decided(draft, draft.batch, resumed, facts, bounds)
    if batch.waiting:
        draft.set(outcome="pending")
        acting.suspend(draft, batch)
    else:
        _carry_on(draft, batch, bounds)
    return draft.step()


def _after_the_end(draft: Draft, resumed: Resumed, bounds: RunBounds) -> Step:
    """A run that has ended stays as it is, unless a person has said since what it waited for: that the plan is
    approved, or that what keeps it from closing may stay.
    """
    state = draft.state
    commanded = any(one.name != stopping.CANCEL for one in resumed.commands)
    said = _obey(draft, resumed, bounds) if commanded else None
    if said is None:
        draft.tell_end(state.outcome or "answered", state.text, error=state.error)
        return draft.step() if commanded else draft.unstored()
    draft.set(outcome=None, text="", error=None, nudges=0, closing_turn=False)
    draft.say(note("approval", said))
    turns.next_turn(draft, bounds)
    return draft.step()


def _obey(draft: Draft, resumed: Resumed, bounds: RunBounds) -> str | None:
    """Do what a person commanded; what the model reads of it, where that is what the run waited for."""
    before = draft.state.policy.phase
    discipline.obey(draft, resumed.commands, bounds)
    after = draft.state.policy.phase
    by_name = {one.name: one for one in resumed.commands}
    notes = bounds.data.texts_for(draft.state.policy.language).notes
    if before.phase is Phase.PLANNING and after.phase is Phase.EXECUTING and "approve_plan" in by_name:
        return texts.plan_approved(by_name["approve_plan"], notes)
    if after.phase is Phase.CLOSING and (after.kept, after.ticks) != (before.kept, before.ticks):
        return texts.may_stay(by_name["let_stay"], notes)
    return None


Fresh = dict[str, tuple[ToolCall, CallFacts]]


def _decided(draft: Draft, batch: Batch, resumed: Resumed, facts: Fresh, bounds: RunBounds) -> Batch:
    """The batch with the decisions taken in, each open call judged again as it would run now.

    Where subagents work they go on: every call of theirs is judged in its turn.
    """
    calls, decisions = [], resumed.decisions
    for item in batch.calls:
        if item.status == "started" and item.facts.spawns:
            item = replace(item, below=resumed.below.get(item.call.call_id, ()))
        elif item.result is None:
            call, fact = facts[item.call.call_id]
            if item.status == "started":
                item = _after_crash(draft, item, fact, bounds)
            if item.task is not None:
                item, said = _in_time(draft, item, decisions.get(item.call.call_id))
                item = _under_decision(draft, item, said, (call, fact), bounds)
            elif item.refusal is None and item.result is None:
                item = judging.judge(draft, call, fact, bounds)
        calls.append(item)
    return replace(batch, calls=tuple(calls), ran=False)


def _after_crash(draft: Draft, item: BatchCall, fact: CallFacts, bounds: RunBounds) -> BatchCall:
    """A call that was running when its process died: run again only if that is harmless."""
    if item.facts.idempotent:
        return replace(item, status="reserved")
    call = item.call
    if not bounds.hitl:
        result = ToolResult(call.call_id, texts.MAY_HAVE_RUN, is_error=True, executed=None)
        return replace(item, status="reserved", refusal=result, task=None, gate=None)
    task = HITLTask(
        call.call_id, call.tool, snapshot(call.args), texts.indeterminate(call.tool), None, draft.at,
        fact.digest, True,
    )  # fmt: skip
    task = judging.due(task, bounds.waiting)
    return replace(item, status="reserved", task=task, decision=None, announced=False)


def _in_time(draft: Draft, item: BatchCall, said: HITLDecision | None) -> tuple[BatchCall, HITLDecision | None]:
    """The waiting call and the answer about it, once its deadline is looked at."""
    task = item.task
    if item.decision is not None or task is None or task.deadline is None or draft.at <= task.deadline:
        return item, item.decision or said
    if said is not None and not task.expired(said.at):
        return item, said
    match task.on_deadline:
        case "keep":
            return item, said
        case "deny":
            return item, HITLDecision("reject", go_on=True, by="the deadline", at=draft.at, expired=True)
        case "escalate":
            comment = texts.escalated(task.comment, task.deadline - task.asked_at)
            task = replace(task, comment=comment, deadline=None, escalated_to=task.escalate_to)
            return replace(item, task=task), said
        case _:
            assert_never(task.on_deadline)


def _under_decision(
    draft: Draft,
    item: BatchCall,
    said: HITLDecision | None,
    fresh: tuple[ToolCall, CallFacts],
    bounds: RunBounds,
) -> BatchCall:
    """What a person's answer makes of a waiting call. A reject stands; an approval never beats a Deny."""
    call, fact = fresh
    task = item.task
    if said is None or task is None:
        return replace(item, facts=fact)
    if said.is_rejected:
        executed = None if task.indeterminate else False
        result = ToolResult(call.call_id, texts.rejected(said), is_error=True, executed=executed)
        return replace(item, decision=said, refusal=result)
    if said.is_skipped:
        executed = None if task.indeterminate else False
        return replace(
            item,
            decision=said,
            refusal=ToolResult(call.call_id, said.remark or texts.SKIPPED, executed=executed),
        )
    now = judging.judge(draft, call, fact, bounds, approved=True)
    shown = said.digest or task.digest
    what = texts.changed(shown, fact.digest, amended=said.new_args is not None) if shown else ""
    if what and now.task is not None:
        return judging.ask_again(draft, item, fact, what, bounds)
    return replace(now, task=task, decision=said, announced=item.announced)


def _carry_on(draft: Draft, batch: Batch, bounds: RunBounds) -> None:
    """Everything is decided: tell what is not told yet, then run what may run."""
    draft.set(outcome=None, text="")
    batch = replace(batch, calls=tuple(_announce(draft, item, bounds) for item in batch.calls))
    sensitive = [item for item in batch.calls if item.task is not None]
    only = sensitive[0] if len(sensitive) == 1 and sensitive[0].result is None else None
    said = only.decision if only is not None and not _is_indeterminate(only) else None
    if said is not None and said.is_rejected and not said.go_on:
        _end_rejected(draft, batch, said)
    elif acting.start(draft, batch, bounds):
        turns.next_turn(draft, bounds)


def _announce(draft: Draft, item: BatchCall, bounds: RunBounds) -> BatchCall:
    """The call with its decision told and in effect, once: a crash may bring the same batch here again."""
    if item.decision is None or item.result is not None or item.announced:
        return item
    _tell_decided(draft, item, item.decision)
    _take_effect(draft, item, bounds)
    return replace(item, announced=True)


def _is_indeterminate(item: BatchCall) -> bool:
    return item.task is not None and item.task.indeterminate


def _tell_decided(draft: Draft, item: BatchCall, decision: HITLDecision) -> None:
    call = item.call
    draft.tell(HITLDecidedEvent, call.call_id, call.tool, snapshot(call.args), decision.remark, decision)


def _take_effect(draft: Draft, item: BatchCall, bounds: RunBounds) -> None:
    decision = item.decision
    if decision is None or not decision.is_approved:
        return
    if decision.new_args is not None:
        acting.amend_call(draft, item.call)
    if decision.always and item.refusal is None:
        acting.grant(draft, item)
        if bounds.grants and item.task is not None and item.task.always_rule is not None:
            _add_rule(draft, item, decision, bounds)


def _add_rule(draft: Draft, item: BatchCall, decision: HITLDecision, bounds: RunBounds) -> None:
    policy = draft.state.policy
    rule = granted((*bounds.rules, *policy.rules), item.call, item.facts)
    if rule is None or rule in policy.rules:
        return
    draft.set(policy=replace(policy, rules=(*policy.rules, rule)))
    draft.tell(RuleAddedEvent, rule.text, decision.by)


def _end_rejected(draft: Draft, batch: Batch, decision: HITLDecision) -> None:
    """The only sensitive call was rejected: nothing runs, every call gets an observation, the run ends."""
    calls = tuple(
        replace(item, status="finished", result=item.refusal)
        if item.decision is not None and item.result is None
        else item
        for item in batch.calls
    )
    acting.give_up(draft, replace(batch, calls=calls, started=False), texts.REJECTED_RUN)
    draft.end("rejected", decision.remark or texts.REJECTED_RUN)
