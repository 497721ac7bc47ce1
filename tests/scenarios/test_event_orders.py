"""The exact event orders, each as a whole list: what user interfaces are built on (first seed §4.3, §4.4)."""

import asyncio
from collections.abc import Iterator

import pytest

from jackstay import (
    HITL,
    ActionEndEvent,
    Deny,
    HarnessEngine,
    HITLDecidedEvent,
    HITLDecision,
    HITLInterceptor,
    HITLPendingEvent,
    Interceptor,
    MemoryStore,
    PermissionRule,
    ReActTrace,
    RunEndEvent,
    SQLiteStore,
    ToolCallEndEvent,
    tool,
)
from jackstay.core.messages import ToolCall
from jackstay.testing import Run, ScriptedModel, call, play, resume, says
from tests.make import unanswered

PLAIN_TURN = ["reason_start", "reason_end"]
ONE_CALL = ["action_start", "tool_call_start", "tool_call_end", "action_end"]


class Journal:
    """What tools did, in order."""

    def __init__(self) -> None:
        self.done: list[str] = []

    def tools(self) -> tuple:
        done = self.done

        @tool(effects={"reads"})
        async def look(name: str) -> str:
            """Look at something."""
            done.append(f"look {name}")
            return f"saw {name}"

        @tool(effects={"writes"})
        async def deploy(target: str) -> str:
            """Deploy to a target."""
            done.append(f"deploy {target}")
            return f"deployed to {target}"

        @tool(effects={"writes"})
        async def pay(amount: int) -> str:
            """Pay an amount."""
            done.append(f"pay {amount}")
            return f"paid {amount}"

        return look, deploy, pay


@pytest.fixture
def journal() -> Journal:
    return Journal()


@pytest.fixture(params=["memory", "sqlite"])
def store(request, tmp_path) -> Iterator[object]:
    made = MemoryStore() if request.param == "memory" else SQLiteStore(tmp_path / "sessions.db")
    yield made
    made.close()


@pytest.fixture
def run(journal: Journal, store):
    def start(*script, **settings) -> Run:
        hitl = HITLInterceptor().on_sensitive_tool("deploy", "pay")
        settings = {
            "tools": (*journal.tools(), "hitl"),
            "hitl_enabled": True,
            "hitl_interceptor": hitl,
        } | settings
        return play(script, session_provider=store, **settings)

    return start


def decide(run: Run, **decisions: HITLDecision) -> None:
    session = run.engine.get_session("test")
    waiting = {task.tool_name: task.call_id for task in session.pending_tasks()}
    HITL.submit_all(session, {waiting[name]: decision for name, decision in decisions.items()})


def ends(run: Run) -> list[tuple[str, bool, bool | None, str]]:
    return [
        (e.tool_name, e.is_error, e.executed, e.text) for e in run.events if isinstance(e, ToolCallEndEvent)
    ]


def test_plain_answer(run) -> None:
    done = run("hello")
    assert done.kinds == ["run_start", *PLAIN_TURN, "run_end"]
    assert [e.text for e in done.events if e.type == "reason_delta"] == ["hello"]
    end = done.events[-1]
    assert isinstance(end, RunEndEvent)
    assert (end.outcome, end.is_abnormal, end.text) == ("answered", False, "hello")


def test_one_tool_turn_with_n_calls(run, journal) -> None:
    done = run(says(call("look", name="a")), says(call("look", name="b")), "done")
    assert done.kinds == ["run_start", *PLAIN_TURN, *ONE_CALL, *PLAIN_TURN, *ONE_CALL, *PLAIN_TURN, "run_end"]
    assert journal.done == ["look a", "look b"]


def test_the_first_sensitive_call_suspends_the_run_before_anything_starts(run, journal) -> None:
    held = run(says(call("look", name="a"), call("deploy", target="x"), call("pay", amount=1)))
    assert held.kinds == ["run_start", *PLAIN_TURN, "hitl_pending", "run_end"]
    pending, end = held.events[-2:]
    assert isinstance(pending, HITLPendingEvent)
    assert [(t.tool_name, t.args) for t in pending.pending_tasks] == [
        ("deploy", {"target": "x"}),
        ("pay", {"amount": 1}),
    ]
    assert isinstance(end, RunEndEvent)
    assert (end.outcome, end.is_abnormal) == ("pending", True)
    assert journal.done == []
    assert held.engine.get_session("test").is_pending()


def test_resume_with_all_decided_keeps_the_run_id_and_tells_decisions_first(run, journal) -> None:
    held = run(says(call("deploy", target="x"), call("look", name="a"), call("pay", amount=1)), "done")
    decide(held, deploy=HITLDecision.approve(), pay=HITLDecision.approve())
    gone_on = resume(held)
    assert gone_on.kinds == [
        "run_start", "hitl_decided", "hitl_decided", "action_start", "tool_call_start", "tool_call_end",
        "tool_call_start", "tool_call_end", "tool_call_start", "tool_call_end", "action_end", *PLAIN_TURN,
        "run_end",
    ]  # fmt: skip
    assert {event.run_id for event in (*held.events, *gone_on.events)} == {held.state.run_id}
    assert gone_on.events[0].resumed is True
    assert journal.done == ["deploy x", "look a", "pay 1"]


def test_resume_with_some_undecided_asks_the_model_nothing_and_keeps_the_decisions(run, journal) -> None:
    held = run(says(call("deploy", target="x"), call("pay", amount=1)), "done")
    decide(held, deploy=HITLDecision.approve())
    still = resume(held)
    assert still.kinds == ["run_start", "hitl_pending", "run_end"]
    assert [t.tool_name for t in still.events[1].pending_tasks] == ["pay"]
    assert journal.done == []
    decide(held, pay=HITLDecision.approve())
    assert resume(held).state.outcome == "answered"
    assert journal.done == ["deploy x", "pay 1"]


@pytest.mark.parametrize(
    ("asked", "why"),
    [
        (call("deploy", target="x"), "denied by policy"),
        (call("deploi", target="x"), "no tool 'deploi' here. Did you mean 'deploy'?"),
        (call("deploy", target=3), "target"),
    ],
)
def test_a_call_refused_by_rule_or_bad_arguments_ends_in_an_error_observation(run, journal, asked, why) -> None:
    done = run(says(asked), "done", permission_rules=(PermissionRule.deny("deploy"),))
    blocked = ["gate_blocked"] if "policy" in why else []
    assert done.kinds == [
        "run_start", *PLAIN_TURN, "action_start", *blocked, "tool_call_start", "tool_call_end", "action_end",
        *PLAIN_TURN, "run_end",
    ]  # fmt: skip
    (name, is_error, executed, text) = ends(done)[0]
    assert (name, is_error, executed) == (asked["tool"], True, False)
    assert why in text
    assert journal.done == []


def test_parallel_reads_start_in_call_order_and_end_as_they_finish(store) -> None:
    gate: dict[str, asyncio.Event] = {}

    @tool(effects={"reads"})
    async def wait(name: str) -> str:
        """Wait until the other one has finished."""
        gate.setdefault("b done", asyncio.Event())
        if name == "a":
            await gate["b done"].wait()
        else:
            gate["b done"].set()
        return f"result {name}"

    done = play(
        [says(call("wait", name="a"), call("wait", name="b")), "done"], tools=(wait,), session_provider=store
    )
    assert done.kinds[3:9] == [
        "action_start", "tool_call_start", "tool_call_start", "tool_call_end", "tool_call_end", "action_end",
    ]  # fmt: skip
    assert [text for _, _, _, text in ends(done)] == ["result b", "result a"]
    assert [m.parts[0].text for m in done.state.transcript if m.role == "tool"] == ["result a", "result b"]


def test_resume_of_a_finished_session_says_how_it_ended_and_stores_nothing(run) -> None:
    done = run("hello")
    again = resume(done)
    assert again.kinds == ["run_start", "run_end"]
    end = again.events[-1]
    assert isinstance(end, RunEndEvent)
    assert (end.outcome, end.text, end.seq) == ("answered", "hello", None)
    assert list(done.engine.get_session("test").events()) == [e for e in done.events if e.seq is not None]


def test_skip_writes_the_comment_as_observation_and_never_calls_the_tool(run, journal) -> None:
    held = run(says(call("deploy", target="x")), "done")
    decide(held, deploy=HITLDecision.skip("not today"))
    gone_on = resume(held)
    assert gone_on.kinds == ["run_start", "hitl_decided", *ONE_CALL, *PLAIN_TURN, "run_end"]
    assert ends(gone_on) == [("deploy", False, False, "not today")]
    assert journal.done == []


def test_reject_among_several_sensitive_calls_continues_with_a_refusal(run, journal) -> None:
    held = run(says(call("deploy", target="x"), call("pay", amount=1)), "done")
    decide(held, deploy=HITLDecision.reject("too risky"), pay=HITLDecision.approve())
    gone_on = resume(held)
    assert gone_on.kinds == [
        "run_start", "hitl_decided", "hitl_decided", "action_start", "tool_call_start", "tool_call_end",
        "tool_call_start", "tool_call_end", "action_end", *PLAIN_TURN, "run_end",
    ]  # fmt: skip
    refused, paid = ends(gone_on)
    assert refused[:3] == ("deploy", True, False)
    assert "too risky" in refused[3]
    assert paid[1:3] == (False, True)
    assert journal.done == ["pay 1"]


def test_reject_of_the_only_sensitive_call_ends_the_run_and_answers_every_call(run, journal) -> None:
    held = run(says(call("look", name="a"), call("deploy", target="x")))
    decide(held, deploy=HITLDecision.reject("no"))
    gone_on = resume(held)
    assert gone_on.kinds == ["run_start", "hitl_decided", "run_end"]
    decided, end = gone_on.events[1:]
    assert isinstance(decided, HITLDecidedEvent)
    assert (decided.is_rejected, decided.comment) == (True, "no")
    assert isinstance(end, RunEndEvent)
    assert (end.outcome, end.is_abnormal, end.text) == ("rejected", True, "no")
    assert journal.done == []
    assert unanswered(gone_on.state.transcript) == []


def test_reject_can_ask_the_run_to_continue(run, journal) -> None:
    held = run(says(call("deploy", target="x")), "another way")
    decide(held, deploy=HITLDecision.reject("no", continue_run=True))
    gone_on = resume(held)
    assert gone_on.kinds == ["run_start", "hitl_decided", *ONE_CALL, *PLAIN_TURN, "run_end"]
    assert gone_on.state.text == "another way"


def test_a_model_that_fails_for_good_ends_typed_and_leaves_no_false_words(run) -> None:
    failed = run({"error": 401})
    assert failed.kinds == ["run_start", "reason_start", "reason_end", "run_end"]
    reason_end, end = failed.events[-2:]
    assert reason_end.error.kind == "auth"
    assert (end.outcome, end.error) == ("failed", reason_end.error)
    assert [m.role for m in failed.state.transcript] == ["user"]


def test_limit_ends_with_a_summing_up_without_tools(run, journal) -> None:
    done = run(says(call("look", name="a")), says("still", call("look", name="b")), max_turns=1)
    assert done.kinds == ["run_start", *PLAIN_TURN, *ONE_CALL, *PLAIN_TURN, "run_end"]
    assert done.events[-1].outcome == "limit"
    assert done.model.requests[-1].tools == ()
    assert unanswered(done.state.transcript) == []


def test_cancel_during_the_first_call_answers_the_rest_and_starts_none(store) -> None:
    started: list[str] = []
    begun = asyncio.Event()

    @tool(effects={"writes"})
    async def work(name: str) -> str:
        """Work for long."""
        started.append(name)
        begun.set()
        await asyncio.sleep(60)
        return "never"

    script = ScriptedModel([says(call("work", name="a"), call("work", name="b"), call("work", name="c"))])
    engine = HarnessEngine(model=script, tools=(work,), session_provider=store, installed_extensions=False)

    async def cancel_midway() -> list[str]:
        stream = engine.prompt("go").session("s").stream()
        told = []

        async def read() -> None:
            async for event in stream:
                told.append(event.type)

        async with asyncio.TaskGroup() as group:
            group.create_task(read())
            await begun.wait()
            await stream.cancel()
        return told

    told = asyncio.run(cancel_midway())
    assert [t for t in told if t != "context_size"] == [
        "run_start", *PLAIN_TURN, "action_start", "tool_call_start", "tool_call_end", "action_end", "run_end",
    ]  # fmt: skip
    state = engine.get_session("s").state
    assert (state.outcome, started) == ("cancelled", ["a"])
    assert unanswered(state.transcript) == []


def test_a_new_prompt_while_a_batch_waits_closes_it_and_no_stale_decision_matches(run, journal) -> None:
    held = run(says(call("deploy", target="x")), says(call("deploy", target="y")))
    decide(held, deploy=HITLDecision.approve())
    events = []

    async def ask() -> None:
        async for event in held.engine.prompt("something else").session("test").stream():
            events.append(event)

    asyncio.run(ask())
    assert [e.type for e in events if e.type not in ("context_size", "reason_delta")] == [
        "run_start", *PLAIN_TURN, "hitl_pending", "run_end",
    ]  # fmt: skip
    assert journal.done == []
    transcript = held.engine.get_session("test").messages
    assert "the user moved on" in transcript[2].parts[0].text
    assert resume(held).kinds == ["run_start", "hitl_pending", "run_end"]


def test_without_hitl_in_its_tools_an_agent_has_no_hitl_interceptor(run, journal) -> None:
    done = run(says(call("deploy", target="x")), "done", tools=journal.tools())
    assert done.state.outcome == "answered"
    assert journal.done == ["deploy x"]
    assert done.engine.agent("main").chain.find(HITLInterceptor) is None


def test_the_stored_events_are_those_that_were_told(run) -> None:
    held = run(says("hm", call("deploy", target="x"), call("look", name="a")), "done")
    decide(held, deploy=HITLDecision.approve().modified_args({"target": "z"}))
    gone_on = resume(held)
    told = [e for e in (*held.events, *gone_on.events) if e.seq is not None]
    assert list(held.engine.get_session("test").events()) == told
    assert [e.seq for e in told] == list(range(1, len(told) + 1))


def test_an_interceptor_that_rewrites_a_call_has_it_judged_and_told(run, journal) -> None:
    class Cheaper(Interceptor):
        def on_tool_call_start(self, trace: ReActTrace, call: ToolCall) -> ToolCall | Deny | None:
            if call.tool == "look" and call.args["name"] == "secret":
                return Deny("secrets are not to be looked at")
            return ToolCall(call.call_id, call.tool, {"name": "b"}) if call.tool == "look" else None

    def extension(engine, agent_name, agent_builder) -> None:
        agent_builder.default_interceptor_add(Cheaper())

    done = run(says(call("look", name="a")), says(call("look", name="secret")), "done", extensions=(extension,))
    assert journal.done == ["look b"]
    assert [e.args for e in done.events if isinstance(e, ToolCallEndEvent)] == [
        {"name": "b"},
        {"name": "secret"},
    ]
    assert done.state.transcript[1].calls[0].args == {"name": "b"}
    assert ends(done)[1][1:3] == (True, False)
    assert sum(isinstance(e, ActionEndEvent) for e in done.events) == 2
