"""A worker process for the store's tests: `racer.py MODE FILE …` (run by test_sqlite_file.py)."""

import sys
from pathlib import Path

from msgspec.structs import replace

from jackstay.core.errors import Conflict, SessionBusy
from jackstay.core.events import WarningEvent
from jackstay.core.messages import user
from jackstay.engine.ports import Lease, Record
from jackstay.store.leases import this_process
from jackstay.store.sqlite import SQLiteStore
from tests.contracts.made import Play


def race(path: Path, rounds: int) -> None:
    """Add to one counter session until told; print how many commits went through."""
    store, won = SQLiteStore(path, wait_s=30), 0
    while won < rounds:
        stored = store.load("s1")
        assert stored is not None
        text, head = user(f"{this_process()} {won}"), stored.state
        warning = WarningEvent(head.run_id, head.session_id, head.seq + 1, 0.5, "raced")
        grown = replace(head, seq=head.seq + 1, transcript=head.transcript.append(text))
        try:
            store.commit("s1", stored.version, Record(grown, [text], events=[warning]))
        except Conflict:
            continue
        won += 1
    print(won)


def begin(path: Path, session_id: str) -> None:
    """Store a session's first step once told to."""
    sys.stdin.read()
    Play(SQLiteStore(path), session_id).begins()
    print("begun")


def commit_for_ever(path: Path) -> None:
    """Turn after turn in a new session, telling after each commit which version is stored."""
    play = Play(SQLiteStore(path))
    play.begins()
    number = 0
    while True:
        play.turn(number)
        print(play.version, flush=True)
        number += 1


def hold(path: Path) -> None:
    """Claim the session for an hour, say so, and wait to be killed."""
    store = SQLiteStore(path)
    stored = store.load("s1")
    assert stored is not None
    until = store.now() + 3600
    try:
        store.commit("s1", stored.version, Record(stored.state, lease=Lease(this_process(), until)))
    except (Conflict, SessionBusy) as problem:
        print(type(problem).__name__, flush=True)
    else:
        print("held", flush=True)
    sys.stdin.read()


def main() -> None:
    mode, path, *rest = sys.argv[1:]
    match mode:
        case "race":
            race(Path(path), int(rest[0]))
        case "begin":
            begin(Path(path), rest[0])
        case "commit":
            commit_for_ever(Path(path))
        case "hold":
            hold(Path(path))


if __name__ == "__main__":
    main()
