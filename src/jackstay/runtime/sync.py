"""The same requests for programs without an event loop: a loop of our own in a private thread."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from typing import TypeVar

from anyio.from_thread import start_blocking_portal

from jackstay.core.errors import RunningLoop
from jackstay.core.events import Event
from jackstay.runtime.stream import RunStream

T = TypeVar("T")


def run_sync(call: Callable[[], Awaitable[T]]) -> T:
    """The result of an async call. Raises RunningLoop when this thread runs a loop already."""
    _refuse_inside_a_loop()
    with start_blocking_portal() as portal:
        return portal.call(call)


def stream_sync(stream: Callable[[], RunStream]) -> Iterator[Event]:
    """The events of a stream, one by one. Raises RunningLoop when this thread runs a loop already."""
    _refuse_inside_a_loop()
    return _events(stream)


def _events(stream: Callable[[], RunStream]) -> Iterator[Event]:
    with start_blocking_portal() as portal:
        events = stream()
        while (event := portal.call(_next, events)) is not None:
            yield event


async def _next(events: RunStream) -> Event | None:
    return await anext(events, None)


def _refuse_inside_a_loop() -> None:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return
    raise RunningLoop
