"""Where do the places that rules name really lie? A pattern below a link means what the link leads to, too."""

from collections.abc import Iterable, Iterator

from msgspec.structs import replace

from jackstay.core.rules import PermissionRule
from jackstay.policy.patterns import has_pattern
from jackstay.policy.subject import tool_key
from jackstay.ward.resolve import canonical

_BY_PATH = frozenset({"read", "write", "edit", "ls", "grep", "glob"})


def rooted(rules: Iterable[PermissionRule], workspace: str, home: str) -> tuple[PermissionRule, ...]:
    """The rules, each path pattern whose directory is reached by links followed by one with the real directory.

    Calls are matched by where their paths really lead: `/tmp/x/**` has to mean `/private/tmp/x/**` where /tmp
    is a link to that.
    """
    found: list[PermissionRule] = []
    for rule in rules:
        found.append(rule)
        found += _resolved(rule, workspace, home)
    return tuple(found)


def _resolved(rule: PermissionRule, workspace: str, home: str) -> Iterator[PermissionRule]:
    pattern = rule.pattern or ""
    if tool_key(rule.tool) not in _BY_PATH and not (rule.tool == "*" and pattern.startswith(("/", "~/"))):
        return
    if rule.literal or not pattern or pattern.startswith("**"):
        return
    whole = home + pattern[1:] if pattern.startswith("~/") else pattern
    if not whole.startswith("/"):
        whole = f"{canonical(workspace, '/', home)}/{whole.removeprefix('./')}"
    fixed = next((n for n, segment in enumerate(whole.split("/")) if has_pattern(segment)), None)
    segments = whole.split("/")
    root = "/".join(segments[:fixed]) or "/"
    real = canonical(root, "/", home)
    rest = "/".join(segments[fixed:]) if fixed is not None else ""
    if real and real.rstrip("/") != root.rstrip("/") and not has_pattern(real):
        yield replace(rule, pattern=f"{real.rstrip('/')}/{rest}" if rest else real)
