"""Do the documents say what is so?"""

import os
import re
from pathlib import Path

import pytest

import jackstay
from jackstay.core.effects import Effect
from jackstay.core.events import BaseEvent, Event
from jackstay.core.inputs import Input
from tests.docs.blocks import DOCUMENTS, ROOT, Stage, blocks

NAMES = [str(path.relative_to(ROOT)) for path in DOCUMENTS]
TEXTS = {name: path.read_text("utf-8") for name, path in zip(NAMES, DOCUMENTS, strict=True)}


@pytest.mark.parametrize("name", NAMES)
def test_every_block_runs_and_prints_what_it_says(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    directory = tmp_path / "here"
    directory.mkdir()
    stage = Stage(ROOT / name, directory)
    monkeypatch.chdir(directory)
    environment = stage.environment()
    for variable in set(os.environ) - set(environment):
        monkeypatch.delenv(variable)
    for variable, value in environment.items():
        monkeypatch.setenv(variable, value)
    fences = len(re.findall(r"^```[a-z]", TEXTS[name], re.MULTILINE))
    assert stage.run() == fences


def test_at_most_two_blocks_are_left_out_each_with_a_reason() -> None:
    left_out = [one for path in DOCUMENTS for one in blocks(path) if one.language == "not run"]
    assert len(left_out) <= 2
    assert all(len(one.body.split()) > 3 for one in left_out)


def test_links_inside_the_documents_lead_somewhere() -> None:
    for path in DOCUMENTS:
        prose = re.sub(r"^```.*?^```$", "", path.read_text("utf-8"), flags=re.MULTILINE | re.DOTALL)
        for target in re.findall(r"\]\(([^)\s]+)\)", prose):
            if target.startswith(("http://", "https://")):
                continue
            file, _, anchor = target.partition("#")
            there = (path.parent / file).resolve() if file else path
            assert there.exists(), f"{path.name} links to {target}"
            if anchor:
                assert anchor in anchors(there), f"{path.name} links to {target}"


def anchors(path: Path) -> set[str]:
    """What headings can be linked to as."""
    titles = re.findall(r"^#+ (.+)$", path.read_text("utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).strip().replace(" ", "-") for title in titles}


def test_every_event_is_described_with_all_its_fields() -> None:
    described = dict(re.findall(r"^\| `(\w+)` \| `\w+` \| (.*?) \|", TEXTS["docs/events.md"], re.MULTILINE))
    common = BaseEvent.__struct_fields__
    fields = {
        kind.__struct_config__.tag: [name for name in kind.__struct_fields__ if name not in common]
        for kind in Event.__args__
    }
    assert {tag: re.findall(r"`(\w+)`", text) for tag, text in described.items()} == fields


def test_the_architecture_names_what_there_is() -> None:
    text = TEXTS["docs/architecture.md"]
    for word, union in (("Input", Input), ("Effect", Effect)):
        said = re.search(rf"^{word} +(.*)$", text, re.MULTILINE)
        assert said is not None
        assert said[1].split(" | ") == [kind.__name__ for kind in union.__args__]
    files = re.findall(r"`((?:core|engine|policy|ward|runtime|store)/[\w/]+\.py)`", text)
    assert [name for name in files if not (ROOT / "src/jackstay" / name).exists()] == []
    assert len(files) > 10


def test_every_public_name_is_in_the_documents() -> None:
    everything = "\n".join(TEXTS.values())
    missing = [name for name in jackstay.__all__ if not re.search(rf"\b{name}\b", everything)]
    assert missing == []


def test_every_command_and_option_is_in_the_list_of_commands() -> None:
    import click

    from jackstay.cli.main import group

    text = TEXTS["docs/cli.md"]
    missing = []

    def look(command: click.Command, words: str) -> None:
        if isinstance(command, click.Group):
            context = click.Context(command)
            for name in command.list_commands(context):
                one = command.get_command(context, name)
                assert one is not None
                look(one, f"{words} {name}")
            return
        section = re.search(rf"^### `{words}\b.*?(?=^##|\Z)", text, re.MULTILINE | re.DOTALL)
        if section is None:
            missing.append(words)
            return
        for option in command.params:
            for name in option.opts if isinstance(option, click.Option) else ():
                if f"{name}" not in section[0] and name not in ("--home", "--json"):
                    missing.append(f"{words} {name}")

    look(group, "jackstay")
    assert missing == []


def test_what_people_read_first_is_short() -> None:
    assert len(TEXTS["README.md"].splitlines()) <= 70
    assert len(TEXTS["CONTRIBUTING.md"].splitlines()) < 120
