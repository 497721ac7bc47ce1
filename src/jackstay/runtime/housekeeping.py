"""Is the work of a task committed, and what happens when its user has said that it shall be?"""

import subprocess
from collections.abc import Sequence
from pathlib import Path

from jackstay.core.errors import JackstayError
from jackstay.core.phase import Checked
from jackstay.core.state import PolicyState
from jackstay.policy.data import PolicyData
from jackstay.policy.own_tools import checked_commit, commit_wanted
from jackstay.ward.baseline import GIT_LOOK, Look, git_status, task_files

TIMEOUT_S = 30.0
MESSAGE = "Changes of a closed task"


class GitFailed(JackstayError):
    """Git did not do what it was asked to; the text is its own."""


def committed(workspace: str, state: PolicyState, before: Look | None, *, data: PolicyData) -> Checked:
    """Closing item 7. Commits the task's files first, when its user has confirmed that.

    `before` is the look from before the task: what was uncommitted then is the user's own and stays as it is.
    """
    if not _in_repository(workspace):
        return Checked(True, "there is no repository here: nothing to commit")
    try:
        dirty = git_status(workspace)
        name = ""
        if dirty and commit_wanted(state):
            name = _commit(workspace, state.phase.changed, dirty, before)
            dirty = git_status(workspace)
    except (GitFailed, OSError) as problem:
        return Checked(False, f"git would not do it: {problem}")
    return checked_commit(state, dirty, committed=name, data=data)


def _in_repository(workspace: str) -> bool:
    place = Path(workspace)
    return any((directory / ".git").exists() for directory in (place, *place.parents))


def _commit(workspace: str, changed: Sequence[str], dirty: Sequence[str], before: Look | None) -> str:
    """Commit this task's part of what is uncommitted; the short name of the commit, "" when it has none.

    Raises GitFailed.
    """
    root = _git(workspace, *GIT_LOOK[1:], "rev-parse", "--show-toplevel").rstrip("\n")
    uncommitted = [f"{root}/{path}" for path in dirty]
    files = [
        path for path in task_files(changed, workspace, before)
        if any(path == one or (one.endswith("/") and path.startswith(one)) for one in uncommitted)
    ]  # fmt: skip
    if not files:
        return ""
    _git(workspace, *GIT_LOOK[1:], "add", "--all", "--", *files)
    _git(workspace, "commit", "--quiet", "--message", MESSAGE, "--", *files)  # with the hooks of the repository
    return _git(workspace, *GIT_LOOK[1:], "rev-parse", "--short", "HEAD").strip()


def known_files(workspace: str) -> list[str]:
    """The files git tracks or would track, relative to the workspace; none where there is no repository."""
    try:
        listed = _git(workspace, *GIT_LOOK[1:], "ls-files", "-z", "--cached", "--others", "--exclude-standard")
    except GitFailed:
        return []
    return [name for name in listed.split("\0") if name]


def _git(workspace: str, *words: str) -> str:
    command = ["git", "-C", workspace, *words]
    try:
        done = subprocess.run(
            command, capture_output=True, timeout=TIMEOUT_S, check=False, text=True, stdin=subprocess.DEVNULL
        )
    except (OSError, subprocess.SubprocessError) as problem:
        raise GitFailed(str(problem)) from problem
    if done.returncode != 0:
        raise GitFailed((done.stderr or done.stdout).strip()[:500] or f"exit {done.returncode}")
    return done.stdout
