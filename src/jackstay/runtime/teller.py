"""How are a model's words told while they come? As transient events, without secrets."""

from collections.abc import Callable

from jackstay.core.events import Event, ReasonDeltaEvent
from jackstay.core.state import RunState
from jackstay.policy.sieve import Sieve
from jackstay.runtime.options import Options


class Teller:
    """Publishes the pieces of one reply: what a model adapter is given to tell its words to."""

    def __init__(self, state: RunState, publish: Callable[[Event], None], options: Options) -> None:
        self._run_id, self._session_id = state.run_id, state.session_id
        self._publish, self._now = publish, options.clock
        self._redacts = options.redact_secrets
        self._sieves: dict[bool, Sieve] = {}  # each made when its first piece comes

    def __call__(self, text: str, thinking: bool) -> None:
        """A piece as it comes."""
        if self._redacts:
            text = (self._sieves.get(thinking) or self._begin(thinking)).feed(text)
        if text:
            self._publish(ReasonDeltaEvent(self._run_id, self._session_id, None, self._now(), text, thinking))

    def finish(self) -> None:
        """Nothing more comes of this attempt: tell what was held back."""
        for thinking, sieve in self._sieves.items():
            text = sieve.rest()
            if text:
                self._publish(
                    ReasonDeltaEvent(self._run_id, self._session_id, None, self._now(), text, thinking)
                )

    def _begin(self, thinking: bool) -> Sieve:
        if not thinking:  # thinking comes first: its last word belongs before
            self.finish()
        made = self._sieves[thinking] = Sieve()
        return made
