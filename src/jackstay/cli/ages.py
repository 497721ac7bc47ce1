"""How is a stretch of time written on the command line?"""

import re
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


AGE = Age()
