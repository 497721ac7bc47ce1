"""What holds for every run, whatever models say, tools return and people decide."""

from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st

from jackstay.core import wire
from jackstay.core.approvals import HITLDecision
from jackstay.core.errors import ErrorInfo
from jackstay.core.events import (
    ActionEndEvent,
    ActionStartEvent,
    HITLDecidedEvent,
    HITLPendingEvent,
    ToolCallEndEvent,
    ToolCallStartEvent,
)
from jackstay.core.messages import Message, ToolCall
from jackstay.core.state import Budget, RunState
from jackstay.engine.bounds import RunBounds
from jackstay.engine.machine import step
from jackstay.engine.ports import Record
from jackstay.store.memory import MemoryStore
from tests.make import Player, says, unanswered

TOOLS = ["look", "look_b", "write", "fail", "ask_a", "ask_b", "deny", "none", "bad", "spawn", "spawn_ask"]
ids = st.sampled_from(["", "x", "call_1", "call_2", "odd id", "y" * 80])
calls = st.builds(
    lambda tool, name, n: ToolCall(name, tool, {"n": n}), st.sampled_from(TOOLS), ids, st.integers(0, 3)
)
replies = st.one_of(
    st.builds(lambda text, some: says(text, *some), st.text(max_size=5), st.lists(calls, max_size=5)),
    st.just(ErrorInfo("server", "500")),
)
decisions = st.sampled_from(
    [
        HITLDecision.approve(), HITLDecision.approve(True), HITLDecision.reject("no"),
        HITLDecision.skip("skip"),
        HITLDecision.reject(continue_run=True), HITLDecision.approve().modified_args({"n": 9}), None,
    ]
)  # fmt: skip
moves = st.lists(
    st.one_of(
        st.tuples(st.just("begin"), st.none()),
        st.tuples(st.just("resume"), st.lists(decisions, min_size=6, max_size=6)),
        st.tuples(st.just("cancel"), st.booleans()),
        st.tuples(st.just("crash"), st.integers(1, 6)),
        st.tuples(st.just("die"), st.tuples(st.integers(1, 4), st.lists(decisions, min_size=6, max_size=6))),
    ),
    min_size=1,
    max_size=6,
)
bounds = st.builds(
    lambda hitl, turns, tokens: RunBounds(hitl=hitl, budget=Budget(max_turns=turns, max_tokens=tokens)),
    st.booleans(), st.integers(1, 4), st.sampled_from([None, 20, 60]),
)  # fmt: skip


class Crash(Exception):
    """The process dies before the next input."""


class Mortal(Player):
    """A player that dies after some steps; its stored state is all that survives."""

    left: int | None = None

    def take(self, happened):
        if self.left is not None:
            if self.left == 0:
                raise Crash
            self.left -= 1
        effects = super().take(happened)
        head = wire.decode_head(wire.encode(self.state))
        assert {**_fields(head), "transcript": None} == {**_fields(self.state), "transcript": None}
        return effects


def _fields(state: RunState) -> dict:
    return {name: getattr(state, name) for name in state.__struct_fields__}


def played(
    script: list[Message | ErrorInfo], some: list, limits: RunBounds, kind: type[Mortal] = Mortal
) -> Mortal:
    player = kind(list(script) + [says("the end")] * 40, limits)
    player.begin()
    for move, detail in some:
        try:
            if move == "begin":
                player.begin("again")
            elif move in ("resume", "die"):
                if move == "die":  # while it goes on
                    player.left, detail = detail
                waiting = player.state.batch.waiting if player.state.batch else ()
                answers = {t.key: d for t, d in zip(waiting, detail, strict=False) if d is not None}
                player.resume(**answers)
            elif move == "cancel":
                player.cancel(resumable=detail)
            else:
                player.left = detail
                player.begin("once more")
        except Crash:
            pass
        player.left = None
    return player


@settings(max_examples=300, deadline=None)
@given(st.lists(replies, max_size=6), moves, bounds)
def test_whatever_happens_the_record_stays_sound(script, some, limits) -> None:
    player = played(script, some, limits)
    numbered = [e.seq for e in player.events if e.seq is not None]
    assert numbered == list(range(1, len(numbered) + 1))
    assert not any(c.tool in ("deny", "none", "bad") for c in player.ran)
    for start in player.events:
        if isinstance(start, ToolCallStartEvent):
            assert sum(
                isinstance(e, ToolCallEndEvent) and e.call_id == start.call_id for e in player.events
            ) <= 1 + sum(
                isinstance(e, ToolCallStartEvent) and e.call_id == start.call_id for e in player.events
            )
    starts = sum(isinstance(e, ActionStartEvent) for e in player.events)
    assert sum(isinstance(e, ActionEndEvent) for e in player.events) <= starts
    if player.state.outcome not in (None, "pending"):
        assert unanswered(player.state.transcript) == []
    once = [c.call_id for c in player.ran if not c.tool.startswith(("look", "spawn"))]
    approved_again = {e.call_id for e in player.events if e.type == "hitl_decided"}
    assert all(once.count(name) == 1 or name in approved_again for name in once)
    asked = Counter(
        t.call_id for e in player.events if isinstance(e, HITLPendingEvent) for t in e.pending_tasks
    )
    decided = Counter(e.call_id for e in player.events if isinstance(e, HITLDecidedEvent))
    assert decided <= asked, "a decision was told more often than it was asked for"
    for kind in (ToolCallStartEvent, ToolCallEndEvent):
        handed_on = Counter(
            e.call_id for e in player.events if isinstance(e, kind) and e.tool_name[:5] == "spawn"
        )
        assert set(handed_on.values()) <= {1}, "work that is handed on begins once and ends once"


@settings(max_examples=150, deadline=None)
@given(st.lists(replies, max_size=6), moves, bounds)
def test_replaying_the_inputs_gives_the_same_state(script, some, limits) -> None:
    player = played(script, some, limits)
    state = RunState("s1")
    events = []
    for happened in player.inputs:
        made = step(state, happened, limits)
        state = made.state
        events.extend(made.events)
    assert state == player.state
    assert events == player.events


@settings(max_examples=100, deadline=None)
@given(st.lists(replies, max_size=6), moves, bounds)
def test_what_is_stored_gives_back_the_state_and_the_events(script, some, limits) -> None:
    player = played(script, some, limits)
    state, store, version = RunState("s1"), MemoryStore(), 0
    for happened in player.inputs:
        made = step(state, happened, limits)
        if made.stored and (made.events or made.state.batch is not state.batch):
            record = Record(made.state, made.appended, made.amended, made.events)
            version = store.commit("s1", version, record)
        state = made.state
    loaded = store.load("s1")
    assert loaded is not None
    assert loaded.state == player.state
    assert list(store.events("s1")) == [e for e in player.events if e.seq is not None]
