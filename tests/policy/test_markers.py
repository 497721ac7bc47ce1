"""[HARNESS: …] is declared by position and never by mere containment (second seed §16.3.3)."""

import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jackstay.policy.markers import Marker, markers

CORPUS = tomllib.loads((Path(__file__).parents[1] / "corpus" / "markers.toml").read_text("utf-8"))


@pytest.mark.parametrize(("text", "expected"), CORPUS["declared"])
def test_a_marker_alone_on_a_line_or_at_either_end_is_declared(text: str, expected: list[str]) -> None:
    assert [marker.value for marker in markers(text)] == expected


@pytest.mark.parametrize("text", CORPUS["mentioned"])
def test_a_marker_in_code_quotes_or_running_text_changes_nothing(text: str) -> None:
    assert markers(text) == ()


@given(st.text())
def test_reading_markers_never_raises(text: str) -> None:
    assert all(isinstance(marker, Marker) for marker in markers(text))


@given(st.lists(st.sampled_from(list(Marker)), max_size=6))
def test_markers_on_their_own_lines_are_read_in_order(wanted: list[Marker]) -> None:
    text = "\nsome words in between\n".join(f"[HARNESS: {marker}]" for marker in wanted)
    assert list(markers(text)) == wanted


@given(st.sampled_from(list(Marker)), st.text(alphabet="ab \n", max_size=40))
def test_a_fence_hides_whatever_it_holds(marker: Marker, around: str) -> None:
    assert markers(f"words\n```\n{around}\n[HARNESS: {marker}]\n{around}\n```\nwords") == ()


def test_a_long_text_is_read_in_linear_time() -> None:
    assert markers("[HARNESS: " * 20_000 + "* _ " * 20_000) == ()
    assert markers("'" * 30_000 + '"' * 30_000 + "`" * 30_001 + "[HARNESS: plan] more") == ()
