"""The settings of compression as one value that a run reads whole."""

import math
from functools import lru_cache
from typing import TYPE_CHECKING

import msgspec

from jackstay.core.errors import ConfigError

if TYPE_CHECKING:
    from jackstay.engine.compaction.summary import CompressionStrategy

LEAST_MESSAGES = 10
LEAST_RESERVED = 3


class CompressionParams(msgspec.Struct, frozen=True):
    """When to compress and how far; a snapshot that nothing changes while a run reads it.

    A turn compresses at `max_messages` × `message_trigger_factor` unpinned messages, or at
    `max_context_ratio` of the model's window in tokens. `min_reserved_messages` 0 and `per_message_cap` 0
    are derived from the window. `strategy` None means to drop what has no room, without a summary.
    """

    max_messages: int = 15
    max_context_ratio: float = 0.75
    max_retries: int = 3
    message_trigger_factor: float = 1.0
    min_reserved_messages: int = 0
    per_message_cap: int = 0
    default_context_length: int = 128_000
    enabled: bool = True
    strategy: "CompressionStrategy | None" = None

    @property
    def trigger_messages(self) -> int:
        """The number of unpinned messages that starts a compression; never below `max_messages`."""
        return math.ceil(self.max_messages * self.message_trigger_factor)

    def threshold(self, window: int) -> int:
        """The number of tokens that starts a compression in a window of so many."""
        return int(window * self.max_context_ratio) or 1

    def starts(self, tokens: int, unpinned: int, threshold: int) -> bool:
        """Do so many tokens, or so many unpinned messages, start a compression?"""
        return tokens >= threshold or (unpinned >= self.max_messages and unpinned >= self.trigger_messages)

    def message_cap(self, threshold: int) -> int:
        """Above how many tokens one message is cut; never more than half of what the whole may have."""
        return _message_cap(threshold, self.per_message_cap, self.min_reserved_messages)


@lru_cache(64)
def _message_cap(threshold: int, given: int, reserved: int) -> int:
    if given:
        return max(1, min(given, threshold // 2))
    return max(
        min(2_000, threshold // 4), min(threshold // 2, 2 * threshold // (reserved or LEAST_RESERVED)), 1
    )


def checked(params: CompressionParams) -> CompressionParams:
    """The settings within their ranges; raises ConfigError for what cannot be meant."""
    _need(_finite(params.max_context_ratio) and 0 < params.max_context_ratio <= 1,
          f"max_context_ratio {params.max_context_ratio!r} is not in (0, 1]",
          "give the share of the window at which to compress, such as 0.75")  # fmt: skip
    _need(_finite(params.message_trigger_factor) and params.message_trigger_factor >= 1.0,
          f"message_trigger_factor {params.message_trigger_factor!r} is below 1.0",
          "1.0 compresses at max_messages, 1.5 at half as many again")  # fmt: skip
    for name in ("max_messages", "max_retries", "min_reserved_messages", "per_message_cap"):
        value = getattr(params, name)
        _need(_whole(value), f"{name} {value!r} is not a whole number", "")
    length = params.default_context_length
    _need(_whole(length) and length > 0, f"default_context_length {length!r} is not a positive whole number",
          "give the window in tokens, such as 128000")  # fmt: skip
    reserved = params.min_reserved_messages
    return msgspec.structs.replace(
        params,
        max_messages=max(LEAST_MESSAGES, params.max_messages),
        max_retries=max(1, params.max_retries),
        min_reserved_messages=0 if reserved <= 0 else max(LEAST_RESERVED, reserved),
        per_message_cap=max(0, params.per_message_cap),
    )


def _need(holds: bool, problem: str, hint: str) -> None:
    if not holds:
        raise ConfigError(problem, hint=hint)


def _finite(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)
