"""What would a model say next? A loopback server that answers chat completions from a script, one line a request."""

import json
import threading
from collections.abc import Iterator, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Turn = dict[str, Any]


def says(text: str, *calls: tuple[str, dict[str, Any]], to: str = "") -> Turn:
    """One reply of the model: text, and the calls beside it as (tool, arguments).

    With `to` it is for the conversation that begins with a user's message holding these words: where agents
    run side by side, their requests come in any order.
    """
    return {"text": text, "calls": calls, "to": to}


class ChatServer:
    """Serves one script after another; keeps every request that offered tools."""

    def __init__(self) -> None:
        self.requests: list[dict[str, Any]] = []
        self._script: list[Turn] = []
        self._count = 0
        self._lock = threading.Lock()
        owner = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                self._send(
                    b'{"object":"list","data":[{"id":"probe-model","object":"model"}]}', "application/json"
                )

            def do_POST(self) -> None:
                request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                chunks = owner._answer(request)
                if request.get("stream"):
                    body = b"".join(b"data: " + json.dumps(c).encode() + b"\n\n" for c in chunks)
                    self._send(body + b"data: [DONE]\n\n", "text/event-stream")
                else:
                    self._send(json.dumps(_whole(chunks)).encode(), "application/json")

            def _send(self, body: bytes, kind: str) -> None:
                self.send_response(200)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *args: Any) -> None:
                pass

        self._http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._http.daemon_threads = True
        self.port: int = self._http.server_address[1]
        self._thread = threading.Thread(target=self._http.serve_forever, daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()

    def script(self, turns: Sequence[Turn]) -> None:
        """Answer the next requests with these; what an earlier script left is dropped."""
        with self._lock:
            self._script = list(turns)
            self.requests = []

    @property
    def left(self) -> int:
        """How many replies nobody has asked for."""
        return len(self._script)

    def _answer(self, request: dict[str, Any]) -> list[dict[str, Any]]:
        with self._lock:
            if not request.get("tools"):
                return list(self._chunks(says("a title")))
            self.requests.append(request)
            turn = self._next(request)
            return list(self._chunks(turn))

    def _next(self, request: dict[str, Any]) -> Turn:
        first = json.dumps(next((m for m in request["messages"] if m["role"] == "user"), ""))
        mine = [turn for turn in self._script if turn.get("to") and turn["to"] in first]
        for turn in mine or [turn for turn in self._script if not turn.get("to")]:
            self._script.remove(turn)
            return turn
        return says("THE SCRIPT IS AT ITS END")

    def _chunks(self, turn: Turn) -> Iterator[dict[str, Any]]:
        def chunk(delta: dict[str, Any], finish: str | None = None) -> dict[str, Any]:
            return {
                "id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "probe-model",
                "choices": [{"index": 0, "delta": delta, "finish_reason": finish}],
            }  # fmt: skip

        yield chunk({"role": "assistant", "content": turn["text"]})
        for index, (tool, args) in enumerate(turn["calls"]):
            self._count += 1
            said = args if isinstance(args, str) else json.dumps(args)
            function = {"name": tool, "arguments": said}
            call = {"index": index, "id": f"call_{self._count}", "type": "function", "function": function}
            yield chunk({"tool_calls": [call]})
        yield chunk({}, "tool_calls" if turn["calls"] else "stop")
        usage = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
        yield {**chunk({}), "choices": [], "usage": usage}


def _whole(chunks: list[dict[str, Any]]) -> dict[str, Any]:
    """The same reply for a client that does not stream."""
    deltas = [c["choices"][0]["delta"] for c in chunks if c["choices"]]
    calls = [call for delta in deltas for call in delta.get("tool_calls", [])]
    message = {"role": "assistant", "content": "".join(d.get("content") or "" for d in deltas)}
    if calls:
        message["tool_calls"] = [{k: v for k, v in call.items() if k != "index"} for call in calls]
    finish = "tool_calls" if calls else "stop"
    return {
        "id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": "probe-model",
        "choices": [{"index": 0, "message": message, "finish_reason": finish}],
        "usage": {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15},
    }  # fmt: skip
