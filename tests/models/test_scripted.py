import anyio
import pytest

from jackstay.core.errors import ConfigError, ErrorInfo, ModelError, ScriptError
from jackstay.core.messages import Message, ToolCall, ToolResult, Usage, assistant, note, observation, user
from jackstay.core.transcript import Transcript
from jackstay.engine.ports import ModelRequest
from jackstay.models.scripted import ScriptedCall, ScriptedModel, Turn
from tests.models.asking import Heard, ask, ask_once, fail_once, request


def say(model: ScriptedModel, *messages: Message) -> str:
    return ask_once(model, request(*messages)).reply.message.text


def test_turns_answer_in_order_whatever_form_they_are_written_in():
    model = ScriptedModel([
        "text",
        {"say": "dict", "calls": [{"tool": "ls", "args": {"path": "a"}, "id": "c1"}]},
        Turn(say="turn", usage=Usage(3, 4)),
        assistant("message", ToolCall("c2", "ls", {})),
    ])  # fmt: skip
    replies = [h.reply for h in ask(model, *[request()] * 4) if isinstance(h, Heard)]
    assert [r.message for r in replies] == [
        assistant("text"),
        assistant("dict", ToolCall("c1", "ls", {"path": "a"})),
        assistant("turn"),
        assistant("message", ToolCall("c2", "ls", {})),
    ]
    assert ([r.stop for r in replies], replies[2].usage) == (["end", "calls", "end", "calls"], Usage(3, 4))
    model.finish()


def test_one_request_too_many_names_what_was_asked_and_what_the_script_still_holds():
    model = ScriptedModel(["one", {"say": "two", "when": "never said"}])
    _, info = ask(model, request(user("first")), request(user("second")))
    assert info == ErrorInfo(
        "script",
        "the script has no turn for request 2, after 'second': it holds 'two' when 'never said' is found "
        "(add a turn, or end the run earlier)",
    )
    assert not info.retryable


def test_turns_that_were_not_asked_for_are_an_error_that_names_the_next_one():
    model = ScriptedModel(["one", {"say": "two", "calls": [{"tool": "ls"}]}, "three"])
    say(model)
    with pytest.raises(ScriptError, match=r"2 turns .* the next one was to say 'two' and a call of 'ls'"):
        model.finish()


def test_a_condition_looks_at_the_last_user_or_tool_message():
    def script() -> ScriptedModel:
        return ScriptedModel([{"say": "sorry", "when": "(?i)rejected"}, {"say": "done", "when": "ok$"}, "else"])

    call = assistant("", ToolCall("c", "ls", {}))
    assert say(script(), user("ok")) == "done"
    assert say(script(), user("ok"), call, observation(ToolResult("c", "Rejected by Ann"))) == "sorry"
    assert say(script(), user("ok"), assistant("rejected"), user("hm")) == "else"


def test_a_condition_that_is_never_met_is_no_fault():
    model = ScriptedModel([{"say": "sorry", "when": "rejected"}, "done"])
    assert say(model) == "done"
    model.finish()


@pytest.mark.parametrize(
    ("error", "info"),
    [
        ("rate_limit", ErrorInfo("rate_limit", "the script failed with rate_limit")),
        (503, ErrorInfo("server", "the script answered 503", 503)),
        (429, ErrorInfo("rate_limit", "the script answered 429", 429)),
        (401, ErrorInfo("auth", "the script answered 401", 401)),
        (413, ErrorInfo("overflow", "the script answered 413", 413)),
        (
            {"kind": "overflow", "message": "too long", "status": 400, "retry_after_s": 2},
            ErrorInfo("overflow", "too long", 400, 2.0),
        ),
    ],
)
def test_error_turns(error, info):
    assert fail_once(ScriptedModel([{"error": error}])) == info


def test_a_turn_can_take_its_time_and_be_cancelled_meanwhile():
    model = ScriptedModel([{"say": "late", "wait_s": 60}])

    async def main() -> bool:
        with anyio.move_on_after(0.01) as scope:
            await model.reply(request(), lambda *_: None)
        return scope.cancelled_caught

    assert anyio.run(main)


def test_requests_are_there_to_look_at():
    model = ScriptedModel(["one"])
    asked = request(user("why?"))
    ask(model, asked)
    assert model.requests == [asked]


# -- another process goes on -------------------------------------------------------------------------------

SCRIPT = [
    {"say": "look", "calls": [{"tool": "ls"}]},
    {"error": 503},
    {"say": "odd", "when": "rejected"},
    {"calls": [{"tool": "write"}]},
    "done",
    "next prompt",
]
FIRST = [user("go"), assistant("look", ToolCall("c1", "ls", {})), observation(ToolResult("c1", "x"))]
SECOND = [*FIRST, assistant("", ToolCall("c2", "write", {"a": 1})), observation(ToolResult("c2", "ok"))]


@pytest.mark.parametrize(
    ("messages", "said"),
    [
        ([user("go")], "look"),
        (SECOND, "done"),
        ([*SECOND, note("loop", "You repeat yourself.")], "done"),
        ([*SECOND, assistant("done"), user("more")], "look"),  # a new run with a script of its own
        ([user("before"), assistant("by another model"), *SECOND], "done"),
        ([user("go"), assistant("by another model"), note("n", "x")], "look"),
    ],
)
def test_a_new_instance_goes_on_behind_the_turns_that_the_run_has_had(messages, said):
    assert say(ScriptedModel(SCRIPT), *messages) == said


def test_a_second_prompt_that_was_interrupted_goes_on_as_well():
    script = ["first answer", {"say": "again", "calls": [{"tool": "ls"}]}, "second answer"]
    run = [user("go"), assistant("first answer"), user("more"), assistant("again", ToolCall("c", "ls", {}))]
    assert say(ScriptedModel(script), *run, observation(ToolResult("c", "x"))) == "second answer"


def test_an_error_that_the_run_has_had_may_come_again():
    _, after = ask(ScriptedModel(SCRIPT), request(*FIRST), request(*FIRST))
    assert isinstance(after, Heard)
    assert [call.tool for call in after.reply.message.calls] == ["write"]


# -- files -------------------------------------------------------------------------------------------------


def test_yaml_and_json_say_the_same(tmp_path):
    (tmp_path / "s.json").write_text(
        '{"turns": [{"say": "你好", "calls": [{"tool": "ls", "args": {"a": 1}}], "error": null}]}'
    )
    (tmp_path / "s.yaml").write_text("- say: 你好\n  calls:\n    - tool: ls\n      args: {a: 1}\n")
    replies = [ask_once(ScriptedModel.load(str(tmp_path / f"s.{end}"))).parts for end in ("json", "yaml")]
    assert replies[0] == replies[1] == assistant("你好", ToolCall("", "ls", {"a": 1})).parts


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("a.json", "{", "is not JSON"),
        ("a.yaml", "turns: [", "neither JSON nor YAML"),
        ("a.yaml", "turn: []", "unknown field `turn`"),
        ("a.yaml", "[{sya: x}]", r"unknown field `sya` - at `\$.turns\[0\]`"),
        ("a.yaml", "[{error: nonsense}]", r"`\$.turns\[0\].error`"),
        ("a.yaml", "[{when: '['}]", "is no pattern"),
        ("a.yaml", "just words", "does not fit"),
        ("a.yaml", "", "does not fit"),
    ],
)
def test_a_script_that_cannot_be_used_names_file_and_place(tmp_path, name, text, words):
    path = tmp_path / name
    path.write_text(text)
    with pytest.raises(ConfigError, match=words) as caught:
        ScriptedModel.load(str(path))
    assert name in str(caught.value)


def test_turns_from_python_are_checked_as_well():
    with pytest.raises(ConfigError, match="unknown field `sya`"):
        ScriptedModel([{"sya": "x"}])


def test_a_model_error_carries_the_facts():
    async def main() -> None:
        await ScriptedModel([Turn(error=500)]).reply(ModelRequest("", Transcript()), lambda *_: None)

    with pytest.raises(ModelError) as caught:
        anyio.run(main)
    assert caught.value.info.retryable
    assert ScriptedCall("ls").args == {}
