"""Every labelled command goes through the strategy and the workspace default: nothing with effects passes unseen."""

import tomllib
from collections.abc import Iterator
from pathlib import Path

from jackstay.core.decision import Allow
from jackstay.core.facts import CallFacts
from jackstay.core.messages import ToolCall
from jackstay.policy.permissions import judge
from jackstay.policy.strategies import BashToolStrategy

CORPUS = Path(__file__).parents[1] / "corpus" / "shell.toml"
FACTS = CallFacts(workspace="/w", cwd="/w", home="/home/u")

# Groups whose effects are files that the command names, so that they may well stay inside the workspace.
NAMES_FILES = frozenset({
    "fs-write", "redirect-write", "substitution-write", "heredoc-exec", "quoting-exec", "function-shadow", "sed-write",
    "text-write", "find-write", "archive-write", "git-write", "agent-write", "wrapper-write", "interpreters",
    "adversarial",
})  # fmt: skip


def lines(*, read_only: bool) -> Iterator[tuple[str, str]]:
    for case in tomllib.loads(CORPUS.read_text(encoding="utf-8"))["case"]:
        if case["read_only"] is read_only:
            for text in (*case.get("lines", "").split("\n"), *case.get("blocks", ())):
                if text.strip():
                    yield case["group"], text


def test_what_is_not_read_only_is_asked_about() -> None:
    strategy = BashToolStrategy()
    passed = [text for _, text in lines(read_only=False) if not strategy.evaluate(None, {"command": text})]
    assert passed == []


def test_few_read_only_commands_are_asked_about_and_only_for_where_they_look() -> None:
    strategy = BashToolStrategy()
    found = [(text, strategy.evaluate(None, {"command": text})) for _, text in lines(read_only=True)]
    asked = [reason for _, reason in found if reason]
    assert len(asked) / len(found) < 0.03
    reasons = (
        "belongs to the system", "uses a credential store", "leaves the workspace", "holds credentials",
        "is run later by git or a shell",
    )  # fmt: skip
    assert [reason for reason in asked if not reason.endswith(reasons)] == []


def test_the_workspace_default_lets_no_effect_pass_that_is_not_a_named_file() -> None:
    passed = {
        group
        for group, text in lines(read_only=False)
        if isinstance(
            judge((), ToolCall("1", "bash", {"command": text}), FACTS, default="workspace", hitl=True), Allow
        )
    }
    assert passed <= NAMES_FILES
