"""What may a call do in which phase? One table: phase × kind of call → answer."""

from enum import StrEnum
from typing import Literal

from msgspec import Struct

from jackstay.core.facts import CallFacts
from jackstay.core.messages import ToolCall
from jackstay.core.phase import Phase
from jackstay.policy.checklist import Item
from jackstay.policy.deeds import Deed, deed_of
from jackstay.policy.globs import matches
from jackstay.policy.remote import Remote

Strength = Literal["none", "hard", "social", "reminder", "checklist"]
Answer = Literal["allow", "ask", "deny", "backup", "opened", "returns_to"]

SET_PHASE, CLOSURE_CHECK, ANCHOR_SET = "discipline_set_phase", "closure_check", "anchor_set"

OWN_TOOLS = frozenset({SET_PHASE, CLOSURE_CHECK, ANCHOR_SET})
"""The harness's own tools; they judge themselves."""

BESIDE_THE_WORK = frozenset({"todo", "todoread", "todowrite", "clarify", "task", "multitask"})
"""Lists of what is to be done, questions, and work for subagents, whose own calls are judged one by one: no
research either, as long as they declare no effects."""


class Kind(StrEnum):
    """What a call is in the eyes of the gates."""

    HARNESS = "harness"  # phase, checklist, anchor, todo list, a question
    READ = "read"  # shown to change nothing, no secrets
    WRITE = "write"  # writes or deletes named targets
    EXECUTE = "execute"  # runs something whose changes nobody can name; also whatever could not be read
    CREDENTIAL = "credential"  # reads or uses secrets
    STORE = "store"  # writes to a credential store
    REMOTE_READ = "remote read"  # every inner command is shown to be read-only
    REMOTE_EFFECT = "remote effect"  # an inner command that is not, or a copy of files
    REMOTE_OPEN = "remote open"  # nobody can tell what will be done there


class Gate(Struct, frozen=True, gc=False):
    """A gate: its name, how strongly it holds, and its answer to every kind of call.

    `backup` allows once every target is backed up; `opened` allows just what an open closing item needs;
    `returns_to` is the answer of the phase that a temporary one goes back to.
    """

    name: str
    strength: Strength
    answers: dict[Kind, Answer]


K = Kind
_READS: dict[Kind, Answer] = {K.HARNESS: "allow", K.READ: "allow"}


def _rest(answer: Answer, **others: Answer) -> dict[Kind, Answer]:
    rest: dict[Kind, Answer] = dict.fromkeys(Kind, answer)
    rest.update(_READS)
    rest.update({Kind[name.upper()]: said for name, said in others.items()})
    return rest


GATES: dict[Phase, Gate] = {
    Phase.NO_TASK: Gate("start", "none", _rest("deny")),
    Phase.TASK_STARTED: Gate("research", "hard", _rest("deny", credential="allow", remote_read="allow")),
    Phase.PLANNING: Gate("proposal", "social", _rest("ask", credential="allow", remote_read="allow")),
    Phase.EXECUTING: Gate("reminder", "reminder", _rest("backup", remote_open="ask")),
    Phase.MODIFYING: Gate("modify", "hard", _rest("backup", remote_open="ask")),
    Phase.ACCESSING_DEVICE: Gate(
        "device",
        "hard",
        _rest("deny", credential="allow", store="returns_to", remote_read="allow", remote_effect="returns_to",
              remote_open="returns_to"),
    ),
    Phase.CLOSING: Gate(
        "closure", "checklist", _rest("deny", write="opened", execute="opened", remote_read="allow",
                                      remote_effect="opened")
    ),
}  # fmt: skip


def kind_of(tool: str, deed: Deed) -> Kind:
    """The one kind a call belongs to: the most restrictive of what it would do."""
    if tool in OWN_TOOLS or (tool in BESIDE_THE_WORK and deed.reads_only):
        return Kind.HARNESS
    if deed.remotes:
        return _remote_kind(deed)
    if deed.unbounded:
        return Kind.EXECUTE
    if deed.stores:
        return Kind.STORE
    if deed.targets:
        return Kind.WRITE
    if deed.credentials:
        return Kind.CREDENTIAL
    return Kind.READ if deed.reads_only else Kind.EXECUTE


class Case(Struct, frozen=True, gc=False):
    """A call to be judged, looked at once."""

    call: ToolCall
    facts: CallFacts
    deed: Deed
    kind: Kind


def case_of(call: ToolCall, facts: CallFacts) -> Case:
    """The call with what it would do and the kind that makes it."""
    deed = deed_of(call, facts)
    return Case(call, facts, deed, kind_of(call.tool, deed))


def _remote_kind(deed: Deed) -> Kind:
    if deed.unbounded or deed.targets or any(_changes(remote) for remote in deed.remotes):
        return Kind.REMOTE_EFFECT
    if any(remote.inner is None for remote in deed.remotes):
        return Kind.REMOTE_OPEN
    return Kind.REMOTE_READ


def _changes(remote: Remote) -> bool:
    return remote.transfer or (remote.inner is not None and not remote.reads_only)


def answer(phase: Phase, kind: Kind, returns_to: Phase | None = None) -> Answer:
    """The table's answer; for a temporary phase that defers, the one of the phase it returns to."""
    said = GATES[phase].answers[kind]
    if said != "returns_to":
        return said
    before = returns_to or Phase.TASK_STARTED
    return GATES[before].answers[kind] if before is not phase else "deny"


def opened(
    deed: Deed, tool: str, *, items: tuple[Item, ...], left: tuple[str, ...], found: frozenset[str]
) -> bool:
    """Does an open closing item need exactly this call? `found` are the subjects of the open findings."""
    if deed.stops and not deed.targets:
        return all(stop in found for stop in deed.stops)
    open_items = [item for item in items if item.id in left]
    if any(tool in item.opens_tools for item in open_items):
        return True
    if not deed.targets or deed.unbounded or deed.remotes:
        return False
    patterns = tuple(pattern for item in open_items for pattern in item.opens_paths)
    return all(
        target in found or any(matches(pattern, target) for pattern in patterns) for target in deed.targets
    )
