"""Two agents of one name, one below the other: the line tells which of them it is about."""

from jackstay.cli.below import below_line
from jackstay.core.events import SubagentEvent, ToolCallStartEvent
from jackstay.core.wire import decode_json, encode


def line(child: str) -> str | None:
    inner = decode_json(encode(ToolCallStartEvent("r-2", child, 1, 0.0, "c1", "bash", {"command": "make"})))
    return below_line(SubagentEvent("r-1", "s.1", None, 0.0, "general", child, inner))


def test_what_lies_deeper_is_indented_further() -> None:
    assert line("s.1.09d302be20") == "  general: → bash  make"
    assert line("s.1.09d302be20.8637ad3fee") == "    general: → bash  make"
