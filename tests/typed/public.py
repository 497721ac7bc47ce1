"""What type checkers see of the public names. Checked by mypy in scripts/check; never run."""

from typing import assert_type

from jackstay import (
    HITL,
    AgentSession,
    Answer,
    HarnessEngine,
    HITLDecision,
    HITLTask,
    PermissionRule,
    RunStream,
    tool,
)
from jackstay.core.events import Event


@tool
def shout(text: str) -> str:
    """Shout."""
    return text.upper()


async def use(engine: HarnessEngine) -> None:
    session = engine.get_session("s")
    assert_type(session, AgentSession)
    assert_type(engine.prompt("x").session(session).stream(), RunStream)
    async for event in engine.prompt().session("s").stream():
        assert_type(event, Event)
    assert_type(await engine.prompt("x").call(), Answer)
    assert_type(HITL.get_pending_tasks(session), tuple[HITLTask, ...])
    assert_type(HITLDecision.approve(True).comment("ok"), HITLDecision)
    assert_type(PermissionRule.allow("bash", "git *").priority(3), PermissionRule)
    assert_type(HarnessEngine.of("w", "h").tools_add("read", shout).hitl_enabled(True).build(), HarnessEngine)
