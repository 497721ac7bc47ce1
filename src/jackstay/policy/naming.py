"""Which places could a command be about, going by its words alone?

Of most programs nobody knows file by file what they touch. A rule that forbids a place asks about those that
name it, in whatever way: as a word, behind an option or a colon, inside code.
"""

from collections.abc import Iterator, Sequence

from jackstay.policy.late import late
from jackstay.policy.lines import Part
from jackstay.policy.patterns import HOLE
from jackstay.policy.shell import table

_MOST = 64
_BETWEEN = late(r"[\s=:,;'\"()<>|&{}\[\]]+")
_URL = late(r"[A-Za-z][A-Za-z0-9+.-]*://[^\s'\"()<>|;,]+")
_HOST = late(r"(?:[\w.+-]+@)?((?:[A-Za-z0-9_](?:[A-Za-z0-9_-]*[A-Za-z0-9_])?\.)+[A-Za-z0-9-]+\.?)(?:/\S*)?")

# Where a program is told to work, by option: what it then names begins there.
_WORKS_IN: dict[str, tuple[str, ...]] = {
    "env": ("-C", "--chdir"), "sudo": ("-D", "--chdir"), "git": ("-C", "--work-tree"),
    "make": ("-C", "--directory"), "tar": ("-C", "--directory"), "patch": ("-d", "--directory"),
    "unshare": ("--wd",), "nsenter": ("--wd",), "npm": ("--prefix", "-C"), "yarn": ("--cwd",),
    "pnpm": ("-C", "--dir"), "cargo": ("-C",), "go": ("-C",), "ninja": ("-C",), "cpio": ("-D", "--directory"),
    "systemd-run": ("--working-directory",),
}  # fmt: skip


def paths_named(parts: Sequence[Part]) -> tuple[str, ...]:
    """Every piece of their words that can be a path."""
    found: dict[str, None] = {}
    for word in _words(parts):
        for piece in _BETWEEN.split(word):
            for name in (piece, piece[2:] if piece[:1] == "-" else ""):
                if name and name[0] != "-" and HOLE not in name:
                    found[name] = None
    return tuple(found)[:_MOST]


def hosts_named(parts: Sequence[Part]) -> tuple[str, ...]:
    """Every piece of their words that can be an address or a host."""
    found: dict[str, None] = {}
    for word in _words(parts):
        found.update(dict.fromkeys(_URL.findall(word)))
        for piece in _BETWEEN.split(_URL.sub(" ", word)):
            host = _HOST.fullmatch(piece.lstrip("@/"))
            if host is not None:
                found[host[1]] = None
    return tuple(found)[:_MOST]


def _words(parts: Sequence[Part]) -> Iterator[str]:
    for part in parts:
        yield from part.words[1:]
        yield from (one.partition("=")[2] for one in part.assignments)


# Words that are only said, and run nowhere.
_SAYS = frozenset({"-m", "-am", "--message", "--title", "--body", "--subject", "--description"})
_STARTS = late(r"(?:^|(?<=[\s;&|('\"`!=:,{\[@]))[^\s;&|('\"`!=:,{\[@]")
_FED = frozenset(
    {"at", "batch", "crontab", "make", "source", ".", "python", "python3", "perl", "ruby", "node", "php"}
)


def commands_named(parts: Sequence[Part], given: Sequence[str]) -> tuple[str, ...]:
    """What these commands could run, going by their words: each end of them, and each end of a text among them.

    `given` are texts from the line that a program reading its input would get.
    """
    found: dict[str, None] = {}
    for part in parts:
        words = list(_run(part))
        found.update((" ".join(words[at:]), None) for at in range(_may_start(part), len(words)))
        texts = [
            *words,
            *(word[2:] for word in words if word[:1] == "-"),
            *(one.partition("=")[2] for one in part.assignments),
        ]
        if part.words and part.words[0].rpartition("/")[2] in _FED:
            texts += given
        for text in filter(_HOLDS_TEXT.search, texts):
            found.update((text[match.start() :], None) for match in _STARTS.finditer(text[:_LONGEST]))
    plain = (text.replace(",", " ") for text in found)
    return tuple(dict.fromkeys(_WITHOUT_PATH.sub("", text) for text in plain))[: 4 * _MOST]


_LONGEST = 1000
_HOLDS_TEXT = late(r"[\s;&|('\"`!=:,{\[@]")
# Sub-commands behind which a command of its own stands, and what else can introduce one.
_RUNS = frozenset({
    "exec", "run", "x", "dlx", "tool", "shell", "ssh", "debug", "foreach", "bisect", "new", "new-session",
    "neww", "new-window", "splitw", "split-window", "respawn-pane", "run-shell", "if-shell", "--",
})  # fmt: skip


def _may_start(part: Part) -> int:
    """From which word on a command may begin: of a program with sub-commands behind one that runs something,
    so that `git rm` is no `rm`."""
    name = part.words[0].rpartition("/")[2] if part.words else ""
    spec = table.find(name)
    words = list(_run(part))
    if spec is None or not spec.entry.sub:
        return 0
    return next((at + 1 for at, word in enumerate(words) if word in _RUNS), len(words))


_WITHOUT_PATH = late(r"^[\w.~/-]*/")


def _run(part: Part) -> Iterator[str]:
    said = False
    for word in part.words[1:]:
        if not said and not word.startswith(("--message=", "--title=", "--body=")):
            yield word
        said = word in _SAYS


def works_in(words: Sequence[str | None]) -> Iterator[str | None]:
    """The directories a program is told to work in; None for one that nobody can tell."""
    name = (words[0] or "").rpartition("/")[2] if words else ""
    if name == "find" and not {"-execdir", "-okdir"}.isdisjoint(words):
        yield None  # wherever something is found
    for option in _WORKS_IN.get(name, ()):
        for at, word in enumerate(words[1:], start=1):
            if word == option:
                yield words[at + 1] if at + 1 < len(words) else None
            elif word is not None and word.startswith(option + "=" * (option[:2] == "--")) and word != option:
                yield word[len(option) + (option[:2] == "--") :]
