"""Which model does a name like `openai:gpt-5` or `NAME@URL` mean?"""

import difflib
from collections.abc import Mapping
from typing import TYPE_CHECKING
from urllib.parse import urlsplit, urlunsplit

import msgspec

from jackstay.core.errors import ConfigError
from jackstay.core.messages import JsonObject
from jackstay.engine.ports import Model

if TYPE_CHECKING:
    from jackstay.models.endpoint import Endpoint
    from jackstay.models.http import HttpOptions

FORMS = "openai:NAME or anthropic:NAME with its API key, ollama:NAME or NAME@URL for a server, or script:FILE"
WAYS = f"use --model MODEL, set JACKSTAY_MODEL, or write `model = …` in the configuration: {FORMS}"


class _Vendor(msgspec.Struct, frozen=True):
    """Where a vendor's models answer, and the variables that say otherwise."""

    base_url: str
    base_name: str
    key_name: str | None


_VENDORS: dict[str, _Vendor] = {
    "openai": _Vendor("https://api.openai.com/v1", "OPENAI_BASE_URL", "OPENAI_API_KEY"),
    "anthropic": _Vendor("https://api.anthropic.com", "ANTHROPIC_BASE_URL", "ANTHROPIC_API_KEY"),
    "ollama": _Vendor("http://127.0.0.1:11434", "OLLAMA_HOST", None),
}


class ModelOptions(msgspec.Struct, frozen=True):
    """What a model's name does not say. None and {} mean: as usual.

    `context_length` and `max_output_tokens` are tokens; `body` is more fields for every request; `http` holds
    headers, proxy, CA file and time limits.
    """

    context_length: int | None = None
    max_output_tokens: int | None = None
    body: JsonObject = {}
    http: "HttpOptions | None" = None


AS_USUAL = ModelOptions()


def open_model(text: str | None, *, env: Mapping[str, str], options: ModelOptions = AS_USUAL) -> Model:
    """The model that `text` names; keys, base URLs and proxies come from `env`. Nothing is connected yet.

    Raises ConfigError when nothing is named, the form is unknown, a key is missing or a script cannot be read.
    """
    text = (text or "").strip()
    if not text:
        raise ConfigError("no model is configured", hint=WAYS)
    vendor, colon, rest = text.partition(":")
    if colon and vendor == "script":
        return _script(rest, options)
    if colon and vendor in _VENDORS:
        name, url = _split(rest)
    else:
        vendor, (name, url) = "openai", _split(text)
        if url is None:
            raise _unknown(text)
    if not name:
        raise ConfigError(f"{text!r} names no model", hint=FORMS)
    endpoint = _endpoint(vendor, (name, url), env, options)
    if vendor == "anthropic":
        from jackstay.models.anthropic import AnthropicModel

        return AnthropicModel(endpoint)
    from jackstay.models.openai import OpenAIModel

    return OpenAIModel(endpoint)


def _script(path: str, options: ModelOptions) -> Model:
    from jackstay.models.scripted import ScriptedModel

    if not path:
        raise ConfigError("`script:` names no file", hint="script:FILE, JSON or YAML")
    model = ScriptedModel.load(path)
    model.context_length = options.context_length or model.context_length
    return model


def _split(text: str) -> tuple[str, str | None]:
    """NAME and URL of `NAME@URL`; a name may hold '@' and ':' of its own."""
    for mark in ("@http://", "@https://"):
        name, found, _ = text.partition(mark)
        if found:
            return name, text[len(name) + 1 :]
    return text, None


def _unknown(text: str) -> ConfigError:
    vendor = text.partition(":")[0]
    near = difflib.get_close_matches(vendor, [*_VENDORS, "script"], 1)
    hint = f"did you mean {near[0]}:{text.partition(':')[2] or 'NAME'}?" if near else f"write {FORMS}"
    return ConfigError(f"{text!r} is no model", hint=hint)


def _endpoint(
    kind: str, model: tuple[str, str | None], env: Mapping[str, str], options: ModelOptions
) -> "Endpoint":
    from jackstay.models.endpoint import Endpoint
    from jackstay.models.http import HttpOptions, checked_url, is_loopback, proxy_for

    vendor, (name, given) = _VENDORS[kind], model
    base = given or env.get(vendor.base_name, "").strip() or vendor.base_url
    base = _with_path(_with_scheme(base) if kind == "ollama" else checked_url(base), kind)
    key = env.get(vendor.key_name, "").strip() if vendor.key_name else ""
    if not key and vendor.key_name and given is None and not is_loopback(urlsplit(base).hostname or ""):
        hint = f"set it, or name a server that needs none: {name}@http://127.0.0.1:8080/v1"
        raise ConfigError(f"{kind}:{name} needs {vendor.key_name}, which is not set", hint=hint)
    http = options.http or HttpOptions()
    if http.proxy is None:
        http = msgspec.structs.replace(http, proxy=proxy_for(base, env))
    return Endpoint(
        model=name, base_url=base, key=key or None, key_name=vendor.key_name,
        name=f"{kind}:{name}" if given is None else f"{name}@{_shown(given)}",
        context_length=options.context_length, max_output_tokens=options.max_output_tokens,
        body=options.body, http=http,
    )  # fmt: skip


def _with_scheme(host: str) -> str:
    """OLLAMA_HOST may be a host, a host and port, or the address that a server listens on."""
    from jackstay.models.http import checked_url

    url = checked_url(host if "://" in host else f"http://{host}")
    parts = urlsplit(url.replace("://0.0.0.0", "://127.0.0.1"))
    return f"{parts.scheme}://{parts.netloc}{'' if parts.port else ':11434'}{parts.path}"


def _with_path(url: str, kind: str) -> str:
    """A base without any path gets `/v1`, where nearly every compatible server has its API."""
    parts = urlsplit(url)
    if kind == "anthropic" or parts.path not in ("", "/"):
        return url
    return urlunsplit((parts.scheme, parts.netloc, "/v1", parts.query, ""))


def _shown(url: str) -> str:
    """A URL without user and password."""
    parts = urlsplit(url)
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))
