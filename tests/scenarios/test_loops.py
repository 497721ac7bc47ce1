"""An agent that goes round in circles, in whole runs: it is told so, and goes on (first seed §5)."""

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import pytest

from jackstay import HITL, HITLDecision, HITLInterceptor, MemoryStore, SQLiteStore, tool
from jackstay.core.events import GateBlockedEvent, LoopDetectedEvent, RunEndEvent, kinds
from jackstay.core.messages import Message, ToolCall, assistant
from jackstay.core.phase import Phase, PhaseState
from jackstay.core.state import PolicyState, RunState
from jackstay.engine.bounds import RunBounds
from jackstay.engine.ports import ModelRequest
from jackstay.engine.stoploop import StopLoopInterceptor
from jackstay.testing import Run, call, play, resume, says
from tests.longruns import Worker, compression, engine, named, passes, run
from tests.make import Player, unanswered

ROOT = Path(__file__).resolve().parents[2]
CALL = ["action_start", "tool_call_start", "tool_call_end", "action_end"]


@tool(effects={"reads"})
async def look(name: str) -> str:
    """Look at something."""
    return f"saw {name}"


def clock():
    """A tool whose result changes with every call."""
    ticks = iter(range(1_000))

    @tool(effects={"reads"})
    async def status(job: str) -> str:
        """How far is the job?"""
        return f"{job}: {next(ticks)} of 1000 files"

    return status


def played(*turns, **settings) -> Run:
    return play([*turns, "done"], tools=(look, *settings.pop("tools", ())), max_turns=100, **settings)


def found(done: Run) -> list[LoopDetectedEvent]:
    return [event for event in done.events if isinstance(event, LoopDetectedEvent)]


A, B, C, D = (says(call("look", name=name)) for name in "abcd")


def test_the_same_call_three_times_brings_a_word_behind_the_observation_and_the_run_goes_on() -> None:
    done = played(A, A, A, B)
    turn = ["reason_start", "reason_end", *CALL]
    assert done.kinds == [
        "run_start", *turn, *turn, *turn, "loop_detected", *turn, "reason_start", "reason_end", "run_end",
    ]  # fmt: skip
    (loop,) = found(done)
    assert (loop.kind, loop.count) == ("same_call", 3)
    told = list(done.model.requests[3].transcript)[-1]
    assert (told.role, told.note, told.text) == ("user", "loop", loop.text)
    assert 'look {"name":"a"}' in loop.text
    assert list(done.model.requests[3].transcript)[-2].role == "tool"
    assert done.state.outcome == "answered"
    assert unanswered(done.state.transcript) == []


@pytest.mark.parametrize(
    "turns",
    [
        (A, B, C),
        (A, B, C, D, A, B, C, D),
        tuple(says(call("look", name=f"page {n}")) for n in range(20)),
        tuple(says(call("status", job="j")) for _ in range(20)),
    ],
    ids=["three different reads", "twice round", "paging", "polling"],
)
def test_what_is_no_loop(turns) -> None:
    assert found(played(*turns, tools=(clock(),))) == []


def test_trying_again_after_an_edit_is_no_loop() -> None:
    @tool(effects={"writes"})
    async def edit(text: str) -> str:
        """Change a file."""
        return f"wrote {text}"

    rounds = [turn for n in range(6) for turn in (says(call("edit", text=f"try {n}")), A)]
    assert [event.count for event in found(played(*rounds, tools=(edit,)))] in ([], [6])
    assert found(played(*rounds[:8], tools=(edit,))) == []


def test_trying_again_after_an_edit_by_a_command_is_no_loop(tmp_path: Path) -> None:
    """As an agent works that has no tool but bash."""
    (tmp_path / "settings.ini").write_text("try = 0\n")
    rounds = []
    for n in range(5):
        rounds += [says(call("bash", command=f"sed -i 's/try = .*/try = {n}/' settings.ini"))]
        rounds += [says(call("bash", command="grep -c done settings.ini"))]
    seen = play([*rounds, "done"], tools=("bash",), workspace=str(tmp_path), max_turns=100)
    assert (tmp_path / "settings.ini").read_text() == "try = 4\n"
    assert found(seen) == []
    again = play([*rounds[:1] * 3, "done"], tools=("bash",), workspace=str(tmp_path), max_turns=100)
    assert [loop.count for loop in found(again)] == [3]  # the same edit again is no other attempt


def test_a_round_of_four_three_times() -> None:
    done = played(*[A, B, C, D] * 3)
    (loop,) = found(done)
    assert (loop.kind, loop.count) == ("cycle", 3)
    assert kinds(done.events).index("loop_detected") > 12 * 4


def test_the_same_error_whatever_the_arguments() -> None:
    @tool(effects={"reads"})
    async def fetch(url: str) -> str:
        """Fetch a page."""
        raise OSError(f"cannot reach {url!r}: no route to host")

    done = played(*(says(call("fetch", url=f"http://host/{n}")) for n in range(3)), tools=(fetch,))
    assert [(loop.kind, loop.count) for loop in found(done)] == [("same_error", 3)]


def test_copies_within_one_turn() -> None:
    done = played(says(*[call("look", name="a")] * 30))
    assert [(loop.kind, loop.count) for loop in found(done)] == [("copies", 30)]


def test_calls_that_are_refused_again_and_again_are_a_loop_too() -> None:
    done = played(*[says(call("lok", name="a"))] * 3)
    assert [loop.kind for loop in found(done)] == ["same_call"]


def test_repeated_words_without_calls() -> None:
    closing = PhaseState(Phase.CLOSING)
    same = [assistant("All is done, believe me.")] * 3
    player = Player(
        list(same), RunBounds(discipline="strict", loops=StopLoopInterceptor().params),
        state=RunState("s1", policy=PolicyState(phase=closing, mode="strict")),
    )  # fmt: skip
    player.begin("close it")
    assert [event.turn for event in player.events if event.type == "reason_end"] == [1, 2, 3]
    (loop,) = [event for event in player.events if isinstance(event, LoopDetectedEvent)]
    assert (loop.kind, loop.count) == ("same_text", 3)
    assert player.state.outcome == "answered"


def test_a_new_prompt_is_no_repetition() -> None:
    model = Worker(0)
    made = engine(model)
    told = [event for n in range(6) for event in run(made, "thanks")]
    assert "loop_detected" not in kinds(told)
    assert [event.text for event in told if isinstance(event, RunEndEvent)] == ["done"] * 6


def test_switched_off_and_set_otherwise_while_it_runs() -> None:
    guard = StopLoopInterceptor()
    guard.set_enabled(False)
    assert found(played(*[A] * 6, stop_loop_interceptor=guard)) == []
    guard.set_enabled(True).set_max_repeat(5)
    assert [loop.count for loop in found(played(*[A] * 6, stop_loop_interceptor=guard))] == [5]


# -- counters survive --------------------------------------------------------------------------------------


def round_of(*numbers: int):
    """Turns that look at these numbers, again and again."""

    def before(number: int, request: ModelRequest) -> Message | None:
        if number >= 3 * len(numbers):
            return assistant("done")
        return assistant("", ToolCall(named(number), "look", {"n": numbers[number % len(numbers)]}))

    return before


def test_counters_outlive_compression() -> None:
    model = Worker(0, before=round_of(1, 2, 3, 4, 5, 6, 7, 8))
    events = run(engine(model, compression_interceptor=compression(10)))
    assert len(passes(events)) > 3
    loops = [event for event in events if isinstance(event, LoopDetectedEvent)]
    assert [(loop.kind, loop.count) for loop in loops] == [("cycle", 3)]


DIES = """
import os, sys
from jackstay import SQLiteStore
from tests.longruns import Worker, engine
from tests.scenarios.test_loops import round_of
def dies(number, request):
    if number == 2:
        os._exit(9)
    return round_of(1)(number, request)
engine(Worker(0, before=dies), store=SQLiteStore(sys.argv[1])).prompt("go").session("s").call_sync()
"""


def test_counters_outlive_the_process(tmp_path) -> None:
    database = tmp_path / "sessions.db"
    done = subprocess.run(
        [sys.executable, "-c", DIES, str(database)], cwd=ROOT, check=False, capture_output=True, text=True,
        env={**os.environ, "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}"}, timeout=60,
    )  # fmt: skip
    assert done.returncode == 9, done.stderr
    store = SQLiteStore(database)
    events = run(engine(Worker(0, before=round_of(1)), store=store), None)
    assert [e.count for e in events if isinstance(e, LoopDetectedEvent)] == [3]
    assert events[-1].outcome == "answered"
    store.close()


# -- the ladder, where it is switched on -------------------------------------------------------------------


def ladder(*rungs: str) -> StopLoopInterceptor:
    return StopLoopInterceptor().set_rungs(*rungs)


def test_the_second_time_it_is_asked_for_another_plan_and_its_phase_stays() -> None:
    done = play(
        [*[A] * 6, "done"], "look around", tools=(look,), stop_loop_interceptor=ladder("remind", "replan")
    )
    first, second = found(done)
    assert "Go back to planning" not in first.text
    assert "Go back to planning" in second.text
    assert done.state.policy.phase.phase is Phase.NO_TASK
    assert done.state.outcome == "answered"


def test_a_person_is_asked_about_the_calls_that_follow() -> None:
    held = play(
        [*[A] * 3, says(call("look", name="b"), call("look", name="c")), D, "done"], tools=(look, "hitl"),
        hitl_enabled=True, stop_loop_interceptor=ladder("ask"),
    )  # fmt: skip
    assert held.kinds[-2:] == ["hitl_pending", "run_end"]
    session = held.engine.get_session("test")
    assert [(t.tool_name, t.args) for t in session.pending_tasks()] == [
        ("look", {"name": "b"}),
        ("look", {"name": "c"}),
    ]
    assert "A person is asked how to go on" in session.pending_tasks()[0].comment
    HITL.submit_all(session, {task.call_id: HITLDecision.approve() for task in session.pending_tasks()})
    gone_on = resume(held)
    assert gone_on.kinds[:3] == ["run_start", "hitl_decided", "hitl_decided"]
    assert gone_on.state.outcome == "answered"
    assert "hitl_pending" not in gone_on.kinds


def test_a_person_can_end_it_there() -> None:
    held = play(
        [*[A] * 3, A, "done"], tools=(look, "hitl"), hitl_enabled=True, stop_loop_interceptor=ladder("ask"),
        hitl_interceptor=HITLInterceptor().on_sensitive_tool("nothing"),
    )  # fmt: skip
    session = held.engine.get_session("test")
    HITL.submit(session, session.pending_tasks()[0], HITLDecision.reject("enough"))
    held.model.finish = lambda: None  # type: ignore[method-assign]  # the rest of the script is never reached
    assert resume(held).state.outcome == "rejected"


def test_where_nobody_can_be_asked_the_next_calls_are_refused_and_the_run_goes_on() -> None:
    done = played(*[A] * 3, B, C, stop_loop_interceptor=ladder("ask"))
    blocked = [event for event in done.events if isinstance(event, GateBlockedEvent)]
    assert [(event.gate, event.tool_name) for event in blocked] == [("loop", "look")]
    assert [e.executed for e in done.events if e.type == "tool_call_end"] == [True] * 3 + [False, True]
    assert done.state.outcome == "answered"


def test_a_new_prompt_lifts_what_was_held() -> None:
    store = MemoryStore()
    first = Worker(0, before=round_of(1))
    run(engine(first, store=store, stop_loop_interceptor=ladder("ask")))
    assert store.load("s").state.policy.held
    second = Worker(2, run="d")
    events = run(engine(second, store=store, stop_loop_interceptor=ladder("ask")), "something else")
    assert [e.executed for e in events if e.type == "tool_call_end"] == [True, True]


def test_it_stops_where_that_is_switched_on() -> None:
    stopped = play([*[A] * 6], tools=(look,), stop_loop_interceptor=ladder("remind", "stop"))
    assert stopped.kinds[-2:] == ["loop_detected", "run_end"]
    end = stopped.events[-1]
    assert isinstance(end, RunEndEvent)
    assert (end.outcome, end.is_abnormal, end.error) == ("stopped", True, None)
    assert "the run stops here" in end.text
    assert unanswered(stopped.state.transcript) == []
    stopped.model._left.append("never")  # type: ignore[arg-type]  # what comes after the end
    again = asyncio.run(stopped.engine.prompt().session("test").call())
    assert (again.outcome, again.text) == ("stopped", end.text)


def test_all_rungs_in_their_order() -> None:
    held = play(
        [*[A] * 9, A, A, A, A], tools=(look, "hitl"), hitl_enabled=True,
        stop_loop_interceptor=ladder("stop", "ask", "replan", "remind"),
    )  # fmt: skip
    session = held.engine.get_session("test")
    held.model.finish = lambda: None  # type: ignore[method-assign]  # its last turn is never reached
    HITL.submit(session, session.pending_tasks()[0], HITLDecision.approve())
    ended = resume(held)
    assert [loop.kind for loop in (*found(held), *found(ended))] == ["same_call"] * 4
    assert ended.state.outcome == "stopped"
