"""What of a text may be shown while it still comes in? Word by word, without the secrets in it."""

from jackstay.policy.keywords import FOUND, Reading
from jackstay.policy.secrets import reading, secrets_in

MAX_HELD = 4_000  # characters of one word; a longer one is shown in pieces
MAX_KEPT = 600  # characters looked back over for what explains a secret; twice as many before some are dropped
MAX_KEY = 12_000  # the same for a private key, from its first line on
IN_DOUBT = 100  # characters held back of a line with a keyword, so that it is not read anew each word

_OF_WORDS = "".join(map(chr, range(33, 127)))  # a word may go on; outside ASCII no secret does


class Sieve:
    """Lets a text through as it comes, so that a secret is never shown in part.

    What `feed` and `rest` give is, put together, the text with marks in place of its secrets. It is never
    looser than `redact`, and stricter where only what follows would have shown that something is harmless.
    """

    __slots__ = ("_marked", "_reading", "_seen", "_shown", "_text")

    def __init__(self) -> None:
        self._text = ""  # what is looked at: the end of what came in
        self._shown = 0  # so much of it was shown, or marked
        self._marked = -1  # where the secret begins that was marked last
        self._seen = 0  # so much of it was searched for keywords
        self._reading = reading()  # whether there is one

    def feed(self, piece: str) -> str:
        """What may be shown now that this piece has come."""
        text = self._text = self._text + piece
        start = self._shown
        if len(text) - start > MAX_HELD:
            start = len(text) - MAX_HELD
        end = start + len(text[start:].rstrip(_OF_WORDS))
        if end == start > self._shown:
            end = len(text)  # a word without end
        if self._read(end) is not FOUND:  # the usual case
            shown, self._shown = text[self._shown : end], end
            if len(text) > MAX_KEPT:
                self._forget()
            return shown
        if end - self._shown < IN_DOUBT and text.find("\n", self._shown, end) < 0:
            return ""
        return self._let_through(end)

    def rest(self) -> str:
        """What was held back, once nothing more comes."""
        return self._let_through(len(self._text))

    def _read(self, end: int) -> Reading:
        if end > self._seen:
            if self._reading is not FOUND:
                self._reading = self._reading.over(self._text[self._seen : end].lower())
            self._seen = end
        return self._reading

    def _let_through(self, end: int) -> str:
        if end <= self._shown:
            return ""
        shown = self._cleaned(end) if self._read(end) is FOUND else self._text[self._shown : end]
        self._shown = end
        if len(self._text) > MAX_KEPT:
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
        """Drop what no secret to come can be part of, now and then."""
        if self._shown < 2 * MAX_KEPT:
            return
        start = self._shown - MAX_KEPT
        key = self._text.rfind("-----BEGIN", max(0, self._shown - MAX_KEY))
        if key >= 0 and "-----END" not in self._text[key:]:
            start = min(start, key)
        if start <= 0:
            return
        self._text = self._text[start:]
        self._shown -= start
        self._seen = self._shown
        self._marked = max(self._marked - start, -1)
        if self._reading is FOUND:
            self._reading = reading().over(self._text[: self._shown].lower())
