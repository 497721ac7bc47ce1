"""What is stored in a home? Looking creates nothing."""

from jackstay.config.paths import home as home_path
from jackstay.config.paths import sessions_file
from jackstay.core.errors import UnknownSession
from jackstay.core.state import RunState
from jackstay.engine.ports import SessionStore


def open_store(home: str | None) -> SessionStore:
    """The sessions of this home; an empty store where nothing is stored yet. Its methods raise StoreError."""
    path = sessions_file(home_path(home))
    if not path.exists():
        from jackstay.store.memory import MemoryStore

        return MemoryStore()
    from jackstay.store.sqlite import SQLiteStore

    return SQLiteStore(path)


def stored_state(store: SessionStore, session_id: str) -> RunState:
    """The session's head. Raises UnknownSession when nothing of it is stored."""
    found = store.head(session_id)
    if found is None:
        raise UnknownSession(session_id)
    return found.state
