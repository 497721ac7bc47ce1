"""Hard cases 2, 5, 20, 21, 22, 23 and 24: crashes, cancels, secrets and budgets."""

import asyncio
import logging
import os
import signal
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from jackstay import HITL, HITLDecision, SQLiteStore, WarningEvent, cancel, tool
from jackstay.core import wire
from jackstay.core.approvals import HITLTask
from jackstay.core.errors import Conflict, SessionBusy
from jackstay.core.events import ReasonDeltaEvent, RunEndEvent, ToolOutputDeltaEvent
from jackstay.core.messages import Message, Text, Thinking, ToolCall, Usage
from jackstay.core.state import Batch, BatchCall, RunState
from jackstay.engine import texts
from jackstay.engine.ports import Lease, ModelRequest, Record, Reply, Tell, ToolContext
from jackstay.models.scripted import ScriptedModel
from jackstay.policy.secrets import plain
from jackstay.store.leases import this_process
from jackstay.store.tables import END
from tests.campaign.mission import KillingStore, die_at
from tests.campaign.supervise import KILLED, check_bodies, ended, fork
from tests.elsewhere import HOUR, Place, ask, asks, ends, order, reply

SECRET = plain("ghp_¦k3Jd8sLq0ZxVb7NmYt5RwPa2HgUe9Cf4Ti6o")
PUT = reply(asks("put", "p1"))


def killed(place: Place, *turns: Any, at: int, when: str = "before", **settings: Any) -> None:
    """A worker that dies at this commit."""

    def run() -> int:
        ask(place.engine(*turns, store=KillingStore(place.store(), die_at(at, when)), **settings))
        return 0

    assert ended(fork(run)) == KILLED


# -- row 2 -------------------------------------------------------------------------------------------------


def test_row_2_a_call_that_may_have_run_is_not_repeated_but_asked_about(place: Place) -> None:
    killed(place, PUT, "Done.", at=3)  # it has run; its result was never stored
    assert place.counted == {"p1": 1}
    events = ask(place.engine(PUT, "Done."), None)
    assert order(events) == ["run_start", "hitl_pending", "run_end"]
    assert place.waiting()["p1"].indeterminate
    HITL.submit(place.session(), "p1", HITLDecision.skip("I looked: it is there"))
    (end,) = ends(ask(place.engine(PUT, "Done."), None))
    assert (end.text, end.executed, place.counted) == ("I looked: it is there", None, {"p1": 1})
    check_bodies(place.state)


def test_row_2_where_nobody_can_be_asked_the_model_is_told_that_it_may_have_run(place: Place) -> None:
    killed(place, PUT, "Done.", at=3, hitl_enabled=False)
    (end,) = ends(ask(place.engine(PUT, "Done.", hitl_enabled=False), None))
    assert (end.text, end.executed, place.counted) == (texts.MAY_HAVE_RUN, None, {"p1": 1})


def test_row_2_an_idempotent_call_is_simply_run_again(place: Place) -> None:
    turn = reply(asks("look", "l1"))
    killed(place, turn, "Done.", at=3)
    (end,) = ends(ask(place.engine(turn, "Done."), None))
    assert (end.text, end.executed, place.counted) == ("saw l1", True, {"l1": 2})


def test_row_2_a_new_prompt_over_it_says_so_too(place: Place) -> None:
    killed(place, PUT, "Done.", at=3)
    ask(place.engine("New."), "something else")
    result = place.results()["p1"]
    assert (result.executed, place.counted) == (None, {"p1": 1})
    assert texts.LOOK in result.text


# -- row 5 -------------------------------------------------------------------------------------------------


def test_row_5_a_suspension_two_levels_down_keeps_its_path_through_json_twice() -> None:
    """Equal call ids included. The suspensions themselves: `tests/subagents/test_waiting.py`."""
    paths = ((), ("s.child",), ("s.child", "s.child.grandchild"), ("s.other",))
    tasks = [HITLTask("call_1", "deploy", {"name": "x"}, "sensitive", path=path) for path in paths]
    calls = tuple(BatchCall(ToolCall("call_1", "deploy", {"name": "x"}), task=task) for task in tasks)
    state = RunState("s", "r", outcome="pending", batch=Batch(calls))
    once = wire.decode_head(wire.encode(state))
    twice = wire.decode_head(wire.encode(once))
    assert twice == once == state
    assert twice.batch is not None
    assert [task.path for task in twice.batch.waiting] == list(paths)


# -- row 20 ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "turn",
    [
        {"calls": [{"tool": "put", "raw": '{"name": "x'}]},
        {"calls": [{"tool": "put", "raw": ""}]},
        {"calls": [{"tool": "put", "raw": "[1]"}]},
        {"calls": [{"tool": "put", "args": {"name": "x"}}], "stop": "length"},
        {"calls": [{"tool": "put", "args": {}}]},
        {"calls": [{"tool": "put", "args": {"name": ["x"]}}]},
    ],
)
def test_row_20_arguments_that_were_cut_or_do_not_fit_never_run(place: Place, turn: dict[str, Any]) -> None:
    (end,) = ends(ask(place.engine({"say": "", **turn}, "Done.")))
    assert (end.executed, end.is_error, place.counted) == (False, True, {})
    assert place.results()
    check_bodies(place.state)


def test_row_20_calls_with_one_id_run_once_each_under_names_of_their_own(place: Place) -> None:
    twins = reply(asks("put", "x", name="a"), asks("put", "x", name="b"))
    ask(place.engine(twins, "Done."))
    assert (place.counted, len(place.results())) == ({"a": 1, "b": 1}, 2)
    check_bodies(place.state)


# -- row 21 ------------------------------------------------------------------------------------------------


def tamper(place: Place, statement: str) -> None:
    with sqlite3.connect(place.folder / "s.db") as connection:
        connection.execute(statement)
    connection.close()


@pytest.mark.parametrize("which", ["max(id)", "min(id) + 1"])
def test_row_21_a_torn_last_or_corrupt_middle_record_costs_what_follows_and_no_approval(
    place: Place, which: str, caplog: pytest.LogCaptureFixture
) -> None:
    turns = (PUT, reply(asks("deploy", "d1"), asks("look", "l1")), "Done.")
    ask(place.engine(*turns))
    half = "substr(data, 1, length(data) / 2)"
    tamper(place, f"UPDATE steps SET data = {half} WHERE id = (SELECT {which} FROM steps WHERE id < {END})")
    assert list(place.waiting()) == ["d1"]
    HITL.submit(place.session(), "d1", HITLDecision.approve())
    with caplog.at_level(logging.WARNING, "jackstay"):
        ask(place.engine("Done."), None)
    assert "everything before is intact" in caplog.text
    assert place.counted == {"p1": 1, "d1": 1, "l1": 1}
    place.results()
    check_bodies(place.state)
    assert place.store().check() == []


def test_row_21_a_worker_that_was_thought_dead_cannot_store_its_late_result(place: Place) -> None:
    """Its lease ran out, another process cancelled the run: what it still brings is refused."""
    turns = (reply(asks("deploy", "d1")), "Done.")
    ask(place.engine(*turns))
    late = place.store()
    stored = late.load("s")
    assert stored is not None
    held = replace(stored.state, outcome=None)
    version = late.commit("s", stored.version, Record(held, lease=Lease(this_process("late"), 1.0)))
    assert cancel(place.session(), by="ada") == "cancelled"
    with pytest.raises((Conflict, SessionBusy)):
        late.commit("s", version, Record(held))
    assert place.state.outcome == "cancelled"


# -- row 22 ------------------------------------------------------------------------------------------------


def slow(place: Place) -> dict[str, Any]:
    """A command that says that it runs, and then takes ten minutes."""
    os.mkfifo(place.work / "pipe")
    command = "echo $$ > pipe; sleep 600; echo late >> count"
    return reply({"tool": "bash", "id": "b1", "args": {"command": command}}, asks("put", "p1"))


def test_row_22_cancelled_from_another_process_while_a_tool_runs(place: Place) -> None:
    turn = slow(place)
    settings = {"tools": (*place.tools(), "bash"), "hitl_enabled": False}

    def run() -> int:
        events = ask(place.engine(turn, "Done.", **settings))
        end = events[-1]
        return 0 if isinstance(end, RunEndEvent) and end.outcome == "cancelled" else 1

    child = fork(run)
    pid = int((place.work / "pipe").read_text())
    assert cancel(place.session(), by="ada") == "ordered"
    assert cancel(place.session(), by="eve") == "ordered"
    assert ended(child) == 0
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
    results = place.results()
    assert results["b1"].text.startswith("Interrupted while running (cancelled by ada)")
    assert (results["b1"].executed, results["p1"].text) == (True, "Not run: cancelled by ada.")
    assert cancel(place.session()) == "over"
    assert not place.counted
    check_bodies(place.state)
    assert order(ask(place.engine("Fine."), "and now?"))[-1] == "run_end"


def test_row_22_an_order_is_heeded_before_the_next_tool_begins(place: Place) -> None:
    @tool(effects={"writes"})
    async def put(name: str) -> str:
        """Is cancelled from elsewhere while it runs."""
        place.count(name)
        assert cancel(place.session(), by="ada") == "ordered"
        return f"put {name}"

    turn = reply(asks("put", "p1"), asks("put", "p2"))
    events = ask(place.engine(turn, "Done.", tools=(put,)))
    assert [(end.call_id, end.text, end.executed) for end in ends(events)] == [("p1", "put p1", True)]
    assert place.results()["p2"].text == "Not run: cancelled by ada."
    assert (place.state.outcome, place.counted) == ("cancelled", {"p1": 1})
    assert place.store().inbox("s") == ()


def test_row_22_an_order_given_while_the_model_answers_is_heeded_before_its_call_begins(place: Place) -> None:
    class Overheard(ScriptedModel):
        """Somebody elsewhere cancels the run while it answers."""

        async def reply(self, request: ModelRequest, tell: Tell) -> Reply:
            assert cancel(place.session(), by="ada") == "ordered"
            return await super().reply(request, tell)

    answer = place.engine(model=Overheard([PUT, "Done."])).prompt("go").session("s").call_sync()
    assert (answer.outcome, answer.text) == ("cancelled", "cancelled by ada")
    assert place.results()["p1"].text == "Not run: cancelled by ada."
    assert not place.counted
    assert place.store().inbox("s") == ()


def test_row_22_an_order_to_a_worker_that_died_is_carried_out_by_whoever_resumes(place: Place) -> None:
    def run() -> int:
        @tool(effects={"writes"})
        async def put(name: str) -> str:
            """Dies right after the order."""
            cancel(place.session(), by="ada")
            os.kill(os.getpid(), signal.SIGKILL)
            return ""

        ask(place.engine(PUT, "Done.", tools=(put,)))
        return 0

    assert ended(fork(run)) == KILLED
    assert order(ask(place.engine(PUT, "Done."), None)) == [
        "run_start", "tool_call_end", "action_end", "run_end",
    ]  # fmt: skip
    assert (place.state.outcome, place.results()["p1"].executed) == ("cancelled", None)


def test_row_22_an_order_for_one_run_does_not_stop_the_next(place: Place) -> None:
    ask(place.engine("One."))
    first = place.state.run_id
    from jackstay.engine.ports import Posted

    place.store().post("s", Posted(0, "!cancel", command="cancel", data={"by": "ada", "run_id": first}))
    ask(place.engine("Two."), "again")
    assert (place.state.outcome, place.state.text) == ("answered", "Two.")


def test_a_cancelled_stream_still_raises_and_is_not_taken_for_an_order(place: Place) -> None:
    started = asyncio.Event()

    @tool(effects={"writes"})
    async def put(name: str) -> str:
        """Never returns."""
        started.set()
        await asyncio.Event().wait()
        return ""

    async def main() -> None:
        stream = place.engine(PUT, "Done.", tools=(put,)).prompt("go").session("s").stream()
        waiter = asyncio.ensure_future(stream.wait())
        await started.wait()
        await stream.cancel("eve")
        await waiter

    asyncio.run(main())
    assert place.results()["p1"].text == texts.interrupted("cancelled by eve")


# -- row 23 ------------------------------------------------------------------------------------------------


class Signed:
    """A model whose thinking is signed, and which repeats a secret in a call of its own."""

    name, context_length = "signed", None
    SIGNATURE = "c2lnbmVk" * 8

    async def reply(self, request: ModelRequest, tell: Tell) -> Reply:
        if len(request.transcript) > 2:
            return Reply(Message("assistant", (Text("Done."),)))
        thinking = Thinking(f"I saw {SECRET} in the question", signature=self.SIGNATURE, source="anthropic")
        call = ToolCall("x1", "leak", {"token": SECRET})
        return Reply(Message("assistant", (thinking, call)))

    async def close(self) -> None: ...


def bytes_of(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in folder.glob("s.db*"))


def leaking(place: Place, heard: list[str], *, fail: bool = False) -> Any:
    @tool(effects={"writes"})
    async def leak(token: str) -> str:
        """Gives back the secret, or fails with it."""
        heard.append(token)
        if fail:
            raise RuntimeError(f"401 for {SECRET}")
        return f"export GITHUB_TOKEN={SECRET}\n" + "x" * 60_000 + f"\n{SECRET}\n" + "y" * 60_000

    return leak


@pytest.mark.parametrize("fail", [False, True])
def test_row_23_a_secret_in_a_result_or_error_reaches_no_message_event_artifact_or_log(
    place: Place, fail: bool, caplog: pytest.LogCaptureFixture
) -> None:
    heard: list[str] = []
    turn = reply({"tool": "leak", "id": "x1", "args": {"token": "by reference"}})
    with caplog.at_level(logging.DEBUG):
        events = ask(place.engine(turn, "Done.", tools=(leaking(place, heard, fail=fail),)))
    (end,) = ends(events)
    assert SECRET not in end.text
    assert "[redacted:github-token]" in end.text
    assert heard == ["by reference"]
    assert SECRET.encode() not in bytes_of(place.folder)
    assert SECRET not in caplog.text + repr(events)
    assert fail or "[redacted:github-token]" in (place.store().artifact("s", "x1") or "")
    check_bodies(place.state)


def test_row_23_what_the_model_wrote_reaches_tool_and_provider_as_it_was_signed(place: Place) -> None:
    heard: list[str] = []
    ask(place.engine(model=Signed(), tools=(leaking(place, heard),)))
    assert heard == [SECRET]
    message = place.state.transcript[1]
    thinking, call = message.parts
    assert isinstance(thinking, Thinking)
    assert isinstance(call, ToolCall)
    assert (thinking.signature, call.args) == (Signed.SIGNATURE, {"token": SECRET})
    assert SECRET not in place.results()["x1"].text
    check_bodies(place.state)


def test_row_23_the_reason_shown_for_an_approval_loses_its_secrets(place: Place) -> None:
    from jackstay import HITLInterceptor

    class Repeats:
        def evaluate(self, trace: Any, args: Any) -> str:
            return f"calls with {SECRET}"

    hitl = HITLInterceptor().on_tool("deploy", Repeats())
    ask(place.engine(reply(asks("deploy", "d1")), "Done.", hitl_interceptor=hitl))
    assert place.waiting()["d1"].comment == "calls with [redacted:github-token]"
    assert SECRET.encode() not in bytes_of(place.folder)


def test_row_23_an_error_of_the_models_server_loses_its_secrets(place: Place) -> None:
    error = {"kind": "auth", "message": f"Incorrect API key provided: {SECRET}"}
    ask(place.engine({"error": error}))
    assert place.state.error is not None
    assert place.state.error.message == "Incorrect API key provided: [redacted:github-token]"
    assert SECRET.encode() not in bytes_of(place.folder)


def test_row_23_a_mark_is_never_written_in_place_of_the_secret(place: Place) -> None:
    turn = reply(asks("put", "p1", name="TOKEN=[redacted:github-token]"))
    (end,) = ends(ask(place.engine(turn, "Done.")))
    assert (end.text, end.executed, place.counted) == (texts.STANDS_FOR_SECRET, False, {})
    ask(place.engine(reply(asks("put", "p2", name="[redacted:nothing-known]")), "Done."), "again")
    assert place.counted == {"[redacted:nothing-known]": 1}


def test_row_23_a_secret_that_comes_in_pieces_is_never_shown_in_part(place: Place) -> None:
    @tool(effects={"reads"})
    async def look(name: str, context: ToolContext) -> str:
        """Look, telling it bit by bit."""
        for at in range(0, len(SECRET), 5):
            context.tell(SECRET[at : at + 5])
        context.tell(" and more")
        return "looked"

    class Stammers(Signed):
        async def reply(self, request: ModelRequest, tell: Tell) -> Reply:
            for letter in f"I use {SECRET}":
                tell(letter, True)
                tell(letter, False)
            calls = () if len(request.transcript) > 2 else (ToolCall("l1", "look", {"name": "a"}),)
            return Reply(Message("assistant", (Text(f"I use {SECRET}"), *calls)))

    events = ask(place.engine(model=Stammers(), tools=(look,)))
    said = {thinking: "" for thinking in (False, True)}
    for event in events:
        if isinstance(event, ReasonDeltaEvent):
            said[event.thinking] += event.text
    output = "".join(event.text for event in events if isinstance(event, ToolOutputDeltaEvent))
    assert output == "[redacted:github-token] and more"
    twice = "I use [redacted:github-token]" * 2
    assert said == {False: twice, True: twice}
    assert SECRET[:12] not in repr(events)


def test_row_23_redaction_can_be_switched_off(place: Place) -> None:
    turn = reply({"tool": "leak", "id": "x1", "args": {"token": "t"}})
    (end,) = ends(ask(place.engine(turn, "Done.", tools=(leaking(place, []),), redact_secrets=False)))
    assert SECRET in end.text


# -- row 24 ------------------------------------------------------------------------------------------------


def test_row_24_waiting_for_a_person_is_not_billed_and_the_time_used_is_not_forgotten(place: Place) -> None:
    turns = (reply(asks("deploy", "d1")), reply(asks("deploy", "d2")), "Done.")
    ask(place.engine(*turns, max_seconds=60.0))
    before = place.state.active_s
    assert before > 0
    place.at += 1000 * HOUR
    HITL.submit(place.session(), "d1", HITLDecision.approve())
    ask(place.engine(*turns, max_seconds=60.0), None)
    assert before < place.state.active_s < 60
    assert place.state.is_pending


def test_row_24_turns_and_tokens_count_on_after_a_resume_and_the_reason_is_typed(place: Place) -> None:
    used = Usage(100, 20)
    turns = [
        {**reply(asks("deploy", "d1")), "usage": {"input_tokens": 100, "output_tokens": 20}},
        {**reply(asks("put", "p1")), "usage": {"input_tokens": 100, "output_tokens": 20}},
        "Sum.",
    ]
    settings = {"max_tokens": 2 * used.total_tokens}
    ask(place.engine(*turns, **settings))
    HITL.submit(place.session(), "d1", HITLDecision.approve())
    killed_state = place.state
    assert killed_state.usage == used
    (_, limited) = ends(ask(place.engine(*turns, **settings), None))
    assert (limited.text, limited.executed) == (f"Not run: {texts.LIMIT}.", False)
    assert (place.state.outcome, place.state.turn, place.counted) == ("limit", 3, {"d1": 1})


def test_row_24_a_crash_forgives_no_turn(place: Place) -> None:
    turns = (PUT, reply(asks("put", "p2")), "Sum.")
    killed(place, *turns, at=3, when="after", max_turns=1)
    ask(place.engine(*turns[1:], max_turns=1), None)
    assert (place.state.outcome, place.counted) == ("limit", {"p1": 1})


def test_warnings_of_a_worker_are_stored_like_other_events(place: Place) -> None:
    """A second look at sequence numbers: stored ones have no gap, transient ones carry none."""
    events = ask(place.engine({"error": "server"}, "Done."))
    assert any(isinstance(event, WarningEvent) for event in events)
    stored = list(SQLiteStore(place.folder / "s.db").events("s"))
    assert [event.seq for event in stored] == list(range(1, len(stored) + 1))
