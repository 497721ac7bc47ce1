"""How does plain data lose its secrets, and how do they come back where a person has changed what was shown?"""

import re
from functools import lru_cache
from typing import Any

from jackstay.policy.secrets import LEAST_CHARS, redact, secrets_in

MAX_DEPTH = 20
SHORT_KEY = 8  # characters of a key that can hold no secret itself
_BARE = frozenset({int, float, bool, type(None)})

_remembered = lru_cache(maxsize=32)(redact)  # a call is told three times, a result passes twice
_MARK = re.compile(r"\[redacted:([a-z0-9-]+)\]")
_SAMPLE = "q9LmXvZ8f3kT2sWn4RcY"  # stands for a secret of any kind that its name gives away


def redact_once(text: str) -> str:
    """Like `redact`, and the very same text where there is no secret; what comes again soon is remembered."""
    if len(text) < LEAST_CHARS:
        return text
    told = _remembered(text)
    return text if told == text else told  # remembered is an equal text, which need not be this one


def redact_value(value: Any, depth: int = 0) -> Any:
    """Plain JSON data with every text in it redacted, keys too; the very same where there is nothing to do."""
    if isinstance(value, dict):
        if depth > MAX_DEPTH:
            return "[too deep]"
        for key, item in value.items():
            if type(item) in _BARE and type(key) is str and len(key) <= SHORT_KEY:
                continue
            if _beside(key, item, depth) is not item or _key(key) != key:
                return {_key(key): _beside(key, item, depth) for key, item in value.items()}
        return value
    if isinstance(value, str):
        return redact_once(value)
    if not isinstance(value, list | tuple):
        return value
    if depth > MAX_DEPTH:
        return "[too deep]"
    items = [redact_value(item, depth + 1) for item in value]
    return value if all(was is now for was, now in zip(value, items, strict=True)) else items


def _key(key: Any) -> str:
    return redact_once(key) if isinstance(key, str) and len(key) > SHORT_KEY else str(key)


def _beside(key: Any, item: Any, depth: int) -> Any:
    """A text whose key says what it is ("password": "…") is judged together with the key."""
    if not isinstance(item, str):
        return redact_value(item, depth + 1)
    told = redact_once(item)
    if told is item and item and tells(str(key)):
        kind = _kind_beside(str(key), item)
        return f"[redacted:{kind}]" if kind else item
    return told


@lru_cache(maxsize=256)
def tells(key: str) -> bool:
    """Does a key by this name say that its value is a secret?"""
    return _kind_beside(key, _SAMPLE) != ""


def _kind_beside(key: str, item: str) -> str:
    found = secrets_in(f'"{key}": "{item}"')
    return next((secret.kind for secret in found if secret.start > len(key) + 2), "")


def unredacted(value: Any, real: Any) -> Any:
    """The value with the secrets of `real` where marks stand for them.

    `value` is what a person made of `redact_value(real)`. A text's marks of a kind are given back in order, if
    it has as many of them as the real text has secrets of that kind; otherwise they stay.
    """
    if isinstance(value, str) and isinstance(real, str):
        return _text_unredacted(value, real)
    if isinstance(value, dict) and isinstance(real, dict):
        return {key: _unredacted_beside(key, item, real.get(key)) for key, item in value.items()}
    if isinstance(value, list) and isinstance(real, list | tuple) and len(value) == len(real):
        return [unredacted(item, was) for item, was in zip(value, real, strict=True)]
    return value


def _unredacted_beside(key: str, item: Any, real: Any) -> Any:
    if isinstance(item, str) and isinstance(real, str) and item == _beside(key, real, 0):
        return real
    return unredacted(item, real)


def _text_unredacted(text: str, real: str) -> str:
    if "[redacted:" not in text:
        return text
    secrets: dict[str, list[str]] = {}
    for secret in secrets_in(real):
        secrets.setdefault(secret.kind, []).append(real[secret.start : secret.end])
    marks = _MARK.findall(text)
    known = {kind: iter(found) for kind, found in secrets.items() if marks.count(kind) == len(found)}
    return _MARK.sub(lambda mark: next(known.get(mark[1], iter((mark[0],)))), text)
