"""The loop guard of an agent as a switchable part with settings (first seed §5)."""

from collections.abc import Iterable
from typing import Any, ClassVar

from msgspec.structs import replace

from jackstay.core.errors import ConfigError
from jackstay.engine.interceptors import Interceptor
from jackstay.policy.loops import RUNGS, LoopParams

LEAST_REPEAT = 2
LEAST_WINDOW = 4


class StopLoopInterceptor(Interceptor):
    """Notices that an agent repeats itself and tells it so; it neither stops nor suspends the run by default.

    It holds settings; the run weighs its calls with the `params` it finds. Setters raise ConfigError for a
    wrong value before anything changes, and return the interceptor.
    """

    name: ClassVar[str] = "stop_loop"

    def __init__(self, max_repeat: int = 3, window: int = 8) -> None:
        """`max_repeat` equal calls among the last `window` are a loop; they count at least as 2 and 4.

        `params` are the settings of the moment, as one immutable value.
        """
        self.params: LoopParams = _checked(LoopParams(max_repeat, window))

    @property
    def enabled(self) -> bool:
        """Is repetition looked for at all?"""
        return self.params.enabled

    def set_enabled(self, enabled: bool) -> "StopLoopInterceptor":
        """Switch the guard on or off."""
        return self._set(enabled=bool(enabled))

    def set_max_repeat(self, max_repeat: int) -> "StopLoopInterceptor":
        """How many equal calls are a loop; below 2 counts as 2."""
        return self._set(max_repeat=max_repeat)

    def set_window(self, window: int) -> "StopLoopInterceptor":
        """Among how many of the last calls; below 4 counts as 4."""
        return self._set(window=window)

    def set_rungs(self, *rungs: str) -> "StopLoopInterceptor":
        """Which steps follow when it goes on, of `remind` (the default), `replan`, `ask`, `stop`."""
        return self._set(rungs=tuple(rungs))

    def set_polling(self, tools: Iterable[str]) -> "StopLoopInterceptor":
        """Which tools wait for something and may be called again while what they return changes."""
        return self._set(polling=frozenset(tools))

    def _set(self, **values: Any) -> "StopLoopInterceptor":
        self.params = _checked(replace(self.params, **values))
        return self


def _checked(params: LoopParams) -> LoopParams:
    for name in ("max_repeat", "window"):
        value = getattr(params, name)
        if not isinstance(value, int) or isinstance(value, bool):
            problem = f"{name} {value!r} is not a whole number"
            raise ConfigError(problem, hint="StopLoopInterceptor(3, 8) is the usual setting")
    if not params.rungs or any(rung not in RUNGS for rung in params.rungs):
        problem = f"{params.rungs!r} is not a ladder"
        raise ConfigError(problem, hint=f"name one or more of {', '.join(RUNGS)}")
    return replace(
        params, max_repeat=max(LEAST_REPEAT, params.max_repeat), window=max(LEAST_WINDOW, params.window)
    )
