"""Which projects may widen what is allowed? Those the user has named, as long as their files stay the same."""

import os
import tempfile
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

import msgspec

from jackstay.config.paths import ensure_private
from jackstay.core.errors import ConfigError

PROJECT_DIR = ".jackstay"
_COUNTED = ("config.toml", "agents/*.md", "skills/*/SKILL.md", "commands/*.md")
_MOST_BYTES = 1 << 20  # of one file; what is larger is never trusted


def project_digest(project: Path) -> str | None:
    """One value for all settings of a project; None when it has none, or one of them cannot be taken whole.

    Raises OSError for a file that cannot be read.
    """
    sums: list[bytes] = []
    for path in _settings(project / PROJECT_DIR):
        if not path.is_file() or path.stat().st_size > _MOST_BYTES:
            return None
        name = path.relative_to(project).as_posix()
        sums.append(name.encode() + b"\0" + sha256(path.read_bytes()).digest())
    return sha256(b"".join(sums)).hexdigest() if sums else None


def _settings(folder: Path) -> Iterator[Path]:
    for pattern in _COUNTED:
        yield from sorted(folder.glob(pattern))


class Trust:
    """The list of trusted projects, kept in the home: canonical path and digest of what was looked at."""

    def __init__(self, home: Path) -> None:
        self._path = home / "trusted.json"

    def entries(self) -> dict[str, str]:
        """Path to digest. Raises ConfigError when the list cannot be read: nobody is trusted by accident."""
        try:
            data = self._path.read_bytes()
        except FileNotFoundError:
            return {}
        except OSError as problem:
            raise ConfigError(f"cannot be read: {problem.strerror}", where=str(self._path)) from problem
        try:
            return msgspec.json.decode(data, type=dict[str, str])
        except msgspec.DecodeError as problem:
            hint = "remove the file and trust the projects again"
            raise ConfigError(
                f"is not a list of projects: {problem}", hint=hint, where=str(self._path)
            ) from problem

    def holds(self, project: Path) -> bool:
        """Is this project trusted with the settings it has now?"""
        known = self.entries().get(str(project.resolve()))
        return known is not None and known == project_digest(project)

    def add(self, project: Path) -> str:
        """Trust the project as it is now; the digest. Raises ConfigError when it has no settings to trust."""
        digest = project_digest(project)
        if digest is None:
            hint = f"they are in {PROJECT_DIR}/config.toml and the folders beside it, each file below 1 MB"
            raise ConfigError(f"{project} has no settings that could be trusted", hint=hint)
        self._write({**self.entries(), str(project.resolve()): digest})
        return digest

    def remove(self, project: Path) -> bool:
        """Trust the project no more; False when it was not trusted."""
        kept = self.entries()
        found = kept.pop(str(project.resolve()), None)
        if found is not None:
            self._write(kept)
        return found is not None

    def _write(self, entries: dict[str, str]) -> None:
        ensure_private(self._path.parent)
        data = msgspec.json.format(msgspec.json.encode(entries, order="sorted"))
        handle, name = tempfile.mkstemp(dir=self._path.parent, prefix=".trusted-")  # 0600 from the start
        with os.fdopen(handle, "wb") as file:
            file.write(data + b"\n")
        Path(name).replace(self._path)
