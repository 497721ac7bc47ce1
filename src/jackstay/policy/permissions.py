"""May this call run? Permission rules by rank, and what holds where no rule speaks."""

import re
from typing import assert_never

from jackstay.core.decision import ALLOW, Ask, Decision, Deny
from jackstay.core.errors import ConfigError
from jackstay.core.facts import CallFacts
from jackstay.core.messages import ToolCall
from jackstay.core.rules import Behavior, PermissionRule
from jackstay.core.state import PermissionDefault
from jackstay.policy import paths
from jackstay.policy.amend import always_rule_text, rule_for, suggestion
from jackstay.policy.covering import covers
from jackstay.policy.matching import Hit, hit, ranks_of
from jackstay.policy.subject import Subject, subject_of
from jackstay.policy.visible import visible

Default = PermissionDefault
DANGER_LIST, WORKSPACE_DEFAULT = "danger list", "workspace default"

# Tools that touch nothing but the harness's own state, which has its own rules.
_OWN_STATE = frozenset({
    "todo", "skill", "task", "multitask", "generate", "discipline_set_phase", "closure_check", "anchor_set",
    "recall", "hitl"
})  # fmt: skip


def judge(
    rules: tuple[PermissionRule, ...], call: ToolCall, facts: CallFacts, *, default: Default, hitl: bool
) -> Decision:
    """What the rules say about a call, or the default where none speaks.

    Higher ranks first; at equal rank deny, then ask, then allow. Deny and ask speak when any part of the call
    is meant, allow when every part is. Where a part cannot be read and could be what a rule forbids, the answer
    is Ask. Nothing permits writing the harness's own files or a host's configuration. `hitl` says whether
    anybody can be asked: the danger list is then asked about, otherwise denied.
    """
    subject = subject_of(call, facts)
    for fact in subject.paths:
        refused = paths.refusal(fact)
        if refused is not None:
            return Deny(visible(refused), "protected paths")
    said = _by_rank(rules, subject, call, facts)
    return said if said is not None else _by_default(subject, call, facts, default=default, hitl=hitl)


def objection(rules: tuple[PermissionRule, ...], call: ToolCall, facts: CallFacts) -> Decision:
    """What the rules have against a call; Allow also where none of them speaks."""
    return _by_rank(rules, subject_of(call, facts), call, facts) or ALLOW


def _by_rank(
    rules: tuple[PermissionRule, ...], subject: Subject, call: ToolCall, facts: CallFacts
) -> Decision | None:
    """What the rules say about a call, None where none speaks."""
    permits: list[PermissionRule] = []
    for rank in ranks_of(rules, subject.tool):
        spoken = _forbidden(rank.denies + rank.asks, subject, facts)
        if spoken is not None:
            return _objection(spoken, call, facts)
        permits += rank.allows
        if permits and covers(permits, subject, facts) is not None:
            return ALLOW
    return None


def covering(rules: tuple[PermissionRule, ...], call: ToolCall, facts: CallFacts) -> PermissionRule | None:
    """The explicit allow rule that covers the whole call and is not outranked; None when there is none."""
    subject = subject_of(call, facts)
    if any(paths.refusal(fact) for fact in subject.paths):
        return None
    permits: list[PermissionRule] = []
    for rank in ranks_of(rules, subject.tool):
        if _forbidden(rank.denies + rank.asks, subject, facts) is not None:
            return None
        permits += rank.allows
        found = covers(permits, subject, facts) if permits else None
        if found is not None:
            return found
    return None


def granted(rules: tuple[PermissionRule, ...], call: ToolCall, facts: CallFacts) -> PermissionRule | None:
    """The rule that "always" adds for this call; None where no safe one exists.

    It is literal, and ranks just above the rules that ask about the call: below them it would never speak.
    """
    subject = subject_of(call, facts)
    asking = [
        rule.rank for rank in ranks_of(rules, subject.tool) for rule in rank.asks if hit(rule, subject, facts)
    ]
    return rule_for(call, facts, above=max(asking, default=None))


def _forbidden(rules: tuple[PermissionRule, ...], subject: Subject, facts: CallFacts) -> Hit | None:
    """The first rule that surely means the call, denies before asks; else the first that might."""
    unsure: Hit | None = None
    for rule in rules:
        found = hit(rule, subject, facts)
        if found is not None and found.sure:
            return found
        unsure = unsure or found
    return unsure


def _objection(spoken: Hit, call: ToolCall, facts: CallFacts) -> Decision:
    rule, words, named = spoken.rule, visible(spoken.words), visible(spoken.rule.text)
    if not spoken.sure:
        return Ask(f"{words}; it could be what the rule '{named}' is about", rule.text)
    match rule.behavior:
        case "deny":
            return Deny(f"the rule '{named}' denies '{words}'", rule.text, _way_around(rule))
        case "ask":
            text = always_rule_text(call, facts, above=rule.rank)
            return Ask(f"the rule '{named}' asks about '{words}'", rule.text, text)
        case "allow":
            raise AssertionError(rule)  # never among the rules that forbid
        case _:
            assert_never(rule.behavior)


def _way_around(rule: PermissionRule) -> str:
    return f"do it another way, or ask your user to change the rule ({rule.origin})"


# -- where no rule speaks ----------------------------------------------------------------------------------


def _by_default(
    subject: Subject, call: ToolCall, facts: CallFacts, *, default: Default, hitl: bool
) -> Decision:
    if subject.broken is not None:
        return Ask(visible(subject.broken), "malformed call")
    peril = dangerous(subject)
    if peril is not None:
        reason = f"dangerous: {visible(peril)}"
        asked = Ask(reason, DANGER_LIST, always_rule_text(call, facts))
        return asked if hitl or default == "workspace" else without_people(asked, call)
    if default == "seed":
        return ALLOW
    beyond = leaves_workspace(subject, facts)
    if beyond is None:
        return ALLOW
    return Ask(visible(beyond), WORKSPACE_DEFAULT, always_rule_text(call, facts))


def dangerous(subject: Subject) -> str | None:
    """Which shape of the danger list the call has, with its words; None when it has none."""
    if subject.line is not None and subject.line.danger is not None:
        return subject.line.danger
    return next((why for fact in subject.paths if (why := paths.danger(fact)) is not None), None)


def leaves_workspace(subject: Subject, facts: CallFacts) -> str | None:
    """Why the call's effects cannot be shown to stay inside the workspace; None when they do."""
    for fact in subject.paths:
        if not fact.real:
            return f"nobody can tell where {fact.said!r} leads before it runs"
        if not fact.inside:
            verb = "changes" if fact.changes else "reads"
            return f"it {verb} {fact.said!r}, which is outside the workspace"
        if fact.mark == "credentials":
            return f"{fact.said!r} holds credentials"
    if subject.line is not None:
        return subject.line.doubt or subject.line.credentials or subject.line.beyond
    if subject.addresses:
        return f"it reaches {subject.addresses[0].text}"
    if subject.paths or subject.tool in _OWN_STATE or facts.reads_only:
        return None
    return f"{subject.tool!r} may have effects outside the workspace"


def without_people(ask: Ask, call: ToolCall | None = None) -> Deny:
    """An Ask where nobody can be asked: a Deny with its reason, and the rule that would permit the call."""
    flag = permitting_flag(ask, call)
    way_on = f"; to permit it: {flag}" if flag else ""
    return Deny(ask.reason, ask.rule, f"nobody can be asked here{way_on}")


def permitting_flag(ask: Ask, call: ToolCall | None = None) -> str | None:
    """The `--allow` that would let the call pass without asking; None where no rule answers the question."""
    if ask.always_rule:
        return f"--allow {quoted(ask.always_rule.removeprefix('allow '))}"
    if call is not None and ask.rule in (DANGER_LIST, WORKSPACE_DEFAULT):
        return f"--allow {quoted(suggestion(call))}"
    return None


def quoted(text: str) -> str:
    """The text as one word of a shell command."""
    return "'" + text.replace("'", "'\\''") + "'"


# -- rules as people write them ----------------------------------------------------------------------------

_RULE = re.compile(r"\s*(?P<tool>[^\s()]+)\s*(?:\((?P<pattern>.*)\))?\s*", re.DOTALL)


def parse_rule(text: str, behavior: Behavior, *, origin: str = "command line") -> PermissionRule:
    """A rule as `--allow` and `--deny` take it: `bash`, `bash(git push *)`, `write(src/**)`.

    Raises ConfigError when the text has another form.
    """
    found = _RULE.fullmatch(text)
    if found is None or found["pattern"] == "":
        problem = f"{text!r} is not a rule"
        raise ConfigError(
            problem, hint="write TOOL or TOOL(PATTERN), for example bash(git push *)", where=origin
        )
    return PermissionRule(found["tool"], behavior, found["pattern"], origin=origin)
