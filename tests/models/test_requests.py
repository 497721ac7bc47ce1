"""Requests are valid whatever the history, and history is encoded once."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jackstay.core.messages import (
    Message,
    Part,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    assistant,
    observation,
    user,
)
from jackstay.core.tools import ToolSpec
from jackstay.core.transcript import Transcript
from jackstay.core.wire import decode_json
from jackstay.engine.ports import ModelRequest
from jackstay.models.anthropic import AnthropicModel
from jackstay.models.endpoint import Endpoint, ToolLists
from jackstay.models.openai import OpenAIModel
from jackstay.models.order import NO_RESULT, in_order
from tests.models.asking import TOOLS
from tests.shapes import check_anthropic, check_openai

OPENAI = OpenAIModel(Endpoint("kimi-k2", "http://127.0.0.1:1/v1"))
ANTHROPIC = AnthropicModel(Endpoint("m", "http://127.0.0.1:1"))
CHECKS = ((OPENAI, check_openai), (ANTHROPIC, check_anthropic))

WORDS = st.one_of(st.sampled_from(["", " ", "\n", "go"]), st.text(max_size=6))
IDS = st.integers(0, 12).map("c{}".format)
THOUGHTS = st.builds(
    Thinking,
    WORDS,
    st.sampled_from([None, "sig"]),
    st.none(),
    st.sampled_from(["anthropic", "reasoning_content", None]),
)
CALLS = st.builds(
    ToolCall, IDS, st.text(max_size=8), st.just({"a": 1}), st.sampled_from([None, "broken"]), WORDS
)
RESULTS = st.builds(ToolResult, IDS, WORDS, st.booleans())


def unique_ids(parts: list[Part]) -> tuple[Part, ...]:
    kept: dict[Any, Part] = {}
    for number, part in enumerate(parts):
        kept.setdefault(part.call_id if isinstance(part, ToolCall) else number, part)
    return tuple(kept.values())


MESSAGES = st.one_of(
    st.builds(Message, st.just("user"), st.lists(st.builds(Text, WORDS), max_size=2).map(tuple)),
    st.builds(
        Message,
        st.just("assistant"),
        st.lists(st.one_of(st.builds(Text, WORDS), THOUGHTS, CALLS), max_size=4).map(unique_ids),
    ),
    st.builds(Message, st.just("tool"), st.lists(RESULTS, min_size=1, max_size=2).map(tuple)),
)


@given(st.lists(MESSAGES, max_size=8), st.booleans())
def test_any_history_makes_a_request_that_both_providers_take(messages, has_note):
    notes = (user("note"),) if has_note else ()
    transcript = Transcript([*messages, user("last")])
    for model, check in CHECKS:
        check(decode_json(model._body(ModelRequest("sys", transcript, TOOLS, notes))))


@given(st.lists(st.lists(MESSAGES, max_size=3), max_size=5))
def test_a_history_that_grew_makes_the_same_request_as_one_made_at_once(steps):
    grown = Transcript()
    for messages in steps:
        grown = grown.append(*messages)
        for model, _ in CHECKS:
            at_once = model._body(ModelRequest("sys", Transcript(list(grown)), TOOLS))
            assert model._body(ModelRequest("sys", grown, TOOLS)) == at_once


def test_a_message_is_encoded_once():
    transcript = Transcript(
        [user("go"), assistant("", ToolCall("c1", "ls", {})), observation(ToolResult("c1", "x"))]
    )
    for model, _ in CHECKS:
        model._body(ModelRequest("sys", transcript))

    def again(*_: object) -> bytes:
        pytest.fail("encoded again")

    assert len(transcript.derived(OPENAI._derived, again)) == 3
    assert len(transcript.scanned("anthropic", again)) == 3
    assert len(transcript.scanned("order", again)) == 3


def test_a_tuple_of_tools_is_encoded_once():
    described: list[str] = []

    def describe(tool: ToolSpec) -> dict[str, Any]:
        described.append(tool.name)
        return {}

    lists = ToolLists(describe)
    assert [lists.encoded(TOOLS) for _ in range(3)] == [b"{},{}"] * 3
    assert described == ["ls", "write"]
    lists.encoded(tuple(list(TOOLS)))
    assert described == ["ls", "write"] * 2


def test_a_history_in_order_is_not_touched():
    transcript = Transcript(
        [user("go"), assistant("", ToolCall("c1", "ls", {})), observation(ToolResult("c1", "x"))]
    )
    assert in_order(transcript) is transcript


def test_results_follow_their_calls_and_missing_ones_are_said_to_be_missing():
    a, b, c = (ToolCall(f"c{n}", "ls", {}) for n in range(3))
    results = {call.call_id: observation(ToolResult(call.call_id, f"of {call.call_id}")) for call in (a, b, c)}
    orphan = observation(ToolResult("c9", "whose?"))
    transcript = Transcript(
        [user("go"), assistant("", a, b), user("wait"), results["c1"], orphan, results["c0"], assistant("", c)]
    )
    missing = observation(ToolResult("c2", NO_RESULT, is_error=True, executed=None))
    assert list(in_order(transcript)) == [
        user("go"),
        assistant("", a, b),
        results["c0"],
        results["c1"],
        user("wait"),
        assistant("", c),
        missing,
    ]
