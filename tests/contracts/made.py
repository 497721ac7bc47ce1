"""Sessions as a run would store them, made without a run: what the store's tests commit."""

from collections.abc import Sequence
from typing import Any

import msgspec

from jackstay.core import events as ev
from jackstay.core.approvals import HITLTask
from jackstay.core.facts import CallFacts
from jackstay.core.messages import Message, ToolCall, ToolResult, Usage, assistant, observation, user
from jackstay.core.state import Batch, BatchCall, RunState
from jackstay.core.transcript import Transcript
from jackstay.engine.ports import Artifact, Lease, Record, SessionStore


class Play:
    """One session on its way: each verb makes the record of one commit and, with a store, commits it."""

    def __init__(self, store: SessionStore | None, session_id: str = "s1", *, run_id: str = "run-1") -> None:
        self.store, self.session_id, self.run_id = store, session_id, run_id
        self.state = RunState(session_id, run_id, settings={"model": "script:x", "tools": ["ls"]})
        self.version = 0
        self.at = 1_732_958_400.125
        self.told: list[ev.Event] = []
        self.lease: Lease | None = None

    def event(self, kind: type[Any], *values: Any) -> ev.Event:
        self.state = msgspec.structs.replace(self.state, seq=self.state.seq + 1)
        event: ev.Event = kind(self.run_id, self.session_id, self.state.seq, self.at, *values)
        return event

    def record(self, messages: Sequence[Message], events: Sequence[ev.Event], **more: Any) -> Record:
        changed = more.pop("state", {})
        self.state = msgspec.structs.replace(
            self.state, run_id=self.run_id, transcript=self.state.transcript.append(*messages), **changed
        )
        self.at += 0.25
        return Record(self.state, messages, events=events, lease=more.pop("lease", self.lease), **more)

    def commit(self, record: Record) -> Record:
        assert self.store is not None
        self.version = self.store.commit(self.session_id, self.version, record)
        self.told += record.events
        return record

    def begins(self, text: str = "look around") -> Record:
        return self.commit(
            self.record(
                [user(text)],
                [self.event(ev.RunStartEvent), self.event(ev.ReasonStartEvent, 1)],
                state={"turn": 1, "outcome": None},
            )
        )

    def asks(self, *calls: ToolCall, text: str = "") -> Record:
        return self.commit(
            self.record(
                [assistant(text, *calls)],
                [
                    self.event(ev.ReasonEndEvent, 1, text, calls, Usage(100, 20)),
                    self.event(ev.ActionStartEvent, tuple(c.call_id for c in calls)),
                    *(self.event(ev.ToolCallStartEvent, c.call_id, c.tool, dict(c.args)) for c in calls),
                ],
                state={"batch": Batch(tuple(BatchCall(c, CallFacts(), "started") for c in calls), True)},
            )
        )

    def observes(self, *results: tuple[ToolCall, str], artifacts: Sequence[Artifact] = ()) -> Record:
        ended = [
            self.event(ev.ToolCallEndEvent, c.call_id, c.tool, dict(c.args), False, True, text, 0.25)
            for c, text in results
        ]
        return self.commit(
            self.record(
                [observation(ToolResult(c.call_id, text)) for c, text in results],
                [*ended, self.event(ev.ActionEndEvent), self.event(ev.ReasonStartEvent, 2)],
                state={"batch": None},
                artifacts=artifacts,
            )
        )

    def turn(self, number: int) -> None:
        call = ToolCall(f"call_{number}", "ls", {"path": f"src/{number}"})
        self.asks(call)
        self.observes((call, f"{number}.py"))

    def suspends(self, *calls: ToolCall) -> Record:
        tasks = tuple(HITLTask(c.call_id, c.tool, c.args, "it writes", asked_at=self.at) for c in calls)
        batch = Batch(tuple(BatchCall(c, CallFacts(), task=t) for c, t in zip(calls, tasks, strict=True)))
        return self.commit(
            self.record(
                [assistant("", *calls)],
                [
                    self.event(ev.ReasonEndEvent, 1, "", calls, Usage(100, 20)),
                    self.event(ev.HITLPendingEvent, tasks),
                    self.event(ev.RunEndEvent, "pending", True, "", Usage(100, 20)),
                ],
                state={"batch": batch, "outcome": "pending", "usage": Usage(100, 20)},
                lease=None,
            )
        )

    def answers(self, text: str = "done") -> Record:
        return self.commit(
            self.record(
                [assistant(text)],
                [
                    self.event(ev.ReasonEndEvent, 2, text, (), Usage(9, 9)),
                    self.event(ev.RunEndEvent, "answered", False, text, Usage(109, 29)),
                ],
                state={"outcome": "answered", "text": text, "batch": None},
                lease=None,
            )
        )


def headless(state: RunState) -> RunState:
    """The state as `head` gives it: without messages."""
    return msgspec.structs.replace(state, transcript=Transcript())
