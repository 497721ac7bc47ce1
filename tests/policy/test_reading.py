"""What permission rules get to see of a command line."""

import pytest

from jackstay.policy.lines import read_line
from jackstay.policy.patterns import HOLE


@pytest.mark.parametrize("text", ["ls\n\\rm -r build", "ls\n\\\nrm x", "ls # c\n\\rm x"])
def test_a_command_that_begins_with_a_backslash_on_its_own_line_is_not_an_argument(text: str) -> None:
    line = read_line(text)
    assert line.unproven is not None
    assert line.doubt is not None or ("rm", "x") in [part.words for part in line.parts]


def test_a_line_continued_is_one_command() -> None:
    line = read_line("ls \\\n  -la")
    assert (line.unproven, [part.words for part in line.parts]) == (None, [("ls", "-la")])


def parts(text: str) -> list[tuple[tuple[str, ...], int, bool]]:
    return [(part.words, part.outer, part.plain) for part in read_line(text).parts]


def test_inner_commands_stand_after_the_one_that_starts_them() -> None:
    assert parts("sudo -u x rm a && timeout 5 cat b") == [
        (("sudo", "-u", "x", "rm", "a"), -1, False),
        (("rm", "a"), 0, False),
        (("timeout", "5", "cat", "b"), -1, False),
        (("cat", "b"), 2, True),
    ]
    assert parts("bash -c 'ls; rm x'")[1:] == [(("ls",), 0, False), (("rm", "x"), 0, False)]
    assert parts("nice find . -exec rm {} \\;")[2][:2] == (("rm", HOLE), 1)


def test_redirections_and_powerful_assignments_belong_to_their_command() -> None:
    line = read_line("LANG=C GIT_SSH=x git push 2>&1 > out < in 2>/dev/null")
    assert [(part.assignments, part.redirects) for part in line.parts] == [(("GIT_SSH=x",), ("> out", "< in"))]
    assert [part.exact for part in read_line("PATH=/tmp").parts] == ["PATH=/tmp"]
    assert read_line("i=1").parts == ()


def test_targets_are_spelled_out_as_far_as_the_text_says() -> None:
    def targets(text: str) -> list[tuple[str, str, tuple[str, ...], bool]]:
        return [(t.said, t.use, t.paths, t.globs) for t in read_line(text).targets]

    assert targets("ls > $PWD/x") == [("$PWD/x", "writes", ("./x",), False)]
    assert targets("for f in a b; do rm $f.txt; done") == [("$f.txt", "deletes", ("a.txt", "b.txt"), False)]
    assert targets("d=x; rm $d/y") == [("$d/y", "deletes", ("x/y",), False)]
    assert targets("rm $X") == [("$X", "deletes", (), False)]
    assert targets("HOME=/x; rm $HOME/y") == [("$HOME/y", "deletes", ("~/y", "/x/y"), False)]
    assert targets("cat src/*.py") == [("src/*.py", "reads", ("src/*.py",), True)]


def test_moves_are_told_or_unknown() -> None:
    assert read_line("cd a && cd -- b; pushd c; cd").moves == ("a", "b", "c", "~")
    assert read_line("cd $X; ls").moves == (None,)
    assert read_line("pushd a; popd").moves == ("a", None)


@pytest.mark.parametrize(
    ("text", "effects"),
    [
        ("ls | wc -l", {"reads"}),
        ("curl -I https://x.org", {"reads"}),  # proven read-only: a plain look-up
        ("touch a", {"reads", "writes"}),
        ("pytest", {"reads", "writes", "executes", "network"}),
        ("kill 1", {"reads", "executes"}),
        ("eval $X", {"reads", "writes", "executes", "network"}),
    ],
)
def test_effects_are_those_tools_declare(text: str, effects: set[str]) -> None:
    assert read_line(text).effects == effects


@pytest.mark.parametrize(
    "text", ["ls; $X rm", "ls 'a", "xargs $X", "sudo --strange rm x", "\x00", "ls \u202e x"]
)
def test_what_cannot_be_read_is_a_doubt_that_names_its_words(text: str) -> None:
    assert read_line(text).doubt is not None


@pytest.mark.parametrize("text", ["git log --strange", "pytest -x", "python x.py", "ls -la"])
def test_an_unproven_option_or_program_is_no_doubt_about_what_runs(text: str) -> None:
    assert read_line(text).doubt is None
