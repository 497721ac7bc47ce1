"""What is said, in which language, how long; and what must never stand in it."""

import pytest
from msgspec.structs import replace

from jackstay.core.phase import Finding, Phase
from jackstay.policy import discipline
from jackstay.policy.checklist import SEVEN, Item
from jackstay.policy.data import BUILT_IN, PolicyData, problems
from jackstay.policy.guidance import CHINESE, ENGLISH, SESSION_TEXT, TEXTS, Texts, language_of, tokens
from jackstay.policy.markers import markers
from jackstay.policy.policy import Policy
from tests.policy.acts import at, ticks

SPEAKING = [phase for phase in Phase if phase.kind != "steady"]
BACKS = [phase for phase in Phase if phase.kind != "temporary"]


def test_the_built_in_data_has_no_problems() -> None:
    assert problems(BUILT_IN) == []


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("phase", [Phase.NO_TASK, Phase.EXECUTING])
def test_steady_phases_say_nothing(phase: Phase, language: str) -> None:
    assert discipline.guidance(at(phase, language=language)) is None


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("back", BACKS)
@pytest.mark.parametrize("phase", SPEAKING)
def test_the_others_name_their_phase_within_the_limit_and_without_holes(
    phase: Phase, back: Phase, language: str
) -> None:
    text = discipline.guidance(at(phase, back if phase.kind == "temporary" else None, language=language))
    assert text is not None
    assert phase.value in text
    assert tokens(text) <= (400 if phase is Phase.CLOSING else 200)
    assert "{" not in text  # W11: a literal {previous}
    assert markers(text) == ()  # quoting it declares nothing
    if phase.kind == "temporary":
        assert f"discipline_set_phase({back})" in text


def test_closing_shows_the_seven_steps_with_their_state_in_the_seed_s_order() -> None:
    text = discipline.guidance(at(Phase.CLOSING, ticks=ticks("credential_scan", "commit_housekeeping")))
    assert text is not None
    lines = text.splitlines()[1:]
    assert [line.split(" ", 1)[0] for line in lines] == ["1.", "2.", "3.", "4.", "5.", "6.", "7."]
    assert [line[3:6] for line in lines] == ["[ ]", "[x]", "[x]", "[x]", "[x]", "[x]", "[ ]"]
    assert [item.title["zh"] for item in SEVEN] == [
        "凭证扫描",
        "Skill 更新",
        "决策记录",
        "登记检查",
        "信息存储",
        "基线对比",
        "提交整理",
    ]


def test_the_worst_closing_still_fits() -> None:
    findings = tuple(Finding("credential_scan", f"/w/{'long' * 20}/{n}.py") for n in range(50))
    for language in ("en", "zh"):
        text = discipline.guidance(at(Phase.CLOSING, findings=findings, language=language))
        assert text is not None
        assert tokens(text) <= 400


@pytest.mark.parametrize(
    ("text", "language"),
    [("fix the test", "en"), ("修一下测试", "zh"), ("把 foo 改成 bar 函数", "zh"), ("123 !!", ""), ("", "")],
)
def test_the_language_is_the_user_s(text: str, language: str) -> None:
    assert language_of(text) == language


def test_an_ok_in_between_does_not_change_the_language_and_config_beats_it() -> None:
    state = discipline.hear(at(Phase.PLANNING, language=""), "请修复 calc.py 里的测试").state
    assert state.language == "zh"
    state = discipline.hear(state, "ok?").state
    assert state.language == "zh"
    assert "调研" in (discipline.guidance(replace(at(Phase.TASK_STARTED), language="zh")) or "")
    english = PolicyData(language="en")
    assert "Research" in (
        discipline.guidance(replace(at(Phase.TASK_STARTED), language="zh"), data=english) or ""
    )


def test_the_session_text_teaches_the_four_markers_in_sixty_tokens() -> None:
    for text in SESSION_TEXT.values():
        assert tokens(text) <= 70  # an upper estimate; a real tokenizer counts fewer
        assert text.count("[HARNESS: ") == 4
        assert markers(text) == ()


def test_no_text_of_ours_declares_a_marker_when_somebody_quotes_it() -> None:
    for texts in TEXTS.values():
        for part in Texts.__struct_fields__:
            for text in getattr(texts, part).values():
                assert markers(text) == (), text
                assert markers(f"The tool said: {text}") == (), text


def test_notices_are_said_once() -> None:
    state = discipline.note(at(Phase.TASK_STARTED), "[HARNESS: plan]").state
    first = discipline.guidance(state)
    assert first is not None
    assert "planning needs at least one look" in first
    again = discipline.guidance(discipline.told(state))
    assert again is not None
    assert "planning needs" not in again
    assert discipline.told(discipline.told(state)) == discipline.told(state)


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("phase", list(Phase))
def test_with_everything_that_can_be_said_it_still_fits_and_the_newest_is_there(
    phase: Phase, language: str
) -> None:
    notices = tuple(f"{number} " + ("说明 " if language == "zh" else "word ") * 75 for number in range(4))
    wanted = tuple(f"work-principles:skill-{number}" for number in range(6))
    state = at(phase, language=language, notices=notices, wanted=wanted)
    for data in (BUILT_IN, PolicyData(skill_call="skill_view('{}')")):
        text = discipline.guidance(state, data=data)
        assert text is not None
        assert tokens(text) <= (400 if phase is Phase.CLOSING else 200)
        assert ("3 " if data is BUILT_IN else "skill_view('work-principles:skill-5')") in text


def test_unfit_data_is_not_taken_and_it_is_said_why() -> None:
    policy = Policy()
    broken = replace(ENGLISH, phases={**ENGLISH.phases, Phase.PLANNING: "word " * 300 + "{unknown}"})
    found = policy.replace_data(PolicyData(texts={"en": broken, "zh": CHINESE}))
    assert found == ["texts, en: phases[planning] has other fields than the English one"]
    assert policy.data is BUILT_IN
    assert policy.replace_data(PolicyData(items=SEVEN[1:])) == ["items: credential_scan has to stay required"]
    assert policy.replace_data(PolicyData(texts={"zh": CHINESE})) == ["texts: English is missing"]


def test_a_text_that_is_too_long_or_hides_its_phase_is_named() -> None:
    long = replace(ENGLISH, phases={**ENGLISH.phases, Phase.PLANNING: "word " * 300})
    found = problems(PolicyData(texts={"en": long, "zh": CHINESE}))
    assert [one[:60] for one in found] == [
        "texts, en: phases[planning] is about 500 tokens long, at mos",
        "texts, en: phases[planning] does not name its phase",
    ]


def test_new_data_counts_from_the_next_question_on_and_loosens_nothing_that_is_under_way() -> None:
    policy = Policy()
    more = Item("smoke_test", {"en": "Smoke test"}, {"en": "run it"}, component="shop")
    closing = policy.note(at(Phase.EXECUTING), "[HARNESS: done]").state
    assert policy.replace_data(PolicyData(items=(*SEVEN, more), language="zh")) == []
    text = policy.guidance(closing)
    assert text is not None
    assert "8. [ ] smoke_test: run it" in text
    assert "阶段" in text
    # taken out again, the item that was asked for when closing was opened stays
    opened = policy.note(at(Phase.EXECUTING), "[HARNESS: done]").state
    policy.replace_data(BUILT_IN)
    done = replace(opened, phase=replace(opened.phase, ticks=ticks()))
    assert policy.note(done, "[HARNESS: done]").state.phase.phase is Phase.CLOSING
