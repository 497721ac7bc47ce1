"""How a text that is too long is cut to its head and tail, without losing the way back to the whole."""

import hashlib
from collections.abc import Callable, Sequence

import msgspec
from msgspec.structs import replace

from jackstay.core.messages import JsonObject, Message, Part, Text, ToolCall, ToolResult
from jackstay.engine.compaction.tokens import json_tokens, message_tokens, text_tokens
from jackstay.engine.ports import Artifact

SUMMARY = "summary"  # the note that marks a summary message
LEAST = 64  # tokens that a clipped text keeps at least, its marker included


class Clipped(msgspec.Struct, frozen=True, gc=False):
    """A message after clipping, and the whole texts that must be kept for `recall`."""

    message: Message
    originals: tuple[Artifact, ...]


def clip_text(text: str, tokens: int, marker: Callable[[int, int], str]) -> str:
    """Head and tail of the text in about `tokens` tokens; `marker(left_out, offset)` is said between them.

    A text that fits comes back as it is. When even the marker does not fit, the marker alone stands.
    """
    whole = text_tokens(text)
    if whole <= tokens:
        return text
    room = tokens - text_tokens(marker(len(text), len(text))) - 2
    chars = int(len(text) * max(0, room) / whole)
    while chars > 0:
        head, tail = text[: (chars + 1) // 2], text[len(text) - chars // 2 :]
        made = f"{head}{marker(len(text) - len(head) - len(tail), len(head))}{tail}"
        if text_tokens(made) <= tokens:
            return made
        chars = min(int(chars * 0.9), chars - 1)
    return marker(len(text), 0).strip("\n")


def recall_marker(call_id: str) -> Callable[[int, int], str]:
    """The marker that names the tool call by which the model reads what was left out."""
    return lambda left_out, offset: (
        f"\n[{left_out} characters left out; recall({call_id!r}, {offset}) reads them]\n"
    )


def plain_marker(left_out: int, offset: int) -> str:
    """The marker where nobody needs to read on."""
    return f"\n[{left_out} characters left out]\n"


def text_id(text: str) -> str:
    """The name under which a clipped text that is no observation is kept."""
    return "text-" + hashlib.blake2b(text.encode("utf-8", "replace"), digest_size=8).hexdigest()


def is_clippable(message: Message) -> bool:
    """Could clipping make it smaller? Not what is pinned; and a summary has bounds of its own."""
    if message.pinned or message.note == SUMMARY:
        return False
    words = calls = False
    for part in message.parts:
        if type(part) is ToolResult:
            return True
        if type(part) is ToolCall:
            calls = True
        elif type(part) is Text:
            words = True
    return words and not calls


def clip_message(message: Message, tokens: int, *, arguments: bool = False) -> Clipped | None:
    """The message in about `tokens` tokens, or None when nothing of it could be cut.

    Observations and plain words are cut; what a model said along with calls, its thoughts and pictures stay
    whole, since providers take them back only unchanged. With `arguments` also long strings in the
    arguments of calls are cut.
    """
    if message_tokens(message) <= tokens:
        return None
    lengths = [_part_tokens(part) if _is_cuttable(message, part, arguments) else 0 for part in message.parts]
    fixed = message_tokens(message) - sum(lengths)
    limit = water_level(lengths, max(0, tokens - fixed))
    parts: list[Part] = []
    originals: list[Artifact] = []
    for part, length in zip(message.parts, lengths, strict=True):
        if length > max(limit, LEAST):
            part, kept = _clip_part(part, max(limit, LEAST))
            originals.extend(kept)
        parts.append(part)
    made = replace(message, parts=tuple(parts))
    return None if made == message else Clipped(made, tuple(originals))


def water_level(amounts: Sequence[int], total: int) -> int:
    """The largest level such that the amounts, each cut to it, sum up to at most `total`."""
    left = total
    for rank, amount in enumerate(ordered := sorted(amounts)):
        share = left // (len(ordered) - rank)
        if amount > share:
            return share
        left -= amount
    return max(amounts, default=0)


def _is_cuttable(message: Message, part: Part, arguments: bool) -> bool:
    match part:
        case ToolResult():
            return True
        case Text():
            return not message.calls
        case ToolCall():
            return arguments
        case _:
            return False


def _part_tokens(part: Part) -> int:
    match part:
        case ToolResult() | Text():
            return text_tokens(part.text)
        case ToolCall():
            return text_tokens(part.raw) if part.raw is not None else json_tokens(part.args)
        case _:
            return 0


def _clip_part(part: Part, tokens: int) -> tuple[Part, list[Artifact]]:
    match part:
        case ToolResult():
            text = clip_text(part.text, tokens, recall_marker(part.call_id))
            kept = [] if part.truncated else [Artifact(part.call_id, part.text)]
            cut = max(1, len(part.text) - len(text))
            return replace(part, text=text, truncated=part.truncated + cut), kept
        case Text():
            return _clip_words(part, tokens)
        case ToolCall():
            return _clip_arguments(part, tokens)
        case _:
            return part, []


def _clip_words(part: Text, tokens: int) -> tuple[Text, list[Artifact]]:
    name = text_id(part.text)
    return Text(clip_text(part.text, tokens, recall_marker(name))), [Artifact(name, part.text)]


def _clip_arguments(call: ToolCall, tokens: int) -> tuple[ToolCall, list[Artifact]]:
    kept: list[Artifact] = []
    strings = [value for value in call.args.values() if isinstance(value, str)]
    if call.raw is not None:
        strings.append(call.raw)
    limit = max(LEAST, water_level([text_tokens(text) for text in strings], tokens))

    def cut(text: str) -> str:
        if text_tokens(text) <= limit:
            return text
        kept.append(Artifact(text_id(text), text))
        return clip_text(text, limit, recall_marker(text_id(text)))

    args: JsonObject = {
        name: cut(value) if isinstance(value, str) else value for name, value in call.args.items()
    }
    return replace(call, args=args, raw=None if call.raw is None else cut(call.raw)), kept
