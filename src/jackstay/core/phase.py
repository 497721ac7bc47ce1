"""The phases of work, as values (second seed §16.3.1)."""

from enum import StrEnum
from typing import Literal

import msgspec

PhaseKind = Literal["steady", "transient", "temporary"]
Mode = Literal["strict", "guided", "observe", "off"]
Language = Literal["", "en", "zh"]  # "" while nobody has said or shown which


class Phase(StrEnum):
    """Where a task stands."""

    NO_TASK = "no_task"
    TASK_STARTED = "task_started"
    PLANNING = "planning"
    EXECUTING = "executing"
    MODIFYING = "modifying"
    ACCESSING_DEVICE = "accessing_device"
    CLOSING = "closing"

    @property
    def kind(self) -> PhaseKind:
        """Steady phases are silent, transient ones guide, temporary ones return to where they came from."""
        return _KIND[self]


_KIND: dict[Phase, PhaseKind] = {
    Phase.NO_TASK: "steady",
    Phase.TASK_STARTED: "transient",
    Phase.PLANNING: "transient",
    Phase.EXECUTING: "steady",
    Phase.MODIFYING: "temporary",
    Phase.ACCESSING_DEVICE: "temporary",
    Phase.CLOSING: "transient",
}


class Tick(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """A closing item that is done. `by` is `agent`, `harness` (it checked itself) or a person's name."""

    item: str
    evidence: str
    by: str = "agent"


class Finding(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """What a closing check found.

    `subject` is what has to be dealt with: a path, `pid:N`, `ssh:HOST`, or the word that the evidence has to
    speak of. A `residue` has to go, or a person says it may stay; anything else has to be accounted for.
    """

    item: str
    subject: str
    text: str = ""
    residue: bool = True


class Kept(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """A finding that a person lets stay: who, and why."""

    finding: Finding
    by: str
    reason: str


class Checked(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """What the harness's own check of an item found. `ok` with no findings left that have to go.

    `summary` is the evidence in the harness's words.
    """

    ok: bool
    summary: str
    findings: tuple[Finding, ...] = ()


class PhaseState(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """The phase a session is in and everything the discipline remembers with it: there is no second switch.

    `returns_to` is where a temporary phase goes back to. Since the task began: `looked` — a read-only call has
    run; `proposed` — a plan was put to the user in this planning; `approved_by` — who approved it, empty for
    nobody; `acted` — something with effects has run; `snapshot` — the workspace was copied before it.
    `changed` are the files written (`changed_more` counts those beyond the bound), `unverified` those nobody
    has looked at since, `replaced` strings that edits replaced. `ticks`, `required` and `findings` are the
    closing checklist, `kept` what a person lets stay, `commit_word` the user's word about committing. `skills`
    were given in this task, `wanted` are to be given next, `missing` were said to be missing. `notices` are
    said once, with the next guidance. Every tuple is bounded by the code that fills it.
    """

    phase: Phase = Phase.NO_TASK
    returns_to: Phase | None = None
    reason: str = ""
    looked: bool = False
    proposed: bool = False
    approved_by: str = ""
    acted: bool = False
    snapshot: bool = False
    commit_word: Literal["", "commit", "leave"] = ""
    ticks: tuple[Tick, ...] = ()
    required: tuple[str, ...] = ()
    findings: tuple[Finding, ...] = ()
    kept: tuple[Kept, ...] = ()
    changed: tuple[str, ...] = ()
    changed_more: int = 0
    unverified: tuple[str, ...] = ()
    replaced: tuple[str, ...] = ()
    skills: tuple[str, ...] = ()
    wanted: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    notices: tuple[str, ...] = ()
