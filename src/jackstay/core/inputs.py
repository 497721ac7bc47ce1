"""What can happen to a run. Every input carries its time, so that the run machine needs no clock."""

import msgspec

from jackstay.core.approvals import HITLDecision, HITLTask
from jackstay.core.effects import SummaryJob
from jackstay.core.errors import ErrorInfo
from jackstay.core.events import Event
from jackstay.core.facts import CallFacts
from jackstay.core.messages import NO_USAGE, JsonObject, Message, Part, ToolCall, ToolResult, Usage
from jackstay.core.state import PolicyState

StopReason = str


class Command(msgspec.Struct, frozen=True, gc=False):
    """What a person commands from outside a run: `approve_plan`, `force_phase`, `let_stay`, `cancel`."""

    name: str
    by: str
    detail: JsonObject = {}


class Below(msgspec.Struct, frozen=True, gc=False):
    """How far the subagents of a call have come: what policy remembers of each, and their calls that wait.

    While any waits, `usage` is not counted yet.
    """

    policies: tuple[PolicyState, ...]
    usage: Usage = NO_USAGE
    waiting: tuple[HITLTask, ...] = ()


class Begin(msgspec.Struct, frozen=True, gc=False, tag="begin"):
    """A person asks for something new, or an agent asks its subagent.

    A run that is under way or waits is closed first; `below` is what its subagents have done by then.
    """

    at: float
    run_id: str
    parts: tuple[Part, ...]
    agent: str = "main"
    settings: JsonObject = {}
    commands: tuple[Command, ...] = ()
    below: tuple[Below, ...] = ()


class Resumed(msgspec.Struct, frozen=True, gc=False, tag="resumed"):
    """Go on with the run that is there. `facts` are of the batch's calls, by position, gathered just now.

    `below` are the calls of subagents that nobody has decided yet, by the id of the call they work for.
    `ended` is what subagents have done, where a command cancels the run.
    """

    at: float
    decisions: dict[str, HITLDecision] = {}
    commands: tuple[Command, ...] = ()
    calls: tuple[ToolCall, ...] = ()
    facts: tuple[CallFacts, ...] = ()
    below: dict[str, tuple[HITLTask, ...]] = {}
    ended: tuple[Below, ...] = ()


class Replied(msgspec.Struct, frozen=True, gc=False, tag="replied"):
    """The model has answered; `facts` are of its calls, by position."""

    at: float
    message: Message
    usage: Usage = NO_USAGE
    facts: tuple[CallFacts, ...] = ()
    took_s: float = 0.0


class CallFailed(msgspec.Struct, frozen=True, gc=False, tag="call_failed"):
    """The model would not answer, for good."""

    at: float
    error: ErrorInfo
    took_s: float = 0.0


class Retried(msgspec.Struct, frozen=True, gc=False, tag="retried"):
    """The model failed and is asked once more: attempt number `attempt` comes next."""

    at: float
    error: ErrorInfo
    attempt: int


class Summarised(msgspec.Struct, frozen=True, gc=False, tag="summarised"):
    """The answers to the `jobs` of a Summarise effect, None where one failed for good.

    `events` are those since the last pass.
    """

    at: float
    answers: tuple[Message | None, ...]
    usage: Usage = NO_USAGE
    events: tuple[Event, ...] = ()
    took_s: float = 0.0
    jobs: tuple[SummaryJob, ...] = ()


class Observed(msgspec.Struct, frozen=True, gc=False, tag="observed"):
    """A tool has returned. `call` and `facts` are of what really ran, where an interceptor rewrote the call.

    `below` is how far subagents have come; while calls of theirs wait there is no result yet.
    """

    at: float
    result: ToolResult
    took_s: float = 0.0
    call: ToolCall | None = None
    facts: CallFacts | None = None
    below: Below | None = None


class Judged(msgspec.Struct, frozen=True, gc=False, tag="judged"):
    """The facts that a Judge effect asked for, by position of its calls."""

    at: float
    calls: tuple[ToolCall, ...]
    facts: tuple[CallFacts, ...]


class Cancelled(msgspec.Struct, frozen=True, gc=False, tag="cancelled"):
    """Stop here. With `resumable` the run can be taken up again; otherwise it is over.

    `partial` is what running calls had put out by then, by call id; `unbegun` are calls stored as started that
    never were. Whatever else is stored as started may have run. `below` is what subagents have done by then.
    """

    at: float
    by: str
    resumable: bool = False
    partial: dict[str, str] = {}
    unbegun: tuple[str, ...] = ()
    below: tuple[Below, ...] = ()


Input = Begin | Resumed | Replied | Retried | CallFailed | Summarised | Observed | Judged | Cancelled
