"""What has been done already? A list kept from calls and events, not from a model's memory of them."""

import re
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec
from msgspec.structs import replace

from jackstay.core import wire
from jackstay.core.events import Event, HITLDecidedEvent, PhaseChangedEvent
from jackstay.core.messages import JsonObject, Message, ToolCall, ToolResult
from jackstay.engine.compaction.tokens import text_tokens

WRITING = frozenset({"write", "edit", "patch", "apply_patch", "multi_edit"})
READING = frozenset({"read"})
COMMANDS = frozenset({"bash", "shell", "terminal"})
PLANNING = frozenset({"todo", "todowrite"})
_PATH_ARGS = ("file_path", "path")
_TESTING = re.compile(
    r"\b(pytest|tox|nox|unittest|jest|vitest|rspec|phpunit|ctest|(?:npm|yarn|pnpm)(?: run)? test|"
    r"go test|cargo (?:nex)?test|make (?:check|test)|(?:mvn|gradle|gradlew) \S*test)\b|scripts/test\b"
)
_EXIT = re.compile(r"\W{0,3}(?:ended by signal .{1,40})?exit (?:code|status)[:= ]+(-?\d+)", re.IGNORECASE)
_BOX = re.compile(r"^\s*(?:[-*+]|\d+[.)])\s+\[([ xX/])\]\s*(.*)$", re.MULTILINE)
_LONGEST = 160  # characters of one line

# Sections in the order they are shown, and how many lines of each are kept.
_KEPT: dict[str, int] = {
    "Files written": 40, "Files read": 25, "Commands": 20, "Tests": 10, "Decisions": 20, "Next step": 1,
}  # fmt: skip


class Ledger(msgspec.Struct, frozen=True, gc=False):
    """Lines by section, the latest last; `render` makes it text and `read` reads it back."""

    lines: tuple[tuple[str, tuple[str, ...]], ...] = ()

    def section(self, title: str) -> tuple[str, ...]:
        """The lines of this section."""
        return next((lines for name, lines in self.lines if name == title), ())


def _subject(line: str) -> str:
    return line.rpartition(" → ")[0] or line


def record(ledger: Ledger, messages: Sequence[Message], events: Iterable[Event] = ()) -> Ledger:
    """The ledger after these messages and events. Of two lines about the same thing the later one stands."""
    found: dict[str, dict[str, str]] = {
        title: {_subject(line): line for line in ledger.section(title)} for title in _KEPT
    }
    results = {
        part.call_id: part
        for message in messages
        if message.role == "tool"
        for part in message.parts
        if isinstance(part, ToolResult)
    }
    for message in messages:
        for call in message.calls if message.role == "assistant" else ():
            result = results.get(call.call_id)
            for title, line in _entries(call, result) if result is not None else ():
                _note(found[title], line)
    for event in events:
        if (decision := _decision(event)) is not None:
            _note(found["Decisions"], decision)
    kept = ((title, tuple(lines.values())[-_KEPT[title] :]) for title, lines in found.items() if lines)
    return Ledger(tuple(kept))


def _note(lines: dict[str, str], line: str) -> None:
    lines.pop(_subject(line), None)
    lines[_subject(line)] = line


def _entries(call: ToolCall, result: ToolResult) -> Iterable[tuple[str, str]]:
    path = next((call.args[name] for name in _PATH_ARGS if isinstance(call.args.get(name), str)), None)
    command = call.args.get("command")
    if result.executed is False:
        yield "Decisions", _line(f"not run: {_shown(call.tool, call.args)}: {result.text}")
    elif call.tool in WRITING and path is not None:
        yield "Files written", _line(path) + (" → failed" if result.is_error else "")
    elif call.tool in READING and path is not None and not result.is_error:
        yield "Files read", _line(path)
    elif call.tool in COMMANDS and isinstance(command, str):
        title = "Tests" if _TESTING.search(command) else "Commands"
        yield title, f"{_line(command)} → {_status(result)}"
    elif call.tool in PLANNING and (step := _next_step(call.args.get("todos"))):
        yield "Next step", _line(step)


def _status(result: ToolResult) -> str:
    found = _EXIT.match(result.text)
    if found is not None:
        return f"exit code {found[1]}"
    if result.executed is None:
        return "may have run"
    return "failed" if result.is_error else "done"


def _next_step(todos: Any) -> str | None:
    """The item in progress, else the first open one, of a plan in Markdown check boxes."""
    items = _BOX.findall(todos) if isinstance(todos, str) else []
    for wanted in ("/", " "):
        for state, text in items:
            if state == wanted:
                return str(text)
    return None


def _decision(event: Event) -> str | None:
    match event:
        case HITLDecidedEvent():
            verdict = {"approve": "approved", "reject": "rejected", "skip": "skipped"}[event.decision.kind]
            return _line(f"{verdict} by a person: {_shown(event.tool_name, event.args)}")
        case PhaseChangedEvent():
            return _line(f"phase {event.before} to {event.after}: {event.why}")
        case _:
            return None


def _shown(tool: str, args: JsonObject) -> str:
    return f"{tool} {wire.encode(args).decode()[:80]}"


def _line(text: str) -> str:
    words = " ".join(text.replace("→", "->").split())
    return words if len(words) <= _LONGEST else words[: _LONGEST - 1] + "…"


def render(ledger: Ledger, tokens: int) -> str:
    """The ledger in at most `tokens` tokens: the oldest line of the longest section gives way first."""
    while ledger.lines:
        made = "\n".join(
            f"{title}:\n" + "\n".join(f"- {one}" for one in lines) for title, lines in ledger.lines
        )
        if text_tokens(made) <= tokens:
            return made
        longest = max(ledger.lines, key=lambda section: len(section[1]))[0]
        ledger = replace(
            ledger,
            lines=tuple(
                (title, kept)
                for title, lines in ledger.lines
                if (kept := lines[max(1, len(lines) // 8) :] if title == longest else lines)
            ),
        )
    return ""


def read(text: str) -> Ledger:
    """The ledger that was rendered; lines of unknown sections are left out."""
    found: dict[str, list[str]] = {}
    title = ""
    for line in text.splitlines():
        if line.startswith("- ") and title:
            found[title].append(line.removeprefix("- "))
        elif line.removesuffix(":") in _KEPT:
            title = line.removesuffix(":")
            found[title] = []
    return Ledger(tuple((name, tuple(found[name])) for name in _KEPT if found.get(name)))
