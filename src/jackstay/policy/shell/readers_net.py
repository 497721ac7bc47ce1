"""Does this network tool only look up?"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from jackstay.policy.late import late

from . import effects as fx
from .effects import READERS, Call, Judge
from .facts import Word
from .operands import options
from .options import scan
from .table import Entry, Spec, prepare

_CURL: Final = prepare(
    "curl",
    Entry(
        short="sSLvfiIk460qgaN# m: A: e: w: r: H: X: o:> x:^ u:$ d:^ F:^ T:^ K:! b:< c:> D:> E:$ z: y: Y: "
        "O~ J~ R h V",
        long="silent show-error location verbose fail include head insecure ipv4 ipv6 http1.0 http1.1 http2 "
        "http2-prior-knowledge http3 tlsv1.2 tlsv1.3 tlsv1.0 tlsv1.1 tlsv1 sslv3 ssl-reqd compressed globoff "
        "no-buffer no-keepalive path-as-is max-time= connect-timeout= retry= retry-delay= retry-max-time= "
        "retry-connrefused retry-all-errors max-redirs= user-agent= referer= write-out= range= header= "
        "request= "
        "resolve= connect-to= interface= dns-servers= doh-url=^ output=> proxy=^ user=$ data=^ data-raw=^ "
        "data-binary=^ data-urlencode=^ json=^ form=^ form-string=^ upload-file=^ config=! cookie=< "
        "cookie-jar=> "
        "dump-header=> cert=$ cacert=< url= remote-name~ remote-name-all~ trace=> trace-ascii=> stderr=> "
        "libcurl=> "
        "etag-save=> hsts=> alt-svc=> no-progress-meter progress-bar disable fail-with-body fail-early "
        "oauth2-bearer=$ "
        "unix-socket=^ quote=^ request-target= proto= proto-default= happy-eyeballs-timeout-ms= no-sessionid "
        "noproxy= "
        "tcp-nodelay location-trusted$ post301^ mail-from=^ ssl-no-revoke no-alpn",
    ),
)
_WEB: Final = late(r"(?:https?://)?[^\s:@/]+(?::\d+)?(?:[/?#]\S*)?", re.IGNORECASE)


def curl(judge: Judge, call: Call, spec: Spec) -> None:
    """`curl`: only `-I` is a plain look-up; bodies, files and configuration are not."""
    seen, _ = scan(_CURL, call.arguments, call.scope)
    if {"-V", "-h"} & seen.names and len(call.words) == 2:
        return
    seen.options = [
        one for one in seen.options if one.value is None or one.value.text != "-" or one.name not in _OUT
    ]
    options(judge, call, _CURL, seen)
    targets = list(seen.operands)
    for given in seen.options:
        value = given.value
        if value is None:
            continue
        if given.name == "--url":
            targets.append(value)
        elif given.name in ("-X", "--request") and value.text not in ("HEAD", "GET", "OPTIONS"):
            judge.note(fx.SENDS, value.text, f"{call.name} {given.written}", f"sends a {value.text} request")
        elif given.name in ("-w", "--write-out") and _writes_out(value, call):
            judge.note(fx.WRITES, value.text, f"{call.name} {given.written}", "may write where its format says")
        elif given.name not in _CARRIES_NOTHING and call.scope.texts(value) is None:
            judge.note(
                fx.SENDS, value.text, f"{call.name} {given.written}", f"sends what {value.text} stands for"
            )
        elif _from_file(given.name, value):
            judge.note(fx.SENDS, value.text, f"{call.name} {given.written}", f"sends what {value.text} holds")
    _targets(judge, call, targets)
    if not {"-I", "--head"} & seen.names:
        kind = fx.SENDS if targets else fx.OPAQUE
        judge.note(
            kind, targets[0].text if targets else "", call.text, "fetches a page; only curl -I is a look-up"
        )


def _from_file(option: str, value: Word) -> bool:
    """Whether a header or a cookie is given as the file that holds it."""
    if option in ("-b", "--cookie"):
        return "=" not in value.text
    return option in ("-H", "--header") and value.text[:1] == "@"


def _writes_out(value: Word, call: Call) -> bool:
    """Whether a format may name a file to write (%output{…}) or be read from one (@…)."""
    texts = call.scope.texts(value)
    return texts is None or any("%output" in text or text[:1] == "@" for text in texts)


_OUT: Final = frozenset(("-o", "--output", "-D", "--dump-header", "--stderr", "--trace", "--trace-ascii"))
_CARRIES_NOTHING: Final = frozenset(
    (
        "-m",
        "--max-time",
        "--connect-timeout",
        "--retry",
        "-w",
        "--write-out",
        "-o",
        "--output",
        "--max-redirs",
    )
)


def _targets(judge: Judge, call: Call, targets: Sequence[Word]) -> None:
    judge.looks_up(targets, call)
    for target in targets:
        for text in call.scope.texts(target) or ():
            if not _WEB.fullmatch(text):
                judge.note(fx.SENDS, text, call.text, f"opens {text}, which is no plain web address")


_DIG_OPTION: Final = late(r"\+[a-z0-9-]+(?:=[\w./:-]*)?|-[46imruhv]")
_DIG_VALUE: Final = frozenset(("-b", "-c", "-p", "-q", "-t", "-x"))


def dig(judge: Judge, call: Call, spec: Spec) -> None:
    """`dig`: names written out; files of names or keys are not look-ups."""
    words = list(call.arguments)
    targets: list[Word] = []
    while words:
        word = words.pop(0)
        if word.text in _DIG_VALUE and word.fixed:
            targets += [words.pop(0)] if words else []
        elif word.fixed and _DIG_OPTION.fullmatch(word.text):
            continue
        elif word.text[:1] == "-" or (not word.fixed and call.scope.may_dash(word)):
            judge.note(fx.OPAQUE, word.text, call.text, f"has {word.text}, which is not known to be harmless")
        else:
            targets.append(word)
    judge.looks_up(targets, call)


_NSLOOKUP: Final = late(
    r"-(?:(?:type|query|querytype|q|port|timeout|retry|class|domain)=[\w.-]+|debug|nodebug|d2|novc|vc|"
    r"recurse|norecurse|all|fail|version)"
)


def nslookup(judge: Judge, call: Call, spec: Spec) -> None:
    """`nslookup`: a name and perhaps a server; without a name it reads commands."""
    operands: list[Word] = []
    for word in call.arguments:
        if word.fixed and _NSLOOKUP.fullmatch(word.text):
            continue
        if word.text[:1] == "-":
            judge.unproven(call, f"has {word.text}, which is not known to be harmless")
        operands.append(word)
    if not operands and len(call.words) < 2:
        judge.unproven(call, "is given no name and reads commands from its input")
    judge.looks_up(operands, call)


# -- ip, nmcli --------------------------------------------------------------------------------------------

_IP_OPTIONS: Final = late(
    r"-(?:[46dsjpoBrto0]|h|br|brief|d|det|details|s|ss|stats|statistics|j|json|p|pretty|o|oneline|c|color|"
    r"color=\w+|r|resolve|"
    r"t|timestamp|ts|tshort|a|all|V|Version|M|iec|h|human|human-readable|N|Numeric|echo|br|family|f)"
)
_IP_OBJECTS: Final = (
    "address", "addrlabel", "link", "route", "rule", "neighbour", "neighbor", "maddress", "mroute", "mrule",
    "netns",
    "ntable", "tunnel", "tuntap", "token", "tcp_metrics", "l2tp", "macsec", "mptcp", "nexthop", "netconf",
    "vrf", "xfrm",
    "stats", "fdb", "vlan", "mdb", "monitor",
)  # fmt: skip
_IP_ASKS: Final = ("show", "list", "lst", "ls", "get", "help")
_IP_XFRM: Final = ("state", "policy")
_IP_MORE: Final = frozenset(("identify", "pids", "list-id"))


def ip(judge: Judge, call: Call, spec: Spec) -> None:
    """`ip` and `bridge`: an object and at most a question about it."""
    words = list(call.arguments)
    if not call.scope.fixed(words):
        judge.unproven(call, "has words that are not written out")
        return
    texts = [word.text for word in words]
    while texts and texts[0][:1] == "-":
        option = texts.pop(0)
        if option in ("-f", "-family") and texts:
            texts.pop(0)
        elif not _IP_OPTIONS.fullmatch(option):
            judge.note(fx.SERVICE, option, call.text, f"has {option}, which is not known to be harmless")
            return
    if not texts:
        return
    if texts[0] != "help" and not any(one.startswith(texts[0]) for one in _IP_OBJECTS):
        judge.note(fx.SERVICE, texts[0], call.text, f"may change the network ({texts[0]})")
    elif "monitor".startswith(texts[0]) and len(texts[0]) > 2:
        judge.never_ends(call)
    else:
        _ip_verb(judge, call, texts)


def _ip_verb(judge: Judge, call: Call, texts: list[str]) -> None:
    """The word behind the object: `link s` sets, everywhere else `s` shows."""
    verb = texts[1] if len(texts) > 1 else "show"
    sets = "link".startswith(texts[0]) and verb in ("s", "se")
    asks = (*_IP_ASKS, *_IP_XFRM) if texts[0].startswith("x") else _IP_ASKS
    if sets or not (any(one.startswith(verb) for one in asks) or verb in _IP_MORE):
        judge.note(fx.SERVICE, verb, call.text, f"may change the network ({verb})")
    elif texts[0].startswith("x") and len(texts) > 2 and texts[2] not in ("list", "show", "ls", "get", "count"):
        judge.note(fx.SERVICE, texts[2], call.text, f"may change the network ({texts[2]})")


_NMCLI_OPTION: Final = late(r"-(?:[tpao]|terse|pretty|overview)|--(?:terse|pretty|overview|ask)")
_NMCLI_VALUE: Final = late(
    r"-(?:[fgmcew]|fields|get-values|mode|colors|escape|wait)|--(?:fields|get-values|mode|colors|escape|wait)"
)
_NMCLI: Final = late(
    r"(?:g|general|gen)(?: (?:status|permissions|perm))?|(?:n|networking|net)(?: (?:connectivity|c))?|"
    r"(?:r|radio)(?: (?:all|wifi|wwan))?|(?:c|con|conn|connection)(?: (?:s|show)(?: .*)?)?|"
    r"(?:d|dev|device)(?: (?:status|(?:s|show)(?: \S+)?|(?:w|wifi)(?: (?:l|list)(?: (?:ifname|bssid) "
    r"\S+)?)?|lldp(?: list)?))?|"
    r"(?:m|monitor)|"
)


def nmcli(judge: Judge, call: Call, spec: Spec) -> None:
    """`nmcli`: the questions it can answer; secrets stay hidden."""
    words = list(call.arguments)
    texts: list[str] = []
    while words:
        word = words.pop(0)
        if not word.fixed:
            judge.unproven(call, "has words that are not written out")
            return
        if not texts and _NMCLI_OPTION.fullmatch(word.text):
            continue
        if not texts and _NMCLI_VALUE.fullmatch(word.text):
            words = words[1:]
        else:
            texts.append(word.text)
    said = " ".join(texts)
    if "--show-secrets" in said or "-s" in texts:
        judge.note(fx.CREDENTIALS, "secrets", call.text, "shows secrets")
    elif not _NMCLI.fullmatch(said):
        judge.note(fx.SERVICE, said, call.text, f"may change the network ({said})")
    elif said in ("m", "monitor"):
        judge.never_ends(call)


READERS.update({"curl": curl, "dig": dig, "nslookup": nslookup, "ip": ip, "nmcli": nmcli})
