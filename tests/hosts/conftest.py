"""The real hosts that tests share: Claude Code in both versions, and Hermes, each with its scripted model."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.hosts.chat_server import ChatServer
from tests.hosts.claude import VERSIONS, Claude
from tests.hosts.hermes_kit import Driver, Host
from tests.hosts.messages_server import MessagesServer


@pytest.fixture(params=VERSIONS)
def bare_claude(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Claude]:
    """A user of Claude Code; nothing of ours is installed yet."""
    with MessagesServer().running() as server:
        claude = Claude(tmp_path, server, request.param)
        yield claude
        if claude.home.is_dir():
            claude.dismiss()


@pytest.fixture
def claude(bare_claude: Claude) -> Claude:
    """The same with our hooks."""
    return bare_claude.installed()


@pytest.fixture
def host(tmp_path: Path) -> Iterator[Host]:
    """An isolated user of Hermes; nothing of ours is installed yet."""
    server = ChatServer()
    try:
        yield Host(tmp_path, server)
    finally:
        server.close()


@pytest.fixture(scope="session")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Driver]:
    """One running Hermes with both plugins, and a noisy one of somebody else; each test has its own sessions."""
    server = ChatServer()
    try:
        host = Host(tmp_path_factory.mktemp("hermes"), server)
        host.noise()
        host.install()
        with host.driver() as driver:
            yield driver
    finally:
        server.close()
