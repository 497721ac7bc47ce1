"""What does durability cost a run? One command: `python -m bench.durability [--json]`.

The same run is made on the memory store and on SQLite (WAL), in turn, in one process: the ratio is what counts.
Commits are timed where the engine makes them; bytes are the growth of the file.
"""

import argparse
import asyncio
import gc
import json
import statistics
import tempfile
import time
from collections.abc import Iterator
from typing import Any

from bench.run import Instant, engine, sqlite
from jackstay import MemoryStore, SQLiteStore
from jackstay.core.wire import encode
from jackstay.engine.ports import Record, SessionStore
from jackstay.policy.secrets import redact

ROUNDS = 7
TURNS = 200


class Timed:
    """A store that notes how long each commit took, in seconds; all else is the store's own."""

    def __init__(self, store: SessionStore) -> None:
        self.store = store
        self.took: list[float] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self.store, name)

    def commit(self, session_id: str, expected: int, record: Record) -> int:
        began = time.perf_counter()
        version = self.store.commit(session_id, expected, record)
        self.took.append(time.perf_counter() - began)
        return version


def step_s(store: SessionStore, turns: int = TURNS) -> float:
    """Seconds a step (a reason turn with one call) takes, all in all."""
    made = engine(Instant(turns), store, turns)

    async def run() -> float:
        began = time.perf_counter()
        await made.prompt("go").session("s").call()
        return time.perf_counter() - began

    gc.collect()
    return asyncio.run(run()) / turns


def cost(folder: str) -> dict[str, float]:
    """The step on both stores, measured in turn."""
    ratios, memory, normal = [], [], []
    for _ in range(ROUNDS):
        store = sqlite(folder)
        memory.append(step_s(MemoryStore()))
        normal.append(step_s(store))
        store.close()
        ratios.append(normal[-1] / memory[-1])
    return {
        "step, memory store, ms": statistics.median(memory) * 1e3,
        "step, SQLite WAL, ms": statistics.median(normal) * 1e3,
        "SQLite ÷ memory": statistics.median(ratios),
    }


def commits(folder: str) -> dict[str, float]:
    """Commits as the engine makes them, early and late in a long run."""
    store = sqlite(folder)
    timed = Timed(store)
    step_s(timed, 1000)
    store.close()
    return {
        "commit, median, ms": statistics.median(timed.took) * 1e3,
        "commit, 99 %, ms": sorted(timed.took)[int(len(timed.took) * 0.99)] * 1e3,
        "commits a step": len(timed.took) / 1000,
        "commit at turn 900 ÷ at turn 100": statistics.median(timed.took[-400:])
        / statistics.median(timed.took[100:500]),
    }


def size(store: SQLiteStore, turns: int) -> tuple[int, int]:
    """Bytes of the file and of the messages' JSON after so many turns."""
    step_s(store, turns)
    stored = store.load("s")
    assert stored is not None
    said = sum(len(encode(message)) for message in stored.state.transcript)
    store.close()
    return store.database.path.stat().st_size, said


def bytes_stored(folder: str) -> dict[str, float]:
    """The file against the JSON of its messages: events, heads and indexes included."""
    (short, said_short), (long, said_long) = size(sqlite(folder), 200), size(sqlite(folder), 1000)
    return {
        "file ÷ JSON of messages, 200 turns": short / said_short,
        "file ÷ JSON of messages, 1000 turns": long / said_long,
        "growth ÷ JSON of messages, from 200 to 1000": (long - short) / (said_long - said_short),
    }


def redaction() -> dict[str, float]:
    """Looking for secrets in results that hold none."""
    line = "-rw-r--r-- 1 user user 1234 Jan  1 12:00 some_module.py\n"
    found = {}
    for chars in (20, 2_000, 20_000):
        text = (line * (chars // len(line) + 1))[:chars]
        redact(text)
        took = []
        for _ in range(20):
            began = time.perf_counter()
            redact(text)
            took.append(time.perf_counter() - began)
        found[f"redact {chars} characters, ms"] = statistics.median(took) * 1e3
    return found


def measured() -> Iterator[dict[str, float]]:
    with tempfile.TemporaryDirectory() as folder:
        yield cost(folder)
        yield commits(folder)
        yield bytes_stored(folder)
        yield redaction()


def main() -> None:
    parser = argparse.ArgumentParser(description="The cost of durability.")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    found: dict[str, float] = {}
    as_json = parser.parse_args().json
    for part in measured():
        found |= part
        if not as_json:
            for label, value in part.items():
                print(f"{label:48} {value:10.3f}", flush=True)
    if as_json:
        print(json.dumps(found, ensure_ascii=False))


if __name__ == "__main__":
    main()
