"""What would this call do? The discipline's view of a call, made from the facts about it."""

from functools import lru_cache

from msgspec import Struct

from jackstay.core.facts import CallFacts
from jackstay.core.messages import ToolCall
from jackstay.core.tools import Effect
from jackstay.policy.credential_programs import is_credential, only_looks
from jackstay.policy.remote import Remote, Words, remote_of, stops_of
from jackstay.policy.secrets import redact

LOOKS: frozenset[Effect] = frozenset({"reads", "network"})  # a web read is a read
MAX_PATHS = 50
MAX_SUMMARY = 80


class Deed(Struct, frozen=True, gc=False, omit_defaults=True):
    """What one call would do.

    `reads_only` is a proof: shown to change nothing here or elsewhere; otherwise `doubt` says in words what
    speaks against it. `targets` are the canonical paths it would write or delete by name. `unbounded` means
    that it runs something whose changes nobody can name. `reads` are canonical paths it names for reading.
    `credentials` means that it reads or uses secrets, `stores` that it changes a credential store and nothing
    else. `remotes` are the machines it reaches, `stops` what it ends, where ending things is all it does:
    `pid:N`, `ssh:HOST`. `programs` are the programs of a command line in order, `summary` the call in a few
    words (a command's are redacted), `comments` the shell comments.
    """

    reads_only: bool = False
    doubt: str = ""
    targets: tuple[str, ...] = ()
    unbounded: bool = False
    reads: tuple[str, ...] = ()
    credentials: bool = False
    stores: bool = False
    remotes: tuple[Remote, ...] = ()
    stops: tuple[str, ...] = ()
    programs: tuple[str, ...] = ()
    summary: str = ""
    comments: tuple[str, ...] = ()


def deed_of(call: ToolCall, facts: CallFacts) -> Deed:
    """What the call would do. Nothing is assumed in its favour: what nobody has said or seen is unbounded."""
    if facts.command_arg is not None:
        command = call.args.get(facts.command_arg)
        if isinstance(command, str):
            return _of_command(command, facts)
        return Deed(unbounded=True, doubt=f"{call.tool}: the command is not a text", summary=call.tool)
    changed = tuple(path.real or path.said for path in facts.paths if path.changes)[:MAX_PATHS]
    named = tuple(path.real for path in facts.paths if path.real and not path.changes)[:MAX_PATHS]
    secret = any(path.mark == "credentials" for path in facts.paths)
    first = changed or named
    summary = f"{call.tool} {first[0]}"[:200] if first else call.tool
    if facts.effects <= LOOKS:
        return Deed(reads_only=not secret, reads=named, credentials=secret, summary=summary)
    bounded = bool(changed) and "executes" not in facts.effects and all(path.real for path in facts.paths)
    stores = bounded and all(path.mark == "credentials" for path in facts.paths if path.changes)
    return Deed(
        doubt=summary, targets=changed, unbounded=not bounded, reads=named, credentials=secret, stores=stores,
        summary=summary,
    )  # fmt: skip


class _Read(Struct, frozen=True, gc=False):
    """What the command's text alone says, read once. `here` are the words the local redirects write to."""

    reads_only: bool
    doubt: str
    elsewhere: bool
    unbounded: bool
    credentials: bool
    stores: bool
    remotes: tuple[Remote, ...]
    stops: tuple[str, ...]
    programs: tuple[str, ...]
    here: frozenset[str]
    summary: str
    comments: tuple[str, ...]


def _of_command(command: str, facts: CallFacts) -> Deed:
    read = _read(command)
    changed = [path for path in facts.paths if path.changes]
    if read.elsewhere:  # what the inner commands touch lies on the other machine
        changed = [path for path in changed if path.said in read.here]
    lost = any(not path.real for path in changed) or len(changed) > MAX_PATHS
    named = () if read.elsewhere else tuple(p.real for p in facts.paths if p.real and not p.changes)[:MAX_PATHS]
    return Deed(
        reads_only=read.reads_only,
        doubt=read.doubt,
        targets=tuple(dict.fromkeys(path.real or path.said for path in changed))[:MAX_PATHS],
        unbounded=read.unbounded or lost,
        reads=named,
        credentials=read.credentials,
        stores=read.stores and not changed,
        remotes=read.remotes,
        stops=read.stops,
        programs=read.programs,
        summary=read.summary,
        comments=read.comments,
    )


@lru_cache(2048)
def _read(command: str) -> _Read:
    from jackstay.policy.shell import analyse_command  # loaded with the first command

    verdict = analyse_command(command)
    words: list[Words] = [part.argv for part in verdict.commands if not part.remote and part.argv]
    programs = tuple(dict.fromkeys((one[0] or "?").rsplit("/", 1)[-1] for one in words))[:MAX_PATHS]
    reached = [remote_of(one, _reads_only) for one in words]
    remotes = tuple(remote for remote in reached if remote is not None)
    hidden = bool(verdict.facts.opaque) or any(effect.kind == "env" for effect in verdict.effects)
    beside = [one for one, remote in zip(words, reached, strict=True) if remote is None]
    elsewhere = bool(remotes) and not hidden and all(_reads_only(_joined(one)) for one in beside)
    secret = [one for one in words if is_credential(one)]
    plain = all(is_credential(one) or _reads_only(_joined(one)) for one in words)
    only_secrets = bool(secret) and plain and not hidden
    changes = any(effect.kind not in _HARMLESS for effect in verdict.effects)
    return _Read(
        reads_only=verdict.read_only and not verdict.credential and not remotes,
        doubt=_short(redact(verdict.reason or ""), 200) or (_short(command) if not verdict.read_only else ""),
        elsewhere=elsewhere,
        unbounded=changes and not elsewhere and not only_secrets,
        credentials=verdict.credential or bool(secret),
        stores=only_secrets and not all(only_looks(one) for one in secret),
        remotes=remotes[:10],
        stops=stops_of(words),
        programs=programs,
        here=frozenset(one.target.text for one in verdict.facts.redirects),
        summary=_short(command),
        comments=tuple(_short(comment, 300) for comment in verdict.comments[:20]),
    )


# Effects that name what they touch; everything else makes a command unbounded.
_HARMLESS = frozenset({"reads", "network-read", "writes", "deletes", "credentials"})


def _reads_only(command: str) -> bool:
    from jackstay.policy.shell import analyse_command

    return analyse_command(command).read_only


def _joined(words: Words) -> str:
    from shlex import join

    return "" if None in words else join(word for word in words if word is not None)


def _short(text: str, limit: int = MAX_SUMMARY) -> str:
    line = redact(" ".join(text.split()))
    return line if len(line) <= limit else line[: limit - 1] + "…"
