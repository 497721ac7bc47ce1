"""No way out of the workspace: links, `..`, `~`, swaps, special files."""

import contextlib
import os
import threading
from pathlib import Path
from typing import Any

import pytest

from jackstay.core.errors import ToolFailed
from jackstay.tools.files import edit, ls, read, write
from jackstay.tools.paths import Place, locate, open_inside, replace
from jackstay.tools.search import glob, grep


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    path = tmp_path / "outside" / "secret.txt"
    path.parent.mkdir()
    path.write_text("secret\n")
    return path


@pytest.mark.parametrize(
    "path",
    [
        "~/../../../../etc/passwd",
        "~x/../../..",
        "../outside/secret.txt",
        "/etc/passwd",
        "a/../../outside/secret.txt",
        "~",
        "~root/.bashrc/../../..",
        "..",
        "/",
        "/proc/self/environ",
        "/dev/zero",
    ],
)
def test_paths_that_lead_outside_are_refused_with_the_way_on(box: Any, secret: Path, path: str) -> None:
    for text in (
        box.fails(read, file_path=path),
        box.fails(write, file_path=path, content="x"),
        box.fails(edit, file_path=path, old_string="secret", new_string="x"),
        box.fails(ls, path=path),
        box.fails(grep, pattern="secret", path=path),
        box.fails(glob, pattern="*", path=path),
    ):
        assert f"is outside the workspace {box.root}" in text
        assert text.endswith("name a path inside it, or ask your user to copy what you need into it")
    assert secret.read_text() == "secret\n"


def test_home_may_lie_inside_the_workspace(box: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(box.root))
    box.file("x.txt", "at home\n")
    assert "at home" in box.run(read, file_path="~/x.txt").text
    assert "outside the workspace" in box.fails(read, file_path="~/../outside")


def test_a_link_is_judged_by_where_it_leads(box: Any, secret: Path) -> None:
    box.file("real/a.txt", "inside\n")
    (box.root / "leaf").symlink_to(secret)
    (box.root / "dir").symlink_to(secret.parent)
    (box.root / "hop").symlink_to("dir")
    (box.root / "dangling").symlink_to(secret.parent / "new.txt")
    (box.root / "loop").symlink_to("loop")
    (box.root / "good").symlink_to("real")
    for path in ("leaf", "dir/secret.txt", "hop/secret.txt", "dangling", "dir/new.txt"):
        assert "outside the workspace" in box.fails(read, file_path=path), path
        assert "outside the workspace" in box.fails(write, file_path=path, content="x"), path
    assert "loop" in box.fails(read, file_path="loop")
    assert "loop" in box.fails(write, file_path="loop", content="x")
    assert "inside" in box.run(read, file_path="good/a.txt").text
    box.run(write, file_path="good/b.txt", content="b")
    assert sorted(p.name for p in secret.parent.iterdir()) == ["secret.txt"]
    assert (box.root / "real/b.txt").read_text() == "b"


def test_a_link_to_a_file_inside_is_written_through_and_stays_a_link(box: Any) -> None:
    box.file("real.txt", "old")
    (box.root / "link.txt").symlink_to("real.txt")
    box.run(write, file_path="link.txt", content="new")
    assert (box.root / "link.txt").is_symlink()
    assert (box.root / "real.txt").read_text() == "new"


@pytest.mark.parametrize("kind", ["fifo", "socket"])
def test_special_files_are_refused_and_nothing_hangs(box: Any, kind: str) -> None:
    import socket

    path = box.root / "odd"
    keep = socket.socket(socket.AF_UNIX)
    try:
        if kind == "fifo":
            os.mkfifo(path)
        else:
            keep.bind(str(path))
        words = {"fifo": "a named pipe", "socket": "a socket"}[kind]
        refusal = f"odd is {words}: only regular files are read and written"
        assert box.fails(read, file_path="odd") == refusal
        assert box.fails(write, file_path="odd", content="x") == refusal
        assert box.fails(edit, file_path="odd", old_string="a", new_string="b") == refusal
        assert box.fails(grep, pattern="x", path="odd") == refusal
        assert "1 special files" in box.run(grep, pattern="x").text
    finally:
        keep.close()


def test_special_file_systems_are_refused_even_when_the_workspace_is_everything(box: Any) -> None:
    box.root = Path("/")
    for path in ("/proc/self/environ", "/dev/zero", "/sys/kernel"):
        text = box.fails(read, file_path=path)
        assert text == f"{path} is in a special file system and no ordinary file: use bash to look at it"


def test_a_link_swapped_in_after_the_judgement_is_not_followed(box: Any, secret: Path) -> None:
    box.file("dir/secret.txt", "harmless\n")
    judged = locate(box.workspace, "dir/secret.txt")
    leaf = Place(judged.workspace, ("leaf.txt",))
    (box.root / "dir").rename(box.root / "moved")
    (box.root / "dir").symlink_to(secret.parent)
    (box.root / "leaf.txt").symlink_to(secret)
    for place in (judged, leaf):
        with pytest.raises(ToolFailed), open_inside(place):
            pass
        with pytest.raises(ToolFailed):
            replace(place, b"x")
    assert secret.read_text() == "secret\n"
    assert [p.name for p in secret.parent.iterdir()] == ["secret.txt"]


def test_racing_a_link_swap_never_reads_or_writes_outside(box: Any, secret: Path) -> None:
    (box.root / "good").mkdir()
    (box.root / "good/secret.txt").write_text("harmless\n")
    (box.root / "bad").symlink_to(secret.parent)
    (box.root / "dir").symlink_to("good")
    over = threading.Event()

    def swap() -> None:
        while not over.is_set():
            for target in ("good", str(secret.parent)):
                (box.root / "next").symlink_to(target)
                (box.root / "next").replace(box.root / "dir")

    thread = threading.Thread(target=swap)
    thread.start()
    outcomes = set()
    try:
        for _ in range(400):
            try:
                place = locate(box.workspace, "dir/secret.txt")
                with open_inside(place) as file:
                    outcomes.add(file.read())
                replace(place, b"harmless\n")
            except ToolFailed:
                outcomes.add(b"refused")
    finally:
        over.set()
        thread.join()
    assert outcomes <= {b"harmless\n", b"refused"}
    assert secret.read_text() == "secret\n"
    assert [p.name for p in secret.parent.iterdir()] == ["secret.txt"]


def test_a_directory_and_a_link_racing_for_one_name_never_let_a_read_out(box: Any, secret: Path) -> None:
    box.file("dir/secret.txt", "harmless\n")
    (box.root / "link").symlink_to(secret.parent)
    place = locate(box.workspace, "dir/secret.txt")
    over = threading.Event()

    def swap() -> None:
        home, real, link = box.root / "dir", box.root / "real", box.root / "link"
        while not over.is_set():
            for old, new in ((home, real), (link, home), (home, link), (real, home)):
                old.rename(new)

    thread = threading.Thread(target=swap)
    thread.start()
    outcomes = set()
    try:
        for _ in range(1000):
            with contextlib.suppress(ToolFailed), open_inside(place) as file:
                outcomes.add(file.read())
    finally:
        over.set()
        thread.join()
    assert outcomes <= {b"harmless\n"}


def test_a_workspace_that_is_gone_is_said(box: Any, tmp_path: Path) -> None:
    box.root = tmp_path / "nowhere"
    assert box.fails(ls) == f"the workspace {tmp_path}/nowhere cannot be opened: No such file or directory"
