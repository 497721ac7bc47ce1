"""What is copied away before a host's call, and what the harness finds when it checks a closing item itself."""

import subprocess
from pathlib import Path

from msgspec.structs import replace

from jackstay.core import wire
from jackstay.core.facts import CallFacts
from jackstay.core.messages import JsonObject
from jackstay.core.phase import Checked
from jackstay.core.state import PolicyState
from jackstay.policy.checklist import BASELINE, COMMIT, CREDENTIAL_SCAN
from jackstay.policy.data import PolicyData
from jackstay.policy.discipline import Preparation
from jackstay.policy.own_tools import checked_commit, commit_wanted
from jackstay.ward.backup import BackupError, Backups, workspace_files

GIT_TIMEOUT_S = 30.0


def keep_copies(
    home: Path, facts: CallFacts, wanted: Preparation, workspace: str, call: tuple[str, str, float]
) -> CallFacts:
    """The facts once `wanted` has been copied away; `call` is (session, tool, epoch seconds)."""
    session, tool, at = call
    backups, taken = Backups(home), list[tuple[str, str]]()
    try:
        if wanted.targets:
            kept = backups.take(wanted.targets, session=session, why=f"before {tool}", at=at)
            taken += [(copy.path, kept.id) for copy in kept.copies]
        if wanted.snapshot:
            files = workspace_files(workspace, _known_files(workspace))
            kept = backups.snapshot(files, session=session, why=f"before {tool}", at=at)
            taken.append((workspace, kept.id))
    except (BackupError, OSError) as problem:
        return replace(facts, backup="impossible", backup_problem=str(problem))
    return replace(facts, backup="taken", snapshot=wanted.snapshot, backups=tuple(taken))


def look_now(workspace: str) -> str:
    """How the machine looks, as text to be kept until the task closes."""
    from jackstay.ward import baseline

    return wire.encode(baseline.look(baseline.Place(workspace, home=str(Path.home())))).decode()


def check_item(
    policy: PolicyState, args: JsonObject, workspace: str, look: str, data: PolicyData
) -> Checked | None:
    """The harness's own result for the items that need one; None for the others."""
    from jackstay.ward import baseline, scan

    item, phase = args.get("item"), policy.phase
    if item == CREDENTIAL_SCAN:
        return scan.checked(scan.scan(phase.changed))
    if item == BASELINE:
        before = wire.convert(wire.decode_json(look), baseline.Look) if look else None
        now = baseline.look(baseline.Place(workspace, home=str(Path.home())))
        return baseline.checked(before, now, mine=frozenset(phase.changed))
    return _committed(policy, workspace, data) if item == COMMIT else None


def _committed(policy: PolicyState, workspace: str, data: PolicyData) -> Checked:
    from jackstay.ward import baseline

    try:
        dirty = baseline.git_status(workspace)
    except OSError:
        return Checked(True, "there is no repository here: nothing to commit")
    committed = ""
    if dirty and commit_wanted(policy):
        committed = _commit(workspace, policy.phase.changed)
        dirty = baseline.git_status(workspace)
    return checked_commit(policy, dirty, committed=committed, data=data)


def _commit(workspace: str, changed: tuple[str, ...]) -> str:
    """Commit what the task has changed; the short name of the commit, empty when git would not."""
    present = [path for path in changed if Path(path).exists()]
    if present and _git(workspace, "add", "--", *present) is None:
        return ""
    said = _git(workspace, "commit", "-q", "-m", "Changes of a closed task")
    return (_git(workspace, "rev-parse", "--short", "HEAD") or "").strip() if said is not None else ""


def _known_files(workspace: str) -> list[str]:
    listed = _git(workspace, "ls-files", "-z", "--cached", "--others", "--exclude-standard")
    return [name for name in listed.split("\0") if name] if listed is not None else []


def _git(workspace: str, *words: str) -> str | None:
    from jackstay.ward.baseline import GIT_LOOK

    # A commit runs the repository's hooks, as it should; everything else looks without running anything.
    base = ("git",) if words[0] == "commit" else GIT_LOOK
    command = [*base, "-C", workspace, *words]
    try:
        done = subprocess.run(command, capture_output=True, timeout=GIT_TIMEOUT_S, check=False, text=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout if done.returncode == 0 else None
