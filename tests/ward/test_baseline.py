"""Before and after a task, with real processes, sockets, files and repositories."""

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from jackstay.engine.ports import WORKSPACE_MARK
from jackstay.ward import baseline
from jackstay.ward.baseline import Look, Place, checked, compare, git_status, look, task_files


@pytest.fixture
def place(tmp_path: Path) -> Place:
    for name in ("work", "tmp", "home/.ssh"):
        (tmp_path / name).mkdir(parents=True)
    return Place(
        str(tmp_path / "work"),
        str(tmp_path / "tmp"),
        str(tmp_path / "home"),
        f"JACKSTAY_TASK={tmp_path.name}-{os.getpid()}",
    )


def git(place: Place, *words: str) -> None:
    environment = {"PATH": os.environ["PATH"], "HOME": place.home, "GIT_CONFIG_NOSYSTEM": "1"}
    subprocess.run(["git", "-C", place.workspace, *words], check=True, capture_output=True, env=environment)


def test_two_looks_at_a_quiet_place_show_no_difference(place: Place) -> None:
    first = look(place)
    told = checked(first, first)
    assert told.ok
    assert told.findings == ()
    assert "no differences" in told.summary


def test_uncommitted_changes_are_seen(place: Place) -> None:
    git(place, "init", "-q")
    before = look(place)
    (Path(place.workspace) / "new file.py").write_text("x")
    after = look(place)
    assert [
        (one.source, one.subject, one.residue) for one in compare(before, after) if one.source == "git status"
    ] == [("git status", "new file.py", False)]
    assert git_status(place.workspace) == ("new file.py",)


def test_a_file_that_no_call_named_is_scanned_too_and_one_that_was_dirty_before_is_not(place: Place) -> None:
    git(place, "init", "-q")
    work = Path(place.workspace)
    (work / "old").mkdir()
    (work / "old" / ".env").write_text("PASSWORD=hunter2\n")
    before = look(place)
    (work / "new" / "deep").mkdir(parents=True)
    (work / "new" / "deep" / "made by a script.py").write_text("x")
    found = task_files([f"{work}/named.py"], str(work), before)
    assert found == (f"{work}/named.py", f"{work}/new/deep/made by a script.py")
    assert task_files([f"{work}/named.py"], str(work / "new"), before) == found
    assert task_files(["a"], str(work), None) == ("a",)
    assert task_files(["a"], place.home, before) == ("a",)  # no repository there


def test_a_rename_is_one_entry(place: Place) -> None:
    git(place, "init", "-q")
    (Path(place.workspace) / "a").write_text("same text\n" * 10)
    git(place, "add", "-A")
    git(place, "-c", "user.name=n", "-c", "user.email=e@x", "commit", "-qm", "m")
    git(place, "mv", "a", "b")
    assert git_status(place.workspace) == ("b",)


def test_a_repository_s_own_configuration_runs_nothing_when_we_look(place: Place, tmp_path: Path) -> None:
    git(place, "init", "-q")
    git(place, "config", "core.fsmonitor", f"touch {tmp_path}/ran; false")
    git_status(place.workspace)
    assert not (tmp_path / "ran").exists()


def test_a_directory_without_repository_is_named_as_missing(place: Place) -> None:
    found = look(place)
    assert "not a git repository" in found.missing["git status"]
    assert "git status" not in found.entries


def test_a_listening_port_is_seen_and_has_to_be_accounted_for(place: Place) -> None:
    before = look(place)
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()
        port = server.getsockname()[1]
        after = look(place)
    told = checked(before, after)
    assert told.ok
    (finding,) = [one for one in told.findings if one.subject == "port"]
    assert f"port {port}" in finding.text
    assert not finding.residue


def test_a_background_process_with_the_task_s_mark_is_residue(place: Place) -> None:
    before = look(place)
    name, _, value = place.mark.partition("=")
    marks: dict[str, dict[str, str]] = {
        "own": {name: value, WORKSPACE_MARK: place.workspace},
        "unsaid": {name: value},
        "subagent": {name: f"{value}.0123456789.abcdef0123", WORKSPACE_MARK: place.workspace},
        "other": {name: f"{value}.x", WORKSPACE_MARK: place.workspace},
        "elsewhere": {name: value, WORKSPACE_MARK: place.home},
        "": {},
    }
    started = {
        whose: subprocess.Popen(
            [sys.executable, "-c", "input()"], stdin=subprocess.PIPE, env={**os.environ, **mark}
        )
        for whose, mark in marks.items()
    }  # fmt: skip
    try:
        for process in started.values():
            _wait_for_command(process.pid)
        told = checked(before, look(place))
    finally:
        for process in started.values():
            process.communicate(b"\n")
    assert not told.ok
    ours = {f"pid:{started[whose].pid}" for whose in ("own", "unsaid", "subagent")}
    assert {one.subject for one in told.findings if one.residue} == ours


def _wait_for_command(pid: int) -> None:
    """Until the child has become the program (its command line is set by exec)."""
    while not Path(f"/proc/{pid}/cmdline").read_bytes().endswith(b"input()\0"):
        os.sched_yield()


def test_an_ssh_control_master_is_residue_process_and_socket(place: Place) -> None:
    before = look(place)
    name, _, value = place.mark.partition("=")
    path = Path(place.home) / ".ssh" / "cm-box"
    with socket.socket(socket.AF_UNIX) as master:
        master.bind(str(path))
        # ssh's master rewrites its title into one word; `exec -a` gives a real process that title
        child = subprocess.Popen(
            ["bash", "-c", f"exec -a 'ssh: {path} [mux]' {sys.executable} -c 'input()'"], stdin=subprocess.PIPE,
            env={**os.environ, name: value},
        )  # fmt: skip
        try:
            _wait_for_command(child.pid)
            told = checked(before, look(place))
        finally:
            child.communicate(b"\n")
    residue = {one.subject: one.text for one in told.findings if one.residue}
    assert not told.ok
    assert str(path) in residue
    assert "SSH control socket" in residue[str(path)]
    assert f"pid:{child.pid}" in residue


@pytest.mark.parametrize(
    ("socket_at", "residue"),
    [("{home}/.ssh/cm-box", True), ("/run/x/cm-box", True), ("{home}/../ann/.ssh/cm-box", False)],
)
def test_an_ssh_process_that_has_written_over_its_environment_is_taken_for_the_task_s(
    place: Place, socket_at: str, residue: bool
) -> None:
    """ssh's master puts its title there; only the home of its socket may still tell whose it is."""
    before = look(place)
    title = f"ssh: {os.path.normpath(socket_at.format(home=place.home))} [mux]"
    child = subprocess.Popen([title, "-c", "input()"], executable=sys.executable, stdin=subprocess.PIPE, env={})
    try:
        _wait_for_command(child.pid)
        told = checked(before, look(place))
    finally:
        child.communicate(b"\n")
    assert (f"pid:{child.pid}" in [one.subject for one in told.findings if one.residue]) == residue
    assert residue or f"pid {child.pid}" in "".join(one.text for one in told.findings)


def test_a_temporary_file_that_the_task_wrote_is_residue_others_are_accounted_for(place: Place) -> None:
    before = look(place)
    mine, other = Path(place.temporary) / "mine.txt", Path(place.temporary) / "other.txt"
    mine.write_text("x")
    other.write_text("y")
    told = checked(before, look(place), mine=frozenset({str(mine)}))
    found = [
        (one.subject, one.residue) for one in told.findings if one.subject != "port"
    ]  # others may open some
    assert found == [(str(mine), True), ("temporary", False)]
    assert not told.ok
    mine.unlink()
    assert checked(before, look(place), mine=frozenset({str(mine)})).ok


def test_without_a_first_look_it_has_to_be_said_what_was_compared() -> None:
    told = checked(None, Look())
    assert [(one.subject, one.residue) for one in told.findings] == [("compared", False)]


def test_a_source_that_falls_silent_is_named() -> None:
    before = Look({"git status": {}, "disk": {"disk:1": "x"}}, {"failed units": "no systemd"})
    told = checked(
        before, Look({"disk": {"disk:1": "x"}}, {"git status": "gone", "failed units": "no systemd"})
    )
    assert [(one.subject, one.text) for one in told.findings] == [
        ("git", "git status could not be asked again")
    ]
    assert "(not asked: failed units)" in told.summary


def test_the_disk_counts_only_when_it_filled_by_more_than_a_step() -> None:
    def filled(gigabytes: int) -> Look:
        return Look({"disk": {f"disk:{gigabytes}": "used"}})

    assert compare(filled(10), filled(11)) == ()
    assert compare(filled(10), filled(4)) == ()
    assert [one.source for one in compare(filled(10), filled(12))] == ["disk"]


def test_a_machine_where_nothing_can_be_asked_gives_a_look_that_says_so(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(baseline, "PROC", tmp_path / "noproc")
    monkeypatch.setenv("PATH", str(tmp_path))
    found = look(Place(str(tmp_path / "gone"), str(tmp_path / "gone"), str(tmp_path)))
    assert set(found.missing) == {
        "git status",
        "listening ports",
        "failed units",
        "disk",
        "SSH connections",
        "temporary files",
    }
    assert found.missing["git status"] == "git is not installed"


def test_a_command_that_hangs_is_given_up(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    slow = tmp_path / "git"
    slow.write_text("#!/bin/sh\nexec sleep 30\n")
    slow.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setattr(baseline, "COMMAND_TIMEOUT_S", 0.2)
    found = look(Place(str(tmp_path), str(tmp_path), str(tmp_path)))
    assert "gave no answer" in found.missing["git status"]
