"""What ends a run ends everything below it, whoever carries it out and whatever dies meanwhile."""

import os
import signal
from typing import Any

import pytest

from jackstay import HITL, HarnessEngine, Interceptor, cancel, tool
from jackstay.core.events import Event, RunStartEvent
from jackstay.core.messages import ToolResult
from jackstay.core.state import RunState
from jackstay.engine import texts
from tests.campaign.mission import KillingStore, die_at
from tests.campaign.supervise import KILLED, check_bodies, ended, fork
from tests.elsewhere import Place
from tests.make import unanswered
from tests.subagents.team import Team, agent, asks, reply, task, told
from tests.subagents.test_waiting import deep, everyone, worker


def all_cancelled(place: Place, by: str) -> None:
    """The whole family has ended, and every provider would take what is left of it."""
    states = everyone(place)
    assert [(one.outcome, one.text) for one in states] == [("cancelled", f"cancelled by {by}")] * len(states)
    for one in states:
        assert unanswered(one.transcript) == []
        check_bodies(one)
    assert [item for one in states for item in place.store().inbox(one.session_id)] == []


def results(state: RunState) -> list[tuple[str, bool | None]]:
    """Of each call the id, and whether it ran."""
    parts = [part for message in state.transcript for part in message.parts]
    return [(part.call_id, part.executed) for part in parts if isinstance(part, ToolResult)]


def test_an_order_to_a_worker_that_died_ends_the_subagent_too(place: Place) -> None:
    """It died while a tool of the subagent ran: that one may have run, and nothing of it goes on."""

    def tools() -> tuple[Any, ...]:
        @tool(effects={"writes"})
        async def fatal() -> str:
            """Dies right after the order."""
            place.count("fatal")
            assert cancel(place.session(), by="ada") == "ordered"
            os.kill(os.getpid(), signal.SIGKILL)
            return ""

        return (*place.tools(), fatal, "task", "hitl")

    call_fatal = {"tool": "fatal", "id": "f", "args": {}}
    make = lambda: (agent("worker", reply(asks("put", "p")), reply(call_fatal), "done"),)  # noqa: E731
    team = Team(place, reply(task()), "Thanks.", make=make)
    assert ended(fork(lambda: len(team.ask(tools=tools())))) == KILLED
    team.ask(None, tools=tools())
    all_cancelled(place, "ada")
    parent, child = everyone(place)
    assert (results(parent), results(child)) == ([("t1", None)], [("p", True), ("f", None)])
    assert parent.usage == child.usage, "what it used is counted where the run is cut short too"
    assert place.counted == {"p": 1, "fatal": 1}


def test_an_order_that_comes_before_the_subagent_goes_on_ends_it(place: Place) -> None:
    class Orders(Interceptor):
        """Somebody cancels the run right after it was taken up."""

        def on_event(self, event: Event) -> None:
            if isinstance(event, RunStartEvent) and event.resumed and event.session_id == "s":
                assert cancel(place.session(), by="ada") == "ordered"

    def extend(engine: HarnessEngine, agent_name: str, builder: Any) -> None:
        builder.default_interceptor_add(Orders())

    team = Team(place, reply(task()), "Thanks.", make=worker)
    team.ask()
    HITL.approve_all(place.session())
    told(team.engine(extensions=(extend,)), None)
    all_cancelled(place, "ada")
    parent, child = everyone(place)
    assert (results(parent), results(child)) == ([("t1", None)], [("p", True), ("call_1", False)])
    assert place.counted == {"p": 1}


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("at", [1, 2, 3])
def test_who_cancels_is_killed_in_between_and_the_run_ends_all_the_same(
    place: Place, at: int, when: str
) -> None:
    """Three sessions, three commits; whatever was ended by then, the next resume ends the rest."""
    team = Team(place, reply(task("call_1")), "Thanks.", make=deep)
    team.ask()

    def kill() -> int:
        session = place.session()
        session.store = KillingStore(session.store, die_at(at, when))  # type: ignore[arg-type]  # hands all on
        cancel(session, by="ada")
        return 0

    assert ended(fork(kill)) == KILLED
    team.ask(None)
    all_cancelled(place, "ada")
    assert place.counted == {"p": 1}


def test_a_new_prompt_says_below_who_moved_on(place: Place) -> None:
    team = Team(place, reply(task("call_1")), "Thanks.", make=deep)
    team.ask()
    team.turns = ("New.",)
    team.ask("something else")
    assert [one.text for one in everyone(place)[1:]] == [f"cancelled by {texts.MOVED_ON_BY}"] * 2
