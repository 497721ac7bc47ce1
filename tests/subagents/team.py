"""Agents that hand work to each other, every one with a script of its own, in one store file."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

from jackstay import AgentDefinition, AgentSession, HarnessEngine
from jackstay.core.events import Event, SubagentEvent, ToolCallEndEvent
from jackstay.core.state import RunState
from jackstay.core.wire import decode_event, encode
from jackstay.engine.ports import SessionStore
from jackstay.models.scripted import ScriptedModel
from tests.elsewhere import Place, asks, reply

Script = Sequence[Any]


def task(call_id: str = "t1", agent: str = "worker", prompt: str = "do it") -> dict[str, Any]:
    """A call that hands one piece of work on."""
    return asks("task", call_id, agent_name=agent, prompt=prompt, description="work")


def multitask(*prompts: str, call_id: str = "m1", agent: str = "worker") -> dict[str, Any]:
    """A call that hands several on; a prompt `name: text` goes to that agent."""
    jobs = [(agent, prompt) if ":" not in prompt else prompt.split(":", 1) for prompt in prompts]
    tasks = [{"agent_name": name, "prompt": text.strip(), "description": "part"} for name, text in jobs]
    return asks("multitask", call_id, tasks=tasks)


def agent(name: str, *turns: Any, **more: Any) -> AgentDefinition:
    """An agent that says these turns."""
    return AgentDefinition(name=name, description=f"the {name}", model=ScriptedModel(turns), **more)


class Team:
    """A Place whose main agent says `turns`, with the agents that `make` gives anew to every process."""

    def __init__(self, place: Place, *turns: Any, make: Callable[[], tuple[AgentDefinition, ...]]) -> None:
        self.place, self.turns, self.make = place, turns, make

    def engine(self, store: SessionStore | None = None, **settings: Any) -> HarnessEngine:
        """Another process of it."""
        tools = (*self.place.tools(), "task", "multitask", "hitl")
        return self.place.engine(
            *self.turns, store=store, **{"tools": tools, "agents": self.make(), **settings}
        )

    def ask(self, text: str | None = "go", **settings: Any) -> list[Event]:
        """One request to its end, in a process of its own."""
        return told(self.engine(**settings), text)

    def child(self, *path: int | str) -> RunState:
        """The session of the subagent that a call of session "s" asked for."""
        (found,) = self.children()
        return found

    def children(self, of: str = "s") -> list[RunState]:
        """The sessions of all subagents of a session, the oldest first."""
        store = self.place.store()
        states = [AgentSession(one.session_id, store).state for one in reversed(store.sessions())]
        return [one for one in states if one.parent is not None and one.parent.session_id == of]


def told(engine: HarnessEngine, text: str | None = "go", session: str = "s") -> list[Event]:
    async def run() -> list[Event]:
        return [event async for event in engine.prompt(text).session(session).stream()]

    return asyncio.run(run())


def below(events: Sequence[Event]) -> list[Event]:
    """What subagents told, as they told it."""
    return [decode_event(encode(event.event)) for event in events if isinstance(event, SubagentEvent)]


def results(events: Sequence[Event]) -> list[tuple[str, bool, str]]:
    """Of each call that ended: its id, whether in an error, and what the model read."""
    return [(e.call_id, e.is_error, e.text) for e in events if isinstance(e, ToolCallEndEvent)]


__all__ = ["Team", "agent", "asks", "below", "multitask", "reply", "results", "task", "told"]
