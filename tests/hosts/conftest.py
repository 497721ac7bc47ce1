"""The model server, and Hermes guarded by us, that tests with the real Hermes share."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.hosts.chat_server import ChatServer
from tests.hosts.hermes_kit import Driver, Host


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
