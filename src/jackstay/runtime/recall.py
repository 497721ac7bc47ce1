"""Reads back what was cut out of the context: the whole text of an earlier observation."""

from collections.abc import Callable

from jackstay.core.events import ToolCallEndEvent
from jackstay.core.messages import JsonObject
from jackstay.core.tools import READS, ToolSpec
from jackstay.engine.ports import SessionStore, ToolContext, ToolOutput

PAGE_CHARS = 20_000
SPEC = ToolSpec(
    "recall",
    "Read back the whole result of an earlier call that was shortened or left out of this conversation.",
    {
        "type": "object",
        "properties": {
            "call_id": {
                "type": "string",
                "description": "the id of the call, as the text names it",
            },
            "offset": {"type": "integer", "minimum": 0, "description": "from which character on (default 0)"},
        },
        "required": ["call_id"],
        "additionalProperties": False,
    },
    effects=READS,
    idempotent=True,
)


class RecallTool:
    """`recall(call_id, offset?)`, a page at a time."""

    def __init__(self, store_of: Callable[[str], SessionStore]) -> None:
        """`store_of` gives the store of a session: they need not all be in the same."""
        self._store_of = store_of

    @property
    def spec(self) -> ToolSpec:
        """What the model is told of it."""
        return SPEC

    def check(self, args: JsonObject) -> str | None:
        """Which argument is missing, unknown or of the wrong type."""
        if not isinstance(args.get("call_id"), str):
            return "call_id: expected a text"
        offset = args.get("offset", 0)
        if isinstance(offset, bool) or not isinstance(offset, int) or offset < 0:
            return "offset: expected a whole number from 0 up"
        unknown = set(args) - {"call_id", "offset"}
        return f"there is no argument {min(unknown)!r}; known are call_id and offset" if unknown else None

    async def run(self, args: JsonObject, context: ToolContext) -> ToolOutput:
        """One page of the text, and how to read on."""
        call_id, offset = args["call_id"], args.get("offset", 0)
        text = self._text(context.session_id, call_id)
        if text is None:
            return ToolOutput(f"nothing is stored for call {call_id!r} in this session", is_error=True)
        page = text[offset : offset + PAGE_CHARS]
        end = offset + len(page)
        rest = f"; read on with offset {end}" if end < len(text) else ""
        return ToolOutput(f"[{call_id}: characters {offset} to {end} of {len(text)}{rest}]\n{page}")

    def _text(self, session_id: str, call_id: str) -> str | None:
        store = self._store_of(session_id)
        kept = store.artifact(session_id, call_id)
        if kept is not None:
            return kept
        ends = (e for e in store.events(session_id) if isinstance(e, ToolCallEndEvent))
        found = [event.text for event in ends if event.call_id == call_id]
        return found[-1] if found else None
