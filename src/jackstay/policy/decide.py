"""May this call run now? The strictest of everything that has a say."""

from collections.abc import Callable

from msgspec.structs import replace

from jackstay.core.decision import ALLOW, Ask, Decision, strictest
from jackstay.core.facts import CallFacts
from jackstay.core.messages import ToolCall
from jackstay.core.state import Bounds, PolicyState
from jackstay.policy.amend import always_rule_text
from jackstay.policy.matching import together
from jackstay.policy.permissions import judge, objection

Rule = Callable[[PolicyState, ToolCall, CallFacts, Bounds], Decision]


def strategies(state: PolicyState, call: ToolCall, facts: CallFacts, bounds: Bounds) -> Decision:
    """What the approval strategies have answered."""
    answer = strictest(facts.answers)
    if isinstance(answer, Ask) and answer.always_rule is None:
        return replace(answer, always_rule=always_rule_text(call, facts))
    return answer


def _unspoken(state: PolicyState, facts: CallFacts, bounds: Bounds) -> bool:
    """Can no rule have anything to say? None is there, and the call names no command, place or address."""
    if bounds.rules or state.rules or facts.paths or facts.url_args:
        return False
    return facts.command_arg is None and bounds.permission_default == "seed"


def permissions(state: PolicyState, call: ToolCall, facts: CallFacts, bounds: Bounds) -> Decision:
    """What the permission rules of the engine and of the session say."""
    if _unspoken(state, facts, bounds):
        return ALLOW
    rules = together(bounds.rules, state.rules)
    return judge(rules, call, facts, default=bounds.permission_default, hitl=bounds.hitl)


def narrowing(state: PolicyState, call: ToolCall, facts: CallFacts, bounds: Bounds) -> Decision:
    """What the rules of a subagent, and of those above it, have against a call."""
    return strictest([objection(together(rules, state.rules), call, facts) for rules in bounds.narrowing])


RULES: tuple[Rule, ...] = (strategies, permissions)


def decide(state: PolicyState, call: ToolCall, facts: CallFacts, bounds: Bounds) -> Decision:
    """The strictest judgement of all rules about a call, the first among equals; Allow means no objection."""
    if not facts.answers and not bounds.narrowing and _unspoken(state, facts, bounds):
        return ALLOW
    said = strictest([rule(state, call, facts, bounds) for rule in RULES])
    return strictest((said, narrowing(state, call, facts, bounds))) if bounds.narrowing else said
