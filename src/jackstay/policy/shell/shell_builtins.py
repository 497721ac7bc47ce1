"""Which of the shell's own commands only read, and which change the shell, run text or evaluate names?"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from jackstay.policy.late import late

from . import effects as fx
from .effects import BUILTINS, Builtin, Call, Judge
from .environment import power_of
from .expansions import read_arithmetic
from .facts import Word
from .words import Unreadable

_NAME: Final = late(r"[A-Za-z_][A-Za-z0-9_]*")
_VALUE_NAME: Final = late(
    r"[A-Za-z_][A-Za-z0-9_]*(?:\[(?:[0-9]+|[@*]|\"?([A-Za-z_]\w*)[\w.-]*\"?)\])?", re.ASCII
)
_ARITHMETIC_TESTS: Final = frozenset(("-eq", "-ne", "-lt", "-le", "-gt", "-ge"))
_TEST_TOKENS: Final = frozenset(("[", "]", "=", "==", "!=", "!", "-a", "-o"))
_SHOPT: Final = frozenset(("globstar", "nullglob", "dotglob", "extglob", "nocaseglob", "failglob",
                           "nocasematch",
                           "lastpipe", "pipefail", "inherit_errexit"))  # fmt: skip
_SET_FLAGS: Final = late(r"[-+](?:[ebfhnmuvxCEBHTt]*|[eufxvC]*o)")
_SET_NAMES: Final = frozenset(
    ("pipefail", "errexit", "nounset", "xtrace", "noglob", "noclobber", "verbose", "posix")
)
_MAKE_ARRAYS: Final = frozenset(
    ("declare", "typeset", "local", "readonly", "export", "read", "mapfile", "readarray")
)
_COUNTS_PRINTED: Final = late(r"%[-+ #0-9.*hlLjztq]*n")
_DECLARE: Final = late(r"-[pfFgaAlrtuxi]+|-p")


def nothing(judge: Judge, call: Call) -> None:
    """Changes nothing beyond the shell that runs it."""


def refuses(kind: str, says: str) -> Builtin:
    """A builtin that is never a question."""

    def builtin(judge: Judge, call: Call) -> None:
        judge.note(kind, call.name, call.text, says)

    return builtin


def only(pattern: str, kind: str, says: str, *, most: int = 99) -> Builtin:
    """A builtin that asks when every argument matches the pattern."""
    allowed = re.compile(pattern)

    def builtin(judge: Judge, call: Call) -> None:
        words = call.arguments
        if len(words) > most or not all(word.fixed and allowed.fullmatch(word.text) for word in words):
            judge.note(kind, call.name, call.text, says)

    return builtin


def names_set(judge: Judge, call: Call, words: list[Word]) -> None:
    """Names a builtin assigns to: plain names that nothing listens to."""
    for word in words:
        if not word.fixed or not _NAME.fullmatch(word.text):
            judge.note(fx.OPAQUE, word.text, call.text, "evaluates a name that is not written plainly")
        else:
            why = power_of(word.text, exported=False)
            if why is not None:
                judge.note(fx.ENVIRONMENT, word.text, call.text, why)


def read(judge: Judge, call: Call) -> None:
    """`read`: fills variables from its input."""
    names: list[Word] = []
    words = list(call.arguments)
    while words:
        word = words.pop(0)
        if word.fixed and re.fullmatch(r"-[rse]*[adinNptu]", word.text):
            value = words.pop(0) if words else None
            names += [value] if value is not None and word.text[-1] == "a" else []
        elif word.fixed and re.fullmatch(r"-[rse]+|-[rse]*[ntNud][^\s]*|--", word.text):
            continue
        else:
            names.append(word)
    names_set(judge, call, names)


def mapfile(judge: Judge, call: Call) -> None:
    """`mapfile`: fills an array; a callback would be code."""
    words = list(call.arguments)
    names: list[Word] = []
    while words:
        word = words.pop(0)
        if word.fixed and re.fullmatch(r"-t?[dnOsu]", word.text):
            value = words.pop(0) if words else None
            if value is not None and not value.fixed:
                judge.unproven(call, "evaluates a number that is not written out")
        elif word.fixed and re.fullmatch(r"-t|-t?[nsu][0-9]+|-t?d.?", word.text):
            continue
        elif word.text.startswith("-"):
            judge.note(fx.EXECUTES, word.text, call.text, f"may run a callback ({word.text})")
        else:
            names.append(word)
    names_set(judge, call, names)


def printf(judge: Judge, call: Call) -> None:
    """`printf`: prints, unless `-v` makes it assign."""
    words = call.arguments
    if not words:
        return
    first = words[0]
    if first.text.startswith("-v"):
        target = (
            Word(first.text[2:], fixed=first.fixed)
            if len(first.text) > 2
            else words[1]
            if len(words) > 1
            else first
        )
        names_set(judge, call, [target])
    elif not first.fixed and first.sources and call.scope.may_dash(first):
        judge.unproven(call, "may be given -v by an expansion, which evaluates a name")
    texts = call.scope.texts(first)
    if texts is None or any(_COUNTS_PRINTED.search(text) for text in (*texts, *(w.text for w in words[:3]))):
        names = [word for word in words[1:] if power_of(word.text, exported=False) is not None]
        if names:
            names_set(judge, call, names)  # %n assigns to its argument


def declare(judge: Judge, call: Call) -> None:
    """`declare` and its kin: names and values."""
    exports = call.name == "export"
    flags = ""
    names: list[str] = [one.name for one in call.place.assignments]
    for word in call.arguments:
        text = word.text
        if word.fixed and text[:1] in ("-", "+"):
            flags += text
            if not _DECLARE.fullmatch(text):
                judge.note(fx.OPAQUE, text, call.text, f"uses {text}, which makes names or values be evaluated")
        elif word.fixed and _NAME.fullmatch(text):
            names.append(text)
        elif word.fixed or not (text.endswith("=") and _NAME.fullmatch(text[:-1])):
            judge.note(fx.OPAQUE, text, call.text, "evaluates a name that is not written plainly")
    exports = exports or "x" in flags
    for name in names:
        _declared(judge, call, name, exports=exports and "p" not in flags, integer="i" in flags)
    for one in call.place.assignments:
        if one.value is not None and _compound(
            one.value, arrays="a" in flags.lower() or _is_array(one.name, call)
        ):
            judge.note(fx.OPAQUE, one.name, call.text, "may evaluate its value as a list of words")


def _declared(judge: Judge, call: Call, name: str, *, exports: bool, integer: bool) -> None:
    assigned = any(one.name == name for one in call.place.assignments)
    why = power_of(name, exported=exports) if exports or assigned else None
    if why is not None:
        judge.note(fx.ENVIRONMENT, name, call.text, why)
    if integer and not call.scope.numeric(name):
        judge.note(fx.OPAQUE, name, call.text, "evaluates text that may not be a number")


def _compound(value: Word, *, arrays: bool) -> bool:
    """Whether the shell may read a value as `(…)`, expanding what is inside."""
    return value.text.lstrip()[:1] == "(" or (arrays and not value.fixed)


def _is_array(name: str, call: Call) -> bool:
    """Whether the text makes an array of this name anywhere."""
    facts = call.scope.facts
    return any(one.name == name and one.words and one.how != "for" for one in facts.assignments) or any(
        any(word.text == name for word in command.words[1:])
        and any(re.fullmatch(r"-\w*[aA]\w*|-t", word.text) for word in command.words[1:])
        for command in facts.commands
        if command.program in _MAKE_ARRAYS
    )


def unset(judge: Judge, call: Call) -> None:
    """`unset`: forgets variables; forgetting one that guards what runs is a change."""
    names_set(judge, call, [word for word in call.arguments if not (word.fixed and word.text in ("-v", "-f"))])


def let(judge: Judge, call: Call) -> None:
    """`let`: arithmetic given as words."""
    for word in call.arguments:
        try:
            names, assigned = read_arithmetic(word.text if word.fixed else "'")
        except Unreadable as odd:
            judge.note(fx.OPAQUE, word.text, call.text, f"evaluates {odd}")
            continue
        if not all(call.scope.numeric(name) for name in names):
            judge.note(fx.OPAQUE, word.text, call.text, "evaluates text that may not be a number")
        names_set(judge, call, [Word(name) for name in assigned])


def test(judge: Judge, call: Call) -> None:
    """`test` and `[`: conditions; a bare `<` or `>` redirects and `-v` evaluates its name."""
    words = call.words
    for at, word in enumerate(words):
        following = words[at + 1] if at + 1 < len(words) else None
        if word.value == "operator":
            _operator(judge, call, word, following)
        if word.text in ("-v", "-R") and following is not None:
            _tested_name(judge, call, following)
        elif not word.fixed and word.sources and call.scope.may_dash(word) and len(words) > 3 and word.many:
            _tested_name(judge, call, word)
    for group in _conditions(words):
        if group and group[0].many and _may_ask(group[0], call):
            _tested_name(judge, call, group[0])
        elif len(group) == 2 and _may_ask(group[0], call):
            _tested_name(judge, call, group[1])


def _conditions(words: Sequence[Word]) -> list[list[Word]]:
    """The single conditions of `[ … ]` or `test`: what stands between `!`, `-a`, `-o` and brackets."""
    groups: list[list[Word]] = [[]]
    for word in words[1:]:
        if word.fixed and word.text in ("!", "-a", "-o", "(", ")", "]"):
            groups.append([])
        else:
            groups[-1].append(word)
    return groups


def _may_ask(word: Word, call: Call) -> bool:
    """Whether a value that the text itself gives may be the operator `-v`, which evaluates the next word."""
    texts = call.scope.texts(word)
    if word.fixed or not call.scope.may_dash(word):
        return False
    if texts is not None:
        return any(text in ("-v", "-R") for text in texts)
    return any(not one.isidentifier() or one in call.scope.values for one in word.inner)


def _operator(judge: Judge, call: Call, word: Word, following: Word | None) -> None:
    if word.text == ">" and following is not None:
        judge.writes(following, call.text)
    elif word.text == "<" and following is not None:
        judge.reads((following,), call.text)
    elif word.text not in _TEST_TOKENS and not re.fullmatch(r"-[a-zA-Z]{1,2}", word.text):
        judge.note(fx.OPAQUE, word.text, call.text, f"cannot be read for certain: {word.text} inside [ … ]")


def _tested_name(judge: Judge, call: Call, word: Word) -> None:
    match = _VALUE_NAME.fullmatch(word.text)
    index = None if match is None else match.group(1)
    if not word.fixed or match is None or (index is not None and not call.scope.numeric(index)):
        judge.note(fx.OPAQUE, word.text, call.text, "evaluates a name that is not written plainly")


def double_test(judge: Judge, call: Call) -> None:
    """`[[ … ]]`: conditions; number comparisons evaluate their operands as arithmetic."""
    words = call.words
    for at, word in enumerate(words):
        if word.text in ("-v", "-R") and at + 1 < len(words) and word.fixed:
            _tested_name(judge, call, words[at + 1])
        elif word.text in _ARITHMETIC_TESTS and word.fixed:
            for side in (words[at - 1], words[at + 1] if at + 1 < len(words) else words[at - 1]):
                if not _evaluates_safely(side, call):
                    judge.note(fx.OPAQUE, side.text, call.text, "evaluates text that may not be a number")


def _evaluates_safely(word: Word, call: Call) -> bool:
    if word.fixed:
        try:
            names, assigned = read_arithmetic(word.text)
        except Unreadable:
            return False
        return not assigned and all(call.scope.numeric(name) for name in names)
    if word.value is None:
        return False
    return word.value in ("?", "#", "$", "!", "0") or call.scope.numeric(word.value)


def set_(judge: Judge, call: Call) -> None:
    """`set`: shell options for this text; positional words are not followed."""
    words = list(call.arguments)
    while words:
        word = words.pop(0)
        if not word.fixed or not _SET_FLAGS.fullmatch(word.text) or word.text in ("-", "--", "+"):
            judge.unproven(call, "sets words that are not followed")
            return
        if word.text.endswith("o") and (not words or words.pop(0).text not in _SET_NAMES):
            judge.unproven(call, "sets an option that is not listed")


def shopt(judge: Judge, call: Call) -> None:
    """`shopt`: only options that change how names are matched."""
    words = [word.text for word in call.arguments]
    flags = [text for text in words if text.startswith("-")]
    names = [text for text in words if not text.startswith("-")]
    asks = not any("s" in flag or "u" in flag for flag in flags)
    if not all(re.fullmatch(r"-[supqo]+", flag) for flag in flags) or not (asks or set(names) <= _SHOPT):
        judge.unproven(call, "sets an option that is not listed")


def trap(judge: Judge, call: Call) -> None:
    """`trap`: lists or clears; anything else is code for later."""
    words = [word.text for word in call.arguments]
    if words and words[0] not in ("-l", "-p", "-"):
        judge.note(fx.EXECUTES, "trap", call.text, "runs code later")
        if call.arguments[0].fixed:
            judge.text(call, words[0])


def evaluate(judge: Judge, call: Call) -> None:
    """`eval`: runs its words as shell text."""
    judge.note(fx.EXECUTES, "eval", call.text, "runs text as shell code")
    if all(word.fixed for word in call.arguments):
        judge.text(call, " ".join(word.text for word in call.arguments))


def kill(judge: Judge, call: Call) -> None:
    """`kill -l` names signals, signal 0 only asks; everything else sends one."""
    words = [word.text for word in call.arguments]
    if words[:1] == ["-0"] and all(_process(word, call) for word in call.arguments[1:]):
        return  # asks whether the process is there
    if words[:1] not in (["-l"], ["-L"]) or len(words) > 2:
        judge.note(fx.PROCESS, call.name, call.text, "signals processes")


def _process(word: Word, call: Call) -> bool:
    """Whether a word is surely the number of one process."""
    if word.fixed:
        return re.fullmatch(r"[0-9]+|%[0-9]+", word.text) is not None
    return word.value is not None and (word.value in ("!", "$") or call.scope.numeric(word.value))


def cd(judge: Judge, call: Call) -> None:
    """`cd`: moves this shell only."""
    for word in call.arguments:
        judge.note(fx.READS, word.text, call.text, f"goes to {word.text}")


def compgen(judge: Judge, call: Call) -> None:
    """`compgen`: lists names; -C, -F, -W run or expand text."""
    for word in call.arguments:
        if not word.fixed or not re.fullmatch(r"-[abcdefgjksuv]+|-A|[a-zA-Z]\w*", word.text):
            judge.note(fx.EXECUTES, word.text, call.text, "may run code while it completes")


def ends_later(judge: Judge, call: Call) -> None:
    """`sleep`, `wait` and the like."""


BUILTINS.update(
    {
        ":": nothing, "true": nothing, "false": nothing, "echo": nothing, "pwd": nothing, "times": nothing,
        "break": nothing, "continue": nothing, "return": nothing, "exit": nothing, "shift": nothing,
        "type": nothing, "dirs": only(r"-[lpv]+|[-+][0-9]+", fx.OPAQUE, "changes the directory stack"),
        "help": nothing, "caller": nothing, "jobs": only(r"-[lnprs]+|%\S*", fx.EXECUTES, "may run a command"),
        "history": only(r"[0-9]+", fx.WRITES, "changes the history", most=1),
        "cd": cd, "pushd": cd, "popd": cd, "read": read, "mapfile": mapfile, "readarray": mapfile,
        "printf": printf,
        "declare": declare, "typeset": declare, "local": declare, "readonly": declare, "export": declare,
        "unset": unset, "let": let, "test": test, "[": test, "[[": double_test, "set": set_, "shopt": shopt,
        "trap": trap, "eval": evaluate, "kill": kill, "compgen": compgen,
        "hash": only(r"-[lt]+|[\w.-]+(?<!-p)", fx.EXECUTES, "changes which program a name means", most=2),
        "alias": only(r"-p|[\w.-]+", fx.EXECUTES, "redefines a name"),
        "unalias": refuses(fx.ENVIRONMENT, "forgets an alias"),
        "umask": only(r"-[pS]+", fx.OPAQUE, "changes the mode of new files"),
        "ulimit": only(r"-[HSacdefilmnpqrstuvxPRTkb]+", fx.OPAQUE, "changes a limit"),
        "wait": only(r"-[nf]+|%?[0-9]+|\$!", fx.OPAQUE, "evaluates a name"),
        "complete": only(r"-p|[\w.-]+", fx.EXECUTES, "installs code for completion", most=2),
        "bind": only(r"-[lpPvVsSX]+", fx.EXECUTES, "binds code to keys"),
        "enable": only(r"-[aps]+", fx.EXECUTES, "changes which program a name means"),
        "coproc": refuses(fx.PROCESS, "runs a command in the background"),
        "getopts": refuses(fx.OPAQUE, "sets names from words that are not followed"),
        ".": refuses(fx.EXECUTES, "runs a file as shell code"),
        "source": refuses(fx.EXECUTES, "runs a file as shell code"),
        "logout": refuses(fx.PROCESS, "ends the session"),
    }
)  # fmt: skip
