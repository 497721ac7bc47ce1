"""Writes docs/hosts/conformance.md from the tests that have just passed.

    python -m pytest -n 2 -p tests.hosts.conformance tests/hosts

A line stands there only because its test ran the real program and passed; `{}` in a name is the test's parameter.
"""

import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import pytest

from tests.hosts.claude import VERSIONS
from tests.hosts.hermes_kit import HERMES

TABLE = Path(__file__).resolve().parents[2] / "docs" / "hosts" / "conformance.md"
HERMES_COLUMN = f"Hermes {HERMES.rpartition('==')[2]}"
CLAUDE_COLUMNS = tuple(f"Claude Code {version}" for version in VERSIONS)
COLUMNS = (*CLAUDE_COLUMNS, HERMES_COLUMN)
HEAD = """# What was seen in the real programs

Made by `python -m pytest -p tests.hosts.conformance tests/hosts` from the tests that passed; a case whose test does not
pass, or did not run, is not here. *enforced*: the call did not run, or ran as it should. *impossible*: the host leaves no
way, and what there is instead. The conversations of the first table are those of `jackstay.testing.conformance`: the same
rows for every host.
"""
Cases = Mapping[tuple[str, str], str]  # (column, case): what was seen


def cases_of(item: pytest.Item) -> Iterator[tuple[str, str, str]]:
    """The lines that a test writes when it passes: (column, case, verdict)."""
    given: Any = getattr(item, "callspec", None)
    param, column = (given.id, given.params.get("bare_claude")) if given is not None else ("", None)
    if column is not None:
        param = param.replace(column, "").strip("-")
    for mark in item.iter_markers("case"):
        host, name, verdict = mark.args
        where = f"Claude Code {column}" if host == "claude-code" else HERMES_COLUMN
        yield where, name.replace("{}", param), verdict


def table(seen: Cases) -> str:
    """The document: what both hosts were held to side by side, then what only one of them has."""
    cases = sorted({case for _, case in seen}, key=_order)
    both = [case for case in cases if (HERMES_COLUMN, case) in seen and (CLAUDE_COLUMNS[0], case) in seen]
    parts = [HEAD, "\n## Both hosts\n\n", *_rows(both, COLUMNS, seen)]
    for title, columns in (("Claude Code", CLAUDE_COLUMNS), ("Hermes", (HERMES_COLUMN,))):
        mine = [case for case in cases if case not in both and any((one, case) in seen for one in columns)]
        parts += [f"\n## {title} alone\n\n", *_rows(mine, columns, seen)]
    return "".join(parts)


def _rows(cases: Iterable[str], columns: tuple[str, ...], seen: Cases) -> Iterator[str]:
    yield f"| case | {' | '.join(columns)} |\n|---|{'---|' * len(columns)}\n"
    for case in cases:
        yield f"| {case} | {' | '.join(seen.get((one, case), 'not seen') for one in columns)} |\n"


def _order(case: str) -> tuple[int, str]:
    """The conversations as they are played, then everything else by name."""
    from jackstay.testing.conformance import scenarios

    played = [f"{one.name}: {row.case}" for one in scenarios() for row in one.row]
    return (played.index(case), "") if case in played else (len(played), case)


class Conformance:
    """Collects the cases that tests declare, and of those that pass; the table of these goes to `target`."""

    def __init__(self, target: Path | None = None) -> None:
        self._target = target
        self.declared: dict[tuple[str, str], str] = {}
        self.seen: dict[tuple[str, str], str] = {}

    @pytest.hookimpl
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        for item in items:
            cases = list(cases_of(item))
            item.user_properties.append(("cases", cases))  # goes with the report, also from another process
            self.declared |= {(where, name): said for where, name, said in cases}

    @pytest.hookimpl
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "call" and report.passed:
            cases: Any = dict(report.user_properties).get("cases", ())
            self.seen |= {(where, name): said for where, name, said in cases}

    @pytest.hookimpl
    def pytest_sessionfinish(self) -> None:
        if self._target is not None:
            self._target.write_text(table(self.seen), "utf-8")


def pytest_configure(config: pytest.Config) -> None:
    """Registered by `-p`; with several processes the one that gathers their reports writes."""
    config.pluginmanager.register(Conformance(None if hasattr(config, "workerinput") else TABLE))


if __name__ == "__main__":  # what the table would be if every test passed
    told = Conformance()
    with redirect_stdout(sys.stderr):
        code = pytest.main(["--collect-only", str(Path(__file__).parent)], plugins=[told])
    print(table(told.declared), end="")
    sys.exit(code)
