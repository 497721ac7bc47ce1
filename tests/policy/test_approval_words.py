"""Only plain words of a user approve a plan (second seed §16.3.2: "可以" / "开干")."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jackstay.policy.approval_words import LANGUAGES, about_commit, approves, problems

SPEC_WORDS = ["可以", "开干", "好的", "同意", "批准", "执行吧", "go", "go ahead", "approve", "approved", "yes", "yes do it",
              "yes, do it", "lgtm", "LGTM", "proceed", "ok", "OK", "Ok."]  # fmt: skip
SPEC_COUNTER = [
    "可以吗？",
    "可以吗",
    "ok but first rename it",
    "不可以",
    "don't go ahead",
    "ok?",
    "go ahead?",
    "if the tests pass, go ahead",
]


def test_the_data_s_own_examples_hold() -> None:
    assert problems() == []
    assert set(LANGUAGES) == {"en", "zh"}
    assert all(len(words.approves) >= 15 and len(words.does_not) >= 30 for words in LANGUAGES.values())


@pytest.mark.parametrize("text", SPEC_WORDS)
def test_these_approve(text: str) -> None:
    assert approves(text)
    assert approves(f"  {text} ")
    assert approves(text + "!")


@pytest.mark.parametrize("text", SPEC_COUNTER)
def test_these_do_not(text: str) -> None:
    assert not approves(text)


@given(st.sampled_from(SPEC_WORDS), st.sampled_from(["?", "？", "吗", "吗？", " 吗?", "呢？"]))
def test_a_question_never_approves(word: str, ending: str) -> None:
    assert not approves(word + ending)


@given(
    st.sampled_from(SPEC_WORDS),
    st.sampled_from(
        [
            ", but wait",
            "，但是先等等",
            " only if it is safe",
            "，不过改一下",
            ". Not yet",
            ", and rename it",
            "\nfirst show me the diff",
        ]
    ),
)
def test_a_condition_or_feedback_never_approves(word: str, more: str) -> None:
    assert not approves(word + more)


@given(st.sampled_from(SPEC_WORDS), st.sampled_from(["don't ", "not ", "never ", "不", "别", "没", "do not "]))
def test_a_negation_never_approves(word: str, no: str) -> None:
    assert not approves(no + word)


@given(st.text(max_size=300))
def test_it_never_raises_and_does_not_take_itself_back(text: str) -> None:
    assert isinstance(approves(text), bool)
    assert not approves(text + "?")


@pytest.mark.parametrize(
    ("text", "word"),
    [("commit it", "commit"), ("ok, commit it", "commit"), ("提交吧", "commit"), ("leave uncommitted", "leave"),
     ("Leave it uncommitted, thanks.", "leave"), ("不提交", "leave"), ("先别提交", "leave"), ("don't commit", "leave"),
     ("commit?", ""), ("should I commit it?", ""), ("the commit message is wrong", ""), ("commit it, don't commit it", ""), ("", "")],
)  # fmt: skip
def test_what_a_user_says_about_committing(text: str, word: str) -> None:
    assert about_commit(text) == word
