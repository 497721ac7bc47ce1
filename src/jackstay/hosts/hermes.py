"""How does Hermes ask the discipline? Its hooks, each a moment of the judge; what fails refuses the call."""

import json
import logging
from collections import OrderedDict
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from threading import Lock
from typing import Any

from jackstay.config.paths import home as default_home
from jackstay.core.errors import StoreError
from jackstay.core.messages import JsonObject
from jackstay.core.phase import Phase
from jackstay.core.tools import ToolSpec
from jackstay.hosts.hermes_anchor import BESIDE, HermesAnchor
from jackstay.hosts.hermes_host import can_ask, continues, directory_of, failed, in_review, project_of, show
from jackstay.hosts.hermes_names import HERMES, HOST, SKILLS, by_a_person, told_apart, words_of
from jackstay.hosts.judge import HostCall, Judge
from jackstay.hosts.state import Session
from jackstay.policy import anchor as anchors
from jackstay.policy import discipline as policy
from jackstay.policy.own_tools import ANCHOR_SET_SPEC, CLOSURE_CHECK_SPEC, SET_PHASE_SPEC
from jackstay.policy.paths import within
from jackstay.ward.resolve import canonical

_LOG = logging.getLogger("jackstay.hosts.hermes")
_MOST = 4096  # entries of what is remembered between two hooks
Hook = Callable[..., Any]


class _Last(OrderedDict[str, Any]):
    """The newest entries; the oldest go when there are too many."""

    def __setitem__(self, key: str, value: Any) -> None:
        super().__setitem__(key, value)
        while len(self) > _MOST:
            self.popitem(last=False)


class Hermes:
    """The hooks of the plugin `work-principles` in one Hermes process."""

    def __init__(self, judge: Judge) -> None:
        self._judge = judge
        self._lock = Lock()
        self._by_task, self._projects, self._passed, self._news = _Last(), _Last(), _Last(), _Last()
        self._spoken = _Last()  # sessions a person has spoken in

    # -- calls -----------------------------------------------------------------------------------------

    def pre_tool_call(self, tool_name: str = "", args: Any = None, **told: Any) -> JsonObject | None:
        """Refuse, have Hermes ask its user, or say nothing. Never raises: Hermes would run the call."""
        try:
            said = self._judged(tool_name, args, told)
        except BaseException as problem:  # whatever it is, the call must not run
            said = _refusal(_why(problem))
        if said is not None and said["action"] == "block":
            show(f"{tool_name} was refused: {said['message']}")
        return said

    def _judged(self, tool: str, args: Any, told: JsonObject) -> JsonObject | None:
        session, call = self._call(tool, args, told)
        if self._ours(call):
            return _refusal(f"{self._judge.home} is the harness's own: `jackstay` shows people what is in it")
        if in_review():
            return self._reviewed(session, call)
        subagent = told.get("platform") == "subagent" or self._judge.store.subagent_of(session) is not None
        verdict = self._judge.before_call(session, call, can_ask=can_ask() and not subagent)
        if verdict.answer == "deny":
            return _refusal(verdict.reason)
        self._passed[call.id] = _digest(tool, args)
        if verdict.answer == "ask":
            return {
                "action": "approve",
                "message": verdict.reason,
                "rule_key": f"jackstay:{self._passed[call.id]}",
            }
        return None

    def _ours(self, call: HostCall) -> bool:
        """Would Hermes open a file of our home in its own process? SQLite loses its locks by that."""
        home = canonical(str(self._judge.home), "/", "/")
        named = (call.args.get(name) for name in ("path", "file_path", "image_url", "output_path"))
        return call.tool != "search_files" and any(
            within(canonical(path, call.cwd, str(Path.home())), home) for path in named if isinstance(path, str)
        )

    def _reviewed(self, session: Session, call: HostCall) -> JsonObject | None:
        """A call of Hermes's background review: judged by the session's state, which it cannot move."""
        reason = self._judge.aside(session, call)
        if reason is not None:
            return _refusal(reason)
        self._passed[call.id] = _digest(call.tool, call.args)
        return None

    def tool_execution(self, next_call: Hook, tool_name: str = "", args: Any = None, **told: Any) -> Any:
        """The second line: a call that nobody judged, or that was changed after it was, is judged here."""
        try:
            _, call = self._call(tool_name, args, told)
            refused = None
            if self._passed.get(call.id) != _digest(tool_name, args):
                found = self._judged(tool_name, args, told)
                refused = str(found["message"]) if found is not None else None
        except BaseException as problem:  # Hermes would go on without this layer
            refused = _why(problem)
        return next_call(args) if refused is None else json.dumps({"error": refused}, ensure_ascii=False)

    def post_tool_call(self, tool_name: str = "", args: Any = None, **told: Any) -> None:
        """Take in what a call has done. Blocked calls have done nothing."""
        try:
            session, call = self._call(tool_name, args, told)
            judged = self._passed.pop(call.id, None)
            status = str(told.get("status") or "ok")
            if status == "blocked" or (status != "ok" and judged is None) or in_review():
                return
            if call.tool in _OWN:  # its handler has done it
                return
            after = self._judge.after_call(session, call, is_error=failed(status, told.get("result")))
            self._tell(session, after.text)
        except Exception as problem:
            _LOG.error("a call could not be taken in: tool=%s problem=%r", tool_name, problem)

    def transform_tool_result(self, result: Any = None, **told: Any) -> str | None:
        """The result, with what changed meanwhile below it; a program that reads a result gets it as it is."""
        if not told.get("tool_call_id") or not isinstance(result, str):
            return None
        try:
            news = "" if in_review() else self._taken(self._session(told))
        except Exception as problem:
            _LOG.error("news could not be told: problem=%r", problem)
            return None
        return f"{result}\n\n{news}" if news else None

    def own_tool(self, name: str) -> Hook:
        """The handler of one of the discipline's own tools."""

        def handle(args: Any, **told: Any) -> str:
            session, call = self._call(name, args, told)
            after = self._judge.after_call(session, call)
            text = "\n\n".join(filter(None, [after.answer or after.text, after.text if after.answer else ""]))
            return json.dumps({"result": text}, ensure_ascii=False)

        return handle

    # -- words -----------------------------------------------------------------------------------------

    def on_session_start(self, **told: Any) -> None:
        """A session begins; one that has a state keeps it."""
        try:
            session = self._session(told)
            if not in_review() and self._judge.store.subagent_of(session) is None:
                self._began(session, known_before=False)
        except Exception as problem:
            _LOG.error("a session could not be begun: problem=%r", problem)

    def pre_llm_call(self, user_message: Any = "", **told: Any) -> JsonObject | None:
        """Hear a person, and say where things stand. Failing, says so: every call will be refused then."""
        try:
            if in_review():
                return None
            text = self._heard(self._session(told), words_of(user_message), told)
        except Exception as problem:
            text = _why(problem)
        return {"context": text} if text else None

    def _heard(self, session: Session, message: str, told: JsonObject) -> str:
        workspace = self._workspace(session, str(told.get("task_id") or ""))
        if told.get("platform") == "subagent" or self._judge.store.subagent_of(session) is not None:
            return self._standing(session)
        if self._judge.store.read(session) is None:
            self._began(session, known_before=not told.get("is_first_turn", True))
        begun = self._taken(session)
        if by_a_person(message):
            with self._lock:
                self._spoken[session.id] = True
            said = self._judge.user_said(session, message, workspace)
        else:
            said = self._judge.guidance(session, workspace)
        return _once(begun, said)

    def _began(self, session: Session, *, known_before: bool) -> None:
        if self._judge.store.read(session) is not None:
            return
        before = continues(session.id)
        if before is not None:
            self._judge.store.link(HOST, session.id, before, "continued")
            return
        workspace = self._workspace(session, "")
        self._tell(session, self._judge.session_started(session, workspace, known_before=known_before))

    def _standing(self, session: Session) -> str:
        """What a subagent reads: its session's phase, which stays untold for the session itself."""
        state = self._judge.store.read(session)
        return (policy.guidance(state.policy) or "") if state is not None else ""

    def post_api_request(self, assistant_message: Any = None, **told: Any) -> None:
        """Follow the markers of a reply, also beside calls."""
        try:
            if in_review() or told.get("platform") == "subagent":
                return
            session = self._session(told)
            text = words_of(getattr(assistant_message, "content", None))
            self._judge.assistant_said(session, text, self._workspace(session, str(told.get("task_id") or "")))
        except Exception as problem:
            _LOG.error("a reply could not be followed: problem=%r", problem)

    def pre_verify(self, **told: Any) -> JsonObject | None:
        """Keep the turn going while the closing checklist is open."""
        try:
            session = self._session(told)
            text = self._judge.keeps_going(session, self._workspace(session, ""))
        except Exception as problem:
            _LOG.error("the end of a turn could not be judged: problem=%r", problem)
            return None
        return {"action": "continue", "message": text} if text else None

    def subagent_start(self, parent_session_id: Any = "", child_session_id: Any = "", **_: Any) -> None:
        """A subagent works in its session's phase."""
        try:
            if parent_session_id and child_session_id:
                self._judge.store.link(HOST, str(child_session_id), str(parent_session_id), "subagent")
        except Exception as problem:
            _LOG.error("a subagent could not be tied to its session: problem=%r", problem)

    # -- a person's commands ---------------------------------------------------------------------------

    def phase_command(self, raw: str) -> str:
        """`/phase [SESSION] [PHASE REASON]`: where a session stands, or a person's override."""
        return self._commanded(raw, self._phase)

    def approve_command(self, raw: str) -> str:
        """`/approve-plan [SESSION]`: the plan of a session is approved."""
        return self._commanded(raw, lambda session, _: self._judge.approve_plan(session, by="user"))

    def _phase(self, session: Session, words: str) -> str:
        wanted, _, reason = words.partition(" ")
        if not wanted:
            state = self._judge.store.read(session)
            return f"the phase is {state.policy.phase.phase if state is not None else Phase.NO_TASK}"
        if wanted not in set(Phase) or not reason.strip():
            return f"/phase PHASE REASON, with PHASE one of {', '.join(Phase)}"
        return self._judge.force_phase(session, Phase(wanted), reason.strip(), by="user")

    def _commanded(self, raw: str, do: Callable[[Session, str], str]) -> str:
        """Hermes does not say which session a command was typed in: it is the only one, or it is named."""
        first, _, rest = raw.strip().partition(" ")
        with self._lock:
            spoken = list(self._spoken)
        if first in spoken:
            name, words = first, rest.strip()
        elif len(spoken) == 1:
            name, words = spoken[0], raw.strip()
        else:
            return f"which session is meant? Put its id first: {', '.join(spoken) or 'there is none yet'}"
        try:
            return do(Session(HOST, name), words)
        except Exception as problem:
            return f"nothing was changed: {problem}"

    # -- what a hook is about --------------------------------------------------------------------------

    def _session(self, told: JsonObject) -> Session:
        """Calls from inside execute_code bring no session id, but the task id of their outer call."""
        task, name = str(told.get("task_id") or ""), str(told.get("session_id") or "")
        with self._lock:
            if name and task:
                self._by_task[task] = name
            name = name or self._by_task.get(task, "")
        if not name:
            raise StoreError("Hermes did not say which session this belongs to")
        return Session(HOST, name)

    def _call(self, tool: str, args: Any, told: JsonObject) -> tuple[Session, HostCall]:
        session, task = self._session(told), str(told.get("task_id") or "")
        given = args if isinstance(args, dict) else {}
        call_id = str(told.get("tool_call_id") or "") or f"{task}:{_digest(tool, given)}"
        if tool in _OWN:  # its handler is not told the call's id; such calls run one after the other
            call_id = tool
        name, seen = told_apart(tool, given)
        directory = directory_of(task)
        workspace = self._workspace(session, task)
        return session, HostCall(f"{session.id}:{call_id}", name, seen, directory, workspace)

    def _workspace(self, session: Session, task: str) -> str:
        with self._lock:
            if session.id not in self._projects:
                self._projects[session.id] = project_of(directory_of(task))
            return str(self._projects[session.id])

    def _tell(self, session: Session, text: str) -> None:
        if text:
            with self._lock:
                self._news[session.id] = _once(self._news.get(session.id, ""), text)

    def _taken(self, session: Session) -> str:
        with self._lock:
            return str(self._news.pop(session.id, ""))


_OWN = frozenset({SET_PHASE_SPEC.name, CLOSURE_CHECK_SPEC.name, ANCHOR_SET_SPEC.name})


def _refusal(reason: str) -> JsonObject:
    return {"action": "block", "message": f"[work-principles] {reason}"}


def _why(problem: BaseException) -> str:
    try:
        said = f"{type(problem).__name__}: {problem}"
    except BaseException:  # an error that cannot even be printed
        said = "an error without words"
    return f"jackstay cannot judge calls just now ({said}), so none runs. `jackstay doctor` says what to mend."


def _digest(tool: str, args: Any) -> str:
    text = json.dumps([tool, args], sort_keys=True, default=repr, ensure_ascii=False)
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def _once(*texts: str) -> str:
    """The paragraphs of all texts, each once; the anchor's block is the other plugin's to show."""
    parts = (part for said in texts for part in said.split("\n\n") if not part.startswith(anchors.OPEN))
    return "\n\n".join(filter(None, dict.fromkeys(parts)))


# -- what Hermes calls at its start ----------------------------------------------------------------------


def judge_for(home: str | None) -> Judge:
    """The judge of a home (default: JACKSTAY_HOME, then the platform's place); it guards Hermes's own, too."""
    place = Path(home) if home else default_home()
    return Judge(place, HERMES, skill_call="skill_view('{}')", protected=_hermes_places())


def discipline(ctx: Any, *, home: str | None = None) -> None:
    """Register `work-principles`. May raise: whoever calls it has to refuse every call then."""
    hooks = Hermes(judge_for(home))
    for name in HOOKS:
        ctx.register_hook(name, getattr(hooks, name))
    ctx.register_middleware("tool_execution", hooks.tool_execution)
    for spec in (SET_PHASE_SPEC, CLOSURE_CHECK_SPEC):
        _tool(ctx, spec, "work_principles", hooks.own_tool(spec.name))
    ctx.register_command(
        "phase", hooks.phase_command, "show or set the phase of work", "[SESSION] [PHASE REASON]"
    )
    ctx.register_command(
        "approve-plan", hooks.approve_command, "approve the plan that was put to you", "[SESSION]"
    )
    _skills(ctx, home)
    BESIDE.discipline = True


def anchor(ctx: Any, *, home: str | None = None) -> None:
    """Register `context-anchor`."""
    hooks = HermesAnchor(Path(home) if home else default_home())
    ctx.register_hook("pre_llm_call", hooks.pre_llm_call)
    ctx.register_hook("post_tool_call", hooks.post_tool_call)
    _tool(ctx, ANCHOR_SET_SPEC, "context_anchor", hooks.anchor_set)


HOOKS = (
    "pre_llm_call", "pre_tool_call", "post_tool_call", "on_session_start", "post_api_request",
    "transform_tool_result", "pre_verify", "subagent_start",
)  # fmt: skip


def _tool(ctx: Any, spec: ToolSpec, toolset: str, handler: Hook) -> None:
    schema = {"name": spec.name, "description": spec.description, "parameters": spec.parameters}
    ctx.register_tool(spec.name, toolset, schema, handler, description=spec.description)


def _skills(ctx: Any, home: str | None) -> None:
    """The six skills, as the private copy has them, else as the package does."""
    ours = Path(__file__).parents[1] / "skills" / "data"
    for name in SKILLS:
        places = [Path(home) / "hermes" / "skills"] if home else []
        found = next((file for place in (*places, ours) if (file := place / name / "SKILL.md").is_file()), None)
        if found is None:
            _LOG.error("a skill is not there: name=%s", name)
            continue
        ctx.register_skill(name, found, "")


def _hermes_places() -> tuple[str, ...]:
    """What decides whether this plugin is loaded next time."""
    try:
        from hermes_constants import get_hermes_home  # type: ignore[import-not-found] # Hermes's own module

        place = Path(get_hermes_home())
    except Exception:  # outside of Hermes there is none
        return ()
    return tuple(str(place / name) for name in ("config.yaml", "plugins", ".env", "hooks"))
