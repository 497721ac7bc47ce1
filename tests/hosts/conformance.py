"""Writes docs/hosts/conformance.md from the tests that have just passed.

    python -m pytest -p tests.hosts.conformance tests/hosts

A line stands there only because its test ran the real program and passed; `{}` in a name is the test's parameter.
"""

from pathlib import Path
from typing import Any

import pytest

TABLE = Path(__file__).resolve().parents[2] / "docs" / "hosts" / "conformance.md"
HEAD = """# What was seen in the real programs

Made by `python -m pytest -p tests.hosts.conformance tests/hosts` from the tests that passed; a case whose test does not
pass, or did not run, is not here. *enforced*: the call did not run, or ran as it should. *impossible*: the host leaves no
way, and what there is instead.

| host | case | seen |
|---|---|---|
"""


class Conformance:
    """Collects the cases of passing tests and writes them down when all are done."""

    def __init__(self) -> None:
        self._cases: dict[str, list[tuple[str, str, str]]] = {}
        self._seen: dict[tuple[str, str], str] = {}

    @pytest.hookimpl
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        for item in items:
            param = item.name.partition("[")[2].rstrip("]")
            self._cases[item.nodeid] = [
                (host, name.replace("{}", param), verdict)
                for host, name, verdict in (mark.args for mark in item.iter_markers("case"))
            ]

    @pytest.hookimpl
    def pytest_runtest_logreport(self, report: Any) -> None:
        if report.when == "call" and report.passed:
            for host, name, verdict in self._cases.get(report.nodeid, ()):
                self._seen[host, name] = verdict

    @pytest.hookimpl
    def pytest_sessionfinish(self) -> None:
        rows = [f"| {host} | {name} | {verdict} |\n" for (host, name), verdict in sorted(self._seen.items())]
        TABLE.write_text(HEAD + "".join(rows), "utf-8")


def pytest_configure(config: pytest.Config) -> None:
    """Registered by `-p`."""
    config.pluginmanager.register(Conformance())
