"""How does a stored session read, from the first prompt to where it stands now?"""

from collections.abc import Iterable, Iterator

from jackstay.cli.ages import clock
from jackstay.cli.plain import args_text, safe, shown
from jackstay.cli.screen import gate_text
from jackstay.cli.waiting import task_lines
from jackstay.core import events as ev
from jackstay.core.state import RunState
from jackstay.policy.secrets import redact
from jackstay.policy.subject import tasks_in
from jackstay.runtime.below import child_id

RESULT_LINES = 12


def transcript_lines(state: RunState, events: Iterable[ev.Event]) -> Iterator[str]:
    """The session in lines: prompts, words, calls with their results, approvals, phases, gates, outcomes."""
    told = list(events)
    prompts = _prompts(state, told)
    for event in told:
        match event:
            case ev.RunStartEvent(resumed=False):
                yield from ("", f"── run {event.run_id} · {clock(event.at)} ──")
                yield from _block("user", next(prompts))
            case ev.RunStartEvent():
                yield f"── resumed · {clock(event.at)} ──"
            case ev.ReasonEndEvent():
                yield from _answer(event)
            case ev.ToolCallEndEvent():
                yield from _call(event)
            case ev.HITLPendingEvent():
                for task in event.pending_tasks:
                    first, *rest = task_lines(task)
                    yield from (f"waits: {first}", *(f"  {line}" for line in rest))
            case ev.RunEndEvent():
                yield from _end(event)
            case _:
                yield from _rest(event)


def _prompts(state: RunState, told: list[ev.Event]) -> Iterator[str]:
    """The users' words, one per run; compaction may have taken the oldest, so they are counted from the end."""
    begun = sum(isinstance(event, ev.RunStartEvent) and not event.resumed for event in told)
    said = [
        redact(message.text) for message in state.transcript if message.role == "user" and message.note is None
    ]
    kept = said[-begun:] if begun else []
    yield from [*[""] * (begun - len(kept)), *kept]


def _block(who: str, text: str) -> Iterator[str]:
    lines = safe(text).splitlines() or ["(no longer kept)"]
    yield f"{who}: {lines[0]}"
    yield from (f"  {line}" for line in lines[1:])


def _answer(event: ev.ReasonEndEvent) -> Iterator[str]:
    if event.text:
        yield from _block("assistant", event.text)
    if event.error is not None:
        yield f"the model failed: {safe(event.error.message)}"


def _call(event: ev.ToolCallEndEvent) -> Iterator[str]:
    yield f"→ {shown(event.tool_name)}  {shown(args_text(event.args))}"
    how = {True: f"{event.duration_ms / 1000:.1f} s", False: "not run", None: "may have run"}[event.executed]
    lines = safe(event.text).splitlines()
    yield f"  {'failed' if event.is_error else 'ok'} ({how})"
    if event.tool_name in ("task", "multitask") and event.executed is not False:
        for index in range(len(tasks_in(event.args) or ())):
            yield f"  subagent's session: {child_id(event.session_id, event.run_id, event.call_id, index)}"
    yield from (f"    {line}" for line in lines[:RESULT_LINES])
    if len(lines) > RESULT_LINES:
        yield f"    … {len(lines) - RESULT_LINES} more lines"


def _end(event: ev.RunEndEvent) -> Iterator[str]:
    usage = event.usage
    cost = f", ${usage.cost:.4f}" if usage.cost else ""
    yield f"── {event.outcome} · {usage.total_tokens:,} tokens{cost} · {clock(event.at)} ──"
    if event.error is not None:
        yield f"  {safe(event.error.message)}"


def _rest(event: ev.Event) -> Iterator[str]:
    match event:
        case ev.HITLDecidedEvent():
            remark = f": {safe(event.comment)}" if event.comment else ""
            by = f" by {safe(event.decision.by)}" if event.decision.by else ""
            yield f"{_SAID[event.decision.kind]}{by}: {event.call_id} ({shown(event.tool_name)}){remark}"
        case ev.PhaseChangedEvent():
            yield f"phase: {event.before} → {event.after} ({safe(event.why)})"
        case ev.GateBlockedEvent():
            yield f"refused by {gate_text(event.gate)}: {shown(event.tool_name)}: {safe(event.reason)}"
        case ev.RuleAddedEvent():
            yield f"rule added by {safe(event.by)}: {shown(event.rule)}"
        case ev.WarningEvent():
            yield f"warning: {safe(event.text)}"
        case ev.LoopDetectedEvent():
            yield f"loop: {safe(event.text)}"
        case ev.BackupTakenEvent():
            yield f"backup {event.backup_id}: {shown(event.path)}"
        case ev.ErrorEvent():
            yield f"error: {safe(event.error.message)}"


_SAID = {"approve": "approved", "reject": "rejected", "skip": "skipped"}
