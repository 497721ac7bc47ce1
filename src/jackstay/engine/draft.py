"""A step of the run in the making: the one place where events get their numbers."""

from collections.abc import Sequence
from typing import Any

import msgspec
from msgspec.structs import replace

from jackstay.core.effects import Effect
from jackstay.core.errors import ErrorInfo
from jackstay.core.events import BaseEvent, Event, Outcome, RunEndEvent
from jackstay.core.messages import Message
from jackstay.core.state import Batch, RunState
from jackstay.core.transcript import Transcript
from jackstay.engine.ports import Artifact


class Step(msgspec.Struct, frozen=True, gc=False):
    """What one input led to: the next state, what to store of it, what to tell, what to do.

    There is nothing to store of a step that is not `stored`: no effect follows it, and its events are told and
    forgotten, they carry no numbers.
    """

    state: RunState
    events: tuple[Event, ...] = ()
    effects: tuple[Effect, ...] = ()
    appended: tuple[Message, ...] = ()
    amended: tuple[tuple[int, Message], ...] = ()
    artifacts: tuple[Artifact, ...] = ()
    stored: bool = True


class Draft(msgspec.Struct, gc=False):
    """Collects the changes of one step. It lives for one call of `step` and is never shared.

    It began with `before`. `seq` (the number of the last event told), `transcript`, `batch` and `active_s` are
    those of this moment: in `state` they come with the finished step. `artifacts` are whole texts behind what
    is shown shortened.
    """

    before: RunState
    state: RunState
    at: float
    seq: int
    transcript: Transcript
    batch: Batch | None
    active_s: float
    events: list[Event] = []
    effects: list[Effect] = []
    appended: list[Message] = []
    amended: list[tuple[int, Message]] = []
    artifacts: list[Artifact] = []

    def set(self, **changes: Any) -> None:
        """Change fields of the state."""
        self.state = replace(self.state, **changes)

    def tell(self, kind: type[BaseEvent], *fields: Any) -> None:
        """Add an event of the run."""
        self.seq += 1
        common = (self.state.run_id, self.state.session_id, self.seq, self.at)
        self.events.append(kind(*(common + fields)))  # type: ignore[arg-type]  # every subclass is in the union

    def do(self, *effects: Effect) -> None:
        """Ask the world for something."""
        self.effects.extend(effects)

    def say(self, *messages: Message) -> None:
        """Add messages to the transcript."""
        self.appended.extend(messages)
        self.transcript = self.transcript.append(*messages)

    def amend(self, index: int, message: Message) -> None:
        """Put another message in place of one of the transcript."""
        rows = rows_of(self.state.view, self.state.rows + len(self.appended))
        self.amended.append((rows[index], message))
        self.transcript = self.transcript.amend(index, message)

    def rebuild(self, lines: Sequence[tuple[int | None, Message]]) -> None:
        """Another transcript: each message with its position in the present one, or None where it is new."""
        before = rows_of(self.state.view, self.state.rows + len(self.appended))
        new = [message for at, message in lines if at is None]
        fresh = iter(range(self.state.rows + len(self.appended), 1 << 62))
        rows = [before[at] if at is not None else next(fresh) for at, _ in lines]
        self.appended.extend(new)
        total = self.state.rows + len(self.appended)
        self.state = replace(self.state, view=view_of(rows, total))
        self.transcript = Transcript(message for _, message in lines)

    def end(self, outcome: Outcome, text: str, *, error: ErrorInfo | None = None) -> None:
        """The request is over, with this outcome as the run's."""
        self.set(outcome=outcome, text=text, error=error, reasoning=False)
        self.tell_end(outcome, text, error=error)

    def tell_end(self, outcome: Outcome, text: str, *, error: ErrorInfo | None = None) -> None:
        """Tell the end of this request without making it the run's outcome."""
        self.tell(RunEndEvent, outcome, outcome != "answered", text, self.state.usage, error)

    def step(self) -> Step:
        """The finished step."""
        rows = self.state.rows + len(self.appended)
        state = replace(
            self.state, seq=self.seq, rows=rows, active_s=self.active_s, batch=self.batch,
            transcript=self.transcript,
        )  # fmt: skip
        changed = self.events or self.effects or self.batch is not self.before.batch
        return Step(
            state, tuple(self.events), tuple(self.effects), tuple(self.appended), tuple(self.amended),
            tuple(self.artifacts), bool(changed),
        )  # fmt: skip

    def unstored(self) -> Step:
        """The events alone, for a request that changed nothing."""
        return Step(self.state, tuple(replace(event, seq=None) for event in self.events), stored=False)


def rows_of(view: tuple[tuple[int, int], ...], total: int) -> Sequence[int]:
    """The stored row of each message of the transcript, out of `total` rows."""
    if not view:
        return range(total)
    return [row for start, end in view for row in range(start, total if end < 0 else end)]


def view_of(rows: Sequence[int], total: int) -> tuple[tuple[int, int], ...]:
    """The view that shows these rows, and after them whatever is stored from `total` on."""
    ranges: list[tuple[int, int]] = []
    for row in rows:
        if ranges and ranges[-1][1] == row:
            ranges[-1] = (ranges[-1][0], row + 1)
        else:
            ranges.append((row, row + 1))
    if ranges and ranges[-1][1] == total:
        ranges[-1] = (ranges[-1][0], -1)
    else:
        ranges.append((total, -1))
    return tuple(ranges)
