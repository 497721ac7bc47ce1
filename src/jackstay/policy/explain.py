"""Why is this the answer to a call, what would the call do, and what would change the answer?"""

from collections.abc import Iterator
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
    """A verdict with its grounds: who says so, why, what the call does, and what would change the verdict.

    Of a command also `facts`, what its text consists of, and whether it is `read_only`: shown to change
    nothing. Where it is not, `unproven` says which words stand against it; for other tools all are empty.
    """

    verdict: Literal["allow", "ask", "deny"]
    rule: str
    reason: str
    effects: tuple[str, ...]
    change: str | None
    facts: tuple[str, ...] = ()
    read_only: bool | None = None
    unproven: str | None = None


def explain(
    rules: tuple[PermissionRule, ...],
    call: ToolCall,
    facts: CallFacts,
    *,
    default: PermissionDefault,
    hitl: bool,
) -> Explanation:
    """The answer to a call as `judge` gives it, an Ask without people as the Deny it becomes; its grounds."""
    explained = _decided(rules, call, facts, default=default, hitl=hitl)
    line = subject_of(call, facts).line
    if line is None:
        return explained
    return msgspec.structs.replace(
        explained,
        facts=tuple(map(visible, _facts(line.text))),
        read_only=line.unproven is None,
        unproven=None if line.unproven is None else visible(line.unproven),
    )


def _decided(
    rules: tuple[PermissionRule, ...],
    call: ToolCall,
    facts: CallFacts,
    *,
    default: PermissionDefault,
    hitl: bool,
) -> Explanation:
    decision = judge(rules, call, facts, default=default, hitl=hitl)
    if isinstance(decision, Ask) and not hitl:
        decision = without_people(decision, call)
    effects = tuple(map(visible, _effects(subject_of(call, facts))))
    text: str = (always_rule_text(call, facts) or "").removeprefix("allow ") or suggestion(call)
    match decision:
        case Allow():
            rule = covering(rules, call, facts)
            if rule is not None:
                reason = f"the rule '{visible(rule.text)}' ({rule.origin}) covers the whole call"
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


def _facts(command: str) -> Iterator[str]:
    """What the text of a command consists of, wherever in it: commands, redirections, substitutions."""
    from jackstay.policy.shell import analyse_command  # the analyser is loaded with the first command

    verdict = analyse_command(command)
    for part in verdict.commands:
        yield f"command {part.text}" + (f" (by {', '.join(part.wrappers)})" if part.wrappers else "")
    yield from (f"redirection {one.text}" for one in verdict.redirects)
    yield from (f"substitution {one.text}" for one in verdict.facts.substitutions)
    yield from (f"assignment {one.name}" for one in verdict.facts.assignments)
    yield from (f"function {name}" for name in verdict.facts.functions)
    yield from (f"unreadable {one.words!r}: {one.why}" for one in verdict.facts.opaque)


def _effects(subject: Subject) -> list[str]:
    if subject.line is not None:
        return list(subject.line.says)
    places = [f"{fact.use} {fact.said} (leads to {fact.real or 'an unknown place'})" for fact in subject.paths]
    return places + [f"reaches {address.text}" for address in subject.addresses]
