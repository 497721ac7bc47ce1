"""Real confinement by the real bubblewrap."""

import shutil
import socket
import subprocess
from pathlib import Path

import pytest

from jackstay.core.errors import ConfigError
from jackstay.engine.ports import Launch
from jackstay.sandbox.bwrap import INSTALL, Bubblewrap
from jackstay.sandbox.named import confined, open_sandbox
from jackstay.sandbox.none import NoSandbox
from jackstay.sandbox.profile import Profile, read_view, work_view


@pytest.fixture(scope="module")
def bwrap() -> Bubblewrap:
    assert shutil.which("bwrap"), f"these tests need bubblewrap: {INSTALL}"
    return Bubblewrap.find()


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "in").mkdir()
    (tmp_path / "secret").mkdir()
    (tmp_path / "secret" / "key").write_text("k")
    return tmp_path.resolve()


def run(bwrap: Bubblewrap, profile: Profile, script: str, cwd: Path) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        bwrap.wrap(("sh", "-c", script), profile),
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=20,
        check=False,
    )


def test_a_read_view_reads_everything_and_writes_nothing(bwrap: Bubblewrap, place: Path) -> None:
    (place / "f").write_text("text")
    done = run(
        bwrap, read_view(["cat"]), "cat f; echo x > g; echo y > /tmp/jackstay-g; rm f; mkdir /root/x", place
    )
    assert done.stdout == "text"
    assert sorted(p.name for p in place.iterdir()) == ["f", "in", "secret"]
    assert not Path("/tmp/jackstay-g").exists()
    assert done.stderr.count("Read-only file system") == 4


def test_it_starts_where_it_was_started_and_has_a_place_for_temporary_files(
    bwrap: Bubblewrap, place: Path
) -> None:
    done = run(bwrap, read_view([]), 'pwd; t=$(mktemp) && echo x > "$t" && cat "$t"; cat <<E\nhere\nE', place)
    assert done.stdout == f"{place}\nx\nhere\n"


def test_a_work_view_writes_in_its_workspace_only(bwrap: Bubblewrap, place: Path) -> None:
    done = run(bwrap, work_view(str(place / "in")), "echo a > in/a; echo b > b; echo c > /etc/c", place)
    assert [p.name for p in (place / "in").iterdir()] == ["a"]
    assert not (place / "b").exists()
    assert not Path("/etc/c").exists()
    assert done.stderr.count("Read-only file system") == 2


def test_hidden_places_look_empty(bwrap: Bubblewrap, place: Path) -> None:
    hidden = (str(place / "secret"), str(place / "file"), str(place / "none"))
    (place / "file").write_text("k")
    done = run(bwrap, read_view([], hidden=hidden), "ls secret; cat secret/key file", place)
    assert done.stdout == ""


def test_there_is_no_network_unless_asked_for(bwrap: Bubblewrap, place: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        script = f"exec 3<>/dev/tcp/127.0.0.1/{server.getsockname()[1]} && echo open"
        shut, opened = (
            subprocess.run(
                bwrap.wrap(("bash", "-c", script), read_view(programs)), cwd=place, capture_output=True, text=True,
                timeout=20, check=False,
            ).stdout
            for programs in (["cat"], ["curl"])
        )  # fmt: skip
    assert (shut, opened) == ("", "open\n")


def test_a_read_view_sees_other_processes_a_work_view_does_not(bwrap: Bubblewrap, place: Path) -> None:
    with subprocess.Popen(("sleep", "30")) as other:
        script = f"test -d /proc/{other.pid} && tr '\\0' ' ' < /proc/{other.pid}/cmdline"
        seen, unseen = (
            run(bwrap, profile, script, place).stdout for profile in (read_view([]), work_view(str(place)))
        )
        other.kill()
    assert (seen, unseen) == ("sleep 30 ", "")


def test_exit_codes_and_arguments_pass_through(bwrap: Bubblewrap, place: Path) -> None:
    done = subprocess.run(
        bwrap.wrap(("sh", "-c", 'printf %s "$1"; exit 7', "sh", "--ro-bind"), Profile()), cwd=place, capture_output=True,
        text=True, timeout=20, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (7, "--ro-bind")


def test_a_missing_sandbox_is_an_error_with_the_command_that_installs_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(ConfigError) as caught:
        open_sandbox("bwrap")
    assert (
        str(caught.value)
        == "the sandbox 'bwrap' is not installed (install it with: apt-get install bubblewrap)"
    )


def test_a_sandbox_that_does_not_work_is_an_error_with_its_own_words(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    fake = tmp_path / "bwrap"
    fake.write_text("#!/bin/sh\necho 'No permissions to create new namespace' >&2\nexit 1\n")
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    with pytest.raises(ConfigError, match="No permissions to create new namespace"):
        open_sandbox("bwrap")


def test_none_has_to_be_named_and_nothing_else_is_known() -> None:
    assert isinstance(open_sandbox("none"), NoSandbox)
    assert NoSandbox().wrap(["ls", "-l"], Profile()) == ("ls", "-l")
    with pytest.raises(ConfigError, match="there is no sandbox 'auto' \\(known: bwrap, none\\)"):
        open_sandbox("auto")


def test_a_launcher_confines_what_it_launches(bwrap: Bubblewrap) -> None:
    launch = confined(bwrap, Profile())(Launch(("ls",), "/w", {"A": "1"}))
    assert launch == Launch(bwrap.wrap(("ls",), Profile()), "/w", {"A": "1"})
