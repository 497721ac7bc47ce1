"""Is the agent going round in circles? What it asked for is weighed together with what came of it."""

import re
from collections import Counter
from collections.abc import Sequence
from hashlib import blake2b

import msgspec
from msgspec.structs import replace

from jackstay.core import wire
from jackstay.core.loops import LoopWindow as LoopWindow
from jackstay.core.messages import JsonObject

MAX_PERIOD = 8
_SHOWN = 100  # characters of a call's arguments that a message repeats
_MARK = 8  # hex digits of a fingerprint: of the two dozen that are compared
_LOOKED_AT = 6_000  # characters at each end of a result that are read; between them every one counts

RUNGS: tuple[str, ...] = ("remind", "replan", "ask", "stop")

POLLING: frozenset[str] = frozenset({"wait", "sleep", "status", "poll"})
EDITING: frozenset[str] = frozenset({"write", "edit", "patch", "apply_patch"})
_WAITS = re.compile(r"\b(?:sleep|timeout|watch) +[-\d]")
_PROGRESS = "+"  # before the mark of an edit that is new: what comes after it is another attempt

# What differs from one run to the next without meaning anything, within one word ...
_NORMAL: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"\d{4}-\d\d-\d\d(?:T\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?)?(?:Z|[+-]\d\d:?\d\d)?"), "<time>"),
    (re.compile(r"\b\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?(?:Z|[+-]\d\d:?\d\d)?\b"), "<time>"),
    (re.compile(r"\b1[5-9]\d{8}(?:\d{3}|\.\d+)?\b"), "<time>"),
    (re.compile(r"\b\d+(?:\.\d+)?(?:ns|us|µs|ms|s|secs?|min)\b"), "<took>"),
    (re.compile(r"\b0x[0-9a-fA-F]{4,}\b"), "<address>"),
    (re.compile(r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b"), "<uuid>"),
    (re.compile(r"/tmp/[\w.-]+"), "/tmp/<name>"),
)  # fmt: skip
_MAY_DIFFER = re.compile(r"\d|/tmp/|-[0-9a-f]{4}-")  # something of this is in each of them, and in few words
# ... and across two: a duration with its unit, a process with its number.
_UNIT = r" (?:ns|us|µs|ms|s|secs?|seconds?|min|minutes?)\b"
_UNITS = re.compile(_UNIT)
_TOOK = re.compile(r"\b\d+(?:\.\d+)?" + _UNIT)
_PROCESS = re.compile(r"\b(pid|PID|process|thread|tid)([ =:#]*)\d+")
_PROCESS_WORDS = ("pid", "PID", "process", "thread", "tid")
_NUMBERS = re.compile(r"\d+")
_QUOTED = re.compile(r"'[^'\n]{1,200}'|\"[^\"\n]{1,200}\"|`[^`\n]{1,200}`|(?:/|\./)[\w./-]+")


class LoopParams(msgspec.Struct, frozen=True):
    """When repetition counts as a loop.

    The same call with the same result `max_repeat` times among the last `window` calls. `rungs` are the steps
    of the ladder that are switched on, in their order. `polling` names tools that wait for something: their
    results count as changed also where only a time or a duration differs. After a new edit, by one of the
    `editing` tools or any call that writes a file by name, trying the same again is no repetition until it has
    happened twice as often.
    """

    max_repeat: int = 3
    window: int = 8
    rungs: tuple[str, ...] = ("remind",)
    polling: frozenset[str] = POLLING
    editing: frozenset[str] = EDITING
    enabled: bool = True

    @property
    def kept(self) -> int:
        """How many calls the history holds: enough for cycles of the longest period."""
        cycles = MAX_PERIOD * self.max_repeat
        return cycles if cycles > self.window else self.window


class Done(msgspec.Struct, frozen=True, gc=False):
    """A call with what came of it; `edits`: it names a file that it writes."""

    tool: str
    args: JsonObject
    result: str
    is_error: bool = False
    edits: bool = False


class LoopFinding(msgspec.Struct, frozen=True, gc=False):
    """A loop: its kind, how often, what to tell the model, and which rung of the ladder it has reached.

    `kind` is `same_call`, `same_error`, `copies`, `cycle` or `same_text`; `calls` are those it saw.
    """

    kind: str
    count: int
    text: str
    rung: str
    calls: tuple[str, ...] = ()


def notice(
    window: LoopWindow, calls: Sequence[Done], params: LoopParams
) -> tuple[LoopWindow, LoopFinding | None]:
    """The window after a batch of calls, and the loop that shows in it.

    Call it once for each batch, after its observations. What was reported is forgotten, so that the next
    report needs as many repetitions again; after as many calls as are kept without a loop the ladder starts
    anew.
    """
    if not params.enabled or not calls:
        return window, None
    kept, trail = params.kept, window.trail
    marks, errors = [], []
    for call in calls:
        mark = call_mark(call, params)
        marks.append(mark)
        errors.append(error_mark(call) if call.is_error else "")
        edits = (call.edits or call.tool in params.editing) and not call.is_error
        step = _PROGRESS + mark if edits and mark not in trail else mark
        trail = f"{trail} {step}" if trail else step
    failed = _with_errors(window, errors) if window.errors or any(errors) else ()
    if len(trail) > kept * _MARK and (more := trail.count(" ") + 1 - kept) > 0:
        trail = trail.split(" ", more)[more]
    grown = LoopWindow(trail, failed[-kept:], found=window.found)
    seen = _seen(grown, calls, marks, errors, params)
    if seen is None:
        clean = grown.found and len(grown.marks) == kept
        return (replace(grown, found=0) if clean else grown), None
    kind, count, names = seen
    told = LoopWindow(found=window.found + 1)
    return told, _finding(kind, count, names, told.found, params)


def notice_text(window: LoopWindow, text: str, params: LoopParams) -> tuple[LoopWindow, LoopFinding | None]:
    """The window after a reply without calls, and the loop that shows when it keeps saying the same."""
    if not params.enabled or not text.strip():
        return window, None
    mark = _digest_of(_normal(text).strip().lower())
    grown = replace(window, words=(*window.words, mark)[-params.window :])
    count = grown.words.count(mark)
    if count < params.max_repeat:
        return grown, None
    told = LoopWindow(found=window.found + 1)
    return told, _finding("same_text", count, (), told.found, params)


def after_below(before: LoopWindow, ends: Sequence[LoopWindow], params: LoopParams) -> LoopWindow:
    """The window of an agent whose subagents have ended; each of them began with `before`.

    What one of them did goes on where its parent was. Side by side each does its part: what several of them did
    alike counts as often as the one that did it most.
    """
    if not params.enabled or not ends:
        return before
    found = max(end.found for end in ends)
    start = LoopWindow() if all(end.found > before.found for end in ends) else before
    rows = [*_rows(start)]
    counted: Counter[tuple[str, str]] = Counter()
    for end in ends:
        own: Counter[tuple[str, str]] = Counter()
        told = end.found > before.found  # what it was told of is forgotten, with all before it
        for row in _rows(end)[0 if told else _shared(before.marks, end.marks) :]:
            own[row] += 1
            if own[row] > counted[row]:
                rows.append(row)
        counted |= own
    rows = rows[-params.kept :]
    errors = tuple(error for _, error in rows)
    marks = tuple(mark for mark, _ in rows)
    return replace(before, trail=" ".join(marks), errors=errors if any(errors) else (), found=found)


def _rows(window: LoopWindow) -> list[tuple[str, str]]:
    """Each call's mark with that of its error."""
    return list(zip(window.marks, window.errors or ("",) * len(window.marks), strict=True))


def _shared(before: tuple[str, ...], after: tuple[str, ...]) -> int:
    """How many marks of a window stood in the one that it began with: the oldest ones have left it by now."""
    lengths = range(min(len(before), len(after)), 0, -1)
    return next((length for length in lengths if before[-length:] == after[:length]), 0)


# -- fingerprints ------------------------------------------------------------------------------------------


def call_mark(call: Done, params: LoopParams) -> str:
    """The fingerprint of a call and its result, blind to times, durations, process ids and addresses.

    Only where the call waits for something it sees those too: they tell how far that is.
    """
    result = call.result
    if len(result) > 2 * _LOOKED_AT:
        result = _ends(result)
    if not (_is_plain(result) or _waits(call, params)):
        result = _normal(result)
    return _digest(wire.canonical((call.tool, call.args, result, call.is_error)))


def error_mark(call: Done) -> str:
    """The fingerprint of an error, blind also to numbers and to what it quotes or names by path."""
    text = _normal(call.result if len(call.result) <= 2 * _LOOKED_AT else _ends(call.result))
    for value in call.args.values():
        if isinstance(value, str) and len(value) > 2:
            text = text.replace(value, "<argument>")
    return _digest_of(call.tool + "\n" + _NUMBERS.sub("#", _QUOTED.sub("<quoted>", text)))


def _ends(text: str) -> str:
    return f"{text[:_LOOKED_AT]} {_digest_of(text[_LOOKED_AT:-_LOOKED_AT])} {text[-_LOOKED_AT:]}"


def _normal(text: str) -> str:
    """The text with one space between words and without what says nothing; each distinct word is read once."""
    words = text.split()
    known = {word: word if _is_plain(word) else _normal_word(word) for word in set(words)}
    made = " ".join(map(known.__getitem__, words))
    if _UNITS.search(made):
        made = _TOOK.sub("<took>", made)
    if any(word in made for word in _PROCESS_WORDS):
        made = _PROCESS.sub(r"\1\2<id>", made)
    return made


def _is_plain(word: str) -> bool:
    """Is it letters alone, or a number too short for a time?"""
    return word.isalpha() or (len(word) < 10 and word.isdigit())


def _normal_word(word: str) -> str:
    if not _MAY_DIFFER.search(word):
        return word
    for pattern, stand_in in _NORMAL:
        word = pattern.sub(stand_in, word)
    return word


def _digest_of(text: str) -> str:
    return _digest(text.encode("utf-8", "replace"))


def _digest(data: bytes) -> str:
    return blake2b(data, digest_size=_MARK // 2).hexdigest()


def _waits(call: Done, params: LoopParams) -> bool:
    """Is this a look at something that takes its time?"""
    waits = call.tool in params.polling
    for value in call.args.values():
        waits = waits or (isinstance(value, str) and _WAITS.search(value) is not None)
    return waits


def _with_errors(window: LoopWindow, errors: Sequence[str]) -> tuple[str, ...]:
    """One entry for each mark."""
    return (*(window.errors or ("",) * len(window.marks)), *errors)


def _plain(mark: str) -> str:
    return mark.removeprefix(_PROGRESS)


# -- what counts as a loop ---------------------------------------------------------------------------------

_Seen = tuple[str, int, tuple[str, ...]]


def _seen(
    window: LoopWindow, calls: Sequence[Done], marks: Sequence[str], errors: Sequence[str], params: LoopParams
) -> _Seen | None:
    often = len(calls) >= params.max_repeat
    for mark in marks:
        often = often or window.trail.count(mark) >= params.max_repeat
    if not often and not window.errors:
        return None  # whatever a loop is, something in it has come often enough
    told = window.marks
    plain = tuple(map(_plain, told))
    return (
        _copies(calls, params)
        or _same_call(told, plain, calls, marks, params)
        or _same_error(window.errors, told, calls, errors, params)
        or _cycle(plain, calls, params)
    )


def _copies(calls: Sequence[Done], params: LoopParams) -> _Seen | None:
    """The same call asked for again and again within one turn, whatever came of each."""
    if len(calls) < params.max_repeat:
        return None
    asked = [wire.canonical((call.tool, call.args)) for call in calls]
    most, count = Counter(asked).most_common(1)[0]
    if count < params.max_repeat:
        return None
    return "copies", count, (_shown(calls[asked.index(most)]),)


def _same_call(
    told: tuple[str, ...],
    plain: tuple[str, ...],
    calls: Sequence[Done],
    marks: Sequence[str],
    params: LoopParams,
) -> _Seen | None:
    for call, mark in zip(calls, marks, strict=True):
        if count := _repeats(plain, mark, told, params):
            return "same_call", count, (_shown(call),)
    return None


def _same_error(
    failed: tuple[str, ...],
    told: tuple[str, ...],
    calls: Sequence[Done],
    errors: Sequence[str],
    params: LoopParams,
) -> _Seen | None:
    for call, error in zip(calls, errors, strict=True):
        if error and (count := _repeats(failed, error, told, params)):
            return "same_error", count, (_shown(call),)
    return None


def _repeats(history: tuple[str, ...], mark: str, marks: Sequence[str], params: LoopParams) -> int:
    """How often the mark stands where it counts, or 0 when that is not often enough.

    Since the last new edit, among the last calls of the window; or twice as often in all that is kept.
    """
    ever = history.count(mark)
    if ever < params.max_repeat:
        return 0
    since = next((n for n, one in enumerate(reversed(marks)) if one.startswith(_PROGRESS)), len(marks))
    if since < len(marks) and history[-since - 1] == mark:
        since += 1  # the edit itself, when it is what is repeated
    span = min(since, params.window)
    near = history[len(history) - span :].count(mark)
    if near >= params.max_repeat:
        return near
    return ever if ever >= 2 * params.max_repeat and near else 0


def _cycle(marks: tuple[str, ...], calls: Sequence[Done], params: LoopParams) -> _Seen | None:
    if marks.count(marks[-1]) < params.max_repeat:
        return None
    for period in range(2, MAX_PERIOD + 1):
        length = period * params.max_repeat
        if len(marks) >= length and marks[-length:] == marks[-period:] * params.max_repeat:
            return "cycle", params.max_repeat, tuple(_shown(call) for call in calls[-period:])
    return None


# -- what is said ------------------------------------------------------------------------------------------


def _finding(kind: str, count: int, names: tuple[str, ...], found: int, params: LoopParams) -> LoopFinding:
    rungs = [rung for rung in RUNGS if rung in params.rungs] or ["remind"]
    rung = rungs[min(found, len(rungs)) - 1]
    return LoopFinding(kind, count, _text(kind, count, names, rung), rung, names)


_WHAT: dict[str, str] = {
    "same_call": "the call {names} brought the same result {count} times",
    "same_error": "calls such as {names} failed {count} times with the same error, whatever the arguments were",
    "copies": "one turn asked {count} times for the same call {names}",
    "cycle": "the same round of calls ending in {names} went round {count} times with the same results",
    "same_text": "the same reply came {count} times without any action",
}
_MORE: dict[str, str] = {
    "remind": "",
    "replan": " You were told before. Go back to planning: say what was tried, why it does not work, and "
    "propose another plan before you act again.",
    "ask": " You were told before. A person is asked how to go on.",
    "stop": " You were told before and it went on; the run stops here.",
}


def _shown(call: Done) -> str:
    """The call in a few words."""
    arguments = wire.canonical(call.args).decode()
    return f"{call.tool} {arguments if len(arguments) <= _SHOWN else arguments[: _SHOWN - 1] + '…'}"


def _text(kind: str, count: int, names: tuple[str, ...], rung: str) -> str:
    what = _WHAT[kind].format(count=count, names=", ".join(names))
    return (
        f"[Loop Detected] {what}. Judge whether these steps get you anywhere. If you know enough, stop acting "
        f"and give the final answer now; otherwise change the approach. Do not repeat what brought nothing."
        f"{_MORE[rung]}"
    )
