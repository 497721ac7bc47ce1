"""What does a program run that is given a command: sudo, env, xargs, find -exec, bash -c, ssh …?"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from . import effects as fx
from .effects import ANY, READERS, Call, Judge
from .environment import power_of
from .facts import HOLE, UNKNOWN, Word
from .operands import options
from .options import scan
from .table import Entry, Spec, prepare, wrapper

_SETS: Final = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)=(.*)", re.DOTALL)


def wraps(judge: Judge, call: Call, spec: Spec) -> None:
    """A wrapper of the table: its options, operands to skip, then the command."""
    entry = spec.entry
    if entry.reader:
        READERS[entry.reader](judge, call, spec)
        return
    words = call.arguments
    if spec.name == "command" and words and words[0].fixed and re.fullmatch(r"-p?[vV]", words[0].text):
        return
    seen, at = scan(spec, words, call.scope, stop=True)
    options(judge, call, spec, seen)
    rest = list(words[at + entry.skip :])
    if entry.effect and (words or spec.name != "exec" or _rereads(call)):
        judge.note(fx.SENDS if entry.effect == "network" else entry.effect, call.name, call.text, entry.says)
    while call.name in ("sudo", "doas", "env") and rest and rest[0].fixed and _SETS.fullmatch(rest[0].text):
        _sets(judge, call, rest.pop(0))
    if rest:
        judge.inner(call, rest, bounded=entry.bounds)
    elif spec.name == "ionice" and {"-c", "-n", "--class", "--classdata"} & seen.names:
        judge.note(fx.PROCESS, call.name, call.text, "changes how a process is scheduled")
    elif spec.name not in ("nice", "command", "builtin", "time", "ionice", "exec"):
        judge.unproven(call, "is given no command to run")


def _rereads(call: Call) -> bool:
    """Whether a lone `exec` changes where a shell that is fed its commands goes on reading them."""
    return not call.place.redirects or any(one.op[:1] == "<" for one in call.place.redirects)


def _sets(judge: Judge, call: Call, word: Word) -> None:
    match = _SETS.fullmatch(word.text)
    why = None if match is None else power_of(match.group(1), exported=True)
    if match is not None and why is not None:
        judge.note(fx.ENVIRONMENT, match.group(1), call.text, why)


_ENV: Final = prepare(
    "env",
    Entry(
        short="0iv u: C: S:! a:!",
        long="null ignore-environment debug unset= chdir= split-string=! block-signal=? default-signal=? "
        "ignore-signal=? list-signal-handling argv0=!",
    ),
)


def env(judge: Judge, call: Call, spec: Spec) -> None:
    """`env`: prints the environment, or runs a command in a changed one."""
    words = call.arguments
    seen, at = scan(_ENV, words, call.scope, stop=True)
    options(judge, call, _ENV, seen)
    rest = list(words[at:])
    if rest and rest[0].text == "-":
        rest.pop(0)
    while rest and "=" in rest[0].text:
        word = rest.pop(0)
        name = word.text.partition("=")[0]
        if not (name.isidentifier() and name.isascii()):
            judge.unproven(call, f"sets a name that is not written plainly ({name})")
            continue
        if word.text.startswith("()", len(name) + 1):
            judge.note(fx.ENVIRONMENT, name, call.text, f"gives {name} the form of an exported function")
        why = power_of(name, exported=True)
        if why is not None:
            judge.note(fx.ENVIRONMENT, name, call.text, why)
    for given in seen.options:
        if given.name in ("-u", "--unset") and given.value is not None:
            why = power_of(given.value.text, exported=False)
            if why is not None and rest:
                judge.note(fx.ENVIRONMENT, given.value.text, call.text, why.replace("sets", "unsets"))
    if rest:
        judge.inner(call, rest)


_XARGS: Final = prepare(
    "xargs",
    Entry(
        short="0oprtx a:< d: E: e:? I: i:? L: l:? n: P: s:",
        long="null arg-file=< delimiter= eof=? replace=? max-lines=? max-args= max-procs= interactive "
        "no-run-if-empty max-chars= verbose exit show-limits open-tty process-slot-var=",
    ),
)


def xargs(judge: Judge, call: Call, spec: Spec) -> None:
    """`xargs`: the command it is given, with words from its input that nobody can see."""
    words = call.arguments
    seen, at = scan(_XARGS, words, call.scope, stop=True)
    options(judge, call, _XARGS, seen)
    rest = list(words[at:]) or [Word("echo")]
    mark: str | None = None
    for given in seen.options:
        if given.name == "--process-slot-var" and given.value is not None:
            _sets(judge, call, Word(f"{given.value.text}=0"))
        if given.name in ("-I", "-i", "--replace"):
            mark = given.value.text if given.value is not None else "{}"
    if mark is None:
        judge.inner(call, [*rest, ANY])
    elif mark in rest[0].text:
        judge.note(fx.OPAQUE, rest[0].text, call.text, "takes the program's name from its input")
    else:
        judge.inner(call, [_filled(word, mark, safe=False) for word in rest])


def _filled(word: Word, mark: str, *, safe: bool) -> Word:
    """A word in which a mark will be replaced by something unseen."""
    if mark not in word.text:
        return word
    leads = word.text.startswith(mark) and not safe
    return Word(
        word.text,
        fixed=False,
        sources=(*word.sources, *((UNKNOWN,) if leads else ())),
        inner=(*word.inner, UNKNOWN),
        shape=word.text.replace(mark, HOLE),
    )


def found(judge: Judge, call: Call, words: Sequence[Word], *, safe: bool) -> None:
    """The command of `find -exec`: `{}` is a path that begins as the starting points do."""
    if "{}" in words[0].text:
        judge.note(fx.EXECUTES, "{}", call.text, "runs the files it finds")
        return
    judge.inner(call, [_filled(word, "{}", safe=safe) for word in words])


_READ_ALIKE: Final = frozenset(("bash", "sh", "dash", "rbash"))
"""Shells whose language the grammar reads; zsh and fish mean other things by the same text."""


def interpreter(judge: Judge, call: Call, spec: Spec) -> None:
    """A shell: `-c TEXT` is read like any other text, a file or its input is code nobody has seen."""
    words = list(call.arguments)
    while words and call.name in _READ_ALIKE:
        word = words.pop(0)
        text = word.text
        if not word.fixed:
            break
        if re.fullmatch(r"-[euxv]*c", text) and words:
            _inline(judge, call, words)
            return
        if text in ("-o", "+o") and words and words[0].text in ("pipefail", "errexit", "nounset", "posix"):
            words.pop(0)
        elif not re.fullmatch(r"-[euxv]+|--norc|--noprofile|--posix|-n", text):
            break
    judge.note(fx.EXECUTES, call.name, call.text, "runs code from a file or from its input")


def _inline(judge: Judge, call: Call, words: list[Word]) -> None:
    code = words[0]
    if code.fixed:
        judge.text(call, code.text)
        return
    texts = call.scope.texts(code)
    if texts is None:
        judge.note(fx.EXECUTES, call.name, call.text, "runs shell text that is not written out")
        return
    for text in texts:
        judge.text(call, text)


_WATCH: Final = prepare(
    "watch",
    Entry(
        short="bcegptwxrfC n: d:? q:",
        long="beep color no-color errexit chgexit exec precise no-title no-wrap interval= differences=? "
        "equexit= "
        "no-rerun follow",
    ),
)


def watch(judge: Judge, call: Call, spec: Spec) -> None:
    """`watch`: runs its words as shell text, again and again."""
    words = call.arguments
    seen, at = scan(_WATCH, words, call.scope, stop=True)
    options(judge, call, _WATCH, seen)
    judge.never_ends(call)
    rest = words[at:]
    if not rest:
        judge.unproven(call, "is given no command to run")
    elif {"-x", "--exec"} & seen.names:
        judge.inner(call, rest)
    elif all(word.fixed for word in rest):
        judge.text(call, " ".join(word.text for word in rest))
    else:
        judge.note(fx.EXECUTES, call.name, call.text, "runs shell text that is not written out")


_SSH: Final = prepare(
    "ssh",
    Entry(
        short="46AaCfGgKkMNnqsTtVvXxYy B: b: c: D: E:> e: F:! I:! i:< J: L: l: m: O: o:! P: p: Q: R: S: W: w:",
        operands="text",
    ),
)


def ssh(judge: Judge, call: Call, spec: Spec) -> None:
    """`ssh`: another machine; what runs there is judged for rules, never as a reader."""
    words = call.arguments
    if [word.text for word in words] in (
        ["-V"],
        ["-Q", "cipher"],
        ["-Q", "key"],
        ["-Q", "mac"],
        ["-Q", "kex"],
    ):
        return
    seen, at = scan(_SSH, words, call.scope, stop=True)
    options(judge, call, _SSH, seen)
    rest = words[at:]
    host = rest[0].text if rest else ""
    judge.network.append(host)
    judge.note(fx.SENDS, host, call.text, f"opens a shell on {host}" if host else "opens a connection")
    inner = rest[1:]
    if inner:
        text = " ".join(word.text for word in inner)
        judge.remote.append(text)
        if all(word.fixed for word in inner):
            judge.text(call._replace(wrappers=(*call.wrappers,)), text)


READERS.update(
    {"env": env, "xargs": xargs, "interpreter": interpreter, "watch": watch, "ssh": ssh, "wrapper": wraps}
)

__all__ = ["found", "wrapper", "wraps"]
