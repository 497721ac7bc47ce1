"""What the discipline costs: a decision, the transaction that keeps its state, and a turn of a run.

    PYTHONPATH=src python bench/discipline.py

Prints medians with their part of the bound (a decision 20 µs, the transaction 1 ms) and the ratio of a run of
reads with and without discipline. Exits with 1 when a bound is passed.
"""

import asyncio
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

from jackstay import HarnessEngine, MemoryStore, SQLiteStore
from jackstay.core.events import PhaseChangedEvent, RunStartEvent
from jackstay.core.facts import CallFacts, PathFact
from jackstay.core.messages import ToolCall
from jackstay.core.phase import Phase, PhaseState
from jackstay.core.state import PolicyState, RunState
from jackstay.core.tools import READS
from jackstay.engine.ports import Record
from jackstay.policy.discipline import decide
from jackstay.testing import ScriptedModel, call, says

DECIDE_US, COMMIT_MS = 20.0, 1.0
CALLS = 20_000
TURNS = 100


def median(work: Callable[[], object], rounds: int) -> float:
    """The median seconds of one round."""
    times = []
    for _ in range(rounds):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def decisions() -> dict[str, float]:
    """Microseconds of a decision about a call that is no command, by what it is about."""
    path = PathFact("app.conf", "/srv/app.conf", "writes", inside=True)
    write = ToolCall("c1", "write", {"file_path": "app.conf", "content": "x" * 1000})
    facts = CallFacts(effects=frozenset({"reads", "writes"}), paths=(path,), backup="taken")
    read, seen = ToolCall("c2", "read", {"file_path": "app.conf"}), CallFacts(effects=READS)
    changed = tuple(f"/srv/file{number}" for number in range(200))

    def of(phase: Phase, one: ToolCall, its: CallFacts) -> float:
        state = PolicyState(PhaseState(phase, approved_by="user", acted=True, changed=changed), mode="strict")
        return median(lambda: decide(state, one, its), CALLS) * 1e6

    return {
        "a read in research": of(Phase.TASK_STARTED, read, seen),
        "a refused write in research": of(Phase.TASK_STARTED, write, facts),
        "a write in modifying": of(Phase.MODIFYING, write, facts),
        "a refused write in closing": of(Phase.CLOSING, write, facts),
    }


def commit_ms(folder: Path) -> float:
    """Milliseconds of the transaction that keeps a change of the phase."""
    store, numbers = SQLiteStore(folder / "bench.db"), count(2)
    state = RunState("s1", run_id="r1", seq=1, policy=PolicyState(mode="strict"))
    version = store.commit("s1", 0, Record(state, events=(RunStartEvent("r1", "s1", 1, 0.0),)))

    def move() -> None:
        nonlocal version
        seq = next(numbers)
        to = Phase.EXECUTING if seq % 2 else Phase.MODIFYING
        head = RunState(
            "s1", run_id="r1", seq=seq, policy=PolicyState(PhaseState(to, acted=True), mode="strict")
        )
        told = PhaseChangedEvent("r1", "s1", seq, 0.0, Phase.EXECUTING, to, "bench")
        version = store.commit("s1", version, Record(head, events=(told,)))

    took = median(move, 500) * 1e3
    store.close()
    return took


def turn_ms(folder: Path, mode: str) -> float:
    """Milliseconds of a turn that reads, of a run of many, in memory."""
    (folder / "app.conf").write_text("a=1\n")
    reads = [says(call("read", file_path="app.conf", limit=number)) for number in range(1, TURNS + 1)]

    def run() -> Any:
        engine = HarnessEngine(
            workspace=str(folder), harness_home=str(folder / "home"), session_provider=MemoryStore(),
            model=ScriptedModel([*reads, "done"]), tools=("read",), discipline=mode, max_turns=TURNS + 2,
            compression_threshold=(10_000, 0.9), installed_extensions=False,
        )  # fmt: skip
        return asyncio.run(engine.prompt("look").session("s1").call())

    assert run().outcome == "answered"
    return median(run, 7) * 1e3 / TURNS


def main() -> int:
    """Measure and print; 1 when a bound is passed."""
    worst = 0.0
    for what, took in decisions().items():
        worst = max(worst, took / DECIDE_US)
        print(f"decide, {what}: {took:.1f} µs, {took / DECIDE_US:.2f} of the bound")
    with tempfile.TemporaryDirectory() as folder:
        took = commit_ms(Path(folder))
        worst = max(worst, took / COMMIT_MS)
        print(f"state transaction on SQLite: {took:.3f} ms, {took / COMMIT_MS:.2f} of the bound")
        off, strict = turn_ms(Path(folder), "off"), turn_ms(Path(folder), "strict")
        print(
            f"a turn that reads: {off:.3f} ms without, {strict:.3f} ms with discipline, ratio {strict / off:.2f}"
        )
    return worst > 1


if __name__ == "__main__":
    sys.exit(main())
