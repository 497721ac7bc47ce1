"""Names, groups and aliases of tools."""

from pathlib import Path

import pytest

from jackstay.core.errors import ConfigError, UnknownTool
from jackstay.tools.registry import BUILT_IN, ToolChoice, build, expand, narrow
from jackstay.tools.schema import tool


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (["read", "bash", "hitl"], ToolChoice(("read", "bash"), True)),
        (["Read", " LIST ", "todoread", "todowrite"], ToolChoice(("read", "ls", "todo"), False)),
        (["edit"], ToolChoice(("edit", "read", "write"), False)),
        (["pi"], ToolChoice(("read", "write", "edit", "bash"), False)),
        (["*"], ToolChoice(BUILT_IN, False)),
        (["**"], ToolChoice(BUILT_IN, True)),
        (["bash", "*"], ToolChoice(("bash", *(n for n in BUILT_IN if n != "bash")), False)),
        ([], ToolChoice((), False)),
    ],
)
def test_names_groups_and_aliases(names: list[str], expected: ToolChoice) -> None:
    assert expand(names) == expected


def test_provided_tools_belong_to_their_groups_and_keep_their_case() -> None:
    assert expand(["*"], provided=["skill", "recall"]).names == (*BUILT_IN, "skill")
    assert expand(["**"], provided=["skill", "recall"]).names == (*BUILT_IN, "skill", "recall")
    assert expand(["deploy", "subagent"], provided=["Deploy", "task"]).names == ("Deploy", "task")


def test_disallowed_names_expand_the_same_way_but_imply_nothing() -> None:
    assert expand(["*"], disallowed=["PI", "list"]).names == ("glob", "grep", "todo", "webfetch")
    assert expand(["edit", "hitl"], disallowed=["edit", "hitl"]) == ToolChoice(("read", "write"), False)
    assert expand(["read"], disallowed=["websearch"]).names == ("read",)
    with pytest.raises(UnknownTool, match="there is no tool 'baash'"):
        expand(["*"], disallowed=["baash"])


def test_narrowing_keeps_those_that_are_meant_and_there() -> None:
    there = ["read", "write", "bash", "Deploy", "task"]
    assert narrow(None, among=there) == tuple(there)
    assert narrow(["Bash", "edit", "websearch", "deploy"], among=there) == ("read", "write", "bash", "Deploy")
    assert narrow(["*"], disallowed=["PI"], among=there) == ("task",)
    assert narrow([], among=there) == ()
    with pytest.raises(UnknownTool, match="there is no tool 'raed'"):
        narrow(["raed"], among=there)


def test_an_unknown_name_is_an_error_with_the_nearest_known_one() -> None:
    with pytest.raises(UnknownTool, match=r"there is no tool 'gerp' \(did you mean 'grep'\?\)"):
        expand(["read", "gerp"])
    with pytest.raises(UnknownTool, match=r"did you mean 'deploy'\?"):
        expand(["deplyo"], provided=["deploy"])
    with pytest.raises(UnknownTool, match=r"no tool 'zzzz' \(`jackstay run --help` lists"):
        expand(["zzzz"])


@pytest.mark.parametrize(
    "name", ["websearch", "task", "multitask", "generate", "mcp", "lsp", "subagent", "skill"]
)
def test_a_tool_of_the_system_that_is_not_here_is_said_to_be_missing_not_unknown(name: str) -> None:
    with pytest.raises(ConfigError, match="is not part of this set-up") as caught:
        expand([name])
    assert not isinstance(caught.value, UnknownTool)


def test_every_built_in_tool_can_be_built_and_declares_itself(tmp_path: Path) -> None:
    built = build(expand(["*"]), sessions_dir=str(tmp_path))
    declared = {
        t.spec.name: (
            sorted(t.spec.effects),
            t.spec.idempotent,
            t.spec.path_args,
            t.spec.url_args,
            t.spec.command_arg,
        )
        for t in built
    }
    every = ["executes", "network", "reads", "writes"]
    assert declared == {
        "read": (["reads"], True, ("file_path",), (), None),
        "write": (["writes"], True, ("file_path",), (), None),
        "edit": (["reads", "writes"], False, ("file_path",), (), None),
        "glob": (["reads"], True, ("path",), (), None),
        "grep": (["reads"], True, ("path",), (), None),
        "ls": (["reads"], True, ("path",), (), None),
        "bash": (every, False, ("workdir",), (), "command"),
        "todo": ([], True, (), (), None),
        "webfetch": (["network"], False, (), ("url",), None),
    }
    assert all(t.spec.description and t.spec.timeout_s > 0 for t in built)
    arguments = {t.spec.name: list(t.spec.parameters["properties"]) for t in built}
    assert arguments == {
        "read": ["file_path", "offset", "limit"],
        "write": ["file_path", "content"],
        "edit": ["file_path", "old_string", "new_string", "replace_all"],
        "glob": ["pattern", "path"],
        "grep": ["pattern", "path", "glob", "case"],
        "ls": ["path"],
        "bash": ["command", "timeout", "workdir"],
        "todo": ["todos"],
        "webfetch": ["url"],
    }


def test_a_provided_tool_stands_in_for_the_built_in_one(tmp_path: Path) -> None:
    @tool(name="read")
    def mine() -> str:
        return "mine"

    provided = {"read": mine}
    assert build(expand(["read"], provided=provided), sessions_dir=str(tmp_path), provided=provided) == (mine,)
