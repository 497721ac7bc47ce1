"""`task` and `multitask`: who does the work, in which session, under which bounds, and what comes back."""

import asyncio
import json
from pathlib import Path

import pytest

from jackstay import (
    HITL,
    AgentBuilder,
    AgentSession,
    ConfigError,
    Deny,
    HarnessEngine,
    HITLDecision,
    Interceptor,
    PermissionRule,
    ReActTrace,
    ToolCall,
    tool,
)  # fmt: skip
from jackstay.core.errors import SubagentSession
from jackstay.core.messages import Usage
from jackstay.core.state import Parent
from jackstay.testing import ScriptedModel
from tests.elsewhere import Place, order
from tests.subagents.team import Team, agent, asks, below, multitask, reply, results, task, told


def test_the_last_answer_is_the_observation_and_the_work_has_a_session_of_its_own(place: Place) -> None:
    team = Team(
        place, reply(task()), "Thanks.", make=lambda: (agent("worker", reply(asks("put", "p")), "It is put."),)
    )
    events = team.ask()
    assert results(events) == [("t1", False, "It is put.")]
    (child,) = team.children()
    assert child.parent == Parent("s", place.state.run_id, "t1", 1)
    assert (child.agent, child.outcome, child.session_id.startswith("s.")) == ("worker", "answered", True)
    assert child.transcript[0].text == "do it"
    assert place.counted == {"p": 1}


def test_every_event_of_the_subagent_is_told_in_its_order_between_start_and_end_of_the_call(
    place: Place,
) -> None:
    team = Team(
        place, reply(task()), "Thanks.", make=lambda: (agent("worker", reply(asks("put", "p")), "It is put."),)
    )
    events = team.ask()
    assert order([e for e in events if e.type != "subagent"]) == [
        "run_start", "reason_start", "reason_end", "action_start", "tool_call_start", "tool_call_end",
        "action_end", "reason_start", "reason_end", "run_end",
    ]  # fmt: skip
    tags = [event.type for event in events]
    inside = tags[tags.index("tool_call_start") + 1 : tags.index("tool_call_end")]
    assert set(inside) == {"subagent"}
    (child,) = team.children()
    stored = list(place.store().events(child.session_id))
    assert [event for event in below(events) if event.seq is not None] == stored
    assert {event.session_id for event in stored} == {child.session_id}
    assert all(event.type != "subagent" for event in place.store().events("s"))


def test_an_unknown_agent_is_an_error_that_names_the_known_ones(place: Place) -> None:
    team = Team(place, reply(task(agent="nobody")), "Alas.", make=lambda: (agent("worker"),))
    ((_, failed, text),) = results(team.ask())
    assert failed
    assert text == "there is no agent 'nobody' (known are worker, bash, explore, general, plan)"
    assert team.children() == []


def test_several_work_side_by_side_and_one_that_fails_takes_no_other_along(place: Place) -> None:
    jobs = multitask("worker: one", "nobody: two", "broken: three", "other: four")
    make = lambda: (  # noqa: E731 - as short as that
        agent("worker", {"say": "first ]]> \"", "wait_s": 0.2}), agent("broken", {"error": "auth"}), agent("other", "fourth"),
    )  # fmt: skip
    team = Team(place, reply(jobs), "Thanks.", make=make)
    ((_, failed, text),) = results(team.ask())
    rows = json.loads(text)
    assert not failed
    assert [(row["index"], row["agent_name"], row["status"]) for row in rows] == [
        (1, "worker", "answered"), (2, "nobody", "not run"), (3, "broken", "failed"), (4, "other", "answered"),
    ]  # fmt: skip
    assert (rows[0]["result"], rows[3]["result"]) == ('first ]]> "', "fourth")
    assert "there is no agent 'nobody'" in rows[1]["result"]
    assert len({child.session_id for child in team.children()}) == 3


def test_one_that_cannot_even_begin_takes_no_other_along(place: Place) -> None:
    class Broken(Interceptor):
        def on_agent_start(self, trace: ReActTrace) -> None:
            raise RuntimeError("no start")

    def extend(engine: HarnessEngine, agent_name: str, builder: AgentBuilder) -> None:
        if agent_name == "broken":
            builder.default_interceptor_add(Broken())

    make = lambda: (agent("broken", "never"), agent("worker", {"say": "done", "wait_s": 0.2}))  # noqa: E731
    team = Team(place, reply(multitask("broken: one", "worker: two")), "Thanks.", make=make)
    ((_, failed, text),) = results(team.ask(extensions=(extend,)))
    rows = json.loads(text)
    assert (failed, [row["status"] for row in rows], rows[1]["result"]) == (
        False,
        ["not run", "answered"],
        "done",
    )
    assert "no start" in rows[0]["result"]


@pytest.mark.parametrize("count", [6, 0])
def test_more_tasks_than_allowed_or_none_are_refused_before_any_begins(place: Place, count: int) -> None:
    team = Team(place, reply(multitask(*["x"] * count)), "Alas.", make=lambda: (agent("worker"),))
    ((_, failed, text),) = results(team.ask())
    assert failed
    assert ("at most 5 may run side by side" in text) == (count == 6)
    assert team.children() == []


def test_the_list_may_come_as_json_text(place: Place) -> None:
    tasks = json.dumps([{"agent_name": "worker", "prompt": "one"}])
    team = Team(
        place, reply(asks("multitask", "m1", tasks=tasks)), "Thanks.", make=lambda: (agent("worker", "done"),)
    )
    ((_, failed, text),) = results(team.ask())
    assert (failed, json.loads(text)[0]["result"]) == (False, "done")


def test_two_calls_in_one_turn_work_side_by_side_in_sessions_of_their_own(place: Place) -> None:
    make = lambda: (agent("worker", {"say": "slow", "wait_s": 0.2}), agent("other", "fast"))  # noqa: E731
    team = Team(place, reply(task("t1"), task("t2", "other")), "Thanks.", make=make)
    assert results(team.ask()) == [("t2", False, "fast"), ("t1", False, "slow")]
    assert len({child.session_id for child in team.children()}) == 2


# -- bounds ------------------------------------------------------------------------------------------------


def test_it_has_the_tools_that_both_it_and_its_parent_have(place: Place) -> None:
    bold = agent("worker", reply(asks("bash", "b1", command="ls")), "Alas.", tools=("bash", "put", "websearch"))
    team = Team(place, reply(task()), "Thanks.", make=lambda: (bold,))
    events = team.ask()
    assert [(r[0], r[1]) for r in results(below(events))] == [("b1", True)]
    assert [spec.name for spec in bold.model.requests[0].tools] == ["put"]


def test_without_a_list_it_has_all_of_its_parents_tools_but_those_it_must_not(place: Place) -> None:
    one = agent("worker", "done", disallowed_tools=("Deploy", "multitask"))
    Team(place, reply(task()), "Thanks.", make=lambda: (one,)).ask()
    assert [spec.name for spec in one.model.requests[0].tools] == ["look", "put", "task"]


def test_a_tool_that_nothing_answers_to_is_no_bound_but_a_mistake(place: Place) -> None:
    team = Team(place, reply(task()), "Alas.", make=lambda: (agent("worker", tools=("raed",)),))
    ((_, failed, text),) = results(team.ask())
    assert (failed, "there is no tool 'raed'" in text) == (True, True)


def test_rules_of_the_parent_hold_below_and_rules_of_the_definition_only_object(place: Place) -> None:
    rules = (PermissionRule.allow("put", "a").priority(9), PermissionRule.deny("look"))
    calls = reply(asks("put", "p1", name="a"), asks("look", "l1", name="b"), asks("put", "p2", name="c"))
    inner = agent("inner", reply(asks("look", "l2")), "inner done")
    make = lambda: (agent("worker", calls, reply(task("t2", "inner")), "done", rules=rules), inner)  # noqa: E731
    team = Team(place, reply(task()), "Thanks.", make=make)
    events = team.ask(permission_rules=(PermissionRule.deny("put", "a"),))
    ends = {r[0]: r[1] for r in results(below(events))}
    assert ends == {"p1": True, "l1": True, "p2": False, "l2": True, "t2": False}
    assert place.counted == {"c": 1}


def test_a_subagent_that_nobody_can_be_asked_for_runs_nothing_sensitive(place: Place) -> None:
    team = Team(
        place, reply(task()), "Thanks.", make=lambda: (agent("worker", reply(asks("deploy", "d")), "Alas."),)
    )
    rules = (PermissionRule.ask("deploy"),)
    events = team.ask(hitl_enabled=False, permission_rules=rules)
    assert [r[:2] for r in results(below(events))] == [("d", True)]
    assert place.counted == {}


def test_work_is_handed_on_two_levels_deep_and_no_deeper(place: Place) -> None:
    make = lambda: (  # noqa: E731
        agent("a", reply(task("t2", "b")), "a done"), agent("b", reply(task("t3", "c")), "b done"), agent("c", "c done"),
    )  # fmt: skip
    events = Team(place, reply(task("t1", "a")), "Thanks.", make=make).ask()
    found = {r[0]: r[2] for r in results(below(events))}
    assert found == {
        "t3": "work is handed on 2 levels deep at most: do this piece of it yourself",
        "t2": "b done",
    }
    assert {e.session_id for e in events if e.type == "subagent"} == {"s"}, "one envelope, however deep"


def test_a_subagents_session_is_asked_through_its_parent(place: Place) -> None:
    team = Team(place, reply(task()), "Thanks.", make=lambda: (agent("worker", "done"),))
    team.ask()
    (child,) = team.children()
    for text in ("hello", None):
        with pytest.raises(SubagentSession, match="prompt or resume 's' instead"):
            told(team.engine(), text, child.session_id)


def test_switched_off_nobody_has_the_tools(place: Place) -> None:
    team = Team(place, "Nobody there.", make=lambda: (agent("worker"),))
    made = team.engine(subagent_enabled=False)
    told(made)
    assert [spec.name for spec in made.options.model.requests[0].tools] == ["look", "put", "deploy"]
    made.set_subagent_enabled(True)
    assert "task" in made.agent("main").tools
    for wrong in ({"multitask_max_tasks": 0}, {"subagent_max_depth": True}, {"agents": ("worker",)}):
        with pytest.raises(ConfigError):
            made.set(**wrong)


# -- what it may spend -------------------------------------------------------------------------------------


def test_tokens_of_subagents_are_their_parents(place: Place) -> None:
    turn = {"say": "part", "usage": {"input_tokens": 30, "output_tokens": 10}}
    make = lambda: (agent("worker", {**turn}), agent("other", {**turn}))  # noqa: E731
    jobs = {**reply(multitask("worker: a", "other: b")), "usage": {"input_tokens": 5, "output_tokens": 5}}
    team = Team(place, jobs, "Thanks.", make=make)
    team.ask()
    assert place.state.usage == Usage(65, 25)


def test_side_by_side_they_share_what_is_left(place: Place) -> None:
    spend = [
        {**reply(asks("look", f"l{n}")), "usage": {"input_tokens": 40, "output_tokens": 0}} for n in range(9)
    ]
    make = lambda: (agent("worker", *spend), agent("other", *spend))  # noqa: E731
    team = Team(place, reply(multitask("worker: a", "other: b")), "Thanks.", make=make)
    ((_, failed, text),) = results([e for e in team.ask(max_tokens=200) if e.type != "subagent"])
    assert failed
    assert [row["status"] for row in json.loads(text)] == ["limit", "limit"]
    # each may spend 100: three turns of 40, and the one that sums up
    assert [child.usage.total_tokens for child in team.children()] == [160, 160]


def test_it_never_has_more_turns_than_its_parent_has_left(place: Place) -> None:
    script = [reply(asks("look", f"l{n}")) for n in range(9)]
    make = lambda: (agent("worker", *script, max_turns=50),)  # noqa: E731
    team = Team(place, reply(asks("look", "x")), reply(asks("look", "y")), reply(task()), "Thanks.", make=make)
    team.ask(max_turns=5)
    (child,) = team.children()
    assert (child.outcome, child.turn) == ("limit", 3), "two of its own and the one that sums up"


def test_what_it_was_granted_always_is_not_its_parents(place: Place) -> None:
    twice = (reply(asks("deploy", "d1", name="a")), "done")
    team = Team(place, reply(task()), "Thanks.", make=lambda: (agent("worker", *twice),))
    hitl = {"hitl_interceptor": None}
    team.ask(**hitl, permission_rules=(PermissionRule.ask("deploy"),))
    (waiting,) = HITL.get_pending_tasks(place.session())
    HITL.submit(place.session(), waiting, HITLDecision.approve(always_allow=True))
    team.ask(None, **hitl, permission_rules=(PermissionRule.ask("deploy"),))
    (child,) = team.children()
    assert [rule.text for rule in child.policy.rules] == ["allow deploy(a)"]
    assert place.state.policy.rules == ()


def test_agents_come_from_files_too(place: Place, tmp_path: Path) -> None:
    home = tmp_path / "home"
    (home / "agents").mkdir(parents=True)
    (home / "agents" / "writer.md").write_text(
        "---\ndescription: writes\ntools: put\n---\nYou write #{things} {down}.\n"
    )
    model = ScriptedModel([reply(task(agent="writer")), "written", "Thanks."])
    events = Team(place, make=tuple).ask(model=model, harness_home=str(home))
    assert results(events) == [("t1", False, "written")]
    assert "You write #{things} {down}." in model.requests[1].system
    assert "- writer: writes" in model.requests[0].tools[-1].description


# -- built like any other agent ----------------------------------------------------------------------------


def test_extensions_are_asked_for_subagents_too_and_give_them_no_tool_their_parent_lacks(place: Place) -> None:
    names: list[str] = []

    @tool(effects={"reads"})
    async def extra() -> str:
        """More."""
        return "more"

    class Guard(Interceptor):
        def on_tool_call_start(self, trace: ReActTrace, call: ToolCall) -> Deny | None:
            return Deny("not here") if call.tool == "put" else None

    def extend(engine: HarnessEngine, agent_name: str, builder: AgentBuilder) -> None:
        names.append(agent_name)
        if agent_name != "main":
            builder.default_tool_add(extra).default_interceptor_add(Guard())

    one = agent("worker", reply(asks("put", "p")), "Alas.")
    events = Team(place, reply(task()), "Thanks.", make=lambda: (one,)).ask(extensions=(extend,))
    assert names == ["main", "worker"]
    assert [r[:2] for r in results(below(events))] == [("p", True)]
    assert "extra" not in [spec.name for spec in one.model.requests[0].tools]


def test_it_reads_back_what_was_cut_out_of_its_own_results(place: Place) -> None:
    @tool(effects={"reads"})
    async def long() -> str:
        """A lot."""
        return "x" * 60_000 + "END"

    call_long = {"tool": "long", "id": "long_call_1", "args": {}}
    back = reply({"tool": "recall", "id": "r", "args": {"call_id": "long_call_1", "offset": 59_990}})
    make = lambda: (agent("worker", reply(call_long), back, "done"),)  # noqa: E731
    store = place.store()
    provider = lambda name: AgentSession(name, store)  # noqa: E731 - sessions need not come from a store
    events = Team(place, reply(task()), "Thanks.", make=make).ask(
        tools=(long, "task"), session_provider=provider
    )
    assert results(below(events))[-1] == (
        "r",
        False,
        "[long_call_1: characters 59990 to 60003 of 60003]\nxxxxxxxxxxEND",
    )


def test_time_is_shared_too(place: Place) -> None:
    slow = [{**reply(asks("look", f"l{n}")), "wait_s": 0.2} for n in range(9)]
    team = Team(place, reply(task()), "Thanks.", make=lambda: (agent("worker", *slow),))
    team.ask(max_seconds=0.5)
    (child,) = team.children()
    assert (child.outcome, place.state.outcome) == ("limit", "limit")
    assert child.turn <= 4


def test_a_setting_changed_meanwhile_holds_below_at_once(place: Place) -> None:
    made: list[HarnessEngine] = []

    @tool(effects={"reads"})
    async def forbid() -> str:
        """Forbid what comes next."""
        made[0].add_permission_rule(PermissionRule.deny("put"))
        return "forbidden"

    call_forbid = {"tool": "forbid", "id": "f", "args": {}}
    make = lambda: (agent("worker", reply(call_forbid), reply(asks("put", "p")), "Alas."),)  # noqa: E731
    team = Team(place, reply(task()), "Thanks.", make=make)
    made.append(team.engine(tools=(*place.tools(), forbid, "task")))
    events = told(made[0])
    assert [r[:2] for r in results(below(events))] == [("f", False), ("p", True)]


def test_a_person_may_ask_an_agent_by_name_within_what_main_has(place: Place) -> None:
    one = agent(
        "worker", reply(asks("look", "l"), asks("deploy", "d")), "Alas.", tools=("look", "bash"), max_turns=99
    )
    made = Team(place, make=lambda: (one,)).engine()
    asyncio.run(made.prompt("go").agent("worker").session("s").call())
    assert [(name, result.is_error) for name, result in place.results().items()] == [("l", False), ("d", True)]
    assert [spec.name for spec in one.model.requests[0].tools] == ["look"]
    assert (place.state.agent, place.state.parent, made.agent("worker").bounds.budget.max_turns) == (
        "worker",
        None,
        20,
    )
    made.set_max_turns(7)
    assert made.agent("worker").bounds.budget.max_turns == 7
    with pytest.raises(ConfigError, match=r"there is no agent 'nobody' \(known are main, worker, bash"):
        asyncio.run(made.prompt("go").agent("nobody").session("t").call())
