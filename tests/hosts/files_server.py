"""An MCP server of somebody else, named `files`: its one tool writes an empty file."""

import json
import sys
from pathlib import Path

HELLO = {
    "protocolVersion": "2025-06-18", "capabilities": {"tools": {}},
    "serverInfo": {"name": "files", "version": "1"},
}  # fmt: skip
SCHEMA = {"type": "object", "properties": {"path": {"type": "string"}}}
TOOLS = {"tools": [{"name": "write", "description": "write a file", "inputSchema": SCHEMA}]}

for line in sys.stdin:
    message = json.loads(line)
    answers = {"initialize": HELLO, "tools/list": TOOLS}
    if message.get("method") == "tools/call":
        Path(message["params"]["arguments"]["path"]).touch()
        answers["tools/call"] = {"content": [{"type": "text", "text": "written"}]}
    if "id" in message:
        result = answers.get(message["method"], {})
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
