"""Which [HARNESS: …] markers does an assistant's text declare, as opposed to mention?

Declared: alone on a line, or opening or closing the message. Mentioned: in code, in quotes, in running text.
Reading takes time linear in the text: it is a model's output and may be anything.
"""

import itertools
import re
from enum import StrEnum

from jackstay.policy.late import late


class Marker(StrEnum):
    """What an agent can declare about its work."""

    TASK_STARTED = "task_started"
    PLAN = "plan"
    CASUAL = "casual"
    DONE = "done"


_MARKER = late(
    r"\[[ \t]{0,8}harness[ \t]{0,8}:[ \t]{0,8}(task_started|plan|casual|done)[ \t]{0,8}\]", re.IGNORECASE
)
_FENCE = late(r" {0,3}(`{3,}|~{3,})")
_INDENTED_CODE = late(r"(?: {4}|\t)(?!\s*(?:[-+•*]|\d{1,3}[.)])\s)")
_BULLET = late(r"\s*(?:[-+•*]|\d{1,3}[.)]|#{1,6})\s+")
_EMPHASIS = "*_~ \t"
_FULL_STOPS = ".!。！"
_SENTENCE_END = late(r"[.!?;:]\s|[。！？；：]")
# A sentence that ends in a marker and speaks about it rather than declaring it.
_MENTION = late(
    r"\b(?:not|never|no|without|until|before|unless|if|when|cannot|can't|don't|won't|didn't|write|writing|say|"
    r"saying|use|using|send|type|with|reply|answer|called|marker|markers)\b|n't\b|"
    r"[不没勿别未无]|才能|之前|如果|标记|输入|回复|发送|写上|写出|使用",
    re.IGNORECASE,
)
_QUOTE = late(r"`+|[\"“「『«]|(?<!\w)'")
_CLOSE = {'"': '"', "“": "”", "「": "」", "『": "』", "«": "»", "'": "'"}
_ACROSS_LINES = "“「『«"


def markers(text: str) -> tuple[Marker, ...]:
    """The markers that the text declares, in order; empty for text that only mentions them."""
    if _MARKER.search(text) is None:
        return ()
    lines = [line for line in _prose(text).split("\n") if line.strip()]
    found: list[Marker] = []
    for number, line in enumerate(lines):
        if "[" in line:
            found += _declared(line, opens=number == 0, closes=number == len(lines) - 1)
    return tuple(found)


def _declared(line: str, *, opens: bool, closes: bool) -> list[Marker]:
    """The markers a line declares: all when it holds nothing else,
    else those at an end that is the message's.
    """
    ones = list(_MARKER.finditer(line))
    names = [Marker(one[1].lower()) for one in ones]
    gaps = [line[before.end() : after.start()] for before, after in itertools.pairwise(ones)]
    joined = [not gap.strip(_EMPHASIS) for gap in gaps]
    if not ones:
        return []
    at_start = not _BULLET.sub("", line[: ones[0].start()], count=1).strip(_EMPHASIS)
    at_end = not line[ones[-1].end() :].strip(_EMPHASIS + _FULL_STOPS)
    if at_start and at_end and all(joined):
        return names
    head = _run(joined) if opens and at_start else 0
    tail = _run(joined[::-1]) if closes and at_end else 0
    if tail and _MENTION.search(_last_sentence(line[: ones[-tail].start()])):
        tail = 0
    return names[:head] + names[max(head, len(names) - tail) :] if tail else names[:head]


def _run(joined: list[bool]) -> int:
    """How many markers in a row stand together, counted from the first."""
    return (joined.index(False) if False in joined else len(joined)) + 1


def _last_sentence(text: str) -> str:
    ends = [end.end() for end in _SENTENCE_END.finditer(text)]
    return text[ends[-1] if ends else 0 :]


def _prose(text: str) -> str:
    """The text with everything that is code or quotation blanked out."""
    lines: list[str] = []
    fence = ""
    for line in text.replace("\r\n", "\n").replace("\r", "\n").split("\n"):
        opened = _FENCE.match(line)
        if fence:
            if opened and opened[1].startswith(fence) and not line.strip(" `~"):
                fence = ""
            line = _blank(line)
        elif opened:
            fence = opened[1]
            line = _blank(line)
        elif line.lstrip().startswith((">", "|")) or _INDENTED_CODE.match(line):
            line = _blank(line)
        lines.append(line)
    return _unquoted("\n".join(lines))


def _unquoted(text: str) -> str:
    pieces: list[str] = []
    done = at = 0
    hopeless: dict[str, int] = {}  # a quotation mark and up to where it is known to have no partner
    while opened := _QUOTE.search(text, at):
        mark = opened[0]
        limit = len(text) if mark in _ACROSS_LINES else _line_end(text, opened.end())
        end = -1 if hopeless.get(mark, -1) >= limit else text.find(_CLOSE.get(mark, mark), opened.end(), limit)
        if end < 0:
            hopeless[mark] = limit
            at = opened.end()
            continue
        at = end + len(mark)
        pieces += [text[done : opened.start()], _blank(text[opened.start() : at])]
        done = at
    return "".join([*pieces, text[done:]])


def _line_end(text: str, start: int) -> int:
    end = text.find("\n", start)
    return len(text) if end < 0 else end


def _blank(text: str) -> str:
    # Not spaces: a blanked quotation must not let the marker beside it open or close the message.
    return "".join("\n" if char == "\n" else "\0" for char in text)
