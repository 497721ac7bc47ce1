"""Which settings hold for a host's session? The user's file and the project's, read only where there is one."""

from pathlib import Path

from msgspec import Struct

from jackstay.core.phase import Language, Mode
from jackstay.core.rules import PermissionRule
from jackstay.core.state import PermissionDefault


class HostSettings(Struct, frozen=True):
    """What a host's session is held to. Where no rule speaks the host's own permissions decide (`seed`)."""

    mode: Mode = "strict"
    default: PermissionDefault = "seed"
    language: Language = ""
    rules: tuple[PermissionRule, ...] = ()


def settings_for(home: Path, workspace: Path) -> HostSettings:
    """The settings for work in `workspace`. Raises ConfigError for a file that is wrong."""
    if not (home / "config.toml").exists() and not (workspace / ".jackstay" / "config.toml").exists():
        return HostSettings()
    from jackstay.config.load import load
    from jackstay.config.model import Config
    from jackstay.ward.roots import rooted

    config = load(home, workspace, base=Config(discipline="strict", permission_default="seed")).config
    language: Language = "zh" if config.language == "zh" else "en" if config.language == "en" else ""
    rules = rooted(config.rules, str(workspace), str(Path.home()))
    return HostSettings(config.discipline or "strict", config.permission_default or "seed", language, rules)
