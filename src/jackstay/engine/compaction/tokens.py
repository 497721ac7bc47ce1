"""How many tokens is this? An estimate by kind of writing, corrected by what the provider counted last."""

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from jackstay.core import wire
from jackstay.core.context import UNCALIBRATED as UNCALIBRATED
from jackstay.core.context import Calibration as Calibration
from jackstay.core.messages import Image, Message, Text, Thinking, ToolCall, ToolResult, UnknownPart
from jackstay.core.tools import ToolSpec

PER_MESSAGE = 4  # role and delimiters
PER_CALL = 10  # the frame around a call or its result
PER_TOOL = 12  # the frame around a tool's declaration

# ASCII is counted by what one character class follows on another: words, signs and numbers begin tokens,
# what follows inside them costs little. Least squares over code, prose, JSON and logs against o200k.
# l lower-case, u upper-case, d digit, p sign, s space, n line end.
_ASCII_RATES: tuple[tuple[bytes, float], ...] = (
    (b"l", 0.069), (b"u", 0.182), (b"d", 0.186), (b"p", 0.575), (b"ld", 1.359), (b"ul", 0.500),
    (b"sl", 0.796), (b"su", 1.087), (b"pl", 0.877), (b"pu", 0.137), (b"nl", 0.726), (b"pp", -0.438),
    (b"ss", 0.038), (b"sd", 2.642), (b"pd", 1.591), (b"sp", 0.792),
)  # fmt: skip
_LETTERS = b"abcdefghijklmnopqrstuvwxyz"
_CLASSES = bytes.maketrans(
    bytes(range(128)),
    bytes(
        b"l"[0] if code in _LETTERS
        else b"u"[0] if code in _LETTERS.upper()
        else b"d"[0] if code in b"0123456789"
        else b"s"[0] if code == 32
        else b"n"[0] if code in b"\r\n"
        else b"p"[0]
        for code in range(128)
    ),
)  # fmt: skip

# Other scripts: tokens for each character, and for each stretch of them, since none reaches over its ends.
_SCRIPTS: tuple[tuple[re.Pattern[str], float, float], ...] = (
    (re.compile("[\u3040-\u309f]+"), 0.506, 0.0),  # Hiragana
    (re.compile("[\u30a0-\u30ff\u31f0-\u31ff\uff66-\uff9f]+"), 0.513, 1.400),  # Katakana
    (re.compile("[\uac00-\ud7a3\u1100-\u11ff\u3130-\u318f]+"), 0.380, 1.041),  # Hangul
    (re.compile("[\u3000-\u303f\uff00-\uff65\u2010-\u203f]+"), 0.526, 0.0),  # East Asian punctuation
    (re.compile("[\u00a0-\u024f]+"), 0.0, 1.200),  # accented Latin: each breaks a word in pieces
    (re.compile("[\u0370-\u03ff]+"), 0.450, 0.0),  # Greek
    (re.compile("[\u0400-\u052f]+"), 0.150, 1.346),  # Cyrillic
    (re.compile("[\u0530-\u1fff]+"), 0.550, 0.0),  # Hebrew, Arabic, Indic, Thai
    (re.compile("[\U00010000-\U0010ffff]+"), 2.0, 0.0),  # emoji
)
_OTHER = 1.0

# Han by how common a character is. Its lead byte in GB 2312 tells: below 0xD8 the 3 755 common ones of
# simplified writing, from there on the rare ones; what it lacks is mostly traditional, with few merges.
_HAN = re.compile("[\u3400-\u9fff\uf900-\ufaff]+")
_COMMON, _RARE, _TRADITIONAL, _STRETCH = 0.764, 2.100, 1.350, 0.553
_LEVELS = bytes(b"c"[0] if code < 0xD8 else b"r"[0] for code in range(256))

# A line drawn with one sign is a token or two, however long.
_RULER = re.compile(r"([-=_*#~.+])\1{7,}")
_RULERS = tuple(sign * 8 for sign in "-=_*#~.+")
_LIKE_A_RULER = b"p" * 8

_LEAST_RUN = 24  # a shorter text has nothing opaque in it
_RUN = re.compile(r"[A-Za-z0-9+]{24,}")
_OPAQUE_RATE = 0.73  # base64 and the like: no words, few merges
_HEX_RATE = 0.56

_IMAGE_MAX = 1_600
_IMAGE_BASE = 85


def text_tokens(text: str) -> int:
    """How many tokens a text makes, within about a tenth for prose, code, JSON and East Asian text."""
    if len(text) < _LEAST_RUN and text.isascii():
        count = _class_tokens(text.encode().translate(_CLASSES))
        if count is not None:
            return count
    return _text_tokens(text)


@lru_cache(4096)
def _class_tokens(classes: bytes) -> int | None:
    """Of short texts the same few shapes come again and again: numbers, small arguments.

    None where the classes alone do not tell: it may be a ruler.
    """
    if _LIKE_A_RULER in classes:
        return None
    return max(1, round(_tally(classes))) if classes else 0


def _tally(classes: bytes) -> float:
    count = (b"n%bn" % classes).count
    return sum([rate * count(pattern) for pattern, rate in _ASCII_RATES])


def _text_tokens(text: str) -> int:
    if not text:
        return 0
    if any(map(text.__contains__, _RULERS)):
        text = _RULER.sub(r"\1", text)
    plain, count = _without_opaque(text)
    if not plain.isascii():
        count += _script_tokens(plain)
    count += _tally(plain.encode("ascii", "ignore").translate(_CLASSES))
    return max(1, round(count))


def _script_tokens(text: str) -> float:
    stretches = _HAN.findall(text)
    han = "".join(stretches)
    count, seen = _han_tokens(han) + _STRETCH * len(stretches), len(han)
    for script, each, stretch in _SCRIPTS:
        found = script.findall(text)
        if found:
            size = sum(map(len, found))
            count, seen = count + each * size + stretch * len(found), seen + size
    return count + _OTHER * (len(text) - len(text.encode("ascii", "ignore")) - seen)


def _han_tokens(text: str) -> float:
    levels = text.encode("gb2312", "ignore")[::2].translate(_LEVELS)
    rare = levels.count(b"r")
    return _COMMON * (len(levels) - rare) + _RARE * rare + _TRADITIONAL * (len(text) - len(levels))


def _without_opaque(text: str) -> tuple[str, float]:
    """The text without what has no words in it (base64, hashes, keys), and the tokens of that."""
    count = 0.0
    kept: list[str] = []
    start = 0
    for found in _RUN.finditer(text):
        rate = _opaque_rate(found[0])
        if rate:
            count += rate * len(found[0])
            kept.append(text[start : found.start()])
            start = found.end()
    return ("".join([*kept, text[start:]]) if start else text), count


def _opaque_rate(run: str) -> float:
    sample = run[:200]
    digits = sum(map(str.isdigit, sample))
    if not set(sample) - set("0123456789abcdef") or not set(sample) - set("0123456789ABCDEF"):
        return _HEX_RATE if digits * 3 > len(sample) and digits < len(sample) else 0.0
    mixed = sample.upper() != sample and sample.lower() != sample
    if (mixed and digits >= 2) or (len(run) >= 64 and len(set(sample)) >= 12):
        return _OPAQUE_RATE
    return 0.0


def json_tokens(value: Any) -> int:
    """How many tokens plain data makes as JSON."""
    return text_tokens(wire.encode(value).decode())


def message_tokens(message: Message) -> int:
    """How many tokens a message makes, with what frames it; what is drawn counts by its size, up to a cap."""
    count = PER_MESSAGE
    for part in message.parts:
        if type(part) is ToolResult:
            count += PER_CALL + text_tokens(part.text)
        elif type(part) is ToolCall:
            arguments = part.raw if part.raw is not None else wire.encode(part.args).decode()
            count += PER_CALL + _remembered(part.tool) + text_tokens(arguments)
        elif type(part) is Text or type(part) is Thinking:
            count += text_tokens(part.text)
        elif type(part) is Image:
            count += min(_IMAGE_MAX, _IMAGE_BASE + len(part.data) // 64)
        elif type(part) is UnknownPart:
            count += json_tokens(part.raw)
    return count


def overhead_tokens(system: str, tools: int, notes: Sequence[Message] = ()) -> int:
    """What a request holds besides its transcript: system prompt, tool declarations (their tokens), notes."""
    return PER_MESSAGE + _remembered(system) + tools + sum(map(message_tokens, notes))


@lru_cache(64)
def _remembered(text: str) -> int:
    """Of system prompts, and of the names of tools: they come with every turn."""
    return text_tokens(text)


def tools_tokens(tools: tuple[ToolSpec, ...]) -> int:
    """How many tokens the declarations of the tools make."""
    return sum(
        PER_TOOL + text_tokens(tool.name) + text_tokens(tool.description) + json_tokens(tool.parameters)
        for tool in tools
    )
