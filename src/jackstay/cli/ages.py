"""How is time written on the command line: a stretch of it, a moment?"""

import re
import time
from typing import Any

import click

_UNITS = {"m": 60.0, "h": 3600.0, "d": 86400.0, "w": 604800.0}


class Age(click.ParamType[float]):
    """30m, 12h, 7d, 2w; in seconds."""

    name = "age"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """The seconds; a usage error when the text is no age."""
        found = re.fullmatch(r"(\d+(?:\.\d+)?)([mhdw])", str(value).strip())
        if found is None:
            self.fail(f"{value!r} is no age: write 30m, 12h, 7d or 2w", param, ctx)
        return float(found[1]) * _UNITS[found[2]]


class Span(Age):
    """The same for what is to come: longer than nothing."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """The seconds; a usage error when the text is no length of time."""
        seconds = super().convert(value, param, ctx)
        if not seconds:
            self.fail(f"{value!r} is no time at all: write 30m, 12h, 7d or 2w", param, ctx)
        return seconds


AGE, SPAN = Age(), Span()


def clock(at: float) -> str:
    """Seconds since 1970 as local date and time."""
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(at))
