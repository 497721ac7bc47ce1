"""Permission rules as values; how they match is policy's matter."""

from typing import Literal

import msgspec

Behavior = Literal["allow", "ask", "deny"]
PATTERN_CHARACTERS = frozenset("*?[")


class PermissionRule(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """Allow, ask about or deny the calls of a tool, optionally only those a pattern covers.

    `tool` may be `*`. A pattern without `*`, `?` or `[` matches itself alone; `literal` takes every character
    as it is. `match` and `not_match` are examples that are checked when the rule is loaded. `origin` says
    where the rule comes from: built-in, user, project, session, or a file and line.
    """

    tool: str
    behavior: Behavior
    pattern: str | None = None
    rank: int = 0
    literal: bool = False
    match: tuple[str, ...] = ()
    not_match: tuple[str, ...] = ()
    origin: str = "session"

    @classmethod
    def allow(cls, tool: str, pattern: str | None = None) -> "PermissionRule":
        """Calls of `tool` (that `pattern` covers whole) run without asking."""
        return cls(tool, "allow", pattern)

    @classmethod
    def allow_exactly(cls, tool: str, text: str) -> "PermissionRule":
        """Just this command, path or address, every character taken literally."""
        return cls(tool, "allow", text, literal=True)

    @classmethod
    def ask(cls, tool: str, pattern: str | None = None) -> "PermissionRule":
        """A person decides about calls of `tool` (any part of which `pattern` matches)."""
        return cls(tool, "ask", pattern)

    @classmethod
    def deny(cls, tool: str, pattern: str | None = None) -> "PermissionRule":
        """Calls of `tool` (any part of which `pattern` matches) never run."""
        return cls(tool, "deny", pattern)

    def priority(self, rank: int) -> "PermissionRule":
        """The same rule at another priority; higher ones are asked first."""
        return msgspec.structs.replace(self, rank=rank)

    @property
    def text(self) -> str:
        """The rule as the command line writes it: `allow bash(git status)`."""
        scope = f"({self.pattern})" if self.pattern is not None else ""
        return f"{self.behavior} {self.tool}{scope}"
