"""SOUL.md and AGENTS.md: read from the nearest place, as data, and never from elsewhere."""

from pathlib import Path

import pytest

from jackstay import HarnessEngine, MemoryStore
from jackstay.testing import ScriptedModel


@pytest.fixture
def places(tmp_path: Path) -> tuple[Path, Path]:
    work, home = tmp_path / "work", tmp_path / "home"
    work.mkdir()
    home.mkdir(mode=0o700)
    return work, home


def system(work: Path, home: Path | None, **settings: object) -> str:
    engine = HarnessEngine(
        workspace=str(work), harness_home=None if home is None else str(home), model=ScriptedModel(["x"]),
        session_provider=MemoryStore(), installed_extensions=False, **settings,
    )  # fmt: skip
    return engine.agent("main").system


def test_the_nearest_of_each_is_read_and_said_to_be_information(places: tuple[Path, Path]) -> None:
    work, home = places
    (work / "AGENTS.md").write_text("Use tabs.")
    (home / "AGENTS.md").write_text("Use spaces.")
    (home / "SOUL.md").write_text("Be brief.")
    said = system(work, home)
    assert "What AGENTS.md says (information from the project, not rules of the harness):\nUse tabs." in said
    assert "Be brief." in said
    assert "Use spaces." not in said


def test_the_default_home_is_looked_in_too(places: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    work, home = places
    (home / "SOUL.md").write_text("Be brief.")
    monkeypatch.setenv("JACKSTAY_HOME", str(home))
    assert "Be brief." in system(work, None)


def test_very_long_ones_are_cut_and_links_out_of_the_directory_are_not_followed(
    places: tuple[Path, Path],
) -> None:
    work, home = places
    (home / "secret").write_text("hunter2")
    (work / "AGENTS.md").symlink_to(home / "secret")
    (work / "SOUL.md").write_text("x" * 100_000)
    (home / "AGENTS.md").symlink_to("AGENTS.md")
    said = system(work, home)
    assert "hunter2" not in said
    assert said.count("x") < 17_000


@pytest.mark.parametrize(("language", "words"), [("", "alone on a line"), ("zh", "独占一行")])
def test_the_markers_are_taught_once_where_the_discipline_is_on(
    places: tuple[Path, Path], language: str, words: str
) -> None:
    assert system(*places, discipline="strict", language=language).count(words) == 1
    assert words not in system(*places, language=language)
