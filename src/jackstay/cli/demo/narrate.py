"""What did the harness just do? Events of the demo's runs as sentences."""

from jackstay.cli.plain import args_text, clip, safe, shown, subject
from jackstay.cli.screen import gate_text
from jackstay.core import events as ev
from jackstay.policy.checklist import SEVEN
from jackstay.policy.gates import CLOSURE_CHECK

_CHECKED = frozenset(item.id for item in SEVEN if item.checked_by == "harness")


def sentence(event: ev.Event) -> str | None:
    """The event in words, or None for what needs none."""
    match event:
        case ev.RunStartEvent():
            again = "the same run goes on" if event.resumed else "a run begins"
            return f"{again}: {event.run_id}"
        case ev.ReasonEndEvent():
            return f"the model (scripted) says: {safe(event.text)}" if event.text else None
        case ev.ToolCallEndEvent():
            return _call(event)
        case ev.HITLPendingEvent():
            return "\n".join(
                f"{shown(task.tool_name)} waits for a person, nothing of it has run: "
                f"{shown(args_text(task.args))}\nreason: {shown(task.comment)}"
                for task in event.pending_tasks
            )
        case ev.HITLDecidedEvent():
            return f"the decision arrives: {event.decision.kind} {shown(event.tool_name)}"
        case ev.RunEndEvent():
            return f"the request ends: {event.outcome}"
        case _:
            return _discipline(event)


def _call(event: ev.ToolCallEndEvent) -> str:
    if event.tool_name == CLOSURE_CHECK:
        return _closing(event)
    what = f"{shown(event.tool_name)} {shown(subject(event.args))}"
    if event.executed is False:
        return f"{what} is not run: {safe(clip(event.text, 100))}"
    return f"{what} runs: {'failed, ' if event.is_error else ''}{safe(_gist(event.text))}"


def _closing(event: ev.ToolCallEndEvent) -> str:
    item = str(event.args.get("item", ""))
    if event.is_error:
        return f"closing item {shown(item)} stays open: {safe(event.text)}"
    by = "checked by the harness" if item in _CHECKED else "ticked with evidence"
    return f"closing item {shown(item)} is {by}: {shown(clip(str(event.args.get('evidence', ''))))}"


def _gist(text: str) -> str:
    """The last line that says something, or how much there is of a longer text."""
    lines = [line for line in text.splitlines() if line.strip()]
    verdict = next((line for line in reversed(lines) if line.startswith(("OK", "FAILED"))), None)
    return verdict or (clip(lines[0]) if len(lines) == 1 else f"{len(lines)} lines")


def _discipline(event: ev.Event) -> str | None:
    match event:
        case ev.PhaseChangedEvent():
            return f"phase {event.before} → {event.after}: {safe(event.why)}"
        case ev.GateBlockedEvent():
            return f"{gate_text(event.gate)} refuses {shown(event.tool_name)}: {safe(event.reason)}"
        case ev.BackupTakenEvent():
            return f"a backup of {shown(event.path)} is taken"
        case ev.SkillLoadedEvent():
            return f"the skill {shown(event.name)} is loaded: {safe(event.why)}"
        case ev.RuleAddedEvent():
            return f"a rule is added: {shown(event.rule)}"
        case ev.WarningEvent():
            return f"warning: {safe(event.text)}"
        case _:
            return None
