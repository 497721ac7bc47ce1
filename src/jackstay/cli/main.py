"""Which commands are there, and what becomes of their failures? `--help` imports nothing heavy."""

import io
import os
import signal
import sys
from importlib import import_module
from typing import Any, NoReturn

import click

from jackstay._version import __version__

COMMANDS: dict[str, tuple[str, str]] = {
    "run": ("jackstay.cli.run:run", "Give an agent a task."),
    "resume": ("jackstay.cli.run:resume", "Go on with a suspended or interrupted run."),
    "pending": ("jackstay.cli.pending:pending", "Show the calls and plans that wait for a person."),
    "approve": ("jackstay.cli.approve:approve", "Let waiting calls run, or approve a plan."),
    "reject": ("jackstay.cli.approve:reject", "Turn waiting calls down."),
    "skip": ("jackstay.cli.approve:skip", "Go on without running waiting calls."),
    "cancel": ("jackstay.cli.cancel:cancel", "End a run for good, wherever it runs."),
    "sessions": ("jackstay.cli.sessions:sessions", "List, show, export or delete what is stored."),
    "phase": ("jackstay.cli.phase:phase", "Show or override the phase of a session."),
    "audit": ("jackstay.cli.audit:audit", "Show which gates closed, when and on what."),
    "backup": ("jackstay.cli.backup:backup", "Bring files back as they were before a change."),
    "policy": ("jackstay.cli.policy:policy", "Explain and test what calls are allowed."),
    "host": ("jackstay.cli.host:host", "Hold another agent (Claude Code, Hermes) to it."),
    "lifecycle": ("jackstay.cli.lifecycle:lifecycle", "Show and sync the closing items of components."),
    "trust": ("jackstay.cli.trust:trust", "Let a project's settings widen what is allowed."),
    "extensions": ("jackstay.cli.extensions:extensions", "Show the installed extensions."),
    "doctor": ("jackstay.cli.doctor:doctor", "Check this installation and its store."),
    "completion": ("jackstay.cli.completing:completion", "Print the completion script of a shell."),
    "demo": ("jackstay.cli.demo.command:demo", "Watch a scripted agent mend a small repository."),
}

USAGE, FAILED, CANCELLED = 2, 1, 130


class LazyGroup(click.Group):
    """A group that knows its commands by name and imports the one that is asked for."""

    table: dict[str, tuple[str, str]] = COMMANDS

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names in the order of the table."""
        return list(self.table)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command, imported now; None when there is none of this name."""
        if cmd_name not in self.table:
            return None
        module, _, name = self.table[cmd_name][0].partition(":")
        command: click.Command = getattr(import_module(module), name)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The command that `args` begin with; a usage error naming the nearest one when there is none."""
        if args[0] not in self.table and not ctx.resilient_parsing:
            from difflib import get_close_matches

            near = get_close_matches(args[0], self.table, 1)
            hint = f"did you mean {near[0]!r}?" if near else "`jackstay --help` lists them"
            ctx.fail(f"there is no command {args[0]!r}; {hint}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The list in `--help`, from the table alone."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in self.table.items()])


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="jackstay")
def group() -> None:
    """Hold an AI agent to a discipline that can be proved.

    \b
    Examples:
      jackstay demo                              watch what it does
      jackstay run "find out why the tests fail and mend it"
      jackstay pending                           see what waits for you
      jackstay COMMAND --help                    what it takes, with examples

    \b
    Exit codes: 0 answered, 1 failed, 2 usage or configuration, 3 waiting for
    approval, 4 limit reached, 5 rejected, 6 refused by policy, 130 cancelled.
    """


def main(args: list[str] | None = None) -> NoReturn:
    """Run a command and leave with its exit code."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # an odd locale must not end a run
    code = run_command(args)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # it is over: nothing is left to be stopped
    try:
        if sys.stdout is not None:  # it is where the caller closed it
            sys.stdout.flush()
    except OSError as problem:
        if not code and not isinstance(
            problem, BrokenPipeError
        ):  # to whom reads no more nothing has to be told
            click.echo(f"jackstay: the output could not be written: {problem.strerror}", err=True)
        code = code or FAILED
        _drop_stdout()
    sys.exit(code)


def run_command(args: list[str] | None = None) -> int:
    """The exit code of a command line; what went wrong is on stderr by then."""
    debug = bool(os.environ.get("JACKSTAY_DEBUG"))
    try:
        answer: Any = group.main(args, prog_name="jackstay", standalone_mode=False)
    except click.exceptions.Exit as left:
        return left.exit_code
    except click.ClickException as problem:
        problem.show()
        return USAGE if isinstance(problem, click.UsageError) else problem.exit_code
    except (click.Abort, KeyboardInterrupt):
        click.echo("stopped", err=True)
        return CANCELLED
    except BrokenPipeError:
        _drop_stdout()
        return FAILED
    except Exception as problem:
        if debug:
            raise
        return explain(problem)
    return answer if isinstance(answer, int) else 0


def explain(problem: Exception) -> int:
    """Say on stderr what went wrong and what to do; the exit code for it."""
    from jackstay.core.errors import ConfigError, JackstayError
    from jackstay.policy.secrets import redact

    while isinstance(problem, ExceptionGroup) and len(problem.exceptions) == 1:
        problem = problem.exceptions[0]
    if isinstance(problem, JackstayError):
        click.echo(f"jackstay: {redact(str(problem))}", err=True)
        return USAGE if isinstance(problem, ConfigError) else FAILED
    text = redact(f"jackstay: {type(problem).__name__}: {problem}")
    click.echo(f"{text}\nThis was not foreseen; JACKSTAY_DEBUG=1 shows where it happened.", err=True)
    return FAILED


def _drop_stdout() -> None:
    """Nobody reads any more: let what is still buffered vanish instead of failing at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
