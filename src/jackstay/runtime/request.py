"""One request to an agent: a prompt, or the wish to go on, with the session it belongs to."""

import asyncio
import os
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec.structs import replace

from jackstay.core.approvals import HITLDecision, HITLTask
from jackstay.core.errors import EmptyPrompt, ErrorInfo, SubagentSession, UnknownSession
from jackstay.core.events import Event, Outcome
from jackstay.core.inputs import Begin, Command, Input, Resumed
from jackstay.core.messages import NO_USAGE, Part, Text, Usage
from jackstay.core.state import RunState
from jackstay.engine import texts
from jackstay.engine.ports import Posted
from jackstay.engine.resuming import calls_to_judge
from jackstay.engine.stopping import ordered
from jackstay.runtime.agent import Agent
from jackstay.runtime.below import undecided
from jackstay.runtime.calls import clean
from jackstay.runtime.commits import Commits, commits_of
from jackstay.runtime.control import Control, end_below
from jackstay.runtime.driver import Driver
from jackstay.runtime.guard import BASELINE_KEY
from jackstay.runtime.lease import Holder
from jackstay.runtime.session import AgentSession
from jackstay.runtime.stream import RunStream

if TYPE_CHECKING:
    from jackstay.runtime.engine import HarnessEngine


class Answer(msgspec.Struct, frozen=True, gc=False):
    """How a request ended. `text` is the final answer, or says what it waits for or what went wrong."""

    session_id: str
    run_id: str
    outcome: Outcome
    text: str
    usage: Usage = NO_USAGE
    pending_tasks: tuple[HITLTask, ...] = ()
    error: ErrorInfo | None = None


class PromptRequest:
    """A request being put together; `stream`, `call` and their synchronous twins start it."""

    def __init__(self, engine: "HarnessEngine", parts: tuple[Part, ...] | None) -> None:
        self._engine, self._parts = engine, parts
        self._session: AgentSession | None = None
        self._agent = "main"

    def session(self, session: AgentSession | str) -> "PromptRequest":
        """The session to run in; a new one is made when none is named."""
        self._session = session if isinstance(session, AgentSession) else self._engine.get_session(session)
        return self

    def agent(self, name: str) -> "PromptRequest":
        """Which agent is asked; `main` when none is named. A resumed run keeps the one it began with."""
        self._agent = name
        return self

    def stream(self) -> RunStream:
        """The events as an async iterator; the run starts when the first is awaited."""
        control = Control()

        async def run(publish: Callable[[Event], None]) -> None:
            await self._run(publish, control)

        return RunStream(run, control)

    async def call(self) -> Answer:
        """Run to the end of the request.

        Failures of the model end in an Answer with outcome `failed`; raises JackstayError for what keeps the
        run from being carried out at all (store, session busy, configuration).
        """
        return _answer(await self._run(None, Control()))

    def call_sync(self) -> Answer:
        """`call` for programs without an event loop."""
        from jackstay.runtime.sync import run_sync

        return run_sync(self.call)

    def stream_sync(self) -> Iterator[Event]:
        """`stream` for programs without an event loop."""
        from jackstay.runtime.sync import stream_sync

        return stream_sync(self.stream)

    async def _run(self, publish: Callable[[Event], None] | None, control: Control) -> RunState:
        session = self._session or self._engine.get_session(f"s-{os.urandom(6).hex()}")
        commits = commits_of(session.store)
        if commits is None:
            return await self._drive(session, None, publish, control)
        with commits:
            await asyncio.sleep(0)  # those that begin together will have steps to store together
            return await self._drive(session, commits, publish, control)

    async def _drive(
        self,
        session: AgentSession,
        commits: Commits | None,
        publish: Callable[[Event], None] | None,
        control: Control,
    ) -> RunState:
        engine, store, session_id = self._engine, session.store, session.session_id
        stored = store.load(session_id)
        if stored is None and self._parts is None:
            raise UnknownSession(session_id)
        state = stored.state if stored is not None else RunState(session_id)
        if state.parent is not None:
            raise SubagentSession(session_id, state.parent.session_id)
        for loss in stored.dropped if stored is not None else ():
            engine.warn(f"session {session_id}: {loss}")
        busy = stored is not None and stored.lease is not None  # the first commit will say so
        happened, drained = await self._input(session, state, busy=busy)
        holder = Holder(store, session_id)
        driver = Driver(engine, holder, publish=publish, control=control, commits=commits)
        version = stored.version if stored is not None else 0
        agent = self._agent if self._parts is not None else state.agent
        return await driver.drive(state, version, happened, agent=agent, drained=drained)

    async def _input(
        self, session: AgentSession, state: RunState, *, busy: bool
    ) -> tuple[Input, tuple[int, ...]]:
        engine = self._engine
        if self._parts is None:
            return await taken_up(session, state, engine.agent(state.agent), now=engine.now())
        begin = Begin(engine.now(), new_run_id(), self._parts, self._agent, engine.recipe())
        if state.is_new:
            return begin, ()
        posted = session.store.inbox(session.session_id)
        commands = tuple(_command(item) for item in posted if item.command is not None)
        below = () if busy else end_below(session, state, texts.MOVED_ON_BY)
        return replace(begin, commands=commands, below=below), tuple(item.number for item in posted)


async def taken_up(
    session: AgentSession, state: RunState, agent: Agent, *, now: float
) -> tuple[Resumed, tuple[int, ...]]:
    """The wish to go on with what is stored and decided since; and the inbox items that it takes in."""
    store = session.store
    posted = store.inbox(session.session_id) if not state.is_new else ()
    commands = tuple(_command(item) for item in posted if item.command is not None)
    decisions: dict[str, HITLDecision] = {
        item.key: item.decision for item in posted if item.decision is not None
    }
    calls = calls_to_judge(state, decisions)
    look = store.artifact(session.session_id, BASELINE_KEY) if agent.guard is not None else None
    facts = tuple([await agent.facts(state, call, look=look) for call in calls])
    order = ordered(commands, state.run_id) if state.is_open else None
    ended = end_below(session, state, order.by) if order is not None else ()
    resumed = Resumed(now, decisions, commands, calls, facts, undecided(store, state, now), ended)
    return resumed, tuple(item.number for item in posted)


def new_run_id() -> str:
    """A name that no other run has."""
    return f"r-{os.urandom(8).hex()}"


def _command(item: Posted) -> Command:
    data = item.data or {}
    return Command(item.command or "", str(data.get("by", "")), data)


def prompt_parts(prompt: Any) -> tuple[Part, ...] | None:
    """What was given to `prompt()` as message parts; None stands for resume. Raises EmptyPrompt."""
    if prompt is None:
        return None
    parts = (Text(clean(prompt)),) if isinstance(prompt, str) else tuple(prompt)
    if not parts or all(isinstance(part, Text) and not part.text.strip() for part in parts):
        raise EmptyPrompt
    return parts


def _answer(state: RunState) -> Answer:
    waiting = state.batch.waiting if state.batch is not None and state.is_pending else ()
    return Answer(
        state.session_id,
        state.run_id,
        state.outcome or "cancelled",
        state.text,
        state.usage,
        waiting,
        state.error,
    )
