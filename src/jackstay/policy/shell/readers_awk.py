"""Does this awk program only print?"""

from __future__ import annotations

import re
from typing import Final

from jackstay.policy.late import late

from . import effects as fx
from .effects import READERS, Call, Judge
from .operands import options
from .options import scan
from .readers_sed import Odd
from .secrets import is_secret
from .table import Entry, Spec, prepare

_AWK: Final = prepare(
    "awk",
    Entry(
        short="F: v: f:! e: i:! l:! E:! o:?> p:?> d:?> D:?! cCbkMnNOPrsStV",
        long="field-separator= assign= source= file=! include=! load=! exec=! pretty-print=?> profile=?> "
        "dump-variables=?> debug=?! csv posix re-interval sandbox traditional characters-as-bytes bignum "
        "non-decimal-data use-lc-numeric optimize no-optimize lint=? lint-old version copyright",
    ),
)
_AWK_TOKEN: Final = late(
    r"""(?P<string>"(?:[^"\\\n]|\\.)*")
      | (?P<comment>\#[^\n]*)
      | (?P<word>@?[A-Za-z_][A-Za-z0-9_:]*)
      | (?P<number>\d+(?:\.\d*)?(?:[eE][-+]?\d+)?|\.\d+)
      | (?P<op>\|\||&&|>>|>=|<=|==|!=|!~|\+\+|--|\*\*=?|[-+*%^]=|[\s\S])
    """,
    re.VERBOSE,
)
_AWK_STREAMS: Final = frozenset(('"/dev/stderr"', '"/dev/stdout"', '"/dev/null"', '"/dev/fd/2"'))
_REGEX_AFTER: Final = frozenset(
    ("", "(", "[", ",", "{", "}", ";", "\n", "!", "~", "!~", "&&", "||", "?", ":", "$", "=", "==", "!=", "<",
     "<=", ">", ">=", ">>", "+", "-", "*", "%", "^", "**", "+=", "-=", "*=", "%=", "^=", "**=", "print",
     "printf", "return", "else", "do")
)  # fmt: skip
"""Behind these a slash can only begin a regular expression."""
_EITHER_AFTER: Final = frozenset(
    ("getline", "in", "case", "exit", "delete", "next", "nextfile", "/", "++", "--")
)
"""Behind these it may be a division or not, depending on more than one token."""


_LEAVES: Final = {
    "|": "pipes to or from a command (|)",
    "@": "includes or calls what is not seen (@)",
}
_GOES_ON: Final = frozenset((",", "&&", "||", "?", ":", "{", "do", "else"))
"""What a line can end with while its statement goes on in the next."""
_FILE: Final = late(r'"((?:[^"\\]|\\.)*)"')


class _Awk:
    """A reader of awk programs that looks for everything that leaves the program."""

    def __init__(self, program: str) -> None:
        self.text = program
        self.at = 0
        self.before = ""
        self.printing = False
        self.depth = 0

    def regex(self) -> None:
        """Past a regular expression, or refuse when a slash could be either a division or a regex."""
        text = self.text
        if self.before in _REGEX_AFTER:
            at = self.at
            while at < len(text) and text[at] not in "/\n":
                at = self.bracket(at) if text[at] == "[" else at + (2 if text[at] == "\\" else 1)
            if text[at : at + 1] != "/":
                msg = "has a regular expression that does not end"
                raise Odd(msg)
            self.at = at + 1
            return
        end = text.find("/", self.at)
        line = text.find("\n", self.at)
        between = text[self.at : end] if end >= 0 and (line < 0 or end < line) else ""
        marks = '"#{};>|' if self.before in _EITHER_AFTER else '"#'
        if any(mark in between for mark in marks):
            msg = "has a slash that may begin a regular expression"
            raise Odd(msg)

    def bracket(self, at: int) -> int:
        """Past a bracket expression, in which a slash is a character to some awks and the end to others."""
        end = at + 1
        end += self.text[end : end + 1] == "^"
        end += self.text[end : end + 1] == "]"
        while end < len(self.text) and self.text[end] not in "]\n":
            if self.text[end] == "/":
                msg = "has a slash inside a bracket expression"
                raise Odd(msg)
            end += 2 if self.text[end] == "\\" else 1
        return end + 1

    def word(self, token: str) -> None:
        if token in ("system", "awk::system") or token.endswith("::system"):
            msg = "runs commands (system)"
            raise Odd(msg)
        if token.startswith("@"):
            msg = "includes or calls what is not seen (@)"
            raise Odd(msg)
        if token in ("print", "printf"):
            self.printing, self.depth = True, 0

    def operator(self, token: str) -> None:
        if token in _LEAVES:
            raise Odd(_LEAVES[token])
        if token in ("(", "["):
            self.depth += 1
        elif token in (")", "]"):
            self.depth -= 1
        elif token in (";", "}") and self.depth <= 0:
            self.printing = False
        elif token == "\n" and self.depth <= 0:
            self.printing = self.printing and self.before in _GOES_ON
        elif token in (">", ">>") and self.printing and self.depth <= 0:
            match = re.compile(r"[ \t]*(\"(?:[^\"\\]|\\.)*\")[ \t]*(?=[;}\n#]|$)").match(self.text, self.at)
            if match is None or match.group(1) not in _AWK_STREAMS:
                msg = "writes a file (print >)"
                raise Odd(msg)
        elif token == "/":
            self.regex()
        elif token in ('"', "\\") or (not token.isspace() and not token.isprintable()):
            msg = "has a string or a character that is not certain"
            raise Odd(msg)

    def run(self) -> None:
        while self.at < len(self.text):
            match = _AWK_TOKEN.match(self.text, self.at)
            if match is None:
                msg = "has text that does not parse"
                raise Odd(msg)
            if self.text.startswith("\\\n", self.at):
                self.at += 2
                continue
            self.at = match.end()
            token, kind = match.group(), match.lastgroup
            if kind == "comment" or token in (" ", "\t"):
                continue
            if kind == "word":
                self.word(token)
            elif kind == "op":
                self.operator(token)
            if token != "\n" or self.before not in _GOES_ON:
                self.before = token


def awk_doubt(program: str) -> str | None:
    """Say what an awk program does beyond printing, or None."""
    try:
        _Awk(program).run()
    except Odd as odd:
        return str(odd)
    return None


def awk(judge: Judge, call: Call, spec: Spec) -> None:
    """`awk`: the program has to be known and only print."""
    words = call.arguments
    seen, at = scan(_AWK, words, call.scope, stop=True)
    options(judge, call, _AWK, seen)
    rest = list(words[at:])
    programs = [given.value for given in seen.options if given.name in ("-e", "--source")]
    if not programs and not {"-f", "--file", "-E", "--exec"} & seen.names:
        programs, rest = list(rest[:1]), rest[1:]
        if not programs and not {"--version", "-V"} & seen.names:
            judge.unproven(call, "is given no program")
    for program in programs:
        texts = None if program is None else call.scope.texts(program)
        if texts is None:
            judge.unproven(call, "is given a program that is not written out")
        for text in texts or ():
            _opens(judge, call, text)
            doubt = awk_doubt(text)
            if doubt is not None:
                kind = fx.EXECUTES if "command" in doubt else fx.WRITES if "writes" in doubt else fx.OPAQUE
                judge.note(kind, text, call.text, doubt)
    judge.reads(rest, call.text)


def _opens(judge: Judge, call: Call, program: str) -> None:
    """Files that `getline <` or a changed ARGV may read: any string of the program, or a value given to it, can
    be such a name."""
    if "getline" not in program and "ARGV" not in program:
        return
    given = [word.text.partition("=")[2] for word in call.arguments if "=" in word.text]
    for name in (*_FILE.findall(program), *given):
        if "inet" in name:
            judge.note(fx.SENDS, name, call.text, f"opens a network connection to {name}")
        elif is_secret(name):
            judge.note(fx.CREDENTIALS, name, call.text, f"reads {name}, a place for secrets")


READERS["awk"] = awk
