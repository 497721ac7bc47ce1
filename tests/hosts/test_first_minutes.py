"""What the documents promise: two commands, and the first write is refused with its reason on the screen.

The commands are read out of the documents and typed as they stand there, in a home where nothing of ours is, at a
real terminal. What a user has done before is what each host itself asks for: its model, and trust in a directory.
"""

import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.hosts.chat_server import says
from tests.hosts.claude import Claude, binary
from tests.hosts.hermes_kit import ROOT, Host
from tests.hosts.messages_server import text, use
from tests.hosts.terminal import Terminal

pytestmark = [pytest.mark.hosts, pytest.mark.timeout(300)]
REASON = "No task is declared, and this call would have effects"
LOOKS = "I have to look first."


def _commands(document: str) -> Sequence[str]:
    """The first commands of a host's document; the README names the same two."""
    block = (ROOT / "docs/hosts" / document).read_text("utf-8").partition("```sh\n")[2].partition("```")[0]
    install, start = block.splitlines()
    assert f"`{install}`, then `{start}`" in " ".join((ROOT / "README.md").read_text("utf-8").split())
    return install, start


def _path(*folders: Path) -> str:
    return os.pathsep.join([*map(str, folders), str(Path(sys.executable).parent), os.environ["PATH"]])


@pytest.fixture
def known_user(bare_claude: Claude) -> Claude:
    """A user who has gone through Claude Code's own first questions."""
    known = {
        "hasCompletedOnboarding": True,
        "customApiKeyResponses": {"approved": [bare_claude.env["ANTHROPIC_API_KEY"][-20:]]},
        "projects": {str(bare_claude.project): {"hasTrustDialogAccepted": True}},
    }
    (bare_claude.user / ".claude.json").write_text(json.dumps(known))
    bare_claude.env["PATH"] = _path(binary(bare_claude.version).parent)
    return bare_claude


@pytest.mark.case(
    "claude-code",
    "two commands of the documents: the first write is refused, its reason on the screen",
    "enforced",
)
def test_claude_code_in_two_commands(known_user: Claude) -> None:
    claude, (install, start) = known_user, _commands("claude-code.md")
    write = use("Write", file_path=str(claude.project / "hello.txt"), content="hello")
    claude.server.scripts["task"] = [[write], [text(LOOKS)]]
    with Terminal(install, cwd=claude.project, env=claude.env) as terminal:
        assert terminal.ended(within_s=60) == 0, terminal.screen
    with Terminal(start, cwd=claude.project, env=claude.env) as terminal:
        assert terminal.shows("❯"), terminal.screen
        terminal.type("<<task>> please write hello.txt")
        assert terminal.shows(REASON), terminal.screen
        assert terminal.shows(LOOKS), terminal.screen
    assert list(claude.project.iterdir()) == []


@pytest.mark.case(
    "claude-code",
    "a question in the host's own dialog: asked with our reason, runs once after a yes",
    "enforced",
)
def test_claude_code_asks_in_its_own_dialog(known_user: Claude) -> None:
    """In planning, with a person there: the host's dialog shows our reason, and a yes lets just this call run."""
    claude = known_user.installed()
    write = use("Bash", command="touch asked.txt", description="d")
    claude.server.scripts["task"] = [
        [text("[HARNESS: task_started]"), use("Bash", command="ls", description="d")],
        [text("[HARNESS: plan]")],
        [write],
        [text("It is written.")],
    ]
    with Terminal("claude", cwd=claude.project, env=claude.env) as terminal:
        assert terminal.shows("❯"), terminal.screen
        terminal.type("<<task>> please plan")
        assert terminal.shows("[HARNESS: plan]"), terminal.screen
        terminal.type("hm, what about it?")
        assert terminal.shows("Do you want to proceed?"), terminal.screen
        assert terminal.shows("Proposal Gate"), terminal.screen
        assert list(claude.project.iterdir()) == []
        terminal.type("")
        assert terminal.shows("It is written."), terminal.screen
    assert [path.name for path in claude.project.iterdir()] == ["asked.txt"]


@pytest.mark.case(
    "hermes", "two commands of the documents: the first write is refused, its reason on the screen", "enforced"
)
def test_hermes_in_two_commands(host: Host) -> None:
    install, start = _commands("hermes.md")
    env = {**host.env(), "PYTHONPATH": ""}
    env["PATH"] = _path(host.python.parent)
    write = ("write_file", {"path": str(host.workspace / "hello.txt"), "content": "hello"})
    host.server.script([says("", write), says(LOOKS)])
    with Terminal(install, cwd=host.workspace, env=env) as terminal:
        assert terminal.ended(within_s=60) == 0, terminal.screen
    with Terminal(start, cwd=host.workspace, env=env) as terminal:
        assert terminal.shows("❯"), terminal.screen
        terminal.type("please write hello.txt")
        assert terminal.shows(REASON), terminal.screen
        assert terminal.shows(LOOKS), terminal.screen
    assert list(host.workspace.iterdir()) == []


@pytest.mark.case(
    "hermes", "a question in the host's own dialog: asked with our reason, runs once after a yes", "enforced"
)
def test_hermes_asks_in_its_own_dialog(host: Host) -> None:
    host.install()
    write = ("write_file", {"path": str(host.workspace / "asked.txt"), "content": "x"})
    look = ("terminal", {"command": "ls"})
    host.server.script(
        [says("[HARNESS: task_started]", look), says("I have a plan.\n\n[HARNESS: plan]"), says("", write),
         says("It is written.")]
    )  # fmt: skip
    with Terminal("hermes", cwd=host.workspace, env=host.env()) as terminal:
        assert terminal.shows("❯"), terminal.screen
        terminal.type("please plan")
        assert terminal.shows("I have a plan."), terminal.screen
        terminal.shows("\0", within_s=2)  # until it takes the next prompt
        terminal.type("hm, what about it?")
        assert terminal.shows("Proposal Gate"), terminal.screen
        assert list(host.workspace.iterdir()) == []
        terminal.type("")
        assert terminal.shows("It is written."), terminal.screen
    assert [path.name for path in host.workspace.iterdir()] == ["asked.txt"]
