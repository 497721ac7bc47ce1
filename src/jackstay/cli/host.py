"""`jackstay host`: the discipline inside other people's agents: install, look, and speak in person."""

import getpass
from collections import deque
from pathlib import Path
from typing import Any, Literal

import click

from jackstay.cli.plain import safe, shown
from jackstay.cli.switches import home_option, json_option

CLAUDE_CODE, HERMES = "claude-code", "hermes"
HOSTS = (CLAUDE_CODE, HERMES)

host_argument = click.argument("name", metavar="HOST", type=click.Choice(HOSTS))
scope_option = click.option(
    "--project/--user", "project", default=False,
    help="Only in this directory, or everywhere (default).",
)  # fmt: skip


@click.group()
def host() -> None:
    """Hold another agent to the discipline: claude-code, hermes.

    \b
    Examples:
      jackstay host install claude-code
      jackstay host status hermes
    """


@host.command()
@host_argument
@scope_option
@click.option("--dry-run", is_flag=True, help="Show what would be written; write nothing.")
@click.option("--plugin", metavar="DIR", type=click.Path(), help="Write a plugin folder instead.")
@home_option
@json_option
def install(name: str, project: bool, dry_run: bool, plugin: str | None, **given: Any) -> None:
    """Make HOST ask jackstay before each call. Undo with `jackstay host uninstall`.

    Exits 0 when it is done, 2 when a file cannot be edited; nothing was changed then.

    \b
    Examples:
      jackstay host install claude-code --dry-run
      jackstay host install claude-code
    """
    from jackstay.config.paths import ensure_private
    from jackstay.config.paths import home as home_path
    from jackstay.hosts import claude_install

    as_json = given["as_json"]
    if name == HERMES:
        _hermes("install", given, dry_run=dry_run, project=project, plugin=plugin)
        return
    own, python = home_path(given["home"]), claude_install.interpreter()
    if not dry_run:
        ensure_private(own)
    if plugin is not None:
        _plugin(Path(plugin), claude_install.plugin(own, python=python), dry_run=dry_run, as_json=as_json)
        return
    scope: Any = "project" if project else "user"
    place = claude_install.place_of(scope, Path.cwd())
    there = claude_install.installed(own, place)
    if there is not None and not dry_run:
        claude_install.uninstall(own, place)  # the same again, or a newer version in place of an older one
    edits = [] if there is not None and dry_run else claude_install.planned(scope, place, own, python=python)
    if not dry_run:
        claude_install.apply(scope, place, own, edits)  # before it is told: whoever reads may be gone
    for edit in edits:
        pieces = safe("".join(edit.pieces)) if dry_run else ""
        _say(f"{'would write' if dry_run else 'writes'} {edit.path}{pieces}", as_json, path=edit.path)
    if dry_run:
        if not as_json:
            click.echo("installed already; nothing to do" if there is not None else "nothing was written")
        return
    if not as_json:
        click.echo(
            f"installed: new sessions of {name} are held to the discipline; `jackstay host status {name}`"
        )


def _hermes(
    do: Literal["install", "uninstall"], given: dict[str, Any], *, dry_run: bool, project: bool,
    plugin: str | None = None,
) -> None:  # fmt: skip
    from jackstay.cli.host_hermes import carried_out
    from jackstay.config.paths import home as home_path
    from jackstay.core.errors import ConfigError

    if project:
        raise ConfigError("Hermes is held for its user, in all directories: leave --project out")
    lines = carried_out(do, home_path(given["home"]), dry_run=dry_run, folder=plugin)
    try:
        for line in lines:
            _say(line, given["as_json"], host=HERMES)
    except BrokenPipeError:
        deque(lines, maxlen=0)  # nobody reads any more: what was begun is finished all the same
        raise


def _plugin(folder: Path, files: dict[str, str], *, dry_run: bool, as_json: bool) -> None:
    from jackstay.hosts import claude_install

    if not dry_run:
        claude_install.write_plugin(folder, files)
    for name in files:
        _say(f"{'would write' if dry_run else 'wrote'} {folder / name}", as_json, path=str(folder / name))
    if not as_json:
        click.echo(f"start it with: claude --plugin-dir {folder}")


@host.command()
@host_argument
@scope_option
@click.option("--dry-run", is_flag=True, help="Show what would be undone; write nothing.")
@home_option
@json_option
def uninstall(name: str, project: bool, dry_run: bool, home: str | None, as_json: bool) -> None:
    """Take our entries out of HOST's files again.

    Exits 0, also when nothing was installed.

    \b
    Example:
      jackstay host uninstall claude-code
    """
    from jackstay.config.paths import home as home_path
    from jackstay.hosts import claude_install

    if name == HERMES:
        _hermes("uninstall", {"home": home, "as_json": as_json}, dry_run=dry_run, project=project)
        return
    own = home_path(home)
    place = claude_install.place_of("project" if project else "user", Path.cwd())
    there = claude_install.installed(own, place)
    if there is None:
        _say(f"not installed in {place.settings}: nothing to do", as_json, path=None)
        return
    if dry_run:
        for edit in there.edits:
            _say(f"would undo {edit.path}", as_json, path=edit.path)
        return
    for line in claude_install.uninstall(own, place):
        _say(line, as_json, path=line.split(None, 1)[1])


@host.command()
@host_argument
@home_option
@json_option
def status(name: str, home: str | None, as_json: bool) -> int:
    """Is HOST held, and where do its sessions stand?

    Exits 0 when it is held, 1 when something leaves it unguarded.

    \b
    Example:
      jackstay host status claude-code
    """
    from jackstay.cli.host_hermes import findings as hermes_findings
    from jackstay.cli.host_looks import findings
    from jackstay.config.paths import home as home_path
    from jackstay.core.wire import encode
    from jackstay.hosts.state import HostStore

    own = home_path(home)
    found = list(findings(own, Path.cwd()) if name == CLAUDE_CODE else hermes_findings(own))
    for one in found:
        lead = "" if name == HERMES else f"{one.state:<8} "  # as the second seed prints them
        click.echo(encode(one) if as_json else f"{lead}{one.text}")
        if one.mend and not as_json:
            click.echo(f"{'':9}{one.mend}")
    store = HostStore(own)
    sessions = store.sessions(name) if store.path.exists() else []
    store.close()
    for session, state, at in sessions[:10]:
        phase = state.policy.phase.phase.value
        line = {"type": "host_session", "host": session.host, "session": session.id, "phase": phase, "at": at}
        click.echo(encode(line) if as_json else f"{phase:<17}{shown(session.id)}")
    return 1 if any(one.state == "problem" for one in found) else 0


# -- in person -----------------------------------------------------------------------------------------------


@host.command()
@home_option
@json_option
def pending(home: str | None, as_json: bool) -> None:
    """Show the calls of hosts that wait for a person.

    Exits 0, also when nothing waits.

    \b
    Example:
      jackstay host pending
    """
    from jackstay.core.wire import encode

    store = _store(home)
    questions = store.questions()
    store.close()
    for one in questions:
        if as_json:
            click.echo(encode(one))
        else:
            click.echo(f"{one.id}  {one.host}  {shown(one.tool)} {shown(one.call)}\n{'':18}{shown(one.reason)}")
    if not questions and not as_json:
        click.echo("nothing waits")


@host.command()
@click.argument("question")
@home_option
@json_option
def approve(question: str, home: str | None, as_json: bool) -> int:
    """Let a waiting call run once, when the agent tries it again.

    Exits 0 when it is stored, 1 when there is no such open question.

    \b
    Example:
      jackstay host approve 0f3a9c51b2d47e68
    """
    return _answer(home, question, "approve", "", as_json=as_json)


@host.command()
@click.argument("question")
@click.option("--comment", default="", metavar="TEXT", help="What the agent should read.")
@home_option
@json_option
def reject(question: str, comment: str, home: str | None, as_json: bool) -> int:
    """Turn a waiting call down.

    Exits 0 when it is stored, 1 when there is no such open question.

    \b
    Example:
      jackstay host reject 0f3a9c51b2d47e68 --comment "not on a Friday"
    """
    return _answer(home, question, "reject", comment, as_json=as_json)


def _answer(home: str | None, question: str, said: Any, remark: str, *, as_json: bool) -> int:
    _in_person()
    store = _store(home)
    done = store.answer(question, said, by=getpass.getuser(), remark=remark)
    store.close()
    if done:
        _say(f"{question}: {said}", as_json, question=question, said=said)
    else:
        click.echo(f"there is no open question {safe(question)!r}", err=True)
    return 0 if done else 1


@host.command("approve-plan")
@host_argument
@click.argument("session")
@home_option
@json_option
def approve_plan(name: str, session: str, home: str | None, as_json: bool) -> None:
    """Approve the plan of a session of HOST.

    Exits 0; says so where no plan waits. 1 when there is no such session.

    \b
    Example:
      jackstay host approve-plan claude-code 6f1c2e
    """
    from jackstay.hosts.state import Session

    _in_person()
    judge = _judge(home)
    _known(judge.store, Session(name, session))
    _say(safe(judge.approve_plan(Session(name, session), by=getpass.getuser())), as_json, session=session)
    judge.store.close()


@host.command()
@host_argument
@click.argument("session")
@click.argument("phase")
@click.option("--reason", required=True, metavar="TEXT", help="Why, for the record.")
@home_option
@json_option
def phase(name: str, session: str, phase: str, reason: str, **given: Any) -> None:
    """Move the phase of a session of HOST, whatever the table says.

    Exits 0, 1 when there is no such session, 2 when there is no such phase.

    \b
    Example:
      jackstay host phase claude-code 6f1c2e planning --reason "think again"
    """
    from jackstay.core.phase import Phase
    from jackstay.hosts.state import Session

    if phase not in set(Phase):
        raise click.BadParameter(f"the phases are {', '.join(Phase)}", param_hint="PHASE")
    _in_person()
    judge = _judge(given["home"])
    _known(judge.store, Session(name, session))
    text = judge.force_phase(Session(name, session), Phase(phase), reason, by=getpass.getuser())
    _say(safe(text), given["as_json"], session=session, phase=phase)
    judge.store.close()


def _in_person() -> None:
    from jackstay.cli.override import by_a_person

    by_a_person()


def _known(store: Any, session: Any) -> None:
    """A mistyped id must not open a session of its own."""
    from jackstay.core.errors import JackstayError

    if store.read(session) is None:
        hint = f"`jackstay host status {session.host}` shows the latest"
        raise JackstayError(f"no session {session.id!r} of {session.host} is known: {hint}")


def _say(text: str, as_json: bool, **fields: Any) -> None:
    from jackstay.core.wire import encode

    click.echo(encode({"type": "host", **fields, "text": text}) if as_json else text)


def _store(home: str | None) -> Any:
    from jackstay.config.paths import home as home_path
    from jackstay.hosts.state import HostStore

    return HostStore(home_path(home))


def _judge(home: str | None) -> Any:
    from jackstay.config.paths import home as home_path
    from jackstay.hosts.judge import Judge
    from jackstay.hosts.names import CLAUDE_CODE as NAMES

    return Judge(home_path(home), NAMES)
