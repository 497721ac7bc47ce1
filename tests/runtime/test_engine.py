"""The engine from outside: settings, live switches, interceptors, extensions, and tools that misbehave."""

import asyncio
import time

import pytest

from jackstay import (
    HITL,
    Answer,
    ConfigError,
    Deny,
    HarnessEngine,
    HITLDecision,
    HITLInterceptor,
    Interceptor,
    MemoryStore,
    Order,
    ReActInterceptor,
    RunEndEvent,
    ToolCallEndEvent,
    cancel,
    tool,
)
from jackstay.core.errors import (
    AlreadyDecided,
    AmbiguousTool,
    EmptyPrompt,
    RunningLoop,
    SessionBusy,
    UnknownCall,
    UnknownSession,
    UnknownTool,
)
from jackstay.core.messages import ToolCall, ToolResult, assistant
from jackstay.engine.interceptors import in_order
from jackstay.engine.ports import ModelRequest, Reply
from jackstay.testing import Run, ScriptedModel, call, play, resume, says


@tool(effects={"reads"})
async def look(name: str) -> str:
    """Look at something."""
    return f"saw {name}"


@tool(effects={"writes"})
async def deploy(target: str) -> str:
    """Deploy to a target."""
    return f"deployed to {target}"


def engine(script, **settings) -> HarnessEngine:
    model = script if isinstance(script, ScriptedModel) else ScriptedModel(script)
    return HarnessEngine(model=model, session_provider=MemoryStore(), installed_extensions=False, **settings)


def ask(made: HarnessEngine, text: str | None = "go", session: str = "s") -> Answer:
    return asyncio.run(made.prompt(text).session(session).call())


def ends(run: Run) -> list[ToolCallEndEvent]:
    return [e for e in run.events if isinstance(e, ToolCallEndEvent)]


# -- asking ------------------------------------------------------------------------------------------------


def test_builder_and_keywords_make_the_same_engine(tmp_path) -> None:
    store = MemoryStore()
    built = (
        HarnessEngine.of(tmp_path)
        .session_provider(store).model(ScriptedModel([])).tools_add(look, "hitl").hitl_enabled(True)
        .max_turns(7).compression_threshold(50, 0.5).option(installed_extensions=False)
        .build()
    )  # fmt: skip
    plain = HarnessEngine(
        workspace=str(tmp_path), session_provider=store, model=built.options.model, tools=(look, "hitl"),
        hitl_enabled=True, max_turns=7, compression_threshold=(50, 0.5), installed_extensions=False,
    )  # fmt: skip
    assert built.options == plain.options


def test_call_answers_with_text_and_outcome() -> None:
    answer = ask(engine(["hello"]))
    assert (answer.outcome, answer.text, answer.session_id) == ("answered", "hello", "s")


@pytest.mark.parametrize("text", ["", "  \n"])
def test_an_empty_prompt_is_refused_not_taken_for_resume(text) -> None:
    with pytest.raises(EmptyPrompt, match="without arguments to resume"):
        engine([]).prompt(text)


def test_resuming_what_was_never_begun_is_an_error() -> None:
    with pytest.raises(UnknownSession, match="sessions list"):
        ask(engine([]), None)


def test_synchronous_twins_and_their_refusal_inside_a_loop() -> None:
    made = engine(["one", "two"])
    assert made.prompt("go").session("s").call_sync().text == "one"
    assert [e.type for e in made.prompt("again").session("s").stream_sync()][-1] == "run_end"

    async def inside() -> None:
        made.prompt("no").session("s").call_sync()

    with pytest.raises(RunningLoop):
        asyncio.run(inside())


def test_a_slow_reader_holds_nothing_up() -> None:
    made = engine([says(call("look", name="a")), "done"], tools=(look,))

    async def read() -> list[str]:
        stream = made.prompt("go").session("s").stream()
        first = await anext(stream)
        await stream.wait()
        assert made.get_session("s").outcome == "answered"
        return [first.type, *[event.type async for event in stream]]

    told = asyncio.run(read())
    assert told[0] == "run_start"
    assert told[-1] == "run_end"


def test_leaving_the_stream_early_does_not_stop_the_run() -> None:
    made = engine([says(call("look", name="a")), "done"], tools=(look,))

    async def leave() -> None:
        stream = made.prompt("go").session("s").stream()
        async for _ in stream:
            break
        stream.close()
        await stream.wait()

    asyncio.run(leave())
    assert made.get_session("s").outcome == "answered"


def test_an_interrupted_stream_leaves_a_run_that_can_be_resumed() -> None:
    begun = asyncio.Event()

    @tool(effects={"reads"}, idempotent=True)
    async def slow() -> str:
        """Take long the first time."""
        if not begun.is_set():
            begun.set()
            await asyncio.sleep(60)
        return "done at last"

    made = engine([says(call("slow")), "done"], tools=(slow,))

    async def interrupt() -> None:
        stream = made.prompt("go").session("s").stream()
        async with asyncio.TaskGroup() as group:
            group.create_task(stream.wait())
            await begun.wait()
            await stream.interrupt()

    asyncio.run(interrupt())
    assert made.get_session("s").outcome is None
    assert ask(made, None).outcome == "answered"


def test_a_second_request_for_a_running_session_is_refused_clearly() -> None:
    begun = asyncio.Event()

    @tool(effects={"reads"})
    async def slow() -> str:
        """Take long."""
        begun.set()
        await asyncio.sleep(60)
        return ""

    made = engine([says(call("slow")), "done"], tools=(slow,))

    async def twice() -> None:
        stream = made.prompt("go").session("s").stream()
        async with asyncio.TaskGroup() as group:
            waiting = group.create_task(stream.wait())
            await begun.wait()
            with pytest.raises(SessionBusy, match="is being run by"):
                await made.prompt("me too").session("s").call()
            await stream.cancel()
            waiting.cancel()

    asyncio.run(twice())


def test_a_lease_outlasts_whatever_the_model_takes(monkeypatch) -> None:
    monkeypatch.setattr("jackstay.runtime.lease.LEASE_S", 0.6)
    monkeypatch.setattr("jackstay.runtime.control.WATCH_S", 0.05)
    made = engine([{"say": "At last.", "wait_s": 1.5}])
    kept: list[float] = []

    async def looked_at() -> Answer:
        run = asyncio.ensure_future(made.prompt("go").session("s").call())
        while not run.done():
            await asyncio.sleep(0.1)
            lease = made.store.head("s").lease
            kept.append(lease.until - time.time() if lease is not None else 0.0)
        return run.result()

    assert asyncio.run(looked_at()).text == "At last."
    assert min(kept[:-1]) > 0
    assert kept[-1] == 0


def test_a_lease_outlasts_whatever_a_cancelled_tool_takes_to_stop(monkeypatch) -> None:
    monkeypatch.setattr("jackstay.runtime.lease.LEASE_S", 0.6)
    monkeypatch.setattr("jackstay.runtime.control.WATCH_S", 0.05)
    stops: list[float] = []

    @tool(effects={"writes"})
    async def tidy() -> str:
        """Takes its time to clean up."""
        assert cancel(made.get_session("s"), by="ada") == "ordered"
        try:
            await asyncio.sleep(30)
        finally:
            stops.append(time.monotonic())
            await asyncio.sleep(1.5)
        return "never"

    made = engine([says(call("tidy"))], tools=(tidy,))
    held: list[bool] = []

    async def looked_at() -> Answer:
        run = asyncio.ensure_future(made.prompt("go").session("s").call())
        while not run.done():
            await asyncio.sleep(0.1)
            held.append(made.store.head("s").lease is not None)
        return run.result()

    assert asyncio.run(looked_at()).text == "cancelled by ada"
    assert len(stops) == 1
    assert held == [True] * (len(held) - 1) + [False]


def test_a_setting_changed_while_a_run_lasts_is_in_the_recipe_of_the_next() -> None:
    made = engine(["One.", "Two."])
    ask(made, session="one")
    made.set_max_turns(3)
    ask(made, session="two")
    recipes = [made.get_session(name).state.settings for name in ("one", "two")]
    assert [recipe["max_turns"] for recipe in recipes] == [20, 3]


# -- settings ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"max_turn": 3}, "did you mean 'max_turns'"),
        ({"max_turns": 0}, "max_turns is 0"),
        ({"compression_threshold": (100, 1.5)}, "compression_threshold is"),
        ({"model_timeout_s": -1}, "model_timeout_s is -1"),
        ({"workspace": "/does/not/exist"}, "is no directory"),
        ({"hitl_enabled": "yes"}, "True or False"),
    ],
)
def test_a_wrong_setting_is_named_with_its_mend(settings, told) -> None:
    with pytest.raises(ConfigError, match=told):
        engine([], **settings)


def test_unknown_tools_and_no_model_are_refused_at_once(monkeypatch) -> None:
    monkeypatch.delenv("JACKSTAY_MODEL", raising=False)
    with pytest.raises(UnknownTool, match="did you mean 'bash'"):
        engine([], tools=("bahs",))
    with pytest.raises(ConfigError, match="no model is configured"):
        HarnessEngine(session_provider=MemoryStore())


def test_a_wrong_change_changes_nothing() -> None:
    made = engine([])
    with pytest.raises(ConfigError):
        made.set_compression_threshold(100, 1.5)
    with pytest.raises(UnknownTool):
        made.allow_tool("no_such")
    assert made.options.compression_threshold == (100, 0.75)
    assert made.options.tools == ()


def test_live_sessions_see_a_disallowed_tool_with_their_next_request() -> None:
    model = ScriptedModel(["one", says(call("look", name="a")), "two"])
    made = engine(model, tools=(look,))
    ask(made)
    made.disallow_tool("look")
    ask(made, "again")
    assert [len(request.tools) for request in model.requests] == [1, 0, 0]
    assert made.get_session("s").messages[4].parts[0].is_error


def test_live_sessions_see_another_model_and_a_new_extension() -> None:
    seen: list[str] = []

    class Watch(Interceptor):
        def on_agent_start(self, trace) -> None:
            seen.append(trace.session_id)

    def extension(engine, agent_name, agent_builder) -> None:
        agent_builder.default_interceptor_add(Watch())

    made = engine(["one"])
    ask(made)
    made.set_model(ScriptedModel(["two", "three"]))
    made.add_extension(extension)
    assert ask(made, "again").text == "two"
    made.remove_extension(extension)
    ask(made, "and again")
    assert seen == ["s"]


def test_set_hitl_enabled_changes_settings_and_live_interceptor_but_not_the_tool_list() -> None:
    hitl = HITLInterceptor().on_sensitive_tool("deploy")
    made = engine(
        [says(call("deploy", target="x")), "done", says(call("deploy", target="y"))],
        tools=(deploy, "hitl"), hitl_interceptor=hitl,
    )  # fmt: skip
    assert ask(made).outcome == "answered"
    made.set_hitl_enabled(True)
    assert (made.options.hitl_enabled, hitl.enabled) == (True, True)
    assert ask(made, "again").outcome == "pending"
    bare = engine([says(call("deploy", target="x")), "done"], tools=(deploy,), hitl_interceptor=hitl)
    bare.set_hitl_enabled(True)
    assert ask(bare).outcome == "answered"


def test_replacing_the_hitl_interceptor_loses_its_defaults_and_warns(caplog) -> None:
    engine([], hitl_interceptor=HITLInterceptor())
    assert "without strategies" in caplog.text


# -- approvals ---------------------------------------------------------------------------------------------


def held(*script) -> Run:
    hitl = HITLInterceptor().on_sensitive_tool("deploy", "look")
    return play(
        [says(*script), "done"], tools=(look, deploy, "hitl"), hitl_enabled=True, hitl_interceptor=hitl
    )  # fmt: skip


def test_foreign_late_and_double_decisions_are_told() -> None:
    run = held(call("deploy", target="x"))
    session = run.engine.get_session("test")
    task = HITL.get_pending_task(session)
    assert task is not None
    assert task.call_uuid == task.call_id
    with pytest.raises(UnknownCall, match=f"waiting are: {task.call_id}"):
        HITL.submit(session, "call_99", HITLDecision.approve())
    HITL.submit(session, task, HITLDecision.approve().comment("ok"))
    assert not HITL.is_hitl(session)
    decided = HITL.get_decision(session, task)
    assert decided is not None
    assert (decided.remark, bool(decided.by), decided.at > 0) == ("ok", True, True)
    with pytest.raises(AlreadyDecided, match="the first decision stands"):
        HITL.reject(session, task)
    assert "note of the person" in ends(resume(run))[0].text
    with pytest.raises(
        UnknownCall, match="waits no more and nothing was changed; what became of it: deployed to x"
    ):
        HITL.approve(session, task)


def test_a_batch_of_decisions_with_a_wrong_id_stores_none() -> None:
    run = held(call("deploy", target="x"))
    session = run.engine.get_session("test")
    task = HITL.get_pending_tasks(session)[0]
    with pytest.raises(UnknownCall):
        HITL.submit_all(session, {task.call_id: HITLDecision.approve(), "nope": HITLDecision.approve()})
    assert HITL.get_pending_tasks(session) == (task,)


def test_tasks_can_be_named_by_tool_unless_several_share_it() -> None:
    run = held(call("deploy", target="x"), call("look", name="a"), call("look", name="b"))
    session = run.engine.get_session("test")
    assert HITL.get_pending_task_by_tool_name(session, "deploy") is not None
    assert HITL.get_pending_task_by_tool_name(session, "bash") is None
    with pytest.raises(AmbiguousTool, match="2 calls of 'look' wait"):
        HITL.get_pending_task_by_tool_name(session, "look")
    HITL.reject_all(session, "no")
    assert [e.is_error for e in ends(resume(run))] == [True, True, True]


def test_on_approved_is_called_only_for_always_allow_and_before_the_call_runs() -> None:
    order: list[str] = []

    @tool(effects={"writes"})
    async def act(command: str) -> str:
        """Act."""
        order.append(f"ran {command}")
        return "ok"

    hitl = HITLInterceptor().on_sensitive_tool("act")
    run = play(
        [says(call("act", command="a")), says(call("act", command="b")), "done"],
        tools=(act, "hitl"), hitl_enabled=True, hitl_interceptor=hitl,
    )  # fmt: skip
    run.engine.get_hitl_interceptor().on_approved(
        lambda name, args: order.append(f"always {name} {args['command']}")
    )
    session = run.engine.get_session("test")
    HITL.approve_all(session)
    run = resume(run)
    HITL.submit(session, HITL.get_pending_tasks(session)[0], HITLDecision.approve(True))
    resume(run)
    assert order == ["ran a", "always act b", "ran b"]


def test_a_strategy_that_raises_asks() -> None:
    class Broken:
        def evaluate(self, trace, args):
            raise RuntimeError("strategy is broken")

    hitl = HITLInterceptor().on_tool("deploy", Broken())
    script = [says(call("deploy", target="x"))]
    run = play(script, tools=(deploy, "hitl"), hitl_enabled=True, hitl_interceptor=hitl)
    assert run.state.outcome == "pending"
    assert "strategy is broken" in run.engine.get_session("test").pending_tasks()[0].comment


# -- tools that misbehave ----------------------------------------------------------------------------------


@tool(timeout_s=0.05, effects={"writes"})
async def hangs() -> str:
    """Never return."""
    await asyncio.sleep(3600)
    return ""


@tool(timeout_s=0.05, effects={"writes"})
def blocks() -> str:
    """Never return, in a thread."""
    time.sleep(0.5)
    return ""


@tool(effects={"writes"})
async def raises() -> str:
    """Fail."""
    raise ValueError("the disk is upside down")


@tool(effects={"writes"})
async def exits() -> str:
    """Leave."""
    raise SystemExit(3)


@tool(effects={"reads"})
async def shouts() -> str:
    """Say too much."""
    return "x" * 3_000_000


@tool(effects={"reads"})
async def stutters() -> str:
    """Say half a character."""
    return "half \ud83d"


@pytest.mark.parametrize(
    ("bad", "told"),
    [
        (hangs, "Stopped after 0.05 s, the time limit of 'hangs'"),
        (blocks, "Stopped after 0.05 s"),
        (raises, "ValueError: the disk is upside down"),
        (exits, "SystemExit: 3"),
    ],
)
def test_a_tool_that_raises_or_hangs_becomes_an_error_observation(bad, told) -> None:
    run = play([says(call(bad.spec.name)), "done"], tools=(bad,))
    assert run.state.outcome == "answered"
    (end,) = ends(run)
    assert (end.is_error, end.executed) == (True, True)
    assert told in end.text


def test_long_results_are_shown_head_and_tail_and_kept_whole() -> None:
    run = play([says(call("shouts")), "done"], tools=(shouts,))
    (end,) = ends(run)
    assert len(end.text) < 60_000
    assert "characters left out" in end.text
    assert run.engine.store.artifact("test", end.call_id) == "x" * 3_000_000


def test_text_that_no_encoding_can_carry_is_cleaned() -> None:
    run = play([says(call("stutters")), "done"], "also half \ud83d", tools=(stutters,))
    assert ends(run)[0].text == "half ?"
    assert run.state.outcome == "answered"


# -- interceptors ------------------------------------------------------------------------------------------


MOMENTS = (
    "agent_start", "reason_start", "reason_end", "action_start", "tool_call_start", "tool_call_end", "action_end",
    "agent_end",
)  # fmt: skip


def watcher(title: str, told: list[str]) -> Interceptor:
    """An interceptor that writes down every moment; some of its methods are async, some are not."""

    def plain(moment: str):
        return lambda self, trace, *rest: told.append(f"{title} {moment}")

    def slow(moment: str):
        async def method(self, trace, *rest) -> None:
            await asyncio.sleep(0)
            told.append(f"{title} {moment}")

        return method

    methods = {f"on_{moment}": (slow if "start" in moment else plain)(moment) for moment in MOMENTS}
    return type("Watch", (ReActInterceptor,), {"name": title, **methods})()


def test_every_moment_of_the_seed_is_told_in_order_and_unwound_in_reverse() -> None:
    told: list[str] = []

    def extension(engine, agent_name, agent_builder) -> None:
        agent_builder.default_interceptor_add(watcher("a", told)).default_interceptor_add(watcher("b", told))

    play([says(call("look", name="x")), "done"], tools=(look,), extensions=(extension,))
    beginnings = {"agent_start", "reason_start", "action_start", "tool_call_start"}
    order = (*MOMENTS[:7], "reason_start", "reason_end", "agent_end")
    assert told == [
        f"{title} {moment}" for moment in order for title in ("ab" if moment in beginnings else "ba")
    ]  # fmt: skip


def test_what_interceptors_return_is_what_counts_and_is_stored() -> None:
    class Rewrite(Interceptor):
        def on_reason_start(self, trace, request: ModelRequest):
            from msgspec.structs import replace

            return replace(request, system="another prompt")

        def on_reason_end(self, trace, reply: Reply):
            from msgspec.structs import replace

            if reply.message.calls:
                return None
            return replace(reply, message=assistant("redacted"))

        def on_tool_call_end(self, trace, call: ToolCall, result: ToolResult):
            return ToolResult(call.call_id, result.text.replace("a", "*"))

    class Extension:
        def configure(self, engine, agent_name, agent_builder) -> None:
            agent_builder.default_interceptor_add(Rewrite())

    run = play([says(call("look", name="a")), "secret"], tools=(look,), extensions=(Extension(),))
    assert run.model.requests[0].system == "another prompt"
    assert ends(run)[0].text == "s*w *"
    assert run.state.text == "redacted"
    assert "secret" not in repr(run.state)


@pytest.mark.parametrize("moment", ["on_reason_start", "on_reason_end", "on_action_start"])
def test_an_interceptor_that_fails_around_the_model_fails_the_run_by_name(moment) -> None:
    def broken(*args):
        raise RuntimeError("no")

    kind = type("Broken", (Interceptor,), {moment: broken})
    run = play(
        ScriptedModel([says(call("look", name="a"))] if moment != "on_reason_start" else []),
        tools=(look,), extensions=(lambda e, n, b: b.default_interceptor_add(kind()),),
    )  # fmt: skip
    end = run.events[-1]
    assert isinstance(end, RunEndEvent)
    assert end.outcome == "failed"
    assert f"interceptor 'Broken' failed in {moment}" in end.text


def test_an_interceptor_that_fails_around_a_tool_fails_closed() -> None:
    class Broken(Interceptor):
        def on_tool_call_start(self, trace, call):
            return "yes"

    run = play(
        [says(call("deploy", target="x")), "done"], tools=(deploy,),
        extensions=(lambda e, n, b: b.default_interceptor_add(Broken()),),
    )  # fmt: skip
    (end,) = ends(run)
    assert end.is_error
    assert "it returned str" in end.text


def test_an_interceptor_can_deny_but_a_rewritten_call_is_judged_again() -> None:
    class Widen(Interceptor):
        def on_action_start(self, trace, calls):
            return tuple(ToolCall(c.call_id, "deploy", {"target": "elsewhere"}) for c in calls)

    hitl = HITLInterceptor().on_sensitive_tool("deploy")
    run = play(
        [says(call("look", name="x"))], tools=(look, deploy, "hitl"), hitl_enabled=True, hitl_interceptor=hitl,
        extensions=(lambda e, n, b: b.default_interceptor_add(Widen()),),
    )  # fmt: skip
    assert run.state.outcome == "pending"


def test_order_is_as_declared_and_circles_are_refused() -> None:
    class A(Interceptor):
        name = "a"
        order = Order(after=("b",))

    class B(Interceptor):
        name = "b"

    class C(Interceptor):
        name = "c"
        order = Order(before=("b",))

    a, b, c = A(), B(), C()
    assert in_order((a, b, c)) == (c, b, a)

    class D(Interceptor):
        name = "d"
        order = Order(after=("d2",))

    class D2(Interceptor):
        name = "d2"
        order = Order(after=("d",))

    with pytest.raises(ConfigError, match="d, d2"):
        in_order((D(), D2()))


def test_a_failing_extension_stops_the_start_unless_optional(caplog) -> None:
    def broken(engine, agent_name, agent_builder) -> None:
        raise RuntimeError("no")

    with pytest.raises(ConfigError, match=r"broken failed while agent 'main' was built"):
        engine([], extensions=(broken,))
    broken.optional = True
    engine([], extensions=(broken,))
    assert "left out" in caplog.text


def test_a_deny_from_an_interceptor_is_told_as_policy() -> None:
    class No(Interceptor):
        def on_tool_call_start(self, trace, call):
            return Deny("not on a Friday", instead="try on Monday")

    run = play(
        [says(call("deploy", target="x")), "done"], tools=(deploy,),
        extensions=(lambda e, n, b: b.default_interceptor_add(No()),),
    )  # fmt: skip
    (end,) = ends(run)
    assert (end.executed, end.is_error) == (False, True)
    assert end.text == "Not run, denied by policy: not on a Friday; try on Monday"


# -- retries -----------------------------------------------------------------------------------------------


def test_a_failure_that_can_pass_is_retried_and_seen(monkeypatch) -> None:
    tried: list[tuple[str, int]] = []

    class Watch(Interceptor):
        def on_reason_retry(self, trace, error, attempt, request):
            tried.append((error.kind, attempt))

    run = play(
        [{"error": {"kind": "rate_limit", "status": 429, "retry_after_s": 0.01}}, {"error": 500}, "at last"],
        extensions=(lambda e, n, b: b.default_interceptor_add(Watch()),),
    )  # fmt: skip
    assert run.state.text == "at last"
    assert tried == [("rate_limit", 1), ("server", 2)]
    assert run.kinds == ["run_start", "reason_start", "warning", "warning", "reason_end", "run_end"]


def test_retries_end_and_say_how_often() -> None:
    run = play([{"error": {"kind": "server", "retry_after_s": 0.01}}] * 2, model_retries=2)
    end = run.events[-1]
    assert isinstance(end, RunEndEvent)
    assert (end.outcome, end.error.kind, end.error.attempts) == ("failed", "server", 2)


def test_a_model_that_never_answers_is_cut_off() -> None:
    run = play([{"say": "late", "wait_s": 30}], model_timeout_s=0.05, model_retries=1)
    end = run.events[-1]
    assert isinstance(end, RunEndEvent)
    assert (end.outcome, end.error.kind) == ("failed", "timeout")


def test_an_approval_holds_where_the_reply_itself_moved_the_phase(tmp_path) -> None:
    (tmp_path / "work").mkdir()
    run = play(
        [
            says("[HARNESS: task_started]", call("look", name="a")),
            says("[HARNESS: plan]\nDeploy it.", call("deploy", target="x")),
            "Deployed.",
        ],
        workspace=str(tmp_path / "work"), harness_home=str(tmp_path / "home"), discipline="strict",
        tools=(look, deploy, "hitl"), hitl_enabled=True,
    )  # fmt: skip
    assert (run.state.outcome, run.state.policy.phase.phase) == ("pending", "planning")
    session = run.engine.get_session("test")
    HITL.submit(session, HITL.get_pending_tasks(session)[0], HITLDecision.approve())
    assert resume(run).state.text == "Deployed."


def test_recall_reads_from_the_store_the_session_is_in(tmp_path) -> None:
    """Also where the engine has no store of its own; it is not made only to be asked in vain."""
    from jackstay import AgentSession
    from jackstay.core.messages import ToolCall as Call
    from jackstay.runtime.calls import Running

    apart = MemoryStore()
    made = HarnessEngine(
        model=ScriptedModel([says(call("look", name="x")), "Seen."]), tools=(look,), installed_extensions=False,
        session_provider=lambda name: AgentSession(name, apart), harness_home=str(tmp_path / "home"),
    )  # fmt: skip
    assert ask(made).text == "Seen."
    state = made.get_session("s").state
    recall = made.agent("main").tools["recall"]
    wanted = Call("c", "recall", {"call_id": "call_1"})
    running = Running(state, wanted, workspace=".", publish=lambda event: None, seen={})
    assert asyncio.run(recall.run(wanted.args, running)).text.endswith("saw x")
    assert not (tmp_path / "home").exists()


def test_a_rebuilt_agent_asks_the_model_that_was_opened_before(tmp_path) -> None:
    script = tmp_path / "script.json"
    script.write_text('{"turns": [{"say": "One."}, {"say": "Two."}]}')
    made = HarnessEngine(model=f"script:{script}", session_provider=MemoryStore(), installed_extensions=False)
    assert ask(made).text == "One."
    made.set_max_turns(7)
    assert ask(made).text == "Two."
    made.set_model(f"script:{tmp_path}/./script.json")
    assert ask(made).text == "One."


def test_without_a_model_jackstay_model_names_it(tmp_path, monkeypatch) -> None:
    script = tmp_path / "script.json"
    script.write_text('{"turns": [{"say": "From there."}]}')
    monkeypatch.setenv("JACKSTAY_MODEL", f"script:{script}")
    made = HarnessEngine(session_provider=MemoryStore(), installed_extensions=False)
    assert ask(made).text == "From there."
    assert made.recipe()["model"] == f"script:{script}"


def test_recall_is_offered_as_soon_as_a_result_was_shortened() -> None:
    @tool(effects={"reads"})
    async def long() -> str:
        """Say much."""
        return "x" * 60_000

    run = play([says(call("look", name="a")), says(call("long")), "Read."], tools=(look, long))
    offered = [[spec.name for spec in request.tools] for request in run.model.requests]
    assert offered == [["look", "long"], ["look", "long"], ["look", "long", "recall"]]
