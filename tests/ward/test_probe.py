"""Facts about calls: what the world says, gathered before policy is asked (hard case 12)."""

import os
from pathlib import Path
from typing import Any

import pytest

from jackstay.core.facts import CallFacts, PathFact
from jackstay.core.messages import ToolCall
from jackstay.core.rules import PermissionRule as Rule
from jackstay.core.tools import READS, ToolSpec
from jackstay.policy.permissions import covering, judge
from jackstay.ward.probe import facts_of

READ = ToolSpec("read", "", {}, READS, idempotent=True, path_args=("file_path",))
WRITE = ToolSpec("write", "", {}, frozenset({"writes"}), path_args=("file_path",))
LS = ToolSpec("ls", "", {}, READS, path_args=("path",))
BASH = ToolSpec("bash", "", {}, path_args=("workdir",), command_arg="command")
FETCH = ToolSpec("webfetch", "", {}, frozenset({"network"}), url_args=("url",))
SPECS = {spec.name: spec for spec in (READ, WRITE, LS, BASH, FETCH)}


class Place:
    """A workspace with a home beside it, and the harness's own directory inside that."""

    def __init__(self, root: Path) -> None:
        self.root = root.resolve()
        self.work, self.home = self.root / "work", self.root / "home"
        self.own = self.home / ".local" / "jackstay"
        for directory in (self.work / "src", self.own, self.home / ".ssh"):
            directory.mkdir(parents=True)
        (self.work / "src" / "a.py").write_text("a")
        (self.home / ".ssh" / "id_rsa").write_text("k")

    def facts(self, tool: str, **args: Any) -> CallFacts:
        call = ToolCall("1", tool, args)
        return facts_of(call, SPECS[tool], str(self.work), str(self.home), (str(self.own),))

    def verdict(self, rules: tuple[Rule, ...], tool: str, **args: Any) -> str:
        call = ToolCall("1", tool, args)
        decision = judge(rules, call, self.facts(tool, **args), default="workspace", hitl=True)
        return type(decision).__name__.lower()


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def test_facts_of_a_file_tool(place: Place) -> None:
    real = f"{place.work}/src/a.py"
    assert place.facts("read", file_path="src/a.py") == CallFacts(
        effects=READS, idempotent=True, workspace=str(place.work), cwd=str(place.work), home=str(place.home),
        paths=(PathFact("src/a.py", real, "reads", True),),
    )  # fmt: skip
    assert place.facts("write", file_path="new").paths == (
        PathFact("new", f"{place.work}/new", "writes", True),
    )
    assert place.facts("ls").paths == (PathFact(".", str(place.work), "reads", True),)


def test_facts_of_other_tools_and_of_unknown_ones(place: Place) -> None:
    assert place.facts("webfetch", url="https://x.org").url_args == ("url",)
    unknown = facts_of(ToolCall("1", "nope", {}), None, str(place.work), str(place.home))
    assert unknown == CallFacts(
        known=False, workspace=str(place.work), cwd=str(place.work), home=str(place.home)
    )


def test_arguments_of_the_wrong_kind_do_not_raise(place: Place) -> None:
    assert place.facts("read", file_path=5).paths == (PathFact("5", "", "reads"),)
    assert place.facts("bash", command=5).paths == ()
    assert place.facts("bash", command="ls", workdir=5).paths == (PathFact("5", "", "reads"),)
    assert place.verdict((), "read", file_path="a\0b") == "ask"


@pytest.mark.parametrize("kind", ["leaf", "intermediate", "dangling"])
def test_a_link_to_the_outside_is_outside(place: Place, kind: str) -> None:
    outside = place.root / "outside"
    outside.mkdir()
    target = {"leaf": outside / "x", "intermediate": outside, "dangling": outside / "none"}[kind]
    (outside / "x").write_text("x")
    (place.work / "link").symlink_to(target)
    path = "link/new" if kind == "intermediate" else "link"
    for tool in ("read", "write"):
        assert place.verdict((), tool, file_path=path) == "ask"
        assert place.verdict((Rule.allow(tool, "**"),), tool, file_path=path) == "allow"
        assert place.verdict((Rule.allow(tool, "*"), Rule.allow(tool, "link/*")), tool, file_path=path) == "ask"
        assert place.verdict((Rule.deny(tool, f"{place.root}/outside/**"),), tool, file_path=path) == "deny"
    assert place.verdict((), "bash", command=f"cat {path}") == "ask"
    assert (
        place.verdict((Rule.deny("write", f"{place.root}/outside/**"),), "bash", command=f"ls > {path}")
        == "deny"
    )


def test_a_link_swapped_after_the_check_is_judged_anew(place: Place) -> None:
    call = ToolCall("1", "write", {"file_path": "f"})
    before = place.facts("write", **call.args)
    (place.work / "f").symlink_to("/etc/x")
    after = place.facts("write", **call.args)
    assert [judge((), call, facts, default="workspace", hitl=True).severity for facts in (before, after)] == [
        0,
        1,
    ]


def test_writing_through_a_hard_link_is_not_inside(place: Place) -> None:
    (place.root / "other").write_text("x")
    os.link(place.root / "other", place.work / "linked")
    assert place.verdict((), "bash", command="echo x > linked") == "ask"
    assert place.verdict((), "bash", command="cat linked") == "allow"


def test_nothing_may_write_the_harness_by_whatever_road(place: Place) -> None:
    (place.work / "road").symlink_to(place.own)
    everything = (Rule.allow("*").priority(1000),)
    for command in (
        "echo x > road/sessions.db", "rm -rf ~/.local", "rm -rf $HOME", "mv ~/.local/jackstay /tmp", "cd road; echo > x",
        "cd ..; cd home/.local; rm -rf jackstay", "for f in road/*; do rm $f; done", "cp a ~/.local/jackstay/config.toml",
        "rm -rf road/../jackstay", "sed -i s/a/b/ ~/.claude/settings.json", "echo > ~/.local/jackst*/x",
        "sqlite3 ~/.local/jackstay/sessions.db 'update sessions set head = 0'", "ln -s ~/.local/jackstay/audit link",
        f"python3 -c \"open('{place.own}/x', 'w')\"", f"some-program --file={place.own}/x", "some-program road/x",
    ):  # fmt: skip
        (place.own / "x").write_text("x")
        assert place.verdict(everything, "bash", command=command) == "deny", command
    assert place.verdict(everything, "write", file_path="road/x") == "deny"
    assert place.verdict(everything, "read", file_path="road/x") == "allow"
    assert place.verdict(everything, "bash", command="cat ~/.local/jackstay/x road/x | head") == "allow"
    assert place.verdict(everything, "bash", command="some-program ~/.local/other") == "allow"


@pytest.mark.parametrize(
    ("command", "paths"),
    [
        ("cat src/a.py", [("src/a.py", "work/src/a.py")]),
        ("cat src/*.py", [("src/*.py", "work/src/a.py")]),
        ("cat src/*.none", [("src/*.none", "work/src/*.none")]),
        ("cd src; cat a.py", [("src", "work/src"), ("src", "work/src/src"), ("a.py", "work/a.py"), ("a.py", "work/src/a.py")]),
        ("cat ~/.ssh/id_rsa", [("~/.ssh/id_rsa", "home/.ssh/id_rsa")]),
        ("cat ~/.s?h/id*", [("~/.s?h/id*", "home/.ssh/id_rsa")]),
        ("rm $X", [("$X", "")]),
        ("cd $X; rm a", [("$X", ""), ("a", "")]),
    ],
)  # fmt: skip
def test_where_the_words_of_a_command_lead(place: Place, command: str, paths: list[tuple[str, str]]) -> None:
    found = [
        (fact.said, fact.real.removeprefix(f"{place.root}/"))
        for fact in place.facts("bash", command=command).paths
    ]
    assert found == paths


def test_a_pattern_that_names_very_many_files_cannot_be_told(place: Place) -> None:
    for number in range(150):
        (place.work / "src" / f"{number}.txt").touch()
    assert place.facts("bash", command="rm src/*.txt").paths == (PathFact("src/*.txt", "", "deletes"),)


def test_a_command_in_another_directory(place: Place) -> None:
    facts = place.facts("bash", command="touch a", workdir="src")
    assert (facts.cwd, facts.paths) == (
        f"{place.work}/src", (PathFact("a", f"{place.work}/src/a", "writes", True),)
    )  # fmt: skip
    outside = place.facts("bash", command="ls", workdir="..")
    assert outside.paths[0] == PathFact("..", str(place.root), "reads")
    assert place.verdict((), "bash", command="ls", workdir="..") == "ask"
    assert (
        covering((Rule.allow("bash", "touch *"),), ToolCall("1", "bash", {"command": "touch a"}), facts)
        is not None
    )


def test_effects_of_a_command_are_those_it_has(place: Place) -> None:
    assert place.facts("bash", command="ls | wc -l").effects == READS
    assert place.facts("bash", command="touch a").effects == {"reads", "writes"}
    assert place.facts("bash", command="make").effects == BASH.effects


def test_the_strangers_tilde(place: Place) -> None:
    assert place.verdict((), "read", file_path="~/../../../../etc/passwd") == "ask"
    assert place.verdict((), "read", file_path="~root/../etc/passwd") == "ask"
