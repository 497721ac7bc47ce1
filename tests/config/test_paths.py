"""Where jackstay's files live, and who may look at them."""

import os
from pathlib import Path

import platformdirs
import pytest

from jackstay.config import paths
from jackstay.core.errors import ConfigError


def test_the_home_is_what_was_given_then_the_variable_then_the_platforms(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", "/home/ann")
    environ = {"JACKSTAY_HOME": "~/agents"}
    assert paths.home("x/../y", environ=environ) == tmp_path / "y"
    assert paths.home(environ=environ) == Path("/home/ann/agents")
    assert paths.home(environ={"JACKSTAY_HOME": ""}) == platformdirs.user_data_path("jackstay", appauthor=False)
    assert paths.sessions_file(Path("/h")) == Path("/h/sessions.db")


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o277])
def test_directories_are_made_for_their_owner_only_whatever_the_umask(tmp_path: Path, umask: int) -> None:
    before = os.umask(umask)
    try:
        made = paths.ensure_private(tmp_path / "a" / "b")
    finally:
        os.umask(before)
    assert [p.stat().st_mode & 0o777 for p in (made, made.parent)] == [0o700, 0o700]
    assert paths.ensure_private(made) == made


def test_a_directory_that_exists_keeps_its_mode(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir(0o755)
    paths.ensure_private(tmp_path / "a")
    assert (tmp_path / "a").stat().st_mode & 0o777 == 0o755


def test_a_directory_that_others_can_write_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a").chmod(0o777)
    with pytest.raises(ConfigError, match=r"can be written by others.*chmod go-w"):
        paths.ensure_private(tmp_path / "a")


def test_a_file_in_its_place_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("")
    with pytest.raises(ConfigError, match=r"cannot be used.*--home or JACKSTAY_HOME"):
        paths.ensure_private(tmp_path / "a" / "b")
    with pytest.raises(ConfigError, match="cannot be used"):
        paths.ensure_private(tmp_path / "a")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a directory to another user")
def test_a_directory_of_another_user_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    os.chown(tmp_path / "a", 65534, 65534)
    with pytest.raises(ConfigError, match="belongs to another user"):
        paths.ensure_private(tmp_path / "a")
