"""How does anything that leaves the harness lose its secrets?"""

from typing import Any

from jackstay.policy.secrets import redact, secrets_in

MAX_DEPTH = 20

__all__ = ["redact", "redact_value", "secrets_in"]


def redact_value(value: Any, depth: int = 0) -> Any:
    """Plain JSON data with every text in it redacted, keys too; the original is left as it is."""
    if isinstance(value, str):
        return redact(value)
    if depth > MAX_DEPTH:
        return "[too deep]"
    if isinstance(value, dict):
        return {redact(str(key)): _beside(str(key), item, depth) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [redact_value(item, depth + 1) for item in value]
    return value


def _beside(key: str, item: Any, depth: int) -> Any:
    """A text whose key says what it is ("password": "…") is judged together with the key."""
    if isinstance(item, str) and item:
        told = f'"{key}": "{item}"'
        if any(secret.start > len(key) + 2 for secret in secrets_in(told)) and redact(item) == item:
            return "[redacted]"
    return redact_value(item, depth + 1)
