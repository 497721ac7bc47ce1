"""A workspace to run tools in, and what they told meanwhile."""

from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import pytest

from jackstay.engine.ports import Tool, ToolOutput


@dataclass
class Box:
    """A ToolContext over a directory of the test; `run` checks and runs a call as the driver does."""

    root: Path
    session_id: str = "s1"
    run_id: str = "r1"
    call_id: str = "c1"
    seen: dict[str, str] = field(default_factory=dict)
    told: list[str] = field(default_factory=list)

    @property
    def workspace(self) -> str:
        return str(self.root)

    def tell(self, text: str) -> None:
        self.told.append(text)

    async def arun(self, tool: Tool, **args: Any) -> ToolOutput:
        problem = tool.check(args)
        assert problem is None, problem
        return await tool.run(args, self)

    def run(self, tool: Tool, **args: Any) -> ToolOutput:
        return anyio.run(partial(self.arun, tool, **args))

    def fails(self, tool: Tool, **args: Any) -> str:
        """The text of a call that must end in an error."""
        output = self.run(tool, **args)
        assert output.is_error, output.text
        return output.text

    def file(self, name: str, content: str | bytes = "") -> Path:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path


@pytest.fixture
def box(tmp_path: Path) -> Box:
    root = tmp_path / "ws"
    root.mkdir()
    return Box(root)
