"""Settings in layers: what is wrong is named, and a project may only narrow."""

from pathlib import Path

import pytest

from jackstay.config.load import load, read
from jackstay.config.model import Config, ModelSettings
from jackstay.config.trusted import Trust
from jackstay.core.errors import ConfigError
from jackstay.core.rules import PermissionRule

BASE = Config(tools=("read", "write", "bash"), hitl=True, discipline="strict", max_turns=20)


class Place:
    """A home and a project."""

    def __init__(self, folder: Path) -> None:
        self.home, self.project = folder / "home", folder / "project"
        self.home.mkdir(mode=0o700)
        (self.project / ".jackstay").mkdir(parents=True)

    def user(self, text: str) -> None:
        (self.home / "config.toml").write_text(text)

    def own(self, text: str) -> None:
        (self.project / ".jackstay" / "config.toml").write_text(text)

    def load(self) -> tuple[Config, tuple[str, ...]]:
        loaded = load(self.home, self.project, base=BASE)
        return loaded.config, loaded.warnings


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


WRONG = [
    ("modle = 'x'", 1, "modle: there is no such key (did you mean 'model'?)"),
    ("\n\nmax_turns = 'many'", 3, "max_turns: 'many' does not fit (it must be a whole number from 1 up)"),
    ("max_turns = true", 1, "max_turns: True does not fit (it must be a whole number from 1 up)"),
    ("max_turns = 0", 1, "max_turns: 0 does not fit (it must be a whole number from 1 up)"),
    ("max_cost = inf", 1, "max_cost: inf does not fit (it must be a number above 0)"),
    ("hitl = 'yes'", 1, "hitl: 'yes' does not fit (it must be true or false)"),
    ("discipline = 'hard'", 1, 'discipline: \'hard\' does not fit (it must be one of "strict", "guided", "observe", "off")'),
    ("tools = 'bash'", 1, 'tools: \'bash\' does not fit (it must be a list of texts, like ["read", "bash"])'),
    ("hitl = true\n[models.local]\nbase_url = 'localhost:8080'", 3, "base_url: 'localhost:8080' does not fit"),
    ("[models.local]\nbase_url = 'http://h/v1'\nbase_ulr = 'x'", 3, "base_ulr: there is no such key (did you mean 'base_url'?)"),
    ("[models.local]\nkey_env = 'X'", 1, "models.local: says neither model nor base_url"),
    ("[[rules]]\ntool = 'bash'\nbehaviour = 'deny'", 3, "behaviour: is not a key of a rule (did you mean 'behavior'?)"),
    ("hitl = true\nmodel = gpt", 2, "is not TOML"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "line", "told"), WRONG)
def test_what_is_wrong_is_named_by_file_line_and_key_with_the_mend(
    place: Place, text: str, line: int, told: str
) -> None:
    place.user(text)
    with pytest.raises(ConfigError) as problem:
        place.load()
    where = f"{place.home / 'config.toml'}:{line}: "
    assert str(problem.value).startswith(where + told), str(problem.value)


def test_a_file_that_cannot_be_read_is_no_empty_file(place: Place) -> None:
    (place.home / "config.toml").mkdir()
    with pytest.raises(ConfigError, match="is not a plain file"):
        place.load()
    (place.home / "config.toml").rmdir()
    (place.home / "config.toml").write_bytes(b"model = '\xff'")
    with pytest.raises(ConfigError, match="is not UTF-8"):
        place.load()


def test_without_files_the_base_holds(tmp_path: Path) -> None:
    loaded = load(tmp_path / "none", tmp_path, base=BASE)
    assert (loaded.config, loaded.files, loaded.warnings) == (BASE, (), ())


def test_layers_lie_over_each_other_and_rules_add_up(place: Place) -> None:
    place.user("""
        model = "openai:one"
        max_turns = 10
        max_cost = 2
        [[rules]]
        tool = "bash"
        behavior = "deny"
        pattern = "git push *"
        [models.local]
        base_url = "http://127.0.0.1:1/v1"
        headers = { x-team = "blue" }
    """)
    place.own('max_turns = 5\ndisallowed_tools = ["webfetch"]\n[[rules]]\ntool = "write"\nbehavior = "deny"\n')
    config, warnings = place.load()
    assert warnings == ()
    assert [(rule.tool, rule.pattern) for rule in config.rules] == [("bash", "git push *"), ("write", None)]
    assert (config.model, config.max_turns, config.max_cost) == ("openai:one", 5, 2.0)
    assert (config.tools, config.disallowed_tools) == (("read", "write", "bash"), ("webfetch",))
    assert config.models == {
        "local": ModelSettings(base_url="http://127.0.0.1:1/v1", headers={"x-team": "blue"})
    }


WIDER = (
    'model = "openai:theirs"\nhitl = false\ndiscipline = "off"\nmax_turns = 99\ntools = ["read", "webfetch"]\n'
)


def test_a_project_nobody_trusts_can_only_narrow(place: Place) -> None:
    place.own(WIDER + '[models.x]\nbase_url = "http://h/v1"\n[[rules]]\ntool = "bash"\nbehavior = "allow"\n')
    config, warnings = place.load()
    assert config == Config(tools=("read",), hitl=True, discipline="strict", max_turns=20)
    path = place.project / ".jackstay" / "config.toml"
    refused = {1: "model", 2: "hitl", 3: "discipline", 4: "max_turns", 5: "tools", 6: "models"}
    for line, key in refused.items():
        assert any(text.startswith(f"{path}:{line}: {key}: left out") for text in warnings), (key, warnings)
    assert all("jackstay trust" in text for text in warnings)
    assert len(warnings) == 7


def test_a_trusted_project_says_what_holds_until_its_file_changes(place: Place) -> None:
    place.own(WIDER)
    trust = Trust(place.home)
    trust.add(place.project)
    config, warnings = place.load()
    assert warnings == ()
    assert config == Config(
        model="openai:theirs", tools=("read", "webfetch"), hitl=False, discipline="off", max_turns=99
    )
    place.own(WIDER + "max_seconds = 5\n")
    config, warnings = place.load()
    assert (config.model, config.max_turns, config.max_seconds) == (None, 20, 5)
    assert warnings
    assert not trust.holds(place.project)


def test_a_new_agent_or_skill_has_to_be_trusted_again(place: Place) -> None:
    place.own("max_turns = 3")
    trust = Trust(place.home)
    trust.add(place.project)
    assert trust.holds(place.project)
    (place.project / ".jackstay" / "agents").mkdir()
    (place.project / ".jackstay" / "agents" / "new.md").write_text("…")
    assert not trust.holds(place.project)


def test_a_list_of_trust_that_cannot_be_read_trusts_nobody(place: Place) -> None:
    place.own("max_turns = 3")
    (place.home / "trusted.json").write_text("{")
    with pytest.raises(ConfigError, match="is not a list of projects"):
        place.load()


def test_the_list_of_trust_is_private(place: Place) -> None:
    place.own("max_turns = 3")
    Trust(place.home).add(place.project)
    assert (place.home / "trusted.json").stat().st_mode & 0o077 == 0
    assert Trust(place.home).remove(place.project)
    assert not Trust(place.home).remove(place.project)


def test_a_home_inside_the_workspace_is_never_project_configuration(tmp_path: Path) -> None:
    home = tmp_path / ".jackstay"
    home.mkdir(mode=0o700)
    (home / "config.toml").write_text('model = "openai:mine"\nmax_turns = 50\n')
    loaded = load(home, tmp_path, base=BASE)
    assert (loaded.config.max_turns, loaded.warnings) == (50, ())


def test_rules_know_where_they_come_from(place: Place) -> None:
    path = place.home / "config.toml"
    path.write_text('hitl = true\n\n[[rules]]\ntool = "bash"\nbehavior = "allow"\npattern = "git status"\n')
    found = read(path)
    assert found is not None
    assert found.config.rules == (PermissionRule("bash", "allow", "git status", origin=f"{path}:3"),)
