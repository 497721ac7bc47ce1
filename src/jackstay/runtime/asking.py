"""One question to a model within its time limit, and the questions that compression asks for summaries."""

import functools
import logging
from collections.abc import Awaitable, Callable

from jackstay.core.effects import SummaryJob
from jackstay.core.errors import ErrorInfo, JackstayError, ModelError
from jackstay.core.messages import user
from jackstay.core.state import RunState
from jackstay.core.transcript import Transcript
from jackstay.engine.bounds import RunBounds
from jackstay.engine.context import shorter
from jackstay.engine.ports import Model, ModelRequest, Reply
from jackstay.policy.secrets import redact
from jackstay.runtime.agent import Agent
from jackstay.runtime.limits import TimeLimit
from jackstay.runtime.retry import with_retries
from jackstay.runtime.teller import Teller

SUMMARY_S = 120.0  # the longest that one summary may take: the run waits for it
SHORTENINGS = 3
log = logging.getLogger("jackstay")


async def once(
    model: Model, request: ModelRequest, teller: Teller | None, *, limit: TimeLimit, limit_s: float
) -> Reply:
    """One attempt, told as it comes. Raises ModelError for whatever an adapter may do."""
    try:
        with limit.of(limit_s):
            return await model.reply(request, teller or _unheard)
    except TimeoutError:
        text = f"the model gave no complete answer within {limit_s:g} s"
        raise ModelError(ErrorInfo("timeout", text)) from None
    except JackstayError:
        raise
    except Exception as problem:
        text = f"the model adapter failed with {type(problem).__name__}: {problem}"
        raise ModelError(ErrorInfo("internal", text)) from problem
    finally:
        if teller is not None:
            teller.finish()


async def summaries(
    agent: Agent, state: RunState, jobs: tuple[SummaryJob, ...], *, limit: TimeLimit, limit_s: float
) -> list[Reply | None]:
    """The replies to the questions, in order; None for one that failed for good."""
    ask = functools.partial(_ask, agent, limit=limit, limit_s=min(SUMMARY_S, limit_s))
    return [await _summary(ask, state, agent.bounds, jobs, at) for at in range(len(jobs))]


async def _ask(agent: Agent, job: SummaryJob, *, limit: TimeLimit, limit_s: float) -> Reply:
    asked = ModelRequest(job.system, Transcript((user(job.text),)), max_output_tokens=job.max_tokens)
    return await once(agent.summariser, asked, None, limit=limit, limit_s=limit_s)


async def _summary(
    ask: Callable[[SummaryJob], Awaitable[Reply]],
    state: RunState,
    bounds: RunBounds,
    jobs: tuple[SummaryJob, ...],
    at: int,
) -> Reply | None:
    """Ask the question, without tools; where it is too long itself, in fewer words."""
    attempts = bounds.compression.max_retries if bounds.compression is not None else 1
    for times in range(1, SHORTENINGS + 2):
        try:
            return await with_retries(
                functools.partial(ask, jobs[at]), attempts=attempts, before_retry=_at_once
            )
        except ModelError as failure:
            log.warning("session=%s summary=failed error=%s", state.session_id, redact(str(failure)))
            jobs = shorter(state, bounds, failure.info, times) if failure.info.kind == "overflow" else ()
            if at >= len(jobs):
                return None
    return None


def _unheard(text: str, thinking: bool) -> None:
    """Nobody listens."""


async def _at_once(error: ErrorInfo, attempt: int) -> None:
    """Nothing to tell between the attempts at a summary."""
