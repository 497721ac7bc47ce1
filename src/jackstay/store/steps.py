"""What does a commit come to as bytes, and how is a session read back from them, damage included?

Each step's checksum goes on from the one before it, beginning with the session's name: a step that was
changed, lost, or taken from another session breaks the chain, and everything before that point is sound.
"""

import zlib
from collections.abc import Iterable, Iterator
from collections.abc import Set as AbstractSet

import msgspec

from jackstay.core.approvals import HITLTask
from jackstay.core.errors import StoreError
from jackstay.core.messages import Message, ToolResult, observation
from jackstay.core.packing import pack_step
from jackstay.core.progress import advanced
from jackstay.core.state import Batch, RunState
from jackstay.core.unpacking import count_events, message_rows, step_messages
from jackstay.core.wire import decode_head, decode_progress
from jackstay.engine.ports import PendingSession, Record
from jackstay.policy.secrets import redact

TITLE_LENGTH = 80  # characters of the first prompt that a list shows
LOST = "The result of this call was lost when the session store was damaged; it is not known what it said."


class Step(msgspec.Struct, frozen=True, gc=False):
    """A stored commit. `run_id` is None where the step goes on with the run of the one before.

    Steps that nothing can damage have no checksum.
    """

    version: int
    first_seq: int
    run_id: str | None
    checksum: int
    data: bytes


class Unreadable(Exception):
    """The file cannot give back a step: from here on it is damaged."""


class Sealed(msgspec.Struct, frozen=True, gc=False):
    """A stored head or progress, the checksum of the step it stands over, and its own.

    Damage can make other types of them; NULL stands for what is missing.
    """

    data: bytes | None
    chain: int
    checksum: int | None

    @property
    def is_sound(self) -> bool:
        """Is it what was stored over these steps?"""
        whole = isinstance(self.data, bytes) and isinstance(self.chain, int)
        return whole and seal(self.data or b"", self.chain) == self.checksum


class Rows(msgspec.Struct, frozen=True, gc=False):
    """The sound steps of a session, read.

    `last` is the last of them, `chain` its checksum. `tear` says what is wrong with the step after, if
    anything is.
    """

    messages: list[Message]
    last: Step | None
    chain: int
    tear: str | None = None

    @property
    def version(self) -> int:
        """The version that the last step made."""
        return 0 if self.last is None else self.last.version

    @property
    def seq(self) -> int:
        """The number of the last event."""
        return 0 if self.last is None else self.last.first_seq - 1 + count_events(self.last.data)


def seed(session_id: str) -> int:
    """The checksum that the first step of a session goes on from."""
    return zlib.crc32(session_id.encode())


def link(chain: int, first_seq: int, run_id: str | None, data: bytes) -> int:
    """The checksum of a step that comes after one with checksum `chain`."""
    if run_id is None:  # nearly always
        return zlib.crc32(b"%d None%b" % (first_seq, data), chain)
    return zlib.crc32(data, zlib.crc32(f"{first_seq} {run_id}".encode(), chain))


def fits(chain: int, step: Step) -> bool:
    """Is the step unchanged, and does it come right after the one with checksum `chain`?"""
    whole = isinstance(step.data, bytes) and isinstance(step.first_seq, int)  # damage makes other types of them
    return whole and link(chain, step.first_seq, step.run_id, step.data) == step.checksum


def next_step(version: int, chain: int, run_id: str | None, record: Record) -> Step:
    """The commit as a step after one with checksum `chain` and run `run_id` (None: none there is)."""
    head, number = record.head, first_seq(record)
    data = pack_step(record.events, record.appended, record.amended, head.transcript, head.run_id)
    run = None if head.run_id == run_id else head.run_id
    return Step(version, number, run, link(chain, number, run, data), data)


def first_seq(record: Record) -> int:
    """The number of the commit's first event, or of the next one where it has none."""
    number = record.events[0].seq if record.events else None
    return number if number is not None else record.head.seq + 1


# The checksum of a head, or of a progress, that stands over steps ending with the checksum it goes on from.
seal = zlib.crc32


def waiting(head: RunState) -> tuple[HITLTask, ...]:
    """The calls of a suspended session that nobody has decided yet."""
    return head.batch.waiting if head.is_pending and head.batch is not None else ()


def title(appended: Iterable[Message]) -> str:
    """What the person said first, as one short line without secrets."""
    for message in appended:
        if message.role == "user" and message.note is None and message.text:
            line = " ".join(redact(message.text[: 4 * TITLE_LENGTH]).split())
            return line if len(line) <= TITLE_LENGTH else line[: TITLE_LENGTH - 1] + "…"
    return ""


# -- reading -----------------------------------------------------------------------------------------------


def read(session_id: str, steps: Iterable[Step], *, end: int | None = None) -> Rows:
    """The messages of the steps, as far as the chain holds; `end` is the checksum the last one must have."""
    chain, last = seed(session_id), None
    messages: list[Message] = []
    try:
        for step in steps:
            _take_in(chain, step, messages)
            chain, last = step.checksum, step
        if end is not None and chain != end:
            raise Unreadable("the steps after it are missing")
    except Unreadable as problem:
        return Rows(messages, last, chain, str(problem))
    return Rows(messages, last, chain)


def _take_in(chain: int, step: Step, messages: list[Message]) -> None:
    if not fits(chain, step):
        raise Unreadable("the next step was changed, or one before it is missing")
    try:
        found = step_messages(step.data)
        for place, message in found.amended:
            messages[place] = message
    except (ValueError, TypeError, LookupError) as problem:
        raise Unreadable(f"the next step cannot be read ({problem})") from problem
    messages.extend(found.appended)


def readable(steps: Iterable[Step]) -> Iterator[Step]:
    """The steps up to where the file is damaged."""
    try:
        yield from steps
    except Unreadable:
        return


def opened(session_id: str, head: Sealed, made: Sealed | None) -> RunState:
    """The state in a stored head, with the progress made since.

    Raises StoreError when one of them is damaged, NewerSchema when it is too new.
    """
    if not head.is_sound or (made is not None and not made.is_sound):
        raise StoreError(
            f"the head of session {session_id!r} is damaged: run `jackstay doctor --repair` to rebuild it from "
            "the session's events"
        )
    state = decode_head(head.data or b"")
    return state if made is None else advanced(state, decode_progress(made.data or b""))


def whole(head: RunState, messages: list[Message]) -> RunState:
    """The state with its messages, all of whose steps are sound."""
    return msgspec.structs.replace(head, transcript=message_rows(messages, head.view))


# -- mending -----------------------------------------------------------------------------------------------


class Mended(msgspec.Struct, frozen=True, gc=False):
    """A state that fits what is left of its steps; `filled` are messages that have to be stored with it."""

    state: RunState
    filled: tuple[Message, ...]


def mend(head: RunState, rows: Rows) -> Mended:
    """The state after everything that follows the sound rows is gone.

    What the head holds stays: phase, grants, and a batch with its open approvals. Messages are filled in so
    that the transcript is one a provider accepts: the batch's reply when it was lost, and a remark for each
    other call whose result was.
    """
    calls, results = _last_batch(rows.messages)
    batch = head.batch
    own = [entry.call for entry in batch.calls] if batch is not None else []
    in_batch = {call.call_id for call in own}
    filled = [
        observation(ToolResult(call_id, LOST, is_error=True, executed=None))
        for call_id in calls
        if call_id not in results and call_id not in in_batch
    ]
    if not in_batch <= set(calls):
        filled.append(Message("assistant", tuple(own)))
    size = len(rows.messages)
    view = tuple((min(start, size), min(end, size)) for start, end in head.view)
    state = msgspec.structs.replace(
        head,
        seq=rows.seq,
        rows=size + len(filled),
        view=view,
        batch=batch and _retold(batch, results),
        transcript=message_rows([*rows.messages, *filled], view),
    )
    return Mended(state, tuple(filled))


def _last_batch(messages: list[Message]) -> tuple[list[str], set[str]]:
    """The ids of the last reply's calls, and of the results after it."""
    results: set[str] = set()
    for message in reversed(messages):
        if message.role == "assistant" and message.calls:
            return [call.call_id for call in message.calls], results
        results.update(part.call_id for part in message.parts if isinstance(part, ToolResult))
    return [], results


def _retold(batch: Batch, results: set[str]) -> Batch:
    """The batch with `told` counting the leading results that are still in the transcript."""
    told = 0
    for entry in batch.calls:
        if entry.call.call_id not in results:
            break
        told += 1
    return msgspec.structs.replace(batch, told=told)


def loss(session_id: str, head: RunState, rows: Rows) -> str:
    """What a tear has cost, in words."""
    where = f"after event {rows.seq}" if rows.last is not None else "from its beginning"
    return (
        f"session {session_id!r} is damaged {where}: {rows.tear}; {max(0, head.seq - rows.seq)} events and the "
        "messages stored with them were dropped, everything before is intact"
    )


# -- lists -------------------------------------------------------------------------------------------------


def pending(rows: Iterable[tuple[bytes, AbstractSet[str]]]) -> list[PendingSession]:
    """What still waits for a person, when the calls in the set beside each head have their answer already.

    Calls of subagents are told with the session that a person works in. A head that cannot be read is left out:
    one bad session must not hide the others.
    """
    states: list[RunState] = []
    undecided: dict[str, set[str]] = {}
    for head, decided in rows:
        try:
            state = decode_head(head)
        except StoreError:
            continue
        own = {task.call_id for task in waiting(state) if not task.path}
        undecided[state.session_id] = own - decided
        states.append(state)
    found: list[PendingSession] = []
    for state in states:
        places = ((task, task.path[-1] if task.path else state.session_id) for task in waiting(state))
        tasks = tuple(task for task, place in places if task.call_id in undecided.get(place, ()))
        if tasks and state.parent is None:
            found.append(PendingSession(state.session_id, state.run_id, tasks))
    return found
