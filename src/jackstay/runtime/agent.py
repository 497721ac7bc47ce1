"""An agent as built: its model, tools, interceptors and prompt, wired once and read by every run."""

from collections.abc import Iterable
from pathlib import Path

import msgspec
from msgspec.structs import replace

from jackstay.agents.definition import AgentDefinition
from jackstay.core.facts import CallFacts
from jackstay.core.messages import ToolCall
from jackstay.core.rules import PermissionRule
from jackstay.core.state import Budget, RunState
from jackstay.core.tools import ToolSpec
from jackstay.core.wire import canonical
from jackstay.engine.bounds import RunBounds
from jackstay.engine.compaction.interceptor import ContextCompressionInterceptor
from jackstay.engine.hitl import HITLInterceptor
from jackstay.engine.interceptors import Chain, Interceptor, ReActTrace
from jackstay.engine.ports import Model, Tool
from jackstay.engine.stoploop import StopLoopInterceptor
from jackstay.runtime.guard import Guard
from jackstay.ward.probe import facts_of

MARK = 20  # hexadecimal digits of each part of a digest


class Assignment(msgspec.Struct, frozen=True):
    """What an agent is asked to be by another: by which definition, below whom, and what it may spend."""

    definition: AgentDefinition
    above: "Agent"
    budget: Budget


class AgentBuilder:
    """What an extension may add to while an agent is being built."""

    def __init__(
        self, name: str, *, system: str, tools: Iterable[Tool], interceptors: Iterable[Interceptor]
    ) -> None:
        self.name = name
        self.system = system
        self.tools: dict[str, Tool] = {tool.spec.name: tool for tool in tools}
        self.interceptors: list[Interceptor] = list(interceptors)
        self.rules: list[PermissionRule] = []
        self.recall: Tool | None = None  # offered once something was cut out of the context
        self.guard: Guard | None = None  # present while the discipline is on
        self.protected: tuple[str, ...] = ()  # places that no tool call may write

    def default_interceptor_add(self, interceptor: Interceptor) -> "AgentBuilder":
        """Append an interceptor to the agent's chain; the built-in ones stay."""
        self.interceptors.append(interceptor)
        return self

    def default_tool_add(self, tool: Tool) -> "AgentBuilder":
        """Give the agent one more tool; one of the same name is replaced."""
        self.tools[tool.spec.name] = tool
        return self

    def permission_rule_add(self, rule: PermissionRule) -> "AgentBuilder":
        """Add a rule for this agent's calls."""
        self.rules.append(rule)
        return self

    def system_prompt_add(self, text: str) -> "AgentBuilder":
        """Append a paragraph to the system prompt."""
        self.system = f"{self.system}\n\n{text}" if self.system else text
        return self


class Agent:
    """A built agent. `specs` is the same tuple from turn to turn, so that models encode it once."""

    def __init__(
        self,
        built: AgentBuilder,
        *,
        model: Model,
        summariser: Model,
        bounds: RunBounds,
        hitl: HITLInterceptor | None,
    ) -> None:
        self.name = built.name
        self.model = model
        self.summariser = summariser  # writes the summaries of compression; mostly the model itself
        self.tools = built.tools
        self.specs: tuple[ToolSpec, ...] = tuple(tool.spec for tool in built.tools.values())
        self.specs_with_recall = (*self.specs, built.recall.spec) if built.recall is not None else self.specs
        if built.recall is not None:
            self.tools = {**built.tools, built.recall.spec.name: built.recall}
        self.chain = Chain(built.interceptors)
        self.system = built.system
        self.workspace = bounds.workspace
        self._hitl = hitl
        self._compression = self.chain.find(ContextCompressionInterceptor)
        self._stop_loop = self.chain.find(StopLoopInterceptor)
        self._bounds = self._set(bounds)
        self.guard = built.guard
        self._protected = built.protected
        self._user_home = str(Path.home())
        self._placeless: dict[str, tuple[ToolSpec, CallFacts]] = {}

    @property
    def hitl(self) -> HITLInterceptor | None:
        """The interceptor that asks people, while asking is switched on."""
        return self._hitl if self._hitl is not None and self._hitl.enabled else None

    @property
    def bounds(self) -> RunBounds:
        """The switches as they are at this moment: interceptors may have been set otherwise since the build."""
        bounds, compression, loops, hitl = self._bounds, self._compression, self._stop_loop, self._hitl
        if (
            (compression is None or bounds.compression is compression.params)
            and (loops is None or bounds.loops is loops.params)
            and (
                hitl is None
                or (bounds.hitl is hitl.enabled and bounds.grants is (hitl.enabled and hitl.grants))
            )
        ):
            return bounds
        self._bounds = self._set(bounds)
        return self._bounds

    def _set(self, bounds: RunBounds) -> RunBounds:
        hitl = self._hitl
        return replace(
            bounds,
            compression=self._compression.params if self._compression is not None else None,
            loops=self._stop_loop.params if self._stop_loop is not None else None,
            hitl=hitl is not None and hitl.enabled,
            grants=hitl is not None and hitl.enabled and hitl.grants,
        )

    @property
    def is_plain(self) -> bool:
        """Does nobody have a say about its calls but the rules: neither a guard nor a person?"""
        return self.guard is None and (self._hitl is None or not self._hitl.enabled)

    def plain_facts(self, call: ToolCall) -> CallFacts:
        """What the call and its tool say by themselves."""
        tool = self.tools.get(call.tool)
        if tool is None:
            return CallFacts(known=False, nearest=_nearest(call.tool, self.tools))
        spec = tool.spec
        if call.problem is not None:
            return CallFacts(effects=spec.effects, idempotent=spec.idempotent)
        invalid = tool.check(call.args)
        if invalid is not None:
            return CallFacts(invalid=invalid, effects=spec.effects, idempotent=spec.idempotent)
        return self._facts_of(call, spec)

    async def facts(self, state: RunState, call: ToolCall, *, look: str | None = None) -> CallFacts:
        """What is to be known about a call before it is judged. `look` is that from before the task."""
        facts = self.plain_facts(call)
        if self.is_plain or not facts.known or facts.invalid is not None or call.problem is not None:
            return facts
        spec = self.tools[call.tool].spec
        if self.guard is not None:
            facts = await self.guard.facts(state, call, facts, look=look, data=self.bounds.data)
        hitl = self._hitl
        if hitl is None or not hitl.enabled:
            return facts
        bounds = self.bounds
        answers = (await hitl.judge(ReActTrace(state, bounds, facts), call),)
        return replace(facts, answers=answers, digest=digest_of(call, spec, state, bounds))

    def _facts_of(self, call: ToolCall, spec: ToolSpec) -> CallFacts:
        """What the world says: of a tool whose arguments name no place in it, the same about every call."""
        known = self._placeless.get(spec.name)
        if known is not None and known[0] is spec:
            return known[1]
        facts = facts_of(call, spec, self.workspace, self._user_home, self._protected)
        if spec.spawns:
            facts = replace(facts, spawns=True)
        if not spec.path_args and spec.command_arg is None:
            self._placeless[spec.name] = (spec, facts)
        return facts


def _nearest(name: str, names: Iterable[str]) -> str | None:
    from difflib import get_close_matches

    found = get_close_matches(name.lower(), list(names), 1)
    return found[0] if found else None


def digest_of(call: ToolCall, spec: ToolSpec, state: RunState, bounds: RunBounds) -> str:
    """What a decision is bound to, beside the phase: call, schema, directory and rules, a mark for each."""
    from hashlib import sha256

    rules = [(rule.text, rule.rank, rule.literal) for rule in (*bounds.rules, *state.policy.rules)]
    policy = (rules, bounds.permission_default, bounds.discipline)
    bound = ((call.tool, call.args), spec.parameters, bounds.workspace, policy)
    return ".".join(sha256(canonical(part)).hexdigest()[:MARK] for part in bound)
