"""The switches of the engine as the run machine sees them, with what policy and compression need."""

from collections.abc import Mapping
from types import MappingProxyType

from jackstay.core.phase import Mode
from jackstay.core.state import Bounds
from jackstay.engine.compaction.params import CompressionParams
from jackstay.policy.data import BUILT_IN, PolicyData
from jackstay.policy.loops import LoopParams

NO_SKILLS: Mapping[tuple[str, str], str] = MappingProxyType({})


class RunBounds(Bounds, frozen=True, gc=False):
    """`compression` and `loops` are the settings of those interceptors, None where there is none.

    `context_length` is the model's window in tokens, `overhead` what system prompt and tools take of
    it, `session_window` how many messages of earlier runs stay verbatim. `model` names the model,
    `summary_window` is the window of another one that writes summaries.
    `discipline`: how strictly it holds; `data`: its words and tables; `skills`: texts to load, by (name,
    language). `redacts`: is what a run tells told without secrets?
    """

    compression: CompressionParams | None = None
    context_length: int | None = None
    overhead: int = 0
    model: str = ""
    summary_window: int | None = None
    loops: LoopParams | None = None
    session_window: int = 12
    discipline: Mode = "off"
    data: PolicyData = BUILT_IN
    skills: Mapping[tuple[str, str], str] = NO_SKILLS
    redacts: bool = True


DEFAULT_BOUNDS = RunBounds()
