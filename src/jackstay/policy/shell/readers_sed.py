"""Does this sed script only print?"""

from __future__ import annotations

import re
from typing import Final

from . import effects as fx
from .effects import READERS, Call, Judge
from .facts import Word
from .operands import options
from .options import scan
from .table import Entry, Spec, prepare

_SED: Final = prepare(
    "sed",
    Entry(
        short="nErsuzb e: f:! i:?~ l:",
        long="quiet silent regexp-extended separate unbuffered null-data binary posix debug sandbox "
        "follow-symlinks "
        "expression= file=! in-place=?~ line-length= zero-terminated",
    ),
)
_ADDRESS: Final = re.compile(r"(?:\d+(?:~\d+)?|\$)")
_STEP: Final = re.compile(r"[+~]\d+")
_BLANK: Final = " \t\n;"


class Odd(Exception):
    """A script does something beyond printing, or cannot be read; the message says what."""


class _Sed:
    """A reader of sed scripts that knows the commands which only print."""

    def __init__(self, script: str) -> None:
        self.text = script
        self.at = 0
        self.files: list[str] = []  # that r and R read
        self.written = ""  # what the first w or W writes

    def peek(self) -> str:
        return self.text[self.at : self.at + 1]

    def skip(self, blanks: str = _BLANK) -> None:
        while self.peek() and self.peek() in blanks:
            self.at += 1

    def until(self, stop: str) -> None:
        """Past the next unescaped `stop`, minding bracket expressions."""
        size = len(self.text)
        while self.at < size:
            char = self.text[self.at]
            if char == "\\":
                self.at += 2
                continue
            if char == "\n":
                msg = "has a line break inside an expression"
                raise Odd(msg)
            if char == stop:
                self.at += 1
                return
            if char == "[":
                end = self.bracket()
                inside = self.text[self.at + 1 : end]
                if stop in inside.replace("\\" + stop, ""):
                    msg = "has its delimiter inside a bracket expression"
                    raise Odd(msg)
                self.at = end
                continue
            self.at += 1
        msg = "has an expression that does not end"
        raise Odd(msg)

    def bracket(self) -> int:
        """Where a bracket expression ends; one that does not end counts as a character."""
        at = self.at + 1
        at += self.text[at : at + 1] == "^"
        at += self.text[at : at + 1] == "]"
        while at < len(self.text) and self.text[at] not in "]\n":
            if self.text[at] == "[" and self.text[at + 1 : at + 2] in (":", ".", "="):
                end = self.text.find(self.text[at + 1] + "]", at + 2)
                at = end + 1 if end > 0 else at
            at += 1
        return at + 1 if self.text[at : at + 1] == "]" else self.at + 1

    def address(self) -> bool:
        match = _ADDRESS.match(self.text, self.at)
        if match is not None:
            self.at = match.end()
            return True
        if self.peek() == "/":
            self.at += 1
            self.until("/")
        elif self.peek() == "\\" and self.at + 1 < len(self.text):
            stop = self.text[self.at + 1]
            self.at += 2
            self.until(stop)
        else:
            return False
        while self.peek() and self.peek() in "IM":
            self.at += 1
        return True

    def addresses(self) -> None:
        if not self.address():
            return
        self.skip(" \t")
        if self.peek() == ",":
            self.at += 1
            self.skip(" \t")
            step = _STEP.match(self.text, self.at)
            if step is not None:
                self.at = step.end()
            elif not self.address():
                msg = "has an address that does not parse"
                raise Odd(msg)

    def flags(self) -> None:
        while self.peek() and self.peek() not in " \t\n;}#":
            char = self.peek()
            if char not in "gpiIMm0123456789":
                self.written = self.line()[1:].strip() if char == "w" else ""
                msg = {"w": "writes a file (the w flag)", "e": "runs what it makes (the e flag)"}
                raise Odd(msg.get(char, f"has a flag {char} that is not listed"))
            self.at += 1

    def translate(self, stop: str) -> None:
        """The second half of s or y: text up to the delimiter, where brackets mean nothing."""
        while self.at < len(self.text):
            char = self.text[self.at]
            if char == "\\":
                self.at += 2
                continue
            if char == "\n":
                msg = "has a line break inside an expression"  # sed reads a command behind it
                raise Odd(msg)
            self.at += 1
            if char == stop:
                return
        msg = "has an expression that does not end"
        raise Odd(msg)

    def line(self) -> str:
        end = self.text.find("\n", self.at)
        end = len(self.text) if end < 0 else end
        taken = self.text[self.at : end]
        self.at = end
        return taken

    def command(self) -> None:
        self.skip()
        if not self.peek():
            return
        if self.peek() == "#":
            self.line()
            return
        self.addresses()
        self.skip(" \t")
        while self.peek() == "!":
            self.at += 1
            self.skip(" \t")
        char = self.peek()
        self.at += 1
        if char in ("s", "y"):
            self.substitute(char)
        elif char in ("a", "i", "c"):
            self.inserted()
        elif char in ("r", "R"):
            self.files.append(self.line().strip())
        elif char in _SED_ARGUMENT:
            match = re.compile(_SED_ARGUMENT[char]).match(self.text, self.at)
            self.at = match.end() if match is not None else self.at
        else:
            self.written = self.line().strip() if char in ("w", "W") else ""
            raise Odd(_SED_SAYS.get(char, f"has a command {char} that is not listed"))

    def substitute(self, char: str) -> None:
        """`s/…/…/flags` and `y/…/…/`."""
        stop = self.peek()
        if stop in ("", "\n", "\\"):
            msg = "has a delimiter that is not certain"
            raise Odd(msg)
        self.at += 1
        if char == "s":
            self.until(stop)
            self.translate(stop)
            self.flags()
        else:
            self.translate(stop)
            self.translate(stop)

    def inserted(self) -> None:
        text = self.line()
        while (len(text) - len(text.rstrip("\\"))) % 2 and self.at < len(self.text):
            self.at += 1
            text = self.line()

    def run(self) -> None:
        while self.at < len(self.text):
            self.command()


_SED_ARGUMENT: Final = {
    **dict.fromkeys("{}=dDgGhHnNpPxzF", ""),
    **dict.fromkeys("qQlL", r"[0-9 ]*"),
    **dict.fromkeys(":btT", r"[ \t]*[\w.-]*[ \t]*"),
}
"""Commands that only print or move text, and what may follow them."""
_SED_SAYS: Final = {
    "w": "writes a file (the w command)",
    "W": "writes a file (the W command)",
    "e": "runs a command (the e command)",
    "": "has an address without a command",
}


def read_sed(script: str) -> tuple[str | None, _Sed]:
    """What a sed script does beyond printing, or None, and what was read of it until then."""
    reader = _Sed(script)
    try:
        reader.run()
    except Odd as odd:
        return str(odd), reader
    return None, reader


def sed(judge: Judge, call: Call, spec: Spec) -> None:
    """`sed`: every script has to be known and only print."""
    seen, _ = scan(_SED, call.arguments, call.scope)
    options(judge, call, _SED, seen)
    scripts = [given.value for given in seen.options if given.name in ("-e", "--expression")]
    operands = seen.operands
    if not scripts and not {"-f", "--file"} & seen.names:
        scripts, operands = list(operands[:1]), operands[1:]
    for script in scripts:
        texts = None if script is None else call.scope.texts(script)
        if texts is None:
            judge.unproven(call, "is given a script that is not written out")
        for text in texts or ():
            doubt, reader = read_sed(text)
            judge.reads([Word(file) for file in reader.files], call.text)
            if doubt is not None:
                kind = fx.EXECUTES if "run" in doubt else fx.WRITES if "writes" in doubt else fx.OPAQUE
                judge.note(kind, reader.written or text, call.text, doubt)
    changing = {"-i", "--in-place"} & seen.names
    judge.reads(operands, call.text)
    for word in operands if changing else ():
        judge.note(fx.WRITES, word.text, call.text, f"writes {word.text}")


READERS["sed"] = sed
