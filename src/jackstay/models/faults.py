"""What does a failure on the wire mean? Pure: numbers, headers and bytes in, a typed error out."""

import math
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

import msgspec

from jackstay.core.errors import ErrorInfo, ErrorKind, ModelError
from jackstay.core.wire import decode_json
from jackstay.engine.overflow import is_overflow

LONGEST_TEXT = 1_000  # characters of the provider's own words that an error carries
_SHORTEST_SECRET = 6  # shorter values are no secrets, and taking them out would garble words

_KIND_OF_STATUS: dict[int, ErrorKind] = {
    401: "auth", 402: "auth", 403: "auth", 404: "not_found", 408: "timeout", 409: "server", 425: "server",
    429: "rate_limit",
}  # fmt: skip

# Codes that beat the status: an account without money is no rate limit, because waiting does not mend it.
_ACCOUNT_CODES = frozenset({
    "insufficient_quota", "billing_hard_limit_reached", "billing_not_active", "billing_error",
    "insufficient_balance", "invalid_api_key", "api_key_invalid", "authentication_error",
})  # fmt: skip

# Error codes and types of OpenAI-like APIs and of Anthropic, for errors that come inside an answer.
_KIND_OF_CODE: dict[str, ErrorKind] = {
    "permission_error": "auth", "permission_denied": "auth", "unauthenticated": "auth",
    "rate_limit_exceeded": "rate_limit", "rate_limit_error": "rate_limit", "rate_limit": "rate_limit",
    "too_many_requests": "rate_limit", "resource_exhausted": "rate_limit", "throttlingexception": "rate_limit",
    "model_not_found": "not_found", "not_found_error": "not_found", "not_found": "not_found",
    "invalid_request_error": "bad_request", "invalid_argument": "bad_request", "badrequesterror": "bad_request",
    "content_filter": "bad_request", "content_policy_violation": "bad_request",
    "timeout_error": "timeout", "timeout": "timeout", "deadline_exceeded": "timeout",
}  # fmt: skip

_MEND: dict[ErrorKind, str] = {
    "not_found": "check the model's name and the server's address",
    "overflow": "the conversation is longer than the model takes",
}


class Fault(msgspec.Struct, frozen=True):
    """What a provider says went wrong: its words, its codes, and the status it names inside the body."""

    text: str
    codes: tuple[str, ...] = ()
    status: int | None = None


class Peer(msgspec.Struct, frozen=True):
    """Who answers: what errors call it, and what must not show in them."""

    host: str
    key_name: str | None = None
    secrets: tuple[str, ...] = ()

    def error(
        self, kind: ErrorKind, words: str, *, status: int | None = None, retry_after_s: float | None = None
    ) -> ModelError:
        """A typed error in one line that begins with the host; secrets taken out, length bounded."""
        for secret in self.secrets:
            if len(secret) >= _SHORTEST_SECRET:
                words = words.replace(secret, "[secret]")
        words = " ".join(words.split())
        if len(words) > LONGEST_TEXT:
            words = words[:LONGEST_TEXT] + "…"
        mend = f"check {self.key_name}" if kind == "auth" and self.key_name else _MEND.get(kind, "")
        message = f"{self.host} {words}" + (f" ({mend})" if mend else "")
        return ModelError(ErrorInfo(kind, message, status, retry_after_s))

    def refusal(self, status: int, headers: Mapping[str, str], body: bytes, *, now: float) -> ModelError:
        """What an answer with an error status means. `now` is epoch seconds, for a Retry-After date."""
        fault = read_fault(body)
        kind = kind_of(status, fault)
        words = f"answered {status} {_phrase(status)}: {fault.text or 'without a word of explanation'}"
        if 300 <= status < 400:
            words = f"answered {status} {_phrase(status)}: it points to {headers.get('Location', 'nowhere')}"
        return self.error(kind, words, status=status, retry_after_s=retry_after(headers, now))

    def told(self, data: Any) -> ModelError:
        """What an error object inside an answer means."""
        fault = fault_of(data)
        words = f"sent an error in its answer: {fault.text or 'without a word of explanation'}"
        return self.error(kind_of(fault.status, fault), words, status=fault.status)


def kind_of(status: int | None, fault: Fault) -> ErrorKind:
    """The kind of failure. `status` is None for an error inside an answer; one we do not know may pass."""
    for code in fault.codes or (None,):
        if is_overflow(status, code, fault.text):
            return "overflow"
    codes = [code.lower() for code in fault.codes]
    if not _ACCOUNT_CODES.isdisjoint(codes):
        return "auth"
    if status is not None:
        return _KIND_OF_STATUS.get(status) or ("server" if status >= 500 else "bad_request")
    for code in codes:
        if code in _KIND_OF_CODE:
            return _KIND_OF_CODE[code]
    return "server"


def read_fault(body: bytes) -> Fault:
    """What the body of a refused request says; a body that is no JSON is taken as text."""
    try:
        return fault_of(decode_json(body))
    except (ValueError, RecursionError):
        return Fault(body.decode("utf-8", "replace").strip())


def fault_of(data: Any) -> Fault:
    """An error object of any provider: `{"error": {…}}`, `{"error": "…"}`, `{"detail": …}`, or in a list."""
    if isinstance(data, list) and data:
        data = data[0]
    error = data.get("error") or data if isinstance(data, dict) else data
    if not isinstance(error, dict):
        return Fault(str(error))
    words = error.get("message") or error.get("detail") or error.get("error") or error
    more = error.get("metadata")  # OpenRouter puts what the server behind it said there
    if isinstance(more, dict) and more.get("raw"):
        words = f"{words}: {more['raw']}"
    named = [error.get("code"), error.get("type"), error.get("status")]
    status = next((code for code in map(_status, named) if code is not None), None)
    return Fault(str(words), tuple(code for code in named if isinstance(code, str) and code), status)


def _status(code: Any) -> int | None:
    if isinstance(code, str) and code.isdecimal():
        code = int(code)
    return code if isinstance(code, int) and 400 <= code < 600 else None


def retry_after(headers: Mapping[str, str], now: float) -> float | None:
    """Seconds to wait, as `retry-after-ms` or `Retry-After` (seconds or an HTTP date) ask; None if neither."""
    try:
        if (text := headers.get("retry-after-ms")) is not None:
            return _seconds(float(text) / 1000)
    except ValueError:
        pass  # a broken header asks for nothing; the plain one may still do
    text = headers.get("Retry-After")
    if text is None:
        return None
    try:
        return _seconds(float(text))
    except ValueError:
        pass
    from email.utils import parsedate_to_datetime  # here, because it costs more to import than all this module

    try:
        return _seconds(parsedate_to_datetime(text).timestamp() - now)
    except (TypeError, ValueError, OverflowError):
        return None


def _seconds(value: float) -> float | None:
    return max(0.0, value) if math.isfinite(value) else None


def _phrase(status: int) -> str:
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return "Overloaded" if status == 529 else ""
