# ruff: noqa: E501 (tables of texts and patterns: one row a line reads best)
"""What is said to the model in each phase, in English and Chinese: texts as data, and how one is put together."""

from collections.abc import Sequence

from msgspec import Struct

from jackstay.core.phase import Language, Phase, PhaseState
from jackstay.policy.checklist import SEVEN, Item
from jackstay.policy.phases import open_items

MAX_TOKENS = 200
MAX_CLOSING_TOKENS = 400


class Texts(Struct, frozen=True, gc=False):
    """Everything the discipline says in one language. `{…}` fields are filled in by the code beside each.

    `phases` guides; `ways` says how each phase is left; `gates` opens a refusal by (gate, kind of call);
    `refused` words a refused move by its cause; `notes` are the single sentences.
    """

    phases: dict[Phase, str]
    ways: dict[Phase, str]
    gates: dict[str, str]
    refused: dict[str, str]
    notes: dict[str, str]


ENGLISH = Texts(
    phases={
        Phase.TASK_STARTED: (
            "[phase: task_started] Research first: read the files and documents this task touches, look at how "
            "things are now, then propose a plan. Nothing may be changed yet: reads, searches, web reads and "
            "read-only shell commands run, the rest is refused. When you know enough, write the plan with its "
            "trade-offs and put [HARNESS: plan] on its own line ([HARNESS: casual] if there is no task after all)."
        ),
        Phase.PLANNING: (
            "[phase: planning] Consult the user's preferences and conventions, show the options and their "
            'trade-offs, write the steps to the todo list, and wait: only your user\'s own words ("go ahead", '
            "可以) approve the plan. Until then a call with effects asks them first."
        ),
        Phase.MODIFYING: (
            "[phase: modifying] Every file is backed up before it is written. Make one change at a time and verify "
            "it before the next; look for the same pattern elsewhere; keep credentials out of files. When the "
            "changes are verified: discipline_set_phase({back})."
        ),
        Phase.ACCESSING_DEVICE: (
            "[phase: accessing_device] Look in the credential store before you ask anybody; save new credentials "
            "there, never in files, notes or messages. Credential tools, reads and remote commands run; what "
            "{back} forbids stays forbidden on the other machine. When done: discipline_set_phase({back})."
        ),
        Phase.CLOSING: (
            "[phase: closing] The task ends when every item is ticked with closure_check(item, evidence) and you "
            "then declare [HARNESS: done] on its own line; nothing else leaves closing. Reads and read-only shell "
            "commands run, and just what an open item needs.\n{items}"
        ),
    },
    ways={
        Phase.NO_TASK: "a task begins with [HARNESS: task_started] or discipline_set_phase(task_started)",
        Phase.TASK_STARTED: (
            "read something first, then propose the plan with [HARNESS: plan] on its own line, "
            "or drop the task with [HARNESS: casual] on its own line"
        ),
        Phase.PLANNING: (
            "put the plan to your user and wait for their own words of approval; [HARNESS: task_started] begins "
            "a new task, [HARNESS: casual] drops this one"
        ),
        Phase.EXECUTING: (
            "work by the plan; [HARNESS: plan] plans again, [HARNESS: done] goes to closing when the work is finished"
        ),
        Phase.MODIFYING: (
            "discipline_set_phase({back}) goes back, [HARNESS: plan] plans again, [HARNESS: done] goes to closing "
            "when the work is finished"
        ),
        Phase.ACCESSING_DEVICE: "finish here and go back with discipline_set_phase({back})",
        Phase.CLOSING: "tick the open items ({open}) with closure_check, then declare [HARNESS: done] alone",
    },
    gates={
        "start": "No task is declared, and this call would have effects ({doubt}). Phase is now task_started.",
        "research:write": "Research Gate: no file may be changed while researching ({doubt}).",
        "research:execute": "Research Gate: commands are limited to those shown to be read-only ({doubt}).",
        "research:remote": "Research Gate: a remote command has to be shown to be read-only here ({doubt}).",
        "research:other": "Research Gate: while researching nothing with effects runs ({doubt}).",
        "proposal": "Proposal Gate: waiting for your user's 可以 / go ahead on the plan ({doubt}).",
        "modify:impossible": "Modify Gate: {target} cannot be backed up, so it is not written: {problem}.",
        "modify:none": "Modify Gate: {target} has not been backed up, so it is not written.",
        "device:other": "Device Gate: in accessing_device only credential tools, reads and remote commands ({doubt}).",
        "device:interactive": "Device Gate: what would be done on {host} cannot be told beforehand.",
        "closure:other": "Closure Gate: only [HARNESS: done] leaves closing, and this has effects ({doubt}).",
        "closure:set_phase": "Closure Gate: only [HARNESS: done] leaves closing; {phase} is refused.",
    },
    refused={
        "unlisted": "{trigger} does nothing in {phase}",
        "looked": "planning needs at least one look first: nothing has been read since the task began",
        "approval": "an agent cannot approve its own plan: executing begins with your user's own words",
        "returns": "{phase} goes back to {back} only",
        "ticked": "closing is not finished, still open: {open}",
        "no_task": "no_task is reached by [HARNESS: casual] before anything was done, or through closing",
    },
    notes={
        "way": "The way on: {way}.",
        "bypass": "Closing cannot be bypassed: {reason}.",
        "casual": "Things were changed in this task, so casual counts as done: closing is open.",
        "nothing_put": (
            "Your user agreed, but no plan has been put to them in this planning phase: write it with its "
            "trade-offs and [HARNESS: plan] on its own line, or to the todo list, and ask again."
        ),
        "approved": (
            "Your user approved the plan; phase is now executing. Explain each step before you take it, verify it "
            "after, go from the bottom up when something fails. The first write enters modifying."
        ),
        "modifying": "{target} was changed, phase is now modifying: verify it, then go back with "
        "discipline_set_phase({back}).",
        "unverified": "Not verified since it was changed: {files}.",
        "pattern": "Look for the same pattern elsewhere: {strings}.",
        "changed_set": "Phase is now {phase} (before: {before}). {allowed} {way}",
        "unchanged": "Phase is already {phase}. {way}",
        "missing": "The skill {skill} is not installed; go on without it.",
        "skill": "Read {call} before you go on.",
        "lost": "What was remembered of this session is lost ({why}); it goes on as task_started, "
        "so that nothing is changed before it has been looked at and approved again.",
        "forced": "{by} moved the phase to {phase}: {reason}",
        "go_ahead": "Your user ({by}) approves the plan: go ahead with it.",
        "they_say": "They say: {comment}",
        "go_on_closing": "Your user ({by}) has decided about the closing checklist: go on with it.",
        "let_stay": "{by} lets this stay: {subjects} ({reason}). Go on with the items that are open.",
        "ticked": "{item} is ticked. {rest}",
        "rest": "Still open: {open}.",
        "all_ticked": "Every item is ticked: declare [HARNESS: done] on its own line.",
        "findings": "To be dealt with: {findings}",
        "commit_asked": "Uncommitted changes ({count}): {files}. Show them to your user with a proposed message; "
        'they say "commit" or "leave uncommitted"',
        "allowed:no_task": "Reads run; anything else starts a task.",
        "allowed:task_started": "Reads and read-only shell commands run; anything else is refused.",
        "allowed:planning": "Reads run; anything with effects asks your user.",
        "allowed:executing": "What the permission rules allow runs; the first write enters modifying.",
        "allowed:modifying": "Writes run once their target is backed up.",
        "allowed:accessing_device": "Credential tools, reads and remote commands run.",
        "allowed:closing": "Reads and closure_check run, and just what an open item needs.",
    },
)

CHINESE = Texts(
    phases={
        Phase.TASK_STARTED: (
            "[阶段: task_started] 先调研：阅读任务涉及的文件和文档，查清现状，再提方案。此时不得修改任何内容：读取、搜索、"
            "网页阅读和只读终端命令可用，其余会被拒绝。了解充分后，写出方案和权衡，并让 [HARNESS: plan] 独占一行。"
            "（如果只是闲聊，则用 [HARNESS: casual]）。"
        ),
        Phase.PLANNING: (
            "[阶段: planning] 参考用户偏好和约定，展示选项与权衡，把步骤写入待办清单，然后等待：只有用户自己的话"
            "（“可以”、“开干”）才算批准。此前有副作用的调用都会先询问用户。"
        ),
        Phase.MODIFYING: (
            "[阶段: modifying] 写入前文件都已备份。一次改一处，逐一验证后再继续；检查其他位置的同类模式；凭证不得写入文件。"
            "验证完成后调用 discipline_set_phase({back})。"
        ),
        Phase.ACCESSING_DEVICE: (
            "[阶段: accessing_device] 先查凭证库再询问用户；新凭证存入凭证库，不得写进文件、笔记或消息。可用凭证工具、"
            "读取和远程命令；{back} 禁止的操作在远端同样禁止。完成后调用 discipline_set_phase({back})。"
        ),
        Phase.CLOSING: (
            "[阶段: closing] 用 closure_check(item, evidence) 逐项打勾，全部完成后让 [HARNESS: done] 独占一行，这是唯一出口。"
            "可用读取、只读终端命令，以及未完成项所需的操作。\n{items}"
        ),
    },
    ways={
        Phase.NO_TASK: "用 [HARNESS: task_started] 或 discipline_set_phase(task_started) 开始任务",
        Phase.TASK_STARTED: "先查阅，再让 [HARNESS: plan] 独占一行提出方案；或让 [HARNESS: casual] 独占一行放弃任务",
        Phase.PLANNING: "向用户展示方案并等待用户亲口批准；[HARNESS: task_started] 开始新任务，[HARNESS: casual] 放弃",
        Phase.EXECUTING: "按计划执行；[HARNESS: plan] 重新计划，完成后用 [HARNESS: done] 进入关闭检查",
        Phase.MODIFYING: "discipline_set_phase({back}) 返回，[HARNESS: plan] 重新计划，完成后用 [HARNESS: done] 进入关闭检查",
        Phase.ACCESSING_DEVICE: "完成后调用 discipline_set_phase({back}) 返回",
        Phase.CLOSING: "用 closure_check 完成未勾选项（{open}），再单独声明 [HARNESS: done] 即可",
    },
    gates={
        "start": "尚未声明任务，而此调用有副作用（{doubt}）。阶段现为 task_started。",
        "research:write": "Research Gate: 调研阶段不允许修改文件（{doubt}）。",
        "research:execute": "Research Gate: 终端命令限于只读操作（{doubt}）。",
        "research:remote": "Research Gate: 终端命令限于只读操作，远程命令亦然（{doubt}）。",
        "research:other": "Research Gate: 调研阶段不允许有副作用的操作（{doubt}）。",
        "proposal": "Proposal Gate: 等待用户对方案说“可以” / go ahead（{doubt}）。",
        "modify:impossible": "Modify Gate: 无法备份 {target}，因此不写入：{problem}。",
        "modify:none": "Modify Gate: {target} 尚未备份，因此不写入。",
        "device:other": "设备访问阶段：仅允许凭证操作、读取和远程命令（{doubt}）。",
        "device:interactive": "设备访问阶段：无法预知将在 {host} 上执行什么。",
        "closure:other": "Closure Gate: 仅 [HARNESS: done] 可退出，此调用有副作用（{doubt}）。",
        "closure:set_phase": "Closure Gate: 仅 [HARNESS: done] 可退出，{phase} 被拒绝。",
    },
    refused={
        "unlisted": "{trigger} 在 {phase} 阶段无效",
        "looked": "进入 planning 前至少要调研一次：任务开始后尚未读取任何内容",
        "approval": "智能体不能批准自己的方案：executing 只能由用户亲口批准开始",
        "returns": "{phase} 只能返回 {back}",
        "ticked": "关闭检查未完成，尚缺：{open}",
        "no_task": "未做任何改动时用 [HARNESS: casual] 回到 no_task，否则须经过关闭检查",
    },
    notes={
        "way": "下一步：{way}。",
        "bypass": "不能绕过关闭检查：{reason}。",
        "casual": "本任务已有改动，casual 视同 done：已进入关闭检查。",
        "nothing_put": "用户已同意，但本次 planning 中尚未提出方案：请写出方案与权衡并让 [HARNESS: plan] 独占一行，"
        "或写入待办清单，再请用户确认。",
        "approved": "用户已批准方案，阶段现为 executing。每步先说明再执行，执行后验证；出错时自下而上排查。第一次写入会进入 modifying。",
        "modifying": "{target} 已修改，阶段现为 modifying：请验证，然后用 discipline_set_phase({back}) 返回。",
        "unverified": "修改后尚未验证：{files}。",
        "pattern": "检查其他位置的同类模式：{strings}。",
        "changed_set": "阶段现为 {phase}（之前：{before}）。{allowed}{way}",
        "unchanged": "阶段已是 {phase}。{way}",
        "missing": "未安装 Skill {skill}，请继续。",
        "skill": "继续之前请阅读 {call}。",
        "lost": "本会话的记录已丢失（{why}）；按 task_started 继续，在重新调研和批准之前不做任何修改。",
        "forced": "{by} 将阶段设为 {phase}：{reason}",
        "go_ahead": "用户（{by}）已批准方案：请执行。",
        "they_say": "用户说：{comment}",
        "go_on_closing": "用户（{by}）已对关闭检查作出决定：请继续完成。",
        "let_stay": "{by} 允许保留：{subjects}（{reason}）。请继续处理未完成的项目。",
        "ticked": "{item} 已勾选。{rest}",
        "rest": "尚缺：{open}。",
        "all_ticked": "全部完成：请让 [HARNESS: done] 独占一行。",
        "findings": "待处理：{findings}",
        "commit_asked": "未提交的修改（{count}）：{files}。请连同提交说明展示给用户；用户说“提交”或“不提交”",
        "allowed:no_task": "可以读取；其他操作会开始任务。",
        "allowed:task_started": "可用读取和只读终端命令，其余会被拒绝。",
        "allowed:planning": "可以读取；有副作用的操作会询问用户。",
        "allowed:executing": "权限规则允许的操作可用；第一次写入会进入 modifying。",
        "allowed:modifying": "目标备份后即可写入。",
        "allowed:accessing_device": "可用凭证工具、读取和远程命令。",
        "allowed:closing": "可用读取和 closure_check，以及未完成项所需的操作。",
    },
)

TEXTS: dict[str, Texts] = {"en": ENGLISH, "zh": CHINESE}

SESSION_TEXT: dict[str, str] = {
    "en": (
        "Declare your work with one marker alone on a line: [HARNESS: task_started] for a real task, "
        "[HARNESS: plan] with a proposed plan, [HARNESS: casual] for small talk, [HARNESS: done] when finished."
    ),
    "zh": (
        "用独占一行的标记声明工作：[HARNESS: task_started] 真实任务，[HARNESS: plan] 提出方案，"
        "[HARNESS: casual] 闲聊，[HARNESS: done] 完成。"
    ),
}
"""Said once, in the system prompt or at a host's session start."""


def language_of(text: str) -> Language:
    """The language a person writes in: Chinese when a fifth of the letters are Han, else English, "" for none."""
    letters = sum(char.isalpha() for char in text)
    if not letters:
        return ""
    han = sum("\u4e00" <= char <= "\u9fff" for char in text)
    return "zh" if han * 5 >= letters else "en"


def tokens(text: str) -> int:
    """An upper estimate of a text's tokens: one for each Han character or sign, one for three other letters."""
    wide = sum(ord(char) > 0x2E7F for char in text)
    return wide + (len(text) - wide + 2) // 3


def fitting(sentences: Sequence[str], room: int) -> list[str]:
    """The newest of the sentences that fit into `room` tokens, in their order; the very newest is cut to fit."""
    kept: list[str] = []
    for sentence in reversed(sentences):
        while not kept and tokens(sentence) > room > 8:
            sentence = sentence[: len(sentence) * 3 // 4].rstrip("…") + "…"
        if tokens(sentence) > room:
            break
        kept.append(sentence)
        room -= tokens(sentence) + 1
    return kept[::-1]


def phase_text(
    state: PhaseState, texts: Texts, *, items: tuple[Item, ...] = SEVEN, language: str = "en"
) -> str | None:
    """The guidance of the phase itself; None in the steady ones."""
    text = texts.phases.get(state.phase)
    if text is None:
        return None
    return text.format(back=_back(state), items=_checklist(state, items, language, texts))


def way_on(state: PhaseState, texts: Texts, *, required: tuple[str, ...] = ()) -> str:
    """How this phase is left, as a sentence."""
    way = texts.ways[state.phase].format(back=_back(state), open=", ".join(open_items(state, required)) or "-")
    return texts.notes["way"].format(way=way)


def _back(state: PhaseState) -> Phase:
    return state.returns_to or Phase.EXECUTING


def _checklist(state: PhaseState, items: tuple[Item, ...], language: str, texts: Texts) -> str:
    if state.phase is not Phase.CLOSING:
        return ""
    left = open_items(state, tuple(item.id for item in items if item.severity == "required"))
    lines = []
    for number, item in enumerate(items[:15], 1):
        title = item.title.get(language) or item.title.get("en", item.id)
        how = item.how.get(language) or item.how.get("en", "")
        lines.append(f"{number}. [ ] {item.id}: {how}" if item.id in left else f"{number}. [x] {title}")
    if state.findings:
        named = "; ".join(finding.subject for finding in state.findings[:5])
        lines.append(texts.notes["findings"].format(findings=named[:200]))
    return "\n".join(lines)
