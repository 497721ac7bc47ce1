"""What does Claude Code tell us at each of its hooks, and what is answered?

Allow says nothing, so that the host's own prompts stay. Whatever fails raises: the hook's process blocks then.
"""

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct

from jackstay.core import wire
from jackstay.core.errors import JackstayError
from jackstay.core.messages import JsonObject
from jackstay.core.phase import Phase
from jackstay.hosts.judge import HostCall, Judge, Verdict
from jackstay.hosts.names import CLAUDE_CODE
from jackstay.hosts.state import Session

HOST = CLAUDE_CODE.host
EVENTS: tuple[str, ...] = (
    "SessionStart", "UserPromptSubmit", "PreToolUse", "PostToolUse", "PostToolUseFailure", "Stop",
)  # fmt: skip
MAX_TEXT = 10_000  # characters that the host takes from a hook
MAX_TRANSCRIPT = 4_000_000  # bytes read at once; more than that was written while nobody asked

_PERSON = frozenset({"", "user", "sdk"})  # sources of a prompt that a person wrote
_HOST_WRITES = ("<task-notification>", "<system-reminder>", "<local-command", "<command-name>", "<bash-")


class BadEvent(JackstayError):
    """The host has sent something that is no hook event."""


class Reply(Struct, frozen=True, gc=False):
    """What the hook's process answers; without an output it is the empty object, which objects to nothing."""

    output: JsonObject | None = None

    @property
    def stdout(self) -> bytes:
        """The bytes to write: always an object, so that silence is never taken for an answer."""
        return wire.encode(self.output or {})


def answer(data: bytes, home: Path, *, environ: Mapping[str, str] = os.environ) -> Reply:
    """Answer one hook event, given as the host's JSON. Raises BadEvent, StoreError, ConfigError, OSError."""
    try:
        event: Any = wire.decode_json(data)
    except ValueError as problem:
        raise BadEvent(f"the host's event cannot be read: {problem}") from problem
    if not isinstance(event, dict):
        raise BadEvent("the host's event is no JSON object")
    react = _REACTIONS.get(_text(event, "hook_event_name"))
    if react is None:
        return Reply()
    judge = Judge(home, CLAUDE_CODE, skill_call="Skill({!r})")
    try:
        return react(Moment(judge, event, environ))
    finally:
        judge.store.close()


class Moment:
    """One event with what every reaction needs of it."""

    def __init__(self, judge: Judge, event: JsonObject, environ: Mapping[str, str]) -> None:
        self.judge, self.event = judge, event
        self.session = Session(HOST, _needed(event, "session_id"), _text(event, "agent_id"))
        self.cwd = _needed(event, "cwd")
        self.workspace = environ.get("CLAUDE_PROJECT_DIR") or self.cwd
        self.can_ask = not environ.get("CLAUDE_CODE_ENTRYPOINT", "").startswith("sdk")
        # Only of a session's own calls is it known that the host asks again when it resumes.
        self.defers = environ.get("JACKSTAY_DEFER") == "1" and not self.session.agent

    @property
    def call(self) -> HostCall:
        """The call that a tool event is about."""
        args = self.event.get("tool_input")
        if not isinstance(args, dict):
            raise BadEvent("the host's event has no tool_input")
        name, call_id = _needed(self.event, "tool_name"), _needed(self.event, "tool_use_id")
        return HostCall(call_id, name, args, self.cwd, self.workspace)

    def catch_up(self, final: str = "") -> None:
        """Let the markers count that the model wrote beside its calls, and in `final`, its last message.

        The transcript may lag: `final` is read at once, and passed over when it turns up there.
        """
        if self.session.agent:
            return
        state = self.judge.store.read(self.session)
        path, start = _text(self.event, "transcript_path"), state.read_to if state else -1
        echo = state.echo if state else ""
        texts, end = written(Path(path), start) if path else ([], 0)
        if echo in texts:
            texts.remove(echo)
            echo = ""
        if final and final not in texts[-1:]:
            texts.append(final)
            echo = final
        for text in texts:
            self.judge.assistant_said(self.session, text, self.workspace)
        if end != start or echo != (state.echo if state else ""):
            self.judge.read_until(self.session, end, echo)


def written(path: Path, start: int) -> tuple[list[str], int]:
    """The model's texts in a transcript from byte `start` on, and where the next look begins.

    A negative start reads nothing: what was said before the harness was there does not count.
    """
    try:
        size = path.stat().st_size
        if start < 0 or size <= start:
            return [], size
        with path.open("rb") as file:
            file.seek(max(start, size - MAX_TRANSCRIPT))
            data = file.read()
    except FileNotFoundError:
        return [], 0
    whole = data[: data.rfind(b"\n") + 1]
    return [text for line in whole.splitlines() for text in _texts(line)], size - len(data) + len(whole)


def _texts(line: bytes) -> list[str]:
    if b'"assistant"' not in line or b'"text"' not in line:
        return []
    try:
        entry: Any = wire.decode_json(line)
    except ValueError:
        return []
    if not isinstance(entry, dict) or entry.get("type") != "assistant" or entry.get("isSidechain"):
        return []
    message = entry.get("message")
    content = message.get("content") if isinstance(message, dict) else None
    blocks = [one for one in content if isinstance(one, dict)] if isinstance(content, list) else []
    return [one["text"] for one in blocks if one.get("type") == "text" and isinstance(one.get("text"), str)]


# -- one reaction an event ---------------------------------------------------------------------------------


def _session_start(it: Moment) -> Reply:
    known = _text(it.event, "source") in ("resume", "compact")
    said = it.judge.session_started(it.session, it.workspace, known_before=known)
    it.catch_up()
    return _context("SessionStart", said)


def _prompt(it: Moment) -> Reply:
    it.catch_up()
    prompt = _text(it.event, "prompt")
    if _text(it.event, "source") not in _PERSON or prompt.startswith(_HOST_WRITES):
        return _context("UserPromptSubmit", it.judge.guidance(it.session, it.workspace))
    words = prompt.split(None, 2)
    command = words[0].removeprefix("/jackstay:").removeprefix("/") if prompt.startswith("/") else ""
    if command == "approve-plan":
        said = it.judge.approve_plan(it.session, by="user")
        return _context("UserPromptSubmit", _joined(said, it.judge.guidance(it.session, it.workspace)))
    if command == "phase" and len(words) > 1:
        return _forced(it, words)
    return _context("UserPromptSubmit", it.judge.user_said(it.session, prompt, it.workspace))


def _forced(it: Moment, words: list[str]) -> Reply:
    if words[1] not in set(Phase):
        said = f"there is no phase {words[1]!r}; the phases are {', '.join(Phase)}"
    else:
        reason = words[2] if len(words) > 2 else "the user's command"
        said = it.judge.force_phase(it.session, Phase(words[1]), reason, by="user")
    return _context("UserPromptSubmit", _joined(said, it.judge.guidance(it.session, it.workspace)))


def _before(it: Moment) -> Reply:
    call = it.call
    it.catch_up()
    verdict = it.judge.before_call(it.session, call, can_ask=it.can_ask)
    decision = "defer" if verdict.question and it.defers else _decision(verdict)
    if decision is None:
        return Reply()
    said: JsonObject = {"hookEventName": "PreToolUse", "permissionDecision": decision}
    if verdict.reason:
        said["permissionDecisionReason"] = verdict.reason[:MAX_TEXT]
    return Reply({"hookSpecificOutput": said})


def _decision(verdict: Verdict) -> str | None:
    if verdict.answer == "allow":
        return "allow" if verdict.explicit else None
    return verdict.answer


def _after(it: Moment) -> Reply:
    call = it.call
    it.catch_up()
    failed = _text(it.event, "hook_event_name") == "PostToolUseFailure"
    after = it.judge.after_call(it.session, call, is_error=failed)
    if failed:
        return _context("PostToolUseFailure", after.text)
    reply = _context("PostToolUse", after.text)
    if after.answer is None:
        return reply
    said = reply.output["hookSpecificOutput"] if reply.output else {"hookEventName": "PostToolUse"}
    block = [{"type": "text", "text": after.answer}]
    return Reply({"hookSpecificOutput": {**said, "updatedMCPToolOutput": block}})


def _stop(it: Moment) -> Reply:
    it.catch_up(_text(it.event, "last_assistant_message"))
    why = it.judge.keeps_going(it.session, it.workspace)
    return Reply() if why is None else Reply({"decision": "block", "reason": why[:MAX_TEXT]})


_REACTIONS: dict[str, Callable[[Moment], Reply]] = {
    "SessionStart": _session_start,
    "UserPromptSubmit": _prompt,
    "PreToolUse": _before,
    "PostToolUse": _after,
    "PostToolUseFailure": _after,
    "Stop": _stop,
}


def _context(event: str, text: str) -> Reply:
    if not text:
        return Reply()
    return Reply({"hookSpecificOutput": {"hookEventName": event, "additionalContext": text[:MAX_TEXT]}})


def _joined(*texts: str) -> str:
    return "\n\n".join(text for text in texts if text)


def _text(event: JsonObject, key: str) -> str:
    value = event.get(key)
    return value if isinstance(value, str) else ""


def _needed(event: JsonObject, key: str) -> str:
    value = _text(event, key)
    if not value:
        raise BadEvent(f"the host's event has no {key}")
    return value
