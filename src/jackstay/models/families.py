"""What is known of model families and servers? Data; the first row that matches counts.

Sizes are tokens, from the vendors' model pages. A model that no row names has no known window: say it with the
endpoint's `context_length`.
"""

import re

import msgspec


class Family(msgspec.Struct, frozen=True):
    """Models whose name matches: the size of their window and of their longest answer (None: not known)."""

    name: str
    context_length: int
    max_output_tokens: int | None = None


FAMILIES: tuple[Family, ...] = (
    # Anthropic; the Messages API demands an output cap, so the last column is what we ask for
    Family(r"claude-(?:opus|sonnet|haiku)-[4-9]", 200_000, 32_000),
    Family(r"claude-3-7", 200_000, 32_000),
    Family(r"claude-3-5", 200_000, 8_192),
    Family(r"claude-3", 200_000, 4_096),
    Family(r"claude", 200_000, 8_192),
    # OpenAI
    Family(r"gpt-5.*-chat", 128_000, 16_384),
    Family(r"gpt-5", 400_000, 128_000),
    Family(r"gpt-4\.1", 1_047_576, 32_768),
    Family(r"gpt-4o|chatgpt-4o", 128_000, 16_384),
    Family(r"gpt-4-(?:turbo|1106|0125)", 128_000, 4_096),
    Family(r"gpt-4-32k", 32_768),
    Family(r"gpt-4", 8_192),
    Family(r"gpt-3\.5", 16_385, 4_096),
    Family(r"gpt-oss", 131_072),
    Family(r"o1-mini|o1-preview", 128_000),
    Family(r"o[134](?:$|-)", 200_000, 100_000),
    # others, mostly through OpenAI-compatible servers
    Family(r"gemini-1\.5-pro", 2_097_152, 8_192),
    Family(r"gemini", 1_048_576, 65_536),
    Family(r"deepseek", 128_000),
    Family(r"kimi-k2|moonshot", 262_144),
    Family(r"glm-4\.[67]|glm-[5-9]", 200_000),
    Family(r"glm-4", 128_000),
    Family(r"qwen3-coder|qwen3-max", 262_144),
    Family(r"qwen3", 131_072),
    Family(r"qwen2\.5", 32_768),
    Family(r"minimax-m", 196_608),
    Family(r"mistral-large|mistral-medium|devstral|codestral|magistral", 128_000),
    Family(r"mistral|mixtral", 32_768),
    Family(r"grok-4-fast|grok-4\.\d-fast", 2_000_000),
    Family(r"grok", 131_072),
    Family(r"llama-?4", 1_048_576),
    Family(r"llama-?3\.[123]", 131_072),
    Family(r"llama-?3", 8_192),
)  # fmt: skip


class Dialect(msgspec.Struct, frozen=True):
    """How a server of the chat-completions family differs from the others.

    `cap` is its field for the output limit. `thinking` are the fields in which it wants its own reasoning
    back. `extras` says whether it takes back what it put beside a call (signatures).
    """

    cap: str = "max_tokens"
    thinking: tuple[str, ...] = ()
    extras: bool = True


PLAIN = Dialect()
OPENAI = Dialect(cap="max_completion_tokens", extras=False)

# (host, model, dialect): patterns that have to occur in both names
DIALECTS: tuple[tuple[str, str, Dialect], ...] = (
    (r"(?:^|\.)openai\.com$|\.openai\.azure\.com$", r"", OPENAI),
    (r"(?:^|\.)openrouter\.ai$", r"", Dialect(thinking=("reasoning", "reasoning_details"))),
    (r"(?:^|\.)(?:deepseek|moonshot|z|bigmodel|xiaomimimo)\.(?:com|ai|cn)$", r"",
     Dialect(thinking=("reasoning_content",))),
    (r"", r"deepseek-?v|kimi-k2|glm-(?:4\.[5-9]|[5-9])", Dialect(thinking=("reasoning_content",))),
)  # fmt: skip


def family_of(model: str) -> Family | None:
    """The family of a model's name; a vendor before a slash and letter case do not matter."""
    name = model.lower().rsplit("/", 1)[-1]
    return next((family for family in FAMILIES if re.match(family.name, name)), None)


def dialect_of(host: str, model: str) -> Dialect:
    """How the server at this host wants this model spoken to."""
    for where, which, dialect in DIALECTS:
        if re.search(where, host.lower()) and re.search(which, model.lower()):
            return dialect
    return PLAIN
