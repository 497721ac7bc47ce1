"""Do rules permit a whole call: every command, every redirection, every path, every address, as it stands?"""

import re
from collections.abc import Sequence
from functools import lru_cache

from jackstay.core.facts import CallFacts, PathFact
from jackstay.core.rules import PermissionRule
from jackstay.policy.lines import Line, Part, read_line
from jackstay.policy.paths import within
from jackstay.policy.patterns import HOLE, has_pattern, narrow, place_of, words_pattern
from jackstay.policy.subject import Subject, base_of
from jackstay.policy.urls import Address, address_pattern, read_address

# Commands that change what the commands after them mean; then one rule has to answer for the whole line.
_STATEFUL = frozenset({
    "cd", "pushd", "popd", "export", "declare", "typeset", "local", "readonly", "set", "unset", "shopt",
    "alias", "unalias", "source", ".", "eval", "exec", "trap", "umask", "enable", "hash", "builtin",
    "command", "mapfile", "read", "function"
})  # fmt: skip


def covers(rules: Sequence[PermissionRule], subject: Subject, facts: CallFacts) -> PermissionRule | None:
    """The rule that permits the whole call, alone or with the others; None when a part is not named."""
    for rule in rules:
        if rule.pattern is None:
            return rule
    if subject.broken is not None:
        return None
    if subject.line is not None:
        return _covers_line(rules, subject.line, facts)
    return next((rule for rule in rules if _covers_rest(rule, subject, facts)), None)


def _covers_rest(rule: PermissionRule, subject: Subject, facts: CallFacts) -> bool:
    if not (subject.paths or subject.addresses or subject.words):
        return False
    return (
        all(_path_named(rule, fact, facts) for fact in subject.paths)
        and all(_address_named(rule, address) for address in subject.addresses)
        and all(_word_named(rule, word) for word in subject.words)
    )


def _path_named(rule: PermissionRule, fact: PathFact, facts: CallFacts) -> bool:
    place = place_of(str(rule.pattern), literal=rule.literal, base=base_of(facts), home=facts.home)
    return bool(fact.real) and place.pattern.fullmatch(fact.real) is not None


def _address_named(rule: PermissionRule, address: Address) -> bool:
    pattern = str(rule.pattern)
    if rule.literal:
        return address.doubt is None and not address.user and read_address(pattern).text == address.text
    return address_pattern(pattern, wide=False).allows(address)


def _word_named(rule: PermissionRule, word: str) -> bool:
    pattern = str(rule.pattern)
    if rule.literal or not has_pattern(pattern):
        return word == pattern
    return words_pattern(pattern).fullmatch(word) is not None


def _covers_line(rules: Sequence[PermissionRule], line: Line, facts: CallFacts) -> PermissionRule | None:
    for rule in rules:
        if line.text.strip() == str(rule.pattern).strip() and _fits_directory(rule, facts):
            return rule
    hidden = line.doubt or line.listening or any(part.blind or not part.by_words for part in line.parts)
    if hidden or not line.parts:
        return None  # what another shell or machine reads is only covered as a whole text
    fitting = [rule for rule in rules if _fits_directory(rule, facts)]
    if line.danger is not None or any(_is_stateful(part) for part in line.parts):
        return next((rule for rule in fitting if _names_all([rule], line)), None)
    if not _names_all(fitting, line):
        return None
    return next(rule for rule in fitting if any(_names(rule, line, part) for part in line.parts))


def _fits_directory(rule: PermissionRule, facts: CallFacts) -> bool:
    """Does the command run where the rule was made for? Elsewhere the same words mean other files."""
    if not facts.cwd or not facts.workspace or facts.cwd == facts.workspace:
        return True
    return not rule.literal and has_pattern(str(rule.pattern)) and within(facts.cwd, facts.workspace)


def _is_stateful(part: Part) -> bool:
    return not part.words or part.words[0] in _STATEFUL


def _names_all(rules: Sequence[PermissionRule], line: Line) -> bool:
    starts_plainly = {part.outer for part in line.parts if part.plain}
    for number, part in enumerate(line.parts):
        if number in starts_plainly and not part.redirects and not part.assignments:
            continue  # `time x` is x: x itself has to be named
        if not any(_names(rule, line, part) for rule in rules):
            return False
    return True


def _names(rule: PermissionRule, line: Line, part: Part) -> bool:
    pattern = str(rule.pattern).strip()
    if rule.literal or not has_pattern(pattern):
        return _is_alone(pattern, part)
    named = narrow(pattern)
    if words_pattern(named).fullmatch(part.exact) is not None:
        return True
    if part.outer < 0 or not part.words:
        return False
    return part.words[0] in _started_by(pattern) and _names(rule, line, line.parts[part.outer])


@lru_cache(1024)
def _started_by(pattern: str) -> frozenset[str]:
    """The programs that a pattern names, before its first wildcard, as started by its first one:
    `sudo git push *` names git, `find . -name git *` does not."""
    spelled_out = re.split(r"[*?\[]", pattern, maxsplit=1)[0].rpartition(" ")[0]
    return frozenset(part.words[0] for part in read_line(spelled_out).parts if part.outer >= 0 and part.words)


def _is_alone(pattern: str, part: Part) -> bool:
    """Is the rule's text this one command? Compared as parsed, so that blanks and quotes do not matter."""
    meant = read_line(pattern)
    return (
        meant.doubt is None
        and len(meant.parts) == 1
        and HOLE not in part.exact
        and meant.parts[0].exact == part.exact
    )
