"""The estimate holds for every kind of writing, and a provider's count makes it better."""

import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jackstay.core.messages import Image, Message, Text, ToolCall, ToolResult, assistant, observation, user
from jackstay.core.tools import ToolSpec
from jackstay.core.transcript import Transcript
from jackstay.engine.compaction.measure import measured
from jackstay.engine.compaction.tokens import (
    UNCALIBRATED,
    Calibration,
    message_tokens,
    overhead_tokens,
    text_tokens,
    tools_tokens,
)

CORPUS = Path(__file__).parents[1] / "corpus" / "tokens"
COUNTS: dict[str, dict[str, list[int]]] = tomllib.loads((CORPUS / "counts.toml").read_text(encoding="utf-8"))
SAMPLES = sorted(COUNTS["o200k_base"])


def sample(name: str) -> str:
    return (CORPUS / f"{name}.txt").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", SAMPLES)
def test_the_uncalibrated_estimate_is_within_a_tenth(name: str) -> None:
    assert text_tokens(sample(name)) == pytest.approx(COUNTS["o200k_base"][name][0], rel=0.10)  # of the whole


@pytest.mark.parametrize("vocabulary", sorted(COUNTS))
@pytest.mark.parametrize("name", SAMPLES)
def test_after_one_counted_turn_the_estimate_is_within_three_percent(name: str, vocabulary: str) -> None:
    """A request of three observations was counted; the next holds a fourth that nobody has counted."""
    whole, first, second = COUNTS[vocabulary][name]
    text, frame = sample(name), message_tokens(user(""))
    head, tail = text[: len(text) // 2], text[len(text) // 2 :]
    before = Transcript([user(text), user(head)])
    learnt = UNCALIBRATED.learn(whole + first + 2 * frame, measured(before).tokens, len(before))
    after = before.append(assistant(tail))
    estimate = learnt.correct(measured(after).tokens, len(after))
    assert estimate == pytest.approx(whole + first + second + 3 * frame, rel=0.03)


def test_every_sample_has_its_counts() -> None:
    names = sorted(path.stem for path in CORPUS.glob("*.txt"))
    assert all(sorted(counts) == names for counts in COUNTS.values())


def test_a_fresh_count_stands_and_only_what_is_new_is_guessed() -> None:
    counted = Calibration(2.0, length=3, real=900, estimated=450)
    assert counted.correct(450, 3) == 900
    assert counted.correct(500, 4) == 1_000
    assert counted.stale.correct(100, 1) == 200


@pytest.mark.parametrize("count", [0, 5, 100_000])
def test_a_count_that_cannot_be_of_the_whole_request_teaches_nothing(count: int) -> None:
    assert Calibration(1.2, 3, 10, 10).learn(count, 1_000, 7) == Calibration(1.2)


def test_an_overflow_teaches_that_the_request_was_at_least_as_long_as_the_window() -> None:
    assert UNCALIBRATED.at_least(8_000, 4_000) == Calibration(2.0)
    assert Calibration(1.5, 2, 9, 6).at_least(4_000, 4_000) == Calibration(1.5)


def test_pictures_count_by_their_size_up_to_what_providers_charge() -> None:
    def picture(size: int) -> int:
        return message_tokens(Message("user", (Image("image/png", "A" * size),)))

    assert 100 < picture(4_000) < picture(40_000) < 2_000
    assert picture(10_000_000) == picture(1_000_000)


def test_calls_results_and_declarations_count_with_their_frames() -> None:
    call = assistant("", ToolCall("c1", "bash", {"command": "ls -la"}))
    assert message_tokens(call) > text_tokens('{"command":"ls -la"}') + text_tokens("bash")
    assert message_tokens(observation(ToolResult("c1", "total 0"))) > text_tokens("total 0")
    spec = ToolSpec("bash", "Run a command.", {"type": "object", "properties": {"command": {"type": "string"}}})
    assert tools_tokens((spec,) * 50) == 50 * tools_tokens((spec,)) > 500
    assert overhead_tokens("Be brief.", 700, (user("a hint"),)) > 700 + text_tokens("Be brief.a hint")


def test_a_call_with_broken_arguments_counts_what_the_model_wrote() -> None:
    call = ToolCall("c1", "bash", {}, problem="cut off", raw='{"command": "' + "word " * 500)
    assert message_tokens(assistant("", call)) > 500


@given(st.text())
def test_any_text_has_an_estimate_that_is_bounded_by_its_bytes(text: str) -> None:
    assert (1 if text else 0) <= text_tokens(text) <= 3 * len(text.encode("utf-8", "replace")) + 1


@given(st.lists(st.sampled_from("abc").map(user), max_size=12), st.integers(0, 12))
def test_the_running_sum_is_the_sum(messages: list[Message], split: int) -> None:
    transcript = Transcript(messages[:split])
    assert measured(transcript).tokens == sum(map(message_tokens, messages[:split]))
    grown = transcript.append(*messages[split:])
    assert measured(grown).tokens == sum(map(message_tokens, messages))
    assert measured(transcript).tokens == sum(map(message_tokens, messages[:split]))
    assert measured(grown).largest == max(map(message_tokens, messages), default=0)
    assert measured(grown).unpinned == len(messages)


def test_two_branches_of_one_transcript_have_their_own_sums() -> None:
    stem = Transcript([user("one")])
    left, right = stem.append(user("two")), stem.append(user("three and more words"))
    assert measured(left).tokens != measured(right).tokens
    assert measured(right).tokens == sum(map(message_tokens, right))


def test_text_parts_add_up() -> None:
    both = Message("user", (Text("one two"), Text("three four")))
    assert message_tokens(both) >= message_tokens(user("one two"))
