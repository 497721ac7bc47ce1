"""How do bytes get to a model server and back? One pooled client per process and event loop, over aiohttp.

aiohttp because of its CPU cost per request: a third of that of the httpx family. It is imported with the first
request. Nothing is retried here, and no wait is without its limit.
"""

import asyncio
import functools
import io
import ipaddress
import os
import ssl
import time
import weakref
from collections.abc import AsyncGenerator, Mapping
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import urlsplit

import anyio
import msgspec

from jackstay.core.errors import ConfigError, ModelError
from jackstay.models.faults import Peer
from jackstay.models.sse import SseParser

if TYPE_CHECKING:
    from aiohttp import ClientResponse, ClientSession

MAX_REPLY_BYTES = 64 * 1024 * 1024  # an answer longer than this is no answer
MAX_FAULT_BYTES = 64 * 1024  # of a refusal's body that are read
LARGE_BODY = 1024 * 1024  # from this size on aiohttp wants a file, which it sends in pieces
DRAIN_S = 1.0  # how long the end of a stream may lag behind its last event before the connection is dropped
CLOSE_S = 5.0  # how long saying goodbye may take
KEEP_ALIVE_S = 30.0  # how long an idle connection is kept


class Limits(msgspec.Struct, frozen=True):
    """Time limits in seconds: to connect; between two pieces of an answer; for the whole of it."""

    connect_s: float = 15.0
    idle_s: float = 300.0
    total_s: float = 1800.0


class HttpOptions(msgspec.Struct, frozen=True):
    """How to reach a server: more headers, a proxy's URL, a file of CA certificates, time limits."""

    headers: dict[str, str] = {}
    proxy: str | None = None
    ca_file: str | None = None
    limits: Limits = Limits()


class Listener(Protocol):
    """Hears one answer."""

    def hear(self, name: str, data: bytes) -> bool:
        """One event of a stream; True when it was the last one."""
        ...

    def whole(self, data: bytes) -> None:
        """The answer in one piece of JSON, from a server that does not stream."""
        ...


class Client:
    """Sends requests to one URL. Connections are shared with all clients of the same event loop."""

    def __init__(self, url: str, peer: Peer, headers: Mapping[str, str], options: HttpOptions) -> None:
        self._url, self._peer, self._options = url, peer, options
        self._headers = _headers(url, headers, options.headers)
        self._ssl: ssl.SSLContext | bool = True
        if options.ca_file is not None:
            self._ssl = _ssl_context(options.ca_file)
        self._pool: _Pool | None = None
        self._how: dict[str, Any] = {}

    async def ask(self, body: bytes, listener: Listener) -> None:
        """Post the body and let the listener hear the answer. Raises ModelError, and what that raises."""
        session = await self._session()
        try:
            data = body if len(body) < LARGE_BODY else io.BytesIO(body)
            response = await session.post(self._url, data=data, **self._how)
        except _wire_errors() as problem:
            raise self._failure(problem, began=False) from problem
        try:
            if response.status != 200:
                raise await self._refusal(response)
            await self._listen(response, listener)
        finally:
            response.close()  # gives the connection back when the answer was read to its end, else drops it

    async def close(self) -> None:
        """Let go of the shared connections; the last client to do so closes them."""
        pool, self._pool = self._pool, None
        if pool is not None:
            await pool.leave(self)

    async def _session(self) -> "ClientSession":
        loop = asyncio.get_running_loop()
        if self._pool is None or self._pool.loop is not loop:
            self._pool = await _pool_of(loop)
            self._pool.users.add(self)
            self._how = self._arguments()
        return self._pool.session

    def _arguments(self) -> dict[str, Any]:
        import aiohttp

        limits = self._options.limits
        return {
            "headers": self._headers,
            "proxy": self._options.proxy,
            "ssl": self._ssl,
            "allow_redirects": False,  # a redirected POST loses its body or takes the key elsewhere
            "timeout": aiohttp.ClientTimeout(
                total=limits.total_s, connect=limits.connect_s, sock_read=limits.idle_s
            ),
        }

    async def _listen(self, response: "ClientResponse", listener: Listener) -> None:
        kind, chunk = response.content_type, await self._chunk(response)
        if not chunk:
            raise self._peer.error("empty_reply", "sent an answer without a single byte")
        if kind != "text/event-stream" and ("json" in kind or chunk.lstrip()[:1] in (b"{", b"[")):
            listener.whole(await self._rest(response, chunk))
            return
        parser, hear, size, events, start = SseParser(), listener.hear, 0, 0, chunk[:200]
        while chunk:
            size += len(chunk)
            if size > MAX_REPLY_BYTES:
                raise self._too_long()
            for name, data in parser.feed(chunk):
                events += 1
                if hear(name, data):
                    await _drain(response)
                    return
            chunk = await self._chunk(response)
        for name, data in parser.finish():
            events += 1
            hear(name, data)
        if not events:
            raise self._junk(kind, start)

    async def _rest(self, response: "ClientResponse", chunk: bytes) -> bytes:
        pieces, size = [], 0
        while chunk:
            pieces.append(chunk)
            size += len(chunk)
            if size > MAX_REPLY_BYTES:
                raise self._too_long()
            chunk = await self._chunk(response)
        return b"".join(pieces)

    async def _chunk(self, response: "ClientResponse") -> bytes:
        """What has come in; empty at the end."""
        try:
            return await response.content.readany()
        except _wire_errors() as problem:
            raise self._failure(problem, began=True) from problem

    async def _refusal(self, response: "ClientResponse") -> ModelError:
        body = b""
        try:
            while len(body) < MAX_FAULT_BYTES and (chunk := await self._chunk(response)):
                body += chunk
        except ModelError:
            pass  # the status says enough; what of its text arrived is used
        return self._peer.refusal(response.status, response.headers, body[:MAX_FAULT_BYTES], now=time.time())

    def _junk(self, kind: str, start: bytes) -> ModelError:
        sample = start.decode("utf-8", "replace")
        return self._peer.error("broken_reply", f"answered with {kind} that is no model's answer: {sample!r}")

    def _too_long(self) -> ModelError:
        return self._peer.error("broken_reply", f"sent more than {MAX_REPLY_BYTES} bytes in one answer")

    def _failure(self, problem: Exception, *, began: bool) -> ModelError:
        import aiohttp

        limits, text = self._options.limits, str(problem) or type(problem).__name__
        match problem:
            case aiohttp.ConnectionTimeoutError():
                return self._peer.error("timeout", f"could not be connected to within {limits.connect_s:g} s")
            case aiohttp.SocketTimeoutError():
                return self._peer.error("timeout", f"sent nothing for {limits.idle_s:g} s")
            case TimeoutError():
                return self._peer.error("timeout", f"did not finish its answer within {limits.total_s:g} s")
            case ssl.SSLError() | aiohttp.ClientSSLError():
                words = f"could not be trusted: {text}; a file of its CA certificates may be missing"
                return self._peer.error("connection", words)
            case _ if began:
                return self._peer.error("broken_reply", f"broke off its answer: {text}")
            case _:
                words = f"could not be reached: {_unreached(problem) or text}; check that a server runs there"
                return self._peer.error("connection", words)


def _unreached(problem: Exception) -> str:
    """The system's own words for it; empty where it has none."""
    cause = getattr(problem, "os_error", problem)
    if not isinstance(cause, OSError):
        return ""
    return os.strerror(cause.errno) if cause.errno is not None and cause.errno > 0 else cause.strerror or ""


async def _drain(response: "ClientResponse") -> None:
    """Read to the very end, so that the connection can be used again; what comes there says nothing more."""
    if response.content.at_eof():
        return
    with anyio.move_on_after(DRAIN_S):
        try:
            while await response.content.readany():
                pass
        except _wire_errors():
            pass  # the answer was whole before


@functools.cache
def _wire_errors() -> tuple[type[Exception], ...]:
    import aiohttp

    return (aiohttp.ClientError, OSError)  # TimeoutError is an OSError


# -- the pool ----------------------------------------------------------------------------------------------


class _Pool:
    """The connections of one event loop and the clients that use them."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        import aiohttp

        self.loop = loop
        self.users: weakref.WeakSet[Client] = weakref.WeakSet()
        self.session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=KEEP_ALIVE_S),
            cookie_jar=aiohttp.DummyCookieJar(),
            trust_env=False,  # proxies are settled once per model; .netrc must not replace a key
        )

        self._life = self._live()

    async def open(self) -> None:
        """Bind the connections to the loop: `asyncio.run` finishes open generators before it closes its loop,
        so that a program which never closes its models leaves none behind.
        """
        await anext(self._life)

    async def _live(self) -> AsyncGenerator[None, None]:
        try:
            yield
        finally:
            _pools.pop(self.loop, None)
            with anyio.move_on_after(CLOSE_S, shield=True):
                await self.session.close()

    async def leave(self, client: Client) -> None:
        self.users.discard(client)
        if not self.users:
            await self._life.aclose()


_pools: dict[asyncio.AbstractEventLoop, _Pool] = {}


async def _pool_of(loop: asyncio.AbstractEventLoop) -> _Pool:
    pool = _pools.get(loop)
    if pool is None:
        pool = _pools[loop] = _Pool(loop)
        await pool.open()
        for other in list(_pools):
            if other.is_closed():  # it was closed without its open generators being finished
                await _pools.pop(other).session.close()
    return pool


# -- addresses, proxies, certificates ----------------------------------------------------------------------


def checked_url(url: str) -> str:
    """The URL itself. Raises ConfigError when it is no server's address."""
    try:
        parts = urlsplit(url)
        sound = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port or 1) > 0
    except ValueError:
        sound = False
    if not sound:
        raise ConfigError(f"{url!r} is no server's address", hint="it looks like http://127.0.0.1:8080/v1")
    return url


def _headers(url: str, ours: Mapping[str, str], given: Mapping[str, str]) -> dict[str, str]:
    """Our headers, those of the user over them; user and password in the URL stand for a key."""
    for name, value in (*ours.items(), *given.items()):
        if not name.isascii() or not name.isprintable() or not value.isprintable():
            raise ConfigError(f"the header {name!r} holds a character that cannot be sent")
    headers = {name.lower(): value for name, value in (*ours.items(), *given.items())}
    if urlsplit(url).username is not None:
        headers.pop("authorization", None)
    return headers


def is_loopback(host: str) -> bool:
    """Does this name mean the machine we run on?"""
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def proxy_for(url: str, env: Mapping[str, str]) -> str | None:
    """The proxy that HTTP_PROXY, HTTPS_PROXY, ALL_PROXY and NO_PROXY (in either case) name for a URL.

    Never one for this machine itself, as in Go: a proxy could not reach it. None: go there directly.
    """
    parts = urlsplit(url)
    host = parts.hostname or ""
    named = {name.lower(): value for name, value in sorted(env.items()) if name.lower().endswith("_proxy")}
    if is_loopback(host) or any(
        _covers(entry.strip().lower(), host, parts.port) for entry in named.get("no_proxy", "").split(",")
    ):
        return None
    return named.get(f"{parts.scheme}_proxy") or named.get("all_proxy") or None


def _covers(entry: str, host: str, port: int | None) -> bool:
    """Does an entry of NO_PROXY (`*`, a name, a name with a port, an address, a network) mean this host?"""
    if entry == "*":
        return True
    try:
        return ipaddress.ip_address(host) in ipaddress.ip_network(entry, strict=False)
    except ValueError:
        pass  # one of the two is a name
    name, colon, number = entry.partition(":")
    if colon and number != str(port):
        return False
    name = name.removeprefix("*").removeprefix(".")
    return bool(name) and (host == name or host.endswith("." + name))


@functools.cache
def _ssl_context(ca_file: str) -> ssl.SSLContext:
    """Made once per file: it costs 16 ms."""
    try:
        return ssl.create_default_context(cafile=ca_file)
    except (OSError, ssl.SSLError) as problem:
        hint = "name a file of CA certificates in PEM form"
        raise ConfigError(f"the CA file {ca_file!r} cannot be used: {problem}", hint=hint) from problem
