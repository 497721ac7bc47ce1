"""What OpenAI-compatible servers really send, and what they are sent."""

from typing import Any

import pytest

from jackstay.core.messages import (
    Image,
    Message,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    UnknownPart,
    Usage,
    assistant,
    note,
    observation,
    user,
)
from jackstay.core.wire import decode_json
from jackstay.models.endpoint import Endpoint
from jackstay.models.openai import OpenAIModel
from tests.loopback import Loopback
from tests.models.asking import TOOLS, Heard, ask, ask_once, fail_once, open_at, request
from tests.shapes import check_openai


def chunk(delta: dict[str, Any] | None = None, stop: str | None = None, **more: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": delta or {}, "finish_reason": stop}], **more}


def fragment(
    args: Any = None,
    *,
    index: int | None = None,
    call_id: str | None = None,
    name: str | None = None,
    **more: Any,
) -> dict[str, Any]:
    """A delta with one piece of a call, without the fields that are None."""
    function = {key: value for key, value in (("name", name), ("arguments", args)) if value is not None}
    outside = {key: value for key, value in (("index", index), ("id", call_id)) if value is not None}
    return chunk({"tool_calls": [{**outside, "function": function, **more}]})


def heard(*events: Any, done: bool = True) -> Heard:
    with Loopback([{"events": [*events, "[DONE]"] if done else list(events)}]) as server:
        return ask_once(open_at(server, "openai"))


A, B = {"path": "a"}, {"path": "b"}
CALLS = {
    "whole calls without index": [
        fragment('{"path":"a"}', call_id="1", name="ls"),
        fragment('{"path":"b"}', call_id="2", name="ls"),
    ],
    "whole calls with neither index nor id": [
        fragment('{"path":"a"}', name="ls"),
        fragment('{"path":"b"}', name="ls"),
    ],
    "fragments without index, told by id": [
        fragment("", call_id="1", name="ls"),
        fragment('{"path":'),
        fragment('"a"}'),
        fragment("", call_id="2", name="ls"),
        fragment('{"path":"b"}'),
    ],
    "every call at index 0, told by id": [
        fragment('{"path":"a"}', index=0, call_id="1", name="ls"),
        fragment('{"path":"b"}', index=0, call_id="2", name="ls"),
    ],
    "every call at index 0 without id": [
        fragment('{"path":"a"}', index=0, name="ls"),
        fragment('{"path":"b"}', index=0, name="ls"),
    ],
    "id and name repeated in every fragment": [
        fragment('{"path":', index=0, call_id="1", name="ls"),
        fragment('"a"}', index=0, call_id="1", name="ls"),
        fragment('{"path":', index=1, call_id="2", name="ls"),
        fragment('"b"}', index=1, call_id="2", name="ls"),
        fragment("", index=1, call_id="2", name="ls"),
    ],
    "interleaved fragments": [
        fragment("", index=0, call_id="1", name="ls"),
        fragment("", index=1, call_id="2", name="ls"),
        fragment('{"path":', index=0),
        fragment('{"path":', index=1),
        fragment('"a"}', index=0),
        fragment('"b"}', index=1),
    ],
    "both in one chunk, numbered from 1": [
        chunk({
            "tool_calls": [
                {"index": n, "id": str(n), "function": {"name": "ls", "arguments": f'{{"path":"{path}"}}'}}
                for n, path in ((1, "a"), (2, "b"))
            ]
        })
    ],
    "arguments as an object": [
        fragment({"path": "a"}, index=0, call_id="1", name="ls"),
        fragment({"path": "b"}, index=1, call_id="2", name="ls"),
    ],
    "arguments as a list of pieces": [
        fragment(['{"path"', ':"a"}'], index=0, call_id="1", name="ls"),
        fragment(['{"path":"b"}'], index=1, call_id="2", name="ls"),
    ],
    "a message instead of deltas": [
        {"choices": [{"message": {"role": "assistant", "content": None, "tool_calls": [
            {"id": "1", "function": {"name": "ls", "arguments": '{"path":"a"}'}},
            {"id": "2", "function": {"name": "ls", "arguments": '{"path":"b"}'}},
        ]}, "finish_reason": "tool_calls"}]}
    ],
    "the name in two pieces": [
        fragment(index=0, call_id="1", name="l"),
        fragment("", index=0, name="s"),
        fragment('{"path":"a"}', index=0),
        fragment('{"path":"b"}', index=1, call_id="2", name="ls"),
    ],
}  # fmt: skip


@pytest.mark.parametrize("events", CALLS.values(), ids=CALLS.keys())
def test_calls_in_every_form_that_servers_give_them(events):
    calls = heard(*events, chunk(stop="tool_calls")).reply.message.calls
    assert [(call.tool, call.args, call.problem) for call in calls] == [("ls", A, None), ("ls", B, None)]
    assert [call.call_id for call in calls] in (["1", "2"], ["", ""])


def test_the_old_function_call_form_is_read():
    reply = heard(
        chunk({"function_call": {"name": "ls", "arguments": ""}}),
        chunk({"function_call": {"arguments": '{"path":"a"}'}}),
        chunk(stop="function_call"),
    ).reply
    assert (reply.message.parts, reply.stop) == ((ToolCall("", "ls", A),), "calls")


def test_a_call_without_a_name_is_a_problem():
    (call,) = heard(fragment("{}", index=0, call_id="1"), chunk(stop="tool_calls")).reply.message.calls
    assert (call.tool, call.args, call.problem, call.raw) == ("", {}, "the call names no tool", "{}")


@pytest.mark.parametrize("args", [["a", 1], 7, True])
def test_arguments_that_are_no_object_are_a_problem(args):
    (call,) = heard(fragment(args, index=0, name="ls"), chunk(stop="stop")).reply.message.calls
    assert call.args == {}
    assert call.problem is not None
    assert "must be a JSON object" in call.problem


@pytest.mark.parametrize(
    ("reason", "with_text", "with_call"),
    [
        ("stop", "end", "calls"),
        ("tool_calls", "end", "calls"),
        ("function_call", "end", "calls"),
        ("length", "length", "length"),
        ("max_tokens", "length", "length"),
        ("MAX_TOKENS", "length", "length"),
        ("content_filter", "refused", "refused"),
        ("SAFETY", "refused", "refused"),
        ("eos", "end", "calls"),
        ("never seen before", "other", "calls"),
        (None, "other", "calls"),
    ],
)
def test_how_an_answer_can_end(reason, with_text, with_call):
    assert heard(chunk({"content": "x"}), chunk(stop=reason)).reply.stop == with_text
    assert heard(fragment("{}", index=0, call_id="1", name="ls"), chunk(stop=reason)).reply.stop == with_call


def test_only_the_call_that_was_being_written_is_cut():
    calls = heard(
        fragment('{"path":"a"}', index=0, call_id="1", name="ls"),
        fragment('{"path":"b"}', index=1, call_id="2", name="ls"),
        chunk(stop="length"),
    ).reply.message.calls
    assert [call.problem is None for call in calls] == [True, False]
    interleaved = heard(
        fragment('{"path":', index=0, call_id="1", name="ls"),
        fragment('{"path":"b"}', index=1, call_id="2", name="ls"),
        fragment('"a"}', index=0),
        chunk(stop="length"),
    ).reply.message.calls
    assert [call.problem is None for call in interleaved] == [False, True]
    text_last = heard(
        fragment('{"path":"a"}', index=0, call_id="1", name="ls"),
        chunk({"content": "and"}),
        chunk(stop="length"),
    ).reply.message.calls
    assert text_last[0].problem is None


def test_a_server_that_gives_up_in_the_middle_is_a_failure():
    with Loopback([{"events": [chunk({"content": "x"}), chunk(stop="error"), "[DONE]"]}]) as server:
        info = fail_once(open_at(server, "openai"))
    assert (info.kind, "gave up" in info.message) == ("server", True)


def test_a_stream_without_done_is_whole_when_it_gave_a_reason_and_broken_when_not():
    assert heard(chunk({"content": "x"}), chunk(stop="stop"), done=False).said() == "x"
    with Loopback([{"events": [chunk({"content": "x"})]}]) as server:
        assert fail_once(open_at(server, "openai")).kind == "broken_reply"


def test_the_last_event_may_lack_its_line_end():
    raw = 'data: {"choices":[{"delta":{"content":"x"},"finish_reason":"stop"}]}'
    with Loopback([{"raw": raw}, {"raw": raw + "\r\n\r\ndata: [DONE]"}]) as server:
        assert [
            h.said() for h in ask(open_at(server, "openai"), request(), request()) if isinstance(h, Heard)
        ] == [
            "x",
            "x",
        ]


@pytest.mark.parametrize("field", ["reasoning_content", "reasoning", "thinking"])
def test_thinking_in_any_field_is_kept_with_the_name_of_its_field(field):
    got = heard(chunk({field: "hm, "}), chunk({field: "so"}), chunk({"content": "x"}), chunk(stop="stop"))
    assert got.parts == (Thinking("hm, so", source=field), Text("x"))
    assert got.told == [("hm, ", True), ("so", True), ("x", False)]


def test_a_piece_of_thinking_sent_in_two_fields_counts_once():
    got = heard(chunk({"reasoning": "hm", "reasoning_content": "hm", "content": "x"}), chunk(stop="stop"))
    assert got.parts == (Thinking("hm", source="reasoning_content"), Text("x"))


def test_content_in_parts_is_read_and_think_tags_are_left_alone():
    got = heard(
        chunk({"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}]}),
        chunk({"content": [{"type": "text", "text": "x"}]}),
        chunk({"content": "<think>no</think>"}),
        chunk(stop="stop"),
    )
    assert got.parts == (Thinking("hm", source="thinking"), Text("x<think>no</think>"))


def test_thinking_alone_is_an_answer():
    assert heard(chunk({"reasoning_content": "hm"}), chunk(stop="stop")).parts == (
        Thinking("hm", source="reasoning_content"),
    )


def test_a_refusal_is_text_and_says_so_and_one_without_a_word_is_a_failure():
    got = heard(chunk({"refusal": "I can"}), chunk({"refusal": "not."}), chunk(stop="stop"))
    assert (got.said(), got.reply.stop) == ("I cannot.", "refused")
    with Loopback([{"events": [chunk(stop="content_filter"), "[DONE]"]}]) as server:
        info = fail_once(open_at(server, "openai"))
    assert (info.kind, info.retryable) == ("bad_request", False)
    assert "refused to answer (content_filter)" in info.message


@pytest.mark.parametrize(
    ("events", "usage"),
    [
        ([{"choices": [], "usage": {"prompt_tokens": 9, "completion_tokens": 2}}], Usage(9, 2)),
        ([{"choices": [], "usage": {"prompt_tokens": 9, "completion_tokens": 2,
                                    "prompt_tokens_details": {"cached_tokens": 4}}}], Usage(9, 2, 4)),
        ([{"choices": [], "usage": {"prompt_tokens": 9, "prompt_cache_hit_tokens": 3}}], Usage(9, 0, 3)),
        ([{"choices": [], "usage": {"prompt_tokens": 9, "completion_tokens": 2, "cost": 0.25}}],
         Usage(9, 2, cost=0.25)),
        ([{"choices": [{"delta": {}, "finish_reason": "stop", "usage": {"prompt_tokens": 9}}]}], Usage(9)),
        ([{"choices": [], "usage": None}, {"choices": []}, {}], Usage()),
        ([{"choices": [], "usage": {"prompt_tokens": "many", "prompt_tokens_details": []}}], Usage()),
        ([{"choices": None, "usage": {"prompt_tokens": 9, "completion_tokens": 2}}], Usage(9, 2)),
    ],
)  # fmt: skip
def test_usage_wherever_a_server_puts_it(events, usage):
    assert heard(chunk({"content": "x"}), chunk(stop="stop"), *events).reply.usage == usage


def test_a_server_that_refuses_an_optional_field_is_asked_without_it_from_then_on():
    answers = [
        {"status": 400, "error": "Unrecognized request argument supplied: stream_options"},
        {"status": 400, "error": "'max_tokens' is not supported, use 'max_completion_tokens' instead."},
        {"say": "one"},
        {"say": "two"},
    ]
    with Loopback(answers) as server:
        one, two = ask(open_at(server, "openai"), *[request(max_output_tokens=50)] * 2)
        assert isinstance(one, Heard)
        assert isinstance(two, Heard)
        assert (one.said(), two.said()) == ("one", "two")
        asked = [
            {"stream_options", "max_tokens", "max_completion_tokens"} & body.keys() for body in server.bodies
        ]
    assert asked == [
        {"stream_options", "max_tokens"},
        {"max_tokens"},
        {"max_completion_tokens"},
        {"max_completion_tokens"},
    ]


def test_a_server_that_refuses_it_again_is_not_asked_for_ever():
    refusal = {"status": 400, "error": "stream_options max_tokens max_completion_tokens are all wrong"}
    with Loopback([refusal], cycle=True) as server:
        assert fail_once(open_at(server, "openai")).kind == "bad_request"
        assert len(server.requests) == 3


# -- what is sent ------------------------------------------------------------------------------------------


def sent(*messages: Message, model: str = "test-model", host: str = "models.example", **more: Any) -> Any:
    """The body of a request to a server of that name."""
    body = decode_json(OpenAIModel(Endpoint(model, f"https://{host}/v1"))._body(request(*messages, **more)))
    check_openai(body)
    return body


def test_the_whole_request():
    body = sent(
        user("go"),
        assistant("look", ToolCall("c1", "ls", {"path": "a"}), ToolCall("c2", "ls", {})),
        observation(ToolResult("c1", "x.py")),
        observation(ToolResult("c2", "", is_error=True)),
        notes=(note("phase", "You are in research."),),
        max_output_tokens=99,
    )
    call = {"type": "function", "function": {"name": "ls", "arguments": "{}"}}
    assert body == {
        "model": "test-model",
        "stream": True,
        "stream_options": {"include_usage": True},
        "max_tokens": 99,
        "messages": [
            {"role": "system", "content": "You are a test."},
            {"role": "user", "content": "go"},
            {"role": "assistant", "content": "look", "tool_calls": [
                {"id": "c1", **call, "function": {"name": "ls", "arguments": '{"path":"a"}'}},
                {"id": "c2", **call},
            ]},
            {"role": "tool", "tool_call_id": "c1", "content": "x.py"},
            {"role": "tool", "tool_call_id": "c2", "content": ""},
            {"role": "user", "content": "You are in research."},
        ],
        "tools": [
            {"type": "function", "function": {"name": tool.name, "description": tool.description,
                                              "parameters": tool.parameters}}
            for tool in TOOLS
        ],
    }  # fmt: skip


def test_pictures_are_sent_as_data_urls():
    body = sent(Message("user", (Text("what is this?"), Image("image/png", "aGk="))))
    assert body["messages"][1]["content"] == [
        {"type": "text", "text": "what is this?"},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,aGk="}},
    ]


def test_unreadable_arguments_go_back_in_readable_form():
    calls = (
        ToolCall("c1", "ls", {}, "not JSON", '{"path": "a'),
        ToolCall("c2", "ls", {}, "cut", '{"path": "a"}'),
        ToolCall("c3", "bad name!", {}, "no such tool"),
        ToolCall("c4", "", {}, "no name", "{}"),
    )
    body = sent(user("go"), assistant("", *calls), *(observation(ToolResult(c.call_id, "no")) for c in calls))
    functions = [call["function"] for call in body["messages"][2]["tool_calls"]]
    assert functions == [
        {"name": "ls", "arguments": '{"unreadable_arguments":"{\\"path\\": \\"a"}'},
        {"name": "ls", "arguments": '{"path":"a"}'},
        {"name": "bad_name_", "arguments": "{}"},
        {"name": "unnamed", "arguments": "{}"},
    ]


def test_messages_that_say_nothing_here_are_left_out():
    body = sent(
        user("go"),
        Message("assistant", (Thinking("hm", source="anthropic", signature="s"),)),
        Message("assistant", (UnknownPart({"type": "hologram"}),)),
        Message("user", ()),
        user("still there?"),
    )
    assert [message["content"] for message in body["messages"]] == ["You are a test.", "go", "still there?"]


THOUGHT = Message(
    "assistant",
    (
        Thinking("hm", source="reasoning_content"),
        ToolCall("c1", "ls", {}, extra={"extra_content": {"sig": "x"}}),
    ),
)


@pytest.mark.parametrize(
    ("host", "model", "thinking", "extra"),
    [
        ("api.deepseek.com", "deepseek-reasoner", True, True),
        ("api.moonshot.ai", "kimi-k2-thinking", True, True),
        ("localhost", "DeepSeek-V3.2", True, True),
        ("localhost", "qwen3:8b", False, True),
        ("generativelanguage.googleapis.com", "gemini-3-pro", False, True),
        ("api.openai.com", "gpt-5", False, False),
    ],
)
def test_thinking_and_signatures_go_back_only_where_they_are_wanted(host, model, thinking, extra):
    body = sent(user("go"), THOUGHT, observation(ToolResult("c1", "ok")), host=host, model=model)
    message = body["messages"][2]
    assert message.get("reasoning_content") == ("hm" if thinking else None)
    assert message["tool_calls"][0].get("extra_content") == ({"sig": "x"} if extra else None)


def test_signatures_beside_a_call_are_kept_for_the_way_back():
    extra = {"extra_content": {"google": {"thought_signature": "c2ln"}}}
    (call,) = heard(
        fragment("{}", index=0, call_id="1", name="ls", **extra), chunk(stop="stop")
    ).reply.message.calls
    assert call == ToolCall("1", "ls", {}, extra=extra)


def test_reasoning_details_come_in_pieces_and_go_back_as_one():
    detail = {"type": "reasoning.text", "index": 0}
    reply = heard(
        chunk({"reasoning": "a", "reasoning_details": [{**detail, "text": "a"}]}),
        chunk({"reasoning": "b", "reasoning_details": [{**detail, "text": "b", "signature": None}]}),
        chunk({"reasoning_details": [{**detail, "text": "", "signature": "s"}]}),
        chunk({"reasoning_details": [{"type": "reasoning.encrypted", "index": 1, "data": "zz"}]}),
        fragment("{}", index=0, call_id="c1", name="ls"),
        chunk(stop="tool_calls"),
    ).reply
    body = sent(user("go"), reply.message, observation(ToolResult("c1", "ok")), host="openrouter.ai")
    assert body["messages"][2]["reasoning_details"] == [
        {**detail, "text": "ab", "signature": "s"},
        {"type": "reasoning.encrypted", "index": 1, "data": "zz"},
    ]


def test_output_limit_by_its_newer_name_and_fields_of_the_user():
    assert sent(host="api.openai.com", max_output_tokens=5)["max_completion_tokens"] == 5
    with Loopback([{"say": "x"}]) as server:
        ask_once(open_at(server, "openai", body={"temperature": 0, "reasoning_effort": "low"}))
        assert {key: server.bodies[0][key] for key in ("temperature", "reasoning_effort")} == {
            "temperature": 0,
            "reasoning_effort": "low",
        }


def test_stray_half_characters_of_a_tool_do_not_make_a_session_unsendable():
    body = sent(user("go"), assistant("", ToolCall("c1", "ls", {})), observation(ToolResult("c1", "a\udcffb")))
    assert body["messages"][-1]["content"] == "a\ufffdb"
