"""The chain of methods that puts an engine's settings together (first seed: `HarnessEngine.of(…)…build()`)."""

from collections.abc import Callable
from typing import Any, Generic, TypeVar

from jackstay.agents.definition import AgentDefinition
from jackstay.core.rules import PermissionRule
from jackstay.engine.hitl import HITLInterceptor
from jackstay.engine.interceptors import Interceptor
from jackstay.engine.ports import SessionStore
from jackstay.runtime.extensions import Extension
from jackstay.runtime.session import AgentSession

E = TypeVar("E")
SessionProvider = SessionStore | Callable[[str], AgentSession]


class EngineBuilder(Generic[E]):
    """Collects settings; `build` makes the engine. Each method returns the builder."""

    def __init__(self, make: Callable[..., E], settings: dict[str, Any]) -> None:
        self._make, self._settings = make, settings

    def _put(self, name: str, value: Any) -> "EngineBuilder[E]":
        self._settings[name] = value
        return self

    def _append(self, name: str, values: tuple[Any, ...]) -> "EngineBuilder[E]":
        return self._put(name, (*self._settings.get(name, ()), *values))

    def session_provider(self, provider: SessionProvider) -> "EngineBuilder[E]":
        """A SessionStore, or a function from session id to AgentSession."""
        return self._put("session_provider", provider)

    def model(self, model: Any) -> "EngineBuilder[E]":
        """`openai:NAME`, `anthropic:NAME`, `ollama:NAME`, `NAME@URL`, `script:FILE`, or a Model.

        Without one, JACKSTAY_MODEL names it.
        """
        return self._put("model", model)

    def tools_add(self, *tools: Any) -> "EngineBuilder[E]":
        """Tools by name or group (`read`, `bash`, `pi`, `*`), your own tools, and the switch `hitl`."""
        return self._append("tools", tools)

    def disallowed_tools_add(self, *names: str) -> "EngineBuilder[E]":
        """Tools that no agent of this engine gets."""
        return self._append("disallowed_tools", names)

    def system_prompt(self, text: str) -> "EngineBuilder[E]":
        """What the agent is told in front of every conversation."""
        return self._put("system_prompt", text)

    def hitl_enabled(self, enabled: bool) -> "EngineBuilder[E]":
        """Whether calls may wait for a person; the tools must contain `hitl` too."""
        return self._put("hitl_enabled", enabled)

    def max_turns(self, turns: int) -> "EngineBuilder[E]":
        """How many times a run may ask its model, before a last turn that sums up."""
        return self._put("max_turns", turns)

    def auto_rethink(self, enabled: bool) -> "EngineBuilder[E]":
        """Whether the model is asked to check itself at its last turn."""
        return self._put("auto_rethink", enabled)

    def session_window_size(self, messages: int) -> "EngineBuilder[E]":
        """How many messages of earlier runs stay verbatim."""
        return self._put("session_window_size", messages)

    def model_retries(self, attempts: int) -> "EngineBuilder[E]":
        """How often a model is asked at most before a run fails."""
        return self._put("model_retries", attempts)

    def compression_threshold(self, max_messages: int, max_context_ratio: float) -> "EngineBuilder[E]":
        """When the context is compressed."""
        return self._put("compression_threshold", (max_messages, max_context_ratio))

    def compression_interceptor(self, interceptor: Interceptor) -> "EngineBuilder[E]":
        """Replace the built-in compression interceptor."""
        return self._put("compression_interceptor", interceptor)

    def hitl_interceptor(self, interceptor: HITLInterceptor) -> "EngineBuilder[E]":
        """Replace the built-in HITL interceptor, its strategy for bash and its `on_approved` included."""
        return self._put("hitl_interceptor", interceptor)

    def stop_loop_interceptor(self, interceptor: Interceptor) -> "EngineBuilder[E]":
        """Replace the built-in stop-loop interceptor."""
        return self._put("stop_loop_interceptor", interceptor)

    def permission_rule_add(self, *rules: PermissionRule) -> "EngineBuilder[E]":
        """Rules that are enforced for every call of every agent."""
        return self._append("permission_rules", rules)

    def agent_add(self, *definitions: AgentDefinition) -> "EngineBuilder[E]":
        """Agents that others can hand work to, besides those of the files."""
        return self._append("agents", definitions)

    def subagent_enabled(self, enabled: bool) -> "EngineBuilder[E]":
        """Whether agents may hand work to others by `task` and `multitask`, where their tools name those."""
        return self._put("subagent_enabled", enabled)

    def subagent_max_depth(self, levels: int) -> "EngineBuilder[E]":
        """How many levels deep work may be handed on."""
        return self._put("subagent_max_depth", levels)

    def multitask_max_tasks(self, tasks: int) -> "EngineBuilder[E]":
        """How many pieces of work one call of `multitask` may hand out."""
        return self._put("multitask_max_tasks", tasks)

    def extension_add(self, *extensions: Extension) -> "EngineBuilder[E]":
        """Extensions: objects with `configure`, or functions (engine, agent_name, agent_builder)."""
        return self._append("extensions", extensions)

    def discipline(self, mode: str) -> "EngineBuilder[E]":
        """How strictly the discipline holds: `strict`, `guided`, `observe` or `off`."""
        return self._put("discipline", mode)

    def option(self, **settings: Any) -> "EngineBuilder[E]":
        """Any other setting by the name it has in `Options`."""
        self._settings.update(settings)
        return self

    def build(self) -> E:
        """The engine. Raises ConfigError when something in it cannot be used."""
        return self._make(**self._settings)
