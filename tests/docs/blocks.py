"""What stands in the documents, and how is a block of it run?

A comment before a block sets the stage; none of it changes what the block says:

  <!-- model: [turns] -->       JACKSTAY_MODEL names a script with these turns, as long as the block runs
  <!-- server: [answers] -->    a model server on 127.0.0.1 answers; the variables of the vendors point to it, and
                                127.0.0.1:8080 in the block stands for it
  <!-- tls: [answers] -->       the same over TLS; company-ca.pem is its certificate
  <!-- files: {"a.py": "…"} --> these files are there
  <!-- check: python -->        runs after the block before it, in the same names
  <!-- not run: reason -->      the block is left out

Blocks of one document run in order, in one fresh directory with a fresh home. A `text` block right behind a
`python` block is what that one prints. In `console` blocks the lines after a command are what it prints, `…`
stands for anything; a command that must fail is followed by `$ echo $?`.
"""

import contextlib
import io
import json
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import jackstay
from jackstay.config.load import read
from tests.loopback import Loopback

ROOT = Path(__file__).resolve().parents[2]
DOCUMENTS = [
    path
    for path in (ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md")))
    if path.exists()
]
_PIECE = re.compile(
    r"^<!-- (?P<word>model|server|tls|files|check|not run): ?(?P<said>.*?)-->$"
    r"|^```(?P<language>[a-z]*)\n(?P<body>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)
_SHOWN_ONLY = ("java", "text", "json", "toml", "")  # of these only json and toml are looked at
_CERTIFICATE = (str(ROOT / "tests/data/loopback-cert.pem"), str(ROOT / "tests/data/loopback-key.pem"))
SERVER = "127.0.0.1:8080"


class Block(NamedTuple):
    """A fenced block, or a comment that is meant for the tests (`language` is then its word)."""

    language: str
    body: str
    line: int
    end: int


def blocks(path: Path) -> list[Block]:
    """All of a document, in order."""
    text = path.read_text("utf-8")
    found = []
    for match in _PIECE.finditer(text):
        line = text.count("\n", 0, match.start()) + 1
        word = match["word"] or match["language"]
        said = match["said"] if match["word"] else match["body"]
        found.append(Block(word, said, line, text.count("\n", 0, match.end()) + 1))
    return found


class Stage:
    """Where the blocks of one document run."""

    def __init__(self, path: Path, directory: Path) -> None:
        self._path = path
        self._directory = directory
        self._names: dict[str, Any] = {"__name__": "__main__"}
        self._code = 0
        self._scripts = 0
        self._home = directory.parent / "home"
        self._bin = directory.parent / "bin"
        self._home.mkdir()
        self._bin.mkdir()
        package = Path(jackstay.__file__).parents[1]
        command = self._bin / "jackstay"
        command.write_text(
            f'#!/bin/sh\nPYTHONPATH="{package}" exec "{sys.executable}" -W error -m jackstay "$@"\n'
        )
        command.chmod(0o755)

    def environment(self) -> dict[str, str]:
        """The variables that blocks see at first: a home of their own, no key, no model."""
        kept = {name: value for name, value in os.environ.items() if not _ours(name)}
        return {**kept, "HOME": str(self._home), "PATH": f"{self._bin}:{os.environ['PATH']}", "COLUMNS": "100"}

    def run(self) -> int:
        """Run the whole document; how many blocks were run or looked at. Raises AssertionError with the place."""
        count = 0
        set_up: list[Block] = []
        printed: str | None = None
        behind = 0
        for block in blocks(self._path):
            if block.language in ("model", "server", "tls", "files", "not run"):
                set_up.append(block)
                continue
            if block.language == "check":
                self._python(block)
                continue
            if block.language == "text" and printed is not None and block.line - behind <= 2:
                assert printed.rstrip() == block.body.rstrip(), f"{self._where(block)}: it prints\n{printed}"
                printed = None
            elif not any(one.language == "not run" for one in set_up):
                with self._staged(set_up) as address:
                    printed = self._one(block, address)
            count += 1
            behind = block.end
            set_up = []
        return count

    def _one(self, block: Block, address: str) -> str | None:
        moved = block._replace(body=block.body.replace(SERVER, address or SERVER))
        match block.language:
            case "python":
                return self._python(moved)
            case "console" | "sh":
                self._console(moved)
            case "toml":
                self._toml(moved)
            case "json":
                for line in moved.body.splitlines() if "\n{" in moved.body else [moved.body]:
                    json.loads(line)
            case language:
                assert language in _SHOWN_ONLY, f"{self._where(block)}: nobody runs {language!r}"
        return None

    def _where(self, block: Block) -> str:
        return f"{self._path}:{block.line}"

    @contextlib.contextmanager
    def _staged(self, set_up: list[Block]) -> Iterator[str]:
        before = dict(os.environ)
        with contextlib.ExitStack() as stack:
            stack.callback(_restore, before)
            address = ""
            for block in set_up:
                match block.language:
                    case "files":
                        for name, text in json.loads(block.body).items():
                            path = self._directory / name
                            path.parent.mkdir(parents=True, exist_ok=True)
                            path.write_text(text)
                    case "model":
                        self._scripts += 1
                        script = self._home / f"script-{self._scripts}.json"
                        script.write_text(json.dumps({"turns": json.loads(block.body)}))
                        os.environ["JACKSTAY_MODEL"] = f"script:{script}"
                    case kind:
                        tls = _CERTIFICATE if kind == "tls" else None
                        (self._directory / "company-ca.pem").write_bytes(Path(_CERTIFICATE[0]).read_bytes())
                        server = stack.enter_context(
                            Loopback(json.loads(block.body), cycle=True, by_turn=True, tls=tls)
                        )
                        address = server.url.partition("://")[2]
                        os.environ |= {
                            "OPENAI_BASE_URL": server.openai_url, "OPENAI_API_KEY": "not-needed",
                            "ANTHROPIC_BASE_URL": server.url, "ANTHROPIC_API_KEY": "not-needed",
                        }  # fmt: skip
            yield address

    # -- kinds of blocks -----------------------------------------------------------------------------------

    def _python(self, block: Block) -> str:
        """What the block prints. Lines in a traceback are those of the document."""
        source = "\n" * block.line + block.body
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(source, str(self._path), "exec"), self._names)
        return printed.getvalue()

    def _toml(self, block: Block) -> None:
        path = self._directory / f"line-{block.line}.toml"
        path.write_text(block.body)
        if "[tool." in block.body or "[project" in block.body:
            tomllib.loads(block.body)
        else:
            assert read(path) is not None

    def _console(self, block: Block) -> None:
        """Run every command and compare what it prints."""
        for command, expected in commands(block):
            said = command.split()
            if said[0].startswith(("scripts/", ".ci/")):
                assert os.access(ROOT / said[0], os.X_OK), f"{self._where(block)}: there is no {said[0]}"
                continue
            if said[:2] == ["pip", "install"]:
                self._install(said[-1], block)
                continue
            export = re.fullmatch(r"export (\w+)=(\S+)", command)
            if export:
                if export[2] != "…":  # a key of the reader's; here the stage has set one
                    os.environ[export[1]] = export[2]
                continue
            self._command(command, expected, block)
        assert self._code == 0, f"{self._where(block)}: the last command exits {self._code}"

    def _install(self, wanted: str, block: Block) -> None:
        name, _, extras = wanted.strip("'\"").partition("[")
        project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
        assert name == project["name"], self._where(block)
        for extra in filter(None, extras.rstrip("]").split(",")):
            assert extra in project["optional-dependencies"], f"{self._where(block)}: {extra}"

    def _command(self, command: str, expected: list[str], block: Block) -> None:
        asks = command == "echo $?"
        assert asks or self._code == 0, f"{self._where(block)}: exit code {self._code} before {command!r}"
        done = subprocess.run(
            ["bash", "-c", f"(exit {self._code})\n{command}"],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, text=True,
            timeout=60, cwd=self._directory, check=False,
        )  # fmt: skip
        self._code = done.returncode
        if expected:
            assert re.fullmatch(_pattern(expected), done.stdout), (
                f"{self._where(block)}: {command!r} prints\n{done.stdout}"
            )


def commands(block: Block) -> list[tuple[str, list[str]]]:
    """The commands of a console or sh block, each with the lines it is said to print; comments left out."""
    found: list[tuple[str, list[str]]] = []
    for line in block.body.splitlines():
        if block.language == "sh":
            command = re.sub(r"\s+# .*", "", line).strip()
            if command and not command.startswith("#"):
                found.append((command, []))
        elif line.startswith("$ "):
            found.append((re.sub(r"\s{2,}# .*", "", line[2:]), []))
        elif line.startswith("> "):
            found[-1] = (f"{found[-1][0]}\n{line[2:]}", [])
        else:
            assert found, f"line {block.line}: output before any command"
            found[-1][1].append(line)
    return found


def _pattern(expected: list[str]) -> str:
    lines = ["(?:.*\n)*?" if line.strip() == "…" else _line(line) for line in expected]
    return "".join(lines)


def _line(line: str) -> str:
    return ".*".join(re.escape(piece) for piece in line.rstrip().split("…")) + r"[ ]*\n"


def _restore(environment: dict[str, str]) -> None:
    """Let no test that follows see what a document has exported, also where the document is wrong."""
    for name in set(os.environ) - set(environment):
        del os.environ[name]
    os.environ |= environment


def _ours(name: str) -> bool:
    return name.startswith(("JACKSTAY_", "OPENAI_", "ANTHROPIC_", "OLLAMA_", "XDG_")) or name in ("NO_COLOR",)
