"""A plan that was approved by command is a reason to go on with the run that proposed it."""

import pytest

from jackstay.core.events import PhaseChangedEvent, WarningEvent
from jackstay.core.inputs import Command, Resumed
from jackstay.core.messages import Message
from jackstay.core.phase import Phase
from jackstay.core.state import RunState
from jackstay.engine.bounds import RunBounds
from tests.make import Player, call, says, tags, unanswered

STRICT = RunBounds(hitl=True, discipline="strict")
PLAN = "Mend it.\n\n[HARNESS: plan]"


def planned(*more: Message) -> Player:
    """A run that has looked, has put its plan, and waits for a person."""
    first = says("[HARNESS: task_started]", call("look"))
    return Player([first, says(PLAN), *more], bounds=STRICT).begin("mend it").fresh()


def approval(state: RunState, **detail: object) -> Command:
    return Command("approve_plan", "ann", {"by": "ann", "seq": state.seq, **detail})


def resumed(player: Player, *commands: Command) -> Player:
    return player.play(Resumed(player.now(), commands=commands))


def test_an_approved_plan_goes_on_in_the_same_run() -> None:
    player = planned(says("Mended."))
    before = player.state
    assert (before.outcome, before.policy.phase.phase) == ("answered", Phase.PLANNING)
    resumed(player, approval(before, comment="commit it"))
    assert tags(player.events) == [
        "run_start", "phase_changed", "guidance", "reason_start", "reason_end", "run_end",
    ]  # fmt: skip
    assert {event.run_id for event in player.events} == {before.run_id}
    after = player.state
    assert (after.outcome, after.text, after.policy.phase.phase) == ("answered", "Mended.", Phase.EXECUTING)
    assert (after.policy.phase.approved_by, after.policy.phase.commit_word) == ("ann", "commit")
    told = list(after.transcript)[-2]
    assert (told.role, told.note) == ("user", "approval")
    assert told.text == "Your user (ann) approves the plan: go ahead with it. They say: commit it"
    assert unanswered(after.transcript) == []


def test_without_an_approval_the_run_stays_ended_and_nothing_is_stored() -> None:
    player = planned()
    before = player.state
    resumed(player)
    assert tags(player.events) == ["run_start", "run_end"]
    assert [event.seq for event in player.events] == [None, None]
    assert player.state == before


def test_an_approval_of_a_plan_that_has_moved_on_counts_for_nothing() -> None:
    player = planned(says("Another one.\n\n[HARNESS: plan]"), says("I wait."))
    stale = approval(player.state)
    player.begin("rather differently").fresh()
    resumed(player, stale)
    assert tags(player.events) == ["run_start", "warning", "run_end"]
    warning = player.events[1]
    assert isinstance(warning, WarningEvent)
    assert "it waits for approval again" in warning.text
    assert player.state.policy.phase.phase is Phase.PLANNING


@pytest.mark.parametrize("phase", list(Phase))
def test_a_phase_that_a_person_forces_moves_an_ended_run_without_asking_the_model(phase: Phase) -> None:
    player = planned()
    force = Command("force_phase", "ann", {"phase": phase.value, "reason": "I say so"})
    resumed(player, force)
    assert tags(player.events) == ["run_start", "phase_changed", "run_end"]
    moved = player.events[1]
    assert isinstance(moved, PhaseChangedEvent)
    assert (moved.before, moved.after, moved.why) == (Phase.PLANNING, phase, "ann: I say so")
    assert player.state.policy.phase.phase is phase
    assert player.state.outcome == "answered"


def test_an_order_to_cancel_comes_too_late_for_an_ended_run() -> None:
    player = planned()
    resumed(player, Command("cancel", "ann", {"run_id": player.state.run_id}))
    assert tags(player.events) == ["run_start", "run_end"]
    assert player.state.outcome == "answered"


def test_an_approval_while_a_call_waits_moves_the_phase_and_the_call_waits_on() -> None:
    first = says("[HARNESS: task_started]", call("look"))
    player = Player([first, says(PLAN, call("ask", "c"))], bounds=STRICT).begin("mend it").fresh()
    assert player.state.is_pending
    calls = (player.state.batch.calls[0].call,) if player.state.batch is not None else ()
    posted = (approval(player.state),)
    player.play(Resumed(player.now(), {}, posted, calls, tuple(player.facts(c) for c in calls)))
    assert tags(player.events) == ["run_start", "phase_changed", "hitl_pending", "run_end"]
    assert player.state.policy.phase.phase is Phase.EXECUTING
    assert unanswered(player.state.transcript) == ["call c is not answered in order"]
