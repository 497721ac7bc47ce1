"""What does a hook's process load? Each module here costs every call that an agent makes."""

import json
import subprocess
import sys
from pathlib import Path

EVENT = {
    "session_id": "s", "cwd": "/", "hook_event_name": "PreToolUse", "tool_name": "Bash",
    "tool_input": {"command": "cd src && grep -rn needle . | head -20"}, "tool_use_id": "toolu_1",
}  # fmt: skip
HEAVY = (
    "anyio", "asyncio", "click", "dataclasses", "httpx2", "importlib.resources", "inspect", "logging", "pydantic", "rich",
    "selectors", "shutil", "socket", "subprocess", "tempfile", "tomllib", "typing_extensions", "yaml",
)  # fmt: skip


def test_a_hook_that_judges_by_itself_loads_nothing_it_does_not_need(tmp_path: Path) -> None:
    code = (
        "import os, sys\n"
        "from jackstay.cli import hook\n"
        "hook._stay = lambda home: os.write(2, ' '.join(sys.modules).encode())\n"
        f"hook.main(['claude-code', '--home', {str(tmp_path)!r}])\n"
    )
    done = subprocess.run([sys.executable, "-c", code], input=json.dumps(EVENT).encode(), capture_output=True)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {}, "a read-only command: nothing is objected"
    loaded = set(done.stderr.decode().split())
    assert {"jackstay.policy.reading", "sqlite3", "tree_sitter"} <= loaded
    assert [name for name in HEAVY if name in loaded] == []
