"""Components add closing items; the document that shows them is kept up to date."""

from pathlib import Path

import pytest

from jackstay.core.errors import ConfigError
from jackstay.policy.checklist import SEVEN, required_ids
from jackstay.ward.lifecycle import BEGIN, END, block, check, checklist, read_registry, sync

TOML = r"""
[[components]]
name = "shop"
[[components.lifecycle.closure]]
id = "smoke_test"
check = "the smoke test passes \\d times"
command = "make smoke"
[[components.lifecycle.closure]]
id = "changelog"
check = "the changelog has a line"
severity = "recommended"

[[components]]
name = "old"
stage = "deprecated"
[[components.lifecycle.closure]]
id = "gone"
check = "never shown"
"""
YAML = "components:\n- name: shop\n  lifecycle:\n    closure:\n    - {id: smoke_test, check: the smoke test passes}\n"


@pytest.fixture
def registry(tmp_path: Path) -> Path:
    file = tmp_path / "registry.toml"
    file.write_text(TOML)
    return file


def test_items_of_components_in_use_are_added_to_the_seven(registry: Path) -> None:
    items = checklist(read_registry(registry))
    assert items[:7] == SEVEN
    assert [(item.id, item.severity, item.component) for item in items[7:]] == [
        ("smoke_test", "required", "shop"),
        ("changelog", "recommended", "shop"),
    ]
    assert required_ids(items)[-1] == "smoke_test"


def test_yaml_and_json_say_the_same(tmp_path: Path) -> None:
    yaml, json = tmp_path / "r.yaml", tmp_path / "r.json"
    yaml.write_text(YAML)
    json.write_text(
        '{"components": [{"name": "shop", "lifecycle": {"closure": [{"id": "smoke_test", "check": "the smoke test passes"}]}}]}'
    )
    assert read_registry(yaml) == read_registry(json)


def test_sync_writes_between_its_marks_and_twice_changes_nothing(registry: Path, tmp_path: Path) -> None:
    document = tmp_path / "SKILL.md"
    document.write_text("# Closing\n\nText before.\n")
    found = read_registry(registry)
    assert "run `jackstay lifecycle sync`" in (check(document, found) or "")
    assert sync(document, found)
    assert check(document, found) is None
    assert not sync(document, found)
    text = document.read_text()
    assert text.startswith("# Closing\n\nText before.\n\n" + BEGIN)
    assert "- [ ] `smoke_test` (required): the smoke test passes \\d times" in text
    assert "never shown" not in text
    document.write_text(text + "\nText after.\n")
    registry.write_text("components = []\n")
    assert sync(document, read_registry(registry))
    assert document.read_text().endswith(END + "\n\nText after.\n")
    assert "No component adds any." in block(read_registry(registry))


@pytest.mark.parametrize(
    ("text", "named"),
    [("components = 3", "components"), ("[[components]]\nstage = 'x'", "components"), ("not toml", "cannot be read"),
     (TOML.replace("smoke_test", "credential_scan"), "one of the seven"), (TOML.replace('"changelog"', '"smoke_test"'), "given twice"),
     (TOML.replace("smoke_test", "Smoke Test"), "small letters"), (TOML.replace("check =", "chek ="), "chek")],
)  # fmt: skip
def test_what_is_wrong_is_named_with_the_file(registry: Path, text: str, named: str) -> None:
    registry.write_text(text)
    with pytest.raises(ConfigError, match=named) as wrong:
        read_registry(registry)
    assert str(registry) in str(wrong.value)


def test_a_missing_document_is_an_error(registry: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="not there"):
        sync(tmp_path / "gone.md", read_registry(registry))
    assert "needs the document" in (check(tmp_path / "gone.md", read_registry(registry)) or "")
