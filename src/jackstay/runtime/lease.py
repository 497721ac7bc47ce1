"""Who runs a session: a claim that is renewed while the run lasts and lapses when its process is gone."""

import time
from itertools import count
from math import inf

from jackstay.engine.ports import Lease, SessionStore
from jackstay.store.leases import this_process

LEASE_S = 60.0
_numbers = count(1)


class Holder:
    """Holds the lease of one session for one request."""

    def __init__(self, store: SessionStore, session_id: str) -> None:
        self.store, self._session_id = store, session_id
        self.owner = this_process(str(next(_numbers)))
        self._until = inf  # there is nothing to renew yet

    def lease(self) -> Lease:
        """The claim, good for LEASE_S seconds from now; it is given back with the last commit."""
        self._until = time.time() + LEASE_S
        return Lease(self.owner, self._until)

    def keep(self) -> None:
        """Renew the claim once a third of it has gone by; called now and then, however long something takes."""
        left = self._until - time.time()
        if left < LEASE_S * 2 / 3 and not self.store.renew(self._session_id, self.lease()):
            self._until = inf  # somebody else holds it
