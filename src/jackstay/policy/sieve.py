"""What of a text may be shown while it still comes in? Word by word, without the secrets in it."""

import re

from jackstay.policy.secrets import may_hold_one, secrets_in

MAX_HELD = 4_000  # characters of one word; a longer one is shown in pieces
MAX_KEPT = 12_000  # characters looked back over: the reach of the widest kind
MAX_LINES = 300  # characters of earlier lines that a secret may be explained in
OVERLAP = 24  # longer than any keyword

_UNFINISHED = re.compile(r"[!-~]+\Z")  # a word that may go on; outside ASCII no secret does


class Sieve:
    """Lets a text through as it comes, so that a secret is never shown in part.

    What `feed` and `rest` give is, put together, the text with marks in place of its secrets. It is never
    looser than `redact`, and stricter where only what follows would have shown that something is harmless.
    """

    __slots__ = ("_marked", "_shown", "_suspect", "_text")

    def __init__(self) -> None:
        self._text = ""  # what is looked at: the end of what came in
        self._shown = 0  # so much of it was shown, or marked
        self._marked = -1  # where the secret begins that was marked last
        self._suspect = False  # is there a keyword in it?

    def feed(self, piece: str) -> str:
        """What may be shown now that this piece has come."""
        self._text += piece
        unfinished = _UNFINISHED.search(self._text, max(self._shown, len(self._text) - MAX_HELD))
        end = unfinished.start() if unfinished is not None else len(self._text)
        held = len(self._text) - end
        return self._let_through(end if held < MAX_HELD else len(self._text))

    def rest(self) -> str:
        """What was held back, once nothing more comes."""
        return self._let_through(len(self._text))

    def _let_through(self, end: int) -> str:
        if end <= self._shown:
            return ""
        fresh = self._text[max(0, self._shown - OVERLAP) : end]
        self._suspect = self._suspect or may_hold_one(fresh)
        shown = self._cleaned(end) if self._suspect else self._text[self._shown : end]
        self._shown = end
        self._forget()
        return shown

    def _cleaned(self, end: int) -> str:
        pieces, at = [], self._shown
        for secret in secrets_in(self._text[:end]):
            if secret.end <= at:
                continue
            if secret.start != self._marked:
                pieces += [self._text[at : secret.start], f"[redacted:{secret.kind}]"]
                self._marked = secret.start
            at = secret.end
        return "".join([*pieces, self._text[at:end]])

    def _forget(self) -> None:
        """Drop what no secret to come can be part of."""
        key = self._text.rfind("-----BEGIN", max(0, len(self._text) - MAX_KEPT))
        if key >= 0 and "-----END" not in self._text[key:]:
            start = key
        else:
            line = self._text.rfind("\n", 0, self._shown) + 1
            start = max(self._text.rfind("\n", 0, max(0, line - MAX_LINES)) + 1, len(self._text) - MAX_KEPT, 0)
        start = min(start, self._shown)
        if start <= 0:
            return
        self._text = self._text[start:]
        self._shown -= start
        self._marked = max(self._marked - start, -1)
        self._suspect = may_hold_one(self._text)
