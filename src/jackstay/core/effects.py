"""What a run asks the world to do."""

import msgspec

from jackstay.core.messages import ToolCall


class CallModel(msgspec.Struct, frozen=True, gc=False, tag="call_model"):
    """Ask the model for turn `turn`; `last` means: without tools, to sum up. `notes` are said, never stored."""

    turn: int
    last: bool = False
    notes: tuple[str, ...] = ()


class RunTool(msgspec.Struct, frozen=True, gc=False, tag="run_tool"):
    """Run this call. Its start is stored by the time anybody performs this."""

    call: ToolCall


class Judge(msgspec.Struct, frozen=True, gc=False, tag="judge"):
    """Gather the facts about these calls anew: the world has moved since they were judged."""

    calls: tuple[ToolCall, ...]


class GrantAlways(msgspec.Struct, frozen=True, gc=False, tag="grant_always"):
    """A person said "always" about this call: tell the HITL interceptor's `on_approved`."""

    call: ToolCall
    always_rule: str | None


class SummaryJob(msgspec.Struct, frozen=True, gc=False):
    """One question to a model, to be asked without tools."""

    strategy: str
    system: str
    text: str
    max_tokens: int


class Summarise(msgspec.Struct, frozen=True, gc=False, tag="summarise"):
    """Ask these questions, independent of each other, so that the context can be made smaller."""

    jobs: tuple[SummaryJob, ...]


Effect = CallModel | RunTool | Judge | GrantAlways | Summarise
