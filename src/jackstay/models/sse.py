"""Which server-sent events does a stream of bytes hold?

Works on bytes, so a character split between chunks needs no care: an event is only read when it is whole.
The common case (one `data:` line, LF line ends, chunks that end with an event) costs one split and one slice.
"""

Sse = tuple[str, bytes]  # the event's name ("" when it has none) and its data

_BOM = b"\xef\xbb\xbf"


class SseParser:
    """Reads one stream. Feed it chunks of any size; each event comes out once, when its blank line is there."""

    __slots__ = ("_buffer", "_held", "_started")

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._held = False  # the last chunk ended with a CR whose LF may still come
        self._started = False

    def feed(self, chunk: bytes) -> list[Sse]:
        """The events that this chunk completes, in order."""
        if self._held or b"\r" in chunk:
            chunk = self._with_plain_line_ends(chunk)
        buffer = self._buffer
        if not buffer:
            blocks = chunk.split(b"\n\n")
        else:
            start = len(buffer) - 1  # never search again what was searched before
            buffer += chunk
            if buffer.find(b"\n\n", start) < 0:
                return []
            blocks = bytes(buffer).split(b"\n\n")
        rest = blocks.pop()
        if buffer or rest:
            self._buffer = bytearray(rest)
        return self._events(blocks)

    def finish(self) -> list[Sse]:
        """The event that the end of the stream leaves without its blank line, if there is one.

        The standard throws it away; servers that forget the last line end are common enough to read it.
        """
        rest = bytes(self._buffer)
        self._buffer, self._held = bytearray(), False
        return self._events([rest])

    def _with_plain_line_ends(self, chunk: bytes) -> bytes:
        if self._held:
            chunk = b"\r" + chunk
        self._held = chunk.endswith(b"\r")
        if self._held:
            chunk = chunk[:-1]
        return chunk.replace(b"\r\n", b"\n").replace(b"\r", b"\n")

    def _events(self, blocks: list[bytes]) -> list[Sse]:
        found: list[Sse] = []
        if blocks and not self._started:
            self._started = True
            blocks[0] = blocks[0].removeprefix(_BOM)
        for block in blocks:
            if block.startswith(b"data: ") and b"\n" not in block:
                found.append(("", block[6:]))
            elif block and (event := _event(block)) is not None:
                found.append(event)
        return found


def _event(block: bytes) -> Sse | None:
    name, data = "", []
    for line in block.split(b"\n"):
        field, _, value = line.partition(b":")  # a comment is a line whose field is empty
        value = value.removeprefix(b" ")
        if field == b"data":
            data.append(value)
        elif field == b"event":
            name = value.decode("utf-8", "replace")
    return (name, b"\n".join(data)) if data else None
