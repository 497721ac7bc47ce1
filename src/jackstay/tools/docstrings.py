"""What does a function's docstring say of the tool and of each parameter?"""

import re
from collections.abc import Iterator
from inspect import cleandoc

_SECTION = re.compile(r"(?:Args|Arguments|Parameters):\s*\Z")
_ENTRY = re.compile(r"\*{0,2}(?P<name>\w+)\s*(?:\([^)]*\))?\s*:\s*(?P<text>.*)\Z")


def read_docstring(text: str | None) -> tuple[str, dict[str, str]]:
    """The description without its `Args:` section, and what that section says of each parameter."""
    kept: list[str] = []
    entries: dict[str, list[str]] = {}
    lines = iter(cleandoc(text or "").split("\n"))
    for line in lines:
        if not _SECTION.match(line):
            kept.append(line)
            continue
        after = _read_section(lines, entries)
        if after is not None:
            kept.append(after)
    return "\n".join(kept).strip(), {name: " ".join(filter(None, words)) for name, words in entries.items()}


def _read_section(lines: Iterator[str], entries: dict[str, list[str]]) -> str | None:
    indent: int | None = None
    current: list[str] = []
    for line in lines:
        bare = line.strip()
        depth = len(line) - len(line.lstrip())
        if bare and depth == 0:
            return line
        indent = depth if indent is None and bare else indent
        entry = _ENTRY.match(bare) if depth == indent else None
        if entry is not None:
            current = entries.setdefault(entry["name"], [])
        current.append(entry["text"].strip() if entry is not None else bare)
    return None
