"""In which environment, and inside which walls, does a shell command run?"""

from functools import lru_cache

from jackstay.engine.ports import Launch, Launcher
from jackstay.runtime.options import Options
from jackstay.sandbox.careful import careful
from jackstay.sandbox.named import Sandbox, available, confined, open_sandbox
from jackstay.sandbox.profile import work_view


def command_launcher(options: Options, hidden: tuple[str, ...]) -> Launcher:
    """How `bash` starts its commands; `hidden` places look empty inside a sandbox.

    Commands judged read-only get the neutral environment and, where a sandbox works, a view in which nothing
    can be written. With `sandbox="bwrap"` every other command may write in the workspace only. Raises
    ConfigError when a sandbox that is asked for by name does not work.
    """
    if options.sandbox == "none":
        return careful(None, hidden=hidden)
    if options.sandbox == "auto":
        return _when_needed(hidden)
    box = open_sandbox(options.sandbox)
    return careful(box, hidden=hidden, then=confined(box, work_view(options.workspace, hidden=hidden)))


def _when_needed(hidden: tuple[str, ...]) -> Launcher:
    """Tries the sandbox out when the first command comes, not when an engine is built."""

    def launch(wanted: Launch) -> Launch:
        return careful(_sandbox(), hidden=hidden)(wanted)

    return launch


@lru_cache(1)
def _sandbox() -> Sandbox | None:
    return available()
