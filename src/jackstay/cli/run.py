"""`jackstay run` and `jackstay resume`: an agent gets a task, or goes on with one."""

import sys
from collections.abc import Callable
from typing import Any, TypeVar, get_args
from uuid import uuid4

import click

from jackstay.cli.ages import SPAN
from jackstay.cli.completing import complete_session
from jackstay.cli.setup import DEFAULT_TOOLS, Flags, set_up
from jackstay.cli.stored import open_store, stored_state
from jackstay.cli.switches import SESSION, home_option, json_option, session_argument
from jackstay.core.approvals import OnDeadline
from jackstay.core.state import RunState

F = TypeVar("F", bound=Callable[..., Any])

_MODEL = "openai:NAME, anthropic:NAME, ollama:NAME, NAME@URL, script:FILE, or a name from the settings."
_TOOLS = f"Tools by name or group, with commas (default: {','.join(DEFAULT_TOOLS)})."
_RULE = "TOOL or TOOL(PATTERN), like 'bash(git status)'; may be given several times."


def run_options(command: F) -> F:
    """The switches of a run, shared by `run` and `resume`."""
    for option in reversed(
        (
            click.option("--model", metavar="MODEL", help=_MODEL),
            click.option("--agent", metavar="NAME", help="Which agent works (default: main)."),
            click.option("--tools", metavar="a,b,…", help=_TOOLS),
            click.option(
                "--hitl/--no-hitl", default=None, help="Ask a person about sensitive calls (default: yes)."
            ),
            click.option(
                "--discipline",
                type=click.Choice(["strict", "guided", "observe", "off"]),
                help="How strictly phases are held (default: strict).",
            ),
            click.option("--allow", multiple=True, metavar="RULE", help=f"Let calls run: {_RULE}"),
            click.option("--deny", multiple=True, metavar="RULE", help=f"Never run calls: {_RULE}"),
            click.option(
                "--max-turns", type=click.IntRange(min=1), metavar="N", help="How often the model may be asked."
            ),
            click.option(
                "--approval-deadline",
                type=SPAN,
                metavar="AGE",
                help="How long a call may wait for a person: 30m, 2h, 7d (default: as long as it takes).",
            ),
            click.option(
                "--on-deadline",
                type=click.Choice(get_args(OnDeadline)),
                help="What then: the call is denied (the default), waits on, or is put to somebody else.",
            ),
            home_option,
            json_option,
        )
    ):
        command = option(command)
    return command


@click.command()
@click.argument("prompt", required=False)
@click.option(
    "--session",
    type=SESSION,
    shell_complete=complete_session,
    help="Go on in this session (default: a new one).",
)
@click.option(
    "--workspace",
    metavar="DIR",
    type=click.Path(file_okay=False),
    help="Where the agent works (default: the session's, else the current directory).",
)
@run_options
def run(prompt: str | None, session: str | None, as_json: bool, **said: Any) -> int:
    """Give an agent a task. PROMPT is its text; - reads it from stdin.

    On a terminal you are asked where something waits for you. Elsewhere nothing blocks: what waits is printed
    with the commands that decide it, and the exit code is 3.

    \b
    Examples:
      jackstay run "find out why the tests fail and mend it"
      jackstay run --session s-4f1c "go on, but keep the old name"
      jackstay run --no-hitl --allow 'bash(pytest *)' --json - < task.txt
      jackstay run --approval-deadline 2h "release it once somebody agrees"

    \b
    Exit codes: 0 answered, 1 failed, 2 usage or configuration, 3 waiting for
    approval (of calls or of a plan), 4 limit reached, 5 rejected, 130 cancelled.
    """
    from jackstay.cli.conduct import Request

    text = _prompt(prompt)
    flags = Flags(**said)
    made = set_up(flags, _remembered(flags.home, session))
    agent_session = made.engine.get_session(session or f"s-{uuid4().hex[:12]}")
    return Request(made, agent_session, as_json=as_json, home=flags.home).carry_out(text)


@click.command()
@session_argument
@run_options
def resume(session: str, as_json: bool, **said: Any) -> int:
    """Go on with a suspended or interrupted run: same run id, same settings unless told otherwise.

    Also with a run whose plan was approved since. While something waits undecided no model is asked.

    \b
    Examples:
      jackstay resume s-4f1c
      jackstay resume s-4f1c --model anthropic:claude-sonnet --max-turns 40

    Exit codes are those of `jackstay run`; a run that has ended gives its own again.
    """
    from jackstay.cli.conduct import Request

    flags = Flags(**said)
    store = open_store(flags.home)
    state = stored_state(store, session)
    store.close()
    made = set_up(flags, state)
    return Request(made, made.engine.get_session(session), as_json=as_json, home=flags.home).carry_out(None)


def _prompt(given: str | None) -> str:
    if given == "-" or (given is None and not sys.stdin.isatty()):
        given = sys.stdin.read()
    if given is None or not given.strip():
        raise click.UsageError(
            'say what is to be done: jackstay run "fix the failing test" (or - to read stdin)'
        )
    return given


def _remembered(home: str | None, session: str | None) -> RunState | None:
    if session is None:
        return None
    store = open_store(home)
    found = store.head(session)
    store.close()
    return found.state if found is not None else None
