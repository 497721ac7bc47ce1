"""Whatever is done to them in whatever order, the file and the memory give the same answers."""

import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule
from msgspec.structs import replace

from jackstay.core import events as ev
from jackstay.core.approvals import HITLDecision, HITLTask
from jackstay.core.errors import JackstayError
from jackstay.core.messages import Message, ToolCall, ToolResult, Usage, assistant, observation, user
from jackstay.core.state import Batch, BatchCall, RunState
from jackstay.core.transcript import Transcript
from jackstay.engine.ports import Artifact, Lease, Posted, Record, SessionStore
from jackstay.store.memory import MemoryStore
from jackstay.store.sqlite import SQLiteStore

names = st.sampled_from(["a", "b"])
ids = st.sampled_from(["call_1", "call_2"])
owners = st.sampled_from([None, "elsewhere:1:1", "elsewhere:2:2"])
calls = st.builds(ToolCall, ids, st.just("ls"), st.sampled_from([{}, {"path": "a"}]))
said = st.one_of(
    st.builds(user, st.sampled_from(["", "hello"])),
    st.builds(lambda some: assistant("x", *some), st.lists(calls, max_size=2)),
    st.builds(lambda call_id: observation(ToolResult(call_id, "text")), ids),
)
told = st.sampled_from(["warning", "tool_end", "action_start", "run_end"])


class StoresAgree(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp())
        self.now = 1000.0
        self.file = SQLiteStore(self.folder / "s.db", now=lambda: self.now)
        self.memory = MemoryStore(now=lambda: self.now)
        self.rows: dict[str, list[Message]] = {}

    def both(self, act: Callable[[SessionStore], Any]) -> Any:
        answers = []
        for store in (self.file, self.memory):
            try:
                answers.append(act(store))
            except JackstayError as problem:
                answers.append((type(problem), str(problem)))
        assert answers[0] == answers[1]
        return answers[0]

    def event(self, kind: str, head: RunState, call_id: str) -> ev.Event:
        common = (head.run_id, head.session_id, head.seq, self.now)
        match kind:
            case "tool_end":
                return ev.ToolCallEndEvent(*common, call_id, "ls", {"path": "a"}, False, True, "text", 0.5)
            case "action_start":
                return ev.ActionStartEvent(*common, (call_id,))
            case "run_end":
                return ev.RunEndEvent(*common, "answered", False, "x", Usage(1, 2))
        return ev.WarningEvent(*common, "careful")

    @rule(
        name=names, off=st.sampled_from([0, 0, 0, 1]), messages=st.lists(said, max_size=3), owner=owners,
        kinds=st.lists(told, max_size=3), call_id=ids, run_id=st.sampled_from(["r1", "r2"]), wait=st.booleans(),
        data=st.data(),
    )  # fmt: skip
    def commit(
        self, name: str, off: int, messages: list[Message], owner: str | None, kinds: list[str], call_id: str,
        run_id: str, wait: bool, data: st.DataObject,
    ) -> None:  # fmt: skip
        stored = self.memory.load(name)
        head = stored.state if stored is not None else RunState(name)
        kept = self.rows.get(name, [])
        amended = []
        if kept and data.draw(st.booleans()):
            place = data.draw(st.integers(0, len(kept) - 1))
            amended = [(place, user("amended"))]
            kept = [*kept[:place], user("amended"), *kept[place + 1 :]]
        task = HITLTask("call_1", "ls", {}, "why", asked_at=self.now)
        head = replace(
            head, run_id=run_id, outcome="pending" if wait else None, turn=head.turn + 1,
            batch=Batch((BatchCall(ToolCall("call_1", "ls", {}), task=task),)) if wait else None,
            transcript=Transcript([*kept, *messages]),
        )  # fmt: skip
        events = []
        for kind in kinds:
            head = replace(head, seq=head.seq + 1)
            events.append(self.event(kind, head, call_id))
        record = Record(
            head, messages, amended, events, [Artifact(call_id, "whole")] if wait else [],
            [item.number for item in self.memory.inbox(name)][:1] if wait else [],
            Lease(owner, self.now + 5) if owner else None,
        )  # fmt: skip
        expected = (stored.version if stored is not None else 0) + off
        if isinstance(self.both(lambda store: store.commit(name, expected, record)), int):
            self.rows[name] = [*kept, *messages]

    @rule(name=names, keys=st.lists(ids, min_size=1, max_size=3), expected=st.none() | st.integers(0, 4))
    def post(self, name: str, keys: list[str], expected: int | None) -> None:
        items = [Posted(0, key, HITLDecision.approve()) for key in keys]
        self.both(lambda store: store.post(name, *items, expected=expected) > 0)

    @rule(name=names, owner=owners.filter(bool), seconds=st.sampled_from([1, 5]))
    def renew(self, name: str, owner: str, seconds: int) -> None:
        self.both(lambda store: store.renew(name, Lease(owner, self.now + seconds)))

    @rule(name=names)
    def delete(self, name: str) -> None:
        self.both(lambda store: store.delete(name))
        self.rows.pop(name, None)

    @rule(seconds=st.sampled_from([1, 4, 6]))
    def wait(self, seconds: int) -> None:
        self.now += seconds

    @rule()
    def reopen(self) -> None:
        self.file.close()

    @rule(name=names, after=st.integers(0, 12))
    def follow(self, name: str, after: int) -> None:
        self.both(lambda store: list(store.events(name, after)))

    @invariant()
    def they_agree(self) -> None:
        for name in ("a", "b"):
            self.both(lambda store, name=name: store.load(name))
            self.both(lambda store, name=name: store.head(name))
            self.both(lambda store, name=name: [replace(item, number=0) for item in store.inbox(name)])
            self.both(lambda store, name=name: store.artifact(name, "call_1"))
            stored = self.file.load(name)
            assert (list(stored.state.transcript) if stored else []) == self.rows.get(name, [])
            for store in (self.memory, self.file):
                assert store.posted(name) or not store.inbox(name)
        self.both(lambda store: sorted(store.sessions(), key=lambda info: info.session_id))
        self.both(lambda store: sorted(store.pending(), key=lambda one: one.session_id))

    def teardown(self) -> None:
        assert self.file.check() == []
        self.file.close()
        shutil.rmtree(self.folder)


StoresAgree.TestCase.settings = settings(max_examples=40, stateful_step_count=25, deadline=None)
test_the_stores_agree = StoresAgree.TestCase
