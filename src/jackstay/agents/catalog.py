"""Which agents are there, and which one does a name mean?

Those of the program come first, then a trusted project's `.jackstay/agents`, the home's `agents`, those that
ship, and last an untrusted project's, which take no name that is known already and choose no model.
"""

from collections.abc import Iterable, Iterator
from importlib.resources import files
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from jackstay.agents.definition import AgentDefinition, BadAgent, Origin, read_agent
from jackstay.config.trusted import PROJECT_DIR, Trust
from jackstay.core.errors import ConfigError

MAX_AGENTS = 200


class UnknownAgent(ConfigError):
    """A name that no agent answers to, or one that cannot be used."""


class Agents(Struct, frozen=True, gc=False):
    """The agents by name, and what is wrong with files that hold none, by the name they would have."""

    known: dict[str, AgentDefinition]
    broken: dict[str, str] = {}

    @property
    def listed(self) -> tuple[AgentDefinition, ...]:
        """Those that are offered."""
        return tuple(one for one in self.known.values() if one.enabled and not one.hidden)

    def find(self, name: str, *, besides: tuple[str, ...] = ()) -> AgentDefinition:
        """The agent of this name. Raises UnknownAgent, which names those there are, and those `besides`."""
        found = self.known.get(name)
        if found is not None and found.enabled:
            return found
        others = f"known are {', '.join((*besides, *(one.name for one in self.listed)))}"
        if found is not None:
            raise UnknownAgent(
                f"the agent {name!r} is switched off in {found.file or 'its definition'}", hint=others
            )
        if name in self.broken:
            raise UnknownAgent(f"the agent {name!r} cannot be used: {self.broken[name]}", hint=others)
        raise UnknownAgent(f"there is no agent {name!r}", hint=others)


def find_agents(given: Iterable[AgentDefinition], *, workspace: str, home: Path) -> Agents:
    """All agents of this workspace and home. A file that cannot be read as one hides no other."""
    project = Path(workspace)
    trusted = _trusted(project, home)
    known: dict[str, AgentDefinition] = {one.name: one for one in given}
    broken: dict[str, str] = {}
    places: list[tuple[Path, Origin]] = [(home / "agents", "home"), (_shipped(), "built-in")]
    places.insert(0 if trusted else 2, (project / PROJECT_DIR / "agents", "project"))
    for folder, origin in places:
        for file in _files(folder):
            try:
                one = read_agent(file, origin)
            except BadAgent as problem:
                broken.setdefault(file.stem, str(problem))
                continue
            if origin == "project" and not trusted:
                one = replace(one, model=None)  # a model's server sees everything that is read here
            if one.name not in broken:  # else the nearer one, with its bounds, was meant
                known.setdefault(one.name, one)
    return Agents(known, broken)


def _trusted(project: Path, home: Path) -> bool:
    try:
        return Trust(home).holds(project)
    except (ConfigError, OSError):
        return False


def _shipped() -> Path:
    return Path(str(files("jackstay.agents") / "data"))


def _files(folder: Path) -> Iterator[Path]:
    """The Markdown files in a folder; links that lead out of it are none."""
    try:
        root = folder.resolve()
        found = sorted(root.glob("*.md"))[:MAX_AGENTS]
    except (OSError, RuntimeError):
        return
    for file in found:
        try:
            if file.is_file() and file.resolve().is_relative_to(root):
                yield file
        except (OSError, RuntimeError):
            continue
