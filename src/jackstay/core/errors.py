"""Everything that can go wrong, one sentence each: what happened, with which facts, and what to do."""

from typing import Literal

import msgspec


class JackstayError(Exception):
    """The root of every error this package raises on purpose. Its text says what to do next."""


class ConfigError(JackstayError):
    """A setting is wrong. Names the file, line and key where they are known, and the mend."""

    def __init__(self, problem: str, *, hint: str = "", where: str = "") -> None:
        self.problem, self.hint, self.where = problem, hint, where
        super().__init__(": ".join(filter(None, [where, problem])) + (f" ({hint})" if hint else ""))


class BadSessionId(JackstayError):
    """A session id that could not be used as a plain name."""

    def __init__(self, text: str) -> None:
        self.text = text
        super().__init__(
            f"{text!r} is not a session id: use 1 to 128 letters, digits, '.', '_' or '-', "
            "beginning with a letter or digit, without '..'"
        )


class UnknownSession(JackstayError):
    """No session of this name is stored."""

    def __init__(self, session_id: str) -> None:
        self.session_id = session_id
        super().__init__(f"no session {session_id!r} is stored: `jackstay sessions list` shows those that are")


class EmptyPrompt(JackstayError):
    """A prompt without text. Resuming is asked for by name, never by an empty question."""

    def __init__(self) -> None:
        super().__init__("the prompt is empty: give it some text, or call prompt() without arguments to resume")


class SessionBusy(JackstayError):
    """Another worker runs this session."""

    def __init__(self, session_id: str, owner: str, seconds_left: float) -> None:
        self.session_id, self.owner, self.seconds_left = session_id, owner, seconds_left
        super().__init__(
            f"session {session_id!r} is being run by {owner} (its lease ends in {seconds_left:.0f} s "
            "unless renewed): wait for it, cancel it, or use another session"
        )


class Conflict(JackstayError):
    """Another worker stored a step of this session first."""

    def __init__(self, session_id: str, expected: int, found: int) -> None:
        self.session_id, self.expected, self.found = session_id, expected, found
        super().__init__(
            f"session {session_id!r} moved on from version {expected} to {found} while this worker held it: "
            "load it again and continue from there"
        )


class StoreError(JackstayError):
    """The session store could not be read or written."""


class NewerSchema(StoreError):
    """The data was written by a newer version of this package."""

    def __init__(self, what: str, found: int, known: int) -> None:
        self.what, self.found, self.known = what, found, known
        super().__init__(
            f"{what} was written by a newer jackstay (schema {found}, this one knows {known}): "
            "upgrade jackstay to go on; nothing was changed"
        )


class UnknownCall(JackstayError):
    """A decision about a call that does not wait for one."""

    def __init__(self, session_id: str, call_id: str, waiting: tuple[str, ...]) -> None:
        self.session_id, self.call_id, self.waiting = session_id, call_id, waiting
        others = f"waiting are: {', '.join(waiting)}" if waiting else "nothing waits there"
        super().__init__(f"call {call_id!r} does not wait for a decision in session {session_id!r}; {others}")


class CallClosed(UnknownCall):
    """A decision about a call that waits no more: it was carried out, cancelled, denied or given up."""

    def __init__(self, session_id: str, call_id: str, became: str) -> None:
        self.session_id, self.call_id, self.waiting, self.became = session_id, call_id, (), became
        JackstayError.__init__(
            self,
            f"call {call_id!r} of session {session_id!r} waits no more and nothing was changed; what became of "
            f"it: {became}",
        )


class CallChanged(JackstayError):
    """What waits is not what the person was shown."""

    def __init__(self, session_id: str, call_id: str, what: str) -> None:
        self.session_id, self.call_id, self.what = session_id, call_id, what
        super().__init__(
            f"call {call_id!r} of session {session_id!r} is not what you were shown: {what} changed since; "
            "look at what waits now and decide about that"
        )


class TooLate(JackstayError):
    """The deadline for an answer has passed and the call is denied."""

    def __init__(self, session_id: str, call_id: str, seconds: float) -> None:
        self.session_id, self.call_id, self.seconds = session_id, call_id, seconds
        super().__init__(
            f"the time to answer about call {call_id!r} of session {session_id!r} ended {seconds:.0f} s ago: "
            "it is denied; resume the session, and the model may ask again"
        )


class AlreadyDecided(JackstayError):
    """The first decision about a call stands. `others` counts those submitted with this one, and not stored."""

    def __init__(self, session_id: str, call_id: str, *, others: int = 0) -> None:
        self.session_id, self.call_id, self.others = session_id, call_id, others
        unstored = f"; what was submitted with it ({others} more) was not stored: decide about what still waits"
        super().__init__(
            f"call {call_id!r} of session {session_id!r} has been decided already and the first "
            f"decision stands{unstored if others else ': resume the session to have it carried out'}"
        )


class SubagentSession(JackstayError):
    """A person's request to a session in which a subagent works."""

    def __init__(self, session_id: str, parent: str) -> None:
        self.session_id, self.parent = session_id, parent
        super().__init__(
            f"session {session_id!r} is that of a subagent of {parent!r}: prompt or resume {parent!r} instead, "
            "which goes on with it"
        )


class AmbiguousCall(JackstayError):
    """Waiting calls of several subagents share the id that was given."""

    def __init__(self, call_id: str, keys: tuple[str, ...]) -> None:
        self.call_id, self.keys = call_id, keys
        super().__init__(
            f"{len(keys)} calls named {call_id!r} wait: name one with its session ({', '.join(keys)})"
        )


class AmbiguousTool(JackstayError):
    """Several waiting calls share the tool name that was asked for."""

    def __init__(self, tool: str, call_ids: tuple[str, ...]) -> None:
        self.tool, self.call_ids = tool, call_ids
        super().__init__(
            f"{len(call_ids)} calls of {tool!r} wait: name one by its call_id ({', '.join(call_ids)})"
        )


class UnknownTool(ConfigError):
    """A tool name that nothing answers to."""

    def __init__(self, name: str, nearest: str | None) -> None:
        self.name, self.nearest = name, nearest
        super().__init__(
            f"there is no tool {name!r}",
            hint=f"did you mean {nearest!r}?" if nearest else "`jackstay run --help` lists the built-in ones",
        )


class ToolFailed(JackstayError):
    """A tool could not do what was asked. Its text is what the model reads: the cause, and the way on."""


class RunningLoop(JackstayError):
    """The synchronous form was called where an event loop already runs."""

    def __init__(self) -> None:
        super().__init__("an event loop is running in this thread: await .call() or iterate .stream() instead")


class ScriptError(JackstayError):
    """A model script that does not fit its run: a turn too many, too few, or not matching."""


ErrorKind = Literal[
    "auth", "rate_limit", "overflow", "bad_request", "not_found", "server", "timeout", "connection",
    "broken_reply", "empty_reply", "script", "cancelled", "internal",
]  # fmt: skip

RETRYABLE: frozenset[ErrorKind] = frozenset(
    {"rate_limit", "server", "timeout", "connection", "broken_reply", "empty_reply"}
)


class ErrorInfo(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """A failure as a value: what events, the store and the run machine carry."""

    kind: ErrorKind
    message: str
    status: int | None = None
    retry_after_s: float | None = None
    attempts: int = 1

    @property
    def retryable(self) -> bool:
        """Could the same request succeed if it were sent again?"""
        return self.kind in RETRYABLE


class ModelError(JackstayError):
    """A model could not be reached or would not answer; `info` holds the typed facts."""

    def __init__(self, info: ErrorInfo) -> None:
        self.info = info
        super().__init__(info.message)


class RunFailed(JackstayError):
    """A run ended with outcome `failed` where the caller asked for its text."""

    def __init__(self, info: ErrorInfo) -> None:
        self.info = info
        super().__init__(info.message)
