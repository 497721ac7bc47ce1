"""What waits for a person in a session, and how the person answers: the seed's HITL functions (§4.4)."""

from collections.abc import Mapping

from msgspec.structs import replace

from jackstay.core.approvals import HITLDecision, HITLTask
from jackstay.core.errors import (
    AlreadyDecided,
    AmbiguousCall,
    AmbiguousTool,
    CallChanged,
    CallClosed,
    Conflict,
    JackstayError,
    TooLate,
    UnknownCall,
)
from jackstay.core.messages import JsonObject, ToolResult
from jackstay.engine import texts
from jackstay.engine.ports import Posted
from jackstay.runtime.commands import person
from jackstay.runtime.session import AgentSession

SHOWN = 200  # characters of what became of a call that an error repeats


class HITL:
    """Functions over a session. A decision is stored at once and carried out when the session is resumed."""

    @staticmethod
    def get_pending_tasks(session: AgentSession) -> tuple[HITLTask, ...]:
        """The calls that wait, in the order the model asked for them; empty when none does."""
        return session.pending_tasks()

    @staticmethod
    def get_pending_task(session: AgentSession) -> HITLTask | None:
        """The first call that waits."""
        return next(iter(session.pending_tasks()), None)

    @staticmethod
    def is_hitl(session: AgentSession) -> bool:
        """Does any call wait?"""
        return bool(session.pending_tasks())

    @staticmethod
    def get_pending_task_by_call_uuid(session: AgentSession, call_uuid: str) -> HITLTask | None:
        """The waiting call of this id, or key; the first one where subagents share an id."""
        return next((t for t in session.pending_tasks() if call_uuid in (t.call_id, t.key)), None)

    @staticmethod
    def get_pending_tasks_by_tool_name(session: AgentSession, tool_name: str) -> tuple[HITLTask, ...]:
        """The waiting calls of this tool."""
        return tuple(task for task in session.pending_tasks() if task.tool_name == tool_name)

    @staticmethod
    def get_pending_task_by_tool_name(session: AgentSession, tool_name: str) -> HITLTask | None:
        """The waiting call of this tool. Raises AmbiguousTool when there are several."""
        found = HITL.get_pending_tasks_by_tool_name(session, tool_name)
        if len(found) > 1:
            raise AmbiguousTool(tool_name, tuple(task.call_id for task in found))
        return next(iter(found), None)

    @staticmethod
    def get_decision(session: AgentSession, task: HITLTask | str) -> HITLDecision | None:
        """The decision that was submitted about a call and is not carried out yet."""
        place, call_id = _place(session, task if isinstance(task, str) else task.key)
        return place.decisions().get(call_id)

    @staticmethod
    def submit(
        session: AgentSession, task: HITLTask | str, decision: HITLDecision, *, by: str | None = None
    ) -> None:
        """Answer a waiting call, named by its task, call_id or key. Stored at once, with author and time.

        Given the task, the decision is bound to what that shows. Raises UnknownCall when no such call ever
        waited here, CallClosed when it waits no more, AlreadyDecided when somebody was first, CallChanged when
        the task shows something else than what waits now, TooLate after its deadline.
        """
        if isinstance(task, HITLTask):
            decision = replace(decision, digest=task.digest)
            HITL.submit_all(session, {task.key: decision}, by=by)
        else:
            HITL.submit_all(session, {task: decision}, by=by)

    @staticmethod
    def submit_all(
        session: AgentSession, decisions: Mapping[str, HITLDecision], *, by: str | None = None
    ) -> None:
        """Answer several waiting calls by call_id, or by key (`SESSION/CALL_ID`) where subagents share one.

        All or none: nothing is stored when one answer is refused. Where the calls wait in several sessions, of
        subagents, that somebody else answers at the same moment holds back only what waits in the same one.
        Raises what `submit` raises.
        """
        author, left = by or person(), dict(decisions)
        while left:
            try:
                for place, version, items in _signed(session, left, author):
                    place.store.post(place.session_id, *items.values(), expected=version)
                    left = {key: decision for key, decision in left.items() if key not in items}
            except AlreadyDecided as problem:
                raise AlreadyDecided(session.session_id, problem.call_id, others=len(left) - 1) from None
            except Conflict:
                continue  # the session moved on in between: look again at what waits

    @staticmethod
    def approve(
        session: AgentSession,
        task: HITLTask | str,
        *,
        always_allow: bool = False,
        comment: str | None = None,
        modified_args: JsonObject | None = None,
    ) -> None:
        """Let a call run."""
        decision = HITLDecision.approve(always_allow, comment=comment, modified_args=modified_args)
        HITL.submit(session, task, decision)

    @staticmethod
    def reject(session: AgentSession, task: HITLTask | str, comment: str | None = None) -> None:
        """Turn a call down."""
        HITL.submit(session, task, HITLDecision.reject(comment))

    @staticmethod
    def skip(session: AgentSession, task: HITLTask | str, comment: str | None = None) -> None:
        """Let the model go on without the call."""
        HITL.submit(session, task, HITLDecision.skip(comment))

    @staticmethod
    def approve_all(session: AgentSession) -> None:
        """Let every waiting call run."""
        HITL.submit_all(
            session,
            {t.key: replace(HITLDecision.approve(), digest=t.digest) for t in session.pending_tasks()},
        )

    @staticmethod
    def reject_all(session: AgentSession, comment: str | None = None) -> None:
        """Turn every waiting call down."""
        HITL.submit_all(session, {task.key: HITLDecision.reject(comment) for task in session.pending_tasks()})


def _place(session: AgentSession, key: str) -> tuple[AgentSession, str]:
    """The session a call waits in, this one or a subagent's, and its id there. Raises AmbiguousCall."""
    tasks = session.waiting_tasks()
    found = [task for task in tasks if key in (task.key, task.call_id)]
    if len(found) > 1:
        raise AmbiguousCall(key, tuple(task.key for task in found))
    if not found or not found[0].path:
        return session, key
    return AgentSession(found[0].path[-1], session.store, now=session.now), found[0].call_id


def _signed(
    session: AgentSession, decisions: Mapping[str, HITLDecision], author: str
) -> list[tuple[AgentSession, int, dict[str, Posted]]]:
    """The decisions as they are stored, session by session with its version, once all of them may be taken."""
    now, places = session.now(), [(key, *_place(session, key)) for key in decisions]
    signed: list[tuple[AgentSession, int, dict[str, Posted]]] = []
    for name in dict.fromkeys(place.session_id for _, place, _ in places):
        here = [(key, call_id) for key, place, call_id in places if place.session_id == name]
        place = next(place for _, place, _ in places if place.session_id == name)
        version, waiting = place.version, {t.call_id: t for t in place.pending_tasks() if not t.path}
        items: dict[str, Posted] = {}
        for key, call_id in here:
            decision = decisions[key]
            _check(place, waiting, call_id, decision, now)
            shown = decision.digest or waiting[call_id].digest
            answer = replace(decision, by=decision.by or author, at=now, digest=shown)
            items[key] = Posted(0, call_id, answer)
        signed.append((place, version, items))
    return signed


def _check(
    session: AgentSession,
    waiting: Mapping[str, HITLTask],
    call_id: str,
    decision: HITLDecision,
    now: float,
) -> None:
    """Raises the error that says why this decision cannot be taken, if it cannot."""
    task, name = waiting.get(call_id), session.session_id
    if task is None:
        raise why_not(session, call_id, tuple(one.key for one in session.pending_tasks()))
    if decision.digest and (what := texts.changed(decision.digest, task.digest)):
        raise CallChanged(name, call_id, what)
    if task.deadline is not None and task.expired(now):
        raise TooLate(name, call_id, now - task.deadline)


def why_not(session: AgentSession, call_id: str, waiting: tuple[str, ...]) -> JackstayError:
    """Why no decision can be taken about a call that is none of those that wait."""
    name = session.session_id
    if call_id in session.decisions():
        return AlreadyDecided(name, call_id)
    became = _became(session, call_id)
    return CallClosed(name, call_id, became) if became else UnknownCall(name, call_id, waiting)


def _became(session: AgentSession, call_id: str) -> str:
    """What the model read of the call, in short; "" where this session never had such a call."""
    transcript = session.messages
    if transcript.call(call_id) is None:
        return ""
    for index in range(len(transcript) - 1, -1, -1):
        for part in transcript[index].parts:
            if isinstance(part, ToolResult) and part.call_id == call_id:
                return " ".join(part.text.split())[:SHOWN] or "it ran, without a word"
    return "it is being carried out"
