"""What holds for every run while it is compressed, weighed for loops and disciplined at the same time."""

from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from jackstay.core import wire
from jackstay.core.effects import CallModel, SummaryJob
from jackstay.core.errors import ErrorInfo
from jackstay.core.events import ContextSizeEvent, ReasonEndEvent, ReasonStartEvent, RunEndEvent
from jackstay.core.messages import Message, ToolCall, ToolResult
from jackstay.core.state import Budget, RunState
from jackstay.core.transcript import Transcript
from jackstay.engine.bounds import RunBounds
from jackstay.engine.compaction.params import CompressionParams
from jackstay.engine.machine import step
from jackstay.engine.ports import Record
from jackstay.policy.loops import LoopParams
from jackstay.store.memory import MemoryStore
from tests.compacting import broken
from tests.longruns import composite
from tests.make import says
from tests.properties.test_run import Mortal, decisions, ids, played

WINDOW = 4_000
TOOLS = ["look", "look_b", "write", "ask_a", "fail"]
calls = st.builds(
    lambda tool, name, n: ToolCall(name, tool, {"n": n}), st.sampled_from(TOOLS), ids, st.integers(0, 2)
)
busy = st.builds(lambda some: says("", *some), st.lists(calls, min_size=1, max_size=4))
server = st.just(ErrorInfo("server", "500"))
too_long = st.sampled_from(
    [ErrorInfo("overflow", "prompt is too long"), ErrorInfo("overflow", "maximum context length is 700")]
)
words = st.builds(
    says, st.sampled_from(["I see.", "Done. [HARNESS: done]", "[HARNESS: task_started] So be it."])
)
scripts = st.lists(st.one_of(busy, busy, busy, words, server, too_long), max_size=14)
moves = st.lists(
    st.one_of(
        st.tuples(st.just("begin"), st.none()),
        st.tuples(st.just("resume"), st.lists(decisions, min_size=6, max_size=6)),
        st.tuples(st.just("cancel"), st.booleans()),
        st.tuples(st.just("crash"), st.integers(1, 12)),
    ),
    max_size=5,
)
params = st.builds(
    lambda count, ratio, strategy: CompressionParams(count, ratio, strategy=composite() if strategy else None),
    st.sampled_from([3, 6, 10]), st.sampled_from([0.4, 1.0]), st.booleans(),
)  # fmt: skip
bounds = st.builds(
    lambda hitl, turns, compression, rungs, discipline: RunBounds(
        hitl=hitl, budget=Budget(max_turns=turns), compression=compression, context_length=WINDOW, overhead=50,
        loops=LoopParams(2, 4, rungs), discipline=discipline, session_window=4, model="m",
    ),
    st.booleans(), st.integers(2, 12), params,
    st.sampled_from([("remind",), ("ask",), ("stop",), ("remind", "replan", "ask", "stop")]), st.sampled_from(["off", "strict"]),
)  # fmt: skip
ANSWERS = [
    says("- good"), None, says("", ToolCall("x", "look", {})), says(" "), says("much of it, " * 400),
]  # fmt: skip


class Wordy(Mortal):
    """Its tools say much, its summariser is of every kind, and what goes out is looked at."""

    def perform(self, effect):
        if isinstance(effect, CallModel):
            assert broken(list(self.state.transcript)) is None
            assert self.state.reasoning
        return super().perform(effect)

    def result(self, call: ToolCall) -> ToolResult:
        words = 60 * (1 + call.args.get("n", 0)) ** 3
        return ToolResult(call.call_id, f"{call.tool} says: " + "word " * words, call.tool.startswith("fail"))

    def summary(self, job: SummaryJob) -> Message | None:
        return ANSWERS[len(self.questions) % len(ANSWERS)]


def wordy(script, some, limits) -> Wordy:
    return played(script, some, limits, Wordy)


@settings(max_examples=200, deadline=None)
@given(scripts, moves, bounds)
def test_whatever_is_cut_the_record_stays_sound(script, some, limits) -> None:
    player = wordy(script, some, limits)
    numbered = [event.seq for event in player.events if event.seq is not None]
    assert numbered == list(range(1, len(numbered) + 1))
    state = player.state
    pending = frozenset(item.call.call_id for item in state.batch.calls) if state.batch else frozenset()
    assert broken(list(state.transcript), pending) is None
    turns = [event for event in player.events if isinstance(event, ReasonStartEvent | ReasonEndEvent)]
    for first, second in pairwise(turns):
        assert not (isinstance(first, ReasonEndEvent) and isinstance(second, ReasonEndEvent))
    for event in player.events:
        if isinstance(event, ContextSizeEvent):
            assert event.limit <= WINDOW
    prompts = [m for m in state.transcript if m.pinned]
    assert all(m.role == "user" and m.note is None for m in prompts)
    assert sum(m.note == "summary" for m in state.transcript) <= 1
    ends = [event for event in player.events if isinstance(event, RunEndEvent)]
    assert state.usage == ends[-1].usage or state.outcome is None
    ran = [call.call_id for call in player.ran if not call.tool.startswith("look")]
    again = {event.call_id for event in player.events if event.type == "hitl_decided"}
    assert all(ran.count(name) == 1 or name in again for name in ran)


@settings(max_examples=100, deadline=None)
@given(scripts, moves, bounds)
def test_replaying_the_inputs_gives_the_same_state_and_events(script, some, limits) -> None:
    player = wordy(script, some, limits)
    state, events = RunState("s1"), []
    for happened in player.inputs:
        made = step(state, happened, limits)
        state = made.state
        events.extend(made.events)
    assert (state, events) == (player.state, player.events)


@settings(max_examples=100, deadline=None)
@given(scripts, moves, bounds)
def test_what_is_stored_is_what_was_told_after_every_step(script, some, limits) -> None:
    player = wordy(script, some, limits)
    state, store, version, told = RunState("s1"), MemoryStore(), 0, []
    for happened in player.inputs:
        made = step(state, happened, limits)
        state = made.state
        told += [event for event in made.events if event.seq is not None]
        if made.stored and (made.events or made.effects):
            record = Record(state, made.appended, made.amended, made.events, made.artifacts)
            version = store.commit("s1", version, record)
            loaded = store.load("s1").state
            assert list(loaded.transcript) == list(state.transcript)
            assert loaded == state
            assert state.rows >= len(state.transcript)
    assert list(store.events("s1")) == told
    for after in range(0, len(told), 7):
        assert list(store.events("s1", after)) == told[after:]


@settings(max_examples=50, deadline=None)
@given(scripts, moves, bounds)
def test_a_state_that_was_stored_and_loaded_goes_on_alike(script, some, limits) -> None:
    player = wordy(script, some, limits)
    state, loaded = RunState("s1"), RunState("s1")
    for happened in player.inputs:
        made, other = step(state, happened, limits), step(loaded, happened, limits)
        assert (made.events, made.effects, made.appended) == (other.events, other.effects, other.appended)
        state = made.state
        head = wire.decode_head(wire.encode(other.state))
        loaded = replace(head, transcript=Transcript(list(other.state.transcript)))
        assert loaded == state
