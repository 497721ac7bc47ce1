"""The context anchor as a Hermes plugin of its own: it shows and keeps, and refuses nothing."""

import json
import logging
import os
from dataclasses import dataclass
from pathlib import Path
from time import time
from typing import Any

from msgspec.structs import replace

from jackstay.core.messages import JsonObject, ToolResult
from jackstay.core.state import PolicyState
from jackstay.hosts.hermes_host import directory_of, failed, in_review
from jackstay.hosts.hermes_names import HERMES, HOST, told_apart
from jackstay.hosts.names import known
from jackstay.hosts.state import HostStore, Session
from jackstay.policy import anchor as anchors
from jackstay.policy import discipline
from jackstay.policy.own_tools import anchor_set
from jackstay.ward.probe import facts_of

_LOG = logging.getLogger("jackstay.hosts.hermes")


@dataclass
class Beside:
    """Is `work-principles` in the same process? It keeps the anchor with everything else then."""

    discipline: bool = False


BESIDE = Beside()


class HermesAnchor:
    """The hooks of the plugin `context-anchor`. The anchor is kept with the session's state."""

    def __init__(self, home: Path | str) -> None:
        self._store, self._home = HostStore(home), str(home)

    def pre_llm_call(self, session_id: str = "", **_: Any) -> JsonObject | None:
        """The anchor's block; nothing while it is empty, or when it cannot be read."""
        try:
            if not session_id or in_review():
                return None
            state = self._store.read(Session(HOST, session_id))
            text = anchors.block(state.policy.anchor) if state is not None else None
        except Exception as problem:
            _LOG.error("the anchor cannot be read: problem=%r", problem)
            return None
        return {"context": text} if text else None

    def post_tool_call(self, tool_name: str = "", args: Any = None, session_id: str = "", **told: Any) -> None:
        """Follow a call that ran: last tool, current task, annotations in its shell comments."""
        status = str(told.get("status") or "ok")
        try:
            if BESIDE.discipline or not session_id or status in ("blocked", "cancelled") or in_review():
                return
            name, given = told_apart(tool_name, args if isinstance(args, dict) else {})
            it = known(HERMES, name, given, str(told.get("tool_call_id") or "call"))
            if it.own:
                return
            where = directory_of(str(told.get("task_id") or ""))
            facts = facts_of(it.call, it.spec, where, os.path.expanduser("~"), (self._home,))  # noqa: PTH111 - a text
            result = ToolResult(it.call.call_id, "", failed(status, told.get("result")))
            with self._store.change(Session(HOST, session_id), _start(), at=time()) as change:
                outcome = discipline.anchored(change.state.policy, it.call, facts, result, at=time())
                change.keep(outcome.state)
        except Exception as problem:
            _LOG.error("the anchor could not follow a call: tool=%s problem=%r", tool_name, problem)

    def anchor_set(self, args: Any, session_id: str = "", **_: Any) -> str:
        """The handler of the tool of this name."""
        try:
            with self._store.change(Session(HOST, session_id), _start(), at=time()) as change:
                answered = anchor_set(change.state.policy, args if isinstance(args, dict) else {})
                change.keep(answered.state)
        except Exception as problem:
            return json.dumps({"error": f"the anchor could not be kept: {problem}"}, ensure_ascii=False)
        return json.dumps({"error" if answered.is_error else "result": answered.text}, ensure_ascii=False)


def _start() -> PolicyState:
    """A session that only the anchor knows: the discipline takes its mode from the settings when it comes."""
    local = anchors.clean(os.uname().nodename.partition(".")[0], 60)
    fresh = PolicyState(mode="off")
    return replace(fresh, anchor=replace(fresh.anchor, local=local, host=local))
