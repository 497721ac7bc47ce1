"""grep and glob over real trees."""

import os
import time
from pathlib import Path
from typing import Any

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jackstay.tools import search
from jackstay.tools.search import glob, grep
from jackstay.tools.walking import glob_regex, is_regex


@pytest.fixture
def tree(box: Any) -> Any:
    box.file("src/app.py", "import os\nERROR = 1\n\ndef error():\n    pass\n")
    box.file("src/deep/er/util.ts", "const error = 12345;\n")
    box.file("README.md", "server.port\nWARN: low\nError: Users\\\n")
    box.file(".git/config", "error\n")
    box.file("node_modules/x/index.js", "error\n")
    return box


@pytest.mark.parametrize(
    ("args", "lines"),
    [
        ({"pattern": "error"}, ["src/app.py:4: def error():", "src/deep/er/util.ts:1: const error = 12345;"]),
        ({"pattern": r"\d{5}"}, ["src/deep/er/util.ts:1: const error = 12345;"]),
        ({"pattern": "WARN|ERROR"}, ["README.md:2: WARN: low", "src/app.py:2: ERROR = 1"]),
        ({"pattern": "(?i)^error"}, ["README.md:3: Error: Users\\", "src/app.py:2: ERROR = 1"]),
        ({"pattern": "^ERROR", "case": False}, ["README.md:3: Error: Users\\", "src/app.py:2: ERROR = 1"]),
        ({"pattern": r"^server\."}, ["README.md:1: server.port"]),
        ({"pattern": "error", "glob": "*.ts"}, ["src/deep/er/util.ts:1: const error = 12345;"]),
        ({"pattern": "error", "path": "src/app.py"}, ["src/app.py:4: def error():"]),
        ({"pattern": "error", "path": "src/app.py", "glob": "*.ts"}, ["src/app.py:4: def error():"]),
        ({"pattern": "error", "path": "src/deep"}, ["src/deep/er/util.ts:1: const error = 12345;"]),
        ({"pattern": "error", "path": "node_modules"}, ["node_modules/x/index.js:1: error"]),
    ],
)
def test_grep_finds_lines_by_regular_expression(tree: Any, args: dict[str, Any], lines: list[str]) -> None:
    head, *rest = tree.run(grep, **args).text.splitlines()
    assert head.startswith(f"{len(lines)} matching line{'s' * (len(lines) > 1)} in ")
    assert rest[: len(lines)] == lines


@pytest.mark.parametrize("pattern", ["[unclosed", "(bar", "Users\\", "*x", "a{2"])
def test_an_invalid_expression_is_searched_for_literally_and_said_so(box: Any, pattern: str) -> None:
    box.file("a.txt", f"one\nhere {pattern} there\n")
    text = box.run(grep, pattern=pattern).text
    note = (
        [] if is_regex(pattern) else [f"{pattern!r} is no valid regular expression: searched for it literally"]
    )
    assert text.splitlines() == ["1 matching line in 1 file", f"a.txt:2: here {pattern} there", *note]


def test_nothing_found_is_said_with_what_was_searched_and_left_out(tree: Any) -> None:
    tree.file("x.bin", b"\0\1\2")
    tree.file("big.log", b"")
    os.truncate(tree.root / "big.log", (10 << 20) + 1)
    assert tree.run(grep, pattern="nowhere").text == (
        "no line matches 'nowhere' in . (3 files searched)\n"
        "(skipped: 1 binary, 1 over 10 MB)\n"
        "(left out: .git, node_modules; name one as path to search it)"
    )


def test_a_catastrophic_pattern_is_stopped_and_keeps_what_was_found(
    box: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(search, "TIME_S", 1.5)
    box.file("a.txt", "aaaa\n")
    box.file("b.txt", "a" * 50 + "!\n")
    box.file("c.txt", "aaaa\n")
    begun = time.monotonic()
    text = box.run(grep, pattern="^(a+)+$").text
    assert time.monotonic() - begun < 10
    assert text.splitlines() == [
        "1 matching line in 1 file",
        "a.txt:1: aaaa",
        "(stopped after 1.5 s in b.txt: there may be more; "
        "name a smaller path or glob, or simplify the pattern)",
    ]


def test_cancelling_a_search_ends_its_worker(box: Any) -> None:
    box.file("b.txt", "a" * 50 + "!\n")

    def workers() -> list[str]:
        found = []
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit():
                try:
                    stat, words = (entry / "stat").read_text(), (entry / "cmdline").read_text()
                except OSError:
                    continue
                if "jackstay.tools.walking" in words and f" {os.getpid()} " in stat and ") Z " not in stat:
                    found.append(entry.name)
        return found

    async def main() -> None:
        async with anyio.create_task_group() as group:
            group.start_soon(lambda: box.arun(grep, pattern="^(a+)+$"))
            while not workers():
                await anyio.sleep(0.01)
            group.cancel_scope.cancel()

    anyio.run(main)
    assert workers() == []


def test_results_are_capped_with_a_note(box: Any) -> None:
    box.file("a.txt", "x\n" * 1000)
    box.file("b.txt", "x" * 3000)
    lines = box.run(grep, pattern="x").text.splitlines()
    assert lines[0] == "300 matching lines in 1 file"
    assert lines[-1] == "(stopped at 300: there are more; name a smaller path or a narrower pattern)"
    assert box.run(grep, pattern="x", path="b.txt").text == (
        f"1 matching line in 1 file\nb.txt:1: {'x' * 500}[…2500 more]"
    )
    for number in range(510):
        box.file(f"many/{number:03}")
    lines = box.run(glob, pattern="many/*").text.splitlines()
    assert (lines[0], lines[1], lines[500]) == ("500 files, sorted by path", "many/000", "many/499")
    assert lines[-1] == "(stopped at 500: there are more; name a smaller path or a narrower pattern)"


def test_links_are_never_followed(box: Any, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret.txt").write_text("secret\n")
    box.file("here.txt", "secret\n")
    (box.root / "dir").symlink_to(outside)
    (box.root / "leaf.txt").symlink_to(outside / "secret.txt")
    (box.root / "around").symlink_to(".")
    assert box.run(grep, pattern="secret").text == (
        "1 matching line in 1 file\nhere.txt:1: secret\n(skipped: 3 links)"
    )
    assert box.run(glob, pattern="**/*.txt").text == "1 file, sorted by path\nhere.txt\n(skipped: 3 links)"


def test_other_encodings_and_odd_names_are_searched_too(box: Any) -> None:
    box.file("gbk.txt", "\u4f60\u597d\uff0c\u4e16\u754c\n".encode("gb18030"))
    box.file("wide.txt", "\ufeff\u4f60\u597d\n".encode("utf-16-le"))
    (box.root / os.fsdecode(b"odd\xff.txt")).write_text("\u4f60\u597d\r\n")
    assert box.run(grep, pattern="\u4f60\u597d").text.splitlines() == [
        "3 matching lines in 3 files",
        "gbk.txt:1: \u4f60\u597d\uff0c\u4e16\u754c",
        "odd\ufffd.txt:1: \u4f60\u597d",
        "wide.txt:1: \u4f60\u597d",
    ]


def test_a_very_deep_tree_is_walked_to_a_limit_and_said_so(box: Any) -> None:
    path = box.root
    for _ in range(120):
        path = path / "d"
    path.mkdir(parents=True)
    (path / "x.txt").touch()
    assert box.run(glob, pattern="*.txt").text == "no file matches '*.txt' in .\n(skipped: 1 too deep)"


@pytest.mark.parametrize(
    ("pattern", "names"),
    [
        ("*.py", ["a.py", "src/b.py", "src/x/c.py"]),
        ("./*.py", ["a.py", "src/b.py", "src/x/c.py"]),
        ("src/*.py", ["src/b.py"]),
        ("**/*.py", ["a.py", "src/b.py", "src/x/c.py"]),
        ("src/**", ["src/b.py", "src/x/c.py", "src/x/d[1].ts"]),
        ("src/**/c.py", ["src/x/c.py"]),
        ("**/x/*.{ts,tsx}", ["src/x/d[1].ts"]),
        ("[ab].py", ["a.py", "src/b.py"]),
        ("[!a].py", ["src/b.py", "src/x/c.py"]),
        ("?.ts", []),
        ("d[[]1].ts", ["src/x/d[1].ts"]),
        ("SRC/*", []),
    ],
)
def test_glob_patterns(box: Any, pattern: str, names: list[str]) -> None:
    for name in ("a.py", "src/b.py", "src/x/c.py", "src/x/d[1].ts"):
        box.file(name)
    expected = [f"{len(names)} file{'s' * (len(names) != 1)}, sorted by path", *names]
    assert box.run(glob, pattern=pattern).text.splitlines() == (
        expected if names else [f"no file matches {pattern!r} in ."]
    )


def test_glob_says_what_is_wrong_with_a_pattern(box: Any) -> None:
    box.file("src/a.py")
    assert box.run(glob, pattern=f"{box.root}/src/*.py").text == "1 file, sorted by path\nsrc/a.py"
    assert "does not begin with" in box.fails(glob, pattern="/etc/*")
    assert box.fails(glob, pattern="../*") == "../* leads upwards with '..': name the directory as path instead"
    assert box.fails(glob, pattern="[z-a]").startswith("'[z-a]' is no glob pattern: bad character range")
    assert box.fails(glob, pattern="*", path="sric") == "there is no file sric; near it: src"


@given(st.text("ab/*?[]!{},.\\^-", max_size=12))
def test_any_glob_pattern_compiles_or_is_a_plain_pattern_error(pattern: str) -> None:
    import re

    try:
        regex = glob_regex(pattern)
    except re.error:
        return
    assert regex.match("a/" * 2 + "\0") is None or "*" in pattern or "[!" in pattern or "?" in pattern
