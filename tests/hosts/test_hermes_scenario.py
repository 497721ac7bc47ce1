"""The shared scenario in the real Hermes: from the first refused write to a closed task."""

import pytest

from jackstay.ward.backup import Backups
from tests.hosts.chat_server import says
from tests.hosts.hermes_kit import Driver

pytestmark = [pytest.mark.hosts, pytest.mark.timeout(300)]


@pytest.mark.case("hermes", "a whole task, from the first refused write to done", "enforced")
@pytest.mark.case("hermes", "a question is no approval", "enforced")
@pytest.mark.case("hermes", "a backup before each write", "enforced")
@pytest.mark.case("hermes", "an early end of closing", "enforced")
@pytest.mark.case("hermes", "a write by the shell", "enforced")
def test_a_task_from_the_first_refused_write_to_its_end(guarded: Driver) -> None:
    host, hermes = guarded.host, guarded
    target = host.workspace / "greeting.txt"
    target.write_text("hello\n")
    write = ("write_file", {"path": str(target), "content": "good day\n"})
    # A small change is asked for: the first call with effects is refused and starts the task.
    seen = hermes.turn("s", "please change the greeting", says("", write), says("I have to look first."))
    assert "[work-principles]" in seen.results[0]
    assert "Research Gate" in seen.results[0] or "first" in seen.results[0]
    assert target.read_text() == "hello\n"
    assert host.phase("s") == "task_started"

    # Research: reads run, shell writes do not; then the plan.
    seen = hermes.turn(
        "s", "so look", says("", ("read_file", {"path": str(target)})),
        says("", ("terminal", {"command": f"echo x > {target}"})),
        says("", ("terminal", {"command": f"cat {target}"})),
        says("The plan: overwrite the file, or edit it; editing keeps the rest.\n\n[HARNESS: plan]"),
    )  # fmt: skip
    assert "hello" in seen.results[0]
    assert "[work-principles]" in seen.results[1]
    assert "hello" in seen.results[2]
    assert "[phase: task_started]" in seen.context
    assert target.read_text() == "hello\n"
    assert host.phase("s") == "planning"

    # A question is no approval.
    seen = hermes.turn("s", "可以吗？", says("", write), says("I wait for your word."))
    assert "waiting for approval" in seen.results[0]
    assert (host.phase("s"), target.read_text()) == ("planning", "hello\n")

    # The user's word is; the write runs with a backup, and the phase moves with it.
    seen = hermes.turn("s", "可以", says("", write), says("Written."))
    assert "modifying" in seen.results[0], seen.results[0]
    assert (host.phase("s"), target.read_text()) == ("modifying", "good day\n")
    assert any(
        file.read_text() == "hello\n"
        for file in (host.jackstay / "backups/objects").rglob("*")
        if file.is_file()
    )

    # A shell write is a write too.
    seen = hermes.turn(
        "s", "and another", says("", ("terminal", {"command": f"echo bye > {target}"})), says("Done.")
    )
    assert target.read_text() == "bye\n"

    # Done comes too early, twice: closing opens, and is not left with items open.
    hermes.turn("s", "finish", says("Finished.\n\n[HARNESS: done]"))
    assert host.phase("s") == "closing"
    hermes.turn("s", "go on", says("Finished.\n\n[HARNESS: done]"))
    assert host.phase("s") == "closing"
    seen = hermes.turn("s", "do it properly", says("", write), says("", *_ticks()), says("[HARNESS: done]"))
    assert "Closure Gate" in seen.results[0] or "closing" in seen.results[0]
    assert target.read_text() == "bye\n"
    assert host.phase("s") == "no_task", "\n".join(seen.results)


def _ticks() -> list[tuple[str, dict[str, str]]]:
    evidence = {
        "credential_scan": "scanned greeting.txt, nothing found",
        "skill_update": "none needs it: a text file was changed",
        "decision_record": "options were overwrite or edit; overwrite chosen, costs nothing",
        "registration_check": "no new service, device or port",
        "information_storage": "nothing new was learnt about this machine",
        "baseline_comparison": "ours is greeting.txt alone; port, disk, SSH, temporary, process and unit belong to others",
        "commit_housekeeping": "there is no repository here",
    }
    return [("closure_check", {"item": item, "evidence": said}) for item, said in evidence.items()]


@pytest.mark.case("hermes", "a backup before a patch, brought back", "enforced")
def test_what_was_written_before_can_be_brought_back(guarded: Driver) -> None:
    host, hermes = guarded.host, guarded
    target = host.workspace / "farewell.txt"
    target.write_text("hello\n")
    hermes.turn("back", "change it", says("[HARNESS: task_started]"))
    read = ("read_file", {"path": str(target)})
    hermes.turn("back", "yes", says("", read), says("The plan is to write it.\n[HARNESS: plan]"))
    text = f"*** Begin Patch\n*** Update File: {target}\n@@\n-hello\n+bye\n*** End Patch"
    hermes.turn("back", "go ahead", says("", ("patch", {"mode": "patch", "patch": text})), says("Done."))
    assert target.read_text() == "bye\n"
    backups = Backups(host.jackstay)
    backups.restore(backups.list(path=str(target))[-1].id, only=str(target))
    assert target.read_text() == "hello\n"
