"""What a person did over the head of the agent goes into the audit record."""

import time

import msgspec

from jackstay.config.paths import ensure_private
from jackstay.config.paths import home as home_path
from jackstay.core.state import RunState
from jackstay.runtime.commands import person
from jackstay.ward.audit import Audit, AuditRecord
from jackstay.ward.redact import redact


class Override(msgspec.Struct, frozen=True):
    """Which gate it concerns, the command, what was said with it, and what it does."""

    gate: str
    command: str
    said: str
    does: str


PLAN_APPROVED = Override("proposal", "approve --plan", "", "the plan is approved")


def written_down(home: str | None, state: RunState, override: Override) -> None:
    """Append the record. Raises OSError: what cannot be written down is not passed over in silence."""
    phase = state.policy.phase.phase.value
    record = AuditRecord(
        time.time(), state.session_id, phase, override.gate, override.command, redact(override.said)[:500],
        f"person:{person()}", override.does, "allow",
    )  # fmt: skip
    Audit(ensure_private(home_path(home))).append(record)
