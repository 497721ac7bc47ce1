"""What does a web page say, as plain text with its links?

A scanner of our own, because a page may be made to hurt: the time it takes grows with the page and no faster,
which neither html.parser nor patterns over whole pages promise for malformed input.
"""

import re
from collections.abc import Iterator
from html import unescape
from typing import NamedTuple
from urllib.parse import urljoin

_SILENT = frozenset({"script", "style", "noscript", "template", "svg", "iframe", "object", "canvas"})
_BLOCKS = frozenset({
    "address", "article", "aside", "blockquote", "body", "dd", "details", "div", "dl", "dt", "fieldset",
    "figcaption", "figure", "footer", "form", "header", "hr", "main", "nav", "ol", "section", "summary",
    "table", "tbody", "thead", "tr", "ul",
})  # fmt: skip
_HEADINGS = {f"h{level}": "#" * level + " " for level in range(1, 7)}
_PARTS = ("p", "title", *_HEADINGS)
_BEFORE = {
    **dict.fromkeys(_BLOCKS, "\n"), "p": "\n\n", "li": "\n- ", "br": "\n", "td": "| ", "th": "| ",
    **{tag: f"\n\n{mark}" for tag, mark in _HEADINGS.items()},
}  # fmt: skip
_AFTER = {**dict.fromkeys(_BLOCKS, "\n"), **dict.fromkeys(_PARTS, "\n\n"), "td": " ", "th": " "}
_NAME = re.compile(r"[a-zA-Z][^\s/>]{0,40}")
_ATTRIBUTE = re.compile(r"""(?<![^\s"'/])([^\s=/"'>]++)\s*+=\s*+("[^"]*"|'[^']*'|[^\s"'>]++)""")
_ATTRIBUTES = 10_000  # characters of one tag that are looked into


class _Tag(NamedTuple):
    name: str
    closes: bool
    attributes: str

    def get(self, name: str) -> str:
        """An attribute's value; empty when it has none."""
        for found in _ATTRIBUTE.finditer(self.attributes[:_ATTRIBUTES]):
            if found[1].lower() == name:
                return unescape(found[2].strip("\"'"))
        return ""


def page_text(html: str, url: str) -> str:
    """The readable text of an HTML page: headings, lists, tables as in Markdown, links made absolute."""
    reader = _Reader(url)
    for piece in _pieces(html):
        if isinstance(piece, str):
            reader.words(unescape(piece))
        elif piece.closes:
            reader.close(piece.name)
        else:
            reader.open(piece)
    return reader.text()


# -- scanning --------------------------------------------------------------------------------------------------


def _pieces(html: str) -> Iterator[str | _Tag]:
    """Text and tags in order; comments, declarations and what stands in silent elements left out."""
    position = 0
    while position < len(html):
        start = html.find("<", position)
        if start < 0:
            yield html[position:]
            return
        if start > position:
            yield html[position:start]
        position, piece = _markup(html, start)
        if piece is not None:
            yield piece
        if isinstance(piece, _Tag) and piece.name in _SILENT and not piece.closes:
            position = _end_of_silence(html, position, piece.name)


def _markup(html: str, start: int) -> tuple[int, str | _Tag | None]:
    """What begins with the `<` at `start`, and where it ends: at the end of the page if it is never closed."""
    if html.startswith("<!--", start):
        return _after(html, "-->", start + 4), None
    if html[start + 1 : start + 2] in ("!", "?"):
        return _after(html, ">", start), None
    closes = html.startswith("/", start + 1)
    name = _NAME.match(html, start + 1 + closes)
    if name is None:
        return start + 1, "<"
    end = _end_of_tag(html, name.end())
    return end, _Tag(name[0].lower(), closes, html[name.end() : end])


def _end_of_tag(html: str, position: int) -> int:
    while position < len(html):
        found = _DELIMITER.search(html, position)
        if found is None:
            break
        if found[0] == ">":
            return found.end()
        position = _after(html, found[0], found.end())
    return len(html)


_DELIMITER = re.compile("[>\"']")


def _end_of_silence(html: str, position: int, name: str) -> int:
    found = re.compile(f"</{name}", re.IGNORECASE | re.ASCII).search(html, position)
    return found.start() if found else len(html)


def _after(html: str, mark: str, position: int) -> int:
    found = html.find(mark, position)
    return len(html) if found < 0 else found + len(mark)


# -- writing ---------------------------------------------------------------------------------------------------


class _Reader:
    """Puts the text together: blanks run together, except in preformatted pieces."""

    def __init__(self, url: str) -> None:
        self._base = url
        self._done: list[str] = []
        self._kept = 0  # depth of preformatted text
        self._link: tuple[str, int] | None = None

    def words(self, text: str) -> None:
        """Take in text."""
        plain = text.replace("\0", "")
        if not self._kept:
            plain = _BLANKS.sub(" ", plain)
            if not self._done or self._done[-1][-1:].isspace():
                plain = plain.lstrip()
        if plain:
            self._done.append(plain)

    def open(self, tag: _Tag) -> None:
        """Take in an opening tag."""
        if tag.name == "base":
            self._base = _absolute(self._base, tag.get("href"))
        elif tag.name == "a":
            self._end_link()
            href = tag.get("href")
            self._link = (_absolute(self._base, href), len(self._done)) if _leads_on(href) else None
        elif tag.name == "img" and tag.get("alt"):
            self._done.append(f"[image: {tag.get('alt')}]")
        elif tag.name == "pre":
            self._done.append("\n\n" if not self._kept else "")
            self._kept += 1
        elif tag.name in _BEFORE:
            self._done.append(_BEFORE[tag.name])

    def close(self, name: str) -> None:
        """Take in a closing tag."""
        if name == "a":
            self._end_link()
        elif name == "pre" and self._kept:
            self._kept -= 1
            self._done.append("\n\n")
        elif name in _AFTER:
            self._done.append(_AFTER[name])

    def text(self) -> str:
        """All of it, without blanks at line ends and with single empty lines."""
        lines = (line.rstrip() for line in "".join(self._done).split("\n"))
        return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip("\n")

    def _end_link(self) -> None:
        if self._link is None:
            return
        target, start = self._link
        self._link = None
        words = " ".join("".join(self._done[start:]).split())
        if words:
            self._done[start:] = [f"[{words}]({target})"]


_BLANKS = re.compile(r"\s+")


def _leads_on(href: str) -> bool:
    return (
        bool(href)
        and not href.startswith("#")
        and not href.lower().lstrip().startswith(("javascript:", "data:"))
    )


def _absolute(base: str, href: str) -> str:
    try:
        return urljoin(base, href.strip())
    except ValueError:
        return href
