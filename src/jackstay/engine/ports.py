"""What the run needs of the world, as protocols; the shell implements them, siblings meet only here."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Literal, NamedTuple, Protocol, runtime_checkable

import msgspec

from jackstay.core.approvals import HITLDecision, HITLTask
from jackstay.core.events import Event, Outcome
from jackstay.core.messages import NO_USAGE, JsonObject, Message, Usage
from jackstay.core.phase import Phase
from jackstay.core.state import RunState
from jackstay.core.tools import ToolSpec
from jackstay.core.transcript import Transcript

# -- models ------------------------------------------------------------------------------------------------

Stop = Literal["end", "calls", "length", "refused", "other"]
Tell = Callable[[str, bool], None]  # a piece of text as it comes; True when it is thinking


class ModelRequest(msgspec.Struct, frozen=True, gc=False):
    """One question to a model.

    `transcript` is the history; adapters encode each of its messages once (`Transcript.derived`). `notes` are
    said after it and never stored. `tools` is the same tuple object from turn to turn while nothing changes.
    """

    system: str
    transcript: Transcript
    tools: tuple[ToolSpec, ...] = ()
    notes: tuple[Message, ...] = ()
    max_output_tokens: int | None = None


class Reply(msgspec.Struct, frozen=True, gc=False):
    """What a model answered. A call whose arguments were malformed or cut off carries `problem`."""

    message: Message
    usage: Usage = NO_USAGE
    stop: Stop = "end"
    model: str | None = None


class Model(Protocol):
    """A model that can be asked. `name` is what messages and records call it."""

    name: str
    context_length: int | None

    async def reply(self, request: ModelRequest, tell: Tell) -> Reply:
        """Ask once; `tell` hears text as it streams. Raises ModelError and nothing else; never retries."""
        ...

    async def close(self) -> None:
        """Give back connections. The model may be used again afterwards."""
        ...


# -- tools -------------------------------------------------------------------------------------------------


class ToolContext(Protocol):
    """What a running tool may know and use."""

    workspace: str
    session_id: str
    run_id: str
    call_id: str
    seen: dict[str, str]  # canonical path -> digest of the content that this session last read or wrote

    def tell(self, text: str) -> None:
        """Show output as it comes (a transient event)."""
        ...


class ToolOutput(msgspec.Struct, frozen=True, gc=False):
    """What a tool gives back. `full` is the whole text when `text` shows only head and tail of it."""

    text: str
    is_error: bool = False
    full: str | None = None


class Tool(Protocol):
    """Something a model can call."""

    @property
    def spec(self) -> ToolSpec:
        """Name, schema, effects, time limit."""
        ...

    def check(self, args: JsonObject) -> str | None:
        """Why these arguments do not fit, naming the argument and what is expected; None when they fit."""
        ...

    async def run(self, args: JsonObject, context: ToolContext) -> ToolOutput:
        """Carry out a call whose arguments were checked. Whatever it raises becomes an error observation."""
        ...


SESSION_MARK = "JACKSTAY_SESSION"  # in the environment of commands: the session that started them
WORKSPACE_MARK = "JACKSTAY_WORKSPACE"  # and where it works: sessions of another home may have the same name


class Launch(msgspec.Struct, frozen=True, gc=False):
    """A process about to be started: its words, its directory, its whole environment."""

    argv: tuple[str, ...]
    cwd: str
    env: dict[str, str]


Launcher = Callable[[Launch], Launch]  # confines a process; raises ToolFailed when it must not be started


# -- store -------------------------------------------------------------------------------------------------


class Lease(msgspec.Struct, frozen=True, gc=False):
    """Who runs a session: `owner` names the process and the request, as nobody else is named; `until` is when
    that ends unless renewed (epoch s).
    """

    owner: str
    until: float


class Artifact(msgspec.Struct, frozen=True, gc=False):
    """The whole text behind a shortened observation."""

    call_id: str
    text: str


class Record(msgspec.Struct, frozen=True, gc=False):
    """What one commit stores, all of it or nothing.

    `head` is the state without its messages; `appended` are new message rows; `amended` replaces earlier
    rows by position; `drained` are inbox items that this step took in. With `lease` the session is claimed or
    its lease renewed; without one it is given back.
    """

    head: RunState
    appended: Sequence[Message] = ()
    amended: Sequence[tuple[int, Message]] = ()
    events: Sequence[Event] = ()
    artifacts: Sequence[Artifact] = ()
    drained: Sequence[int] = ()
    lease: Lease | None = None


class Commit(NamedTuple):
    """One commit among others: the arguments of `SessionStore.commit`."""

    session_id: str
    expected: int
    record: Record


class Stored(msgspec.Struct, frozen=True, gc=False):
    """A session as loaded: its version, its state with transcript, and what had to be dropped, in words."""

    version: int
    state: RunState
    dropped: tuple[str, ...] = ()
    lease: Lease | None = None


class SessionInfo(msgspec.Struct, frozen=True, gc=False):
    """A line of the session list. `created` and `updated` are epoch seconds."""

    session_id: str
    created: float
    updated: float
    outcome: Outcome | None
    phase: Phase
    turn: int
    waiting: int
    title: str
    usage: Usage = NO_USAGE


class Posted(msgspec.Struct, frozen=True, gc=False):
    """An item of a session's inbox. `key` is unique among the items that wait: the first one wins.

    The key of a decision is the call id it is about; keys of commands hold a character that no call id has.
    """

    number: int
    key: str
    decision: HITLDecision | None = None
    command: str | None = None  # cancel, and others that carry no decision
    data: JsonObject | None = None


class PendingSession(msgspec.Struct, frozen=True, gc=False):
    """A session with calls that nobody has decided yet."""

    session_id: str
    run_id: str
    tasks: tuple[HITLTask, ...]


@runtime_checkable
class SessionStore(Protocol):
    """Where sessions live. Synchronous; every method may raise StoreError."""

    def load(self, session_id: str) -> Stored | None:
        """The session with all its messages, or None when nothing of it is stored."""
        ...

    def head(self, session_id: str) -> Stored | None:
        """The same without messages: cheap."""
        ...

    def commit(self, session_id: str, expected: int, record: Record) -> int:
        """Store the step if the session is still at version `expected` (0: not stored yet).

        Returns the new version. Raises Conflict when another worker got there first, SessionBusy when another
        live worker holds the lease.
        """
        ...

    def renew(self, session_id: str, lease: Lease) -> bool:
        """Prolong a lease between commits; False when somebody else holds it by now."""
        ...

    def post(self, session_id: str, *items: Posted, expected: int | None = None) -> int:
        """Put items into the inbox, all of them or none, without a lease; returns the number of the last.

        Raises UnknownSession, AlreadyDecided when an item of the same key waits already, and Conflict when
        `expected` is given and the session is at another version.
        """
        ...

    def inbox(self, session_id: str) -> tuple[Posted, ...]:
        """The items that wait, oldest first."""
        ...

    def posted(self, session_id: str) -> bool:
        """May anything wait in the inbox? Cheap, for whoever has just committed: nothing is looked up.

        False says that nothing waited at the session's last commit and nothing was posted through this store
        since.
        """
        ...

    def events(self, session_id: str, after: int = 0) -> Iterator[Event]:
        """The stored events with seq > `after`, in order."""
        ...

    def artifact(self, session_id: str, call_id: str) -> str | None:
        """The whole text behind a shortened observation."""
        ...

    def pending(self, limit: int = 1000) -> list[PendingSession]:
        """Sessions that wait for a person, the longest first; what subagents wait for with their parent's."""
        ...

    def sessions(self, limit: int = 1000) -> list[SessionInfo]:
        """What is stored, the latest first."""
        ...

    def delete(self, session_id: str) -> bool:
        """Forget the session and everything of it; False when it was not there."""
        ...

    def close(self) -> None:
        """Give back files and connections."""
        ...


@runtime_checkable
class GroupStore(SessionStore, Protocol):
    """A store to which several commits at once cost little more than one."""

    def commit_all(self, commits: Sequence[Commit]) -> list[int | Exception]:
        """Store the commits, in order and in one transaction; the new version of each, or why it alone failed.

        What keeps all of them from being stored is raised, and then none is.
        """
        ...


# -- people ------------------------------------------------------------------------------------------------


class HITLStrategy(Protocol):
    """Judges one tool's calls for the HITL interceptor."""

    def evaluate(self, trace: Any, args: JsonObject) -> str | None:
        """Why a person should look at this call; None or empty to let it pass. May be `async def`."""
        ...
