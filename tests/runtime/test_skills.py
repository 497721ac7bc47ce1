"""The skill tool: a list, then a text, then a file of it; nothing outside a skill's own directory."""

from pathlib import Path

import anyio
import pytest

from jackstay import HarnessEngine, MemoryStore
from jackstay.core.errors import ToolFailed
from jackstay.runtime.skills import SkillTexts, SkillTool
from jackstay.skills.catalog import Catalog, Place, places
from jackstay.testing import ScriptedModel, call, play, says

OURS = "work-principles:work-principles"


@pytest.fixture
def own(tmp_path: Path) -> Path:
    folder = tmp_path / "skills" / "deploying"
    (folder / "references").mkdir(parents=True)
    (folder / "SKILL.md").write_text("---\nname: deploying\ndescription: How we deploy.\n---\nStep by step.\n")
    (folder / "SKILL.zh.md").write_text("---\nname: deploying\ndescription: 如何部署。\n---\n一步一步。\n")
    (folder / "references" / "hosts.md").write_text("box")
    (tmp_path / "secret").write_text("hunter2")
    (folder / "references" / "link.md").symlink_to(tmp_path / "secret")
    return tmp_path / "skills"


@pytest.fixture
def catalog(own: Path) -> Catalog:
    return Catalog((Place(str(own), "project", "project"), *places(workspace=None, home=None)))


def read(catalog: Catalog, name: str) -> tuple[str, bool]:
    async def ask() -> tuple[str, bool]:
        output = await SkillTool(catalog).run({"name": name}, None)  # type: ignore[arg-type]  # it needs no context
        return output.text, output.is_error

    return anyio.run(ask)


def test_first_the_list_then_a_text_then_a_file_of_it(catalog: Catalog) -> None:
    listed, _ = read(catalog, "")
    assert "- project:deploying: How we deploy." in listed
    assert f"- {OURS}: " in listed
    text, _ = read(catalog, "deploying")
    assert text.startswith("Step by step.")
    assert "- project:deploying/references/hosts.md" in text
    assert read(catalog, "project:deploying/references/hosts.md") == ("box", False)


def test_other_words_search_and_what_is_nowhere_says_so(catalog: Catalog) -> None:
    assert read(catalog, "deploy")[0].startswith(
        "No skill is named 'deploy'; these speak of it:\n- project:deploying"
    )
    assert read(catalog, "cooking") == ("There is no skill 'cooking'; skill('') lists them.", True)


@pytest.mark.parametrize("file", ["../../secret", "references/none.md", "/etc/passwd"])
def test_files_outside_a_skill_are_not_its_own(catalog: Catalog, file: str) -> None:
    with pytest.raises(ToolFailed, match="has no file"):
        read(catalog, f"deploying/{file}")


def test_a_link_out_of_the_skill_is_not_followed(catalog: Catalog) -> None:
    with pytest.raises(ToolFailed, match="leads out of the skill's directory"):
        read(catalog, "deploying/references/link.md")


@pytest.mark.parametrize(
    ("args", "why"), [({}, "name is missing"), ({"name": 1}, "must be a text"), ({"names": "x"}, "'names'")]
)
def test_arguments_that_do_not_fit_are_named(catalog: Catalog, args: dict, why: str) -> None:
    assert why in str(SkillTool(catalog).check(args))


def test_texts_come_in_the_language_asked_for_and_a_broken_skill_is_none(catalog: Catalog, own: Path) -> None:
    texts = SkillTexts(catalog)
    assert texts["deploying", "zh"].strip() == "一步一步。"
    assert texts["deploying", ""].strip() == "Step by step."
    assert texts.get(("cooking", "en")) is None
    (own / "deploying" / "SKILL.md").write_text("no front matter")
    assert texts.get(("deploying", "en")) is None
    assert len(texts) == len(list(texts)) == 7


@pytest.mark.parametrize("name", ["skill", "skill_view", "*"])
def test_it_is_there_by_name_and_alias(tmp_path: Path, name: str) -> None:
    done = play(
        [says(call("skill", name=OURS)), "read"], workspace=str(tmp_path), harness_home=str(tmp_path / "home"),
        tools=(name,),
    )  # fmt: skip
    result = next(message for message in done.state.transcript if message.role == "tool")
    assert "HARNESS" in result.parts[0].text  # type: ignore[union-attr]  # a tool message holds results


@pytest.mark.parametrize(("mode", "offered"), [("strict", True), ("off", False)])
def test_the_discipline_brings_it_along(tmp_path: Path, mode: str, offered: bool) -> None:
    engine = HarnessEngine(
        workspace=str(tmp_path), harness_home=str(tmp_path / "home"), model=ScriptedModel(["x"]),
        session_provider=MemoryStore(), tools=("read",), discipline=mode, installed_extensions=False,
    )  # fmt: skip
    assert ("skill" in engine.agent("main").tools) is offered
