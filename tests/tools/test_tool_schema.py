"""How typed functions become tools, and what is said about arguments that do not fit."""

import subprocess
import sys
import threading
import time
from functools import partial
from typing import Annotated, Any, Literal

import anyio
import jsonschema
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Meta

from jackstay.core.errors import ConfigError, ToolFailed
from jackstay.core.tools import ALL_EFFECTS, ToolSpec
from jackstay.engine.ports import ToolContext, ToolOutput
from jackstay.tools.schema import tool


class Point(msgspec.Struct):
    x: int
    y: int = 0


@tool(effects={"reads"}, idempotent=True, timeout_s=5, path_args=["where"])
def look(
    where: str,
    depth: Annotated[int, Meta(ge=1, description="How deep to look.")] = 1,
    mode: Literal["fast", "slow"] = "fast",
    points: list[Point] | None = None,
    share: float = 0.5,
) -> dict[str, Any]:
    """Look around.

    It never touches anything.

    Args:
        where (str): The place to look at,
            said in two lines.
        mode: How carefully.

    Returns:
        What was seen.
    """
    return {"where": where, "depth": depth, "mode": mode, "points": points, "share": share}


def test_a_typed_function_says_everything_of_itself() -> None:
    assert look.spec == ToolSpec(
        name="look",
        description="Look around.\n\nIt never touches anything.\n\nReturns:\n    What was seen.",
        parameters={
            "type": "object",
            "properties": {
                "where": {"type": "string", "description": "The place to look at, said in two lines."},
                "depth": {"type": "integer", "minimum": 1, "default": 1, "description": "How deep to look."},
                "mode": {"enum": ["fast", "slow"], "default": "fast", "description": "How carefully."},
                "points": {
                    "anyOf": [{"type": "array", "items": {"$ref": "#/$defs/Point"}}, {"type": "null"}],
                    "default": None,
                },
                "share": {"type": "number", "default": 0.5},
            },
            "required": ["where"],
            "additionalProperties": False,
            "$defs": {
                "Point": {
                    "title": "Point",
                    "type": "object",
                    "properties": {"x": {"type": "integer"}, "y": {"type": "integer", "default": 0}},
                    "required": ["x"],
                }
            },
        },
        effects=frozenset({"reads"}),
        idempotent=True,
        timeout_s=5.0,
        path_args=("where",),
    )
    jsonschema.Draft202012Validator.check_schema(look.spec.parameters)


def test_a_tool_that_does_not_say_has_all_effects() -> None:
    @tool
    def plain_thing() -> None: ...

    assert plain_thing.spec == ToolSpec(
        "plain_thing",
        "plain thing",
        {"type": "object", "properties": {}, "required": [], "additionalProperties": False},
    )
    assert plain_thing.spec.effects == ALL_EFFECTS
    assert plain_thing() is None  # type: ignore[func-returns-value]  # the decorated name still is the function


@pytest.mark.parametrize(
    ("args", "problem"),
    [
        ({"where": "x"}, None),
        ({"where": "x", "share": 1}, None),
        ({"where": "x", "depth": None, "points": None}, None),
        ({}, "look needs the argument 'where'"),
        ({"where": "x", "dept": 2}, "look has no argument 'dept': did you mean 'depth'?"),
        (
            {"where": "x", "qq": 2},
            "look has no argument 'qq': its arguments are: depth, mode, points, share, where",
        ),
        ({"where": 3}, "argument 'where' must be a string, got an integer 3"),
        ({"where": None}, "argument 'where' must be a string, got null"),
        ({"where": "x", "depth": "3"}, "argument 'depth' must be an integer, got a string \"3\""),
        ({"where": "x", "depth": True}, "argument 'depth' must be an integer, got true"),
        ({"where": "x", "depth": 0}, "argument 'depth' must be an integer >= 1, got 0"),
        ({"where": "x", "mode": "odd"}, "argument 'mode' must be one of 'fast', 'slow', got 'odd'"),
        (
            {"where": "x", "points": [{"x": 1}, {"y": 2}]},
            "argument 'points' at points[1]: Object missing required field `x`",
        ),
        (
            {"where": "x", "points": [{"x": "1"}]},
            "argument 'points' at points[0].x must be an integer, got a string",
        ),
        (
            {"where": "x", "points": '[{"x": 1}]'},
            'argument \'points\' must be an array or null, got a string "[{\\"x\\": 1}]": '
            "send the JSON value itself, not a string that contains it",
        ),
    ],
)
def test_arguments_that_do_not_fit_are_named_with_what_was_expected(
    args: dict[str, Any], problem: str | None
) -> None:
    assert look.check(args) == problem


def test_the_functions_own_defaults_and_types_are_used(box: Any) -> None:
    output = box.run(look, where="here", points=[{"x": 1}])
    assert output.text == '{"where":"here","depth":1,"mode":"fast","points":[{"x":1,"y":0}],"share":0.5}'


def test_context_is_injected_and_not_shown(box: Any) -> None:
    @tool
    async def waits(context: ToolContext, word: str) -> str:
        context.tell(word)
        return f"{context.session_id} {context.workspace == box.workspace}"

    @tool
    def blocks(word: str, *, context: ToolContext) -> str:
        context.tell(word)
        context.seen["a"] = "b"
        return threading.current_thread().name

    assert list(waits.spec.parameters["properties"]) == list(blocks.spec.parameters["properties"]) == ["word"]
    assert box.run(waits, word="hi").text == "s1 True"
    assert box.run(blocks, word="ho").text != threading.main_thread().name
    assert box.told == ["hi", "ho"]
    assert box.seen == {"a": "b"}


def test_results_become_text(box: Any) -> None:
    def returning(value: Any) -> Any:
        @tool(name="give")
        def give() -> Any:
            return value

        return give

    assert box.run(returning("words")) == ToolOutput("words")
    assert box.run(returning(ToolOutput("x", is_error=True))) == ToolOutput("x", is_error=True)
    assert box.run(returning([1, Point(2)])) == ToolOutput('[1,{"x":2,"y":0}]')
    assert box.run(returning(None)) == ToolOutput("done; the tool returned nothing")
    with pytest.raises(TypeError, match="tool 'give' returned a object, which is neither text nor JSON"):
        box.run(returning(object()))


def test_a_tool_that_raises() -> None:
    @tool
    def polite() -> str:
        raise ToolFailed("the door is locked: bring the key")

    @tool
    def rude() -> str:
        raise LookupError("boom")

    @tool
    def stops() -> str:
        raise StopIteration

    run = partial(anyio.run, polite.run, {}, None)
    assert run() == ToolOutput("the door is locked: bring the key", is_error=True)
    with pytest.raises(LookupError, match="boom"):
        anyio.run(rude.run, {}, None)
    with pytest.raises(RuntimeError, match="StopIteration"):
        anyio.run(stops.run, {}, None)


def test_a_tool_that_hangs_blocks_neither_the_loop_nor_its_cancellation() -> None:
    release = threading.Event()

    @tool
    def hangs() -> str:
        release.wait(60)
        return "too late"

    async def main() -> float:
        begun = time.monotonic()
        with anyio.move_on_after(0.05) as limit:
            await hangs.run({}, None)
        assert limit.cancelled_caught
        return time.monotonic() - begun

    try:
        assert anyio.run(main) < 5
    finally:
        release.set()


def _undocumented(what: str) -> str:
    """Do it.

    Args:
        whta: misspelt
    """
    return what


def _generator(n: int) -> Any:
    yield n


def _untyped(x) -> str:  # type: ignore[no-untyped-def]  # that is what is tested
    return x  # type: ignore[no-any-return]  # same


def _variadic(*words: str) -> str:
    return " ".join(words)


def _strange(what: threading.Thread) -> str:
    return str(what)


def _fine(what: str) -> str:
    return what


@pytest.mark.parametrize(
    ("function", "declared", "problem"),
    [
        (_undocumented, {}, "its docstring describes 'whta', which is no parameter (did you mean 'what'?)"),
        (_generator, {}, "a tool returns its result and this function yields"),
        (_untyped, {}, "parameter 'x' has no type (annotate it, as in `x: str`)"),
        (_variadic, {}, "parameter 'words' cannot be given by name"),
        (_strange, {}, "parameter 'what' has a type that no JSON schema can say"),
        (len, {}, "a tool is made of a function or method"),
        (_fine, {"effects": {"eats"}}, "'eats' is no effect (give a set of executes, network, reads, writes)"),
        (_fine, {"effects": "reads"}, "'reads' is no effect (give a set of"),
        (_fine, {"name": "no spaces"}, "'no spaces' is no tool name"),
        (_fine, {"timeout_s": 0}, "timeout_s=0 leaves no time at all"),
        (_fine, {"path_args": ["waht"]}, "it declares 'waht' and has no such parameter (did you mean 'what'?)"),
        (_fine, {"effect": {"reads"}}, "a tool does not declare 'effect' (did you mean 'effects'?)"),
    ],
)
def test_a_bad_declaration_is_an_error_when_it_is_made(function: Any, declared: Any, problem: str) -> None:
    with pytest.raises(ConfigError) as caught:
        tool(**declared)(function)
    assert problem in str(caught.value)
    assert function.__name__ in str(caught.value)


def test_a_method_of_an_object_is_a_tool(box: Any) -> None:
    class Counter:
        count = 0

        def add(self, n: int) -> int:
            self.count += n
            return self.count

    counter = Counter()
    add = tool(counter.add)
    assert (box.run(add, n=2).text, box.run(add, n=3).text) == ("2", "5")


_VALUES = [
    None,
    True,
    0,
    1,
    -1,
    0.5,
    "",
    "fast",
    "slow",
    [],
    {},
    [{}],
    [{"x": 1}],
    [{"x": "1"}],
    [{"x": 1, "z": 2}],
]


@given(
    st.dictionaries(
        st.sampled_from(["where", *look.spec.parameters["properties"], "odd"]), st.sampled_from(_VALUES)
    )
)
def test_the_check_and_the_schema_agree(args: dict[str, Any]) -> None:
    meant = {k: v for k, v in args.items() if v is not None or k in ("where", "points", "odd")}
    valid = jsonschema.Draft202012Validator(look.spec.parameters).is_valid(meant)
    assert (look.check(args) is None) == valid


def test_a_tool_that_hangs_does_not_keep_the_process_from_ending() -> None:
    source = (
        "import anyio, time\n"
        "from jackstay.tools.schema import tool\n"
        "@tool\n"
        "def hangs() -> str:\n"
        "    time.sleep(600)\n"
        "    return ''\n"
        "async def main():\n"
        "    with anyio.move_on_after(0.1):\n"
        "        await hangs.run({}, None)\n"
        "anyio.run(main)\n"
        "print('over')\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", source], capture_output=True, text=True, timeout=30, check=True
    )
    assert done.stdout == "over\n"


def test_many_blocking_calls_run_side_by_side_and_few_threads_stay() -> None:
    meeting = threading.Barrier(30)

    @tool
    def meet() -> int:
        return meeting.wait(30)

    async def main() -> list[str]:
        outputs: list[str] = []

        async def one() -> None:
            outputs.append((await meet.run({}, None)).text)

        async with anyio.create_task_group() as group:
            for _ in range(30):
                group.start_soon(one)
        return outputs

    assert sorted(map(int, anyio.run(main))) == list(range(30))
    deadline = time.monotonic() + 10
    while len(_tool_threads()) > 12:  # those above the few that are kept are just ending
        assert time.monotonic() < deadline
        threading.Event().wait(0.01)


def _tool_threads() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "jackstay tool"]
