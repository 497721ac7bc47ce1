"""How does text that others wrote reach a person's eyes? Nothing in it may steer the terminal or hide."""

import json
import shlex
import unicodedata
from typing import Any

from jackstay.policy.visible import visible

CLIP_CHARS = 160
_UNSAFE = frozenset({"Cc", "Cf", "Co", "Cs", "Zl", "Zp"})
_JOINERS = frozenset("\u200c\u200d")  # scripts and emoji need them inside words


def shown(text: str, *, lines: bool = False) -> str:
    """Text that a person decides by: all that could deceive the eye is written out. The one place for it."""
    return visible(text, lines=lines)


def safe(text: str) -> str:
    """Words of a model or tool to be read along: nothing in them can steer the terminal."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(_written(char) for char in text)


def _written(char: str) -> str:
    if char in "\n\t" or char in _JOINERS or unicodedata.category(char) not in _UNSAFE:
        return char
    return "" if char == "\r" else f"\\u{ord(char):04x}"


def args_text(args: dict[str, Any]) -> str:
    """The arguments of a call in one line: a lone text as it is, everything else as JSON."""
    if len(args) == 1 and isinstance(only := next(iter(args.values())), str):
        return only
    return json.dumps(args, ensure_ascii=False)


_SUBJECTS = ("command", "file_path", "path", "pattern", "url", "name", "prompt")


def subject(args: dict[str, Any]) -> str:
    """What a call is about, for a line that need not say all; nobody decides by it."""
    named = next((args[name] for name in _SUBJECTS if isinstance(args.get(name), str)), None)
    return clip(named if named is not None else args_text(args))


def clip(text: str, limit: int = CLIP_CHARS) -> str:
    """The text in one line of at most `limit` characters."""
    line = " ".join(text.split())
    return line if len(line) <= limit else f"{line[: limit - 1]}…"


def command_line(*words: str, home: str | None) -> str:
    """A command of ours, ready to be pasted."""
    tail = ("--home", home) if home is not None else ()
    return shlex.join(("jackstay", *words, *tail))
