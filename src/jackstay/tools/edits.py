"""Where does a piece of text stand in a file, what comes in its stead, and why was it not found?"""

import difflib
import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence

from jackstay.core.errors import ToolFailed

_NUMBERED = re.compile(r"^ *\d+ \| ", re.MULTILINE)
_SHOWN = 160  # characters of a line in a message
_SEARCHED = 20_000  # lines looked at for a near match: beyond that it would take seconds

Span = tuple[int, int]


def amend(text: str, old: str, new: str, *, replace_all: bool = False) -> tuple[str, list[int]]:
    """The text with `new` for `old`, and the line each replacement begins at.

    `old` must stand there exactly once unless `replace_all`; a line end in it matches the file's own, and those
    of `new` become the file's. Raises ToolFailed saying what is near, or how often and where it stands.
    """
    if not old:
        raise ToolFailed("old_string is empty: give the text to replace, or use write for a whole file")
    if old == new:
        raise ToolFailed("old_string and new_string are the same: nothing to change")
    spans = list(_find(text, old))
    if not spans:
        raise ToolFailed(_not_found(text, old, new))
    lines = [text.count("\n", 0, start) + 1 for start, _ in spans]
    if len(spans) > 1 and not replace_all:
        raise ToolFailed(
            f"old_string stands in the file {len(spans)} times, at lines {_listed(lines)}: "
            "add lines around it until it is unique, or set replace_all"
        )
    return _splice(text, spans, _with_ends_of(text, new)), lines


def line_end(text: str) -> str:
    """The line end that most lines of the text have."""
    windows = text.count("\r\n")
    return "\r\n" if windows * 2 > text.count("\n") else "\n"


def _find(text: str, old: str) -> Iterator[Span]:
    """Where `old` stands, whatever the line ends of either; found with plain line ends and counted back."""
    plain, wanted = text.replace("\r\n", "\n"), old.replace("\r\n", "\n")
    shortened = _shortened(text) if len(plain) != len(text) else []
    start = plain.find(wanted)
    while start >= 0:
        end = start + len(wanted)
        yield start + bisect_left(shortened, start), end + bisect_left(shortened, end)
        start = plain.find(wanted, end)


def _shortened(text: str) -> list[int]:
    """Where, in the text with plain line ends, those stand that were two characters before."""
    return [found.start() - number for number, found in enumerate(re.finditer("\r\n", text))]


def _with_ends_of(text: str, new: str) -> str:
    if "\r\n" not in text:
        return new
    return new.replace("\r\n", "\n").replace("\n", line_end(text))


def _splice(text: str, spans: Sequence[Span], new: str) -> str:
    pieces: list[str] = []
    position = 0
    for start, end in spans:
        pieces += [text[position:start], new]
        position = end
    return "".join([*pieces, text[position:]])


# -- why not ---------------------------------------------------------------------------------------------------


def _not_found(text: str, old: str, new: str) -> str:
    wanted = old.replace("\r\n", "\n").split("\n")
    lines = text.replace("\r\n", "\n").split("\n")
    if _NUMBERED.match(old):
        return "old_string was not found: it seems to hold the line numbers that read shows; leave them out"
    loose = _ignoring_blanks(lines, wanted)
    if loose is not None:
        end = loose + len(wanted) - 1
        return (
            f"old_string was not found; lines {loose + 1}-{end + 1} differ from it only in white space:\n"
            + "\n".join(lines[loose : end + 1][:40])
        )
    made = bool(new.strip()) and new.replace("\r\n", "\n") in text.replace("\r\n", "\n")
    note = "\n(new_string is in the file already: was this edit made before?)" if made else ""
    return _nearest(lines, wanted) + note


def _ignoring_blanks(lines: Sequence[str], wanted: Sequence[str]) -> int | None:
    sought = [" ".join(line.split()) for line in wanted]
    if not any(sought):
        return None
    plain = [" ".join(line.split()) for line in lines]
    for start in range(len(plain) - len(sought) + 1):
        if plain[start] == sought[0] and plain[start : start + len(sought)] == sought:
            return start
    return None


def _nearest(lines: Sequence[str], wanted: Sequence[str]) -> str:
    first = next((number for number, line in enumerate(wanted) if line.strip()), 0)
    exact = [number for number, line in enumerate(lines) if line == wanted[first]]
    if exact:
        start = max(exact, key=lambda number: _agreement(lines, number - first, wanted))
        return _first_difference(lines, start - first, wanted)
    sought = wanted[first].strip()[:_SHOWN]
    known = {line.strip()[:_SHOWN] for line in lines[:_SEARCHED]} - {""}
    near = difflib.get_close_matches(sought, known, 3, 0.6)
    if not near:
        first_line = repr(_short(sought))
        return f"old_string was not found and no line is like its first one, {first_line}: read the file again"
    places = [(number, line) for number, line in enumerate(lines, 1) if line.strip()[:_SHOWN] in near][:3]
    shown = "\n".join(f"{number:>6} | {_short(line)}" for number, line in places)
    head = "old_string was not found; the lines nearest to its first one are:"
    return f"{head}\n{shown}\nread the file again and copy exactly"


def _agreement(lines: Sequence[str], start: int, wanted: Sequence[str]) -> int:
    count = 0
    for offset, line in enumerate(wanted):
        if not 0 <= start + offset < len(lines) or lines[start + offset] != line:
            break
        count += 1
    return count


def _first_difference(lines: Sequence[str], start: int, wanted: Sequence[str]) -> str:
    offset = min(_agreement(lines, start, wanted), len(wanted) - 1)
    number = start + offset
    there = repr(_short(lines[number])) if 0 <= number < len(lines) else "nothing (the file ends before it)"
    return (
        f"old_string was not found; it begins like line {start + 1} of the file and first differs at line "
        f"{number + 1}: there stands {there}, old_string has {_short(wanted[offset])!r}"
    )


def _short(line: str) -> str:
    return line if len(line) <= _SHOWN else line[:_SHOWN] + "…"


def _listed(lines: Sequence[int]) -> str:
    shown = ", ".join(map(str, lines[:20]))
    return shown if len(lines) <= 20 else f"{shown} and {len(lines) - 20} more"
