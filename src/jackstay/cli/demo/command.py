"""`jackstay demo`: the main job on a real repository, in real processes, with a scripted model."""

import difflib
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from uuid import uuid4

import click

from jackstay.cli.ask import is_interactive
from jackstay.cli.demo.narrate import sentence
from jackstay.cli.main import FAILED, USAGE
from jackstay.cli.plain import command_line
from jackstay.cli.screen import Paint
from jackstay.cli.switches import home_option, json_option
from jackstay.core import events as ev
from jackstay.core.errors import JackstayError
from jackstay.core.phase import Phase
from jackstay.core.wire import decode_event, encode

TASK = "A test of this repository fails. Find out why, mend the code, and run the tests."
WAITING = 3
_ANSWERS = {"a": "approve", "r": "reject", "s": "skip"}


@click.command()
@click.option("--auto", is_flag=True, help="Answer approvals by itself instead of asking you.")
@click.option("--keep", is_flag=True, help="Keep the scratch directory.")
@home_option
@json_option
def demo(auto: bool, keep: bool, home: str | None, as_json: bool) -> int:
    """Watch a scripted agent mend a small repository.

    It happens under strict discipline: a write is refused during research, a plan is proposed and approved, a
    backup is taken before the edit, a command waits for approval, the run is taken up again in other processes,
    and the closing checks run. All of it is real; only the words of the model are written beforehand.

    \b
    Examples:
      jackstay demo
      jackstay demo --auto --keep

    Exits 0 when the tests pass at the end, 3 when nobody can be asked, 1 or 5 when it did not come to that.
    """
    scratch = Path(tempfile.mkdtemp(prefix="jackstay-demo-"))
    kept_in = Path(home).expanduser().absolute() if home is not None else scratch / "home"
    show = Demo(scratch, kept_in, auto=auto, as_json=as_json)
    code = FAILED
    try:
        code = show.play()
    finally:
        if keep or code == WAITING:
            show.say(f"kept: {scratch}")
        else:
            shutil.rmtree(scratch, ignore_errors=True)
    return code


class Demo:
    """One showing, in a directory of its own."""

    def __init__(self, scratch: Path, home: Path, *, auto: bool, as_json: bool) -> None:
        self._home, self._auto, self._as_json = str(home), auto, as_json
        self._repository = scratch / "repository"
        self._script = scratch / "script.yaml"
        # A name of its own: what another showing runs at the same time is not taken for a leftover of this one.
        self._session = f"demo-{uuid4().hex[:4]}"
        self._events: list[ev.Event] = []
        self._steps = 0
        self._paint = Paint(sys.stdout)

    def play(self) -> int:
        """All steps; 0 when the tests pass at the end and the run was carried out as promised."""
        package = files("jackstay.cli.demo")
        _copy(package / "repository", self._repository)
        self._script.write_text((package / "script.yaml").read_text("utf-8"), "utf-8")
        before = _sources(self._repository)

        self._step("A small repository has a failing test")
        self.say(f"copied to {self._repository}")
        self._begin_history()
        if self._tests() == 0:
            raise JackstayError("the demo's tests pass before anything is mended: reinstall jackstay")

        self._step("An agent is asked to mend it, under strict discipline")
        code = self._jackstay(
            "run", "--model", f"script:{self._script}", "--workspace", str(self._repository),
            "--session", self._session, "--discipline", "strict", TASK,
        )  # fmt: skip
        while code == WAITING:
            words = self._plan_answer() if self._waits_for_plan() else self._calls_answer()
            if words is None:
                return WAITING
            self._step("A person decides, in another process")
            self._jackstay(*words)
            self._step("The run is taken up again, in a process of its own")
            code = self._jackstay("resume", self._session)
        return self._look_back(before, code)

    def _begin_history(self) -> None:
        """A git repository, where git is installed: the closing check reads it, and the change is committed."""
        if shutil.which("git") is None:
            self.say("git is not installed, so this showing has no commit (apt-get install git)")
            return
        for words in (
            ("init", "-q"), ("config", "user.name", "jackstay demo"),
            ("config", "user.email", "demo@localhost"), ("add", "."),
            ("commit", "-q", "-m", "A bill splitter with a failing test"),
        ):  # fmt: skip
            self._run("git", *words)

    def _look_back(self, before: dict[str, str], code: int) -> int:
        self._step("The tests are run once more, outside the harness")
        self._show_changes(before)
        passed = self._tests() == 0
        self._step("What is on record")
        self._tell_output("audit", "--recent", "0")
        self._tell_output("backup", "list")
        if shutil.which("git") is not None:
            self.say(self._paint("cyan", "$ git log --oneline"))
            self.say(self._run("git", "log", "--oneline").stdout.strip())
        self.say("")
        kept = self._kept_promises()
        if code:
            return code
        return 0 if kept and passed else FAILED

    # -- telling ---------------------------------------------------------------------------------------

    def _step(self, title: str) -> None:
        self._steps += 1
        self.say("")
        self.say(self._paint("bold", f"{self._steps}. {title}"), indent=0)

    def say(self, text: str, *, indent: int = 3) -> None:
        """A line for a person; silent where only JSON is wanted."""
        if not self._as_json:
            click.echo("\n".join(f"{' ' * indent}{line}".rstrip() for line in text.split("\n")))

    def _hear(self, event: ev.Event) -> None:
        self._events.append(event)
        if self._as_json:
            click.echo(encode(event))
        elif (text := sentence(event)) is not None:
            first, *more = text.split("\n")
            self.say("\n".join((f"· {first}", *(f"  {line}" for line in more))))

    def _show_changes(self, before: dict[str, str]) -> None:
        after = _sources(self._repository)
        for name in sorted(after):
            old, new = before.get(name, "").splitlines(), after[name].splitlines()
            for line in difflib.unified_diff(old, new, f"before/{name}", f"after/{name}", lineterm="", n=1):
                style = {"+": "green", "-": "red"}.get(line[:1])
                self.say(self._paint(style, line) if style else line)

    # -- processes -------------------------------------------------------------------------------------

    def _jackstay(self, *words: str) -> int:
        """Run a jackstay command in a process of its own and tell its events; its exit code."""
        with (
            tempfile.TemporaryFile("w+", encoding="utf-8") as errors,
            subprocess.Popen(
                [sys.executable, "-m", "jackstay", *words, "--home", self._home, "--json"],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=errors,
                cwd=self._repository,
                env=_environment(),
            ) as process,
        ):
            self.say(self._paint("cyan", f"$ {command_line(*words, home=None)}"))
            self.say(self._paint("dim", f"process {process.pid}"))
            assert process.stdout is not None
            for line in process.stdout:
                event = decode_event(line) if words[0] in ("run", "resume") else None
                if event is not None and not isinstance(event, ev.TRANSIENT):
                    self._hear(event)
            code = process.wait()
            if code in (FAILED, USAGE):
                errors.seek(0)
                raise JackstayError(f"`jackstay {words[0]}` ended with {code}: {errors.read().strip()}")
        self.say(self._paint("dim", f"exit code {code}"))
        return code

    def _tell_output(self, *words: str) -> None:
        """Run a command of ours that only looks, and show what it prints."""
        self.say(self._paint("cyan", f"$ {command_line(*words, home=None)}"))
        done = self._run(sys.executable, "-m", "jackstay", *words, "--home", self._home)
        self.say((done.stdout or done.stderr).strip())

    def _run(self, *command: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, text=True, cwd=self._repository,
            env=_environment(), check=False,
        )  # fmt: skip

    def _tests(self) -> int:
        """Run the repository's tests for real; their exit code."""
        done = self._run(sys.executable, "-m", "unittest")
        verdict = re.findall(r"^(?:FAIL:|ERROR:|Ran|OK|FAILED).*", done.stderr, re.MULTILINE)
        self.say(self._paint("cyan", "$ python3 -m unittest"))
        self.say("\n".join(verdict) or done.stderr.strip())
        return done.returncode

    def _waits_for_plan(self) -> bool:
        return isinstance(self._events[-1], ev.RunEndEvent) and self._events[-1].outcome != "pending"

    def _plan_answer(self) -> tuple[str, ...] | None:
        """The command that approves the plan; None where nobody can be asked."""
        approve = ("approve", self._session, "--plan", "--comment")
        if self._auto:
            return (*approve, "commit it")
        if not self._can_ask(*approve, "commit it"):
            return None
        answer = self._ask("[a]pprove the plan and the commit, approve but [l]eave uncommitted, [q]uit", "alq")
        return {"a": (*approve, "commit it"), "l": (*approve, "leave uncommitted")}.get(answer)

    def _calls_answer(self) -> tuple[str, ...] | None:
        """The command that decides the calls that wait; None where nobody can be asked."""
        if self._auto:
            return ("approve", self._session, "--all")
        if not self._can_ask("approve", self._session, "--all"):
            return None
        return (_ANSWERS[self._ask("[a]pprove, [r]eject or [s]kip", "ars")], self._session, "--all")

    def _can_ask(self, *words: str) -> bool:
        """Does a person sit here? Where none does, say how to decide and go on."""
        if not self._as_json and is_interactive():
            return True
        self.say("nobody can be asked here (--auto answers by itself); decide and go on with:")
        self.say(command_line(*words, home=self._home))
        self.say(command_line("resume", self._session, home=self._home))
        return False

    def _ask(self, question: str, keys: str) -> str:
        choice = click.Choice(list(keys), case_sensitive=False)
        answer: str = click.prompt(f"   {question}", type=choice, default=keys[0], show_choices=False)
        return answer.lower()

    # -- looking back ----------------------------------------------------------------------------------

    def _kept_promises(self) -> bool:
        """Did the harness do what it says it does? Told, with what shows it."""
        runs = {event.run_id for event in self._events}
        calls = [event for event in self._events if isinstance(event, ev.ToolCallEndEvent)]
        ran = [event.call_id for event in calls if event.executed]
        closed = [event for event in self._events if isinstance(event, ev.GateBlockedEvent)]
        phases = [event.after for event in self._events if isinstance(event, ev.PhaseChangedEvent)]
        last = phases[-1] if phases else None
        told = {
            f"one run over all processes ({', '.join(sorted(runs))})": len(runs) == 1,
            f"every call carried out once ({len(ran)} calls)": len(ran) == len(set(ran)),
            f"gates that closed ({len(closed)})": bool(closed),
            f"backup before the change ({len(self._backups())} taken)": self._backed_up(),
            f"the task is closed (phase {last})": last is Phase.NO_TASK,
        }
        for text, holds in told.items():
            self.say(f"{self._paint('green', 'yes') if holds else self._paint('red', 'no ')}  {text}")
        return all(told.values())

    def _backups(self) -> list[int]:
        """Where among the events a backup was taken."""
        return [place for place, event in enumerate(self._events) if isinstance(event, ev.BackupTakenEvent)]

    def _backed_up(self) -> bool:
        edits = [
            place for place, event in enumerate(self._events)
            if isinstance(event, ev.ToolCallStartEvent) and event.tool_name == "edit"
        ]  # fmt: skip
        return bool(edits) and min(self._backups(), default=len(self._events)) < edits[-1]


def _environment() -> dict[str, str]:
    """Ours, with the Python we run on found first, and without settings that would change the showing."""
    strange = ("JACKSTAY_", "GIT_")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(strange)}
    path = os.pathsep.join((str(Path(sys.executable).parent), kept.get("PATH", os.defpath)))
    plain_git = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
    return {**kept, **plain_git, "PATH": path, "PYTHONDONTWRITEBYTECODE": "1"}


def _copy(source: Traversable, target: Path) -> None:
    target.mkdir(parents=True)
    for entry in source.iterdir():
        if entry.name == "__pycache__":
            continue
        if entry.is_dir():
            _copy(entry, target / entry.name)
        else:
            (target / entry.name).write_bytes(entry.read_bytes())


def _sources(folder: Path) -> dict[str, str]:
    return dict(_texts(folder))


def _texts(folder: Path) -> Iterator[tuple[str, str]]:
    for path in sorted(folder.rglob("*.py")):
        yield path.relative_to(folder).as_posix(), path.read_text("utf-8")
