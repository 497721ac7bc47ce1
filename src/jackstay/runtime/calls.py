"""Runs one call: interceptors around it, a time limit over it, and whatever happens as a readable result."""

from collections import deque
from collections.abc import Callable
from time import time
from typing import Any

import msgspec
from msgspec.structs import replace

from jackstay.core.decision import Allow, Deny, strictest
from jackstay.core.errors import Conflict, JackstayError, StoreError
from jackstay.core.events import Event, ToolOutputDeltaEvent
from jackstay.core.facts import CallFacts
from jackstay.core.inputs import Below
from jackstay.core.messages import ToolCall, ToolResult, snapshot
from jackstay.core.state import RunState
from jackstay.engine import texts
from jackstay.engine.interceptors import ReActTrace
from jackstay.engine.ports import Artifact, SessionStore, Tool, ToolOutput
from jackstay.policy import discipline
from jackstay.policy.decide import decide
from jackstay.policy.masking import redact_once
from jackstay.policy.secrets import MAX_TEXT, is_marked, redact
from jackstay.policy.sieve import Sieve
from jackstay.runtime.agent import Agent
from jackstay.runtime.below import sum_of
from jackstay.runtime.control import Control
from jackstay.runtime.limits import TimeLimit
from jackstay.runtime.moments import InterceptorFailed, ask_hook
from jackstay.ward.audit import AuditFailed

SHOWN_CHARS = 50_000
KEPT_CHARS = 5_000_000
PARTIAL_CHARS = 4_000
LONG_CHARS = 100_000  # about 15 ms of looking for secrets
STOPS_ALL = (AuditFailed, StoreError, Conflict)  # nothing can be kept, or somebody else goes on


class Above(msgspec.Struct, frozen=True):
    """What a subagent's run takes from the one above it: its agent and state of the moment, where it tells."""

    agent: Callable[[], Agent]
    state: Callable[[], RunState]
    store: SessionStore
    publish: Callable[[Event], None]
    control: Control


class Running:
    """A call while it runs: the ToolContext its tool sees, and the last of what it has put out."""

    redacts = True  # do secrets go out of what it puts out?
    above: Callable[[], Above] | None = None  # the run it belongs to, for those that work below it
    below: Below | None = None  # how far its subagents have come, once all of them rest
    _said: deque[str] | None = None  # made when the tool says something
    _size = 0
    _sieve: Sieve | None = None

    def __init__(  # by position: one is made for each call, and keywords cost half as much again
        self,
        state: RunState,
        call: ToolCall,
        workspace: str,
        publish: Callable[[Event], None],
        seen: dict[str, str],
    ) -> None:
        self.session_id, self.run_id, self.call_id = state.session_id, state.run_id, call.call_id
        self.workspace, self.seen = workspace, seen
        self.states: dict[int, Callable[[], RunState]] = {}  # of its subagents, as they are at this moment
        self._publish = publish

    def tell(self, text: str) -> None:
        """Show output as it comes."""
        if self.redacts:
            self._sieve = self._sieve or Sieve()
            text = self._sieve.feed(text)
        self._show(text)

    def finish(self) -> None:
        """Show what was held back because it might have been the beginning of a secret."""
        if self._sieve is not None:
            self._show(self._sieve.rest())

    def _show(self, text: str) -> None:
        if not text:
            return
        said = self._said = self._said or deque()
        said.append(text)
        self._size += len(text)
        while self._size - len(said[0]) > PARTIAL_CHARS:
            self._size -= len(said.popleft())
        self._publish(ToolOutputDeltaEvent(self.run_id, self.session_id, None, time(), self.call_id, text))

    def last_words(self) -> str:
        """The last of what was put out, when nothing more will come."""
        self.finish()
        return "".join(self._said or ())[-PARTIAL_CHARS:]

    def left_below(self, *, final: bool) -> Below | None:
        """What its subagents have done when the run stops for good; otherwise they go on with it."""
        if not final or not self.states:
            return None
        return replace(sum_of(state() for state in self.states.values()), waiting=())


class Ran(msgspec.Struct, frozen=True, gc=False):
    """A finished call: its result, the whole text if that was shortened, and the call as it really ran.

    `facts` are those about a call that an interceptor has rewritten.
    """

    result: ToolResult
    artifact: Artifact | None
    call: ToolCall
    facts: CallFacts | None = None


async def run_call(agent: Agent, state: RunState, call: ToolCall, running: Running, limit: TimeLimit) -> Ran:
    """Run the call. Never raises but for cancellation: whatever goes wrong is an error observation.

    What stops every run (STOPS_ALL) in a subagent stops its parent too.

    This is the one place where what the world says comes in: secrets are taken out of it here, so that none
    reaches a message, an event, an artifact or a log. The tool itself gets its arguments as they are.
    """
    hooks = agent.chain.hooks
    refused, facts, artifact = None, None, None
    try:
        if hooks["on_tool_call_start"]:
            call, refused, facts = await _before(agent, state, call)
        tool = refused or _tool_for(agent, call, running)
        if isinstance(tool, str):
            result, facts = ToolResult(call.call_id, tool, is_error=True, executed=False), None
        else:
            output = await _output(tool, call, running, limit)
            if running.below is not None and running.below.waiting:
                result = ToolResult(call.call_id, output.text)
            else:
                result, artifact = _shorten(call, output)
                if hooks["on_tool_call_end"]:
                    result = await _after(agent, state, call, result)
    except InterceptorFailed as problem:
        result, facts, artifact = ToolResult(call.call_id, str(problem), is_error=True), None, None
    ran = Ran(result, artifact, call, facts)
    return ran if not running.redacts or _is_bare(ran) else await _redacted(ran)


def _is_bare(ran: Ran) -> bool:
    """Is it short, and known to hold no secret?"""
    text = ran.result.text
    return ran.artifact is None and len(text) <= LONG_CHARS and redact_once(text) == text


async def _redacted(ran: Ran) -> Ran:
    result = replace(ran.result, text=await _without_secrets(ran.result.text))
    artifact = ran.artifact
    if artifact is not None:
        artifact = replace(artifact, text=await _without_secrets(artifact.text))
    return Ran(result, artifact, ran.call, ran.facts)


async def _without_secrets(text: str) -> str:
    """The text redacted; long ones are read in a thread."""
    if len(text) <= LONG_CHARS:
        return redact_once(text)
    import asyncio

    return await asyncio.to_thread(_redact_long, text)


def _redact_long(text: str) -> str:
    """Piece by piece, cut at line ends: `redact` itself looks at so much and no more."""
    if len(text) <= MAX_TEXT:
        return redact(text)
    cut = text.rfind("\n", 0, MAX_TEXT) + 1 or MAX_TEXT
    return redact(text[:cut]) + _redact_long(text[cut:])


def _tool_for(agent: Agent, call: ToolCall, running: Running) -> Tool | str:
    """What carries the call out, or why nothing does."""
    tool = agent.tools.get(call.tool)
    if tool is None:
        return texts.unknown_tool(call.tool, None)
    if running.redacts and not tool.spec.reads_only and _holds_mark(call.args):
        return texts.STANDS_FOR_SECRET
    return tool


def _holds_mark(value: Any) -> bool:
    """Is one of our own marks in it, which stands for a secret that the model never saw?"""
    if isinstance(value, str):
        return "[redacted" in value and is_marked(value)
    if isinstance(value, dict):
        return any(map(_holds_mark, value.values()))
    return isinstance(value, list) and any(map(_holds_mark, value))


Before = tuple[ToolCall, str | None, CallFacts | None]


async def _before(agent: Agent, state: RunState, call: ToolCall) -> Before:
    """The call as interceptors want it, why it must not run, if so, and the facts about a rewritten one.

    That one is judged again.
    """
    wanted = call
    for name, hook in agent.chain.hooks["on_tool_call_start"]:
        answer = await ask_hook(name, "on_tool_call_start", hook, ReActTrace(state, agent.bounds), wanted)
        if isinstance(answer, Deny):
            return wanted, texts.denied(answer), None
        if answer is not None:
            wanted = replace(answer, call_id=call.call_id)
    if wanted.tool == call.tool and wanted.args == call.args:
        return call, None, None
    facts = await agent.facts(state, wanted)
    if not facts.known or facts.invalid:
        return wanted, texts.invalid(wanted.tool, facts.invalid or "there is no such tool"), None
    weighed = discipline.decide(state.policy, wanted, facts, data=agent.bounds.data)
    decision = strictest((decide(state.policy, wanted, facts, agent.bounds), weighed))
    match decision:
        case Allow():
            return wanted, None, facts
        case Deny():
            return wanted, texts.denied(decision), None
        case _:
            return wanted, texts.nobody_to_ask(decision, wanted), None


async def _output(tool: Tool, call: ToolCall, running: Running, limit: TimeLimit) -> ToolOutput:
    limit_s = tool.spec.timeout_s
    try:
        with limit.of(limit_s):
            try:
                output = await tool.run(snapshot(call.args), running)
                running.finish()
                return output
            except (Exception, SystemExit) as problem:
                if tool.spec.spawns and isinstance(problem, STOPS_ALL):
                    raise
                return ToolOutput(told_plainly(problem), is_error=True)
    except TimeoutError:
        pass
    said = running.last_words()
    so_far = f" Output so far:\n{said}" if said else ""
    return ToolOutput(
        f"Stopped after {limit_s:g} s, the time limit of {tool.spec.name!r}.{so_far}", is_error=True
    )


def told_plainly(problem: BaseException) -> str:
    """What went wrong, as the model reads it."""
    if isinstance(problem, JackstayError):
        return str(problem)
    return f"The tool failed with {type(problem).__name__}: {problem}"


def _shorten(call: ToolCall, output: ToolOutput) -> tuple[ToolResult, Artifact | None]:
    """The observation, with what is too long for a model kept whole as an artifact."""
    text, full = clean(output.text), output.full
    if len(text) > SHOWN_CHARS:
        full = full or text
        half = SHOWN_CHARS // 2
        gap = f"[{len(text) - 2 * half} characters left out; recall({call.call_id!r}) reads them]"
        text = f"{text[:half]}\n… {gap} …\n{text[-half:]}"
    artifact = Artifact(call.call_id, clean(full)[:KEPT_CHARS]) if full is not None else None
    truncated = max(0, len(full) - len(text)) if full is not None else 0
    return ToolResult(call.call_id, text, output.is_error, True, truncated), artifact


def clean(text: str) -> str:
    """The text without halves of surrogate pairs, which no encoding can carry."""
    if text.isascii():
        return text
    return text.encode("utf-8", "replace").decode("utf-8")


async def _after(agent: Agent, state: RunState, call: ToolCall, result: ToolResult) -> ToolResult:
    for name, hook in agent.chain.hooks["on_tool_call_end"]:
        answer = await ask_hook(name, "on_tool_call_end", hook, ReActTrace(state, agent.bounds), call, result)
        result = result if answer is None else replace(answer, call_id=call.call_id)
    return result
