"""How do several runs at once store their steps? Those of one round of the event loop together."""

import asyncio
from functools import cache
from typing import cast
from weakref import WeakKeyDictionary

from jackstay.engine.ports import Commit, GroupStore, SessionStore

_Loops = WeakKeyDictionary[asyncio.AbstractEventLoop, "Commits"]
_known: WeakKeyDictionary[SessionStore, _Loops] = WeakKeyDictionary()


class Promise:
    """A commit that is to be stored. `outcome` is the new version, or why there is none; None for not yet."""

    __slots__ = ("commit", "future", "outcome")

    def __init__(self, commit: Commit, future: "asyncio.Future[None]") -> None:
        self.commit, self.future = commit, future
        self.outcome: int | Exception | None = None


class Commits:
    """The commits of the runs that share a store and an event loop: `with commits:` is around each of them.

    `runs` counts those under way.
    """

    def __init__(self) -> None:
        self.runs = 0
        self._promised: list[Promise] = []

    def __enter__(self) -> "Commits":
        self.runs += 1
        return self

    def __exit__(self, *failure: object) -> None:
        self.runs -= 1

    def promise(self, store: SessionStore, commit: Commit) -> Promise:
        """Store the commit before the loop begins its next round, with all others promised until then."""
        loop = asyncio.get_running_loop()
        made = Promise(commit, loop.create_future())
        if not self._promised:
            loop.call_soon(self.keep, store)
        self._promised.append(made)
        return made

    def keep(self, store: SessionStore) -> None:
        """Store now what was promised. Whatever becomes of it is each promise's outcome."""
        promised, self._promised = self._promised, []
        if not promised:
            return
        outcomes: list[int | Exception]
        try:
            outcomes = cast(GroupStore, store).commit_all(  # `commits_of` has looked
                [made.commit for made in promised]
            )
        except Exception as problem:
            outcomes = [problem] * len(promised)
        except BaseException:  # somebody wants the program to end: the runs are told that on their way out
            self._promised = [*promised, *self._promised]
            raise
        for made, outcome in zip(promised, outcomes, strict=True):
            made.outcome = outcome
            if not made.future.done():  # a cancelled run does not wait
                made.future.set_result(None)


def commits_of(store: SessionStore) -> Commits | None:
    """The commits of this store and the running loop; None where nothing is gained by storing them together."""
    if not _groups(type(store)):
        return None
    loops = _known.get(store)
    if loops is None:
        loops = _known[store] = WeakKeyDictionary()
    loop = asyncio.get_running_loop()
    commits = loops.get(loop)
    if commits is None:
        commits = loops[loop] = Commits()
    return commits


@cache
def _groups(kind: type[SessionStore]) -> bool:
    """Is there a `commit_all`, and no other `commit` on top of it that would then not be asked?"""
    for base in kind.__mro__:
        if "commit_all" in vars(base):
            return True
        if "commit" in vars(base):
            return False
    return False
