"""How large is a transcript, in each way that compression looks at it? Every message is measured once."""

import msgspec

from jackstay.core.messages import Message
from jackstay.core.transcript import Transcript
from jackstay.engine.compaction.clip import is_clippable
from jackstay.engine.compaction.tokens import message_tokens


class Measure(msgspec.Struct, frozen=True, gc=False):
    """Of the messages up to one: tokens in all, tokens of the largest that could be cut, how many are unpinned.

    `own` are the tokens of the last of them alone, `messages` is how many they are.
    """

    tokens: int = 0
    largest: int = 0
    unpinned: int = 0
    own: int = 0
    messages: int = 0


NOTHING = Measure()


def measured(transcript: Transcript) -> Measure:
    """The size of the transcript; costs what is new in it."""
    sizes = transcript.scanned("size", _with)
    return sizes[-1] if sizes else NOTHING


def counts(transcript: Transcript) -> list[int]:
    """The tokens of each message."""
    return [size.own for size in transcript.scanned("size", _with)]


def unpinned(message: Message) -> int:
    """1 for a message that takes part in compression."""
    return 0 if message.pinned else 1


def _with(before: Measure | None, message: Message) -> Measure:
    known, own = before or NOTHING, message_tokens(message)
    largest = known.largest
    if own > largest and is_clippable(message):
        largest = own
    free = known.unpinned if message.pinned else known.unpinned + 1
    return Measure(known.tokens + own, largest, free, own, known.messages + 1)
