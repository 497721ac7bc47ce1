"""What does a store know of a session whose lease it took? Enough to store the run's next step unseen."""

import msgspec

from jackstay.core.packing import pack_step
from jackstay.core.progress import Values, progress, settled
from jackstay.core.wire import encode
from jackstay.engine.ports import Record
from jackstay.store import steps, tables
from jackstay.store.tables import SHIFT

CHAIN = 3  # where a row for `tables.ADVANCE` holds the step's checksum
ROW_S = 10.0  # the row of a running session is written anew when its lease is this much behind, in seconds

Next = tuple[Values, Values | None]


class Hold(msgspec.Struct, gc=False):
    """A lease taken through this store, and what the session came to with the last commit.

    `until` and `settled` are those of the session's row.
    """

    owner: str
    until: float
    key: int
    version: int
    chain: int
    run_id: str
    settled: Values

    def next(self, expected: int, record: Record, now: float) -> Next | None:
        """The run's next step as a row for `tables.ADVANCE`; None when this is another, or not that alone.

        And the values for `tables.UPDATE` where the session's row has to change with it; elsewhere how far the
        run has come stands with the step.
        """
        head, lease, events, appended = record.head, record.lease, record.events, record.appended
        if (
            self.version != expected
            or (lease is not None and lease.owner != self.owner)
            or head.run_id != self.run_id
            or record.drained
            or record.artifacts
        ):
            return None
        data = pack_step(events, appended, record.amended, head.transcript, head.run_id)
        first_seq = (events[0].seq if events else None) or head.seq + 1  # steps.first_seq, without its calls
        version, chain = self.version + 1, steps.link(self.chain, first_seq, None, data)
        whole = settled(head) != self.settled
        for message in appended:
            whole = whole or (message.role == "user" and message.note is None)  # it may be the session's title
        if whole or lease is None or lease.until - self.until >= ROW_S:
            values: Values | None = (*tables.values(version, chain, record, now), self.key)
            made, seal, until = bytearray(), chain, 0.0
        else:
            made, values = bytearray(encode(progress(head, now))), None
            seal, until = steps.seal(made, chain), lease.until
        at = self.key * SHIFT + version
        return (self.owner, at, first_seq, chain, bytearray(data), made, seal, until), values

    def after(self, row: Values) -> "Hold":
        """What is held once the step of this row is stored."""
        version, chain = self.version + 1, row[CHAIN]
        return Hold(self.owner, self.until, self.key, version, chain, self.run_id, self.settled)


def held(record: Record, key: int, version: int, chain: int) -> Hold | None:
    """What is held after a commit that wrote the session's row; nothing when it gave the lease back."""
    head, lease = record.head, record.lease
    if lease is None:
        return None
    return Hold(lease.owner, lease.until, key, version, chain, head.run_id, settled(head))
