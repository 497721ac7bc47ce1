"""Links that another process swaps in and out while a file tool works never lead it outside (hard case 12)."""

import contextlib
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from jackstay.tools.files import edit, ls, read, write
from jackstay.tools.search import glob, grep
from jackstay.ward.backup import BackupError, Backups

# Swaps, as fast as it can: `dir` is a link to good or to outside, `real` a directory or a link to outside,
# `leaf.txt` and `real/a.txt` a file or a link to the file outside.
_SWAPPER = """
import os, shutil, sys
root, outside = sys.argv[1:]
os.chdir(root)
def become(name, make):
    make(name + ".next")
    os.replace(name + ".next", name)
def turn(name, other):
    for old, new in ((name, name + ".away"), (other, name), (name, other), (name + ".away", name)):
        try:
            os.rename(old, new)
        except OSError:  # a tool made the directory anew meanwhile
            if os.path.isdir(name + ".away") and not os.path.islink(name):
                shutil.rmtree(name, ignore_errors=True)
print("ready", flush=True)
while True:
    for target in ("good", outside):
        become("dir", lambda name: os.symlink(target, name))
    become("leaf.txt", lambda name: os.symlink(os.path.join(outside, "a.txt"), name))
    become("leaf.txt", lambda name: open(name, "w").write("harmless\\n"))
    turn("real", "out")
"""
_TIMES = 60


class Race:
    """A workspace whose links another process swaps, and what lies outside."""

    def __init__(self, box: Any, outside: Path) -> None:
        self.box, self.outside = box, outside
        outside.mkdir()
        (outside / "a.txt").write_text("treasure\n")
        (outside / "only-outside.txt").write_text("treasure\n")
        for name in ("good", "real"):
            (box.root / name).mkdir()
            (box.root / name / "a.txt").write_text("harmless\n")
        (box.root / "dir").symlink_to("good")
        (box.root / "out").symlink_to(outside)
        (box.root / "leaf.txt").write_text("harmless\n")

    @contextlib.contextmanager
    def running(self) -> Iterator[None]:
        words = (sys.executable, "-c", _SWAPPER, str(self.box.root), str(self.outside))
        with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as swapper:
            assert swapper.stdout is not None
            assert swapper.stdout.readline() == "ready\n"
            try:
                yield
                assert swapper.poll() is None
            finally:
                swapper.kill()

    def untouched(self) -> bool:
        held = {path.name: path.read_text() for path in self.outside.iterdir()}
        return held == {"a.txt": "treasure\n", "only-outside.txt": "treasure\n"}


@pytest.fixture
def race(box: Any, tmp_path: Path) -> Race:
    return Race(box, tmp_path / "outside")


_FILES, _DIRECTORIES = ("dir/a.txt", "real/a.txt", "leaf.txt"), ("dir", "real", ".")
_USES: dict[str, tuple[Callable[[Any, str], Any], tuple[str, ...]]] = {
    "read": (lambda box, at: box.run(read, file_path=at), _FILES),
    "write": (lambda box, at: box.run(write, file_path=at, content="harmless\n"), _FILES),
    "write anew": (lambda box, at: box.run(write, file_path=f"{at}/sub/b", content="x"), ("dir", "real")),
    "edit": (lambda box, at: box.run(edit, file_path=at, old_string="m", new_string="m"), _FILES),
    "grep": (lambda box, at: box.run(grep, pattern="treasure", path=at), (*_FILES, *_DIRECTORIES)),
    "glob": (lambda box, at: box.run(glob, pattern="*", path=at), _DIRECTORIES),
    "ls": (lambda box, at: box.run(ls, path=at), _DIRECTORIES),
}


@pytest.mark.parametrize("use", _USES)
def test_no_file_tool_is_led_outside(race: Race, use: str) -> None:
    tool, places = _USES[use]
    with race.running():
        told = [tool(race.box, place).text for _ in range(_TIMES) for place in places]
    assert not [text for text in told if "only-outside" in text or ":treasure" in text or "\ttreasure" in text]
    assert race.untouched()


@pytest.mark.parametrize("name", ["real/a.txt", "leaf.txt", "real/sub/new.txt"])
def test_no_backup_is_taken_from_outside_or_brought_back_to_it(race: Race, tmp_path: Path, name: str) -> None:
    backups = Backups(tmp_path / "home")
    path = str(race.box.root / name)
    first = backups.take([path], session="s", why="w", at=1.0)
    with race.running():
        for number in range(_TIMES):
            with contextlib.suppress(BackupError):
                backups.take([path], session="s", why="w", at=2.0 + number)
            with contextlib.suppress(BackupError):
                backups.restore(first.id)
    assert race.untouched()
    kept = [
        file.read_text() for file in (tmp_path / "home" / "backups" / "objects").rglob("*") if file.is_file()
    ]
    assert "treasure\n" not in kept


def test_a_link_in_the_way_of_a_backup_is_said(box: Any, tmp_path: Path) -> None:
    (box.root / "d").mkdir()
    (box.root / "d" / "a.txt").write_text("one")
    backups = Backups(tmp_path / "home")
    taken = backups.take([str(box.root / "d" / "a.txt")], session="s", why="w", at=1.0)
    (tmp_path / "far").mkdir()
    (box.root / "d").rename(box.root / "e")
    (box.root / "d").symlink_to(tmp_path / "far")
    with pytest.raises(BackupError, match="cannot be brought back: a link stands in its way"):
        backups.restore(taken.id)
    with pytest.raises(BackupError, match="cannot be looked at: a link stands in its way"):
        backups.take([str(box.root / "d" / "a.txt")], session="s", why="w", at=2.0)
    assert list((tmp_path / "far").iterdir()) == []
