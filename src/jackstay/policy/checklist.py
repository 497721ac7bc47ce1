# ruff: noqa: E501 (tables of texts and patterns: one row a line reads best)
"""What has to be done before a task is closed, who may say that it is, and with which evidence?"""

from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from jackstay.core.phase import Checked as Checked
from jackstay.core.phase import Finding, Kept, Phase, PhaseState, Tick
from jackstay.policy.happenings import Happening, ItemTicked
from jackstay.policy.phases import open_items

Checker = Literal["agent", "harness"]
Severity = Literal["required", "recommended", "optional"]
MAX_FINDINGS = 50
MAX_EVIDENCE = 500


class Item(Struct, frozen=True, gc=False, omit_defaults=True):
    """A closing item. `checked_by` harness: a bare claim does not tick it, the check has to have passed.

    `title` and `how` are per language. `opens_tools` and `opens_paths` (glob patterns with `**`) are what may be
    written in closing while the item is open. `component` names who added it; the seven of the seed have none.
    """

    id: str
    title: dict[str, str]
    how: dict[str, str]
    checked_by: Checker = "agent"
    severity: Severity = "required"
    opens_tools: frozenset[str] = frozenset()
    opens_paths: tuple[str, ...] = ()
    component: str = ""
    command: str = ""


SEVEN: tuple[Item, ...] = (
    Item(
        "credential_scan",
        {"en": "Credential scan", "zh": "凭证扫描"},
        {"en": "the harness scans every file changed in this task", "zh": "由框架扫描本任务改过的所有文件"},
        checked_by="harness",
    ),
    Item(
        "skill_update",
        {"en": "Skill update", "zh": "Skill 更新"},
        {"en": "name the skill you updated, or why none needs it", "zh": "写明更新了哪个 Skill，或为何无需更新"},
        opens_tools=frozenset({"skill_manage"}),
        opens_paths=("**/skills/**",),
    ),
    Item(
        "decision_record",
        {"en": "Decision record", "zh": "决策记录"},
        {"en": "context, options, choice, and what the rejected ones cost", "zh": "背景、选项、选择、放弃项的代价"},
        opens_paths=("**/decisions/**", "**/adr/**", "**/DECISIONS.md", "**/CHANGELOG.md"),
    ),
    Item(
        "registration_check",
        {"en": "Registration check", "zh": "登记检查"},
        {"en": "new services, devices, ports: where they are registered, or that there are none",
         "zh": "新服务、设备、端口登记在哪里，或确认没有"},
        opens_paths=("**/registry.*", "**/inventory.*", "**/registry/**", "**/inventory/**"),
    ),
    Item(
        "information_storage",
        {"en": "Information storage", "zh": "信息存储"},
        {"en": "what was learnt and where it is kept, each fact once", "zh": "学到的信息存放在何处，每条只存一次"},
        opens_tools=frozenset({"memory", "fact_store", "fact_feedback"}),
        opens_paths=("**/memory/**", "**/memories/**", "**/notes/**", "**/NOTES.md", "**/MEMORY.md", "**/AGENTS.md"),
    ),
    Item(
        "baseline_comparison",
        {"en": "Baseline comparison", "zh": "基线对比"},
        {"en": "the harness compares before and after; account for each difference", "zh": "由框架对比前后状态；逐条说明差异"},
        checked_by="harness",
    ),
    Item(
        "commit_housekeeping",
        {"en": "Commit housekeeping", "zh": "提交整理"},
        {"en": "the harness reads git status; commit what your user confirms, or record their \"leave uncommitted\"",
         "zh": "由框架读取 git status；提交用户确认的内容，或记录用户的“不提交”"},
        checked_by="harness",
    ),
)  # fmt: skip

CREDENTIAL_SCAN, BASELINE, COMMIT = "credential_scan", "baseline_comparison", "commit_housekeeping"

# Evidence that says nothing.
_BARE = frozenset(
    [
        "done",
        "ok",
        "okay",
        "yes",
        "n/a",
        "na",
        "none",
        "true",
        "ticked",
        "checked",
        "complete",
        "completed",
        "finished",
        "pass",
        "passed",
        "fine",
        "good",
        "all good",
        "not applicable",
        "no",
        "nothing",
        "完成",
        "已完成",
        "好",
        "好的",
        "可以",
        "没有",
        "无",
        "是",
        "通过",
        "已检查",
        "检查完成",
        "检查过",
        "没问题",
        "不适用",
    ]
)


class Ticked(Struct, frozen=True, gc=False):
    """The state after an attempt to tick; `problem` says why the item is still open, "" when it is done."""

    state: PhaseState
    happenings: tuple[Happening, ...] = ()
    problem: str = ""


def tick(
    state: PhaseState,
    item: str,
    evidence: str,
    *,
    items: tuple[Item, ...] = SEVEN,
    checked: Checked | None = None,
) -> Ticked:
    """Tick an item of the open checklist with evidence; for items the harness checks, with its own result too.

    A failed check leaves the item open and its findings in the state: they are what closing then opens.
    """
    known = {one.id: one for one in items}
    evidence = " ".join(evidence.split())[:MAX_EVIDENCE]
    problem = _not_now(state, item, evidence, known)
    if problem:
        return Ticked(state, problem=problem)
    one = known[item]
    if one.checked_by == "harness":
        if checked is None:
            return Ticked(
                state, problem=f"{item} is checked by the harness; its check did not run, so it stays open"
            )
        checked = _settled(checked, state.kept)
        state = replace(state, findings=_findings(state, item, checked))
        problem = _unsettled(state, checked, evidence)
        if problem:
            return Ticked(state, problem=problem)
        evidence = f"{checked.summary}; {evidence}"[:MAX_EVIDENCE]
    ticks = (*(t for t in state.ticks if t.item != item), Tick(item, evidence, one.checked_by))
    return Ticked(replace(state, ticks=ticks), (ItemTicked(item, evidence),))


def let_stay(
    state: PhaseState, subject: str, reason: str, *, by: str, required: tuple[str, ...] = ()
) -> Ticked:
    """A person lets a finding stay, named by its subject or the end of it, or ticks an open item, named by its id.

    Never to be offered as a tool. `problem` says what can be named, where the subject is nothing of it.
    """
    left = open_items(state, required)
    if state.phase is not Phase.CLOSING:
        return Ticked(state, problem=f"nothing is being closed: the phase is {state.phase}")
    found = tuple(one for one in state.findings if _is_meant(one.subject, subject) and one.item in left)
    if found:
        rest = tuple(one for one in state.findings if one not in found)
        kept = (*state.kept, *(Kept(one, by, reason[:MAX_EVIDENCE]) for one in found))
        return Ticked(replace(state, findings=rest, kept=kept[-MAX_FINDINGS:]))
    if subject in left:
        evidence = f"{by}: {reason}"[:MAX_EVIDENCE]
        ticks = (*state.ticks, Tick(subject, evidence, by))
        rest = tuple(one for one in state.findings if one.item != subject)
        return Ticked(replace(state, ticks=ticks, findings=rest), (ItemTicked(subject, evidence),))
    named = ", ".join(dict.fromkeys([*(one.subject for one in state.findings if one.item in left), *left]))
    return Ticked(
        state, problem=f"{subject!r} is neither found nor open; what can stay is: {named or 'nothing'}"
    )


def _is_meant(subject: str, said: str) -> bool:
    return subject == said or subject.endswith(f"/{said.lstrip('/')}")


def untick(state: PhaseState, *items: str) -> tuple[PhaseState, tuple[Happening, ...]]:
    """Take ticks back that later changes made stale."""
    gone = [t.item for t in state.ticks if t.item in items]
    if not gone:
        return state, ()
    kept = tuple(t for t in state.ticks if t.item not in gone)
    return replace(state, ticks=kept), tuple(ItemTicked(item, "") for item in gone)


def required_ids(items: tuple[Item, ...]) -> tuple[str, ...]:
    """The items without which nothing closes."""
    return tuple(item.id for item in items if item.severity == "required")


def _not_now(state: PhaseState, item: str, evidence: str, known: dict[str, Item]) -> str:
    if state.phase is not Phase.CLOSING:
        return "the checklist opens with closing: declare [HARNESS: done] when the work is finished"
    if item not in known:
        return f"there is no closing item {item!r}; open are: {', '.join(open_items(state)) or 'none'}"
    if (
        evidence.lower().strip(" .!。！") in _BARE
        or (len(evidence) < 8 and evidence.isascii())
        or len(evidence) < 4
    ):
        return f"{evidence!r} is no evidence for {item}: say what was looked at and what came of it"
    return ""


def _findings(state: PhaseState, item: str, checked: Checked) -> tuple[Finding, ...]:
    others = tuple(finding for finding in state.findings if finding.item != item)
    return (*others, *checked.findings)[:MAX_FINDINGS]


def _settled(checked: Checked, kept: tuple[Kept, ...]) -> Checked:
    """The result without what a person lets stay; of credentials only those that they saw, line by line."""
    left = tuple(one for one in checked.findings if not any(_is_kept(one, other.finding) for other in kept))
    count = len(checked.findings) - len(left)
    if not count:
        return checked
    ok = checked.ok or not any(one.residue for one in left)
    return Checked(ok, f"{checked.summary}, {count} of them left as a person said", left)


def _is_kept(finding: Finding, kept: Finding) -> bool:
    same = (finding.item, finding.subject) == (kept.item, kept.subject)
    return same and (finding.item != CREDENTIAL_SCAN or finding.text == kept.text)


def _unsettled(state: PhaseState, checked: Checked, evidence: str) -> str:
    """What stands between a check's result and its tick; "" when nothing does."""
    residue = [finding for finding in checked.findings if finding.residue]
    if residue or not checked.ok:
        named = "; ".join(finding.text or finding.subject for finding in residue[:10])
        return f"{checked.summary}: {named}" if named else checked.summary
    silent = [finding.subject for finding in checked.findings if not _accounted(finding.subject, evidence)]
    if silent:
        return f"{checked.summary}: say in the evidence what became of {', '.join(silent[:10])}"
    return ""


def _accounted(subject: str, evidence: str) -> bool:
    """Does the evidence speak of the subject, or of its last part?"""
    name = subject.rstrip("/").rsplit("/", 1)[-1]
    return subject.lower() in evidence.lower() or name.lower() in evidence.lower()
