"""jackstay holds an AI agent to a discipline that can be proved.

The public names are loaded when they are first used, so that importing the package costs next to nothing.
"""

from jackstay._version import __version__

TYPE_CHECKING = False  # as type checkers know it: `typing` costs a hook's process a third of its time
if TYPE_CHECKING:
    from typing import Any

    from jackstay.agents.definition import AgentDefinition as AgentDefinition
    from jackstay.core.approvals import HITLDecision as HITLDecision
    from jackstay.core.approvals import HITLTask as HITLTask
    from jackstay.core.approvals import Waiting as Waiting
    from jackstay.core.decision import Allow as Allow
    from jackstay.core.decision import Ask as Ask
    from jackstay.core.decision import Deny as Deny
    from jackstay.core.errors import ConfigError as ConfigError
    from jackstay.core.errors import ErrorInfo as ErrorInfo
    from jackstay.core.errors import JackstayError as JackstayError
    from jackstay.core.errors import ModelError as ModelError
    from jackstay.core.errors import ToolFailed as ToolFailed
    from jackstay.core.messages import Image as Image
    from jackstay.core.messages import Message as Message
    from jackstay.core.messages import Text as Text
    from jackstay.core.messages import Thinking as Thinking
    from jackstay.core.messages import ToolCall as ToolCall
    from jackstay.core.messages import ToolResult as ToolResult
    from jackstay.core.messages import Usage as Usage
    from jackstay.core.phase import Phase as Phase
    from jackstay.core.rules import PermissionRule as PermissionRule
    from jackstay.core.tools import ToolSpec as ToolSpec
    from jackstay.engine.compaction.composite import (
        CompositeCompressionStrategy as CompositeCompressionStrategy,
    )
    from jackstay.engine.compaction.hierarchy import (
        HierarchicalCompressionStrategy as HierarchicalCompressionStrategy,
    )
    from jackstay.engine.compaction.interceptor import (
        ContextCompressionInterceptor as ContextCompressionInterceptor,
    )
    from jackstay.engine.compaction.keyinfo import KeyInfoExtractionStrategy as KeyInfoExtractionStrategy
    from jackstay.engine.compaction.llm import LLMCompressionStrategy as LLMCompressionStrategy
    from jackstay.engine.compaction.summary import CompressionStrategy as CompressionStrategy
    from jackstay.engine.hitl import HITLInterceptor as HITLInterceptor
    from jackstay.engine.interceptors import Interceptor as Interceptor
    from jackstay.engine.interceptors import Order as Order
    from jackstay.engine.interceptors import ReActTrace as ReActTrace
    from jackstay.engine.ports import HITLStrategy as HITLStrategy
    from jackstay.engine.ports import Model as Model
    from jackstay.engine.ports import ModelRequest as ModelRequest
    from jackstay.engine.ports import Reply as Reply
    from jackstay.engine.ports import SessionStore as SessionStore
    from jackstay.engine.ports import Tool as Tool
    from jackstay.engine.ports import ToolContext as ToolContext
    from jackstay.engine.ports import ToolOutput as ToolOutput
    from jackstay.engine.stoploop import StopLoopInterceptor as StopLoopInterceptor
    from jackstay.policy.shell.verdict import ShellVerdict as ShellVerdict
    from jackstay.policy.shell.verdict import analyse_command as analyse_command
    from jackstay.policy.strategies import BashToolStrategy as BashToolStrategy
    from jackstay.policy.strategies import WebToolStrategy as WebToolStrategy
    from jackstay.policy.strategies import WriteToolStrategy as WriteToolStrategy
    from jackstay.runtime.agent import AgentBuilder as AgentBuilder
    from jackstay.runtime.commands import let_stay as let_stay
    from jackstay.runtime.control import cancel as cancel
    from jackstay.runtime.engine import HarnessEngine as HarnessEngine
    from jackstay.runtime.extensions import HarnessExtension as HarnessExtension
    from jackstay.runtime.hitl import HITL as HITL
    from jackstay.runtime.request import Answer as Answer
    from jackstay.runtime.session import AgentSession as AgentSession
    from jackstay.runtime.stream import RunStream as RunStream
    from jackstay.store.memory import MemoryStore as MemoryStore
    from jackstay.store.sqlite import SQLiteStore as SQLiteStore
    from jackstay.tools.schema import tool as tool

    ReActInterceptor = Interceptor

_HOME = {
    "agents.definition": ("AgentDefinition",),
    "core.approvals": ("HITLDecision", "HITLTask", "Waiting"),
    "core.decision": ("Allow", "Ask", "Deny"),
    "core.errors": ("ConfigError", "ErrorInfo", "JackstayError", "ModelError", "ToolFailed"),
    "core.messages": ("Image", "Message", "Text", "Thinking", "ToolCall", "ToolResult", "Usage"),
    "core.phase": ("Phase",),
    "core.rules": ("PermissionRule",),
    "core.tools": ("ToolSpec",),
    "engine.compaction.composite": ("CompositeCompressionStrategy",),
    "engine.compaction.hierarchy": ("HierarchicalCompressionStrategy",),
    "engine.compaction.interceptor": ("ContextCompressionInterceptor",),
    "engine.compaction.keyinfo": ("KeyInfoExtractionStrategy",),
    "engine.compaction.llm": ("LLMCompressionStrategy",),
    "engine.compaction.summary": ("CompressionStrategy",),
    "engine.hitl": ("HITLInterceptor",),
    "engine.interceptors": ("Interceptor", "Order", "ReActTrace"),
    "engine.ports": (
        "HITLStrategy",
        "Model",
        "ModelRequest",
        "Reply",
        "SessionStore",
        "Tool",
        "ToolContext",
        "ToolOutput",
    ),
    "engine.stoploop": ("StopLoopInterceptor",),
    "policy.shell.verdict": ("ShellVerdict", "analyse_command"),
    "policy.strategies": ("BashToolStrategy", "WebToolStrategy", "WriteToolStrategy"),
    "runtime.agent": ("AgentBuilder",),
    "runtime.engine": ("HarnessEngine",),
    "runtime.extensions": ("HarnessExtension",),
    "runtime.commands": ("let_stay",),
    "runtime.control": ("cancel",),
    "runtime.hitl": ("HITL",),
    "runtime.request": ("Answer",),
    "runtime.session": ("AgentSession",),
    "runtime.stream": ("RunStream",),
    "store.memory": ("MemoryStore",),
    "store.sqlite": ("SQLiteStore",),
    "tools.schema": ("tool",),
}
_WHERE = {name: module for module, names in _HOME.items() for name in names}
_EVENTS = (
    "RunStartEvent", "ContextSizeEvent", "ReasonStartEvent", "ReasonDeltaEvent", "ReasonEndEvent",
    "HITLPendingEvent", "HITLDecidedEvent", "ActionStartEvent", "ToolCallStartEvent", "ToolCallEndEvent",
    "ActionEndEvent", "RunEndEvent", "PhaseChangedEvent", "GateBlockedEvent", "GuidanceEvent",
    "SkillLoadedEvent", "LoopDetectedEvent", "BackupTakenEvent", "PlanUpdatedEvent", "RuleAddedEvent",
    "AnchorSetEvent", "ToolOutputDeltaEvent", "ErrorEvent", "SubagentEvent", "WarningEvent", "UnknownEvent",
)  # fmt: skip
_WHERE |= dict.fromkeys(_EVENTS, "core.events")
_ALIASES = {"ReActInterceptor": "Interceptor"}

__all__ = ["__version__", *sorted((*_WHERE, *_ALIASES))]


def __getattr__(name: str) -> "Any":
    wanted = _ALIASES.get(name, name)
    module = _WHERE.get(wanted)
    if module is None:
        raise AttributeError(f"module 'jackstay' has no attribute {name!r}")
    from importlib import import_module

    value = getattr(import_module(f"jackstay.{module}"), wanted)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return list(__all__)
