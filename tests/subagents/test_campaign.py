"""The crash campaign for a run that hands work on: two subagents side by side, each with a call that waits."""

import random
from collections import Counter

import pytest

from jackstay import HITL, AgentDefinition, HITLDecision, SQLiteStore
from jackstay.core.errors import Conflict, SessionBusy
from jackstay.core.events import RunEndEvent, RunStartEvent, ToolCallEndEvent
from jackstay.core.state import RunState
from tests.campaign.mission import ENDED, WAITS, KillingStore, die_at
from tests.campaign.supervise import KILLED, check_bodies, ended, fork, killed_after
from tests.elsewhere import Place
from tests.make import unanswered
from tests.subagents.team import Team, agent, asks, multitask, reply, task
from tests.subagents.test_waiting import everyone

BUSY = 4
MOST = 40


def make() -> tuple[AgentDefinition, ...]:
    """Two that write, ask and write; one of them has the asking done by a third."""
    return (
        agent(
            "a", reply(asks("put", "a1")), reply(asks("deploy", "d", name="a2"), asks("put", "a3")), "a done"
        ),
        agent("b", reply(asks("put", "b1"), task("c", "c"), asks("put", "b3")), "b done"),
        agent("c", reply(asks("deploy", "d", name="b2")), "c done"),
    )


TURNS = (reply(asks("put", "p1"), multitask("a: 1", "b: 2"), asks("put", "p2")), "All done.")
EVERY = {"p1", "a1", "a2", "a3", "b1", "b2", "b3", "p2"}


def work(team: Team, store: KillingStore | None = None) -> int:
    """Begin, or go on with what is stored."""
    place = team.place
    begun = place.store().head("s") is not None
    try:
        team.ask(None if begun else "go", store=store)
    except (SessionBusy, Conflict):
        return BUSY
    return WAITS if place.state.is_pending else ENDED


def finish(team: Team, how: int = KILLED) -> None:
    """Worker after worker, each deciding one call elsewhere first, until the run has ended."""
    for _ in range(MOST):
        if how == ENDED:
            return
        for waiting in reversed(HITL.get_pending_tasks(team.place.session())):
            said = HITLDecision.skip("it may have run") if waiting.indeterminate else HITLDecision.approve()
            HITL.submit(team.place.session(), waiting, said)
            break
        how = ended(fork(lambda: work(team)))
        assert how in (WAITS, ENDED), how
    raise AssertionError("the run does not get on")


def judge(place: Place) -> None:
    """Nothing lost, nothing twice, in any of the sessions."""
    states = everyone(place)
    assert [one.outcome for one in states] == ["answered"] * 4, "one session for each piece of work"
    store = place.store()
    assert store.check() == []
    executed = Counter[bool | None]()
    for one in states:
        executed += _judge(one, store)
    assert place.counted.keys() <= EVERY
    assert set(place.counted.values()) == {1}
    unknown = executed[None]
    assert len(EVERY) - unknown <= len(place.counted), "what is said to have run has run"


def _judge(one: RunState, store: SQLiteStore) -> Counter[bool | None]:
    events = list(store.events(one.session_id))
    assert [event.seq for event in events] == list(range(1, one.seq + 1)), "the numbers have a gap"
    assert len({event.run_id for event in events}) == 1, "the run changed its name"
    starts = [event for event in events if isinstance(event, RunStartEvent)]
    assert [event.resumed for event in starts] == [False, *[True] * (len(starts) - 1)]
    assert isinstance(events[-1], RunEndEvent)
    ends = [event for event in events if isinstance(event, ToolCallEndEvent)]
    assert len({event.call_id for event in ends}) == len(ends), "a call ended twice"
    assert unanswered(one.transcript) == []
    check_bodies(one)
    return Counter(event.executed for event in ends if event.tool_name in ("put", "deploy"))


def test_undisturbed_every_call_runs(place: Place) -> None:
    finish(Team(place, *TURNS, make=make))
    judge(place)
    assert place.counted.keys() == EVERY


@pytest.mark.parametrize("decided", [0, 2])
@pytest.mark.parametrize(("first", "when"), [(1, "before"), (2, "after")])
def test_killed_at_every_second_commit_nothing_is_lost_and_nothing_done_twice(
    tmp_path_factory: pytest.TempPathFactory, decided: int, first: int, when: str
) -> None:
    """Of the worker that begins, and of the one that goes on with both answers."""
    kills = 0
    for at in range(first, 100, 2):
        place = Place(tmp_path_factory.mktemp("family"))
        team = Team(place, *TURNS, make=make)
        if decided:
            assert work(team) == WAITS
            HITL.approve_all(place.session())
        store = KillingStore(place.store(), die_at(at, when))
        how = ended(fork(lambda team=team, store=store: work(team, store)))
        finish(team, how)
        judge(place)
        place.close()
        if how != KILLED:
            break
        kills += 1
    assert kills >= 5  # two side by side share commits


def test_killed_at_random_while_two_workers_race_for_it(tmp_path_factory: pytest.TempPathFactory) -> None:
    dice = random.Random(7)
    for _ in range(12):
        place = Place(tmp_path_factory.mktemp("family"))
        team = Team(place, *TURNS, make=make)
        how = killed_after(fork(lambda team=team: work(team)), dice.uniform(0.02, 0.15))
        if place.store().head("s") is not None and how != ENDED:
            for waiting in HITL.get_pending_tasks(place.session()):
                HITL.submit(place.session(), waiting, HITLDecision.approve())
            pair = [fork(lambda team=team: work(team)) for _ in range(2)]
            ends = [killed_after(pair[0], dice.uniform(0, 0.1)), ended(pair[1])]
            assert all(end in (ENDED, WAITS, BUSY, KILLED) for end in ends), ends
            how = ENDED if ENDED in ends else KILLED
        finish(team, how)
        judge(place)
        place.close()
