"""A session that was compressed goes on in another process, wherever the first one died."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from jackstay import SQLiteStore
from jackstay.core import wire
from jackstay.core.events import ContextSizeEvent
from jackstay.core.messages import Message
from tests.dying import CALLS, FILLER, guard
from tests.longruns import Worker, engine, facts_in, is_question, named, passes, run
from tests.make import unanswered

ROOT = Path(__file__).resolve().parents[2]
DEATHS = [
    ("turn", 5), ("turn", 9), ("turn", 10), ("turn", 40), ("question", 1), ("question", 2), ("question", 7),
    ("overflow", 1), ("overflow", 4),
]  # fmt: skip


def die(database: Path, where: str, number: int) -> None:
    """Let a process work until it dies."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.dying", str(database), where, str(number)], cwd=ROOT, check=False,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")}, capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert done.returncode == 9, done.stderr


def lines(path: Path) -> list[bytes]:
    return path.read_bytes().splitlines()


@pytest.mark.parametrize(("where", "number"), DEATHS)
def test_killed_anywhere_around_a_compression_it_goes_on_elsewhere(tmp_path, where, number) -> None:
    database = tmp_path / "sessions.db"
    die(database, where, number)
    store = SQLiteStore(database)
    before = store.load("s").state
    shown = [wire.convert(wire.decode_json(line), Message) for line in lines(database.with_suffix(".shown"))]
    if where == "question":  # the observations that called for a summary had not been shown yet
        assert list(before.transcript)[: len(shown)] == shown
    else:
        assert list(before.transcript) == shown
    stored = list(store.events("s"))
    assert [wire.decode_event(line) for line in lines(database.with_suffix(".told"))] == stored
    model = Worker(CALLS)
    made = engine(model, store=store, filler=FILLER, compression_interceptor=guard(where))
    more = run(made, None)
    assert [event.type for event in more[:2]] == ["run_start", "context_size"]
    assert more[0].resumed
    started = [event.turn for event in more if event.type == "reason_start"]
    assert started == list(range(started[0], started[0] + len(started)))
    assert started[0] == len({e.turn for e in stored if e.type == "reason_end"}) + 1
    assert more[-1].outcome == "answered"
    everything = list(store.events("s"))
    assert everything == stored + [event for event in more if event.seq is not None]
    assert [event.seq for event in everything] == list(range(1, len(everything) + 1))
    looked = [event.call_id for event in everything if event.type == "tool_call_end"]
    assert looked == [named(n) for n in range(CALLS)]
    for request in model.requests:
        assert unanswered(request.transcript) == []
    assert list(store.load("s").state.transcript)[:-1] == list(model.requests[-1].transcript)
    store.close()


def test_several_compressions_in_both_processes_leave_one_summary_and_no_hole(tmp_path) -> None:
    database = tmp_path / "sessions.db"
    die(database, "turn", 40)
    store = SQLiteStore(database)
    earlier = [e for e in store.events("s") if isinstance(e, ContextSizeEvent) and e.compressed]
    model = Worker(CALLS)
    events = run(engine(model, store=store, filler=FILLER, compression_interceptor=guard("turn")), None)
    assert (len(earlier) > 3, len(passes(events)) > 2) == (True, True)
    state = store.load("s").state
    assert sum(message.note == "summary" for message in state.transcript) == 1
    kept = facts_in(state.transcript)
    assert kept == [f"fact-{n} is known" for n in range(CALLS - len(kept), CALLS)]
    assert state.rows > len(state.transcript)
    assert state.view[-1][1] == -1
    assert not any(is_question(request) for request in model.requests)
    store.close()
