"""Do rules mean what their authors think? Their own examples, and rules that can never speak."""

from collections.abc import Sequence

import msgspec

from jackstay.core.facts import CallFacts
from jackstay.core.messages import ToolCall
from jackstay.core.rules import PermissionRule
from jackstay.policy.covering import covers
from jackstay.policy.matching import hit
from jackstay.policy.patterns import has_pattern, loose_pattern
from jackstay.policy.subject import subject_of, tool_key

WORKSPACE, HOME = "/workspace", "/home/user"  # where examples with relative paths and `~` are taken to lie

_ARGUMENT = {
    "bash": "command", "webfetch": "url", "read": "file_path", "write": "file_path", "edit": "file_path",
    "ls": "path", "grep": "path", "glob": "path",
}  # fmt: skip
_SEVERITY = {"deny": 2, "ask": 1, "allow": 0}


class RuleWarning(msgspec.Struct, frozen=True, gc=False):
    """A rule that can never speak, and the rule that hides it."""

    rule: PermissionRule
    hidden_by: PermissionRule

    @property
    def text(self) -> str:
        """The warning in a sentence."""
        return (
            f"the rule '{self.rule.text}' ({self.rule.origin}) can never speak: '{self.hidden_by.text}' "
            f"({self.hidden_by.origin}) answers first; raise its priority or remove one of them"
        )


def speaks_about(rule: PermissionRule, example: str) -> bool:
    """Would the rule decide this command, path, address or word on its own?"""
    return any(_speaks(rule, argument, example) for argument in _arguments(rule))


def _arguments(rule: PermissionRule) -> tuple[str, ...]:
    if rule.tool in ("*", "**"):
        return ("command", "file_path", "url", "text")
    return (_ARGUMENT.get(tool_key(rule.tool), "text"),)


def _speaks(rule: PermissionRule, argument: str, example: str) -> bool:
    tool = "bash" if argument == "command" else rule.tool
    call = ToolCall("example", tool, {argument: example})
    facts = CallFacts(workspace=WORKSPACE, cwd=WORKSPACE, home=HOME)
    subject = subject_of(call, facts)
    if rule.behavior == "allow":
        return covers((rule,), subject, facts) is not None
    return hit(rule, subject, facts) is not None


def failures(rule: PermissionRule) -> list[str]:
    """Which of the rule's own examples it does not keep, each in a sentence with the mend."""
    missed = [
        f"match: the rule '{rule.text}' does not cover its own example {example!r} ({_hint(rule)})"
        for example in rule.match
        if not speaks_about(rule, example)
    ]
    extra = [
        f"not_match: the rule '{rule.text}' covers {example!r}, which it must not (narrow the pattern)"
        for example in rule.not_match
        if speaks_about(rule, example)
    ]
    return missed + extra


def _hint(rule: PermissionRule) -> str:
    if rule.behavior == "allow":
        return "a rule that allows has to name every part: each command, each redirection, the whole path"
    return "`*` covers any words of one command; in paths it stays within one directory, `**` does not"


def check_rules(rules: Sequence[PermissionRule]) -> list[RuleWarning]:
    """The rules that can never speak, each with the first rule that hides it."""
    ordered = sorted(rules, key=lambda rule: (-rule.rank, -_SEVERITY[rule.behavior]))
    found: list[RuleWarning] = []
    for position, rule in enumerate(ordered):
        hider = next((earlier for earlier in ordered[:position] if _hides(earlier, rule)), None)
        if hider is not None:
            found.append(RuleWarning(rule, hider))
    return found


def _hides(earlier: PermissionRule, rule: PermissionRule) -> bool:
    if earlier.tool not in ("*", "**") and tool_key(earlier.tool) != tool_key(rule.tool):
        return False
    if earlier.pattern is None:
        return True
    if rule.pattern is None:
        return False
    if earlier.behavior == "allow" and rule.behavior != "allow" and tool_key(rule.tool) in ("bash", "*"):
        return False  # it answers only when it covers the whole line, the other when any part is meant
    return _is_wider(earlier, rule)


def _is_wider(earlier: PermissionRule, rule: PermissionRule) -> bool:
    """Does the earlier pattern cover everything the other covers? No when it cannot be told."""
    wide, narrow = str(earlier.pattern), str(rule.pattern)
    if rule.literal or not has_pattern(narrow):
        return speaks_about(earlier, narrow)
    if earlier.literal or not has_pattern(wide):
        return False
    if wide == narrow:
        return True
    if tool_key(rule.tool) == "bash":
        return loose_pattern(_marked(wide)).fullmatch(_marked(narrow)) is not None
    return wide.endswith("**") and narrow.startswith(wide[:-2])


def _marked(pattern: str) -> str:
    """The pattern with `?` and `[` as plain characters, so that only a `*` covers what a `*` may be."""
    return pattern.replace("?", "\x03").replace("[", "\x04")
