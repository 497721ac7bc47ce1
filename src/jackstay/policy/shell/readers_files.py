"""Does this archiver, process lister or copier only list?"""

from __future__ import annotations

import re
from typing import Final

from jackstay.policy.late import late

from . import effects as fx
from .effects import READERS, Call, Judge
from .facts import Word
from .operands import options
from .options import scan
from .table import Entry, Spec, prepare

_TAR: Final = prepare(
    "tar",
    Entry(
        short="tvzjJaZOpPkhswRinxdSlomBb: f: C: T:! X:< N: L: K: V: I:! F:! g:> G c r u A U W H: ",
        long="list extract get diff compare create append update delete catenate concatenate verbose file= "
        "gzip gunzip "
        "ungzip bzip2 xz lzma lzip zstd lzop auto-compress no-auto-compress compress directory= exclude= "
        "exclude-from=< wildcards no-wildcards wildcards-match-slash anchored no-anchored ignore-case "
        "strip-components= show-transformed-names show-stored-names full-time numeric-owner utc "
        "quoting-style= "
        "no-recursion recursion to-stdout totals force-local warning= occurrence=? null no-null files-from=! "
        "block-number absolute-names transform= format= sort= ignore-zeros verify one-file-system "
        "use-compress-program=! to-command=! checkpoint=? checkpoint-action=! rsh-command=! rmt-command=! "
        "info-script=! new-volume-script=! index-file=> listed-incremental=> volno-file=> version",
        operands="text",
    ),
)
_TAR_LISTS: Final = frozenset(("-t", "--list", "-d", "--diff", "--compare"))
_TAR_CREATES: Final = frozenset(
    ("-c", "--create", "-r", "--append", "-u", "--update", "-A", "--catenate", "--concatenate", "--delete")
)
_TAR_CLUSTER: Final = late(r"[A-Za-z]+")


def tar(judge: Judge, call: Call, spec: Spec) -> None:
    """`tar`: lists, compares or extracts to standard output; everything else writes."""
    words = list(call.arguments)
    if words and words[0].fixed and _TAR_CLUSTER.fullmatch(words[0].text):
        words[0] = Word(f"-{words[0].text}")  # the old style without a dash
        words = _old_style(words)
    seen, _ = scan(_TAR, words, call.scope)
    options(judge, call, _TAR, seen)
    archives = [
        given.value for given in seen.options if given.name in ("-f", "--file") and given.value is not None
    ]
    for archive in archives:
        if ":" in archive.text and "--force-local" not in seen.names:
            judge.note(fx.SENDS, archive.text, call.text, f"opens {archive.text} on another machine")
    names = seen.names
    if names & {"-O", "--to-stdout"}:
        judge.reads(seen.operands, call.text)
    if names & _TAR_CREATES:
        target = archives[0].text if archives else ""
        judge.note(fx.WRITES, target, call.text, f"writes {target}" if target else "writes an archive")
    elif names & {"-x", "--extract", "--get"} and not names & {"-O", "--to-stdout"}:
        judge.note(fx.WRITES, "", call.text, "unpacks files")
    elif not names & _TAR_LISTS and not names & {"-O", "--to-stdout", "--version"}:
        judge.unproven(call, "neither lists nor compares")
    judge.reads(archives, call.text)


def _old_style(words: list[Word]) -> list[Word]:
    """Values of a bundled first word follow it in order: `tar tfC a.tar dir`."""
    letters = words[0].text[1:]
    spread: list[Word] = []
    rest = words[1:]
    for letter in letters:
        spread.append(Word(f"-{letter}"))
        option = _TAR.options.get(f"-{letter}")
        if option is not None and option.takes == 1 and rest:
            spread.append(rest.pop(0))
    return [*spread, *rest]


_PS_LONG: Final = frozenset(
    ("sort", "format", "pid", "ppid", "user", "User", "group", "Group", "tty", "sid", "cols", "columns",
     "rows", "lines", "width", "headers", "no-headers", "no-heading", "heading", "forest", "deselect",
     "cumulative", "quick-pid", "info", "version", "context", "signames")
)  # fmt: skip
_PS_BSD: Final = late(r"[aAcdefghjklLmnNopqrsStTuUvwxXZ]+")


def ps(judge: Judge, call: Call, spec: Spec) -> None:
    """`ps`: lists processes; the old `e` shows what is in their environment."""
    value = False
    for word in call.arguments:
        text = word.text
        if value:
            value = False
        elif text[:2] == "--":
            if text[2:].partition("=")[0] not in _PS_LONG and word.fixed:
                judge.unproven(call, f"has {text}, which is not known to be harmless")
            value = "=" not in text and text in ("--sort", "--format", "--pid", "--ppid", "--user")
        elif text[:1] == "-":
            value = text[-1:] in "opCugGUtsqkONDF" and len(text) > 1 and text[1:2] != "e"
        elif _PS_BSD.fullmatch(text) and "e" in text and "o" not in text[:-1]:
            judge.note(fx.CREDENTIALS, "environment", call.text, "shows the environment of processes")
        else:
            value = bool(_PS_BSD.fullmatch(text)) and text[-1:] in "opUkOt"


def ar(judge: Judge, call: Call, spec: Spec) -> None:
    """`ar`: `t` lists and `p` prints."""
    words = call.arguments
    plain = all(word.text[:1] not in "-@" for word in words[1:])
    if plain and words and words[0].fixed and re.fullmatch(r"-?[tp][vVOPT]*", words[0].text):
        judge.reads(words[1:2], call.text)
    else:
        judge.note(fx.WRITES, call.name, call.text, "may change an archive")


def dd(judge: Judge, call: Call, spec: Spec) -> None:
    """`dd`: copies; to standard output it only reads."""
    for word in call.arguments:
        name, equals, value = word.text.partition("=")
        if name == "of" and word.fixed and value in ("/dev/null", "/dev/stdout"):
            continue
        if name == "of":
            judge.note(fx.WRITES, value, call.text, f"writes {value}")
        elif name == "if" and equals:
            judge.reads((Word(value, fixed=word.fixed),), call.text)
        elif (
            not equals
            or word.many
            or name not in ("bs", "count", "skip", "ibs", "obs", "cbs", "status", "iflag", "conv")
        ):
            judge.unproven(call, f"has {word.text}, which is not known to be harmless")


def service(judge: Judge, call: Call, spec: Spec) -> None:
    """`service NAME status` asks; the rest acts."""
    texts = [word.text for word in call.arguments if word.fixed]
    asks = texts == ["--status-all"] or (len(texts) == 2 == len(call.arguments) and texts[1] == "status")
    if not asks or "/" in texts[0]:
        judge.note(fx.SERVICE, call.name, call.text, "acts on a service")


_PACMAN: Final = late(
    r"-(?:Q[acdegiklmnopqstu]*|S[sgilq]+|F[lxq]*|T|V)|--(?:query|info|list|owns|search|groups|deps|"
    r"explicit|native|foreign|"
    r"unrequired|upgrades|quiet|check|color(?:=\w+)?)|-[iqlsogdetnmukc]+"
)


def pacman(judge: Judge, call: Call, spec: Spec) -> None:
    """`pacman`: questions to the local or the last fetched database."""
    flags = [word for word in call.arguments if word.text[:1] == "-" or not word.fixed]
    if not flags or not flags[0].text.startswith(("-Q", "-S", "-F", "-T", "-V", "--query")):
        judge.unproven(call, "is not a question pacman can answer")
    for word in flags:
        if not word.fixed or not _PACMAN.fullmatch(word.text):
            judge.note(fx.WRITES, word.text, call.text, f"may change packages ({word.text})")


READERS.update({"tar": tar, "ps": ps, "ar": ar, "dd": dd, "service": service, "pacman": pacman})
