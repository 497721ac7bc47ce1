"""What does the state have to remember of a call that ran, or may have?"""

from msgspec.structs import replace

from jackstay.core.messages import ToolCall, ToolResult
from jackstay.core.phase import Phase, PhaseState
from jackstay.policy import anchor as anchors
from jackstay.policy.deeds import Deed
from jackstay.policy.gates import Case, Kind
from jackstay.policy.moves import bounded

MAX_CHANGED, MAX_UNVERIFIED, MAX_REPLACED = 200, 50, 5
TODO_TOOLS = frozenset({"todo", "todowrite"})


def recorded(phase: PhaseState, case: Case, result: ToolResult) -> PhaseState:
    """The phase state after the call; only calls that ran, or may have run, come here."""
    call, facts, deed, kind = case.call, case.facts, case.deed, case.kind
    ok = not result.is_error and result.executed is True
    if kind is Kind.HARNESS:
        put = ok and call.tool in TODO_TOOLS and phase.phase is Phase.PLANNING and bool(call.args.get("todos"))
        return replace(phase, proposed=True) if put else phase
    if kind in (Kind.READ, Kind.REMOTE_READ, Kind.CREDENTIAL):
        if not ok:
            return phase
        seen = tuple(path for path in phase.unverified if path not in deed.reads)
        looked = phase.looked or kind is not Kind.CREDENTIAL
        return (
            phase
            if looked == phase.looked and seen == phase.unverified
            else replace(phase, looked=looked, unverified=seen)
        )
    phase = replace(phase, acted=True, snapshot=phase.snapshot or facts.snapshot)
    if deed.unbounded and ok and not deed.targets:
        phase = replace(phase, unverified=())  # a test run, a build: it has looked at what was changed
    return _changed(phase, call, deed) if deed.targets else phase


def _changed(phase: PhaseState, call: ToolCall, deed: Deed) -> PhaseState:
    old = call.args.get("old_string")
    replaced = phase.replaced
    if isinstance(old, str) and old.strip():
        replaced = bounded(replaced, (anchors.clean(old, 60),), MAX_REPLACED)
    unverified = bounded(phase.unverified, deed.targets, MAX_UNVERIFIED)
    return replace(with_changed(phase, deed.targets), unverified=unverified, replaced=replaced)


def with_changed(phase: PhaseState, paths: tuple[str, ...], more: int = 0) -> PhaseState:
    """These files are changed too; beyond the bound they are only counted."""
    known = set(phase.changed)
    fresh = tuple(path for path in paths if path not in known)
    room = max(0, MAX_CHANGED - len(phase.changed))
    beyond = phase.changed_more + len(fresh[room:]) + more
    return replace(phase, changed=(*phase.changed, *fresh[:room]), changed_more=beyond)
