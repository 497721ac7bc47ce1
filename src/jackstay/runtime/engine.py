"""The harness engine: what a program configures once and asks many times (first seed)."""

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from weakref import WeakValueDictionary

from jackstay.core.errors import ConfigError
from jackstay.core.messages import JsonObject, Part
from jackstay.core.rules import PermissionRule
from jackstay.core.wire import decode_json, encode
from jackstay.engine.compaction.interceptor import ContextCompressionInterceptor
from jackstay.engine.hitl import HITLInterceptor
from jackstay.engine.interceptors import Interceptor
from jackstay.engine.ports import Model, SessionStore
from jackstay.engine.stoploop import StopLoopInterceptor
from jackstay.policy.secrets import redact
from jackstay.runtime.agent import Agent
from jackstay.runtime.builder import EngineBuilder
from jackstay.runtime.extensions import Extension
from jackstay.runtime.factory import build_agent, default_compression, default_hitl, open_model
from jackstay.runtime.options import Options, options
from jackstay.runtime.request import PromptRequest, prompt_parts
from jackstay.runtime.session import AgentSession

log = logging.getLogger("jackstay")


class HarnessEngine:
    """Runs agents under policy. `HarnessEngine.of(workspace, home)…build()` and keyword arguments are the same.

    Every setting may be changed while sessions are live: the next request of each sees it. Raises ConfigError
    for a setting that cannot be used; nothing changes then.
    """

    def __init__(self, **settings: Any) -> None:
        self._options = _settled(options(settings))
        self._agents: dict[str, Agent] = {}
        self._sessions: WeakValueDictionary[str, AgentSession] = WeakValueDictionary()
        self._seen: dict[str, dict[str, str]] = {}
        self._store: SessionStore | None = None
        self._recipe: tuple[Options, JsonObject] | None = None
        self._opened: dict[str, tuple[Any, Model]] = {}
        self._compression: ContextCompressionInterceptor | None = None
        self._stop_loop: StopLoopInterceptor | None = None
        self._hitl: HITLInterceptor | None = None
        given: HITLInterceptor | None = self._options.hitl_interceptor
        if given is not None and not given.strategies:
            self.warn(
                "the HITL interceptor was replaced by one without strategies: no call will wait for anybody"
            )
        self._build_main()

    @classmethod
    def of(
        cls, workspace: str | Path = ".", harness_home: str | Path | None = None
    ) -> "EngineBuilder[HarnessEngine]":
        """Begin to build an engine for this workspace; `harness_home` defaults to JACKSTAY_HOME."""
        home = str(harness_home) if harness_home is not None else None
        return EngineBuilder(cls, {"workspace": str(workspace), "harness_home": home})

    # -- asking ----------------------------------------------------------------------------------------

    def prompt(self, prompt: str | Sequence[Part] | None = None) -> PromptRequest:
        """Ask something new; without arguments: go on with what waits or was interrupted in the session.

        Raises EmptyPrompt for a text without words.
        """
        return PromptRequest(self, prompt_parts(prompt))

    def get_session(self, session_id: str) -> AgentSession:
        """The session of this name, stored already or not. Raises BadSessionId."""
        known = self._sessions.get(session_id)
        if known is not None:
            return known
        provider = self._options.session_provider
        if provider is None or provider is self._store or isinstance(provider, SessionStore):
            session = AgentSession(session_id, self.store, now=self._options.clock)
        else:
            session = provider(session_id)
        self._sessions[session_id] = session
        return session

    @property
    def store(self) -> SessionStore:
        """Where sessions are kept: the given store, or `sessions.db` in the home."""
        if self._store is None:
            provider = self._options.session_provider
            if isinstance(provider, SessionStore):
                self._store = provider
            else:
                from jackstay.config.paths import ensure_private, home, sessions_file
                from jackstay.store.sqlite import SQLiteStore

                self._store = SQLiteStore(sessions_file(ensure_private(home(self._options.harness_home))))
        return self._store

    # -- what is configured ----------------------------------------------------------------------------

    @property
    def options(self) -> Options:
        """All settings as they are now."""
        return self._options

    @property
    def workspace(self) -> str:
        """The directory agents work in, absolute."""
        return self._options.workspace

    @property
    def hitl_interceptor(self) -> HITLInterceptor:
        """The HITL interceptor in use; its `on_approved` may be set at any time."""
        given: HITLInterceptor | None = self._options.hitl_interceptor
        if given is not None:
            return given
        if self._hitl is None:
            self._hitl = default_hitl()
        return self._hitl

    def get_hitl_interceptor(self) -> HITLInterceptor:
        """The seed's name for `hitl_interceptor`."""
        return self.hitl_interceptor

    @property
    def compression_interceptor(self) -> ContextCompressionInterceptor:
        """The compression interceptor in use."""
        given: ContextCompressionInterceptor | None = self._options.compression_interceptor
        if given is not None:
            return given
        if self._compression is None:
            self._compression = default_compression(self._options)
        return self._compression

    @property
    def stop_loop_interceptor(self) -> StopLoopInterceptor:
        """The stop-loop interceptor in use."""
        given: StopLoopInterceptor | None = self._options.stop_loop_interceptor
        if given is not None:
            return given
        if self._stop_loop is None:
            self._stop_loop = StopLoopInterceptor()
        return self._stop_loop

    @property
    def model_retries(self) -> int:
        """How often a model is asked at most before a run fails."""
        return self._options.model_retries

    @property
    def model_timeout_s(self) -> float:
        """How long one answer of a model may take."""
        return self._options.model_timeout_s

    def now(self) -> float:
        """The time in epoch seconds, by the clock in the settings."""
        return self._options.clock()

    @property
    def redact_secrets(self) -> bool:
        """Whether results lose their secrets before anybody sees or stores them."""
        return self._options.redact_secrets

    # -- changing it -----------------------------------------------------------------------------------

    def set(self, **settings: Any) -> None:
        """Change settings, all or none. Raises ConfigError and keeps everything when one is wrong."""
        before = self._options
        self._options = _settled(options(settings, before))
        try:
            self._rebuild()
        except Exception:
            self._options = before
            raise
        if "compression_threshold" in settings:
            self._follow_threshold()

    def set_hitl_enabled(self, enabled: bool) -> None:
        """Switch approvals on or off, in settings and live interceptor; `hitl` stays needed in the tools."""
        self.hitl_interceptor.set_enabled(enabled)
        self.set(hitl_enabled=enabled)

    def set_compression_threshold(self, max_messages: int, max_context_ratio: float) -> None:
        """Change when the context is compressed, in the settings and the live interceptor."""
        self._options = options({"compression_threshold": (max_messages, max_context_ratio)}, self._options)
        self._follow_threshold()

    def _follow_threshold(self) -> None:
        live: Interceptor = self.compression_interceptor
        if isinstance(live, ContextCompressionInterceptor):  # what took its place may have no thresholds
            live.set_thresholds(*self._options.compression_threshold)

    def set_max_turns(self, turns: int) -> None:
        """Change how many turns a run may take."""
        self.set(max_turns=turns)

    def set_model(self, model: Any) -> None:
        """Ask another model from the next request on."""
        self.set(model=model)

    def allow_tool(self, *tools: Any) -> None:
        """Give agents more tools; a disallowed one of the same name is allowed again."""
        kept = tuple(name for name in self._options.disallowed_tools if name not in tools)
        self.set(tools=(*self._options.tools, *tools), disallowed_tools=kept)

    def disallow_tool(self, *names: str) -> None:
        """Take tools away from every agent, by name or group."""
        self.set(disallowed_tools=(*self._options.disallowed_tools, *names))

    def set_subagent_enabled(self, enabled: bool) -> None:
        """Whether agents may hand work to others: without it nobody has `task` and `multitask`."""
        self.set(subagent_enabled=enabled)

    def set_multitask_max_tasks(self, tasks: int) -> None:
        """Change how many pieces of work one call of `multitask` may hand out."""
        self.set(multitask_max_tasks=tasks)

    def add_permission_rule(self, rule: PermissionRule) -> None:
        """Put a rule in force for every agent, live sessions included."""
        if rule not in self._options.permission_rules:
            self.set(permission_rules=(*self._options.permission_rules, rule))

    def remove_permission_rule(self, rule: PermissionRule) -> None:
        """Take a rule out of force."""
        self.set(permission_rules=tuple(one for one in self._options.permission_rules if one != rule))

    def add_extension(self, extension: Extension) -> None:
        """Add an extension; agents are rebuilt, live sessions see it with their next request."""
        self.set(extensions=(*self._options.extensions, extension))

    def remove_extension(self, extension: Extension) -> None:
        """Remove an extension that was added, by identity."""
        self.set(extensions=tuple(one for one in self._options.extensions if one is not extension))

    def warn(self, text: str) -> None:
        """Tell the log something a person should know."""
        log.warning("%s", redact(text))

    # -- for the runtime -------------------------------------------------------------------------------

    def agent(self, name: str) -> Agent:
        """The built agent; another one after a setting has changed.

        One with another name than `main` has a definition, and never more than `main`. Raises UnknownAgent.
        """
        agent = self._agents.get(name)
        if agent is None:
            from jackstay.runtime.subagents import agent_of

            agent = self._agents[name] = agent_of(self, name)
        return agent

    def open_model(self) -> Model:
        """The model as configured now, opened once: agents that are built anew go on with the same one."""
        return self._open("model", self._options.model)

    def open_summariser(self) -> Model:
        """The model that writes summaries: the one configured for it, or the model itself."""
        named = self._options.summary_model
        return self._open("summary_model", named) if named is not None else self.open_model()

    def open_for(self, agent: str, named: Any) -> Model:
        """The model that an agent's definition names."""
        return self._open(f"agent {agent}", named)

    def adopt(self, session: AgentSession) -> AgentSession:
        """The session of a subagent, which lives where its parent's does, known by its id from now on."""
        known: AgentSession = self._sessions.setdefault(session.session_id, session)
        return known

    def _open(self, use: str, named: Any) -> Model:
        known = self._opened.get(use)
        if known is None or known[0] != named:
            known = self._opened[use] = (named, open_model(named))
        return known[1]

    def seen(self, session_id: str) -> dict[str, str]:
        """Which files the session's tools have read here, and the digests of what they saw."""
        return self._seen.setdefault(session_id, {})

    def recipe(self) -> JsonObject:
        """The settings another process needs to go on with a run of this engine; nobody changes the value."""
        if self._recipe is None or self._recipe[0] is not self._options:
            self._recipe = (self._options, _recipe(self._options))
        return self._recipe[1]

    async def close(self) -> None:
        """Give back connections and files."""
        for _, model in self._opened.values():
            await model.close()
        if self._store is not None and self._options.session_provider is None:
            self._store.close()

    def _build_main(self) -> None:
        self._agents = {"main": build_agent(self, "main")}

    def _rebuild(self) -> None:
        """Build `main` anew, others once they are asked for; what runs sees them at its next request."""
        self._build_main()


def _recipe(made: Options) -> JsonObject:
    names = [entry if isinstance(entry, str) else entry.spec.name for entry in made.tools]
    return {
        "model": made.model if isinstance(made.model, str) else made.model.name,
        "tools": names,
        "disallowed_tools": list(made.disallowed_tools),
        "workspace": made.workspace,
        "hitl_enabled": made.hitl_enabled,
        "hitl_waiting": decode_json(encode(made.hitl_waiting)),
        "discipline": made.discipline,
        "language": made.language or None,
        "max_turns": made.max_turns,
        "max_tokens": made.max_tokens,
        "max_cost": made.max_cost,
        "max_seconds": made.max_seconds,
        "permission_default": made.permission_default,
        "permission_rules": decode_json(encode(made.permission_rules)),
    }


def _settled(made: Options) -> Options:
    """The settings with the workspace resolved and, where no model is given, the one JACKSTAY_MODEL names.

    Raises ConfigError when the workspace is no directory.
    """
    import os

    import msgspec

    workspace = Path(made.workspace).expanduser().resolve()
    if not workspace.is_dir():
        raise ConfigError(
            f"the workspace {str(workspace)!r} is no directory", hint="create it or name another one"
        )
    model = made.model if made.model is not None else os.environ.get("JACKSTAY_MODEL")
    return msgspec.structs.replace(made, workspace=str(workspace), model=model)
