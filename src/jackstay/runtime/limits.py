"""A time limit over many short waits of one task, for the price of one timer."""

import asyncio
from types import TracebackType


class TimeLimit:
    """`with limit.of(seconds):` raises TimeoutError when the block takes longer.

    `asyncio.timeout` sets and removes a timer for every block. Here a timer that is already set stays, and
    looks at the present deadline when it rings: a run that waits a thousand times sets a handful. For one
    task, and not to be nested.
    """

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = None
        self._task: asyncio.Task[object] | None = None
        self._deadline: float | None = None
        self._requests = 0
        self._expired = False

    def of(self, seconds: float) -> "TimeLimit":
        """Set the limit for the block that follows."""
        if self._task is None:
            self._task = asyncio.current_task()
        self._requests = self._task.cancelling() if self._task is not None else 0
        self._deadline = self._loop.time() + seconds
        self._expired = False
        if self._timer is None or self._timer.when() > self._deadline:
            self._arm(self._deadline)
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
        self._deadline = None
        if not self._expired or self._task is None:
            return
        alone = self._task.uncancel() <= self._requests  # nobody else wants this task to stop
        if alone and kind is not None and issubclass(kind, asyncio.CancelledError):
            raise TimeoutError from problem

    def _arm(self, when: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._loop.call_at(when, self._ring)

    def _ring(self) -> None:
        self._timer = None
        if self._deadline is None:
            return
        if self._deadline > self._loop.time():
            self._arm(self._deadline)
        elif self._task is not None:
            self._expired = True
            self._task.cancel()
