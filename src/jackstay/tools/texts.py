"""Which text do these bytes hold, in which encoding, or are they none?

Standard library only: the search worker uses it too.
"""

import codecs
import re
from typing import NamedTuple

_BOMS: tuple[tuple[bytes, str], ...] = (  # the longer ones first: UTF-32's begins with UTF-16's
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_MAGIC: tuple[tuple[bytes, str], ...] = (
    (b"\x89PNG", "PNG image"), (b"\xff\xd8\xff", "JPEG image"), (b"GIF8", "GIF image"),
    (b"%PDF", "PDF document"),
    (b"PK\x03\x04", "ZIP archive or office document"), (b"\x1f\x8b", "gzip data"), (b"BZh", "bzip2 data"),
    (b"\xfd7zXZ", "xz data"), (b"\x28\xb5\x2f\xfd", "zstd data"), (b"\x7fELF", "ELF program or library"),
    (b"MZ", "Windows program"), (b"SQLite format 3\0", "SQLite database"), (b"\xca\xfe\xba\xbe", "Java class"),
)  # fmt: skip

_SAMPLE = 8192
_CONTROL = bytes(set(range(32)) - set(b"\t\n\r\f\x1b\b")) + b"\x7f"
_HIGH_RUN = re.compile(rb"[\x80-\xff]+")


class Decoded(NamedTuple):
    """A file's text with what is needed to write it back: encoding and byte order mark."""

    text: str
    encoding: str
    bom: bytes = b""

    @property
    def label(self) -> str:
        """The encoding as people read it; a guess is called one."""
        guess = " (guessed)" if self.encoding in ("gb18030", "latin-1") else ""
        return self.encoding + (" with BOM" if self.bom else "") + guess

    def encode(self, text: str) -> bytes:
        """Other text in the same encoding; raises UnicodeEncodeError where it cannot hold a character."""
        return self.bom + text.encode(self.encoding)


def decode(data: bytes) -> Decoded | None:
    """The text of a file; None when it is binary.

    A byte order mark decides; else UTF-8 if it is valid; else the guess is GB18030 where high bytes come in
    pairs (as they do in Chinese text), and Latin-1, which can hold anything, where they do not.
    """
    for bom, encoding in _BOMS:
        if data.startswith(bom):
            return _strictly(data[len(bom) :], encoding, bom)
    if is_binary(data):
        return None
    found = _strictly(data, "utf-8")
    if found is None and _comes_in_pairs(data):
        found = _strictly(data, "gb18030")
    return found or Decoded(data.decode("latin-1"), "latin-1")


def is_binary(data: bytes) -> bool:
    """Does the beginning hold a NUL, or more than a tenth control characters?"""
    sample = data[:_SAMPLE]
    return b"\0" in sample or len(sample) - len(sample.translate(None, _CONTROL)) > len(sample) // 10


def describe_binary(data: bytes, size: int | None = None) -> str:
    """What kind of binary it seems to be, and how large."""
    kind = next((name for magic, name in _MAGIC if data.startswith(magic)), "binary data")
    return f"{kind}, {show_size(len(data) if size is None else size)}"


def show_size(size: int) -> str:
    """A number of bytes for people."""
    if size < 1000:
        return f"{size} byte{'s' * (size != 1)}"
    for unit in ("kB", "MB", "GB"):
        size_in_unit = size / {"kB": 1e3, "MB": 1e6, "GB": 1e9}[unit]
        if size_in_unit < 999.5 or unit == "GB":
            return f"{size_in_unit:.1f} {unit}"
    raise AssertionError(size)


def head_and_tail(text: str, limit: int) -> tuple[str, int]:
    """At most about `limit` characters of the text, its middle taken out with a note; and how many were cut."""
    if len(text) <= limit:
        return text, 0
    head, tail = limit * 2 // 3, limit - limit * 2 // 3
    cut = len(text) - head - tail
    note = f"\n[… {cut:,} characters left out here …]\n"
    return text[:head] + note + text[len(text) - tail :], cut


def _strictly(data: bytes, encoding: str, bom: bytes = b"") -> Decoded | None:
    try:
        return Decoded(data.decode(encoding), encoding, bom)
    except UnicodeDecodeError:
        return None


def _comes_in_pairs(data: bytes) -> bool:
    runs = [len(run) for run in _HIGH_RUN.findall(data[: 64 * _SAMPLE])]
    paired = sum(length for length in runs if length % 2 == 0)
    return paired >= 0.8 * sum(runs)
