"""Which failures of a model are tried again, how often, and after how long?"""

import logging
from collections.abc import Awaitable, Callable

from jackstay.core.errors import ErrorInfo, ModelError
from jackstay.engine.ports import Reply

MAX_WAIT_S = 60.0


async def with_retries(
    ask: Callable[[], Awaitable[Reply]],
    *,
    attempts: int,
    before_retry: Callable[[ErrorInfo, int], Awaitable[None]],
) -> Reply:
    """The reply of the first attempt that succeeds, out of at most `attempts`.

    See `again` for what is tried again, and when.
    """
    try:
        return await ask()
    except ModelError as failure:
        return await again(ask, failure, attempts=attempts, before_retry=before_retry)


async def again(
    ask: Callable[[], Awaitable[Reply]],
    first: ModelError,
    *,
    attempts: int,
    before_retry: Callable[[ErrorInfo, int], Awaitable[None]],
) -> Reply:
    """The reply of a later attempt, `first` being how the first of at most `attempts` failed.

    Only failures that can succeed are tried again, after a jittered back-off or what `Retry-After` names.
    `before_retry(error, attempt)` is awaited before each further attempt. Raises the last ModelError, its
    info counting the attempts.
    """
    if not first.info.retryable or attempts <= 1:
        raise first
    import stamina

    _unheard(logging.getLogger("stamina"))
    failure = first
    async for attempt in stamina.retry_context(
        on=_backoff, attempts=attempts, timeout=None, wait_initial=0.5, wait_max=20.0, wait_jitter=0.5
    ):
        with attempt:
            if attempt.num == 1:
                raise failure
            await before_retry(failure.info, attempt.num)
            try:
                return await ask()
            except ModelError as again:
                failure = counted(again, attempt.num)
                raise failure from None
    raise failure


def _unheard(logger: logging.Logger) -> None:
    """Whoever listens to logs hears each attempt; where nobody does, Python would print it on stderr."""
    if not logger.hasHandlers():
        logger.addHandler(logging.NullHandler())


def _backoff(problem: Exception) -> bool | float:
    if not isinstance(problem, ModelError) or not problem.info.retryable:
        return False
    wait_s = problem.info.retry_after_s
    if wait_s is None:
        return True
    return max(wait_s, 0.01) if wait_s <= MAX_WAIT_S else False


def counted(failure: ModelError, attempts: int) -> ModelError:
    """The failure with the number of attempts it took."""
    from msgspec.structs import replace

    return ModelError(replace(failure.info, attempts=attempts))
