"""Hard case 11 (git that only reads) and hard case 13 (texts that deceive the eye), row by row."""

import pytest

from jackstay.core.decision import Allow
from jackstay.core.facts import CallFacts
from jackstay.core.messages import ToolCall
from jackstay.core.rules import PermissionRule as Rule
from jackstay.policy.permissions import judge
from jackstay.policy.shell import analyse_command
from jackstay.policy.visible import visible

ROW_11 = {
    "--output": ["git log --output=f", "git diff --output f", "git show --outp=f", "git shortlog --output=f"],
    "-c core.pager": ["git -c core.pager=x log", "git -ccore.pager=x log", "git --config-env=core.pager=X log"],
    "-p before the sub-command": ["git -p log", "git --paginate log", "git -p -C d log"],
    "--ext-diff": ["git diff --ext-diff", "git log -p --ext-diff", "git show --ext-diff"],
    "textconv": ["git diff --textconv", "git cat-file --textconv HEAD:a", "git grep --textconv a", "git cat-file --filters HEAD:a"],
    "aliases": ["git st", "git lg", "git -c alias.x='!rm y' x"],
    "GIT_* in the environment": ["GIT_PAGER=x git log", "GIT_EXTERNAL_DIFF=x git diff", "GIT_DIR=x git log", "env GIT_SSH=x git ls-remote o"],
    "branch -D": ["git branch -D x", "git branch -d x", "git branch -m a b", "git branch x", "git branch --unset-upstream"],
    "tag -d": ["git tag -d x", "git tag x", "git tag -a x -m y", "git tag -f x"],
    "another program": ["git --exec-path=x log", "git ls-remote --upload-pack=x o", "git grep -Ox a", "git ls-remote ext::x"],
}  # fmt: skip


@pytest.mark.parametrize("row", ROW_11)
def test_row_11_git_does_more_than_read(row: str) -> None:
    assert [text for text in ROW_11[row] if analyse_command(text).read_only] == []


DECEPTIONS = {
    "bidi": "rm \u202ex\u202c", "zero width": "r\u200bm x", "padding": "ls" + " " * 300 + "; rm x", "ANSI": "ls \x1b[2K; rm x",
    "a mark without ink": "rm \u3164x", "a look-alike": "\u0433m x", "a soft hyphen": "r\u00adm x", "tags": "ls \U000e0041; rm x",
    "an overwriting return": "rm x\rls  ", "a joiner": "r\u200dm x", "isolates": "ls \u2066a\u2069", "a variation": "ls\ufe0f x",
}  # fmt: skip


@pytest.mark.parametrize("name", DECEPTIONS)
def test_row_13_what_deceives_is_written_out_wherever_a_person_reads_it(name: str) -> None:
    text = DECEPTIONS[name]
    shown = visible(text)
    assert shown != text
    assert not [char for char in shown if not char.isprintable()]
    facts = CallFacts(workspace="/w", cwd="/w", home="/h")
    for tool, args in (("bash", {"command": text}), ("write", {"file_path": f"../{text}"}), (text, {"a": "b"})):
        for rules in ((Rule.ask("*"),), (Rule.deny("*"),), (Rule.ask(tool),), ()):
            decision = judge(rules, ToolCall("1", tool, args), facts, default="workspace", hitl=True)
            if isinstance(decision, Allow):
                assert not rules  # nothing is shown
                continue
            assert not [char for char in decision.reason if not char.isprintable()]
            assert text not in decision.reason


@pytest.mark.parametrize("name", DECEPTIONS)
def test_row_13_no_deceptive_text_is_a_reader_unless_it_reads_as_it_looks(name: str) -> None:
    text = DECEPTIONS[name]
    if name != "padding":  # which the shell reads as it stands
        assert analyse_command(text).reason is not None
    assert not analyse_command(DECEPTIONS["padding"]).read_only
