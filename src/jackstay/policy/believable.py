"""Is what looks like a secret one, or does it only stand where one would be?"""

import re
from math import log2

from jackstay.policy.late import late
from jackstay.policy.secret_kinds import SecretKind

_STANDS_FOR = late(
    r"x{5,}|\*{3,}|\.{3}|<[^>]*>|\$\{|\$\(|\{\{|%\(|(.)\1{7}|^\$[A-Za-z_]+$|%[srd]\b|^%[A-Za-z_]+%$",
    re.IGNORECASE,
)
# Words that say so themselves; a value with a format of its own is taken for real all the same.
_SAYS_SO = late(
    r"example|placeholder|your[_-]?|change[_-]?me|dummy|sample|redacted|1234567890(?!\d*[a-z])|0123456789|"
    r"abcdef(?:gh|012)",
    re.IGNORECASE,
)
# Words joined by signs, and capitals: names of things, not the things.
_NAME_LIKE = late(r"[A-Za-z]+\d{0,2}(?:[_.\-/:][A-Za-z]*\d{0,2})+\Z|[A-Z_]+\d{0,2}\Z")
_HEX_KEY = late(r"[0-9a-f]{32,}\Z|[0-9A-F]{32,}\Z")
HEX_ENTROPY = 3.1  # of sixteen digits no text has more than four bits; a random one of 32 has 3.2 to 3.8
_STAND_INS = frozenset({
    "pass", "passw", "passwd", "password", "password1", "password123", "pwd", "pw", "secret", "secret1",
    "token", "user", "username", "test", "test123", "none", "null", "true", "false", "string", "str",
    "bytes", "optional", "admin", "root", "foo", "bar", "baz", "hunter",
})  # fmt: skip


def believable(value: str, kind: SecretKind) -> bool:
    """Could this be a real secret of the kind: not a placeholder, and as random as its kind has to be?"""
    if _STANDS_FOR.search(value) or value.lower() in _STAND_INS:
        return False
    if not kind.telling and _SAYS_SO.search(value):
        return False
    if kind.words and not _is_mixed(value) and _is_name(value):
        return False
    if kind.mixed and (not _is_mixed(value) or _NAME_LIKE.match(value)):
        return False
    return entropy(value) >= (min(kind.entropy, HEX_ENTROPY) if _HEX_KEY.match(value) else kind.entropy)


def _is_name(value: str) -> bool:
    """Does one of its words say that it names something, or how something is done?"""
    return not _NAMING.isdisjoint(word.lower() for word in _WORD.findall(value))


_WORD = late(r"[A-Z]+(?![a-z])|[A-Za-z][a-z]*|[^\W\d_]+")
_NAMING = frozenset({
    "access", "account", "admin", "all", "allow", "allowed", "app", "arg", "argon", "argument", "auth",
    "authentication", "auto", "basic", "bcrypt", "bool", "boolean", "bytes", "callback", "change",
    "changed", "changeme", "char", "check", "cleartext", "client", "command", "config", "configured",
    "confirm", "confirmation", "context", "create", "credential", "credentials", "custom", "data",
    "database", "db", "default", "deny", "digest", "disable", "disabled", "empty", "enable", "enabled",
    "encoder", "encrypt", "encrypted", "encryption", "entry", "env", "environment", "error", "event",
    "external", "false", "field", "file", "forgot", "form", "format", "from", "func", "function",
    "generate", "generated", "get", "getpass", "handler", "has", "hash", "hashed", "hex", "hidden",
    "hint", "id", "ignore", "info", "input", "insecure", "int", "interactive", "invalid", "is", "item",
    "key", "keyring", "label", "len", "length", "level", "line", "link", "list", "login", "manager",
    "manual", "masked", "max", "md", "min", "minimum", "missing", "mode", "must", "my", "name", "never",
    "new", "no", "node", "none", "not", "null", "number", "object", "off", "ok", "on", "only",
    "optional", "options", "or", "param", "parameter", "parse", "pass", "passphrase", "passwd",
    "password", "path", "placeholder", "plain", "plaintext", "policy", "prompt", "property", "provider",
    "public", "pwd", "query", "read", "ref", "reference", "regex", "remember", "request", "required",
    "reset", "result", "root", "rule", "salt", "schema", "scram", "screen", "secret", "secrets",
    "security", "self", "server", "service", "session", "set", "settings", "sha", "show", "simple",
    "some", "source", "ssl", "state", "status", "store", "str", "strength", "string", "strong",
    "system", "template", "test", "text", "the", "this", "to", "token", "true", "type", "undefined",
    "unknown", "update", "url", "use", "user", "username", "utf", "valid", "validate", "validation",
    "validator", "value", "var", "variable", "vault", "verify", "view", "visible", "was", "weak", "web",
    "widget", "with", "word", "write", "yaml", "yes", "your",
})  # fmt: skip


def _is_mixed(value: str) -> bool:
    return any(char.isdigit() for char in value) and any(char.isalpha() for char in value)


def entropy(text: str) -> float:
    """Shannon entropy of the characters in bits each."""
    if not text:
        return 0.0
    counts = [text.count(char) for char in set(text)]
    return -sum(n / len(text) * log2(n / len(text)) for n in counts)
