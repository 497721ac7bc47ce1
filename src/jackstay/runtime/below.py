"""Where do the subagents of a session work, and what of theirs waits for a person?"""

from collections.abc import Iterable, Iterator
from hashlib import sha256

from msgspec.structs import replace

from jackstay.core.approvals import HITLTask
from jackstay.core.inputs import Below
from jackstay.core.messages import NO_USAGE, ToolCall
from jackstay.core.state import RunState
from jackstay.engine.ports import SessionStore
from jackstay.policy.subject import tasks_in

NAME_CHARS, MARK = 117, 10  # together, with the dot between them, what a session id may have


def child_id(session_id: str, run_id: str, call_id: str, index: int) -> str:
    """The session of a call's subagent: always the same one, so that whoever goes on after a crash finds it."""
    mark = sha256("\0".join((session_id, run_id, call_id, str(index))).encode()).hexdigest()
    return f"{session_id[:NAME_CHARS].rstrip('.')}.{mark[:MARK]}"


def open_calls(state: RunState) -> Iterator[ToolCall]:
    """The calls whose subagents may be at work."""
    for item in state.batch.calls if state.batch is not None else ():
        if item.facts.spawns and item.status == "started" and item.result is None:
            yield item.call


def children(store: SessionStore, state: RunState) -> Iterator[RunState]:
    """The stored heads of the subagents of a session that may be at work."""
    for call in open_calls(state):
        yield from children_of(store, state, call)


def children_of(store: SessionStore, state: RunState, call: ToolCall) -> Iterator[RunState]:
    """The stored heads of a call's subagents."""
    for index in range(len(tasks_in(call.args) or ())):
        found = store.head(child_id(state.session_id, state.run_id, call.call_id, index))
        if found is not None and found.state.parent is not None:
            yield found.state


def family(store: SessionStore, state: RunState) -> Iterator[RunState]:
    """The stored states, with messages, of all subagents of a session's run, through or not, however deep."""
    for message in state.transcript:
        for call in message.calls:
            for one in children_of(store, state, call):
                stored = store.load(one.session_id)
                if stored is not None:
                    yield stored.state
                    yield from family(store, stored.state)


def sum_of(states: Iterable[RunState]) -> Below:
    """How far these subagents have come, as their parent takes it in."""
    found = list(states)
    usage = NO_USAGE
    for state in found:
        usage = usage.plus(state.usage)
    waiting = tuple(task for state in found for task in waiting_in(state))
    return Below(tuple(state.policy for state in found), usage, waiting)


def waiting_in(state: RunState) -> tuple[HITLTask, ...]:
    """A subagent's calls that wait, as its parent names them."""
    if state.batch is None or not state.is_pending:
        return ()
    path = state.session_id
    return tuple(replace(task, path=(path, *task.path)) for task in state.batch.waiting)


def still_waits(store: SessionStore, task: HITLTask) -> bool:
    """Does a subagent's call still wait, with no decision posted about it?"""
    session_id = task.path[-1]
    found = store.head(session_id)
    if found is None or found.state.batch is None or not found.state.is_pending:
        return False
    if not any(one.call_id == task.call_id and not one.path for one in found.state.batch.waiting):
        return False
    return all(item.key != task.call_id for item in store.inbox(session_id))


def undecided(store: SessionStore, state: RunState, now: float) -> dict[str, tuple[HITLTask, ...]]:
    """The calls of subagents that no person and no deadline has decided, by the call they work for."""
    found: dict[str, tuple[HITLTask, ...]] = {}
    for call in open_calls(state):
        tasks = [task for one in children_of(store, state, call) for task in waiting_in(one)]
        left = tuple(task for task in tasks if still_waits(store, task) and not is_due(task, now))
        if left:
            found[call.call_id] = left
    return found


def is_due(task: HITLTask, now: float) -> bool:
    """Has its deadline passed, so that it is decided when somebody goes on?"""
    return task.deadline is not None and task.on_deadline != "keep" and now > task.deadline
