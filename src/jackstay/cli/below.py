"""How does what a subagent does look to who reads along?"""

from jackstay.cli.plain import clip, safe, shown, subject
from jackstay.core import events as ev
from jackstay.core.wire import decode_event, encode


def below_line(event: ev.SubagentEvent) -> str | None:
    """One line about it, indented by how deep it lies below; None for what is not worth one."""
    inner = decode_event(encode(event.event))
    text = _said(inner)
    indent = "  " * event.child_session_id.removeprefix(event.session_id).count(".")
    return f"{indent}{shown(event.agent)}: {text}" if text is not None else None


def _said(inner: ev.Event) -> str | None:
    match inner:
        case ev.RunStartEvent():
            return "goes on" if inner.resumed else f"begins (session {inner.session_id})"
        case ev.ToolCallStartEvent():
            return f"→ {shown(inner.tool_name)}  {shown(subject(inner.args))}"
        case ev.ToolCallEndEvent(is_error=True):
            return f"✗ {clip(safe(_first(inner.text)))}"
        case ev.GateBlockedEvent():
            return f"refused ({shown(inner.gate)}): {safe(inner.reason)}"
        case ev.HITLDecidedEvent():
            return decided_line(inner)
        case ev.RuleAddedEvent():
            return f"rule added: {shown(inner.rule)}"
        case ev.PhaseChangedEvent():
            return f"phase: {inner.before} → {inner.after}"
        case ev.LoopDetectedEvent() | ev.WarningEvent():
            return safe(inner.text)
        case ev.RunEndEvent():
            return f"{inner.outcome}: {clip(safe(_first(inner.text)))}"
        case _:
            return None


def decided_line(event: ev.HITLDecidedEvent) -> str:
    """What was decided about which tool, and the remark that came with it."""
    remark = f": {safe(event.comment)}" if event.comment else ""
    return f"{_SAID[event.decision.kind]} {shown(event.tool_name)}{remark}"


_SAID = {"approve": "approved", "reject": "rejected", "skip": "skipped"}


def _first(text: str) -> str:
    return next((line for line in text.splitlines() if line.strip()), "")
