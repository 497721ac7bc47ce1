"""What does a host's hook cost? `python -m bench.hooks [--write] [ROUNDS]`.

Claude Code: the whole shell line that is installed, as a difference to `python -c pass` in the same minutes. One round
starts all of them in turn, so that a busy machine slows all of them down; the processor's time is what such a machine
changes least. Hermes: one decision inside the real program, with the transaction that keeps its state.
"""

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from time import perf_counter
from typing import NamedTuple

from tests.hosts.chat_server import ChatServer
from tests.hosts.hermes_kit import Host

from jackstay.hosts.claude_install import hook_command, interpreter

RESULTS = Path(__file__).with_name("HOOKS.md")
DECISIONS = 500
EVENT = {
    "session_id": "bench", "cwd": "/tmp", "hook_event_name": "PreToolUse", "tool_name": "Bash",
    "tool_input": {"command": "cd src && grep -rn needle . | head -20"}, "tool_use_id": "toolu_1",
}  # fmt: skip


class Took(NamedTuple):
    """Milliseconds of one whole process: on the clock, and of the processor (the process that stays is not in it)."""

    wall: float
    cpu: float


def whole(command: list[str], event: bytes = b"") -> Took:
    """Start it and wait for its end."""
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), perf_counter()
    done = subprocess.run(command, input=event, capture_output=True, check=False)
    wall, after = perf_counter() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    assert done.returncode == 0, done.stderr
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Took(wall * 1000, cpu * 1000)


def claude_code(rounds: int) -> dict[str, list[Took]]:
    """By what was started: nothing, a hook with a process that stayed before it, without one, in a new home."""
    event = json.dumps(EVENT).encode()
    names = ("python -c pass", "hook", "hook, no process stayed", "hook, first of a home")
    found: dict[str, list[Took]] = {name: [] for name in names}
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        python = interpreter()

        def hook(home: str) -> list[str]:
            return ["/bin/sh", "-c", hook_command(python, Path(home), "PreToolUse")]

        homes = [f"{folder}/{name}" for name in ("stays", "goes")]
        for home in homes:
            whole(hook(home), event)
        for number in range(rounds):
            new = f"{folder}/{number}"
            dismiss(homes[1])
            found[names[0]].append(whole([*python, "-c", "pass"]))
            found[names[1]].append(whole(hook(homes[0]), event))
            found[names[2]].append(whole(hook(homes[1]), event))
            found[names[3]].append(whole(hook(new), event))
            dismiss(new)
        for home in homes:
            dismiss(home)
    return found


def dismiss(home: str) -> None:
    """Let the process go that answers this home's hooks."""
    Path(home, "hosts", "hook.sock").unlink(missing_ok=True)


def hermes() -> list[float]:
    """Milliseconds of each decision about a read, in the real Hermes."""
    server = ChatServer()
    try:
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
            host = Host(Path(folder), server)
            host.install()
            target = host.workspace / "a.txt"
            target.write_text("x")
            with host.driver() as driver:
                paces = driver.ask("pace", session="pace", path=str(target), times=DECISIONS)
    finally:
        server.close()
    return [pace * 1000 for pace in paces]


def lines(processes: dict[str, list[Took]], decisions: list[float]) -> list[str]:
    """The table, a line each."""
    floor = next(iter(processes.values()))
    wall, cpu = statistics.median(one.wall for one in floor), statistics.median(one.cpu for one in floor)
    told = ["| what | median | p95 | above `python -c pass`: median | p95 | processor above it: median |",
            "|---|---|---|---|---|---|"]  # fmt: skip
    for name, took in processes.items():
        walls, median = [one.wall for one in took], statistics.median(one.wall for one in took)
        cpus = statistics.median(one.cpu for one in took)
        told.append(
            f"| {name} | {median:.1f} ms | {p95(walls):.1f} ms | {median - wall:.1f} ms | "
            f"{p95(walls) - wall:.1f} ms | {cpus - cpu:.1f} ms |"
        )
    told.append(
        f"| a decision in Hermes | {statistics.median(decisions):.2f} ms | {p95(decisions):.2f} ms | | | |"
    )
    return told


def p95(values: list[float]) -> float:
    return sorted(values)[int(len(values) * 0.95)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("rounds", nargs="?", type=int, default=40)
    parser.add_argument("--write", action="store_true", help=f"write the table into {RESULTS.name}")
    asked = parser.parse_args()
    told = "\n".join(lines(claude_code(asked.rounds), hermes()))
    print(told)
    if asked.write:
        RESULTS.write_text(
            "# What a host's hook costs\n\n"
            f"Measured by `python -m bench.hooks --write`, {asked.rounds} rounds; Python {sys.version.split()[0]}, "
            f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}. Targets: a whole hook ≤ 60 ms (median) above "
            "`python -c pass`, a decision in Hermes ≤ 1 ms (median). With a load above the number of cores the clock "
            f"tells of other programs; the processor's time is then the figure to read.\n\n{told}\n",
            "utf-8",
        )


if __name__ == "__main__":
    main()
