"""The plan of a session."""

from pathlib import Path
from typing import Any

import pytest

from jackstay.core.errors import BadSessionId
from jackstay.tools.todo import progress, todo_tool

PLAN = "# Plan\n- [x] read\n- [/] change the parser\n- [ ] test\n1. [ ] tell"


def test_a_plan_is_kept_per_session_and_given_back(box: Any, tmp_path: Path) -> None:
    todo = todo_tool(str(tmp_path / "sessions"))
    assert box.run(todo).text == "no plan is kept yet: call todo with the whole plan to start one"
    foot = "4 items: 1 done, 1 in progress, 2 open. Go on with: change the parser"
    assert box.run(todo, todos=PLAN).text == f"{PLAN}\n\n{foot}"
    assert box.run(todo).text == f"{PLAN}\n\n{foot}"
    file = tmp_path / "sessions" / "s1" / "TODO.md"
    assert file.read_text() == PLAN + "\n"
    assert (file.stat().st_mode & 0o777, file.parent.stat().st_mode & 0o777) == (0o600, 0o700)
    box.session_id = "s2"
    assert "no plan" in box.run(todo).text
    assert [p.name for p in file.parent.iterdir()] == ["TODO.md"]


def test_progress_names_what_comes_next() -> None:
    assert progress("- [X] a\n* [x] b") == "2 items: 2 done, 0 in progress, 0 open. The plan is complete."
    assert progress("- [ ] " + "x" * 90) == f"1 item: 0 done, 0 in progress, 1 open. Go on with: {'x' * 80}…"


def test_text_without_items_is_refused_with_the_form(box: Any, tmp_path: Path) -> None:
    text = box.fails(todo_tool(str(tmp_path)), todos="first this, then that")
    assert text == "there is no item in todos: write each as `- [ ] text`, `- [/] text` or `- [x] text`"


def test_a_session_id_never_becomes_a_path_unchecked(box: Any, tmp_path: Path) -> None:
    box.session_id = "../../etc"
    with pytest.raises(BadSessionId):
        box.run(todo_tool(str(tmp_path)), todos=PLAN)
