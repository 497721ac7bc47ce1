"""Does this find expression only test and print?"""

from __future__ import annotations

import re
from typing import Final

from . import effects as fx
from .effects import READERS, Call, Judge
from .facts import Word
from .secrets import is_secret
from .table import Spec
from .wrappers import found

_FIND_START: Final = re.compile(r"-[HLP]|-O[0-3]")
_FIND_PLAIN: Final = frozenset(
    ("-print", "-print0", "-ls", "-prune", "-quit", "-depth", "-d", "-mount", "-xdev", "-x", "-daystart",
     "-follow",
     "-noleaf", "-ignore_readdir_race", "-noignore_readdir_race", "-warn", "-nowarn", "-empty", "-executable",
     "-readable", "-writable", "-nogroup", "-nouser", "-true", "-false", "-not", "-a", "-and", "-o", "-or",
     "(", ")",
     "!", ",", "-version", "-help", "--version", "--help")
)  # fmt: skip
_FIND_VALUE: Final = frozenset(
    ("-maxdepth", "-mindepth", "-regextype", "-amin", "-anewer", "-atime", "-cmin", "-cnewer", "-ctime",
     "-fstype",
     "-gid", "-group", "-ilname", "-iname", "-inum", "-ipath", "-iregex", "-iwholename", "-links", "-lname",
     "-mmin",
     "-mtime", "-name", "-newer", "-path", "-perm", "-regex", "-samefile", "-size", "-type", "-uid", "-used",
     "-user",
     "-wholename", "-xtype", "-context", "-printf", "-files0-from", "-newermt", "-newerat", "-newerct",
     "-newerma",
     "-newermm", "-newermc", "-neweraa", "-newerac", "-neweram", "-newerca", "-newercc", "-newercm",
     "-newerBt",
     "-newermB", "-Bmin", "-Btime", "-flags", "-since")
)  # fmt: skip
_FIND_NAMES: Final = frozenset(("-name", "-iname", "-path", "-ipath", "-wholename", "-iwholename"))
_FIND_FILES: Final = {"-fprint": 1, "-fprint0": 1, "-fls": 1, "-fprintf": 2}
_FIND_RUN: Final = frozenset(("-exec", "-execdir", "-ok", "-okdir"))


def find(judge: Judge, call: Call, spec: Spec) -> None:
    """`find`: starting points, then tests and actions; only listed tests and printing actions."""
    words = list(call.arguments)
    starts, safe = _starts(judge, call, words)
    wanted: list[str] = []
    runs = excluded = False
    while words:
        word = words.pop(0)
        if not word.fixed:
            judge.unproven(call, f"may be given an action by {word.text}")
        elif word.text in _FIND_VALUE:
            value = words.pop(0) if words else word
            if word.text in _FIND_NAMES and not excluded and is_secret(value.text):
                wanted.append(value.text)
            if value.many and call.scope.texts(value) is None:
                judge.unproven(call, f"may be given an action by the value of {word.text}")
        elif word.text in _FIND_RUN:
            runs = True
            _runs(judge, call, words, starts=starts, safe=safe)
        elif word.text not in _FIND_PLAIN:
            _acts(judge, call, word, words)
        excluded = word.text in ("!", "-not")
    for name in wanted if runs or _feeds_xargs(call) else ():
        judge.note(fx.CREDENTIALS, name, call.text, f"hands on files named {name}, a place for secrets")


def _feeds_xargs(call: Call) -> bool:
    """Is what is found made into the arguments of other commands?"""
    place = call.place
    return place.inside > 0 or any(
        one.pipeline == place.pipeline and one.program in ("xargs", "parallel", "while", "read", "mapfile")
        for one in call.scope.facts.commands
        if place.piped_out
    )


def _starts(judge: Judge, call: Call, words: list[Word]) -> tuple[list[str], bool]:
    """Take the starting points off; say whether what is found surely begins as they do."""
    safe = True
    starts: list[str] = []
    while words and (
        not words[0].fixed or _FIND_START.fullmatch(words[0].text) or words[0].text[:1] not in "-(!,"
    ):
        word = words.pop(0)
        if not word.fixed:
            if call.scope.may_dash(word) or word.shape[:1] == "-":
                judge.unproven(call, f"may be given an action by {word.text}")
            safe = safe and not word.many
        starts.append(word.text)
        judge.note(fx.READS, word.text, call.text, f"reads {word.text}")
    return starts, safe


def _runs(judge: Judge, call: Call, words: list[Word], *, starts: list[str], safe: bool) -> None:
    """`-exec COMMAND ;` or `+`."""
    end = next((at for at, one in enumerate(words) if one.text in (";", "+")), len(words))
    for start in starts:
        if is_secret(start) and end:
            judge.note(fx.CREDENTIALS, start, call.text, f"runs a program on {start}, a place for secrets")
    if end:
        found(judge, call, words[:end], safe=safe)
    del words[: end + 1]


def _acts(judge: Judge, call: Call, word: Word, words: list[Word]) -> None:
    """Actions that write or delete, and whatever is not listed."""
    if word.text in _FIND_FILES:
        judge.writes(words[0] if words else word, f"{call.name} {word.text}")
        del words[: _FIND_FILES[word.text]]
    elif word.text == "-delete":
        judge.note(fx.DELETES, "", call.text, "deletes what it finds (-delete)")
    else:
        judge.unproven(call, f"has {word.text}, which is not known to be harmless")


READERS["find"] = find
