"""Short ways to ask a model in a test."""

from typing import Any, NamedTuple

import anyio

from jackstay.core.errors import ErrorInfo, ModelError
from jackstay.core.messages import Message, user
from jackstay.core.tools import ToolSpec
from jackstay.core.transcript import Transcript
from jackstay.engine.ports import Model, ModelRequest, Reply
from jackstay.models.http import HttpOptions, Limits
from jackstay.models.registry import ModelOptions, open_model
from tests.loopback import Loopback

LS = ToolSpec("ls", "List a directory.", {"type": "object", "properties": {"path": {"type": "string"}}})
WRITE = ToolSpec(
    "write",
    "Write a file.",
    {"type": "object", "properties": {"file_path": {}, "content": {}}, "required": ["file_path", "content"]},
)
TOOLS = (LS, WRITE)
QUICK = Limits(connect_s=5.0, idle_s=0.3, total_s=5.0)
KEY = "sk-test-0123456789abcdef"


class Heard(NamedTuple):
    """A reply and the pieces that were told on the way."""

    reply: Reply
    told: list[tuple[str, bool]]

    @property
    def parts(self) -> tuple[Any, ...]:
        return self.reply.message.parts

    def said(self, *, thinking: bool = False) -> str:
        return "".join(piece for piece, is_thinking in self.told if is_thinking is thinking)


def request(*messages: Message, **more: Any) -> ModelRequest:
    """A request with the two test tools."""
    return ModelRequest("You are a test.", Transcript(messages or [user("go")]), **{"tools": TOOLS, **more})


def open_at(
    server: Loopback, wire: str, *, http: HttpOptions | None = None, body: dict[str, Any] | None = None
) -> Model:
    """A model of this wire form at the loopback server."""
    url = server.openai_url if wire == "openai" else server.url
    options = ModelOptions(body=body or {}, http=http)
    env = {"OPENAI_API_KEY": KEY, "ANTHROPIC_API_KEY": KEY}
    return open_model(f"{wire}:test-model@{url}", env=env, options=options)


def ask(model: Model, *requests: ModelRequest) -> list[Heard | ErrorInfo]:
    """Ask each request in turn on one event loop, then close the model."""

    async def main() -> list[Heard | ErrorInfo]:
        heard: list[Heard | ErrorInfo] = []
        for one in requests or (request(),):
            told: list[tuple[str, bool]] = []
            try:
                reply = await model.reply(one, lambda text, thinking, told=told: told.append((text, thinking)))
                heard.append(Heard(reply, told))
            except ModelError as problem:
                heard.append(problem.info)
        await model.close()
        return heard

    return anyio.run(main)


def ask_once(model: Model, *requests: ModelRequest) -> Heard:
    """The one reply."""
    (heard,) = ask(model, *requests)
    assert isinstance(heard, Heard), heard
    return heard


def fail_once(model: Model, *requests: ModelRequest) -> ErrorInfo:
    """The one failure."""
    (info,) = ask(model, *requests)
    assert isinstance(info, ErrorInfo), info
    return info
