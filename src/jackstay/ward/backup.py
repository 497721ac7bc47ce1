"""How does a file come back as it was, byte for byte and with its mode?

Contents are stored once by their digest, outside the workspace; one record a backup says which files they were.
"""

import contextlib
import errno
import hashlib
import os
import secrets
import shutil
import stat
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Literal, assert_never

from msgspec import Struct, ValidationError

from jackstay.core import wire
from jackstay.core.errors import JackstayError
from jackstay.ward.holding import held, make_file, open_file

MAX_FILE_BYTES = 64_000_000
MAX_SNAPSHOT_BYTES = 256_000_000
MAX_SNAPSHOT_FILES = 20_000

Was = Literal["file", "link", "absent", "directory"]


class BackupError(JackstayError):
    """A copy could not be taken or brought back; the text names the file and the reason."""


class Copy(Struct, frozen=True, gc=False, omit_defaults=True):
    """One file as it was. `digest` names its content (a link's target text); `was` tells what stood there."""

    path: str
    was: Was
    digest: str = ""
    mode: int = 0
    size: int = 0


class Backup(Struct, frozen=True, gc=False, omit_defaults=True):
    """Copies taken at one moment. `at` is in epoch seconds; `why` names the call; `skipped` was too large."""

    id: str
    at: float
    session: str
    why: str
    copies: tuple[Copy, ...]
    skipped: tuple[str, ...] = ()


class Backups:
    """The backup area below a home: `objects/` by digest, `records/` by id. Created on first use, 0700."""

    def __init__(self, home: Path | str, *, max_file_bytes: int = MAX_FILE_BYTES) -> None:
        self._root = Path(home) / "backups"
        self._limit = max_file_bytes

    def take(self, paths: Iterable[str], *, session: str, why: str, at: float) -> Backup:
        """Copy these files away, or record that they do not exist; all of them or none.

        Raises BackupError naming the first that cannot be copied: unreadable, no regular file, over the limit.
        """
        copies = tuple(self._copy(Path(path)) for path in dict.fromkeys(paths))
        return self._record(Backup(_id(at, session, copies), at, session, why, copies))

    def snapshot(self, paths: Iterable[str], *, session: str, why: str, at: float) -> Backup:
        """Copy as many of these files as fit below the snapshot's limits; the others are named in `skipped`."""
        copies: list[Copy] = []
        skipped: list[str] = []
        room = MAX_SNAPSHOT_BYTES
        for path in dict.fromkeys(paths):
            try:
                size = os.lstat(path).st_size
                if size > room or len(copies) >= MAX_SNAPSHOT_FILES:
                    skipped.append(path)
                    continue
                copies.append(self._copy(Path(path)))
                room -= size
            except (OSError, BackupError):
                skipped.append(path)
        backup = Backup(_id(at, session, tuple(copies)), at, session, why, tuple(copies), tuple(skipped))
        return self._record(backup)

    def restore(self, backup_id: str, *, only: str | None = None) -> tuple[str, ...]:
        """Bring every file of a backup back, or the one at `only`; returns the paths that were brought back.

        What did not exist then is removed. A file is written whole or not at all, and never through a link that
        stands in its way now. Raises BackupError.
        """
        backup = self.get(backup_id)
        wanted = [copy for copy in backup.copies if only is None or copy.path == only]
        if not wanted:
            raise BackupError(
                f"backup {backup_id} holds no copy of {only}: `jackstay backup list` shows what it holds"
            )
        for copy in wanted:
            self._bring_back(copy)
        return tuple(copy.path for copy in wanted)

    def get(self, backup_id: str) -> Backup:
        """One backup; raises BackupError when there is none of this id."""
        if not backup_id.replace("-", "").isalnum():
            raise BackupError(f"{backup_id!r} is no backup id: `jackstay backup list` shows them")
        found = self._read(self._root / "records" / f"{backup_id}.json")
        if found is None:
            raise BackupError(f"there is no backup {backup_id}: `jackstay backup list` shows them")
        return found

    def list(self, *, session: str | None = None, path: str | None = None) -> list[Backup]:
        """The backups, the latest first; those of a session, those that hold a path."""
        records = self._root / "records"
        found = [self._read(file) for file in records.glob("*.json")] if records.is_dir() else []
        return sorted(
            (
                one for one in found
                if one is not None and session in (None, one.session)
                and (path is None or any(copy.path == path for copy in one.copies))
            ),
            key=lambda one: (one.at, one.id), reverse=True,
        )  # fmt: skip

    def _copy(self, path: Path) -> Copy:
        try:
            with held(path.parent) as parent:
                return self._copied(path, parent)
        except (FileNotFoundError, NotADirectoryError):
            return Copy(str(path), "absent")
        except OSError as problem:
            verb = "looked at" if problem.errno == errno.ELOOP else "copied"
            raise BackupError(f"{path} cannot be {verb}: {problem.strerror}") from problem

    def _copied(self, path: Path, parent: int) -> Copy:
        found = os.stat(path.name, dir_fd=parent, follow_symlinks=False)
        mode = stat.S_IMODE(found.st_mode)
        if stat.S_ISLNK(found.st_mode):
            target = os.fsencode(os.readlink(path.name, dir_fd=parent))
            return Copy(str(path), "link", self._keep(target), mode, len(target))
        if stat.S_ISDIR(found.st_mode):
            return Copy(str(path), "directory", mode=mode)
        if not stat.S_ISREG(found.st_mode):
            raise BackupError(f"{path} is no regular file")
        if found.st_size > self._limit:
            raise BackupError(f"{path} has {found.st_size} bytes, over the limit of {self._limit}")
        return Copy(str(path), "file", self._keep_file(open_file(path.name, parent)), mode, found.st_size)

    def _keep_file(self, descriptor: int) -> str:
        digest = hashlib.sha256()
        with os.fdopen(descriptor, "rb") as source, self._temporary() as (file, name):
            while block := source.read(1 << 20):
                digest.update(block)
                file.write(block)
            file.flush()
            return self._settle(name, digest.hexdigest())

    def _keep(self, data: bytes) -> str:
        with self._temporary() as (file, name):
            file.write(data)
            file.flush()
            return self._settle(name, hashlib.sha256(data).hexdigest())

    def _temporary(self) -> "_Temporary":
        self._root.mkdir(mode=0o700, parents=True, exist_ok=True)
        for part in ("objects", "records"):
            (self._root / part).mkdir(mode=0o700, exist_ok=True)
        return _Temporary(self._root)

    def _settle(self, name: Path, digest: str) -> str:
        place = self._object(digest)
        place.parent.mkdir(mode=0o700, exist_ok=True)
        if not place.exists():
            name.replace(place)
        return digest

    def _object(self, digest: str) -> Path:
        return self._root / "objects" / digest[:2] / digest

    def _record(self, backup: Backup) -> Backup:
        with self._temporary() as (file, name):
            file.write(wire.encode(backup))
            file.flush()
            name.replace(self._root / "records" / f"{backup.id}.json")
        return backup

    def _read(self, file: Path) -> Backup | None:
        try:
            found: Backup = wire.convert(wire.decode_json(file.read_bytes()), Backup)
        except (OSError, ValueError, ValidationError):
            return None
        return found

    def _bring_back(self, copy: Copy) -> None:
        path = Path(copy.path)
        try:
            match copy.was:
                case "absent":
                    self._remove(path)
                case "directory":
                    with held(path, create=True) as place:
                        os.fchmod(place, copy.mode)
                case "link" | "file":
                    self._write_back(copy, path)
                case _:
                    assert_never(copy.was)
        except OSError as problem:
            raise BackupError(f"{path} cannot be brought back: {problem.strerror}") from problem

    def _remove(self, path: Path) -> None:
        try:
            with held(path.parent) as parent:
                if stat.S_ISDIR(os.stat(path.name, dir_fd=parent, follow_symlinks=False).st_mode):
                    raise BackupError(f"{path} did not exist then and is a directory now: remove it yourself")
                os.unlink(path.name, dir_fd=parent)
        except (FileNotFoundError, NotADirectoryError):
            return  # it is not there

    def _write_back(self, copy: Copy, path: Path) -> None:
        content = self._object(copy.digest)
        if not content.is_file():
            raise BackupError(f"the content of {path} is gone from the backup area ({copy.digest[:12]})")
        fresh = f".jackstay-restore-{secrets.token_hex(8)}"
        with held(path.parent, create=True) as parent:
            try:
                if copy.was == "link":
                    os.symlink(os.fsdecode(content.read_bytes()), fresh, dir_fd=parent)
                else:
                    with content.open("rb") as kept, os.fdopen(make_file(fresh, parent, 0o600), "wb") as file:
                        shutil.copyfileobj(kept, file)
                        os.fchmod(file.fileno(), copy.mode)
                os.replace(fresh, path.name, src_dir_fd=parent, dst_dir_fd=parent)
            finally:
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(fresh, dir_fd=parent)


class _Temporary:
    """A file of our own that is gone afterwards, unless it was moved to its place."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def __enter__(self) -> "tuple[tempfile._TemporaryFileWrapper[bytes], Path]":
        self._file = tempfile.NamedTemporaryFile(dir=self._root, delete=False)
        return self._file, Path(self._file.name)

    def __exit__(self, *_: object) -> None:
        self._file.close()
        Path(self._file.name).unlink(missing_ok=True)


def _id(at: float, session: str, copies: tuple[Copy, ...]) -> str:
    """A name that sorts by time and differs whenever anything of the backup does."""
    digest = hashlib.sha256(wire.encode([at, session, copies])).hexdigest()
    return f"{int(at * 1000):013d}-{digest[:10]}"


def workspace_files(workspace: str, names: Iterable[str]) -> Iterator[str]:
    """The paths that git names, inside the workspace; for a snapshot."""
    root = Path(workspace)
    for name in names:
        path = root / name
        if os.path.lexists(path):
            yield str(path)
