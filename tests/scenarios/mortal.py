"""A process that works on a session and kills itself with SIGKILL once an event has been stored.

    python mortal.py ROOT SCRIPT PROMPT EVENT

An empty PROMPT resumes; EVENT is a line of `workplace.told`, empty to live on.
"""

import asyncio
import os
import signal
import sys
from pathlib import Path
from typing import Any

from jackstay import HarnessEngine, SQLiteStore
from jackstay.core.events import Event
from jackstay.engine.interceptors import Interceptor
from jackstay.models.scripted import ScriptedModel
from tests.scenarios.workplace import TOOLS, told


class Dies(Interceptor):
    """Ends this process at an event; it is stored by then, and nothing later is."""

    def __init__(self, line: str) -> None:
        self._line = line

    def on_event(self, event: Event) -> None:
        if self._line in told([event]):
            os.kill(os.getpid(), signal.SIGKILL)


def main(root: Path, script: str, prompt: str, line: str) -> None:
    def extend(engine: Any, name: str, builder: Any) -> None:
        builder.default_interceptor_add(Dies(line))

    engine = HarnessEngine(
        workspace=str(root / "work"), harness_home=str(root / "home"), tools=TOOLS, discipline="strict",
        session_provider=SQLiteStore(root / "sessions.db"), model=ScriptedModel.load(script),
        extensions=(extend,), installed_extensions=False,
    )  # fmt: skip
    asyncio.run(engine.prompt(prompt or None).session("s1").call())


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:])
