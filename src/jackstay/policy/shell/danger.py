"""Is this one of the shapes that are never allowed without a person?"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from jackstay.policy.late import late

from . import effects as fx
from .effects import Effect, Part
from .facts import ShellFacts
from .secrets import is_secret, tidy

_DEVICE: Final = late(r"/dev/(?:sd|hd|vd|xvd|nvme|mmcblk|loop|dm-|md|disk/|mapper/|mem|kmem|port)")
_ROOTS: Final = frozenset(
    ("/", "/*", "~", "~/", "~/*", "$HOME", "${HOME}", "$HOME/*", "${HOME}/*", "/home", "/home/*", "/root",
     "/etc", "/usr",
     "/var", "/bin", "/sbin", "/lib", "/lib64", "/boot", "/opt", "/srv", "/sys", "/proc", "/dev", "/Users",
     ".", "./",
     "..", "../", "*", "./*", "/.", "/..", ".*")
)  # fmt: skip
_HOME_ITSELF: Final = late(r"(?:/home|/Users)/[^/]+/?\*?|/root/?\*?|~[\w-]*/?\*?")
_START_UP: Final = late(
    r"(?:^|/)\.(?:bashrc|bash_profile|bash_login|bash_logout|bash_aliases|profile|zshrc|zshenv|zprofile|"
    r"zlogin|cshrc|tcshrc|"
    r"kshrc|inputrc|xprofile|xinitrc|xsession)$|^/etc/(?:profile(?:\.d/.*)?|bash\.bashrc|zsh/.*|"
    r"environment|crontab|"
    r"cron\.[a-z]+/.*|ld\.so\.preload|ld\.so\.conf(?:\.d/.*)?|sudoers(?:\.d/.*)?|passwd|shadow|group|hosts|"
    r"pam\.d/.*|rc\.local|"
    r"systemd/.*)$|(?:^|/)\.config/(?:fish/.*|systemd/user/.*|autostart/.*)$|(?:^|/)authorized_keys2?$|"
    r"(?:^|/)\.ssh/(?:config|rc|environment)$"
)
_HOOKS: Final = late(r"(?:^|/)\.git/(?:hooks(?:/.*)?|config(?:\.worktree)?|info/attributes)$|(?:^|/)\.husky/")
_SHELLS: Final = frozenset(
    ("sh", "bash", "zsh", "dash", "ksh", "fish", "python", "python3", "perl", "ruby", "node", "php")
)
_FETCHERS: Final = frozenset(("curl", "wget", "fetch", "aria2c", "http", "https", "nc", "ncat"))


class Danger(fx.Effect, frozen=True, gc=False):
    """A dangerous shape: `kind` names it, the rest is as in an effect."""


def dangers(facts: ShellFacts, effects: Sequence[Effect], parts: Sequence[Part]) -> tuple[Danger, ...]:
    """Every dangerous shape in a judged text."""
    found = [*_targets(effects), *_deletes(parts), *_downloads(facts, parts), *_bombs(facts)]
    return tuple(dict.fromkeys(found))


def _targets(effects: Sequence[Effect]) -> list[Danger]:
    found: list[Danger] = []
    for one in effects:
        if one.kind not in (fx.WRITES, fx.DELETES):
            continue
        path = tidy(one.target)
        if _DEVICE.match(path):
            found.append(Danger("raw-device", one.target, one.evidence, f"writes to the device {one.target}"))
        elif _HOOKS.search(path):
            found.append(Danger("git-hooks", one.target, one.evidence, f"changes what git runs ({one.target})"))
        elif _START_UP.search(path):
            found.append(
                Danger("start-up", one.target, one.evidence, f"changes what runs at start-up ({one.target})")
            )
        elif is_secret(path):
            found.append(
                Danger("credentials", one.target, one.evidence, f"changes a place for secrets ({one.target})")
            )
    return found


def _deletes(parts: Sequence[Part]) -> list[Danger]:
    found: list[Danger] = []
    for part in parts:
        words = part.argv
        name = (words[0] or "").rpartition("/")[2]
        texts = [text for text in part.text.split()[1:]]
        flags = "".join(text for text in texts if re.fullmatch(r"-[a-zA-Z]+", text))
        if name == "rm" and ("r" in flags or "R" in flags or "--recursive" in texts):
            targets = [text for text in texts if not text.startswith("-")]
        elif name == "find" and "-delete" in texts:
            targets = [text for text in texts[:1] if not text.startswith("-")] or ["."]
        elif name in ("mkfs", "wipefs", "fdisk", "sfdisk", "parted") or name.startswith("mkfs."):
            found.append(Danger("raw-device", name, part.text, f"rewrites a device ({name})"))
            continue
        else:
            continue
        for text in targets:
            if tidy(text) in _ROOTS or text in _ROOTS or _HOME_ITSELF.fullmatch(text):
                found.append(Danger("recursive-delete", text, part.text, f"deletes everything under {text}"))
    return found


def _downloads(facts: ShellFacts, parts: Sequence[Part]) -> list[Danger]:
    """A download whose output a shell or interpreter runs, through a pipe or a substitution."""
    found: list[Danger] = []
    commands = facts.commands
    fetching = [one for one in commands if one.program in _FETCHERS]
    if not fetching:
        return found
    named = {part.argv[0] for part in parts if part.argv}
    for one in commands:
        names = {word.text.rpartition("/")[2] for word in one.words[:4]}
        joined = any(other.pipeline and other.pipeline == one.pipeline and one.piped_in for other in fetching)
        substituted = any(other.inside for other in fetching) and bool(
            names & (_SHELLS | {"eval", "source", "."})
        )
        if (joined and names & _SHELLS) or substituted:
            found.append(Danger("download-and-run", one.text, one.text, "runs what it downloads"))
    del named
    return found


def _bombs(facts: ShellFacts) -> list[Danger]:
    for name in facts.functions:
        calls = [one for one in facts.commands if one.in_function and one.words and one.words[0].text == name]
        if calls and any(one.background or one.pipeline for one in calls):
            return [Danger("fork-bomb", name, facts.text[:80], "starts copies of itself without end")]
    return []
