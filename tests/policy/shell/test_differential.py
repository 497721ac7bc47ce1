"""A second reader of shell syntax must see no command, redirection or substitution that our facts miss."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from jackstay.policy.shell import analyse_command, parse

from .corpus import corpus

CLAUSES = {"DeclClause", "TestClause", "LetClause", "ArithmCmd"}


def shfmt() -> str:
    """The program, from the wheel beside the interpreter or from the path."""
    beside = Path(sys.executable).parent / "shfmt"
    found = str(beside) if beside.exists() else shutil.which("shfmt")
    if found is None:
        pytest.fail("the second reader is missing; install it with: pip install shfmt-py")
    return found


def tree(command: str) -> dict | None:
    """The other syntax tree, or None where it refuses the text."""
    done = subprocess.run([shfmt(), "--to-json"], input=command.encode(), capture_output=True, check=False)
    return json.loads(done.stdout) if done.returncode == 0 else None


def census(root: dict) -> tuple[Counter, int, int, int]:
    """Program names written plainly, and how many calls, redirections and substitutions there are."""
    names: Counter = Counter()
    calls = redirects = substitutions = 0
    stack: list = [root]
    while stack:
        here = stack.pop()
        if isinstance(here, list):
            stack.extend(here)
            continue
        if not isinstance(here, dict):
            continue
        kind = here.get("Type")
        if kind == "CallExpr" and here.get("Args"):
            calls += 1
            parts = here["Args"][0].get("Parts", [])
            if len(parts) == 1 and parts[0].get("Type") == "Lit":
                names[parts[0]["Value"].replace("\\\n", "").replace("\\", "")] += 1
        elif kind in ("CmdSubst", "ProcSubst"):
            substitutions += 1
        redirects += len(here.get("Redirs") or [])
        stack.extend(here.values())
    return names, calls, redirects, substitutions


def missed(command: str) -> list[str]:
    """What the other tree has and our facts lack."""
    facts = parse(command)
    if facts.opaque:
        return []
    root = tree(command)
    if root is None:
        return ["does not parse there"] if analyse_command(command).read_only else []
    names, calls, redirects, substitutions = census(root)
    ours = Counter(one.words[0].text for one in facts.commands if one.words)
    runs_on = (
        ours["time"] + ours["coproc"]
    )  # keywords here: the command they run is among our words, not our commands
    lost = [f"command {name}" for name, count in names.items() if ours[name] + runs_on < count]
    if sum(ours.values()) + runs_on < calls:
        lost.append(f"{calls} commands")
    heredocs = sum(1 for one in facts.commands for redirect in one.redirects if redirect.op == "<<")
    tests = sum(
        1 for one in facts.commands for word in one.words if word.value == "operator" and word.text in "<>"
    )
    if len(facts.redirects) + heredocs + tests < redirects:
        lost.append(f"{redirects} redirections")
    if len(facts.substitutions) < substitutions:
        lost.append(f"{substitutions} substitutions")
    return lost


def test_the_other_reader_sees_nothing_more():
    commands = [line.command for line in corpus() if line.command.strip() and "\x00" not in line.command]
    with ThreadPoolExecutor(4) as pool:
        found = [
            (command, lost) for command, lost in zip(commands, pool.map(missed, commands), strict=True) if lost
        ]
    assert found == []
