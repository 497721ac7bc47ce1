"""What does a step cost over loopback HTTP with streaming, against a bare aiohttp loop in the same run?

python bench/models_http.py        CPU of this process in ms per step; the server is another process
"""

import asyncio
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from statistics import median

import aiohttp
import msgspec

from jackstay.core.messages import ToolCall, ToolResult, assistant, observation, user
from jackstay.core.tools import ToolSpec
from jackstay.core.transcript import Transcript
from jackstay.engine.ports import ModelRequest
from jackstay.models.endpoint import Endpoint
from jackstay.models.openai import OpenAIModel, _Ear
from jackstay.models.registry import open_model
from jackstay.models.sse import SseParser

ROOT = Path(__file__).resolve().parent.parent
ANSWER = {
    "say": "I look at the next file now.",
    "calls": [{"tool": "read", "args": {"file_path": "src/main.py"}}],
}
RESULT = "line of a file that was read\n" * 15
TOOLS = tuple(
    ToolSpec(name, f"The {name} tool.", {"type": "object", "properties": {"file_path": {"type": "string"}}})
    for name in ("read", "write", "edit", "ls", "grep", "glob", "bash", "todo")
)
SYSTEM = "You are a careful engineer.\n" * 40
ROUNDS = 5
Run = Callable[[int, int], Awaitable[None]]


def tell(_text: str, _thinking: bool) -> None:
    """A listener that does nothing."""


async def bare(port: int, steps: int) -> None:
    """The floor: one session, each message encoded once, the stream split and decoded, nothing else."""
    encode, decode = msgspec.json.encode, msgspec.json.decode
    tools = encode([{"type": "function", "function": {"name": t.name, "description": t.description,
                     "parameters": t.parameters}} for t in TOOLS])  # fmt: skip
    messages = [encode({"role": "system", "content": SYSTEM}), encode({"role": "user", "content": "go"})]
    url = f"http://127.0.0.1:{port}/v1/chat/completions"
    async with aiohttp.ClientSession() as session:
        for _ in range(steps):
            body = (
                b'{"model":"m","stream":true,"messages":[' + b",".join(messages) + b'],"tools":' + tools + b"}"
            )
            text, args, call_id, rest = [], [], "", b""
            headers = {"content-type": "application/json"}
            async with session.post(url, data=body, headers=headers) as response:
                async for chunk in response.content.iter_any():
                    *events, rest = (rest + chunk).split(b"\n\n")
                    for event in events:
                        if event == b"data: [DONE]":
                            continue
                        delta = decode(event[6:])["choices"][0]["delta"]
                        if delta.get("content"):
                            text.append(delta["content"])
                        for call in delta.get("tool_calls", ()):
                            call_id = call.get("id") or call_id
                            args.append(call["function"]["arguments"])
            function = {"name": "read", "arguments": "".join(args)}
            calls = [{"id": call_id, "type": "function", "function": function}]
            messages.append(encode({"role": "assistant", "content": "".join(text), "tool_calls": calls}))
            messages.append(encode({"role": "tool", "tool_call_id": call_id, "content": RESULT}))


def through(wire: str) -> Run:
    """The same through one of our adapters."""

    async def run(port: int, steps: int) -> None:
        path = "/v1" if wire == "openai" else ""
        model = open_model(f"{wire}:m@http://127.0.0.1:{port}{path}", env={})
        transcript = Transcript([user("go")])
        for _ in range(steps):
            reply = await model.reply(ModelRequest(SYSTEM, transcript, TOOLS), tell)
            (call,) = reply.message.calls
            transcript = transcript.append(reply.message, observation(ToolResult(call.call_id, RESULT)))
        await model.close()

    return run


async def cost(run: Run, port: int, steps: int) -> float:
    """CPU of this process in ms per step."""
    await run(port, 3)
    began = time.process_time()
    await run(port, steps)
    return (time.process_time() - began) / steps * 1000


def build_cost(steps: int) -> float:
    """µs to make the body of the last of `steps` requests, when those before were made."""
    model = OpenAIModel(Endpoint("m", "http://127.0.0.1:1/v1"))
    transcript = Transcript([user("go")])
    for n in range(steps):
        call = ToolCall(f"c{n}", "read", {"file_path": "src/main.py"})
        transcript = transcript.append(
            assistant("I look.", call), observation(ToolResult(call.call_id, RESULT))
        )
        model._body(ModelRequest(SYSTEM, transcript, TOOLS))
    request, count = ModelRequest(SYSTEM, transcript, TOOLS), 200
    began = time.process_time()
    for _ in range(count):
        model._body(request)
    return (time.process_time() - began) / count * 1e6


def delta_cost() -> float:
    """µs per text delta, from bytes to `tell`, at 16 deltas a chunk."""
    event = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "m",
             "choices": [{"index": 0, "delta": {"content": " word"}, "finish_reason": None}]}  # fmt: skip
    chunk, chunks = (b"data: " + msgspec.json.encode(event) + b"\n\n") * 16, 2000
    model = OpenAIModel(Endpoint("m", "http://127.0.0.1:1/v1"))
    ear, parser = _Ear(tell, model._peer), SseParser()
    began = time.process_time()
    for _ in range(chunks):
        for name, data in parser.feed(chunk):
            ear.hear(name, data)
    return (time.process_time() - began) / (chunks * 16) * 1e6


def main() -> None:
    """Print the table."""
    runs: dict[str, Run] = {
        "bare aiohttp": bare,
        "openai": through("openai"),
        "anthropic": through("anthropic"),
    }
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder, "answers.json")
        script.write_text(json.dumps([ANSWER]))
        command = [sys.executable, str(ROOT / "tests" / "loopback.py"), "--script", str(script), "--cycle"]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
            assert server.stdout is not None
            port = int(server.stdout.readline())
            found: dict[tuple[str, int], list[float]] = {}
            for _ in range(ROUNDS):
                for steps in (50, 200):
                    for name, run in runs.items():
                        found.setdefault((name, steps), []).append(asyncio.run(cost(run, port, steps)))
            server.communicate("")
    for name in runs:
        at = {steps: median(found[name, steps]) for steps in (50, 200)}
        ratio = at[50] / median(found["bare aiohttp", 50])
        print(f"{name:14} {at[50]:.3f} ms/step at 50, {at[200]:.3f} at 200; {ratio:.2f} x bare")
    sizes = ", ".join(f"{build_cost(steps):.0f} µs at {steps} turns" for steps in (50, 200, 800))
    print(f"request body   {sizes}")
    print(f"text delta     {median(delta_cost() for _ in range(5)):.2f} µs")


if __name__ == "__main__":
    main()
