"""How does a text look once nothing in it can deceive the eye?

Every text that a person approves goes through `visible`: tool names, arguments, paths, reasons, servers. What
would vanish, reorder, overwrite or imitate is written out by its number.
"""

import unicodedata
from typing import Any

_HIDDEN = frozenset({"Cc", "Cf", "Cn", "Co", "Cs", "Zl", "Zp"})
_BLANK_LETTERS = frozenset("\u115f\u1160\u3164\uffa0\u2800\u17b4\u17b5\u034f")  # letters and marks without ink
_NAMES = {"\n": "\\n", "\t": "\\t", "\r": "\\r", "\x1b": "\\e"}
_PADDING = 8  # this many blanks in a row can push a text out of sight
_MANY_MARKS = 2  # combining marks on one letter that languages need; more of them hide it

# Letters of other scripts that look like Latin ones in common fonts. From knowledge of the scripts, kept to
# those that imitate the letters of program names, paths and hosts.
_LOOKALIKES = {
    "а": "a", "е": "e", "о": "o", "р": "p", "с": "c", "у": "y", "х": "x", "і": "i", "ј": "j", "ѕ": "s",
    "ԁ": "d", "һ": "h", "ԛ": "q", "ԝ": "w", "к": "k", "м": "m", "т": "t", "в": "b", "н": "h", "г": "r",
    "А": "A", "В": "B", "Е": "E", "К": "K", "М": "M", "Н": "H", "О": "O", "Р": "P", "С": "C", "Т": "T",
    "Х": "X", "У": "Y", "І": "I", "Ј": "J", "Ѕ": "S",
    "α": "a", "ο": "o", "ρ": "p", "ν": "v", "ι": "i", "κ": "k", "υ": "u", "χ": "x", "γ": "y",
    "Α": "A", "Β": "B", "Ε": "E", "Ζ": "Z", "Η": "H", "Ι": "I", "Κ": "K", "Μ": "M", "Ν": "N", "Ο": "O",
    "Ρ": "P", "Τ": "T", "Υ": "Y", "Χ": "X",
    "ɑ": "a", "ɡ": "g", "ı": "i", "ӏ": "l", "ǀ": "l", "ո": "n", "օ": "o", "ս": "u",
    "‐": "-", "‑": "-", "−": "-", "∕": "/", "⁄": "/", "․": ".", "∗": "*", "‚": ",",
}  # fmt: skip
_DASHES = frozenset("‒–—")  # punctuation within a text, a false option sign at the beginning of a word


def visible(text: str, *, lines: bool = False) -> str:
    """The text with everything that could deceive written out: `\\u202e`, `\\e`, `⟨8 blanks⟩`, `а⟨like a⟩`.

    Plain text, accents and other scripts stay as they are; a look-alike is marked only in a word that also
    has ASCII letters. With `lines` newlines and tabs stay too. What comes out has no control character, and
    stays as it is when it passes through once more.
    """
    if text.isascii() and text.isprintable() and " " * _PADDING not in text:
        return text
    return "".join(_words(text, lines=lines))


def visible_args(value: Any) -> Any:
    """JSON data with every string, keys too, made visible."""
    match value:
        case str():
            return visible(value)
        case dict():
            return {visible(str(key)): visible_args(item) for key, item in value.items()}
        case list() | tuple():
            return [visible_args(item) for item in value]
        case _:
            return value


def deceptive(text: str) -> str | None:
    """What in the text could deceive a reader, named by its number; None when nothing does."""
    shown = visible(text, lines=True)
    if shown == text:
        return None
    for char in text:
        if char not in "\n\t" and _is_hidden(char):
            return f"an invisible or control character ({_number(char)})"
    return "padding or look-alike characters"


def _words(text: str, *, lines: bool) -> list[str]:
    """The text piece by piece: blanks in runs, words whole."""
    pieces: list[str] = []
    start = 0
    while start < len(text):
        end = start + 1
        blank = _is_blank(text[start])
        while end < len(text) and _is_blank(text[end]) == blank:
            end += 1
        piece = text[start:end]
        indents = lines and (start == 0 or text[start - 1] == "\n")
        pieces.append(_blanks(piece, indents=indents) if blank else _word(piece, lines=lines))
        start = end
    return pieces


def _is_blank(char: str) -> bool:
    return char == " " or unicodedata.category(char) == "Zs"


def _blanks(run: str, *, indents: bool) -> str:
    if len(run) >= _PADDING and not indents:
        return f" ⟨{len(run)} blanks⟩ "
    return "".join(char if char == " " else _number(char) for char in run)


def _word(word: str, *, lines: bool) -> str:
    imitates = any(_is_latin(char) for char in word)
    shown: list[str] = []
    marks = 0
    for place, char in enumerate(word):
        marks = marks + 1 if unicodedata.combining(char) else 0
        if lines and char in "\n\t":
            shown.append(char)
        elif _is_hidden(char) or marks > _MANY_MARKS:
            shown.append(_NAMES.get(char, _number(char)))
        elif word.startswith("⟨like", place + 1):
            shown.append(char)  # said already
        else:
            plain = _imitated(char, first=place == 0) if imitates or _is_wide_ascii(char) else None
            shown.append(f"{char}⟨like {plain}⟩" if plain else char)
    return "".join(shown)


def _is_latin(char: str) -> bool:
    """Is it, or will it be written out with, an ASCII letter?"""
    return (char.isascii() and char.isalpha()) or _is_hidden(char) or _is_wide_ascii(char)


def _imitated(char: str, *, first: bool) -> str | None:
    """The ASCII character that this one looks like, if it does."""
    if char in _DASHES:
        return "-" if first else None
    return unicodedata.normalize("NFKC", char) if _is_wide_ascii(char) else _LOOKALIKES.get(char)


def _is_hidden(char: str) -> bool:
    return (
        unicodedata.category(char) in _HIDDEN
        or char in _BLANK_LETTERS
        or "\ufe00" <= char <= "\ufe0f"
        or "\U000e0100" <= char <= "\U000e01ef"
    )


def _is_wide_ascii(char: str) -> bool:
    """Letters and digits in the styles of mathematics and full width: the same word to a reader."""
    if char.isascii() or not (char.isalpha() or char.isdigit()):
        return False
    plain = unicodedata.normalize("NFKC", char)
    return len(plain) == 1 and plain.isascii()


def _number(char: str) -> str:
    code = ord(char)
    if code <= 0xFF:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"
