"""What does a run take over from its subagents, and what may they spend?"""

from msgspec.structs import replace

from jackstay.core.inputs import Below
from jackstay.core.state import Budget, RunState
from jackstay.engine.bounds import RunBounds
from jackstay.engine.draft import Draft
from jackstay.policy import sessions
from jackstay.policy.loops import after_below


def take_in(draft: Draft, below: Below, bounds: RunBounds) -> None:
    """Keep what they have changed; once none of them waits, also what they have used and repeated."""
    policy = draft.state.policy
    for one in below.policies:
        policy = sessions.absorb(policy, one)
    if not below.waiting:
        draft.set(usage=draft.state.usage.plus(below.usage))
        if bounds.loops is not None:
            ends = [one.loop for one in below.policies]
            policy = replace(policy, loop=after_below(policy.loop, ends, bounds.loops))
    draft.set(policy=policy)


def budget(above: Budget, spent: RunState, *, own_turns: int | None, shares: int, known: RunState) -> Budget:
    """What a subagent may spend: of what its parent's run has left, when `shares` of them work side by side.

    `known` is its own state so far: its time is in its parent's already, its tokens are not yet.
    """
    turns = max(1, above.max_turns - spent.turn)
    tokens, cost, seconds = above.max_tokens, above.max_cost, above.max_seconds
    return Budget(
        max_turns=min(own_turns or above.max_turns, turns),
        max_tokens=None if tokens is None else max(1, (tokens - spent.usage.total_tokens) // shares),
        max_cost=None if cost is None else max(0.0, cost - spent.usage.cost) / shares,
        max_seconds=None if seconds is None else max(0.0, seconds - spent.active_s) + known.active_s,
    )
