"""What is told loses its secrets, what the run goes on from keeps them; one step at a time, as plain values."""

from msgspec.structs import replace

from jackstay.core.approvals import HITLDecision
from jackstay.core.events import (
    HITLPendingEvent,
    ReasonEndEvent,
    RunEndEvent,
    ToolCallEndEvent,
    ToolCallStartEvent,
)
from jackstay.core.messages import Message, Text, Thinking, ToolCall
from jackstay.engine.bounds import RunBounds
from jackstay.engine.draft import Step
from jackstay.engine.telling import told, told_message
from jackstay.policy.secrets import plain
from tests.make import Player, call, says

SECRET = plain("ghp_¦k3Jd8sLq0ZxVb7NmYt5RwPa2HgUe9Cf4Ti6o")
MARK = "[redacted:github-token]"


def test_a_step_without_secrets_is_the_same_object() -> None:
    player = Player([says("", call("look", "c1", path="a")), says("done")])
    player.begin("go")
    made = Step(player.state, tuple(player.events))
    assert told(made) is made


def test_events_and_final_text_are_told_without_and_the_call_runs_with_its_secret() -> None:
    player = Player([says(f"with {SECRET}", call("look", "c1", path=SECRET)), says(f"it was {SECRET}")])
    player.begin("go")
    assert SECRET not in repr(player.events)
    assert player.ran == [ToolCall("c1", "look", {"path": SECRET})]
    assert player.state.text == f"it was {MARK}"
    assert [one.calls for one in player.state.transcript if one.calls] == [(call("look", "c1", path=SECRET),)]
    by_kind = {type(event): event for event in player.events}
    assert by_kind[ToolCallStartEvent].args == by_kind[ToolCallEndEvent].args == {"path": MARK}
    assert by_kind[RunEndEvent].text == f"it was {MARK}"
    first = next(event for event in player.events if isinstance(event, ReasonEndEvent))
    assert (first.text, first.calls) == (f"with {MARK}", (call("look", "c1", path=MARK),))


def test_the_card_shows_a_mark_and_the_decision_is_bound_to_the_real_call() -> None:
    player = Player([says("", call("ask", "c1", password="hunter2", to="db")), says("done")])
    player.begin("go")
    (task,) = next(event for event in player.events if isinstance(event, HITLPendingEvent)).pending_tasks
    assert task.args == {"password": "[redacted:password]", "to": "db"}
    assert player.state.batch is not None
    assert player.state.batch.waiting == (task,)
    assert player.state.batch.calls[0].call.args == {"password": "hunter2", "to": "db"}
    player.resume(c1=replace(HITLDecision.approve(), digest=task.digest))
    assert player.ran == [ToolCall("c1", "ask", {"password": "hunter2", "to": "db"})]
    assert "hunter2" not in repr(player.events)


def test_it_is_switched_off_by_the_bounds() -> None:
    player = Player([says("", call("ask", "c1", path=SECRET))], bounds=RunBounds(hitl=True, redacts=False))
    player.begin("go")
    (task,) = next(event for event in player.events if isinstance(event, HITLPendingEvent)).pending_tasks
    assert task.args == {"path": SECRET}


def test_a_message_is_told_with_the_provider_s_signature_as_it_was() -> None:
    signed = Thinking(f"I saw {SECRET}", signature=SECRET, source="anthropic")
    message = Message(
        "assistant", (signed, Text("hello"), ToolCall("c1", "x", {"a": SECRET}, extra={"sig": SECRET}))
    )
    assert told_message(message).parts == (
        replace(signed, text=f"I saw {MARK}"), Text("hello"),
        ToolCall("c1", "x", {"a": MARK}, extra={"sig": SECRET}),
    )  # fmt: skip
    plain_one = Message("user", (Text("hello"),))
    assert told_message(plain_one) is plain_one
