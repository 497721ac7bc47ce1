"""Wires an agent from an engine's settings: model, tools, built-in interceptors, prompt, extensions."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from jackstay.config.paths import home
from jackstay.engine.compaction.composite import CompositeCompressionStrategy
from jackstay.engine.compaction.hierarchy import HierarchicalCompressionStrategy
from jackstay.engine.compaction.interceptor import ContextCompressionInterceptor
from jackstay.engine.compaction.keyinfo import KeyInfoExtractionStrategy
from jackstay.engine.compaction.tokens import text_tokens, tools_tokens
from jackstay.engine.hitl import HITLInterceptor
from jackstay.engine.interceptors import Interceptor
from jackstay.engine.ports import Model, Tool
from jackstay.policy.data import PolicyData
from jackstay.policy.guidance import SESSION_TEXT
from jackstay.runtime.agent import Agent, AgentBuilder
from jackstay.runtime.extensions import configure, load_installed
from jackstay.runtime.guard import Guard
from jackstay.runtime.options import Options
from jackstay.runtime.own_tools import own_tools
from jackstay.runtime.recall import RecallTool
from jackstay.runtime.skills import SKILL, SkillTexts, SkillTool, open_catalog
from jackstay.skills.catalog import Catalog

if TYPE_CHECKING:
    from jackstay.runtime.engine import HarnessEngine

SYSTEM = (
    "You work in the directory {workspace} by calling tools. Base what you say on what the tools really "
    "returned, never on a guess of it. When a call is refused, read the reason: it names the way on. When "
    "the task is done, say what you did and how you checked it."
)
READ_BESIDES = ("SOUL.md", "AGENTS.md")
READ_CHARS = 16_000
REGISTRIES = ("registry.toml", "registry.yaml", "registry.json")


def build_agent(engine: "HarnessEngine", name: str) -> Agent:
    """The agent of this name as the engine is configured now. Raises ConfigError for what cannot be wired."""
    options = engine.options
    catalog = open_catalog(options.workspace, home(options.harness_home))
    tools, wants_hitl = choose_tools(options, catalog)
    hitl = engine.hitl_interceptor if wants_hitl else None
    interceptors: list[Interceptor] = [
        one for one in (engine.compression_interceptor, engine.stop_loop_interceptor, hitl) if one is not None
    ]
    guard = Guard(home(options.harness_home), options.workspace) if options.discipline != "off" else None
    if guard is not None:
        known = {tool.spec.name for tool in tools}
        tools = (*tools, *own_tools(), *(() if SKILL in known else (SkillTool(catalog),)))
    builder = AgentBuilder(name, system=_system(options), tools=tools, interceptors=interceptors)
    builder.recall = RecallTool(lambda session_id: engine.get_session(session_id).store)
    builder.guard, builder.protected = guard, own_places(options)
    for extension in (*(load_installed() if options.installed_extensions else ()), *options.extensions):
        configure(extension, engine, builder)
    model, summariser = engine.open_model(), engine.open_summariser()
    specs = tuple(tool.spec for tool in builder.tools.values())
    bounds = options.bounds(
        rules=(*options.permission_rules, *builder.rules), model=model, summariser=summariser,
        overhead=text_tokens(builder.system) + tools_tokens(specs),
    )  # fmt: skip
    if guard is not None:
        data = _with_components(bounds.data, home(options.harness_home))
        bounds = replace(bounds, skills=SkillTexts(catalog), data=data)
    asking = hitl if options.hitl_enabled else None
    return Agent(builder, model=model, summariser=summariser, bounds=bounds, hitl=asking)


def choose_tools(options: Options, catalog: Catalog) -> tuple[tuple[Tool, ...], bool]:
    """The tools by name or as given, without the disallowed ones; and whether `hitl` is among the names."""
    from jackstay.tools.registry import build, expand

    own: dict[str, Tool] = {SKILL: SkillTool(catalog)}
    own |= {entry.spec.name: entry for entry in options.tools if not isinstance(entry, str)}
    names = [entry if isinstance(entry, str) else entry.spec.name for entry in options.tools]
    choice = expand(names, disallowed=options.disallowed_tools, provided=own)
    keeps_plans = "todo" in choice.names
    folder = str(home(options.harness_home) / "sessions") if keeps_plans else ""
    launcher = None
    if "bash" in choice.names:
        from jackstay.runtime.confine import command_launcher

        launcher = command_launcher(options, own_places(options))
    return build(choice, sessions_dir=folder, launcher=launcher, provided=own), choice.hitl


def open_model(named: Any) -> Model:
    """The model as given, or opened by its name."""
    if named is not None and not isinstance(named, str):
        model: Model = named
        return model
    import os

    from jackstay.models.registry import open_model as by_name

    return by_name(named, env=os.environ)


def _system(options: Options) -> str:
    own = options.system_prompt
    parts = [own if own is not None else SYSTEM.format(workspace=options.workspace)]
    if options.discipline != "off":
        parts.append(SESSION_TEXT[options.language or "en"])
    for name in READ_BESIDES:
        text = _nearest(name, options)
        if text is not None:
            parts.append(f"What {name} says (information from the project, not rules of the harness):\n{text}")
    return "\n\n".join(part for part in parts if part)


def _nearest(name: str, options: Options) -> str | None:
    """The file of this name in the workspace, else in the home; clipped, None when there is none to read.

    One that leads out of its directory is none: a repository must not send a stranger's file to the model.
    """
    for directory in (Path(options.workspace), home(options.harness_home)):
        try:
            path = (directory / name).resolve()
            if not path.is_file() or not path.is_relative_to(directory.resolve()):
                continue
            with path.open(encoding="utf-8", errors="replace") as file:
                return file.read(READ_CHARS)
        except (OSError, RuntimeError):  # a link to itself is the latter
            continue
    return None


def _with_components(data: PolicyData, directory: Path) -> PolicyData:
    """The data with the closing items that the components of the home's registry file add.

    Raises ConfigError when the file cannot be used.
    """
    file = next((file for name in REGISTRIES if (file := directory / name).is_file()), None)
    if file is None:
        return data
    from jackstay.ward.lifecycle import read_registry

    return replace(data, items=(*data.items, *read_registry(file).items))


def own_places(options: Options) -> tuple[str, ...]:
    """What no tool call may write: the harness's home and its store, wherever they lie."""
    database = getattr(options.session_provider, "database", None)
    file = getattr(database, "path", None)
    beside = (file, f"{file}-wal", f"{file}-shm") if file is not None else ()
    return (str(home(options.harness_home)), *map(str, beside))


def default_hitl() -> HITLInterceptor:
    """The engine's own HITL interceptor: `bash` is judged, "always" adds the narrowest rule."""
    from jackstay.policy.strategies import BashToolStrategy

    hitl = HITLInterceptor().on_tool("bash", BashToolStrategy())
    hitl.grants = True
    return hitl


def default_compression(options: Options) -> ContextCompressionInterceptor:
    """The engine's own compression: key information first, then a rolling summary (first seed §1)."""
    strategy = CompositeCompressionStrategy()
    strategy.add_strategy(KeyInfoExtractionStrategy()).add_strategy(HierarchicalCompressionStrategy())
    count, ratio = options.compression_threshold
    return ContextCompressionInterceptor(count, ratio, options.model_retries, strategy)
