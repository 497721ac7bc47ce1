"""How is a file reached so that no link swapped in on the way can lead elsewhere?

A canonical path holds no link. It is walked down from the root, each directory held open, none of them followed
through a link: what became one in the meantime is found out, not followed.
"""

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import PurePath

_DIRECTORY: int = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | os.O_CLOEXEC
_NOFOLLOW: int = getattr(os, "O_NOFOLLOW", 0)


@contextmanager
def held(directory: PurePath, *, create: bool = False) -> Iterator[int]:
    """The directory of a canonical path as a descriptor; `create` makes what is missing.

    Raises OSError as opening it would, with ELOOP where a link stands in the way.
    """
    handle = os.open(directory.anchor or "/", _DIRECTORY)
    try:
        for name in directory.parts[1:]:
            inner = _step(handle, name, create=create)
            os.close(handle)
            handle = inner
        yield handle
    finally:
        os.close(handle)


def _step(handle: int, name: str, *, create: bool) -> int:
    if create:
        with suppress(FileExistsError):
            os.mkdir(name, dir_fd=handle)
    try:
        return os.open(name, _DIRECTORY | _NOFOLLOW, dir_fd=handle)
    except NotADirectoryError:
        if _is_link(name, handle):
            raise OSError(errno.ELOOP, "a link stands in its way") from None
        raise


def _is_link(name: str, handle: int) -> bool:
    try:
        return stat.S_ISLNK(os.stat(name, dir_fd=handle, follow_symlinks=False).st_mode)
    except OSError:
        return False


def open_file(name: str, handle: int) -> int:
    """The file of this name in a held directory, for reading; never through a link, never waiting for one."""
    return os.open(name, os.O_RDONLY | _NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=handle)


def make_file(name: str, handle: int, mode: int) -> int:
    """A file of this name that was not there, for writing."""
    return os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _NOFOLLOW | os.O_CLOEXEC, mode, dir_fd=handle)
