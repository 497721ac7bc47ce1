"""Would this call take the harness away: restart a host without it, or speak in a person's place?"""

import re

from jackstay.core.messages import JsonObject, ToolCall
from jackstay.policy.deeds import Deed

PEOPLES_PROGRAMS = frozenset({"claude", "hermes", "jackstay", "jackstay-hook"})
_LOOKS = re.compile(
    r"\s*(?:[\w./-]*/)?(?:(?:jackstay|claude|hermes)\s+(?:--version|--help|-h)"
    r"|jackstay\s+(?:doctor|audit|pending|policy\s+(?:check|test)|sessions\s+(?:list|show)|host\s+status)"
    r"(?:\s+[\w./-]+)*)\s*"
)
_SWITCHES = re.compile(
    r"disableAllHooks|jackstay[./]cli|jackstay/hosts|@anthropic-ai/claude-code|claude_agent_sdk"
    r"|CLAUDE_CONFIG_DIR=|HERMES_HOME=|JACKSTAY_HOME="
)


def disarms(call: ToolCall, deed: Deed) -> str | None:
    """Why nobody but a person may do this; None where nothing speaks against it.

    Programs of ours and of the hosts may be asked for their version and shown what is stored.
    """
    command = call.args.get("command") if call.tool == "bash" else None
    if not isinstance(command, str):
        return _written(call.args) if call.tool in ("write", "edit") else None
    ours = sorted(PEOPLES_PROGRAMS.intersection(deed.programs))
    if ours and _LOOKS.fullmatch(command) is None:
        return f"{ours[0]!r} is for people: an agent may not start a host, or speak to the harness, by itself"
    found = _SWITCHES.search(command)
    if found is not None and not deed.reads_only:
        return f"{found[0]!r} could start a host without the harness"
    return None


def _written(args: JsonObject) -> str | None:
    texts = [value for value in args.values() if isinstance(value, str)]
    if any("disableAllHooks" in text for text in texts):
        return "'disableAllHooks' would start a host without the harness"
    return None
