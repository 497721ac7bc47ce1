"""How do flags, files and what a session remembers become one engine?"""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from jackstay.config.load import load
from jackstay.config.model import Config, ModelSettings
from jackstay.config.paths import home as home_path
from jackstay.core.approvals import OnDeadline, Waiting
from jackstay.core.errors import ConfigError, SubagentSession
from jackstay.core.messages import JsonObject
from jackstay.core.phase import Mode
from jackstay.core.rules import PermissionRule
from jackstay.core.state import RunState
from jackstay.core.wire import convert
from jackstay.engine.ports import Model, ModelRequest, Reply, Tell
from jackstay.engine.stoploop import StopLoopInterceptor
from jackstay.policy.permissions import parse_rule
from jackstay.runtime.engine import HarnessEngine

DEFAULT_TOOLS = ("read", "write", "edit", "ls", "grep", "glob", "bash", "todo", "webfetch", "skill")
BUILT_IN = Config(
    tools=DEFAULT_TOOLS, hitl=True, discipline="strict", max_turns=20, permission_default="workspace",
    on_deadline="deny",
)  # fmt: skip
FLAG = "command line"  # the origin of rules given as flags: they go with the run, those of files do not


class Flags(msgspec.Struct, frozen=True, kw_only=True):
    """What was said on the command line; None and () mean: nothing."""

    home: str | None = None
    model: str | None = None
    agent: str | None = None
    workspace: str | None = None
    tools: str | None = None
    hitl: bool | None = None
    discipline: Mode | None = None
    allow: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()
    max_turns: int | None = None
    approval_deadline: float | None = None
    on_deadline: OnDeadline | None = None


class Setup(msgspec.Struct, frozen=True):
    """An engine ready to work, and what a person should know before it does."""

    engine: HarnessEngine
    agent: str
    warnings: tuple[str, ...] = ()


def set_up(flags: Flags, remembered: RunState | None = None) -> Setup:
    """The engine for these flags over what the session remembers, the variables, the files, what is built in.

    Raises ConfigError for whatever cannot be used, SubagentSession for a session that is a subagent's.
    """
    if remembered is not None and remembered.parent is not None:
        raise SubagentSession(remembered.session_id, remembered.parent.session_id)
    settings = remembered.settings if remembered is not None else {}
    home = home_path(flags.home)
    workspace = _workspace(flags, settings)
    loaded = load(home, workspace, base=BUILT_IN)
    config = loaded.config.under(from_environment()).under(_remembered(settings)).under(_said(flags))
    if flags.on_deadline is not None and config.approval_deadline is None:
        raise ConfigError("--on-deadline: no deadline is set", hint="say --approval-deadline 2h with it")
    warnings = loaded.warnings
    if remembered is not None and flags.workspace is None and workspace != Path.cwd():
        warnings = (*warnings, f"the session works in {workspace}")
    agent = flags.agent or (remembered.agent if remembered is not None else "main")
    engine = HarnessEngine(**_engine_settings(config, home, workspace))
    engine.agent(agent)  # raises for one that is not there
    return Setup(engine, agent, warnings)


def _workspace(flags: Flags, settings: JsonObject) -> Path:
    given = flags.workspace or settings.get("workspace") or "."
    path = Path(given).expanduser().resolve()
    if not path.is_dir():
        raise ConfigError(f"the workspace {str(path)!r} is no directory", hint="create it or name another one")
    return path


def from_environment() -> Config:
    """What JACKSTAY_MODEL says: it goes before the files, after the session and the flags."""
    return Config(model=_lasting(os.environ.get("JACKSTAY_MODEL") or None))


def _lasting(model: str | None) -> str | None:
    """The model's name as it can be kept with a run: the path of a script must mean the same elsewhere."""
    if model is None or not model.startswith("script:") or model == "script:":
        return model
    return f"script:{Path(model.removeprefix('script:')).expanduser().absolute()}"


def _remembered(settings: JsonObject) -> Config:
    """What a run was started with, as a layer. Rules of files are left out: the files are read anew."""
    if not settings:
        return Config()
    rules: tuple[PermissionRule, ...] = convert(
        settings.get("permission_rules", []), tuple[PermissionRule, ...]
    )
    known = {name: settings[name] for name in _KEPT if settings.get(name) is not None}
    waiting: Waiting = convert(settings.get("hitl_waiting", {}), Waiting)
    known |= {"hitl": settings.get("hitl_enabled"), "approval_deadline": waiting.deadline_s}
    if waiting.deadline_s is not None:
        known |= {"on_deadline": waiting.action, "escalate_to": waiting.escalate_to or None}
    config: Config = convert(known, Config)
    return msgspec.structs.replace(config, rules=tuple(rule for rule in rules if rule.origin == FLAG))


_KEPT = (
    "model", "tools", "disallowed_tools", "discipline", "max_turns", "max_tokens", "max_cost", "max_seconds",
    "permission_default", "language",
)  # fmt: skip


def _said(flags: Flags) -> Config:
    rules = [parse_rule(text, "allow", origin=FLAG) for text in flags.allow]
    rules += [parse_rule(text, "deny", origin=FLAG) for text in flags.deny]
    tools = None
    if flags.tools is not None:
        tools = tuple(name.strip() for name in flags.tools.split(",") if name.strip())
    return Config(
        model=_lasting(flags.model), tools=tools, hitl=flags.hitl, discipline=flags.discipline,
        max_turns=flags.max_turns, rules=tuple(rules), approval_deadline=flags.approval_deadline,
        on_deadline=flags.on_deadline,
    )  # fmt: skip


def _engine_settings(config: Config, home: Path, workspace: Path) -> dict[str, Any]:
    hitl = bool(config.hitl)
    tools = tuple(name for name in config.tools or () if name.lower() != "hitl")
    settings: dict[str, Any] = {
        "workspace": str(workspace),
        "harness_home": str(home),
        "model": choose_model(config, os.environ),
        "tools": (*tools, "hitl") if hitl else tools,
        "hitl_enabled": hitl,
        "hitl_waiting": Waiting(
            config.approval_deadline, config.on_deadline or "deny", config.escalate_to or ""
        ),
        "disallowed_tools": tuple(dict.fromkeys(config.disallowed_tools)),
        "permission_rules": config.rules,
        # The discipline is stored with the run; what it adds to the engine belongs here.
        "discipline": config.discipline or "off",
    }
    if config.summary_model is not None:
        named = msgspec.structs.replace(config, model=_lasting(config.summary_model))
        settings["summary_model"] = choose_model(named, os.environ)
    if config.loop_rungs is not None:
        settings["stop_loop_interceptor"] = StopLoopInterceptor().set_rungs(*config.loop_rungs)
    said = {name: getattr(config, name) for name in _PASSED_ON if getattr(config, name) is not None}
    return settings | said


_PASSED_ON = ("max_turns", "max_tokens", "max_cost", "max_seconds", "permission_default", "language")


# -- models under names of the user's ----------------------------------------------------------------------


class NamedModel:
    """A model that records call by the name it has in the settings, so that `resume` finds it there again."""

    def __init__(self, name: str, model: Model) -> None:
        self.name, self._model = name, model
        self.context_length = model.context_length

    async def reply(self, request: ModelRequest, tell: Tell) -> Reply:
        """Ask the model."""
        return await self._model.reply(request, tell)

    async def close(self) -> None:
        """Give back its connections."""
        await self._model.close()


def choose_model(config: Config, env: Mapping[str, str]) -> Model | str | None:
    """The model that is configured: as its name, or opened where the settings say more about it."""
    named = config.models.get(config.model or "")
    if named is None or config.model is None:
        return config.model
    from jackstay.models.http import HttpOptions
    from jackstay.models.registry import ModelOptions, open_model

    options = ModelOptions(
        context_length=named.context_length,
        http=HttpOptions(headers=named.headers) if named.headers else None,
    )
    model = open_model(_form(config.model, named), env=_with_key(named, env, config.model), options=options)
    return NamedModel(config.model, model)


def _form(name: str, settings: ModelSettings) -> str:
    model = settings.model or name
    return f"{model}@{settings.base_url}" if settings.base_url is not None else model


def _with_key(settings: ModelSettings, env: Mapping[str, str], name: str) -> Mapping[str, str]:
    if settings.key_env is None:
        return env
    key = env.get(settings.key_env, "").strip()
    if not key:
        raise ConfigError(
            f"models.{name} takes its key from {settings.key_env}, which is not set", hint="set it"
        )
    return {**env, "OPENAI_API_KEY": key, "ANTHROPIC_API_KEY": key}
