"""What do the options and operands of some programs do that one mark in the table cannot say?"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from . import effects as fx
from .effects import Call, Judge
from .options import Seen
from .secrets import is_secret

_FIELDS: Final = re.compile(r"%G|%\(signature|%\(trailers:.*key")
_TMUX_RUNS: Final = re.compile(r"#\(|#\{[^}]*[ET]:")
_STAYS_OUTSIDE: Final = {"--submodule": ("short", "log"), "--ignore-submodules": ("all", "dirty")}
_WITH_PATCH: Final = frozenset(
    ("-p", "-u", "--patch", "--patch-with-stat", "--patch-with-raw", "-L", "-U", "--unified", "-c", "--cc",
     "-W", "--function-context", "--word-diff", "--color-words")
)  # fmt: skip
_ONLY_NAMES: Final = frozenset(
    ("--name-only", "--name-status", "--stat", "--shortstat", "--numstat", "--quiet", "-s", "--no-patch",
     "--summary", "--files-with-matches")
)  # fmt: skip
_CHOOSES: Final = frozenset(("--include", "-g", "--glob", "--iglob"))
_NAMES_FILES: Final = frozenset(("-l", "-L", "--files-with-matches", "--files-without-match", "--files"))
_RUSTC_PRINTS: Final = frozenset(
    ("sysroot", "target-list", "cfg", "target-cpus", "target-features", "target-libdir", "host-tuple",
     "code-models", "relocation-models", "tls-models", "split-debuginfo")
)  # fmt: skip


def _git_format(judge: Judge, call: Call, seen: Seen) -> None:
    """Formats that make git start gpg."""
    for given in seen.options:
        if (
            given.value is not None
            and given.name in ("--format", "--pretty")
            and _FIELDS.search(given.value.text)
        ):
            judge.note(fx.EXECUTES, "gpg", f"{call.name} {given.written}", "makes git run gpg")

    if "--no-index" in seen.names:
        judge.reads(seen.operands, call.text)
    _git_modules(judge, call, seen)
    _git_content(judge, call, seen)


def _chosen(judge: Judge, call: Call, seen: Seen) -> None:
    """Files that a search chooses by name: `grep --include='.env*'`, `rg -g '.env'`."""
    for given in seen.options:
        pattern = given.value.text if given.value is not None and given.name in _CHOOSES else "!"
        if pattern[:1] != "!" and is_secret(pattern.lstrip("*/")) and seen.names.isdisjoint(_NAMES_FILES):
            judge.note(fx.CREDENTIALS, pattern, call.text, f"reads files named {pattern}, a place for secrets")


def _git_content(judge: Judge, call: Call, seen: Seen) -> None:
    """Contents of files that git prints, as they are or as they were; `REV:PATH` names one too."""
    shows = call.words[1:] and not any(word.text in _ONLY_NAMES for word in call.words)
    log = any(word.text in ("log", "whatchanged", "rev-list", "reflog", "list") for word in call.words[1:4])
    if not shows or (log and seen.names.isdisjoint(_WITH_PATCH)):
        return
    for word in seen.operands:
        path = word.text.rpartition(":")[2]
        if is_secret(path):
            judge.note(fx.CREDENTIALS, path, call.text, f"shows {path}, a place for secrets")


def _git_modules(judge: Judge, call: Call, seen: Seen) -> None:
    """Options that start git inside a sub-module, where its own settings can name programs."""
    for given in seen.options:
        plain = _STAYS_OUTSIDE.get(given.name)
        if plain is not None and given.value is not None and given.value.text not in plain:
            judge.note(
                fx.EXECUTES, given.value.text, f"{call.name} {given.written}", "runs git inside sub-modules"
            )


def _git_config(judge: Judge, call: Call, seen: Seen) -> None:
    """Newer versions of git take a verb in place of the name."""
    for word in seen.operands[:1]:
        if not word.fixed or word.text in ("edit", "set", "unset", "rename-section", "remove-section"):
            judge.note(fx.WRITES, word.text, call.text, f"may change the configuration ({word.text})")


def _unpack(judge: Judge, call: Call, seen: Seen) -> None:
    """Packers for which the last of -d, -l, -t wins."""
    if {"-d", "--decompress", "--uncompress"} & seen.names and not {
        "-c",
        "--stdout",
        "--to-stdout",
    } & seen.names:
        judge.note(fx.WRITES, "", call.text, "unpacks in place")


def _rpm_format(judge: Judge, call: Call, seen: Seen) -> None:
    for given in seen.options:
        if given.value is not None and "%(" in given.value.text:
            judge.note(fx.EXECUTES, given.value.text, f"{call.name} {given.written}", "may run a macro")


def _git_reflog(judge: Judge, call: Call, seen: Seen) -> None:
    for word in seen.operands[:1]:
        if word.text in ("expire", "delete", "drop", "write") or not word.fixed:
            judge.note(fx.WRITES, word.text, call.text, f"changes the reflog ({word.text})")


def _git_remote(judge: Judge, call: Call, seen: Seen) -> None:
    """Repository addresses that name a program instead of a place."""
    for word in seen.operands[:1]:
        judge.network.append(word.text)
        if "::" in word.text or word.many or call.scope.texts(word) is None:
            judge.note(fx.EXECUTES, word.text, call.text, f"lets {word.text} choose the program that connects")


def _tmux(judge: Judge, call: Call, seen: Seen) -> None:
    """Formats of tmux can run commands, and a word that ends with a semicolon begins another command."""
    for word in call.arguments:
        if word.text.endswith(";") or _TMUX_RUNS.search(word.text) or not (word.fixed or word.value):
            judge.note(fx.EXECUTES, word.text, call.text, f"may run a command ({word.text})")


def _dasel(judge: Judge, call: Call, seen: Seen) -> None:
    """`put` and `delete` write the file they are given."""
    for word in seen.operands[:1]:
        if not word.fixed or word.text in ("put", "delete"):
            judge.note(fx.WRITES, word.text, call.text, f"may change its file ({word.text})")


def _response(judge: Judge, call: Call, seen: Seen) -> None:
    """The binutils read further options, plugins among them, from a file given as @FILE."""
    for word in seen.operands:
        if word.text[:1] == "@":
            judge.note(fx.EXECUTES, word.text, call.text, f"takes options from {word.text[1:]}")


def _image(judge: Judge, call: Call, seen: Seen) -> None:
    """ImageMagick takes a prefix as a format, and some formats delete, fetch or run scripts."""
    for word in seen.operands:
        if ":" in word.text or word.text[:1] in ("@", "|"):
            judge.note(fx.EXECUTES, word.text, call.text, f"reads {word.text} as more than a file name")


def _archive(judge: Judge, call: Call, seen: Seen) -> None:
    """An archive called HOST:FILE is fetched through a remote shell."""
    for given in seen.options:
        if given.value is not None and given.name in ("-I", "-F", "--file") and ":" in given.value.text:
            judge.note(fx.SENDS, given.value.text, call.text, f"opens {given.value.text} on another machine")


def _rustc(judge: Judge, call: Call, seen: Seen) -> None:
    """What `rustc --print` can be asked for without compiling."""
    for given in seen.options:
        if given.name == "--print" and (given.value is None or given.value.text not in _RUSTC_PRINTS):
            judge.unproven(call, f"compiles, and prints {given.written} on the way")


def _to_stdout(judge: Judge, call: Call, seen: Seen) -> None:
    """A converter whose second operand is the file it writes, or `-`."""
    out = seen.operands[1:2]
    if not out or len(seen.operands) > 2 or not out[0].fixed or out[0].text != "-":
        judge.note(fx.WRITES, out[0].text if out else "", call.text, "writes a text file beside the document")


CHECKS: Final[dict[str, Callable[[Judge, Call, Seen], None]]] = {
    "git_format": _git_format,
    "git_modules": _git_modules,
    "git_config": _git_config,
    "git_content": _git_content,
    "chosen": _chosen,
    "dasel": _dasel,
    "git_reflog": _git_reflog,
    "unpack": _unpack,
    "rpm_format": _rpm_format,
    "git_remote": _git_remote,
    "tmux": _tmux,
    "response": _response,
    "image": _image,
    "archive": _archive,
    "rustc": _rustc,
    "to_stdout": _to_stdout,
}
