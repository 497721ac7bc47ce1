"""The second seed's names, installation and verification in the real Hermes: by hand, by command, by entry point."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from jackstay.core.errors import ConfigError
from jackstay.hosts import install_hermes
from jackstay.hosts.hermes_config import enabled, switched_off, switched_on
from tests.hosts.chat_server import says
from tests.hosts.hermes_kit import ROOT, Host, environment

pytestmark = [pytest.mark.hosts, pytest.mark.timeout(300)]
REFUSED = "[work-principles]"
SKILLS = install_hermes.SKILLS


def _jackstay(host: Host, *words: str, code: int = 0) -> list[str]:
    """`jackstay …` as this user types it; the lines it prints."""
    done = subprocess.run(
        [sys.executable, "-m", "jackstay", *words], env=host.env(PYTHONPATH=str(ROOT / "src")), cwd=host.workspace,
        capture_output=True, text=True, timeout=100,
    )  # fmt: skip
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout.splitlines()


def _found(host: Host, state: str) -> list[str]:
    """What `jackstay doctor` says of hosts in this state; it exits with 1 here, since no model is configured."""
    lines = map(json.loads, _jackstay(host, "doctor", "--json", code=1))
    return [one["text"] for one in lines if (one["check"], one["state"]) == ("hosts", state)]


def _first_refused_write(host: Host) -> None:
    """`/new`, a small task: the first call with effects is refused, in Hermes's own command line."""
    target = host.workspace / "small.txt"
    host.server.script([says("", ("write_file", {"path": str(target), "content": "x"})), says("I look first.")])
    done = host.run("hermes", "chat", "-Q", "-q", "please write small.txt", "--yolo")
    assert (done.returncode, host.server.left) == (0, 0), done.stdout + done.stderr
    results = [m["content"] for m in host.server.requests[-1]["messages"] if m["role"] == "tool"]
    assert REFUSED in results[0]
    assert not target.exists()
    session = done.stderr.partition("session_id:")[2].split()[0]
    assert host.phase(session) == "task_started"


def _listed(host: Host) -> dict[str, str]:
    """`hermes plugins list`: the lines of our two plugins."""
    lines = host.ok("hermes", "plugins", "list", "--user", "--plain").splitlines()
    return {name: line for name in install_hermes.PLUGINS for line in lines if name in line.split()}


@pytest.mark.case("hermes", "installed by hand as the second seed says", "enforced")
def test_the_seeds_steps_by_hand(host: Host) -> None:
    # pip install jackstay; the private copy
    copy = host.jackstay / "hermes"
    _jackstay(host, "host", "install", "hermes", "--plugin", str(copy))
    # jackstay lifecycle sync
    (host.workspace / "registry.yaml").write_text(_REGISTRY)
    _jackstay(host, "lifecycle", "sync", "--document", str(copy / "skills/work-closure-check/SKILL.md"))
    assert "no message is left" in (copy / "skills/work-closure-check/SKILL.md").read_text()
    # ln -sfn … ~/.hermes/plugins/…, ~/.hermes/skills/devops/…
    script = ["set -e", "mkdir -p ~/.hermes/plugins ~/.hermes/skills/devops"]
    script += [f"ln -sfn {copy}/plugins/{name} ~/.hermes/plugins/{name}" for name in install_hermes.PLUGINS]
    script += [f"ln -sfn {copy}/skills/{name} ~/.hermes/skills/devops/{name}" for name in SKILLS]
    subprocess.run(["sh", "-c", "\n".join(script)], env=host.env(), check=True)
    # hermes plugins enable …
    host.ok("hermes", "plugins", "enable", "work-principles", "--allow-tool-override")
    host.ok("hermes", "plugins", "enable", "context-anchor")
    # hermes plugins list
    listed = _listed(host)
    assert "enabled" in listed["work-principles"]
    assert "enabled" in listed["context-anchor"]
    told = host.ok("hermes", "plugins", "list", "--user")
    assert "pre_llm_call, pre_tool_call, post_tool_call" in " ".join(told.split())
    _first_refused_write(host)
    assert _jackstay(host, "host", "install", "hermes", "--dry-run") == ["nothing to do"]  # by hand is the same


@pytest.mark.case("hermes", "installed by `jackstay host install hermes`", "enforced")
def test_the_command_shows_does_repeats_and_undoes(host: Host) -> None:
    before = host.config.read_bytes()
    shown = _jackstay(host, "host", "install", "hermes", "--dry-run")
    assert host.config.read_bytes() == before
    assert not (host.hermes / "plugins/work-principles").exists()
    assert not host.jackstay.exists()
    done = _jackstay(host, "host", "install", "hermes")
    assert [f"would {line}" for line in done[:-1]] == shown[:-1]
    assert _jackstay(host, "host", "install", "hermes") == ["nothing to do"]
    assert _jackstay(host, "host", "status", "hermes") == [
        "work-principles  enabled  pre_llm_call, pre_tool_call, post_tool_call",
        "context-anchor  enabled  pre_llm_call, post_tool_call",
        "a forbidden call was refused through Hermes's own hooks",
        "Hermes started with --safe-mode loads no plugin: then nobody is asked",
        "         see docs/hosts/hermes.md, what Hermes cannot enforce",
        "task_started     jackstay-probe",
    ]
    assert "# my own words" in host.config.read_text()
    assert install_hermes.Places(host.jackstay, host.hermes).backup.read_bytes() == before
    assert sorted(p.name for p in (host.hermes / "skills/devops").iterdir()) == sorted(SKILLS)
    _first_refused_write(host)

    _jackstay(host, "host", "uninstall", "hermes")
    assert host.config.read_bytes() == before
    assert not os.path.lexists(host.hermes / "plugins/work-principles")
    assert list((host.hermes / "skills/devops").iterdir()) == []
    assert _jackstay(host, "host", "uninstall", "hermes") == ["nothing to do"]
    places = install_hermes.Places(host.jackstay, host.hermes)
    assert install_hermes.probe(places, str(environment() / "bin/hermes")) is None


_REGISTRY = """
components:
  - name: queue
    lifecycle:
      closure:
        - id: queue_drained
          check: no message is left in the dead-letter queue
"""


@pytest.mark.case("hermes", "work-principles alone", "enforced")
def test_work_principles_alone(host: Host) -> None:
    host.install()
    host.config.write_text(switched_off(host.config.read_text(), ["context-anchor"], where="config"))
    with host.driver() as hermes:
        assert [name for name, one in hermes.ask("plugins").items() if one["enabled"]] == ["work-principles"]
        target = host.workspace / "alone.txt"
        look = ("terminal", {"command": "ls  #anchor:mission ship it"})
        write = ("write_file", {"path": str(target), "content": "x"})
        seen = hermes.turn("s", "write", says("", look), says("", write), says("no"))
        assert (REFUSED in seen.results[1], target.exists()) == (True, False)
        assert "[CONTEXT ANCHOR]" not in hermes.turn("s", "and?", says("no")).context


@pytest.mark.case("hermes", "context-anchor alone", "it keeps the anchor, and refuses nothing")
def test_context_anchor_alone(host: Host) -> None:
    host.install()
    host.config.write_text(switched_off(host.config.read_text(), ["work-principles"], where="config"))
    with host.driver() as hermes:
        assert [name for name, one in hermes.ask("plugins").items() if one["enabled"]] == ["context-anchor"]
        target = host.workspace / "alone.txt"
        look = ("terminal", {"command": "ls  #anchor:mission ship it\n#anchor:fact port=8080"})
        write = ("write_file", {"path": str(target), "content": "x"})
        seen = hermes.turn("s", "write", says("", look), says("", write), says("done"))
        assert target.read_text() == "x"  # it refuses nothing
        seen = hermes.turn("s", "and?", says("ok"))
        assert "Mission: ship it" in seen.context
        assert "- port: 8080" in seen.context
        assert "[phase:" not in seen.context


@pytest.mark.case("hermes", "installed as entry points; the package broken", "enforced")
def test_the_wheels_entry_points(host: Host, tmp_path: Path) -> None:
    wheel = tmp_path / "wheel"
    command = [
        str(environment() / "bin/python"), "-m", "pip", "install", "-q", "--no-deps", "--no-build-isolation", "--target",
        str(wheel), str(_copied(tmp_path)),
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, timeout=200)
    assert done.returncode == 0, done.stderr
    host.config.write_text(switched_on(host.config.read_text(), install_hermes.PLUGINS, where="config"))
    target = host.workspace / "entry.txt"
    with host.driver(PYTHONPATH=str(wheel), JACKSTAY_ABSENT="1") as hermes:
        found = hermes.ask("plugins")
        assert {name: found[name]["source"] for name in install_hermes.PLUGINS} == dict.fromkeys(
            install_hermes.PLUGINS, "entrypoint"
        )
        assert REFUSED in hermes.call("s", "write_file", path=str(target), content="x")
        assert str(hermes.ask("skill", name="work-principles:work-principles")).startswith(str(wheel))
    (wheel / "jackstay/hosts/judge.py").write_text("raise RuntimeError('half an upgrade')\n")
    with host.driver(PYTHONPATH=str(wheel), JACKSTAY_ABSENT="1") as hermes:
        assert "could not be started" in hermes.call("s", "write_file", path=str(target), content="x")
    assert not target.exists()


def _copied(room: Path) -> Path:
    """The sources to build from, so that building writes nothing into the checkout."""
    copy = room / "sources"
    copy.mkdir()
    shutil.copytree(ROOT / "src", copy / "src", ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, copy / name)
    return copy


# -- the configuration, line by line ---------------------------------------------------------------------

_WRITTEN = [
    "",
    "model: x  # mine\n",
    "model: x",
    "plugins:\n",
    "plugins:\n  enabled:\n    - mine  # yes\n  disabled: []\nmodel: x\n",
    "plugins:\n  enabled:\n  - mine\n\n# end\nmodel: x\n",
    "plugins:\n  enabled: [mine, 'yours']  # list\nmodel: x\n",
    "plugins:\n  enabled: []\n",
    "plugins:\n  # none yet\n  entries:\n    mine:\n      allow_tool_override: false\n",
    "plugins:\n    disabled:\n        - work-principles\n        - other\n    enabled:\n        - mine\n",
    "model: x\r\nplugins:\r\n  enabled:\r\n    - mine\r\n",
]


@pytest.mark.parametrize("text", _WRITTEN)
def test_switching_on_changes_no_other_line(text: str) -> None:
    after = switched_on(text, install_hermes.PLUGINS, where="config.yaml")
    assert set(install_hermes.PLUGINS) <= set(enabled(after, where="config.yaml"))
    ours = ("- work-principles", "- context-anchor", "enabled:", "plugins:")
    others = [
        line.strip() for line in text.splitlines() if not line.strip().startswith(ours) and "[" not in line
    ]
    assert [line.strip() for line in after.splitlines() if line.strip() in others] == others
    assert switched_on(after, install_hermes.PLUGINS, where="config.yaml") == after
    off = switched_off(after, install_hermes.PLUGINS, where="config.yaml")
    assert set(enabled(off, where="config.yaml")) == set(enabled(text, where="config.yaml")) - set(
        install_hermes.PLUGINS
    )


@pytest.mark.parametrize(
    "text", ["plugins: {enabled: [mine]}\n", "plugins:\n  enabled: [a,\n    b]\n", "- a list\n", "a: [\n"]
)
def test_what_cannot_be_changed_line_by_line_is_left_alone(text: str) -> None:
    with pytest.raises(ConfigError, match=r"config\.yaml"):
        switched_on(text, install_hermes.PLUGINS, where="config.yaml")


def test_other_peoples_folder_is_not_replaced(tmp_path: Path) -> None:
    places = install_hermes.Places(tmp_path / "home", tmp_path / "hermes")
    (places.hermes / "plugins/work-principles").mkdir(parents=True)
    with pytest.raises(ConfigError, match="is there and is not ours"):
        install_hermes.install_steps(places)


def test_an_edited_configuration_loses_only_our_lines(tmp_path: Path) -> None:
    places = install_hermes.Places(tmp_path / "home", tmp_path / "hermes")
    places.hermes.mkdir()
    places.config.write_text("# mine\nmodel: x\n")
    for step in install_hermes.install_steps(places):
        step.do()
    places.config.write_text(places.config.read_text() + "later: 1  # added after\n")
    for step in install_hermes.uninstall_steps(places):
        step.do()
    assert places.config.read_text() == "# mine\nmodel: x\nplugins:\n  enabled: []\nlater: 1  # added after\n"


@pytest.mark.case("hermes", "the private copy deleted", "impossible; `jackstay doctor` says so")
@pytest.mark.case("hermes", "started with --safe-mode by a person", "impossible; `jackstay doctor` warns of it")
def test_where_hermes_loads_no_plugin_its_calls_run_and_doctor_says_so(host: Host) -> None:
    host.install()
    target = host.workspace / "unguarded.txt"
    with host.driver(HERMES_SAFE_MODE="1") as hermes:
        hermes.call("s", "write_file", path=str(target), content="x")
    assert target.read_text() == "x"
    target.unlink()
    assert _found(host, "warning") == ["Hermes started with --safe-mode loads no plugin: then nobody is asked"]
    shutil.rmtree(host.jackstay / "hermes")
    said = _jackstay(host, "host", "status", "hermes", code=1)
    assert "broken" in said[0]
    assert [text.split("  ")[:2] for text in _found(host, "problem")] == [
        [name, "broken (the link leads nowhere: Hermes runs without it; install again)"]
        for name in install_hermes.PLUGINS
    ]
    with host.driver() as hermes:
        hermes.call("s", "write_file", path=str(target), content="x")
    assert target.read_text() == "x"


if sys.version_info >= (3, 14):
    raise RuntimeError("Hermes Agent 0.19.0 runs on Python 3.11 to 3.13: run these tests with one of them")
