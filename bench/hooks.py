"""What does a host's hook cost? Whole processes, as a difference to `python -c pass` in the same minutes.

    python -m bench.hooks [ROUNDS]

One round starts all three in turn, so that a busy machine slows all of them down.
"""

import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from jackstay.hosts.claude_install import START

EVENT = {
    "session_id": "bench", "cwd": "/tmp", "hook_event_name": "PreToolUse", "tool_name": "Bash",
    "tool_input": {"command": "cd src && grep -rn needle . | head -20"}, "tool_use_id": "toolu_1",
}  # fmt: skip


def whole(command: list[str], event: bytes = b"") -> float:
    """Milliseconds from start to end."""
    began = time.perf_counter()
    done = subprocess.run(command, input=event, capture_output=True, check=False)
    took = (time.perf_counter() - began) * 1000
    assert done.returncode == 0, done.stderr
    return took


def main() -> None:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 60
    event = json.dumps(EVENT).encode()
    floor, resident, alone = list[float](), list[float](), list[float]()
    with tempfile.TemporaryDirectory() as folder:
        hook = [sys.executable, "-I", "-c", START, "claude-code", "--home"]
        whole([*hook, folder], event)  # stays for the next ones
        for number in range(rounds):
            floor.append(whole([sys.executable, "-I", "-c", "pass"]))
            resident.append(whole([*hook, folder], event))
            if number % 4 == 0:
                one = f"{folder}/{number}"
                alone.append(whole([*hook, one], event))
                Path(one, "hosts", "hook.sock").unlink(missing_ok=True)
        Path(folder, "hosts", "hook.sock").unlink()
    base = statistics.median(floor)
    print(f"python -c pass        median {base:6.1f} ms  p95 {_p95(floor):6.1f}")
    for name, found in (("hook", resident), ("hook, first of a home", alone)):
        print(
            f"{name:<21} median {statistics.median(found):6.1f} ms  p95 {_p95(found):6.1f}   "
            f"above it: {statistics.median(found) - base:6.1f}, p95 {_p95(found) - base:6.1f}"
        )


def _p95(values: list[float]) -> float:
    return sorted(values)[int(len(values) * 0.95)]


if __name__ == "__main__":
    main()
