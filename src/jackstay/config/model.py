"""What can be configured, which values are right, and which of two layers wins?"""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, get_args

import msgspec
from msgspec.structs import replace

from jackstay.core.approvals import OnDeadline
from jackstay.core.phase import Mode
from jackstay.core.rules import PermissionRule
from jackstay.core.state import PermissionDefault
from jackstay.policy.loops import RUNGS


class ModelSettings(msgspec.Struct, frozen=True, omit_defaults=True):
    """A model under a name of the user's: `[models.NAME]`.

    `model` is a form that `--model` takes (without it the table's name at `base_url` is meant). `key_env`
    names the variable with the key, `context_length` is in tokens.
    """

    model: str | None = None
    base_url: str | None = None
    key_env: str | None = None
    context_length: int | None = None
    headers: dict[str, str] = {}


class Config(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The settings of one layer, or of several laid over each other. None means: nothing said.

    Times in seconds, cost in US dollars.
    """

    model: str | None = None
    summary_model: str | None = None
    tools: tuple[str, ...] | None = None
    disallowed_tools: tuple[str, ...] = ()
    hitl: bool | None = None
    discipline: Mode | None = None
    max_turns: int | None = None
    max_tokens: int | None = None
    max_cost: float | None = None
    max_seconds: float | None = None
    approval_deadline: float | None = None
    on_deadline: OnDeadline | None = None
    escalate_to: str | None = None
    permission_default: PermissionDefault | None = None
    language: str | None = None
    loop_rungs: tuple[str, ...] | None = None
    rules: tuple[PermissionRule, ...] = ()
    models: dict[str, ModelSettings] = {}

    def under(self, upper: "Config") -> "Config":
        """This layer with another one over it: what that one says wins, rules and models add up."""
        said = {
            name: value
            for name in self.__struct_fields__
            if name not in _ADDED and (value := getattr(upper, name)) is not None
        }
        return replace(
            self,
            **said,
            rules=(*self.rules, *upper.rules),
            models={**self.models, **upper.models},
            disallowed_tools=(*self.disallowed_tools, *upper.disallowed_tools),
        )


_ADDED = frozenset({"rules", "models", "disallowed_tools"})


class Key(NamedTuple):
    """A key of the file: does a value fit, and in which words is that said?"""

    fits: Callable[[Any], bool]
    wanted: str


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and bool(value.strip())


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 1


def _is_amount(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < float("inf")


def _is_texts(value: Any) -> bool:
    return isinstance(value, list) and all(_is_text(entry) for entry in value)


def _are_rungs(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(entry in RUNGS for entry in value)


def _is_table(value: Any) -> bool:
    return isinstance(value, dict)


def _is_headers(value: Any) -> bool:
    return isinstance(value, dict) and all(isinstance(entry, str) for entry in value.values())


def _one_of(*names: str) -> Key:
    return Key(lambda value: value in names, "one of " + ", ".join(f'"{name}"' for name in names))


TEXT = Key(_is_text, "a text")
WHOLE = Key(_is_whole, "a whole number from 1 up")
AMOUNT = Key(_is_amount, "a number above 0")
TEXTS = Key(_is_texts, 'a list of texts, like ["read", "bash"]')

KEYS: Mapping[str, Key] = {
    "model": TEXT,
    "summary_model": TEXT,
    "tools": TEXTS,
    "disallowed_tools": TEXTS,
    "hitl": Key(lambda value: isinstance(value, bool), "true or false"),
    "discipline": _one_of("strict", "guided", "observe", "off"),
    "max_turns": WHOLE,
    "max_tokens": WHOLE,
    "max_cost": AMOUNT,
    "max_seconds": AMOUNT,
    "approval_deadline": AMOUNT,
    "on_deadline": _one_of(*get_args(OnDeadline)),
    "escalate_to": TEXT,
    "permission_default": _one_of("seed", "workspace"),
    "language": TEXT,
    "loop_rungs": Key(_are_rungs, "a list of " + ", ".join(f'"{rung}"' for rung in RUNGS)),
    "rules": Key(lambda value: isinstance(value, list), "tables that begin with [[rules]]"),
    "models": Key(_is_table, "tables that begin with [models.NAME]"),
}

MODEL_KEYS: Mapping[str, Key] = {
    "model": TEXT,
    "base_url": Key(
        lambda value: _is_text(value) and value.startswith(("http://", "https://")),
        "an address that begins with http:// or https://",
    ),
    "key_env": TEXT,
    "context_length": WHOLE,
    "headers": Key(_is_headers, "a table of texts"),
}
