"""The law: adding a wrapper, quoting, newline, environment prefix, comment or redirection never loosens a
verdict."""

from __future__ import annotations

import shlex

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jackstay.policy.shell import parse
from jackstay.policy.shell.verdict import judge_facts

from .corpus import corpus

COMPOSITIONS = {
    "after": lambda c: f"ls && {c}",
    "alternative": lambda c: f"false || {c}",
    "before": lambda c: f"{c}\nls",
    "newline": lambda c: f"ls\n{c}",
    "semicolon": lambda c: f"pwd; {c}",
    "piped into": lambda c: f"ls | {c}",
    "piped out": lambda c: f"{c} | cat",
    "background": lambda c: f"{c} &",
    "subshell": lambda c: f"({c}\n)",
    "group": lambda c: f"{{ {c}\n}}",
    "negated": lambda c: f"! {c}",
    "condition": lambda c: f"if {c}\nthen ls; fi",
    "branch": lambda c: f"if true; then {c}\nfi",
    "loop": lambda c: f"for i in 1 2; do {c}\ndone",
    "while": lambda c: f"while {c}\ndo break; done",
    "case": lambda c: f"case x in x) {c}\n;; esac",
    "substitution": lambda c: f"echo $({c}\n)",
    "quoted substitution": lambda c: f'echo "$({c}\n)"',
    "default value": lambda c: f"echo ${{x:-$({c}\n)}}",
    "assignment": lambda c: f"v=$({c}\n)",
    "process substitution": lambda c: f"cat <({c}\n)",
    "here-document": lambda c: f"cat <<EOT_\n$({c}\n)\nEOT_",
    "here-string": lambda c: f'cat <<< "$({c}\n)"',
    "array": lambda c: f"a=($({c}\n)); ls",
    "arithmetic": lambda c: f"echo $(( $({c}\n) ))",
    "bash -c": lambda c: f"bash -c {shlex.quote(c)}",
    "sh -c": lambda c: f"sh -c {shlex.quote(c)}",
    "find -exec": lambda c: f"find . -exec bash -c {shlex.quote(c)} \\;",
    "xargs": lambda c: f"ls | xargs bash -c {shlex.quote(c)}",
    "watch": lambda c: f"watch {shlex.quote(c)}",
    "env": lambda c: f"env {c}",
    "env -i": lambda c: f"env -i LANG=C {c}",
    "prefix": lambda c: f"LANG=C {c}",
    "time": lambda c: f"time {c}",
    "nice": lambda c: f"nice -n 5 {c}",
    "timeout": lambda c: f"timeout 5 {c}",
    "stdbuf": lambda c: f"stdbuf -oL {c}",
    "command": lambda c: f"command {c}",
    "backslash": lambda c: f"\\{c}",
    "comment": lambda c: f"{c} # ls",
    "comment before": lambda c: f"# ls\n{c}",
    "discard": lambda c: f"{c} 2>/dev/null",
    "redirect before": lambda c: f"</dev/null {c}",
    "blank": lambda c: f"  {c}  ",
}


def whole(command: str) -> bool:
    """Whether the text stands on its own: a text that is cut off means something else when more follows."""
    return bool(command.strip()) and not any(
        "parse" in doubt.why or "end is not" in doubt.why for doubt in parse(command).opaque
    )


def read_only(command: str) -> bool:
    return judge_facts(parse(command)).read_only


REFUSED = [line.command for line in corpus() if not line.read_only and whole(line.command)]
ACCEPTED = [line.command for line in corpus() if line.read_only]


@pytest.mark.parametrize("name", COMPOSITIONS)
def test_no_composition_loosens_any_verdict_of_the_corpus(name):
    make = COMPOSITIONS[name]
    assert [command for command in REFUSED if read_only(make(command))] == []


@settings(max_examples=400, deadline=None)
@given(st.sampled_from(REFUSED), st.lists(st.sampled_from(sorted(COMPOSITIONS)), min_size=2, max_size=4))
def test_compositions_of_compositions_do_not_loosen(command, names):
    for name in names:
        command = COMPOSITIONS[name](command)
    assert not read_only(command)


@settings(max_examples=300, deadline=None)
@given(
    st.sampled_from(ACCEPTED),
    st.sampled_from(REFUSED),
    st.sampled_from(["; ", "\n", " && ", " || ", " | ", " & "]),
)
def test_a_reader_beside_a_writer_does_not_cover_it(reader, writer, joint):
    if whole(reader) and "<<" not in reader and "#" not in reader:
        assert not read_only(reader + joint + writer)


@settings(max_examples=300, deadline=None)
@given(
    st.sampled_from(ACCEPTED),
    st.sampled_from(["> out", ">> out", ">| out", "&> out", "2> out", "1> out", "<> out"]),
)
def test_a_redirection_to_a_file_makes_any_reader_a_writer(reader, redirection):
    if "<<" not in reader and "#" not in reader:
        assert not read_only(f"{reader} {redirection}")
        assert not read_only(f"({reader}\n) {redirection}")
