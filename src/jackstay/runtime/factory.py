"""Wires an agent from an engine's settings: model, tools, built-in interceptors, prompt, extensions."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from jackstay.agents.definition import AgentDefinition
from jackstay.config.paths import home
from jackstay.engine.bounds import RunBounds
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
from jackstay.runtime.agent import Agent, AgentBuilder, Assignment
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
SPAWNING = ("task", "multitask")
REGISTRIES = ("registry.toml", "registry.yaml", "registry.json")


def build_agent(engine: "HarnessEngine", name: str, assigned: Assignment | None = None) -> Agent:
    """The agent of this name as the engine is configured now; one below another agent gets no more than that.

    Raises ConfigError for what cannot be wired.
    """
    options = engine.options
    catalog = open_catalog(options.workspace, home(options.harness_home))
    tools, wants_hitl = choose_tools(engine, catalog)
    if assigned is not None:
        tools = _narrowed(tools, assigned)
    hitl = engine.hitl_interceptor if wants_hitl else None
    interceptors: list[Interceptor] = [
        one for one in (engine.compression_interceptor, engine.stop_loop_interceptor, hitl) if one is not None
    ]
    guard = Guard(home(options.harness_home), options.workspace) if options.discipline != "off" else None
    if guard is not None:
        known = {tool.spec.name for tool in tools}
        tools = (*tools, *own_tools(), *(() if SKILL in known else (SkillTool(catalog),)))
    definition = assigned.definition if assigned is not None else None
    builder = AgentBuilder(name, system=_system(options, definition), tools=tools, interceptors=interceptors)
    builder.recall = RecallTool(lambda session_id: engine.get_session(session_id).store)
    builder.guard, builder.protected = guard, own_places(options)
    for extension in (*(load_installed() if options.installed_extensions else ()), *options.extensions):
        configure(extension, engine, builder)
    model, summariser = _models(engine, assigned)
    if assigned is not None:
        builder.tools = {name: tool for name, tool in builder.tools.items() if name in assigned.above.tools}
    specs = tuple(tool.spec for tool in builder.tools.values())
    bounds = options.bounds(
        rules=(*options.permission_rules, *builder.rules), model=model, summariser=summariser,
        overhead=text_tokens(builder.system) + tools_tokens(specs),
    )  # fmt: skip
    if assigned is not None:
        bounds = _below(bounds, assigned)
    if guard is not None:
        data = _with_components(bounds.data, home(options.harness_home))
        bounds = replace(bounds, skills=SkillTexts(catalog), data=data)
    asking = hitl if options.hitl_enabled else None
    return Agent(builder, model=model, summariser=summariser, bounds=bounds, hitl=asking)


def _narrowed(tools: tuple[Tool, ...], assigned: Assignment) -> tuple[Tool, ...]:
    """The tools that both an agent's definition and the agent above it have."""
    from jackstay.tools.registry import narrow

    there = {tool.spec.name: tool for tool in tools if tool.spec.name in assigned.above.tools}
    definition = assigned.definition
    kept = narrow(definition.tools, disallowed=definition.disallowed_tools, among=there)
    return tuple(there[name] for name in kept)


def _models(engine: "HarnessEngine", assigned: Assignment | None) -> tuple[Model, Model]:
    """The agent's model, and the one that writes its summaries."""
    if assigned is None:
        return engine.open_model(), engine.open_summariser()
    named, above = assigned.definition.model, assigned.above
    if named is None:
        return above.model, above.summariser
    model = engine.open_for(assigned.definition.name, named)
    return model, model if above.summariser is above.model else above.summariser


def _below(bounds: RunBounds, assigned: Assignment) -> RunBounds:
    """The bounds of an agent below another one: its rules and theirs hold, and it spends what it is given."""
    above = assigned.above.bounds
    sets = (*above.narrowing, above.rules, assigned.definition.rules)
    narrowing = tuple(rules for rules in dict.fromkeys(sets) if rules and rules != bounds.rules)
    return replace(bounds, narrowing=narrowing, budget=assigned.budget)


def choose_tools(engine: "HarnessEngine", catalog: Catalog) -> tuple[tuple[Tool, ...], bool]:
    """The tools by name or as given, without the disallowed ones; and whether `hitl` is among the names."""
    from jackstay.tools.registry import build, expand

    options = engine.options
    own: dict[str, Tool] = {SKILL: SkillTool(catalog)}
    own |= {entry.spec.name: entry for entry in options.tools if not isinstance(entry, str)}
    names = [entry if isinstance(entry, str) else entry.spec.name for entry in options.tools]
    hidden = [name for name in SPAWNING if name not in own and not options.subagent_enabled]
    choice = expand(names, disallowed=(*options.disallowed_tools, *hidden), provided={*own, *SPAWNING})
    own |= _spawning(engine, [name for name in SPAWNING if name in choice.names and name not in own])
    keeps_plans = "todo" in choice.names
    folder = str(home(options.harness_home) / "sessions") if keeps_plans else ""
    launcher = None
    if "bash" in choice.names:
        from jackstay.runtime.confine import command_launcher

        launcher = command_launcher(options, own_places(options))
    return build(choice, sessions_dir=folder, launcher=launcher, provided=own), choice.hitl


def _spawning(engine: "HarnessEngine", names: list[str]) -> dict[str, Tool]:
    """The tools of these names that hand work to other agents; not loaded before somebody wants one."""
    if not names:
        return {}
    from jackstay.runtime.subagents import MULTITASK, SubagentTool

    return {name: SubagentTool(engine, several=name == MULTITASK) for name in names}


def open_model(named: Any) -> Model:
    """The model as given, or opened by its name."""
    if named is not None and not isinstance(named, str):
        model: Model = named
        return model
    import os

    from jackstay.models.registry import open_model as by_name

    return by_name(named, env=os.environ)


def _system(options: Options, definition: AgentDefinition | None = None) -> str:
    own = options.system_prompt if definition is None else None
    parts = [own if own is not None else SYSTEM.format(workspace=options.workspace)]
    if definition is not None:
        parts.append(definition.prompt)
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
