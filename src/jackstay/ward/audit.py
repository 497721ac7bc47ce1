"""Which gates closed, when, and on what? One record a decision, appended and never changed."""

import os
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

from msgspec import Struct, ValidationError
from msgspec.structs import replace

from jackstay.core import wire
from jackstay.core.errors import JackstayError
from jackstay.core.messages import ToolCall
from jackstay.policy.happenings import Blocked
from jackstay.ward.redact import redact, redact_value

MAX_CALL = 2000
MAX_REASON = 500


class AuditRecord(Struct, frozen=True, gc=False, omit_defaults=True):
    """One decision of a gate: `at` in epoch seconds, `call` redacted and cut, `verdict` allow, ask or deny."""

    at: float
    session: str
    phase: str
    gate: str
    tool: str
    call: str
    rule: str
    reason: str
    verdict: str


class Summary(Struct, frozen=True, gc=False):
    """Counts over a stretch of time, the most frequent first, and the latest records, oldest first.

    `unreadable` counts lines that are no records: a torn end, something foreign.
    """

    total: int
    by_gate: dict[str, int]
    by_phase: dict[str, int]
    by_tool: dict[str, int]
    by_verdict: dict[str, int]
    recent: tuple[AuditRecord, ...]
    unreadable: int = 0


def record_of(blocked: Blocked, call: ToolCall, *, session: str, rule: str, at: float) -> AuditRecord:
    """The record of one decision, with nothing in it that is secret."""
    said = wire.encode(redact_value(call.args)).decode("utf-8", "replace")
    return AuditRecord(
        at, session, blocked.phase.value, blocked.gate, blocked.tool, _cut(said, MAX_CALL), rule,
        _cut(redact(blocked.reason), MAX_REASON), blocked.verdict,
    )  # fmt: skip


class AuditFailed(JackstayError):
    """A decision could not be written down, so nothing goes on."""

    def __init__(self, problem: OSError) -> None:
        super().__init__(f"the audit record cannot be written: {problem}; make room or mend the home directory")


class Audit:
    """The audit file of a home directory: one JSON object a line, 0600, appended in whole lines.

    Two processes may append at once: a record is one write below the size the system keeps whole.
    """

    def __init__(self, home: Path | str) -> None:
        self._file = Path(home) / "audit" / "gates.jsonl"

    def append(self, *records: AuditRecord) -> None:
        """Add records. Raises AuditFailed: a decision that cannot be recorded is not passed over in silence."""
        if not records:
            return
        data = b"".join(wire.encode(record) + b"\n" for record in records)
        try:
            self._file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            descriptor = os.open(self._file, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o600)
            try:
                data = b"\n" + data if _is_torn(descriptor) else data
                while data:
                    data = data[os.write(descriptor, data) :]
            finally:
                os.close(descriptor)
        except OSError as problem:
            raise AuditFailed(problem) from problem

    def records(self, *, since: float = 0.0) -> Iterator[AuditRecord]:
        """The records from `since` (epoch seconds) on, oldest first; lines that are none are passed over."""
        return (record for record in self._lines() if record is not None and record.at >= since)

    def summary(self, *, since: float = 0.0, recent: int = 20) -> Summary:
        """Counts by gate, phase, tool and verdict since a time, and the latest records."""
        everything = list(self._lines())
        found = (record for record in everything if record is not None and record.at >= since)
        unreadable = sum(record is None for record in everything)
        return replace(summed(found, recent=recent), unreadable=unreadable)

    def _lines(self) -> Iterator[AuditRecord | None]:
        if not self._file.exists():
            return
        with self._file.open("rb") as file:
            for line in file:
                if not line.strip():
                    continue
                try:
                    record: AuditRecord = wire.convert(wire.decode_json(line), AuditRecord)
                except (ValueError, ValidationError):
                    yield None
                    continue
                yield record


def _is_torn(descriptor: int) -> bool:
    """Does the file end within a record, because the disk was full? The next one must not be lost with it."""
    size = os.fstat(descriptor).st_size
    return size > 0 and os.pread(descriptor, 1, size - 1) != b"\n"


def summed(records: Iterable[AuditRecord], *, recent: int = 20) -> Summary:
    """Counts over these records, oldest first, and the latest of them."""
    found = tuple(records)
    return Summary(
        len(found),
        _counts(record.gate for record in found),
        _counts(record.phase for record in found),
        _counts(record.tool for record in found),
        _counts(record.verdict for record in found),
        found[-recent:] if recent > 0 else (),
    )


def _counts(names: Iterator[str]) -> dict[str, int]:
    return dict(Counter(names).most_common())


def _cut(text: str, limit: int) -> str:
    return text if len(text) <= limit else text[: limit - 1] + "…"
