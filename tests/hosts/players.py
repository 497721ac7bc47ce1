"""The real hosts as players of the shared scenarios: each call in the host's own words, each outcome in ours."""

import json
from collections.abc import Sequence
from contextlib import ExitStack
from typing import Any, assert_never

from jackstay.testing.conformance import Call, Heard, Outcome, Reply
from tests.hosts.chat_server import says
from tests.hosts.claude import FILES_SERVER, Claude
from tests.hosts.hermes_kit import Driver, Host, Seen
from tests.hosts.messages_server import Turn, text, use

WAITS = "waiting for approval"


class ClaudePlayer:
    """Claude Code as it is started for every prompt: the session lives in its files."""

    def __init__(self, claude: Claude) -> None:
        self.name, self.home, self.workspace = "claude-code", claude.home, claude.project
        self._claude, self._seen = claude, 0
        claude.with_files_server()

    @property
    def session(self) -> str:
        return self._claude.session

    def anew(self) -> None:
        self._claude.dismiss()  # the host itself is new at each prompt: so is what answers its hooks

    def hear(self, person: str, model: Sequence[Reply], helper: Sequence[Reply]) -> Heard:
        server = self._claude.server
        server.queues = {"task": [self._turn(one) for one in model], "sub": [self._turn(one) for one in helper]}
        begun = len(server.bodies)
        self._claude.says(person if self.session else f"<<task>> {person}")
        bodies = [body for body in server.bodies[begun:] if body.get("tools")]
        mine = [body for body in bodies if "<<task>>" in json.dumps(body["messages"][0])]
        if not mine:
            return Heard((), "")
        results = [
            block for message in mine[-1]["messages"] if message["role"] == "user"
            for block in message["content"] if isinstance(block, dict) and block["type"] == "tool_result"
        ]  # fmt: skip
        new, self._seen = results[self._seen :], len(results)
        return Heard(
            tuple(self._outcome(one) for one in new), json.dumps(mine[-1]["messages"], ensure_ascii=False)
        )

    @staticmethod
    def _outcome(result: dict[str, Any]) -> Outcome:
        if WAITS in json.dumps(result):
            return "waits"
        return "refused" if result.get("is_error") else "ran"

    def _turn(self, reply: Reply) -> Turn:
        return [*([text(reply.say)] if reply.say else []), *map(self._use, reply.calls)]

    def _use(self, call: Call) -> dict[str, Any]:
        own, path = "mcp__jackstay__", str(self.workspace / call.path)
        match call.tool:
            case "read":
                return use("Read", file_path=path)
            case "write":
                return use("Write", file_path=path, content=call.text)
            case "shell":
                return use("Bash", command=call.text, description="d")
            case "subagent":
                prompt = f"<<sub>> {call.text}"
                return use("Agent", description="d", prompt=prompt, subagent_type="general-purpose")
            case "mcp":
                return use("mcp__files__write", path=path)
            case "set_phase":
                return use(f"{own}discipline_set_phase", phase=call.path, reason=call.text)
            case "tick":
                return use(f"{own}closure_check", item=call.path, evidence=call.text)
            case other:
                assert_never(other)


def _first_words(request: dict[str, Any]) -> str:
    return json.dumps(next(one for one in request["messages"] if one["role"] == "user"))


class HermesPlayer:
    """Hermes in one process for the whole conversation, until it is started anew."""

    session = "scenario"

    def __init__(self, host: Host, stack: ExitStack) -> None:
        self.name, self.home, self.workspace = "hermes", host.jackstay, host.workspace
        self._host, self._stack = host, stack
        self._driver: Driver | None = None
        host.config.write_text(
            f"{host.config.read_text()}mcp_servers:\n  files:\n"
            f"    command: {host.python}\n    args: [{FILES_SERVER}]\n"
        )

    def anew(self) -> None:
        if self._driver is not None:
            self._driver.close()
        self._driver = None

    def hear(self, person: str, model: Sequence[Reply], helper: Sequence[Reply]) -> Heard:
        if self._driver is None:
            self._driver = self._stack.enter_context(self._host.driver())
        task = next((call.text for one in model for call in one.calls if call.tool == "subagent"), "")
        replies = [says(one.say, *map(self._call, one.calls)) for one in model]
        replies += [says(one.say, *map(self._call, one.calls), to=task) for one in helper]
        seen = self._driver.turn(self.session, person, *replies)
        mine = [one for one in seen.requests if not (task and task in _first_words(one))]
        seen = Seen(mine, seen.answer)
        return Heard(tuple(map(self._outcome, seen.results)), "\n".join([seen.context, *seen.results]))

    @staticmethod
    def _outcome(result: str) -> Outcome:
        if WAITS in result:
            return "waits"
        return "refused" if "[work-principles]" in result else "ran"

    def _call(self, call: Call) -> tuple[str, dict[str, Any]]:
        path = str(self.workspace / call.path)
        match call.tool:
            case "read":
                return "read_file", {"path": path}
            case "write":
                return "write_file", {"path": path, "content": call.text}
            case "shell":
                return "terminal", {"command": call.text}
            case "subagent":
                return "delegate_task", {"goal": call.text, "background": False}
            case "mcp":
                return "mcp__files__write", {"path": path}
            case "set_phase":
                return "discipline_set_phase", {"phase": call.path, "reason": call.text}
            case "tick":
                return "closure_check", {"item": call.path, "evidence": call.text}
            case other:
                assert_never(other)
