"""What may a project that nobody trusts change? It may narrow what is allowed, never widen it."""

from collections.abc import Callable, Iterable
from typing import Any

from msgspec.structs import replace

from jackstay.config.model import Config

_STRICTNESS = ("off", "observe", "guided", "strict")
_DEFAULTS = ("seed", "workspace")
_ON_DEADLINE = ("keep", "escalate", "deny")

Widens = Callable[[Any, Any], bool]  # (what holds, what the project wants): is that more than now?


def _always(base: Any, wanted: Any) -> bool:
    return True


def _never(base: Any, wanted: Any) -> bool:
    return False


def _higher(base: Any, wanted: Any) -> bool:
    return base is not None and wanted > base


def _laxer(scale: tuple[str, ...]) -> Widens:
    return lambda base, wanted: base is not None and scale.index(wanted) < scale.index(base)


def _switched_off(base: Any, wanted: Any) -> bool:
    return bool(base) and not wanted


def _more_tools(base: Any, wanted: Any) -> bool:
    return base is not None and not set(wanted) <= set(base)


def _fewer_rungs(base: Any, wanted: Any) -> bool:
    return base is not None and not set(base) <= set(wanted)


_WIDENS: dict[str, Widens] = {
    "model": _always,  # a model's server sees everything that is read here
    "summary_model": _always,
    "tools": _more_tools,
    "hitl": _switched_off,
    "discipline": _laxer(_STRICTNESS),
    "max_turns": _higher,
    "max_tokens": _higher,
    "max_cost": _higher,
    "max_seconds": _higher,
    "approval_deadline": _higher,
    "on_deadline": _laxer(_ON_DEADLINE),
    "escalate_to": _always,  # who is asked is the user's to say
    "permission_default": _laxer(_DEFAULTS),
    "language": _never,
    "loop_rungs": _fewer_rungs,
}


def narrowed(base: Config, wanted: Config) -> tuple[Config, tuple[str, ...]]:
    """What is left of an untrusted project's settings over `base`, and the keys of which something was refused.

    Its rules have been sorted out where they were read (`config.rules`).
    """
    refused: list[str] = []
    left: dict[str, Any] = {}
    for key, widens in _WIDENS.items():
        value = getattr(wanted, key)
        if value is None or not widens(getattr(base, key), value):
            continue
        refused.append(key)
        left[key] = _common(base.tools, wanted.tools) if key == "tools" else None
    if wanted.models:
        refused.append("models")
        left["models"] = {}
    return replace(wanted, **left), tuple(refused)


def _common(base: Iterable[str] | None, wanted: Iterable[str] | None) -> tuple[str, ...] | None:
    allowed = set(base or ())
    return tuple(name for name in wanted or () if name in allowed) or None
