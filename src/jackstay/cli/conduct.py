"""How does one request run under a command: told, stoppable, and asked about where a person sits?"""

import asyncio
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import anyio

from jackstay.cli.ask import PlanAnswer, ask_about, ask_about_plan, is_interactive
from jackstay.cli.main import CANCELLED
from jackstay.cli.override import PLAN_APPROVED, written_down
from jackstay.cli.plain import command_line, safe
from jackstay.cli.screen import JsonLines, Output, Screen
from jackstay.cli.setup import Setup
from jackstay.cli.waiting import plan_note, waiting_note
from jackstay.core.errors import AlreadyDecided, CallChanged, CallClosed, TooLate
from jackstay.core.events import Event, Outcome, RunEndEvent
from jackstay.core.state import RunState
from jackstay.runtime.commands import approve_plan, plan_of, plan_waits
from jackstay.runtime.hitl import HITL
from jackstay.runtime.session import AgentSession
from jackstay.runtime.stream import RunStream

EXIT_CODES: dict[Outcome, int] = {
    "answered": 0, "failed": 1, "pending": 3, "limit": 4, "stopped": 4, "rejected": 5, "cancelled": CANCELLED,
}  # fmt: skip
WAITING = EXIT_CODES["pending"]  # also for a plan: the answer is there, its approval is not
_STOPS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
TICK_S = 0.5


class Request:
    """One request on behalf of a command, and where it is told."""

    def __init__(self, setup: Setup, session: AgentSession, *, as_json: bool, home: str | None) -> None:
        self._setup, self._session = setup, session
        self._home, self._as_json = home, as_json
        self._out: Output = JsonLines() if as_json else Screen(self._head())
        self._broken = False

    def carry_out(self, prompt: str | None) -> int:
        """Run it, asking a person at the terminal where calls wait; the exit code."""
        for warning in self._setup.warnings:
            self._out.warn(f"note: {warning}")
        return asyncio.run(self._carry_out(prompt))

    async def _carry_out(self, prompt: str | None) -> int:
        try:
            outcome = await self._stream(prompt)
            while not self._as_json and is_interactive():
                answer = self._answered_here(outcome)
                if answer is None:
                    break
                outcome = await self._stream(answer.words)
            return self._leave(outcome)
        finally:
            await self._setup.engine.close()

    def _head(self) -> RunState | None:
        stored = self._session.store.head(self._session.session_id)
        return stored.state if stored is not None else None

    # -- running ---------------------------------------------------------------------------------------

    async def _stream(self, prompt: str | None) -> Outcome:
        """Tell one request to its end; how it ended. Whatever stops it leaves a run that can be resumed."""
        request = self._setup.engine.prompt(prompt).session(self._session).agent(self._setup.agent)
        stream = request.stream()
        stopped = anyio.Event()
        outcome: Outcome = "cancelled"
        failure: Exception | None = None

        def stop() -> None:
            stopped.set()
            with suppress(OSError):  # the terminal may be gone
                self._out.warn("stopping; what was done is kept (Ctrl-C once more ends it at once)")

        with _stoppable(stop):
            async with anyio.create_task_group() as group:
                group.start_soon(_stop_when, stopped, stream)
                group.start_soon(_tick, self._out)
                try:
                    async for event in stream:
                        self._show(event, stopped)
                        if isinstance(event, RunEndEvent):
                            outcome = event.outcome
                except Exception as problem:
                    failure = problem
                group.cancel_scope.cancel()
        if failure is not None:
            self._out.pause()
            raise failure
        return outcome

    def _show(self, event: Event, stopped: anyio.Event) -> None:
        if self._broken:
            return
        try:
            self._out.show(event)
        except OSError:
            self._broken = True  # nobody reads any more: suspend, so that nothing is lost
            stopped.set()

    def _answered_here(self, outcome: Outcome) -> PlanAnswer | None:
        """Ask about what waits, calls or a plan; how to go on, None where the person leaves it for later."""
        if outcome == "pending":
            return PlanAnswer() if self._calls_decided() else None
        return self._plan_answered() if plan_waits(self._session) else None

    def _plan_answered(self) -> PlanAnswer | None:
        self._out.pause()
        state = self._head()
        try:
            answer = ask_about_plan()
        except KeyboardInterrupt:
            return None
        if answer is not None and answer.words is None and state is not None:
            written_down(self._home, state, PLAN_APPROVED)
            approve_plan(self._session)
        return answer

    def _calls_decided(self) -> bool:
        self._out.pause()
        tasks = HITL.get_pending_tasks(self._session)
        try:
            decisions = ask_about(tasks, self._home)
        except KeyboardInterrupt:
            return False
        for task in tasks:
            if task.key not in decisions:
                continue
            try:
                HITL.submit(self._session, task, decisions[task.key])
            except (AlreadyDecided, CallClosed, CallChanged, TooLate) as problem:  # theirs is carried out
                self._out.warn(str(problem))
        return len(decisions) == len(tasks)

    # -- leaving ---------------------------------------------------------------------------------------

    def _leave(self, outcome: Outcome) -> int:
        state = self._head()
        if self._broken:
            raise BrokenPipeError
        session_id = self._session.session_id
        if outcome == "pending":
            tasks = HITL.get_pending_tasks(self._session)
            if tasks:
                self._out.note(waiting_note(session_id, tasks, self._home))
        elif state is not None and state.outcome is None and state.run_id:
            resume = command_line("resume", session_id, home=self._home)
            self._out.note(f"suspended; nothing is lost. Go on with: {resume}")
        elif plan_waits(self._session):
            plan = plan_of(self._session.state)
            self._out.note(plan_note(session_id, plan, self._home))
            return WAITING
        elif not self._as_json:
            if state is not None and state.outcome == "cancelled":
                self._out.warn(f"it is over: {safe(state.text)}")
            self._out.warn(f"session {session_id}")
        return EXIT_CODES[outcome]


async def _stop_when(stopped: anyio.Event, stream: RunStream) -> None:
    await stopped.wait()
    await stream.interrupt("an interruption")


async def _tick(out: Output) -> None:
    while True:
        await anyio.sleep(TICK_S)
        out.tick()


@contextmanager
def _stoppable(stop: Callable[[], None]) -> Iterator[None]:
    """Within the block the first Ctrl-C (or TERM, HUP) calls `stop`, the second ends the process at once."""
    loop = asyncio.get_running_loop()
    asked = False

    def heard() -> None:
        nonlocal asked
        if asked:
            os._exit(CANCELLED)
        asked = True
        stop()

    for number in _STOPS:
        loop.add_signal_handler(number, heard)
    try:
        yield
    finally:
        for number in _STOPS:
            loop.remove_signal_handler(number)
