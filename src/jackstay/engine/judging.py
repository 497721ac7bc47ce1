"""What is the answer to a call? Free to run, waiting for a person, or refused with an observation."""

from typing import assert_never

from msgspec.structs import replace

from jackstay.core.approvals import HITLTask, Waiting
from jackstay.core.decision import Allow, Ask, Deny, strictest
from jackstay.core.facts import CallFacts
from jackstay.core.messages import ToolCall, ToolResult, snapshot
from jackstay.core.state import BatchCall
from jackstay.engine import discipline, texts
from jackstay.engine.bounds import RunBounds
from jackstay.engine.draft import Draft
from jackstay.policy.decide import decide
from jackstay.policy.secrets import redact


def judge(
    draft: Draft, call: ToolCall, facts: CallFacts, bounds: RunBounds, *, approved: bool = False
) -> BatchCall:
    """The call with everybody's answer: free to run, waiting for a person, or refused with an observation.

    For an `approved` call a question leaves no trace any more.
    """
    broken = _broken(call, facts)
    if broken is not None:
        return BatchCall(call, facts, refusal=_refused(call, broken))
    decision = decide(draft.state.policy, call, facts, bounds)
    held = draft.state.policy.held
    if held and not approved:
        decision = strictest((decision, Ask(held, "loop")))
    weighed = discipline.weigh(draft, call, facts, bounds) if draft.state.policy.mode != "off" else None
    if weighed is not None and weighed.decision.severity > decision.severity:
        decision = weighed.decision
        if not approved or isinstance(decision, Deny):
            discipline.keep(draft, weighed)
    match decision:
        case Allow():
            return BatchCall(call, facts)
        case Ask() if bounds.hitl:
            return BatchCall(call, facts, task=_task(draft, call, facts, decision, bounds.waiting))
        case Ask():
            text = texts.nobody_to_ask(decision, call)
            return _blocked(call, facts, text, gate=decision.rule or "approval", why=decision.reason)
        case Deny():
            text = texts.denied(decision)
            return _blocked(call, facts, text, gate=decision.rule or "policy", why=decision.reason)
        case _:
            assert_never(decision)


def _blocked(call: ToolCall, facts: CallFacts, text: str, *, gate: str, why: str) -> BatchCall:
    return BatchCall(
        call, facts, refusal=_refused(call, text), gate=gate.removeprefix("gate:"), why=redact(why)
    )


def _broken(call: ToolCall, facts: CallFacts) -> str | None:
    if call.problem is not None:
        return texts.unreadable(call)
    if not facts.known:
        return texts.unknown_tool(call.tool, facts.nearest)
    if facts.invalid is not None:
        return texts.invalid(call.tool, facts.invalid)
    return None


def _refused(call: ToolCall, text: str) -> ToolResult:
    return ToolResult(call.call_id, text, is_error=True, executed=False)


def _task(draft: Draft, call: ToolCall, facts: CallFacts, ask: Ask, waiting: Waiting) -> HITLTask:
    comment = redact(discipline.with_plan(ask, draft.transcript))
    task = HITLTask(
        call.call_id, call.tool, snapshot(call.args), comment, ask.always_rule, draft.at, facts.digest
    )
    return due(task, waiting)


def due(task: HITLTask, waiting: Waiting) -> HITLTask:
    """The task with its deadline, counted from when it is asked."""
    if waiting.deadline_s is None:
        return task
    deadline, to = task.asked_at + waiting.deadline_s, waiting.escalate_to
    return replace(task, deadline=deadline, on_deadline=waiting.action, escalate_to=to)


def ask_again(draft: Draft, item: BatchCall, facts: CallFacts, what: str, bounds: RunBounds) -> BatchCall:
    """The call waits once more: what was approved is not what would run now."""
    task = item.task
    if task is None:
        return item
    comment = texts.asked_again(task.comment, what)
    task = replace(task, comment=comment, digest=facts.digest, asked_at=draft.at)
    return replace(item, facts=facts, task=due(task, bounds.waiting), decision=None, announced=False)
