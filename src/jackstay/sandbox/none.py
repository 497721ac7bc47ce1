"""No sandbox at all: has to be asked for by name."""

from collections.abc import Sequence

from jackstay.sandbox.profile import Profile


class NoSandbox:
    """Runs commands as they are. Nothing falls back to it."""

    name = "none"

    def wrap(self, argv: Sequence[str], profile: Profile) -> tuple[str, ...]:
        """The same words."""
        return tuple(argv)
