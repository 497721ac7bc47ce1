"""Which is the narrowest rule that would have allowed this call?"""

from jackstay.core.facts import CallFacts
from jackstay.core.messages import ToolCall
from jackstay.core.rules import PermissionRule
from jackstay.policy import paths
from jackstay.policy.covering import covers
from jackstay.policy.lines import Line
from jackstay.policy.subject import Subject, subject_of
from jackstay.policy.visible import deceptive


def rule_for(call: ToolCall, facts: CallFacts, *, above: int | None = None) -> PermissionRule | None:
    """The literal rule that covers this call and no other, or None where no safe rule exists.

    None for: a call whose text could deceive the person who approved it; a command that runs outside the
    workspace root (its words would mean other files elsewhere); a call with several places or values, which
    one text cannot name; anything whose place cannot be told; credentials and protected places. `above` is the
    rank of the rule that asked: the new one ranks just higher, or it would never speak.
    """
    subject = subject_of(call, facts)
    text = _one_text(subject, call, facts)
    if text is None or deceptive(text) is not None:
        return None
    rule = PermissionRule.allow_exactly(call.tool, text)
    if covers((rule,), subject, facts) is None:
        return None
    return rule if above is None else rule.priority(above + 1)


def always_rule_text(call: ToolCall, facts: CallFacts, *, above: int | None = None) -> str | None:
    """What "always" would add, as an approval shows it; None when there is nothing to add."""
    rule = rule_for(call, facts, above=above)
    return None if rule is None else rule.text


def suggestion(call: ToolCall) -> str:
    """The `--allow` text for a call nobody has looked into: its tool, narrowed to its one text argument."""
    texts = [value for value in call.args.values() if isinstance(value, str)]
    return f"{call.tool}({texts[0]})" if len(texts) == 1 and texts[0] else call.tool


def _one_text(subject: Subject, call: ToolCall, facts: CallFacts) -> str | None:
    if subject.broken is not None or any(paths.refusal(fact) for fact in subject.paths):
        return None
    if subject.line is not None:
        return _command_text(subject.line, facts)
    if len(subject.paths) == 1 and not subject.addresses:
        fact = subject.paths[0]
        return fact.real if fact.real and fact.mark in ("", "system") else None
    if len(subject.addresses) == 1 and not subject.paths:
        address = subject.addresses[0]
        return None if address.doubt or address.user else address.text
    if len(subject.words) == 1 and len(call.args) == 1:
        return subject.words[0] or None
    return None


def _command_text(line: Line, facts: CallFacts) -> str | None:
    text = line.text.strip()
    if not text or facts.cwd != facts.workspace or line.danger is not None or line.doubt is not None:
        return None
    return text
