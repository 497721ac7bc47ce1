"""A backup brings a file back byte for byte, with its mode."""

import os
import stat
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jackstay.ward.backup import BackupError, Backups, Copy


@pytest.fixture
def work(tmp_path: Path) -> Path:
    (tmp_path / "work").mkdir()
    return tmp_path / "work"


@pytest.fixture
def backups(tmp_path: Path) -> Backups:
    return Backups(tmp_path / "home", max_file_bytes=10_000)


def test_a_file_comes_back_byte_for_byte_with_its_mode(work: Path, backups: Backups) -> None:
    file = work / "run.sh"
    file.write_bytes(b"#!/bin/sh\r\n\x00\xff")
    file.chmod(0o751)
    backup = backups.take([str(file)], session="s1", why="write", at=1000.5)
    file.write_text("other")
    file.chmod(0o600)
    assert backups.restore(backup.id) == (str(file),)
    assert file.read_bytes() == b"#!/bin/sh\r\n\x00\xff"
    assert stat.S_IMODE(file.stat().st_mode) == 0o751


@given(data=st.binary(max_size=3000), mode=st.sampled_from([0o400, 0o600, 0o644, 0o755, 0o777]))
@settings(max_examples=25, deadline=None)
def test_any_content_and_mode_come_back(
    tmp_path_factory: pytest.TempPathFactory, data: bytes, mode: int
) -> None:
    root = tmp_path_factory.mktemp("b")
    file = root / "file"
    file.write_bytes(data)
    file.chmod(mode)
    backups = Backups(root / "home")
    backup = backups.take([str(file)], session="s", why="w", at=0)
    file.chmod(0o600)
    file.write_bytes(b"changed")
    backups.restore(backup.id)
    assert (file.read_bytes(), stat.S_IMODE(file.stat().st_mode)) == (data, mode)


def test_a_file_that_did_not_exist_is_recorded_and_removed_again(work: Path, backups: Backups) -> None:
    file = work / "new.txt"
    backup = backups.take([str(file)], session="s1", why="write", at=1)
    assert backup.copies == (Copy(str(file), "absent"),)
    file.write_text("new")
    backups.restore(backup.id)
    assert not file.exists()
    backups.restore(backup.id)  # and again, when it is gone already


def test_a_deleted_file_comes_back_with_its_directories(work: Path, backups: Backups) -> None:
    file = work / "a" / "b" / "c.txt"
    file.parent.mkdir(parents=True)
    file.write_text("deep")
    backup = backups.take([str(file)], session="s1", why="rm -r", at=1)
    file.unlink()
    file.parent.rmdir()
    backups.restore(backup.id)
    assert file.read_text() == "deep"


def test_a_link_comes_back_as_a_link(work: Path, backups: Backups) -> None:
    (work / "target").write_text("t")
    link = work / "link"
    link.symlink_to("target")
    backup = backups.take([str(link)], session="s1", why="rm", at=1)
    link.unlink()
    link.write_text("no link any more")
    backups.restore(backup.id)
    assert link.readlink() == Path("target")


def test_equal_contents_are_stored_once_outside_the_workspace_for_the_owner_only(
    work: Path, backups: Backups, tmp_path: Path
) -> None:
    for name in ("a", "b"):
        (work / name).write_text("same")
    backups.take([str(work / "a"), str(work / "b")], session="s1", why="w", at=1)
    backups.take([str(work / "a")], session="s1", why="w", at=2)
    objects = [file for file in (tmp_path / "home/backups/objects").rglob("*") if file.is_file()]
    assert len(objects) == 1
    assert stat.S_IMODE((tmp_path / "home/backups").stat().st_mode) == 0o700
    assert {
        stat.S_IMODE(file.stat().st_mode) for file in (tmp_path / "home/backups").rglob("*") if file.is_file()
    } == {0o600}
    assert sorted(file.name for file in work.iterdir()) == ["a", "b"]


def test_over_the_limit_nothing_is_taken_and_the_reason_says_so(work: Path, backups: Backups) -> None:
    (work / "small").write_text("x")
    (work / "big").write_bytes(b"x" * 10_001)
    with pytest.raises(BackupError, match=r"big has 10001 bytes, over the limit of 10000"):
        backups.take([str(work / "small"), str(work / "big")], session="s1", why="w", at=1)
    assert backups.list() == []


def test_what_is_no_file_is_refused(work: Path, backups: Backups) -> None:
    os.mkfifo(work / "pipe")
    with pytest.raises(BackupError, match="no regular file"):
        backups.take([str(work / "pipe")], session="s1", why="w", at=1)


def test_what_cannot_be_looked_at_is_refused(work: Path, backups: Backups) -> None:
    (work / "loop").symlink_to("loop")
    with pytest.raises(BackupError, match="cannot be looked at"):
        backups.take([str(work / "loop" / "file")], session="s1", why="w", at=1)


def test_a_path_below_a_file_did_not_exist(work: Path, backups: Backups) -> None:
    (work / "file").write_text("x")
    backup = backups.take([str(work / "file" / "below")], session="s1", why="w", at=1)
    assert backup.copies[0].was == "absent"


def test_backups_are_listed_the_latest_first_by_session_and_path(work: Path, backups: Backups) -> None:
    (work / "a").write_text("1")
    first = backups.take([str(work / "a")], session="s1", why="one", at=1)
    second = backups.take([str(work / "b")], session="s2", why="two", at=2)
    assert backups.list() == [second, first]
    assert backups.list(session="s1") == [first]
    assert backups.list(path=str(work / "b")) == [second]
    assert backups.get(first.id) == first


def test_one_file_of_several_can_be_brought_back(work: Path, backups: Backups) -> None:
    for name in ("a", "b"):
        (work / name).write_text(name)
    backup = backups.take([str(work / "a"), str(work / "b")], session="s", why="w", at=1)
    for name in ("a", "b"):
        (work / name).write_text("changed")
    assert backups.restore(backup.id, only=str(work / "a")) == (str(work / "a"),)
    assert ((work / "a").read_text(), (work / "b").read_text()) == ("a", "changed")


def test_unknown_and_broken_backups_are_named(work: Path, backups: Backups, tmp_path: Path) -> None:
    for bad in ("0000000000001-abcdef", "../../etc/passwd", ""):
        with pytest.raises(BackupError, match="jackstay backup list"):
            backups.restore(bad)
    (work / "a").write_text("1")
    backup = backups.take([str(work / "a")], session="s", why="w", at=1)
    (tmp_path / f"home/backups/records/{backup.id}.json").write_text("[]")
    assert backups.list() == []


def test_a_snapshot_takes_what_fits_and_names_the_rest(work: Path, backups: Backups) -> None:
    (work / "a").write_text("1")
    (work / "big").write_bytes(b"x" * 10_001)
    snapshot = backups.snapshot(
        [str(work / "a"), str(work / "big"), str(work / "gone")], session="s", why="make", at=1
    )
    assert [copy.path for copy in snapshot.copies] == [str(work / "a")]
    assert snapshot.skipped == (str(work / "big"), str(work / "gone"))
    (work / "a").write_text("2")
    backups.restore(snapshot.id)
    assert (work / "a").read_text() == "1"
