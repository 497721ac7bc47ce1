"""How does a run look to who reads along: as lines of a terminal, or as JSON?"""

import os
import sys
import time
from collections.abc import Callable
from shutil import get_terminal_size
from typing import IO, Any, Protocol

from jackstay.cli.below import below_line, decided_line
from jackstay.cli.plain import clip, safe, shown, subject
from jackstay.core import events as ev
from jackstay.core.messages import NO_USAGE, Usage
from jackstay.core.phase import Phase
from jackstay.core.state import RunState
from jackstay.core.wire import encode
from jackstay.policy.gates import GATES

RESULT_LINES = 3


class Output(Protocol):
    """Where a run is told."""

    def show(self, event: ev.Event) -> None:
        """Tell one event. Raises BrokenPipeError when nobody reads any more."""
        ...

    def note(self, text: str) -> None:
        """Say something that belongs to the result: what waits, how to go on."""
        ...

    def warn(self, text: str) -> None:
        """Say something aside."""
        ...

    def tick(self) -> None:
        """Time has passed."""
        ...

    def pause(self) -> None:
        """Leave the screen to somebody else."""
        ...


class JsonLines:
    """One event per line on stdout, nothing else; everything for people goes to stderr."""

    def show(self, event: ev.Event) -> None:
        """The event as JSON."""
        sys.stdout.buffer.write(encode(event) + b"\n")
        sys.stdout.buffer.flush()

    def note(self, text: str) -> None:
        """On stderr."""
        print(text, file=sys.stderr)

    def warn(self, text: str) -> None:
        """On stderr."""
        print(text, file=sys.stderr)

    def tick(self) -> None:
        """Nothing moves."""

    def pause(self) -> None:
        """Nothing is in the way."""


def is_terminal(stream: IO[str]) -> bool:
    """Is a person's terminal behind the stream, one that can move its cursor?"""
    return stream.isatty() and os.environ.get("TERM") != "dumb"


def colours(stream: IO[str]) -> bool:
    """May this stream be coloured?"""
    return is_terminal(stream) and not os.environ.get("NO_COLOR")


_CODES = {"dim": "2", "bold": "1", "red": "31", "green": "32", "yellow": "33", "cyan": "36"}


class Paint:
    """Colours a text, or leaves it alone where colours are off."""

    def __init__(self, stream: IO[str]) -> None:
        self._on = colours(stream)

    def __call__(self, style: str, text: str) -> str:
        return f"\x1b[{_CODES[style]}m{text}\x1b[0m" if self._on else text


class Screen:
    """Lines for a person.

    The model's words go to stdout as they come; where stdout is no terminal, only the final answer does, so
    that it can be piped. What the harness does goes to stderr, and a status line under it on a terminal.
    """

    def __init__(self, state: RunState | None = None) -> None:
        self._words = sys.stdout if sys.stdout.isatty() else sys.stderr
        self._live = self._words.isatty()  # does anybody see words come?
        self._paint = Paint(sys.stderr)
        self._moving = is_terminal(sys.stderr)
        self._status = False  # does a status line stand on the screen?
        self._inside = False  # are we in the middle of a line of words?
        self._thinking = False
        self._doing = "starting"
        self._since = time.monotonic()
        self._turn = 0
        self._spent: Usage = state.usage if state is not None else NO_USAGE
        self._phase = state.policy.phase.phase if state is not None else Phase.NO_TASK
        self._streamed = False
        self._heard = ""  # the last line that a running tool has put out

    # -- the run ---------------------------------------------------------------------------------------

    def show(self, event: ev.Event) -> None:
        """Tell one event."""
        match event:
            case ev.ReasonStartEvent() | ev.ReasonDeltaEvent() | ev.ReasonEndEvent():
                self._reasoning(event)
            case ev.ToolCallStartEvent() | ev.ToolOutputDeltaEvent() | ev.ToolCallEndEvent():
                self._acting(event)
            case ev.PhaseChangedEvent():
                self._phase = event.after
                self._line(self._paint("dim", f"phase: {event.before} → {event.after} ({safe(event.why)})"))
            case ev.RunEndEvent():
                self._run_ended(event)
            case ev.SubagentEvent():
                line = below_line(event)
                if line is not None:
                    self._line(self._paint("dim", line))
            case _:
                text = _aside(event)
                if text is not None:
                    self._line(self._paint("yellow", text))

    def _reasoning(self, event: ev.ReasonStartEvent | ev.ReasonDeltaEvent | ev.ReasonEndEvent) -> None:
        match event:
            case ev.ReasonStartEvent():
                self._turn = event.turn
                self._now("the model answers")
            case ev.ReasonDeltaEvent():
                if self._live:
                    self._say(event.text, thinking=event.thinking)
            case ev.ReasonEndEvent():
                self._reasoned(event)

    def _acting(self, event: ev.ToolCallStartEvent | ev.ToolOutputDeltaEvent | ev.ToolCallEndEvent) -> None:
        match event:
            case ev.ToolCallStartEvent():
                self._line(self._paint("cyan", f"→ {_call_text(event.tool_name, event.args)}"))
                self._now(f"{shown(event.tool_name)} runs")
            case ev.ToolOutputDeltaEvent():
                lines = [line for line in event.text.splitlines() if line.strip()]
                self._heard = lines[-1] if lines else self._heard
            case ev.ToolCallEndEvent():
                self._ended(event)

    def _reasoned(self, event: ev.ReasonEndEvent) -> None:
        if event.text and not self._streamed and (self._live or event.calls):
            self._say(event.text, thinking=False)  # the last words of all are the answer: they go to stdout
        self._streamed = False
        self._end_line()
        self._spent = self._spent.plus(event.usage or NO_USAGE)

    def _ended(self, event: ev.ToolCallEndEvent) -> None:
        mark = self._paint("red", "✗") if event.is_error else self._paint("green", "✓")
        if event.executed is False and not event.is_error:
            mark = self._paint("yellow", "–")
        lines = [line for line in safe(event.text).splitlines() if line.strip()]
        took = f"{event.duration_ms / 1000:.1f} s" if event.executed is not False else "not run"
        first = clip(lines[0]) if lines else "no output"
        self._line(f"  {mark} {self._paint('dim', took)}  {first}")
        fits = len(lines) <= RESULT_LINES + 1  # the line that counts one line takes a line too
        for line in lines[1:] if fits else lines[1:RESULT_LINES]:
            self._line(self._paint("dim", f"      {clip(line)}"))
        if not fits:
            self._line(self._paint("dim", f"      … {len(lines) - RESULT_LINES} more lines"))

    def _run_ended(self, event: ev.RunEndEvent) -> None:
        self._end_line()
        self._clear()
        self._doing = ""
        if event.outcome in ("answered", "limit") and not sys.stdout.isatty():
            print(event.text, flush=True)
        elif event.outcome in ("failed", "rejected", "stopped"):
            self._line(self._paint("red", f"{event.outcome}: {safe(event.text)}"))

    # -- saying ----------------------------------------------------------------------------------------

    def note(self, text: str) -> None:
        """Say something that belongs to the result."""
        self.pause()
        print(text, flush=True)

    def warn(self, text: str) -> None:
        """Say something aside."""
        self._line(self._paint("yellow", text))

    def _say(self, text: str, *, thinking: bool) -> None:
        if not text:
            return
        self._clear()
        if thinking != self._thinking:
            self._end_line()
            self._thinking = thinking
        self._streamed = self._streamed or not thinking
        self._words.write(self._paint("dim", safe(text)) if thinking else safe(text))
        self._words.flush()
        self._inside = not text.endswith("\n")

    def _end_line(self) -> None:
        if self._inside:
            self._words.write("\n")
            self._words.flush()
            self._inside = False

    def _line(self, text: str) -> None:
        self._end_line()
        self._clear()
        print(text, file=sys.stderr, flush=True)
        self.tick()

    # -- the status line -------------------------------------------------------------------------------

    def _now(self, doing: str) -> None:
        self._doing, self._since, self._heard = doing, time.monotonic(), ""
        self.tick()

    def tick(self) -> None:
        """Draw the status line anew, where there is a place for it."""
        if not self._moving or self._inside or not self._doing:
            return
        sys.stderr.write(f"\r\x1b[K{self._paint('dim', self._status_text())}")
        sys.stderr.flush()
        self._status = True

    def _status_text(self) -> str:
        spent = f"{self._spent.total_tokens:,} tokens"
        cost = f" · ${self._spent.cost:.2f}" if self._spent.cost else ""
        waited = time.monotonic() - self._since
        heard = f" · {self._heard}" if self._heard else ""
        now = f"{self._doing} {waited:.0f} s{heard}"
        text = f"{_standing(self._phase)} · turn {self._turn} · {spent}{cost} · {now}"
        return clip(safe(text), get_terminal_size().columns - 1)

    def _clear(self) -> None:
        if self._status:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()
            self._status = False

    def pause(self) -> None:
        """Finish the line and take the status line away."""
        self._end_line()
        self._clear()
        self._doing = ""


def _standing(phase: Phase) -> str:
    """The phase, and the gate that holds in it."""
    gate = GATES[phase]
    return phase if gate.strength in ("none", "reminder") else f"{phase} [{gate.name} gate]"


def gate_text(gate: str) -> str:
    """Who refused: a gate of the discipline, or a rule."""
    name = gate.removeprefix("gate:")
    return f"the {name} gate" if name in _GATE_NAMES else shown(gate)


def _call_text(tool: str, args: dict[str, object]) -> str:
    return f"{shown(tool)}  {shown(subject(args))}"


def _aside(event: ev.Event) -> str | None:
    """What is worth a line of its own, besides calls and words."""
    say = _ASIDES.get(event.type)
    return say(event) if say is not None else None


def _measured(event: ev.ContextSizeEvent) -> str | None:
    if not event.compressed:
        return None
    return f"context compressed: {event.tokens_before:,} → {event.tokens:,} tokens"


_ASIDES: dict[str, Callable[[Any], str | None]] = {
    "warning": lambda event: f"warning: {safe(event.text)}",
    "error": lambda event: f"error: {safe(event.error.message)}",
    "gate_blocked": lambda event: f"refused by {gate_text(event.gate)}: {safe(event.reason)}",
    "hitl_decided": decided_line,
    "loop_detected": lambda event: f"loop: {safe(event.text)}",
    "rule_added": lambda event: f"rule added: {shown(event.rule)}",
    "plan_updated": lambda event: f"plan: {safe(clip(event.text))}",
    "backup_taken": lambda event: f"backup of {shown(event.path)} taken",
    "skill_loaded": lambda event: f"skill {shown(event.name)} loaded: {safe(event.why)}",
    "context_size": _measured,
}
_GATE_NAMES = frozenset(gate.name for gate in GATES.values())
