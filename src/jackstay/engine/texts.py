"""What the model and people read when a call does not run as asked."""

from jackstay.core.approvals import HITLDecision, HITLTask
from jackstay.core.decision import Ask, Deny
from jackstay.core.errors import ErrorInfo
from jackstay.core.inputs import Command
from jackstay.core.messages import ToolCall
from jackstay.policy.permissions import permitting_flag

MOVED_ON = "cancelled: the user moved on"
MOVED_ON_BY = "a new prompt"  # by whom what lay below was cancelled then
LIMIT = "the run's limit was reached"
REJECTED = "A person rejected this call. Do not try it again; find another way or say what you need."
SKIPPED = "A person skipped this call. Go on without it."
EXPIRED = (
    "Not run: nobody answered the request for approval in time. That is no refusal: say what you need it for, "
    "and ask again or go on without."
)
CHANGES = ("its arguments", "the tool's schema", "the working directory", "the permission rules", "the phase")
WHAT_RUNS = CHANGES[1:3]  # that may become another thing under an approved call; its arguments are its own
REJECTED_RUN = "A person rejected the call, and the run ended there."
STANDS_FOR_SECRET = (
    "Not run: the arguments hold a [redacted:…] mark. It stands for a secret that was taken out of what you "
    "read, and would be written in its place. Change the lines around it only, or leave this to the user."
)
SUM_UP = (
    "This run has reached its limit and no tool can be used any more. Sum up for the user: what was done, "
    "what was found, what is left and how to go on."
)
RETHINK = (
    "This is the last turn in which tools can be used. Check yourself before you act: is the goal met, was "
    "the way right, what is still missing? Finish what matters most, or ask the user."
)
LOOK = "Look at what it would have changed before you go on."
CUT = "the model read only as much of the request as fills its window"
MAY_HAVE_RUN = (
    "The harness was stopped while this call was running: it may have run wholly, partly or not at all. "
    f"It was not repeated. {LOOK}"
)


def plan_approved(command: Command, notes: dict[str, str]) -> str:
    """What the model reads of an approval that came as a command, not as a message."""
    comment = command.detail.get("comment")
    said = [notes["go_ahead"].format(by=command.by)]
    return " ".join([*said, notes["they_say"].format(comment=comment)] if comment else said)


def may_stay(command: Command, notes: dict[str, str]) -> str:
    """What the model reads when a person has decided about what kept the task from closing."""
    return notes["go_on_closing"].format(by=command.by)


def unreadable(call: ToolCall) -> str:
    """A call whose arguments could not be taken."""
    return f"Not run: {call.problem}. Send the call again with complete arguments as one JSON object."


def unknown_tool(tool: str, nearest: str | None) -> str:
    """A call of a tool that this agent does not have."""
    hint = f" Did you mean {nearest!r}?" if nearest else ""
    return f"Not run: there is no tool {tool!r} here.{hint}"


def invalid(tool: str, why: str) -> str:
    """A call whose arguments do not fit."""
    return f"Not run: the arguments do not fit {tool!r}: {why}"


def denied(deny: Deny) -> str:
    """A call that policy forbids."""
    if not deny.instead or deny.instead in deny.reason:
        return f"Not run, denied by policy: {deny.reason}"
    joint = " " if deny.reason.endswith((".", "!", "?", "。")) else "; "
    return f"Not run, denied by policy: {deny.reason}{joint}{deny.instead}"


def nobody_to_ask(ask: Ask, call: ToolCall) -> str:
    """A call that needs a person where there is none."""
    flag = permitting_flag(ask, call)
    way_on = f". Your user can permit it with {flag}" if flag else ""
    return f"Not run: this needs a person's approval and nobody can be asked here: {ask.reason}{way_on}"


def waiting(tasks: tuple[HITLTask, ...]) -> str:
    """What a request that ends in waiting says."""
    if len(tasks) == 1:
        return f"Waiting for approval of {tasks[0].tool_name}: {tasks[0].comment}"
    return f"{len(tasks)} calls wait for approval: " + ", ".join(task.tool_name for task in tasks)


def rejected(decision: HITLDecision) -> str:
    """What the model reads of a rejected call, or of one that nobody answered about in time."""
    if decision.expired:
        return EXPIRED
    return f"{REJECTED} The reason given: {decision.remark}" if decision.remark else REJECTED


def with_comment(text: str, comment: str) -> str:
    """A result with the note of the person who approved the call."""
    return f"{text}\n\n[note of the person who approved this call: {comment}]"


def interrupted(why: str, partial: str = "") -> str:
    """A call that was running when the run stopped."""
    text = f"Interrupted while running ({why}): it may have taken effect in part."
    return f"{text} Output so far:\n{partial}" if partial else text


def cancelled(by: str) -> str:
    """Why a run stopped that somebody called off."""
    return f"cancelled by {by}"


def not_run(why: str) -> str:
    """A call that never began."""
    return f"Not run: {why}."


def changed(before: str, now: str, *, amended: bool = False, among: tuple[str, ...] = CHANGES) -> str:
    """In what of these the digests differ, "" where in nothing; `amended` arguments are meant to."""
    old, new = before.replace("@", ".").split("."), now.replace("@", ".").split(".")
    if len(old) != len(CHANGES) or len(new) != len(CHANGES):
        return "" if before == now or amended else "what was approved"
    pairs = list(zip(CHANGES, old, new, strict=True))[1 if amended else 0 :]
    return " and ".join(name for name, was, is_now in pairs if was != is_now and name in among)


def asked_again(comment: str, what: str) -> str:
    """Why a person is asked a second time about a call."""
    return f"{comment} (asked again: {what} changed since)"


def escalated(comment: str, seconds: float) -> str:
    """Why somebody else is asked about a call."""
    return f"{comment} (nobody answered within {seconds:.0f} s)"


def indeterminate(tool: str) -> str:
    """Why a person is asked about a call after a crash."""
    return (
        f"the harness was stopped while this call of {tool!r} was running; it may have run. "
        "Approve to run it again, skip to go on without"
    )


def retried(error: ErrorInfo, attempt: int) -> str:
    """A model call that failed and is tried again."""
    return f"the model call failed ({error.kind}: {error.message}); attempt {attempt} follows"


def was_cut(tokens: int) -> str:
    """A reply that was given without reading the whole conversation."""
    return (
        f"the model read only the {tokens} tokens that fill its window, not the whole conversation; its answer "
        "is left aside, the conversation is shortened and the model asked again"
    )
