import re
import subprocess
import sys

import pytest

from jackstay.core.errors import ConfigError
from jackstay.models.anthropic import AnthropicModel
from jackstay.models.families import PLAIN, dialect_of, family_of
from jackstay.models.openai import OpenAIModel
from jackstay.models.registry import ModelOptions, open_model
from jackstay.models.scripted import ScriptedModel

OPENAI, ANTHROPIC = {"OPENAI_API_KEY": "k-openai\n"}, {"ANTHROPIC_API_KEY": "k-anthropic"}


@pytest.mark.parametrize(
    ("text", "env", "name", "kind", "url", "key"),
    [
        ("openai:gpt-5", OPENAI, "openai:gpt-5", OpenAIModel,
         "https://api.openai.com/v1/chat/completions", "Bearer k-openai"),
        ("openai:m", {**OPENAI, "OPENAI_BASE_URL": "https://gate.example/api/v3/"}, "openai:m", OpenAIModel,
         "https://gate.example/api/v3/chat/completions", "Bearer k-openai"),
        ("openai:m", {"OPENAI_BASE_URL": "http://127.0.0.1:9"}, "openai:m", OpenAIModel,
         "http://127.0.0.1:9/v1/chat/completions", None),
        ("openai:m@http://10.0.0.5:8000/v1", {}, "m@http://10.0.0.5:8000/v1", OpenAIModel,
         "http://10.0.0.5:8000/v1/chat/completions", None),
        ("qwen3:8b@http://localhost:11434", {}, "qwen3:8b@http://localhost:11434", OpenAIModel,
         "http://localhost:11434/v1/chat/completions", None),
        ("@cf/llama@https://u:pw@gate.example/v1", OPENAI, "@cf/llama@https://gate.example/v1", OpenAIModel,
         "https://u:pw@gate.example/v1/chat/completions", None),
        ("m@https://x.example/deploy/chat/completions?api-version=1", {},
         "m@https://x.example/deploy/chat/completions", OpenAIModel,
         "https://x.example/deploy/chat/completions?api-version=1", None),
        ("ollama:qwen3:8b", {}, "ollama:qwen3:8b", OpenAIModel,
         "http://127.0.0.1:11434/v1/chat/completions", None),
        ("ollama:q", {"OLLAMA_HOST": "0.0.0.0"}, "ollama:q", OpenAIModel,
         "http://127.0.0.1:11434/v1/chat/completions", None),
        ("ollama:q", {"OLLAMA_HOST": "box:99"}, "ollama:q", OpenAIModel,
         "http://box:99/v1/chat/completions", None),
        ("anthropic:claude-opus-4-5", ANTHROPIC, "anthropic:claude-opus-4-5", AnthropicModel,
         "https://api.anthropic.com/v1/messages", "k-anthropic"),
        ("anthropic:m", {"ANTHROPIC_BASE_URL": "http://127.0.0.1:9"}, "anthropic:m", AnthropicModel,
         "http://127.0.0.1:9/v1/messages", None),
        ("anthropic:m@http://gate.example", {}, "m@http://gate.example", AnthropicModel,
         "http://gate.example/v1/messages", None),
    ],
)  # fmt: skip
def test_what_a_name_means(text, env, name, kind, url, key):
    model = open_model(text, env=env)
    assert type(model) is kind
    headers = model._client._headers
    assert (model.name, model._client._url) == (name, url)
    assert (headers.get("authorization") or headers.get("x-api-key")) == key


@pytest.mark.parametrize("text", ["", "  ", None])
def test_no_model_names_the_three_ways_to_configure_one(text):
    with pytest.raises(ConfigError) as caught:
        open_model(text, env={})
    assert all(way in str(caught.value) for way in ("--model", "JACKSTAY_MODEL", "model = "))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("openai:gpt-5", "openai:gpt-5 needs OPENAI_API_KEY, which is not set"),
        ("anthropic:claude-3", "anthropic:claude-3 needs ANTHROPIC_API_KEY, which is not set"),
        ("gpt-5", "'gpt-5' is no model"),
        ("opanai:gpt-5", "did you mean openai:gpt-5?"),
        ("openai:", "'openai:' names no model"),
        ("@http://127.0.0.1/v1", "names no model"),
        ("m@http://", "no server's address"),
        ("script:", "names no file"),
        ("script:no/such/file.json", "no/such/file.json: the model script cannot be read"),
    ],
)
def test_a_name_that_cannot_be_used_says_what_to_do(text, words):
    with pytest.raises(ConfigError, match=re.escape(words)):
        open_model(text, env={})


@pytest.mark.parametrize(
    ("field", "words"), [("messages", "'messages'"), ("max_tokens", "`max_output_tokens`")]
)
def test_a_field_of_ours_cannot_be_given(field, words):
    with pytest.raises(ConfigError, match=words):
        open_model("m@http://127.0.0.1/v1", env={}, options=ModelOptions(body={field: 1}))


@pytest.mark.parametrize(
    ("model", "window"),
    [
        ("gpt-4o-mini", 128_000),
        ("gpt-4.1", 1_047_576),
        ("gpt-5-mini", 400_000),
        ("o3", 200_000),
        ("claude-sonnet-4-5-20250929", 200_000),
        ("anthropic/claude-3.5-haiku", 200_000),
        ("google/gemini-2.5-pro", 1_048_576),
        ("Qwen/Qwen3-Coder-30B", 262_144),
        ("my-own-model", None),
        ("olive-7b", None),
    ],
)
def test_known_windows(model, window):
    family = family_of(model)
    assert (family.context_length if family else None) == window
    given = open_model(f"{model}@http://127.0.0.1/v1", env={}, options=ModelOptions(context_length=7))
    assert given.context_length == 7
    assert open_model(f"{model}@http://127.0.0.1/v1", env={}).context_length == window


def test_dialects_are_told_by_whole_domains():
    assert dialect_of("api.openai.com", "x").cap == "max_completion_tokens"
    assert dialect_of("notopenai.com", "x") == PLAIN
    assert dialect_of("z.ai.evil.example", "x") == PLAIN


@pytest.mark.parametrize(
    ("text", "absent"),
    [("script:{}", "aiohttp asyncio ssl yaml email"), ("openai:gpt-5", "aiohttp yaml")],
)
def test_nothing_heavy_is_imported_before_it_is_needed(tmp_path, text, absent):
    script = tmp_path / "s.json"
    script.write_text('{"turns": []}')
    code = (
        "import sys; from jackstay.models.registry import open_model; "
        f"open_model({text.format(script)!r}, env={{'OPENAI_API_KEY': 'k'}}); "
        f"print([name for name in {absent.split()!r} if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_a_script_file(tmp_path):
    script = tmp_path / "s.yaml"
    script.write_text("context_length: 500\nturns:\n  - say: hello\n")
    model = open_model(f"script:{script}", env={})
    assert isinstance(model, ScriptedModel)
    assert (model.name, model.context_length) == (f"script:{script}", 500)
    assert open_model(f"script:{script}", env={}, options=ModelOptions(context_length=9)).context_length == 9
