"""The run as a pure function: limits, crashes, cancels and odd replies, each as a whole list of events."""

import pytest

from jackstay.core import wire
from jackstay.core.approvals import HITLDecision
from jackstay.core.effects import RunTool
from jackstay.core.errors import ErrorInfo
from jackstay.core.events import HITLPendingEvent, RunEndEvent, ToolCallEndEvent
from jackstay.core.inputs import Begin, Observed, Resumed
from jackstay.core.messages import Message, Text, ToolCall, ToolResult
from jackstay.core.state import Budget
from jackstay.engine.bounds import RunBounds
from jackstay.engine.resuming import calls_to_judge
from tests.make import Player, call, facts, says, tags, unanswered

NO_PEOPLE = RunBounds(hitl=False)


def ends(player: Player) -> list[tuple[str, bool, bool | None]]:
    return [(e.tool_name, e.is_error, e.executed) for e in player.events if isinstance(e, ToolCallEndEvent)]


def test_a_plain_answer() -> None:
    player = Player([says("hello")]).begin()
    assert tags(player.events) == ["run_start", "reason_start", "reason_end", "run_end"]
    assert (player.state.outcome, player.state.text) == ("answered", "hello")


def test_a_tool_turn_with_two_reads_starts_both_before_either_ends() -> None:
    player = Player([says("", call("look_a"), call("look_b")), says("done")]).begin()
    assert tags(player.events) == [
        "run_start", "reason_start", "reason_end", "action_start", "tool_call_start", "tool_call_start",
        "tool_call_end", "tool_call_end", "action_end", "reason_start", "reason_end", "run_end",
    ]  # fmt: skip
    assert [m.role for m in player.state.transcript] == ["user", "assistant", "tool", "tool", "assistant"]


def test_history_keeps_call_order_when_results_come_in_another() -> None:
    player = Player([says("", call("look_a", "a"), call("look_b", "b")), says("done")])
    effects = player.take(Begin(1.0, "r", (Text("go"),)))
    effects = player.perform(effects[0])
    assert [e.call.call_id for e in effects if isinstance(e, RunTool)] == ["a", "b"]
    assert player.take(Observed(2.0, ToolResult("b", "second"))) == ()
    assert wire.decode_head(wire.encode(player.state)).batch == player.state.batch
    following = player.take(Observed(3.0, ToolResult("a", "first")))
    assert len(following) == 1
    assert [p.text for m in list(player.state.transcript)[2:] for p in m.parts] == ["first", "second"]


@pytest.mark.parametrize(("tool", "told"), [("none_such", "no tool"), ("bad_args", "x: expected int")])
def test_unknown_tools_and_bad_arguments_are_error_observations(tool: str, told: str) -> None:
    player = Player([says("", call(tool)), says("done")]).begin()
    assert ends(player) == [(tool, True, False)]
    assert player.ran == []
    assert told in player.state.transcript[2].parts[0].text
    assert player.state.outcome == "answered"


def test_broken_arguments_never_run() -> None:
    broken = ToolCall("c", "look", {}, problem="its arguments were cut off by the output limit", raw='{"a')
    player = Player([says("", broken), says("done")]).begin()
    assert ends(player) == [("look", True, False)]
    assert player.ran == []


def test_a_denied_call_blocks_alone() -> None:
    player = Player([says("", call("deny_it"), call("look")), says("done")]).begin()
    assert tags(player.events)[3:9] == [
        "action_start", "gate_blocked", "tool_call_start", "tool_call_end", "tool_call_start", "tool_call_end",
    ]  # fmt: skip
    assert ends(player) == [("deny_it", True, False), ("look", False, True)]


def test_asking_where_nobody_can_be_asked_is_refusing() -> None:
    player = Player([says("", call("ask_it")), says("done")], bounds=NO_PEOPLE).begin()
    assert ends(player) == [("ask_it", True, False)]
    assert "--allow 'ask_it'" in player.state.transcript[2].parts[0].text


def test_calls_with_one_id_or_none_get_names_of_their_own() -> None:
    reply = says("", call("look", "x"), call("look", "x"), call("look", ""), call("look", "bad id!"))
    player = Player([reply, says("", call("look", "x")), says("done")]).begin()
    ids = [c.call_id for m in player.state.transcript for c in m.calls]
    assert len(set(ids)) == 5
    assert ids[0] == "x"
    assert unanswered(player.state.transcript) == []


def test_writes_of_one_batch_are_judged_again_before_they_run() -> None:
    player = Player([says("", call("write_a"), call("write_b")), says("done")])
    forbidden: list[str] = []
    plain = player.facts

    def judge(c: ToolCall):
        return plain(call("deny_now", c.call_id)) if c.tool in forbidden else plain(c)

    player.facts = judge
    effects = player.perform(player.take(Begin(1.0, "r", (Text("go"),)))[0])
    forbidden.append("write_b")
    pending = list(effects)
    while pending:
        pending.extend(player.perform(pending.pop(0)))
    assert ends(player) == [("write_a", False, True), ("write_b", True, False)]


def test_a_later_write_that_newly_needs_a_person_suspends_the_rest_and_keeps_results() -> None:
    player = Player([says("", call("write_a", "a"), call("write_b", "b")), says("done")])
    plain = player.facts
    now_asks: list[str] = []
    player.facts = lambda c: plain(call("ask_it", c.call_id)) if c.tool in now_asks else plain(c)
    effects = player.perform(player.take(Begin(1.0, "r", (Text("go"),)))[0])
    now_asks.append("write_b")
    pending = list(effects)
    while pending:
        pending.extend(player.perform(pending.pop(0)))
    assert tags(player.events)[-4:] == ["tool_call_end", "action_end", "hitl_pending", "run_end"]
    assert player.state.outcome == "pending"
    player.fresh().resume(b=HITLDecision.approve())
    assert tags(player.events)[:6] == [
        "run_start", "hitl_decided", "action_start", "tool_call_start", "tool_call_end", "action_end",
    ]  # fmt: skip
    assert [c.tool for c in player.ran] == ["write_a", "write_b"]
    assert unanswered(player.state.transcript) == []


def test_the_turn_limit_ends_with_a_last_turn_that_sums_up() -> None:
    bounds = RunBounds(budget=Budget(max_turns=2))
    player = Player([says("", call("look")), says("", call("look")), says("summary")], bounds=bounds).begin()
    assert tags(player.events)[-3:] == ["reason_start", "reason_end", "run_end"]
    assert (player.state.outcome, player.state.text) == ("limit", "summary")
    assert [asked.last for asked in player.asked] == [False, False, True]
    assert "last turn" in player.asked[1].notes[0]


def test_calls_of_the_last_turn_are_answered_and_do_not_run() -> None:
    bounds = RunBounds(budget=Budget(max_turns=1))
    player = Player([says("", call("look")), says("still", call("write"))], bounds=bounds).begin()
    assert player.state.outcome == "limit"
    assert [c.tool for c in player.ran] == ["look"]
    assert unanswered(player.state.transcript) == []


def test_a_spent_token_budget_refuses_the_calls_at_hand() -> None:
    bounds = RunBounds(budget=Budget(max_tokens=10))
    player = Player([says("", call("write")), says("summary")], bounds=bounds).begin()
    assert player.ran == []
    assert player.state.outcome == "limit"
    assert unanswered(player.state.transcript) == []


def test_a_model_that_fails_for_good() -> None:
    error = ErrorInfo("auth", "401 from the server")
    player = Player([error]).begin()
    assert tags(player.events) == ["run_start", "reason_start", "reason_end", "run_end"]
    end = player.events[-1]
    assert isinstance(end, RunEndEvent)
    assert (end.outcome, end.error) == ("failed", error)
    assert [m.role for m in player.state.transcript] == ["user"]


def test_cancel_during_the_first_of_three_calls() -> None:
    calls = [call("write_a"), call("write_b"), call("write_c")]
    player = Player([says("", *calls)])
    player.perform(player.take(Begin(1.0, "r", (Text("go"),)))[0])
    player.cancel()
    assert tags(player.events)[-4:] == ["tool_call_start", "tool_call_end", "action_end", "run_end"]
    assert player.state.outcome == "cancelled"
    assert unanswered(player.state.transcript) == []
    assert player.ran == []


def test_an_interrupted_batch_goes_on_with_what_had_not_begun() -> None:
    player = Player([says("", call("write_a"), call("write_b")), says("done")])
    player.perform(player.take(Begin(1.0, "r", (Text("go"),)))[0])
    player.cancel(resumable=True)
    assert player.state.outcome is None
    player.fresh().resume()
    assert tags(player.events) == [
        "run_start", "action_start", "tool_call_start", "tool_call_end", "action_end", "reason_start",
        "reason_end", "run_end",
    ]  # fmt: skip
    assert [c.tool for c in player.ran] == ["write_b"]
    assert unanswered(player.state.transcript) == []


def test_a_crash_during_a_read_runs_it_again_and_during_a_write_asks() -> None:
    player = Player([says("", call("look", "a")), says("done")])
    player.perform(player.take(Begin(1.0, "r", (Text("go"),)))[0])
    player.resume()
    assert [c.call_id for c in player.ran] == ["a"]
    assert player.state.outcome == "answered"

    player = Player([says("", call("write", "a")), says("done")])
    player.perform(player.take(Begin(1.0, "r", (Text("go"),)))[0])
    player.fresh().resume()
    assert tags(player.events) == ["run_start", "hitl_pending", "run_end"]
    pending = player.events[1]
    assert isinstance(pending, HITLPendingEvent)
    assert pending.pending_tasks[0].indeterminate
    player.resume(a=HITLDecision.skip("looked: it had run"))
    assert player.ran == []
    assert player.state.outcome == "answered"
    assert player.state.transcript[2].parts[0].executed is None


def test_a_crash_between_an_approved_and_a_rejected_call_tells_no_decision_twice_and_ends_nothing() -> None:
    player = Player([says("", call("ask_a", "a"), call("write", "w"), call("ask_b", "b")), says("done")])
    player.begin()
    answers = {"a": HITLDecision.approve(), "b": HITLDecision.reject("no")}
    calls = calls_to_judge(player.state, answers)
    (run,) = player.take(Resumed(player.now(), answers, (), calls, tuple(facts(c) for c in calls)))
    assert isinstance(run, RunTool)
    player.take(Observed(player.now(), player.result(run.call)))  # stored; what follows from it never happens
    player.fresh().resume()
    assert tags(player.events) == [
        "run_start", "action_start", *["tool_call_start", "tool_call_end"] * 2, "action_end",
        "reason_start", "reason_end", "run_end",
    ]  # fmt: skip
    assert (player.state.outcome, [c.call_id for c in player.ran]) == ("answered", ["w"])


def test_a_crash_during_a_write_without_people_tells_the_model() -> None:
    player = Player([says("", call("write")), says("done")], bounds=NO_PEOPLE)
    player.perform(player.take(Begin(1.0, "r", (Text("go"),)))[0])
    player.resume()
    assert ends(player) == [("write", True, None)]
    assert player.ran == []
    assert player.state.outcome == "answered"


def test_a_crash_while_the_model_was_asked_asks_it_again_in_the_same_turn() -> None:
    player = Player([says("done")])
    player.take(Begin(1.0, "r", (Text("go"),)))
    player.fresh().resume()
    assert tags(player.events) == ["run_start", "reason_start", "reason_end", "run_end"]
    assert player.state.turn == 1


def test_a_new_prompt_over_an_interrupted_run_closes_it_as_cancelled() -> None:
    player = Player([says("", call("write")), says("other")])
    player.perform(player.take(Begin(1.0, "r", (Text("go"),)))[0])
    first = player.state.run_id
    player.fresh().begin("something else")
    ended = [(e.run_id == first, e.outcome) for e in player.events if isinstance(e, RunEndEvent)]
    assert ended == [(True, "cancelled"), (False, "answered")]
    assert unanswered(player.state.transcript) == []


def test_modified_arguments_are_what_ran_and_what_the_transcript_shows() -> None:
    player = Player([says("", call("ask_pay", "p", amount=1000)), says("done")]).begin()
    player.resume(p=HITLDecision.approve().modified_args({"amount": 800}))
    assert [c.args for c in player.ran] == [{"amount": 800}]
    assert player.state.transcript[1].calls[0].args == {"amount": 800}


def test_an_approval_never_beats_a_deny() -> None:
    player = Player([says("", call("ask_it", "a")), says("done")]).begin()
    player.facts = lambda c: Player([]).facts(call("deny_it", c.call_id))
    player.resume(a=HITLDecision.approve())
    assert player.ran == []
    assert ends(player) == [("ask_it", True, False)]


def test_a_recorded_reject_beats_a_rule_added_meanwhile() -> None:
    player = Player([says("", call("ask_it", "a"), call("ask_two", "b")), says("done")]).begin()
    player.facts = lambda c: Player([]).facts(call("write", c.call_id))
    player.resume(a=HITLDecision.reject("no"), b=HITLDecision.approve())
    assert [c.call_id for c in player.ran] == ["b"]


def test_what_changed_since_it_was_approved_is_asked_again() -> None:
    player = Player([says("", call("ask_it", "a")), says("done")]).begin()
    plain = player.facts

    def elsewhere(c: ToolCall):
        from msgspec.structs import replace

        return replace(plain(c), digest="another directory")

    player.facts = elsewhere
    player.fresh().resume(a=HITLDecision.approve())
    assert tags(player.events) == ["run_start", "hitl_pending", "run_end"]
    assert player.ran == []
    player.resume(a=HITLDecision.approve())
    assert [c.call_id for c in player.ran] == ["a"]


def test_always_allow_adds_the_shown_rule_for_the_session() -> None:
    player = Player([says("", call("ask_sh", "a", command="make x")), says("done")]).begin()
    player.resume(a=HITLDecision.approve(True))
    assert [c.call_id for c in player.granted] == ["a"]
    assert [rule.text for rule in player.state.policy.rules] == ["allow ask_sh(make x)"]


def test_a_late_result_is_ignored() -> None:
    player = Player([says("done")]).begin()
    before = player.state
    assert player.take(Observed(9.0, ToolResult("gone", "late"))) == ()
    assert player.state == before


def test_a_message_is_not_changed_by_what_a_reader_does_with_an_event() -> None:
    player = Player([says("", call("write", "a", text="x")), says("done")])
    player.begin()
    for event in player.events:
        if isinstance(event, ToolCallEndEvent):
            event.args["text"] = "forged"
    assert isinstance(player.state.transcript[1], Message)
    assert player.state.transcript[1].calls[0].args == {"text": "x"}


def test_a_read_that_was_through_when_the_process_died_is_not_run_again() -> None:
    player = Player([says("", call("look_a", "a"), call("look_b", "b"), call("look_c", "c")), says("done")])
    (ask,) = player.take(Begin(1.0, "r", (Text("go"),)))
    player.perform(ask)
    player.take(Observed(2.0, ToolResult("b", "second")))
    player.resume()
    assert [one.call_id for one in player.ran] == ["a", "c"]
    texts = [message.parts[0].text for message in list(player.state.transcript)[2:5]]
    assert (texts, player.state.outcome) == (["result of look_a", "second", "result of look_c"], "answered")
