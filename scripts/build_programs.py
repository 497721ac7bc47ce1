"""How is programs.toml turned into the form that is loaded when a command is judged?

Run it after every change of the table: `python scripts/build_programs.py`. A test fails while the two differ.
"""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

SHELL = Path(__file__).resolve().parent.parent / "src" / "jackstay" / "policy" / "shell"
HEAD = '''"""What is known about programs, ready to load. Generated from programs.toml by
scripts/build_programs.py."""

# ruff: noqa: E501  (one line a program, so that a change shows as one line)
TABLE = r"""{
'''


def compiled(source: str) -> str:
    """The text of the generated module."""
    table = tomllib.loads(source)
    lines = [f"{json.dumps(name)}:{json.dumps(entry, separators=(',', ':'))}" for name, entry in table.items()]
    return HEAD + ",\n".join(lines) + '\n}"""\n'


def main() -> None:
    """Write the module."""
    (SHELL / "_programs.py").write_text(compiled((SHELL / "programs.toml").read_text("utf-8")), "utf-8")


if __name__ == "__main__":
    main()
