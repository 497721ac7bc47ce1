"""The compression of an agent's context as a switchable part with settings (first seed §3)."""

from typing import Any, ClassVar

from msgspec.structs import replace

from jackstay.engine.compaction.params import CompressionParams, checked
from jackstay.engine.compaction.summary import CompressionStrategy
from jackstay.engine.interceptors import Interceptor


class ContextCompressionInterceptor(Interceptor):
    """Keeps a run's context within the model's window.

    It holds settings; the run compresses with the `params` it finds before each reason turn, and by force
    after the model refused a request as too long. Every setter raises ConfigError for a wrong value before
    anything changes, and returns the interceptor.
    """

    name: ClassVar[str] = "compression"

    def __init__(
        self,
        max_messages: int = 15,
        max_context_ratio: float = 0.75,
        max_retries: int = 3,
        strategy: CompressionStrategy | None = None,
    ) -> None:
        """`max_messages` below 10 count as 10; `max_context_ratio` is in (0, 1].

        `params` are the settings of the moment, as one immutable value.
        """
        self.params: CompressionParams = checked(
            CompressionParams(max_messages, max_context_ratio, max_retries, strategy=strategy)
        )

    @property
    def enabled(self) -> bool:
        """Is the context compressed at all?"""
        return self.params.enabled

    def set_enabled(self, enabled: bool) -> "ContextCompressionInterceptor":
        """Switch compression on or off."""
        return self._set(enabled=bool(enabled))

    def set_max_messages(self, max_messages: int) -> "ContextCompressionInterceptor":
        """How many unpinned messages start a compression; below 10 counts as 10."""
        return self._set(max_messages=max_messages)

    def set_max_context_ratio(self, ratio: float) -> "ContextCompressionInterceptor":
        """Which share of the window starts a compression, in (0, 1]."""
        return self._set(max_context_ratio=ratio)

    def set_thresholds(self, max_messages: int, max_context_ratio: float) -> "ContextCompressionInterceptor":
        """Both at once: a run sees the old pair or the new one."""
        return self._set(max_messages=max_messages, max_context_ratio=max_context_ratio)

    def set_max_retries(self, max_retries: int) -> "ContextCompressionInterceptor":
        """How often a summary is asked for before it is given up; below 1 counts as 1."""
        return self._set(max_retries=max_retries)

    def set_message_trigger_factor(self, factor: float) -> "ContextCompressionInterceptor":
        """How far beyond `max_messages` the number may grow before it counts: at least 1.0."""
        return self._set(message_trigger_factor=factor)

    def set_min_reserved_messages(self, count: int) -> "ContextCompressionInterceptor":
        """How many of the newest messages always stay; 0 or less derives it from the window."""
        return self._set(min_reserved_messages=count)

    def set_per_message_cap(self, tokens: int) -> "ContextCompressionInterceptor":
        """Above how many tokens a message is cut to head and tail; 0 derives it from the window."""
        return self._set(per_message_cap=tokens)

    def set_default_context_length(self, tokens: int) -> "ContextCompressionInterceptor":
        """The window of a model that does not say its own, in tokens."""
        return self._set(default_context_length=tokens)

    def set_strategy(self, strategy: CompressionStrategy | None) -> "ContextCompressionInterceptor":
        """Who summarises what has no room; None drops it without a summary."""
        return self._set(strategy=strategy)

    def copy_with(self, max_messages: int) -> "ContextCompressionInterceptor":
        """Another interceptor with the same settings but this threshold; the strategy object is shared."""
        twin = ContextCompressionInterceptor()
        twin.params = checked(replace(self.params, max_messages=max_messages))
        return twin

    def _set(self, **values: Any) -> "ContextCompressionInterceptor":
        self.params = checked(replace(self.params, **values))
        return self
