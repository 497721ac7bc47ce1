"""Where a written path really leads (hard case 12)."""

import os
from pathlib import Path

import pytest

from jackstay.ward import resolve
from jackstay.ward.resolve import canonical, has_other_names


@pytest.fixture
def place(tmp_path: Path) -> Path:
    root = tmp_path.resolve() / "work"
    (root / "src").mkdir(parents=True)
    (root / "src" / "a.py").write_text("a")
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "secret").write_text("s")
    return root


def at(place: Path, path: str) -> str:
    return canonical(path, str(place), "/home/nobody")


def test_a_plain_path_and_one_that_does_not_exist_yet(place: Path) -> None:
    assert at(place, "src/a.py") == f"{place}/src/a.py"
    assert at(place, "src/./../new/b.py") == f"{place}/new/b.py"


def test_a_link_at_the_end_leads_where_it_points(place: Path) -> None:
    (place / "leaf").symlink_to(place.parent / "outside" / "secret")
    assert at(place, "leaf") == f"{place.parent}/outside/secret"


def test_a_link_in_the_middle_is_followed_before_dots_are_taken(place: Path) -> None:
    (place / "mid").symlink_to(place.parent / "outside")
    assert at(place, "mid/new.txt") == f"{place.parent}/outside/new.txt"
    assert at(place, "mid/../x") == f"{place.parent}/x"


def test_a_dangling_link_leads_to_what_it_would_create(place: Path) -> None:
    (place / "dangling").symlink_to(place.parent / "outside" / "not-there")
    assert at(place, "dangling") == f"{place.parent}/outside/not-there"


def test_a_loop_a_nul_and_a_descriptor_cannot_be_told(place: Path) -> None:
    (place / "a").symlink_to("b")
    (place / "b").symlink_to("a")
    assert [at(place, p) for p in ("a", "a/x", "x\0y", "/dev/fd/3", "/proc/self/fd/1", "/dev/stdin")] == [
        ""
    ] * 6


def test_the_process_own_directory_is_that_of_the_call(place: Path) -> None:
    assert at(place, "/proc/self/cwd/src/a.py") == f"{place}/src/a.py"
    assert at(place, "/proc/self/root/etc/hostname").startswith("/etc/hostname")
    assert at(place, "/proc/thread-self/cwd/../x") == f"{place.parent}/x"


def test_homes(place: Path) -> None:
    assert at(place, "~/x") == "/home/nobody/x"
    assert at(place, "~root/x").endswith("/x")
    assert at(place, "~nobody-of-this-name/x") == ""
    assert at(place, "~/../../../../etc/passwd") == "/etc/passwd"
    assert at(place, "src/~/x") == f"{place}/src/~/x"


def test_a_name_too_long_for_the_system_keeps_its_place(place: Path) -> None:
    assert at(place, "src/" + "x" * 300) == f"{place}/src/{'x' * 300}"


def test_case_is_as_the_directory_has_it_where_the_system_ignores_it(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    entries = {"/": ["Work"], "/Work": [".git"], "/Work/.git": ["hooks"], "/Work/.git/hooks": []}

    def lstat(path: str) -> os.stat_result:
        parent, _, name = path.rpartition("/")
        found = next(
            (n for d, names in entries.items() if d.casefold() == (parent or "/").casefold() for n in names), ""
        )
        if found.casefold() != name.casefold():
            raise FileNotFoundError(path)
        return os.stat_result((0o40755, hash(path.casefold()) & 0xFFFF, -7, 2, 0, 0, 0, 0, 0, 0))

    monkeypatch.setattr(resolve, "_CARES", {})
    monkeypatch.setattr(resolve.os, "lstat", lstat)
    monkeypatch.setattr(resolve.os, "listdir", lambda directory: entries[directory])
    assert resolve.true_case("/WORK/.GIT/Hooks/New") == "/Work/.git/hooks/New"


def test_hard_links_are_seen(place: Path) -> None:
    assert not has_other_names(f"{place}/src/a.py")
    os.link(place.parent / "outside" / "secret", place / "linked")
    assert has_other_names(f"{place}/linked")
    assert not has_other_names(f"{place}/none")
    assert not has_other_names(f"{place}/src")
