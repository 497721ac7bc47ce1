"""A time limit over many short waits of one task, for the price of one timer."""

import asyncio
from math import inf
from time import monotonic
from types import TracebackType


class TimeLimit:
    """`with limit.of(seconds):` raises TimeoutError when the block takes longer.

    `asyncio.timeout` sets and removes a timer for every block. Here a timer that is already set stays, and
    looks at the present deadline when it rings: a run that waits a thousand times sets a handful. For one
    task, and not to be nested.
    """

    def __init__(self) -> None:
        self._task: asyncio.Task[object] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._rings_at = inf
        self._deadline = inf
        self._requests = 0
        self._expired = False

    def of(self, seconds: float) -> "TimeLimit":
        """Set the limit for the block that follows."""
        task = self._task
        if task is None:
            task = self._task = asyncio.current_task()
        if task is not None:
            self._requests = task.cancelling()
        self._deadline = deadline = monotonic() + seconds
        if deadline < self._rings_at:
            self._arm(seconds)
        return self

    def close(self) -> None:
        """Remove the timer."""
        if self._timer is not None:
            self._timer.cancel()

    def __enter__(self) -> None:
        """The limit counts from `of`."""

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._deadline = inf
        if not self._expired or self._task is None:
            return
        self._expired = False
        alone = self._task.uncancel() <= self._requests  # nobody else wants this task to stop
        if alone and kind is not None and issubclass(kind, asyncio.CancelledError):
            raise TimeoutError from problem

    def _arm(self, seconds: float) -> None:
        self.close()
        self._timer = asyncio.get_running_loop().call_later(seconds, self._ring)
        self._rings_at = self._deadline

    def _ring(self) -> None:
        self._timer, self._rings_at = None, inf
        left = self._deadline - monotonic()
        if left > 0:
            if left < inf:
                self._arm(left)
        elif self._task is not None:
            self._expired = True
            self._task.cancel()
