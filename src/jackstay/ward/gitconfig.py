"""Which settings of the repository at hand could make git run a program?"""

import subprocess

from jackstay.policy.neutral import neutral_environment

_TIMEOUT_S = 5.0


def program_keys(cwd: str, base: dict[str, str]) -> tuple[str, ...]:
    """The configuration keys git would use in `cwd`, wherever they are set; () where git cannot tell.

    Reading its configuration runs nothing of it.
    """
    try:
        listed = subprocess.run(
            ("git", "config", "--list", "--name-only", "-z"),
            cwd=cwd, env=neutral_environment(base), capture_output=True, timeout=_TIMEOUT_S, check=False,
        )  # fmt: skip
    except (OSError, subprocess.SubprocessError):
        return ()
    return tuple(
        dict.fromkeys(key.decode("utf-8", "surrogateescape") for key in listed.stdout.split(b"\0") if key)
    )
