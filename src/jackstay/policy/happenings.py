"""What a change of the discipline's state amounts to,
as small values that drivers turn into events and records.
"""

import msgspec

from jackstay.core.phase import Phase


class PhaseMoved(msgspec.Struct, frozen=True, gc=False, tag="phase_moved"):
    """The phase changed."""

    before: Phase
    after: Phase
    why: str


class MoveRefused(msgspec.Struct, frozen=True, gc=False, tag="move_refused"):
    """A marker or a call asked for a move that the table does not allow; `reason` names it and the way on.

    `bypass` means that it would have left closing with items open.
    """

    phase: Phase
    trigger: str
    reason: str
    bypass: bool = False


class Blocked(msgspec.Struct, frozen=True, gc=False, tag="blocked"):
    """A gate refused a call, asked about it, or would have (`mode` observe)."""

    gate: str
    phase: Phase
    tool: str
    reason: str
    verdict: str


class Warned(msgspec.Struct, frozen=True, gc=False, tag="warned"):
    """Something a person should know."""

    text: str


class Reminded(msgspec.Struct, frozen=True, gc=False, tag="reminded"):
    """Words that go to the model once, with the result or message that caused them."""

    text: str


class SkillWanted(msgspec.Struct, frozen=True, gc=False, tag="skill_wanted"):
    """A skill's text should be before the model at its next turn."""

    name: str
    why: str


class AnchorMoved(msgspec.Struct, frozen=True, gc=False, tag="anchor_moved"):
    """The context anchor changed; an empty value means that the key was removed."""

    key: str
    value: str


class ItemTicked(msgspec.Struct, frozen=True, gc=False, tag="item_ticked"):
    """A closing item is done, or its tick was taken back (`evidence` empty)."""

    item: str
    evidence: str


Happening = PhaseMoved | MoveRefused | Blocked | Warned | Reminded | SkillWanted | AnchorMoved | ItemTicked
