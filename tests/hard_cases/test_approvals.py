"""Hard cases 1, 3, 4, 6, 7 and 8: approvals over processes, hours and changes."""

from collections.abc import Callable
from typing import Any

import pytest
from msgspec.structs import replace

from jackstay import (
    HITL,
    AgentSession,
    HarnessEngine,
    HITLDecision,
    HITLInterceptor,
    PermissionRule,
    Waiting,
    cancel,
    tool,
)
from jackstay.core.approvals import HITLTask
from jackstay.core.errors import AlreadyDecided, CallChanged, CallClosed, TooLate, UnknownCall
from jackstay.core.events import HITLDecidedEvent, HITLPendingEvent
from jackstay.core.phase import Phase
from jackstay.engine import texts
from jackstay.engine.ports import Posted
from tests.campaign.mission import KillingStore, die_at
from tests.campaign.supervise import KILLED, check_bodies, ended, fork
from tests.elsewhere import HOUR, Place, ask, asks, ends, order, reply

FIVE = reply(
    asks("look", "l1"), asks("deploy", "d1"), asks("put", "p1"), asks("deploy", "d2"), asks("look", "l2")
)
ONE = reply(asks("deploy", "d1"))


def submit(place: Place, call_id: str, decision: HITLDecision) -> None:
    """Decide in another process."""

    def act() -> int:
        HITL.submit(place.session(), call_id, decision, by="ada")
        return 0

    assert ended(fork(act)) == 0


# -- row 1 -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("first", ["d1", "d2"])
def test_row_1_two_gated_and_three_free_calls_killed_and_decided_elsewhere_hours_apart(
    place: Place, first: str
) -> None:
    def run() -> int:
        ask(place.engine(FIVE, "Done.", store=KillingStore(place.store(), die_at(2, "after"))))
        return 0

    assert ended(fork(run)) == KILLED  # right after the question was stored
    assert not place.counted
    decisions = {"d1": HITLDecision.approve(), "d2": HITLDecision.reject("not d2")}
    second = "d2" if first == "d1" else "d1"
    place.at += 3 * HOUR
    submit(place, first, decisions[first])
    half = ask(place.engine(FIVE, "Done."), None)
    assert order(half) == ["run_start", "hitl_pending", "run_end"]
    place.at += 9 * HOUR
    submit(place, second, decisions[second])
    events = ask(place.engine(FIVE, "Done."), None)

    told = [event for event in events if isinstance(event, HITLDecidedEvent)]
    assert [(e.call_id, e.decision.kind, e.decision.by) for e in told] == [
        ("d1", "approve", "ada"), ("d2", "reject", "ada"),
    ]  # fmt: skip
    assert [end.call_id for end in ends(events)] == ["l1", "d1", "p1", "d2", "l2"]
    assert {name: result.text for name, result in place.results().items()} == {
        "l1": "saw l1", "d1": "deployed d1", "p1": "put p1", "l2": "saw l2",
        "d2": f"{texts.REJECTED} The reason given: not d2",
    }  # fmt: skip
    assert place.counted == {"l1": 1, "d1": 1, "p1": 1, "l2": 1}
    assert place.state.outcome == "answered"
    check_bodies(place.state)


# -- row 3 -------------------------------------------------------------------------------------------------


def test_row_3_answered_twice_the_second_is_told(place: Place) -> None:
    ask(place.engine(ONE, "Done."))
    submit(place, "d1", HITLDecision.reject("no", continue_run=True))
    with pytest.raises(AlreadyDecided, match="the first decision stands"):
        HITL.submit(place.session(), "d1", HITLDecision.approve())
    ask(place.engine(ONE, "Done."), None)
    assert not place.counted
    with pytest.raises(CallClosed, match=r"waits no more .* A person rejected this call"):
        HITL.submit(place.session(), "d1", HITLDecision.approve())


def test_row_3_answered_from_two_processes_at_once_one_wins_and_the_other_is_told(place: Place) -> None:
    ask(place.engine(ONE, "Done."))

    def act(kind: str) -> Callable[[], int]:
        def decide() -> int:
            try:
                HITL.submit(place.session(), "d1", HITLDecision(kind, go_on=True))  # type: ignore[arg-type]  # one of three
            except AlreadyDecided:
                return 9
            return 0

        return decide

    children = [fork(act(kind)) for kind in ("approve", "reject", "approve", "skip")]
    assert sorted(ended(child) for child in children) == [0, 9, 9, 9]
    (winner,) = place.session().decisions().values()
    ask(place.engine(ONE, "Done."), None)
    assert place.counted["d1"] == (1 if winner.is_approved else 0)


def test_row_3_several_answers_at_once_are_stored_all_or_none_from_whichever_process(place: Place) -> None:
    """Each process answers every call of the batch; the order in which it names them is its own."""
    turn = reply(*(asks("deploy", f"d{number}") for number in range(8)))
    ask(place.engine(turn, "Done."))

    def act(kind: str, order: range) -> Callable[[], int]:
        def decide() -> int:
            decision = HITLDecision(kind, go_on=True)  # type: ignore[arg-type]  # one of three
            try:
                HITL.submit_all(place.session(), {f"d{n}": decision for n in order}, by=kind)
            except AlreadyDecided as problem:
                return (
                    9
                    if problem.others == 7 and "submitted with it (7 more) was not stored" in str(problem)
                    else 1
                )
            return 0

        return decide

    there, back = range(8), range(7, -1, -1)
    acts = [act("approve", there), act("reject", back), act("skip", there), act("approve", back)]
    assert sorted(ended(child) for child in [fork(act) for act in acts]) == [0, 9, 9, 9]
    said = place.session().decisions()
    assert len(said) == 8
    assert len({(decision.kind, decision.by) for decision in said.values()}) == 1
    ask(place.engine(turn, "Done."), None)
    assert len(place.counted) == (8 if said["d0"].is_approved else 0)


def test_row_3_one_refused_answer_keeps_the_others_of_its_submission_out(place: Place) -> None:
    ask(place.engine(FIVE, "Done."))
    submit(place, "d2", HITLDecision.reject("no"))
    both = {"d1": HITLDecision.approve(), "d2": HITLDecision.approve()}
    with pytest.raises(AlreadyDecided, match=r"'d2' .* submitted with it \(1 more\) was not"):
        HITL.submit_all(place.session(), both)
    assert list(place.session().decisions()) == ["d2"]
    assert list(place.waiting()) == ["d1"]


class Overtaken(AgentSession):
    """A session that somebody else does something to, right after it was looked at."""

    def __init__(self, place: Place, meanwhile: Callable[[], object]) -> None:
        super().__init__("s", place.store(), now=place.now)
        self._meanwhile: list[Callable[[], object]] = [meanwhile]

    def pending_tasks(self) -> tuple[HITLTask, ...]:
        found = super().pending_tasks()
        while self._meanwhile:
            self._meanwhile.pop()()
        return found


def test_row_3_an_answer_overtaken_by_a_cancel_is_told_so_and_leaves_nothing_behind(place: Place) -> None:
    ask(place.engine(ONE, "Done."))
    session = Overtaken(place, lambda: cancel(place.session(), by="eve"))
    with pytest.raises(CallClosed, match="cancelled by eve"):
        HITL.submit(session, "d1", HITLDecision.approve())
    assert place.store().inbox("s") == ()


def test_row_3_an_answer_overtaken_by_a_resume_that_decides_nothing_is_stored(place: Place) -> None:
    ask(place.engine(ONE, "Done."))
    HITL.submit(Overtaken(place, lambda: ask(place.engine(ONE, "Done."), None)), "d1", HITLDecision.approve())
    ask(place.engine(ONE, "Done."), None)
    assert place.counted == {"d1": 1}


def test_row_3_an_answer_after_cancel_changes_nothing_and_says_what_became_of_it(place: Place) -> None:
    ask(place.engine(ONE, "Done."))
    assert cancel(place.session(), by="ada") == "cancelled"
    with pytest.raises(CallClosed, match="what became of it: Not run: cancelled by ada"):
        HITL.submit(place.session(), "d1", HITLDecision.approve())
    assert order(ask(place.engine(), None)) == ["run_start", "run_end"]
    assert not place.counted


def test_row_3_a_foreign_id_is_told_what_waits(place: Place) -> None:
    ask(place.engine(ONE, "Done."))
    with pytest.raises(UnknownCall, match=r"'d9' does not wait .* waiting are: d1"):
        HITL.submit(place.session(), "d9", HITLDecision.approve())


def test_row_3_an_answer_after_expiry_is_too_late(place: Place) -> None:
    ask(place.engine(ONE, "Done.", hitl_waiting=Waiting(HOUR, "deny")))
    place.at += 2 * HOUR
    with pytest.raises(TooLate, match=r"ended 3600 s ago: it is denied"):
        HITL.submit(place.session(), "d1", HITLDecision.approve())
    events = ask(place.engine(ONE, "Done.", hitl_waiting=Waiting(HOUR, "deny")), None)
    assert [(end.text, end.executed) for end in ends(events)] == [(texts.EXPIRED, False)]
    assert (place.state.outcome, place.counted) == ("answered", {})


def test_an_answer_that_was_stored_after_the_deadline_does_not_count(place: Place) -> None:
    """Whatever wrote it: another program may post into the inbox without asking `HITL`."""
    ask(place.engine(ONE, "Done.", hitl_waiting=Waiting(HOUR, "deny")))
    late = replace(HITLDecision.approve(), by="ada", at=place.at + 2 * HOUR)
    place.store().post("s", Posted(0, "d1", late))
    place.at += 3 * HOUR
    ask(place.engine(ONE, "Done."), None)
    assert (place.results()["d1"].text, place.counted) == (texts.EXPIRED, {})


def test_an_answer_in_time_counts_however_late_the_run_goes_on(place: Place) -> None:
    ask(place.engine(ONE, "Done.", hitl_waiting=Waiting(HOUR, "deny")))
    place.at += HOUR / 2
    HITL.submit(place.session(), "d1", HITLDecision.approve())
    place.at += 100 * HOUR
    ask(place.engine(ONE, "Done."), None)
    assert place.counted == {"d1": 1}


@pytest.mark.parametrize("waiting", [Waiting(), Waiting(HOUR), Waiting(HOUR, "keep")])
def test_by_default_and_with_keep_a_call_waits_as_long_as_it_takes(place: Place, waiting: Waiting) -> None:
    ask(place.engine(ONE, "Done.", hitl_waiting=waiting))
    place.at += 10_000 * HOUR
    assert order(ask(place.engine(ONE, "Done."), None)) == ["run_start", "hitl_pending", "run_end"]
    HITL.submit(place.session(), "d1", HITLDecision.approve())
    ask(place.engine(ONE, "Done."), None)
    assert place.counted == {"d1": 1}


def test_an_escalated_call_is_put_to_somebody_else_and_waits_on(place: Place) -> None:
    waiting = Waiting(HOUR, "escalate", "the team lead")
    ask(place.engine(ONE, "Done.", hitl_waiting=waiting))
    place.at += 2 * HOUR
    for _ in range(2):
        events = ask(place.engine(ONE, "Done."), None)  # what was stored counts, not this engine's settings
        (task,) = next(event for event in events if isinstance(event, HITLPendingEvent)).pending_tasks
        assert (task.escalated_to, task.deadline) == ("the team lead", None)
        assert task.comment.endswith("(nobody answered within 3600 s)")
        place.at += 2 * HOUR
    HITL.submit(place.session(), task, HITLDecision.approve())
    ask(place.engine(ONE, "Done."), None)
    assert place.counted == {"d1": 1}


# -- row 4 -------------------------------------------------------------------------------------------------


def other_schema(place: Place) -> dict[str, Any]:
    @tool(effects={"writes"})
    async def deploy(name: str, force: bool = False) -> str:
        """Deploy."""
        place.count(name)
        return f"deployed {name}"

    return {"tools": (*place.tools()[:2], deploy, "hitl")}


def other_directory(place: Place) -> dict[str, Any]:
    (place.folder / "elsewhere").mkdir()
    return {"workspace": str(place.folder / "elsewhere")}


def other_rules(place: Place) -> dict[str, Any]:
    return {"permission_rules": (PermissionRule.ask("look"),)}


def other_priority(place: Place) -> dict[str, Any]:
    return {"permission_rules": (PermissionRule.ask("put").priority(3),)}


def other_default(place: Place) -> dict[str, Any]:
    return {"permission_default": "workspace"}


def other_discipline(place: Place) -> dict[str, Any]:
    return {"discipline": "observe"}


@pytest.mark.parametrize(
    ("change", "what"),
    [
        (other_schema, "the tool's schema"),
        (other_directory, "the working directory"),
        (other_rules, "the permission rules"),
        (other_priority, "the permission rules"),
        (other_default, "the permission rules"),
        (other_discipline, "the permission rules"),
    ],
)
def test_row_4_what_changed_since_it_was_approved_is_asked_again_and_named(
    place: Place, change: Callable[[Place], dict[str, Any]], what: str
) -> None:
    ask(place.engine(ONE, "Done.", permission_rules=(PermissionRule.ask("put"),)))
    shown = place.waiting()["d1"]
    HITL.submit(place.session(), shown, HITLDecision.approve())
    settings = {"permission_rules": (PermissionRule.ask("put"),), **change(place)}
    events = ask(place.engine(ONE, "Done.", **settings), None)
    assert order(events) == ["run_start", "hitl_pending", "run_end"]
    assert place.waiting()["d1"].comment == f"{shown.comment} (asked again: {what} changed since)"
    with pytest.raises(CallChanged, match=f"not what you were shown: {what} changed since"):
        HITL.submit(place.session(), shown, HITLDecision.approve())
    assert not place.counted
    HITL.submit(place.session(), place.waiting()["d1"], HITLDecision.approve())
    ask(place.engine(ONE, "Done.", **settings), None)
    assert place.counted == {"d1": 1}


def meanwhile(place: Place, turn: Any, act: Callable[[HarnessEngine], object]) -> HarnessEngine:
    """An engine in which something happens while `put` runs."""
    look, _, deploy = place.tools()

    @tool(effects={"writes"})
    async def put(name: str) -> str:
        """Write."""
        place.count(name)
        act(engine)
        return f"put {name}"

    engine = place.engine(turn, "Done.", tools=(look, put, deploy, "hitl"))
    return engine


def test_row_4_what_changes_while_the_batch_runs_is_asked_again_before_the_call_begins(place: Place) -> None:
    """The approval was taken in by then; the first call of the batch has run."""
    turn = reply(asks("put", "p1"), asks("deploy", "d1"), asks("look", "l1"))
    (place.folder / "elsewhere").mkdir()
    ask(place.engine(turn, "Done."))
    shown = place.waiting()["d1"]
    HITL.submit(place.session(), shown, HITLDecision.approve())
    engine = meanwhile(place, turn, lambda engine: engine.set(workspace=str(place.folder / "elsewhere")))
    assert order(ask(engine, None))[-3:] == ["action_end", "hitl_pending", "run_end"]
    assert place.counted == {"p1": 1}
    assert (
        place.waiting()["d1"].comment == f"{shown.comment} (asked again: the working directory changed since)"
    )
    HITL.submit(place.session(), place.waiting()["d1"], HITLDecision.approve())
    ask(engine, None)
    assert place.counted == {"p1": 1, "d1": 1, "l1": 1}
    check_bodies(place.state)


def test_an_approval_does_not_beat_a_deny_that_comes_while_the_batch_runs(place: Place) -> None:
    turn = reply(asks("put", "p1"), asks("deploy", "d1"), asks("look", "l1"))
    ask(place.engine(turn, "Done."))
    HITL.submit(place.session(), "d1", HITLDecision.approve())
    ask(meanwhile(place, turn, lambda engine: engine.add_permission_rule(PermissionRule.deny("deploy"))), None)
    assert place.results()["d1"].text.startswith("Not run, denied by policy: ")
    assert place.counted == {"p1": 1, "l1": 1}


@pytest.mark.parametrize("part", range(len(texts.CHANGES)))
def test_row_4_a_decision_about_something_else_than_what_waits_is_refused_and_says_what(
    place: Place, part: int
) -> None:
    ask(place.engine(ONE, "Done."))
    task = place.waiting()["d1"]
    marks = task.digest.replace("@", ".").split(".")
    marks[part] = "0" * 20
    seen = replace(task, digest=f"{'.'.join(marks[:4])}@{marks[4]}")
    with pytest.raises(CallChanged, match=f"{texts.CHANGES[part]} changed since"):
        HITL.submit(place.session(), seen, HITLDecision.approve())
    assert list(place.waiting()) == ["d1"]


def test_row_4_an_approval_in_another_phase_is_void(place: Place) -> None:
    strict = {"discipline": "guided"}
    ask(place.engine(ONE, "Done.", **strict))
    shown = place.waiting()["d1"]
    assert shown.digest.endswith("@no_task")
    HITL.submit(place.session(), shown, HITLDecision.approve())
    forced = {"phase": str(Phase.EXECUTING), "reason": "a test", "by": "ada"}
    place.store().post("s", Posted(0, "!force_phase", command="force_phase", data=forced))
    ask(place.engine(ONE, "Done.", **strict), None)
    assert place.waiting()["d1"].comment.endswith("(asked again: the phase changed since)")
    assert not place.counted


def test_row_4_arguments_that_an_interceptor_changes_after_approval_do_not_run(place: Place) -> None:
    from jackstay import Interceptor

    class Switch(Interceptor):
        """Turns an approved call into another one."""

        def on_tool_call_start(self, trace: Any, call: Any) -> Any:
            return replace(call, args={"name": "something-else"})

    class Extension:
        def configure(self, engine: Any, agent_name: str, builder: Any) -> None:
            builder.default_interceptor_add(Switch())

    ask(place.engine(ONE, "Done."))
    HITL.submit(place.session(), "d1", HITLDecision.approve())
    (end,) = ends(ask(place.engine(ONE, "Done.", extensions=(Extension(),)), None))
    assert (end.executed, place.counted) == (False, {})
    assert "needs a person's approval" in end.text


def test_row_4_changed_arguments_are_what_the_person_chose_and_nothing_else_may_have_moved(
    place: Place,
) -> None:
    ask(place.engine(ONE, "Done."))
    HITL.submit(place.session(), "d1", HITLDecision.approve(modified_args={"name": "staging"}))
    ask(place.engine(ONE, "Done.", **other_rules(place)), None)
    assert place.waiting()["d1"].comment.endswith("(asked again: the permission rules changed since)")
    HITL.submit(place.session(), "d1", HITLDecision.approve(modified_args={"name": "staging"}))
    ask(place.engine(ONE, "Done.", **other_rules(place)), None)
    assert place.counted == {"staging": 1}


def test_a_recorded_reject_wins_over_a_rule_added_meanwhile(place: Place) -> None:
    ask(place.engine(FIVE, "Done."))
    HITL.submit(place.session(), "d1", HITLDecision.reject("no"))
    HITL.submit(place.session(), "d2", HITLDecision.skip("later"))
    ask(place.engine(FIVE, "Done.", permission_rules=(PermissionRule.allow("deploy"),)), None)
    assert place.counted == {"l1": 1, "p1": 1, "l2": 1}


def test_an_approval_never_beats_a_deny(place: Place) -> None:
    ask(place.engine(ONE, "Done."))
    HITL.submit(place.session(), "d1", HITLDecision.approve())
    (end,) = ends(ask(place.engine(ONE, "Done.", permission_rules=(PermissionRule.deny("deploy"),)), None))
    assert (end.executed, place.counted) == (False, {})
    assert end.text.startswith("Not run, denied by policy: ")


# -- row 6 -------------------------------------------------------------------------------------------------


def denied_by_a_person(place: Place) -> None:
    ask(place.engine(ONE, "Done."))
    HITL.submit(place.session(), "d1", HITLDecision.reject(continue_run=True))
    ask(place.engine(ONE, "Done."), None)


def denied_by_policy(place: Place) -> None:
    ask(place.engine(ONE, "Done.", permission_rules=(PermissionRule.deny("deploy"),)))


def expired(place: Place) -> None:
    ask(place.engine(ONE, "Done.", hitl_waiting=Waiting(HOUR, "deny")))
    place.at += 2 * HOUR
    ask(place.engine(ONE, "Done."), None)


def cancelled(place: Place) -> None:
    ask(place.engine(ONE, "Done."))
    cancel(place.session(), by="ada")


def test_row_6_denied_by_a_person_or_policy_expired_and_cancelled_read_differently(tmp_path: Any) -> None:
    said = {}
    for happens in (denied_by_a_person, denied_by_policy, expired, cancelled):
        place = Place(tmp_path / happens.__name__)
        happens(place)
        said[happens.__name__] = place.results()["d1"].text
        assert not place.counted
        place.close()
    assert said == {
        "denied_by_a_person": texts.REJECTED,
        "denied_by_policy": "Not run, denied by policy: the rule 'deny deploy' denies 'deploy'; do it another way, "
        "or ask your user to change the rule (session)",
        "expired": texts.EXPIRED,
        "cancelled": "Not run: cancelled by ada.",
    }


# -- row 7 -------------------------------------------------------------------------------------------------


def test_row_7_a_new_prompt_closes_what_waits_and_no_stale_answer_matches_later_calls(place: Place) -> None:
    ask(place.engine(FIVE, "Done."))
    HITL.submit(place.session(), "d1", HITLDecision.approve())
    events = ask(place.engine(ONE, "Done."), "something else")  # the provider uses the same call id once more
    assert order(events)[-2:] == ["hitl_pending", "run_end"]
    (task,) = place.waiting().values()
    assert task.call_id != "d1"
    moved_on = [place.results_so_far()[name].text for name in ("l1", "d1", "p1", "d2", "l2")]
    assert moved_on == [f"Not run: {texts.MOVED_ON}."] * 5
    with pytest.raises(CallClosed, match="the user moved on"):
        HITL.submit(place.session(), "d1", HITLDecision.approve())
    assert not place.counted


# -- row 8 -------------------------------------------------------------------------------------------------


def test_row_8_mixed_verdicts_make_one_valid_batch_for_every_provider(place: Place) -> None:
    turn = reply(*(asks("deploy", f"d{n}") for n in range(1, 5)), asks("look", "l1"))
    ask(place.engine(turn, "Done."))
    session = place.session()
    HITL.submit_all(session, {
        "d4": HITLDecision.approve(comment="go"), "d3": HITLDecision.skip("done by hand"),
        "d2": HITLDecision.reject("no"), "d1": HITLDecision.approve(modified_args={"name": "other"}),
    })  # fmt: skip
    ask(place.engine(turn, "Done."), None)
    state = place.state
    assert [message.role for message in state.transcript] == ["user", "assistant", *["tool"] * 5, "assistant"]
    assert list(place.results()) == ["d1", "d2", "d3", "d4", "l1"]
    check_bodies(state)
    assert place.counted == {"other": 1, "d4": 1, "l1": 1}


def test_no_approver_is_a_defined_answer(place: Place) -> None:
    """Hard case 26: without HITL a call that needs a person is refused, never allowed."""
    interceptor = HITLInterceptor().on_sensitive_tool("deploy")
    made = place.engine(
        ONE, "Done.", hitl_enabled=False, hitl_interceptor=interceptor,
        permission_rules=(PermissionRule.ask("deploy"),),
    )  # fmt: skip
    (end,) = ends(ask(made))
    assert (end.executed, place.counted) == (False, {})
