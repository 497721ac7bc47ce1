"""What does the context anchor say, and how does a call change it?

The time is passed in. Every value is one short line, redacted, and cannot end the block it stands in.
"""

import re

from msgspec.structs import replace

from jackstay.core.anchor import Anchor
from jackstay.policy.deeds import Deed
from jackstay.policy.happenings import AnchorMoved
from jackstay.policy.secrets import redact

MAX_FACTS = 20
MAX_VALUE = 200
MAX_KEY = 40
DEBOUNCE_S = 300.0
OPEN, CLOSE = "[CONTEXT ANCHOR]", "[/CONTEXT ANCHOR]"

_ANNOTATION = re.compile(
    r"#\s*anchor:(mission|facts-clear|fact-|fact|task)(?=\s|\Z)[ \t]*(.*?)(?=\s*#\s*anchor:|\Z)", re.DOTALL
)
_DELIMITER = re.compile(r"\[\s*/?\s*context\s+anchor\s*\]", re.IGNORECASE)
_IDLE = frozenset({"", "awaiting-user-input", "testing"})
_PREFIXES = frozenset(
    [
        "sudo",
        "doas",
        "time",
        "nohup",
        "setsid",
        "env",
        "noglob",
        "nice",
        "stdbuf",
        "command",
        "exec",
        "builtin",
        "cd",
    ]
)


def clean(text: str, limit: int = MAX_VALUE) -> str:
    """The text as an anchor may hold it: one line, redacted, without the block's delimiters,
    at most `limit` long.
    """
    line = " ".join("".join(char if char.isprintable() else " " for char in text).split())
    while _DELIMITER.search(line):
        line = " ".join(_DELIMITER.sub("", line).split())
    if "=" in line:  # what is a secret on a line of its own is one behind other words as well
        line = " ".join(redact(word) if "=" in word else word for word in line.split(" "))
    line = redact(line)
    return line if len(line) <= limit else line[: limit - 1] + "…"


def put(anchor: Anchor, key: str, value: str) -> tuple[Anchor, tuple[AnchorMoved, ...]]:
    """Set `mission`, `task` or a key fact; an empty value removes it.
    The oldest fact goes when there are too many.
    """
    key, value = clean(key, MAX_KEY), clean(value)
    value = redact(f"{key}={value}").removeprefix(f"{key}=") if value else value  # judged with its name
    if not key:
        return anchor, ()
    if key in ("mission", "task"):
        after = replace(anchor, mission=value) if key == "mission" else replace(anchor, task=value)
    else:
        others = tuple(fact for fact in anchor.facts if fact[0] != key)
        facts = (*others, (key, value))[-MAX_FACTS:] if value else others
        after = replace(anchor, facts=facts)
    return after, (() if after == anchor else (AnchorMoved(key, value),))


def annotate(anchor: Anchor, comments: tuple[str, ...]) -> tuple[Anchor, tuple[AnchorMoved, ...]]:
    """Follow the `#anchor:…` annotations in shell comments, in order; each may hold several."""
    told: list[AnchorMoved] = []
    for comment in comments:
        for found in _ANNOTATION.finditer(comment if comment.startswith("#") else f"#{comment}"):
            anchor, moved = _follow(anchor, found[1], found[2].strip())
            told += moved
    return anchor, tuple(told)


def observe(anchor: Anchor, tool: str, deed: Deed, *, at: float) -> Anchor:
    """The anchor after a call has run at `at` (epoch seconds): last tool and current task.

    The task is inferred anew when there is none, or when it is older than the debounce; nothing else that is
    remembered touches its time.
    """
    last = clean(
        f"{tool} {deed.summary}"
        if deed.summary and not deed.summary.startswith(tool)
        else deed.summary or tool,
        60,
    )
    anchor = replace(anchor, last_tool=last)
    task = infer(tool, deed)
    if task and (anchor.task in _IDLE or at - anchor.task_at >= DEBOUNCE_S):
        anchor = replace(anchor, task=task, task_at=at)
    return anchor


def infer(tool: str, deed: Deed) -> str:
    """A call as `verb:subject`, at most 60 characters; "" when it tells nothing."""
    if deed.remotes:
        return clean(f"ssh:{deed.remotes[0].host}", 60)
    programs = [program for program in deed.programs if program not in _PREFIXES]
    verb = programs[0] if programs else tool if not deed.programs else ""
    paths = (*deed.targets, *deed.reads)
    subject = paths[0].rstrip("/").rsplit("/", 1)[-1][:35] if paths else ""
    return clean(f"{verb}:{subject}" if subject else verb, 60)


def block(anchor: Anchor) -> str | None:
    """The anchor as the model reads it; None while there is nothing to say."""
    lines = [
        f"Mission: {anchor.mission}" if anchor.mission else "",
        f"Current: {anchor.task}" if anchor.task else "",
        f"Host: {_host(anchor)}" if _host(anchor) else "",
        f"Last tool: {anchor.last_tool}" if anchor.last_tool else "",
        *(
            ["Key facts:\n" + "\n".join(f"- {key}: {value}" for key, value in anchor.facts)]
            if anchor.facts
            else []
        ),
    ]
    said = [line for line in lines if line]
    return "\n".join([OPEN, *said, CLOSE]) if said else None


def _host(anchor: Anchor) -> str:
    if anchor.host and anchor.host != anchor.local:
        return f"{anchor.local or 'local'} → ssh:{anchor.host}"
    return anchor.local


def _follow(anchor: Anchor, word: str, rest: str) -> tuple[Anchor, tuple[AnchorMoved, ...]]:
    if word == "facts-clear":
        told = tuple(AnchorMoved(key, "") for key, _ in anchor.facts)
        return replace(anchor, facts=()), told
    if word == "fact-":
        return put(anchor, rest, "")
    if word == "fact":
        key, equals, value = rest.partition("=")
        return put(anchor, key.strip(), value.strip()) if equals else (anchor, ())
    return put(anchor, word, rest)
