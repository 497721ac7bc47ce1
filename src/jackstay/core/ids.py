"""What the names of sessions, runs and calls look like."""

import re
from typing import NewType

from jackstay.core.errors import BadSessionId

SessionId = NewType("SessionId", str)
RunId = NewType("RunId", str)
CallId = NewType("CallId", str)

_SESSION_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}\Z")
_LONGEST = 64
_CALL_ID = re.compile(rf"[A-Za-z0-9_-]{{1,{_LONGEST}}}\Z")  # what every provider takes back


def session_id(text: str) -> SessionId:
    """The text as a session id; raises BadSessionId unless it is a plain file-safe name of 1–128 characters."""
    if not _SESSION_ID.match(text) or ".." in text:
        raise BadSessionId(text)
    return SessionId(text)


def is_call_id(text: str) -> bool:
    """Can this id be sent back to every provider unchanged?"""
    plain = text.isascii() and text.isidentifier() and len(text) <= _LONGEST  # most are
    return plain or _CALL_ID.match(text) is not None
