"""What does compression cost? `python -m bench.compaction`: planning 10 000 messages, the check of a steady turn.

Every figure stands beside the bare loop of `bench/floor.py`, measured in turn with it, as in `bench.run`: "scaled"
is for a machine whose bare loop costs 0.003 ms a step. Exits with 1 when a target is missed.
"""

import asyncio
import statistics
import sys
import time
from collections.abc import Callable

from bench.run import Figure, median, table
from jackstay.core.messages import Message, ToolCall, ToolResult, assistant, observation, user
from jackstay.core.transcript import Transcript
from jackstay.engine.compaction.composite import CompositeCompressionStrategy
from jackstay.engine.compaction.hierarchy import HierarchicalCompressionStrategy
from jackstay.engine.compaction.interceptor import ContextCompressionInterceptor
from jackstay.engine.compaction.keyinfo import KeyInfoExtractionStrategy
from jackstay.engine.compaction.plan import Surroundings, plan
from jackstay.engine.compaction.rebuild import apply, finish, prepare
from jackstay.engine.ports import Reply

MESSAGES = 10_000
STRATEGY = CompositeCompressionStrategy(KeyInfoExtractionStrategy(), HierarchicalCompressionStrategy())
PARAMS = ContextCompressionInterceptor(100, strategy=STRATEGY).params
AROUND = Surroundings(128_000)
OUTPUT = "collected 41 items, 40 passed, 1 failed: tests/test_parse.py::test_empty - assert 3 == 4 in 2.31 s\n"


def turn(number: int) -> tuple[Message, Message]:
    """A call and its observation of an ordinary size."""
    call = ToolCall(f"c{number}", "bash", {"command": f"pytest -q tests/part_{number}"})
    return assistant("", call), observation(ToolResult(f"c{number}", OUTPUT * 4))


def history(messages: int) -> Transcript:
    """A goal and so many messages."""
    made: list[Message] = [user("mend the tests", pinned=True)]
    for number in range(messages // 2):
        made += turn(number)
    return Transcript(made)


def counting() -> float:
    """The first plan of a loaded session, whose messages nobody has counted yet."""
    transcript = history(MESSAGES)
    return spent(lambda: plan(transcript, PARAMS, AROUND))


def planning(transcript: Transcript) -> float:
    """A pass over messages that are counted already, as in every run."""
    return spent(lambda: plan(transcript, PARAMS, AROUND))


def steady() -> float:
    """The check before a turn that needs nothing, with two new messages, behind 10 000 others."""
    params = ContextCompressionInterceptor(1_000_000, strategy=STRATEGY).params
    around = Surroundings(10**9)
    transcript = history(MESSAGES)
    assert plan(transcript, params, around) is None
    times = []
    for number in range(100):
        transcript = transcript.append(*turn(MESSAGES + number))
        times.append(spent(lambda grown=transcript: plan(grown, params, around)))  # type: ignore[misc]  # bound now
    return statistics.median(times)


def whole_pass() -> float:
    """A pass at the defaults from plan to new transcript, the summaries themselves left out."""
    transcript = history(100)

    def work() -> None:
        found = plan(transcript, PARAMS, AROUND)
        assert found is not None
        jobs = prepare(found)
        assert len(jobs) == 2
        apply(found, finish(found, [Reply(assistant("- a fact"))] * 2))

    return spent(work)


def spent(work: Callable[[], object]) -> float:
    """The processor time of the work in milliseconds: what else runs beside it does not count."""
    start = time.process_time()
    work()
    return 1_000 * (time.process_time() - start)


async def figures() -> list[Figure]:
    known = history(MESSAGES)
    plan(known, PARAMS, AROUND)
    measures: tuple[tuple[str, Callable[[], float], float | None], ...] = (
        (f"plan {MESSAGES:,} messages", lambda: planning(known), 50.0),
        ("check of a steady turn", steady, 0.2),
        (f"count and plan {MESSAGES:,} messages for the first time", counting, None),
        ("a whole pass over 100 messages", whole_pass, None),
    )
    found = []
    for name, measure, target in measures:

        async def once(measure: Callable[[], float] = measure) -> float:
            return measure()

        value, base = await median(once)
        found.append(Figure(name, "ms", value, base, target))
    return found


def main() -> int:
    """Measure and compare."""
    found = asyncio.run(figures())
    print(table(found))
    return int(any(figure.verdict == "MISSED" for figure in found))


if __name__ == "__main__":
    sys.exit(main())
