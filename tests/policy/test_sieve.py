"""A text that comes in pieces never shows a part of a secret, and is whole in the end."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jackstay.policy.secrets import plain, redact, secrets_in
from jackstay.policy.sieve import MAX_HELD, Sieve
from tests.ward import planted

KEY = plain("ghp_¦R7dKq2LmXv9TzB4nWc8YhJ3sPf6GuE1aQo5i")


def sifted(pieces: list[str]) -> list[str]:
    sieve = Sieve()
    return [*(sieve.feed(piece) for piece in pieces), sieve.rest()]


def cut(text: str, lengths: list[int]) -> list[str]:
    pieces, at = [], 0
    for length in lengths:
        pieces.append(text[at : at + length])
        at += length
    return [*pieces, text[at:]]


def test_words_are_shown_as_they_are_finished() -> None:
    assert sifted(["Hel", "lo wor", "ld, ", "you"]) == ["", "Hello ", "world, ", "", "you"]


def test_a_language_without_blanks_does_not_wait() -> None:
    assert sifted(["我先看", "一下文件a", "。然后"]) == ["我先看", "一下文件", "a。然后", ""]


def test_a_secret_in_pieces_is_one_mark() -> None:
    assert (
        "".join(sifted(["use ", KEY[:3], KEY[3:20], KEY[20:], " please"]))
        == "use [redacted:github-token] please"
    )


def test_a_secret_that_its_line_gives_away() -> None:
    assert (
        "".join(sifted(["pass", 'word = "', "hunter", '2"', "\nnext"]))
        == 'password = "[redacted:password]"\nnext'
    )


def test_a_private_key_is_one_mark_however_many_lines_it_has() -> None:
    key = dict(planted.planted(seed=3, rounds=1))["private key"]
    told = "".join(sifted([piece + "\n" for piece in key.split("\n")]))
    body = [line for line in key.splitlines() if len(line) > 40 and "---" not in line]
    assert body
    assert not any(line in told for line in body)
    assert told.count("[redacted:private-key]") == 1


def test_a_word_without_end_is_not_held_for_ever() -> None:
    sieve = Sieve()
    assert sum(len(sieve.feed("ab1-" * 50)) for _ in range(100)) >= 20_000 - MAX_HELD - 200


@pytest.mark.parametrize(
    "text",
    ["word " * 60_000, '{"key": "value", ' * 20_000, "-----BEGIN PRIVATE KEY-----\n" + "abcd efgh " * 12_000,
     ("x" * 5_000 + "\n") * 60],
    ids=["one line", "full of keywords", "a key that never ends", "long words"],
)  # fmt: skip
@pytest.mark.timeout(30)
def test_no_text_takes_long_word_by_word(text: str) -> None:
    sifted(re.findall(r"\S+\s*|\s+", text))


@given(st.text(alphabet="abc =:\n密码。-", max_size=300), st.lists(st.integers(1, 20), max_size=40))
def test_a_text_without_secrets_comes_out_as_it_went_in(text: str, lengths: list[int]) -> None:
    assert secrets_in(text) != [] or "".join(sifted(cut(text, lengths))) == text


@given(
    st.sampled_from(planted.planted(seed=5, rounds=2)), st.text(alphabet="ab \n.,", max_size=40),
    st.lists(st.integers(1, 12), max_size=40),
)  # fmt: skip
def test_no_secret_survives_any_way_of_cutting(one: tuple[str, str], around: str, lengths: list[int]) -> None:
    text = f"{around}\n{one[1]}\n{around}"
    told = "".join(sifted(cut(text, lengths)))
    for secret in secrets_in(text):
        if secret.kind != "private-key":  # its first words come before anybody can know
            assert text[secret.start : secret.end] not in told
    assert redact(told) == told
