"""Builders for the discipline's tests: states, calls of every kind, results."""

from jackstay.core.facts import CallFacts, PathFact
from jackstay.core.messages import ToolCall, ToolResult
from jackstay.core.phase import Phase, PhaseState, Tick
from jackstay.core.state import PolicyState
from jackstay.core.tools import ALL_EFFECTS, READS
from jackstay.policy.checklist import SEVEN, required_ids
from jackstay.policy.gates import Kind

REQUIRED = required_ids(SEVEN)
WRITES = frozenset({"reads", "writes"})
OK = ToolResult("c", "done")
FAILED = ToolResult("c", "exit 1", is_error=True)
BLOCKED = ToolResult("c", "Research Gate", is_error=True, executed=False)
UNKNOWN = ToolResult("c", "may have run", is_error=True, executed=None)

Act = tuple[ToolCall, CallFacts]


def at(
    phase: Phase,
    returns_to: Phase | None = None,
    *,
    mode: str = "strict",
    language: str = "en",
    **flags: object,
) -> PolicyState:
    """A session in a phase."""
    if phase.kind == "temporary" and returns_to is None:
        returns_to = Phase.EXECUTING
    if phase is Phase.CLOSING:
        flags.setdefault("required", REQUIRED)
    return PolicyState(PhaseState(phase, returns_to, **flags), mode=mode, language=language)  # type: ignore[arg-type]  # builder


def reading(path: str = "/w/a.py") -> Act:
    """A look at a file."""
    return ToolCall("c", "read", {"file_path": path}), CallFacts(effects=READS, paths=(PathFact(path, path),))


def writing(
    path: str = "/w/a.py", *, backup: str = "taken", tool: str = "write", problem: str = "", **args: object
) -> Act:
    """A write to a named file."""
    facts = CallFacts(
        effects=WRITES, paths=(PathFact(path, path, "writes", True),), backup=backup, backup_problem=problem
    )  # type: ignore[arg-type]  # builder
    return ToolCall("c", tool, {"file_path": path, **args}), facts


def running(
    command: str = "make test",
    *,
    backup: str = "none",
    snapshot: bool = False,
    paths: tuple[PathFact, ...] = (),
) -> Act:
    """A shell command."""
    facts = CallFacts(command_arg="command", backup=backup, snapshot=snapshot, paths=paths)  # type: ignore[arg-type]  # builder
    return ToolCall("c", "bash", {"command": command}), facts


def unknown(tool: str = "mcp_thing") -> Act:
    """A tool that did not say what it does."""
    return ToolCall("c", tool, {}), CallFacts(effects=ALL_EFFECTS)


def own(tool: str, **args: object) -> Act:
    """One of the harness's own tools."""
    return ToolCall("c", tool, args), CallFacts(effects=READS)


# One call of every kind.
KINDS: dict[Kind, Act] = {
    Kind.HARNESS: own("todo", todos=["a"]),
    Kind.READ: reading(),
    Kind.WRITE: writing(),
    Kind.EXECUTE: running("make test"),
    Kind.CREDENTIAL: running("pass show db"),
    Kind.STORE: running("pass insert db"),
    Kind.REMOTE_READ: running("ssh box uptime"),
    Kind.REMOTE_EFFECT: running("ssh box 'systemctl restart nginx'"),
    Kind.REMOTE_OPEN: running("ssh box"),
}


def ticks(*but: str) -> tuple[Tick, ...]:
    """Every required item ticked, but these."""
    return tuple(Tick(item, "looked at it all") for item in REQUIRED if item not in but)
