"""Which sandbox does a name stand for, and how does a process get into it?"""

from collections.abc import Sequence
from typing import Protocol

from jackstay.core.errors import ConfigError
from jackstay.engine.ports import Launch, Launcher
from jackstay.sandbox.bwrap import Bubblewrap
from jackstay.sandbox.none import NoSandbox
from jackstay.sandbox.profile import Profile


class Sandbox(Protocol):
    """Something that confines processes."""

    name: str

    def wrap(self, argv: Sequence[str], profile: Profile) -> tuple[str, ...]:
        """The words that run `argv` within the profile."""
        ...


def open_sandbox(name: str) -> Sandbox:
    """The sandbox of this name, proven to work: `bwrap`, or `none` where that is wanted.

    Raises ConfigError when it is unknown, missing or not working; never another one in its place.
    """
    match name:
        case "bwrap":
            return Bubblewrap.find()
        case "none":
            return NoSandbox()
        case _:
            raise ConfigError(f"there is no sandbox {name!r}", hint="known: bwrap, none")


def available() -> Sandbox | None:
    """Bubblewrap where it works, for confinement that only backs another guard; None elsewhere."""
    try:
        return Bubblewrap.find()
    except ConfigError:
        return None


def confined(sandbox: Sandbox, profile: Profile) -> Launcher:
    """A launcher that starts every process in the sandbox."""

    def launch(wanted: Launch) -> Launch:
        return Launch(sandbox.wrap(wanted.argv, profile), wanted.cwd, wanted.env)

    return launch
