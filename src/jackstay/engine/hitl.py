"""Which calls does a person have to look at? The HITL interceptor and its strategies (first seed §4)."""

import inspect
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from jackstay.core.decision import ALLOW, Ask, Decision
from jackstay.core.messages import JsonObject, ToolCall
from jackstay.engine.interceptors import Interceptor, ReActTrace
from jackstay.engine.ports import HITLStrategy
from jackstay.policy.secrets import redact

OnApproved = Callable[[str, JsonObject], Any]
SENSITIVE = "this tool is sensitive and needs a person's confirmation"


class SensitiveTool:
    """Asks about every call."""

    def __init__(self, comment: str = SENSITIVE) -> None:
        self.comment = comment

    def evaluate(self, trace: Any, args: JsonObject) -> str | None:
        """The fixed comment."""
        return self.comment


class HITLInterceptor(Interceptor):
    """Holds the strategies that decide which calls wait for a person.

    A new one has no strategy and no `on_approved`: with the engine's built-in one replaced, both have to be
    set again (first seed §2).
    """

    name: ClassVar[str] = "hitl"

    def __init__(self) -> None:
        self.enabled = True
        self.grants = False  # does "always allow" add a rule to the session? True in the engine's own
        self._strategies: dict[str, HITLStrategy] = {}
        self._on_approved: OnApproved | None = None

    @property
    def strategies(self) -> Mapping[str, HITLStrategy]:
        """Tool name to strategy."""
        return dict(self._strategies)

    def on_tool(self, name: str, strategy: HITLStrategy) -> "HITLInterceptor":
        """Let the strategy judge the calls of this tool; the last one given counts."""
        self._strategies[name.lower()] = strategy
        return self

    def on_sensitive_tool(self, *names: str, comment: str = SENSITIVE) -> "HITLInterceptor":
        """Ask about every call of these tools, whatever rules allow."""
        for name in names:
            self._strategies[name.lower()] = SensitiveTool(comment)
        return self

    def on_approved(self, callback: OnApproved | None) -> "HITLInterceptor":
        """Call `callback(tool_name, args)` when a person approves with "always allow". May be set at any time.

        It takes the place of the default, which adds the narrowest rule to the session.
        """
        self._on_approved = callback
        self.grants = False
        return self

    @property
    def approved_callback(self) -> OnApproved | None:
        """What `on_approved` set."""
        return self._on_approved

    def set_enabled(self, enabled: bool) -> "HITLInterceptor":
        """Switch asking on or off."""
        self.enabled = enabled
        return self

    async def judge(self, trace: ReActTrace, call: ToolCall) -> Decision:
        """The strategy's answer about this call, without secrets. One that raises asks: it fails closed."""
        strategy = self._strategies.get(call.tool)
        if strategy is None:
            return ALLOW
        rule = f"hitl strategy {type(strategy).__name__}"
        try:
            reason = strategy.evaluate(trace, call.args)
            if inspect.isawaitable(reason):
                reason = await reason
        except Exception as problem:
            return Ask(redact(f"its approval strategy failed: {problem!r}"), rule)
        if not reason:
            return ALLOW
        return Ask(redact(str(reason)), rule)
