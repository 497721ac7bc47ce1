"""What a tool says of itself before anybody runs it."""

from typing import Literal

import msgspec

from jackstay.core.messages import JsonObject

Effect = Literal["reads", "writes", "executes", "network"]
ALL_EFFECTS: frozenset[Effect] = frozenset({"reads", "writes", "executes", "network"})
READS: frozenset[Effect] = frozenset({"reads"})


class ToolSpec(msgspec.Struct, frozen=True, gc=False):
    """A tool's declaration.

    `parameters` is a JSON schema of an object. `effects` is what a call may do: a tool that does not say has
    all of them. `idempotent` means that running a call again after a crash changes nothing more. `timeout_s`
    bounds one call. `path_args`, `url_args` and `command_arg` name the arguments that policy looks into.
    `spawns` means that a call hands work to subagents: it goes on where it was after a suspension or a crash.
    """

    name: str
    description: str
    parameters: JsonObject
    effects: frozenset[Effect] = ALL_EFFECTS
    idempotent: bool = False
    timeout_s: float = 120.0
    path_args: tuple[str, ...] = ()
    url_args: tuple[str, ...] = ()
    command_arg: str | None = None
    spawns: bool = False

    @property
    def reads_only(self) -> bool:
        """Do calls only look? Such calls may run side by side."""
        return self.effects <= READS
