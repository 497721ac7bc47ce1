"""Addresses are judged by their parts: host, port, path; never by their text."""

import pytest

from jackstay.policy.urls import address_pattern, read_address


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("https://FACEBOOK.com./", "https://facebook.com/"),
        ("https://user@facebook.com:443/", "https://facebook.com/"),
        ("https://user:pw@h.org:8443/x", "https://h.org:8443/x"),
        ("http://2130706433/", "http://127.0.0.1/"),
        ("http://0x7f.1/", "http://127.0.0.1/"),
        ("http://0177.0.0.1/", "http://127.0.0.1/"),
        ("http://127.1/", "http://127.0.0.1/"),
        ("http://[::ffff:7f00:1]/", "http://127.0.0.1/"),
        ("http://[0:0::1]:81/", "http://[::1]:81/"),
        ("https://bücher.de/", "https://xn--bcher-kva.de/"),
        ("https://BÜCHER。de/", "https://xn--bcher-kva.de/"),
        ("https://ｅｖｉｌ.com/", "https://evil.com/"),
        ("https://%65vil.com/", "https://evil.com/"),
        ("https://h.org/a/../b/./c?d=/../e#f", "https://h.org/b/c?d=/../e"),
        ("https://h.org/%7Euser/%2F", "https://h.org/~user/%2F"),
        ("h.org/x", "https://h.org/x"),
        ("HTTPS://h.org", "https://h.org/"),
    ],
)
def test_one_place_one_text(written: str, meant: str) -> None:
    address = read_address(written)
    assert (address.text, address.doubt) == (meant, None)


@pytest.mark.parametrize(
    "written",
    [
        "https://evil.com\\@good.com/", "https://good.com\t.evil.com/", "https://h.org/a b", "https://", "http:/h.org",
        "javascript:alert(1)", "http://1.2.3.4.5/", "http://0x1ffffffff/", "http://[::1", "http://a..b/", "", "http://09/",
        "http://[::127.0.0.1]/", "http://[64:ff9b::7f00:1]/", "http://[2002:7f00:1::]/",
    ],
)  # fmt: skip
def test_what_programs_read_differently_is_doubtful(written: str) -> None:
    assert read_address(written).doubt is not None


@pytest.mark.parametrize(
    ("pattern", "address", "allowed"),
    [
        ("https://example.com*", "https://example.com", True),
        ("https://example.com*", "https://example.com/a/b?c=d", True),
        ("https://example.com*", "https://example.com.evil.org/", False),
        ("https://example.com*", "https://example.com@evil.org/", False),
        ("https://example.com*", "https://user@example.com/", False),
        ("https://example.com*", "https://example.com:8443/", False),
        ("https://example.com*", "http://example.com/", False),
        ("example.com", "https://example.com/any/page", True),
        ("example.com", "http://example.com./", True),
        ("example.com", "https://sub.example.com/", False),
        ("example.com:8443", "https://example.com:8443/x", True),
        ("*.example.com", "https://a.b.example.com/x", True),
        ("*.example.com", "https://example.com/x", False),
        ("*.example.com", "https://evilexample.com/x", False),
        ("https://docs.org/3/*", "https://docs.org/3/library/re.html", True),
        ("https://docs.org/3/*", "https://docs.org/3/../2/x", False),
        ("https://docs.org/*/re", "https://docs.org/3/re", True),
        ("https://docs.org/*/re", "https://docs.org/3/4/re", False),
        ("https://docs.org", "https://docs.org/", True),
        ("https://docs.org", "https://docs.org/x", False),
        ("127.0.0.1", "http://2130706433/", True),
        ("bücher.de", "https://xn--bcher-kva.de/", True),
    ],
)
def test_allowing_is_narrow(pattern: str, address: str, allowed: bool) -> None:
    assert address_pattern(pattern, wide=False).allows(read_address(address)) is allowed


@pytest.mark.parametrize(
    "address",
    [
        "https://evil.com",
        "https://EVIL.com./x",
        "http://u:p@evil.com:99/x",
        "https://www.evil.com/",
        "ftp://evil.com/",
    ],
)
def test_denying_is_wide(address: str) -> None:
    assert address_pattern("*evil.com*", wide=True).forbids(read_address(address))
