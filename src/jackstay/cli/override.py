"""What a person does over the head of the agent: done by nobody else, and written into the audit record."""

import os
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec

from jackstay.config.paths import ensure_private
from jackstay.config.paths import home as home_path
from jackstay.core.errors import JackstayError
from jackstay.core.state import RunState
from jackstay.engine.ports import SESSION_MARK
from jackstay.runtime.commands import person
from jackstay.ward.audit import Audit, AuditRecord
from jackstay.ward.redact import redact


class AgentsMayNot(JackstayError):
    """The command was started by an agent's own call."""

    def __init__(self, session_id: str) -> None:
        super().__init__(
            f"this is for a person to say, and it was called from a command of session {session_id!r}: "
            "nothing was changed; ask your user to do it"
        )


def by_a_person() -> None:
    """Raises AgentsMayNot where a command of a session has started this process, however deep below it."""
    mark = f"{SESSION_MARK}=".encode()
    for environment in _environments():
        for setting in environment.split(b"\0"):
            if setting.startswith(mark):
                raise AgentsMayNot(setting.removeprefix(mark).decode("utf-8", "replace"))


def _environments() -> Iterator[bytes]:
    """What this process and its ancestors were started with, as far as the system tells."""
    yield b"\0".join(b"=".join(pair) for pair in os.environb.items())
    process = os.getppid()
    while process > 1:
        place = Path("/proc") / str(process)
        try:
            yield (place / "environ").read_bytes()
            process = int((place / "stat").read_text().rpartition(")")[2].split()[1])
        except (OSError, ValueError):  # another user's, gone, or a system that does not say
            return


class Override(msgspec.Struct, frozen=True):
    """Which gate it concerns, the command, what was said with it, and what it does."""

    gate: str
    command: str
    said: str
    does: str


PLAN_APPROVED = Override("proposal", "approve --plan", "", "the plan is approved")


def written_down(home: str | None, state: RunState, override: Override) -> None:
    """Append the record. Raises AuditFailed: what cannot be written down is not to be done."""
    phase = state.policy.phase.phase.value
    record = AuditRecord(
        time.time(), state.session_id, phase, override.gate, override.command, redact(override.said)[:500],
        f"person:{person()}", override.does, "allow",
    )  # fmt: skip
    Audit(ensure_private(home_path(home))).append(record)
