"""Whatever breaks, the call does not run: each fault is made for real beside the real Hermes, and mended again."""

import shutil
import signal
import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from jackstay.hosts.install_hermes import PLUGINS
from tests.hosts.hermes_kit import Driver, Host

pytestmark = [pytest.mark.hosts, pytest.mark.timeout(300)]
REFUSED = "[work-principles]"
INTERPRETER = "enforced: the one it was installed with is gone; without its own, Hermes does not start"


@contextmanager
def _locked(database: Path) -> Iterator[None]:
    connection = sqlite3.connect(database, isolation_level=None)
    connection.execute("BEGIN EXCLUSIVE")
    try:
        yield
    finally:
        connection.execute("ROLLBACK")
        connection.close()


@contextmanager
def _broken_settings(config: Path) -> Iterator[None]:
    config.write_text("discipline = 7")
    try:
        yield
    finally:
        config.unlink()


@contextmanager
def _newer(database: Path) -> Iterator[None]:
    connection = sqlite3.connect(database, isolation_level=None)
    (before,) = connection.execute("SELECT state FROM sessions WHERE id = 'f'").fetchone()
    connection.execute("UPDATE sessions SET state = ? WHERE id = 'f'", (b'{"policy":{},"schema":99}',))
    try:
        yield
    finally:
        connection.execute("UPDATE sessions SET state = ? WHERE id = 'f'", (before,))
        connection.close()


@contextmanager
def _read_only(hermes: Driver) -> Iterator[None]:
    home = hermes.host.jackstay
    places = [home, *home.rglob("*")]
    modes = {place: place.stat().st_mode & 0o777 for place in places}
    for place in places:
        place.chmod(0o555 if place.is_dir() else 0o444)
    hermes.ask("nobody", on=True)
    try:
        yield
    finally:
        hermes.ask("nobody", on=False)
        for place, mode in modes.items():
            place.chmod(mode)


@contextmanager
def _full(hermes: Driver) -> Iterator[None]:
    hermes.ask("full", limit=0)
    try:
        yield
    finally:
        hermes.ask("full", limit=-1)


@contextmanager
def _moved(place: Path) -> Iterator[None]:
    away = place.with_name(f"{place.name}.away")
    place.rename(away)
    try:
        yield
    finally:
        if place.exists():
            place.unlink() if place.is_file() else shutil.rmtree(place)
        away.rename(place)


def _refuses(hermes: Driver, target: Path, session: str = "f") -> str:
    result = hermes.call(session, "write_file", path=str(target), content="x")
    assert REFUSED in result
    assert not target.exists()
    return result


@pytest.mark.case("hermes", "fault: raises", "enforced")
@pytest.mark.case("hermes", "fault: store locked", "enforced")
@pytest.mark.case("hermes", "fault: state of another version", "enforced")
@pytest.mark.case("hermes", "fault: disk full", "enforced")
@pytest.mark.case("hermes", "fault: store read-only", "enforced")
@pytest.mark.case(
    "hermes", "fault: times out", "enforced: Hermes has no limit, the call waits as long as it takes"
)
@pytest.mark.case("hermes", "fault: is killed", "enforced")
def test_every_fault_of_the_store_refuses_and_a_mended_one_judges_again(host: Host) -> None:
    host.install()
    target, database = host.workspace / "fault.txt", host.jackstay / "hosts.db"
    with host.driver() as hermes:
        assert "first" in _refuses(hermes, target) or "Research" in _refuses(hermes, target)

        with _broken_settings(host.jackstay / "config.toml"):
            assert "cannot judge" in _refuses(hermes, target)
        with _locked(database):
            assert "locked" in _refuses(hermes, target)
        with _newer(database):
            assert "newer" in _refuses(hermes, target)
        with _full(hermes):
            assert "cannot judge" in _refuses(hermes, target)
        with _read_only(hermes):
            assert "cannot judge" in _refuses(hermes, target, "read-only")
        result = _refuses(hermes, target)
        assert "cannot judge" not in result  # mended, it judges again

        # While it waits for the store the call has not run; killed then, it never will.
        with _locked(database):
            hermes.send("tool", session="f", tool="write_file", args={"path": str(target), "content": "x"})
            time.sleep(1)
            assert not target.exists()
            hermes.process.send_signal(signal.SIGKILL)
            hermes.process.wait()
        assert not target.exists()


@pytest.mark.case("hermes", "fault: store corrupt", "enforced")
def test_a_store_of_junk_refuses(host: Host) -> None:
    host.install()
    target, database = host.workspace / "fault.txt", host.jackstay / "hosts.db"
    with host.driver() as hermes:
        _refuses(hermes, target)
    for companion in ("-wal", "-shm"):
        Path(f"{database}{companion}").unlink(missing_ok=True)
    database.write_bytes(b"junk" * 4096)
    with host.driver() as hermes:
        assert "cannot judge" in _refuses(hermes, target)
        seen = hermes.turn("f", "hello", {"text": "Hello.", "calls": []})
        assert "cannot judge" in seen.context  # and the model is told
    assert database.read_bytes() == b"junk" * 4096


@pytest.mark.case("hermes", "fault: home is a file", "enforced")
def test_a_home_that_is_a_file_refuses_and_the_plugin_is_loaded_all_the_same(host: Host) -> None:
    host.install()
    target = host.workspace / "fault.txt"
    shutil.copytree(host.jackstay / "hermes", host.home / "elsewhere")
    for name in PLUGINS:
        link = host.hermes / "plugins" / name
        link.unlink()
        link.symlink_to(host.home / "elsewhere" / "plugins" / name)
    shutil.rmtree(host.jackstay)
    host.jackstay.write_text("not a directory")
    with host.driver() as hermes:
        assert "cannot judge" in _refuses(hermes, target)


@pytest.mark.parametrize(
    "fault",
    [
        pytest.param("broken", marks=pytest.mark.case("hermes", "fault: package broken at import", "enforced")),
        pytest.param(
            "other Python", marks=pytest.mark.case("hermes", "fault: interpreter missing", INTERPRETER)
        ),
        "absent",
        "half",
    ],
)
@pytest.mark.case("hermes", "the package {}", "enforced")
def test_a_package_that_cannot_be_imported_refuses(host: Host, fault: str) -> None:
    host.install()
    target, room = host.workspace / "fault.txt", host.home / "packages"
    places = [host.jackstay / "hermes/plugins" / name / "place.py" for name in PLUGINS]
    (room / "jackstay").mkdir(parents=True)
    match fault:
        case "broken":
            (room / "jackstay/__init__.py").write_text("raise RuntimeError('half an upgrade')\n")
        case "half":
            (room / "jackstay/__init__.py").write_text("")
        case "absent":
            for place in places:
                place.write_text(place.read_text().partition("PATHS")[0] + "PATHS = ['/nonexistent']\n")
        case "other Python":
            for place in places:
                place.write_text(place.read_text().replace("cpython-", "cpython-0"))
    path = {"PYTHONPATH": str(room)} if fault in ("broken", "half") else {"JACKSTAY_ABSENT": "1"}
    with host.driver(**path) as hermes:
        result = hermes.call("f", "write_file", path=str(target), content="x")
    assert "jackstay could not be started" in result
    assert not target.exists()


def test_jackstay_in_another_environment_is_found_by_the_link(host: Host) -> None:
    host.install()
    with host.driver(JACKSTAY_ABSENT="1") as hermes:
        _refuses(hermes, host.workspace / "fault.txt")
        assert "place.py" in hermes.call("f", "terminal", command=f"ls {host.jackstay}/hermes/plugins/*")
