"""How long does it take to judge a command, beside the bare parse of the same text?

Run: `python bench/shell.py [--profile]`. Prints the first call after import, then per command over the
corpus (uncached):
median, p99, worst, and the ratio to the bare tree-sitter parse.
"""

from __future__ import annotations

import cProfile
import pstats
import statistics
import sys
import time
import tomllib
from pathlib import Path

CORPUS = Path(__file__).resolve().parent.parent / "tests" / "corpus" / "shell.toml"


def commands() -> list[str]:
    """Every command of the corpus."""
    table = tomllib.loads(CORPUS.read_text("utf-8"))
    found: list[str] = []
    for case in table["case"]:
        found += [line for line in case.get("lines", "").split("\n") if line.strip()]
        found += case.get("blocks", [])
    return found


def timed(run, items: list[str], rounds: int = 5) -> list[float]:
    """The best of some rounds for each item, in microseconds."""
    best = [float("inf")] * len(items)
    for _ in range(rounds):
        for at, item in enumerate(items):
            start = time.perf_counter_ns()
            run(item)
            best[at] = min(best[at], (time.perf_counter_ns() - start) / 1000)
    return best


def pick(values: list[float], share: float) -> float:
    """The value below which this share of them lies."""
    return sorted(values)[int(len(values) * share)]


def main() -> None:
    """Measure and print."""
    from jackstay.policy.shell import verdict

    items = commands()
    start = time.perf_counter()
    verdict.analyse_command("git log --oneline | head -5")
    first = (time.perf_counter() - start) * 1000
    from jackstay.policy.shell.grammar import parser

    judge = verdict.analyse_command.__wrapped__
    if "--profile" in sys.argv:
        profile = cProfile.Profile()
        profile.enable()
        for item in items:
            judge(item)
        profile.disable()
        pstats.Stats(profile).sort_stats("tottime").print_stats(35)
        return
    bare = timed(lambda text: parser().parse(text.encode("utf-8", "replace")), items)
    full = timed(judge, items)
    print(f"commands {len(items)}   first call {first:.1f} ms")
    for name, values in (("parse", bare), ("judge", full)):
        print(
            f"{name}: median {statistics.median(values):.1f} µs  mean {statistics.mean(values):.1f}  "
            f"p90 {pick(values, 0.9):.1f}  p99 {pick(values, 0.99):.1f}  worst {max(values):.1f}"
        )
    print(f"ratio of medians {statistics.median(full) / statistics.median(bare):.1f}")
    worst = sorted(zip(full, items, strict=True), reverse=True)[:5]
    for value, item in worst:
        print(f"  {value:8.1f} µs  {item[:90]!r}")


if __name__ == "__main__":
    main()
