"""What the harness does to the world for the discipline: backups, closing checks, the audit record."""

import asyncio
import os
import time
from collections.abc import Sequence
from pathlib import Path

from msgspec.structs import replace

from jackstay.core import wire
from jackstay.core.events import (
    Event,
    GateBlockedEvent,
    HITLPendingEvent,
    PhaseChangedEvent,
    ToolCallStartEvent,
)
from jackstay.core.facts import CallFacts
from jackstay.core.messages import JsonObject, ToolCall
from jackstay.core.phase import Checked, Phase, PhaseState
from jackstay.core.state import RunState
from jackstay.engine.ports import SESSION_MARK
from jackstay.policy import discipline
from jackstay.policy.checklist import BASELINE, COMMIT, CREDENTIAL_SCAN
from jackstay.policy.data import PolicyData
from jackstay.policy.gates import CLOSURE_CHECK, GATES
from jackstay.runtime.housekeeping import committed, known_files
from jackstay.ward import baseline, scan
from jackstay.ward.audit import Audit, AuditRecord
from jackstay.ward.backup import BackupError, Backups, workspace_files
from jackstay.ward.redact import redact, redact_value

_GATE_NAMES = frozenset(gate.name for gate in GATES.values())
_START = GATES[Phase.NO_TASK].name
BASELINE_KEY = "baseline"  # under which a session's look from before its task is kept


class Guard:
    """The hands of the discipline for one engine. Everything that may take time is done off the event loop."""

    def __init__(self, home: str | Path, workspace: str) -> None:
        self._backups, self._audit, self._workspace = Backups(home), Audit(home), workspace

    # -- before a call is judged -----------------------------------------------------------------------

    async def facts(
        self, state: RunState, call: ToolCall, facts: CallFacts, *, look: str | None, data: PolicyData
    ) -> CallFacts:
        """The facts with what the discipline needs: backups taken, closing items checked.

        `look` is the stored look from before the task, for the comparison.
        """
        if call.tool == CLOSURE_CHECK:
            return replace(facts, checked=await asyncio.to_thread(self._checked, state, call.args, look, data))
        wanted = discipline.prepare(state.policy, call, facts, data=data)
        if not wanted.targets and not wanted.snapshot:
            return replace(facts, backup="taken") if not facts.reads_only else facts
        return await asyncio.to_thread(self._copy, state, call, facts, wanted)

    def _copy(
        self, state: RunState, call: ToolCall, facts: CallFacts, wanted: discipline.Preparation
    ) -> CallFacts:
        why, session, now = f"before {call.tool}", state.session_id, time.time()
        taken: list[tuple[str, str]] = []
        try:
            if wanted.targets:
                kept = self._backups.take(wanted.targets, session=session, why=why, at=now)
                taken += [(copy.path, kept.id) for copy in kept.copies]
            if wanted.snapshot:
                files = workspace_files(self._workspace, known_files(self._workspace))
                kept = self._backups.snapshot(files, session=session, why=why, at=now)
                taken.append((self._workspace, kept.id))
        except (BackupError, OSError) as problem:
            return replace(facts, backup="impossible", backup_problem=str(problem))
        return replace(facts, backup="taken", snapshot=wanted.snapshot, backups=tuple(taken))

    # -- closing ---------------------------------------------------------------------------------------

    async def look(self, session: str) -> str:
        """How the machine looks now, as text to be kept until the session's task closes."""
        return wire.encode(await asyncio.to_thread(baseline.look, self._place(session))).decode()

    def _place(self, session: str) -> baseline.Place:
        temporary = os.environ.get("TMPDIR") or "/tmp"
        return baseline.Place(self._workspace, temporary, str(Path.home()), f"{SESSION_MARK}={session}")

    def _checked(self, state: RunState, args: JsonObject, look: str | None, data: PolicyData) -> Checked | None:
        item, phase = args.get("item"), state.policy.phase
        before = wire.convert(wire.decode_json(look), baseline.Look) if look is not None else None
        if item == CREDENTIAL_SCAN:
            return self._scanned(phase, before)
        if item == BASELINE:
            after = baseline.look(self._place(state.session_id))
            return baseline.checked(before, after, mine=frozenset(phase.changed))
        if item == COMMIT:
            return committed(self._workspace, state.policy, before, data=data)
        return None

    def _scanned(self, phase: PhaseState, before: baseline.Look | None) -> Checked:
        """The scan of what calls wrote by name and of what git shows besides."""
        found = scan.scan(baseline.task_files(phase.changed, self._workspace, before))
        if phase.changed_more:
            beyond = f"{phase.changed_more} further files: more were changed than are remembered by name"
            found = replace(found, unread=(*found.unread, beyond))
        return scan.checked(found)

    # -- audit -----------------------------------------------------------------------------------------

    def record(self, before: RunState, state: RunState, events: Sequence[Event]) -> None:
        """Write down every refusal and every question of a step, and what a person has let stay.

        Raises AuditFailed when it cannot.
        """
        records = _records(before.policy.phase.phase, state, events)
        if state.policy is not before.policy:
            records += _let_stay(before, state, events)
        if records:
            self._audit.append(*records)


def _records(phase: Phase, state: RunState, events: Sequence[Event]) -> list[AuditRecord]:
    found: list[AuditRecord] = []
    session, observing = state.session_id, state.policy.mode == "observe"
    for index, event in enumerate(events):
        if isinstance(event, PhaseChangedEvent):
            phase = event.after
        elif isinstance(event, GateBlockedEvent):
            ours = event.gate in _GATE_NAMES
            verdict = "allow" if observing and ours else "deny"
            rule = f"gate:{event.gate}" if ours else event.gate
            # The refusal at the start is told after the move that it brought about.
            judged_in = Phase.NO_TASK if event.gate == _START else phase
            args = _args(event.tool_name, events[index + 1 :])
            found.append(
                AuditRecord(event.at, session, judged_in, event.gate, event.tool_name, _said(args), rule,
                            redact(event.reason)[:500], verdict)
            )  # fmt: skip
        elif isinstance(event, HITLPendingEvent):
            found += [
                AuditRecord(event.at, session, phase, "approval", task.tool_name, _said(task.args), "approval",
                            redact(task.comment)[:500], "ask")
                for task in event.pending_tasks
            ]  # fmt: skip
    return found


def _let_stay(before: RunState, state: RunState, events: Sequence[Event]) -> list[AuditRecord]:
    """What a person has decided about the closing checklist in this step."""
    was, phase = before.policy.phase, state.policy.phase
    said = [(one.finding.subject, one.by, one.reason) for one in phase.kept if one not in was.kept]
    said += [
        (one.item, one.by, one.evidence) for one in phase.ticks
        if one not in was.ticks and one.by not in ("agent", "harness")
    ]  # fmt: skip
    return [
        AuditRecord(events[0].at, state.session_id, was.phase, "closure", "let-stay", redact(subject)[:500],
                    f"person:{by}", redact(reason)[:500], "allow")
        for subject, by, reason in said
    ]  # fmt: skip


def _args(tool: str, following: Sequence[Event]) -> JsonObject:
    """The arguments of the call that a refusal is about: it is told right after it. A marker has none."""
    for event in following:
        if isinstance(event, ToolCallStartEvent):
            return event.args if event.tool_name == tool else {}
        if isinstance(event, GateBlockedEvent):
            break
    return {}


def _said(args: JsonObject) -> str:
    return wire.encode(redact_value(args)).decode("utf-8", "replace")[:2000]
