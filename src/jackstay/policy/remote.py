"""Which machine does a command reach, and what would it run there?"""

from collections.abc import Callable, Iterable

from msgspec import Struct

Words = tuple[str | None, ...]
ReadsOnly = Callable[[str], bool]


class Remote(Struct, frozen=True, gc=False, omit_defaults=True):
    """A command that reaches another machine.

    `inner` is what would run there, None when that cannot be told or a person would type it. `reads_only` means
    that `inner` was shown to change nothing. `transfer` is a copy of files (scp, rsync, sftp).
    """

    host: str
    inner: str | None = None
    reads_only: bool = False
    transfer: bool = False


# Options of ssh that take a value; the others stand alone and may be run together.
_SSH_VALUES = frozenset("BbcDEeFIiJLlmOopPQRSWw")
_SSH = frozenset({"ssh", "slogin"})
_SHELLS = frozenset({"autossh", "mosh", "telnet", "rlogin", "rsh"})  # what they run there is not looked for
# Options that change nothing here: no forwarding, no other program, no file written.
_PLAIN = frozenset("46aCiklnpqTtvxb")
_PLAIN_SETTINGS = frozenset(
    [
        "batchmode",
        "connecttimeout",
        "connectionattempts",
        "loglevel",
        "port",
        "user",
        "identityfile",
        "identitiesonly",
        "serveraliveinterval",
        "serveralivecountmax",
        "numberofpasswordprompts",
        "addressfamily",
    ]
)
_COPIES = frozenset({"scp", "sftp", "rsync"})


def remote_of(words: Words, reads_only: ReadsOnly) -> Remote | None:
    """The machine a simple command reaches, with what it would run there; None when it stays here.

    `reads_only` judges the inner command. `ssh -V`, `-Q` and `-G` only tell something and reach nothing.
    """
    program = (words[0] or "").rsplit("/", 1)[-1] if words else ""
    if program == "sshpass":
        return remote_of(_behind_sshpass(words), reads_only)
    if program in _SSH:
        return _shell(words[1:], reads_only)
    if program in _SHELLS:
        hosts = [word for word in words[1:] if word is None or not word.startswith("-")]
        return Remote(_host(hosts[0] or "?")) if hosts else None
    if program in _COPIES:
        return _copy(words[1:], program)
    return None


def stops_of(commands: Iterable[Words]) -> tuple[str, ...]:
    """What the commands end, when ending things is all they do: `pid:N` for kill,
    `ssh:HOST` for `ssh -O exit`.
    """
    found: list[str] = []
    for words in commands:
        program = (words[0] or "").rsplit("/", 1)[-1] if words else ""
        if program == "kill":
            pids = [word for word in words[1:] if word is not None and not word.startswith("-")]
            if not pids or None in words or not all(pid.isdigit() for pid in pids):
                return ()
            found += [f"pid:{pid}" for pid in pids]
        elif program == "ssh" and _control(words) is not None:
            found.append(f"ssh:{_control(words)}")
        else:
            return ()
    return tuple(found)


def _control(words: Words) -> str | None:
    """The host whose control master `ssh -O exit|stop` ends."""
    values, host, _ = _options(words[1:])
    return _host(host) if host is not None and values.get("O") in ("exit", "stop") else None


def _shell(words: Words, reads_only: ReadsOnly) -> Remote | None:
    values, host, inner = _options(words)
    if host is None:
        return None if {"V", "Q", "?"} & values.keys() else Remote("?")
    if "G" in values:
        return None
    if values.get("O") in ("exit", "stop", "check"):
        return None
    if not inner:
        return Remote(_host(host))
    if None in inner:
        return Remote(_host(host), "?")
    # ssh joins its arguments with blanks and lets the remote shell read the result.
    command = " ".join(word for word in inner if word is not None)
    return Remote(_host(host), command[:500], _plain(values) and reads_only(command))


def _plain(values: dict[str, str]) -> bool:
    """Do the options do nothing on this machine?"""
    settings = [
        setting.split("=")[0].split()[0].lower()
        for setting in values.get("o", "").split("\n")
        if setting.strip()
    ]
    return values.keys() <= _PLAIN | {"o"} and all(setting in _PLAIN_SETTINGS for setting in settings)


def _options(words: Words) -> tuple[dict[str, str], str | None, Words]:
    """ssh's options with their values, its destination, and the words of the remote command."""
    values: dict[str, str] = {}
    at = 0
    while at < len(words):
        word = words[at]
        if word is None:
            return values, "?", words[at + 1 :]
        if word == "--":
            at += 1
            break
        if not word.startswith("-") or word == "-":
            break
        taken = _flags(word[1:], words[at + 1 : at + 2], values)
        at += 1 + taken
    rest = words[at:]
    if not rest:
        return values, None, ()
    # Options may also stand between the destination and the command.
    more = rest[1:]
    while more and more[0] is not None and more[0].startswith("-") and len(more[0]) > 1:
        taken = _flags(more[0][1:], more[1:2], values)
        more = more[1 + taken :]
    return values, rest[0] or "?", more


def _flags(letters: str, following: Words, values: dict[str, str]) -> int:
    """Read one word of options; returns how many of the following words it took."""
    for position, letter in enumerate(letters):
        if letter in _SSH_VALUES:
            attached = letters[position + 1 :]
            value = attached or (following[0] or "?" if following else "")
            values[letter] = "\n".join(filter(None, (values.get(letter, ""), value)))
            return 0 if attached else 1
        values[letter] = ""
    return 0


def _copy(words: Words, program: str) -> Remote | None:
    for word in words:
        if word is None:
            return Remote("?", transfer=True)
        if word.startswith("rsync://"):
            return Remote(_host(word[8:].split("/", 1)[0]), transfer=True)
        if word.startswith("-"):
            continue
        before, colon, _ = word.partition(":")
        if colon and "/" not in before:
            return Remote(_host(before), transfer=True)
        if program == "sftp":
            return Remote(_host(before), transfer=True)
    return None


def _behind_sshpass(words: Words) -> Words:
    at = 1
    while at < len(words):
        word = words[at] or ""
        if not word.startswith("-"):
            return words[at:]
        at += 2 if word in ("-p", "-f", "-d", "-P") else 1
    return ()


def _host(destination: str) -> str:
    """The machine's name in `ssh://user@host:port`, `user@host` or `[2001:db8::1]:22`."""
    name = destination.removeprefix("ssh://").rsplit("@", 1)[-1].rstrip("/")
    if name.startswith("["):
        return name[1:].split("]", 1)[0]
    if name.count(":") == 1:
        name = name.split(":", 1)[0]
    return name[:100] or "?"
