"""The campaigns: each kills the mission in its own way, many times, and judges every single end.

python -m tests.campaign.campaigns [--random 500] [--seed 1]
"""

import argparse
import random
import shutil
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

from tests.campaign import mission
from tests.campaign import together as runs
from tests.campaign.mission import BUSY, ENDED, SESSION, STORE_FAILED, WAITS, die_at, live
from tests.campaign.supervise import (
    KILLED,
    ended,
    finish,
    fork,
    judge,
    killed_after,
    limited,
    prepare,
    shut,
    warm_up,
)

Moment = Literal["before", "after"]
MOMENTS: tuple[Moment, ...] = ("before", "after")


@contextmanager
def place() -> Iterator[Path]:
    """A folder for one mission, gone afterwards unless it failed."""
    folder = Path(tempfile.mkdtemp(prefix="mission-"))
    try:
        yield prepare(folder)
    except BaseException as problem:
        problem.add_note(f"what is left of it: {folder}")
        raise
    shutil.rmtree(folder)


def undisturbed() -> float:
    """The mission without any killing; how many seconds its first worker takes."""
    with place() as folder:
        began = time.monotonic()
        how = ended(fork(lambda: mission.work(folder)))
        took = time.monotonic() - began
        finish(folder, how)
        assert judge(folder) == {"ran": 12, "not run": 1}
    return took


STAGES = 3  # the first worker, one with nothing to do but wait on, the last


def at_every_commit(stages: Sequence[int] = range(STAGES), moments: Sequence[Moment] = MOMENTS) -> Counter[str]:
    """Kill right before and right after each commit of each worker that an undisturbed mission has."""
    total: Counter[str] = Counter()
    for stage in stages:
        for moment in moments:
            number = 1
            while _kill_at(stage, number, moment, total):
                number += 1
    return total


def _kill_at(stage: int, number: int, moment: Moment, total: Counter[str]) -> bool:
    """Kill the worker of this stage at this commit; False when it has no such commit."""
    with place() as folder:
        for _ in range(stage):
            assert ended(fork(lambda: mission.work(folder))) == WAITS
            assert ended(fork(lambda: mission.decide(folder))) == ENDED
        how = ended(fork(lambda: mission.work(folder, die_at(number, moment))))
        if how != KILLED:
            return False
        finish(folder, how)
        total += judge(folder)
        total["kills"] += 1
    return True


def together(*, every: int = 1, within: int = 1) -> Counter[str]:
    """Kill a worker with several missions at its groups of steps, and at the writing statements in them."""
    total: Counter[str] = Counter()
    for moment in MOMENTS:
        number = 1
        while (found := _together(die_at(number, moment))) is not None:
            total += found
            number += every
    statement = 1
    while (found := _together(live, statement)) is not None:
        total += found
        statement += within
    return total


def _together(kill: mission.Kill, statement: int = 0) -> Counter[str] | None:
    """What came of it; None where the worker had no such group or statement."""
    with place() as folder:
        return runs.killed(folder, kill, statement=statement)


def at_random(times: int, seed: int, took: float) -> Counter[str]:
    """Kill workers, one after the other, at random instants until one gets through; then another mission."""
    total: Counter[str] = Counter()
    dice = random.Random(seed)
    while total["kills"] < times:
        with place() as folder:
            how = KILLED
            for _ in range(dice.randint(1, 4)):
                how = killed_after(fork(lambda: mission.work(folder)), dice.uniform(0, 1.2 * took))
                total["kills"] += how == KILLED
                if how == WAITS:
                    ended(fork(lambda: mission.decide(folder)))
                if how == ENDED:
                    break
            finish(folder, how)
            total += judge(folder)
            total["missions"] += 1
    return total


def racing(times: int, seed: int, took: float) -> Counter[str]:
    """Two workers take up the same session at the same moment; in every second round one of them is killed."""
    total: Counter[str] = Counter()
    dice = random.Random(seed)
    for number in range(times):
        with place() as folder:
            how = killed_after(fork(lambda: mission.work(folder)), dice.uniform(0.3 * took, took))
            ends = [how]
            while ENDED not in ends:
                if WAITS in ends:
                    ended(fork(lambda: mission.decide(folder)))
                pair = [fork(lambda: mission.work(folder)) for _ in range(2)]
                first = killed_after(pair[0], dice.uniform(0, took)) if number % 2 else ended(pair[0])
                ends = [first, ended(pair[1])]
                assert all(end in (ENDED, WAITS, BUSY, KILLED) for end in ends), ends
                total["refused"] += ends.count(BUSY)
            total += judge(folder)
            total["missions"] += 1
    return total


def full_disk(steps: int, by: int = 4_000) -> Counter[str]:
    """The files of the store cannot grow any more, at one size after another, and later they can again."""
    total: Counter[str] = Counter()
    for size in range(60_000, 60_000 + steps * by, by):
        with place() as folder:
            how = limited(folder, size)
            assert how in (STORE_FAILED, WAITS, ENDED), how
            total["full"] += how == STORE_FAILED
            finish(folder, how)
            total += judge(folder)
            total["missions"] += 1
    return total


def read_only(times: int, seed: int) -> Counter[str]:
    """Killed somewhere, then taken up where the store cannot be written, then where it can."""
    total: Counter[str] = Counter()
    dice = random.Random(seed)
    for _ in range(times):
        with place() as folder:
            how = ended(fork(lambda: mission.work(folder, die_at(dice.randint(2, 6), "after"))))
            assert how == KILLED
            assert shut(folder) == STORE_FAILED
            finish(folder)
            total += judge(folder)
            total["missions"] += 1
    return total


def turned_read_only(every: int = 1) -> Counter[str]:
    """The disk turns read-only under the first worker at one commit after another, and later it is mended."""
    total: Counter[str] = Counter()
    number = 1
    while _turn_read_only(number, total):
        number += every
    return total


def _turn_read_only(number: int, total: Counter[str]) -> bool:
    """Let nothing be written from this commit on; False when the first worker has no such commit."""
    with place() as folder:
        how = ended(fork(lambda: mission.work(folder, mission.turn_read_only(number))))
        assert how in (STORE_FAILED, WAITS), how
        finish(folder, how)
        total += judge(folder)
        total["missions"] += how == STORE_FAILED
    return how == STORE_FAILED


def report(name: str, run: Callable[[], object]) -> None:
    began = time.monotonic()
    found = run()
    print(f"{name}: {dict(found) if isinstance(found, Counter) else found} ({time.monotonic() - began:.0f} s)")


def main() -> None:
    parser = argparse.ArgumentParser(description="Kill -9 campaign over one run of 13 calls.")
    parser.add_argument("--random", type=int, default=500, help="kills at random instants (default 500)")
    parser.add_argument("--seed", type=int, default=1)
    chosen = parser.parse_args()
    warm_up()
    took = undisturbed()
    print(f"session {SESSION!r}: {len(mission.CALLS)} calls; the first worker takes {took * 1000:.0f} ms")
    report("at every commit", at_every_commit)
    report("several at once", together)
    report("at random", lambda: at_random(chosen.random, chosen.seed, took))
    report("two workers", lambda: racing(40, chosen.seed, took))
    report("full disk", lambda: full_disk(25))
    report("read-only when taken up", lambda: read_only(10, chosen.seed))
    report("read-only in the middle", turned_read_only)
    print("nothing was lost, nothing ran twice")


if __name__ == "__main__":
    main()
