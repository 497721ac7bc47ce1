"""What does storing a session cost, against a bare SQLite insert in the same run?

    python bench/store.py [--sessions 10000] [--events 500] [--json]

Ratios are what counts: the insert is measured between the commits it is compared with.
"""

import argparse
import json
import sqlite3
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "contracts"))

from made import Play

from jackstay.core.messages import ToolCall
from jackstay.core.wire import encode
from jackstay.engine.ports import Record, SessionStore
from jackstay.store.memory import MemoryStore
from jackstay.store.sqlite import SQLiteStore

TURNS = 200


class Timed:
    """A store that notes how long each commit took, in microseconds."""

    def __init__(self, store: SessionStore) -> None:
        self.store, self.took = store, []

    def commit(self, session_id: str, expected: int, record: Record) -> int:
        start = time.perf_counter()
        version = self.store.commit(session_id, expected, record)
        self.took.append((time.perf_counter() - start) * 1e6)
        return version


def session(store: SessionStore, name: str, turns: int = TURNS) -> tuple[Play, list[float]]:
    timed = Timed(store)
    play = Play(timed, name)
    play.begins("please look around in the repository")
    for number in range(turns):
        play.turn(number)
    play.answers()
    return play, timed.took


def bare(path: Path, synchronous: str, size: int, rows: int = 400) -> float:
    """Median microseconds of an insert of `size` bytes with nothing around it."""
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute(f"PRAGMA synchronous = {synchronous}")
    connection.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, data BLOB)")
    took, data = [], b"x" * size
    for _ in range(rows):
        start = time.perf_counter()
        connection.execute("INSERT INTO t (data) VALUES (?)", (data,))
        took.append((time.perf_counter() - start) * 1e6)
    connection.close()
    return statistics.median(took)


def commits(folder: Path, synchronous: str, rounds: int = 5) -> dict[str, float]:
    floors, ours, memory = [], [], []
    for number in range(rounds):
        floors.append(bare(folder / f"bare-{synchronous}-{number}.db", synchronous, 140))
        store = SQLiteStore(folder / f"{synchronous}-{number}.db", synchronous=synchronous)
        ours.append(statistics.median(session(store, "s")[1]))
        memory.append(statistics.median(session(MemoryStore(), "s")[1]))
        store.close()
    floor, mine = statistics.median(floors), statistics.median(ours)
    return {
        "bare insert µs": floor, "commit µs": mine, "× bare insert": mine / floor,
        "memory commit µs": statistics.median(memory), "× memory": mine / statistics.median(memory),
    }  # fmt: skip


def bytes_stored(folder: Path) -> dict[str, float]:
    path = folder / "bytes.db"
    store = SQLiteStore(path)
    store.sessions()
    store.close()
    empty = path.stat().st_size
    play, _ = session(store, "s")
    store.close()
    grown = path.stat().st_size - empty
    said = sum(len(encode(message)) for message in play.state.transcript)
    return {
        "file after 200 turns, bytes": path.stat().st_size, "bytes a turn": grown / TURNS,
        "bytes ÷ JSON of the messages": grown / said,
    }  # fmt: skip


def growth(folder: Path) -> dict[str, float]:
    """Does a commit cost more when the history is long?"""
    store = SQLiteStore(folder / "growth.db")
    _, took = session(store, "s", 2000)
    store.close()
    return {
        "commit at turn 2000 ÷ at turn 100": statistics.median(took[-400:]) / statistics.median(took[100:500])
    }


def seconds(work: Callable[[], object], times: int = 5) -> float:
    took = []
    for _ in range(times):
        start = time.perf_counter()
        work()
        took.append(time.perf_counter() - start)
    return statistics.median(took)


def many(folder: Path, count: int, events: int) -> dict[str, float]:
    """A file of `count` sessions of `events` events: one is made by commits, the others are its copies."""
    path = folder / "many.db"
    store = SQLiteStore(path)
    play = Play(store, "s0")
    play.begins()
    while play.state.seq < events - 5:
        play.turn(play.version)
    play.suspends(ToolCall("call_w", "write", {"file_path": "a"}))
    store.close()
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA synchronous = OFF")
    connection.execute("BEGIN")
    columns = [row[1] for row in connection.execute("PRAGMA table_info(sessions)")][2:]
    for key in range(2, count + 1):
        waits = key % 100 == 0
        values = ", ".join("NULL" if c == "waiting_since" and not waits else c for c in columns)
        copy = f"SELECT ?, ?, {values} FROM sessions WHERE key = 1"
        connection.execute(f"INSERT INTO sessions (key, id, {', '.join(columns)}) {copy}", (key, f"s{key}"))
        connection.execute(
            "INSERT INTO steps SELECT id + ? * (1 << 32), first_seq, run_id, checksum, data FROM steps "
            "WHERE id < (2 << 32)",
            (key - 1,),
        )
    connection.execute("COMMIT")
    connection.close()

    def opened(ask: Callable[[SQLiteStore], object]) -> float:
        def once() -> None:
            fresh = SQLiteStore(path)
            ask(fresh)
            fresh.close()

        return seconds(once) * 1e3

    return {
        "sessions": count, "events each": play.state.seq, "file MB": path.stat().st_size / 1e6,
        "open and list 1000, ms": opened(lambda s: s.sessions()),
        "open and list all, ms": opened(lambda s: s.sessions(limit=count)),
        "open and list pending, ms": opened(lambda s: s.pending()),
        "open and load one, ms": opened(lambda s: s.load("s0")),
        "open and read its events, ms": opened(lambda s: list(s.events("s0"))),
        "open and read its last events, ms": opened(lambda s: list(s.events("s0", play.state.seq - 5))),
    }  # fmt: skip


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--sessions", type=int, default=10_000)
    options.add_argument("--events", type=int, default=500)
    options.add_argument("--json", action="store_true")
    chosen = options.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        found = {
            "commit, WAL normal": commits(folder, "normal"),
            "commit, WAL full": commits(folder, "full"),
            "bytes": bytes_stored(folder),
            "growth": growth(folder),
            "many sessions": many(folder, chosen.sessions, chosen.events),
        }
    if chosen.json:
        print(json.dumps(found, ensure_ascii=False))
        return
    for title, figures in found.items():
        print(title)
        for label, value in figures.items():
            print(f"  {label:36} {value:12,.2f}")


if __name__ == "__main__":
    main()
