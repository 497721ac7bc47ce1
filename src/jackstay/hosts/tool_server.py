"""The harness's own tools inside Claude Code: a small MCP server that offers them, answered by the hooks.

Each line of stdin is one JSON-RPC message. The server knows no session: the hook after the call does, and puts
the answer in the place of the one from here.
"""

from typing import Any, BinaryIO

from jackstay._version import __version__
from jackstay.core import wire
from jackstay.core.messages import JsonObject
from jackstay.policy.own_tools import SPECS

PROTOCOL = "2025-06-18"
UNANSWERED = "Nothing was done: the harness's hook did not answer. Tell your user to run `jackstay doctor`."


def serve(source: BinaryIO, target: BinaryIO) -> None:
    """Answer until the input ends."""
    for line in source:
        try:
            message: Any = wire.decode_json(line)
        except ValueError:
            continue
        if isinstance(message, dict) and "id" in message and "method" in message:
            target.write(wire.encode({"jsonrpc": "2.0", "id": message["id"], **_answer(message)}) + b"\n")
            target.flush()


def _answer(message: JsonObject) -> JsonObject:
    match message["method"]:
        case "initialize":
            params = message.get("params")
            wanted = params.get("protocolVersion") if isinstance(params, dict) else None
            told = {"name": "jackstay", "version": __version__}
            return {
                "result": {
                    "protocolVersion": wanted or PROTOCOL,
                    "capabilities": {"tools": {}},
                    "serverInfo": told,
                }
            }
        case "tools/list":
            tools = [
                {"name": one.name, "description": one.description, "inputSchema": one.parameters}
                for one in SPECS
            ]
            return {"result": {"tools": tools}}
        case "tools/call":
            return {"result": {"content": [{"type": "text", "text": UNANSWERED}]}}
        case "ping":
            return {"result": {}}
        case other:
            return {"error": {"code": -32601, "message": f"there is no method {other!r}"}}
