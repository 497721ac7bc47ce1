"""All reachable states of the discipline with all inputs: what can never happen, and what always can.

The questions that hosts ask are asked here of every state that can be reached; nothing is assumed about the table.
"""

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache

import pytest
from msgspec.structs import replace

from jackstay.core.decision import Allow, Ask
from jackstay.core.phase import Mode, Phase, PhaseState
from jackstay.core.state import PolicyState
from jackstay.policy import discipline, own_tools, sessions
from jackstay.policy.checklist import SEVEN, Checked
from jackstay.policy.data import PolicyData
from jackstay.policy.gates import Kind
from jackstay.policy.markers import Marker
from jackstay.policy.phases import open_items
from tests.policy.acts import FAILED, KINDS, OK, UNKNOWN, own

# Three of the seven items are enough to see every kind of tick; the number only multiplies the states.
DATA = PolicyData(items=(SEVEN[0], SEVEN[1], SEVEN[5]))
EFFECTS = (Kind.WRITE, Kind.EXECUTE, Kind.STORE, Kind.REMOTE_EFFECT)


@dataclass(frozen=True)
class Node:
    """A state of the session with what an observer knows of its past: did a person approve this plan?"""

    state: PolicyState
    approved: bool = False


@dataclass(frozen=True)
class Edge:
    """One input: what it was, who gave it, which effect it let run without asking anybody."""

    before: Node
    label: str
    by: str
    after: Node
    ran: Kind | None = None


def canonical(phase: PhaseState) -> PhaseState:
    """Without what only texts depend on."""
    return replace(
        phase, reason="", notices=(), wanted=(), skills=(), missing=(), changed=(), changed_more=0, unverified=(),
        replaced=(), findings=(), approved_by="x" if phase.approved_by else "",
        ticks=tuple(sorted((replace(tick, evidence="e") for tick in phase.ticks), key=lambda tick: tick.item)),
    )  # fmt: skip


def settle(node: Node, state: PolicyState, *, person: bool = False) -> Node:
    """The node after an input: a person's word on a plan counts until a new task or a new plan begins."""
    before, after = node.state.phase.phase, state.phase.phase
    approved = node.approved or (person and before is Phase.PLANNING and after is Phase.EXECUTING)
    if after in (Phase.NO_TASK, Phase.TASK_STARTED, Phase.PLANNING):
        approved = False
    if state.phase.returns_to in (Phase.TASK_STARTED, Phase.PLANNING):
        approved = False
    return Node(PolicyState(canonical(state.phase), mode=state.mode, language="en"), approved)


def agent_inputs(node: Node) -> Iterator[Edge]:
    """Everything an agent can do: say markers, call its tools, call tools that work, fail, or may have run."""
    state = node.state
    for marker in Marker:
        said = discipline.note(state, f"words\n[HARNESS: {marker}]\nmore words", data=DATA)
        yield Edge(node, f"says {marker}", "agent", settle(node, said.state))
    for phase in Phase:
        yield from called(node, f"set_phase {phase}", lambda s, p=phase: own_tools.set_phase(s, {"phase": p, "reason": "r"}, data=DATA).state,
                          own("discipline_set_phase", phase=str(phase), reason="r"))  # fmt: skip
    for item in DATA.items:
        for ok in (True, False):
            args = {"item": item.id, "evidence": "looked at everything there is"}
            checked = Checked(ok, "looked") if item.checked_by == "harness" else None
            ticked = own_tools.closure_check(state, args, checked=checked, data=DATA)
            yield Edge(node, f"closure_check {item.id} {ok}", "agent", settle(node, ticked.state))
    for kind, (call, facts) in KINDS.items():
        facts = replace(facts, backup="taken")
        weighed = discipline.weigh(state, call, facts, data=DATA)
        if not isinstance(weighed.decision, Allow):
            yield Edge(node, f"{kind} refused", "agent", settle(node, weighed.state))
            continue
        for result in (OK, FAILED, UNKNOWN):
            after = discipline.observe(weighed.state, call, facts, result, data=DATA).state
            yield Edge(node, f"{kind} {result.text}", "agent", settle(node, after), kind)


def called(node: Node, label: str, run: Callable[[PolicyState], PolicyState], act: tuple) -> Iterator[Edge]:
    """A tool of the harness's own is judged like any other before it runs."""
    weighed = discipline.weigh(node.state, *act, data=DATA)
    after = run(weighed.state) if isinstance(weighed.decision, Allow) else weighed.state
    yield Edge(node, label, "agent", settle(node, after))


def user_inputs(node: Node) -> Iterator[Edge]:
    """What a person can do, force apart: words, a command, an approval of one call that asked."""
    for words in ("可以", "go ahead", "可以吗？", "no, use another name", "don't commit"):
        after = discipline.hear(node.state, words, data=DATA).state
        yield Edge(node, f"hears {words}", "user", settle(node, replace(after, language="en"), person=True))
    approved = sessions.approve_plan(node.state, by="ann", data=DATA).state
    yield Edge(node, "approve --plan", "user", settle(node, approved, person=True))
    for kind, (call, facts) in KINDS.items():
        facts = replace(facts, backup="taken")
        weighed = discipline.weigh(node.state, call, facts, data=DATA)
        if isinstance(weighed.decision, Ask):
            after = discipline.observe(weighed.state, call, facts, OK, data=DATA).state
            yield Edge(node, f"{kind} approved", "user", settle(node, after))


def forces(node: Node) -> Iterator[Edge]:
    """A person moves the phase, whatever the table says; a phase of work approves what is done in it."""
    for to in Phase:
        state = sessions.force_phase(node.state, to, "r", by="ann", data=DATA).state
        after = settle(Node(node.state, approved=True), replace(state, language="en"))
        yield Edge(node, f"force {to}", "force", after)


@lru_cache(maxsize=4)
def explore(mode: Mode, inputs: tuple[Callable[[Node], Iterator[Edge]], ...]) -> tuple[set[Node], list[Edge]]:
    """Every node that can be reached from a new session, and every edge between them."""
    start = Node(PolicyState(mode=mode, language="en"))
    seen, queue, edges = {start}, deque([start]), []
    while queue:
        node = queue.popleft()
        for give in inputs:
            for edge in give(node):
                edges.append(edge)
                if edge.after not in seen:
                    seen.add(edge.after)
                    queue.append(edge.after)
    return seen, edges


def everything() -> tuple[set[Node], list[Edge]]:
    return explore("strict", (agent_inputs, user_inputs))


def test_all_phases_are_reached() -> None:
    nodes, edges = everything()
    assert {node.state.phase.phase for node in nodes} == set(Phase)
    assert len(nodes) > 100
    assert len(edges) > 4000


def test_nothing_with_effects_runs_before_a_person_has_approved_the_plan() -> None:
    for edge in everything()[1]:
        if edge.ran in EFFECTS:
            assert edge.before.approved, edge
            assert edge.before.state.phase.approved_by, edge


def test_an_agent_alone_never_gets_out_of_research_and_planning() -> None:
    nodes, edges = explore("strict", (agent_inputs,))
    phases = {(node.state.phase.phase, node.state.phase.returns_to) for node in nodes}
    assert phases == {
        (Phase.NO_TASK, None), (Phase.TASK_STARTED, None), (Phase.PLANNING, None),
        (Phase.ACCESSING_DEVICE, Phase.TASK_STARTED), (Phase.ACCESSING_DEVICE, Phase.PLANNING),
    }  # fmt: skip
    assert not any(edge.ran in EFFECTS for edge in edges)


def test_an_agent_never_approves_its_own_plan() -> None:
    working = (Phase.EXECUTING, Phase.MODIFYING)
    for edge in everything()[1]:
        before, after = edge.before.state.phase, edge.after.state.phase
        if edge.by == "agent" and not before.approved_by:
            assert not after.approved_by, edge
            assert after.phase not in working, edge


@pytest.mark.parametrize("inputs", [(agent_inputs, user_inputs), (agent_inputs, user_inputs, forces)])
def test_closing_is_left_by_done_alone_and_only_with_every_item_ticked(inputs: tuple) -> None:
    left = [
        edge for edge in explore("strict", inputs)[1]
        if edge.before.state.phase.phase is Phase.CLOSING is not edge.after.state.phase.phase
        and edge.by != "force"
    ]  # fmt: skip
    assert {edge.label for edge in left} == {"says done", "set_phase no_task"}
    for edge in left:
        assert not open_items(edge.before.state.phase, DATA.required), edge
        assert edge.after.state.phase.phase is Phase.NO_TASK, edge


def test_after_whatever_a_person_forces_an_agent_passes_no_gate_by_itself_and_is_never_stuck() -> None:
    nodes, edges = explore("strict", (agent_inputs, user_inputs, forces))
    assert len(nodes) > len(everything()[0])
    for edge in edges:
        before, after = edge.before.state.phase, edge.after.state.phase
        if edge.by == "agent" and not before.approved_by:
            assert not after.approved_by, edge
            assert after.phase not in (Phase.EXECUTING, Phase.MODIFYING), edge
            assert edge.ran not in EFFECTS, edge
        if edge.by == "agent" and before.phase is Phase.PLANNING:
            assert after.phase not in (Phase.EXECUTING, Phase.MODIFYING), edge
    assert reaching_no_task(nodes, edges) == nodes


def test_what_was_done_is_never_dropped_without_closing() -> None:
    for edge in everything()[1]:
        before, after = edge.before.state.phase, edge.after.state.phase
        if before.acted and not after.acted:
            assert before.phase is Phase.CLOSING, edge


def test_temporary_phases_always_return() -> None:
    for node in everything()[0]:
        phase = node.state.phase
        assert (phase.returns_to is not None) == (phase.phase.kind == "temporary"), node
        if phase.returns_to is not None:
            after = own_tools.set_phase(
                node.state, {"phase": phase.returns_to, "reason": "done"}, data=DATA
            ).state
            assert after.phase.phase is phase.returns_to, node


def test_there_is_no_dead_end() -> None:
    nodes, edges = everything()
    assert reaching_no_task(nodes, edges) == nodes


def reaching_no_task(nodes: set[Node], edges: list[Edge]) -> set[Node]:
    """The nodes from which a task can be ended; no force is needed for it."""
    back: dict[Node, set[Node]] = {node: set() for node in nodes}
    for edge in edges:
        if edge.by != "force":
            back[edge.after].add(edge.before)
    reach = {node for node in nodes if node.state.phase.phase is Phase.NO_TASK}
    queue = deque(reach)
    while queue:
        for before in back[queue.popleft()] - reach:
            reach.add(before)
            queue.append(before)
    return reach


@pytest.mark.parametrize("to", list(Phase))
def test_a_person_can_always_leave(to: Phase) -> None:
    for node in everything()[0]:
        after = sessions.force_phase(node.state, to, "because I say so", by="ann", data=DATA).state
        assert after.phase.phase is to, node


def test_a_person_s_force_leaves_no_state_that_is_stuck() -> None:
    for node in everything()[0]:
        for to in Phase:
            forced = sessions.force_phase(node.state, to, "r", by="ann", data=DATA).state.phase
            if forced.returns_to is not None:
                after = own_tools.set_phase(
                    PolicyState(forced, mode="strict"), {"phase": forced.returns_to, "reason": "r"}, data=DATA
                )
                assert after.state.phase.phase is forced.returns_to


def test_a_refused_call_moves_nothing_but_a_first_task() -> None:
    for edge in everything()[1]:
        if edge.label.endswith("refused"):
            before, after = edge.before.state.phase, edge.after.state.phase
            expected = Phase.TASK_STARTED if before.phase is Phase.NO_TASK else before.phase
            assert after.phase is expected, edge
            assert before.phase is Phase.NO_TASK or after == before, edge


def test_in_guided_mode_hard_gates_ask_and_moves_are_judged_the_same() -> None:
    for node in everything()[0]:
        guided = replace(node.state, mode="guided")
        for kind, (call, facts) in KINDS.items():
            strict = discipline.decide(node.state, call, facts, data=DATA)
            asked = discipline.decide(guided, call, facts, data=DATA)
            assert isinstance(asked, Allow) == isinstance(strict, Allow), (node, kind)
            assert asked.severity <= 1, (node, kind)


def test_in_observe_mode_everything_runs_and_what_would_have_been_is_told() -> None:
    for node in everything()[0]:
        watched = replace(node.state, mode="observe")
        for kind, (call, facts) in KINDS.items():
            strict = discipline.decide(node.state, call, facts, data=DATA)
            weighed = discipline.weigh(watched, call, facts, data=DATA)
            assert isinstance(weighed.decision, Allow), (node, kind)
            assert (weighed.withheld is None) == isinstance(strict, Allow), (node, kind)


@pytest.mark.parametrize("kind", list(KINDS))
def test_switched_off_it_says_nothing_and_changes_nothing(kind: Kind) -> None:
    state = PolicyState(PhaseState(Phase.CLOSING))
    call, facts = KINDS[kind]
    assert discipline.weigh(state, call, facts) == discipline.Weighed(Allow(), state)
    assert discipline.observe(state, call, facts, OK) == discipline.Outcome(state)
    assert discipline.note(state, "[HARNESS: done]") == discipline.Outcome(state)
    assert discipline.hear(state, "可以") == discipline.Outcome(state)
    assert discipline.guidance(state) is None
