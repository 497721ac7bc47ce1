"""The search worker: walks a directory and matches names or lines, in a process that can be killed.

A pattern of the model's can keep `re` busy for years, and no thread can be stopped in there. The worker is
started without site packages and imports the standard library only; it gets an open directory and follows no
link, so it cannot leave that directory.
"""

import json
import os
import re
import signal
import stat
import sys
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from jackstay.tools.texts import decode

IGNORED: frozenset[str] = frozenset({
    ".git", ".gradle", ".hg", ".hypothesis", ".idea", ".mvn", ".mypy_cache", ".next", ".nox", ".pytest_cache",
    ".ruff_cache", ".svn", ".terraform", ".tox", ".venv", ".vscode", "__pycache__", "bower_components", "build",
    "dist", "node_modules", "target", "vendor", "venv",
})  # fmt: skip
"""Directories that are not walked into; named as the path itself they are."""

MAX_DEPTH = 100
_DIRECTORY = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_NOFOLLOW", 0)
_FILE = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)


class Request(NamedTuple):
    """What to look for below the directory (or in the file) that is open as `handle`."""

    handle: int
    glob: str | None = None
    pattern: str | None = None  # None: names only
    case: bool = True
    most: int = 500  # results
    max_file: int = 10 << 20  # bytes
    max_line: int = 500  # characters shown of a line
    alive_s: int = 60  # then it ends, even if nobody is left to kill it


class Found(NamedTuple):
    """A file met on the way: its path below the start, and how to open it."""

    path: str
    parent: int
    name: str


Say = Callable[[str, Any], None]


def main(request: str) -> None:
    """Serve one request; the answer goes to standard output, one JSON pair (kind, value) a line."""
    warnings.simplefilter("ignore")  # `re` comments on odd patterns

    def say(kind: str, value: Any) -> None:
        sys.stdout.write(json.dumps((kind, value)) + "\n")

    wanted = Request(**json.loads(request))
    signal.alarm(wanted.alive_s)
    serve(wanted, say)
    sys.stdout.flush()


def serve(request: Request, say: Say) -> None:
    """Tell `say` each result (`file` or `line`), what is read (`at`), and in the end the counts (`end`)."""
    counts: Counter[str] = Counter()
    ignored: set[str] = set()
    wanted = glob_regex(request.glob) if request.glob else None
    lines = None if request.pattern is None else line_regex(request.pattern, case=request.case)
    results = 0
    for found in _start(request.handle, counts, ignored):
        if wanted is not None and found.path and not wanted.match(found.path):
            continue
        if results >= request.most:
            counts["more"] = 1
            break
        if lines is None:
            say("file", _plain(found.path))
            results += 1
        else:
            results += _search(found, lines, request, (counts, say), request.most - results)
    say("end", {"counts": counts, "ignored": sorted(ignored)})


def _search(
    found: Found, lines: re.Pattern[str], request: Request, report: tuple[Counter[str], Say], most: int
) -> int:
    counts, say = report
    text = _text(found, request.max_file, counts)
    if text is None:
        return 0
    shown = _plain(found.path)
    say("at", shown)
    sys.stdout.flush()  # if this file is where the pattern never ends, the reader knows
    hits = 0
    for number, line in enumerate(text.split("\n"), 1):
        if lines.search(line):
            if hits == most:
                counts["more"] = 1
                break
            hits += 1
            say("line", (shown, number, _clip(line.removesuffix("\r"), request.max_line)))
    counts["matching"] += bool(hits)
    return hits


def _text(found: Found, max_file: int, counts: Counter[str]) -> str | None:
    try:
        handle = os.open(found.name, _FILE, dir_fd=found.parent) if found.name else os.dup(found.parent)
        with os.fdopen(handle, "rb") as file:
            facts = os.fstat(handle)
            if not stat.S_ISREG(facts.st_mode):
                counts["special"] += 1
                return None
            if facts.st_size > max_file:
                counts["large"] += 1
                return None
            data = file.read(max_file)
    except OSError:
        counts["unreadable"] += 1
        return None
    decoded = decode(data)
    counts["read" if decoded else "binary"] += 1
    return decoded.text if decoded else None


# -- walking ---------------------------------------------------------------------------------------------------


def _start(handle: int, counts: Counter[str], ignored: set[str]) -> Iterator[Found]:
    if stat.S_ISDIR(os.fstat(handle).st_mode):
        yield from _walk(handle, "", (counts, ignored), MAX_DEPTH)
    else:
        yield Found("", handle, "")


def _walk(handle: int, prefix: str, notes: tuple[Counter[str], set[str]], depth: int) -> Iterator[Found]:
    counts, ignored = notes
    try:
        with os.scandir(handle) as found:
            entries = sorted(found, key=lambda entry: entry.name)
    except OSError:
        counts["unreadable"] += 1
        return
    for entry in entries:
        if entry.is_symlink():
            counts["links"] += 1
        elif entry.is_file(follow_symlinks=False):
            yield Found(prefix + entry.name, handle, entry.name)
        elif entry.is_dir(follow_symlinks=False):
            if entry.name in IGNORED:
                ignored.add(prefix + entry.name)
            else:
                yield from _below(handle, entry.name, prefix, notes, depth)
        else:
            counts["special"] += 1


def _below(
    handle: int, name: str, prefix: str, notes: tuple[Counter[str], set[str]], depth: int
) -> Iterator[Found]:
    if depth == 0:
        notes[0]["deep"] += 1
        return
    try:
        inner = os.open(name, _DIRECTORY, dir_fd=handle)
    except OSError:
        notes[0]["unreadable"] += 1
        return
    try:
        yield from _walk(inner, f"{prefix}{name}/", notes, depth - 1)
    finally:
        os.close(inner)


# -- patterns --------------------------------------------------------------------------------------------------


def line_regex(pattern: str, *, case: bool) -> re.Pattern[str]:
    """The pattern as a regular expression; taken literally when it is none."""
    flags = 0 if case else re.IGNORECASE
    return re.compile(pattern if is_regex(pattern) else re.escape(pattern), flags)


def is_regex(pattern: str) -> bool:
    """Can it be read as a regular expression?"""
    try:
        re.compile(pattern)
    except (re.error, RecursionError, OverflowError):
        return False
    return True


def glob_regex(pattern: str) -> re.Pattern[str]:
    """`*`, `?` and `[…]` within a name, `**` over directories, `{a,b}`; without a `/` at any depth."""
    plain = pattern.removeprefix("./").lstrip("/")
    if "/" not in plain.rstrip("/"):
        plain = "**/" + plain
    return re.compile("|".join(_glob(option) for option in _braces(plain)) + r"\Z", re.DOTALL)


def _glob(pattern: str) -> str:
    return "(?:" + "".join(_token(token) for token in _TOKENS.findall(pattern)) + r")\Z"


_TOKENS = re.compile(r"\*\*/|\*\*|\*|\?|\[!?\]?[^\]/]*\]|.", re.DOTALL)


def _token(token: str) -> str:
    if token[0] == "[" and len(token) > 2:
        body = token[1:-1]
        negated = body.startswith("!")
        inner = body[negated:].replace("\\", "\\\\").replace("^", "\\^").replace("[", "\\[")
        return f"(?!/)[{'^' * negated}{inner}]"
    return {"**/": "(?:[^/]+/)*", "**": ".*", "*": "[^/]*", "?": "[^/]"}.get(token) or re.escape(token)


def _braces(pattern: str, most: int = 100) -> list[str]:
    options = [pattern]
    while len(options) < most:
        found = [(option, re.search(r"\{([^{}]*,[^{}]*)\}", option)) for option in options]
        if not any(match for _, match in found):
            break
        options = [made for option, match in found for made in _choices(option, match)]
    return options[:most]


def _choices(option: str, match: re.Match[str] | None) -> list[str]:
    if match is None:
        return [option]
    return [option[: match.start()] + choice + option[match.end() :] for choice in match[1].split(",")]


def _clip(line: str, most: int) -> str:
    return line if len(line) <= most else f"{line[:most]}[…{len(line) - most} more]"


def _plain(path: str) -> str:
    return os.fsencode(path).decode("utf-8", "replace")
