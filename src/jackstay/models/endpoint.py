"""Where does a model answer, and as whom do we ask?"""

from collections.abc import Callable, Mapping
from urllib.parse import urlsplit, urlunsplit

import msgspec

from jackstay.core.errors import ConfigError
from jackstay.core.messages import JsonObject
from jackstay.core.tools import ToolSpec
from jackstay.models.assemble import to_json
from jackstay.models.faults import Peer
from jackstay.models.http import HttpOptions, checked_url

_MOST_TOOL_LISTS = 32
_OURS = {
    "model": "", "messages": "", "stream": "", "tools": "", "system": "",
    "max_tokens": "give `max_output_tokens`", "max_completion_tokens": "give `max_output_tokens`",
}  # fmt: skip


class Endpoint(msgspec.Struct, frozen=True):
    """One model at one server.

    `name` is what messages and records call it (default: `model`). `key_name` is the variable that the key
    comes from, for the hint in an error. `context_length` and `max_output_tokens` are tokens; None takes what
    is known of the model's family. `body` is more fields for every request (`temperature`, `thinking`, …).
    """

    model: str
    base_url: str
    key: str | None = None
    key_name: str | None = None
    name: str = ""
    context_length: int | None = None
    max_output_tokens: int | None = None
    body: JsonObject = {}
    http: HttpOptions = HttpOptions()

    def __post_init__(self) -> None:
        """Raises ConfigError when `base_url` is no server's address."""
        checked_url(self.base_url)

    @property
    def host(self) -> str:
        """The server's name alone."""
        return urlsplit(self.base_url).hostname or ""

    def peer(self) -> Peer:
        """Who answers, for errors: host and port, never user or key."""
        parts = urlsplit(self.base_url)
        host = f"{parts.hostname}:{parts.port}" if parts.port else str(parts.hostname)
        secrets = (self.key, parts.password, *_secrets(self.http.headers))
        return Peer(host, self.key_name, tuple(secret for secret in secrets if secret))


def _secrets(headers: Mapping[str, str]) -> list[str]:
    return [word for value in headers.values() for word in value.split()]


class ToolLists:
    """Encodes each tuple of tools once: it is the same object from turn to turn."""

    def __init__(self, describe: Callable[[ToolSpec], JsonObject]) -> None:
        self._describe = describe
        self._made: dict[int, tuple[tuple[ToolSpec, ...], bytes]] = {}

    def encoded(self, tools: tuple[ToolSpec, ...]) -> bytes:
        """The wire form of the tools, without the brackets of the list."""
        known = self._made.get(id(tools))
        if known is not None:
            return known[1]
        if len(self._made) >= _MOST_TOOL_LISTS:
            self._made.clear()
        data = b",".join(to_json(self._describe(tool)) for tool in tools)
        self._made[id(tools)] = (tools, data)  # the tuple is kept, so that its id stays its own
        return data


def more_fields(body: JsonObject) -> bytes:
    """The endpoint's own request fields, as the inside of an object. Raises ConfigError for one of ours."""
    for name in body:
        if name in _OURS:
            hint = _OURS[name]
            raise ConfigError(f"the request field {name!r} is set by jackstay and cannot be given", hint=hint)
    return b"," + to_json(body)[1:-1] if body else b""


def joined(base_url: str, path: str) -> str:
    """The URL of an API path below a base URL, whose query (if any) stays."""
    parts = urlsplit(base_url)
    base = parts.path.rstrip("/")
    full = base if base.endswith(path) else base + path
    return urlunsplit((parts.scheme, parts.netloc, full, parts.query, ""))
