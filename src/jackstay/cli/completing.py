"""What can a shell complete, and how is it told to?"""

from typing import TYPE_CHECKING

import click
from click.shell_completion import CompletionItem, get_completion_class

if TYPE_CHECKING:
    from jackstay.engine.ports import SessionStore

SHELLS = ("bash", "zsh", "fish")
_MOST = 200


def complete_session(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """The stored sessions whose ids begin like this, the latest first."""
    try:
        store = _store(ctx)
        found = [one for one in store.sessions(_MOST) if one.session_id.startswith(incomplete)]
        return [CompletionItem(one.session_id, help=" ".join(one.title.split())[:60]) for one in found]
    except Exception:  # a shell that completes is no place for error messages
        return []


def complete_call(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """The calls that wait in the session named before."""
    try:
        store, session = _store(ctx), ctx.params.get("session")
        if not session:
            return []
        tasks = [task for one in store.pending() if one.session_id == session for task in one.tasks]
        return [CompletionItem(t.key, help=t.tool_name) for t in tasks if t.key.startswith(incomplete)]
    except Exception:  # as above
        return []


def complete_backup(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """The backups whose ids begin like this, the latest first."""
    try:
        from jackstay.config.paths import home
        from jackstay.ward.backup import Backups

        found = Backups(home(ctx.params.get("home"))).list()
        kept = [one for one in found if one.id.startswith(incomplete)][:_MOST]
        return [CompletionItem(one.id, help=f"{one.session}: {one.why}") for one in kept]
    except Exception:  # as above
        return []


def _store(ctx: click.Context) -> "SessionStore":
    from jackstay.cli.stored import open_store

    return open_store(ctx.params.get("home"))


@click.command()
@click.argument("shell", type=click.Choice(SHELLS))
def completion(shell: str) -> None:
    """Print the completion script of a shell.

    \b
    bash:  eval "$(jackstay completion bash)"            in ~/.bashrc
    zsh:   eval "$(jackstay completion zsh)"             in ~/.zshrc
    fish:  jackstay completion fish > ~/.config/fish/completions/jackstay.fish

    Commands, options, sessions, waiting calls and backups complete.
    """
    from jackstay.cli.main import group

    kind = get_completion_class(shell)
    if kind is None:
        raise click.UsageError(f"nothing is known about completion in {shell}")
    made = kind(group, {}, "jackstay", "_JACKSTAY_COMPLETE")
    click.echo(made.source_template % made.source_vars())  # not source(): it starts a shell to ask its version
