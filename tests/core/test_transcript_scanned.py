from jackstay.core.messages import Message, user
from jackstay.core.transcript import Transcript


def test_a_scan_hands_on_what_was_made_before_and_does_nothing_twice():
    made: list[str] = []

    def running(before: str | None, message: Message) -> str:
        made.append(message.text)
        return (before or "") + message.text

    first = Transcript([user("a"), user("b")])
    second = first.append(user("c"))
    assert second.scanned("k", running) == ["a", "ab", "abc"]
    assert first.scanned("k", running) == ["a", "ab"]
    assert made == ["a", "b", "c"]
    parted = first.append(user("x"))  # the shared list has grown past `first`
    assert parted.scanned("k", running) == ["a", "ab", "abx"]
    assert Transcript().scanned("k", running) == []
