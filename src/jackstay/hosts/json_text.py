"""How is something put into a hand-written JSON file, and taken out, without touching the rest of its text?

Comments and trailing commas, as people write them, are passed over.
"""

import re
from typing import Any, NamedTuple

from jackstay.core import wire
from jackstay.core.errors import ConfigError

_SPACE = re.compile(r"(?:\s+|//[^\n]*|/\*.*?\*/)*", re.DOTALL)
_STRING = re.compile(r'"(?:[^"\\\x00-\x1f]|\\.)*"')
_PLAIN = re.compile(r"[-+.\w]+")
_DEEPEST = 100


class Node(NamedTuple):
    """A value's place in the text. `members` are an object's, `items` says whether there is anything inside."""

    kind: str  # "{", "[" or "" for everything else
    start: int
    end: int
    members: "dict[str, Node]"
    items: bool


def read(text: str) -> Node:
    """The places of all values. Raises ConfigError naming the line for what is no JSON."""
    node, end = _value(text, _skip(text, 0), 0)
    end = _skip(text, end)
    if end != len(text):
        raise _broken(text, end)
    return node


def plain(text: str) -> Any:
    """The file's content, comments and trailing commas passed over. Raises ConfigError."""
    read(text)
    kept = re.sub(rf"{_STRING.pattern}|//[^\n]*|/\*.*?\*/", _uncommented, text, flags=re.DOTALL)
    kept = re.sub(rf"({_STRING.pattern})|,(?=\s*[\]}}])", lambda found: found[1] or "", kept)
    return wire.decode_json(kept)


def put(text: str, path: tuple[str, ...], value: Any, *, item: bool = False) -> tuple[str, str]:
    """The text with the value at `path`, and the piece that was put in; with `item` first in the array there.

    Objects and the array that are missing are made. What is there stays; a member of this name must not be.
    """
    if not text.strip():
        text = "{}\n"
    node, depth, left = read(text), 0, list(path)
    while left and node.kind == "{" and left[0] in node.members:
        node, depth = node.members[left.pop(0)], depth + 1
    if node.kind != ("[" if item and not left else "{"):
        raise ConfigError(
            f"{'.'.join(path)}: there is something else in this place", hint="mend the file by hand"
        )
    if not left and not item:
        raise ConfigError(f"{'.'.join(path)} is there already", hint="uninstall first")
    pad = "\n" + "  " * (depth + 1)
    body = _shown(_nested(left[1:], [value] if item and left else value), depth + 1)
    piece = pad + (f"{_shown(left[0], 0)}: {body}" if left else body) + ("," if node.items else "")
    if not node.items and "\n" not in text[node.start : node.end]:
        piece += "\n" + "  " * depth
    return text[: node.start + 1] + piece + text[node.start + 1 :], piece


def without(text: str, pieces: tuple[str, ...]) -> str | None:
    """The text without these pieces, put in in this order; None where one is not there just once."""
    for piece in reversed(pieces):
        if text.count(piece) != 1:
            return None
        text = text.replace(piece, "")
    return text


def shown(value: Any) -> str:
    """A whole file's text."""
    return _shown(value, 0) + "\n"


def _nested(keys: list[str], value: Any) -> Any:
    for key in reversed(keys):
        value = {key: value}
    return value


def _shown(value: Any, depth: int) -> str:
    import json  # lays JSON out for people, as the host itself does

    return json.dumps(value, indent=2, ensure_ascii=False).replace("\n", "\n" + "  " * depth)


def _uncommented(found: "re.Match[str]") -> str:
    return found[0] if found[0].startswith('"') else " "


def _skip(text: str, at: int) -> int:
    found = _SPACE.match(text, at)
    return found.end() if found else at


def _value(text: str, at: int, depth: int) -> tuple[Node, int]:
    opening = text[at : at + 1]
    if opening not in ("{", "[") or depth > _DEEPEST:
        found = (_STRING if opening == '"' else _PLAIN).match(text, at)
        if found is None or depth > _DEEPEST:
            raise _broken(text, at)
        return Node("", at, found.end(), {}, False), found.end()
    members: dict[str, Node] = {}
    items, here = False, _skip(text, at + 1)
    while text[here : here + 1] != {"{": "}", "[": "]"}[opening]:
        items = True
        key, here = _key(text, here) if opening == "{" else ("", here)
        node, here = _value(text, here, depth + 1)
        if key:
            members[key] = node
        here = _skip(text, here)
        if text[here : here + 1] == ",":
            here = _skip(text, here + 1)
        elif text[here : here + 1] not in ("}", "]"):
            raise _broken(text, here)
    return Node(opening, at, here + 1, members, items), here + 1


def _key(text: str, at: int) -> tuple[str, int]:
    found = _STRING.match(text, at)
    if found is None:
        raise _broken(text, at)
    here = _skip(text, found.end())
    if text[here : here + 1] != ":":
        raise _broken(text, here)
    return str(wire.decode_json(found[0])), _skip(text, here + 1)


def _broken(text: str, at: int) -> ConfigError:
    line = text.count("\n", 0, at) + 1
    return ConfigError(f"line {line} is no JSON", hint="mend the file by hand; nothing was changed")
