"""A Hermes plugin as a linked directory: where is jackstay, and what if it is not there?

Copied by `jackstay host install hermes` beside a `place.py` that says where jackstay and its home lie.
Uses only the standard library until jackstay is found.
"""

import importlib.util
import sys
from importlib.machinery import PathFinder
from typing import Any

_PACKAGES = frozenset({"jackstay", "msgspec", "tree_sitter", "tree_sitter_bash", "platformdirs"})


def register(ctx: Any) -> None:
    """What Hermes calls once, at its start. `work-principles` refuses every call when it cannot be started."""
    try:
        _start(ctx, ctx.manifest.name)
    except BaseException as problem:  # Hermes runs on unguarded when this function raises
        if ctx.manifest.name != "work-principles":
            raise
        text = (
            f"jackstay could not be started ({type(problem).__name__}: {problem}), so no tool call may run. "
            f"Install it for Hermes's own Python: `{sys.executable} -m pip install jackstay`; or take it out: "
            "`hermes plugins disable work-principles`. Then start Hermes anew."
        )
        ctx.register_hook("pre_tool_call", lambda **_: {"action": "block", "message": text})


def _start(ctx: Any, name: str) -> None:
    from . import place  # type: ignore[attr-defined] # written beside the copy of this file

    if importlib.util.find_spec("jackstay") is None:
        if sys.implementation.cache_tag != place.PYTHON:
            raise ImportError(
                f"jackstay was installed for {place.PYTHON}, Hermes runs {sys.implementation.cache_tag}"
            )
        sys.meta_path.append(_Elsewhere(place.PATHS))  # last: what Hermes has of its own comes first
    from jackstay.hosts import hermes

    {"work-principles": hermes.discipline, "context-anchor": hermes.anchor}[name](ctx, home=place.HOME)


class _Elsewhere:
    """Finds jackstay's packages, and nothing else, in the environment that installed this plugin."""

    def __init__(self, paths: list[str]) -> None:
        self._paths = paths

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        return PathFinder.find_spec(name, self._paths) if path is None and name in _PACKAGES else None
