"""What interceptors make of a run at its moments: asked in their order, their answers checked."""

import inspect
from collections.abc import Callable
from typing import Any, TypeVar

from msgspec.structs import replace

from jackstay.core.errors import ErrorInfo, JackstayError
from jackstay.core.messages import Message, ToolCall
from jackstay.core.state import RunState
from jackstay.engine.interceptors import ANSWERS, ReActTrace
from jackstay.engine.ports import ModelRequest
from jackstay.runtime.agent import Agent

T = TypeVar("T")


class InterceptorFailed(JackstayError):
    """An interceptor raised, or returned something it must not."""

    def __init__(self, name: str, moment: str, problem: str) -> None:
        super().__init__(f"interceptor {name!r} failed in {moment}: {problem}")


async def ask_hook(name: str, moment: str, hook: Callable[..., Any], *args: Any) -> Any:
    """What the hook answers. Raises InterceptorFailed when it raises or answers with a wrong kind of value."""
    try:
        answer = hook(*args)
        if inspect.isawaitable(answer):
            answer = await answer
    except Exception as problem:
        raise InterceptorFailed(name, moment, repr(problem)) from problem
    expected = ANSWERS.get(moment)
    if answer is not None and expected is not None and not isinstance(answer, expected):
        raise InterceptorFailed(name, moment, f"it returned {type(answer).__name__}, not {expected}")
    return answer


async def moment(agent: Agent, state: RunState, name: str) -> None:
    """Every interceptor of a moment that asks for nothing sees it."""
    for who, hook in agent.chain.hooks[name]:
        await ask_hook(who, name, hook, ReActTrace(state, agent.bounds))


async def through(agent: Agent, state: RunState, name: str, value: T) -> T:
    """The value after every interceptor of this moment has seen it."""
    for who, hook in agent.chain.hooks[name]:
        answer = await ask_hook(who, name, hook, ReActTrace(state, agent.bounds), value)
        value = value if answer is None else answer
    return value


async def retried(
    agent: Agent, state: RunState, error: ErrorInfo, attempt: int, request: ModelRequest
) -> ModelRequest:
    """The request of the next attempt, once interceptors have seen how the last one failed."""
    for who, hook in agent.chain.hooks["on_reason_retry"]:
        trace = ReActTrace(state, agent.bounds)
        answer = await ask_hook(who, "on_reason_retry", hook, trace, error, attempt, request)
        request = request if answer is None else answer
    return request


async def before_judging(
    agent: Agent, state: RunState, message: Message
) -> tuple[Message, tuple[ToolCall, ...]]:
    """The message with its calls as interceptors want them to be judged, and these calls."""
    calls = message.calls
    for who, hook in agent.chain.hooks["on_action_start"]:
        answer = await ask_hook(who, "on_action_start", hook, ReActTrace(state, agent.bounds), calls)
        if answer is not None and [c.call_id for c in answer] != [c.call_id for c in calls]:
            raise InterceptorFailed(who, "on_action_start", "it must return one call for each it was given")
        calls = answer or calls
    wanted = iter(calls)
    parts = tuple(next(wanted) if isinstance(part, ToolCall) else part for part in message.parts)
    return replace(message, parts=parts), calls
