"""Which network addresses may a web tool talk to?"""

import ipaddress
from collections.abc import Callable

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Allow = Callable[[Address], bool]  # lets an address through that is refused otherwise

# After the IANA special-purpose address registries; own tables, because `is_global` differs between Pythons.
_REFUSED_4: tuple[tuple[str, str], ...] = (
    ("0.0.0.0/8", "this machine"), ("10.0.0.0/8", "a private network"),
    ("100.64.0.0/10", "a provider's internal network"), ("127.0.0.0/8", "this machine"),
    ("168.63.129.16/32", "a cloud provider's internal service"),
    ("169.254.0.0/16", "link-local, where cloud metadata is served"), ("172.16.0.0/12", "a private network"),
    ("192.0.0.0/24", "reserved"), ("192.88.99.0/24", "reserved"),
    ("192.0.2.0/24", "reserved for documentation"),
    ("192.168.0.0/16", "a private network"), ("198.18.0.0/15", "reserved for tests"),
    ("198.51.100.0/24", "reserved for documentation"), ("203.0.113.0/24", "reserved for documentation"),
    ("224.0.0.0/4", "multicast"), ("240.0.0.0/4", "reserved"),
)  # fmt: skip
_REFUSED_6: tuple[tuple[str, str], ...] = (
    ("::/128", "this machine"), ("::1/128", "this machine"), ("fc00::/7", "a private network"),
    ("fe80::/10", "link-local"), ("fec0::/10", "a private network"), ("ff00::/8", "multicast"),
    ("2001::/23", "reserved or a tunnel"), ("2001:db8::/32", "reserved for documentation"),
    ("2002::/16", "a tunnel"), ("3fff::/20", "reserved for documentation"),
)  # fmt: skip
_TABLE_4 = tuple((ipaddress.IPv4Network(network), words) for network, words in _REFUSED_4)
_TABLE_6 = tuple((ipaddress.IPv6Network(network), words) for network, words in _REFUSED_6)
_PUBLIC_6 = ipaddress.IPv6Network("2000::/3")
_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")


def refusal(address: Address) -> str | None:
    """Why nobody should be sent to this address; None for one of the public internet.

    An IPv6 address that stands for an IPv4 one (mapped, NAT64) is judged as that one.
    """
    if isinstance(address, ipaddress.IPv4Address):
        return next((words for network, words in _TABLE_4 if address in network), None)
    inner = address.ipv4_mapped
    if inner is None and address in _NAT64:
        inner = ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    if inner is not None:
        return refusal(inner)
    words = next((words for network, words in _TABLE_6 if address in network), None)
    return words or (None if address in _PUBLIC_6 else "not part of the public internet")


def parse_address(text: str) -> Address | None:
    """The text as an IP address, with or without brackets and IPv6 zone; None when it is a name."""
    try:
        return ipaddress.ip_address(text.strip("[]").rstrip(".").partition("%")[0])
    except ValueError:
        return None
