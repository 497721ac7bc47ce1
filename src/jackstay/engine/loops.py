"""What happens when an agent goes round in circles? It is told so; further rungs are switched on by name."""

from collections.abc import Sequence

from msgspec.structs import replace

from jackstay.core.events import LoopDetectedEvent
from jackstay.core.loops import LoopWindow
from jackstay.core.messages import note
from jackstay.core.state import BatchCall
from jackstay.engine.bounds import RunBounds
from jackstay.engine.draft import Draft
from jackstay.policy.loops import Done, LoopFinding, notice, notice_text

NOTHING_SEEN = LoopWindow()


def forget(draft: Draft) -> None:
    """A person has spoken: what went round before is no loop of the new run, and nothing is held for it."""
    policy = draft.state.policy
    if policy.held or policy.loop != NOTHING_SEEN:
        draft.set(policy=replace(policy, loop=NOTHING_SEEN, held=""))


def end_batch(draft: Draft, calls: Sequence[BatchCall], bounds: RunBounds) -> None:
    """Part with the batch, its finished calls weighed; a loop is told to the model behind the observations."""
    draft.batch = None
    if bounds.loops is None:
        return
    done: list[Done] = []
    for item in calls:
        call, result, edits = item.call, item.result, False
        if result is not None:
            for path in item.facts.paths:
                edits = edits or path.changes
            done.append(Done(call.tool, call.args, result.text, result.is_error, edits))
    policy = draft.state.policy
    window, finding = notice(policy.loop, done, bounds.loops)
    draft.state = replace(draft.state, policy=replace(policy, loop=window, held=""))
    if finding is not None:
        _tell(draft, finding)


def after_words(draft: Draft, text: str, bounds: RunBounds) -> None:
    """Weigh a reply without calls."""
    if bounds.loops is None:
        return
    policy = draft.state.policy
    window, finding = notice_text(policy.loop, text, bounds.loops)
    draft.set(policy=replace(policy, loop=window))
    if finding is not None:
        _tell(draft, finding)


def _tell(draft: Draft, finding: LoopFinding) -> None:
    draft.tell(LoopDetectedEvent, finding.kind, finding.count, finding.text)
    if finding.rung == "stop":
        draft.end("stopped", finding.text)
        return
    draft.say(note("loop", finding.text))
    if finding.rung == "ask":
        draft.set(policy=replace(draft.state.policy, held=finding.text))
