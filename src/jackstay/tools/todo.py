"""The plan of a session, as Markdown with check boxes that the model keeps and the user sees."""

import os
import re
import secrets
from pathlib import Path
from typing import Annotated, Any

from msgspec import Meta

from jackstay.core.errors import ToolFailed
from jackstay.core.ids import session_id
from jackstay.engine.ports import ToolContext
from jackstay.tools.schema import FunctionTool, tool

MAX_CHARS = 100_000
_BOX = re.compile(r"^\s*(?:[-*+]|\d+[.)])\s+\[(?P<state>[ xX/])\]\s*(?P<text>.*)$", re.MULTILINE)


def todo_tool(sessions_dir: str) -> FunctionTool[Any, Any]:
    """The tool `todo`; each session's plan is kept in `<sessions_dir>/<session id>/TODO.md`."""

    @tool(effects=(), idempotent=True, timeout_s=30)
    def todo(
        todos: Annotated[
            str, Meta(description="The whole plan; leave it out to read the one that is kept.")
        ] = "",
        *,
        context: ToolContext,
    ) -> str:
        """Keep the plan of a task with more than three steps; it always replaces the whole plan.

        Markdown, one item a line: `- [ ]` open, `- [/]` in progress, `- [x]` done. Update it as soon as an item
        changes, read it again after an interruption, and do not stop while items are open.
        """
        file = Path(sessions_dir) / session_id(context.session_id) / "TODO.md"
        if not todos.strip():
            return _kept(file)
        if not _BOX.search(todos):
            raise ToolFailed(
                "there is no item in todos: write each as `- [ ] text`, `- [/] text` or `- [x] text`"
            )
        if len(todos) > MAX_CHARS:
            raise ToolFailed(
                f"todos has {len(todos):,} characters, more than {MAX_CHARS:,}: keep the plan short"
            )
        _put(file, todos.strip() + "\n")
        return f"{todos.strip()}\n\n{progress(todos)}"

    return todo


def progress(todos: str) -> str:
    """How far a plan is, and what comes next, in one line."""
    items = [(found["state"].lower(), found["text"].strip()) for found in _BOX.finditer(todos)]
    done = sum(state == "x" for state, _ in items)
    doing = sum(state == "/" for state, _ in items)
    plural = "s" * (len(items) != 1)
    counts = f"{len(items)} item{plural}: {done} done, {doing} in progress, {len(items) - done - doing} open"
    rest = sorted((state != "/", number) for number, (state, _) in enumerate(items) if state != "x")
    if not rest:
        return f"{counts}. The plan is complete."
    text = items[rest[0][1]][1]
    return f"{counts}. Go on with: {text[:80]}{'…' * (len(text) > 80)}"


def _kept(file: Path) -> str:
    try:
        text = file.read_text(encoding="utf-8").strip()
    except FileNotFoundError:
        return "no plan is kept yet: call todo with the whole plan to start one"
    return f"{text}\n\n{progress(text)}"


def _put(file: Path, text: str) -> None:
    """Write the file whole or not at all, readable by its owner alone."""
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    temporary = file.with_name(f".TODO.{secrets.token_hex(6)}.tmp")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as out:
            out.write(text)
            out.flush()
            os.fsync(descriptor)
        temporary.replace(file)
    finally:
        temporary.unlink(missing_ok=True)
