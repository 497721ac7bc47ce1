"""Which skill should be at hand for what a call does (second seed §16.3.5)?"""

from msgspec import Struct

from jackstay.core.messages import JsonObject
from jackstay.core.phase import Phase
from jackstay.policy.credential_programs import PROGRAMS
from jackstay.policy.deeds import Deed

OURS = "work-principles"


class Hint(Struct, frozen=True, gc=False, omit_defaults=True):
    """One row: calls of `tools` (whose argument `arg` is one of `values`, if named), or command lines that run
    one of `programs`, want `skill`."""

    skill: str
    tools: frozenset[str] = frozenset()
    arg: str = ""
    values: frozenset[str] = frozenset()
    programs: frozenset[str] = frozenset()


_BROWSER = frozenset(
    f"browser_{verb}"
    for verb in (
        "navigate",
        "click",
        "type",
        "press",
        "scroll",
        "back",
        "snapshot",
        "vision",
        "console",
        "dialog",
    )
)
_SKILL_CHANGES = frozenset({"create", "edit", "patch"})

HINTS: tuple[Hint, ...] = (
    Hint("camofox-browser", tools=_BROWSER),
    Hint("skill-creator", tools=frozenset({"skill_manage"}), arg="action", values=_SKILL_CHANGES),
    Hint(f"{OURS}:credential-store-management", programs=frozenset(PROGRAMS)),
)

ON_ENTRY: dict[Phase, str] = {
    Phase.TASK_STARTED: f"{OURS}:pre-action-research",
    Phase.MODIFYING: f"{OURS}:change-safeguard",
    Phase.ACCESSING_DEVICE: f"{OURS}:credential-store-management",
    Phase.CLOSING: f"{OURS}:work-closure-check",
}


def skills_for(tool: str, args: JsonObject, deed: Deed, *, hints: tuple[Hint, ...] = HINTS) -> tuple[str, ...]:
    """The skills that a call wants, in the table's order."""
    return tuple(hint.skill for hint in hints if _fits(hint, tool, args, deed))


def _fits(hint: Hint, tool: str, args: JsonObject, deed: Deed) -> bool:
    if tool in hint.tools:
        return not hint.arg or args.get(hint.arg) in hint.values
    return bool(hint.programs.intersection(deed.programs))
