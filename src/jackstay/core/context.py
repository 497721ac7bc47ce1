"""What compression remembers of a session between its turns."""

import msgspec


class Calibration(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """What the provider's own counts say about the estimate.

    `factor` is real over estimated. `real` tokens were counted for a request of `length` messages that was
    estimated at `estimated` (with system prompt and tools); 0 when no count is fresh, as after a compression.
    """

    factor: float = 1.0
    length: int = 0
    real: int = 0
    estimated: int = 0

    def learn(self, input_tokens: int, estimated: int, length: int) -> "Calibration":
        """After a reply: the provider counted `input_tokens` where the uncorrected estimate was `estimated`.

        A count that cannot be of the whole request (none, or of a server that counts only what is new) is
        left aside.
        """
        if estimated <= 0 or not 0.3 <= input_tokens / estimated <= 4.0:
            return self.stale
        return Calibration(input_tokens / estimated, length, input_tokens, estimated)

    def at_least(self, tokens: int, estimated: int) -> "Calibration":
        """After an overflow: what was estimated at `estimated` is known to be more than `tokens`."""
        if estimated <= 0 or tokens <= estimated * self.factor:
            return self.stale
        return Calibration(min(4.0, tokens / estimated))

    @property
    def stale(self) -> "Calibration":
        """The factor alone: the messages that were counted are no longer those of the transcript."""
        return Calibration(self.factor) if self.real else self

    def correct(self, estimated: int, length: int) -> int:
        """The corrected estimate for `length` messages: fresh counts stand, the rest is guessed."""
        if self.real and length >= self.length and estimated >= self.estimated:
            return self.real + int((estimated - self.estimated) * self.factor + 0.5)
        return int(estimated * self.factor + 0.5)


UNCALIBRATED = Calibration()


class Memory(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """What compression remembers between turns of the `model`; it starts anew when that changes.

    `window` is what an overflow taught about the real window, 0 for nothing. Until the context has grown to
    `rest_tokens` or `rest_messages` no further pass is tried, since the last one could not gain enough.
    """

    calibration: Calibration = UNCALIBRATED
    window: int = 0
    rest_tokens: int = 0
    rest_messages: int = 0
    model: str = ""
