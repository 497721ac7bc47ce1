"""The state of the discipline where it begins and where it is damaged (weak spots W7, W9, W10)."""

import sqlite3
from pathlib import Path

import pytest

from jackstay.core.errors import BadSessionId, StoreError
from jackstay.core.phase import Phase
from jackstay.testing import call, says
from jackstay.ward.audit import Audit
from tests.scenarios.workplace import PLANNED, Workplace, executing, place, told

WRITE = call("write", file_path="app.conf", content="gone\n")


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Workplace:
    return place(tmp_path, monkeypatch)


def untouched(work: Workplace) -> bool:
    return work.git("status", "--porcelain") == ""


def change(work: Workplace, was: bytes, now: bytes) -> None:
    """Somebody writes into the store's file."""
    with sqlite3.connect(work.root / "sessions.db") as connection:
        ((head,),) = connection.execute("SELECT head FROM sessions")
        assert was in head
        connection.execute("UPDATE sessions SET head = ?", (head.replace(was, now),))
    connection.close()


@pytest.mark.parametrize("phase", [b'"bogus"', b'"executing"', b"[]", b"null"])
def test_w7_a_phase_that_was_not_written_by_us_opens_no_gate(work: Workplace, phase: bytes) -> None:
    """Neither a phase that does not exist nor one that does: what stands there is known by its checksum."""
    work.script(*PLANNED)
    work.say("Change it")
    work.store.close()
    change(work, b'"planning"', phase)
    work.script(says(WRITE))
    with pytest.raises(StoreError, match="the head of session 's1' is damaged"):
        work.say("And now?")
    assert untouched(work)


@pytest.mark.parametrize("name", ["a/b", "../../evil", "x" * 300, "", "..", "a b", "a\x00b"])
def test_w7_w9_a_session_has_a_plain_name_of_its_own_or_does_not_begin(work: Workplace, name: str) -> None:
    work.script(says(WRITE), "Seen.")
    with pytest.raises(BadSessionId):
        work.say("Change it", session=name)
    assert (untouched(work), work.model.requests) == (True, [])


def test_w9_an_engine_made_anew_for_the_same_session_keeps_its_phase(work: Workplace) -> None:
    """What a host does on resume and when the model is changed: state that is there is kept."""
    executing(work, says(WRITE), "Written.")
    work.say("go ahead")
    before = work.phase()
    assert before.phase is Phase.MODIFYING
    assert work.script("Hello.").phase() == before
    assert told(work.say("Hello again"))[:2] == ["run_start", "guidance modifying"]
    assert work.phase().phase is Phase.MODIFYING


def test_w10_a_fresh_home_is_made_when_it_is_needed(work: Workplace) -> None:
    assert not work.home.exists()
    assert list(Audit(work.home).records()) == []
    assert work.backups.list() == []
    work.script(says(WRITE), "I see.")
    assert "blocked by start: write" in told(work.say("Change it"))
    assert [(one.gate, one.verdict) for one in Audit(work.home).records()] == [("start", "deny")]
