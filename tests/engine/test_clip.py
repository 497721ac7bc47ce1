"""Clipping keeps head and tail, fits its bound, and never loses the whole."""

import re

from hypothesis import given
from hypothesis import strategies as st

from jackstay.core.ids import is_call_id
from jackstay.core.messages import Message, Text, Thinking, ToolCall, ToolResult, assistant, observation, user
from jackstay.engine.compaction.clip import clip_message, clip_text, recall_marker, text_id, water_level
from jackstay.engine.compaction.tokens import message_tokens, text_tokens

long_texts = st.builds(
    lambda piece, times: piece * times,
    st.sampled_from(("word ", "数据库，", "カタカナ", "한국어 ", "x", "🙂", "0123456789abcdef", "\n", " ")),
    st.integers(0, 4_000),
)


@given(long_texts, st.integers(0, 2_000))
def test_a_clipped_text_fits_and_its_marker_says_what_is_missing_where(text: str, tokens: int) -> None:
    made = clip_text(text, tokens, recall_marker("c1"))
    if made == text:
        return
    found = re.search(r"\[(\d+) characters left out; recall\('c1', (\d+)\) reads them\]", made)
    assert found is not None
    left_out, offset = int(found[1]), int(found[2])
    head, tail = made[: found.start()].removesuffix("\n"), made[found.end() :].removeprefix("\n")
    assert text_tokens(made) <= max(tokens, text_tokens(recall_marker("c1")(len(text), len(text))) + 2)
    assert text == head + text[offset : offset + left_out] + tail or (text.isspace() and len(head) <= offset)


@given(st.lists(st.integers(0, 500)), st.integers(0, 5_000))
def test_the_level_is_the_largest_that_fits(amounts: list[int], total: int) -> None:
    level = water_level(amounts, total)
    assert sum(min(amount, level) for amount in amounts) <= total
    if any(amount > level for amount in amounts):
        assert sum(min(amount, level + 1) for amount in amounts) > total


def test_a_text_that_fits_comes_back_as_it_is() -> None:
    assert clip_text("short", 100, recall_marker("c1")) == "short"
    assert clip_message(user("short"), 100) is None


def test_observations_of_one_message_are_cut_alike_and_each_kept_under_its_call() -> None:
    message = Message(
        "tool", (ToolResult("a", "one " * 2_000), ToolResult("b", "two " * 2_000), ToolResult("c", "3"))
    )
    cut = clip_message(message, 1_000)
    assert cut is not None
    assert message_tokens(cut.message) <= 1_000
    assert [(one.call_id, one.text) for one in cut.originals] == [("a", "one " * 2_000), ("b", "two " * 2_000)]
    assert cut.message.parts[2] == message.parts[2]


def test_what_providers_take_back_only_unchanged_is_never_cut() -> None:
    thought = Message(
        "assistant", (Thinking("hm " * 5_000, signature="s"), Text("word " * 5_000), ToolCall("a", "b", {}))
    )
    assert clip_message(thought, 100) is None
    assert clip_message(thought, 100, arguments=True) is None


def test_words_without_a_call_are_kept_under_a_name_made_of_them() -> None:
    cut = clip_message(user("word " * 5_000), 300)
    assert cut is not None
    name = text_id("word " * 5_000)
    assert is_call_id(name)
    assert f"recall('{name}', " in cut.message.text
    assert [(one.call_id, one.text) for one in cut.originals] == [(name, "word " * 5_000)]


def test_cutting_twice_still_leads_back_to_the_whole() -> None:
    whole = "word " * 50_000
    once = clip_message(observation(ToolResult("a", whole)), 5_000)
    assert once is not None
    twice = clip_message(once.message, 500)
    assert twice is not None
    assert [one.text for one in once.originals] == [whole]
    assert twice.originals == ()
    result = twice.message.parts[0]
    assert isinstance(result, ToolResult)
    assert result.truncated == len(whole) - len(result.text)


def test_arguments_keep_their_short_values() -> None:
    call = ToolCall("a", "write", {"file_path": "a.py", "content": "word " * 9_000, "mode": 7})
    cut = clip_message(assistant("", call), 400, arguments=True)
    assert cut is not None
    args = cut.message.calls[0].args
    assert (args["file_path"], args["mode"]) == ("a.py", 7)
    assert text_tokens(args["content"]) <= 400
