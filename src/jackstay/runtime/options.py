"""Every setting of an engine as one value, with the seed's defaults; wrong values are refused."""

import difflib
import time
from collections.abc import Callable
from typing import Any, get_args

import msgspec

from jackstay.agents.definition import AgentDefinition
from jackstay.core.approvals import OnDeadline, Waiting
from jackstay.core.errors import ConfigError
from jackstay.core.phase import Language, Mode
from jackstay.core.rules import PermissionRule
from jackstay.core.state import Budget, PermissionDefault
from jackstay.engine.bounds import RunBounds
from jackstay.engine.ports import Model
from jackstay.policy.data import BUILT_IN, PolicyData, problems


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """The settings of an engine. Times in seconds, cost in US dollars; None means no limit.

    `policy_data` are the discipline's words and tables; a running session goes by new ones from its next turn.
    `summary_model` writes the summaries of compression; None leaves them to `model`.
    `agents` can be handed work besides those of the files: `subagent_max_depth` levels deep at most,
    `multitask_max_tasks` side by side; without `subagent_enabled` nobody has `task` and `multitask`.
    `clock` gives epoch seconds, for tests of what takes hours.
    """

    workspace: str = "."
    harness_home: str | None = None
    session_provider: Any = None
    model: Any = None
    summary_model: Any = None
    tools: tuple[Any, ...] = ()
    disallowed_tools: tuple[str, ...] = ()
    system_prompt: str | None = None
    hitl_enabled: bool = False
    hitl_waiting: Waiting = Waiting()
    max_turns: int = 20
    max_tokens: int | None = None
    max_cost: float | None = None
    max_seconds: float | None = None
    auto_rethink: bool = True
    session_window_size: int = 12
    model_retries: int = 3
    model_timeout_s: float = 600.0
    compression_threshold: tuple[int, float] = (100, 0.75)
    compression_interceptor: Any = None
    hitl_interceptor: Any = None
    stop_loop_interceptor: Any = None
    permission_rules: tuple[PermissionRule, ...] = ()
    permission_default: PermissionDefault = "seed"
    discipline: Mode = "off"
    language: Language = ""
    policy_data: PolicyData = BUILT_IN
    sandbox: str = "auto"
    agents: tuple[AgentDefinition, ...] = ()
    subagent_enabled: bool = True
    subagent_max_depth: int = 2
    multitask_max_tasks: int = 5
    extensions: tuple[Any, ...] = ()
    installed_extensions: bool = True
    redact_secrets: bool = True
    clock: Callable[[], float] = time.time

    def bounds(
        self, *, rules: tuple[PermissionRule, ...], model: Model, summariser: Model, overhead: int
    ) -> RunBounds:
        """What a run sees of these settings; what the interceptors hold comes on top."""
        budget = Budget(self.max_turns, self.max_tokens, self.max_cost, self.max_seconds)
        data = self.policy_data
        if self.language:
            data = msgspec.structs.replace(data, language=self.language)
        return RunBounds(
            budget=budget, auto_rethink=self.auto_rethink, rules=rules, model=model.name,
            context_length=model.context_length,
            summary_window=None if summariser is model else summariser.context_length,
            permission_default=self.permission_default, workspace=self.workspace, overhead=overhead,
            session_window=self.session_window_size, discipline=self.discipline, data=data,
            waiting=self.hitl_waiting, redacts=self.redact_secrets,
        )  # fmt: skip


def options(given: dict[str, Any], base: Options | None = None) -> Options:
    """The base (or the defaults) with these settings. Raises ConfigError naming the first wrong one."""
    known = Options.__struct_fields__
    for name in given:
        if name not in known:
            nearest = difflib.get_close_matches(name, known, 1)
            hint = f"did you mean {nearest[0]!r}?" if nearest else f"known are {', '.join(known)}"
            raise ConfigError(f"there is no setting {name!r}", hint=hint)
    made = msgspec.structs.replace(base or Options(), **given)
    for name, wrong, expected in _CHECKS:
        value = getattr(made, name)
        if wrong(value):
            raise ConfigError(f"{name} is {value!r}", hint=f"it must be {expected}")
    if made.policy_data is not BUILT_IN and "policy_data" in given:
        wrong_with_it = problems(made.policy_data)
        if wrong_with_it:
            raise ConfigError(
                f"policy_data is unfit: {'; '.join(wrong_with_it[:5])}", hint="what was there stays"
            )
    return made


def _not_whole(low: int) -> Any:
    return lambda value: isinstance(value, bool) or not isinstance(value, int) or value < low


def _not_positive(value: Any) -> bool:
    return isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < float("inf")


def _optional(check: Any) -> Any:
    return lambda value: value is not None and check(value)


def _not_flag(value: Any) -> bool:
    return not isinstance(value, bool)


def _not_agents(value: Any) -> bool:
    return not isinstance(value, tuple) or not all(isinstance(one, AgentDefinition) for one in value)


def _not_waiting(value: Any) -> bool:
    if not isinstance(value, Waiting) or value.action not in get_args(OnDeadline):
        return True
    return value.deadline_s is not None and _not_positive(value.deadline_s)


def _not_threshold(value: Any) -> bool:
    if not isinstance(value, tuple | list) or len(value) != 2:
        return True
    count, ratio = value
    return _not_whole(1)(count) or _not_positive(ratio) or ratio > 1


_CHECKS: tuple[tuple[str, Any, str], ...] = (
    ("max_turns", _not_whole(1), "a whole number from 1 up"),
    ("max_tokens", _optional(_not_whole(1)), "a whole number from 1 up, or None"),
    ("max_cost", _optional(_not_positive), "a positive number of US dollars, or None"),
    ("max_seconds", _optional(_not_positive), "a positive number of seconds, or None"),
    ("session_window_size", _not_whole(0), "a whole number from 0 up"),
    ("model_retries", _not_whole(1), "a whole number from 1 up (it counts all attempts)"),
    ("model_timeout_s", _not_positive, "a positive number of seconds"),
    ("hitl_enabled", _not_flag, "True or False"),
    ("hitl_waiting", _not_waiting, "a Waiting whose deadline_s is a positive number of seconds, or None"),
    ("agents", _not_agents, "a tuple of AgentDefinition"),
    ("subagent_enabled", _not_flag, "True or False"),
    ("subagent_max_depth", _not_whole(1), "a whole number from 1 up"),
    ("multitask_max_tasks", _not_whole(1), "a whole number from 1 up"),
    ("redact_secrets", _not_flag, "True or False"),
    ("auto_rethink", _not_flag, "True or False"),
    ("compression_threshold", _not_threshold, "(messages from 1 up, ratio above 0 and up to 1)"),
    ("sandbox", lambda value: value not in ("auto", "bwrap", "none"), "'auto', 'bwrap' or 'none'"),
    ("permission_default", lambda value: value not in ("seed", "workspace"), "'seed' or 'workspace'"),
    ("language", lambda value: value not in get_args(Language), "'en', 'zh', or '' for the user's own"),
    ("discipline", lambda value: value not in get_args(Mode), "one of " + ", ".join(get_args(Mode))),
)
