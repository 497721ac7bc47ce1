"""Kills the mission's workers, has others go on, and judges what is left in the end.

Workers are forks of this process: each is another process, and starts in a hundredth of the time.
"""

import contextlib
import ctypes
import importlib
import os
import resource
import signal
import time
import warnings
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from jackstay import SQLiteStore
from jackstay.core.events import (
    HITLDecidedEvent,
    HITLPendingEvent,
    RunEndEvent,
    RunStartEvent,
    ToolCallEndEvent,
    ToolCallStartEvent,
)
from jackstay.core.messages import ToolResult, user
from jackstay.core.state import RunState
from jackstay.core.wire import decode_event, decode_json
from jackstay.engine.ports import ModelRequest
from jackstay.models.registry import open_model
from jackstay.policy.shell import analyse_command
from tests.campaign import mission
from tests.campaign.mission import BUSY, ENDED, SESSION, STORE_FAILED, WAITS
from tests.make import unanswered
from tests.shapes import check_anthropic, check_openai

KILLED = -signal.SIGKILL
MOST_WORKERS = 40  # that one mission may need; more means that it does not get on
IDEMPOTENT = ("look-", "write-")
CAPABILITY_VERSION_3 = 0x20080522  # capset(2)


def warm_up() -> None:
    """Load what workers load on first use, once for all of them. Starts no thread and opens no file."""
    for name in ("anyio._backends._asyncio", "jackstay.models.openai", "jackstay.tools.bash"):
        importlib.import_module(name)
    analyse_command("echo a >> b")


def prepare(folder: Path) -> Path:
    """A place for one mission."""
    (folder / "work").mkdir(parents=True)
    return folder


def fork(act: Callable[[], int]) -> int:
    """Have another process do this; its process id."""
    with (
        warnings.catch_warnings()
    ):  # newer Pythons warn where a test runner has threads; workers use none of it
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if child:
        return child
    code = 70
    try:
        code = act()
    except BaseException:
        import traceback

        traceback.print_exc()
    finally:
        os._exit(code)


def ended(child: int) -> int:
    """How the process ended: its exit code, or the negative number of its signal."""
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def killed_after(child: int, seconds: float) -> int:
    """Let it run for a while, then kill it -9."""
    time.sleep(seconds)
    with contextlib.suppress(ProcessLookupError):
        os.kill(child, signal.SIGKILL)
    return ended(child)


def finish(folder: Path, how: int = KILLED) -> int:
    """Worker after worker, each in a process of its own, until the run has ended; how many it took."""
    workers = 0
    while how != ENDED:
        workers += 1
        assert workers <= MOST_WORKERS, "the run does not get on"
        assert how in (KILLED, WAITS, BUSY, STORE_FAILED), f"a worker ended with {how}"
        if how == WAITS:
            assert ended(fork(lambda: mission.decide(folder))) == ENDED
        how = ended(fork(lambda: mission.work(folder)))
    return workers


def limited(folder: Path, bytes_left: int) -> int:
    """A worker whose files cannot grow beyond so many bytes: the disk is full in the middle."""

    def act() -> int:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (bytes_left, bytes_left))
        return mission.work(folder)

    return ended(fork(act))


def shut(folder: Path) -> int:
    """A worker that may read the store and not write it; how it ended. The store is left as it was."""
    stored = [path for path in folder.rglob("*") if path.name.startswith("s.db")]
    before = {path: path.read_bytes() for path in stored}
    for path in stored:
        path.chmod(0o400)

    def act() -> int:
        _bound_by_file_modes()
        return mission.work(folder)

    how = ended(fork(act))
    for path in stored:
        path.chmod(0o600)
    assert {path: path.read_bytes() for path in stored if path.name == "s.db"}.items() <= before.items()
    return how


def _bound_by_file_modes() -> None:
    """Give up what lets root write everything, and stay who we are: the interpreter must remain readable."""
    if os.geteuid() != 0:
        return
    header, nothing = (ctypes.c_uint32 * 2)(CAPABILITY_VERSION_3, 0), (ctypes.c_uint32 * 6)()
    if ctypes.CDLL(None, use_errno=True).capset(header, nothing):
        raise OSError(ctypes.get_errno(), "capset")


# -- judging -----------------------------------------------------------------------------------------------


def judge(folder: Path) -> Counter[str]:
    """Raises AssertionError unless nothing was lost and nothing done twice; what became of the calls."""
    store = SQLiteStore(folder / "s.db")
    try:
        assert store.check() == []
        stored = store.load(SESSION)
        assert stored is not None
        assert stored.dropped == ()
        events = list(store.events(SESSION))
        return _judge(folder, stored.state, events)
    finally:
        store.close()


def _judge(folder: Path, state: RunState, events: list) -> Counter[str]:
    assert (state.outcome, state.text) == ("answered", "All done.")
    assert [event.seq for event in events] == list(range(1, state.seq + 1)), "the numbers have a gap"
    told = [decode_event(line) for line in (folder / "told").read_bytes().splitlines()]
    by_seq = {event.seq: event for event in events}
    assert all(by_seq.get(event.seq) == event for event in told), "what was told is not what is stored"
    assert len({event.seq for event in told}) == len(told), "an event was told twice"
    assert len({event.run_id for event in events}) == 1, "the run changed its name"
    starts = [event for event in events if isinstance(event, RunStartEvent)]
    assert [event.resumed for event in starts] == [False, *[True] * (len(starts) - 1)]
    assert isinstance(events[-1], RunEndEvent)

    ends = [event for event in events if isinstance(event, ToolCallEndEvent)]
    assert sorted(event.call_id for event in ends) == sorted(mission.CALLS), "a call without end, or with two"
    _check_effects(folder, ends)
    _check_indeterminate(events, ends)
    _check_transcript(state, ends)
    return Counter({True: "ran", False: "not run", None: "nobody knows"}[event.executed] for event in ends)


def _check_effects(folder: Path, ends: list[ToolCallEndEvent]) -> None:
    """What a call is said to have done is what it did."""
    counted = Counter((folder / "work" / "count").read_text().split())
    for end in ends:
        if end.call_id.startswith(IDEMPOTENT):
            continue
        times = counted.pop(end.call_id, 0)
        allowed = {True: (1,), False: (0,), None: (0, 1)}[end.executed]
        assert times in allowed, f"{end.call_id} ran {times} times and is told as executed={end.executed}"
    assert not counted, "something ran that was no call"


def _check_indeterminate(events: list, ends: list[ToolCallEndEvent]) -> None:
    """A call that was started, and lost with its process, is asked about as one that may have run."""
    asked = {
        task.call_id
        for event in events
        if isinstance(event, HITLPendingEvent)
        for task in event.pending_tasks
        if task.indeterminate
    }
    unknown = {end.call_id for end in ends if end.executed is None}
    assert unknown == asked
    decided = Counter(event.call_id for event in events if isinstance(event, HITLDecidedEvent))
    assert all(times <= 1 + (call_id in asked) for call_id, times in decided.items()), (
        "a decision was told twice"
    )
    starts = Counter(event.call_id for event in events if isinstance(event, ToolCallStartEvent))
    for call_id, times in starts.items():
        assert times == 1 or call_id in asked or call_id.startswith(IDEMPOTENT), (
            f"{call_id} began {times} times"
        )


def _check_transcript(state: RunState, ends: list[ToolCallEndEvent]) -> None:
    """Every provider would take what is left, and it says what the events say."""
    assert unanswered(state.transcript) == []
    results = [part for message in state.transcript for part in message.parts if isinstance(part, ToolResult)]
    assert [result.call_id for result in results] == mission.CALLS
    assert {r.call_id: (r.text, r.executed) for r in results} == {e.call_id: (e.text, e.executed) for e in ends}
    check_bodies(state)


def check_bodies(state: RunState) -> None:
    """Raises AssertionError when a strict server would refuse this conversation with one more prompt."""
    request = ModelRequest("You are a test.", state.transcript.append(user("and now?")))
    for wire, check in (("openai", check_openai), ("anthropic", check_anthropic)):
        env = {"OPENAI_API_KEY": "k", "ANTHROPIC_API_KEY": "k"}
        model = open_model(f"{wire}:test-model@http://127.0.0.1:9", env=env)
        check(decode_json(model._body(request)))  # type: ignore[attr-defined]  # what it would send
