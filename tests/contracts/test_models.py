"""What every model adapter promises, asked of each: scripted, chat completions, Messages."""

from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import anyio
import pytest

from jackstay.core.errors import ErrorInfo
from jackstay.core.messages import (
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
from jackstay.core.transcript import Transcript
from jackstay.engine.ports import Model, ModelRequest
from jackstay.models.scripted import ScriptedModel
from tests.loopback import Loopback
from tests.models.asking import TOOLS, Heard, ask, ask_once, fail_once, open_at, request
from tests.shapes import check_anthropic, check_openai


class Bench:
    """Makes the model under test answer a script, and checks the requests that went out."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self._stack = ExitStack()
        self._servers: list[Loopback] = []

    def model(self, *answers: dict[str, Any]) -> Model:
        if self.kind == "scripted":
            return ScriptedModel([_scripted(answer) for answer in answers])
        server = self._stack.enter_context(Loopback([_wired(answer, self.kind) for answer in answers]))
        self._servers.append(server)
        return open_at(server, self.kind)

    def check_requests(self) -> None:
        check = check_openai if self.kind == "openai" else check_anthropic
        for server in self._servers:
            assert server.bodies
            for body in server.bodies:
                check(body)

    def close(self) -> None:
        self._stack.close()


def _scripted(answer: dict[str, Any]) -> dict[str, Any]:
    turn = {key: value for key, value in answer.items() if key in ("say", "think", "calls", "stop")}
    if "usage" in answer:
        turn["usage"] = {"input_tokens": answer["usage"][0], "output_tokens": answer["usage"][1]}
    if "status" in answer:
        turn["error"] = {"kind": answer["kind"], "status": answer["status"], "message": "no"}
        turn["error"] |= (
            {"retry_after_s": float(answer["headers"]["retry-after"])} if "headers" in answer else {}
        )
    return turn


def _wired(answer: dict[str, Any], kind: str) -> dict[str, Any]:
    words = {"length": {"openai": "length", "anthropic": "max_tokens"}}
    stop = answer.get("stop")
    return {**answer, "stop": words[stop][kind]} if stop else answer


@pytest.fixture(params=["scripted", "openai", "anthropic"])
def bench(request: pytest.FixtureRequest) -> Iterator[Bench]:
    made = Bench(request.param)
    yield made
    made.close()


def ids_aside(message: Message) -> tuple[Any, ...]:
    """The parts without call ids, signatures and sources, which differ by provider on purpose."""
    return tuple(
        ToolCall("", part.tool, part.args, part.problem, part.raw)
        if isinstance(part, ToolCall)
        else Thinking(part.text)
        if isinstance(part, Thinking)
        else part
        for part in message.parts
    )


def test_text_streams_in_pieces_and_the_reply_is_all_of_it(bench):
    heard = ask_once(bench.model({"say": "Grüße aus dem Maschinenraum, 机房。", "usage": [120, 30]}))
    assert heard.parts == (Text("Grüße aus dem Maschinenraum, 机房。"),)
    assert heard.said() == heard.reply.message.text
    assert len(heard.told) > 1
    assert (heard.reply.stop, heard.reply.usage) == ("end", Usage(120, 30))
    assert heard.reply.message.role == "assistant"


def test_thinking_comes_before_the_text_and_is_told_as_thinking(bench):
    heard = ask_once(bench.model({"think": "Let me see.", "say": "Seen.", "calls": [{"tool": "ls"}]}))
    assert ids_aside(heard.reply.message) == (Thinking("Let me see."), Text("Seen."), ToolCall("", "ls", {}))
    assert (heard.said(thinking=True), heard.said()) == ("Let me see.", "Seen.")


def test_parallel_calls_keep_their_order_and_their_arguments(bench):
    calls = [
        {"tool": "ls", "args": {"path": "src"}},
        {"tool": "write", "args": {"file_path": "ä.txt", "content": 'a "quoted"\nline\t\\'}},
        {"tool": "ls", "args": {"path": "", "deep": {"list": [1, 2.5, None, True]}}},
    ]
    heard = ask_once(bench.model({"calls": calls}))
    assert ids_aside(heard.reply.message) == tuple(ToolCall("", c["tool"], c["args"]) for c in calls)
    assert heard.reply.stop == "calls"


def test_two_calls_with_one_id_both_arrive(bench):
    calls = [{"tool": "ls", "args": {"path": path}, "id": "same"} for path in ("a", "b")]
    heard = ask_once(bench.model({"calls": calls}))
    assert heard.parts == (ToolCall("same", "ls", {"path": "a"}), ToolCall("same", "ls", {"path": "b"}))


@pytest.mark.parametrize(
    ("raw", "why"),
    [
        ('{"path": "a', "not valid JSON"),
        ('{"path": "a"}{"path": "b"}', "not valid JSON"),
        ('{"path": "line\nbreak"}', "not valid JSON"),
        ('["a"]', "a JSON object, not an array"),
        ('"a"', "a JSON object, not a string"),
        ("null", "a JSON object, not null"),
        ('{"a":' * 70 + "1" + "}" * 70, "nested more than 64 levels"),
    ],
)
def test_arguments_that_cannot_be_read_are_a_problem_and_never_empty_arguments(bench, raw, why):
    heard = ask_once(
        bench.model({"calls": [{"tool": "ls", "raw": raw}, {"tool": "ls", "args": {"path": "b"}}]})
    )
    broken, sound = heard.reply.message.calls
    assert (broken.args, broken.raw) == ({}, raw)
    assert broken.problem is not None
    assert why in broken.problem
    assert (sound.problem, sound.args) == (None, {"path": "b"})


def test_no_arguments_at_all_are_believed_only_where_none_are_needed(bench):
    heard = ask_once(bench.model({"calls": [{"tool": "ls", "raw": ""}, {"tool": "write", "raw": ""}]}))
    listing, writing = heard.reply.message.calls
    assert (listing.args, listing.problem) == ({}, None)
    assert writing.problem == "no arguments arrived; write needs file_path, content"


@pytest.mark.parametrize(
    "raw", ['{"file_path": "a", "content": "half of', '{"file_path": "a", "content": "b"}']
)
def test_a_call_cut_by_the_output_limit_never_runs_even_when_it_looks_whole(bench, raw):
    calls = [{"tool": "ls", "args": {"path": "a"}}, {"tool": "write", "raw": raw}]
    heard = ask_once(bench.model({"calls": calls, "stop": "length"}))
    whole, cut = heard.reply.message.calls
    assert heard.reply.stop == "length"
    assert (whole.args, whole.problem) == ({"path": "a"}, None)
    assert (cut.args, cut.raw) == ({}, raw)
    assert cut.problem is not None
    assert "cut off by the output limit" in cut.problem


def test_text_cut_by_the_output_limit_is_kept_and_says_so(bench):
    heard = ask_once(bench.model({"say": "Once upon a", "stop": "length"}))
    assert (heard.parts, heard.reply.stop) == ((Text("Once upon a"),), "length")


def test_a_reply_of_nothing_is_a_typed_failure(bench):
    assert fail_once(bench.model({"say": ""})).kind == "empty_reply"


@pytest.mark.parametrize(
    ("status", "kind", "retryable"),
    [
        (400, "bad_request", False),
        (401, "auth", False),
        (403, "auth", False),
        (404, "not_found", False),
        (413, "overflow", False),
        (429, "rate_limit", True),
        (500, "server", True),
        (503, "server", True),
        (529, "server", True),
    ],
)
def test_every_refusal_is_typed_and_nothing_is_retried(bench, status, kind, retryable):
    model = bench.model({"status": status, "kind": kind, "error": "no"}, {"say": "fine"})
    info, after = ask(model, request(), request())
    assert isinstance(info, ErrorInfo)
    assert (info.kind, info.status, info.retryable) == (kind, status, retryable)
    assert isinstance(after, Heard)


def test_a_rate_limit_says_how_long_to_wait(bench):
    model = bench.model({"status": 429, "kind": "rate_limit", "error": "slow", "headers": {"retry-after": "7"}})
    info = fail_once(model)
    assert (info.kind, info.retry_after_s) == ("rate_limit", 7.0)


def test_a_long_run_sends_requests_that_the_provider_takes(bench):
    rounds = 6
    model = bench.model(*({"say": f"round {n}", "calls": [{"tool": "ls"}] * 2} for n in range(rounds)))

    async def main() -> None:
        transcript = Transcript([user("go")])
        for n in range(rounds):
            heard = await model.reply(
                ModelRequest("sys", transcript, TOOLS, notes=(note("phase", f"note {n}"),)), lambda *_: None
            )
            message = unique(heard.message, n)
            results = [
                observation(ToolResult(c.call_id, f"result {n}", is_error=n == 3)) for c in message.calls
            ]
            transcript = transcript.append(message, *results)
            if n == 2:
                transcript = transcript.append(user("and one thing more"))
        await model.close()

    anyio.run(main)
    bench.check_requests() if bench.kind != "scripted" else None


def unique(message: Message, turn: int) -> Message:
    """As the run machine does: each call with an id of its own."""
    calls = [ToolCall(f"t{turn}_{i}", c.tool, c.args) for i, c in enumerate(message.calls)]
    return assistant(message.text, *calls)


def test_what_goes_wrong_in_the_listener_is_not_the_models_failure(bench):
    model = bench.model({"say": "hello"}, {"say": "again"})

    def full(_text: str, _thinking: bool) -> None:
        raise OSError("disk full")

    async def main() -> str:
        with pytest.raises(OSError, match="disk full"):
            await model.reply(request(), full)
        reply = await model.reply(request(), lambda *_: None)
        await model.close()
        return reply.message.text

    assert anyio.run(main) == "again"


def test_a_model_may_be_used_again_after_it_was_closed(bench):
    model = bench.model({"say": "one"}, {"say": "two"})
    assert ask_once(model).reply.message.text == "one"
    assert ask_once(model).reply.message.text == "two"  # and on another event loop


def test_requests_may_run_side_by_side(bench):
    model = bench.model(*({"say": "same"} for _ in range(8)))
    texts: list[str] = []

    async def one() -> None:
        texts.append((await model.reply(request(), lambda *_: None)).message.text)

    async def main() -> None:
        async with anyio.create_task_group() as group:
            for _ in range(8):
                group.start_soon(one)
        await model.close()

    anyio.run(main)
    assert texts == ["same"] * 8
