"""What does the harness cost? One command: `python -m bench.run [--write] [NAME…]`.

Every figure stands beside the bare loop of `bench/floor.py`, measured in turn with it in the same process: the
machine's speed cancels out in the ratio. "scaled" is the figure on a machine whose bare loop costs 0.003 ms a
step; that is what the targets are about.
"""

import argparse
import asyncio
import gc
import logging
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import NamedTuple

from bench import floor
from jackstay import HITL, HarnessEngine, HITLDecision, HITLInterceptor, MemoryStore, SQLiteStore, tool
from jackstay.core.events import ReasonDeltaEvent
from jackstay.core.inputs import Begin
from jackstay.core.messages import Message, Text, ToolCall, ToolResult, Usage, assistant
from jackstay.core.state import RunState
from jackstay.engine.machine import step
from jackstay.engine.ports import ModelRequest, Record, Reply, SessionStore, Tell

ROUNDS = 5
BEST_OF = 5  # runs a round; of the bare loop, which is short, 20
NEVER = 1_000_000
NOMINAL_MS = 0.003


@tool(effects={"reads"})
async def add(a: int, b: int) -> str:
    """Add two numbers."""
    return str(a + b)


class Instant:
    """A model that answers in no time: `calls` calls, one a turn, then words; with `words` pieces of text a turn."""

    name = "instant"
    context_length = 1_000_000_000

    def __init__(self, calls: int, words: int = 0) -> None:
        self.calls, self.words = calls, words

    async def reply(self, request: ModelRequest, tell: Tell) -> Reply:
        if not request.tools:  # it is asked for a summary
            return Reply(assistant("numbers were added"), Usage(10, 5))
        last = request.transcript[-1].parts[-1]
        made = int(last.text) if isinstance(last, ToolResult) else 0  # each call adds one to its number
        for _ in range(self.words):
            tell("word ", False)
        if made >= self.calls:
            return Reply(assistant("done"), Usage(10, 5))
        return Reply(
            Message("assistant", (ToolCall(f"call_{made}", "add", {"a": 1, "b": made}),)), Usage(10, 5)
        )

    async def close(self) -> None:
        """Nothing to close."""


def engine(model: object, store: SessionStore, calls: int, *, threshold: int = NEVER) -> HarnessEngine:
    """Checks before every turn whether to compress; with a lower `threshold` of messages it does."""
    return HarnessEngine(
        model=model, tools=(add,), session_provider=store, max_turns=calls + 5, installed_extensions=False,
        compression_threshold=(threshold, 0.75),
    )  # fmt: skip


def sqlite(folder: str, synchronous: str = "normal") -> SQLiteStore:
    return SQLiteStore(Path(tempfile.mkdtemp(dir=folder)) / "sessions.db", synchronous=synchronous)  # type: ignore[arg-type]  # a literal at every call


async def harness(
    model: object, store: SessionStore, calls: int, *, stream: bool = False, threshold: int = NEVER
) -> float:
    """CPU milliseconds a step, in a store that is open: setting up a new file is a figure of its own."""
    made = engine(model, store, calls, threshold=threshold)
    store.head("s")
    began = time.process_time()
    if stream:
        async for _ in made.prompt("go").session("s").stream():
            pass
    else:
        await made.prompt("go").session("s").call()
    took = time.process_time() - began
    state = made.get_session("s").state
    assert (state.outcome, state.calls_made) == ("answered", calls), state.error
    return took / calls * 1000


class Figure(NamedTuple):
    """A measured value, the floor of the same round, and the most (or least) it may be on the nominal machine."""

    name: str
    unit: str
    value: float
    floor_ms: float
    target: float | None
    at_least: bool = False
    scales: bool = True

    @property
    def scaled(self) -> float:
        if not self.scales:
            return self.value
        factor = NOMINAL_MS / self.floor_ms
        return self.value / factor if self.at_least else self.value * factor

    @property
    def verdict(self) -> str:
        if self.target is None:
            return ""
        good = self.scaled >= self.target if self.at_least else self.scaled <= self.target
        return "ok" if good else "MISSED"


async def floor_now() -> float:
    return min([await floor.cost(floor.instant(50), 50) for _ in range(20)])


async def median(
    measure: Callable[[], Awaitable[float]], rounds: int = ROUNDS, *, best: Callable[[list[float]], float] = min
) -> tuple[float, float]:
    """Medians over the rounds of the best run of the measure and of the floor, taken in turn."""
    await measure()
    values, floors = [], []
    for _ in range(rounds):
        gc.collect()
        floors.append(await floor_now())
        values.append(best([await measure() for _ in range(BEST_OF)]))
    return statistics.median(values), statistics.median(floors)


async def steps(folder: str) -> list[Figure]:
    found = []
    stores: tuple[tuple[str, Callable[[], SessionStore], float], ...] = (
        ("in memory", MemoryStore, 0.07),
        ("SQLite, WAL normal", lambda: sqlite(folder), 0.10),
        ("SQLite, full sync", lambda: sqlite(folder, "full"), 0.39),
    )
    for title, store, target in stores:
        value, base = await median(lambda store=store: harness(Instant(50), store(), 50))
        found.append(Figure(f"CPU a step, 50 calls, {title}", "ms", value, base, target))
    value, base = await median(lambda: harness(Instant(50, 20), MemoryStore(), 50, stream=True))
    found.append(Figure("CPU a step, 50 calls, streamed, 20 deltas a turn", "ms", value, base, 0.094))
    for title, store, _ in stores[:2]:
        small, _ = await median(lambda store=store: harness(Instant(50), store(), 50))
        large, base = await median(lambda store=store: harness(Instant(800), store(), 800), 3)
        found.append(
            Figure(f"cost at 800 calls ÷ at 50, {title}", "×", large / small, base, 1.15, scales=False)
        )
    value, base = await median(lambda: harness(Instant(2000), MemoryStore(), 2000), 1)
    found.append(Figure("CPU a step, 2 000 calls, in memory", "ms", value, base, None))
    value, base = await median(lambda: harness(Instant(2000), MemoryStore(), 2000, threshold=100), 1)
    found.append(Figure("the same with compression at 100 messages", "ms", value, base, None))
    return found


async def many(folder: str) -> list[Figure]:
    sessions, calls = 200, 10

    async def rate(store: SessionStore) -> float:
        made = engine(Instant(calls), store, calls)

        async def one(number: int) -> None:
            assert (await made.prompt("go").session(f"s{number}").call()).outcome == "answered"

        began = time.perf_counter()
        async with asyncio.TaskGroup() as group:
            for number in range(sessions):
                group.create_task(one(number))
        return sessions * calls / (time.perf_counter() - began)

    plain, base = await median(lambda: rate(MemoryStore()), best=max)
    durable, base_durable = await median(lambda: rate(sqlite(folder)), best=max)
    flushed, base_flushed = await median(lambda: rate(sqlite(folder, "full")), best=max)
    return [
        Figure("200 sessions × 10 calls, in memory", "steps/s", plain, base, 21_000, at_least=True),
        Figure("200 sessions × 10 calls, durable", "steps/s", durable, base_durable, 10_000, at_least=True),
        Figure("200 sessions × 10 calls, full sync", "steps/s", flushed, base_flushed, None, at_least=True),
        Figure("resident memory a session, fresh process", "kB", session_kb(), base, 19, scales=False),
    ]


SIZE = """
import asyncio, resource
from bench.run import Instant, engine
from jackstay import MemoryStore

def resident_kb():
    return int(open("/proc/self/statm").read().split()[1]) * resource.getpagesize() / 1024

async def main():
    made = engine(Instant(10), MemoryStore(), 10)
    async def one(name):
        assert (await made.prompt("go").session(name).call()).outcome == "answered"
    for number in range(20):  # what is loaded and cached with the first runs is no session's
        await one(f"first{number}")
    before = resident_kb()
    async with asyncio.TaskGroup() as group:
        for number in range(200):
            group.create_task(one(f"s{number}"))
    print((resident_kb() - before) / 200)

asyncio.run(main())
"""


def session_kb() -> float:
    """What 200 sessions of 10 calls add to the resident memory of a fresh process, divided by 200."""
    done = subprocess.run([sys.executable, "-c", SIZE], capture_output=True, text=True, check=True)
    return float(done.stdout)


async def starting(folder: str) -> list[Figure]:
    first = (
        "import asyncio, os; from jackstay import HarnessEngine, SQLiteStore; from jackstay.testing import "
        "ScriptedModel\n"
        "async def main():\n"
        "    engine = HarnessEngine(model=ScriptedModel(['hi']), session_provider=SQLiteStore(os.environ['DB']))\n"
        "    await anext(engine.prompt('go').session('s').stream())\n"
        "    os._exit(0)\n"
        "asyncio.run(main())"
    )
    base = await floor_now()
    bare = whole_process("pass", folder)
    opening, base_opening = await median(lambda: opened(folder))
    return [
        Figure("setting up a new SQLite file", "ms", opening, base_opening, None),
        Figure(
            "import jackstay, above bare Python",
            "ms",
            whole_process("import jackstay", folder) - bare,
            base,
            60,
        ),
        Figure("import to first event, whole process", "ms", whole_process(first, folder), base, 140),
        Figure("jackstay --help, above bare Python", "ms", whole_process(HELP, folder) - bare, base, 150),
    ]


async def opened(folder: str) -> float:
    """CPU milliseconds until a file that is not there yet can be asked."""
    store = sqlite(folder)
    began = time.process_time()
    store.head("s")
    return (time.process_time() - began) * 1000


HELP = "import sys; sys.argv = ['jackstay', '--help']; sys.stdout = None; from jackstay.cli.main import main; main()"


def whole_process(code: str, folder: str) -> float:
    """Median wall milliseconds of a fresh interpreter that runs the code."""
    took = []
    for number in range(9):
        environment = {**os.environ, "DB": f"{tempfile.mkdtemp(dir=folder)}/{number}.db"}
        began = time.perf_counter()
        subprocess.run([sys.executable, "-c", code], env=environment, check=False, stdout=subprocess.DEVNULL)
        took.append((time.perf_counter() - began) * 1000)
    return statistics.median(took)


async def suspending(folder: str) -> list[Figure]:
    found = []
    for count, target in ((10, 0.4), (100, 0.4), (500, 0.4)):
        value, base = await median(lambda count=count: persist(sqlite(folder), count))
        found.append(Figure(f"suspension persisted, {count} messages", "ms", value, base, target))
    value, base = await median(lambda: finish(sqlite(folder)))
    found.append(Figure("reload + approve + finish, 500 messages", "ms", value, base, 10))
    return found


def filled(store: SessionStore, count: int) -> tuple[RunState, int]:
    """A session of `count` messages about to be suspended, stored; its state and version."""
    said = Message("assistant", (Text("thinking about it"), ToolCall("c", "add", {"a": 1, "b": 2})))
    history = []
    for number in range(count // 2):
        call = ToolCall(f"c{number}", "add", {"a": number, "b": 2})
        history.append(Message("assistant", (*said.parts[:1], call)))
        history.append(Message("tool", (ToolResult(f"c{number}", f"{'result ' * 30}{number}"),)))
    begun = step(RunState("s"), Begin(1.0, "r", (Text("go"),)))
    state = begun.state
    state = type(state)(**{**{f: getattr(state, f) for f in state.__struct_fields__}, "rows": count + 1,
                           "transcript": state.transcript.append(*history)})  # fmt: skip
    version = store.commit("s", 0, Record(state, (*begun.appended, *history), (), begun.events))
    return state, version


async def persist(store: SessionStore, count: int) -> float:
    """Milliseconds from the reply that needs a person to the suspension being stored."""
    from jackstay.core.decision import Ask
    from jackstay.core.facts import CallFacts
    from jackstay.core.inputs import Replied
    from jackstay.engine.bounds import RunBounds

    state, version = filled(store, count)
    reply = assistant("", ToolCall("x", "add", {"a": 1, "b": 2}))
    facts = (CallFacts(answers=(Ask("sensitive"),)),)
    began = time.perf_counter()
    made = step(state, Replied(2.0, reply, Usage(), facts), RunBounds(hitl=True))
    store.commit("s", version, Record(made.state, made.appended, (), made.events))
    took = (time.perf_counter() - began) * 1000
    assert made.state.is_pending
    return took


async def finish(store: SQLiteStore) -> float:
    """Milliseconds to load a suspended session of 500 messages, approve its call, run it and end the run; uncompressed."""
    await persist(store, 500)
    model = Instant(0)
    hitl = HITLInterceptor().on_sensitive_tool("add")
    began = time.perf_counter()
    made = HarnessEngine(
        model=model, tools=(add, "hitl"), session_provider=store, hitl_enabled=True, hitl_interceptor=hitl,
        installed_extensions=False, compression_threshold=(NEVER, 0.75),
    )  # fmt: skip
    session = made.get_session("s")
    HITL.submit(session, HITL.get_pending_tasks(session)[0], HITLDecision.approve())
    assert (await made.prompt().session(session).call()).outcome == "answered"
    return (time.perf_counter() - began) * 1000


async def deltas(folder: str) -> list[Figure]:
    async def cost(count: int) -> float:
        made = engine(Instant(0, count), MemoryStore(), 1)
        began = time.process_time()
        heard = 0
        async for event in made.prompt("go").session("s").stream():
            heard += isinstance(event, ReasonDeltaEvent)
        assert heard == count
        return (time.process_time() - began) / count * 1e6

    few, base = await median(lambda: cost(500))
    lots, base_lots = await median(lambda: cost(8000))
    return [
        Figure("a text delta, 8 000 in a turn", "µs", lots, base_lots, 2.2),
        Figure("a delta at 8 000 ÷ at 500", "×", lots / few, base, 1.15, scales=False),
    ]


async def over_http(folder: str) -> list[Figure]:
    import aiohttp

    found = []
    for calls, target in ((50, 0.68), (200, 0.78)):
        with Server(folder, calls) as url:

            async def ours(url: str = url, calls: int = calls) -> float:
                from jackstay.models.registry import open_model

                model = open_model(f"m@{url}", env={})
                value = await harness(model, MemoryStore(), calls, stream=True)
                await model.close()
                return value

            async def bare(url: str = url, calls: int = calls) -> float:
                async with aiohttp.ClientSession() as session:
                    return await floor.cost(floor.over_http(session, url), calls)

            value, base = await median(ours, 3)
            found.append(Figure(f"CPU a step over HTTP, streamed, {calls} turns", "ms", value, base, target))
            plain, _ = await median(bare, 3)
            found.append(Figure(f"the bare aiohttp loop, {calls} turns", "ms", plain, base, None))
    return found


class Server:
    """The loopback model server as a process of its own, answering with `calls` calls and then words, for ever."""

    def __init__(self, folder: str, calls: int) -> None:
        import json

        answers = [{"calls": [{"tool": "add", "args": {"a": 1, "b": n}}]} for n in range(calls)]
        script = Path(tempfile.mkdtemp(dir=folder)) / "script.json"
        script.write_text(json.dumps([*answers, {"say": "done"}]))
        self._arguments = [sys.executable, "-m", "tests.loopback", "--script", str(script), "--cycle"]

    def __enter__(self) -> str:
        self._process = subprocess.Popen(
            self._arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert self._process.stdout is not None
        return f"http://127.0.0.1:{self._process.stdout.readline().strip()}/v1"

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()


GROUPS: dict[str, Callable[[str], Awaitable[list[Figure]]]] = {
    "steps": steps, "many": many, "starting": starting, "suspending": suspending, "deltas": deltas,
    "http": over_http,
}  # fmt: skip


def table(figures: list[Figure]) -> str:
    lines = [
        "| what | measured | bare loop, ms a step | ratio to it | scaled | target | |",
        "|---|---|---|---|---|---|---|",
    ]
    for f in figures:
        ratio = f"{f.value / f.floor_ms:.1f}" if f.unit == "ms" else ""
        bound = "" if f.target is None else f"{'≥' if f.at_least else '≤'} {f.target:g}"
        lines.append(
            f"| {f.name} | {f.value:,.3f} {f.unit} | {f.floor_ms:.4f} | {ratio} | {f.scaled:,.3f} | {bound} | {f.verdict} |"
        )
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help=f"which groups to measure: {', '.join(GROUPS)} (all)")
    parser.add_argument("--write", action="store_true", help="keep the figures in bench/RESULTS.md")
    asked = parser.parse_args()
    logging.disable(logging.CRITICAL)
    figures: list[Figure] = []
    with tempfile.TemporaryDirectory() as folder:
        for name in asked.names or GROUPS:
            figures += asyncio.run(GROUPS[name](folder))  # type: ignore[arg-type]  # an async function each
            print(table(figures[-len(figures) :] if len(asked.names or GROUPS) == 1 else figures), flush=True)
    if asked.write:
        title = "# What the harness costs\n\nMeasured by `python -m bench.run --write`; "
        where = f"Python {sys.version.split()[0]}, {os.cpu_count()} cores. "
        how = '"scaled" is for a machine whose bare loop costs 0.003 ms a step: the targets are about that. '
        each = "A figure is the median, over some rounds, of the best of five runs; of the bare loop, of twenty.\n\n"
        text = title + where + how + each + table(figures) + "\n"
        Path("bench/RESULTS.md").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
