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
    (b"l", 0.069), (b"d", 0.186), (b"p", 0.575), (b"ld", 1.359), (b"lu", 0.847), (b"sl", 0.796),
    (b"su", 1.268), (b"pl", 0.877), (b"pu", 0.821), (b"nl", 0.726), (b"pp", -0.438), (b"ss", 0.038),
    (b"sd", 2.642), (b"pd", 1.591), (b"sp", 0.792),
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

# Tokens for each character of other scripts.
_SCRIPTS: tuple[tuple[re.Pattern[str], float], ...] = (
    (re.compile("[\u3400-\u9fff\uf900-\ufaff]+"), 0.78),  # Han
    (re.compile("[\u3040-\u30ff\u31f0-\u31ff\uff66-\uff9f]+"), 0.74),  # Kana
    (re.compile("[\uac00-\ud7a3\u1100-\u11ff\u3130-\u318f]+"), 0.70),  # Hangul
    (re.compile("[\u3000-\u303f\uff00-\uff65\u2010-\u203f]+"), 0.80),  # their punctuation
    (re.compile("[\u00a0-\u024f\u0370-\u052f]+"), 0.45),  # accented Latin, Greek, Cyrillic
    (re.compile("[\u0530-\u1fff]+"), 0.55),  # Hebrew, Arabic, Indic, Thai
    (re.compile("[\U00010000-\U0010ffff]+"), 2.0),  # emoji
)
_OTHER = 1.0

_RUN = re.compile(r"[A-Za-z0-9+]{24,}")
_OPAQUE_RATE = 0.73  # base64 and the like: no words, few merges
_HEX_RATE = 0.56

_SHORT = 32  # characters up to which a count is remembered

_IMAGE_MAX = 1_600
_IMAGE_BASE = 85


def text_tokens(text: str) -> int:
    """How many tokens a text makes, within about a tenth for prose, code, JSON and East Asian text."""
    return _short_tokens(text) if len(text) <= _SHORT else _text_tokens(text)


@lru_cache(4096)
def _short_tokens(text: str) -> int:
    """The same few words come again and again: names of tools, short answers."""
    return _text_tokens(text)


def _text_tokens(text: str) -> int:
    if not text:
        return 0
    plain, count = _without_opaque(text)
    if not plain.isascii():
        count += _script_tokens(plain)
    classes = b"n%bn" % plain.encode("ascii", "ignore").translate(_CLASSES)
    tally = classes.count
    count += sum([rate * tally(pattern) for pattern, rate in _ASCII_RATES])
    return max(1, round(count))


def _script_tokens(text: str) -> float:
    count, seen = 0.0, 0
    for script, rate in _SCRIPTS:
        found = sum(map(len, script.findall(text)))
        count, seen = count + rate * found, seen + found
    return count + _OTHER * (len(text) - len(text.encode("ascii", "ignore")) - seen)


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
        match part:
            case Text():
                count += text_tokens(part.text)
            case Thinking():
                count += text_tokens(part.text)
            case ToolCall():
                arguments = text_tokens(part.raw) if part.raw is not None else json_tokens(part.args)
                count += PER_CALL + text_tokens(part.tool) + arguments
            case ToolResult():
                count += PER_CALL + text_tokens(part.text)
            case Image():
                count += min(_IMAGE_MAX, _IMAGE_BASE + len(part.data) // 64)
            case UnknownPart():
                count += json_tokens(part.raw)
    return count


def overhead_tokens(system: str, tools: int, notes: Sequence[Message] = ()) -> int:
    """What a request holds besides its transcript: system prompt, tool declarations (their tokens), notes."""
    return PER_MESSAGE + _remembered(system) + tools + sum(map(message_tokens, notes))


@lru_cache(16)
def _remembered(text: str) -> int:
    return text_tokens(text)


def tools_tokens(tools: tuple[ToolSpec, ...]) -> int:
    """How many tokens the declarations of the tools make."""
    return sum(
        PER_TOOL + text_tokens(tool.name) + text_tokens(tool.description) + json_tokens(tool.parameters)
        for tool in tools
    )
