"""Why is this the answer to a call, what would the call do, and what would change the answer?"""

from typing import Literal, assert_never

import msgspec

from jackstay.core.decision import Allow, Ask, Deny
from jackstay.core.facts import CallFacts
from jackstay.core.messages import ToolCall
from jackstay.core.rules import PermissionRule
from jackstay.core.state import PermissionDefault
from jackstay.policy.amend import always_rule_text, suggestion
from jackstay.policy.permissions import covering, judge, quoted, without_people
from jackstay.policy.subject import Subject, subject_of
from jackstay.policy.visible import visible


class Explanation(msgspec.Struct, frozen=True, gc=False):
    """A verdict with its grounds: who says so, why, what the call does, and what would change the verdict."""

    verdict: Literal["allow", "ask", "deny"]
    rule: str
    reason: str
    effects: tuple[str, ...]
    change: str | None


def explain(
    rules: tuple[PermissionRule, ...],
    call: ToolCall,
    facts: CallFacts,
    *,
    default: PermissionDefault,
    hitl: bool,
) -> Explanation:
    """The answer to a call as `judge` gives it, an Ask without people as the Deny it becomes; its grounds."""
    decision = judge(rules, call, facts, default=default, hitl=hitl)
    if isinstance(decision, Ask) and not hitl:
        decision = without_people(decision, call)
    effects = tuple(map(visible, _effects(subject_of(call, facts))))
    text: str = (always_rule_text(call, facts) or "").removeprefix("allow ") or suggestion(call)
    match decision:
        case Allow():
            rule = covering(rules, call, facts)
            if rule is not None:
                reason = f"the rule '{rule.text}' ({rule.origin}) covers the whole call"
                return Explanation("allow", rule.text, reason, effects, "removing that rule")
            reason = f"no rule speaks about it and {_HOLDS[default]}"
            return Explanation("allow", f"default {default!r}", reason, effects, f"--deny {quoted(text)}")
        case Ask():
            change = f"a person's approval, or --allow {quoted(text)}"
            return Explanation("ask", decision.rule, decision.reason, effects, change)
        case Deny():
            return Explanation("deny", decision.rule, decision.reason, effects, decision.instead)
        case _:
            assert_never(decision)


_HOLDS: dict[PermissionDefault, str] = {
    "seed": "it is not on the danger list",
    "workspace": "its effects stay inside the workspace",
}


def _effects(subject: Subject) -> list[str]:
    if subject.line is not None:
        return list(subject.line.says)
    places = [f"{fact.use} {fact.said} (leads to {fact.real or 'an unknown place'})" for fact in subject.paths]
    return places + [f"reaches {address.text}" for address in subject.addresses]
