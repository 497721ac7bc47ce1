"""`jackstay cancel`: a run ends for good, whoever runs it and whether anybody does."""

from jackstay import RunEndEvent, SQLiteStore, ToolCallEndEvent
from jackstay.engine.ports import Posted
from jackstay.runtime.commands import person
from tests.cli.command import Jackstay, bash, released, wait_until
from tests.loopback import Loopback


def test_a_waiting_run_is_cancelled_and_nothing_of_it_can_be_approved_any_more(jackstay: Jackstay) -> None:
    jackstay.waiting()
    assert jackstay("cancel", "s1").out == "the run of session s1 is cancelled\n"
    late = jackstay("approve", "s1", "c1")
    assert (late.code, late.out) == (1, "")
    assert (
        f"waits no more and nothing was changed; what became of it: Not run: cancelled by {person()}."
        in late.err
    )
    done = jackstay("resume", "s1", "--json")
    assert (done.code, done.kinds, jackstay.count()) == (130, ["run_start", "run_end"], 0)
    told = jackstay("resume", "s1").err.splitlines()
    assert told == [f"it is over: cancelled by {person()}", "session s1"]
    assert jackstay("pending").out == "nothing waits\n"


def test_a_second_cancel_and_one_after_the_end_say_that_there_is_nothing_to_cancel(jackstay: Jackstay) -> None:
    run = jackstay.waiting()
    said = {"session_id": "s1", "run_id": run.events[0].run_id, "by": person(), "outcome": "cancelled"}
    assert jackstay("cancel", "s1", "--json").objects == [{**said, "answer": "cancelled"}]
    assert jackstay("cancel", "s1", "--json").objects == [{**said, "answer": "over"}]
    jackstay("run", "--model", jackstay.script("Fine."), "--session", "s1", "and now?")
    over = jackstay("cancel", "s1")
    told = "nothing to cancel: the last run of session s1 has ended (answered)\n"
    assert (over.code, over.out) == (0, told)


def test_a_run_in_another_process_stops_with_its_tools_and_can_be_followed_by_a_new_one(
    jackstay: Jackstay,
) -> None:
    command = "echo ran >> count; cat pipe; echo ran >> count"
    turns = [bash(command), {"say": "Never said."}]
    with released(jackstay.workspace / "pipe"), Loopback(turns, by_turn=True) as server:
        model = ["--model", f"m@{server.openai_url}", "--allow", "bash"]
        run = jackstay.start("run", *model, "--session", "s1", "--json", "go")
        run.until("tool_call_start")
        wait_until(lambda: jackstay.count() == 1)
        ordered = jackstay("cancel", "s1")
        done = run.end()
        assert len(server.requests) == 1
    told = "session s1 is being run: it stops within a second or two, see: jackstay sessions show s1\n"
    assert (ordered.code, ordered.out) == (0, told)
    ended, end = done.events[0], done.events[-1]
    assert (done.code, jackstay.count()) == (130, 1)
    assert isinstance(ended, ToolCallEndEvent)
    assert ended.text.startswith(f"Interrupted while running (cancelled by {person()})")
    assert isinstance(end, RunEndEvent)
    assert end.outcome == "cancelled"
    assert jackstay("run", "--model", jackstay.script("Fine."), "--session", "s1", "and now?").code == 0


def test_a_run_whose_process_was_killed_is_cancelled_at_once(jackstay: Jackstay) -> None:
    with released(jackstay.workspace / "pipe"), Loopback([bash("cat pipe")], by_turn=True) as server:
        model = ["--model", f"m@{server.openai_url}", "--allow", "bash"]
        run = jackstay.start("run", *model, "--session", "s1", "--json", "go")
        run.until("tool_call_start")
        run.kill()
        assert jackstay("cancel", "s1", "--json").objects[0]["answer"] == "cancelled"
        done = jackstay("resume", "s1", "--json")
    assert (done.code, done.kinds) == (130, ["run_start", "run_end"])


def test_a_session_that_is_not_there_is_an_error(jackstay: Jackstay) -> None:
    done = jackstay("cancel", "s9")
    assert (done.code, done.out) == (1, "")
    assert "no session 's9' is stored" in done.err


def test_an_order_that_waits_is_shown_as_what_it_is(jackstay: Jackstay) -> None:
    run_id = jackstay.waiting().events[0].run_id
    store = SQLiteStore(jackstay.home / "sessions.db")
    store.post("s1", Posted(0, "command/cancel", command="cancel", data={"by": "ada", "run_id": run_id}))
    store.close()
    last = jackstay("phase", "show", "s1").out.splitlines()[-1]
    assert last == "  commanded  its run is cancelled by ada, taken up with the next request"
    done = jackstay("resume", "s1", "--json")
    assert (done.code, done.kinds) == (130, ["run_start", "run_end"])
