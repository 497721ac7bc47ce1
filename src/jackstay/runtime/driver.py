"""Performs what a run asks for, stores each step before it is told, and feeds back what came of it."""

import asyncio
import functools
import inspect
import logging
from collections.abc import Awaitable, Callable, Sequence
from time import monotonic
from typing import Protocol, assert_never

from msgspec.structs import replace

from jackstay.core.effects import CallModel, Effect, GrantAlways, Judge, RunTool, Summarise, SummaryJob
from jackstay.core.errors import ErrorInfo, ModelError
from jackstay.core.events import (
    ActionEndEvent,
    Event,
    HITLDecidedEvent,
    PhaseChangedEvent,
    RunEndEvent,
)
from jackstay.core.facts import CallFacts
from jackstay.core.inputs import CallFailed, Cancelled, Input, Judged, Observed, Replied, Retried, Summarised
from jackstay.core.messages import NO_USAGE, ToolCall, Usage, note
from jackstay.core.phase import Phase
from jackstay.core.state import RunState
from jackstay.engine import texts
from jackstay.engine.draft import Step
from jackstay.engine.interceptors import Hook
from jackstay.engine.machine import step
from jackstay.engine.ports import Artifact, Commit, ModelRequest, Record, Reply
from jackstay.engine.stopping import CANCEL
from jackstay.policy.gates import CLOSURE_CHECK
from jackstay.policy.secrets import redact
from jackstay.runtime.agent import Agent
from jackstay.runtime.asking import once, summaries
from jackstay.runtime.below import children
from jackstay.runtime.calls import Above, Running, run_call
from jackstay.runtime.commits import Commits, Promise
from jackstay.runtime.control import Control, Watch, end_below
from jackstay.runtime.guard import BASELINE_KEY
from jackstay.runtime.lease import Holder
from jackstay.runtime.limits import TimeLimit
from jackstay.runtime.moments import InterceptorFailed, before_judging, moment, retried, through
from jackstay.runtime.options import Options
from jackstay.runtime.retry import again
from jackstay.runtime.session import AgentSession
from jackstay.runtime.teller import Teller
from jackstay.ward.audit import AuditFailed

Publish = Callable[[Event], None]
FAIR_S = 0.005
log = logging.getLogger("jackstay")


class Host(Protocol):
    """What the driver needs of the engine: the agent as it is configured at this moment."""

    @property
    def options(self) -> Options:
        """The settings as they are now."""
        ...

    def now(self) -> float:
        """The time in epoch seconds."""
        ...

    def agent(self, name: str) -> Agent:
        """The built agent; a changed setting makes it another one."""
        ...

    def seen(self, session_id: str) -> dict[str, str]:
        """Which files the session's tools have read, and the digests of what they saw."""
        ...


class Driver:
    """Drives one request of one session to its end."""

    def __init__(
        self, host: Host, holder: Holder, *, publish: Publish | None, control: Control, commits: Commits | None
    ) -> None:
        self._host, self._holder, self._control, self._commits = host, holder, control, commits
        self._listened, self._publish = publish is not None, publish or _unheard_of
        self.state: RunState
        self._name: str  # of the agent, which may be configured otherwise each time it is asked for
        self._seen: dict[str, str] = {}
        self._version = 0
        self._drained: Sequence[int] = ()
        self._artifacts: list[Artifact] = []
        self._promised: dict[Promise, Step] = {}  # steps that are decided, not yet stored and not yet told
        self._asked = False  # interceptors, since the last commit: they may have ordered the end of the run
        self._look: str | None = None
        self._overflow: ErrorInfo | None = None  # how the model refused this turn's request as too long
        self._yielded = monotonic()
        self._limit = TimeLimit()
        self._running: dict[str, Running] = {}
        self._watch = Watch(self._watched, control)

    async def drive(
        self, state: RunState, version: int, first: Input, *, agent: str, drained: Sequence[int] = ()
    ) -> RunState:
        """Go on from a stored state with this input until the request ends; the state it ended in.

        When the surrounding task is cancelled, running tools are stopped and what they did is recorded; the
        run can be resumed, unless the control says that it is over. An order to cancel the run is heeded before
        each model call and tool where it was there when the step was stored, and else within WATCH_S.
        """
        self.state, self._version = state, version
        self._name = agent
        self._seen = self._host.seen(state.session_id)
        store = self._holder.store
        self._watch.start()
        try:
            await self._moment("on_agent_start")
            self._drained = (*self._drained, *drained)  # not before: what is cancelled by now took nothing in
            effects = await self._feed(first)
            while effects:
                order = self._ordered() if self._asked or store.posted(state.session_id) else None
                if order is None:
                    effects = await self._begin(effects)
                else:  # before anything of it has begun
                    effects = await self._feed(self._stopped(order, effects))
        except asyncio.CancelledError:
            partial = {call_id: running.last_words() for call_id, running in self._running.items()}
            by, final = self._control.said()
            below = tuple(one for running in self._running.values() if (one := running.left_below(final=final)))
            self._running.clear()
            self._take(Cancelled(self._host.now(), by, not final, partial, below=below))
            if not self._watch.heeded():
                raise
        except AuditFailed as problem:
            self._running.clear()  # a subagent's run, where the failure is from
            self._take(Cancelled(self._host.now(), str(problem), resumable=True))
            raise
        finally:
            self._watch.stop()
            self._limit.close()
        return self.state

    def _stopped(self, by: str, effects: tuple[Effect, ...]) -> Cancelled:
        """The end of the run before anything of these effects, except what subagents have done already."""
        store, state = self._holder.store, self.state
        begun = {one.parent.call_id for one in children(store, state) if one.parent is not None}
        calls = (effect.call.call_id for effect in effects if isinstance(effect, RunTool))
        below = end_below(AgentSession(state.session_id, store, now=self._host.now), state, by)
        unbegun = tuple(call_id for call_id in calls if call_id not in begun)
        return Cancelled(self._host.now(), by, unbegun=unbegun, below=below)

    def as_above(self) -> Above:
        """What the run of a subagent needs of this one."""
        agent = functools.partial(self._host.agent, self._name)
        return Above(agent, lambda: self.state, self._holder.store, self._publish, self._control)

    # -- steps -----------------------------------------------------------------------------------------

    async def _feed(self, happened: Input) -> tuple[Effect, ...]:
        agent = self._host.agent(self._name)
        made = step(self.state, happened, agent.bounds)
        if agent.guard is not None:
            agent.guard.record(self.state, made.state, made.events)
        self.state = made.state
        promise = self._commit(made) if made.stored else None  # a step is not told before it is stored
        if promise is not None:
            await promise.future
            self._yielded = monotonic()
            self._kept(promise)
        hooks = agent.chain.hooks["on_event"]
        if self._listened or hooks:
            self._tell(made.events, hooks)
        if agent.guard is not None and _begins_task(made):
            self._look = await agent.guard.look(self.state.session_id)
            self._artifacts.append(Artifact(BASELINE_KEY, self._look))
        if agent.chain.watches_ends:
            for event in made.events:
                if isinstance(event, ActionEndEvent):
                    await self._moment("on_action_end")
                elif isinstance(event, RunEndEvent):
                    await self._moment("on_agent_end")
        return made.effects

    def _take(self, happened: Input) -> None:
        """One step without waiting for anybody, as when the run is stopped."""
        agent = self._host.agent(self._name)
        hooks = agent.chain.hooks["on_event"]
        if self._promised and self._commits is not None:
            self._commits.keep(self._holder.store)
        for promise, made in list(self._promised.items()):
            self._kept(promise)
            self._tell(made.events, hooks)
        made = step(self.state, happened, agent.bounds)
        if agent.guard is not None:
            agent.guard.record(self.state, made.state, made.events)
        self.state = made.state
        if made.stored:
            self._commit(made, at_once=True)
        self._tell(made.events, hooks)

    def _kept(self, promise: Promise) -> None:
        """The promised step is stored. Raises what kept it from that."""
        del self._promised[promise]
        if isinstance(promise.outcome, Exception):
            raise promise.outcome

    def _tell(self, events: tuple[Event, ...], hooks: tuple[tuple[str, Hook], ...]) -> None:
        self._asked = self._asked or bool(hooks)
        for event in events:
            self._publish(event)
            for name, hook in hooks:
                try:
                    hook(event)
                except Exception:
                    log.exception("interceptor=%s moment=on_event event=%s", name, event.type)

    def _commit(self, made: Step, *, at_once: bool = False) -> Promise | None:
        """Store the step, or promise it where other runs, or other tools of this one, store theirs too."""
        state, artifacts, holder = made.state, made.artifacts, self._holder
        if self._artifacts:
            artifacts = (*self._artifacts, *artifacts)
            self._artifacts.clear()
        lease = holder.lease() if made.effects or self._running else None
        record = Record(state, made.appended, made.amended, made.events, artifacts, self._drained, lease)
        expected, commits = self._version, self._commits
        self._version = expected + 1
        self._drained, self._asked = (), False
        alone = commits is None or (commits.runs == 1 and not self._running and not self._promised)
        if commits is None or alone or at_once:
            holder.store.commit(state.session_id, expected, record)
            return None
        promise = commits.promise(holder.store, Commit(state.session_id, expected, record))
        self._promised[promise] = made
        return promise

    def _ordered(self) -> str | None:
        """Who has ordered this run to be cancelled, through the inbox."""
        state = self.state
        for item in self._holder.store.inbox(state.session_id):
            if item.command == CANCEL and item.data is not None and item.data.get("run_id") == state.run_id:
                self._drained = (*self._drained, item.number)
                return str(item.data.get("by", "somebody"))
        return None

    def _watched(self) -> str | None:
        """Looked at every second while something lasts: the lease is kept, an order heard."""
        self._holder.keep()
        return self._ordered()

    async def _moment(self, name: str) -> None:
        agent = self._host.agent(self._name)
        if agent.chain.hooks[name]:
            self._asked = True
            await moment(agent, self.state, name)

    # -- effects ---------------------------------------------------------------------------------------

    def _begin(self, effects: tuple[Effect, ...]) -> Awaitable[tuple[Effect, ...]]:
        """What performs the effects and comes to the next ones; mostly there is one to perform."""
        first = effects[0]
        if len(effects) == 1 and type(first) is RunTool:
            return self._run(first.call, self._limit)
        if len(effects) == 1 and type(first) is CallModel:
            return self._ask(first)
        return self._perform(effects)

    async def _perform(self, effects: tuple[Effect, ...]) -> tuple[Effect, ...]:
        runs: list[ToolCall] = []
        following: tuple[Effect, ...] = ()
        for effect in effects:
            match effect:
                case CallModel():
                    following = await self._ask(effect)
                case RunTool():
                    runs.append(effect.call)
                case Judge():
                    facts = await self._facts(self._host.agent(self._name), effect.calls)
                    following = await self._feed(Judged(self._host.now(), effect.calls, facts))
                case Summarise():
                    following = await self._feed(await self._summarise(effect.jobs))
                case GrantAlways():
                    await self._grant(effect.call)
                case _:
                    assert_never(effect)
        if len(runs) == 1:
            return await self._run(runs[0], self._limit)
        return await self._run_all(runs) if runs else following

    async def _facts(self, agent: Agent, calls: tuple[ToolCall, ...]) -> tuple[CallFacts, ...]:
        if (
            agent.guard is not None
            and self._look is None
            and any([call.tool == CLOSURE_CHECK for call in calls])
        ):
            self._look = self._holder.store.artifact(self.state.session_id, BASELINE_KEY)
        found = []
        for call in calls:
            found.append(await agent.facts(self.state, call, look=self._look))
        return tuple(found)

    async def _grant(self, call: ToolCall) -> None:
        hitl = self._host.agent(self._name).hitl
        callback = hitl.approved_callback if hitl is not None else None
        if callback is not None:
            answer = callback(call.tool, dict(call.args))
            if inspect.isawaitable(answer):
                await answer

    # -- models ----------------------------------------------------------------------------------------

    async def _ask(self, effect: CallModel) -> tuple[Effect, ...]:
        """Ask the model; its reply is fed back with the facts about its calls, or a typed failure."""
        agent, began = self._host.agent(self._name), monotonic()
        if began - self._yielded > FAIR_S:  # a model that answers at once must not starve the other runs
            await asyncio.sleep(0)
            self._yielded = began
        hooks = agent.chain.hooks
        try:
            reply = await self._reply(agent, _request(agent, self.state, effect))
            if hooks["on_reason_end"]:
                reply = await through(agent, self.state, "on_reason_end", reply)
            message, calls = reply.message, reply.message.calls
            if calls and hooks["on_action_start"]:
                message, calls = await before_judging(agent, self.state, message)
            facts = tuple(map(agent.plain_facts, calls)) if agent.is_plain else await self._facts(agent, calls)
        except ModelError as failure:
            error = replace(failure.info, message=redact(failure.info.message))  # servers repeat keys
            self._overflow = error if error.kind == "overflow" else None
            happened: Input = CallFailed(self._host.now(), error, monotonic() - began)
        except InterceptorFailed as failure:
            error = ErrorInfo("internal", str(failure))
            happened = CallFailed(self._host.now(), error, monotonic() - began)
        else:
            happened = Replied(self._host.now(), message, reply.usage, facts, monotonic() - began)
        return await self._feed(happened)

    async def _reply(self, agent: Agent, request: ModelRequest) -> Reply:
        state, options = self.state, self._host.options
        if agent.chain.hooks["on_reason_start"]:
            request = await through(agent, state, "on_reason_start", request)
        if state.overflows:  # a shortened one: the same turn is tried again
            error = self._overflow or ErrorInfo("overflow", texts.CUT)
            request = await retried(agent, state, error, state.overflows, request)
        self._overflow = None
        teller = Teller(state, self._publish, options) if self._listened else None
        try:
            return await once(agent.model, request, teller, limit=self._limit, limit_s=options.model_timeout_s)
        except ModelError as failure:
            return await self._again(agent, request, teller, failure)

    async def _again(
        self, agent: Agent, request: ModelRequest, teller: Teller | None, first: ModelError
    ) -> Reply:
        options = self._host.options

        async def attempt() -> Reply:
            return await once(agent.model, request, teller, limit=self._limit, limit_s=options.model_timeout_s)

        async def before_retry(error: ErrorInfo, number: int) -> None:
            nonlocal request
            error = replace(error, message=redact(error.message))
            await self._feed(Retried(self._host.now(), error, number))
            request = await retried(agent, self.state, error, number - 1, request)

        return await again(attempt, first, attempts=options.model_retries, before_retry=before_retry)

    async def _summarise(self, jobs: tuple[SummaryJob, ...]) -> Input:
        """The answers to the questions; one that fails for good is left unanswered."""
        agent, began = self._host.agent(self._name), monotonic()
        limit_s = self._host.options.model_timeout_s
        replies = await summaries(agent, self.state, jobs, limit=self._limit, limit_s=limit_s)
        answers = tuple(
            reply.message if reply is not None and reply.stop != "refused" else None for reply in replies
        )
        usage = functools.reduce(Usage.plus, (reply.usage for reply in replies if reply is not None), NO_USAGE)
        told = self._holder.store.events(self.state.session_id, self.state.compacted_at)
        events = tuple(event for event in told if isinstance(event, _REMEMBERED))
        return Summarised(self._host.now(), answers, usage, events, monotonic() - began, jobs)

    # -- tools -----------------------------------------------------------------------------------------

    async def _run_all(self, calls: list[ToolCall]) -> tuple[Effect, ...]:
        """Run the calls side by side; each result is stored and told as it comes."""
        following: tuple[Effect, ...] = ()

        async def one(call: ToolCall) -> None:
            nonlocal following
            limit = TimeLimit()
            try:
                following = await self._run(call, limit) or following
            finally:
                limit.close()

        import anyio  # not before it is needed: its backend costs as much to import as all of this package

        try:
            async with anyio.create_task_group() as group:
                for call in calls:
                    group.start_soon(one, call)
        except ExceptionGroup as failures:
            raise failures.exceptions[0] from failures
        return following

    async def _run(self, call: ToolCall, limit: TimeLimit) -> tuple[Effect, ...]:
        agent, began = self._host.agent(self._name), monotonic()
        running = Running(self.state, call, agent.workspace, self._publish, self._seen)
        running.redacts = self._host.options.redact_secrets
        running.above = self.as_above
        self._running[call.call_id] = running
        ran = await run_call(agent, self.state, call, running, limit)
        del self._running[call.call_id]
        if ran.artifact is not None:
            self._artifacts.append(ran.artifact)
        rewritten = ran.call if ran.call is not call else None
        took = monotonic() - began
        now = self._host.now()
        return await self._feed(Observed(now, ran.result, took, rewritten, ran.facts, running.below))


_REMEMBERED = (HITLDecidedEvent, PhaseChangedEvent)  # what a summary should know besides the messages


def _unheard_of(event: Event) -> None:
    """Nobody listens."""


def _begins_task(made: Step) -> bool:
    """Does a task begin with nothing behind it? What is not closed is compared with its own beginning."""
    begins = any(isinstance(e, PhaseChangedEvent) and e.after is Phase.TASK_STARTED for e in made.events)
    return begins and not made.state.policy.phase.acted


def _request(agent: Agent, state: RunState, effect: CallModel) -> ModelRequest:
    notes = tuple([note("guidance", text) for text in effect.notes]) if effect.notes else ()
    offered = agent.specs_with_recall if state.recallable else agent.specs
    return ModelRequest(agent.system, state.transcript, () if effect.last else offered, notes)
