"""Would the provider take this request? Strict checks of both APIs' bodies; they raise AssertionError."""

import json
import re
from typing import Any

_ID = re.compile(r"[A-Za-z0-9_-]{1,64}\Z")
_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}\Z")


def check_openai(body: Any) -> None:
    """A chat-completions request as OpenAI's strictest server takes it."""
    assert isinstance(body, dict)
    assert isinstance(body["model"], str)
    _check_tools([tool["function"] for tool in body.get("tools", ())], "parameters")
    assert all(tool["type"] == "function" for tool in body.get("tools", ()))
    assert "tools" not in body or body["tools"], "an empty tools list is refused"
    assert not ("max_tokens" in body and "max_completion_tokens" in body)
    messages = body["messages"]
    assert messages, "no messages"
    waiting: list[str] = []
    for position, message in enumerate(messages):
        where = f"messages[{position}]"
        role = message["role"]
        if role == "tool":
            assert waiting, f"{where} answers no call"
            assert message["tool_call_id"] == waiting.pop(0), f"{where} is out of call order"
            assert isinstance(message["content"], str), where
            continue
        assert not waiting, f"{where} stands before the results of {waiting}"
        match role:
            case "system":
                assert position == 0, f"{where}: system messages come first"
                assert isinstance(message["content"], str), where
                assert message["content"], f"{where} is empty"
            case "user":
                _openai_user(message["content"], where)
            case "assistant":
                waiting = _openai_assistant(message, where)
            case _:
                raise AssertionError(f"{where}: role {role!r}")
    assert not waiting, f"the last calls {waiting} have no results"
    assert messages[-1]["role"] in ("user", "tool"), "the last word is the model's own"


def _openai_user(content: Any, where: str) -> None:
    if isinstance(content, str):
        assert content, f"{where} is empty"
        return
    assert content, f"{where} is empty"
    for part in content:
        match part["type"]:
            case "text":
                assert part["text"], where
            case "image_url":
                assert re.match(r"data:image/[a-z]+;base64,[A-Za-z0-9+/=]+\Z", part["image_url"]["url"]), where
            case kind:
                raise AssertionError(f"{where}: part of type {kind!r}")


def _openai_assistant(message: dict[str, Any], where: str) -> list[str]:
    calls = message.get("tool_calls")
    assert calls is None or calls, f"{where}: an empty tool_calls list is refused"
    assert message["content"] is None or isinstance(message["content"], str), where
    assert calls or message["content"], f"{where} says nothing"
    ids: list[str] = []
    for call in calls or ():
        assert call["type"] == "function", where
        assert _ID.match(call["id"]), f"{where}: id {call['id']!r}"
        assert _NAME.match(call["function"]["name"]), f"{where}: name {call['function']['name']!r}"
        assert isinstance(call["function"]["arguments"], str), where
        assert isinstance(json.loads(call["function"]["arguments"]), dict), where
        ids.append(call["id"])
    assert len(set(ids)) == len(ids), f"{where}: an id occurs twice"
    return ids


def check_anthropic(body: Any) -> None:
    """A Messages request as the API takes it."""
    assert isinstance(body, dict)
    assert isinstance(body["model"], str)
    assert type(body["max_tokens"]) is int
    assert body["max_tokens"] > 0
    _check_tools(body.get("tools", ()), "input_schema")
    assert "tools" not in body or body["tools"], "an empty tools list is refused"
    assert json.dumps(body).count('"cache_control"') <= 4, "more than four cache breakpoints"
    for block in body.get("system", ()):
        assert block["type"] == "text"
        assert block["text"].strip()
    messages = body["messages"]
    assert messages, "no messages"
    waiting: list[str] = []
    for position, message in enumerate(messages):
        where = f"messages[{position}]"
        assert message["role"] == ("user", "assistant")[position % 2], f"{where}: roles must alternate"
        content = message["content"]
        assert content, f"{where} is empty"
        if message["role"] == "user":
            waiting = _anthropic_user(content, waiting, where)
        else:
            waiting = _anthropic_assistant(content, where)
    assert messages[-1]["role"] == "user", "the last word is the model's own"


def _anthropic_user(content: list[dict[str, Any]], waiting: list[str], where: str) -> list[str]:
    results = [block["tool_use_id"] for block in content if block["type"] == "tool_result"]
    assert results == waiting, f"{where} answers {results}, asked were {waiting}"
    for position, block in enumerate(content):
        match block["type"]:
            case "tool_result":
                assert position < len(results), f"{where}: results come first"
                assert "content" not in block or block["content"].strip(), where
            case "text":
                assert block["text"].strip(), f"{where}: blank text"
            case "image":
                assert block["source"]["type"] == "base64", where
                assert block["source"]["media_type"].startswith("image/"), where
            case kind:
                raise AssertionError(f"{where}: block of type {kind!r}")
    return []


def _anthropic_assistant(content: list[dict[str, Any]], where: str) -> list[str]:
    ids: list[str] = []
    for block in content:
        match block["type"]:
            case "tool_use":
                assert _ID.match(block["id"]), f"{where}: id {block['id']!r}"
                assert _NAME.match(block["name"]), f"{where}: name {block['name']!r}"
                assert isinstance(block["input"], dict), where
                ids.append(block["id"])
            case "text":
                assert block["text"].strip(), f"{where}: blank text"
                assert not ids, f"{where}: text behind a call"
            case "thinking":
                assert block["signature"], f"{where}: thinking without its signature"
            case "redacted_thinking":
                assert block["data"], where
            case kind:
                raise AssertionError(f"{where}: block of type {kind!r}")
    assert content[-1]["type"] not in ("thinking", "redacted_thinking"), f"{where} ends with thinking"
    assert len(set(ids)) == len(ids), f"{where}: an id occurs twice"
    return ids


def _check_tools(tools: Any, schema: str) -> None:
    names = [tool["name"] for tool in tools]
    assert len(set(names)) == len(names), "two tools of one name"
    for tool in tools:
        assert _NAME.match(tool["name"]), tool["name"]
        assert isinstance(tool["description"], str), tool["name"]
        assert tool[schema]["type"] == "object", tool["name"]
