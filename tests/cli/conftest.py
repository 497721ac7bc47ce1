"""A command with a home of its own."""

from pathlib import Path

import pytest

from tests.cli.command import Jackstay


@pytest.fixture
def jackstay(tmp_path: Path) -> Jackstay:
    return Jackstay(tmp_path)
