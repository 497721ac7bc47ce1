"""Whatever the text, the analyser answers, in bounded time; the long campaign is bench/fuzz_shell.py."""

from __future__ import annotations

import importlib.util
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jackstay.policy.shell import analyse_command, describe

ROOT = Path(__file__).resolve().parents[3]


def load(name: str):
    spec = importlib.util.spec_from_file_location(name, ROOT / "bench" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_a_short_campaign_raises_nothing_and_is_never_slow():
    fuzz = load("fuzz_shell")
    done, slow = fuzz.campaign(8000, seed=7, longest_s=6)
    assert done > 300
    assert [one[:60] for taken, one in slow if taken > fuzz.SHORT_S] == []


@settings(max_examples=300, deadline=None)
@given(st.text(max_size=80))
def test_any_text_has_a_verdict_with_a_reason_or_none(text):
    verdict = analyse_command(text)
    assert (verdict.reason is None) is verdict.read_only
    assert describe(verdict)["read_only"] is verdict.read_only


@pytest.mark.parametrize(
    "opener", ["(", "$(", "{ ", "`", "${x:-", '"$(', "[[ ", "a=(", "((", "<(", "if ", "<<E "]
)
def test_ten_thousand_deep_nesting_is_answered(opener):
    start = time.perf_counter()
    assert not analyse_command(opener * 10_000).read_only
    assert not analyse_command(opener * (9_990 // len(opener)) + "ls").read_only
    assert time.perf_counter() - start < 5


def test_a_megabyte_is_refused_at_once():
    for text in ("a" * 1_000_000, "ls;" * 350_000, "\x00" * 1_000_000, "é" * 1_000_000, "\ud800" * 100_000):
        start = time.perf_counter()
        assert not analyse_command(text).read_only
        assert time.perf_counter() - start < 0.5


@pytest.mark.parametrize("text", ["ls\x00", "\ud800", "ls \udcff", "\x00", "", "\x7f", "ls\x1b[0m", "\ufeffls"])
def test_texts_that_are_no_commands_are_refused_by_name(text):
    assert not analyse_command(text).read_only
