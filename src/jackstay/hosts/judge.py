"""One function a moment of a host's session: what is judged, remembered and said.

An adapter gathers what its host tells and asks here. Whatever goes wrong raises: the adapter has to block then.
"""

import os
from collections.abc import Callable
from pathlib import Path
from time import time
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from jackstay.core import wire
from jackstay.core.decision import ALLOW, Ask, Decision, Deny, strictest
from jackstay.core.facts import CallFacts
from jackstay.core.messages import JsonObject, ToolResult
from jackstay.core.phase import Checked, Phase
from jackstay.core.state import PolicyState
from jackstay.hosts.disarming import disarms
from jackstay.hosts.names import Known, Names, known
from jackstay.hosts.settings import HostSettings, settings_for
from jackstay.hosts.state import Change, HostStore, Question, Session
from jackstay.policy import anchor, discipline, own_tools, sessions
from jackstay.policy.data import BUILT_IN, PolicyData
from jackstay.policy.deeds import deed_of
from jackstay.policy.discipline import Preparation, Weighed
from jackstay.policy.gates import ANCHOR_SET, CLOSURE_CHECK, SET_PHASE
from jackstay.policy.guidance import SESSION_TEXT
from jackstay.policy.happenings import Blocked, Reminded, Warned
from jackstay.policy.moves import Outcome
from jackstay.policy.permissions import covering, judge
from jackstay.policy.phases import open_items
from jackstay.ward.audit import Audit, AuditRecord, record_of
from jackstay.ward.probe import facts_of

Answer = Literal["allow", "ask", "deny"]
MOST_NUDGES = 2
SUBAGENT = "a subagent works in its session's phase and cannot move it: report back, and let the session do it"


class HostCall(Struct, frozen=True, gc=False):
    """A call in the host's words. `cwd` is where it would run, `workspace` the project it belongs to."""

    id: str
    tool: str
    args: JsonObject
    cwd: str
    workspace: str = ""


class Verdict(Struct, frozen=True, gc=False):
    """What is answered to a call.

    `allow` is no objection; with `explicit` a rule or a person has permitted just this. `reason` is for the
    model, and for the person in `ask`. `question` is the id under which a refused call waits for a person.
    """

    answer: Answer
    reason: str = ""
    explicit: bool = False
    question: str = ""


class After(Struct, frozen=True, gc=False):
    """What the model should read beside a call's result, "" for nothing.

    `answer` is the result of one of the harness's own tools, None for every other call. `unjudged` tells that
    the call ran though nobody was asked about it.
    """

    text: str = ""
    answer: str | None = None
    unjudged: bool = False


class Judge:
    """The discipline for one host. `skill_call` is how its model loads a skill, with the name for `{}`.

    `protected` are the host's own places beside our home, which no call may change.
    """

    def __init__(
        self,
        home: Path | str,
        names: Names,
        *,
        skill_call: str | None = None,
        protected: tuple[str, ...] = (),
        clock: Callable[[], float] = time,
    ) -> None:
        self.home, self.names, self.store = Path(home), names, HostStore(home)
        self._audit, self._clock = Audit(home), clock
        self._protected = (str(self.home), *protected)
        self._data = replace(BUILT_IN, skill_call=skill_call)

    # -- a call ----------------------------------------------------------------------------------------

    def before_call(self, session: Session, call: HostCall, *, can_ask: bool) -> Verdict:
        """May this call run now? Copies away what it would change before it may.

        Without `can_ask` a question is kept for `jackstay host approve`, and the same call passes once when it
        is tried again after that. Raises StoreError, ConfigError, AuditFailed, OSError.
        """
        settings, data = self._settings(call.workspace or call.cwd)
        it = known(self.names, call.tool, call.args, call.id)
        if it.own:
            return self._own_call(session, it, settings, data)
        facts = self._facts(it, call.cwd)
        fixed = self._fixed(it, facts, settings)
        copied, look = Preparation(), ""
        for settled in (False, False, True):
            facts, look = self._copied(session, it, facts, (copied, call.workspace or call.cwd), look)
            with self.store.change(session, PolicyState(mode=settings.mode), at=self._clock()) as change:
                state = _in_mode(change, settings)
                # What will not run needs no copy; to read our own store here would end SQLite's hold on it.
                wanted = discipline.prepare(state, it.call, facts, data=data)
                wanted = Preparation() if isinstance(fixed, Deny) else wanted
                if not settled and not _covers(copied, wanted):
                    copied = wanted
                    continue
                weighed = discipline.weigh(state, it.call, facts, data=data)
                verdict = self._settle(change, session, (it, call), (weighed, fixed), can_ask=can_ask)
                if look and not change.state.look:
                    change.state = replace(change.state, look=look)
            break
        else:
            raise AssertionError("the last round settles")
        explicit = verdict.explicit or (
            verdict.answer == "allow" and covering(settings.rules, it.call, facts) is not None
        )
        self._record(session, it, weighed, (fixed, verdict))
        return replace(verdict, explicit=explicit)

    def aside(self, session: Session, call: HostCall) -> str | None:
        """Why a call that the host makes beside the conversation must not run; nothing is moved by it.

        None where nothing speaks against it. Raises like `before_call`.
        """
        settings, data = self._settings(call.workspace or call.cwd)
        it = known(self.names, call.tool, call.args, call.id)
        facts = self._facts(it, call.cwd)
        state = self.store.read(session)
        now = replace(state.policy if state is not None else PolicyState(), mode=settings.mode)
        said = strictest((discipline.decide(now, it.call, facts, data=data), self._fixed(it, facts, settings)))
        return _words(said) if isinstance(said, Ask | Deny) else None

    def _fixed(self, it: Known, facts: CallFacts, settings: HostSettings) -> Decision:
        """What does not depend on the session: the harness protects itself, and the permission rules."""
        why = disarms(it.call, deed_of(it.call, facts))
        own: Decision = Deny(why, "self-protection", "ask your user") if why is not None else ALLOW
        return strictest((own, judge(settings.rules, it.call, facts, default=settings.default, hitl=True)))

    def _settle(
        self,
        change: Change,
        session: Session,
        calls: tuple[Known, HostCall],
        said: tuple[Weighed, Decision],
        *,
        can_ask: bool,
    ) -> Verdict:
        """Answer the call and keep what comes of it."""
        weighed, fixed = said
        decision = fixed if isinstance(fixed, Deny) else strictest((weighed.decision, fixed))
        question, explicit = "", False
        if isinstance(decision, Ask):
            decision, question = self._asked(change, session, calls, decision, can_ask=can_ask)
            explicit = decision.severity == 0
        if weighed.decision.severity > 0 or decision.severity == 0:
            change.keep(weighed.state)  # a move comes with the call that makes it, a refusal with its words
        if decision.severity < 2:
            change.judged(calls[1].id, self._clock())
        return Verdict(_ANSWERS[decision.severity], _words(decision), explicit, question)

    def _asked(
        self, change: Change, session: Session, calls: tuple[Known, HostCall], ask: Ask, *, can_ask: bool
    ) -> tuple[Decision, str]:
        """What a person has said about just this call, or the question put where they will find it."""
        call = calls[1]
        name = _question_id(session, call)
        there = change.question(name)
        if there is not None and there.said:
            change.settle(name)
            if there.said == "approve":
                return ALLOW, ""
            return Deny(f"{there.person or 'your user'} said no. {there.remark}".strip(), "rejected"), ""
        if can_ask:
            return ask, ""
        from jackstay.ward.redact import redact, redact_value

        shown = wire.encode(redact_value(call.args)).decode("utf-8", "replace")[:2000]
        reason = redact(ask.reason)[:500]
        change.ask(Question(name, session.host, session.id, call.tool, shown, reason, self._clock()))
        way = f"waiting for approval {name}: after `jackstay host approve {name}` the same call runs once"
        return Deny(ask.reason, ask.rule, way), name

    def _own_call(self, session: Session, it: Known, settings: HostSettings, data: PolicyData) -> Verdict:
        if it.call.tool != ANCHOR_SET and self._is_subagent(session):
            return Verdict("deny", SUBAGENT)
        with self.store.change(session, PolicyState(mode=settings.mode), at=self._clock()) as change:
            weighed = discipline.weigh(_in_mode(change, settings), it.call, CallFacts(), data=data)
            change.keep(weighed.state)
            if weighed.decision.severity < 2:
                change.judged(it.call.call_id, self._clock())
        self._record(session, it, weighed, (ALLOW, Verdict("allow")))
        return Verdict(
            _ANSWERS[weighed.decision.severity], _words(weighed.decision), weighed.decision.severity == 0
        )

    def after_call(self, session: Session, call: HostCall, *, is_error: bool = False) -> After:
        """Take in that a call has run; not for one that did not. Raises like `before_call`."""
        settings, data = self._settings(call.workspace or call.cwd)
        it = known(self.names, call.tool, call.args, call.id)
        checked = None
        if it.call.tool == CLOSURE_CHECK and it.own:
            checked = self._checked(session, it, call, data)
        facts = replace(self._facts(it, call.cwd), backup="taken", checked=checked)
        answer: str | None = None
        with self.store.change(session, PolicyState(mode=settings.mode), at=self._clock()) as change:
            unjudged = not change.was_judged(call.id)
            policy = _in_mode(change, settings)
            if it.own and not unjudged:
                answered = _own_answer(policy, it, facts, data)
                answer, outcome = answered.text, Outcome(answered.state, answered.happenings)
            else:
                result = ToolResult(call.id, "", is_error)
                outcome = discipline.observe(policy, it.call, facts, result, data=data)
                outcome = outcome.then(
                    discipline.anchored(outcome.state, it.call, facts, result, at=self._clock())
                )
            change.keep(outcome.state)
            said = [one.text for one in outcome.happenings if isinstance(one, Reminded)]
            said += _news(change, data)
        if unjudged:
            self._audit.append(self._unjudged(session, it, call))
            said.insert(
                0, f"{call.tool} ran without having been judged: tell your user; `jackstay doctor` says why"
            )
        return After("\n\n".join(said), answer, unjudged)

    # -- words -----------------------------------------------------------------------------------------

    def session_started(self, session: Session, workspace: str, *, known_before: bool = False) -> str:
        """A session begins, or goes on where the host knew it before; what its model should read.

        A session that the host knew and that has no state here goes on as a lost one.
        """
        settings, data = self._settings(workspace)
        with self.store.change(session, PolicyState(mode=settings.mode), at=self._clock()) as change:
            policy = _in_mode(change, settings)
            if change.new and known_before:
                change.keep(sessions.lost(policy, "there is no record of this session", data=data))
            said = [] if settings.mode == "off" else [_session_text(policy, data)]
            said += _all(change, data)
        return "\n\n".join(said)

    def user_said(self, session: Session, text: str, workspace: str, *, by: str = "user") -> str:
        """A person wrote this (never for what a host writes in their name); what the model should read."""
        settings, data = self._settings(workspace)
        with self.store.change(session, PolicyState(mode=settings.mode), at=self._clock()) as change:
            outcome = discipline.hear(_in_mode(change, settings), text, by=by, data=data)
            change.state = replace(change.state, policy=outcome.state, nudges=0)
            said = [one.text for one in outcome.happenings if isinstance(one, Reminded | Warned)]
            said += _all(change, data)
        return "\n\n".join(said)

    def assistant_said(self, session: Session, text: str, workspace: str) -> None:
        """The model has written this: its markers count, unless a subagent wrote it."""
        if session.agent or not text or "[" not in text or self._is_subagent(session):
            return
        settings, data = self._settings(workspace)
        with self.store.change(session, PolicyState(mode=settings.mode), at=self._clock()) as change:
            change.keep(discipline.note(_in_mode(change, settings), text, data=data).state)

    def read_until(self, session: Session, offset: int, echo: str) -> None:
        """The host's transcript was read up to `offset`; `echo` is a text that has still to turn up in it."""
        with self.store.change(session, PolicyState(mode="strict"), at=self._clock()) as change:
            change.state = replace(change.state, read_to=offset, echo=echo)

    def guidance(self, session: Session, workspace: str) -> str:
        """What the model should read with its next turn, "" for nothing; counts as delivered."""
        settings, data = self._settings(workspace)
        with self.store.change(session, PolicyState(mode=settings.mode), at=self._clock()) as change:
            _in_mode(change, settings)
            return "\n\n".join(_all(change, data))

    def keeps_going(self, session: Session, workspace: str) -> str | None:
        """Why the model must not stop yet: the closing checklist has open items. At most twice a user turn."""
        settings, data = self._settings(workspace)
        with self.store.change(session, PolicyState(mode=settings.mode), at=self._clock()) as change:
            policy = _in_mode(change, settings)
            left = open_items(policy.phase, data.required) if policy.phase.phase is Phase.CLOSING else ()
            if not left or policy.mode in ("off", "observe") or change.state.nudges >= MOST_NUDGES:
                return None
            change.state = replace(change.state, nudges=change.state.nudges + 1)
            return "\n\n".join([f"The closing checklist is open: {', '.join(left)}.", *_all(change, data)])

    # -- a person's commands ---------------------------------------------------------------------------

    def approve_plan(self, session: Session, *, by: str) -> str:
        """A person approves the plan; what came of it, in words."""
        with self.store.change(session, PolicyState(mode="strict"), at=self._clock()) as change:
            outcome = sessions.approve_plan(change.state.policy, by=by, data=self._data)
            change.keep(outcome.state)
        said = [one.text for one in outcome.happenings if isinstance(one, Reminded | Warned)]
        return " ".join(said) or f"the phase is {outcome.state.phase.phase}"

    def force_phase(self, session: Session, phase: Phase, reason: str, *, by: str) -> str:
        """A person moves the phase, whatever the table says."""
        with self.store.change(session, PolicyState(mode="strict"), at=self._clock()) as change:
            outcome = sessions.force_phase(change.state.policy, phase, reason, by=by, data=self._data)
            change.keep(outcome.state)
        return f"the phase is {outcome.state.phase.phase}"

    # -- what it takes ---------------------------------------------------------------------------------

    def _settings(self, workspace: str) -> tuple[HostSettings, PolicyData]:
        settings = settings_for(self.home, Path(workspace or "/"))
        return settings, replace(self._data, language=settings.language)

    def _is_subagent(self, session: Session) -> bool:
        return bool(session.agent) or self.store.subagent_of(session) is not None

    def _facts(self, it: Known, cwd: str) -> CallFacts:
        return facts_of(it.call, it.spec, cwd, os.path.expanduser("~"), self._protected)  # noqa: PTH111 - a text

    def _copied(
        self, session: Session, it: Known, facts: CallFacts, wanted: tuple[Preparation, str], look: str
    ) -> tuple[CallFacts, str]:
        """The facts once what is wanted was copied away, and the machine's look from before the task."""
        preparation, workspace = wanted
        if not preparation.targets and not preparation.snapshot:
            return replace(facts, backup="none" if facts.backup == "impossible" else facts.backup), look
        from jackstay.hosts.keeping import keep_copies, look_now

        facts = keep_copies(self.home, facts, preparation, workspace, (session.id, it.call.tool, self._clock()))
        known_look = self.store.read(session)
        if not look and (known_look is None or not known_look.look):
            look = look_now(workspace)
        return facts, look

    def _checked(self, session: Session, it: Known, call: HostCall, data: PolicyData) -> Checked | None:
        from jackstay.hosts.keeping import check_item

        state = self.store.read(session)
        if state is None:
            return None
        return check_item(state.policy, it.call.args, call.workspace or call.cwd, state.look, data)

    # -- the record ------------------------------------------------------------------------------------

    def _record(self, session: Session, it: Known, weighed: Weighed, said: tuple[Decision, Verdict]) -> None:
        """Every refusal and every question is written down. Raises AuditFailed when it cannot be."""
        fixed, verdict = said
        at, name = self._clock(), f"{session.host}:{session.id}"
        blocked = [one for one in weighed.happenings if isinstance(one, Blocked)]
        records = [record_of(one, it.call, session=name, rule=f"gate:{one.gate}", at=at) for one in blocked]
        if not isinstance(fixed, Ask | Deny) or verdict.answer == "allow":
            return self._audit.append(*records)
        phase = weighed.state.phase.phase
        one = Blocked("permission", phase, it.call.tool, fixed.reason, verdict.answer)
        return self._audit.append(*records, record_of(one, it.call, session=name, rule=fixed.rule, at=at))

    def _unjudged(self, session: Session, it: Known, call: HostCall) -> AuditRecord:
        blocked = Blocked("unjudged", Phase.NO_TASK, call.tool, "the call ran and nobody was asked", "allow")
        return record_of(
            blocked, it.call, session=f"{session.host}:{session.id}", rule="second line", at=self._clock()
        )


_ANSWERS: tuple[Answer, Answer, Answer] = ("allow", "ask", "deny")


def _words(decision: Decision) -> str:
    match decision:
        case Deny(reason=reason, instead=instead) if instead and instead not in reason:
            return f"{reason}. {instead}"
        case Ask(reason=reason) | Deny(reason=reason):
            return reason
        case _:
            return ""


def _in_mode(change: Change, settings: HostSettings) -> PolicyState:
    policy = change.state.policy
    if policy.mode != settings.mode:
        change.keep(replace(policy, mode=settings.mode))
    return change.state.policy


def _covers(copied: Preparation, wanted: Preparation) -> bool:
    return set(wanted.targets) <= set(copied.targets) and copied.snapshot >= wanted.snapshot


def _own_answer(policy: PolicyState, it: Known, facts: CallFacts, data: PolicyData) -> own_tools.Answered:
    if it.call.tool == SET_PHASE:
        return own_tools.set_phase(policy, it.call.args, data=data)
    if it.call.tool == CLOSURE_CHECK:
        return own_tools.closure_check(policy, it.call.args, checked=facts.checked, data=data)
    return own_tools.anchor_set(policy, it.call.args)


def _session_text(policy: PolicyState, data: PolicyData) -> str:
    return SESSION_TEXT.get(data.language or policy.language or "en", SESSION_TEXT["en"])


def _news(change: Change, data: PolicyData) -> list[str]:
    """What is new since the model read its guidance last."""
    policy = change.state.policy
    if change.state.told == policy.phase.phase and not policy.phase.notices and not policy.phase.wanted:
        return []
    return _all(change, data, block=False)


def _all(change: Change, data: PolicyData, *, block: bool = True) -> list[str]:
    policy = change.state.policy
    if policy.mode == "off":
        return []
    said = [anchor.block(policy.anchor) if block else None, discipline.guidance(policy, data=data)]
    change.state = replace(
        change.state, policy=discipline.told(policy, data=data), told=policy.phase.phase.value
    )
    return [text for text in said if text]


def _question_id(session: Session, call: HostCall) -> str:
    from hashlib import sha256

    data = wire.canonical([session.host, session.id, session.agent, call.tool, call.args, call.cwd])
    return sha256(data).hexdigest()[:16]
