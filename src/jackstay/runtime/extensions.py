"""Who else has a say in how agents are built: extensions, given by hand or installed as packages."""

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import msgspec

from jackstay.core.errors import ConfigError
from jackstay.runtime.agent import AgentBuilder

if TYPE_CHECKING:
    from jackstay.runtime.engine import HarnessEngine

GROUP = "jackstay.extensions"


@runtime_checkable
class HarnessExtension(Protocol):
    """Adds interceptors, tools or rules to every agent the engine builds, main and sub (first seed §6)."""

    def configure(self, engine: "HarnessEngine", agent_name: str, agent_builder: AgentBuilder) -> None:
        """Called once for each agent built, after its tools and built-in interceptors are in place."""
        ...


Extension = HarnessExtension | Callable[["HarnessEngine", str, AgentBuilder], Any]


def configure(extension: Extension, engine: "HarnessEngine", builder: AgentBuilder) -> None:
    """Let one extension do its part. Raises ConfigError naming it when it fails and is not optional."""
    act = extension.configure if isinstance(extension, HarnessExtension) else extension
    try:
        act(engine, builder.name, builder)
    except Exception as problem:
        if getattr(extension, "optional", False):
            engine.warn(f"optional extension {_title(extension)} failed and is left out: {problem!r}")
            return
        text = f"extension {_title(extension)} failed while agent {builder.name!r} was built: {problem!r}"
        raise ConfigError(text, hint="mend or remove it, or set `optional = True` on it") from problem


def _title(extension: Extension) -> str:
    kind = extension if isinstance(extension, type) or hasattr(extension, "__qualname__") else type(extension)
    return f"{kind.__module__}.{getattr(kind, '__qualname__', kind)}"


class Installed(msgspec.Struct, frozen=True):
    """An extension found among the installed packages."""

    name: str
    origin: str
    error: str | None = None
    extension: Any = None


def installed(group: str = GROUP) -> Iterable[Installed]:
    """The extensions of the entry-point group, those that cannot be loaded with the reason."""
    from importlib.metadata import entry_points

    for point in entry_points(group=group):
        origin = f"{point.dist.name} {point.dist.version}" if point.dist is not None else point.value
        try:
            loaded = point.load()
            extension = loaded() if isinstance(loaded, type) else loaded
        except Exception as problem:
            yield Installed(point.name, origin, repr(problem))
        else:
            yield Installed(point.name, origin, None, extension)


def load_installed() -> tuple[Extension, ...]:
    """All installed extensions. Raises ConfigError naming the first that cannot be loaded."""
    found = tuple(installed())
    for one in found:
        if one.error is not None:
            text = f"extension {one.name!r} of {one.origin} cannot be loaded: {one.error}"
            raise ConfigError(
                text, hint="reinstall or uninstall that package; `jackstay extensions list` shows all"
            )
    return tuple(one.extension for one in found)
