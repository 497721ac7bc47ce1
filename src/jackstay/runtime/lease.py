"""Who runs a session: a claim that is renewed while the run lasts and lapses when its process is gone."""

import asyncio
import time
from itertools import count

from jackstay.engine.ports import Lease, SessionStore
from jackstay.store.leases import this_process

LEASE_S = 60.0
_numbers = count(1)


class Holder:
    """Holds the lease of one session for one request."""

    def __init__(self, store: SessionStore, session_id: str) -> None:
        self.store, self._session_id = store, session_id
        self.owner = this_process(str(next(_numbers)))
        self._timer: asyncio.TimerHandle | None = None

    def lease(self) -> Lease:
        """The claim, good for LEASE_S seconds from now."""
        return Lease(self.owner, time.time() + LEASE_S)

    def keep(self) -> None:
        """Renew from now on, until `release`, however long a model or tool takes."""
        self._timer = asyncio.get_running_loop().call_later(LEASE_S / 3, self._renew)

    def release(self) -> None:
        """Stop renewing; the lease itself is given back with the last commit."""
        if self._timer is not None:
            self._timer.cancel()

    def _renew(self) -> None:
        if self.store.renew(self._session_id, self.lease()):
            self.keep()
