"""One timer watches over many short waits, and stops none but the one that takes too long."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from jackstay.runtime.limits import TimeLimit


def within(work: Callable[[TimeLimit], Awaitable[list[str]]]) -> list[str]:
    async def run() -> list[str]:
        limit = TimeLimit()
        try:
            return await asyncio.wait_for(work(limit), 10)
        finally:
            limit.close()

    return asyncio.run(run())


async def waited(limit: TimeLimit, limit_s: float, seconds: float) -> str:
    try:
        with limit.of(limit_s):
            await asyncio.sleep(seconds)
    except TimeoutError:
        return "stopped"
    return "in time"


def test_only_the_wait_that_takes_too_long_is_stopped() -> None:
    async def work(limit: TimeLimit) -> list[str]:
        return [await waited(limit, *one) for one in ((60, 0), (0.05, 30), (60, 0.1), (0.05, 0), (0.05, 30))]

    assert within(work) == ["in time", "stopped", "in time", "in time", "stopped"]


def test_a_timer_of_an_earlier_wait_looks_at_the_present_one() -> None:
    async def work(limit: TimeLimit) -> list[str]:
        return [await waited(limit, 0.1, 0.06), await waited(limit, 0.1, 0.06), await waited(limit, 0.1, 30)]

    assert within(work) == ["in time", "in time", "stopped"]


def test_a_timer_that_rings_between_two_waits_stops_nothing() -> None:
    async def work(limit: TimeLimit) -> list[str]:
        first = await waited(limit, 0.02, 0)
        await asyncio.sleep(0.1)
        return [first, await waited(limit, 60, 0), await waited(limit, 0.02, 30)]

    assert within(work) == ["in time", "in time", "stopped"]


def test_somebody_elses_cancelling_is_no_time_out() -> None:
    async def slow_to_end(limit: TimeLimit, begun: asyncio.Event) -> str:
        with limit.of(0.05):
            try:
                begun.set()
                await asyncio.sleep(30)
            finally:
                await asyncio.sleep(0.2)  # the limit rings while the cancelling is under way
        return "went on"

    async def work(limit: TimeLimit) -> list[str]:
        begun = asyncio.Event()
        task = asyncio.ensure_future(slow_to_end(TimeLimit(), begun))
        await begun.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return ["cancelled"]

    assert within(work) == ["cancelled"]
