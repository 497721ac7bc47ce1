"""Where does a written path really lead: links followed, `~` expanded, case as the file system has it?"""

import os
import re
import stat

_PROCESS = re.compile(
    r"/proc/(?:self|thread-self|\d+)(?:/task/[^/]+)?/root(?=/|$)|(/proc/(?:thread-)?self/cwd)(?=/|$)"
)
_DESCRIPTOR = re.compile(
    r"/(?:dev|proc/(?:self|thread-self|\d+)(?:/task/[^/]+)?)/fd(?:/|$)|/dev/std(?:in|out|err)$"
)


def canonical(path: str, cwd: str, home: str) -> str:
    """The absolute path without links, `.`, `..` and `~`; "" when it cannot be told.

    Links are followed before `..` is taken, as the kernel does; a link that dangles leads to its target; what
    does not exist yet keeps its name below the deepest directory that does. `/proc/self/cwd` means `cwd`: the
    process that will open the path is another one. A loop of links, an open descriptor, a NUL, or a user nobody
    knows cannot be told.
    """
    if "\0" in path:
        return ""
    written = _absolute(path, cwd, home)
    if not written or _DESCRIPTOR.match(written):
        return ""
    real = ""
    try:
        real = os.path.realpath(_PROCESS.sub(lambda m: cwd if m[1] else "/", written))
        if stat.S_ISLNK(os.lstat(real).st_mode):
            return ""  # a loop: realpath gives up where it began
    except FileNotFoundError:
        pass
    except (OSError, ValueError):
        return _by_parent(written)
    return true_case(real)


def _by_parent(written: str) -> str:
    """For a name the system will not look at (too long, not permitted): its place below a readable parent."""
    parent, _, name = written.rpartition("/")
    try:
        return f"{os.path.realpath(parent or '/', strict=True).rstrip('/')}/{name}"
    except (OSError, ValueError):
        return ""


def _absolute(path: str, cwd: str, home: str) -> str:
    if path == "~" or path.startswith("~/"):
        return home + path[1:]
    if path.startswith("~"):
        expanded = os.path.expanduser(path)  # noqa: PTH111 - `~user` at the start only, as a shell does
        return "" if expanded.startswith("~") else expanded
    return path if path.startswith("/") else f"{cwd}/{path}"


def true_case(real: str) -> str:
    """The path spelled as its directories list it, where the file system does not care about case."""
    if not _ignores_case(real):
        return real
    found = ""
    for name in real.split("/")[1:]:
        found = f"{found}/{_spelled(found or '/', name)}"
    return found or "/"


_CARES: dict[int, bool] = {}  # device -> does its file system care about case?


def _ignores_case(real: str) -> bool:
    """Does the file system that holds the path take `A` for `a`? Asked once for each device."""
    place = real
    while place:
        try:
            found = os.lstat(place)
        except OSError:
            place = place.rpartition("/")[0]
            continue
        known = _CARES.get(found.st_dev)
        if known is not None:
            return not known
        parent, _, name = place.rpartition("/")
        if name.swapcase() != name:
            _CARES[found.st_dev] = not _is_same(f"{parent}/{name.swapcase()}", found)
            return not _CARES[found.st_dev]
        place = parent
    return False


def _is_same(path: str, found: os.stat_result) -> bool:
    try:
        other = os.lstat(path)
    except OSError:
        return False
    return (other.st_dev, other.st_ino) == (found.st_dev, found.st_ino)


def _spelled(directory: str, name: str) -> str:
    names = _names(directory)
    return name if name in names else next((n for n in names if n.casefold() == name.casefold()), name)


def _names(directory: str) -> list[str]:
    try:
        return os.listdir(directory)  # noqa: PTH208 - names, not paths
    except OSError:
        return []


def has_other_names(real: str) -> bool:
    """Is this an existing file with further hard links, so that writing in place changes those too?"""
    try:
        found = os.lstat(real)
    except (OSError, ValueError):
        return False
    return stat.S_ISREG(found.st_mode) and found.st_nlink > 1


def is_below_a_file(real: str) -> bool:
    """Would this path lie beneath something that is no directory, so that nothing can be written there?"""
    try:
        return not stat.S_ISDIR(os.lstat(real.rpartition("/")[0] or "/").st_mode)
    except (OSError, ValueError):
        return False
