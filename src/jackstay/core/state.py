"""Everything a run has to remember, as one value."""

from typing import Literal

import msgspec

from jackstay.core.anchor import Anchor
from jackstay.core.approvals import HITLDecision, HITLTask, Waiting
from jackstay.core.context import Memory
from jackstay.core.errors import ErrorInfo
from jackstay.core.events import Outcome
from jackstay.core.facts import CallFacts
from jackstay.core.loops import LoopWindow
from jackstay.core.messages import NO_USAGE, JsonObject, ToolCall, ToolResult, Usage
from jackstay.core.phase import Language, Mode, PhaseState
from jackstay.core.rules import PermissionRule
from jackstay.core.transcript import Transcript

SCHEMA = 1

PermissionDefault = Literal["seed", "workspace"]
CallStatus = Literal["reserved", "started", "finished"]


class BatchCall(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """One call of the current batch and how far it has come (the effect ledger: reserved, started, finished).

    `call` holds the effective arguments. `refusal` is the observation of a call that must not run,
    `gate` the rule or gate that refused it, `why` in its words. `announced`: its decision was told and has
    taken effect; a resume after a crash must not do that again. `below` are its subagents' calls
    that wait.
    """

    call: ToolCall
    facts: CallFacts = CallFacts()
    status: CallStatus = "reserved"
    task: HITLTask | None = None
    decision: HITLDecision | None = None
    refusal: ToolResult | None = None
    gate: str | None = None
    result: ToolResult | None = None
    why: str = ""
    announced: bool = False
    below: tuple[HITLTask, ...] = ()


class Batch(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """The calls of one reply. `told` counts the leading calls whose results stand in the transcript already."""

    calls: tuple[BatchCall, ...]
    started: bool = False
    told: int = 0
    ran: bool = False

    @property
    def waiting(self) -> tuple[HITLTask, ...]:
        """The tasks nobody has decided yet, those of subagents among them."""
        found: list[HITLTask] = []
        for item in self.calls:
            if item.below:
                found += item.below
            elif item.task is not None and item.decision is None and item.result is None:
                found.append(item.task)
        return tuple(found)


class Budget(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """What a run may spend: model turns, tokens, US dollars, seconds of its own time (people's not counted)."""

    max_turns: int = 20
    max_tokens: int | None = None
    max_cost: float | None = None
    max_seconds: float | None = None


class Bounds(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """The switches of the engine as a run sees them; every one may change between two inputs.

    `hitl` means that a person can be asked, `waiting` for how long, `grants` that "always allow" adds a rule to
    the session. `rules` are the engine's; a session's own are in its state. `narrowing` are further sets of
    rules, a subagent's own and those of the agents above it: none of them may object to a call.
    """

    budget: Budget = Budget()
    hitl: bool = False
    waiting: Waiting = Waiting()
    grants: bool = True
    auto_rethink: bool = True
    rules: tuple[PermissionRule, ...] = ()
    narrowing: tuple[tuple[PermissionRule, ...], ...] = ()
    permission_default: PermissionDefault = "seed"
    workspace: str = ""


class PolicyState(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """What policy remembers of a session.

    `loop` is what loop detection has seen, `held` why the next calls wait for a person because of it. `mode` is
    how strictly the discipline holds; `language` is the one its user writes in, "" until shown.
    """

    phase: PhaseState = PhaseState()
    rules: tuple[PermissionRule, ...] = ()
    held: str = ""
    mode: Mode = "off"
    language: Language = ""
    # From here on: what moves with every step (core.progress).
    loop: LoopWindow = LoopWindow()
    anchor: Anchor = Anchor()


class Parent(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """Whose subagent works in a session: the session and run it helps, and the call that handed the work on.

    `depth` counts the sessions above it.
    """

    session_id: str
    run_id: str
    call_id: str
    depth: int = 1


class RunState(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """A session with its current or last run.

    `outcome` is None while the run is under way or was interrupted. `reasoning` means that the model has been
    asked and has not answered; `closing_turn` that this is the last turn, to sum up. `nudges` counts how often
    the model was sent back to the closing checklist. `seq` numbers the last stored event. `active_s` is the
    run's own time so far. `settings` is the recipe that another process needs to go on: model, tools, switches.

    `overflows` counts how often this turn's request was too long, `overflow_limit` is the window that the model
    named. `memory` is what compression knows, `compacted_at` the seq of its last pass; `recallable` tells that
    something was cut out and can be read back. `notes` were said with the request that is under way. `rows`
    counts the message rows that the store has; `view` names those that make up the transcript, as (from, to)
    pairs with -1 for "to the end"; empty means all of them. `parent` is whose subagent works here.
    """

    session_id: str
    run_id: str = ""
    agent: str = "main"
    schema: int = SCHEMA
    outcome: Outcome | None = None
    text: str = ""
    error: ErrorInfo | None = None
    closing_turn: bool = False
    overflows: int = 0
    overflow_limit: int | None = None
    compacted_at: int = 0
    recallable: bool = False
    nudges: int = 0
    settings: JsonObject = {}
    view: tuple[tuple[int, int], ...] = ()
    parent: Parent | None = None
    # From here on: what moves with every step (core.progress).
    seq: int = 0
    turn: int = 0
    calls_made: int = 0
    rows: int = 0
    active_s: float = 0.0
    reasoning: bool = False
    usage: Usage = NO_USAGE
    batch: Batch | None = None
    memory: Memory = Memory()
    notes: tuple[str, ...] = ()
    policy: PolicyState = PolicyState()
    transcript: Transcript = msgspec.field(default_factory=Transcript)

    @property
    def is_pending(self) -> bool:
        """Does a batch wait for a person?"""
        return self.outcome == "pending"

    @property
    def is_open(self) -> bool:
        """Is there a run that has not ended: under way, interrupted, or waiting?"""
        return not self.is_new and (self.outcome is None or self.is_pending)

    @property
    def is_new(self) -> bool:
        """Has nothing ever run here?"""
        return not self.run_id
