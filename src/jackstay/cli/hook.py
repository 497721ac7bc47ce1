"""The process that a host starts at each of its hooks: reads the event, answers, and blocks when it cannot.

`python -m jackstay.cli.hook claude-code --home DIR`. Exit 0: stdout is the answer. Exit 2: blocked, stderr says
why and stdout is empty. It never exits otherwise; the host's shell line turns everything else into a 2 as well.
`python -m jackstay.cli.hook tools` serves the harness's own tools over MCP.
"""

import os
import signal
import sys
from types import FrameType

DEADLINE_S = 20  # well below the time that the host is told to wait


def main(args: list[str] | None = None) -> None:
    """Answer one event and leave without ceremony."""
    words = sys.argv[1:] if args is None else args
    if words == ["tools"]:
        from jackstay.hosts.tool_server import serve

        serve(sys.stdin.buffer, sys.stdout.buffer)
        return
    signal.signal(signal.SIGALRM, _too_late)
    signal.alarm(DEADLINE_S)
    try:
        _leave(_answered(words), b"", 0)
    except BaseException as problem:
        _block(f"{type(problem).__name__}: {problem}")


def _answered(words: list[str]) -> bytes:
    if len(words) != 3 or words[0] != "claude-code" or words[1] != "--home":
        raise ValueError("usage: jackstay-hook claude-code --home DIR")
    data = sys.stdin.buffer.read()
    from pathlib import Path

    from jackstay.hosts.claude_code import answer

    return answer(data, Path(words[2])).stdout


def _too_late(number: int, frame: FrameType | None) -> None:
    _block(f"no answer within {DEADLINE_S} s")


def _block(why: str) -> None:
    text = f"jackstay blocks this, because it cannot judge it: {why}. `jackstay doctor` says what is wrong."
    _leave(b"", text.encode("utf-8", "backslashreplace"), 2)


def _leave(output: bytes, error: bytes, code: int) -> None:
    """Write and end at once: nothing that runs at exit may change the answer."""
    try:
        for descriptor, data in ((1, output), (2, error)):
            while data:
                data = data[os.write(descriptor, data) :]
    except OSError:
        os._exit(2)
    os._exit(code)


if __name__ == "__main__":
    main()
