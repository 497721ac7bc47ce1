"""Which options do many commands share, and what may stand in for a session or a call?"""

from collections.abc import Callable
from typing import Any, TypeVar

import click

from jackstay.cli.completing import complete_call, complete_session
from jackstay.core.errors import BadSessionId
from jackstay.core.ids import session_id

F = TypeVar("F", bound=Callable[..., Any])


class SessionName(click.ParamType[str]):
    """A session id, checked before anything looks for it."""

    name = "session"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """The id as given; a usage error when it could not be one."""
        try:
            return session_id(str(value))
        except BadSessionId as problem:
            self.fail(str(problem), param, ctx)


SESSION = SessionName()


def home_option(command: F) -> F:
    """`--home DIR`."""
    text = "Where sessions and settings are kept (default: JACKSTAY_HOME, else the platform's data directory)."
    return click.option("--home", metavar="DIR", type=click.Path(file_okay=False), help=text)(command)


def json_option(command: F) -> F:
    """`--json`."""
    text = "Print one JSON object per line and nothing else."
    return click.option("--json", "as_json", is_flag=True, help=text)(command)


def session_argument(command: F) -> F:
    """SESSION, required."""
    return click.argument("session", type=SESSION, shell_complete=complete_session)(command)


def calls_argument(command: F) -> F:
    """CALL_ID…"""
    return click.argument("call_ids", metavar="[CALL_ID]...", nargs=-1, shell_complete=complete_call)(command)
