"""The plan that a person approves stays before the model and on the card to the letter (spec 05 §2, 1)."""

from pathlib import Path
from typing import Any

import pytest

from jackstay.core.events import ContextSizeEvent, Event
from jackstay.core.messages import assistant
from jackstay.core.phase import Phase
from jackstay.engine.ports import ModelRequest, Reply, Tell
from jackstay.testing import ScriptedModel, call, says
from tests.scenarios.workplace import TOOLS, Workplace, place

PLAN = "1. Set a to 2 in app.conf, not b.\n2. Look at it again.\n\n[HARNESS: plan]"
BEGIN = says("[HARNESS: task_started]", call("read", file_path="app.conf"))
WRITE = says(call("write", file_path="app.conf", content="a=2\n"))


class Summarising(ScriptedModel):
    """A script that also sums up when it is asked to, and forgets the plan in doing so."""

    async def reply(self, request: ModelRequest, tell: Tell) -> Reply:
        if request.max_output_tokens is not None:
            return Reply(assistant("Some files were read."))
        return await super().reply(request, tell)


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Workplace:
    return place(tmp_path, monkeypatch)


def reads(count: int, start: int = 1) -> list[dict[str, Any]]:
    return [says(call("read", file_path="app.conf", limit=start + number)) for number in range(count)]


def script(work: Workplace, *turns: Any, **settings: Any) -> None:
    work.script("x", max_turns=100, compression_threshold=(10, 0.75), **settings)
    work.model = Summarising(turns)
    work.engine.set_model(work.model)


def compressed(events: list[Event]) -> int:
    return sum(isinstance(event, ContextSizeEvent) and event.compressed for event in events)


def plans(messages: Any) -> list[str]:
    return [one.text for one in messages if one.role == "assistant" and "[HARNESS: plan]" in one.text]


def test_an_approved_plan_is_before_the_model_in_every_turn_until_it_is_closed(work: Workplace) -> None:
    script(work, BEGIN, PLAN, *reads(20), WRITE, *reads(20, 30), "[HARNESS: done]", "a", "b")
    work.say("Change it")
    seen = len(work.model.requests)
    assert compressed(work.say("go ahead")) > 3
    assert [plans(request.transcript) for request in work.model.requests[seen:]] == [[PLAN]] * (
        len(work.model.requests) - seen
    )
    assert work.phase().phase is Phase.CLOSING


def test_beside_calls_over_new_prompts_and_in_another_engine_it_stays_too(work: Workplace) -> None:
    beside = says(PLAN, call("todo", todos="- [ ] set a to 2"))
    script(work, BEGIN, beside, *reads(20), "Waiting.", *["Yes?"] * 9)
    work.say("Change it")
    for _ in range(9):
        work.say("Why is that?")
    script(work, *reads(20, 50), WRITE, "Waiting.")
    work.say("go ahead")
    assert plans(work.model.requests[-1].transcript) == [PLAN]
    assert work.file("app.conf").read_text() == "a=2\n"


def test_a_person_sees_the_plan_on_the_card_however_long_ago_it_was_put(work: Workplace) -> None:
    hitl: dict[str, Any] = {"tools": (*TOOLS, "hitl"), "hitl_enabled": True}
    script(work, BEGIN, PLAN, *reads(20), WRITE, **hitl)
    work.say("Change it")
    assert compressed(work.say("Hm, look at all of it again")) > 1
    (task,) = work.engine.get_session("s1").pending_tasks()
    assert task.comment.endswith(f"\nThe plan:\n{PLAN}")


def test_another_plan_takes_its_place_and_a_task_that_is_over_lets_it_go(work: Workplace) -> None:
    other = "Set b to 2 instead.\n\n[HARNESS: plan]"
    script(work, BEGIN, PLAN, other, *reads(20), "[HARNESS: casual]\nDropped.", *reads(20, 40), "Hello.")
    work.say("Change it")
    work.say("Rather another value")
    work.say("Hm, look at it again")
    assert plans(work.model.requests[-1].transcript) == [other]
    assert work.phase().phase is Phase.NO_TASK
    work.say("Hello")
    assert plans(work.model.requests[-1].transcript) == []
