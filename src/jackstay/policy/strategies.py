"""Which calls of a tool does a person have to look at? The built-in approval strategies (first seed §4).

All three judge through the one reading of commands, paths and addresses that rules and gates use. An explicit
allow rule that covers the whole call answers before they do; a rule that denies or asks speaks through them.
"""

from collections.abc import Iterable
from typing import Any, NamedTuple

from jackstay.core.decision import Allow, Ask, Decision, Deny
from jackstay.core.facts import CallFacts
from jackstay.core.messages import JsonObject, ToolCall
from jackstay.core.rules import PermissionRule
from jackstay.policy import paths
from jackstay.policy.permissions import covering, dangerous, judge
from jackstay.policy.subject import Subject, subject_of
from jackstay.policy.urls import Address, host_of
from jackstay.policy.visible import visible


class _Seen(NamedTuple):
    """A call as a strategy looks at it."""

    call: ToolCall
    facts: CallFacts
    subject: Subject


class _Strategy:
    """What the three have in common: rules first, then the strategy's own look."""

    def __init__(self, tool: str, *, rules: Iterable[PermissionRule] = ()) -> None:
        self.tool = tool
        self.rules = tuple(rules)

    def evaluate(self, trace: Any, args: JsonObject) -> str | None:
        """Why a person should look at this call; None lets it pass. `trace` may be None."""
        call = ToolCall("", self.tool, dict(args) if args else {})
        facts = _facts_from(trace)
        rules = (*self.rules, *(getattr(trace, "rules", None) or ()))
        if rules:
            if covering(rules, call, facts) is not None:
                return None
            spoken = _spoken(judge(rules, call, facts, default="seed", hitl=True))
            if spoken is not None:
                return spoken
        reason = self._look(_Seen(call, facts, subject_of(call, facts)))
        return visible(reason) if reason else None

    def _look(self, seen: _Seen) -> str | None:
        raise NotImplementedError


def _facts_from(trace: Any) -> CallFacts:
    """The facts of the call where the trace has them; else its workspace, paths as written."""
    facts = getattr(trace, "facts", None)
    if isinstance(facts, CallFacts):
        return facts
    workspace = getattr(trace, "workspace", None) or ""
    return CallFacts(workspace=workspace, cwd=workspace)


def _spoken(decision: Decision) -> str | None:
    match decision:
        case Allow():
            return None
        case Ask(reason=reason) | Deny(reason=reason):
            return reason


class BashToolStrategy(_Strategy):
    """Lets pass what is proven to change nothing and to give nothing away; asks about every other command."""

    def __init__(self, tool: str = "bash", *, rules: Iterable[PermissionRule] = ()) -> None:
        super().__init__(tool, rules=rules)

    def _look(self, seen: _Seen) -> str | None:
        subject = seen.subject
        if subject.broken is not None or subject.line is None:
            return subject.broken or "there is no command to read"
        line = subject.line
        if not line.text.strip():
            return None
        own = line.danger or line.doubt or line.credentials or line.unproven
        if own is None and "..\\" in line.text:
            own = "'..\\' leaves the workspace where backslashes part directories"
        return own or next(filter(None, map(paths.sensitive, subject.paths)), None)


class WriteToolStrategy(_Strategy):
    """Asks about every write: where it goes, and what is special about that place."""

    def _look(self, seen: _Seen) -> str | None:
        if seen.subject.broken is not None:
            return seen.subject.broken
        if not seen.subject.paths:
            return f"{self.tool} names no file"
        fact = seen.subject.paths[0]
        special = paths.refusal(fact) or dangerous(seen.subject) or paths.sensitive(fact) or _outside(seen)
        return f"{self.tool}: {special}" if special else f"{self.tool} changes {fact.said!r}"


def _outside(seen: _Seen) -> str | None:
    fact = seen.subject.paths[0]
    return None if fact.inside else f"{fact.said!r} is outside the workspace"


class WebToolStrategy(_Strategy):
    """Asks about every address; names the host, and whether it is a risky one.

    `risky_hosts` count with all their sub-domains.
    """

    def __init__(
        self, tool: str, *, rules: Iterable[PermissionRule] = (), risky_hosts: Iterable[str] = ()
    ) -> None:
        super().__init__(tool, rules=rules)
        self.risky_hosts = frozenset(_bare(host) for host in risky_hosts)

    def risky_hostname(self, *hosts: str) -> "WebToolStrategy":
        """Add hosts to the risky ones."""
        self.risky_hosts |= {_bare(host) for host in hosts}
        return self

    def _look(self, seen: _Seen) -> str | None:
        subject = seen.subject
        if subject.broken is not None:
            return subject.broken
        if not subject.addresses:
            return f"{self.tool} sends {', '.join(subject.words)!r} to the network"
        return next(filter(None, map(self._about, subject.addresses)), None)

    def _about(self, address: Address) -> str:
        if address.doubt is not None:
            return f"{self.tool}: the address {address.text!r} is doubtful: {address.doubt}"
        if self._is_risky(address.host):
            return f"{self.tool}: {address.host!r} is on the list of risky hosts"
        return f"{self.tool} reaches {address.host!r}"

    def _is_risky(self, host: str) -> bool:
        labels = host.split(".")
        return any(".".join(labels[start:]) in self.risky_hosts for start in range(len(labels)))


def _bare(host: str) -> str:
    return host_of(host)[0].removeprefix("www.")
