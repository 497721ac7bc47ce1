"""A fault of the analyser itself refuses, and says so."""

from __future__ import annotations

from jackstay.policy.shell import verdict


def test_a_fault_is_a_refusal_with_its_cause(monkeypatch):
    def broken(text):
        raise ZeroDivisionError("boom")

    monkeypatch.setattr(verdict, "parse", broken)
    judged = verdict.analyse_command.__wrapped__("ls")
    assert not judged.read_only
    assert "the analyser failed" in judged.reason
    assert "boom" in judged.reason
