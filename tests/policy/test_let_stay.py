"""A person lets stay what a closing check has found; an agent cannot, and what is found later has to go."""

import pytest

from jackstay.core.phase import Checked, Finding, Kept, Phase, PhaseState, Tick
from jackstay.core.state import PolicyState
from jackstay.policy.checklist import BASELINE, CREDENTIAL_SCAN, let_stay, tick
from jackstay.policy.happenings import ItemTicked, Warned
from jackstay.policy.sessions import let_stay as commanded
from tests.policy.acts import REQUIRED

EVIDENCE = "looked at every process and file"
PID = Finding(BASELINE, "pid:7", "pid 7: python serve.py")
KEY = Finding(CREDENTIAL_SCAN, "/w/a.py", "/w/a.py:3 holds a jwt")
OTHER_KEY = Finding(CREDENTIAL_SCAN, "/w/a.py", "/w/a.py:9 holds a jwt")


def closing(*findings: Finding) -> PhaseState:
    return PhaseState(Phase.CLOSING, required=REQUIRED, findings=findings)


def left(state: PhaseState, *subjects: str) -> PhaseState:
    for subject in subjects:
        done = let_stay(state, subject, "mine", by="ada")
        assert done.problem == ""
        state = done.state
    return state


@pytest.mark.parametrize(("finding", "said"), [(PID, "pid:7"), (KEY, "/w/a.py"), (KEY, "a.py")])
def test_what_was_let_stay_does_not_keep_the_item_open(finding: Finding, said: str) -> None:
    state = left(closing(finding), said)
    assert (state.findings, state.kept) == ((), (Kept(finding, "ada", "mine"),))
    ticked = tick(state, finding.item, EVIDENCE, checked=Checked(False, "1 found", (finding,)))
    assert ticked.problem == ""
    assert ticked.state.ticks == (
        Tick(finding.item, f"1 found, 1 of them left as a person said; {EVIDENCE}", "harness"),
    )


def test_another_secret_in_the_same_file_has_to_go_all_the_same() -> None:
    state = left(closing(KEY), "a.py")
    ticked = tick(state, CREDENTIAL_SCAN, EVIDENCE, checked=Checked(False, "2 found", (KEY, OTHER_KEY)))
    assert ticked.problem == f"2 found, 1 of them left as a person said: {OTHER_KEY.text}"
    assert ticked.state.findings == (OTHER_KEY,)


def test_a_check_that_failed_without_a_finding_is_not_settled_by_what_was_let_stay() -> None:
    state = left(closing(PID), "pid:7")
    assert tick(state, BASELINE, EVIDENCE, checked=Checked(False, "it failed")).problem == "it failed"


def test_a_person_ticks_an_open_item_in_their_own_name() -> None:
    done = let_stay(closing(PID, KEY), BASELINE, "I looked", by="ada")
    assert done.state.ticks == (Tick(BASELINE, "ada: I looked", "ada"),)
    assert (done.state.findings, done.happenings) == ((KEY,), (ItemTicked(BASELINE, "ada: I looked"),))


def test_what_is_neither_found_nor_open_is_refused_with_what_is() -> None:
    problem = let_stay(closing(PID), "pid:8", "x", by="ada").problem
    assert problem.startswith("'pid:8' is neither found nor open; what can stay is: pid:7, credential_scan, ")
    elsewhere = PhaseState(Phase.EXECUTING, findings=(PID,))
    assert (
        let_stay(elsewhere, "pid:7", "x", by="ada").problem == "nothing is being closed: the phase is executing"
    )


def test_the_model_is_told_who_said_so_and_a_wrong_name_only_warns() -> None:
    outcome = commanded(PolicyState(closing(PID), mode="strict"), ["pid:7", "pid:8"], "mine", by="ada")
    assert outcome.state.phase.notices == (
        "ada lets this stay: pid:7 (mine). Go on with the items that are open.",
    )
    (warned,) = outcome.happenings
    assert isinstance(warned, Warned)
    assert warned.text.startswith("'pid:8' is neither found nor open")
