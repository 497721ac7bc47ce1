"""Shell commands: what is reported, what is bounded, what is ended."""

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import msgspec
import pytest

from jackstay.core.errors import ToolFailed
from jackstay.engine.ports import Launch, ToolOutput
from jackstay.tools.bash import OWN_KEYS, bash_tool, environment, prepare
from jackstay.tools.processes import Capture

bash = bash_tool()


def without_time(text: str) -> str:
    return re.sub(r"\d+\.\d\d s", "T s", text)


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def pids_in(path: Path, count: int) -> list[int]:
    return [int(word) for word in path.read_text().split()][:count]


@pytest.mark.parametrize(
    ("command", "report", "is_error"),
    [
        ("echo out; echo err >&2", "exit code 0 after T s\nstdout:\nout\nstderr:\nerr", False),
        ("false", "exit code 1 after T s\nstdout: (empty)\nstderr: (empty)", True),
        ("exit 7", "exit code 7 after T s\nstdout: (empty)\nstderr: (empty)", True),
        (
            "kill -9 $$",
            "ended by signal 9 (SIGKILL), exit code 137, after T s\nstdout: (empty)\nstderr: (empty)",
            True,
        ),
        (
            "cat; echo at end of input",
            "exit code 0 after T s\nstdout:\nat end of input\nstderr: (empty)",
            False,
        ),
        ("printf 'no newline'", "exit code 0 after T s\nstdout:\nno newline\nstderr: (empty)", False),
        (
            "printf 'a\\xffb\\n'",
            "exit code 0 after T s\nstdout:\na\ufffdb\n"
            "[1 broken character shown as \ufffd: the output is not valid UTF-8]\nstderr: (empty)",
            False,
        ),
        ("printf 'name\\0other\\0'", "exit code 0 after T s\nstdout:\nname␀other␀\nstderr: (empty)", False),
        (
            "printf '\\x89PNG\\r\\n\\x1a\\n'; head -c 5000 /dev/zero",
            "exit code 0 after T s\nstdout:\n"
            "(PNG image, 5.0 kB, not shown: send it to a file)\nstderr: (empty)",
            False,
        ),
    ],
)
def test_exit_code_both_outputs_and_duration_are_always_reported(
    box: Any, command: str, report: str, is_error: bool
) -> None:
    output = box.run(bash, command=command)
    assert (without_time(output.text), output.is_error, output.full) == (report, is_error, None)


def test_a_question_finds_nobody_and_does_not_hang(box: Any) -> None:
    output = box.run(bash, command="read -p 'sure? ' answer; echo \"got [$answer] $?\"", timeout=20)
    assert "got [] 1" in output.text


def test_a_timeout_keeps_what_was_said_and_ends_the_tree(box: Any) -> None:
    output = box.run(bash, command="echo before; echo $$ > pids; sleep 300 & echo $! >> pids; wait", timeout=2)
    assert output.is_error
    assert without_time(output.text) == (
        "timed out after 2 s: the command and all it started were ended, T s in all; give it more time "
        "(timeout, at most 600 s) or run it in the background with its output in a file. Until then it said:\n"
        "stdout:\nbefore\nstderr: (empty)"
    )
    assert [pid for pid in pids_in(box.root / "pids", 2) if alive(pid)] == []


def test_a_background_process_does_not_hold_the_call_open_and_is_told_of(box: Any) -> None:
    begun = time.monotonic()
    output = box.run(bash, command="sleep 300 & echo $!")
    pid = int(output.text.splitlines()[2])
    try:
        assert time.monotonic() - begun < 5
        assert without_time(output.text) == (
            f"exit code 0 after T s\nstdout:\n{pid}\nstderr: (empty)\n"
            f"[still running in the background: {pid} sleep; what they print from now on is not read]"
        )
        assert alive(pid)
    finally:
        os.kill(pid, signal.SIGKILL)


def test_a_hundred_megabytes_are_bounded_in_memory_and_cut_for_the_model(box: Any) -> None:
    source = (
        "import resource, sys, anyio\n"
        "from jackstay.tools.bash import bash_tool\n"
        "class C:\n"
        "    session_id = run_id = call_id = 'x'; seen = {}; workspace = sys.argv[1]; told = 0\n"
        "    def tell(self, text): C.told += len(text)\n"
        "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "command = \"echo first; yes 'a line of output' | head -n 5900000; echo last\"\n"
        "out = anyio.run(bash_tool().run, {'command': command}, C())\n"
        "grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before\n"
        "print(grown, len(out.text), len(out.full), C.told)\n"
        "print(out.text)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", source, str(box.root)], capture_output=True, text=True, check=True, timeout=100
    )
    figures, text = done.stdout.split("\n", 1)
    grown_kb, shown, full, told = map(int, figures.split())
    assert grown_kb < 60_000
    assert shown < 32_000
    assert 4_000_000 < full < 5_001_000
    assert told < 3_000_000
    assert text.startswith("exit code 0 after ")
    assert "stdout:\nfirst\na line of output\n" in text
    assert "characters left out here" in text
    assert text.endswith("a line of output\nlast\nstderr: (empty)\n")


def test_long_output_goes_whole_to_the_store_and_cut_to_the_model(box: Any) -> None:
    output = box.run(bash, command="seq 1 20000; echo done >&2")
    numbers = "\n".join(map(str, range(1, 20001)))
    assert without_time(output.full) == f"exit code 0 after T s\nstdout:\n{numbers}\nstderr:\ndone"
    assert len(output.text) < 20_300
    assert "\n19999\n20000\nstderr:\ndone" in output.text
    assert "characters left out here" in output.text


def test_output_is_told_as_it_comes(box: Any) -> None:
    async def main() -> ToolOutput:
        async with anyio.create_task_group() as group:

            async def release() -> None:
                while "started\n" not in "".join(box.told):
                    await anyio.sleep(0.01)
                box.file("go")

            group.start_soon(release)
            return await box.arun(
                bash, command="echo started; while [ ! -e go ]; do sleep 0.02; done; echo over", timeout=60
            )

    assert "started\nover" in anyio.run(main).text
    assert "".join(box.told) == "started\nover\n"


STUBBORN = """
    trap '' TERM
    echo $$ > pids
    sleep 300 & echo $! >> pids
    setsid sleep 300 & echo $! >> pids
    (setsid sh -c 'echo $$ >> pids; exec sleep 300' > /dev/null 2>&1 &)
    nohup bash -c 'trap "" TERM; echo $$ >> pids; while true; do sleep 300; done' > /dev/null 2>&1 &
    while [ "$(wc -l < pids)" -lt 5 ]; do sleep 0.02; done
    echo partial
    while true; do sleep 300; done
"""


def test_a_cancelled_call_ends_the_whole_tree_and_keeps_what_was_said(box: Any) -> None:
    async def main() -> BaseException | None:
        seen: BaseException | None = None
        async with anyio.create_task_group() as group:

            async def call() -> None:
                nonlocal seen
                try:
                    await box.arun(bash, command=STUBBORN)
                except BaseException as cancelled:
                    seen = cancelled
                    raise

            group.start_soon(call)
            while "partial" not in "".join(box.told):
                await anyio.sleep(0.01)
            group.cancel_scope.cancel()
        return seen

    cancelled = anyio.run(main)
    assert cancelled is not None
    partial = vars(cancelled)["partial"]
    assert without_time(partial.text) == (
        "cancelled after T s: the command and all it started were ended\nstdout:\npartial\nstderr: (empty)"
    )
    assert partial.is_error
    assert [pid for pid in pids_in(box.root / "pids", 5) if alive(pid)] == []


def test_workdir_is_inside_the_workspace(box: Any) -> None:
    box.file("sub/x")
    (box.root / "out").symlink_to("/")
    assert f"stdout:\n{box.root}/sub\n" in box.run(bash, command="pwd", workdir="sub").text
    assert "outside the workspace" in box.fails(bash, command="pwd", workdir="..")
    assert "outside the workspace" in box.fails(bash, command="pwd", workdir="out/etc")
    assert box.fails(bash, command="pwd", workdir="sub/x") == "sub/x is a file, not a directory"
    assert box.fails(bash, command="pwd", workdir="sbu") == "there is no directory sbu; near it: sub"


def test_commands_that_cannot_be_started_say_why(box: Any) -> None:
    assert box.fails(bash, command=" ") == "the command is empty: give the shell something to run"
    assert box.fails(bash, command="a\0b") == "the command cannot be started: embedded null byte"
    assert "too long for this system" in box.fails(bash, command=":" * 200_000)
    assert bash.check({"command": "x", "timeout": 120000}) == (
        "argument 'timeout' must be a number <= 600.0, got 120000"
    )
    with pytest.raises(ToolFailed, match="there is neither bash nor sh on PATH"):
        prepare("ls", box.workspace, ".", {"PATH": "/nowhere"})


def test_no_command_gets_to_see_our_keys(box: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in OWN_KEYS:
        monkeypatch.setenv(name, "sk-secret")
    monkeypatch.setenv("GITHUB_TOKEN", "of the user")
    text = box.run(bash, command="env").text
    assert "sk-secret" not in text
    assert "GITHUB_TOKEN=of the user" in text
    assert environment({"OPENAI_API_KEY": "k", "MINE": "m", "PAGER": "less"}, scrub={"MINE"}) == {
        "OPENAI_API_KEY": "k",
        "PAGER": "less",
        "GIT_PAGER": "cat",
        "GIT_TERMINAL_PROMPT": "0",
    }


def test_another_layer_may_confine_the_command(box: Any) -> None:
    def confined(launch: Launch) -> Launch:
        argv = ("env", "-i", f"SEEN={launch.argv[2]}", *launch.argv[:2], "echo $SEEN $MARK; pwd")
        return msgspec.structs.replace(launch, argv=argv, cwd="/")

    def refuses(launch: Launch) -> Launch:
        raise ToolFailed("there is no sandbox here: install bubblewrap")

    assert "stdout:\nls -l\n/\n" in box.run(bash_tool(confined), command="ls -l").text
    assert box.fails(bash_tool(refuses), command="ls") == "there is no sandbox here: install bubblewrap"
    gone: Callable[[Launch], Launch] = lambda launch: msgspec.structs.replace(launch, argv=("/no/such",))  # noqa: E731 - one use
    assert box.fails(bash_tool(gone), command="ls") == "/no/such cannot be started: No such file or directory"


def test_no_descriptor_and_no_process_is_left_over(box: Any) -> None:
    box.run(bash, command="true")
    before = len(os.listdir("/proc/self/fd"))  # noqa: PTH208 - a count
    for command in ("true", "sleep 0.3 & true", "kill -9 $$"):
        box.run(bash, command=command)
    box.run(bash, command="sleep 300", timeout=0.1)
    assert len(os.listdir("/proc/self/fd")) == before  # noqa: PTH208 - a count


def test_a_capture_keeps_head_and_tail() -> None:
    capture = Capture(head=5, tail=3)
    for piece in (b"abc", b"defg", b"", b"hijklmnop", b"q"):
        capture.add(piece)
    assert capture.parts() == (b"abcde", 9, b"opq")
    assert capture.total == 17


@pytest.mark.parametrize(
    "module", ["bash", "files", "search", "paths", "processes", "walking", "web", "registry"]
)
def test_modules_import_where_posix_calls_are_missing(module: str) -> None:
    source = (
        "import os, signal, sys\n"
        "import anyio, asyncio, subprocess, tempfile, msgspec, typing, secrets\n"
        "for name in 'O_NOFOLLOW O_DIRECTORY O_NONBLOCK O_CLOEXEC killpg pidfd_open geteuid'.split():\n"
        "    delattr(os, name)\n"
        "del signal.SIGKILL, signal.SIGALRM, signal.alarm\n"
        "for name in ('fcntl', 'resource', 'pwd', 'termios'):\n"
        "    sys.modules[name] = None\n"
        f"import jackstay.tools.{module}\n"
        "print('ok', 'aiohttp' in sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True, check=False)
    assert done.stdout == "ok False\n", done.stderr
