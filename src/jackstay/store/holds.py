"""What does a store know of a session whose lease it took? Enough to store the run's next step unseen."""

import msgspec

from jackstay.core.progress import progress, settled
from jackstay.core.wire import encode
from jackstay.engine.ports import Record
from jackstay.store import steps, tables
from jackstay.store.tables import SHIFT

ROW_S = 10.0  # the row of a running session is written anew when its lease is this much behind, in seconds


class Hold(msgspec.Struct, frozen=True, gc=False):
    """A lease taken through this store, and what the session came to with the last commit.

    `until` and `settled` are those of the session's row.
    """

    owner: str
    until: float
    key: int
    version: int
    chain: int
    run_id: str
    settled: tuple[object, ...]

    def awaits(self, expected: int, record: Record) -> bool:
        """Is this the next step of the run, with nothing beside it?"""
        lease = record.lease
        return (
            self.version == expected
            and (lease is None or lease.owner == self.owner)
            and record.head.run_id == self.run_id
            and not record.drained
            and not record.artifacts
        )

    def next(self, record: Record, now: float) -> "Next":
        """The step that is awaited. How far it brings the run stands with it where the row may stay as it is."""
        version, data, first_seq = self.version + 1, steps.pack(record), steps.first_seq(record)
        chain = steps.link(self.chain, first_seq, None, data)
        at = self.key * SHIFT + version
        if self._covers(record):
            made = bytearray(encode(progress(record.head, now)))
            row = (self.key, self.owner, at, first_seq, chain, bytearray(data), made, steps.seal(chain, made))
            after = Hold(self.owner, self.until, self.key, version, chain, self.run_id, self.settled)
            return Next(row, None, after)
        row = (self.key, self.owner, at, first_seq, chain, bytearray(data), None, None)
        values = (*tables.values(version, chain, record, now), self.key)
        return Next(row, values, held(record, self.key, version, chain))

    def _covers(self, record: Record) -> bool:
        lease = record.lease
        return (
            lease is not None
            and lease.until - self.until < ROW_S
            and settled(record.head) == self.settled
            and not steps.title(record.appended)
        )


class Next(msgspec.Struct, frozen=True, gc=False):
    """A run's next step, ready to be stored: the row for `tables.ADVANCE`, and what is held after it.

    `values` are those of the session's row (`tables.UPDATE`) where that has to change too.
    """

    row: tuple[object, ...]
    values: tuple[object, ...] | None
    after: Hold | None


def held(record: Record, key: int, version: int, chain: int) -> Hold | None:
    """What a commit that wrote the whole row holds; None when it gave the lease back."""
    head, lease = record.head, record.lease
    if lease is None:
        return None
    return Hold(lease.owner, lease.until, key, version, chain, head.run_id, settled(head))
