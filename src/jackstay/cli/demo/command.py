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

import click

from jackstay.cli.ask import is_interactive
from jackstay.cli.demo.narrate import sentence
from jackstay.cli.main import FAILED, USAGE
from jackstay.cli.plain import command_line
from jackstay.cli.screen import Paint
from jackstay.cli.switches import home_option, json_option
from jackstay.core import events as ev
from jackstay.core.errors import JackstayError
from jackstay.core.wire import decode_event, encode

SESSION = "demo"
TASK = "A test of this repository fails. Find out why, mend the code, and run the tests."
DISCIPLINE = "off"  # the script has no plan and no closing yet
WAITING = 3
_ANSWERS = {"a": "approve", "r": "reject", "s": "skip"}


@click.command()
@click.option("--auto", is_flag=True, help="Answer approvals by itself instead of asking you.")
@click.option("--keep", is_flag=True, help="Keep the scratch directory.")
@home_option
@json_option
def demo(auto: bool, keep: bool, home: str | None, as_json: bool) -> int:
    """Watch a scripted agent mend a small repository.

    The repository, the tools, the approval, the restart and the test run are real; only the words of the model
    are written beforehand.
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
        if self._tests() == 0:
            raise JackstayError("the demo's tests pass before anything is mended: reinstall jackstay")

        self._step("An agent is asked to mend it")
        code = self._jackstay(
            "run", "--model", f"script:{self._script}", "--workspace", str(self._repository),
            "--session", SESSION, "--discipline", DISCIPLINE, TASK,
        )  # fmt: skip
        while code == WAITING:
            verb = self._answer()
            if verb is None:
                return WAITING
            self._step("A person decides, in another process")
            self._jackstay(verb, SESSION, "--all")
            self._step("A third process takes the run up again")
            code = self._jackstay("resume", SESSION)

        self._step("The tests are run once more, outside the harness")
        self._show_changes(before)
        passed = self._tests() == 0
        if code:
            return code
        return 0 if self._kept_promises() and passed else FAILED

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

    def _tests(self) -> int:
        """Run the repository's tests for real; their exit code."""
        done = subprocess.run(
            [sys.executable, "-m", "unittest"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            cwd=self._repository,
            env=_environment(),
            check=False,
        )
        verdict = re.findall(r"^(?:FAIL:|ERROR:|Ran|OK|FAILED).*", done.stderr, re.MULTILINE)
        self.say(self._paint("cyan", "$ python3 -m unittest"))
        self.say("\n".join(verdict) or done.stderr.strip())
        return done.returncode

    def _answer(self) -> str | None:
        """What is decided about the calls that wait; None where nobody can be asked."""
        if self._auto:
            return "approve"
        if self._as_json or not is_interactive():
            self.say("nobody can be asked here (--auto answers by itself); decide and go on with:")
            self.say(command_line("approve", SESSION, "--all", home=self._home))
            self.say(command_line("resume", SESSION, home=self._home))
            return None
        keys = click.Choice(list(_ANSWERS), case_sensitive=False)
        answer: str = click.prompt(
            "   [a]pprove, [r]eject or [s]kip", type=keys, default="a", show_choices=False
        )
        return _ANSWERS[answer.lower()]

    # -- looking back ----------------------------------------------------------------------------------

    def _kept_promises(self) -> bool:
        """Was it one run, and did every call run once? Told, with what shows it."""
        runs = {event.run_id for event in self._events}
        ran = [event.call_id for event in self._events if isinstance(event, ev.ToolCallEndEvent)]
        once = len(ran) == len(set(ran))
        one = len(runs) == 1
        self.say(f"one run over all processes: {'yes' if one else 'no'} ({', '.join(sorted(runs))})")
        self.say(f"every call carried out once: {'yes' if once else 'no'} ({len(ran)} calls)")
        return one and once


def _environment() -> dict[str, str]:
    """Ours, with the Python we run on found first, and without settings that would change the showing."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("JACKSTAY_")}
    path = os.pathsep.join((str(Path(sys.executable).parent), kept.get("PATH", os.defpath)))
    return {**kept, "PATH": path, "PYTHONDONTWRITEBYTECODE": "1"}


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
