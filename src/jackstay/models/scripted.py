"""What does a model say whose words were written beforehand? For tests, demos and dry runs.

A script is `{"turns": [{"say": "…", "calls": [{"tool": "bash", "args": {…}}]}, …]}`, JSON or YAML. Turns answer
requests in order. A turn with `when` waits until its pattern is found in the last user or tool message, and
then comes before those behind it; one that never matches is no fault. A turn with `error` is a failure.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from jackstay.core.errors import ConfigError, ErrorInfo, ErrorKind, ModelError, ScriptError
from jackstay.core.messages import JsonObject, Message, Part, Text, Thinking, ToolCall, ToolResult, Usage
from jackstay.core.transcript import Transcript
from jackstay.core.wire import convert, decode_json
from jackstay.engine.ports import ModelRequest, Reply, Stop, Tell
from jackstay.models.assemble import CUT, read_args

_PIECE = re.compile(r"\S+\s*|\s+")  # text streams word by word


class ScriptedCall(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A call of a turn. `raw` is argument text as a model wrote it, malformed if that is the point."""

    tool: str
    args: JsonObject = {}
    id: str = ""
    raw: str | None = None


class ScriptedError(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A failure instead of an answer."""

    kind: ErrorKind = "server"
    message: str = "the script says so"
    status: int | None = None
    retry_after_s: float | None = None


class Turn(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One answer. `error` is a kind, an HTTP status or both with more; `wait_s` is how long it takes."""

    say: str = ""
    calls: tuple[ScriptedCall, ...] = ()
    error: ErrorKind | int | ScriptedError | None = None
    when: str | None = None
    think: str = ""
    stop: Stop | None = None
    usage: Usage = Usage()
    wait_s: float = 0.0

    def __str__(self) -> str:
        said = [repr(self.say)] if self.say else []
        said += [f"a call of {call.tool!r}" for call in self.calls]
        said += [f"the error {self.error!r}"] if self.error is not None else []
        words = " and ".join(said) or "nothing"
        return words + (f" when {self.when!r} is found" if self.when is not None else "")


class Script(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """All of a script file."""

    turns: tuple[Turn, ...]
    context_length: int | None = None


class ScriptedModel:
    """Answers from a script; asked more than the script holds, it fails with an error of kind `script`.

    `requests` are the requests so far, for tests to look at. A new instance that meets a run in the middle (in
    another process, after a restart) goes on behind the turns which that run's messages show to be taken.
    """

    def __init__(
        self, turns: Iterable[Turn | Message | str | Mapping[str, Any]], *, name: str = "script"
    ) -> None:
        self.name = name
        self.context_length: int | None = None
        self.requests: list[ModelRequest] = []
        self._left = [_turn(turn) for turn in turns]

    @classmethod
    def load(cls, path: str) -> "ScriptedModel":
        """The script in this file; raises ConfigError naming file and place when it cannot be read."""
        script = _read(path)
        model = cls(script.turns, name=f"script:{path}")
        model.context_length = script.context_length
        return model

    async def reply(self, request: ModelRequest, tell: Tell) -> Reply:
        """The next turn."""
        if not self.requests:
            self._left = _after(self._left, request.transcript)
        self.requests.append(request)
        turn = self._take(_last_words(request.transcript))
        if turn.wait_s:
            import anyio

            await anyio.sleep(turn.wait_s)
        if turn.error is not None:
            raise ModelError(_error(turn.error))
        for piece in _PIECE.findall(turn.think):
            tell(piece, True)
        for piece in _PIECE.findall(turn.say):
            tell(piece, False)
        return _reply(turn, request, self.name)

    async def close(self) -> None:
        """Nothing to give back."""

    def finish(self) -> None:
        """Raises ScriptError when turns were not asked for; conditional ones need not be."""
        waiting = [turn for turn in self._left if turn.when is None]
        if waiting:
            text = (
                f"{len(waiting)} turns of the script were not asked for; the next one was to say {waiting[0]}"
            )
            raise ScriptError(text)

    def _take(self, words: str) -> Turn:
        turn = _next(self._left, words)
        if turn is not None:
            self._left.remove(turn)
            return turn
        expected = "; ".join(str(turn) for turn in self._left) or "nothing more"
        message = f"the script has no turn for request {len(self.requests)}, after {words[:200]!r}: "
        raise ModelError(
            ErrorInfo("script", message + f"it holds {expected} (add a turn, or end the run earlier)")
        )


def _next(turns: Sequence[Turn], words: str) -> Turn | None:
    return next((turn for turn in turns if turn.when is None or re.search(turn.when, words)), None)


def _last_words(transcript: Sequence[Message] | Transcript) -> str:
    for position in range(len(transcript) - 1, -1, -1):
        message = transcript[position]
        if message.role in ("user", "tool"):
            return "\n".join(part.text for part in message.parts if isinstance(part, Text | ToolResult))
    return ""


def _reply(turn: Turn, request: ModelRequest, model: str) -> Reply:
    parts: list[Part] = []
    if turn.think:
        parts.append(Thinking(turn.think, source="script"))
    if turn.say:
        parts.append(Text(turn.say))
    specs = {spec.name: spec for spec in request.tools}
    for call in turn.calls:
        args, problem = (call.args, None) if call.raw is None else read_args(call.raw, specs.get(call.tool))
        if turn.stop == "length" and call is turn.calls[-1]:
            args, problem = {}, CUT
        parts.append(ToolCall(call.id, call.tool, args, problem, call.raw if problem else None))
    if not parts:
        raise ModelError(ErrorInfo("empty_reply", "the script answered with neither text nor calls"))
    stop = turn.stop or ("calls" if turn.calls else "end")
    return Reply(Message("assistant", tuple(parts)), turn.usage, stop, model)


def _error(error: ErrorKind | int | ScriptedError) -> ErrorInfo:
    match error:
        case int():
            from jackstay.models.faults import Fault, kind_of

            kind = kind_of(error, Fault(""))
            return ErrorInfo(kind, f"the script answered {error}", error)
        case str():
            return ErrorInfo(error, f"the script failed with {error}")
        case ScriptedError():
            kind = error.kind
            return ErrorInfo(kind, error.message, error.status, error.retry_after_s)


# -- a run that is met in the middle -----------------------------------------------------------------------


def _after(turns: list[Turn], transcript: Transcript) -> list[Turn]:
    """The turns that are left once those that this run's own messages came from are taken away.

    A run counts from its last real user message. Where messages before it came from the script as well, as
    many of them as fit are counted too.
    """
    messages = list(transcript)
    asked = [i for i, m in enumerate(messages) if m.role == "user" and m.note is None]
    said = [i for i, m in enumerate(messages) if m.role == "assistant"]
    own = [i for i in said if i > asked[-1]] if asked else said
    if not own:
        return turns
    for first in range(len(said) - len(own) + 1):
        if (left := _without(turns, messages, said[first:])) is not None:
            return left
    return turns


def _without(turns: list[Turn], messages: list[Message], said: list[int]) -> list[Turn] | None:
    left = list(turns)
    for position in said:
        words = _last_words(messages[:position])
        while (turn := _next(left, words)) is not None and turn.error is not None:
            left.remove(turn)
        if turn is None or not _is_from(messages[position], turn):
            return None
        left.remove(turn)
    return left


def _is_from(message: Message, turn: Turn) -> bool:
    """Arguments and redacted text may have been changed since; the tools called have not."""
    if turn.calls:
        return [call.tool for call in message.calls] == [call.tool for call in turn.calls]
    return not message.calls and message.text == turn.say


# -- reading -----------------------------------------------------------------------------------------------


def _turn(turn: Turn | Message | str | Mapping[str, Any]) -> Turn:
    match turn:
        case Turn():
            made = turn
        case str():
            made = Turn(say=turn)
        case Message():
            calls = tuple(ScriptedCall(call.tool, call.args, call.call_id) for call in turn.calls)
            made = Turn(say=turn.text, calls=calls)
        case _:
            try:
                made = convert(dict(turn), Turn)
            except msgspec.ValidationError as problem:
                raise ConfigError(f"a turn of the script does not fit: {problem}") from problem
    _check(made, "")
    return made


def _check(turn: Turn, where: str) -> None:
    if turn.when is not None:
        try:
            re.compile(turn.when)
        except re.error as problem:
            text = f"`when` of a script turn is no pattern: {turn.when!r}: {problem}"
            raise ConfigError(text, where=where) from problem


def _read(path: str) -> Script:
    try:
        text = Path(path).expanduser().read_text("utf-8")
    except (OSError, UnicodeDecodeError) as problem:
        raise ConfigError(f"the model script cannot be read: {problem}", where=path) from problem
    plain = _plain(text, path)
    if isinstance(plain, list):
        plain = {"turns": plain}
    try:
        script: Script = convert(plain, Script)
    except msgspec.ValidationError as problem:
        hint = 'a script is {"turns": [{"say": "text", "calls": [{"tool": "ls", "args": {}}]}]}'
        raise ConfigError(f"the model script does not fit: {problem}", hint=hint, where=path) from problem
    for turn in script.turns:
        _check(turn, path)
    return script


def _plain(text: str, path: str) -> Any:
    if path.endswith(".json"):
        try:
            return decode_json(text)
        except ValueError as problem:
            raise ConfigError(f"the model script is not JSON: {problem}", where=path) from problem
    import yaml

    try:
        return yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    except yaml.YAMLError as problem:
        raise ConfigError(f"the model script is neither JSON nor YAML: {problem}", where=path) from problem
