"""Reading, writing, editing and listing files of the workspace.

`context.seen` remembers what each file held when this session last read or wrote it: a file that somebody
else has changed since is not written over.
"""

import os
import stat
from collections.abc import Sequence
from typing import Annotated, BinaryIO

from msgspec import Meta

from jackstay.core.errors import ToolFailed
from jackstay.engine.ports import ToolContext
from jackstay.tools.edits import amend, line_end
from jackstay.tools.paths import Place, digest, locate, open_directory, open_inside, replace
from jackstay.tools.schema import tool
from jackstay.tools.texts import Decoded, decode, describe_binary, show_size

MAX_FILE = 64 << 20  # bytes read into memory at once
MAX_LINES = 2000
MAX_CHARS = 100_000  # of one answer
MAX_LINE = 2000  # characters shown of one line
MAX_ENTRIES = 500

FilePath = Annotated[
    str, Meta(description="Path of the file, relative to the workspace or absolute inside it.")
]


@tool(effects={"reads"}, idempotent=True, timeout_s=60, path_args=["file_path"])
def read(
    file_path: FilePath,
    offset: Annotated[int, Meta(ge=1, description="Number of the first line to show.")] = 1,
    limit: Annotated[int, Meta(ge=1, description=f"How many lines to show, at most {MAX_LINES}.")] = MAX_LINES,
    *,
    context: ToolContext,
) -> str:
    """Read a text file of the workspace. Lines are shown with their numbers; long files come page by page."""
    place = locate(context.workspace, file_path)
    with open_inside(place) as file:
        data = _whole(place, file)
    decoded = decode(data)
    if decoded is None:
        raise ToolFailed(
            f"{place.shown} is binary ({describe_binary(data)}) and not shown: use bash to inspect it"
        )
    context.seen[place.canonical] = digest(data)
    if not decoded.text:
        return f"{place.shown} is empty (0 lines)"
    return _page(place, decoded, len(data), (offset, limit))


@tool(effects={"writes"}, idempotent=True, timeout_s=60, path_args=["file_path"])
def write(
    file_path: FilePath,
    content: Annotated[str, Meta(description="The whole new content of the file.")],
    *,
    context: ToolContext,
) -> str:
    """Write a whole file: made with its directories where missing, replaced where there.

    Encoding, line ends and mode of a file that is there are kept.
    """
    place = locate(context.workspace, file_path)
    old = _present(place)
    data, notes = _encoded_like(old, content)
    if old != data:
        _expect_unchanged(place, old, context)
        replace(place, data, expected=None if old is None else digest(old))
    context.seen[place.canonical] = digest(data)
    did = "wrote" if old is None else "replaced" if old != data else "already as wanted:"
    lines = content.count("\n") + (not content.endswith("\n") and bool(content))
    return f"{did} {place.shown} ({lines} line{'s' * (lines != 1)}, {show_size(len(data))}{notes})"


@tool(effects={"reads", "writes"}, timeout_s=60, path_args=["file_path"])
def edit(
    file_path: FilePath,
    old_string: Annotated[str, Meta(description="The exact text to replace, without line numbers.")],
    new_string: Annotated[str, Meta(description="The text that comes in its stead.")],
    replace_all: Annotated[
        bool, Meta(description="Replace every occurrence; else it must occur once.")
    ] = False,
    *,
    context: ToolContext,
) -> str:
    """Replace a piece of text in a file. It must match exactly and stand in the file once.

    Encoding, line ends and mode of the file are kept.
    """
    place = locate(context.workspace, file_path)
    with open_inside(place) as file:
        data = _whole(place, file)
    decoded = decode(data)
    if decoded is None:
        raise ToolFailed(f"{place.shown} is binary ({describe_binary(data)}) and cannot be edited as text")
    _expect_unchanged(place, data, context)
    text, lines = amend(decoded.text, old_string, new_string, replace_all=replace_all)
    try:
        changed = decoded.encode(text)
    except UnicodeEncodeError as problem:
        raise ToolFailed(
            f"{place.shown} is {decoded.label} and cannot hold {problem.object[problem.start]!r}: "
            "write the whole file anew to have it in UTF-8, or leave that character out"
        ) from problem
    replace(place, changed, expected=digest(data))
    context.seen[place.canonical] = digest(changed)
    return _after_edit(place, text, lines, new_string)


@tool(effects={"reads"}, idempotent=True, timeout_s=60, path_args=["path"])
def ls(
    path: Annotated[str, Meta(description="Directory to list; the workspace where left out.")] = ".",
    *,
    context: ToolContext,
) -> str:
    """List a directory of the workspace: directories first, then files with their sizes."""
    place = locate(context.workspace, path)
    with open_directory(place) as handle:
        names = sorted(os.listdir(handle))  # noqa: PTH208 - pathlib cannot list an open directory
        entries = [_entry(handle, name) for name in names[: 20 * MAX_ENTRIES]]
    if not entries:
        return f"{place.shown} is empty"
    shown = [text for _, text in sorted(entries, key=lambda entry: entry[0])][:MAX_ENTRIES]
    rest = len(names) - len(shown)
    note = f"\n({rest} more entries not shown: use glob to narrow them)" if rest else ""
    return f"{place.shown}: {len(names)} entr{'y' if len(names) == 1 else 'ies'}\n" + "\n".join(shown) + note


# -- read ------------------------------------------------------------------------------------------------------


def _whole(place: Place, file: BinaryIO) -> bytes:
    size = os.fstat(file.fileno()).st_size
    data = file.read(MAX_FILE + 1) if size <= MAX_FILE else b""
    if size > MAX_FILE or len(data) > MAX_FILE:
        raise ToolFailed(
            f"{place.shown} has {show_size(size)}, more than the {show_size(MAX_FILE)} that are read at once: "
            "use grep, or bash with sed -n or head"
        )
    return data


def _page(place: Place, decoded: Decoded, size: int, wanted: tuple[int, int]) -> str:
    offset, limit = wanted
    lines = decoded.text.split("\n")
    ends = line_end(decoded.text)
    if lines[-1] == "":
        lines.pop()
    if offset > len(lines):
        raise ToolFailed(f"{place.shown} has {len(lines)} lines: offset {offset} is beyond its end")
    shown = _numbered(lines[offset - 1 : offset - 1 + min(limit, MAX_LINES)], offset)
    last = offset + len(shown) - 1
    facts = ", ".join([show_size(size), decoded.label, *(["CRLF line ends"] if ends == "\r\n" else [])])
    head = f"{place.shown}: lines {offset}-{last} of {len(lines)} ({facts})"
    if last < len(lines):
        foot = f"({len(lines) - last} more lines: read on with offset={last + 1})"
    else:
        foot = "(end of file)" if decoded.text.endswith("\n") else "(end of file, no newline at its end)"
    return "\n".join([head, *shown, foot])


def _numbered(lines: Sequence[str], first: int) -> list[str]:
    """The lines with their numbers, as many as fit into one answer and at least one."""
    shown: list[str] = []
    room = MAX_CHARS
    for number, line in enumerate(lines, first):
        text = f"{number:>6} | {_clip(line.removesuffix(chr(13)))}"
        room -= len(text) + 1
        if room < 0 and shown:
            break
        shown.append(text)
    return shown


def _clip(line: str) -> str:
    if len(line) <= MAX_LINE:
        return line
    rest = len(line) - MAX_LINE
    return f"{line[:MAX_LINE]} [… line clipped: {rest:,} of its {len(line):,} characters not shown]"


# -- write and edit --------------------------------------------------------------------------------------------


def _present(place: Place) -> bytes | None:
    """What the file holds; None where there is none, or none that could have been read before."""
    if not os.path.lexists(place.canonical):
        return None
    with open_inside(place) as file:
        if os.fstat(file.fileno()).st_size > MAX_FILE:
            return None  # too large for read, so this session has never seen it
        return _whole(place, file)


def _expect_unchanged(place: Place, data: bytes | None, context: ToolContext) -> None:
    known = context.seen.get(place.canonical)
    if known is not None and data is not None and digest(data) != known:
        raise ToolFailed(
            f"{place.shown} has changed since you last read or wrote it: nothing was done; "
            "read it again and repeat the change on what it holds now"
        )


def _encoded_like(old: bytes | None, content: str) -> tuple[bytes, str]:
    """The content as bytes, with the encoding and line ends of what is there; and what was kept, in words."""
    known = decode(old) if old else None
    notes: list[str] = []
    if known is not None and line_end(known.text) == "\r\n" and "\r" not in content:
        content = content.replace("\n", "\r\n")
        notes.append("CRLF line ends kept")
    if known is not None and (known.bom or known.encoding != "utf-8"):
        try:
            return known.encode(content), ", ".join(["", f"{known.label} kept", *notes])
        except UnicodeEncodeError:
            notes.append(f"now UTF-8: {known.encoding} cannot hold all of it")
    try:
        return content.encode(), ", ".join(["", *notes])
    except UnicodeEncodeError as problem:
        bad = problem.object[problem.start]
        raise ToolFailed(
            f"content holds half a character ({bad!r}) that UTF-8 cannot write: leave it out"
        ) from problem


def _after_edit(place: Place, text: str, lines: Sequence[int], new: str) -> str:
    count = len(lines)
    if count > 1:
        return f"edited {place.shown}: {count} replacements, at lines {', '.join(map(str, lines[:20]))}"
    start = lines[0]
    now = text.split("\n")[start - 1 : start + min(new.count("\n"), 20)]
    return "\n".join([f"edited {place.shown}: 1 replacement. It now reads:", *_numbered(now, start)])


# -- ls --------------------------------------------------------------------------------------------------------


def _entry(handle: int, name: str) -> tuple[tuple[bool, str], str]:
    try:
        facts = os.stat(name, dir_fd=handle, follow_symlinks=False)
        target = os.readlink(name, dir_fd=handle) if stat.S_ISLNK(facts.st_mode) else None
    except OSError:  # somebody has taken it away, or put something else in its place
        return (True, name), f"{name}  (gone)"
    if target is not None:
        return (True, name), f"{name} -> {target}"
    if stat.S_ISDIR(facts.st_mode):
        return (False, name), f"{name}/"
    if not stat.S_ISREG(facts.st_mode):
        return (True, name), f"{name}  (special file)"
    return (True, name), f"{name}  {show_size(facts.st_size)}"
