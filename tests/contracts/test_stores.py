"""One contract for every store: what is committed is there, whole, and what is refused has left no trace."""

from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import pytest

from jackstay.core.approvals import HITLDecision, HITLTask
from jackstay.core.errors import AlreadyDecided, BadSessionId, Conflict, SessionBusy, UnknownSession
from jackstay.core.events import PhaseChangedEvent, RunEndEvent, RunStartEvent
from jackstay.core.messages import Message, Text, ToolCall, Usage, assistant, note, user
from jackstay.core.phase import Phase
from jackstay.core.state import Batch, BatchCall, Parent, RunState
from jackstay.core.transcript import Transcript
from jackstay.engine.ports import (
    Artifact,
    Lease,
    PendingSession,
    Posted,
    Record,
    SessionInfo,
    SessionStore,
    Stored,
)
from jackstay.store.memory import MemoryStore
from jackstay.store.sqlite import SQLiteStore
from tests.contracts.made import Play, headless


class Clock:
    def __init__(self) -> None:
        self.now = 1_732_958_400.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


Make = Callable[[Path, Clock], SessionStore]
STORES: dict[str, Make] = {
    "memory": lambda path, clock: MemoryStore(now=clock),
    "sqlite": lambda path, clock: SQLiteStore(path / "home" / "sessions.db", now=clock),
    "sqlite-full": lambda path, clock: SQLiteStore(path / "sessions.db", synchronous="full", now=clock),
}


@pytest.fixture(params=STORES)
def store(request: pytest.FixtureRequest, tmp_path: Path, clock: Clock) -> Iterator[SessionStore]:
    made = STORES[request.param](tmp_path, clock)
    yield made
    made.close()


LS = ToolCall("call_1", "ls", {"path": "src"})
WRITE = ToolCall("call_2", "write", {"file_path": "a", "content": "x" * 50})


def test_every_store_is_a_session_store(store: SessionStore) -> None:
    assert isinstance(store, SessionStore)


def test_what_was_never_stored_is_not_there(store: SessionStore) -> None:
    found = (
        store.load("s1"), store.head("s1"), store.inbox("s1"), list(store.events("s1")),
        store.artifact("s1", "call_1"), store.pending(), store.sessions(), store.delete("s1"),
    )  # fmt: skip
    assert found == (None, None, (), [], None, [], [], False)


def test_a_session_comes_back_as_it_was_committed(store: SessionStore) -> None:
    play = Play(store)
    play.begins("first words")
    play.turn(1)
    play.turn(2)
    play.answers("the end")
    assert store.load("s1") == Stored(6, play.state)
    assert store.head("s1") == Stored(6, headless(play.state))
    assert list(store.events("s1")) == play.told


def test_it_comes_back_in_another_store_on_the_same_file(tmp_path: Path, clock: Clock) -> None:
    with_suspension = Play(SQLiteStore(tmp_path / "a.db", now=clock))
    with_suspension.begins()
    with_suspension.suspends(WRITE)
    again = SQLiteStore(tmp_path / "a.db", now=clock)
    assert again.load("s1") == Stored(2, with_suspension.state)
    assert list(again.events("s1")) == with_suspension.told
    again.close()
    with_suspension.store.close()  # type: ignore[union-attr] - it was just given one


def test_events_after_any_number_are_the_rest_of_them(store: SessionStore) -> None:
    play = Play(store)
    play.begins()
    for number in range(4):
        play.turn(number)
    play.run_id = "run-2"
    play.begins("again")
    play.turn(9)
    play.answers()
    every = list(store.events("s1"))
    assert every == play.told
    assert [e.seq for e in every] == list(range(1, len(every) + 1))
    for after in range(len(every) + 2):
        assert list(store.events("s1", after)) == every[after:]


def test_a_call_observed_many_steps_later_is_still_told_whole(store: SessionStore) -> None:
    play = Play(store)
    play.begins()
    play.asks(LS, WRITE)
    for number in range(5):
        play.commit(
            play.record((), [play.event(PhaseChangedEvent, Phase.NO_TASK, Phase.PLANNING, str(number))])
        )
    play.observes((WRITE, "written"), (LS, "a.py"))
    assert list(store.events("s1", play.state.seq - 4)) == play.told[-4:]


def test_a_run_closed_and_one_begun_in_one_commit_keep_their_ids(store: SessionStore) -> None:
    play = Play(store)
    play.begins()
    ended = play.event(RunEndEvent, "cancelled", True, "", Usage())
    play.run_id = "run-2"
    play.commit(play.record([user("new")], [ended, play.event(RunStartEvent)]))
    play.answers()
    assert list(store.events("s1")) == play.told
    assert [e.run_id for e in store.events("s1", 2)] == ["run-1", "run-2", "run-2", "run-2"]


def test_the_second_of_two_writers_at_one_version_is_told_and_leaves_nothing(store: SessionStore) -> None:
    play = Play(store)
    play.begins()
    before = play.version
    play.turn(1)
    with pytest.raises(Conflict) as problem:
        store.commit("s1", before, Record(play.state, [user("lost")]))
    assert (problem.value.expected, problem.value.found) == (before, play.version)
    with pytest.raises(Conflict):
        store.commit("s1", 0, Record(RunState("s1", "run-2")))
    with pytest.raises(Conflict):
        store.commit("s2", 3, Record(RunState("s2", "run-2")))
    assert store.load("s1") == Stored(play.version, play.state)
    assert store.load("s2") is None


@pytest.mark.parametrize("name", ["../x", "", "a/b", "a" * 129, "..", "x\x00"])
def test_a_session_id_that_is_no_plain_name_is_refused_before_anything(store: SessionStore, name: str) -> None:
    with pytest.raises(BadSessionId):
        store.commit(name, 0, Record(RunState(name, "run-1")))
    assert store.load(name) is None


def test_amended_messages_replace_the_earlier_ones_by_position(store: SessionStore) -> None:
    play = Play(store)
    play.begins("long " * 100)
    play.turn(1)
    short = user("short", pinned=True)
    kept = [short, *list(play.state.transcript)[1:]]
    state = msgspec.structs.replace(play.state, transcript=Transcript(kept))
    store.commit("s1", 3, Record(state, (), [(0, short)]))
    assert store.load("s1") == Stored(4, state)
    assert list(store.events("s1")) == play.told


def test_a_view_says_which_message_rows_make_the_transcript(store: SessionStore) -> None:
    play = Play(store)
    play.begins()
    play.turn(1)
    play.turn(2)
    summary = note("summary", "what happened")
    rows = [*play.state.transcript, summary]
    state = msgspec.structs.replace(
        play.state, view=((0, 1), (5, 6), (3, 5), (6, -1)),
        transcript=Transcript([rows[0], rows[5], rows[3], rows[4]]),
    )  # fmt: skip
    store.commit("s1", 5, Record(state, [summary]))
    assert store.load("s1") == Stored(6, state)
    more = msgspec.structs.replace(state, transcript=state.transcript.append(user("go on")))
    store.commit("s1", 6, Record(more, [user("go on")]))
    assert store.load("s1") == Stored(7, more)


def test_what_is_loaded_shares_nothing_with_what_was_committed(store: SessionStore) -> None:
    call = ToolCall("call_1", "write", {"lines": ["a"]})
    play = Play(store)
    play.begins()
    play.asks(call)
    call.args["lines"].append("changed later")
    first = store.load("s1")
    assert first is not None
    first.state.transcript[1].calls[0].args["lines"].append("changed after loading")
    again = store.load("s1")
    assert again is not None
    assert again.state.transcript[1].calls[0].args == {"lines": ["a"]}


def test_a_card_changed_in_a_program_that_was_shown_it_stays_as_it_was_stored(store: SessionStore) -> None:
    play = Play(store)
    play.begins()
    play.suspends(ToolCall("call_1", "write", {"path": "a"}))
    assert play.state.batch is not None
    play.state.batch.waiting[0].args["path"] = "b"
    (waiting,) = store.pending()
    stored = store.head("s1")
    assert stored is not None
    assert stored.state.batch is not None
    assert [task.args for task in (*waiting.tasks, *stored.state.batch.waiting)] == [{"path": "a"}] * 2


def test_calls_amended_twice_in_one_commit_are_told_from_anywhere_as_they_were_last(
    store: SessionStore,
) -> None:
    """Two calls of a reply approved with changes at once: the message that asks for both is replaced twice."""
    one, two = (ToolCall(f"call_{n}", "write", {"path": "as asked"}) for n in (1, 2))
    new_one, new_two = (ToolCall(f"call_{n}", "write", {"path": "as approved"}) for n in (1, 2))
    play = Play(store)
    play.begins()
    play.suspends(one, two)
    half, whole = assistant("", new_one, two), assistant("", new_one, new_two)
    approved = msgspec.structs.replace(
        play.state, outcome=None, transcript=play.state.transcript.amend(1, whole)
    )
    play.state = approved
    play.commit(play.record([], [play.event(RunStartEvent, True)], amended=[(1, half), (1, whole)]))
    play.observes((new_one, "wrote"))
    play.observes((new_two, "wrote"))
    for after in range(play.state.seq):
        assert list(store.events("s1", after)) == play.told[after:]


# -- inbox and artifacts -----------------------------------------------------------------------------------


def test_posted_items_wait_in_order_until_a_commit_takes_them_in(store: SessionStore) -> None:
    play = Play(store)
    play.begins()
    play.suspends(WRITE, LS)
    yes = HITLDecision.approve(modified_args={"content": "y"}).comment("fine")
    one = store.post("s1", Posted(0, "call_2", yes))
    two = store.post("s1", Posted(0, "call_1", HITLDecision.reject("no")))
    three = store.post("s1", Posted(0, "cancel", command="cancel", data={"by": "ann"}))
    assert one < two < three
    assert store.inbox("s1") == (
        Posted(one, "call_2", yes),
        Posted(two, "call_1", HITLDecision.reject("no")),
        Posted(three, "cancel", command="cancel", data={"by": "ann"}),
    )
    play.commit(play.record((), (), drained=[one, three]))
    assert [item.number for item in store.inbox("s1")] == [two]
    assert store.post("s1", Posted(0, "call_2", yes)) > three


def test_each_commit_tells_whether_anything_is_posted(store: SessionStore) -> None:
    play = Play(store)
    play.lease = Lease("elsewhere:1:1", 2e9)
    told = []
    play.begins()
    told.append(store.posted("s1"))
    play.turn(1)
    told.append(store.posted("s1"))
    number = store.post("s1", Posted(0, "cancel", command="cancel"))
    told.append(store.posted("s1"))
    play.turn(2)
    told.append(store.posted("s1"))
    play.commit(play.record((), (), drained=[number]))
    told.append(store.posted("s1"))
    play.turn(3)
    told.append(store.posted("s1"))
    assert told == [False, False, True, True, False, False]
    assert store.load("s1") == Stored(play.version, play.state, (), play.lease)
    assert list(store.events("s1")) == play.told


def test_what_another_process_posted_is_told_with_the_next_commit(tmp_path: Path, clock: Clock) -> None:
    store, other = (SQLiteStore(tmp_path / "a.db", now=clock) for _ in range(2))
    play = Play(store)
    play.lease = Lease("elsewhere:1:1", 2e9)
    play.begins()
    play.turn(1)
    number = other.post("s1", Posted(0, "cancel", command="cancel"))
    play.asks(LS)
    assert store.posted("s1")
    assert [item.number for item in store.inbox("s1")] == [number]
    play.observes((LS, "a.py"))
    assert store.posted("s1")
    play.commit(play.record((), (), drained=[number]))
    assert not store.posted("s1")
    play.turn(2)
    assert not store.posted("s1")
    assert other.load("s1") == Stored(play.version, play.state, (), play.lease)
    store.close()
    other.close()


def test_the_first_item_of_a_key_stands_and_the_second_is_told(store: SessionStore) -> None:
    Play(store).begins()
    store.post("s1", Posted(0, "call_1", HITLDecision.approve()))
    with pytest.raises(AlreadyDecided):
        store.post("s1", Posted(0, "call_1", HITLDecision.reject()))
    assert [item.decision for item in store.inbox("s1")] == [HITLDecision.approve()]


def test_items_posted_together_are_stored_all_or_none(store: SessionStore) -> None:
    Play(store).begins()
    items = [Posted(0, key, HITLDecision.approve()) for key in ("call_1", "call_2", "call_3")]
    first = store.post("s1", items[1])
    with pytest.raises(AlreadyDecided, match="'call_2'"):
        store.post("s1", *items)
    with pytest.raises(AlreadyDecided, match="'call_4'"):
        store.post("s1", Posted(0, "call_4", HITLDecision.skip()), Posted(0, "call_4", HITLDecision.reject()))
    assert [item.key for item in store.inbox("s1")] == ["call_2"]
    last = store.post("s1", items[0], items[2])
    assert last > first
    assert [item.key for item in store.inbox("s1")] == ["call_2", "call_1", "call_3"]
    assert store.inbox("s1")[-1].number == last


def test_items_meant_for_another_version_of_the_session_are_not_stored(store: SessionStore) -> None:
    play = Play(store)
    play.begins()
    with pytest.raises(Conflict):
        store.post("s1", Posted(0, "call_1", HITLDecision.approve()), expected=play.version - 1)
    assert store.inbox("s1") == ()
    store.post("s1", Posted(0, "call_1", HITLDecision.approve()), expected=play.version)
    assert [item.key for item in store.inbox("s1")] == ["call_1"]


def test_nothing_can_be_posted_to_a_session_that_is_not_there(store: SessionStore) -> None:
    with pytest.raises(UnknownSession):
        store.post("s1", Posted(0, "call_1", HITLDecision.approve()))


def test_a_commit_that_is_refused_takes_nothing_in(store: SessionStore) -> None:
    play = Play(store)
    play.begins()
    number = store.post("s1", Posted(0, "cancel", command="cancel"))
    with pytest.raises(Conflict):
        store.commit("s1", 7, Record(play.state, drained=[number], artifacts=[Artifact("call_1", "text")]))
    assert [item.number for item in store.inbox("s1")] == [number]
    assert store.artifact("s1", "call_1") is None


def test_the_items_of_one_session_are_not_taken_in_by_another(store: SessionStore) -> None:
    Play(store, "s1").begins()
    other = Play(store, "s2")
    other.begins()
    number = store.post("s1", Posted(0, "cancel", command="cancel"))
    other.commit(other.record((), (), drained=[number]))
    assert [item.number for item in store.inbox("s1")] == [number]


def test_an_artifact_is_the_whole_text_of_its_call(store: SessionStore) -> None:
    play = Play(store)
    play.begins()
    play.asks(LS)
    whole = "zeile ✓\n" * 50_000
    play.observes((LS, "zeile…"), artifacts=[Artifact("call_1", whole)])
    assert (store.artifact("s1", "call_1"), store.artifact("s1", "call_9")) == (whole, None)


# -- lists -------------------------------------------------------------------------------------------------


def test_sessions_are_listed_the_latest_first(store: SessionStore, clock: Clock) -> None:
    first, second = Play(store, "s1"), Play(store, "s2", run_id="run-9")
    first.begins("  fix the\n failing   test " + "x" * 200)
    clock.now += 1
    second.begins("zweite")
    clock.now += 1
    first.suspends(WRITE, LS)
    assert store.sessions() == [
        SessionInfo(
            "s1", clock.now - 2, clock.now, "pending", Phase.NO_TASK, 1, 2,
            "fix the failing test " + "x" * 58 + "…", Usage(100, 20),
        ),
        SessionInfo("s2", clock.now - 1, clock.now - 1, None, Phase.NO_TASK, 1, 0, "zweite", Usage()),
    ]  # fmt: skip
    assert [info.session_id for info in store.sessions(limit=1)] == ["s1"]


def test_what_waits_for_a_person_is_listed_the_longest_wait_first(store: SessionStore) -> None:
    late, early, busy = Play(store, "late"), Play(store, "early"), Play(store, "busy")
    late.at += 100
    for play in (late, early, busy):
        play.begins()
    late.suspends(WRITE)
    early.suspends(LS, WRITE)
    tasks = {play: play.state.batch.waiting for play in (late, early) if play.state.batch}
    assert store.pending() == [
        PendingSession("early", "run-1", tasks[early]),
        PendingSession("late", "run-1", tasks[late]),
    ]
    assert [one.session_id for one in store.pending(limit=1)] == ["early"]
    store.post("early", Posted(0, "call_1", HITLDecision.approve()))
    assert store.pending()[0] == PendingSession("early", "run-1", tasks[early][1:])
    store.post("early", Posted(0, "call_2", HITLDecision.approve()))
    late.answers()
    assert store.pending() == []


def test_a_deleted_session_is_gone_with_everything_and_its_name_is_free(store: SessionStore) -> None:
    play = Play(store)
    play.begins()
    play.asks(LS)
    play.observes((LS, "x"), artifacts=[Artifact("call_1", "whole")])
    store.post("s1", Posted(0, "cancel", command="cancel"))
    Play(store, "s2").begins()
    assert store.delete("s1") is True
    assert (store.load("s1"), store.inbox("s1"), store.artifact("s1", "call_1")) == (None, (), None)
    assert list(store.events("s1")) == []
    assert [info.session_id for info in store.sessions()] == ["s2"]
    again = Play(store)
    again.begins("anew")
    assert store.load("s1") == Stored(1, again.state)
    assert (store.inbox("s1"), list(store.events("s1"))) == ((), again.told)


# -- leases ------------------------------------------------------------------------------------------------


def test_a_live_lease_keeps_other_workers_out_until_it_is_given_back(store: SessionStore, clock: Clock) -> None:
    play = Play(store)
    play.lease = Lease("elsewhere:1:2", clock.now + 30)
    play.begins()
    assert store.load("s1") == Stored(1, play.state, (), play.lease)
    intruder = Record(play.state, lease=Lease("elsewhere:3:4", clock.now + 30))
    with pytest.raises(SessionBusy) as problem:
        store.commit("s1", 1, intruder)
    assert (problem.value.owner, problem.value.seconds_left) == ("elsewhere:1:2", 30)
    play.turn(1)
    play.answers()  # without a lease: gives it back
    assert store.load("s1") == Stored(4, play.state)
    assert store.commit("s1", 4, msgspec.structs.replace(intruder, head=play.state)) == 5


def test_a_lease_that_has_run_out_binds_nobody(store: SessionStore, clock: Clock) -> None:
    play = Play(store)
    play.lease = Lease("elsewhere:1:2", clock.now + 30)
    play.begins()
    clock.now += 31
    taken = Lease("elsewhere:3:4", clock.now + 30)
    assert store.head("s1") == Stored(1, headless(play.state))
    assert store.commit("s1", 1, Record(play.state, lease=taken)) == 2
    with pytest.raises(SessionBusy):  # the first owner wakes up
        store.commit("s1", 1, Record(play.state, lease=Lease("elsewhere:1:2", clock.now + 30)))
    store.commit("s1", 2, Record(play.state, lease=None))
    with pytest.raises(Conflict):  # and later, when nobody holds it
        store.commit("s1", 1, Record(play.state, lease=Lease("elsewhere:1:2", clock.now + 30)))


def test_a_lease_is_renewed_by_its_owner_only(store: SessionStore, clock: Clock) -> None:
    play = Play(store)
    play.lease = Lease("elsewhere:1:2", clock.now + 30)
    play.begins()
    clock.now += 20
    assert store.renew("s1", Lease("elsewhere:3:4", clock.now + 30)) is False
    assert store.renew("s1", Lease("elsewhere:1:2", clock.now + 30)) is True
    clock.now += 20
    with pytest.raises(SessionBusy):
        store.commit("s1", 1, Record(play.state, lease=Lease("elsewhere:3:4", clock.now + 30)))
    play.answers()
    assert store.renew("s1", Lease("elsewhere:1:2", clock.now + 30)) is False  # it was given back
    assert store.renew("none", Lease("elsewhere:1:2", clock.now + 30)) is False


def test_messages_of_every_kind_come_back(store: SessionStore) -> None:
    messages = [
        Message("system", (Text("rules"),), pinned=True),
        Message("assistant", (Text(""), Text("two texts"), ToolCall("c", "t", {}, problem="cut", raw="{"))),
        Message("user", (), note="empty"),
        assistant("日本語 \u0000 \U0001f600"),
    ]
    state = RunState("s1", "run-1", transcript=Transcript(messages))
    store.commit("s1", 0, Record(state, messages))
    assert store.load("s1") == Stored(1, state)


def test_a_first_word_in_the_midst_of_a_run_is_its_title(store: SessionStore) -> None:
    play = Play(store)
    play.lease = Lease("me", 2e9)
    play.commit(play.record([], [play.event(RunStartEvent)]))
    play.commit(play.record([], []))
    play.commit(play.record([user("look around")], []))
    assert [one.title for one in store.sessions()] == ["look around"]


def test_what_subagents_wait_for_is_told_with_their_parents_session_until_it_is_decided(
    store: SessionStore,
) -> None:
    for name, parent in (
        ("top", None),
        ("top.a", Parent("top", "r", "c1")),
        ("top.a.b", Parent("top.a", "r", "c1", 2)),
    ):
        below = ("top.a", "top.a.b")[("top", "top.a", "top.a.b").index(name) :]
        task = HITLTask("call_1", "deploy", {}, "sensitive", path=below)
        item = BatchCall(ToolCall("c1", "task", {}), status="started", below=(task,))
        if not below:
            item = BatchCall(ToolCall("call_1", "deploy", {}), task=task)
        state = RunState(name, "r", outcome="pending", batch=Batch((item,)), parent=parent)
        store.commit(name, 0, Record(state))
    (waiting,) = store.pending()
    assert (waiting.session_id, [task.path for task in waiting.tasks]) == ("top", [("top.a", "top.a.b")])
    store.post("top", Posted(0, "call_1", HITLDecision.approve()))  # of another session's call
    assert store.pending() == [waiting]
    store.post("top.a.b", Posted(0, "call_1", HITLDecision.approve()))
    assert store.pending() == []
