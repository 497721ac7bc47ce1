"""What the Messages API sends, and what it is sent."""

from typing import Any

import pytest

from jackstay.core.messages import (
    Image,
    Message,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    Usage,
    assistant,
    note,
    observation,
    user,
)
from jackstay.core.wire import decode_json
from jackstay.models.anthropic import AnthropicModel
from jackstay.models.endpoint import Endpoint
from tests.loopback import Loopback
from tests.models.asking import TOOLS, Heard, ask_once, fail_once, open_at, request
from tests.shapes import check_anthropic

START = {
    "type": "message_start",
    "message": {
        "model": "claude-sonnet-4-5",
        "content": [],
        "usage": {
            "input_tokens": 11,
            "cache_read_input_tokens": 200,
            "cache_creation_input_tokens": 30,
            "output_tokens": 1,
            "service_tier": "standard",
        },
    },
}
STOP = {"type": "message_stop"}


def begin(index: int, **block: Any) -> dict[str, Any]:
    return {"type": "content_block_start", "index": index, "content_block": block}


def piece(index: int, kind: str, **delta: Any) -> dict[str, Any]:
    return {"type": "content_block_delta", "index": index, "delta": {"type": kind, **delta}}


def end(reason: str | None = "end_turn", **usage: int) -> dict[str, Any]:
    return {"type": "message_delta", "delta": {"stop_reason": reason}, "usage": usage}


def heard(*events: Any) -> Heard:
    with Loopback([{"events": list(events)}]) as server:
        return ask_once(open_at(server, "anthropic"))


def test_a_whole_stream_with_everything_in_it():
    got = heard(
        START,
        {"type": "ping"},
        begin(0, type="thinking", thinking="", signature=""),
        piece(0, "thinking_delta", thinking="Let me "),
        piece(0, "thinking_delta", thinking="look."),
        piece(0, "signature_delta", signature="c2ln"),
        piece(0, "signature_delta", signature="bmVk"),
        {"type": "content_block_stop", "index": 0},
        begin(1, type="redacted_thinking", data="b3BhcXVl=="),
        begin(2, type="text", text="I "),
        piece(2, "text_delta", text="look."),
        begin(3, type="server_tool_use", id="s", name="web_search", input={}),
        piece(3, "input_json_delta", partial_json='{"q":1}'),
        {"type": "a_kind_from_the_future", "index": 9},
        piece(2, "citations_delta", citation={}),
        begin(4, type="tool_use", id="toolu_1", name="ls", input={}),
        piece(4, "input_json_delta", partial_json=""),
        piece(4, "input_json_delta", partial_json='{"path"'),
        piece(4, "input_json_delta", partial_json=': "a"}'),
        begin(5, type="tool_use", id="toolu_2", name="ls", input={}),
        end("tool_use", output_tokens=42),
        STOP,
    )
    assert got.parts == (
        Thinking("Let me look.", signature="c2lnbmVk", source="anthropic"),
        Thinking("", redacted="b3BhcXVl==", source="anthropic"),
        Text("I look."),
        ToolCall("toolu_1", "ls", {"path": "a"}),
        ToolCall("toolu_2", "ls", {}),
    )
    assert got.told == [("Let me ", True), ("look.", True), ("I ", False), ("look.", False)]
    assert got.reply.usage == Usage(241, 42, cache_read_tokens=200, cache_write_tokens=30)
    assert (got.reply.stop, got.reply.model) == ("calls", "claude-sonnet-4-5")


@pytest.mark.parametrize(
    ("reason", "stop"),
    [
        ("end_turn", "end"),
        ("stop_sequence", "end"),
        ("max_tokens", "length"),
        ("model_context_window_exceeded", "length"),
        ("refusal", "refused"),
        ("pause_turn", "other"),
        ("something_new", "other"),
    ],
)
def test_how_an_answer_can_end(reason, stop):
    assert heard(START, begin(0, type="text", text="x"), end(reason), STOP).reply.stop == stop


def test_a_refusal_without_a_word_is_a_failure_that_is_not_tried_again():
    with Loopback([{"events": [START, end("refusal"), STOP]}]) as server:
        info = fail_once(open_at(server, "anthropic"))
    assert (info.kind, info.retryable, "refused to answer (refusal)" in info.message) == (
        "bad_request",
        False,
        True,
    )


def test_a_stream_that_gave_its_reason_is_whole_without_its_last_event():
    assert heard(START, begin(0, type="text", text="x"), end()).said() == "x"


def test_an_input_given_whole_at_the_start_of_its_block_is_read():
    got = heard(START, begin(0, type="tool_use", id="t", name="ls", input={"path": "a"}), end("tool_use"), STOP)
    assert got.parts == (ToolCall("t", "ls", {"path": "a"}),)


def test_only_the_call_that_was_being_written_is_cut():
    calls = heard(
        START,
        begin(0, type="tool_use", id="a", name="ls", input={}),
        begin(1, type="tool_use", id="b", name="ls", input={}),
        piece(1, "input_json_delta", partial_json="{}"),
        piece(0, "input_json_delta", partial_json="{}"),
        end("max_tokens"),
        STOP,
    ).reply.message.calls
    assert [call.problem is None for call in calls] == [False, True]


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("overloaded_error", "server"),
        ("api_error", "server"),
        ("rate_limit_error", "rate_limit"),
        ("authentication_error", "auth"),
        ("permission_error", "auth"),
        ("not_found_error", "not_found"),
        ("invalid_request_error", "bad_request"),
        ("request_too_large", "overflow"),
        ("timeout_error", "timeout"),
    ],
)
def test_error_events_are_typed(kind, expected):
    error = {"type": "error", "error": {"type": kind, "message": "Something"}}
    with Loopback([{"events": [START, begin(0, type="text", text="x"), error]}]) as server:
        assert fail_once(open_at(server, "anthropic")).kind == expected


# -- what is sent ------------------------------------------------------------------------------------------


def sent(*messages: Message, model: str = "claude-sonnet-4-5", **more: Any) -> Any:
    body = decode_json(
        AnthropicModel(Endpoint(model, "https://models.example"))._body(request(*messages, **more))
    )
    check_anthropic(body)
    return body


CACHE = {"cache_control": {"type": "ephemeral"}}


def text(words: str) -> dict[str, str]:
    return {"type": "text", "text": words}


def test_the_whole_request():
    thought = Message(
        "assistant",
        (
            Thinking("hm", signature="s", source="anthropic"),
            Thinking("", redacted="r", source="anthropic"),
            Thinking("foreign", source="reasoning_content"),
            Text("look"),
            ToolCall("c1", "ls", {"path": "a"}),
            ToolCall("c2", "ls", {}, "cut", '{"pa'),
        ),
    )
    body = sent(
        user("go"),
        thought,
        observation(ToolResult("c1", "x.py")),
        observation(ToolResult("c2", "no", is_error=True)),
        user("and then?"),
        notes=(note("phase", "You are in research."),),
    )
    lists = [{"name": t.name, "description": t.description, "input_schema": t.parameters} for t in TOOLS]
    assert body == {
        "model": "claude-sonnet-4-5",
        "stream": True,
        "max_tokens": 32_000,
        "system": [{**text("You are a test."), **CACHE}],
        "tools": [lists[0], {**lists[1], **CACHE}],
        "messages": [
            {"role": "user", "content": [text("go")]},
            {"role": "assistant", "content": [
                {"type": "thinking", "thinking": "hm", "signature": "s"},
                {"type": "redacted_thinking", "data": "r"},
                text("look"),
                {"type": "tool_use", "id": "c1", "name": "ls", "input": {"path": "a"}},
                {"type": "tool_use", "id": "c2", "name": "ls", "input": {"unreadable_arguments": '{"pa'}},
            ]},
            {"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": "c1", "content": "x.py"},
                {"type": "tool_result", "tool_use_id": "c2", "content": "no", "is_error": True},
                {**text("and then?"), **CACHE},
                text("You are in research."),
            ]},
        ],
    }  # fmt: skip


def test_the_first_message_is_a_users_and_blank_text_is_left_out():
    body = sent(
        assistant("Earlier we agreed."),
        assistant(" \n"),
        user("  "),
        assistant("", ToolCall("c1", "ls", {})),
        observation(ToolResult("c1", "\n")),
    )
    assert body["messages"] == [
        {"role": "user", "content": [text("(the conversation goes on)")]},
        {"role": "assistant", "content": [
            text("Earlier we agreed."), {"type": "tool_use", "id": "c1", "name": "ls", "input": {}},
        ]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1", **CACHE}]},
    ]  # fmt: skip


def test_text_behind_a_call_moves_before_it_because_the_api_refuses_it():
    message = Message("assistant", (Text("a"), ToolCall("c1", "ls", {}), Text("b"), ToolCall("c2", "ls", {})))
    results = (observation(ToolResult("c1", "1")), observation(ToolResult("c2", "2")))
    blocks = sent(user("go"), message, *results)["messages"][1]["content"]
    assert [block.get("text") or block["id"] for block in blocks] == ["a", "b", "c1", "c2"]


def test_a_message_of_thinking_alone_is_left_out():
    thinking = Message("assistant", (Thinking("hm", signature="s", source="anthropic"),))
    assert sent(user("go"), thinking, user("well?"))["messages"] == [
        {"role": "user", "content": [text("go"), {**text("well?"), **CACHE}]}
    ]


def test_pictures_are_sent_as_base64_blocks():
    body = sent(Message("user", (Image("image/jpeg", "aGk="), Text("what is this?"))))
    assert body["messages"][0]["content"][0] == {
        "type": "image",
        "source": {"type": "base64", "media_type": "image/jpeg", "data": "aGk="},
    }


def test_the_output_limit_is_the_requests_or_the_familys_or_a_safe_one():
    assert sent(max_output_tokens=77)["max_tokens"] == 77
    assert sent(model="claude-3-haiku-20240307")["max_tokens"] == 4_096
    assert sent(model="house-model")["max_tokens"] == 8_192


def test_headers_and_path_with_and_without_v1():
    with Loopback([{"say": "x"}], cycle=True) as server:
        for base in (server.url, server.url + "/", server.url + "/v1", server.url + "/v1/"):
            assert ask_once(AnthropicModel(Endpoint("m", base, key="k-123456"))).said() == "x"
        assert {seen.path for seen in server.requests} == {"/v1/messages"}
        headers = server.requests[0].headers
    assert (headers["x-api-key"], headers["anthropic-version"]) == ("k-123456", "2023-06-01")
