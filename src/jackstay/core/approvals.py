"""What waits for a person, and what the person said."""

from typing import Literal

import msgspec

from jackstay.core.messages import JsonObject

Verdict = Literal["approve", "reject", "skip"]
OnDeadline = Literal["keep", "escalate", "deny"]


class Waiting(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """How long a call may wait for a person, in seconds; without `deadline_s` for as long as it takes.

    What happens then, at the next resume: `keep` waits on, `escalate` asks again in the name of `escalate_to`,
    without a deadline, and `deny` lets the model read that nobody has answered.
    """

    deadline_s: float | None = None
    action: OnDeadline = "keep"
    escalate_to: str = ""


class HITLTask(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """One call that waits for a person.

    `args` is a snapshot of the arguments, `comment` the reason it was held, `always_rule` the rule that
    "always allow" would add. `digest` binds a decision to what was shown: tool, arguments, schema, directory,
    phase and policy. `indeterminate` marks a call that was started before a crash and may have run.
    `deadline` is until when (epoch seconds) an answer is expected and `on_deadline` what follows without one;
    `escalate_to` is whom it is put to then, `escalated_to` whom it is put to now, "" for anybody.
    `path` names the sessions between this one and the call, outermost first, where the call is a subagent's;
    a call_id is unique only together with it.
    """

    call_id: str
    tool_name: str
    args: JsonObject
    comment: str
    always_rule: str | None = None
    asked_at: float = 0.0
    digest: str = ""
    indeterminate: bool = False
    deadline: float | None = None
    on_deadline: OnDeadline = "keep"
    escalate_to: str = ""
    escalated_to: str = ""
    path: tuple[str, ...] = ()

    def expired(self, at: float) -> bool:
        """Is it too late for an answer given at this time (epoch seconds)?"""
        return self.deadline is not None and self.on_deadline == "deny" and at > self.deadline

    @property
    def key(self) -> str:
        """What names this call and no other where subagents' calls wait too: `SESSION/CALL_ID` for theirs."""
        return f"{self.path[-1]}/{self.call_id}" if self.path else self.call_id

    @property
    def call_uuid(self) -> str:
        """The seed's name for `call_id`."""
        return self.call_id


class HITLDecision(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """A person's answer about one call. Build one with `approve`, `reject` or `skip`.

    `by` and `at` (epoch seconds) say who gave it and when, `digest` what the person was shown. `expired` marks
    the one that stands in for an answer nobody gave in time.
    """

    kind: Verdict
    remark: str | None = None
    new_args: JsonObject | None = None
    always: bool = False
    go_on: bool = False
    by: str = ""
    at: float = 0.0
    digest: str = ""
    expired: bool = False

    @classmethod
    def approve(
        cls,
        always_allow: bool = False,  # the seed's positional form: approve(true)
        *,
        comment: str | None = None,
        modified_args: JsonObject | None = None,
    ) -> "HITLDecision":
        """Run the call; with `modified_args` in place of its arguments; with `always_allow` also add a rule."""
        return cls("approve", comment, modified_args, always_allow)

    @classmethod
    def reject(cls, comment: str | None = None, *, continue_run: bool = False) -> "HITLDecision":
        """Do not run the call. Rejecting the only sensitive call ends the run unless `continue_run`."""
        return cls("reject", comment, go_on=continue_run)

    @classmethod
    def skip(cls, comment: str | None = None) -> "HITLDecision":
        """Do not run the call and let the model read the comment as its result."""
        return cls("skip", comment)

    def comment(self, text: str) -> "HITLDecision":
        """The same decision with a comment."""
        return msgspec.structs.replace(self, remark=text)

    def modified_args(self, args: JsonObject) -> "HITLDecision":
        """The same decision with other arguments for the call."""
        return msgspec.structs.replace(self, new_args=args)

    def always_allow(self, always: bool = True) -> "HITLDecision":
        """The same decision, also for all calls that the shown rule covers."""
        return msgspec.structs.replace(self, always=always)

    @property
    def is_approved(self) -> bool:
        """May the call run?"""
        return self.kind == "approve"

    @property
    def is_rejected(self) -> bool:
        """Was it turned down?"""
        return self.kind == "reject"

    @property
    def is_skipped(self) -> bool:
        """Is the comment to stand in for its result?"""
        return self.kind == "skip"

    @property
    def is_always_allow(self) -> bool:
        """Is a rule to be added?"""
        return self.always
