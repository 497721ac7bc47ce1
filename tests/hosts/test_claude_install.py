"""Install, again, undo: only our entries change, and what people wrote stays as they wrote it."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jackstay.core.errors import ConfigError
from jackstay.hosts.claude_install import COMMANDS, SKILLS
from jackstay.hosts.json_text import plain, put, read, without

BY_HAND = """{
  // mine, do not touch
  "permissions": { "allow": ["Bash(ls:*)"], /* none yet */ "deny": [] },
  "hooks": {
    "PreToolUse": [
      { "matcher": "Bash", "hooks": [ { "type": "command", "command": "audit-my-shell" } ] },
    ],
    "Notification": [{"hooks": [{"type": "command", "command": "beep"}]}]
  },
\t"model":   "opus",
}
"""


class User:
    """A user with an empty home, a project, and our command."""

    def __init__(self, root: Path) -> None:
        self.home, self.project, self.own = root / "user", root / "project", root / "jackstay"
        self.home.mkdir()
        self.project.mkdir()
        self.settings = self.home / ".claude" / "settings.json"

    def jackstay(self, *words: str) -> str:
        env = {"PATH": os.environ["PATH"], "HOME": str(self.home), "JACKSTAY_HOME": str(self.own),
               "PYTHONPATH": os.environ.get("PYTHONPATH", "")}  # fmt: skip
        done = subprocess.run([sys.executable, "-m", "jackstay", "host", *words], cwd=self.project, env=env,
                              capture_output=True, text=True, check=False)  # fmt: skip
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def files(self) -> dict[str, bytes]:
        roots = (self.home, self.project)
        return {str(p): p.read_bytes() for root in roots for p in sorted(root.rglob("*")) if p.is_file()}

    def write(self, text: str) -> None:
        self.settings.parent.mkdir(exist_ok=True)
        self.settings.write_text(text)


@pytest.fixture
def user(tmp_path: Path) -> User:
    return User(tmp_path)


def test_there_and_back_in_an_empty_home(user: User) -> None:
    user.jackstay("install", "claude-code")
    settings = json.loads(user.settings.read_text())
    assert sorted(settings["hooks"]) == [
        "PostToolUse", "PostToolUseFailure", "PreToolUse", "SessionStart", "Stop", "UserPromptSubmit",
    ]  # fmt: skip
    names = {path.parent.name for path in user.home.rglob("SKILL.md")}
    assert names == set(SKILLS)
    assert {path.stem for path in (user.home / ".claude" / "commands").iterdir()} == set(COMMANDS)
    assert list(json.loads((user.home / ".claude.json").read_text())["mcpServers"]) == ["jackstay"]
    user.jackstay("uninstall", "claude-code")
    assert user.files() == {}


def test_hand_written_settings_come_back_byte_for_byte(user: User) -> None:
    user.write(BY_HAND)
    before = user.files()
    user.jackstay("install", "claude-code")
    text = user.settings.read_text()
    assert "// mine, do not touch" in text
    assert "/* none yet */" in text
    commands = [hook["command"] for group in plain(text)["hooks"]["PreToolUse"] for hook in group["hooks"]]
    assert [command for command in commands if "jackstay" not in command] == ["audit-my-shell"]
    (record,) = (user.own / "hosts").glob("claude-code-*.json")
    kept = {edit["path"]: edit["before"] for edit in json.loads(record.read_text())["edits"]}
    assert kept[str(user.settings)] == BY_HAND
    user.jackstay("uninstall", "claude-code")
    assert user.files() == before


def test_twice_is_once(user: User) -> None:
    user.write(BY_HAND)
    before = user.files()
    user.jackstay("install", "claude-code")
    once = user.files()
    user.jackstay("install", "claude-code")
    assert user.files() == once
    user.jackstay("uninstall", "claude-code")
    assert user.files() == before
    assert "nothing to do" in user.jackstay("uninstall", "claude-code")


def test_a_dry_run_writes_nothing(user: User) -> None:
    user.write(BY_HAND)
    before = user.files()
    assert str(user.settings) in user.jackstay("install", "claude-code", "--dry-run")
    assert (user.files(), user.own.exists()) == (before, False)
    user.jackstay("install", "claude-code")
    there = user.files()
    assert "would undo" in user.jackstay("uninstall", "claude-code", "--dry-run")
    assert user.files() == there


def test_what_was_edited_since_is_kept(user: User) -> None:
    """By hand, around our entries: exactly that edit is left. Laid out anew by the host: ours are gone."""
    user.write(BY_HAND)
    user.jackstay("install", "claude-code")
    user.settings.write_text(user.settings.read_text().replace('"opus"', '"haiku"'))
    user.jackstay("uninstall", "claude-code")
    assert user.settings.read_text() == BY_HAND.replace('"opus"', '"haiku"')
    user.jackstay("install", "claude-code")
    user.settings.write_text(json.dumps({**plain(user.settings.read_text()), "model": "sonnet"}))
    user.jackstay("uninstall", "claude-code")
    left = json.loads(user.settings.read_text())
    assert "jackstay" not in user.settings.read_text()
    assert (left["model"], left["hooks"]["Notification"]) == ("sonnet", plain(BY_HAND)["hooks"]["Notification"])


def test_a_changed_skill_stays(user: User) -> None:
    user.jackstay("install", "claude-code")
    skill = user.home / ".claude" / "skills" / "deploy-register" / "SKILL.md"
    skill.write_text("mine now")
    assert "was changed since" in user.jackstay("uninstall", "claude-code")
    assert list(user.files()) == [str(skill)]


def test_in_a_project_only(user: User) -> None:
    user.jackstay("install", "claude-code", "--project")
    settings = json.loads((user.project / ".claude" / "settings.local.json").read_text())
    assert settings["enabledMcpjsonServers"] == ["jackstay"]
    assert [path.name for path in user.home.iterdir()] == []
    user.jackstay("uninstall", "claude-code", "--project")
    assert user.files() == {}


def test_settings_that_are_no_json_are_left_alone(user: User) -> None:
    user.write('{"hooks": [}')
    with pytest.raises(AssertionError, match="line 1 is no JSON"):
        user.jackstay("install", "claude-code")
    assert user.settings.read_text() == '{"hooks": [}'


@pytest.mark.parametrize(
    "text", ['{"hooks": 7}', '{"hooks": {"Stop": {}}}', "[]", '{"a": }', '{"a" 1}', "{} x"]
)
def test_nothing_is_put_into_what_has_another_form(text: str) -> None:
    with pytest.raises(ConfigError):
        put(text, ("hooks", "Stop"), {}, item=True)


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(st.text(max_size=5), _JSON, max_size=4), st.sampled_from([None, 2]))
def test_put_and_take_out(content: dict[str, object], indent: int | None) -> None:
    """Any object, laid out either way: the value is there, everything else unchanged, and gone again after."""
    content.pop("mcpServers", None)
    text = json.dumps(content, indent=indent)
    put_in, piece = put(text, ("mcpServers", "ours"), {"marked": "by us alone"})
    assert json.loads(put_in) == {**content, "mcpServers": {"ours": {"marked": "by us alone"}}}
    assert plain(put_in) == json.loads(put_in)
    assert read(put_in).end == len(put_in)
    assert without(put_in, (piece,)) == text


def test_installing_again_is_finished_although_nobody_reads_what_it_says(user: User) -> None:
    user.jackstay("install", "claude-code")
    before = user.files()
    reads, writes = os.pipe()
    os.close(reads)
    env = {"PATH": os.environ["PATH"], "HOME": str(user.home), "JACKSTAY_HOME": str(user.own)}
    with os.fdopen(writes, "w") as gone:
        done = subprocess.run(
            [sys.executable, "-m", "jackstay", "host", "install", "claude-code"], cwd=user.project, env=env,
            stdout=gone, stderr=subprocess.PIPE, text=True, check=False,
        )  # fmt: skip
    assert (done.returncode, done.stderr) == (1, "")
    assert user.files() == before
