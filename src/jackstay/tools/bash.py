"""Running a shell command: bounded in time and memory, ended with all it started, and reported whole."""

import codecs
import os
import secrets
import shutil
import signal
import time
from collections.abc import Callable, Collection, Mapping
from typing import Annotated, Any, NoReturn

import anyio
from anyio import Event
from msgspec import Meta

from jackstay.core.errors import ToolFailed
from jackstay.engine.ports import SESSION_MARK, WORKSPACE_MARK, Launch, Launcher, ToolContext, ToolOutput
from jackstay.tools.paths import locate, open_directory
from jackstay.tools.processes import Capture, Process
from jackstay.tools.schema import FunctionTool, tool
from jackstay.tools.texts import describe_binary, head_and_tail, show_size

DEFAULT_S = 120.0
LONGEST_S = 600.0
DRAIN_S = 0.1  # for what is left in the pipes when the shell has ended and others still hold them
SHOWN = {"stdout": 20_000, "stderr": 10_000}  # characters the model reads; the rest goes to `full`
FULL = 5_000_000
_MARGIN_S = 30  # for ending a tree that resists
_TELL_EVERY_S = 0.1
_TOLD_AT_ONCE = 8_000

OWN_KEYS: frozenset[str] = frozenset({
    "ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "AZURE_OPENAI_API_KEY", "COHERE_API_KEY", "DASHSCOPE_API_KEY",
    "DEEPSEEK_API_KEY", "FIREWORKS_API_KEY", "GEMINI_API_KEY", "GOOGLE_API_KEY", "GROQ_API_KEY",
    "JACKSTAY_API_KEY", "MISTRAL_API_KEY", "MOONSHOT_API_KEY", "OPENAI_API_KEY", "OPENROUTER_API_KEY",
    "TOGETHER_API_KEY", "XAI_API_KEY", "ZHIPUAI_API_KEY",
})  # fmt: skip
"""Environment variables that hold the harness's own model keys: no command gets them."""

_CALM = {"GIT_PAGER": "cat", "GIT_TERMINAL_PROMPT": "0", "PAGER": "cat"}  # nobody is there to answer or to page


def bash_tool(
    launcher: Launcher | None = None, *, longest_s: float = LONGEST_S, scrub: Collection[str] = OWN_KEYS
) -> FunctionTool[Any, Any]:
    """The tool `bash`. `launcher` may confine each command; `scrub` names variables no command gets to see.

    A cancelled call ends the process tree and raises on; the exception's `partial` is the ToolOutput so far.
    """

    @tool(
        effects={"reads", "writes", "executes", "network"}, path_args=["workdir"], command_arg="command",
        timeout_s=longest_s + _MARGIN_S,
    )  # fmt: skip
    async def bash(
        command: Annotated[str, Meta(min_length=1, description="What the shell is to run.")],
        timeout: Annotated[
            float, Meta(gt=0, le=longest_s, description=f"Seconds it may take, at most {longest_s:g}.")
        ] = min(DEFAULT_S, longest_s),
        workdir: Annotated[
            str, Meta(description="Directory inside the workspace; the workspace where left out.")
        ] = ".",
        *,
        context: ToolContext,
    ) -> ToolOutput:
        """Run a shell command and get its exit code, stdout, stderr and duration.

        Nobody can answer its questions: standard input is empty. Background processes (`cmd > log 2>&1 &`) go
        on after the call; send their output to a file. Each call starts anew: `cd` and variables do not last.
        """
        marks = {SESSION_MARK: context.session_id, WORKSPACE_MARK: context.workspace}
        given = {**environment(os.environ, scrub), **marks}
        launch = prepare(command, context.workspace, workdir, given)
        return await _run(launcher(launch) if launcher else launch, timeout, longest_s, context)

    return bash


def environment(base: Mapping[str, str], scrub: Collection[str] = OWN_KEYS) -> dict[str, str]:
    """What a command gets to see of an environment: without our keys, and with pagers and prompts off."""
    return {**_CALM, **{name: value for name, value in base.items() if name not in scrub}}


def prepare(command: str, workspace: str, workdir: str, env: dict[str, str]) -> Launch:
    """The process that runs a command by bash, or by sh where there is no bash.

    Raises ToolFailed when there is neither, or `workdir` is no directory inside the workspace.
    """
    if not command.strip():
        raise ToolFailed("the command is empty: give the shell something to run")
    place = locate(workspace, workdir)
    with open_directory(place):
        pass
    path = env.get("PATH", os.defpath)
    shell = shutil.which("bash", path=path) or shutil.which("sh", path=path)
    if shell is None:
        raise ToolFailed(
            "there is neither bash nor sh on PATH: install one of them, or run without the bash tool"
        )
    return Launch((shell, "-c", command), place.canonical, env)


# -- running ---------------------------------------------------------------------------------------------------


class _Watch:
    """One running command: what came of it so far, and what of that the user has been told."""

    def __init__(self, tell: Callable[[str], None]) -> None:
        self.started = time.monotonic()
        self.captured = {"stdout": Capture(), "stderr": Capture()}
        self._decoders = {name: codecs.getincrementaldecoder("utf-8")("replace") for name in self.captured}
        self._tell, self._untold = tell, ""

    def hear(self, name: str, data: bytes) -> None:
        """Take in a piece of output."""
        self.captured[name].add(data)
        if _is_binary(data):
            return
        self._untold = (self._untold + self._decoders[name].decode(data))[-2 * _TOLD_AT_ONCE :]

    async def keep_telling(self) -> None:
        """Show what came, a few times a second."""
        while True:
            await anyio.sleep(_TELL_EVERY_S)
            self.tell()

    def tell(self) -> None:
        """Show what came since the last time; of very much only its end."""
        if self._untold:
            text, self._untold = self._untold, ""
            self._tell(text if len(text) <= _TOLD_AT_ONCE else "[…]" + text[-_TOLD_AT_ONCE:])

    def report(self, headline: str, notes: list[str], *, is_error: bool) -> ToolOutput:
        """Headline, both outputs and notes; short for the model, whole for the store where they differ."""
        texts = {name: _text_of(capture) for name, capture in self.captured.items()}
        cut = any(len(texts[name]) > SHOWN[name] for name in texts)
        short = {name: head_and_tail(text, SHOWN[name])[0] for name, text in texts.items()}
        whole = head_and_tail(_layout(headline, texts, notes), FULL)[0] if cut else None
        return ToolOutput(_layout(headline, short, notes), is_error, whole)


async def _run(launch: Launch, timeout_s: float, longest_s: float, context: ToolContext) -> ToolOutput:
    process = Process(launch, f"{context.call_id}.{secrets.token_hex(8)}")
    watch = _Watch(context.tell)
    try:
        in_time, left = await _follow(process, watch, timeout_s)
    except anyio.get_cancelled_exc_class() as cancelled:
        await _interrupted(process, watch, cancelled)
    except BaseException:
        await process.end()
        raise
    finally:
        code = process.reap()
        process.close()
        watch.tell()
    took = time.monotonic() - watch.started
    if not in_time:
        return watch.report(_timed_out(timeout_s, longest_s, took), [], is_error=True)
    return watch.report(_ended(code, took), _about(left), is_error=code != 0)


async def _follow(process: Process, watch: _Watch, timeout_s: float) -> tuple[bool, list[str]]:
    """Wait for the command within its time; did it end by itself, and what did it leave running?"""
    closed = {"stdout": Event(), "stderr": Event()}

    async def pump(name: str, stream: int) -> None:
        await process.pump(stream, lambda data: watch.hear(name, data))
        closed[name].set()

    late, left = False, list[str]()
    async with anyio.create_task_group() as group:
        group.start_soon(pump, "stdout", process.stdout)
        group.start_soon(pump, "stderr", process.stderr)
        group.start_soon(watch.keep_telling)
        with anyio.move_on_after(timeout_s) as limit:
            await process.exited()
        late = limit.cancelled_caught
        if late:
            await process.end()
        with anyio.move_on_after(DRAIN_S) as drain:
            for event in closed.values():
                await event.wait()
        if drain.cancelled_caught and not late:
            left = process.survivors()
        group.cancel_scope.cancel()
    return not late, left


async def _interrupted(process: Process, watch: _Watch, cancelled: BaseException) -> NoReturn:
    await process.end()
    headline = (
        f"cancelled after {time.monotonic() - watch.started:.2f} s: the command and all it started were ended"
    )
    vars(cancelled)["partial"] = watch.report(headline, [], is_error=True)
    raise cancelled


# -- words -----------------------------------------------------------------------------------------------------


def _ended(code: int | None, took_s: float) -> str:
    if code is None:
        return f"exit code unknown after {took_s:.2f} s"
    if code < 0:
        return f"ended by signal {-code} ({_signal_name(-code)}), exit code {128 - code}, after {took_s:.2f} s"
    return f"exit code {code} after {took_s:.2f} s"


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return "unnamed"


def _timed_out(timeout_s: float, longest_s: float, took_s: float) -> str:
    longer = f"give it more time (timeout, at most {longest_s:g} s) or " if timeout_s < longest_s else ""
    return (
        f"timed out after {timeout_s:g} s: the command and all it started were ended, {took_s:.2f} s in all; "
        f"{longer}run it in the background with its output in a file. Until then it said:"
    )


def _about(left: list[str]) -> list[str]:
    if not left:
        return []
    listed = ", ".join(left[:10]) + (f" and {len(left) - 10} more" if len(left) > 10 else "")
    return [f"[still running in the background: {listed}; what they print from now on is not read]"]


def _layout(headline: str, texts: Mapping[str, str], notes: list[str]) -> str:
    parts = [f"{name}:\n{text}" if text else f"{name}: (empty)" for name, text in texts.items()]
    return "\n".join([headline, *parts, *notes])


def _text_of(capture: Capture) -> str:
    """What a stream said as text: broken bytes shown as such, binary data only described."""
    head, missing, tail = capture.parts()
    if _is_binary(head):
        return f"({describe_binary(head, capture.total)}, not shown: send it to a file)"
    if missing:
        head, tail = _without_broken_end(head), tail.lstrip(bytes(range(0x80, 0xC0)))
    text = head.decode(errors="replace")
    if missing:
        text += f"\n[… {show_size(missing)} were too much to keep …]\n"
    text += tail.decode(errors="replace")
    broken = text.count("\ufffd") - (head + tail).count("\ufffd".encode())
    plural = "s" * (broken != 1)
    note = (
        f"\n[{broken} broken character{plural} shown as \ufffd: the output is not valid UTF-8]"
        if broken
        else ""
    )
    return text.replace("\0", "␀").removesuffix("\n") + note


def _without_broken_end(data: bytes) -> bytes:
    return data if data[-1:] < b"\x80" else data.rstrip(bytes(range(0x80, 0xC0)))[:-1]


_CONTROL = bytes(set(range(1, 32)) - set(b"\t\n\r\f\v\x1b\b\a"))


def _is_binary(data: bytes) -> bool:
    """Is it of no use as text? A few NULs (find -print0) or broken bytes do not make it so."""
    sample = data[:8192]
    control = len(sample) - len(sample.translate(None, _CONTROL))
    broken = sample.decode(errors="replace").count("\ufffd")
    if len(sample) >= 64 and broken * 10 > len(sample) and 0 in sample:
        return True
    return sample.count(0) * 10 > len(sample) * 3 or control * 10 > len(sample)
