"""The table of programs: written by hand, loaded from its compiled twin."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
import tomllib
from pathlib import Path

from jackstay.policy.shell import _programs, table

ROOT = Path(__file__).resolve().parents[3]
SHELL = ROOT / "src" / "jackstay" / "policy" / "shell"


def test_the_compiled_table_equals_the_written_one():
    written = tomllib.loads((SHELL / "programs.toml").read_text("utf-8"))
    assert json.loads(_programs.TABLE) == written


def test_the_build_script_makes_exactly_the_committed_module():
    spec = importlib.util.spec_from_file_location("build_programs", ROOT / "scripts" / "build_programs.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    source = (SHELL / "programs.toml").read_text("utf-8")
    assert module.compiled(source) == (SHELL / "_programs.py").read_text("utf-8")


def test_every_entry_can_be_read():
    written = tomllib.loads((SHELL / "programs.toml").read_text("utf-8"))
    for name in written:
        if name in ("wrappers", "changes", "lists"):
            continue
        spec = table.find(name)
        assert spec is not None
        assert all(table.subcommand(name, sub) is not None for sub in spec.entry.sub), name
    assert all(table.wrapper(name) is not None for name in written["wrappers"])


def test_no_program_is_listed_under_two_headings():
    written = tomllib.loads((SHELL / "programs.toml").read_text("utf-8"))
    changing = [name for kind, names in written["changes"].items() if kind != "says" for name in names.split()]
    assert len(changing) == len(set(changing))
    headings = [set(changing), set(written["wrappers"]), set(written) - {"wrappers", "changes", "lists"}]
    assert not headings[0] & headings[1]
    assert not headings[0] & headings[2]
    assert not headings[1] & headings[2]


def test_nothing_is_loaded_before_the_first_command():
    code = (
        "import sys, jackstay.policy.shell as s; s.analyse_command;"
        "assert 'tree_sitter' not in sys.modules and 'tomllib' not in sys.modules;"
        "s.analyse_command('ls'); assert 'tomllib' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True, env={"PYTHONPATH": str(ROOT / "src")})
