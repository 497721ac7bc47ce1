"""The least an agent loop can cost: a list, a dict of functions, json, and one HTTP client. Nothing else."""

import json
import time
from collections.abc import Awaitable, Callable
from typing import Any

JsonObject = dict[str, Any]


async def add(a: int, b: int) -> str:
    return str(a + b)


TOOLS: dict[str, Callable[..., Awaitable[str]]] = {"add": add}


async def run(reply: Callable[[list[JsonObject]], Awaitable[JsonObject]]) -> list[JsonObject]:
    messages: list[JsonObject] = [{"role": "user", "content": "go"}]
    while True:
        message = await reply(messages)
        messages.append(message)
        if not message.get("tool_calls"):
            return messages
        for call in message["tool_calls"]:
            function = call["function"]
            text = await TOOLS[function["name"]](**json.loads(function["arguments"]))
            messages.append({"role": "tool", "tool_call_id": call["id"], "content": text})


def instant(calls: int) -> Callable[[list[JsonObject]], Awaitable[JsonObject]]:
    """A model that answers at once: `calls` calls, one a turn, then words."""

    async def reply(messages: list[JsonObject]) -> JsonObject:
        made = len(messages) // 2
        if made == calls:
            return {"role": "assistant", "content": "done"}
        function = {"name": "add", "arguments": json.dumps({"a": 1, "b": made})}
        return {
            "role": "assistant", "content": None,
            "tool_calls": [{"id": f"call_{made}", "type": "function", "function": function}],
        }  # fmt: skip

    return reply


def over_http(session: Any, url: str) -> Callable[[list[JsonObject]], Awaitable[JsonObject]]:
    """A model behind a streaming chat-completions server, asked by a bare aiohttp session."""

    async def reply(messages: list[JsonObject]) -> JsonObject:
        body = json.dumps({"model": "m", "stream": True, "messages": messages}).encode()
        text, calls = "", {}
        async with session.post(url + "/chat/completions", data=body) as response:
            async for line in response.content:
                if not line.startswith(b"data: ") or line.startswith(b"data: [DONE]"):
                    continue
                for choice in json.loads(line[6:])["choices"]:
                    text += choice["delta"].get("content") or ""
                    for piece in choice["delta"].get("tool_calls") or ():
                        call = calls.setdefault(piece["index"], {"id": "", "name": "", "arguments": ""})
                        call["id"] = piece.get("id") or call["id"]
                        call["name"] = piece["function"].get("name") or call["name"]
                        call["arguments"] += piece["function"].get("arguments") or ""
        made = [
            {"id": c["id"], "type": "function", "function": {"name": c["name"], "arguments": c["arguments"]}}
            for c in calls.values()
        ]
        return {"role": "assistant", "content": text, "tool_calls": made}

    return reply


async def cost(reply: Callable[[list[JsonObject]], Awaitable[JsonObject]], calls: int) -> float:
    """CPU milliseconds a step of the bare loop."""
    began = time.process_time()
    messages = await run(reply)
    assert len(messages) == 2 * calls + 2
    return (time.process_time() - began) / calls * 1000
