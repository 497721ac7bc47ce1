"""Has one of many words ended in a text that comes in pieces? Read character by character, and none twice."""

from collections.abc import Iterable


class Reading(dict[str, "Reading"]):
    """How far a text has come with one of the words: `reading[char]` is how far with this character more.

    `FOUND` once a word was whole, from then on for good. What was asked once is a plain look-up ever after.
    """

    __slots__ = ("shorter",)

    def __init__(self, shorter: "Reading | None" = None) -> None:
        self.shorter = shorter  # how far with a word that began later; None where none has begun

    def __missing__(self, char: str) -> "Reading":
        further = self if self.shorter is None else self.shorter[char]
        if char.isascii():  # of the others there are too many
            self[char] = further
        return further

    def over(self, text: str) -> "Reading":
        """How far it is after all of this text, in lower case."""
        reading = self
        for char in text:
            reading = reading[char]
        return reading


FOUND = Reading()


def begin(words: Iterable[str]) -> Reading:
    """The reading of a text before its first character."""
    start = Reading()
    for word in words:
        reading = start
        for char in word[:-1]:
            reading = reading.setdefault(char, Reading(start))
            if reading is FOUND:  # another word ends within this one
                break
        else:
            reading[word[-1]] = FOUND
    waiting = [*start.values()]
    for reading in waiting:  # breadth first: what is shorter is ready by then
        for char, longer in [*reading.items()]:
            later = reading.shorter[char] if reading.shorter is not None else start
            if later is FOUND:
                reading[char] = FOUND
            elif longer is not FOUND:
                longer.shorter = later
                waiting.append(longer)
    return start
