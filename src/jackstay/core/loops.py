"""What loop detection remembers of a session."""

import msgspec


class LoopWindow(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """What loop detection remembers: marks of the last calls and words, and how often it has spoken.

    `trail` are the marks of call and result, a blank between them; `errors` are of tool and error text (empty
    where a call succeeded, no entries at all while every call did), both oldest first; `words` are of replies
    without calls. `found` counts detections and chooses the rung.
    """

    trail: str = ""
    errors: tuple[str, ...] = ()
    words: tuple[str, ...] = ()
    found: int = 0

    @property
    def marks(self) -> tuple[str, ...]:
        """The marks of the last calls."""
        return tuple(self.trail.split())
