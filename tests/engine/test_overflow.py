"""Overflow is told from what only looks like it, for every provider of the corpus."""

import tomllib
from pathlib import Path
from typing import Any

import pytest

from jackstay.engine.overflow import is_overflow, is_silent_overflow, limit_named_in

CASES: list[dict[str, Any]] = tomllib.loads(
    (Path(__file__).parents[1] / "corpus" / "overflow.toml").read_text(encoding="utf-8")
)["case"]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["provider"])
def test_every_text_of_the_corpus_is_told_apart_and_its_limit_read(case: dict[str, Any]) -> None:
    told = (is_overflow(case.get("status"), case.get("code"), case["text"]), limit_named_in(case["text"]))
    assert told == (case["overflow"], case.get("limit"))


@pytest.mark.parametrize(
    "fragment",
    [
        "maximum context length", "context_length_exceeded", "too many tokens", "exceeds the max_model_len",
        "reduce the length", "prompt is too long", "input length exceeds context window",
        "input is too long for requested model", "input length and `max_tokens` exceed context limit",
        "too many total text bytes", "exceeds the maximum number of tokens", "too large for model",
        "exceeds the available context", "slot context", "n_ctx", "kv cache", "truncating input",
        "context window exceeds limit", "tokens in request more than max tokens allowed",
        "exceed model maximum", "exceeds customer model maximum", "exceeded model maximum",
        "超过最大长度", "上下文长度", "exceed_context_size", "input_too_long", "request_too_large",
    ],
)  # fmt: skip
def test_every_fragment_that_the_field_knows_is_recognised_in_any_case(fragment: str) -> None:
    assert is_overflow(400, None, f"Error: {fragment.upper()} (request 7)")


def test_a_code_decides_before_any_text() -> None:
    assert is_overflow(429, "context_length_exceeded", "tokens per minute")
    assert not is_overflow(400, "rate_limit_exceeded", "prompt is too long")


def test_a_normal_stop_with_the_window_full_is_a_silent_overflow() -> None:
    assert is_silent_overflow("end", 4096, 4096)
    assert is_silent_overflow("length", 5000, 4096)
    assert not is_silent_overflow("end", 4095, 4096)
    assert not is_silent_overflow("end", 4096, None)
    assert not is_silent_overflow("refused", 4096, 4096)


def test_a_huge_error_page_is_read_in_bounded_time() -> None:
    assert not is_overflow(500, None, "max_tokens " * 200_000)
    assert limit_named_in("9" * 1_000_000) is None
