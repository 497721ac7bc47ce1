"""Whose place is a path, and is it inside the workspace? Judged on canonical paths; `ward` resolves."""

import posixpath
import re
from collections.abc import Callable, Sequence
from functools import lru_cache

from jackstay.core.facts import Mark, PathFact, Use
from jackstay.policy.late import late

WHOSE: dict[Mark, str] = {
    "harness": "belongs to the harness itself",
    "host": "configures the agent's host",
    "startup": "is run later by git or a shell",
    "credentials": "holds credentials",
    "system": "belongs to the system",
}

NEVER_WRITTEN: frozenset[Mark] = frozenset({"harness", "host"})
DANGEROUS_TO_WRITE: frozenset[Mark] = frozenset({"startup", "credentials"})

# (mark, pattern) over the canonical path in lower case, the first that matches; a pattern is a regular
# expression for whole path segments at any depth. Lower case on purpose: on a file system that ignores case
# `.GIT/Hooks` is the same place, and elsewhere nobody needs that spelling.
_PLACES: tuple[tuple[Mark, str], ...] = (
    ("host", r"\.claude/(settings(\.local)?\.json|hooks|plugins)|\.claude\.json"),
    ("host", r"\.hermes/(.*/)?(config\.ya?ml|plugins|hooks|\.env|auth\.json|soul\.md|gateway\.json|cron)"),
    ("host", r"\.codex/(config\.toml|hooks(\.json)?|auth\.json)|\.gemini/(settings\.json|hooks|extensions)"),
    ("host", r"(\.config/opencode|\.opencode)/(opencode\.jsonc?|plugins?)"),
    (
        "startup",
        r"\.(claude|codex|gemini|opencode)/(agents?|commands?|skills?|prompts|rules|policies)|\.mcp\.json",
    ),
    ("startup", r"([^/]*\.)?git/(hooks|config(\.worktree)?|info/attributes|modules/(.*/)?(hooks|config))"),
    ("startup", r"\.jackstay/(config\.toml|agents|commands|skills)"),
    ("startup", r"\.(bashrc|bash_profile|bash_login|bash_logout|bash_aliases|profile|inputrc)"),
    (
        "startup",
        r"\.(zshrc|zprofile|zshenv|zlogin|zlogout|kshrc|cshrc|tcshrc|login|xprofile|xinitrc|xsessionrc)",
    ),
    ("startup", r"\.config/(fish|autostart|systemd|environment\.d|git)|\.local/share/systemd"),
    ("startup", r"\.(gitconfig|ripgreprc|lesskey|vimrc|exrc|gdbinit|npmrc|yarnrc(\.yml)?|envrc)"),
    ("startup", r"\.vscode/(tasks|launch)\.json|\.husky|\.githooks"),
    ("credentials", r"\.(ssh|gnupg|password-store|aws|azure|kube|vault-token|netrc|pgpass|my\.cnf|pypirc)"),
    ("credentials", r"\.(git-credentials|htpasswd|boto|s3cfg|terraformrc|terraform\.d|docker/config\.json)"),
    ("credentials", r"\.config/(gcloud|gh|glab|op|rclone|hub|github-copilot|doctl)"),
    ("credentials", r"\.local/share/(keyrings|kwalletd)|\.claude/\.credentials\.json"),
    ("credentials", r"\.env(\.(?!example$|sample$|template$|dist$|test$)[^/]+)?"),
    ("credentials", r"[^/]*(key|priv)[^/]*\.pem"),
    ("credentials", r"[^/]+\.(key|p12|pfx|jks|keystore|kdbx|ppk|gpg|age)"),
    ("credentials", r"id_(rsa|dsa|ecdsa|ed25519)(_[^/]*)?"),
    ("credentials", r"credentials(\.(json|ya?ml|toml|ini|txt|db))?|secrets?\.(json|ya?ml|ini|env|txt)"),
    ("credentials", r"(service[-_]account|client[-_]secret)[^/]*\.json"),
)
# What would go along when a directory is removed or moved as a whole.
_WHOLE: tuple[tuple[Mark, str], ...] = (
    ("host", r"\.claude|\.hermes(/profiles(/[^/]+)?)?|\.codex|\.gemini|\.opencode|\.config/opencode"),
    ("startup", r"\.git|\.jackstay"),
)
_ROOTED: tuple[tuple[Mark, str], ...] = (
    ("credentials", r"/etc/(g?shadow-?|sudoers(\.d)?|ssl/private|krb5\.keytab|ssh/ssh_host_[^/]*_key)"),
    ("credentials", r"/proc/[^/]+/(environ|mem|auxv|maps|fd|task/[^/]+/(environ|mem|fd))"),
    ("credentials", r"/(var/)?run/secrets|/run/credentials"),
    (
        "startup",
        r"/etc/(profile(\.d)?|bash\.bashrc|zsh|environment|cron[^/]*|systemd|init\.d|rc\.local|ld\.so[^/]*)",
    ),
    ("startup", r"/(lib|usr/lib)/systemd|/var/spool/cron"),
    ("system", r"/(etc|var|root|boot|dev)"),
)
_NOT_SYSTEM = late(
    r"/var/(tmp|folders)(/|$)|/etc/(os-release|lsb-release|debian_version|issue(\.net)?|hostname|hosts|timezone|"
    r"localtime|mime\.types|shells|services|protocols|resolv\.conf|nsswitch\.conf)$"
)


def _either(places: Sequence[tuple[Mark, str]], lead: str, end: str) -> re.Pattern[str]:
    """One expression for many; its groups are named by number."""
    return late(
        lead + "(?:" + "|".join(f"(?P<m{n}>{pattern})" for n, (_, pattern) in enumerate(places)) + ")" + end
    )


_PLACE, _WHOLE_PLACE, _ROOT = (
    _either(_PLACES, "/", "(?:/|$)"), _either(_WHOLE, "/", "$"), _either(_ROOTED, "^", "(?:/|$)")
)  # fmt: skip


def mark_of(real: str, protected: Sequence[str] = (), *, use: Use = "reads") -> Mark:
    """Whose place a canonical path is; "" for nobody's in particular.

    `protected` are canonical directories or files of the harness: its home, its store, its backups. Removing
    a directory counts for everything beneath it.
    """
    if not real:
        return ""
    lowered = real.lower()
    for place in protected:
        if within(lowered, place.lower()) or (use == "deletes" and above(lowered, place.lower())):
            return "harness"
    found = _first(_PLACE, _PLACES, lowered)
    if not found and use == "deletes":
        found = _first(_WHOLE_PLACE, _WHOLE, lowered)
    return found or _system(lowered)


def _system(lowered: str) -> Mark:
    mark = _first(_ROOT, _ROOTED, lowered)
    return "" if mark == "system" and _NOT_SYSTEM.match(lowered) else mark


def _first(expression: re.Pattern[str], places: Sequence[tuple[Mark, str]], text: str) -> Mark:
    found = expression.search(text)
    return places[int(found.lastgroup[1:])][0] if found and found.lastgroup else ""


def within(path: str, directory: str) -> bool:
    """Is the canonical path the directory or beneath it?"""
    if directory == "/":
        return path.startswith("/")
    return bool(directory) and (path == directory or path.startswith(directory + "/"))


_OWN_ROOT = late(r"^(?:/+proc/+[^/]+/+(?:task/+[^/]+/+)?root(?=/|$))+/*")  # what a process sees as its root


@lru_cache(1024)
def lexical(path: str, cwd: str, home: str) -> str:
    """An absolute path without `.`, `..` and `~`, links not followed; "" where `~user` needs the system."""
    if path == "~" or path.startswith("~/"):
        path = home + path[1:]
    elif path.startswith("~"):
        return ""
    path = _OWN_ROOT.sub("/", path) if path.startswith("/proc/") else path
    joined = posixpath.normpath(posixpath.join(cwd or "/", path))
    return "/" + joined.lstrip("/")


def above(path: str, place: str) -> bool:
    """Would removing or moving `path` take `place` along?"""
    return place != path and within(place, path)


_MOST_DIRECTORIES = 8


def directories(moves: Sequence[str | None], start: str, step: Callable[[str, str], str]) -> list[str]:
    """Where commands of a line that changes directory may run; [] when nobody can tell.

    `step(move, directory)` says where a move from a directory leads, "" when it cannot be told. Each move may
    have happened or not, before any of the commands.
    """
    found = [start]
    for move in moves:
        reached = [step(move, directory) for directory in found] if move is not None else [""]
        if "" in reached or len(found) > _MOST_DIRECTORIES:
            return []
        found += [directory for directory in reached if directory not in found]
    return found


def refusal(fact: PathFact) -> str | None:
    """Why nothing may write this path, whatever the rules say; None when rules decide."""
    if not fact.changes or fact.mark not in NEVER_WRITTEN:
        return None
    taken = "or what is in it " if fact.use == "deletes" else ""
    return f"{fact.said!r} {taken}{WHOSE[fact.mark]} and no call may change it"


def danger(fact: PathFact) -> str | None:
    """Why a person should look before this path is changed; None when there is no such reason."""
    if fact.changes and fact.mark in DANGEROUS_TO_WRITE:
        return f"{fact.said!r} {WHOSE[fact.mark]}"
    return None


def sensitive(fact: PathFact) -> str | None:
    """Why a person should look before even reading this path; None when there is no such reason."""
    if fact.mark == "credentials":
        return f"{fact.said!r} holds credentials"
    if fact.mark in ("system", "startup") and not fact.inside:
        return f"{fact.said!r} {WHOSE[fact.mark]}"
    if not fact.inside and climbs(fact.said):
        return f"{fact.said!r} leaves the workspace"
    return None


def climbs(said: str) -> bool:
    """Does the path go up somewhere, by either kind of slash?"""
    return ".." in said.replace("\\", "/").split("/")
