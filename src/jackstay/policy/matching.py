"""Which rules speak about a call, and which words of it do they mean?

What forbids (deny, ask) is read widely: any part of a call, by any name that part goes by. What permits is
read narrowly, in `covering`.
"""

import re
from functools import lru_cache
from typing import NamedTuple

from jackstay.core.facts import CallFacts, PathFact
from jackstay.core.rules import PermissionRule
from jackstay.policy.lines import Line, read_line
from jackstay.policy.paths import above, directories, lexical
from jackstay.policy.patterns import (
    HOLE,
    has_pattern,
    loose_pattern,
    might_match,
    place_of,
    unquoted,
    words_pattern,
)  # fmt: skip
from jackstay.policy.subject import Subject, base_of, tool_key
from jackstay.policy.urls import Address, address_pattern, read_address

# A place forbidden to one tool is forbidden to every call that touches it the same way: what is denied to
# `write` is denied to `edit` and to a redirection of `bash`.
_CHANGES = frozenset({"write", "edit"})
_READS = frozenset({"read"})
_FETCHES = frozenset({"webfetch"})
_PLACES = _CHANGES | _READS | _FETCHES
_ANY = frozenset({"*", "**"})


class Hit(NamedTuple):
    """A rule that speaks, and the words it speaks about; when not `sure`, why they might be meant."""

    rule: PermissionRule
    words: str
    sure: bool = True


class Rank(NamedTuple):
    """The rules of one rank that can concern a tool."""

    denies: tuple[PermissionRule, ...]
    asks: tuple[PermissionRule, ...]
    allows: tuple[PermissionRule, ...]


def ranks_of(rules: tuple[PermissionRule, ...], tool: str) -> tuple[Rank, ...]:
    """The rules that can concern calls of a tool, highest rank first."""
    kept = _KEPT.get((id(rules), tool))
    if kept is not None and kept[0] is rules:
        return kept[1]
    if len(_KEPT) >= _MOST_KEPT:
        _KEPT.clear()
    found = _ranks(rules, tool)
    _KEPT[id(rules), tool] = (rules, found)
    return found


# By identity: hashing many rules for every call costs more than judging by them. An entry holds its tuple, so
# that no other one can come to have its id.
_KEPT: dict[tuple[int, str], tuple[tuple[PermissionRule, ...], tuple[Rank, ...]]] = {}
_MOST_KEPT = 256


def together(
    first: tuple[PermissionRule, ...], second: tuple[PermissionRule, ...]
) -> tuple[PermissionRule, ...]:
    """Both as one tuple, the same one from call to call, so that its ranks are found again."""
    if not first or not second:
        return first or second
    kept = _JOINED.get((id(first), id(second)))
    if kept is not None and kept[0] is first and kept[1] is second:
        return kept[2]
    if len(_JOINED) >= _MOST_KEPT:
        _JOINED.clear()
    joined = (*first, *second)
    _JOINED[id(first), id(second)] = (first, second, joined)
    return joined


_Rules = tuple[PermissionRule, ...]
_JOINED: dict[tuple[int, int], tuple[_Rules, _Rules, _Rules]] = {}


def _ranks(rules: tuple[PermissionRule, ...], tool: str) -> tuple[Rank, ...]:
    concerned = [rule for rule in rules if _own(rule, tool) or _across(rule, tool)]

    def of(rank: int, behavior: str) -> tuple[PermissionRule, ...]:
        return tuple(rule for rule in concerned if rule.rank == rank and rule.behavior == behavior)

    ranks = sorted({rule.rank for rule in concerned}, reverse=True)
    return tuple(Rank(of(rank, "deny"), of(rank, "ask"), of(rank, "allow")) for rank in ranks)


def _own(rule: PermissionRule, tool: str) -> bool:
    return rule.tool in _ANY or tool_key(rule.tool) == tool


def _across(rule: PermissionRule, tool: str) -> bool:
    return rule.behavior != "allow" and rule.pattern is not None and tool_key(rule.tool) in _PLACES


# -- what forbids ------------------------------------------------------------------------------------------


def hit(rule: PermissionRule, subject: Subject, facts: CallFacts) -> Hit | None:
    """The words of a call that a rule which denies or asks is about; None when it is about none of them."""
    if rule.pattern is None:
        return Hit(rule, subject.tool)
    own = _own(rule, subject.tool)
    if not own and not subject.paths and not subject.addresses and subject.line is None:
        return None
    found: Hit | None = None
    if own and subject.line is not None:
        found = _in_command(rule, subject.line)
    if found is None or not found.sure:
        found = _in_paths(rule, subject, facts) or _in_addresses(rule, subject) or found
    if found is None and own:
        found = next((Hit(rule, word) for word in subject.words if _word_meant(rule, word)), None)
    return found


def _in_command(rule: PermissionRule, line: Line) -> Hit | None:
    if _whole_meant(rule, line):
        return Hit(rule, line.text.strip())
    found = _in_parts(rule, line)
    if found is not None and found.sure:
        return found
    for text in line.fed:
        fed = read_line(text)
        deeper = _in_parts(rule, fed) or next(
            filter(None, (_in_parts(rule, read_line(t)) for t in fed.fed)), None
        )
        if deeper is not None:
            return deeper
    if found is not None:
        return found
    perhaps = next((text for text in line.maybe if _may_be(rule, text)), None)
    if perhaps is not None:
        return Hit(rule, f"nobody can tell whether {perhaps[:80]!r} is run", sure=False)
    blind = next((f"{part.shown!r} runs what cannot be seen" for part in line.parts if part.blind), None)
    hidden = line.doubt or line.listening or blind
    return Hit(rule, hidden, sure=False) if hidden is not None else None


def _in_parts(rule: PermissionRule, line: Line) -> Hit | None:
    wanted = _command_pattern(str(rule.pattern), literal=rule.literal)
    unsure: Hit | None = None
    for part in line.parts:
        for form in part.forms:
            if form == wanted.text if wanted.regex is None else wanted.regex.fullmatch(form) is not None:
                return Hit(rule, part.shown)
            if unsure is None and HOLE in form and might_match(wanted.free, form):
                unsure = Hit(rule, f"{part.shown!r} cannot be read for certain", sure=False)
    return unsure


def _may_be(rule: PermissionRule, text: str) -> bool:
    """Is this the command, or one that goes on where the text of another language does?"""
    wanted = _command_pattern(str(rule.pattern), literal=rule.literal)
    if wanted.regex is not None:
        return re.search(r"\w", wanted.text) is not None and wanted.regex.fullmatch(text) is not None
    return bool(wanted.text) and re.match(re.escape(wanted.text) + r"(?!\w)", text) is not None


class _CommandPattern(NamedTuple):
    """A pattern against one command, and against a line where it holds operators."""

    text: str
    regex: re.Pattern[str] | None
    free: str
    line: re.Pattern[str] | None


@lru_cache(1024)
def _command_pattern(pattern: str, *, literal: bool) -> _CommandPattern:
    text = " ".join(unquoted(pattern.strip()).split())
    if literal or not has_pattern(text):
        return _CommandPattern(text, None, _still(text), None)
    across = words_pattern(pattern.strip()) if re.search(r"[|;&<>]", pattern) else None
    return _CommandPattern(text, loose_pattern(text), text, across)


def _whole_meant(rule: PermissionRule, line: Line) -> bool:
    """A pattern with operators in it is about the line, not about one command; it stays within its line."""
    wanted = _command_pattern(str(rule.pattern), literal=rule.literal)
    if wanted.regex is None:
        return line.text.strip() == str(rule.pattern).strip()
    across = wanted.line
    return across is not None and any(across.fullmatch(text.strip()) for text in line.text.split("\n"))


def _still(pattern: str) -> str:
    """A text without pattern characters for `might_match`: they become free characters."""
    return re.sub(r"[*\[]", "?", pattern)


def _word_meant(rule: PermissionRule, word: str) -> bool:
    pattern = str(rule.pattern)
    if rule.literal or not has_pattern(pattern):
        return word == pattern
    return loose_pattern(pattern).fullmatch(word) is not None


def _in_paths(rule: PermissionRule, subject: Subject, facts: CallFacts) -> Hit | None:
    if subject.line is not None and not _is_about_places(rule):
        return None
    unsure: Hit | None = None
    for fact in subject.paths:
        if not _same_use(rule, subject, fact):
            continue
        if _path_meant(rule, fact, facts):
            return Hit(rule, fact.said)
        if not fact.real and unsure is None:
            unsure = Hit(rule, f"nobody can tell where {fact.said!r} leads before it runs", sure=False)
    if unsure is None and subject.line is not None:
        unsure = _named(rule, subject.line, facts)
    hidden = (subject.line.doubt or subject.line.listening) if subject.line is not None else None
    if unsure is None and hidden is not None:
        return Hit(rule, hidden, sure=False)
    return unsure


def _named(rule: PermissionRule, line: Line, facts: CallFacts) -> Hit | None:
    """A command that nobody knows file by file names the place: it might touch it."""
    place = place_of(str(rule.pattern), literal=rule.literal, base=base_of(facts), home=facts.home)
    starts = directories(line.moves, facts.cwd, lambda move, at: lexical(move, at, facts.home)) or [facts.cwd]
    spelled = ((name, lexical(name, start, facts.home)) for name in line.names for start in starts)
    for name, path in (*facts.linked, *spelled):
        if path and (place.pattern.fullmatch(path) is not None or path == place.root != base_of(facts)):
            return Hit(rule, f"nobody can tell what becomes of {name!r}", sure=False)
    return None


def _is_about_places(rule: PermissionRule) -> bool:
    """Does the rule mean paths that a command touches, rather than its words?"""
    if rule.tool in _ANY:
        return str(rule.pattern).startswith(("/", "~", "**/"))
    return tool_key(rule.tool) in _CHANGES | _READS


def _same_use(rule: PermissionRule, subject: Subject, fact: PathFact) -> bool:
    key = tool_key(rule.tool)
    if rule.tool in _ANY or (subject.line is None and key == subject.tool):
        return True
    if key in _CHANGES:
        return fact.changes
    return key in _READS and fact.use == "reads"


def _path_meant(rule: PermissionRule, fact: PathFact, facts: CallFacts) -> bool:
    place = place_of(str(rule.pattern), literal=rule.literal, base=base_of(facts), home=facts.home)
    written = lexical(fact.said, facts.cwd or base_of(facts), facts.home)
    if any(path and place.pattern.fullmatch(path) for path in (fact.real, written)):
        return True
    return fact.use == "deletes" and bool(fact.real) and above(fact.real, place.root)


def _in_addresses(rule: PermissionRule, subject: Subject) -> Hit | None:
    if not _is_about_addresses(rule, subject):
        return None
    for address in subject.network:
        if _address_meant(rule, address):
            return Hit(rule, address.text)
    for text in subject.line.hosts if subject.line is not None else ():
        address = read_address(text)
        odd = address.doubt is not None and "://" in text
        if (odd or _address_meant(rule, address)) and re.search(r"\w", str(rule.pattern)):
            return Hit(rule, f"nobody can tell whether it speaks to {text!r}", sure=False)
    doubtful = next((address for address in subject.network if address.doubt), None)
    return Hit(rule, f"{doubtful.text!r} is doubtful: {doubtful.doubt}", sure=False) if doubtful else None


def _is_about_addresses(rule: PermissionRule, subject: Subject) -> bool:
    """Does the rule mean addresses that the call would reach, rather than its words?"""
    key = tool_key(rule.tool)
    if rule.tool in _ANY and subject.line is not None:
        return "://" in str(rule.pattern)
    return rule.tool in _ANY or key in _FETCHES or (key == subject.tool and subject.line is None)


def _address_meant(rule: PermissionRule, address: Address) -> bool:
    pattern = str(rule.pattern)
    if rule.literal:
        return read_address(pattern).text == address.text
    return address_pattern(pattern, wide=True).forbids(address)
