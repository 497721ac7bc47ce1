"""A subagent's call that needs a person: the whole run waits, durably, and goes on in any process."""

import logging
import sqlite3
from typing import Any

import pytest

from jackstay import HITL, AgentDefinition, AgentSession, HITLDecision, HITLInterceptor, Waiting, cancel
from jackstay.core.errors import AlreadyDecided, AmbiguousCall, CallClosed, StoreError, UnknownCall
from jackstay.core.state import RunState
from tests.campaign.mission import KillingStore, die_at
from tests.campaign.supervise import KILLED, ended, fork
from tests.elsewhere import Place, order
from tests.make import unanswered
from tests.subagents.team import Team, agent, asks, below, multitask, reply, results, task


def worker() -> tuple[AgentDefinition, ...]:
    return (agent("worker", reply(asks("put", "p")), reply(asks("deploy", "call_1", name="d")), "Deployed."),)


def deep() -> tuple[AgentDefinition, ...]:
    """The worker hands on what is sensitive."""
    return (
        agent("worker", reply(asks("put", "p")), reply(task("call_1", "helper")), "Handed on."),
        agent("helper", reply(asks("deploy", "call_1", name="d")), "Deployed."),
    )


def test_the_whole_run_waits_and_both_go_on_under_their_ids_elsewhere(place: Place) -> None:
    team = Team(place, reply(task("call_1")), "Thanks.", make=worker)
    first = team.ask()
    (child,) = team.children()
    run_ids = (place.state.run_id, child.run_id)
    assert order([e for e in first if e.type != "subagent"])[3:] == [
        "action_start", "tool_call_start", "action_end", "hitl_pending", "run_end",
    ]  # fmt: skip
    assert (place.state.outcome, child.outcome) == ("pending", "pending")
    (waiting,) = HITL.get_pending_tasks(place.session())
    assert (waiting.call_id, waiting.tool_name, waiting.args, waiting.path) == (
        "call_1", "deploy", {"name": "d"}, (child.session_id,),
    )  # fmt: skip
    assert waiting.key == f"{child.session_id}/call_1"
    HITL.submit(place.session(), waiting, HITLDecision.approve().comment("go on"))
    events = team.ask(None)
    assert order([e for e in events if e.type != "subagent"]) == [
        "run_start", "action_start", "tool_call_end", "action_end", "reason_start", "reason_end", "run_end",
    ]  # fmt: skip
    assert order(below(events))[:3] == ["run_start", "hitl_decided", "action_start"]
    (child,) = team.children()
    assert (place.state.outcome, child.outcome, (place.state.run_id, child.run_id)) == (
        "answered",
        "answered",
        run_ids,
    )
    assert place.counted == {"p": 1, "d": 1}
    assert results(events)[-1] == ("call_1", False, "Deployed.")
    assert unanswered(place.state.transcript) == unanswered(child.transcript) == []


@pytest.mark.parametrize(
    ("decision", "outcome", "told"),
    [
        (HITLDecision.skip("I did it"), "answered", (False, "Deployed.")),
        (HITLDecision.reject("no", continue_run=True), "answered", (False, "Deployed.")),
        (
            HITLDecision.reject("no"),
            "answered",
            (True, "The subagent 'worker' ended, because a person rejected"),
        ),
    ],
)
def test_a_person_may_skip_and_reject_there_too(
    place: Place, decision: HITLDecision, outcome: str, told: tuple[bool, str]
) -> None:
    team = Team(place, reply(task()), "Thanks.", make=worker)
    team.ask()
    HITL.submit(place.session(), "call_1", decision)
    ((_, failed, text),) = [r for r in results(team.ask(None)) if r[0] == "t1"]
    assert (failed, text[: len(told[1])]) == told
    assert (place.state.outcome, place.counted) == (outcome, {"p": 1})


def test_two_levels_deep(place: Place) -> None:
    team = Team(place, reply(task("call_1")), "Thanks.", make=deep)
    team.ask()
    (child,) = team.children()
    (grandchild,) = team.children(child.session_id)
    assert grandchild.parent is not None
    assert grandchild.parent.depth == 2
    (waiting,) = HITL.get_pending_tasks(place.session())
    assert waiting.path == (child.session_id, grandchild.session_id)
    assert place.store().pending()[0].tasks == (waiting,)
    assert len(place.store().pending()) == 1
    HITL.submit(place.session(), waiting, HITLDecision.approve(modified_args={"name": "other"}))
    assert HITL.get_decision(place.session(), waiting) is not None
    events = team.ask(None)
    assert results(events)[-1] == ("call_1", False, "Handed on.")
    assert place.counted == {"p": 1, "other": 1}
    assert [one.run_id for one in (*team.children(), *team.children(child.session_id))] == [
        child.run_id, grandchild.run_id,
    ]  # fmt: skip


def test_what_is_undecided_waits_on_and_asks_no_model(place: Place) -> None:
    make = lambda: (  # noqa: E731
        agent("worker", reply(asks("deploy", "d1", name="a")), "a done"),
        agent("other", reply(asks("deploy", "d1", name="b")), "b done"),
    )  # fmt: skip
    team = Team(place, reply(multitask("worker: a", "other: b")), "Thanks.", make=make)
    team.ask()
    one, two = HITL.get_pending_tasks(place.session())
    with pytest.raises(AmbiguousCall, match=one.key):
        HITL.submit(place.session(), "d1", HITLDecision.approve())
    HITL.submit(place.session(), one.key, HITLDecision.approve())
    assert HITL.get_pending_tasks(place.session()) == (two,)
    with pytest.raises(AlreadyDecided):
        HITL.submit(place.session(), one, HITLDecision.reject())
    assert order(team.ask(None)) == ["run_start", "hitl_pending", "run_end"]
    assert place.counted == {}
    HITL.submit(place.session(), two, HITLDecision.skip("done by hand"))
    assert [r[0] for r in results(team.ask(None))] == ["m1"]
    assert place.counted == {"a": 1}
    with pytest.raises((CallClosed, UnknownCall)):
        HITL.submit(place.session(), two, HITLDecision.approve())


def test_a_call_beside_it_finishes_first_and_runs_once(place: Place) -> None:
    """The read after it has its result when the run waits; the write after both has not begun."""
    turn = reply(task("t1"), asks("look", "l1"), asks("put", "p1"))
    make = lambda: (agent("worker", reply(asks("deploy", "d")), "Deployed."),)  # noqa: E731
    team = Team(place, turn, "Thanks.", make=make)
    team.ask()
    assert place.counted == {"l1": 1}
    HITL.approve_all(place.session())
    team.ask(None)
    assert place.counted == {"l1": 1, "d": 1, "p1": 1}
    assert list(place.results()) == ["t1", "l1", "p1"]


def test_the_gate_holds_for_a_task_itself_once(place: Place) -> None:
    team = Team(place, reply(task()), "Thanks.", make=worker)

    def ask(text: str | None) -> list[Any]:
        return team.ask(text, hitl_interceptor=HITLInterceptor().on_sensitive_tool("task", "deploy"))

    assert order(ask("go"))[-2:] == ["hitl_pending", "run_end"]
    HITL.approve_all(place.session())
    ask(None)
    (waiting,) = HITL.get_pending_tasks(place.session())
    assert waiting.tool_name == "deploy"
    HITL.approve_all(place.session())
    ask(None)
    assert (place.state.outcome, place.counted) == ("answered", {"p": 1, "d": 1})


def test_a_deadline_counts_below_too(place: Place) -> None:
    team = Team(place, reply(task()), "Thanks.", make=worker)
    settings = {"hitl_waiting": Waiting(60.0, "deny")}
    team.ask(**settings)
    place.at += 61
    events = team.ask(None, **settings)
    assert (place.state.outcome, place.counted) == ("answered", {"p": 1})
    assert "hitl_decided" in order(below(events))


# -- ending it ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("make", [worker, deep])
def test_to_cancel_what_waits_ends_everything_below(place: Place, make: Any) -> None:
    team = Team(place, reply(task("call_1")), "Thanks.", make=make)
    team.ask()
    assert cancel(place.session(), by="ada") == "cancelled"
    assert {one.outcome for one in everyone(place)} == {"cancelled"}
    assert all(unanswered(one.transcript) == [] for one in everyone(place))
    assert place.store().pending() == []


def test_a_new_prompt_over_it_ends_everything_below(place: Place) -> None:
    team = Team(place, reply(task("call_1")), "Thanks.", make=deep)
    team.ask()
    team.turns = ("New.",)
    team.ask("something else")
    assert [one.outcome for one in everyone(place)] == ["answered", "cancelled", "cancelled"]
    assert unanswered(place.state.transcript) == []


def everyone(place: Place) -> list[RunState]:
    store = place.store()
    names = sorted((one.session_id for one in store.sessions()), key=lambda name: name.count("."))
    return [AgentSession(name, store).state for name in names]


# -- crashes -----------------------------------------------------------------------------------------------


SUSPENDING, GOING_ON = 10, 9  # commits of the run until it waits, and from there to its end


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("at", range(1, SUSPENDING + GOING_ON + 1))
def test_killed_at_any_commit_it_goes_on_with_the_same_subagents(place: Place, at: int, when: str) -> None:
    team = Team(place, reply(task("call_1")), "Thanks.", make=deep)

    def killed(text: str | None, at: int) -> None:
        def run() -> int:
            team.ask(text, store=KillingStore(place.store(), die_at(at, when)))
            return 0

        assert ended(fork(run)) == KILLED

    if at <= SUSPENDING:
        killed("go", at)
    else:
        team.ask()
        decide(place)
        killed(None, at - SUSPENDING)
    known = {one.session_id: one.run_id for one in everyone(place)}
    if not known:
        return  # it died before anything was stored
    while place.state.outcome in (None, "pending"):
        decide(place)
        team.ask(None)
    states = everyone(place)
    assert [one.outcome for one in states] == ["answered"] * 3, "one session for each, and all have ended"
    assert known.items() <= {one.session_id: one.run_id for one in states}.items()
    assert place.counted.keys() <= {"p", "d"}, "what may have run was left to a person"
    assert set(place.counted.values()) == {1}
    assert all(unanswered(one.transcript) == [] for one in states)


def decide(place: Place) -> None:
    """Approve what waits, but run nothing again that may have run."""
    for waiting in HITL.get_pending_tasks(place.session()):
        said = HITLDecision.skip("it may have run") if waiting.indeterminate else HITLDecision.approve()
        HITL.submit(place.session(), waiting, said)


# -- damage ------------------------------------------------------------------------------------------------


def tamper(place: Place, child: RunState, statement: str) -> None:
    with sqlite3.connect(place.folder / "s.db") as connection:
        (key,) = connection.execute("SELECT key FROM sessions WHERE id = ?", (child.session_id,)).fetchone()
        connection.execute(statement, {"key": key, "first": key << 32, "last": (key + 1) << 32})
    connection.close()


def test_a_torn_record_below_costs_no_approval_and_is_told(
    place: Place, caplog: pytest.LogCaptureFixture
) -> None:
    team = Team(place, reply(task()), "Thanks.", make=worker)
    team.ask()
    (child,) = team.children()
    last = "SELECT max(id) FROM steps WHERE id > :first AND id < :last"
    tamper(place, child, f"UPDATE steps SET data = substr(data, 1, length(data) / 2) WHERE id = ({last})")
    HITL.approve_all(place.session())
    with caplog.at_level(logging.WARNING, "jackstay"):
        team.ask(None)
    assert f"session {child.session_id}: " in caplog.text
    assert "everything before is intact" in caplog.text
    assert (place.state.outcome, place.counted) == ("answered", {"p": 1, "d": 1})
    assert place.store().check() == []


def test_a_record_below_that_cannot_be_read_stops_the_run_and_repaired_does_nothing_twice(place: Place) -> None:
    team = Team(place, reply(task()), "Thanks.", make=worker)
    team.ask()
    (child,) = team.children()
    tamper(place, child, "UPDATE sessions SET head = substr(head, 1, 9) WHERE key = :key")
    with pytest.raises(StoreError, match=r"is damaged: run `jackstay doctor --repair`"):
        team.ask(None)
    assert "rebuilt from its events" in " ".join(place.store().check(repair=True))
    events = team.ask(None)
    ((_, failed, text),) = results(events)
    assert failed
    assert "may have been done in part" in text
    assert (place.state.outcome, place.counted) == ("answered", {"p": 1})
