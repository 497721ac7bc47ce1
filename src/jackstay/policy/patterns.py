"""Does a pattern cover a text? One small pattern language for commands, paths and other words.

`*` is any run of characters, `?` one, `[ab]` and `[!ab]` one of a set. In commands and words `*` never crosses
the end of a line; in paths it never crosses `/`, `**` does.
"""

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

from jackstay.policy.paths import lexical

HOLE = "\x00"  # stands in a text for a word nobody can read before it runs
REDIRECT = "\x01"  # begins a redirection, so that no `*` reaches it
INNER = "\x02"  # a blank inside a word

_ONE = f"[^\n{HOLE}{REDIRECT}]"
_RUN = f"[^\n{REDIRECT}]*"
_SET = re.compile(r"\[(!|\^)?(\]?[^]/\n]*)\]")


def has_pattern(text: str) -> bool:
    """Does the text hold pattern characters?"""
    return "*" in text or "?" in text or "[" in text


@lru_cache(4096)
def words_pattern(pattern: str) -> re.Pattern[str]:
    """For commands and plain words. A closing ` *` may be nothing: `git push *` is `git push` too."""
    command, mark, redirects = pattern.partition(f" {REDIRECT}")
    body, tail = (command[:-2], f"(?: {_RUN})?") if command.endswith(" *") else (command, "")
    ends = _translate(mark + redirects, run=_RUN, deep=_RUN, one=_ONE)
    return re.compile(_translate(body, run=_RUN, deep=_RUN, one=_ONE) + tail + ends)


@lru_cache(4096)
def loose_pattern(pattern: str) -> re.Pattern[str]:
    """The same for what forbids: a quoted line break or a redirection inside a command hides nothing."""
    body, tail = (pattern[:-2], "(?: .*)?") if pattern.endswith(" *") else (pattern, "")
    return re.compile(_translate(body, run=".*", deep=".*", one=".") + tail, re.DOTALL)


@lru_cache(4096)
def path_pattern(pattern: str) -> re.Pattern[str]:
    """For canonical paths. `x/**` covers `x` and all beneath it."""
    body, tail = (pattern[:-3], "(?:/.*)?") if pattern.endswith("/**") else (pattern, "")
    return re.compile(_translate(body, run="[^/]*", deep=".*", one="[^/]") + tail, re.DOTALL)


def _translate(pattern: str, *, run: str, deep: str, one: str) -> str:
    out: list[str] = []
    at = 0
    while at < len(pattern):
        char = pattern[at]
        if pattern.startswith("**/", at) and (at == 0 or pattern[at - 1] == "/"):
            out.append(f"(?:{deep}/)?" if deep != run else f"{run}/")
            at += 3
            continue
        if char == "*":
            stars = len(pattern[at:]) - len(pattern[at:].lstrip("*"))
            out.append(deep if stars > 1 else run)
            at += stars
            continue
        chosen = _SET.match(pattern, at) if char == "[" else None
        if chosen is not None and chosen[2]:
            members = re.sub(r"([\\\[\]^&~|])", r"\\\1", chosen[2])
            out.append(f"(?!{re.escape(HOLE)}|\n|/)[{'^' if chosen[1] else ''}{members}]")
            at = chosen.end()
            continue
        out.append(one if char == "?" else re.escape(char))
        at += 1
    return "".join(out)


def might_match(pattern: str, text: str) -> bool:
    """Could the pattern cover the text for some reading of its holes? In doubt (sets, line ends) yes."""
    flat = re.sub(r"\*+", "*", _SET.sub("?", pattern))
    text = text.replace(f" {HOLE}", HOLE)  # a word that comes to nothing takes its blank along
    return _meets(flat, text) or (flat.endswith(" *") and _meets(flat[:-2], text))


def _meets(pattern: str, text: str) -> bool:
    """Have the strings that `pattern` and `text` stand for one in common? A table row per character."""
    row = [True]
    for item in pattern:
        row.append(row[-1] and item == "*")
    for char in text:
        above, row = row, [row[0] and char == HOLE]
        for number, item in enumerate(pattern, start=1):
            if item == "*" or char == HOLE:
                row.append(above[number] or row[number - 1])
            else:
                row.append(above[number - 1] and item in ("?", char))
    return row[-1]


# -- patterns as people write them ---------------------------------------------------------------------------


class Place(NamedTuple):
    """A path pattern: its expression, and the directory or file that everything it covers lies in."""

    pattern: re.Pattern[str]
    root: str


@lru_cache(1024)
def place_of(pattern: str, *, literal: bool, base: str, home: str) -> Place:
    """`/x` from the root, `~/x` from the home, `**/x` anywhere, and anything else from the workspace."""
    if literal or not has_pattern(pattern):
        whole = lexical(pattern, base, home) or pattern
        deep = not literal and pattern.endswith("/") and whole != "/"
        return Place(re.compile(re.escape(whole) + ("(?:/.*)?" if deep else "")), whole)
    if pattern.startswith(("~/", "/")):
        head, rest = (home, pattern[1:]) if pattern.startswith("~") else ("", pattern)
    elif pattern.startswith("**"):
        head, rest = "", "/" + pattern
    else:
        head, rest = base, "/" + pattern.removeprefix("./")
    if rest.endswith("/"):
        rest += "**"
    fixed = re.split(r"[*?\[]", rest, maxsplit=1)[0].rpartition("/")[0]
    return Place(re.compile(re.escape(head) + path_pattern(rest).pattern, re.DOTALL), (head + fixed) or "/")


@lru_cache(1024)
def narrow(pattern: str) -> str:
    """A command pattern as `Part.exact` spells commands: blanks in quotes kept apart, redirections marked."""
    words = []
    for word in _split(pattern):
        redirect = re.fullmatch(r"\d*(&>>?|>>?\|?|<>?)(.*)", word.text) if not word.quoted else None
        words.append(REDIRECT + " ".join(filter(None, redirect.groups())) if redirect else word.text)
    joined = " ".join(words)
    return re.sub(f"({REDIRECT}[^ ]+) ", r"\1 ", joined)


@lru_cache(1024)
def unquoted(pattern: str) -> str:
    """A command pattern without its quotes."""
    return " ".join(word.text.replace(INNER, " ") for word in _split(pattern))


class _Word(NamedTuple):
    text: str
    quoted: bool


def _split(pattern: str) -> Iterator[_Word]:
    """Words between blanks; quotes hold a word together and are dropped."""
    for match in re.finditer(r"(?:'[^']*'|\"[^\"]*\"|[^\s])+", pattern):
        raw = match.group()
        plain = re.sub(
            r"'([^']*)'|\"([^\"]*)\"", lambda m: (m[1] if m[1] is not None else m[2]).replace(" ", INNER), raw
        )
        yield _Word(plain, plain != raw)
