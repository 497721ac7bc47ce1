"""How does an agent hand work to others? The tools `task` and `multitask`, and the runs they lead to."""

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec.structs import replace

from jackstay.agents.catalog import Agents, find_agents
from jackstay.agents.definition import AgentDefinition
from jackstay.config.paths import home
from jackstay.core.errors import JackstayError
from jackstay.core.events import Event, SubagentEvent
from jackstay.core.inputs import Begin, Input
from jackstay.core.messages import JsonObject, Text
from jackstay.core.state import Parent, RunState
from jackstay.core.tools import READS, ToolSpec
from jackstay.core.wire import canonical, decode_json, encode
from jackstay.engine.ports import ToolContext, ToolOutput
from jackstay.engine.subagents import budget
from jackstay.policy.sessions import child_of
from jackstay.policy.subject import tasks_in
from jackstay.runtime.agent import Agent, Assignment
from jackstay.runtime.below import child_id, is_due, open_calls, sum_of
from jackstay.runtime.calls import STOPS_ALL, Above, Running, told_plainly
from jackstay.runtime.commits import commits_of
from jackstay.runtime.control import Control
from jackstay.runtime.driver import Driver
from jackstay.runtime.factory import build_agent
from jackstay.runtime.lease import Holder
from jackstay.runtime.options import Options
from jackstay.runtime.request import new_run_id, taken_up
from jackstay.runtime.session import AgentSession

if TYPE_CHECKING:
    from jackstay.runtime.engine import HarnessEngine

TASK, MULTITASK = "task", "multitask"
NO_LIMIT_S = 366 * 86_400.0  # a subagent has limits of its own
_FIELDS = ("agent_name", "prompt", "description")


class Job(msgspec.Struct, frozen=True, gc=False):
    """One piece of work: who does it, what it is, and in a few words what for."""

    agent_name: str
    prompt: str
    description: str = ""


class Done(msgspec.Struct, frozen=True, gc=False):
    """What came of a piece of work: the state its run rests in, or why there is none."""

    job: Job
    state: RunState | None = None
    problem: str = ""

    @property
    def status(self) -> str:
        """The outcome of the run, or `not run`."""
        return "not run" if self.state is None else self.state.outcome or "cancelled"

    @property
    def text(self) -> str:
        """The last answer; where there is none, why not."""
        if self.state is None:
            return self.problem
        return _ENDS.get(self.status, "{text}").format(name=repr(self.job.agent_name), text=self.state.text)


_ENDS = {
    "limit": "The subagent {name} has used up what it may spend before it was through. It sums up: {text}",
    "failed": "The subagent {name} failed: {text}",
    "rejected": "The subagent {name} ended, because a person rejected what it was about to do: {text}",
    "stopped": "The subagent {name} went round in circles and was stopped: {text}",
    "cancelled": "The subagent {name} was cancelled: {text}",
}


class SubagentTool:
    """`task` and `multitask`: each piece of work runs in a session of its own, below the one that asks."""

    def __init__(self, engine: "HarnessEngine", *, several: bool) -> None:
        self._engine, self._several = engine, several
        self._most = engine.options.multitask_max_tasks if several else 1
        self._spec = _spec(agents_of(engine), most=self._most, several=several)

    @property
    def spec(self) -> ToolSpec:
        """What the model is told of it."""
        return self._spec

    def check(self, args: JsonObject) -> str | None:
        """Missing, unknown or wrongly typed arguments by name; and too many pieces of work."""
        if not self._several:
            return _wrong_with(args, "")
        unknown = [name for name in args if name != "tasks"]
        if unknown:
            return f"there is no argument {unknown[0]!r}; known is tasks"
        tasks = tasks_in(args) if "tasks" in args else None
        if not tasks:
            return "tasks has to be a list of one or more {agent_name, prompt, description}"
        if len(tasks) > self._most:
            return f"tasks has {len(tasks)} entries, at most {self._most} may run side by side: ask for fewer"
        return next(
            (wrong for n, one in enumerate(tasks) if (wrong := _wrong_with(one, f"tasks[{n}]: "))), None
        )

    async def run(self, args: JsonObject, context: ToolContext) -> ToolOutput:
        """Begin the work or go on with it, side by side; one that cannot be done takes no other along."""
        if not isinstance(context, Running) or context.above is None:
            return ToolOutput(f"{self._spec.name} works inside a run only", is_error=True)
        jobs = [Job(**task) for task in tasks_in(args) or ()]
        work = _Work(self._engine, context.above(), context)
        done = await work.carry_out(jobs)
        context.below = sum_of(one.state for one in done if one.state is not None)
        failed = all(one.status != "answered" for one in done)
        return ToolOutput(_together(done) if self._several else done[0].text, is_error=failed)


def agents_of(engine: "HarnessEngine") -> Agents:
    """The agents that an engine's agents may hand work to, as they are defined now."""
    options = engine.options
    return find_agents(options.agents, workspace=options.workspace, home=home(options.harness_home))


def agent_of(engine: "HarnessEngine", name: str) -> Agent:
    """An agent that a person asks by name: as it is defined, within what `main` has. Raises UnknownAgent."""
    definition = agents_of(engine).find(name, besides=("main",))
    main = engine.agent("main")
    most = main.bounds.budget.max_turns
    spend = replace(main.bounds.budget, max_turns=min(definition.max_turns or most, most))
    return build_agent(engine, name, Assignment(definition, main, spend))


def _together(done: Sequence[Done]) -> str:
    """All of it as a JSON list in the order asked for: no answer can pass for another one."""
    rows = [
        canonical({"index": n, **msgspec.structs.asdict(one.job), "status": one.status, "result": one.text})
        for n, one in enumerate(done, 1)
    ]
    return "[" + ",\n ".join(row.decode() for row in rows) + "]"


# -- one call ----------------------------------------------------------------------------------------------


class _Work:
    """The subagents of one call."""

    def __init__(self, engine: "HarnessEngine", above: Above, running: Running) -> None:
        self._engine, self._above, self._running = engine, above, running
        state = above.state()
        self._shares = sum(len(tasks_in(call.args) or ()) for call in open_calls(state)) or 1
        depth = 1 + (state.parent.depth if state.parent is not None else 0)
        self._parent = Parent(state.session_id, state.run_id, running.call_id, depth)

    async def carry_out(self, jobs: Sequence[Job]) -> list[Done]:
        """What came of each piece of work, in their order."""
        if len(jobs) == 1:
            return [await self._one(0, jobs[0])]
        import anyio  # as in the driver: not before it is needed

        done: dict[int, Done] = {}

        async def one(index: int, job: Job) -> None:
            done[index] = await self._one(index, job)

        try:
            async with anyio.create_task_group() as group:
                for index, job in enumerate(jobs):
                    group.start_soon(one, index, job)
        except ExceptionGroup as failures:
            raise failures.exceptions[0] from failures
        return [done[index] for index in range(len(jobs))]

    async def _one(self, index: int, job: Job) -> Done:
        try:
            return Done(job, await self._run(index, job))
        except STOPS_ALL:
            raise
        except Exception as problem:
            return Done(job, problem=told_plainly(problem))

    async def _run(self, index: int, job: Job) -> RunState:
        """The state the subagent's run rests in. Raises whatever keeps the work from being done."""
        most = self._engine.options.subagent_max_depth
        if self._parent.depth > most:
            raise NotBelow(f"work is handed on {most} levels deep at most: do this piece of it yourself")
        parent = self._parent
        name = child_id(parent.session_id, parent.run_id, parent.call_id, index)
        session = self._engine.adopt(AgentSession(name, self._above.store, now=self._engine.now))
        definition = agents_of(self._engine).find(job.agent_name)
        stored = self._above.store.load(name)
        if stored is not None and stored.state.parent != self._parent:
            raise NotBelow(
                f"the session {name!r} of this work is there and no longer known to belong to it: the work may "
                "have been done in part; look at what it would have changed before you hand it on again"
            )
        for loss in stored.dropped if stored is not None else ():
            self._engine.warn(f"session {name}: {loss}")
        state = stored.state if stored is not None else self._fresh(name)
        self._running.states[index] = lambda: state
        if stored is not None and self._rests(session, state):
            return state
        host = _Host(self._engine, self._above, self._assigned(definition, state))
        commits = commits_of(self._above.store)
        driver = Driver(
            host, Holder(self._above.store, name), publish=self._teller(job.agent_name, name),
            control=Control(self._above.control), commits=commits,
        )  # fmt: skip
        happened, drained = await self._input(session, state, job, host)
        self._running.states[index] = lambda: getattr(driver, "state", state)
        version = stored.version if stored is not None else 0
        with commits or nullcontext():
            return await driver.drive(state, version, happened, agent=job.agent_name, drained=drained)

    def _rests(self, session: AgentSession, state: RunState) -> bool:
        """Is there nothing to go on with: has it ended, or does it wait for somebody?"""
        if not state.is_pending:
            return state.outcome is not None
        now = self._engine.now()
        return any(not is_due(task, now) for task in session.pending_tasks())

    def _fresh(self, name: str) -> RunState:
        """The session as it begins: in its parent's phase, with its rules and with what it repeated."""
        return RunState(name, policy=child_of(self._above.state().policy), parent=self._parent)

    async def _input(
        self, session: AgentSession, state: RunState, job: Job, host: "_Host"
    ) -> tuple[Input, tuple[int, ...]]:
        now = self._engine.now()
        if state.is_new:
            return Begin(now, new_run_id(), (Text(job.prompt),), job.agent_name), ()
        return await taken_up(session, state, host.agent(job.agent_name), now=now)

    def _assigned(self, definition: AgentDefinition, known: RunState) -> Assignment:
        agent = self._above.agent()
        spend = budget(
            agent.bounds.budget,
            self._above.state(),
            own_turns=definition.max_turns,
            shares=self._shares,
            known=known,
        )
        return Assignment(definition, agent, spend)

    def _teller(self, agent: str, name: str) -> Callable[[Event], None]:
        """Tells each event in the parent's stream; one from further below keeps the session it is from."""
        session_id, run_id, publish = self._parent.session_id, self._parent.run_id, self._above.publish

        def tell(event: Event) -> None:
            if isinstance(event, SubagentEvent):
                publish(replace(event, run_id=run_id, session_id=session_id))
                return
            inner: JsonObject = decode_json(encode(event))
            publish(SubagentEvent(run_id, session_id, None, event.at, agent, name, inner))

        return tell


class NotBelow(JackstayError):
    """Work that cannot be handed on from here."""


class _Host:
    """The engine as a subagent's run sees it: with an agent that is bound by the one above."""

    def __init__(self, engine: "HarnessEngine", above: Above, assigned: Assignment) -> None:
        self._engine, self._above, self._assigned = engine, above, assigned
        self._built: Agent | None = None

    @property
    def options(self) -> Options:
        """The engine's."""
        return self._engine.options

    def now(self) -> float:
        """The engine's."""
        return self._engine.now()

    def agent(self, name: str) -> Agent:
        """The subagent, built anew when the agent above it was."""
        above = self._above.agent()
        if self._built is None or above is not self._assigned.above:
            self._assigned = replace(self._assigned, above=above)
            self._built = build_agent(self._engine, name, self._assigned)
        return self._built

    def seen(self, session_id: str) -> dict[str, str]:
        """The engine's."""
        return self._engine.seen(session_id)


# -- what the model is told --------------------------------------------------------------------------------


def _wrong_with(task: Any, where: str) -> str | None:
    """What does not fit in a piece of work, named; `where` stands before it."""
    if not isinstance(task, dict):
        return f"{where}expected {{agent_name, prompt, description}}"
    for name in ("agent_name", "prompt"):
        if not isinstance(task.get(name), str) or not task[name].strip():
            return f"{where}{name} is missing: it must be a text"
    if not isinstance(task.get("description", ""), str):
        return f"{where}description must be a text"
    unknown = [name for name in task if name not in _FIELDS]
    return f"{where}there is no argument {unknown[0]!r}; known are {', '.join(_FIELDS)}" if unknown else None


def _spec(agents: Agents, *, most: int, several: bool) -> ToolSpec:
    known = "\n".join(f"- {one.name}: {one.description}" for one in agents.listed)
    texts = {
        "agent_name": "who does the work",
        "prompt": "the whole task: the agent knows nothing of this conversation and cannot ask back",
        "description": "what it is for, in a few words",
    }
    one: JsonObject = {
        "type": "object",
        "properties": {name: {"type": "string", "description": text} for name, text in texts.items()},
        "required": ["agent_name", "prompt"],
        "additionalProperties": False,
    }
    bounds = "It has your tools or fewer, your phase and your permissions."
    if not several:
        text = f"Hand a piece of work to another agent and get its last answer. {bounds} The agents:\n{known}"
        return ToolSpec(TASK, text, one, effects=READS, idempotent=True, timeout_s=NO_LIMIT_S, spawns=True)
    text = (
        f"Hand up to {most} pieces of work that do not depend on each other to agents that work side by side; "
        f"the answers come in order, as a JSON list. Each of them: {bounds} The agents:\n{known}"
    )
    tasks = {"type": "array", "items": one, "minItems": 1, "maxItems": most}
    schema = {
        "type": "object",
        "properties": {"tasks": tasks},
        "required": ["tasks"],
        "additionalProperties": False,
    }
    return ToolSpec(MULTITASK, text, schema, effects=READS, idempotent=True, timeout_s=NO_LIMIT_S, spawns=True)
