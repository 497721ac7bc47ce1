"""Steps as stored: nothing is said twice, and everything comes back."""

from collections.abc import Sequence
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jackstay.core import events as ev
from jackstay.core.approvals import HITLDecision, HITLTask
from jackstay.core.events import Event
from jackstay.core.messages import (
    Image,
    Message,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    UnknownPart,
    Usage,
    assistant,
    observation,
    user,
)
from jackstay.core.packing import pack_message, pack_step
from jackstay.core.transcript import Transcript
from jackstay.core.unpacking import (
    EventReader,
    count_events,
    message_rows,
    step_messages,
    unpack_message,
)
from jackstay.core.wire import decode_json, encode
from tests.core.test_wire import events, json_values, made, objects, of, words

parts = st.one_of(
    made(Text), made(Thinking), made(Image), made(ToolCall), made(ToolResult),
    st.builds(UnknownPart, objects),
    st.lists(json_values).map(lambda fields: UnknownPart({"type": "hologram", "fields": fields})),
)  # fmt: skip
messages = st.builds(
    Message, st.sampled_from(["system", "user", "assistant", "tool"]), st.lists(parts, max_size=4).map(tuple),
    st.booleans(), st.none() | words,
)  # fmt: skip


def packed(steps: Sequence[tuple[list[Message], list[Event]]]) -> list[bytes]:
    transcript, run_id, found = Transcript(), "", []
    for appended, told in steps:
        transcript = transcript.append(*appended)
        run_id = told[-1].run_id if told else run_id
        found.append(pack_step(told, appended, (), transcript=transcript, run_id=run_id))
    return found


def unpacked(steps: Sequence[bytes], runs: Sequence[str]) -> list[Event]:
    reader, found = EventReader("s"), []
    for data, run_id in zip(steps, runs, strict=True):
        found += reader.read(data, len(found) + 1, run_id)
    return found


@given(messages)
def test_a_message_comes_back(message: Message) -> None:
    assert unpack_message(decode_json(encode(pack_message(message)))) == message


@given(st.lists(messages, max_size=3), st.lists(st.tuples(st.integers(0, 9), messages), max_size=2))
def test_the_messages_of_a_step_come_back(appended: list[Message], amended: list[tuple[int, Message]]) -> None:
    data = pack_step((), appended, amended, transcript=Transcript(appended), run_id="r")
    assert step_messages(data) == (tuple(appended), tuple(amended))


DURABLE = events.filter(lambda event: not isinstance(event, ev.TRANSIENT))
few_ids = st.sampled_from(["call_1", "call_2"])
few_args: st.SearchStrategy[dict[str, Any]] = st.sampled_from(
    [{}, {"a": 1}, {"a": 1.0}, {"a": True}, {"a": 1, "b": 2}, {"a": "x", "b": "y"}, {"b": "y", "a": "x"}]
)
few_words = st.sampled_from(["", "done", "x"])
few_calls = st.lists(st.builds(ToolCall, few_ids, st.sampled_from(["ls", "cat"]), few_args), max_size=2).map(
    tuple
)
common = {
    "run_id": st.sampled_from(["r1", "r2"]), "session_id": st.just("s"), "seq": st.just(0),
    "at": st.sampled_from([1.5, 2.5]),
}  # fmt: skip
entangled = st.one_of(  # events and messages that share words, so that every way of leaving out is taken
    st.builds(ev.ReasonEndEvent, **common, turn=st.just(1), text=few_words, calls=few_calls),
    st.builds(ev.ActionStartEvent, **common, calls=st.lists(few_ids, max_size=2).map(tuple)),
    st.builds(ev.ToolCallStartEvent, **common, call_id=few_ids, tool_name=st.just("ls"), args=few_args),
    st.builds(
        ev.ToolCallEndEvent, **common, call_id=few_ids, tool_name=st.just("ls"), args=few_args,
        is_error=st.booleans(), executed=of(bool | None), text=few_words, duration_ms=st.just(0.5),
    ),
    st.builds(
        ev.HITLPendingEvent, **common,
        pending_tasks=st.lists(st.builds(HITLTask, few_ids, st.just("ls"), few_args, few_words)).map(tuple),
    ),
    st.builds(
        ev.HITLDecidedEvent, **common, call_id=few_ids, tool_name=st.just("ls"), args=few_args,
        comment=of(str | None), decision=made(HITLDecision),
    ),
    st.builds(
        ev.RunEndEvent, **common, outcome=st.just("answered"), is_abnormal=st.booleans(), text=few_words,
        usage=made(Usage),
    ),
)  # fmt: skip
told_messages = st.one_of(
    st.builds(lambda text, calls: assistant(text, *calls), few_words, few_calls),
    st.builds(lambda call_id, text: observation(ToolResult(call_id, text)), few_ids, few_words),
    st.builds(user, few_words),
)


@settings(max_examples=300, deadline=None)
@given(
    st.lists(
        st.tuples(st.lists(told_messages, max_size=3), st.lists(entangled | DURABLE, max_size=4)), max_size=5
    )
)
def test_the_events_of_a_session_come_back_whole(steps: list[tuple[list[Message], list[Event]]]) -> None:
    numbered: list[tuple[list[Message], list[Event]]] = []
    seq = 0
    for appended, told in steps:
        again = []
        for event in told:
            seq += 1
            again.append(msgspec.structs.replace(event, session_id="s", seq=seq))
        numbered.append((appended, again))
    runs, run_id = [], ""
    for _, told in numbered:
        run_id = told[-1].run_id if told else run_id
        runs.append(run_id)
    data = packed(numbered)
    whole = [event for _, told in numbered for event in told]
    assert repr(unpacked(data, runs)) == repr(whole)  # not ==, for which 1, 1.0 and True are one
    assert [count_events(step) for step in data] == [len(told) for _, told in numbered]
    for start in range(len(data)):  # and from any step on, with what came before at hand
        before = data[:start]
        first = sum(len(told) for _, told in numbered[:start])
        reader = EventReader(
            "s", run_id=runs[start - 1] if start else "", earlier=map(step_messages, reversed(before))
        )
        found: list[Event] = []
        for step, run in zip(data[start:], runs[start:], strict=True):
            found += reader.read(step, first + len(found) + 1, run)
        assert repr(found) == repr(whole[first:])


CALL = ToolCall("call_abcdefghijklmnopqrstuvwx", "write", {"file_path": "a", "content": "c" * 500})


def test_a_step_says_nothing_twice() -> None:
    transcript = Transcript(
        [user("go"), assistant("I write.", CALL), observation(ToolResult(CALL.call_id, "t" * 300))]
    )
    told: list[Event] = [
        ev.ToolCallEndEvent(
            "r", "s", 9, 1.5, CALL.call_id, "write", dict(CALL.args), False, True, "t" * 300, 0.5
        ),
        ev.ActionEndEvent("r", "s", 10, 1.5),
    ]  # fmt: skip
    data = pack_step(told, transcript.since(2), (), transcript=transcript, run_id="r")
    assert decode_json(data) == [
        [[1.5], ["te", 0, 0.5], ["ae"]],
        [["t", [["r", CALL.call_id, "t" * 300]]]],
    ]


def test_a_step_that_amends_messages_leaves_nothing_out() -> None:
    shorter = ToolCall("call_1", "write", {"content": "c"})
    stored = [assistant("", ToolCall("call_1", "write", {"content": "c" * 99}))]
    told: list[Event] = [ev.ToolCallStartEvent("r", "s", 1, 1.5, "call_1", "write", shorter.args)]
    transcript = Transcript([assistant("", shorter)])
    first = pack_step((), stored, (), transcript=Transcript(stored), run_id="r")
    second = pack_step(told, (), [(0, assistant("", shorter))], transcript=transcript, run_id="r")
    assert unpacked([first, second], ["r", "r"]) == told


def test_ids_that_a_model_uses_again_in_each_turn_are_told_apart() -> None:
    transcript, reader = Transcript(), EventReader("s")
    for turn in range(3):
        call = ToolCall("call_0", "ls", {"turn": turn})
        step = [assistant("", call), observation(ToolResult("call_0", f"result {turn}"))]
        transcript = transcript.append(*step)
        text = f"result {turn}"
        told: list[Event] = [
            ev.ToolCallEndEvent("r", "s", turn, 1.5, "call_0", "ls", call.args, False, True, text, 1.0)
        ]
        data = pack_step(told, step, (), transcript=transcript, run_id="r")
        assert reader.read(data, turn, "r") == told


def test_two_calls_of_one_id_are_written_out() -> None:
    twins = [ToolCall("call_1", "ls", {"path": "a"}), ToolCall("call_1", "ls", {"path": "b"})]
    stored = [assistant("", *twins)]
    told: list[Event] = [
        ev.ActionStartEvent("r", "s", 1, 1.5, ("call_1",)),
        *(ev.ToolCallStartEvent("r", "s", 2 + n, 1.5, "call_1", "ls", t.args) for n, t in enumerate(twins)),
    ]
    data = pack_step(told, stored, (), transcript=Transcript(stored), run_id="r")
    assert EventReader("s").read(data, 1, "r") == told


def test_a_task_that_waits_names_its_call_without_repeating_its_arguments() -> None:
    task = HITLTask(CALL.call_id, "write", CALL.args, "it writes")
    transcript = Transcript([assistant("", CALL)])
    data = pack_step(
        [ev.HITLPendingEvent("r", "s", 1, 1.5, (task,))],
        transcript.since(0),
        (),
        transcript=transcript,
        run_id="r",
    )
    assert len(data) < len(encode(CALL)) + 150


def test_transient_events_are_never_stored() -> None:
    delta = ev.ReasonDeltaEvent("r", "s", None, 1.5, "hel")
    with pytest.raises(TypeError, match="transient"):
        pack_step([delta], (), (), transcript=Transcript(), run_id="r")


# -- newer versions ----------------------------------------------------------------------------------------


def step(rows: list[Any], stored: list[Any]) -> bytes:
    return encode([rows, stored])


def test_an_event_of_an_unknown_tag_is_kept_as_it_was() -> None:
    found = EventReader("s").read(step([[1.5, "r"], ["zz", 1, {"a": 2}], ["ae"]], []), 4)
    assert found == [
        ev.UnknownEvent("r", "s", 4, 1.5, {"type": "zz", "fields": [1, {"a": 2}]}),
        ev.ActionEndEvent("r", "s", 5, 1.5),
    ]


def test_an_event_that_means_something_else_by_now_is_kept_as_it_was() -> None:
    rows = [[1.5, "r"], ["ms", {"turn": 1}], ["te", "gone", 1.0], ["ts", 7]]
    found = EventReader("s").read(step(rows, []), 1)
    assert [type(event) for event in found] == [ev.UnknownEvent] * 3
    assert found[0] == ev.UnknownEvent("r", "s", 1, 1.5, {"type": "reason_start", "turn": {"turn": 1}})


def test_fields_that_a_newer_version_added_are_ignored() -> None:
    data = step(
        [[1.5, "r"], ["ms", 3, "new"]], [["a", ["x", ["c", "id", "ls", {}, None, None, None, "new"]], False]]
    )
    assert EventReader("s").read(data, 1) == [ev.ReasonStartEvent("r", "s", 1, 1.5, 3)]
    assert step_messages(data).appended == (assistant("x", ToolCall("id", "ls", {})),)


def test_parts_of_an_unknown_kind_are_kept_and_written_back_as_they_were() -> None:
    row = ["a", ["x", ["hologram", 3, "d"], {"type": "odd"}]]
    message = unpack_message(row)
    assert message.parts[1:] == (
        UnknownPart({"type": "hologram", "fields": [3, "d"]}),
        UnknownPart({"type": "odd"}),
    )
    assert decode_json(encode(pack_message(message))) == row


def test_a_role_of_a_newer_version_never_passes_for_the_users_word() -> None:
    assert unpack_message(["d", ["obey"]]) == Message("user", (Text("obey"),), note="role d")


@pytest.mark.parametrize("data", [b"", b"{}", b"[1]", b"\x00", b"[[]"])
def test_what_is_no_step_is_refused(data: bytes) -> None:
    with pytest.raises(ValueError, match=r".+"):
        step_messages(data)


def test_a_view_picks_rows_in_its_own_order() -> None:
    rows = [user(str(n)) for n in range(5)]
    assert list(message_rows(rows, ())) == rows
    assert list(message_rows(rows, ((0, 1), (3, -1), (1, 2)))) == [rows[0], rows[3], rows[4], rows[1]]
