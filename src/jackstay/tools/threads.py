"""How does a function that blocks run beside the event loop, so that its hanging stops nobody?"""

import asyncio
import contextvars
import threading
from collections import deque
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any, TypeVar

from jackstay.engine.ports import ToolContext

T = TypeVar("T")

_KEPT = 8  # threads that wait for work; more are made where more is to be done at once
_idle: "deque[_Worker]" = deque()


async def in_thread(work: Callable[[], T]) -> T:
    """The result of `work`, run in a thread; cancelling the wait leaves the thread to itself.

    Not anyio.to_thread: its workers are joined when the interpreter ends, so one tool that hangs would keep
    the whole process from ending. These are daemons.
    """
    loop = asyncio.get_running_loop()
    answer: asyncio.Future[T] = loop.create_future()

    def settle(result: Any, problem: BaseException | None) -> None:
        if answer.done():  # nobody waits any more
            return
        if problem is not None:
            answer.set_exception(problem)
        else:
            answer.set_result(result)

    context = contextvars.copy_context()
    _worker().jobs.put((lambda: context.run(work), lambda *outcome: _later(loop, settle, *outcome)))
    return await answer


class _Worker(threading.Thread):
    """A thread that does one job after the other for as long as few others wait for work."""

    def __init__(self) -> None:
        super().__init__(name="jackstay tool", daemon=True)
        self.jobs: SimpleQueue[tuple[Callable[[], Any], Callable[[Any, BaseException | None], None]]] = (
            SimpleQueue()
        )

    def run(self) -> None:
        while True:
            work, settle = self.jobs.get()
            result, problem = _outcome(work)
            stays = len(_idle) < _KEPT
            if stays:
                _idle.append(self)  # before the result is told: the next job may come at once
            settle(result, problem)
            del work, settle, result, problem  # nothing is kept alive while waiting
            if not stays:
                return


def _worker() -> _Worker:
    while _idle:
        try:
            worker = _idle.pop()
        except IndexError:  # another loop's thread was quicker
            break
        if worker.is_alive():  # not so after a fork
            return worker
    worker = _Worker()
    worker.start()
    return worker


def _outcome(work: Callable[[], Any]) -> tuple[Any, BaseException | None]:
    try:
        return work(), None
    except StopIteration as stop:  # cannot travel through a future
        return None, RuntimeError(f"the function raised {stop!r}")
    except BaseException as problem:
        return None, problem


def _later(loop: asyncio.AbstractEventLoop, work: Callable[..., Any], *args: Any) -> None:
    try:
        loop.call_soon_threadsafe(work, *args)
    except RuntimeError:  # the loop has ended: nobody is left to tell
        return


class ThreadContext:
    """A ToolContext for code in a thread: the same facts, and `tell` hands its text over to the loop."""

    def __init__(self, context: ToolContext) -> None:
        self.workspace, self.session_id = context.workspace, context.session_id
        self.run_id, self.call_id = context.run_id, context.call_id
        self.seen = context.seen
        self._context = context
        self._loop = asyncio.get_running_loop()

    def tell(self, text: str) -> None:
        """Show output as it comes."""
        _later(self._loop, self._context.tell, text)
