"""The shared scenarios, row by row, in the real programs of both hosts."""

from contextlib import ExitStack

import pytest

from jackstay.testing.conformance import Scenario, differences, scenarios
from tests.hosts.claude import Claude
from tests.hosts.hermes_kit import Host
from tests.hosts.players import ClaudePlayer, HermesPlayer

pytestmark = [pytest.mark.hosts, pytest.mark.timeout(300)]


def _rows(host: str) -> list[object]:
    """Each scenario as a parameter, with a line of the conformance table for each row."""
    return [
        pytest.param(
            one,
            id=one.name,
            marks=[pytest.mark.case(host, f"{one.name}: {row.case}", "enforced") for row in one.row],
        )
        for one in scenarios()
    ]


@pytest.mark.parametrize("scenario", _rows("claude-code"))
def test_claude_code_does_what_every_row_says(claude: Claude, scenario: Scenario) -> None:
    found = differences(scenario, ClaudePlayer(claude))
    assert not found, "\n".join(found)


@pytest.mark.parametrize("scenario", _rows("hermes"))
def test_hermes_does_what_every_row_says(host: Host, scenario: Scenario) -> None:
    host.install()
    with ExitStack() as stack:
        found = differences(scenario, HermesPlayer(host, stack))
        assert not found, "\n".join(found)
