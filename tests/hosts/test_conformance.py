"""Is docs/hosts/conformance.md what the tests declare, and does every host have every case that it must have?"""

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from jackstay.testing.conformance import Call, Heard, Reply, Scenario, differences, scenarios
from tests.hosts.conformance import COLUMNS, TABLE

ROOT = Path(__file__).parents[2]
FAULTS = (
    "raises", "is killed", "times out", "prints junk", "store locked", "store corrupt", "store read-only", "disk full",
    "state of another version", "package broken at import", "interpreter missing",
)  # fmt: skip
"""What may go wrong with us; every host is tried with each."""


def test_the_table_on_disk_is_what_the_tests_declare() -> None:
    command = [sys.executable, "-m", "tests.hosts.conformance"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr
    assert TABLE.read_text("utf-8") == done.stdout, (
        "run `python -m pytest -p tests.hosts.conformance tests/hosts`"
    )


def test_every_host_has_seen_every_row_and_every_fault() -> None:
    """In the table of both hosts, without an empty place."""
    both = TABLE.read_text("utf-8").partition("## Both hosts")[2].partition("\n## ")[0]
    rows = dict(line.strip("| ").split(" | ", 1) for line in both.splitlines() if line.startswith("| "))
    wanted = [f"{one.name}: {row.case}" for one in scenarios() for row in one.row]
    wanted += [f"fault: {name}" for name in FAULTS]
    assert [case for case in wanted if case not in rows] == []
    assert [case for case in wanted if rows[case].count("enforced") != len(COLUMNS)] == []


class Unguarded:
    """A host that holds to nothing: every call is made as it is asked for."""

    name, session = "unguarded", "s"

    def __init__(self, root: Path) -> None:
        self.home, self.workspace = root / "home", root / "work"
        self.workspace.mkdir()

    def anew(self) -> None:
        pass

    def hear(self, person: str, model: Sequence[Reply], helper: Sequence[Reply]) -> Heard:
        calls = [call for reply in model for call in reply.calls]
        for call in calls:
            self._run(call)
        return Heard(("ran",) * len(calls), person)

    def _run(self, call: Call) -> None:
        if call.tool == "write":
            (self.workspace / call.path).write_text(call.text)


@pytest.mark.parametrize("scenario", scenarios(), ids=lambda one: one.name)
def test_a_host_that_is_not_held_is_found_out_at_the_first_row(scenario: Scenario, tmp_path: Path) -> None:
    found = differences(scenario, Unguarded(tmp_path))
    assert {one.partition(": ")[0] for one in found} == {scenario.row[0].case.partition(": ")[0]}
    assert "the calls" in found[0]
    assert any("the files are" in one for one in found)
