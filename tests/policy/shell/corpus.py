"""Which commands do the tests share, and what is said about each?"""

from __future__ import annotations

import tomllib
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

CORPUS = Path(__file__).resolve().parents[2] / "corpus" / "shell.toml"


class Line(NamedTuple):
    """One labelled command."""

    group: str
    command: str
    read_only: bool
    interactive: bool | None


@lru_cache(maxsize=1)
def corpus() -> tuple[Line, ...]:
    """Every labelled command, once."""
    lines: dict[str, Line] = {}
    for case in tomllib.loads(CORPUS.read_text("utf-8"))["case"]:
        commands = [line for line in case.get("lines", "").split("\n") if line.strip()] + case.get("blocks", [])
        for command in commands:
            lines.setdefault(command, Line(case["group"], command, case["read_only"], case.get("interactive")))
    return tuple(lines.values())
