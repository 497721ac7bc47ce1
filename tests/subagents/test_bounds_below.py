"""What holds below: the discipline, the loop guard, cancelling, redaction."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from jackstay import (
    HITL,
    AgentDefinition,
    AgentSession,
    HITLDecision,
    SQLiteStore,
    StopLoopInterceptor,
    cancel,
    tool,
)
from jackstay.core.events import LoopDetectedEvent, PhaseChangedEvent, ToolCallEndEvent, ToolCallStartEvent
from jackstay.core.phase import Phase
from jackstay.policy.secrets import plain
from jackstay.testing import call, says
from jackstay.ward.audit import AuditFailed
from tests.elsewhere import Place, asks, order
from tests.make import unanswered
from tests.scenarios.workplace import TOOLS, Workplace
from tests.subagents.team import Team, agent, below, multitask, reply, results, task

SECRET = plain("ghp_¦k3Jd8sLq0ZxVb7NmYt5RwPa2HgUe9Cf4Ti6o")


# -- the discipline ----------------------------------------------------------------------------------------


@pytest.fixture
def work(tmp_path: Path) -> Iterator[Workplace]:
    made = Workplace(tmp_path)
    yield made
    made.store.close()


def write(text: str = "a=2\n") -> dict[str, Any]:
    return call("write", file_path="app.conf", content=text)


HAND_ON = says(call("task", agent_name="worker", prompt="do it", description="work"))


def team(work: Workplace, *turns: Any, worker: AgentDefinition, **settings: Any) -> Workplace:
    return work.script(*turns, tools=(*TOOLS, "task", "hitl"), agents=(worker,), hitl_enabled=True, **settings)


def test_no_write_before_approval_holds_below_and_moves_only_the_subagent(work: Workplace) -> None:
    begin = says("[HARNESS: task_started]", call("read", file_path="app.conf"))
    worker = agent("worker", says("[HARNESS: plan]", write()), "It waits.")
    events = team(work, begin, HAND_ON, "Done.", worker=worker).say("change a to 2")
    (waiting,) = HITL.get_pending_tasks(work.engine.get_session("s1"))
    assert (waiting.tool_name, len(waiting.path)) == ("write", 1)
    assert work.file("app.conf").read_bytes().startswith(b"a=1")
    mine = [e.after for e in events if isinstance(e, PhaseChangedEvent)]
    its = [(e.before, e.after) for e in below(events) if isinstance(e, PhaseChangedEvent)]
    assert mine == [Phase.TASK_STARTED]
    assert its == [(Phase.TASK_STARTED, Phase.PLANNING)]


def test_a_write_under_research_is_refused_below_as_above(work: Workplace) -> None:
    begin = says("[HARNESS: task_started]", call("read", file_path="app.conf"))
    events = team(work, begin, HAND_ON, "Done.", worker=agent("worker", says(write()), "Refused.")).say(
        "change it"
    )
    ((_, failed, text),) = results(below(events))
    assert failed
    assert "Research Gate" in text
    assert work.file("app.conf").read_bytes().startswith(b"a=1")


def test_the_words_of_a_task_approve_no_plan(work: Workplace) -> None:
    """They are an agent's, not a person's; the plan of the parent waits on."""
    begin = says("[HARNESS: task_started]", call("read", file_path="app.conf"))
    plan = says("a becomes 2.\n[HARNESS: plan]", call("task", agent_name="worker", prompt="go ahead"))
    worker = agent(
        "worker", says("[HARNESS: plan]", call("read", file_path="app.conf")), says(write()), "It waits."
    )
    team(work, begin, plan, "Done.", worker=worker).say("change it")
    assert [one.tool_name for one in HITL.get_pending_tasks(work.engine.get_session("s1"))] == ["write"]
    assert work.engine.get_session("s1").state.policy.phase.phase is Phase.PLANNING


def test_what_it_changed_is_in_its_parents_record_and_the_phase_survives_it(work: Workplace) -> None:
    begin = says("[HARNESS: task_started]", call("read", file_path="app.conf"))
    plan = "a becomes 2; nothing else changes.\n[HARNESS: plan]"
    worker = agent("worker", says(write()), "Written.\n[HARNESS: done]")
    made = team(work, begin, plan, HAND_ON, "It is written.", worker=worker)
    made.say("change a to 2")
    events = made.say("go ahead")
    state = work.engine.get_session("s1").state
    assert [r[:2] for r in results(below(events))] == [("call_1", False)]
    assert state.policy.phase.phase is Phase.EXECUTING, "the subagent's modifying and done are its own"
    assert [Path(path).name for path in state.policy.phase.changed] == ["app.conf"]
    assert state.policy.phase.acted
    assert order(below(events))[-1] == "run_end", "nobody asked the subagent for the closing checklist"


def test_the_phase_of_both_survives_a_wait_below_and_another_process(work: Workplace) -> None:
    """The subagent begins where its parent stands, plans anew, waits for a person; the parent stays in modifying."""
    begin = says("[HARNESS: task_started]", call("read", file_path="app.conf"))
    plan = "a becomes 2; nothing else changes.\n[HARNESS: plan]"
    above = [begin, plan, says(write("a=2\n")), HAND_ON, "It is done."]
    below_ = [says("[HARNESS: plan]", write("a=3\n")), "Written."]
    made = team(work, *above, worker=agent("worker", *below_))
    made.say("change a to 2")
    made.say("go ahead")
    before = work.phase()
    assert (before.phase, before.returns_to, before.approved_by) == (Phase.MODIFYING, Phase.EXECUTING, "user")
    (waiting,) = HITL.get_pending_tasks(work.engine.get_session("s1"))
    (child,) = waiting.path
    assert work.phase(child).phase is Phase.PLANNING
    work.store.close()
    work.store = SQLiteStore(work.root / "sessions.db")
    team(work, "It is done.", worker=agent("worker", "Written."))
    session = work.engine.get_session("s1")
    HITL.submit(session, session.pending_tasks()[0], HITLDecision.approve())
    events = work.say(None)
    assert results(events) == [("call_3", False, "Written.")]
    assert work.file("app.conf").read_text() == "a=3\n"
    assert (work.phase(child).phase, work.phase().phase, work.phase().returns_to) == (
        Phase.PLANNING,
        Phase.MODIFYING,
        Phase.EXECUTING,
    )
    assert work.phase().approved_by == "user"


def test_where_a_refusal_below_cannot_be_written_down_nothing_goes_on_and_nothing_is_lost(
    work: Workplace,
) -> None:
    begin = says("[HARNESS: task_started]", call("read", file_path="app.conf"))
    worker = agent("worker", says(write()), "Refused.")
    made = team(work, begin, HAND_ON, "Done.", worker=worker)
    trail = work.home / "audit"
    trail.mkdir(parents=True, exist_ok=True)
    for path in [*trail.iterdir(), trail]:
        path.rmdir() if path.is_dir() else path.unlink()
    trail.write_text("in the way")
    with pytest.raises(AuditFailed):
        made.say("change it")
    store = work.store
    states = [AgentSession(one.session_id, store).state for one in store.sessions()]
    assert [one.outcome for one in states] == [None, None]
    trail.unlink()
    assert results(made.say(None))[-1][1:] == (False, "Refused.")


# -- loops -------------------------------------------------------------------------------------------------


def loops(events: Any) -> list[tuple[str, int]]:
    return [(e.kind, e.count) for e in events if isinstance(e, LoopDetectedEvent)]


def test_a_loop_inside_a_subagent(place: Place) -> None:
    same = [reply(asks("look", f"l{n}", name="x")) for n in range(3)]
    events = Team(place, reply(task()), "Thanks.", make=lambda: (agent("worker", *same, "done"),)).ask()
    assert (loops(events), loops(below(events))) == ([], [("same_call", 3)])


def test_counters_go_on_from_parent_to_subagent(place: Place) -> None:
    same = [reply(asks("look", f"l{n}", name="x")) for n in range(2)]
    make = lambda: (agent("worker", reply(asks("look", "w1", name="x")), "done"),)  # noqa: E731
    events = Team(place, *same, reply(task()), "Thanks.", make=make).ask()
    assert loops(below(events)) == [("same_call", 3)]


def test_counters_go_on_from_subagent_to_parent_and_to_the_next_one(place: Place) -> None:
    make = lambda: (  # noqa: E731
        agent("a", reply(asks("look", "l", name="x")), "a done"), agent("b", reply(asks("look", "l", name="x")), "b done"),
        agent("c", reply(asks("look", "l", name="x")), "c done"),
    )  # fmt: skip
    turns = [reply(task(f"t{name}", name, f"part {name}")) for name in "abc"]
    events = Team(place, *turns, "Thanks.", make=make).ask()
    assert loops(below(events)) == [("same_call", 3)]
    assert place.state.policy.loop.found == 1, "what it was told counts for the ladder of its parent"


def test_the_same_work_handed_on_again_and_again_is_a_loop(place: Place) -> None:
    turns = [reply(task(f"t{n}")) for n in range(3)]
    events = Team(place, *turns, "Thanks.", make=lambda: (agent("worker", "no", "no", "no"),)).ask()
    assert loops(events) == [("same_call", 3)]


def test_side_by_side_each_may_look_at_the_same_thing(place: Place) -> None:
    make = lambda: tuple(  # noqa: E731
        agent(name, reply(asks("look", "l", name="x"), asks("look", "m", name=name)), f"{name} done")
        for name in "abcd"
    )
    turns = (reply(multitask("a: 1", "b: 2", "c: 3", "d: 4")), reply(asks("look", "p", name="x")), "Thanks.")
    events = Team(place, *turns, make=make).ask()
    assert loops(events) + loops(below(events)) == []


def test_stopped_below_is_an_error_above(place: Place) -> None:
    guard = StopLoopInterceptor().set_rungs("stop")
    same = [reply(asks("look", f"l{n}", name="x")) for n in range(3)]
    team = Team(place, reply(task()), "Thanks.", make=lambda: (agent("worker", *same),))
    events = team.ask(stop_loop_interceptor=guard)
    ((_, failed, text),) = [r for r in results(events) if r[0] == "t1"]
    assert (failed, text.startswith("The subagent 'worker' went round in circles")) == (True, True)


# -- stopping ----------------------------------------------------------------------------------------------


def slow() -> Any:
    @tool(effects={"writes"})
    async def wait() -> str:
        """Take a long time."""
        await asyncio.sleep(60)
        return "waited"

    return wait


def stopped(place: Place, how: str) -> tuple[Team, list[Any]]:
    call_wait = {"tool": "wait", "id": "w", "args": {}}
    make = lambda: (agent("worker", reply(asks("put", "p")), reply(call_wait), "done"),)  # noqa: E731
    team = Team(place, reply(task()), "Thanks.", make=make)
    made = team.engine(tools=(*place.tools(), slow(), "task"))
    told: list[Any] = []

    async def run() -> None:
        stream = made.prompt("go").session("s").stream()
        async for event in stream:
            told.append(event)
            if any(isinstance(e, ToolCallStartEvent) and e.call_id == "w" for e in below([event])):
                break
        if how == "order":
            assert cancel(place.session(), by="ada") == "ordered"
            await stream.wait()
        elif how == "cancel":
            await stream.cancel("ada")
        else:
            await stream.interrupt()

    asyncio.run(run())
    return team, told


@pytest.mark.parametrize("how", ["order", "cancel"])
def test_to_cancel_a_run_cancels_what_runs_below(place: Place, how: str) -> None:
    team, _ = stopped(place, how)
    (child,) = team.children()
    assert (place.state.outcome, child.outcome) == ("cancelled", "cancelled")
    assert (place.state.text, child.text) == ("cancelled by ada", "cancelled by ada")
    assert unanswered(place.state.transcript) == unanswered(child.transcript) == []


def test_an_interrupted_run_goes_on_with_the_subagent_it_had(place: Place) -> None:
    team, _ = stopped(place, "interrupt")
    (before,) = team.children()
    assert (place.state.outcome, before.outcome) == (None, None)
    events = team.ask(None, tools=(*place.tools(), slow(), "task"))
    (after,) = team.children()
    assert (place.state.outcome, after.outcome, after.run_id) == ("answered", "answered", before.run_id)
    assert results(events)[-1] == ("t1", False, "done")
    starts = [e.call_id for e in place.store().events("s") if isinstance(e, ToolCallStartEvent)]
    ends = [e.call_id for e in place.store().events("s") if isinstance(e, ToolCallEndEvent)]
    assert starts == ends == ["t1"]
    assert place.counted == {"p": 1}


# -- secrets -----------------------------------------------------------------------------------------------


def test_secrets_go_out_of_what_subagents_tell_and_answer(place: Place) -> None:
    @tool(effects={"reads"})
    async def leak() -> str:
        """Say too much."""
        return f"the token is {SECRET}"

    call_leak = {"tool": "leak", "id": "k", "args": {}}
    make = lambda: (agent("worker", reply(call_leak), f"It is {SECRET}."),)  # noqa: E731
    team = Team(place, reply(task()), "Thanks.", make=make)
    events = team.ask(tools=(leak, "task"))
    ends = results(events)
    assert [SECRET in text for _, _, text in (*results(below(events)), *ends)] == [False, False]
    assert "[redacted" in ends[0][2]
    assert SECRET not in str(list(place.state.transcript))
