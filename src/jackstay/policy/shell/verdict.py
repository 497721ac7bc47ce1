"""May this command run where only reading is allowed, and what else should people and rules know about it?"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import msgspec
from msgspec import Struct

from . import effects as fx
from . import (
    readers_awk,
    readers_data,
    readers_files,
    readers_find,
    readers_net,
    readers_sed,
    shell_builtins,
    wrappers,
)
from .danger import Danger, dangers
from .effects import HARMLESS, Effect, Judge, Part
from .facts import Redirect, ShellFacts, Word
from .syntax import parse, unread

# Their import fills the tables of readers and builtins.
_LOADED = (
    shell_builtins,
    readers_awk,
    readers_data,
    readers_files,
    readers_find,
    readers_net,
    readers_sed,
    wrappers,
)
_CREDENTIAL_PROGRAMS = frozenset(
    ("gpg", "gpg2", "pass", "gopass", "keepassxc-cli", "ssh-add", "secret-tool", "op", "bw", "vault", "lpass",
     "security", "rbw", "aws-vault", "age", "sops", "keyctl", "ssh-keygen", "ssh-agent")
)  # fmt: skip


class ShellVerdict(Struct, frozen=True):
    """Everything known about one command text.

    `read_only` promises that running it can only read local state that is no secret, or make a plain
    look-up. `reason` is
    None exactly then; otherwise it names the words that stand against it.
    """

    text: str
    read_only: bool
    reason: str | None
    interactive: bool
    effects: tuple[Effect, ...]
    commands: tuple[Part, ...]
    redirects: tuple[Redirect, ...]
    write_targets: tuple[str, ...]
    delete_targets: tuple[str, ...]
    network_targets: tuple[str, ...]
    remote_commands: tuple[str, ...]
    credential: bool
    dangers: tuple[Danger, ...]
    opaque: tuple[Effect, ...]
    comments: tuple[str, ...]
    facts: ShellFacts


@lru_cache(maxsize=2048)
def analyse_command(text: str) -> ShellVerdict:
    """Judge a command text. Never raises, whatever the text; what cannot be read for certain is never
    read-only."""
    try:
        return judge_facts(parse(text))
    except Exception as failure:  # a caller may take a crash for consent: a fault of ours refuses, and says so
        return judge_facts(unread(text, f"the analyser failed ({failure!r})"))


def judge_facts(facts: ShellFacts) -> ShellVerdict:
    """Judge what was read from a text."""
    judge = Judge()
    judge.run(facts)
    if not facts.commands and not facts.opaque and not facts.comments:
        judge.note(fx.OPAQUE, "", facts.text[:60], "is no command")
    effects = tuple(dict.fromkeys(judge.effects))
    against = next((one for one in effects if one.kind not in HARMLESS), None)
    read_only = against is None
    credential = any(one.kind == fx.CREDENTIALS for one in effects) or any(
        (part.argv[0] or "").rpartition("/")[2] in _CREDENTIAL_PROGRAMS for part in judge.parts if part.argv
    )
    return ShellVerdict(
        text=facts.text,
        read_only=read_only,
        reason=None if against is None else f"not read-only: '{against.evidence}' {against.says}",
        interactive=judge.interactive,
        effects=effects,
        commands=tuple(judge.parts),
        redirects=tuple(one for inner, _, _ in judge.texts for one in inner.redirects),
        write_targets=tuple(
            dict.fromkeys(one.target for one in effects if one.kind == fx.WRITES and one.target)
        ),
        delete_targets=tuple(
            dict.fromkeys(one.target for one in effects if one.kind == fx.DELETES and one.target)
        ),
        network_targets=tuple(dict.fromkeys(judge.network)),
        remote_commands=tuple(judge.remote),
        credential=credential,
        dangers=() if read_only else dangers(facts, effects, judge.parts),
        opaque=tuple(one for one in effects if one.kind == fx.OPAQUE),
        comments=facts.comments,
        facts=facts,
    )


def describe(verdict: ShellVerdict) -> dict[str, Any]:
    """The verdict as plain values, for printing and for other programs."""
    plain = {
        "command": verdict.text,
        "read_only": verdict.read_only,
        "reason": verdict.reason,
        "interactive": verdict.interactive,
        "credential": verdict.credential,
        "commands": verdict.commands,
        "redirects": [{"op": one.op, "target": one.target.text, "fd": one.fd} for one in verdict.redirects],
        "substitutions": [one.text for one in verdict.facts.substitutions],
        "assignments": [one.name for one in verdict.facts.assignments],
        "effects": verdict.effects,
        "dangers": verdict.dangers,
        "opaque": verdict.facts.opaque,
        "comments": verdict.comments,
    }
    described: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(plain))
    return described


__all__ = ["ShellVerdict", "Word", "analyse_command", "describe", "judge_facts"]
