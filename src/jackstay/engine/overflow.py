"""Did the model refuse a request because it was too long, and which limit did it name?

One table for every provider. Codes first, then the texts that only look like overflow, then the texts that
are. Rate limits and output caps are not overflow: shrinking the history mends neither.
"""

import re

from jackstay.engine.ports import Stop

_LONGEST = 20_000  # characters of an error text that are looked at

OVERFLOW_CODES: frozenset[str] = frozenset({
    "context_length_exceeded", "context_window_exceeded", "model_context_window_exceeded",
    "exceed_context_size_error", "exceed_context_size", "input_too_long", "request_too_large",
    "prompt_too_long", "string_above_max_length", "contextwindowexceedederror",
})  # fmt: skip

# Codes and statuses with a cause of their own, whatever their text says.
OTHER_CODES: frozenset[str] = frozenset({
    "rate_limit_exceeded", "rate_limit_error", "rate_limit", "insufficient_quota", "throttlingexception",
    "too_many_requests", "resource_exhausted", "authentication_error", "invalid_api_key", "permission_error",
    "overloaded_error", "model_not_found", "content_filter",
})  # fmt: skip
OTHER_STATUSES: frozenset[int] = frozenset({401, 402, 403, 404, 429})

# Look-alikes: a text that says one of these is about something else.
LOOK_ALIKES: tuple[str, ...] = (
    r"(?:tokens?|requests?) per (?:min|minute|hour|day|second)\b",
    r"\b(?:tpm|rpm|tpd)\b",
    r"rate[ _-]?limit",
    r"\bquota\b",
    r"throttl",
    r"please wait before",
    r"(?:failed|unable|could not|cannot|can't) (?:to )?(?:load|read|parse|open|find)\b.{0,60}"
    r"(?:context window|context length|context size|n_ctx|settings|config)",
    r"maximum allowed number of output tokens",
    r"(?<!\+ `)max_(?:completion_|output_|new_)?tokens.{0,40}(?:must be|should be|at most|supports at most)"
    r"(?!.{0,20} got -\d)",
    r"range of max_(?:output_|completion_)?tokens",
    r"maxoutputtokens",
    r"invalid max_tokens",
)

# What providers say when a request does not fit the window: (who, pattern over the lower-cased text).
OVERFLOW_TEXTS: tuple[tuple[str, str], ...] = (
    ("openai", r"maximum context length"),
    ("openai", r"context[_ ]length[_ ]exceeded"),
    ("openai", r"exceed(?:s|ed)? (?:the |its |our )?(?:model'?s? )?context (?:window|length|limit|size)"),
    ("openai", r"input tokens? exceeds? the configured limit"),
    ("openai", r"reduce (?:the |your )?(?:length|prompt)"),
    ("openai", r"too many tokens"),
    ("openai", r"tokens in request more than max tokens allowed"),
    ("anthropic", r"prompt is too long"),
    ("anthropic", r"input length exceeds context window"),
    ("anthropic", r"request_too_large|request exceeds the maximum (?:allowed )?(?:size|number of bytes)"),
    ("bedrock", r"input is too long for requested model"),
    ("bedrock", r"input length and `?max_tokens`? exceed context limit"),
    ("bedrock", r"too many (?:total text bytes|input tokens)"),
    ("gemini", r"exceeds the maximum number of (?:input )?tokens"),
    ("mistral", r"too large for model"),
    ("vllm", r"exceeds? (?:the )?max_model_len"),
    ("vllm", r"too long to fit into the model"),
    ("vllm", r"max_tokens must be at least 1, got -\d"),  # what the input has left of the window
    ("vllm", r"longer than the (?:model'?s? )?(?:maximum|context|max)[ _](?:model|context|length)"),
    ("sglang", r"input length.{0,30}exceeds the maximum allowed length"),
    ("llama.cpp", r"exceeds? the available context"),
    ("llama.cpp", r"exceed_context_size"),
    ("llama.cpp", r"slot context|\bn_ctx\b|kv cache|truncating input"),
    ("ollama", r"input length exceeds (?:the )?(?:maximum )?context"),
    ("lm studio", r"greater than the context length"),
    ("qwen", r"range of input length should be"),
    ("qwen", r"input_too_long|prompt_too_long"),
    ("minimax", r"context window exceeds limit"),
    ("moonshot", r"exceeded model token limit"),
    ("xai", r"maximum (?:prompt|input) length"),
    ("copilot", r"token count of \d+ exceeds the limit"),
    ("watson", r"exceed(?:s|ed)? (?:customer )?model maximum"),
    ("tgi", r"`inputs` tokens \+ `max_new_tokens` must be"),
    ("zhipu", r"超过最大长度|超出最大长度|上下文长度|输入(?:长度)?过长"),
    ("any", r"context window (?:is )?(?:full|exceeded|overflow)|context overflow|exceeds (?:the )?token limit"),
)  # fmt: skip

_NUMBER = r"(?<![\d,_])(\d[\d,_]{0,15})"  # bounded: an error page of digits is read in linear time

# How the limit is named; the first group is the number of tokens.
LIMITS: tuple[str, ...] = (
    rf"maximum (?:context|prompt|input) length (?:is|of|for this model is) {_NUMBER}",
    rf"{_NUMBER} maximum context length",
    rf"tokens? > {_NUMBER} maximum",
    rf"(?<!\d)\d{{1,15}} ?\+ ?\d{{1,15}} ?> ?{_NUMBER}",
    rf"maximum number of (?:input )?tokens (?:allowed )?\(?{_NUMBER}",
    rf"range of input length should be \[\d{{1,15}}, ?{_NUMBER}\]",
    rf"\"?n_ctx\"?\W{{0,4}}{_NUMBER}",
    rf"(?:available |slot )?context (?:size|window|length|limit) ?(?:of |is |\()?{_NUMBER}",
    rf"maximum allowed length ?\(?{_NUMBER}",
    rf"max_model_len ?(?:of |is |=|\()? ?{_NUMBER}",
    rf"maximum model length of {_NUMBER}",
    rf"configured limit of {_NUMBER}",
    rf"model token limit:? {_NUMBER}",
    rf"exceeds the limit of {_NUMBER}",
    rf"max tokens allowed:? {_NUMBER}",
    rf"`max_new_tokens` must be <= ?{_NUMBER}",
    rf"超[过出]最大长度(?:限制)?\D{{0,4}}{_NUMBER}",
    rf"最大(?:上下文|输入)?长度(?:为|是)?\D{{0,4}}{_NUMBER}",
)

# How input and output cap are named where the two together were too much: (input, output).
_SUMS: tuple[tuple[str, bool], ...] = (
    (rf"\({_NUMBER} in (?:the messages|your prompt|the prompt)[,;] {_NUMBER} (?:in|for) the completion", False),
    (rf"{_NUMBER} ?\+ ?{_NUMBER} ?> ?\d", False),
    (rf"too large: {_NUMBER}\..{{0,90}}has {_NUMBER} input tokens", True),
)

_look_alike = re.compile("|".join(LOOK_ALIKES), re.DOTALL)
_overflow = re.compile("|".join(pattern for _, pattern in OVERFLOW_TEXTS))
_limits = tuple(re.compile(pattern) for pattern in LIMITS)
_sums = tuple((re.compile(pattern, re.DOTALL), swapped) for pattern, swapped in _SUMS)


def is_overflow(status: int | None, code: str | None, text: str) -> bool:
    """Was the request refused because it is longer than the model takes?

    `status` is the HTTP status, `code` the provider's error code or type, `text` its words (or the body).
    True means that a shorter history can succeed. False for rate limits, output caps and all other causes.
    """
    name = (code or "").lower()
    if name in OVERFLOW_CODES:
        return True
    if name in OTHER_CODES or status in OTHER_STATUSES:
        return False
    words = text[:_LONGEST].lower()
    if _look_alike.search(words) or _output_cap_is_to_blame(words):
        return False
    return status == 413 or _overflow.search(words) is not None


def limit_named_in(text: str) -> int | None:
    """The window in tokens that an overflow error names, or None when it names none."""
    words = text[:_LONGEST].lower()
    for pattern in _limits:
        if (found := pattern.search(words)) is not None:
            return _count(found[1]) or None
    return None


def is_silent_overflow(stop: Stop, input_tokens: int, context_length: int | None) -> bool:
    """Did a reply that ended normally see only part of its input? True when the input fills the window.

    Some servers cut what is too long instead of refusing it; the count they report then stands at the window.
    """
    return stop != "refused" and context_length is not None and input_tokens >= context_length > 0


def _output_cap_is_to_blame(words: str) -> bool:
    """Does the output cap alone leave the input less than a quarter of the window? Then the cap must shrink."""
    limit = limit_named_in(words)
    if limit is None:
        return re.search(r"max_(?:completion_)?tokens'? (?:is )?too large", words) is not None
    for pattern, swapped in _sums:
        if (found := pattern.search(words)) is not None:
            return _count(found[1 if swapped else 2]) > limit * 3 // 4
    return False


def _count(digits: str) -> int:
    return int(digits.replace(",", "").replace("_", ""))
