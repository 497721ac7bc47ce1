"""Which of these commands change the file tree? Runs inside the sandbox, with nothing but the standard
library."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import Queue

LIMIT_S = 1.0
WORKERS = 6
TEXT = "alpha 1 one\nbeta 2 two\nfoo error 3\nx,y,z\n# comment\nname: value\n"


def plant(root: Path) -> None:
    """Files, directories and a repository with the names the corpus likes to use."""
    for name in ("a", "b", "f", "x", "y", "a.txt", "b.txt", "f.txt", "README.md", "app.log", "file.txt",
    "main.c", "list",
                 "names", "nums", "data.csv", "x.csv", "list.txt", "files.txt", "setup.py", "VERSION", "log",
                 "words"):  # fmt: skip
        (root / name).write_text(TEXT)
    for name in ("src", "docs", "tests", "src/sub"):
        (root / name).mkdir(exist_ok=True)
    (root / "src" / "main.py").write_text("import os\n\n\ndef main():\n    return os\n")
    for name in ("package.json", "data.json", "x.json", "f.json"):
        (root / name).write_text(
            '{"version": "1.0", "scripts": {"a": "b"}, "items": [{"name": "n", "id": 1}]}\n'
        )
    for path in root.rglob("*"):
        os.utime(
            path, (1_700_000_000, 1_700_000_000)
        )  # older than git's index, so that git never has to look again
    env = {**os.environ, "HOME": str(root), "GIT_CONFIG_GLOBAL": "/dev/null"}
    for words in (
        ["init", "-q"],
        ["add", "-A"],
        ["-c", "user.name=n", "-c", "user.email=e", "commit", "-qm", "first"],
    ):
        subprocess.run(["git", *words], cwd=root, env=env, check=True, capture_output=True)


def settle(room: Path) -> None:
    """What programs keep in any home that has been used: git's index knows the copies, gpg and top have
    their places."""
    for name in (".config/procps", ".npm"):
        (room / name).mkdir(parents=True, exist_ok=True)
    for words in (["git", "update-index", "--refresh"], ["gpg", "--list-keys"]):
        with contextlib.suppress(FileNotFoundError):
            subprocess.run(
                words, cwd=room, env={**os.environ, "HOME": str(room)}, capture_output=True, check=False
            )


def picture(root: Path) -> dict[str, tuple]:
    """What the tree looks like: kind, size, change of content, mode of everything in it."""
    seen: dict[str, tuple] = {}
    for here, directories, files in os.walk(root):
        for name in (*directories, *files):
            path = f"{here}/{name}"
            info = os.lstat(path)
            whole = name in files  # a lock that came and went touches only the time of its directory
            seen[path] = (
                info.st_mode,
                info.st_ino,
                info.st_size if whole else 0,
                info.st_mtime_ns if whole else 0,
            )
    return seen


def run(command: str, room: Path) -> bool:
    """Run one command with the neutral environment of a reader; True when it succeeded."""
    env = {
        "PATH": os.environ["PATH"], "HOME": str(room), "LANG": "C.UTF-8", "TMPDIR": str(room),
        "PWD": str(room),
        "GIT_OPTIONAL_LOCKS": "0", "GIT_PAGER": "cat", "PAGER": "cat", "TERM": "dumb", "USER": "u",
        "CHECKPOINT_DISABLE": "1", "npm_config_logs_max": "0", "npm_config_update_notifier": "false",
    }  # fmt: skip
    process = subprocess.Popen(
        ["bash", "--norc", "--noprofile", "-c", command],
        cwd=room, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        start_new_session=True,
    )  # fmt: skip
    try:
        return process.wait(LIMIT_S) == 0
    except subprocess.TimeoutExpired:
        return False
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def main() -> None:
    """Run everything, each command in a room of its own while it runs, and report."""
    commands = json.loads(Path("/media/commands.json").read_text())
    template = Path("/mnt/template")
    template.mkdir()
    plant(template)
    rooms: Queue[Path] = Queue()
    for number in range(WORKERS):
        rooms.put(shutil.copytree(template, Path(f"/mnt/room{number}"), symlinks=True))
    for room in list(rooms.queue):
        settle(room)
    pictures = {room: picture(room) for room in list(rooms.queue)}
    changed: list[tuple[str, list[str]]] = []

    def one(command: str) -> bool:
        room = rooms.get()
        succeeded = run(command, room)
        after = picture(room)
        if after != pictures[room]:
            both = after.keys() | pictures[room].keys()
            changed.append(
                (command, sorted(path for path in both if after.get(path) != pictures[room].get(path))[:5])
            )
            pictures[room] = after
        rooms.put(room)
        return succeeded

    with ThreadPoolExecutor(WORKERS) as pool:
        results = list(pool.map(one, commands))
    json.dump({"changed": changed, "ran": len(results), "succeeded": sum(results)}, sys.stdout)


if __name__ == "__main__":
    main()
