"""A place for each hard case."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.command import Jackstay
from tests.elsewhere import Place


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    made = Place(tmp_path)
    yield made
    made.close()


@pytest.fixture
def jackstay(tmp_path: Path) -> Jackstay:
    return Jackstay(tmp_path)
