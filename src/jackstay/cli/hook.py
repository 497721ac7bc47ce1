"""The process that a host starts at each of its hooks: hands the event on, and blocks when nobody can judge it.

`python -m jackstay.cli.hook claude-code --home DIR`. Exit 0: stdout is the answer. Exit 2: blocked, stderr says
why and stdout is empty. It never exits otherwise; the host's shell line turns everything else into a 2 as well.
A process that has answered stays for the next events (`hosts.resident`); where there is none, or it does not
answer whole, this one judges by itself. `python -m jackstay.cli.hook tools` serves our tools over MCP.

Nothing is imported here that a plain `python -c pass` has not loaded already.
"""

import os
import sys

DEADLINE_S = 20  # well below the time that the host is told to wait
ENVIRONMENT = ("HOME", "CLAUDE_PROJECT_DIR", "CLAUDE_CODE_ENTRYPOINT", "JACKSTAY_DEFER")
SOCKET = "hosts/hook.sock"


def main(args: "list[str] | None" = None) -> None:
    """Answer one event and leave without ceremony."""
    words = sys.argv[1:] if args is None else args
    if words == ["tools"]:
        from jackstay.hosts.tool_server import serve

        serve(sys.stdin.buffer, sys.stdout.buffer)
        return
    try:
        _signal = __import__("_signal")  # the part of `signal` that needs no enum
        _signal.signal(_signal.SIGALRM, _too_late)
        _signal.alarm(DEADLINE_S)
        if len(words) != 3 or words[0] != "claude-code" or words[1] != "--home":
            raise ValueError("usage: jackstay-hook claude-code --home DIR")
        data, home = sys.stdin.buffer.read(), words[2]
        output = _asked(home, data)
        if output is None:
            _light()
            from jackstay.hosts.resident import judged_here

            output = judged_here(home, data)
            _write(1, output)
            _stay(home)
            os._exit(0)
        _leave(output, b"", 0)
    except BaseException as problem:
        _block(f"{type(problem).__name__}: {problem}")


def _asked(home: str, data: bytes) -> "bytes | None":
    """The resident's answer; None where there is no resident, or no whole answer of it."""
    path = f"{home}/{SOCKET}"
    try:
        if os.stat(path).st_uid != os.geteuid():  # noqa: PTH116 - pathlib is heavy
            return None
        import _socket  # the part of `socket` that needs no enum and no selectors

        line = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
        line.settimeout(DEADLINE_S)
        line.connect(path)
        parts = [os.fsencode(os.environ.get(name, "")) for name in ENVIRONMENT]
        line.sendall(b"".join(len(part).to_bytes(4, "big") + part for part in (*parts, data)))
        line.shutdown(_socket.SHUT_WR)
        answer = b""
        while piece := line.recv(65536):
            answer += piece
    except OSError:
        return None
    return answer[1:-1] if len(answer) > 1 and answer[:1] == b"A" and answer[-1:] == b"Z" else None


def _light() -> None:
    """What makes loading everything quicker in a process that answers one event.

    Nothing that lives so short needs the collector. And msgspec takes the names of `typing` from
    `typing_extensions` where that can be imported, which costs more than the whole of msgspec.
    """
    import gc

    gc.disable()
    if "typing_extensions" not in sys.modules:
        sys.modules["typing_extensions"] = None  # type: ignore[assignment] # how the import system is told no
        try:
            import msgspec  # noqa: F401 - loaded now, used by what is loaded next
        finally:
            del sys.modules["typing_extensions"]


def _stay(home: str) -> None:
    """Answer the next events from here: everything is loaded by now."""
    from jackstay.hosts.resident import stay

    stay(home, f"{home}/{SOCKET}", ENVIRONMENT)


def _too_late(number: int, frame: object) -> None:
    _block(f"no answer within {DEADLINE_S} s")


def _block(why: str) -> None:
    text = f"jackstay blocks this, because it cannot judge it: {why}. `jackstay doctor` says what is wrong."
    _leave(b"", text.encode("utf-8", "backslashreplace"), 2)


def _leave(output: bytes, error: bytes, code: int) -> None:
    """Write and end at once: nothing that runs at exit may change the answer."""
    try:
        _write(1, output)
        _write(2, error)
    except OSError:
        os._exit(2)
    os._exit(code)


def _write(descriptor: int, data: bytes) -> None:
    while data:
        data = data[os.write(descriptor, data) :]


if __name__ == "__main__":
    main()
