"""Does this path lead to a secret?"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import Final

from jackstay.policy.late import late

_SECRET: Final = late(
    r"""(?:^|/)(?:
        \.ssh(?:/(?!.*\.pub$|known_hosts(?:\.old)?$|config$).*)?$
      | \.gnupg(?:/.*)?$
      | \.env(?:\.(?!example$|sample$|template$|dist$|defaults?$)[\w.-]+)?$ | [\w-]+\.env$
      | \.netrc$ | _netrc$ | \.pgpass$ | \.my\.cnf$ | \.git-credentials$ | \.htpasswd$ | \.vault-token$ |
      \.boto$
      | \.terraform\.d/credentials\.tfrc\.json$
      | \.aws/credentials$ | \.config/gh/hosts\.yml$ | \.config/gcloud/.* | \.azure/.*
      | \.docker/config\.json$ | \.kube/config$ | \.npmrc$ | \.pypirc$ | \.s3cfg$ |
      \.databrickscfg$ | \.config/rclone/rclone\.conf$ | \.cargo/credentials(?:\.toml)?$
      | \.password-store(?:/.*)?$ | \.local/share/keyrings(?:/.*)?$ | \.config/op(?:/.*)?$ | \.terraformrc$
      | id_(?:rsa|dsa|ecdsa|ed25519)(?:_[\w-]+)?$ | [\w.-]+\.kdbx$ | logins\.json$ | key[34]\.db$
      | Login\ Data$ | Cookies$ | cookies\.sqlite$ | signons\.sqlite$
      | [\w.-]+\.(?:key|p12|pfx|jks|keystore|ppk)$ | [\w.-]*(?:key|priv)[\w.-]*\.pem$
      | credentials\.(?:json|ya?ml|toml|ini)$ | secrets?\.(?:json|ya?ml|toml|ini|env)$
      | (?:service[-_]account|client[-_]secret)[\w.-]*\.json$
    )
    | ^/etc/(?:NetworkManager/system-connections|wireguard|ppp/(?:chap|pap)-secrets|ipsec\.secrets)(?:/.*)?$
    | ^/etc/wpa_supplicant/.*\.conf$ | ^/etc/krb5\.keytab$
    | ^/etc/(?:shadow|gshadow|sudoers(?:\.d(?:/.*)?)?)-?$ | ^/etc/ssh/ssh_host_\w+_key$ |
    ^/etc/ssl/private(?:/.*)?$
    | ^/proc/[^/]+(?:/task/[^/]+)?/(?:environ|mem|auxv)$ | ^/proc/kcore$ | ^/dev/k?mem$
    | ^/var/lib/(?:sss/secrets|secrets)(?:/.*)?$ | ^(?:/var)?/run/secrets(?:/.*)?$
    | ^[^/]*\$[^/]*/(?:task/[^/]+/)?environ$
    """,
    re.VERBOSE,
)
_ROOT: Final = late(r"^(?:/proc/[^/]+(?:/task/[^/]+)?/root)+(?=/|$)")
_GLOB: Final = late(r"[*?\[{]")
_KEY_NAMES: Final = late(r"(?:^|/)id_[^/]*[*?\]}][^/.]*$")  # private keys by a pattern
_ANY_TEXT: Final = late(r"[*?]+|\[[^\]/]*\]|\{[^}/]*\}")
_SAMPLES: Final = (
    ".ssh/id_rsa", ".ssh/id_ed25519", ".ssh", ".gnupg", ".env", ".netrc", ".pgpass", ".git-credentials",
    ".aws/credentials", ".docker/config.json", ".kube/config", ".npmrc", ".password-store", "/etc/shadow",
    "/etc/gshadow", "/proc/1/environ", "/proc/self/environ",
)  # fmt: skip
_CLASS: Final = late(r"\[[^\]]*\]")


def tidy(path: str) -> str:
    """The path without `.`, doubled slashes, another name for the root and (as far as the text tells) `..`."""
    parts: list[str] = []
    for part in _ROOT.sub("", re.sub("/+", "/", path)).split("/"):
        if part == ".." and parts and parts[-1] not in ("", "..", "~", "."):
            parts.pop()
        elif part not in ("", ".") or (not parts and part == "" and path.startswith("/")):
            parts.append(part)
    return "/".join(parts) if parts != [""] else "/"


_SECRET_NAME: Final = late(
    r"(?:[A-Z0-9]+_)*(?:TOKEN|SECRET|PASSWORD|PASSWD|PASSPHRASE|CREDENTIALS?|API_?KEY|SECRET_ACCESS_KEY|"
    r"(?:ACCESS|PRIVATE|SECRET|SIGNING|ENCRYPTION|MASTER)_KEY|PGPASSWORD)(?:_[0-9]+)?"
)


def holds_secret(variable: str) -> bool:
    """Whether an environment variable of this name is likely to hold a secret."""
    return _SECRET_NAME.fullmatch(variable) is not None


@lru_cache(maxsize=4096)
def is_secret(path: str) -> bool:
    """Whether a path as written is, or as a pattern could match, a place where secrets are kept."""
    if _GLOB.search(path):
        return _could_match(path)
    return _SECRET.search(tidy(path)) is not None


def _could_match(pattern: str) -> bool:
    if _KEY_NAMES.search(pattern):
        return True
    inside = _ANY_TEXT.sub("x", pattern)
    if _SECRET.search(tidy(inside)) or _SECRET.search(tidy(inside.removesuffix("/x"))):
        return True
    wild = _wild(tidy(pattern))
    if "/" not in pattern:
        return any("/" not in sample and re.fullmatch(wild, sample) for sample in _SAMPLES)
    return any(
        re.fullmatch(wild, sample) or re.fullmatch(r".*/" + wild, "/home/u/" + sample) for sample in _SAMPLES
    )


def _wild(pattern: str) -> str:
    pieces: list[str] = []
    at = 0
    while at < len(pattern):
        char = pattern[at]
        box = _CLASS.match(pattern, at) if char == "[" else None
        if box is not None:
            pieces.append("[^/]")
            at = box.end()
            continue
        start = at == 0 or pattern[at - 1] == "/"
        pieces.append(
            (r"[^/.][^/]*" if start else "[^/]*")
            if char == "*"
            else ("[^/.]" if start else "[^/]")
            if char == "?"
            else re.escape(char)
        )
        at += 1
    return "".join(pieces).replace(re.escape("~"), r"[^/]*")


def secrets_among(paths: Iterable[str], directories: Iterable[str]) -> str | None:
    """The first path that is a secret as it stands or seen from one of the directories, or None."""
    homes = tuple(directories)
    for path in paths:
        if is_secret(path):
            return path
        for home in homes if path[:1] not in ("/", "~") else ():
            seen = f"{home}/x" if path[:1] == "$" else f"{home}/{path}"
            if is_secret(seen):
                return f"{home}/{path}"
    return None
