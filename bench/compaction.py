"""What compression costs: planning 10 000 messages, and the check of a steady turn.

    PYTHONPATH=src python bench/compaction.py

Prints medians of processor time in milliseconds and exits with 1 when one is above its bound.
"""

import statistics
import sys
import time
from collections.abc import Callable

from jackstay.core.messages import Message, ToolCall, ToolResult, assistant, observation, user
from jackstay.core.transcript import Transcript
from jackstay.engine.compaction.composite import CompositeCompressionStrategy
from jackstay.engine.compaction.hierarchy import HierarchicalCompressionStrategy
from jackstay.engine.compaction.interceptor import ContextCompressionInterceptor
from jackstay.engine.compaction.keyinfo import KeyInfoExtractionStrategy
from jackstay.engine.compaction.plan import Surroundings, plan

MESSAGES = 10_000
PLAN_MS = 50.0
STEADY_MS = 0.2
STRATEGY = CompositeCompressionStrategy(KeyInfoExtractionStrategy(), HierarchicalCompressionStrategy())
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


def median_ms(work: Callable[[], object], rounds: int) -> float:
    """The median processor time of the work in milliseconds: what else runs beside it does not count."""
    times = []
    for _ in range(rounds):
        start = time.process_time()
        work()
        times.append(1_000 * (time.process_time() - start))
    return statistics.median(times)


def counting() -> float:
    """The first plan of a loaded session, whose messages nobody has counted yet."""
    params = ContextCompressionInterceptor(100, strategy=STRATEGY).params
    return median_ms(lambda: plan(history(MESSAGES), params, Surroundings(128_000)), 3)


def planning() -> float:
    """A pass over messages that are counted already, as in every run."""
    params = ContextCompressionInterceptor(100, strategy=STRATEGY).params
    transcript = history(MESSAGES)
    plan(transcript, params, Surroundings(128_000))
    return median_ms(lambda: plan(transcript, params, Surroundings(128_000)), 9)


def steady() -> float:
    """The check before a turn that needs nothing, with two new messages, behind 10 000 others."""
    params = ContextCompressionInterceptor(1_000_000, strategy=STRATEGY).params
    around = Surroundings(10**9)
    transcript = history(MESSAGES)
    assert plan(transcript, params, around) is None
    times = []
    for number in range(300):
        transcript = transcript.append(*turn(MESSAGES + number))
        times.append(median_ms(lambda grown=transcript: plan(grown, params, around), 1))  # type: ignore[misc]  # bound now
    return statistics.median(times)


def main() -> int:
    """Measure and compare."""
    figures = [
        (f"plan {MESSAGES} messages", planning(), PLAN_MS),
        ("check of a steady turn", steady(), STEADY_MS),
        (f"count and plan {MESSAGES} messages for the first time", counting(), None),
    ]
    for name, took, bound in figures:
        print(f"{name:55} {took:9.3f} ms" + (f"   (at most {bound})" if bound else ""))
    return int(any(bound is not None and took > bound for _, took, bound in figures))


if __name__ == "__main__":
    sys.exit(main())
