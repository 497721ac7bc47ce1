"""Loops are seen, and what only looks like one is not (hard case 17, first seed §5)."""

from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from jackstay.core import wire
from jackstay.core.errors import ConfigError
from jackstay.engine.stoploop import StopLoopInterceptor
from jackstay.policy.loops import (
    Done,
    LoopFinding,
    LoopParams,
    LoopWindow,
    after_below,
    notice,
    notice_text,
)

PARAMS = LoopParams()


def read(path: str, result: str = "content", *, error: bool = False) -> Done:
    return Done("read", {"file_path": path}, result, error)


def bash(command: str, result: str = "exit code 0", *, error: bool = False) -> Done:
    return Done("bash", {"command": command}, result, error)


def edit(path: str, new: str) -> Done:
    return Done("edit", {"file_path": path, "old_string": "a", "new_string": new}, "1 replaced")


def play(turns: Iterable[list[Done] | str], params: LoopParams = PARAMS) -> list[LoopFinding | None]:
    window, found = LoopWindow(), []
    for turn in turns:
        say = isinstance(turn, str)
        window, finding = notice_text(window, turn, params) if say else notice(window, turn, params)
        found.append(finding)
    return found


def seen(turns: Iterable[list[Done] | str], params: LoopParams = PARAMS) -> list[str]:
    return [finding.kind for finding in play(turns, params) if finding is not None]


def letters(text: str) -> list[list[Done]]:
    return [[bash(f"run {letter}", f"result of {letter}")] for letter in text]


# -- none missed -------------------------------------------------------------------------------------------


def test_the_third_equal_call_with_the_equal_result_is_a_loop_and_not_the_second() -> None:
    turns = [[read("a.py")]] * 6
    assert [finding and finding.kind for finding in play(turns)] == [
        None, None, "same_call", None, None, "same_call",
    ]  # fmt: skip


def test_the_third_equal_edit_is_a_loop_like_any_other_call() -> None:
    assert [one and one.count for one in play([[edit("a.py", "x")]] * 3)] == [None, None, 3]
    writes = [Done("bash", {"command": "echo x > f"}, "exit code 0", edits=True)]
    assert [one and one.count for one in play([writes] * 3)] == [None, None, 3]


@pytest.mark.parametrize("cycle", ["AB", "ABC", "ABCD", "ABCDE", "ABCDEF", "ABCDEFG", "ABCDEFGH"])
def test_cycles_of_every_period_up_to_eight_are_seen_by_their_third_round(cycle: str) -> None:
    assert len(seen(letters(cycle * 3))) == 1
    assert seen(letters(cycle * 2)) == []


def test_a_cycle_that_goes_round_in_batches_is_seen() -> None:
    batch = [bash("a", "1"), bash("b", "2"), bash("c", "3"), bash("d", "4")]
    assert seen([batch] * 3) == ["cycle"]
    assert seen([batch[:3], [*batch[3:], *batch[:1]], batch[1:], batch], LoopParams(window=4)) == ["cycle"]


def test_the_same_error_from_ever_other_arguments_is_a_loop() -> None:
    turns = [[read(f"/srv/{n}.txt", f"no such file: '/srv/{n}.txt' (errno 2)", error=True)] for n in range(3)]
    assert seen(turns) == ["same_error"]


def test_thirty_copies_in_one_turn_are_a_loop_whatever_they_returned() -> None:
    assert seen([[bash("date", f"result {n}") for n in range(30)]]) == ["copies"]


def test_a_loop_interleaved_with_unrelated_successes_is_seen() -> None:
    turns = []
    for n in range(3):
        turns += [[bash("make", "error: missing separator", error=True)], [read(f"{n}.py", f"text {n}")]]
    assert seen(turns) == ["same_call"]


def test_results_that_differ_only_in_times_durations_ids_and_addresses_are_equal() -> None:
    results = [
        f"2024-11-0{n}T10:0{n}:00Z started pid {4000 + n}, object at 0x7f3a{n}b20, took {n}.2 s, exit code 1"
        for n in range(1, 4)
    ]
    assert seen([[bash("pytest", result)] for result in results]) == ["same_call"]


def test_arguments_in_another_order_are_the_same_call() -> None:
    one = Done("grep", {"pattern": "x", "path": "."}, "none")
    two = Done("grep", {"path": ".", "pattern": "x"}, "none")
    assert seen([[one], [two], [one]]) == ["same_call"]


def test_the_same_words_three_times_without_a_call_are_a_loop() -> None:
    assert seen(["I will now look.", "I will now look.", "i will now look. "]) == ["same_text"]


def test_a_reply_between_calls_does_not_hide_a_loop() -> None:
    turns: list[list[Done] | str] = [[read("a")], [read("a")], "Let me see.", [read("a")]]
    assert seen(turns) == ["same_call"]


def test_editing_and_failing_alike_for_ever_is_seen_in_the_end() -> None:
    turns = []
    for n in range(6):
        turns += [[edit("a.py", f"try {n}")], [bash("pytest", "exit code 1\nE assert 1 == 2", error=True)]]
    assert seen(turns) == ["same_call"]


def test_the_count_survives_storing_and_reading_the_window() -> None:
    window = LoopWindow()
    for _ in range(2):
        window, none = notice(window, [read("a")], PARAMS)
        assert none is None
        window = wire.convert(wire.decode_json(wire.encode(window)), LoopWindow)
    _, finding = notice(window, [read("a")], PARAMS)
    assert finding is not None
    assert (finding.kind, finding.count, finding.calls) == ("same_call", 3, ('read {"file_path":"a"}',))


# -- harmless ----------------------------------------------------------------------------------------------


def test_three_different_reads_are_no_loop() -> None:
    assert seen([[read("a", "1")], [read("b", "2")], [read("c", "3")]] * 1) == []
    assert seen([[read("a", "same"), read("b", "same"), read("c", "same")]]) == []


def test_paging_through_a_file_is_no_loop() -> None:
    pages = [[Done("read", {"file_path": "a", "offset": 100 * n}, f"lines of page {n}")] for n in range(20)]
    assert seen(pages) == []


@pytest.mark.parametrize("tool", ["status", "bash"])
def test_polling_is_no_loop_while_its_results_change(tool: str) -> None:
    args = {"command": "sleep 5; kubectl get pods"} if tool == "bash" else {"job": 7}
    assert seen([[Done(tool, args, f"running for {n * 5} s")] for n in range(20)]) == []
    assert seen([[Done(tool, args, "running")] for _ in range(3)]) == ["same_call"]


def test_polling_with_a_progress_that_moves_is_no_loop_for_any_tool() -> None:
    assert seen([[Done("job", {"id": 7}, f"{n} % done")] for n in range(20)]) == []


def test_trying_again_after_an_edit_is_no_loop() -> None:
    turns = []
    for n in range(5):
        turns += [[edit("a.py", f"try {n}")], [bash("pytest", "exit code 1\nE assert 1 == 2", error=True)]]
    assert seen([*turns, [bash("pytest", "exit code 0")]]) == []
    by_command = [
        Done("bash", {"command": f"sed -i s/a/{n}/ a.py"}, "exit code 0", edits=True) for n in range(5)
    ]
    test = bash("pytest", "exit code 1\nE assert 1 == 2", error=True)
    assert seen([turn for one in by_command for turn in ([one], [test])]) == []


def test_different_errors_are_no_loop() -> None:
    kinds = ("no such file", "permission denied", "is a directory", "not valid UTF-8")
    assert seen([[read(f"{n}", kind, error=True)] for n, kind in enumerate(kinds)]) == []


@given(st.lists(st.sampled_from("abcdefghijklmnopqrstuvwxyz"), unique=True))
def test_whatever_never_repeats_is_never_a_loop(names: list[str]) -> None:
    assert seen([[bash(f"run {name}", f"out {name}")] for name in names]) == []


# -- what follows ------------------------------------------------------------------------------------------


def test_by_default_a_loop_only_ever_yields_the_corrective_message() -> None:
    found = [one for one in play([[read("a")]] * 30) if one is not None]
    assert [one.rung for one in found] == ["remind"] * 10
    text = found[0].text
    assert "[Loop Detected]" in text
    assert 'read {"file_path":"a"}' in text
    assert "final answer" in text


def test_the_ladder_climbs_where_it_is_switched_on_and_stays_on_its_last_rung() -> None:
    params = StopLoopInterceptor().set_rungs("remind", "replan", "ask", "stop").params
    found = [one.rung for one in play([[read("a")]] * 15, params) if one is not None]
    assert found == ["remind", "replan", "ask", "stop", "stop"]


def test_the_ladder_starts_anew_after_a_long_stretch_without_a_loop() -> None:
    params = StopLoopInterceptor().set_rungs("remind", "stop").params
    clean = [[bash(f"step {n}", f"result {n}")] for n in range(params.kept)]
    turns = [*[[read("a")]] * 3, *clean, *[[read("b")]] * 3]
    assert [one.rung for one in play(turns, params) if one is not None] == ["remind", "remind"]


def test_rungs_stand_in_the_order_of_the_ladder_however_they_were_named() -> None:
    params = StopLoopInterceptor().set_rungs("stop", "remind").params
    assert [one.rung for one in play([[read("a")]] * 6, params) if one is not None] == ["remind", "stop"]


def test_the_clamps_and_refusals_of_the_constructor() -> None:
    assert StopLoopInterceptor(1, 2).params == LoopParams(2, 4)
    assert StopLoopInterceptor().params == LoopParams(3, 8)
    guard = StopLoopInterceptor(5, 12)
    for wrong in (lambda: guard.set_rungs("shout"), lambda: guard.set_window(2.5), lambda: guard.set_rungs()):  # type: ignore[arg-type]  # wrong on purpose
        with pytest.raises(ConfigError):
            wrong()
    assert guard.params == LoopParams(5, 12)


def test_with_four_of_ten_the_fourth_triggers_and_the_third_does_not() -> None:
    found = play([[read("a")]] * 4, StopLoopInterceptor(4, 10).params)
    assert [one is not None for one in found] == [False, False, False, True]


def test_what_left_the_window_does_not_count() -> None:
    params = LoopParams(3, 4)
    assert seen(letters("ABCAA"), params) == []
    assert seen(letters("ABCDA"), params) == []


def test_switched_off_it_sees_nothing() -> None:
    assert seen([[read("a")]] * 9, StopLoopInterceptor().set_enabled(False).params) == []


@given(st.lists(st.lists(st.sampled_from("abc"), max_size=9).map(lambda names: [bash(n) for n in names])))
def test_the_window_stays_small_whatever_happens(turns: list[list[Done]]) -> None:
    window = LoopWindow()
    for turn in turns:
        window, _ = notice(window, turn, PARAMS)
        assert len(wire.encode(window)) < 1_500


# -- subagents ---------------------------------------------------------------------------------------------


def window(names: str, before: LoopWindow | None = None) -> LoopWindow:
    made = before or LoopWindow()
    for name in names:
        made, _ = notice(made, [read(name)], PARAMS)
    return made


def test_what_a_subagent_did_goes_on_where_its_parent_was() -> None:
    before = window("ab")
    assert after_below(before, [window("cd", before)], PARAMS) == window("abcd")


def test_side_by_side_the_same_call_counts_as_often_as_the_one_that_did_it_most() -> None:
    before = window("a")
    ends = [window("xb", before), window("xxc", before), window("x", before)]
    assert after_below(before, ends, PARAMS).marks == window("axbxc").marks


def test_what_was_told_below_is_forgotten_above_and_counts_for_the_ladder() -> None:
    before = window("ab")
    end = window("cccd", before)
    assert end.found == 1
    assert after_below(before, [end], PARAMS) == replace(window("d"), found=1)


def test_a_long_piece_of_work_leaves_only_its_last_calls() -> None:
    before = window("ab")
    end = before
    for number in range(40):
        end, _ = notice(end, [bash(f"step {number}", f"result {number}")], PARAMS)
    assert after_below(before, [end], PARAMS) == end


def test_errors_stay_beside_their_calls() -> None:
    before = window("a")
    end, _ = notice(before, [bash("x", "failed", error=True)], PARAMS)
    assert after_below(before, [end], PARAMS) == end
    assert after_below(before, [window("b", before), end], PARAMS).errors == ("", "", end.errors[1])
