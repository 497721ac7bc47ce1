"""An answer about a subagent's call that cannot be taken says why, whatever names the call; nothing else is lost."""

from collections.abc import Callable
from typing import Any

import pytest

from jackstay import HITL, HITLDecision, Waiting, cancel
from jackstay.core.approvals import HITLTask
from jackstay.core.errors import AlreadyDecided, CallClosed, JackstayError, TooLate, UnknownCall
from tests.elsewhere import HOUR, Place
from tests.subagents.team import Team, agent, asks, multitask, reply, task
from tests.subagents.test_waiting import worker

DENY = {"hitl_waiting": Waiting(HOUR, "deny")}


def deep() -> tuple[Any, ...]:
    """The worker hands on what is sensitive."""
    deploys = reply(asks("deploy", "call_1", name="d"))
    return agent("worker", reply(task("t2", "helper")), "Handed on."), agent("helper", deploys, "Deployed.")


def decided(place: Place, team: Team, waiting: HITLTask) -> None:
    HITL.submit(place.session(), waiting, HITLDecision.reject("no", continue_run=True))


def carried_out(place: Place, team: Team, waiting: HITLTask) -> None:
    decided(place, team, waiting)
    team.ask(None)


def cancelled(place: Place, team: Team, waiting: HITLTask) -> None:
    cancel(place.session(), by="ada")


def late(place: Place, team: Team, waiting: HITLTask) -> None:
    place.at += 2 * HOUR


def expired(place: Place, team: Team, waiting: HITLTask) -> None:
    late(place, team, waiting)
    team.ask(None)


@pytest.mark.parametrize("make", [worker, deep])
@pytest.mark.parametrize(
    "named",
    [lambda waiting: waiting, lambda waiting: waiting.key, lambda waiting: waiting.call_id],
    ids=["task", "key", "id"],
)
@pytest.mark.parametrize(
    ("happens", "error", "words"),
    [
        (decided, AlreadyDecided, "the first decision stands"),
        (carried_out, CallClosed, "what became of it: A person rejected this call"),
        (cancelled, CallClosed, "what became of it: Not run: cancelled by ada"),
        (late, TooLate, "ended 3600 s ago: it is denied"),
        (expired, CallClosed, "what became of it: Not run: nobody answered"),
    ],
)
def test_each_way_of_coming_too_late_has_its_own_answer(
    place: Place,
    make: Any,
    named: Callable[[HITLTask], HITLTask | str],
    happens: Callable[[Place, Team, HITLTask], None],
    error: type[JackstayError],
    words: str,
) -> None:
    team = Team(place, reply(task("t1")), "Thanks.", make=make)
    team.ask(**DENY)
    (waiting,) = HITL.get_pending_tasks(place.session())
    happens(place, team, waiting)
    with pytest.raises(error, match=words) as raised:
        HITL.submit(place.session(), named(waiting), HITLDecision.approve())
    told = raised.value
    assert (told.session_id, told.call_id) == (waiting.path[-1], "call_1")  # type: ignore[attr-defined]  # each of them
    assert "d" not in place.counted


def test_a_call_of_somebody_elses_subagent_is_unknown(place: Place) -> None:
    team = Team(place, reply(task("t1")), "Thanks.", make=worker)
    team.ask()
    with pytest.raises(UnknownCall, match=r"'s.other/call_1' does not wait .* waiting are: s\.\w+/call_1"):
        HITL.submit(place.session(), "s.other/call_1", HITLDecision.approve())


# -- several at once ---------------------------------------------------------------------------------------


def two() -> tuple[Any, ...]:
    """Two that each ask for two calls at once."""
    pairs = {name: reply(*(asks("deploy", f"{name}{n}") for n in (1, 2))) for name in ("a", "b")}
    return tuple(agent(name, turn, f"{name} done") for name, turn in pairs.items())


def test_one_refused_answer_keeps_those_in_other_sessions_out_too(place: Place) -> None:
    Team(place, reply(multitask("a: 1", "b: 2")), "Thanks.", make=two).ask()
    HITL.submit(place.session(), "b2", HITLDecision.reject("no"))
    everything = {name: HITLDecision.approve() for name in ("a1", "a2", "b1", "b2")}
    with pytest.raises(AlreadyDecided, match=r"'b2' .* submitted with it \(3 more\) was not stored"):
        HITL.submit_all(place.session(), everything)
    assert list(place.waiting()) == ["a1", "a2", "b1"]


def test_who_is_overtaken_between_two_sessions_is_told_what_was_not_stored(place: Place) -> None:
    """The first session's answers are stored by then, and stand; those of the second were somebody else's turn."""
    team = Team(place, reply(multitask("a: 1", "b: 2")), "Thanks.", make=two)
    team.ask()
    session = place.session()

    class Slow:
        """A store in which somebody answers in between; it hands all on."""

        posts = 0

        def __init__(self) -> None:
            self.store = place.store()

        def __getattr__(self, name: str) -> Any:
            return getattr(self.store, name)

        def post(self, *args: Any, **settings: Any) -> int:
            number = self.store.post(*args, **settings)
            self.posts += 1
            if self.posts == 1:
                HITL.submit(place.session(), "b1", HITLDecision.reject("no", continue_run=True), by="eve")
            return number

    session.store = Slow()  # type: ignore[assignment]  # hands all on
    everything = {name: HITLDecision.approve() for name in ("a1", "a2", "b1", "b2")}
    with pytest.raises(AlreadyDecided, match=r"'b1' .* submitted with it \(1 more\) was not stored"):
        HITL.submit_all(session, everything)
    assert list(place.waiting()) == ["b2"]
    HITL.submit(place.session(), "b2", HITLDecision.approve())
    team.ask(None)
    assert (place.state.outcome, place.counted) == ("answered", {"a1": 1, "a2": 1, "b2": 1})
