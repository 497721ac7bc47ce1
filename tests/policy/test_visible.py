"""Deceptive characters are made visible at one place (hard case 13)."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jackstay.policy.visible import deceptive, visible, visible_args


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("ls -la", "ls -la"),
        ("größe.txt 文件 日本語", "größe.txt 文件 日本語"),
        ("cat \u202egpj.exe", "cat \\u202egpj.exe"),
        ("rm\u200b -rf", "rm\\u200b -rf"),
        ("\x1b[2Kls", "\\e[2Kls"),
        ("ls\rrm x", "ls\\rrm x"),
        ("ls\nrm x", "ls\\nrm x"),
        ("ls" + " " * 200 + "; rm x", "ls ⟨200 blanks⟩ ; rm x"),
        ("ls\u00a0-la", "ls\\xa0-la"),
        ("gооgle.com", "gо⟨like o⟩о⟨like o⟩gle.com"),
        ("ｒm", "ｒ⟨like r⟩m"),
        ("\ufeffls", "\\ufeffls"),
        ("a\U000e0041b", "a\\U000e0041b"),
        ("привет", "привет"),
        ("执行git push；然后—x 等。", "执行git push；然后—x 等。"),
        ("rm –r", "rm –⟨like -⟩r"),
        ("a\u0301\u0301\u0301\u0301", "a\u0301\u0301\\u0301\\u0301"),
    ],
)
def test_what_could_deceive_is_written_out(text: str, shown: str) -> None:
    assert visible(text) == shown


@given(st.text(alphabet=st.sampled_from("aоｒ–⟨ \u202e\x1b\n")))
def test_passing_through_once_more_changes_nothing(text: str) -> None:
    assert visible(visible(text)) == visible(text)


def test_lines_and_indentation_stay_where_asked_but_padding_within_a_line_does_not() -> None:
    assert visible("if x:\n            y", lines=True) == "if x:\n            y"
    assert visible("ls" + " " * 40 + "; rm x", lines=True) == "ls ⟨40 blanks⟩ ; rm x"


def test_every_string_of_the_arguments_passes_through() -> None:
    assert visible_args({"a\u202e": ["b\x1b", 1, {"c": "\u200b"}]}) == {
        "a\\u202e": ["b\\e", 1, {"c": "\\u200b"}]
    }


@given(st.text())
def test_nothing_invisible_is_left(text: str) -> None:
    shown = visible(text)
    assert all(unicodedata.category(char) not in ("Cc", "Cf", "Cs", "Co", "Zl", "Zp") for char in shown)
    assert "        " not in shown


@given(st.text(alphabet=st.characters(min_codepoint=32, max_codepoint=126)).filter(lambda t: " " * 8 not in t))
def test_plain_text_is_left_alone(text: str) -> None:
    assert visible(text) == text
    assert deceptive(text) is None


def test_deceptive_names_the_character() -> None:
    assert deceptive("rm \u202ex") == "an invisible or control character (\\u202e)"
    assert deceptive("pаypal") == "padding or look-alike characters"
    assert deceptive("a\n  b") is None
