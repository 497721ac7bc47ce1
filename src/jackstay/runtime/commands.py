"""What may a person command a session from outside, and how does it get there?"""

import getpass
import time
from collections.abc import Iterable

from jackstay.core.errors import AlreadyDecided, JackstayError, UnknownSession
from jackstay.core.phase import Phase
from jackstay.core.state import RunState
from jackstay.engine.ports import Posted
from jackstay.policy import checklist
from jackstay.policy.data import BUILT_IN
from jackstay.policy.markers import Marker, markers
from jackstay.policy.secrets import redact
from jackstay.runtime.session import AgentSession

# Keys hold a character that no call id has. A plan is approved once; phases set one after the other all count.
APPROVE_PLAN = "command/approve_plan"
FORCE_PHASE = "command/force_phase"
LET_STAY = "command/let_stay"


class NothingToLetStay(JackstayError):
    """What was named is no leftover of the session; `why` says what is."""

    def __init__(self, session_id: str, why: str) -> None:
        self.session_id, self.why = session_id, why
        super().__init__(
            f"session {session_id!r}: {why}; `jackstay phase show {session_id}` shows the checklist"
        )


class NoPlanWaits(JackstayError):
    """There is nothing to approve; `why` says how the session stands instead."""

    def __init__(self, session_id: str, why: str) -> None:
        self.session_id, self.why = session_id, why
        super().__init__(
            f"no plan waits for approval in session {session_id!r}: {why}; `jackstay pending` shows what waits"
        )


class PlanAlreadyApproved(JackstayError):
    """The approval is stored and waits to be taken up."""

    def __init__(self, session_id: str) -> None:
        self.session_id = session_id
        super().__init__(
            f"the plan of session {session_id!r} is approved already: "
            f"`jackstay resume {session_id}` goes on with it"
        )


def plan_waits(session: AgentSession) -> bool:
    """Is a plan the last word of the session, and has nobody approved it yet?

    Where single calls were approved and carried out since the plan was put, the agent waits for nothing.
    """
    stored = session.store.head(session.session_id)
    if stored is None or stored.state.parent is not None or _why_not(stored.state) or _is_approved(session):
        return False  # to a subagent's plan its parent answers
    return Marker.PLAN in markers(stored.state.text) or not stored.state.policy.phase.acted


def plan_of(state: RunState) -> str:
    """The plan in the agent's words: the last thing it said, without secrets. Needs the messages."""
    said = (message.text for message in reversed(list(state.transcript)) if message.role == "assistant")
    return redact(next((text for text in said if text), ""))


def approve_plan(session: AgentSession, *, by: str | None = None, comment: str | None = None) -> None:
    """Approve the plan that waits; stored at once, taken up by the session's next request.

    The approval is of the plan as it is stored now: it counts for nothing once the session has moved on.
    `comment` goes to the agent as the person's words. Raises UnknownSession, NoPlanWaits, PlanAlreadyApproved.
    """
    state = plan_to_approve(session)
    data = {"by": by or person(), "at": time.time(), "seq": state.seq, "comment": comment or ""}
    try:
        session.store.post(session.session_id, Posted(0, APPROVE_PLAN, command="approve_plan", data=data))
    except AlreadyDecided:
        raise PlanAlreadyApproved(session.session_id) from None


def plan_to_approve(session: AgentSession) -> RunState:
    """The state in which a plan waits. Raises UnknownSession, NoPlanWaits, PlanAlreadyApproved."""
    state = _stored(session)
    why_not = _why_not(state)
    if why_not:
        raise NoPlanWaits(session.session_id, why_not)
    if _is_approved(session):
        raise PlanAlreadyApproved(session.session_id)
    return state


def set_phase(session: AgentSession, phase: Phase, reason: str, *, by: str | None = None) -> None:
    """Move the session to a phase, whatever the table says; taken up by its next request.

    Raises UnknownSession.
    """
    _stored(session)
    data = {"by": by or person(), "at": time.time(), "phase": phase.value, "reason": reason}
    key = f"{FORCE_PHASE}/{time.time_ns()}"
    session.store.post(session.session_id, Posted(0, key, command="force_phase", data=data))


def let_stay(session: AgentSession, subjects: Iterable[str], reason: str, *, by: str | None = None) -> None:
    """Let leftovers stay that the closing checks have found; taken up by the session's next request.

    A subject is what a finding names (a path, `pid:N`, `ssh:HOST`), or an open item's id, which is ticked in
    the person's name. Never to be offered to an agent. Raises UnknownSession, NothingToLetStay.
    """
    state, named = _stored(session), list(dict.fromkeys(subjects))
    who, phase = by or person(), state.policy.phase
    for subject in named:
        done = checklist.let_stay(phase, subject, reason, by=who, required=BUILT_IN.required)
        if done.problem:
            raise NothingToLetStay(session.session_id, done.problem)
        phase = done.state
    data = {"by": who, "at": time.time(), "subjects": named, "reason": reason}
    key = f"{LET_STAY}/{time.time_ns()}"
    session.store.post(session.session_id, Posted(0, key, command="let_stay", data=data))


def commands(session: AgentSession) -> tuple[Posted, ...]:
    """What was commanded and is not taken up yet, oldest first."""
    return tuple(item for item in session.store.inbox(session.session_id) if item.command is not None)


def person() -> str:
    """Who acts here, by the name the system knows them under."""
    try:
        return getpass.getuser()
    except (KeyError, OSError, ImportError):
        return "unknown"


def _why_not(state: RunState) -> str:
    """Why no plan can be approved as the session stands; "" where one can."""
    policy = state.policy
    if policy.mode not in ("strict", "guided"):
        return f"its discipline is {policy.mode}, so nothing waits for a plan"
    if policy.phase.phase is not Phase.PLANNING:
        return f"its phase is {policy.phase.phase}"
    if not policy.phase.proposed:
        return "the agent plans, but has put no plan yet"
    return "" if state.outcome is not None else "its run is under way, or was interrupted"


def _is_approved(session: AgentSession) -> bool:
    return any(item.key == APPROVE_PLAN for item in commands(session))


def _stored(session: AgentSession) -> RunState:
    found = session.store.head(session.session_id)
    if found is None:
        raise UnknownSession(session.session_id)
    return found.state
