"""Who may look at a run and change its course from outside: interceptors, their order, and their chain."""

from collections.abc import Callable, Iterable
from typing import Any, ClassVar, TypeVar

import msgspec

from jackstay.core.decision import Deny
from jackstay.core.errors import ConfigError, ErrorInfo
from jackstay.core.events import Event, Outcome
from jackstay.core.facts import CallFacts
from jackstay.core.messages import ToolCall, ToolResult, Usage
from jackstay.core.phase import Phase
from jackstay.core.rules import PermissionRule
from jackstay.core.state import Bounds, RunState
from jackstay.core.transcript import Transcript
from jackstay.engine.ports import ModelRequest, Reply


class ReActTrace:
    """A frozen view of the run at one moment: what interceptors and approval strategies are given."""

    __slots__ = ("_bounds", "_state", "facts")

    def __init__(self, state: RunState, bounds: Bounds, facts: CallFacts | None = None) -> None:
        self._state, self._bounds = state, bounds
        self.facts = facts  # of the call at hand, where a strategy judges one

    @property
    def session_id(self) -> str:
        """The session this run belongs to."""
        return self._state.session_id

    @property
    def run_id(self) -> str:
        """The run, the same across suspension and resume."""
        return self._state.run_id

    @property
    def agent_name(self) -> str:
        """The agent that runs."""
        return self._state.agent

    @property
    def turn(self) -> int:
        """The number of the current reason turn."""
        return self._state.turn

    @property
    def messages(self) -> Transcript:
        """The conversation so far."""
        return self._state.transcript

    @property
    def phase(self) -> Phase:
        """The phase of the discipline."""
        return self._state.policy.phase.phase

    @property
    def outcome(self) -> Outcome | None:
        """How the run ended; None while it goes on."""
        return self._state.outcome

    @property
    def text(self) -> str:
        """The final text, once there is one."""
        return self._state.text

    @property
    def usage(self) -> Usage:
        """Tokens and cost of this run so far."""
        return self._state.usage

    @property
    def rules(self) -> tuple[PermissionRule, ...]:
        """The permission rules in force: the engine's and the session's."""
        return (*self._bounds.rules, *self._state.policy.rules)

    @property
    def workspace(self) -> str:
        """The directory the agent works in."""
        return self._bounds.workspace


class Order(msgspec.Struct, frozen=True):
    """Where an interceptor stands: before and after others, by name."""

    before: tuple[str, ...] = ()
    after: tuple[str, ...] = ()


class Interceptor:
    """Takes part in a run at the moments below. Override the ones you need; all may be plain or async.

    What a method returns takes the place of what it was given; None keeps it. Nothing is ever changed in
    place. Moments of a beginning run in order, those of an ending in reverse. A rewritten call is judged
    again, so that an interceptor can make an answer stricter, never looser.
    """

    name: ClassVar[str] = ""
    order: ClassVar[Order] = Order()

    def on_agent_start(self, trace: ReActTrace) -> Any:
        """The run starts, or goes on after a suspension. Returns nothing."""

    def on_reason_start(self, trace: ReActTrace, request: ModelRequest) -> Any:
        """The model is about to be asked. May return another ModelRequest."""

    def on_reason_retry(self, trace: ReActTrace, error: ErrorInfo, attempt: int, request: ModelRequest) -> Any:
        """Attempt `attempt` (from 1) failed and another follows. May return another ModelRequest."""

    def on_reason_end(self, trace: ReActTrace, reply: Reply) -> Any:
        """The model has answered. May return another Reply."""

    def on_action_start(self, trace: ReActTrace, calls: tuple[ToolCall, ...]) -> Any:
        """The calls of a reply are about to be judged. May return others, one for each."""

    def on_tool_call_start(self, trace: ReActTrace, call: ToolCall) -> Any:
        """A tool is about to run. May return another ToolCall (which is judged) or a Deny."""

    def on_tool_call_end(self, trace: ReActTrace, call: ToolCall, result: ToolResult) -> Any:
        """A tool has run. May return another ToolResult: what the model and the record get."""

    def on_action_end(self, trace: ReActTrace) -> Any:
        """All calls of a reply are done with. Returns nothing."""

    def on_agent_end(self, trace: ReActTrace) -> Any:
        """The request has ended. Returns nothing."""

    def on_event(self, event: Event) -> None:
        """An event was told. Only to look; never async."""


_BEGINNINGS = (
    "on_agent_start", "on_reason_start", "on_reason_retry", "on_action_start", "on_tool_call_start", "on_event",
)  # fmt: skip
_ENDINGS = ("on_reason_end", "on_tool_call_end", "on_action_end", "on_agent_end")

T = TypeVar("T")
Hook = Callable[..., Any]
ANSWERS: dict[str, type | tuple[type, ...]] = {
    "on_reason_start": ModelRequest,
    "on_reason_retry": ModelRequest,
    "on_reason_end": Reply,
    "on_action_start": tuple,
    "on_tool_call_start": (ToolCall, Deny),
    "on_tool_call_end": ToolResult,
}


class Chain:
    """The interceptors of an agent in order, with the overridden moments looked up once.

    `hooks` has for each moment the (interceptor name, bound method) of those that take part, in calling order.
    """

    def __init__(self, interceptors: Iterable[Interceptor] = ()) -> None:
        self.interceptors = in_order(tuple(interceptors))
        self.hooks: dict[str, tuple[tuple[str, Hook], ...]] = {}
        for moment in _BEGINNINGS:
            self.hooks[moment] = _overridden(self.interceptors, moment)
        for moment in _ENDINGS:
            self.hooks[moment] = _overridden(self.interceptors[::-1], moment)
        self.watches_ends = bool(self.hooks["on_action_end"] or self.hooks["on_agent_end"])

    def find(self, kind: type[T]) -> T | None:
        """The first interceptor of this class."""
        return next((i for i in self.interceptors if isinstance(i, kind)), None)


def _overridden(interceptors: tuple[Interceptor, ...], moment: str) -> tuple[tuple[str, Hook], ...]:
    plain = getattr(Interceptor, moment)
    return tuple(
        (title(one), getattr(one, moment))
        for one in interceptors
        if getattr(type(one), moment, plain) is not plain or moment in vars(one)
    )


def title(interceptor: Interceptor) -> str:
    """The name others refer to it by."""
    return interceptor.name or type(interceptor).__name__


def in_order(interceptors: tuple[Interceptor, ...]) -> tuple[Interceptor, ...]:
    """As declared by their `order`, otherwise as added. Raises ConfigError when the wishes form a circle."""
    names = [title(one) for one in interceptors]
    later: dict[int, set[int]] = {index: set() for index in range(len(interceptors))}
    for index, one in enumerate(interceptors):
        for other, name in enumerate(names):
            if name in one.order.before and other != index:
                later[other].add(index)
            if name in one.order.after and other != index:
                later[index].add(other)
    placed: list[int] = []
    while len(placed) < len(interceptors):
        ready = [i for i in later if i not in placed and later[i] <= set(placed)]
        if not ready:
            left = ", ".join(names[i] for i in later if i not in placed)
            problem = f"the interceptors {left} each want to stand before the other"
            raise ConfigError(problem, hint="remove one of their before/after wishes")
        placed.append(min(ready))
    return tuple(interceptors[i] for i in placed)
