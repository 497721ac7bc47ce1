"""The harness's own tools as models see them; the run machine answers their calls itself."""

from jackstay.core.messages import JsonObject
from jackstay.core.tools import ToolSpec
from jackstay.engine.ports import ToolContext, ToolOutput
from jackstay.policy.own_tools import SPECS


class OwnTool:
    """A tool whose calls never reach a driver: what they change is the state of the run."""

    def __init__(self, spec: ToolSpec) -> None:
        self._spec = spec

    @property
    def spec(self) -> ToolSpec:
        """What the model is told of it."""
        return self._spec

    def check(self, args: JsonObject) -> str | None:
        """Missing, unknown or wrongly typed arguments, by name."""
        wanted = self._spec.parameters["properties"]
        for name in self._spec.parameters["required"]:
            if name not in args:
                return f"{name} is missing"
        for name, value in args.items():
            if name not in wanted:
                return f"there is no argument {name!r}; known are {', '.join(wanted)}"
            if not isinstance(value, str):
                return f"{name} must be a text"
        return None

    async def run(self, args: JsonObject, context: ToolContext) -> ToolOutput:
        """Never called in a run."""
        return ToolOutput(f"{self._spec.name} is answered by the run itself", is_error=True)


def own_tools() -> tuple[OwnTool, ...]:
    """One for each of the harness's own tools."""
    return tuple(OwnTool(spec) for spec in SPECS)
