"""When is the model asked again, and what are its calls named?"""

from msgspec.structs import replace

from jackstay.core.effects import CallModel
from jackstay.core.events import ReasonStartEvent
from jackstay.core.ids import is_call_id
from jackstay.core.messages import Message, Part, ToolCall
from jackstay.core.state import RunState
from jackstay.engine import context, discipline, texts
from jackstay.engine.bounds import RunBounds
from jackstay.engine.draft import Draft

UNIQUE_CHARS = 9  # the shortest id that providers draw at random


def next_turn(draft: Draft, bounds: RunBounds) -> None:
    """Ask the model once more; when the budget is spent, for the last time and without tools."""
    if draft.state.outcome is None and context.ready(draft, bounds):
        ask(draft, bounds)


def ask(draft: Draft, bounds: RunBounds) -> None:
    """Begin the turn: the context fits."""
    state = draft.state
    spent = spent_limit(draft, bounds)
    turn = state.turn + 1
    notes: tuple[str, ...] = ()
    if spent is not None:
        notes = (texts.SUM_UP,)
    elif bounds.auto_rethink and turn == bounds.budget.max_turns and turn > 1:
        notes = (texts.RETHINK,)
    if state.policy.mode != "off":
        notes = (*discipline.guide(draft, bounds), *notes)
    last = spent is not None
    draft.state = replace(draft.state, turn=turn, reasoning=True, closing_turn=last, notes=notes)
    draft.tell(ReasonStartEvent, turn)
    draft.effects.append(CallModel(turn, last, notes))


def spent_limit(draft: Draft, bounds: RunBounds) -> str | None:
    """Which part of the budget is used up; None while the run may go on. Waiting for people is not counted."""
    budget = bounds.budget
    if draft.state.turn >= budget.max_turns:
        return f"{budget.max_turns} turns"
    return spent_means(draft, bounds)


def spent_means(draft: Draft, bounds: RunBounds) -> str | None:
    budget, usage = bounds.budget, draft.state.usage
    if budget.max_tokens is not None and usage.total_tokens >= budget.max_tokens:
        return f"{budget.max_tokens} tokens"
    if budget.max_cost is not None and usage.cost >= budget.max_cost:
        return f"{budget.max_cost} US dollars"
    if budget.max_seconds is not None and draft.active_s >= budget.max_seconds:
        return f"{budget.max_seconds} seconds"
    return None


def name_calls(state: RunState, message: Message) -> Message:
    """The message with call ids that are well-formed and new to this session; providers repeat or omit them.

    Once calls have left the context, a short id (a provider that counts) may be that of one of them: what the
    session stored under it must stay the old call's.
    """
    seen: set[str] = set()
    renamed: dict[int, str] = {}
    for index, part in enumerate(message.parts):
        if type(part) is not ToolCall:
            continue
        name = part.call_id
        forgotten = state.view and len(name) < UNIQUE_CHARS
        if not is_call_id(name) or name in seen or forgotten or state.transcript.call(name) is not None:
            name = renamed[index] = _fresh(state, seen, len(seen) + 1)
        seen.add(name)
    if not renamed:
        return message
    parts: list[Part] = list(message.parts)
    for index, name in renamed.items():
        part = parts[index]
        if isinstance(part, ToolCall):
            parts[index] = replace(part, call_id=name)
    return replace(message, parts=tuple(parts))


def _fresh(state: RunState, seen: set[str], offset: int) -> str:
    number, mark = state.calls_made + offset, "-" if state.view else "_"
    while (name := f"call{mark}{number}") in seen or state.transcript.call(name) is not None:
        number += 1
    return name
