"""What does Hermes know that its hooks do not pass on? Where it cannot be asked, the cautious answer."""

import json
import os
import sys
from pathlib import Path
from typing import Any


def directory_of(task_id: str) -> str:
    """From where Hermes reads relative paths in this task just now: its terminal remembers every `cd`."""
    try:
        from tools.file_tools import _resolve_base_dir  # type: ignore[import-not-found] # Hermes's own module

        return str(_resolve_base_dir(task_id or "default"))
    except Exception:  # another Hermes: where the process stands
        return os.getcwd()  # noqa: PTH109 - a text


def project_of(directory: str) -> str:
    """The nearest directory above that looks like a project's root, or the directory itself."""
    here = Path(directory)
    for place in (here, *here.parents):
        if (place / ".git").exists() or (place / ".jackstay").is_dir():
            return str(place)
    return directory


def in_review() -> bool:
    """Is this Hermes's own background review, which runs under its session's id?"""
    try:
        from tools.skill_provenance import is_background_review  # type: ignore[import-not-found] # Hermes's own

        return bool(is_background_review())
    except Exception:
        return False


def _approval() -> Any:
    """Hermes's own module about approvals. Raises where there is none."""
    from tools import approval  # type: ignore[import-not-found] # Hermes's own module

    return approval


def can_ask() -> bool:
    """Would Hermes's approval really be put to a person? Not with --yolo, not where nobody sits."""
    try:
        approval = _approval()
        if approval._YOLO_MODE_FROZEN or approval.is_current_session_yolo_enabled():
            return False
        return bool(approval._is_interactive_cli() or approval._is_gateway_approval_context())
    except Exception:  # the question is kept in our own inbox then
        return False


def show(text: str) -> None:
    """A line for the person at Hermes's terminal, where one sits: Hermes shows them no reason of a refusal."""
    try:
        if _approval()._is_interactive_cli() and "cli" in sys.modules:
            sys.modules["cli"]._cprint(text)
    except Exception:  # the model has the reason all the same
        return


def continues(session_id: str) -> str | None:
    """The session that this one goes on under a new id, after Hermes compressed it; None when it does not."""
    try:
        from hermes_state import SessionDB  # type: ignore[import-not-found] # Hermes's own module

        database = SessionDB()
        row = database.get_session(session_id) or {}
        parent = database.get_session(row.get("parent_session_id") or "") or {}
    except Exception:  # it begins as a session nobody knows then
        return None
    return str(parent["id"]) if parent.get("end_reason") == "compression" else None


def failed(status: str, result: Any) -> bool:
    """Did the call fail? Hermes calls a command ok whatever its exit code."""
    if status not in ("", "ok"):
        return True
    try:
        found = json.loads(result) if isinstance(result, str) else result
    except ValueError:
        return False
    return isinstance(found, dict) and found.get("exit_code", 0) not in (0, None)
