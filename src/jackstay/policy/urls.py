"""Which place does an address really name, and does a pattern cover it? Judged by parts, never by text."""

import re
from functools import lru_cache
from urllib.parse import unquote

import msgspec

from jackstay.policy.patterns import has_pattern

_PARTS = re.compile(
    r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*)://(?P<place>[^/?#]*)(?P<path>[^?#]*)(?P<rest>.*)", re.DOTALL
)
_PLACE = re.compile(r"(?:(?P<user>.*)@)?(?P<host>\[[^\]]*\]|[^:]*)(?::(?P<port>\d*))?", re.DOTALL)
_PORTS = {"http": 80, "https": 443, "ws": 80, "wss": 443, "ftp": 21}
_DOTS = str.maketrans({"\u3002": ".", "\uff0e": ".", "\uff61": "."})
_NUMBER = re.compile(r"(?:0[xX][0-9a-fA-F]*|[0-9]+)\Z")


class Address(msgspec.Struct, frozen=True, gc=False):
    """An address taken apart. `doubt` says why programs could read it differently: then it is never allowed."""

    scheme: str
    host: str
    port: int | None
    path: str
    query: str
    user: bool = False
    doubt: str | None = None

    @property
    def text(self) -> str:
        """The address as it was understood."""
        port = f":{self.port}" if self.port is not None and self.port != _PORTS.get(self.scheme) else ""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{host}{port}{self.path}{self.query}"


@lru_cache(1024)
def read_address(text: str) -> Address:
    """The address as a client reads it: host in lower case without trailing dot, numbers as dotted numbers,
    international names in their ASCII form, `.` and `..` taken out of the path. Without a scheme: https."""
    whole = text.strip(" ")
    doubt = _odd(whole)
    if not re.match(r"[A-Za-z][A-Za-z0-9+.-]*://", whole):
        whole = "https://" + whole.lstrip("/")
    parts = _PARTS.match(whole.replace("\\", "/"))
    place = _PLACE.fullmatch(parts["place"]) if parts else None
    if parts is None or place is None:
        return Address("", "", None, "", "", doubt=doubt or "it cannot be read as an address")
    scheme = parts["scheme"].lower()
    host, host_doubt = host_of(place["host"])
    port = _port(place["port"]) if place["port"] else _PORTS.get(scheme)
    path, query = _path(parts["path"]), parts["rest"].partition("#")[0]
    return Address(scheme, host, port, path, query, place["user"] is not None, doubt or host_doubt)


def _odd(text: str) -> str | None:
    for char in text:
        if char == "\\":
            return "a backslash, which some programs read as '/'"
        if not char.isprintable() or char.isspace():
            return f"a blank or control character (U+{ord(char):04X})"
    if re.match(r"(https?|ftp|file|data|javascript|view-source):(?!//)", text, re.IGNORECASE):
        return "a scheme without '//'"
    return None


def _port(text: str) -> int | None:
    return int(text) if len(text) <= 5 else -1


def host_of(written: str) -> tuple[str, str | None]:
    """A host name in the one form that names are compared in, and why it is doubtful."""
    host = unquote(written).translate(_DOTS).lower()
    if host.startswith("["):
        return _ipv6(host.strip("[]"))
    host = host.removesuffix(".") if not host.endswith("..") else host
    if not host:
        return "", "it names no host"
    if not host.isascii():
        try:
            host = host.encode("idna").decode("ascii").lower()
        except UnicodeError:
            return host, f"{host!r} is not a valid international name"
    if re.search(r"[^a-z0-9._-]", host) or ".." in host:
        return host, f"{host!r} is not a host name"
    last = host.rpartition(".")[2]
    return _ipv4(host) if _NUMBER.match(last) else (host, None)


def _ipv4(host: str) -> tuple[str, str | None]:
    """Every form that inet_aton takes: 127.1, 0x7f.0.0.1, 2130706433, 0177.0.0.1."""
    pieces = host.split(".")
    if len(pieces) > 4 or not all(_NUMBER.match(piece) for piece in pieces):
        return host, f"{host!r} is neither a name nor a number"
    try:
        numbers = [_number(piece) for piece in pieces]
    except ValueError:
        return host, f"{host!r} is neither a name nor a number"
    most = 256 ** (5 - len(numbers))
    if any(number > 255 for number in numbers[:-1]) or numbers[-1] >= most:
        return host, f"{host!r} is out of range for an address"
    value = numbers[-1]
    for position, number in enumerate(numbers[:-1]):
        value += number << (8 * (3 - position))
    return ".".join(str(value >> shift & 255) for shift in (24, 16, 8, 0)), None


def _number(piece: str) -> int:
    if piece[:2] == "0x":
        return int(piece[2:] or "0", 16)
    return int(piece, 8) if len(piece) > 1 and piece.startswith("0") else int(piece)


def _ipv6(host: str) -> tuple[str, str | None]:
    from ipaddress import IPv6Address

    try:
        address = IPv6Address(host)
    except ValueError:
        return host, f"{host!r} is not an address"
    if address.ipv4_mapped is not None:
        return str(address.ipv4_mapped), None
    inner = address.sixtofour or (address.teredo or (None, None))[1] or _carried(int(address))
    return str(address), None if inner is None else f"{host!r} may lead to {inner}"


def _carried(number: int) -> str | None:
    """The address in the last four bytes, where a gateway (64:ff9b::/96) or an old program (::/96) may go."""
    if number >> 32 not in (0x64FF9B << 64, 0) or number < 1 << 16:
        return None
    return ".".join(str(number >> shift & 255) for shift in (24, 16, 8, 0))


def _path(written: str) -> str:
    """The path with harmless escapes undone and dot segments taken out."""
    plain = re.sub(
        r"%([0-9A-Fa-f]{2})",
        lambda m: chr(int(m[1], 16)) if chr(int(m[1], 16)) in _UNRESERVED else m[0].upper(),
        written or "/",
    )
    kept: list[str] = []
    pieces = plain.split("/")[1:]
    for piece in pieces:
        if piece == "..":
            kept = kept[:-1]
        elif piece != ".":
            kept.append(piece)
    if pieces and pieces[-1] in (".", ".."):
        kept.append("")
    return "/" + "/".join(kept)


_UNRESERVED = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")


class AddressPattern(msgspec.Struct, frozen=True, gc=False):
    """A pattern for addresses, part by part; None stands for any."""

    scheme: str | None
    host: re.Pattern[str]
    port: int | None
    path: re.Pattern[str] | None

    def allows(self, address: Address) -> bool:
        """Does it name the address, with the scheme's own port unless it names one, and nothing doubtful?"""
        if address.doubt or address.user or (self.scheme is None and address.scheme not in ("http", "https")):
            return False
        wanted = self.port if self.port is not None else _PORTS.get(address.scheme)
        return address.port == wanted and self._meets(address)

    def forbids(self, address: Address) -> bool:
        """Does it name the address, on any port unless it names one, whoever logs in?"""
        return (self.port is None or self.port == address.port) and self._meets(address)

    def _meets(self, address: Address) -> bool:
        if self.scheme is not None and self.scheme != address.scheme:
            return False
        if self.host.fullmatch(address.host) is None:
            return False
        return self.path is None or self.path.fullmatch(address.path + address.query) is not None


@lru_cache(1024)
def address_pattern(pattern: str, *, wide: bool) -> AddressPattern:
    """A pattern taken apart. `wide` is for rules that forbid: every `*` crosses everything.

    `host` alone stands for all of that host, `https://host` for its front page, `https://host*` and
    `https://host/dir/*` for all beneath; `*.host` for its sub-domains.
    """
    scheme, sep, rest = pattern.partition("://")
    if not sep:
        scheme, rest = "*", pattern
    place, slash, path = rest.partition("/")
    host, port = place, None
    if colon := re.fullmatch(r"(.*):(\d+)", place):
        host, port = colon[1], int(colon[2])
    loose_end = not slash and host.endswith("*") and len(host) > 1
    if loose_end and not wide:
        host = host[:-1]
    whole_host = not slash and (not sep or loose_end or host == "*")
    return AddressPattern(
        None if scheme == "*" else scheme.lower(),
        _host_pattern(host),
        port,
        None if whole_host else _path_pattern("/" + path, wide=wide),
    )


def _host_pattern(host: str) -> re.Pattern[str]:
    if has_pattern(host):
        plain = host.lower().removesuffix(".")
        return re.compile("".join(".*" if c == "*" else "." if c == "?" else re.escape(c) for c in plain))
    return re.compile(re.escape(host_of(host)[0]))


def _path_pattern(path: str, *, wide: bool) -> re.Pattern[str]:
    """A `*` at the end covers the rest, elsewhere it stays within one segment; `**` crosses."""
    body, tail = (path.rstrip("*"), ".*") if path.endswith("*") else (path, "")
    middle = ".*" if wide else "[^/?]*"
    pieces = re.split(r"(\*+|\?)", body)
    turned = {"*": middle, "?": r"\?" if not wide else "."}
    return re.compile(
        "".join(turned.get(p, ".*" if p.startswith("**") else re.escape(p)) for p in pieces) + tail, re.DOTALL
    )
