"""Marks stand for secrets, and what a person changed around them gets the secrets back."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jackstay.policy.masking import redact_value, unredacted
from jackstay.policy.secrets import plain
from tests.ward import planted

KEY = plain("ghp_¦R7dKq2LmXv9TzB4nWc8YhJ3sPf6GuE1aQo5i")
OTHER = plain("ghp_¦k3Jd8sLq0ZxVb7NmYt5RwPa2HgUe9Cf4Ti6o")
MARK = "[redacted:github-token]"


def test_arguments_without_secrets_are_the_same_object() -> None:
    args = {"command": "ls -la", "env": {"HOME": "/tmp"}, "list": [1, None, "a"], "token": "", "key": 3}
    assert redact_value(args) is args


def test_a_secret_known_by_its_key_is_taken_out_each_time_it_comes() -> None:
    """What was looked through once is remembered as an equal text, not as the same one."""
    for _ in range(3):
        args = {"password": "".join(["q9LmXv", "Z8f3kT2s"])}
        assert redact_value(args) == {"password": "[redacted:password]"}


def test_arguments_without_secrets_stay_the_same_object_each_time_they_come() -> None:
    for _ in range(3):
        args = {"command": "".join(["ls -la ", "src/jackstay"]), "list": ["".join(["tests/", "policy"])]}
        assert redact_value(args) is args


def test_what_a_person_changed_around_a_mark_gets_the_secret_back() -> None:
    real = {"command": f"curl -H 'x: {KEY}' https://a.example/", "env": {"password": "hunter2"}, "n": [KEY]}
    shown = redact_value(real)
    assert shown == {
        "command": f"curl -H 'x: {MARK}' https://a.example/", "env": {"password": "[redacted:password]"},
        "n": [MARK],
    }  # fmt: skip
    changed = {**shown, "command": f"curl -sH 'x: {MARK}' https://b.example/", "timeout": 5}
    assert unredacted(changed, real) == {
        "command": f"curl -sH 'x: {KEY}' https://b.example/", "env": {"password": "hunter2"}, "n": [KEY],
        "timeout": 5,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("text", "real", "wanted"),
    [
        (f"{MARK} {MARK}", f"{KEY} {OTHER}", f"{KEY} {OTHER}"),
        (f"{MARK}", f"{KEY} {OTHER}", f"{MARK}"),  # which of the two?
        (f"{MARK} {MARK}", f"{KEY}", f"{MARK} {MARK}"),
        ("[redacted:jwt]", f"{KEY}", "[redacted:jwt]"),
        ("nothing", f"{KEY}", "nothing"),
        (MARK, None, MARK),
    ],
)
def test_a_mark_that_could_stand_for_several_stays(text: str, real: str | None, wanted: str) -> None:
    assert unredacted({"a": text}, {"a": real}) == {"a": wanted}


@given(st.sampled_from(planted.planted(seed=11, rounds=2)), st.text(alphabet="ab \n.,", max_size=30))
def test_what_was_shown_and_left_alone_is_what_runs(one: tuple[str, str], around: str) -> None:
    real = {"content": f"{around}{one[1]}{around}", "password": one[1]}
    assert unredacted(redact_value(real), real) == real
