"""Looking and tidying: sessions, doctor, extensions, completion, help, demo."""

import json
import re
import resource
import subprocess
import sys
from collections.abc import Iterator

import click
import pytest

from jackstay.cli.main import COMMANDS, group
from jackstay.core.events import (
    BackupTakenEvent,
    GateBlockedEvent,
    PhaseChangedEvent,
    RunEndEvent,
    RunStartEvent,
    ToolCallEndEvent,
)
from tests.cli.command import ROOT, Jackstay, argv


def test_a_session_reads_from_prompt_to_outcome(jackstay: Jackstay) -> None:
    jackstay.waiting("echo hello > greeting")
    jackstay("approve", "s1", "c1", "--comment", "fine")
    jackstay("resume", "s1")
    shown = jackstay("sessions", "show", "s1")
    assert shown.code == 0
    lines = [line.split(" · ")[0] for line in shown.out.splitlines()]
    by = next(line for line in lines if line.startswith("approved by "))
    assert by.endswith(": c1 (bash): fine")
    wanted = [
        "user: go",
        "waits: c1  bash",
        "    command: echo hello > greeting",
        "── pending",
        "── resumed",
        by,
        "→ bash  echo hello > greeting",
    ]
    assert [line for line in lines if line in wanted] == wanted
    assert lines[-2:] == ["assistant: Done.", "── answered"]


def test_sessions_are_listed_by_what_is_asked_for(jackstay: Jackstay) -> None:
    jackstay.waiting(session="waiting")
    jackstay("run", "--model", jackstay.script("Hi."), "--session", "done", "greet me")
    assert [one["session_id"] for one in jackstay("sessions", "list", "--json").objects] == ["done", "waiting"]
    assert [
        one["session_id"] for one in jackstay("sessions", "list", "--json", "--outcome", "pending").objects
    ] == ["waiting"]
    assert [one["session_id"] for one in jackstay("sessions", "list", "--json", "--grep", "GREET").objects] == [
        "done"
    ]
    assert len(jackstay("sessions", "list", "--json", "--limit", "1", "--since", "1h").objects) == 1
    assert jackstay("sessions", "list", "--since", "soon").code == 2
    assert "pending (1)" in jackstay("sessions", "list").out
    assert jackstay("sessions", "list", "--grep", "nothing like it").out == "no session matches\n"


def test_a_session_is_exported_whole_and_privately(jackstay: Jackstay) -> None:
    run = jackstay.waiting()
    path = jackstay.workspace / "out.json"
    assert jackstay("sessions", "export", "s1", "--output", str(path)).code == 0
    assert path.stat().st_mode & 0o077 == 0
    whole = json.loads(path.read_text())
    assert (whole["session_id"], whole["outcome"], whole["run_id"]) == ("s1", "pending", run.events[0].run_id)
    stored = [event.type for event in run.events if event.seq is not None]
    assert [event["type"] for event in whole["events"]] == stored
    assert [message["role"] for message in whole["messages"]] == ["user", "assistant"]
    assert jackstay("sessions", "export", "s1", "--output", str(path)).code == 2
    assert jackstay("sessions", "export", "s1", "--output", str(path), "--force").code == 0
    nowhere = jackstay("sessions", "export", "s1", "--output", "no/such/place.json")
    assert (nowhere.code, "cannot be written: No such file" in nowhere.err) == (2, True)
    assert [event.type for event in jackstay("sessions", "show", "s1", "--json").events] == stored


def test_a_session_is_forgotten_only_when_that_is_meant(jackstay: Jackstay) -> None:
    jackstay.waiting()
    assert jackstay("sessions", "delete", "s1").code == 2
    assert jackstay("sessions", "delete", "s1", "--yes").out == "deleted s1\n"
    assert jackstay("sessions", "delete", "s1", "--yes").code == 1
    assert jackstay("sessions", "list").out == "no sessions\n"


def test_looking_creates_nothing(jackstay: Jackstay) -> None:
    assert jackstay("sessions", "list").out == "no sessions\n"
    assert jackstay("pending").out == "nothing waits\n"
    assert jackstay("doctor", env={"JACKSTAY_MODEL": jackstay.script("x")}).code == 0
    assert not jackstay.home.exists()


def test_another_home_holds_other_sessions_and_is_named_in_what_to_type(jackstay: Jackstay) -> None:
    other = str(jackstay.workspace.parent / "other home")
    jackstay.home.mkdir()
    script = jackstay.script(
        {"say": "", "calls": [{"tool": "bash", "args": {"command": "echo x > y"}}]}, "Done."
    )
    done = jackstay("run", "--model", script, "--home", other, "--session", "s1", "go")
    assert f"jackstay resume s1 --home '{other}'" in done.out
    assert jackstay("pending").out == "nothing waits\n"
    assert len(jackstay("pending", "--home", other, "--json").objects) == 1


def test_the_doctor_names_what_is_wrong_and_exits_with_1(jackstay: Jackstay) -> None:
    jackstay.waiting()
    jackstay.home.chmod(0o755)
    model = {"JACKSTAY_MODEL": jackstay.script("x")}
    found = {one["check"]: one for one in jackstay("doctor", "--json", env=model).objects}
    assert {name: one["state"] for name, one in found.items() if name != "sandbox"} == {
        "versions": "ok", "home": "problem", "store": "ok", "audit": "ok", "backups": "ok", "settings": "ok",
        "model": "ok", "discipline": "ok", "skills": "ok", "agents": "ok", "extensions": "ok",
        "hosts": "ok",
    }  # fmt: skip
    assert found["home"]["mend"] == f"chmod 700 {jackstay.home}"
    assert jackstay("doctor", env=model).code == 1
    assert jackstay("doctor", "--repair", env=model).code == 0
    assert jackstay("doctor").code == 1  # no model is configured


def test_the_doctor_saves_what_a_damaged_store_still_holds(jackstay: Jackstay) -> None:
    jackstay.waiting()
    model = {"JACKSTAY_MODEL": jackstay.script("x")}
    path = jackstay.home / "sessions.db"
    path.write_bytes(path.read_bytes()[:-4096])
    sick = jackstay("doctor", "--json", env=model)
    assert sick.code == 1
    assert "store" in [one["check"] for one in sick.objects if one["state"] == "problem"]
    jackstay("doctor", "--repair", env=model)
    assert jackstay("doctor", env=model).code == 0


def test_extensions_are_listed_with_where_they_come_from(jackstay: Jackstay) -> None:
    package = jackstay.workspace / "ext_info-1.0.dist-info"
    package.mkdir()
    (package / "METADATA").write_text("Metadata-Version: 2.1\nName: ext-info\nVersion: 1.0\n")
    (package / "entry_points.txt").write_text("[jackstay.extensions]\nbroken = nothing_there:ext\n")
    done = jackstay("extensions", "list", "--json", env={"PYTHONPATH": f"{ROOT / 'src'}:{jackstay.workspace}"})
    assert done.code == 1
    (one,) = done.objects
    assert (one["name"], one["origin"]) == ("broken", "ext-info 1.0")
    assert "nothing_there" in one["error"]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_shell_gets_its_completion_script(jackstay: Jackstay, shell: str) -> None:
    done = jackstay("completion", shell)
    assert done.code == 0
    assert "_JACKSTAY_COMPLETE" in done.out


def test_sessions_and_waiting_calls_complete(jackstay: Jackstay) -> None:
    jackstay.waiting(session="alpha")
    jackstay("run", "--model", jackstay.script("Hi."), "--session", "beta", "go")

    def complete(words: str, position: int) -> list[str]:
        asked = {"_JACKSTAY_COMPLETE": "bash_complete", "COMP_WORDS": words, "COMP_CWORD": str(position)}
        return [line.partition(",")[2] for line in jackstay(env=asked).out.splitlines()]

    assert complete("jackstay ap", 1) == ["approve"]
    assert complete("jackstay resume ", 2) == ["beta", "alpha"]
    assert complete("jackstay resume a", 2) == ["alpha"]
    assert complete("jackstay approve alpha ", 3) == ["c1"]


HEAVY = ("msgspec", "asyncio", "anyio", "aiohttp", "sqlite3", "yaml", "stamina", "tree_sitter", "platformdirs")


def test_help_imports_nothing_heavy() -> None:
    code = "import sys; from jackstay.cli.main import run_command; run_command(['--help']); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = done.stdout.splitlines()[-1].split()
    assert [name for name in HEAVY if name in loaded] == []
    assert {name for name in loaded if name.startswith("jackstay.")} == {
        "jackstay._version", "jackstay.cli", "jackstay.cli.main",
    }  # fmt: skip


def test_help_costs_at_most_150_ms_above_bare_python() -> None:
    def cost(words: list[str]) -> float:
        """Processor seconds of the cheapest of a few runs: other work on the machine does not count."""
        return min(_processor_seconds(words) for _ in range(4))

    assert cost(argv("--help")) - cost([sys.executable, "-c", "pass"]) <= 0.150


def _processor_seconds(words: list[str]) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(words, capture_output=True, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def test_help_lists_every_command_and_each_has_its_own(jackstay: Jackstay) -> None:
    whole = jackstay("--help").out
    for name in COMMANDS:
        assert f"\n  {name} " in whole
    assert jackstay("--version").out.startswith("jackstay, version ")


def helps(group: click.Group, words: tuple[str, ...] = ()) -> Iterator[tuple[str, str]]:
    """The help text of every command below a group, by its words."""
    for name in group.list_commands(click.Context(group)):
        command = group.get_command(click.Context(group), name)
        assert command is not None
        said = " ".join((*words, name))
        yield said, command.get_help(click.Context(command, info_name=f"jackstay {said}", max_content_width=80))
        if isinstance(command, click.Group):
            yield from helps(command, (*words, name))


@pytest.mark.parametrize(("words", "text"), [pytest.param(*one, id=one[0]) for one in helps(group)])
def test_every_help_fits_a_terminal_and_has_an_example(words: str, text: str) -> None:
    assert [line for line in text.splitlines() if len(line) > 80] == []
    assert f"jackstay {words}" in text.partition("\n")[2]
    if "Commands:" not in text and words != "completion":
        assert "\n  Exit" in text
        assert "--json" in text
        assert "--home" in text


def test_a_fault_of_ours_is_told_without_a_traceback_unless_asked_for(jackstay: Jackstay) -> None:
    jackstay.home.mkdir(mode=0o700)
    (jackstay.home / "sessions.db").write_bytes(b"this is no database, whatever its name says" * 100)
    done = jackstay("sessions", "list")
    assert (done.code, done.out) == (1, "")
    assert done.err.startswith("jackstay: ")
    loud = subprocess.run(
        argv("sessions", "list"),
        capture_output=True,
        text=True,
        env={**jackstay.env, "JACKSTAY_DEBUG": "1"},
        check=False,
    )
    assert "Traceback" in loud.stderr


def test_the_demo_mends_the_repository_in_one_run_over_its_processes(jackstay: Jackstay) -> None:
    done = jackstay("demo", "--auto", "--json")
    assert done.code == 0, done
    starts = [event for event in done.events if isinstance(event, RunStartEvent)]
    ends = [event for event in done.events if isinstance(event, RunEndEvent)]
    assert [start.resumed for start in starts] == [False, True, True]
    assert [end.outcome for end in ends] == ["answered", "pending", "answered"]
    assert len({event.run_id for event in done.events}) == 1
    moves = [event.after for event in done.events if isinstance(event, PhaseChangedEvent)]
    assert moves == ["task_started", "planning", "executing", "modifying", "closing", "no_task"]
    refused = [(event.gate, event.tool_name) for event in done.events if isinstance(event, GateBlockedEvent)]
    assert refused == [("research", "edit"), ("closure", "marker done")]
    ticked = [e for e in done.events if isinstance(e, ToolCallEndEvent) and e.tool_name == "closure_check"]
    assert len(ticked) == 7
    assert not any(event.is_error for event in ticked)
    taken = [event.path for event in done.events if isinstance(event, BackupTakenEvent)]
    assert taken[0].endswith("/tally/split.py")


def test_the_demo_tells_what_the_harness_did_step_by_step(jackstay: Jackstay) -> None:
    done = jackstay("demo", "--auto")
    assert done.code == 0, done
    told = [re.sub(r"demo-[0-9a-f]{4}\b", "demo", line.strip()) for line in done.out.splitlines()]
    for line in (
        "FAILED (failures=2)",
        "· phase no_task → task_started: marker task_started",
        "$ jackstay approve demo --plan --comment 'commit it'",
        "$ jackstay approve demo --all",
        "· bash python3 -m unittest runs: OK",
        "OK",
        "yes  every call carried out once (12 calls)",
        "yes  the task is closed (phase no_task)",
    ):
        assert line in told
    assert any(line.startswith("· the research gate refuses edit:") for line in told)
    assert any(line.startswith("· the closure gate refuses marker done:") for line in told)
    assert any(line.endswith("Changes of a closed task") for line in told)
    assert list(jackstay.home.parent.glob("jackstay-demo-*")) == []


def test_the_demo_asks_nobody_where_nobody_sits(jackstay: Jackstay) -> None:
    done = jackstay("demo", "--home", str(jackstay.home))
    assert done.code == 3
    (one,) = jackstay("pending", "--json").objects
    session = one["session_id"]
    assert f"jackstay approve {session} --plan --comment 'commit it' --home {jackstay.home}" in done.out
    assert f"jackstay resume {session} --home {jackstay.home}" in done.out


@pytest.mark.parametrize("words", [("sessions", "list"), ("policy", "check", "ls")])
def test_a_full_disk_under_the_output_is_an_error_in_words(jackstay: Jackstay, words: tuple[str, ...]) -> None:
    with open("/dev/full", "w") as full:  # noqa: PTH123 - a device
        done = subprocess.run(
            argv(*words), stdout=full, stderr=subprocess.PIPE, env=jackstay.env, cwd=jackstay.workspace, text=True,
            check=False,
        )  # fmt: skip
    assert (done.returncode, "No space left on device" in done.stderr) == (1, True)
    assert "Traceback" not in done.stderr
    assert "Exception ignored" not in done.stderr


def test_the_doctor_names_the_agents_and_the_files_that_hold_none(jackstay: Jackstay) -> None:
    folder = jackstay.home / "agents"
    folder.mkdir(parents=True)
    jackstay.home.chmod(0o700)
    (folder / "scribe.md").write_text("---\ntools: [read]\n---\nYou write.\n")
    bad = folder / "tester.md"
    bad.write_text("---\ntols: [read]\n---\nYou test.\n")
    done = jackstay("doctor", "--json", env={"JACKSTAY_MODEL": jackstay.script("x")})
    assert [(one["state"], one["text"]) for one in done.objects if one["check"] == "agents"] == [
        ("warning", f"{bad}: there is no field 'tols' for agents (did you mean 'tools'?)"),
        ("ok", "scribe, bash, explore, general, plan"),
    ]
    assert done.code == 0
