"""Which file does a path name, and is it inside the workspace, at the moment it is opened?

A path is resolved first and judged then. It is opened by walking down from the workspace directory without
following any link, so a link swapped in between the judgement and the opening is found, not followed.
"""

import contextlib
import difflib
import hashlib
import os
import secrets
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

import msgspec

from jackstay.core.errors import ToolFailed

_NOFOLLOW: int = getattr(os, "O_NOFOLLOW", 0)
_DIRECTORY: int = getattr(os, "O_DIRECTORY", 0) | _NOFOLLOW | getattr(os, "O_CLOEXEC", 0)
_READ: int = os.O_RDONLY | _NOFOLLOW | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0)
_CREATE: int = os.O_WRONLY | os.O_CREAT | os.O_EXCL | _NOFOLLOW | getattr(os, "O_CLOEXEC", 0)

_COMPARED = 5000  # names, when the nearest is looked for
_NOT_FILES = ("/proc", "/sys", "/dev")  # reading there can hang or act
_KINDS = (
    (stat.S_ISDIR, "a directory"), (stat.S_ISLNK, "a symbolic link"), (stat.S_ISFIFO, "a named pipe"),
    (stat.S_ISSOCK, "a socket"), (stat.S_ISCHR, "a device"), (stat.S_ISBLK, "a device"),
)  # fmt: skip


class Place(msgspec.Struct, frozen=True, gc=False):
    """A resolved path inside the workspace: no component of `parts` was a link when it was resolved."""

    workspace: str
    parts: tuple[str, ...]

    @property
    def canonical(self) -> str:
        """The absolute path, free of links."""
        return os.path.join(self.workspace, *self.parts)  # noqa: PTH118 - plain text, nothing to look up

    @property
    def shown(self) -> str:
        """The path as people and models read it: relative to the workspace."""
        return "/".join(self.parts) or "."


def locate(workspace: str, path: str) -> Place:
    """Where `path` leads, from the workspace, with `~` expanded and all links followed.

    Raises ToolFailed when that is outside the workspace, in a special file system, or no path at all.
    """
    if "\0" in path:
        raise ToolFailed("the path contains a NUL character: give a plain path")
    if os.open not in os.supports_dir_fd:
        raise ToolFailed("the file tools need a POSIX system: use WSL on Windows")
    root = os.path.realpath(workspace)
    expanded = Path(path).expanduser() if path == "~" or path.startswith("~/") else Path(path)
    try:
        target = os.path.realpath(Path(root) / expanded)
    except OSError as problem:  # a link that was there a moment ago
        raise ToolFailed(f"{path} changed while it was being looked for: try again") from problem
    inside = os.path.relpath(target, root)
    if inside == ".." or inside.startswith("../"):
        leads = "" if target == str(expanded) else f" (it leads to {target})"
        raise ToolFailed(
            f"{path} is outside the workspace {root}{leads}: name a path inside it, "
            "or ask your user to copy what you need into it"
        )
    if any(target == top or target.startswith(top + "/") for top in _NOT_FILES if not root.startswith(top)):
        raise ToolFailed(f"{path} is in a special file system and no ordinary file: use bash to look at it")
    return Place(root, () if inside == "." else tuple(inside.split("/")))


# -- opening ---------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def open_directory(place: Place, *, create: bool = False) -> Iterator[int]:
    """The directory as a descriptor, reached without following a link; `create` makes it where missing."""
    try:
        handle = os.open(place.workspace, os.O_RDONLY | _DIRECTORY & ~_NOFOLLOW)
    except OSError as problem:
        raise ToolFailed(f"the workspace {place.workspace} cannot be opened: {problem.strerror}") from problem
    try:
        for number, name in enumerate(place.parts):
            inner = _step(handle, Place(place.workspace, place.parts[: number + 1]), name, create)
            os.close(handle)
            handle = inner
        yield handle
    finally:
        os.close(handle)


def _step(handle: int, place: Place, name: str, create: bool) -> int:
    try:
        return _open_or_make(handle, name, create)
    except FileNotFoundError:
        raise ToolFailed(_missing(place, handle, "directory")) from None
    except NotADirectoryError:
        raise ToolFailed(f"{place.shown} is {_kind_at(handle, name)}, not a directory") from None
    except OSError as problem:
        raise ToolFailed(_refused(place, problem)) from problem


def _open_or_make(handle: int, name: str, create: bool) -> int:
    try:
        return os.open(name, os.O_RDONLY | _DIRECTORY, dir_fd=handle)
    except FileNotFoundError:
        if not create:
            raise
    with contextlib.suppress(FileExistsError):  # somebody else was as quick
        os.mkdir(name, dir_fd=handle)
    return os.open(name, os.O_RDONLY | _DIRECTORY, dir_fd=handle)


@contextlib.contextmanager
def open_inside(place: Place) -> Iterator[BinaryIO]:
    """The regular file at this place, opened for reading; a special file is never opened, so nothing hangs.

    Raises ToolFailed naming what is there instead, or the nearest names where nothing is.
    """
    if not place.parts:
        raise ToolFailed("the workspace itself is a directory: use ls to see what it holds")
    with open_directory(_parent(place)) as parent:
        _expect_file(place, parent)
        try:
            descriptor = os.open(place.parts[-1], _READ, dir_fd=parent)
        except OSError as problem:
            raise ToolFailed(_refused(place, problem)) from problem
    with os.fdopen(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise ToolFailed(f"{place.shown} changed while it was being opened: try again")
        yield file


def _expect_file(place: Place, parent: int) -> os.stat_result:
    """The facts about the regular file at this place; raises ToolFailed when it is none."""
    name = place.parts[-1]
    try:
        facts = os.stat(name, dir_fd=parent, follow_symlinks=False)
    except FileNotFoundError:
        raise ToolFailed(_missing(place, parent, "file")) from None
    except OSError as problem:
        raise ToolFailed(_refused(place, problem)) from problem
    if stat.S_ISDIR(facts.st_mode):
        raise ToolFailed(f"{place.shown} is a directory: use ls to see what it holds")
    if stat.S_ISLNK(facts.st_mode):
        raise ToolFailed(f"{place.shown} became a link while it was being opened: nothing was done, try again")
    if not stat.S_ISREG(facts.st_mode):
        raise ToolFailed(f"{place.shown} is {_kind(facts.st_mode)}: only regular files are read and written")
    return facts


# -- replacing -------------------------------------------------------------------------------------------------


def digest(data: bytes) -> str:
    """What tells one content from another."""
    return hashlib.sha256(data).hexdigest()


def replace(place: Place, data: bytes, *, expected: str | None = None) -> None:
    """Put `data` in the file's stead, all or nothing; the mode stays, missing directories are made.

    The new content is written beside the file, flushed to disk and renamed over it; a hard link elsewhere
    keeps the old content. With `expected` the old content must still have that digest.
    Raises ToolFailed when something else than a regular file is in the way, or the content has changed.
    """
    if not place.parts:
        raise ToolFailed("the workspace itself is a directory: name a file in it")
    with open_directory(_parent(place), create=True) as parent:
        old = _present(place, parent)
        temporary = f".{place.parts[-1][:200]}.{secrets.token_hex(6)}.tmp"
        try:
            _write_beside(parent, temporary, data, old)
            if expected is not None:
                _expect_digest(place, parent, expected)
            os.replace(temporary, place.parts[-1], src_dir_fd=parent, dst_dir_fd=parent)
            os.fsync(parent)
        except OSError as problem:
            raise ToolFailed(_refused(place, problem)) from problem
        finally:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(temporary, dir_fd=parent)


def _present(place: Place, parent: int) -> os.stat_result | None:
    try:
        os.stat(place.parts[-1], dir_fd=parent, follow_symlinks=False)
    except FileNotFoundError:
        return None
    except OSError as problem:
        raise ToolFailed(_refused(place, problem)) from problem
    return _expect_file(place, parent)


def _write_beside(parent: int, name: str, data: bytes, old: os.stat_result | None) -> None:
    mode = 0o666 if old is None else stat.S_IMODE(old.st_mode)
    descriptor = os.open(name, _CREATE, mode & 0o777, dir_fd=parent)
    with os.fdopen(descriptor, "wb") as file:
        file.write(data)
        file.flush()
        if old is not None:
            if (old.st_uid, old.st_gid) != (os.geteuid(), os.getegid()):
                with contextlib.suppress(PermissionError):  # only root may give files away
                    os.fchown(descriptor, old.st_uid, old.st_gid)
            os.fchmod(descriptor, mode)
        os.fsync(descriptor)


def _expect_digest(place: Place, parent: int, expected: str) -> None:
    descriptor = os.open(place.parts[-1], _READ, dir_fd=parent)
    with os.fdopen(descriptor, "rb") as file:
        if digest(file.read()) != expected:
            raise ToolFailed(
                f"{place.shown} changed while it was being written: nothing was done, read it again"
            )


# -- words -----------------------------------------------------------------------------------------------------


def _parent(place: Place) -> Place:
    return Place(place.workspace, place.parts[:-1])


def _kind(mode: int) -> str:
    return next((name for test, name in _KINDS if test(mode)), "no regular file")


def _kind_at(handle: int, name: str) -> str:
    try:
        mode = os.stat(name, dir_fd=handle, follow_symlinks=False).st_mode
    except OSError:
        return "gone"
    return "a file" if stat.S_ISREG(mode) else _kind(mode)


def _missing(place: Place, parent: int, what: str) -> str:
    try:
        names = os.listdir(parent)
    except OSError:
        names = []
    near = difflib.get_close_matches(place.parts[-1], names[:_COMPARED], 3, 0.5)
    above = "/".join(place.parts[:-1]) or "the workspace"
    if near:
        return f"there is no {what} {place.shown}; near it: {', '.join(near)}"
    return f"there is no {what} {place.shown}: use ls or glob to see what {above} holds"


def _refused(place: Place, problem: OSError) -> str:
    return f"{place.shown}: {problem.strerror or problem}"
