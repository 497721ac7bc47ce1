"""The transcript is a value: sharing what it grows on never shows."""

from hypothesis import given
from hypothesis import strategies as st

from jackstay.core.messages import Message, ToolCall, ToolResult, assistant, observation, user
from jackstay.core.transcript import Transcript


def numbered(count: int) -> list[Message]:
    return [user(f"message {n}") for n in range(count)]


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(1, 3)), max_size=30))
def test_any_tree_of_appends_behaves_like_tuples(growth) -> None:
    values = [(Transcript(), ())]
    for parent, count in growth:
        transcript, plain = values[parent % len(values)]
        more = [user(f"{len(values)}.{n}") for n in range(count)]
        values.append((transcript.append(*more), (*plain, *more)))
    for transcript, plain in values:
        assert tuple(transcript) == plain
        assert len(transcript) == len(plain)
        assert transcript.since(1) == list(plain[1:])
        assert transcript.derived("size", lambda m: len(m.text)) == [len(m.text) for m in plain]
        assert [transcript[index] for index in range(len(plain))] == list(plain)


def test_derived_values_are_made_once_per_message() -> None:
    made: list[str] = []

    def make(message: Message) -> str:
        made.append(message.text)
        return message.text

    transcript = Transcript(numbered(2))
    transcript.derived("k", make)
    longer = transcript.append(*numbered(1))
    assert longer.derived("k", make) == ["message 0", "message 1", "message 0"]
    assert made == ["message 0", "message 1", "message 0"]
    assert transcript.derived("k", make) == ["message 0", "message 1"]


def test_calls_and_results_are_found_by_id() -> None:
    call, result = ToolCall("c", "look", {"x": 1}), ToolResult("c", "seen")
    transcript = Transcript([assistant("", call)]).append(observation(result))
    assert (transcript.call("c"), transcript.result("c"), transcript.call("d")) == (call, result, None)
    amended = transcript.amend(0, assistant("", ToolCall("c", "look", {"x": 2})))
    assert amended.call("c") == ToolCall("c", "look", {"x": 2})
    assert transcript.call("c") == call
