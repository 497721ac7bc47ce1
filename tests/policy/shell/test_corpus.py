"""Every labelled command gets the verdict its label says."""

from __future__ import annotations

import re
from collections import Counter

from jackstay.policy.shell import analyse_command
from jackstay.policy.shell.effects import HARMLESS

from .corpus import corpus

CRITICAL = {
    "redirect-write", "substitution-write", "quoting-exec", "heredoc-exec", "env-exec", "function-shadow",
    "unicode",
    "unparsable", "unknown-cmd", "agent-write",
}  # fmt: skip

_MARKS = re.compile(r"[\"'\\\n]")


def test_no_command_that_does_more_than_read_is_accepted():
    wrong = [line for line in corpus() if not line.read_only and analyse_command(line.command).read_only]
    assert wrong == []


def test_readers_are_accepted():
    wrong = [
        (line.group, line.command)
        for line in corpus()
        if line.read_only and not analyse_command(line.command).read_only
    ]
    assert wrong == []


def test_every_refusal_names_the_words_that_caused_it():
    for line in corpus():
        verdict = analyse_command(line.command)
        if verdict.read_only:
            assert verdict.reason is None
        else:
            assert verdict.reason is not None
            assert verdict.reason.startswith("not read-only: '"), line.command
            against = next(one for one in verdict.effects if one.kind not in HARMLESS)
            assert verdict.reason == f"not read-only: '{against.evidence}' {against.says}"
            assert names_words_of(line.command, against.evidence), (line.command, verdict.reason)


def names_words_of(command: str, evidence: str) -> bool:
    """Whether what is quoted stands in the command, its quotes, escapes, line breaks and operators aside."""
    if evidence in command:
        return evidence != "" or command == ""
    bare = _MARKS.sub("", command)
    pieces = [_MARKS.sub("", piece).lstrip("<>&|0123456789") for piece in evidence.split()]
    return any(piece in bare for piece in pieces if piece)


def test_readers_that_never_end_are_said_to_be_interactive():
    for line in corpus():
        if line.interactive is not None:
            assert analyse_command(line.command).interactive is line.interactive, line.command


def test_the_corpus_has_every_group_and_both_labels():
    labels = Counter(line.read_only for line in corpus())
    groups = {line.group for line in corpus()}
    assert sum(labels.values()) >= 1500
    assert min(labels.values()) >= 500
    assert groups >= CRITICAL
