"""From a plan to the questions for a summariser, and from its answers to the new transcript."""

import msgspec
from msgspec.structs import replace

from jackstay.core.messages import Message
from jackstay.engine.compaction import ledger
from jackstay.engine.compaction.clip import clip_text, plain_marker, water_level
from jackstay.engine.compaction.plan import LEAST_GAIN, Memory, Plan, Size, size_of
from jackstay.engine.compaction.summary import (
    DROPPED,
    LEAST_BUDGET,
    LEDGER,
    Answers,
    Material,
    Section,
    SummaryJob,
    asked_of,
    made_of,
    summary_message,
)
from jackstay.engine.compaction.tokens import text_tokens
from jackstay.engine.compaction.units import Line, new_line
from jackstay.engine.ports import Artifact

FRAME = 110  # tokens of the words around the sections
THINKING_ALLOWANCE = 1_024  # real tokens that a reasoning model may spend before its answer
SHOWN_CALLS = 12
KEPT_STUBS = 5
REST_MESSAGES = 5  # a pass that gained nothing is not repeated before so many more, or a fifth of max_messages


class Summary(msgspec.Struct, frozen=True, gc=False):
    """What the strategy made of the answers."""

    sections: tuple[Section, ...]


class Compacted(msgspec.Struct, frozen=True, gc=False):
    """The outcome of a pass.

    `lines` is the new transcript; a line whose `at` is set is the unchanged message of that position. `before`
    and `after` are snapshots for the ContextSizeEvent, `limit` the model's window. `originals` must be stored
    as artifacts with the same commit. `memory` takes the place of the earlier one. `warning` says what a
    person should know. Nothing changed where `changed` is False: sending the request again would not help.
    """

    lines: tuple[Line, ...]
    before: Size
    after: Size
    limit: int
    originals: tuple[Artifact, ...]
    memory: Memory
    strategy: str | None = None
    warning: str | None = None
    changed: bool = True

    @property
    def messages(self) -> tuple[Message, ...]:
        """The messages of the new transcript."""
        return tuple(line.message for line in self.lines)


def prepare(plan: Plan, window: int | None = None) -> tuple[SummaryJob, ...]:
    """The questions to be asked for this plan, each without tools; none where nothing is to be summarised.

    `window` is the summariser's own in tokens where it is another model. When a question overflows, prepare
    again with half the window and ask the question of the same position: it holds the same in fewer words.
    """
    strategy, material = plan.params.strategy, _material(plan, window)
    if strategy is None or material is None:
        return ()
    factor = plan.memory.calibration.factor
    return tuple(
        replace(job, max_tokens=int(2 * job.max_tokens * factor) + THINKING_ALLOWANCE)
        for job in asked_of(strategy, material)
    )


def finish(plan: Plan, answers: Answers) -> Summary | None:
    """The summary from one answer for each job (None where it failed for good); None when there is none."""
    strategy, material = plan.params.strategy, _material(plan, None)
    if strategy is None or material is None:
        return None
    sections = made_of(strategy, material, answers)
    return None if sections is None else Summary(sections)


def apply(plan: Plan, summary: Summary | None) -> Compacted:
    """The new transcript, with the summary or with a stub that says what was dropped and where it is."""
    lines = (*plan.head, *_summary_line(plan, summary), *plan.tail)
    after = size_of(lines, plan)
    changed = len(lines) != plan.before.messages or any(line.at is None for line in lines)
    return Compacted(
        lines=lines,
        before=plan.before,
        after=after if changed else plan.before,
        limit=plan.room.limit,
        originals=plan.originals,
        memory=_rested(plan, after, changed=changed),
        strategy=getattr(plan.params.strategy, "name", None) if summary is not None else None,
        warning=_warning(plan, summary, after),
        changed=changed,
    )


def _material(plan: Plan, window: int | None) -> Material | None:
    """What the strategy works on; None when there is nothing for it or no room for a summary."""
    told = tuple(message for message in plan.expired if message.note is None)
    budget = (plan.budget - FRAME) * 2 // 3
    if not told or budget < LEAST_BUDGET:
        return None
    room = int((window or plan.room.limit) * 0.9 / plan.memory.calibration.factor) - THINKING_ALLOWANCE
    return Material(told, plan.previous, budget, max(256, room))


def _summary_line(plan: Plan, summary: Summary | None) -> tuple[Line, ...]:
    if not plan.expired and not plan.previous:
        return ()
    new = summary.sections if summary is not None else ()
    titles = {section.title for section in new} | {LEDGER, DROPPED}
    carried = [section for section in plan.previous if section.title not in titles]
    stub = Section(DROPPED, _stub(plan, dropped=summary is None))
    earlier = next((section.text for section in plan.previous if section.title == LEDGER), "")
    done = ledger.record(ledger.read(earlier), plan.expired, plan.events)
    work = Section(LEDGER, ledger.render(done, max(0, (plan.budget - FRAME) // 3)))
    sections = [section for section in (*carried, *new, stub, work) if section.text]
    if not sections:
        return ()
    room = max(plan.budget - FRAME, LEAST_BUDGET)
    level = water_level([text_tokens(section.text) for section in sections], room)
    fitted = [replace(one, text=clip_text(one.text, max(level, 16), plain_marker)) for one in sections]
    return (new_line(summary_message(fitted)),)


def _stub(plan: Plan, *, dropped: bool) -> str:
    """What went without a summary, the latest last."""
    earlier = next((one.text for one in plan.previous if one.title == DROPPED), "").splitlines()
    told = [message for message in plan.expired if message.note is None]
    if dropped and told:
        calls = [f"{call.call_id} ({call.tool[:40]})" for message in told for call in message.calls]
        shown = ", ".join(calls[-SHOWN_CALLS:])
        more = f" and {len(calls) - SHOWN_CALLS} earlier ones" if len(calls) > SHOWN_CALLS else ""
        how = f"; their results are stored: recall(call_id, offset) reads them: {shown}{more}" if calls else ""
        earlier.append(f"- {len(told)} older messages with {len(calls)} calls{how}")
    return "\n".join(earlier[-KEPT_STUBS:])


def _rested(plan: Plan, after: Size, *, changed: bool) -> Memory:
    """The memory for the next turn; it waits for growth where this pass could not get below the marks."""
    params = plan.params
    calibration = plan.memory.calibration.stale if changed else plan.memory.calibration
    memory = Memory(calibration, plan.memory.window)
    threshold = params.threshold(plan.room.limit)
    if not plan.futile and not params.starts(after.tokens, after.unpinned, threshold):
        return memory
    return replace(
        memory,
        rest_tokens=after.tokens + max(1, int(threshold * LEAST_GAIN)),
        rest_messages=after.unpinned + max(REST_MESSAGES, params.max_messages // REST_MESSAGES),
    )


def _warning(plan: Plan, summary: Summary | None, after: Size) -> str | None:
    if plan.futile:
        return (
            f"The context of {plan.before.tokens} tokens in {plan.before.messages} messages could not be made "
            "smaller to any purpose: what is left must stay. Start a new session, or use a model with a larger "
            "window."
        )
    told = sum(message.note is None for message in plan.expired)
    if told and summary is None and plan.params.strategy is not None:
        return f"No summary could be had: {told} older messages left the context with a stub in their place."
    if plan.expired and after.tokens > plan.before.tokens * (1 - LEAST_GAIN):
        return f"A compression gained little: {plan.before.tokens} to {after.tokens} tokens."
    return None
