"""A model server on 127.0.0.1: speaks chat completions and Messages from a script, misbehaves when told.

In a test:            with Loopback([{"say": "hello"}]) as server: … server.openai_url … server.requests …
As a process:         python tests/loopback.py --script answers.json     (prints its port, ends with its stdin)

An answer is a dict. What it says:
  say, think      text and thinking (streamed `step` characters at a time, default 8)
  calls           [{"tool": …, "args": {…}}]; `id` names the call, `raw` is argument text instead of `args`
  usage           [input, output] tokens (default [10, 5]); None: not sent
  stop            the wire's own word for the end, instead of the usual one
  model           the model's name in the answer
  events          verbatim stream: JSON values, or strings for `data:`, instead of all above
  raw             verbatim body, with `content_type`
  plain           true: one JSON object although a stream was asked for
How it goes wrong:
  status, error, headers   an error status with this message (or whole body) and headers
  fault           half (breaks off), quiet_half (ends well-formed, in the middle), hang (goes silent),
                  slow_headers (never answers), junk, empty_body, error_event, disconnect,
                  late_end (the end of the body comes 50 ms after its last event), open_end (it never comes)
  at              after how many events the fault comes (default 2); error_event sends `error`
  pieces          bytes per write: 1 splits every character
  wait_s          seconds of waiting before the answer
"""

import argparse
import asyncio
import contextlib
import json
import ssl
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

Answer = dict[str, Any]
Script = Sequence[Answer] | Callable[[dict[str, Any]], Answer]


class Seen(NamedTuple):
    """One request as it came in; `target` is the request line's, whole where we were used as a proxy."""

    path: str
    headers: dict[str, str]
    body: Any
    target: str
    connection: int


class _Line(NamedTuple):
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter


class Loopback:
    """The server, as a context manager with a thread of its own."""

    def __init__(
        self,
        script: Script = (),
        *,
        cycle: bool = False,
        by_turn: bool = False,
        tls: tuple[str, str] | None = None,
    ) -> None:
        """`cycle` begins the script again at its end; `by_turn` picks the answer by the number of assistant
        messages in the request, so that several sessions or processes can share a script; `tls` is a
        certificate and its key, as files.
        """
        self._script, self._cycle, self._by_turn, self._tls = script, cycle, by_turn, tls
        self.requests: list[Seen] = []
        self.connections = 0
        self.dropped = 0  # connections that the client closed while an answer was going out
        self._calls = 0
        self._tasks: set[asyncio.Task[None]] = set()
        self._loop = asyncio.new_event_loop()
        self._ready = threading.Event()
        self._stop = asyncio.Event()
        self._thread = threading.Thread(target=self._run, name="loopback", daemon=True)
        self.port = 0

    def __enter__(self) -> "Loopback":
        self._thread.start()
        self._ready.wait()
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join()

    @property
    def url(self) -> str:
        """What ANTHROPIC_BASE_URL would hold."""
        return f"{'https' if self._tls else 'http'}://127.0.0.1:{self.port}"

    @property
    def openai_url(self) -> str:
        """What OPENAI_BASE_URL would hold."""
        return self.url + "/v1"

    @property
    def bodies(self) -> list[Any]:
        """The bodies of the requests so far."""
        return [seen.body for seen in self.requests]

    # -- the server ----------------------------------------------------------------------------------------

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_until_complete(self._serve())
        finally:
            self._loop.close()

    async def _serve(self) -> None:
        context = None
        if self._tls:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(*self._tls)
        server = await asyncio.start_server(self._connected, "127.0.0.1", 0, ssl=context)
        self.port = server.sockets[0].getsockname()[1]
        self._ready.set()
        await self._stop.wait()
        server.close()
        for task in list(self._tasks):
            task.cancel()
        for task in list(self._tasks):
            with contextlib.suppress(asyncio.CancelledError):
                await task

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        self.connections += 1
        number = self.connections
        try:
            while await self._exchange(reader, writer, number):
                pass
        except ConnectionError:
            self.dropped += 1
        except asyncio.CancelledError:
            pass  # the server stops; nobody waits for this connection
        finally:
            self._tasks.discard(task)
            writer.close()
            with contextlib.suppress(OSError, asyncio.CancelledError):
                await writer.wait_closed()

    async def _exchange(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, number: int) -> bool:
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        except asyncio.IncompleteReadError:
            return False
        line, *rest = head.split("\r\n")
        method, target, _ = line.split(" ")
        headers = {name.lower(): value.strip() for name, _, value in (h.partition(":") for h in rest if h)}
        data = await reader.readexactly(int(headers.get("content-length", "0")))
        path = urlsplit(target).path
        if method == "GET":
            await _send_whole(writer, 200, {"object": "list", "data": []})
            return True
        body = json.loads(data) if data else None
        self.requests.append(Seen(path, headers, body, target, number))
        wire = _Anthropic(self) if path.endswith("/messages") else _OpenAI(self)
        if not path.endswith(("/messages", "/chat/completions")):
            await _send_whole(writer, 404, {"error": {"message": f"no such path: {path}"}})
            return True
        return await self._answer(self._pick(body), wire, body, _Line(reader, writer))

    def _pick(self, body: dict[str, Any]) -> Answer:
        if callable(self._script):
            return self._script(body)
        position = len(self.requests) - 1
        if self._by_turn:
            position = sum(message["role"] == "assistant" for message in body["messages"])
        if self._cycle:
            position %= len(self._script)
        if position < len(self._script):
            return self._script[position]
        return {"status": 400, "error": f"the loopback script ends before answer {position + 1}"}

    async def _answer(self, answer: Answer, wire: "_Wire", body: Any, line: _Line) -> bool:
        reader, writer = line
        fault = answer.get("fault")
        if wait := answer.get("wait_s"):
            await asyncio.sleep(wait)
        if fault == "slow_headers":
            await _until_gone(reader)
            return False
        if fault == "disconnect":
            return False
        if "status" in answer:
            error = answer.get("error", "scripted failure")
            body = wire.error(error, answer["status"]) if isinstance(error, str) else error
            await _send_whole(writer, answer["status"], body, answer.get("headers"))
            return True
        if fault == "empty_body":
            await _send_whole(writer, 200, b"", {"content-type": "text/event-stream"})
            return True
        if fault == "junk":
            page = b"<html><body>Sign in to the hotel network</body></html>"
            await _send_whole(writer, 200, page, {"content-type": "text/html"})
            return True
        if "raw" in answer:
            raw = answer["raw"]
            kind = {"content-type": answer.get("content_type", "text/event-stream")}
            await _send_whole(writer, 200, raw.encode() if isinstance(raw, str) else raw, kind)
            return True
        if answer.get("plain") or not body.get("stream"):
            await _send_whole(writer, 200, wire.whole(answer))
            return True
        return await self._stream(answer, wire, body, line)

    async def _stream(self, answer: Answer, wire: "_Wire", body: Any, line: _Line) -> bool:
        reader, writer = line
        fault, at = answer.get("fault"), answer.get("at", 2)
        writer.write(
            b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
        )
        events = answer.get("events")
        stream = wire.stream(answer, body) if events is None else (wire.frame(event) for event in events)
        for count, event in enumerate(stream):
            if count == at and fault is not None:
                match fault:
                    case "half":
                        await writer.drain()
                        return False
                    case "hang":
                        await writer.drain()
                        await _until_gone(reader)
                        return False
                    case "quiet_half":
                        break
                    case "error_event":
                        await self._write(writer, wire.error_event(answer.get("error", "overloaded")), answer)
                        break
            await self._write(writer, event, answer)
        await writer.drain()
        if fault == "late_end":
            await asyncio.sleep(0.05)
        elif fault == "open_end":
            await _until_gone(reader)
        writer.write(b"0\r\n\r\n")
        await writer.drain()
        return fault != "open_end"

    async def _write(self, writer: asyncio.StreamWriter, data: bytes, answer: Answer) -> None:
        size = answer.get("pieces")
        if size is None:
            writer.write(b"%x\r\n%b\r\n" % (len(data), data))
            return
        for start in range(0, len(data), size):
            piece = data[start : start + size]
            writer.write(b"%x\r\n%b\r\n" % (len(piece), piece))
            await writer.drain()
            await asyncio.sleep(0)

    def next_call_id(self, prefix: str) -> str:
        """An id that no other call of this server has."""
        self._calls += 1
        return f"{prefix}{self._calls:04d}"


async def _until_gone(reader: asyncio.StreamReader) -> None:
    """Say nothing until the client hangs up (the server's end cancels this as well)."""
    while await reader.read(1024):
        pass


async def _send_whole(
    writer: asyncio.StreamWriter, status: int, body: Any, headers: dict[str, str] | None = None
) -> None:
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    named = {"content-type": "application/json", "content-length": str(len(data)), **(headers or {})}
    lines = "".join(f"{name}: {value}\r\n" for name, value in named.items())
    writer.write(f"HTTP/1.1 {status} Scripted\r\n{lines}\r\n".encode() + data)
    await writer.drain()


# -- the two wire forms ------------------------------------------------------------------------------------


def _pieces(text: str, size: int) -> Iterator[str]:
    return (text[i : i + size] for i in range(0, len(text), size))


def _raw_args(call: dict[str, Any]) -> str:
    return call["raw"] if "raw" in call else json.dumps(call.get("args", {}))


_ERROR_TYPES = {
    400: "invalid_request_error", 401: "authentication_error", 403: "permission_error", 404: "not_found_error",
    413: "request_too_large", 429: "rate_limit_error", 529: "overloaded_error",
}  # fmt: skip


class _Wire:
    def __init__(self, server: Loopback) -> None:
        self._server = server

    def frame(self, event: Any) -> bytes:
        text = event if isinstance(event, str) else json.dumps(event, ensure_ascii=False)
        return f"data: {text}\n\n".encode()

    def error(self, text: str, status: int = 529) -> Any:
        raise NotImplementedError

    def error_event(self, error: Any) -> bytes:
        return self.frame(self.error(error) if isinstance(error, str) else error)

    def whole(self, answer: Answer) -> Any:
        raise NotImplementedError

    def stream(self, answer: Answer, body: Any) -> Iterator[bytes]:
        raise NotImplementedError


class _OpenAI(_Wire):
    def error(self, text: str, status: int = 529) -> Any:
        kind = _ERROR_TYPES.get(status, "server_error")
        return {"error": {"message": text, "type": kind, "code": None, "param": None}}

    def _usage(self, answer: Answer) -> Any:
        given = answer.get("usage", [10, 5])
        if given is None:
            return None
        return {"prompt_tokens": given[0], "completion_tokens": given[1], "total_tokens": sum(given)}

    def _stop(self, answer: Answer) -> str:
        return answer.get("stop") or ("tool_calls" if answer.get("calls") else "stop")

    def _calls(self, answer: Answer) -> list[dict[str, Any]]:
        return [
            {
                "id": call.get("id", None) if "id" in call else self._server.next_call_id("call_"),
                "type": "function",
                "function": {"name": call["tool"], "arguments": _raw_args(call)},
            }
            for call in answer.get("calls", ())
        ]

    def whole(self, answer: Answer) -> Any:
        message: dict[str, Any] = {"role": "assistant", "content": answer.get("say") or None}
        if answer.get("think"):
            message["reasoning_content"] = answer["think"]
        if calls := self._calls(answer):
            message["tool_calls"] = calls
        choice = {"index": 0, "message": message, "finish_reason": self._stop(answer)}
        model = answer.get("model", "loopback")
        return {"id": "chatcmpl-1", "model": model, "choices": [choice], "usage": self._usage(answer)}

    def stream(self, answer: Answer, body: Any) -> Iterator[bytes]:
        base = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "loopback"}
        base |= {"model": answer["model"]} if "model" in answer else {}

        def chunk(delta: dict[str, Any], stop: str | None = None) -> bytes:
            return self.frame({**base, "choices": [{"index": 0, "delta": delta, "finish_reason": stop}]})

        step = answer.get("step", 8)
        yield chunk({"role": "assistant", "content": ""})
        for piece in _pieces(answer.get("think", ""), step):
            yield chunk({"reasoning_content": piece})
        for piece in _pieces(answer.get("say", ""), step):
            yield chunk({"content": piece})
        for index, call in enumerate(self._calls(answer)):
            function = call["function"]
            first = {**call, "index": index, "function": {"name": function["name"], "arguments": ""}}
            yield chunk({"tool_calls": [first]})
            for piece in _pieces(function["arguments"], step):
                yield chunk({"tool_calls": [{"index": index, "function": {"arguments": piece}}]})
        yield chunk({}, self._stop(answer))
        if (body.get("stream_options") or {}).get("include_usage") and (usage := self._usage(answer)):
            yield self.frame({**base, "choices": [], "usage": usage})
        yield self.frame("[DONE]")


class _Anthropic(_Wire):
    def frame(self, event: Any) -> bytes:
        name = event.get("type", "") if isinstance(event, dict) else ""
        return (f"event: {name}\n".encode() if name else b"") + super().frame(event)

    def error(self, text: str, status: int = 529) -> Any:
        kind = _ERROR_TYPES.get(status, "api_error")
        return {"type": "error", "error": {"type": kind, "message": text}}

    def _usage(self, answer: Answer) -> tuple[dict[str, int], dict[str, int]]:
        given = answer.get("usage", [10, 5])
        return ({}, {}) if given is None else ({"input_tokens": given[0]}, {"output_tokens": given[1]})

    def _stop(self, answer: Answer) -> str:
        return answer.get("stop") or ("tool_use" if answer.get("calls") else "end_turn")

    def _blocks(self, answer: Answer) -> Iterator[tuple[dict[str, Any], str, str]]:
        if think := answer.get("think"):
            yield {"type": "thinking", "thinking": "", "signature": ""}, "thinking", think
        if say := answer.get("say"):
            yield {"type": "text", "text": ""}, "text", say
        for call in answer.get("calls", ()):
            call_id = call.get("id") if "id" in call else self._server.next_call_id("toolu_")
            block = {"type": "tool_use", "id": call_id or "", "name": call["tool"], "input": {}}
            yield block, "input_json", _raw_args(call)

    def whole(self, answer: Answer) -> Any:
        content = []
        for block, kind, text in self._blocks(answer):
            field = "input" if kind == "input_json" else kind
            content.append({**block, field: json.loads(text) if field == "input" else text})
        return self._start(answer, content, self._stop(answer))["message"]

    def _start(self, answer: Answer, content: list[Any], stop: str | None) -> dict[str, Any]:
        before, after = self._usage(answer)
        usage = {**before, **(after if stop else {"output_tokens": 1} if before else {})}
        message = {"id": "msg_1", "type": "message", "role": "assistant", "content": content}
        message |= {"model": answer.get("model", "loopback"), "stop_reason": stop, "usage": usage}
        return {"type": "message_start", "message": message}

    def stream(self, answer: Answer, body: Any) -> Iterator[bytes]:
        yield self.frame(self._start(answer, [], None))
        yield self.frame({"type": "ping"})
        fields = {"input_json": "partial_json"}
        for index, (block, kind, text) in enumerate(self._blocks(answer)):
            yield self.frame({"type": "content_block_start", "index": index, "content_block": block})
            for piece in _pieces(text, answer.get("step", 8)):
                delta = {"type": f"{kind}_delta", fields.get(kind, kind): piece}
                yield self.frame({"type": "content_block_delta", "index": index, "delta": delta})
            if kind == "thinking":
                delta = {"type": "signature_delta", "signature": "c2lnbmVk"}
                yield self.frame({"type": "content_block_delta", "index": index, "delta": delta})
            yield self.frame({"type": "content_block_stop", "index": index})
        end = {"stop_reason": self._stop(answer), "stop_sequence": None}
        yield self.frame({"type": "message_delta", "delta": end, "usage": self._usage(answer)[1]})
        yield self.frame({"type": "message_stop"})


def main() -> None:
    """Serve a script file until standard input ends; the port is the first line of standard output."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--script", required=True, help="a JSON file: a list of answers")
    parser.add_argument("--cycle", action="store_true", help="begin again at the end of the script")
    parser.add_argument("--by-turn", action="store_true", help="pick answers by assistant messages so far")
    parser.add_argument("--log", help="append each request's body to this file, one JSON object a line")
    args = parser.parse_args()
    script = json.loads(Path(args.script).read_text("utf-8"))
    with Loopback(script, cycle=args.cycle, by_turn=args.by_turn) as server:
        print(server.port, flush=True)
        sys.stdin.read()
        if args.log:
            with Path(args.log).open("a", encoding="utf-8") as log:
                log.writelines(json.dumps(body) + "\n" for body in server.bodies)


if __name__ == "__main__":
    main()
