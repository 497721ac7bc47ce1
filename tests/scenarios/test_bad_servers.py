"""Whatever a model server does, a run ends typed and readable, its transcript stays valid, and nothing hangs."""

import asyncio
import time

import pytest

from jackstay import Answer, HarnessEngine, MemoryStore, tool
from jackstay.core.messages import ToolResult
from jackstay.models.http import HttpOptions, Limits
from jackstay.models.registry import ModelOptions, open_model
from tests.loopback import Loopback
from tests.make import unanswered
from tests.shapes import check_anthropic, check_openai

CALL = {"calls": [{"tool": "add", "args": {"a": 1, "b": 2}}]}
QUICK = ModelOptions(http=HttpOptions(limits=Limits(connect_s=2, idle_s=0.5, total_s=5)))


@tool(effects={"reads"})
async def add(a: int, b: int) -> str:
    """Add two numbers."""
    return str(a + b)


def run(kind: str, answers: list[dict], **settings) -> tuple[Answer, HarnessEngine, Loopback]:
    with Loopback(answers) as server:
        name = f"m@{server.openai_url}" if kind == "openai" else f"anthropic:m@{server.url}"
        model = open_model(name, env={"ANTHROPIC_API_KEY": "k"}, options=QUICK)
        engine = HarnessEngine(
            model=model, tools=(add,), session_provider=MemoryStore(), installed_extensions=False, **settings
        )
        answer = asyncio.run(engine.prompt("go").session("s").call())
        check = check_openai if kind == "openai" else check_anthropic
        for body in server.bodies:
            check(body)
        return answer, engine, server


@pytest.mark.parametrize("kind", ["openai", "anthropic"])
@pytest.mark.parametrize(
    ("answer", "error", "attempts"),
    [
        ({"status": 401, "error": "bad key"}, "auth", 1),
        ({"status": 404, "error": "no such model"}, "not_found", 1),
        ({"status": 400, "error": "bad field"}, "bad_request", 1),
        ({"status": 500, "error": "oops"}, "server", 2),
        ({"status": 429, "error": "slow down", "headers": {"Retry-After": "0.05"}}, "rate_limit", 2),
        ({"say": "half an answer that breaks off", "fault": "half"}, "broken_reply", 2),
        ({"say": ""}, "empty_reply", 2),
        ({"say": "never comes", "fault": "hang"}, "timeout", 2),
        ({"say": "x", "fault": "disconnect", "at": 0}, "connection", 2),
        ({"say": "x", "fault": "junk"}, "broken_reply", 2),
    ],
)  # fmt: skip
def test_a_server_that_fails_for_good_ends_the_run_typed_and_soon(kind, answer, error, attempts) -> None:
    began = time.monotonic()
    done, engine, server = run(kind, [answer] * attempts, model_retries=2)
    assert time.monotonic() - began < 20
    assert done.outcome == "failed"
    assert done.error is not None
    assert (done.error.kind, done.error.attempts) == (error, attempts)
    assert done.text == done.error.message
    assert len(server.requests) == attempts
    assert [m.role for m in engine.get_session("s").messages] == ["user"]


@pytest.mark.parametrize("kind", ["openai", "anthropic"])
@pytest.mark.parametrize(
    "first",
    [
        {"status": 500, "error": "oops"},
        {"status": 429, "error": "slow down", "headers": {"Retry-After": "0.05"}},
        {"say": "half", "fault": "half"},
        {"say": ""},
    ],
)
def test_a_server_that_fails_once_is_asked_again(kind, first) -> None:
    done, engine, _ = run(kind, [first, CALL, {"say": "three"}])
    assert (done.outcome, done.text) == ("answered", "three")
    assert unanswered(engine.get_session("s").messages) == []


@pytest.mark.parametrize("kind", ["openai", "anthropic"])
def test_two_calls_with_one_id_are_two_calls(kind) -> None:
    twins = {"calls": [{"tool": "add", "args": {"a": n, "b": 1}, "id": "same"} for n in (1, 2)]}
    done, engine, _ = run(kind, [twins, twins, {"say": "done"}])
    assert done.outcome == "answered"
    messages = engine.get_session("s").messages
    results = [p for m in messages for p in m.parts if isinstance(p, ToolResult)]
    assert [r.text for r in results] == ["2", "3", "2", "3"]
    assert len({r.call_id for r in results}) == 4


@pytest.mark.parametrize("kind", ["openai", "anthropic"])
def test_arguments_that_are_no_json_or_were_cut_off_never_run(kind) -> None:
    broken = {"calls": [{"tool": "add", "raw": '{"a": 1, "b"'}]}
    cut = {**CALL, "stop": "length" if kind == "openai" else "max_tokens"}
    done, engine, _ = run(kind, [broken, cut, {"say": "done"}])
    assert done.outcome == "answered"
    results = [p for m in engine.get_session("s").messages for p in m.parts if isinstance(p, ToolResult)]
    assert [(r.is_error, r.executed) for r in results] == [(True, False), (True, False)]
    assert all("Not run:" in r.text for r in results)
