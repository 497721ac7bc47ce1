# ruff: noqa: E501 (tables of texts and patterns: one row a line reads best)
"""Does a user's message plainly approve the plan? In doubt it does not.

The words are data, per language, with examples and counter-examples that `problems` checks. A message approves
when every clause of it is an approval or says nothing (thanks, "as planned") and at least one is an approval.
"""

import unicodedata
from collections.abc import Iterable
from typing import Literal

import msgspec

from jackstay.policy.late import late

CommitWord = Literal["", "commit", "leave"]
MAX_CHARACTERS = 200  # a longer message says more than yes


class Words(msgspec.Struct, frozen=True, gc=False):
    """How one language says yes.

    `approvals` are whole clauses. `openers` and `closers` may surround one without changing it. `nothing` are
    clauses that neither approve nor object. `commit` and `leave` are a user's word about committing the work.
    """

    approvals: frozenset[str]
    openers: tuple[str, ...] = ()
    closers: tuple[str, ...] = ()
    nothing: frozenset[str] = frozenset()
    commit: frozenset[str] = frozenset()
    leave: frozenset[str] = frozenset()
    spaced: bool = True  # are words separated by spaces?
    approves: tuple[str, ...] = ()
    does_not: tuple[str, ...] = ()


def _set(text: str) -> frozenset[str]:
    return frozenset(phrase.strip() for phrase in text.replace("\n", "|").split("|") if phrase.strip())


ENGLISH = Words(
    approvals=_set("""
        go | go ahead | go for it | please go ahead | approve | approved | i approve | plan approved
        yes | yes do it | yes please | do it | just do it | lgtm | looks good to me | proceed | please proceed
        you may proceed | ok | okay | ok go | yes go ahead | yes go | yes proceed | ok go ahead | ok do it
        ok proceed | okay go ahead | sounds good | sure go ahead | go ahead with it | proceed with it
        go ahead with the plan | go ahead with that plan | go ahead with your plan | proceed with the plan
        proceed with that plan | proceed with your plan | i approve the plan | i approve this plan
        the plan is approved | approve the plan | execute the plan | carry out the plan | start executing
        agreed | i agree | permission granted | ok to proceed | ok to go | good to go | yes approved
    """),
    openers=("great", "perfect", "alright", "all right", "right", "fine", "yep", "yeah", "well", "so"),
    closers=("please", "now", "then", "thanks", "thank you", "with it", "as planned", "as proposed"),
    nothing=_set("""
        thanks | thank you | please | great | perfect | good plan | nice plan | nice | good | as planned
        as proposed | alright | all right | fine | yep | yeah | great plan | cheers | well done | sure
    """),
    commit=_set("""
        commit | commit it | commit them | please commit | yes commit | yes commit it | go ahead and commit
        commit the changes | commit everything | ok commit | ok commit it | commit this | commit now
    """),
    leave=_set("""
        leave uncommitted | leave it uncommitted | leave them uncommitted | leave the changes uncommitted
        don't commit | dont commit | do not commit | no commit | don't commit it | do not commit it
        don't commit yet | do not commit yet | leave it | i will commit it myself | i'll commit it myself
        i will commit myself | i'll commit myself | i commit myself | don't commit anything
    """),
    approves=(
        "go", "Go ahead.", "approve", "Approved!", "yes", "yes, do it", "LGTM", "proceed", "ok", "OK!", "okay",
        "Great, go ahead. Thanks!", "go ahead with the plan", "Please proceed.", "Yes — do it.", "ok, go ahead",
        "yes please", "**Approved**", "👍 go ahead",
    ),
    does_not=(
        "ok but first show me the diff", "don't go ahead", "do not proceed", "go ahead?", "is it ok?", "not yet",
        "OK, but use another name", "approve it if the tests pass", "I don't approve", "yes, and also rename it",
        "no", "never", "go away", "go back to research", "ok?", "Should I approve this?", "can you proceed?",
        "I would not say go ahead", "ok what about the tests", "hold on, ok", "why not go ahead", "cancel",
        "go ahead once the backup is done", "yes or no", "the test says ok", "approve nothing", "",
        "He said \"go ahead\" yesterday", "unless it breaks, proceed", "ok, wait", "I am not ok with this",
        "proceed only with step 1", "go ahead, but not with step 2", "ok 👎", "👎", "thanks",
        "> go ahead", "```\ngo ahead\n```", "the user wrote: go ahead",
    ),
)  # fmt: skip

CHINESE = Words(
    approvals=_set("""
        可以 | 可以的 | 开干 | 干吧 | 好的 | 好 | 同意 | 批准 | 执行吧 | 执行 | 开始执行 | 可以执行 | 可以执行了
        可以开始 | 可以开始了 | 开始吧 | 开干吧 | 动手吧 | 没问题 | 行 | 行的 | 同意执行 | 批准执行 | 我同意 | 我批准
        同意你的方案 | 同意这个方案 | 同意该方案 | 同意方案 | 批准方案 | 批准计划 | 同意计划 | 同意这个计划
        就这么办 | 就这么做 | 就这样做 | 照办 | 按计划执行 | 按方案执行 | 按照计划执行 | 按这个方案执行 | 按这个计划执行
        做吧 | 可以做 | 可以做了 | 可以动手 | 可以动手了 | 可以了 | 通过 | 好的执行吧 | 好的开干 | 可以开干 | 好开干
        好执行吧 | 计划可以 | 方案可以 | 方案没问题 | 计划没问题 | 准了 | 请执行 | 请开始
    """),
    openers=("嗯", "恩", "那就", "那", "好的", "好"),
    closers=("谢谢", "啦"),  # not 吧: 好吧 is a sigh, not a yes
    nothing=_set("谢谢 | 多谢 | 辛苦了 | 辛苦 | 嗯 | 恩 | 很好 | 不错 | 计划不错 | 方案不错 | 按计划 | 按方案 | 按计划来 | 按方案来"),
    commit=_set("提交 | 提交吧 | 可以提交 | 可以提交了 | 请提交 | 提交了吧 | 好的提交 | 同意提交 | 提交代码 | 提交修改"),
    leave=_set("""
        不提交 | 不要提交 | 先不提交 | 别提交 | 先别提交 | 不用提交 | 暂不提交 | 先不要提交 | 保持未提交 | 留着不提交
        我自己提交 | 我来提交
    """),
    spaced=False,
    approves=(
        "可以", "开干", "好的", "同意", "批准", "执行吧", "可以。", "可以，开干！", "好的，谢谢", "同意这个方案",
        "嗯，可以", "那就开干吧", "没问题，执行吧", "可以 👍", "好的，按计划执行", "OK，可以", "ok，开干",
    ),
    does_not=(
        "可以吗？", "可以吗", "不可以", "可以不可以", "还不可以", "不同意", "不批准", "可以，但是先备份", "好的，不过改个名字",
        "如果测试通过就可以", "先别执行", "等一下", "同意吗", "可以解释一下吗", "好的，再看看", "可以再研究一下", "不好", "不行",
        "谢谢", "为什么可以", "可以吧？", "执行吧?", "是否可以", "能不能开干", "好像可以", "可以先看看别的方案吗", "没同意",
        "暂时不要执行", "好的方案应该更简单", "可以，只做第一步", "批准前先给我看", "他说可以执行的时候再说", "「可以」", "好吗", "好吧", "可以吧", "行吧",
    ),
)  # fmt: skip

LANGUAGES: dict[str, Words] = {"en": ENGLISH, "zh": CHINESE}

_ASKS = late(r"[?？]|[吗嘛呢么]\s*[。.!！]*\s*\Z")
_QUOTED = late(r"[\"“”「」『』`<>\[\]{}|:：]")
_CLAUSE_ENDS = late(r"[,.;!~…、，。；！\n\r]+|\s[-–—]+\s|[–—]+")
_CHEERS = late("[*_\U0001f44d\U0001f44c✅\U0001f64f\U0001f680✔️\U0001f3fb-\U0001f3ff]+")


def approves(text: str, languages: dict[str, Words] = LANGUAGES) -> bool:
    """Is "do it" what this message says, and nothing else?"""
    clauses = _clauses(text)
    if clauses is None:
        return False
    said = [_meaning(clause, languages.values()) for clause in clauses]
    return "yes" in said and "else" not in said


def about_commit(text: str, languages: dict[str, Words] = LANGUAGES) -> CommitWord:
    """What the message says about committing: `commit`, `leave`, or "" for nothing plain."""
    clauses = _clauses(text)
    if clauses is None:
        return ""
    wanted: set[CommitWord] = {word for clause in clauses for word in _commit_words(clause, languages)}
    return wanted.pop() if len(wanted) == 1 else ""


def problems(languages: dict[str, Words] = LANGUAGES) -> list[str]:
    """What the words' own examples show to be wrong; empty when all of them hold."""
    found = []
    for name, words in languages.items():
        found += [
            f"{name}: {text!r} should approve" for text in words.approves if not approves(text, languages)
        ]
        found += [
            f"{name}: {text!r} should not approve" for text in words.does_not if approves(text, languages)
        ]
    return found


def _clauses(text: str) -> list[str] | None:
    """The message in clauses, lower case; None when it asks, quotes, or says too much."""
    if not text.strip() or len(text) > MAX_CHARACTERS:
        return None
    # NFKC turns full-width letters into plain ones; the punctuation is looked at before and after.
    plain = unicodedata.normalize("NFKC", text).lower().replace("’", "'")
    if (
        _ASKS.search(text.strip())
        or _ASKS.search(plain.strip())
        or _QUOTED.search(text)
        or _QUOTED.search(plain)
    ):
        return None
    parts = _CLAUSE_ENDS.split(_CHEERS.sub(" ", plain))
    return [" ".join(part.split()) for part in parts if part.strip()]


def _meaning(clause: str, languages: Iterable[Words]) -> str:
    kinds = {_in_language(clause, words) for words in languages}
    return "yes" if "yes" in kinds else "nothing" if "nothing" in kinds else "else"


def _in_language(clause: str, words: Words) -> str:
    if not words.spaced:
        clause = clause.replace(" ", "")
    for form in _forms(clause, words):
        if form in words.approvals:
            return "yes"
    return "nothing" if clause in words.nothing else "else"


def _forms(clause: str, words: Words) -> list[str]:
    """The clause, and what is left of it without an opener, a closer, or both."""
    gap = " " if words.spaced else ""
    forms = [clause]
    forms += [clause[len(word + gap) :] for word in words.openers if clause.startswith(word + gap)]
    for form in tuple(forms):
        forms += [form[: -len(gap + word)] for word in words.closers if form.endswith(gap + word)]
    return [form for form in forms if form]


def _commit_words(clause: str, languages: dict[str, Words]) -> list[CommitWord]:
    found: list[CommitWord] = []
    for words in languages.values():
        form = clause if words.spaced else clause.replace(" ", "")
        if form in words.commit:
            found.append("commit")
        if form in words.leave:
            found.append("leave")
    return found
