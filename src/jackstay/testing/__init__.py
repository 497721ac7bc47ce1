"""Play an agent from a script: for tests of your own tools, rules and extensions."""

import asyncio
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import msgspec

from jackstay.core.events import Event, kinds
from jackstay.core.state import RunState
from jackstay.models.scripted import ScriptedModel
from jackstay.store.memory import MemoryStore

if TYPE_CHECKING:
    from jackstay.runtime.engine import HarnessEngine

__all__ = ["Run", "ScriptedModel", "call", "kinds", "play", "resume", "says"]


class Run(msgspec.Struct, frozen=True):
    """What happened: the events in order, the state the request ended in, and the engine that ran it."""

    events: list[Event]
    state: RunState
    engine: Any
    model: ScriptedModel

    @property
    def kinds(self) -> list[str]:
        """The tags of the events, without deltas and context sizes."""
        return [kind for kind in kinds(self.events) if kind != "context_size"]


def call(tool: str, **args: Any) -> dict[str, Any]:
    """A call for `says`."""
    return {"tool": tool, "args": args}


def says(text: str | dict[str, Any] = "", *calls: dict[str, Any]) -> dict[str, Any]:
    """A turn of the script: words, calls, or both."""
    if isinstance(text, str):
        return {"say": text, "calls": list(calls)}
    return {"say": "", "calls": [text, *calls]}


def play(
    script: Iterable[dict[str, Any] | str] | ScriptedModel,
    prompt: str = "go",
    *,
    session: str = "test",
    **settings: Any,
) -> Run:
    """Run a prompt against a scripted model to the end of the request, in memory unless told otherwise.

    `settings` are those of HarnessEngine; whatever the script holds unused is an error.
    """
    from jackstay.runtime.engine import HarnessEngine

    model = script if isinstance(script, ScriptedModel) else ScriptedModel(script)
    settings.setdefault("session_provider", MemoryStore())
    settings.setdefault("installed_extensions", False)
    engine = HarnessEngine(model=model, **settings)
    return _run(engine, model, session, prompt)


def resume(run: Run, *, session: str = "test") -> Run:
    """Go on with a run that waits or was interrupted, in the same engine."""
    return _run(run.engine, run.model, session, None)


def _run(engine: "HarnessEngine", model: ScriptedModel, session: str, prompt: str | None) -> Run:
    events: list[Event] = []

    async def read() -> None:
        async for event in engine.prompt(prompt).session(session).stream():
            events.append(event)

    asyncio.run(read())
    state = engine.get_session(session).state
    if not state.is_pending:
        model.finish()
    return Run(events, state, engine, model)
