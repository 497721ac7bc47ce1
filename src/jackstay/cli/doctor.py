"""`jackstay doctor`: is this installation sound, and what mends it if not?"""

import os
import sqlite3
import stat
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Literal

import click
import msgspec

from jackstay._version import __version__
from jackstay.cli.main import FAILED
from jackstay.cli.screen import Paint
from jackstay.cli.switches import home_option, json_option
from jackstay.config.load import load
from jackstay.config.paths import home as home_path
from jackstay.config.paths import sessions_file
from jackstay.core.errors import ConfigError, JackstayError
from jackstay.core.wire import encode

State = Literal["ok", "warning", "problem"]


class Finding(msgspec.Struct, frozen=True, omit_defaults=True):
    """One thing that was looked at. `mend` is what to do about it."""

    check: str
    state: State
    text: str
    mend: str = ""


Check = Callable[[Path, bool], Iterator[Finding]]  # (home, repair)


@click.command()
@click.option("--repair", is_flag=True, help="Mend what can be mended: the store, rights of the home.")
@home_option
@json_option
def doctor(repair: bool, home: str | None, as_json: bool) -> int:
    """Check this installation: store, audit, backups, settings, model, sandbox, discipline, skills, agents.

    Each line says what was found; under a problem stands what mends it. Looking changes nothing.

    \b
    Examples:
      jackstay doctor
      jackstay doctor --repair
      jackstay doctor --json

    Exits 0 when all is sound (warnings included), 1 when something is wrong.
    """
    path = home_path(home)
    paint = Paint(sys.stdout)
    worst = 0
    for check in CHECKS:
        for finding in _looked_at(check, path, repair):
            worst = max(worst, FAILED if finding.state == "problem" else 0)
            if as_json:
                click.echo(encode(finding))
                continue
            mark = paint(_COLOUR[finding.state], f"{finding.state:<8}")
            mend = f"\n{'':9}{finding.mend}" if finding.mend else ""
            click.echo(f"{mark} {finding.check}: {finding.text}{mend}")
    return worst


_COLOUR = {"ok": "green", "warning": "yellow", "problem": "red"}


def _looked_at(check: Check, home: Path, repair: bool) -> Iterator[Finding]:
    name = check.__name__.strip("_")
    try:
        yield from check(home, repair)
    except (JackstayError, OSError) as problem:
        yield Finding(name, "problem", str(problem))


def _versions(home: Path, repair: bool) -> Iterator[Finding]:
    python = ".".join(str(part) for part in sys.version_info[:3])
    text = f"jackstay {__version__}, Python {python}, SQLite {sqlite3.sqlite_version}"
    if sys.version_info < (3, 11) or sqlite3.sqlite_version_info < (3, 37):
        yield Finding("versions", "problem", text, "Python 3.11 and SQLite 3.37 are the oldest that work")
    else:
        yield Finding("versions", "ok", text)


def _home(home: Path, repair: bool) -> Iterator[Finding]:
    if not home.exists():
        yield Finding("home", "ok", f"{home} does not exist yet; the first run creates it")
        return
    if not home.is_dir() or not os.access(home, os.W_OK | os.X_OK):
        yield Finding(
            "home", "problem", f"{home} is no directory that can be written", "choose another with --home"
        )
        return
    found = home.stat()
    rights = stat.S_IMODE(found.st_mode)
    if found.st_uid != os.geteuid():
        yield Finding("home", "problem", f"{home} belongs to uid {found.st_uid}", "use a home of your own")
    elif rights & 0o077 and repair:
        home.chmod(0o700)
        yield Finding("home", "ok", f"{home} was open to others ({rights:o}); now it is yours alone")
    elif rights & 0o077:
        yield Finding("home", "problem", f"{home} is open to others ({rights:o})", f"chmod 700 {home}")
    else:
        yield Finding("home", "ok", str(home))


def _store(home: Path, repair: bool) -> Iterator[Finding]:
    path = sessions_file(home)
    if not path.exists():
        yield Finding("store", "ok", "no sessions yet")
        return
    from jackstay.store.sqlite import SQLiteStore

    store = SQLiteStore(path)
    wrong = store.check(repair=repair)
    for sentence in wrong:
        mend = "" if repair else "jackstay doctor --repair keeps everything before the damage"
        yield Finding("store", "problem", sentence, mend)
    if not wrong:
        yield Finding("store", "ok", f"{path} is sound, {len(store.sessions(sys.maxsize))} sessions")
    store.close()


def _settings(home: Path, repair: bool) -> Iterator[Finding]:
    from jackstay.cli.setup import BUILT_IN

    loaded = load(home, Path.cwd(), base=BUILT_IN)
    for warning in loaded.warnings:
        yield Finding("settings", "warning", warning)
    yield Finding("settings", "ok", ", ".join(loaded.files) or "no files; the built-in settings hold")


def _model(home: Path, repair: bool) -> Iterator[Finding]:
    from jackstay.cli.setup import BUILT_IN, choose_model, from_environment
    from jackstay.models.registry import open_model

    config = load(home, Path.cwd(), base=BUILT_IN).config.under(from_environment())
    try:
        chosen = choose_model(config, os.environ)
        model = open_model(chosen, env=os.environ) if chosen is None or isinstance(chosen, str) else chosen
    except ConfigError as problem:
        yield Finding("model", "problem", problem.problem, problem.hint)
    else:
        yield Finding("model", "ok", model.name)


def _audit(home: Path, repair: bool) -> Iterator[Finding]:
    """A decision that cannot be written down stops a strict run."""
    from jackstay.ward.audit import Audit

    record = home / "audit" / "gates.jsonl"
    if not _is_writable(record.parent) or (record.exists() and not os.access(record, os.W_OK)):
        yield Finding("audit", "problem", f"{record} cannot be written", f"chmod -R u+rwX {record.parent}")
        return
    summary = Audit(home).summary(recent=0)
    if summary.unreadable:
        text = f"{summary.unreadable} lines of {record} cannot be read"
        yield Finding("audit", "warning", text, "torn, or written by something else; the rest counts")
    yield Finding("audit", "ok", f"{summary.total} decisions are recorded")


def _backups(home: Path, repair: bool) -> Iterator[Finding]:
    """A file that cannot be backed up is not written in a strict run."""
    from jackstay.ward.backup import Backups

    places = [home / "backups" / name for name in ("objects", "records")]
    wrong = next((place for place in places if not _is_writable(place)), None)
    if wrong is not None:
        yield Finding("backups", "problem", f"{wrong} cannot be written", f"chmod -R u+rwX {home / 'backups'}")
    else:
        yield Finding("backups", "ok", f"{len(Backups(home).list())} are kept")


def _is_writable(folder: Path) -> bool:
    """Can files be put there, now or once it is made?"""
    there = next(place for place in (folder, *folder.parents) if place.exists())
    return there.is_dir() and os.access(there, os.W_OK | os.X_OK)


def _discipline(home: Path, repair: bool) -> Iterator[Finding]:
    from jackstay.policy.data import BUILT_IN, problems

    wrong = problems(BUILT_IN)
    for sentence in wrong:
        yield Finding("discipline", "problem", sentence, "reinstall jackstay")
    if not wrong:
        languages = ", ".join(BUILT_IN.texts)
        yield Finding("discipline", "ok", f"{len(BUILT_IN.items)} closing items, texts in {languages}")


def _skills(home: Path, repair: bool) -> Iterator[Finding]:
    from jackstay.policy.hints import ON_ENTRY
    from jackstay.skills.catalog import Catalog, places

    where = places(workspace=str(Path.cwd()), home=str(home), user=str(Path.home()))
    found = Catalog(where).found
    for problem in found.problems:
        yield Finding("skills", "warning", problem, "mend the file, or move it away")
    missing = set(ON_ENTRY.values()) - {one.path for one in found.skills}
    if missing:
        yield Finding("skills", "problem", f"missing: {', '.join(sorted(missing))}", "reinstall jackstay")
    else:
        yield Finding("skills", "ok", f"{len(found.skills)} found")


def _agents(home: Path, repair: bool) -> Iterator[Finding]:
    from jackstay.agents.catalog import find_agents

    found = find_agents((), workspace=str(Path.cwd()), home=home)
    for problem in found.broken.values():
        yield Finding("agents", "warning", problem, "mend the file, or move it away")
    yield Finding("agents", "ok", ", ".join(one.name for one in found.listed))


def _sandbox(home: Path, repair: bool) -> Iterator[Finding]:
    from jackstay.sandbox.bwrap import Bubblewrap

    try:
        Bubblewrap.find()
    except ConfigError as problem:
        yield Finding("sandbox", "warning", problem.problem, problem.hint)
    else:
        yield Finding("sandbox", "ok", "bubblewrap works")


def _extensions(home: Path, repair: bool) -> Iterator[Finding]:
    from jackstay.runtime.extensions import installed

    found = list(installed())
    for one in found:
        if one.error is not None:
            text = f"{one.name} of {one.origin} cannot be loaded: {one.error}"
            yield Finding("extensions", "problem", text, "reinstall or uninstall that package")
    if all(one.error is None for one in found):
        yield Finding("extensions", "ok", ", ".join(one.name for one in found) or "none installed")


def _hosts(home: Path, repair: bool) -> Iterator[Finding]:
    from jackstay.cli.host_hermes import findings as hermes_findings
    from jackstay.cli.host_looks import findings

    for one in (*findings(home, Path.cwd()), *hermes_findings(home)):
        yield Finding("hosts", one.state, one.text, one.mend)


CHECKS: tuple[Check, ...] = (
    _versions, _home, _store, _audit, _backups, _settings, _model, _sandbox, _discipline, _skills, _agents,
    _extensions, _hosts,
)  # fmt: skip
