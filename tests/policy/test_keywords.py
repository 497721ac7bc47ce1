"""A word is found wherever it ends, however the text before it begins like others."""

from hypothesis import given
from hypothesis import strategies as st

from jackstay.policy.keywords import FOUND, begin
from jackstay.policy.secrets import reading

FEW = st.text(alphabet="abc", max_size=12)


@given(
    st.lists(st.text(alphabet="abc", min_size=1, max_size=5), min_size=1, max_size=8), st.lists(FEW, max_size=4)
)
def test_found_as_soon_as_one_of_the_words_is_in_the_text(words: list[str], pieces: list[str]) -> None:
    reading, text = begin(words), ""
    for piece in pieces:
        reading, text = reading.over(piece), text + piece
        assert (reading is FOUND) == any(word in text for word in words)


def test_a_text_read_by_one_leaves_nothing_to_the_next() -> None:
    assert begin(["key"]).over("a key") is FOUND
    assert begin(["key"]).over("a ke") is not FOUND
    assert reading().over("passw").over("ord") is FOUND
    assert reading().over("ord") is not FOUND


def test_characters_outside_ascii_are_not_remembered() -> None:
    words = begin(["密码"])
    assert (words.over("密a密码") is FOUND, words.over("一二三四密") is FOUND) == (True, False)
    assert set(words) == {"密", "a"}
