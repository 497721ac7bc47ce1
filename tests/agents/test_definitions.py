"""Agents as files: what they say, what is refused, and which one a name means."""

from pathlib import Path

import pytest

from jackstay.agents.catalog import UnknownAgent, find_agents
from jackstay.agents.definition import AgentDefinition, BadAgent, read_agent
from jackstay.config.trusted import Trust
from jackstay.core.rules import PermissionRule

WHOLE = """---
name: writer
description: >
  writes
  things
tools: Read, Grep
disallowedTools: [Bash]
model: openai:small
max_turns: 4
hidden: true
color: blue
permissionRules:
  - {toolName: bash, behavior: DENY, pattern: "git push *", priority: 5}
  - {tool: write, behavior: ask}
---

You write. Nothing in {braces} or #{braces} is evaluated.
"""


def put(folder: Path, name: str, text: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / f"{name}.md"
    file.write_text(text)
    return file


def test_a_whole_definition(tmp_path: Path) -> None:
    file = put(tmp_path, "other-name", WHOLE)
    where = f"{file}: permission_rules"
    assert read_agent(file, "home") == AgentDefinition(
        name="writer", description="writes things", tools=("Read", "Grep"), disallowed_tools=("Bash",),
        model="openai:small", max_turns=4, hidden=True, origin="home", file=str(file),
        prompt="You write. Nothing in {braces} or #{braces} is evaluated.",
        rules=(
            PermissionRule("bash", "deny", "git push *", 5, origin=where),
            PermissionRule("write", "ask", origin=where),
        ),
    )  # fmt: skip


def test_a_file_without_front_matter_is_a_prompt_named_after_it(tmp_path: Path) -> None:
    file = put(tmp_path, "helper", "You help.\n")
    expected = AgentDefinition(name="helper", prompt="You help.", origin="home", file=str(file))
    assert read_agent(file, "home") == expected


@pytest.mark.parametrize(
    ("front", "told"),
    [
        ("tools: [read", "front matter is not YAML"),
        ("- a", "not a mapping"),
        ("disallowed_tool: bash", "did you mean 'disallowed_tools'?"),
        ("permissionRules: [{tool: bash, behavior: forbid}]", "is not a rule"),
        ("permissionRules: [{tool: bash, behavior: deny, patern: x}]", "is not a rule"),
        ("permissionRules: bash", "expected a list of rules"),
        ("tools: 3", "expected a list of names"),
        ("max_turns: 0", "expected a whole number from 1 up"),
        ("enabled: maybe", "expected true or false"),
        ("name: a/b", "is not 1 to 64 letters"),
        ("isolation: worktree", "there is no field 'isolation'"),
    ],
)
def test_half_of_its_bounds_is_no_agent(tmp_path: Path, front: str, told: str) -> None:
    with pytest.raises(BadAgent, match=told.replace("?", r"\?")):
        read_agent(put(tmp_path, "x", f"---\n{front}\n---\nText.\n"), "home")


def test_an_open_front_matter_and_a_file_of_bytes_are_refused(tmp_path: Path) -> None:
    with pytest.raises(BadAgent, match="not closed"):
        read_agent(put(tmp_path, "x", "---\nname: x\n"), "home")
    (tmp_path / "y.md").write_bytes(b"\xff\xfe\xff")
    with pytest.raises(BadAgent, match="not UTF-8"):
        read_agent(tmp_path / "y.md", "home")


# -- which one a name means --------------------------------------------------------------------------------


@pytest.fixture
def places(tmp_path: Path) -> tuple[Path, Path]:
    project, home = tmp_path / "work", tmp_path / "home"
    home.mkdir(mode=0o700)
    put(
        project / ".jackstay" / "agents",
        "explore",
        "---\ndescription: the project's\nmodel: openai:x\n---\nP.\n",
    )
    put(project / ".jackstay" / "agents", "own", "---\nmodel: openai:x\n---\nP.\n")
    put(home / "agents", "plan", "---\ndescription: the home's\n---\nH.\n")
    return project, home


def origins(project: Path, home: Path, *given: AgentDefinition) -> dict[str, str]:
    return {one.name: one.origin for one in find_agents(given, workspace=str(project), home=home).listed}


def test_an_untrusted_project_adds_agents_without_a_model_and_takes_no_name(places: tuple[Path, Path]) -> None:
    assert origins(*places) == {
        "plan": "home", "bash": "built-in", "explore": "built-in", "general": "built-in", "own": "project",
    }  # fmt: skip
    assert find_agents((), workspace=str(places[0]), home=places[1]).find("own").model is None


def test_a_trusted_project_comes_before_the_home_and_the_program_before_all(places: tuple[Path, Path]) -> None:
    Trust(places[1]).add(places[0])
    found = find_agents((AgentDefinition(name="own"),), workspace=str(places[0]), home=places[1])
    assert (found.find("explore").origin, found.find("explore").model) == ("project", "openai:x")
    assert (found.find("own").origin, found.find("plan").origin) == ("program", "home")


def test_switched_off_hidden_broken_and_unknown_ones(places: tuple[Path, Path]) -> None:
    project, home = places
    put(home / "agents", "general", "---\nenabled: false\n---\n")
    put(home / "agents", "bash", "---\ntools: [read\n---\n")
    put(home / "agents", "secret", "---\nhidden: true\n---\nS.\n")
    found = find_agents((), workspace=str(project), home=home)
    assert [one.name for one in found.listed] == ["plan", "explore", "own"]
    assert found.find("secret").prompt == "S."
    for name, told in (
        ("general", "switched off"),
        ("bash", "not YAML"),
        ("nobody", "known are plan, explore, own"),
    ):
        with pytest.raises(UnknownAgent, match=told):
            found.find(name)


def test_a_link_that_leads_out_is_no_agent(places: tuple[Path, Path], tmp_path: Path) -> None:
    outside = put(tmp_path / "outside", "spy", "You spy.\n")
    (places[1] / "agents" / "spy.md").symlink_to(outside)
    assert "spy" not in origins(*places)
