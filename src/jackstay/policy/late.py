"""Regular expressions compiled when they are first asked: a process that judges one call asks few of them."""

import re
from typing import Any, cast


def late(pattern: str, flags: int = 0) -> re.Pattern[str]:
    """The same as `re.compile`, later: so is the error of a wrong one, and a test compiles them all."""
    return cast("re.Pattern[str]", _Late(pattern, flags))


class _Late:
    """Becomes the compiled pattern, method by method."""

    def __init__(self, pattern: str, flags: int) -> None:
        self._said = pattern, flags

    def __getattr__(self, name: str) -> Any:
        found = getattr(re.compile(*self._said), name)
        setattr(self, name, found)  # from now on as fast as the pattern itself
        return found
