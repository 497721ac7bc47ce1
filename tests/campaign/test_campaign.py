"""The crash campaign in short: `scripts/crash-campaign` is the long form."""

from collections.abc import Sequence

import pytest

from tests.campaign.campaigns import (
    Moment,
    at_every_commit,
    at_random,
    full_disk,
    racing,
    read_only,
    together,
    turned_read_only,
    undisturbed,
)
from tests.campaign.supervise import warm_up

TOOK_S = 0.15  # of a worker here, about; the long form measures it


@pytest.fixture(autouse=True, scope="module")
def _warm() -> None:
    warm_up()


def test_undisturbed_every_call_runs_but_the_rejected_one() -> None:
    undisturbed()


@pytest.mark.parametrize("stages", [(0,), (1, 2)])
@pytest.mark.parametrize("moment", ["before", "after"])
def test_killed_at_every_commit_nothing_is_lost_and_nothing_done_twice(
    stages: Sequence[int], moment: Moment
) -> None:
    assert at_every_commit(stages, (moment,))["kills"] >= 4


def test_killed_with_several_runs_under_way_nothing_is_lost_and_nothing_done_twice() -> None:
    found = together(every=2, within=9)
    assert found["kills"] >= 20
    assert found["ahead"] >= 20


def test_killed_at_random_instants_nothing_is_lost_and_nothing_done_twice() -> None:
    assert at_random(20, 7, TOOK_S)["kills"] >= 20


def test_two_workers_racing_for_a_session_never_both_run_a_call() -> None:
    assert racing(5, 7, TOOK_S)["missions"] == 5


def test_a_disk_that_is_full_in_the_middle_loses_no_step_and_repeats_none() -> None:
    assert full_disk(6, by=16_000)["full"] > 0


def test_a_store_that_is_read_only_when_a_run_is_taken_up_is_left_alone() -> None:
    assert read_only(3, 7)["missions"] == 3


def test_a_disk_that_turns_read_only_in_the_middle_loses_no_step_and_repeats_none() -> None:
    assert turned_read_only(every=3)["missions"] >= 3
