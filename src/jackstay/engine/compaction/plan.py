"""What of a transcript stays, what is cut, and what has to be summarised? Judged before each turn, purely."""

from collections.abc import Callable, Iterable, Sequence

import msgspec
from msgspec.structs import replace

from jackstay.core.context import Memory as Memory
from jackstay.core.events import Event
from jackstay.core.messages import Message
from jackstay.core.transcript import Transcript
from jackstay.engine.compaction.clip import LEAST, clip_message, is_clippable, water_level
from jackstay.engine.compaction.measure import Measure, counts, measured, unpinned
from jackstay.engine.compaction.params import LEAST_RESERVED, CompressionParams
from jackstay.engine.compaction.summary import Section, sections_of
from jackstay.engine.compaction.units import Line, Unit, new_line, units_of
from jackstay.engine.ports import Artifact

LOW_WATER = 0.6  # of the threshold in tokens: the provider's prefix cache then survives many turns
LOW_WATER_MESSAGES = 0.5  # of max_messages
LEAST_GAIN = 0.1  # a pass that would free less is not worth breaking the cache for
LEAST_WINDOW = 512  # a smaller number in an error is no window
HARDER = 0.8  # by how much each further forced attempt lowers the mark
SUMMARY_SHARE = 6  # a summary gets at most one part in so many of the room that is not pinned
LARGEST_SUMMARY = 6_000


class Forced(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """The model refused the request as too long: the how-maniest time (from 1), and the window it named."""

    attempt: int = 1
    limit: int | None = None


class Surroundings(msgspec.Struct, frozen=True, gc=False):
    """What a transcript does not say itself.

    `context_length` is the model's window, None when it does not say. `overhead` are the estimated,
    uncorrected tokens of the request besides the transcript: system prompt, notes, tool declarations.
    `pending` are the calls of the current batch that wait or run. `events` are those since the last
    compression, for the work ledger.
    """

    context_length: int | None = None
    overhead: int = 0
    memory: Memory = Memory()
    pending: frozenset[str] = frozenset()
    forced: Forced | None = None
    events: tuple[Event, ...] = ()


class Size(msgspec.Struct, frozen=True, gc=False):
    """How large a context is: all its messages, its corrected tokens, its unpinned messages."""

    messages: int
    tokens: int
    unpinned: int


class Room(msgspec.Struct, frozen=True, gc=False):
    """The budgets of a pass: the rest in uncorrected tokens, `limit` (the window) in real ones."""

    limit: int
    threshold: int
    target: int
    cap: int
    messages: int


class Plan(msgspec.Struct, frozen=True, gc=False):
    """A compression as decided, before anybody is asked for a summary.

    The new transcript is `head` (pinned messages), a summary where anything has to go, and `tail`. `expired`
    are the messages that go, `previous` the sections of the earlier summary among them. A plan with neither
    only cuts single messages; a `futile` one found too little to gain. `originals` are the whole texts
    behind what was cut.
    """

    head: tuple[Line, ...]
    tail: tuple[Line, ...]
    params: CompressionParams
    memory: Memory
    room: Room
    before: Size
    overhead: int = 0
    expired: tuple[Message, ...] = ()
    previous: tuple[Section, ...] = ()
    events: tuple[Event, ...] = ()
    originals: tuple[Artifact, ...] = ()
    budget: int = 0
    futile: bool = False


def plan(transcript: Transcript, params: CompressionParams, around: Surroundings) -> Plan | None:
    """What to do before the next request, or None when everything may stay as it is.

    Forced plans shrink from the size of the request that failed and the limit it named.
    """
    if not params.enabled:
        return None
    size = measured(transcript)
    raw = size.tokens + around.overhead
    before = Size(len(transcript), around.memory.calibration.correct(raw, len(transcript)), size.unpinned)
    memory, room = _budgets(params, around, before.tokens, raw)
    if around.forced is not None:  # seen with what the overflow has taught about the estimate
        before = replace(before, tokens=memory.calibration.correct(raw, len(transcript)))
    wanted = around.forced is not None or (_due(before, params, room) and not _resting(before, memory))
    if not wanted and size.largest <= room.cap:
        return None
    units = units_of(list(transcript), counts(transcript), around.pending)
    units, originals = _clipped(units, _is_history, room.cap)
    shown = _lines(unit for unit in units if not unit.stray)
    found = Plan(shown, (), params, memory, room, before, around.overhead, originals=originals)
    cut = any(line.at is None for line in found.head)
    if around.forced is None and cut and wanted:  # the cuts alone may have been enough
        wanted = _due(size_of(found.head, found), params, room)
    if wanted:
        return _squeezed(found, units, around)
    return found if cut else None


def has_room(size: Measure, tokens: int, params: CompressionParams, memory: Memory, stated: int) -> bool:
    """Is plainly nothing due, and no message too large? In most turns that is all there is to see.

    `tokens` are the corrected ones of the next request, `stated` is the model's window as it was told.
    """
    threshold = params.threshold(window_of(stated, memory))
    if params.starts(tokens, size.unpinned, threshold):
        return False
    return size.largest <= int(params.message_cap(threshold) / memory.calibration.factor)


def window_of(stated: int, memory: Memory) -> int:
    """The model's window as it was told, or less where an overflow has shown that."""
    return memory.window if 0 < memory.window < stated else stated


def size_of(lines: Sequence[Line], plan: Plan) -> Size:
    """How large these messages are under the plan's calibration."""
    tokens = sum(line.tokens for line in lines) + plan.overhead
    return Size(
        len(lines),
        round(tokens * plan.memory.calibration.factor),
        sum(unpinned(line.message) for line in lines),
    )


def _due(size: Size, params: CompressionParams, room: Room) -> bool:
    return params.starts(size.tokens, size.unpinned, params.threshold(room.limit))


def _resting(size: Size, memory: Memory) -> bool:
    return size.tokens < memory.rest_tokens and size.unpinned < memory.rest_messages


def _budgets(params: CompressionParams, around: Surroundings, tokens: int, raw: int) -> tuple[Memory, Room]:
    """The budgets of this moment, and the memory with what an overflow has just taught."""
    memory, low = around.memory, LOW_WATER
    stated = around.context_length or params.default_context_length
    window = window_of(stated, memory)
    if around.forced is not None:
        limit = around.forced.limit if (around.forced.limit or 0) >= LEAST_WINDOW else None
        calibration = memory.calibration.stale if limit is None else memory.calibration.at_least(limit, raw)
        window = min(window, limit or max(1, tokens))
        memory = Memory(calibration, window if limit else max(window, stated // 8))
        low *= HARDER ** (around.forced.attempt - 1)
    factor, threshold = memory.calibration.factor, params.threshold(window)
    return memory, Room(
        limit=window,
        threshold=max(1, int(threshold / factor)),
        target=max(1, int(threshold * low / factor)),
        cap=max(1, int(params.message_cap(threshold) / factor)),
        messages=int(params.max_messages * LOW_WATER_MESSAGES),
    )


# -- a whole pass ------------------------------------------------------------------------------------------


def _squeezed(found: Plan, units: list[Unit], around: Surroundings) -> Plan:
    """The plan of a pass in which the oldest messages go."""
    units, originals = _unburdened(units, found)
    fixed = _tokens(unit for unit in units if unit.pinned) + found.overhead
    free = max(found.room.target - fixed, found.room.threshold // 5)
    budget = min(LARGEST_SUMMARY, found.room.cap, max(free // SUMMARY_SHARE, min(200, free // 2)))
    cut, tail, more = _tail(units, found, free - budget)
    gone = [
        unit for at, unit in enumerate(units) if unit.stray or (not unit.pinned and (at < cut or unit.summary))
    ]
    expired = tuple(line.message for unit in gone if not unit.summary for line in unit.lines)
    previous = tuple(section for unit in gone if unit.summary for section in sections_of(unit.lines[0].message))
    head = _lines(unit for unit in units[:cut] if unit.pinned)
    after = size_of((*head, *tail), found)
    if around.forced is None and not _gains(found, after, round(budget / 2 * found.memory.calibration.factor)):
        return replace(found, futile=True)
    return replace(
        found,
        head=head,
        tail=tail,
        expired=expired,
        previous=previous,
        events=around.events,
        originals=(*found.originals, *originals, *more),
        budget=budget,
        futile=not expired and all(line.at is not None for line in (*head, *tail)),
    )


def _gains(found: Plan, after: Size, summary: int) -> bool:
    """Is it worth it? In tokens with half the summary's room taken, or in messages."""
    before = found.before
    return after.tokens + summary <= before.tokens * (
        1 - LEAST_GAIN
    ) or after.unpinned + 1 <= before.unpinned * (1 - LEAST_GAIN)


def _unburdened(units: list[Unit], found: Plan) -> tuple[list[Unit], tuple[Artifact, ...]]:
    """Pinned messages cut where they leave no room for work.

    One above the cap is cut unless it is the goal, the newest pinned words of the user. The goal itself gives
    way only where the pinned messages leave less than a quarter of the threshold: nothing could be done then.
    """
    goal = next((at for at in range(len(units) - 1, -1, -1) if _is_prompt(units[at])), -1)
    purpose = units[goal] if goal >= 0 else None
    units, originals = _clipped(units, lambda unit: unit.pinned and unit is not purpose, found.room.cap)
    fixed = _tokens(unit for unit in units if unit.pinned) + found.overhead
    excess = fixed - found.room.threshold * 3 // 4
    if purpose is None or excess <= 0:
        return units, originals
    least = min(purpose.tokens, found.room.threshold // 4)
    half = max(least, purpose.tokens - (fixed - found.room.threshold // 2))
    units, more = _clipped(units, lambda unit: unit is purpose, half)
    return units, (*originals, *more)


def _is_prompt(unit: Unit) -> bool:
    message = unit.lines[0].message
    return unit.pinned and not unit.batch and message.role == "user" and message.note is None


def _is_history(unit: Unit) -> bool:
    return not unit.pinned and not unit.summary


def _tail(units: list[Unit], found: Plan, tokens: int) -> tuple[int, tuple[Line, ...], tuple[Artifact, ...]]:
    """Where the kept window begins, and its messages within about `tokens`, cut where they must be."""
    starts = _starts(units, found)
    start = next((one for one in starts if _least(units[one:]) <= tokens), starts[-1])
    cut = _reach(units, start, tokens, found.room.messages - 1)
    while cut < len(units) and units[cut].pinned:  # so that a summary stands behind the goal
        cut += 1
    kept = [unit for unit in units[cut:] if not unit.summary and not unit.stray]
    loose = sum(unit.tokens for unit in kept if not unit.pinned)
    originals: tuple[Artifact, ...] = ()
    for arguments in (False, True):
        if loose > tokens:
            kept, more = _levelled(kept, tokens, arguments)
            originals = (*originals, *more)
            loose = sum(unit.tokens for unit in kept if not unit.pinned)
    return cut, _lines(kept), originals


def _starts(units: list[Unit], found: Plan) -> list[int]:
    """From where on everything might have to stay, the largest claim first.

    That is the reserved messages; where their number is derived and they do not fit, the newest complete
    batch with what follows it; where even that does not fit, what follows it. A pending batch always stays.
    A batch of an earlier prompt, with more behind it than a pass may keep, is history like any other.
    """
    pending = next((at for at, unit in enumerate(units) if unit.open), len(units))
    batch = next((at for at in range(pending - 1, -1, -1) if units[at].batch), pending)
    behind = units[batch:]
    if any(_is_prompt(unit) for unit in behind) and _count(behind) > found.room.messages:
        batch = pending
    given = found.params.min_reserved_messages
    reserved = batch
    while reserved > 0 and _count(units[reserved:]) < (given or LEAST_RESERVED):
        reserved -= 1
    if given:
        return [reserved]
    alone = all(unit.lines[0].message.note for unit in units[batch + 1 : pending] if _moves(unit))
    return [reserved, batch] if alone else [reserved, batch, batch + 1]


def _reach(units: list[Unit], start: int, tokens: int, messages: int) -> int:
    """How far back from `start` the window may reach within tokens and messages, without a hole."""
    left, count = tokens - _loose(units[start:]), messages - _count(units[start:])
    while start > 0:
        unit = units[start - 1]
        if _moves(unit):
            left, count = left - unit.tokens, count - len(unit.lines)
            if left < 0 or count < 0:
                break
        start -= 1
    return start


def _moves(unit: Unit) -> bool:
    return not (unit.pinned or unit.summary or unit.stray)


def _count(units: Sequence[Unit]) -> int:
    return sum(len(unit.lines) for unit in units if _moves(unit))


def _loose(units: Sequence[Unit]) -> int:
    return sum(unit.tokens for unit in units if _moves(unit))


def _least(units: Sequence[Unit]) -> int:
    """What these would still take with every cuttable message cut down."""
    return sum(
        min(line.tokens, 2 * LEAST) if is_clippable(line.message) else line.tokens
        for unit in units
        if _moves(unit)
        for line in unit.lines
    )


# -- cutting -----------------------------------------------------------------------------------------------


def _clipped(
    units: list[Unit], which: Callable[[Unit], bool], tokens: int, *, arguments: bool = False
) -> tuple[list[Unit], tuple[Artifact, ...]]:
    """The units with each message of the chosen ones cut to `tokens`; pending batches stay as they are."""
    originals: list[Artifact] = []
    made: list[Unit] = []
    for unit in units:
        if not unit.open and which(unit) and any(line.tokens > tokens for line in unit.lines):
            lines = []
            for line in unit.lines:
                cut = clip_message(line.message, tokens, arguments=arguments) if line.tokens > tokens else None
                lines.append(new_line(cut.message) if cut else line)
                originals.extend(cut.originals if cut else ())
            unit = replace(unit, lines=tuple(lines))
        made.append(unit)
    return made, tuple(originals)


def _levelled(units: list[Unit], tokens: int, arguments: bool) -> tuple[list[Unit], tuple[Artifact, ...]]:
    """The unpinned ones cut so far that they fit together, the longest first."""
    lines = [line for unit in units if not unit.pinned for line in unit.lines]
    able = [
        0 if unit.open else line.tokens
        for unit in units
        if not unit.pinned
        for line in unit.lines
        if arguments or is_clippable(line.message)
    ]
    stiff = sum(line.tokens for line in lines) - sum(able)
    level = max(LEAST + LEAST // 2, water_level(able, max(0, tokens - stiff)))
    return _clipped(units, _is_history, level, arguments=arguments)


def _tokens(units: Iterable[Unit]) -> int:
    return sum(unit.tokens for unit in units)


def _lines(units: Iterable[Unit]) -> tuple[Line, ...]:
    return tuple(line for unit in units for line in unit.lines)
