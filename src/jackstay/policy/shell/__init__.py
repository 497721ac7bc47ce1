"""What does this shell command do, and is it proven that it only reads?"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .danger import Danger
    from .effects import Effect, Part
    from .facts import ShellFacts, SimpleCommand
    from .syntax import parse
    from .verdict import ShellVerdict, analyse_command, describe

__all__ = [
    "Danger",
    "Effect",
    "Part",
    "ShellFacts",
    "ShellVerdict",
    "SimpleCommand",
    "analyse_command",
    "describe",
    "parse",
]

_HOMES = {
    "Danger": "danger",
    "Effect": "effects",
    "Part": "effects",
    "ShellFacts": "facts",
    "SimpleCommand": "facts",
    "parse": "syntax",
    "ShellVerdict": "verdict",
    "analyse_command": "verdict",
    "describe": "verdict",
}


def __getattr__(name: str) -> object:
    """Load a public name when it is first asked for."""
    if name in _HOMES:
        from importlib import import_module

        return getattr(import_module(f".{_HOMES[name]}", __name__), name)
    msg = f"module {__name__!r} has no attribute {name!r}"
    raise AttributeError(msg)
