"""How does a typed Python function become a tool?

Everything that can be derived is derived when the function is decorated: the JSON schema, the struct its
arguments are checked against, whether it waits. A call looks nothing up by reflection.
"""

import difflib
import inspect
import re
import types
import typing
from collections.abc import Callable, Iterable
from functools import partial
from typing import (
    Annotated,
    Any,
    Generic,
    ParamSpec,
    TypedDict,
    TypeVar,
    Union,
    Unpack,
    get_args,
    get_origin,
    overload,
)

import msgspec
from msgspec.structs import asdict

from jackstay.core import wire
from jackstay.core.errors import ConfigError, ToolFailed
from jackstay.core.messages import JsonObject
from jackstay.core.tools import ALL_EFFECTS, Effect, ToolSpec
from jackstay.engine.ports import ToolContext, ToolOutput
from jackstay.tools.docstrings import read_docstring
from jackstay.tools.threads import ThreadContext, in_thread

P = ParamSpec("P")
R = TypeVar("R")

_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}\Z")  # what every provider takes
_EMPTY = inspect.Parameter.empty
_PLAIN = (str, int, float, bool, type(None))


class Declared(TypedDict, total=False):
    """What a tool may say of itself; see ToolSpec for the meaning. What is not said is derived, or the worst.

    `name` and `description` are else those of the function; `effects` are else all effects.
    """

    name: str
    description: str
    effects: Iterable[Effect]
    idempotent: bool
    timeout_s: float
    path_args: Iterable[str]
    url_args: Iterable[str]
    command_arg: str | None


class FunctionTool(Generic[P, R]):
    """A Python function as a Tool. Calling it calls the function."""

    def __init__(self, function: Callable[P, R], declared: Declared) -> None:
        self.function = function
        self.waits = _check_function(function)
        self._context, parameters = _parameters(function)
        text, said = read_docstring(function.__doc__)
        _check_docstring(function, said, {*parameters, self._context})
        described = [_described(p, said.get(name)) for name, p in parameters.items()]
        self._kind, schema = _struct(function, described)
        self._names = frozenset(parameters)
        self._left_out_as_null = frozenset(
            name for name, p in parameters.items() if p.default is not _EMPTY and not _takes_none(p.annotation)
        )
        self._required = tuple(name for name, p in parameters.items() if p.default is _EMPTY)
        self.spec = _spec(function, declared, text, schema)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """The function itself."""
        return self.function(*args, **kwargs)

    def check(self, args: JsonObject) -> str | None:
        """Why these arguments do not fit, naming the argument and what is expected; None when they fit."""
        try:
            self._typed(self._given(args) if self._left_out_as_null else args)
        except ToolFailed as problem:
            return str(problem)
        return None

    async def run(self, args: JsonObject, context: ToolContext) -> ToolOutput:
        """Call the function; a ToolFailed becomes an error output, whatever else it raises goes through.

        A function that does not wait runs in a thread of its own, so its hanging never stops the loop.
        """
        call: Callable[..., Any] = self.function
        try:
            if self._left_out_as_null:
                args = self._given(args)
            values = asdict(self._typed(args))
            if len(args) != len(values):  # the function's own defaults stand for the rest
                values = {name: values[name] for name in args}
            if self._context:
                values[self._context] = context if self.waits else ThreadContext(context)
            result = await call(**values) if self.waits else await in_thread(partial(call, **values))
        except ToolFailed as failed:
            return ToolOutput(str(failed), is_error=True)
        return _output(self.spec.name, result)

    def _complete(self, args: JsonObject) -> None:
        """Raises ToolFailed unless all that is needed is there and nothing else."""
        unknown = [name for name in args if name not in self._names]
        if unknown:
            raise ToolFailed(_unknown(self.spec.name, unknown[0], self._names))
        missing = [name for name in self._required if name not in args]
        if missing:
            listed = ", ".join(repr(name) for name in missing)
            raise ToolFailed(f"{self.spec.name} needs the argument{'s' * (len(missing) > 1)} {listed}")

    def _given(self, args: JsonObject) -> JsonObject:
        """Some models send null for what they leave out: it is taken so where null could mean nothing else."""
        if None not in args.values():
            return args
        return {k: v for k, v in args.items() if v is not None or k not in self._left_out_as_null}

    def _typed(self, args: JsonObject) -> Any:
        """The given arguments as the types the function asked for."""
        try:
            return wire.convert(args, self._kind)
        except msgspec.ValidationError as problem:
            self._complete(args)  # what is missing, or has another name, is said before what does not fit
            raise ToolFailed(_explain(str(problem), args, self.spec.parameters)) from problem


@overload
def tool(function: Callable[P, R], /) -> FunctionTool[P, R]: ...
@overload
def tool(**declared: Unpack[Declared]) -> Callable[[Callable[P, R]], FunctionTool[P, R]]: ...
def tool(function: Callable[..., Any] | None = None, /, **declared: Unpack[Declared]) -> Any:
    """Make a tool of a typed function, sync or async: `@tool`, or `@tool(effects={"reads"}, …)` (see Declared).

    The docstring describes it, its `Args:` section or `Annotated[T, msgspec.Meta(description=…)]` the
    parameters. A parameter of type ToolContext is filled in and not shown to the model. It may return text, a
    ToolOutput, or anything that can be written as JSON; raise ToolFailed with a sentence for the model.
    Raises ConfigError where the declaration cannot be used.
    """
    if function is not None:
        return FunctionTool(function, declared)
    return lambda decorated: FunctionTool(decorated, declared)


# -- declarations --------------------------------------------------------------------------------------------


def _bad(function: Any, problem: str, hint: str) -> ConfigError:
    where = f"{getattr(function, '__module__', '?')}.{getattr(function, '__qualname__', repr(function))}"
    return ConfigError(problem, hint=hint, where=where)


def _check_function(function: Any) -> bool:
    """Is it a coroutine function? Raises ConfigError when it is no function that can be a tool."""
    if not (inspect.isfunction(function) or inspect.ismethod(function)):
        raise _bad(function, "a tool is made of a function or method", "pass the function itself")
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise _bad(function, "a tool returns its result and this function yields", "collect and return it")
    return inspect.iscoroutinefunction(function)


def _parameters(function: Callable[..., Any]) -> tuple[str, dict[str, inspect.Parameter]]:
    """The name of the context parameter ('' for none), and the others with their types resolved."""
    try:
        hints = typing.get_type_hints(function, include_extras=True)
    except (NameError, TypeError, AttributeError) as problem:
        hint = "types in annotations must be importable from the function's module"
        raise _bad(function, f"its annotations cannot be read: {problem}", hint) from problem
    context, others = "", {}
    for name, parameter in inspect.signature(function).parameters.items():
        if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
            raise _bad(function, f"parameter {name!r} cannot be given by name", "use plain named parameters")
        if name not in hints:
            raise _bad(function, f"parameter {name!r} has no type", f"annotate it, as in `{name}: str`")
        if hints[name] is ToolContext:
            context = name
        else:
            others[name] = parameter.replace(annotation=hints[name])
    return context, others


def _check_docstring(function: Any, said: dict[str, str], known: set[str]) -> None:
    strange = [name for name in said if name not in known]
    if strange:
        problem = f"its docstring describes {strange[0]!r}, which is no parameter"
        raise _bad(function, problem, _nearest(strange[0], known) or "take it out")


def _described(parameter: inspect.Parameter, text: str | None) -> inspect.Parameter:
    kind = parameter.annotation
    if parameter.default is None and not _takes_none(kind):
        kind = kind | None
    if text and not _has_description(kind):
        kind = Annotated[kind, msgspec.Meta(description=text)]
    return parameter.replace(annotation=kind)


def _takes_none(kind: Any) -> bool:
    bare = get_args(kind)[0] if get_origin(kind) is Annotated else kind
    options = get_args(bare) if get_origin(bare) in (Union, types.UnionType) else (bare,)
    return any(option in (Any, None, type(None)) for option in options)


def _has_description(kind: Any) -> bool:
    extras = get_args(kind)[1:] if get_origin(kind) is Annotated else ()
    return any(isinstance(extra, msgspec.Meta) and extra.description for extra in extras)


def _struct(function: Any, parameters: Iterable[inspect.Parameter]) -> tuple[type[msgspec.Struct], JsonObject]:
    """The type that arguments are checked against, and its JSON schema."""
    fields = [_field(parameter) for parameter in parameters]
    try:
        kind = _struct_of(fields)
        return kind, wire.schema(kind)
    except TypeError as problem:
        culprit = next((field for field in fields if not _usable(field)), None)
        which = f"parameter {culprit[0]!r} has a type" if culprit else "its parameters have types"
        hint = "use JSON-like types: str, int, float, bool, list, dict, Literal, dataclasses, msgspec.Struct"
        raise _bad(function, f"{which} that no JSON schema can say: {problem}", hint) from problem


def _struct_of(fields: list[Any]) -> type[msgspec.Struct]:
    return msgspec.defstruct("Arguments", fields, kw_only=True, forbid_unknown_fields=True)


def _field(parameter: inspect.Parameter) -> Any:
    name, kind, default = parameter.name, parameter.annotation, parameter.default
    if default is _EMPTY:
        return (name, kind)
    if isinstance(default, _PLAIN):
        return (name, kind, default)
    return (name, kind, msgspec.field(default_factory=lambda: default))


def _usable(field: Any) -> bool:
    try:
        wire.schema(_struct_of([field]))
    except TypeError:
        return False
    return True


def _spec(function: Any, declared: Declared, text: str, parameters: JsonObject) -> ToolSpec:
    strange = [key for key in declared if key not in Declared.__annotations__]
    if strange:
        hint = _nearest(strange[0], Declared.__annotations__) or "see jackstay.tools.schema.Declared"
        raise _bad(function, f"a tool does not declare {strange[0]!r}", hint)
    name = declared.get("name", function.__name__)
    if not _NAME.match(name):
        raise _bad(
            function, f"{name!r} is no tool name", "1 to 64 letters, digits, '_' or '-': give one by name="
        )
    known = parameters.get("properties", {})
    command = declared.get("command_arg")
    paths, urls = tuple(declared.get("path_args", ())), tuple(declared.get("url_args", ()))
    for named in (*paths, *urls, *([command] if command else [])):
        if named not in known:
            raise _bad(
                function, f"it declares {named!r} and has no such parameter", _nearest(named, known) or ""
            )
    return ToolSpec(
        name, declared.get("description") or text or name.replace("_", " "), parameters,
        effects=_effects(function, declared.get("effects", ALL_EFFECTS)),
        idempotent=declared.get("idempotent", False),
        timeout_s=_timeout(function, declared.get("timeout_s", 120.0)),
        path_args=paths, url_args=urls, command_arg=command,
    )  # fmt: skip


def _effects(function: Any, declared: Iterable[Effect]) -> frozenset[Effect]:
    given = tuple(declared)
    strange = [declared] if isinstance(declared, str) else [e for e in given if e not in ALL_EFFECTS]
    if strange:
        raise _bad(function, f"{strange[0]!r} is no effect", f"give a set of {', '.join(sorted(ALL_EFFECTS))}")
    return frozenset(given)


def _timeout(function: Any, seconds: float) -> float:
    if not seconds > 0:
        raise _bad(function, f"timeout_s={seconds!r} leaves no time at all", "give seconds above zero")
    return float(seconds)


def _nearest(name: str, known: Iterable[str]) -> str | None:
    found = difflib.get_close_matches(name, [other for other in known if other], 1, 0.5)
    return f"did you mean {found[0]!r}?" if found else None


# -- arguments -----------------------------------------------------------------------------------------------

_TYPES = {
    "str": "a string", "int": "an integer", "float": "a number", "bool": "true or false", "array": "an array",
    "object": "an object", "null": "null",
}  # fmt: skip
_MISFIT = re.compile(r"(?P<what>.*?)(?: - at `\$(?P<path>.*)`)?\Z", re.DOTALL)
_EXPECTED = re.compile(r"Expected `(?P<kind>[^`]+)`(?P<bound> [^,]*)?(?:, got `(?P<got>[^`]+)`)?\Z")


def _unknown(tool_name: str, name: str, known: Iterable[str]) -> str:
    hint = _nearest(name, known)
    if hint is None:
        listed = ", ".join(sorted(known))
        hint = f"its arguments are: {listed}" if listed else "it takes none"
    return f"{tool_name} has no argument {name!r}: {hint}"


def _explain(problem: str, args: JsonObject, parameters: JsonObject) -> str:
    """msgspec's finding as a sentence about the argument."""
    found = _MISFIT.match(problem)
    path = (found["path"] if found else None) or ""
    what = found["what"] if found else problem
    name = re.split(r"[.\[]", path.removeprefix("."), maxsplit=1)[0]
    inner = path.removeprefix(f".{name}")
    where = f"argument {name!r}" + (f" at {name}{inner}" if inner else "")
    expected = _EXPECTED.match(what)
    if expected is not None:
        return f"{where} {_must_be(expected, args.get(name) if not inner else None)}"
    options = parameters.get("properties", {}).get(name, {}).get("enum")
    if options and not inner:
        return f"{where} must be one of {', '.join(map(repr, options))}, got {args.get(name)!r}"
    return f"{where}: {what}"


def _must_be(expected: re.Match[str], value: Any) -> str:
    kinds = [_TYPES.get(kind, kind) for kind in expected["kind"].split(" | ")]
    text = f"must be {' or '.join(kinds)}{expected['bound'] or ''}"
    shown = wire.encode(value).decode() if isinstance(value, str | int | float) else ""
    got = ("" if isinstance(value, bool) else _TYPES.get(expected["got"] or "", expected["got"])) or ""
    if got or shown:
        text += f", got {' '.join(filter(None, [got, shown[:60] + '…' * (len(shown) > 60)]))}"
    if expected["got"] == "str" and {"an array", "an object"} & set(kinds):
        text += ": send the JSON value itself, not a string that contains it"
    return text


def _output(name: str, result: Any) -> ToolOutput:
    if isinstance(result, str):
        return ToolOutput(result)
    if isinstance(result, ToolOutput):
        return result
    if result is None:
        return ToolOutput("done; the tool returned nothing")
    try:
        return ToolOutput(wire.encode(result).decode())
    except (TypeError, NotImplementedError, ValueError) as problem:
        kind = type(result).__name__
        raise TypeError(
            f"tool {name!r} returned a {kind}, which is neither text nor JSON: {problem}"
        ) from problem
