"""Where do jackstay's own files live, and are they private?"""

import os
import stat
from collections.abc import Mapping
from pathlib import Path

from jackstay.core.errors import ConfigError

HOME_VARIABLE = "JACKSTAY_HOME"
_PRIVATE = 0o700


def home(given: str | Path | None = None, *, environ: Mapping[str, str] = os.environ) -> Path:
    """Where sessions, backups and audit lie: `given`, JACKSTAY_HOME, or the platform's data directory.

    Absolute, `~` expanded, relative to the working directory; nothing is created.
    """
    chosen = given or environ.get(HOME_VARIABLE)
    if chosen:
        return Path(os.path.abspath(Path(chosen).expanduser()))  # noqa: PTH100 - resolve() would follow links
    from platformdirs import user_data_path

    return user_data_path("jackstay", appauthor=False)


def ensure_private(folder: Path) -> Path:
    """Create the directory, and those above it that are missing, for nobody but us (0700, whatever the umask).

    One that exists keeps its mode. Raises ConfigError where others could put files into it, where it is no
    directory, or where it cannot be made.
    """
    try:
        _make(folder)
        found = folder.stat()
    except OSError as problem:
        raise ConfigError(f"{folder} cannot be used: {problem.strerror}", hint=_HINT) from problem
    if found.st_uid not in (os.geteuid(), 0):
        raise ConfigError(f"{folder} belongs to another user (uid {found.st_uid})", hint=_HINT)
    if found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise ConfigError(f"{folder} can be written by others", hint=f"chmod go-w {folder}")
    return folder


_HINT = f"choose another directory with --home or {HOME_VARIABLE}"


def _make(folder: Path) -> None:
    if folder.is_dir():
        return
    _make(folder.parent)
    try:
        folder.mkdir(_PRIVATE)
    except FileExistsError:
        if folder.is_dir():  # another process was faster
            return
        raise
    folder.chmod(_PRIVATE)


def sessions_file(home: Path) -> Path:
    """The session store of a home."""
    return home / "sessions.db"
