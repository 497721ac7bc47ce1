"""Builders for tests: short ways to say messages, calls and facts, and a pure player for the run machine."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from jackstay.core.approvals import HITLDecision, HITLTask
from jackstay.core.decision import Ask, Decision, Deny
from jackstay.core.effects import CallModel, Effect, GrantAlways, Judge, RunTool, Summarise, SummaryJob
from jackstay.core.errors import ErrorInfo
from jackstay.core.events import Event
from jackstay.core.facts import CallFacts
from jackstay.core.inputs import (
    Begin,
    Below,
    CallFailed,
    Cancelled,
    Input,
    Judged,
    Observed,
    Replied,
    Resumed,
    Summarised,
)
from jackstay.core.messages import Message, Text, ToolCall, ToolResult, Usage, assistant
from jackstay.core.state import PolicyState, RunState
from jackstay.core.tools import ALL_EFFECTS, READS
from jackstay.core.transcript import Transcript
from jackstay.engine.bounds import RunBounds
from jackstay.engine.machine import step
from jackstay.engine.resuming import calls_to_judge


def call(tool: str, call_id: str = "", **args: object) -> ToolCall:
    """A call without an id of its own unless one is given."""
    return ToolCall(call_id, tool, args)


def says(text: str = "", *calls: ToolCall) -> Message:
    """A reply of the model."""
    return assistant(text, *calls)


Facts = Callable[[ToolCall], CallFacts]


def facts(call: ToolCall) -> CallFacts:
    """Facts by name: look* reads, ask* asks, deny* is denied, none* is unknown, bad* does not fit.

    A call of spawn* hands work on.
    """
    spawns = call.tool.startswith("spawn")
    effects = READS if spawns or call.tool.startswith("look") else ALL_EFFECTS
    answers: tuple[Decision, ...] = ()
    if call.tool.startswith("ask"):
        answers = (Ask(f"{call.tool} is sensitive", "test strategy", f"allow {call.tool}"),)
    if call.tool.startswith("deny"):
        answers = (Deny(f"{call.tool} is forbidden", "test rule"),)
    return CallFacts(
        known=not call.tool.startswith("none"),
        invalid="x: expected int" if call.tool.startswith("bad") else None,
        effects=effects,
        idempotent=spawns or call.tool.startswith("look"),
        spawns=spawns,
        answers=answers,
        digest=f"digest of {call.tool}",
    )


@dataclass
class Player:
    """Performs effects from a script, without any I/O: the smallest possible driver."""

    replies: list[Message | ErrorInfo]
    bounds: RunBounds = field(default_factory=lambda: RunBounds(hitl=True))
    facts: Facts = facts
    state: RunState = field(default_factory=lambda: RunState("s1"))
    events: list[Event] = field(default_factory=list)
    inputs: list[Input] = field(default_factory=list)
    ran: list[ToolCall] = field(default_factory=list)
    granted: list[ToolCall] = field(default_factory=list)
    asked: list[CallModel] = field(default_factory=list)
    questions: list[SummaryJob] = field(default_factory=list)
    clock: float = 1000.0
    settled: set[str] = field(default_factory=set)  # calls whose subagents wait for nobody any more

    def now(self) -> float:
        self.clock += 1
        return self.clock

    def take(self, happened: Input) -> tuple[Effect, ...]:
        """One step, its events collected."""
        self.inputs.append(happened)
        made = step(self.state, happened, self.bounds)
        self.state = made.state
        self.events.extend(made.events)
        return made.effects

    def play(self, happened: Input) -> "Player":
        """Feed the input and perform all effects that follow, to the end of the request."""
        pending = list(self.take(happened))
        while pending:
            pending.extend(self.perform(pending.pop(0)))
        return self

    def perform(self, effect: Effect) -> tuple[Effect, ...]:
        match effect:
            case CallModel():
                self.asked.append(effect)
                reply = self.replies.pop(0)
                if isinstance(reply, ErrorInfo):
                    return self.take(CallFailed(self.now(), reply))
                facts = tuple(self.facts(c) for c in reply.calls)
                return self.take(Replied(self.now(), reply, Usage(10, 5), facts))
            case RunTool(call=call):
                self.ran.append(call)
                below = self.below(call)
                return self.take(Observed(self.now(), self.result(call), below=below))
            case Judge(calls=calls):
                return self.take(Judged(self.now(), calls, tuple(self.facts(c) for c in calls)))
            case GrantAlways(call=call):
                self.granted.append(call)
                return ()
            case Summarise(jobs=jobs):
                self.questions.extend(jobs)
                answers = tuple(self.summary(job) for job in jobs)
                return self.take(Summarised(self.now(), answers, Usage(7, 3), tuple(self.events), 0.0, jobs))
        raise AssertionError(effect)

    def summary(self, job: SummaryJob) -> Message | None:
        return assistant(f"- a summary of {len(job.text)} characters")

    def result(self, call: ToolCall) -> ToolResult:
        return ToolResult(call.call_id, f"result of {call.tool}", is_error=call.tool.startswith("fail"))

    def below(self, call: ToolCall) -> Below | None:
        """How far the subagents of a call are: those of spawn_ask* wait until somebody has answered."""
        if not call.tool.startswith("spawn"):
            return None
        waits = call.tool.startswith("spawn_ask") and call.call_id not in self.settled
        return Below((PolicyState(),), Usage(3, 2), (waiting_below(call),) if waits else ())

    def begin(self, text: str = "do it") -> "Player":
        return self.play(Begin(self.now(), f"run-{len(self.inputs)}", (Text(text),)))

    def resume(self, **decisions: HITLDecision) -> "Player":
        calls = calls_to_judge(self.state, decisions)
        asking = [c for c in calls if c.tool.startswith("spawn_ask")]
        self.settled |= {c.call_id for c in asking if waiting_below(c).key in decisions}
        below = {c.call_id: (waiting_below(c),) for c in asking if c.call_id not in self.settled}
        facts = tuple(self.facts(c) for c in calls)
        return self.play(Resumed(self.now(), decisions, (), calls, facts, below))

    def cancel(self, *, resumable: bool = False) -> "Player":
        return self.play(Cancelled(self.now(), "tester", resumable))

    def fresh(self) -> "Player":
        """Forget the events told so far."""
        self.events.clear()
        return self


def waiting_below(call: ToolCall) -> HITLTask:
    """What the subagent of a call waits for."""
    return HITLTask("call_1", "deploy", {}, "sensitive", path=(f"s1.{call.call_id}",))


def tags(events: Iterable[Event]) -> list[str]:
    """The tags in order, transient events left out."""
    return [e.type for e in events if e.type not in ("reason_delta", "tool_output_delta")]


def unanswered(transcript: Transcript) -> list[str]:
    """What a strict provider would refuse: a call without its result right after it, or the reverse."""
    problems: list[str] = []
    messages = list(transcript)
    index = 0
    while index < len(messages):
        message = messages[index]
        index += 1
        if message.role == "tool":
            problems.append(f"a result without its call at {index - 1}")
            continue
        for wanted in message.calls:
            follower = messages[index] if index < len(messages) else None
            part = follower.parts[0] if follower is not None and follower.role == "tool" else None
            if not isinstance(part, ToolResult) or part.call_id != wanted.call_id:
                problems.append(f"call {wanted.call_id} is not answered in order")
                break
            index += 1
    return problems
