"""What policy answers to a call: allow, ask or deny."""

from collections.abc import Iterable
from typing import ClassVar

import msgspec


class Allow(msgspec.Struct, frozen=True, gc=False, tag="allow"):
    """No objection. It is not a permission: somebody else may still object."""

    severity: ClassVar[int] = 0


class Ask(msgspec.Struct, frozen=True, gc=False, omit_defaults=True, tag="ask"):
    """A person has to decide. `rule` says who asks; `always_rule` is what "always" would add."""

    reason: str
    rule: str = ""
    always_rule: str | None = None
    severity: ClassVar[int] = 1


class Deny(msgspec.Struct, frozen=True, gc=False, omit_defaults=True, tag="deny"):
    """Not to be run, whoever approves. `instead` is the way on."""

    reason: str
    rule: str = ""
    instead: str | None = None
    severity: ClassVar[int] = 2


Decision = Allow | Ask | Deny
ALLOW = Allow()


def strictest(decisions: Iterable[Decision]) -> Decision:
    """The most severe of them, the first among equals; Allow when there are none."""
    worst: Decision = ALLOW
    for decision in decisions:
        if decision.severity > worst.severity:
            worst = decision
    return worst
