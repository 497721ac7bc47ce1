"""Finding lines and files in the workspace, within a time limit that holds for any pattern."""

import os
import re
import secrets
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import anyio
from msgspec import Meta

from jackstay.core import wire
from jackstay.core.errors import ToolFailed
from jackstay.engine.ports import Launch, ToolContext
from jackstay.tools.paths import Place, locate, open_directory, open_inside
from jackstay.tools.processes import Capture, Process
from jackstay.tools.schema import tool
from jackstay.tools.walking import Request, glob_regex, is_regex

TIME_S = 20.0
MOST_LINES = 300
MOST_FILES = 500
_WORKER = "import sys; sys.path.append(sys.argv[1]); from jackstay.tools.walking import main; main(sys.argv[2])"
_HOME = str(Path(__file__).parents[2])  # the directory that holds the package

_SKIPPED = (
    ("binary", "binary"), ("large", "over 10 MB"), ("links", "links"), ("special", "special files"),
    ("unreadable", "unreadable"), ("deep", "too deep"),
)  # fmt: skip


class _Answer:
    """What the worker has said so far."""

    def __init__(self) -> None:
        self.results: list[Any] = []
        self.at = ""
        self.end: dict[str, Any] | None = None
        self.words = Capture()  # of the worker's error output
        self._rest = b""

    def hear(self, data: bytes) -> None:
        """Take in a piece of the worker's output."""
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            kind, value = wire.decode_json(line)
            if kind in ("file", "line"):
                self.results.append(value)
            elif kind == "at":
                self.at = value
            else:
                self.end = value


@tool(effects={"reads"}, idempotent=True, timeout_s=TIME_S + 10, path_args=["path"])
async def grep(
    pattern: Annotated[
        str, Meta(min_length=1, description="Regular expression (Python's), matched line by line.")
    ],
    path: Annotated[str, Meta(description="Directory or file to search; the workspace where left out.")] = ".",
    glob: Annotated[
        str | None, Meta(description="Search only files that match, such as *.py or src/**/*.ts.")
    ] = None,
    case: Annotated[bool, Meta(description="Does upper or lower case matter?")] = True,
    *,
    context: ToolContext,
) -> str:
    """Search the lines of files for a regular expression. Gives `path:line: text`, sorted by path.

    Version control, caches, dependencies and build output are left out unless named as path.
    """
    place = locate(context.workspace, path)
    answer = await _ask(place, Request(-1, _below(glob, place), pattern, case, MOST_LINES))
    lines = [f"{_join(place, name)}:{number}: {text}" for name, number, text in answer.results]
    files = len({name for name, _, _ in answer.results})
    literal = (
        [] if is_regex(pattern) else [f"{pattern!r} is no valid regular expression: searched for it literally"]
    )
    if lines:
        head = f"{len(lines)} matching line{'s' * (len(lines) != 1)} in {files} file{'s' * (files != 1)}"
    else:
        read = answer.end["counts"].get("read", 0) if answer.end else 0
        head = f"no line matches {pattern!r} in {place.shown} ({read} file{'s' * (read != 1)} searched)"
    return "\n".join([head, *lines, *literal, *_notes(answer, place, MOST_LINES)])


@tool(effects={"reads"}, idempotent=True, timeout_s=TIME_S + 10, path_args=["path"])
async def glob(
    pattern: Annotated[str, Meta(min_length=1, description="Such as **/*.py, src/*.{ts,tsx} or Makefile.")],
    path: Annotated[str, Meta(description="Directory to search; the workspace where left out.")] = ".",
    *,
    context: ToolContext,
) -> str:
    """Find files by name: `*` and `?` within a name, `**` over directories; without a `/` at any depth.

    Sorted by path. Version control, caches, dependencies and build output are left out unless named as path.
    """
    place = locate(context.workspace, path)
    answer = await _ask(place, Request(-1, _below(pattern, place), most=MOST_FILES))
    names = [_join(place, name) for name in answer.results]
    if names:
        head = f"{len(names)} file{'s' * (len(names) != 1)}, sorted by path"
    else:
        head = f"no file matches {pattern!r} in {place.shown}"
    return "\n".join([head, *names, *_notes(answer, place, MOST_FILES)])


# -- the worker ------------------------------------------------------------------------------------------------


def _below(pattern: str | None, place: Place) -> str | None:
    """The glob pattern relative to the place; an absolute one must lie below it."""
    if pattern is None:
        return None
    if pattern.startswith("/"):
        start = place.canonical.rstrip("/") + "/"
        if not pattern.startswith(start):
            raise ToolFailed(f"{pattern} does not begin with {start}: give a pattern relative to the path")
        pattern = pattern.removeprefix(start)
    if ".." in pattern.split("/"):
        raise ToolFailed(f"{pattern} leads upwards with '..': name the directory as path instead")
    try:
        glob_regex(pattern)
    except re.error as problem:
        raise ToolFailed(f"{pattern!r} is no glob pattern: {problem}") from problem
    return pattern


async def _ask(place: Place, request: Request) -> _Answer:
    """Let a worker search below the place; what it found within its time."""
    if Path(place.canonical).is_dir():
        with open_directory(place) as handle:
            return await _serve(request._replace(handle=handle))
    with open_inside(place) as file:
        return await _serve(request._replace(handle=file.fileno()))


async def _serve(request: Request) -> _Answer:
    words = (sys.executable, "-I", "-S", "-c", _WORKER, _HOME, wire.encode(request._asdict()).decode())
    answer = _Answer()
    process = Process(Launch(words, "/", dict(os.environ)), secrets.token_hex(8), pass_fds=[request.handle])
    try:
        async with anyio.create_task_group() as group:
            group.start_soon(process.pump, process.stderr, answer.words.add)
            with anyio.move_on_after(TIME_S):
                await process.pump(process.stdout, answer.hear)
                await process.exited()
            group.cancel_scope.cancel()
        code = process.reap()
    finally:
        if process.reap() is None:
            await process.end()
        process.close()
    if code not in (0, None):
        said = answer.words.parts()[0].decode(errors="replace").strip().rsplit("\n", 1)[-1]
        raise ToolFailed(f"the search broke off (exit code {code}): {said or 'it said nothing'}")
    return answer


# -- words -----------------------------------------------------------------------------------------------------


def _join(place: Place, name: str) -> str:
    return "/".join(filter(None, [*place.parts, name]))


def _notes(answer: _Answer, place: Place, most: int) -> list[str]:
    if answer.end is None:
        where = f" in {_join(place, answer.at)}" if answer.at else ""
        return [
            f"(stopped after {TIME_S:g} s{where}: there may be more; name a smaller path or glob, "
            "or simplify the pattern)"
        ]
    counts = answer.end["counts"]
    notes: list[str] = []
    if counts.get("more"):
        notes.append(f"(stopped at {most}: there are more; name a smaller path or a narrower pattern)")
    skipped = [f"{counts[key]} {words}" for key, words in _SKIPPED if counts.get(key)]
    if skipped:
        notes.append(f"(skipped: {', '.join(skipped)})")
    return notes + _ignored(answer.end["ignored"], place)


def _ignored(names: Sequence[str], place: Place) -> list[str]:
    if not names:
        return []
    shown = ", ".join(_join(place, name) for name in names[:5])
    more = f" and {len(names) - 5} more" if len(names) > 5 else ""
    return [f"(left out: {shown}{more}; name one as path to search it)"]
