"""A scripted Messages server on loopback: what the model says is written down before the host is started."""

import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Turn = list[dict[str, Any]]


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


def use(tool: str, **args: Any) -> dict[str, Any]:
    return {"type": "tool_use", "name": tool, "input": args}


class MessagesServer:
    """Answers turn n of a conversation with turn n of its script.

    A conversation is known by `<<name>>` in its first user message; the turn is the number of assistant
    messages since. So sessions side by side, resumed ones and subagents need no state here. What stands in
    `queues` under the name is answered turn by turn instead, for prompts whose number of turns is the host's.
    """

    def __init__(self) -> None:
        self.scripts: dict[str, list[Turn]] = {}
        self.queues: dict[str, list[Turn]] = {}
        self.bodies: list[dict[str, Any]] = []
        self._count = 0
        self._lock = threading.Lock()
        server = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_HEAD(self) -> None:
                self.send_response(200)
                self.send_header("content-length", "0")
                self.end_headers()

            do_GET = do_HEAD

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["content-length"])))
                data = server.answer(body)
                self.send_response(200)
                self.send_header("content-type", "text/event-stream")
                self.send_header("content-length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *args: object) -> None:
                pass

        self._http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._http.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._http.server_address[1]}"

    @contextmanager
    def running(self) -> Iterator["MessagesServer"]:
        thread = threading.Thread(target=self._http.serve_forever, args=(0.02,), daemon=True)
        thread.start()
        try:
            yield self
        finally:
            self._http.shutdown()
            self._http.server_close()
            thread.join()

    def answer(self, body: dict[str, Any]) -> bytes:
        """The reply to one request, as a stream of events."""
        with self._lock:
            self.bodies.append(body)
            self._count += 1
            number = self._count
        return b"".join(_events(self._turn(body), number))

    def _turn(self, body: dict[str, Any]) -> Turn:
        messages = body.get("messages", [])
        first = json.dumps([one for one in messages if one["role"] == "user"][:1])
        found = re.search(r"<<(\w+)>>", first)
        if found is None or not body.get("tools"):
            return [text("ok")]
        if found[1] in self.queues:
            queue = self.queues[found[1]]
            return queue.pop(0) if queue else [text("nothing more to say")]
        script = self.scripts[found[1]]
        step = sum(one["role"] == "assistant" for one in messages)
        return script[step] if step < len(script) else [text("nothing more to say")]


def _events(turn: Turn, number: int) -> Iterator[bytes]:
    usage = {"input_tokens": 10, "output_tokens": 5}
    start = {
        "id": f"msg_{number:06}", "type": "message", "role": "assistant", "model": "claude-sonnet-4-5",
        "content": [], "stop_reason": None, "stop_sequence": None, "usage": usage,
    }  # fmt: skip
    yield _event("message_start", message=start)
    for index, block in enumerate(turn):
        if block["type"] == "text":
            yield _event("content_block_start", index=index, content_block={"type": "text", "text": ""})
            yield _event(
                "content_block_delta", index=index, delta={"type": "text_delta", "text": block["text"]}
            )
        else:
            opened = {
                "type": "tool_use",
                "id": f"toolu_{number:06}{index:02}",
                "name": block["name"],
                "input": {},
            }
            yield _event("content_block_start", index=index, content_block=opened)
            part = {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
            yield _event("content_block_delta", index=index, delta=part)
        yield _event("content_block_stop", index=index)
    reason = "tool_use" if any(block["type"] == "tool_use" for block in turn) else "end_turn"
    yield _event("message_delta", delta={"stop_reason": reason, "stop_sequence": None}, usage=usage)
    yield _event("message_stop")


def _event(kind: str, **fields: Any) -> bytes:
    return f"event: {kind}\ndata: {json.dumps({'type': kind, **fields})}\n\n".encode()
