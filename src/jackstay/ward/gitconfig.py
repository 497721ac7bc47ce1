"""Which settings of the repositories at hand could make git run a program?"""

import subprocess
from collections.abc import Iterable
from pathlib import Path

from jackstay.policy.neutral import neutral_environment

_TIMEOUT_S = 5.0


def program_keys(places: Iterable[str], base: dict[str, str]) -> tuple[str, ...]:
    """The configuration keys git would use in these directories, wherever they are set, and for each of their
    sub-modules the key that says whether to look into it; () where git cannot tell.

    Reading its configuration runs nothing of it.
    """
    env = neutral_environment(base)
    found: dict[str, None] = {}
    for place in places:
        found.update(dict.fromkeys(_listed(place, (), env)))
        top = _top(Path(place))
        for key in _listed(place, ("--file", str(top / ".gitmodules")), env) if top is not None else ():
            section, dot, _ = key.rpartition(".")
            found[f"{section}{dot}ignore"] = None
    return tuple(found)


def _top(place: Path) -> Path | None:
    """The directory at or above a place that lists sub-modules."""
    return next((one for one in (place, *place.parents) if (one / ".gitmodules").is_file()), None)


def _listed(place: str, where: tuple[str, ...], env: dict[str, str]) -> list[str]:
    try:
        listed = subprocess.run(
            ("git", "config", *where, "--list", "--name-only", "-z"),
            cwd=place, env=env, capture_output=True, timeout=_TIMEOUT_S, check=False,
        )  # fmt: skip
    except (OSError, subprocess.SubprocessError):
        return []
    return [key.decode("utf-8", "surrogateescape") for key in listed.stdout.split(b"\0") if key]
