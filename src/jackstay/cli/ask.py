"""What does the person at the terminal say about a waiting call?"""

import sys
import termios
from collections.abc import Sequence
from typing import Literal

import click
import msgspec
from msgspec.structs import replace

from jackstay.cli.amend_args import amended, tool_of
from jackstay.cli.plain import shown
from jackstay.cli.screen import Paint
from jackstay.cli.waiting import task_lines
from jackstay.core.approvals import HITLDecision, HITLTask

Verb = Literal["approve", "reject", "skip", "always", "edit", "later", "help"]
_WORDS: dict[str, Verb] = {
    "a": "approve", "y": "approve", "yes": "approve", "approve": "approve",
    "r": "reject", "n": "reject", "no": "reject", "reject": "reject",
    "s": "skip", "skip": "skip",
    "w": "always", "always": "always",
    "e": "edit", "edit": "edit",
    "q": "later", "later": "later", "quit": "later",
    "?": "help", "h": "help", "help": "help",
}  # fmt: skip
_HELP = """\
  a  approve: run the call as shown
  r  reject: do not run it; the reason you give goes to the model
  s  skip: do not run it; the comment you give stands in for its result
  w  always: approve, and add the rule shown, so that such calls are not asked about again
  e  edit: change arguments first
  q  later: leave it waiting and stop here"""


def is_interactive() -> bool:
    """Can a person be asked here and now?"""
    return sys.stdin.isatty() and sys.stderr.isatty()


def ask_about(tasks: Sequence[HITLTask], home: str | None) -> dict[str, HITLDecision]:
    """A decision per key of a call; calls are missing when the person leaves them for later.

    Raises KeyboardInterrupt on Ctrl-C.
    """
    decisions: dict[str, HITLDecision] = {}
    paint = Paint(sys.stderr)
    for number, task in enumerate(tasks, 1):
        count = f" ({number} of {len(tasks)})" if len(tasks) > 1 else ""
        _tell(paint("bold", f"approval needed{count}"))
        termios.tcflush(sys.stdin, termios.TCIFLUSH)  # what was typed before is no answer to this
        decision = _one(task, home)
        if decision is None:
            break
        decisions[task.key] = decision
    return decisions


class PlanAnswer(msgspec.Struct, frozen=True):
    """What the person says to a plan: `words` to the agent, or without any their approval."""

    words: str | None = None


def ask_about_plan() -> PlanAnswer | None:
    """The answer to the plan the person has just read; None: later. Raises KeyboardInterrupt on Ctrl-C."""
    _tell(Paint(sys.stderr)("bold", "the plan needs your approval"))
    termios.tcflush(sys.stdin, termios.TCIFLUSH)
    while True:
        answer = _line("[a]pprove and go on, [q] later, or say what should be different: ")
        verb = _WORDS.get(answer.lower()) if answer is not None else "later"
        if verb in ("later", "reject"):
            return None
        if verb == "approve":
            return PlanAnswer()
        if answer and " " in answer:  # a slip of the finger is no message to the agent
            return PlanAnswer(answer)
        if answer:
            _tell(f"{shown(answer)!r} is none of them; say it in a few words")


def _one(task: HITLTask, home: str | None) -> HITLDecision | None:
    current, edited = task, False
    _tell("\n".join(f"  {line}" for line in task_lines(current)))
    while True:
        verb = _verb(current)
        match verb:
            case "approve" | "always":
                new_args = current.args if edited else None
                return HITLDecision.approve(verb == "always", modified_args=new_args)
            case "reject":
                return HITLDecision.reject(_line("why (for the model; empty: no reason): ") or None)
            case "skip":
                return HITLDecision.skip(
                    _line("what the model reads in its place (empty: nothing more): ") or None
                )
            case "later" | None:
                return None
            case "help":
                _tell(_HELP)
            case "edit":
                current, edited = _edit(current, home), True
                _tell("\n".join(f"  {line}" for line in task_lines(current)))


def _verb(task: HITLTask) -> Verb | None:
    always = " al[w]ays," if task.always_rule is not None else ""
    while True:
        answer = _line(f"[a]pprove, [r]eject, [s]kip,{always} [e]dit, [q] later, [?] help: ")
        if answer is None:
            return None
        verb = _WORDS.get(answer.lower())
        if verb == "always" and task.always_rule is None:
            _tell("no rule can be added for this call: approve, reject or skip it")
        elif verb is not None:
            return verb
        elif answer:
            _tell(f"{shown(answer)!r} is none of them")


def _edit(task: HITLTask, home: str | None) -> HITLTask:
    """The call with other arguments; a rule is not offered for it, since the one shown was for the old ones."""
    tool = tool_of(task, home)
    while setting := _line("name=value (empty: done): "):
        try:
            task = replace(task, args=amended(task, (setting,), tool), always_rule=None)
        except click.UsageError as problem:
            _tell(problem.message)
    return task


def _line(prompt: str) -> str | None:
    """A line the person types, stripped; None at the end of the input."""
    sys.stderr.write(prompt)
    sys.stderr.flush()
    text = sys.stdin.readline()
    if not text:
        _tell("")
        return None
    return text.strip()


def _tell(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
