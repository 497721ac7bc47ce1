"""What the world says about a call, gathered before policy is asked; policy itself looks at nothing."""

from typing import Literal

import msgspec

from jackstay.core.decision import Decision
from jackstay.core.phase import Checked
from jackstay.core.tools import ALL_EFFECTS, Effect

Use = Literal["reads", "writes", "deletes"]
BackupState = Literal["none", "taken", "impossible"]
Mark = Literal["", "harness", "host", "startup", "credentials", "system"]


class PathFact(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """One path that a call names, or that its command touches.

    `said` is the path as written, `real` where it leads after all links ("" when nobody can tell before it
    runs). `mark` says whose place it is: the harness's own, a host's configuration, something that is run
    later (hooks, shell start-up files), credentials, or the system's.
    """

    said: str
    real: str = ""
    use: Use = "reads"
    inside: bool = False
    mark: Mark = ""

    @property
    def changes(self) -> bool:
        """Is something written or removed here?"""
        return self.use != "reads"


class CallFacts(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """Facts about one call at one moment.

    `invalid` says why the arguments do not fit the tool's schema. `answers` are the decisions of approval
    strategies. `digest` names tool, arguments, schema and directory. `workspace`, `cwd` and `home` are
    canonical directories; `paths` are the places of the call, also those its command touches; `linked` are
    (word, place) of those it only names, where a link leads elsewhere than the word says. `command_arg` and
    `url_args` name the arguments that hold a command and addresses. `backup` says whether everything the
    call writes by name has been copied away (`backup_problem` why not), `snapshot` whether the workspace has;
    `backups` are (path, backup id) of what was copied just now. `checked` is the harness's own look at a
    closing item. `spawns`: the call hands work to subagents.
    """

    known: bool = True
    nearest: str | None = None
    invalid: str | None = None
    effects: frozenset[Effect] = ALL_EFFECTS
    idempotent: bool = False
    answers: tuple[Decision, ...] = ()
    digest: str = ""
    workspace: str = ""
    cwd: str = ""
    home: str = ""
    paths: tuple[PathFact, ...] = ()
    linked: tuple[tuple[str, str], ...] = ()
    command_arg: str | None = None
    url_args: tuple[str, ...] = ()
    backup: BackupState = "none"
    backup_problem: str = ""
    snapshot: bool = False
    backups: tuple[tuple[str, str], ...] = ()
    checked: Checked | None = None
    spawns: bool = False

    @property
    def reads_only(self) -> bool:
        """May the call run beside others?"""
        return self.effects <= _READS


_READS: frozenset[Effect] = frozenset({"reads"})
