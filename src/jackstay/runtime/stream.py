"""The events of one request as an async iterator that never holds the run up."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable

from jackstay.core.events import Event
from jackstay.runtime.control import Control


class RunStream(AsyncIterator[Event]):
    """Iterate it to read the events; the run goes on at its own pace.

    A slow reader delays nothing: events wait in memory until they are read. Leaving the loop early or
    `close()` stops the reading, not the run; `cancel()` stops the run too.
    """

    def __init__(self, run: Callable[[Callable[[Event], None]], Awaitable[None]], control: Control) -> None:
        self._run, self._control = run, control
        self._waiting: deque[Event] = deque()
        self._wake: asyncio.Future[None] | None = None
        self._task: asyncio.Task[None] | None = None
        self._finished = False
        self._closed = False

    def __aiter__(self) -> "RunStream":
        self._start()
        return self

    async def __anext__(self) -> Event:
        if self._task is None:
            self._start()
        while not self._waiting:
            if self._finished:
                await self._raise_failure()
                raise StopAsyncIteration
            self._wake = asyncio.get_running_loop().create_future()
            await self._wake
        return self._waiting.popleft()

    async def cancel(self, by: str = "the user") -> None:
        """End the run: running tools are stopped, open calls answered. Returns when that is done."""
        await self._stop(by, final=True)

    async def interrupt(self, by: str = "an interruption") -> None:
        """Stop the run so that it can be resumed. Returns when that is stored."""
        await self._stop(by, final=False)

    async def _stop(self, by: str, *, final: bool) -> None:
        self._start()
        if self._task is not None and not self._task.done():
            self._control.by, self._control.final = by, final
            self._task.cancel()
            await asyncio.wait([self._task])

    def close(self) -> None:
        """Read no more; the run itself goes on to its end."""
        self._closed = True
        self._waiting.clear()

    async def wait(self) -> None:
        """Wait until the run has ended, whether its events are read or not. Raises what the run raised."""
        self._start()
        if self._task is not None:
            await asyncio.wait([self._task])
            await self._raise_failure()

    def _start(self) -> None:
        if self._task is None:
            loop = asyncio.get_running_loop()
            # Not a task group: the run has to outlive whoever reads it.
            self._task = loop.create_task(self._drive())
            self._task.add_done_callback(self._over)

    async def _drive(self) -> None:
        await self._run(self._publish)

    def _over(self, task: "asyncio.Task[None]") -> None:
        """The run has ended, or was stopped before it had begun. A failure that nobody reads is noted here."""
        self._finished = True
        self._awake()
        if not task.cancelled():
            task.exception()

    def _publish(self, event: Event) -> None:
        if not self._closed:
            self._waiting.append(event)
            if self._wake is not None:
                self._awake()

    def _awake(self) -> None:
        wake, self._wake = self._wake, None
        if wake is not None and not wake.done():
            wake.set_result(None)

    async def _raise_failure(self) -> None:
        if self._task is None:
            return
        await asyncio.wait([self._task])
        if not self._task.cancelled() and (failure := self._task.exception()) is not None:
            raise failure
