"""Run by Hermes's own interpreter: the real agent, many turns in one process.

Arguments: the model's address and a file descriptor; one JSON line comes in, one goes out on the descriptor.
"""

import json
import os
import resource
import signal
import sys
import threading
from time import perf_counter
from typing import Any

from hermes_cli.plugins import discover_plugins, get_plugin_command_handler, get_plugin_manager
from hermes_state import SessionDB
from model_tools import handle_function_call
from run_agent import AIAgent
from tools.mcp_tool import discover_mcp_tools


class Hermes:
    """The operations by name."""

    def __init__(self, base_url: str) -> None:
        discover_plugins()
        discover_mcp_tools()
        self.base_url, self.db = base_url, SessionDB()
        self.agents: dict[str, Any] = {}
        self.history: dict[str, list[Any]] = {}

    def agent(self, session: str, model: str = "probe-model") -> Any:
        return AIAgent(
            base_url=self.base_url, api_key="sk-x", provider="custom", model=model, quiet_mode=True,
            session_id=session, session_db=self.db, platform="cli",
        )  # fmt: skip

    def turn(self, session: str, text: str, model: str = "") -> Any:
        if session not in self.agents or model:
            self.agents[session] = self.agent(session, model or "probe-model")
        done = self.agents[session].run_conversation(text, conversation_history=self.history.get(session))
        self.history[session] = done["messages"]
        return {"text": done.get("final_response")}

    def tool(self, session: str, tool: str, args: dict[str, Any], task: str | None = None) -> Any:
        """One call through the host's own dispatch, without a model."""
        return handle_function_call(
            tool, args, task_id=task or session, session_id=session, tool_call_id=os.urandom(4).hex()
        )

    def review(self, session: str, text: str) -> Any:
        """A turn as the host's background review makes it: same session, other origin, other thread."""
        from tools.skill_provenance import set_current_write_origin

        answers: list[Any] = []

        def run() -> None:
            set_current_write_origin("background_review")
            fork = self.agent(session)
            fork._memory_write_origin = "background_review"  # as the host's own fork has it
            answers.append(
                fork.run_conversation(text, conversation_history=list(self.history.get(session, [])))
            )

        thread = threading.Thread(target=run)
        thread.start()
        thread.join()
        return {"text": answers[0].get("final_response") if answers else None}

    def command(self, name: str, args: str) -> Any:
        """A slash command, as the host calls it."""
        handler = get_plugin_command_handler(name)
        return handler(args) if handler is not None else None

    def plugins(self) -> Any:
        return {
            info["name"]: info for info in get_plugin_manager().list_plugins() if info["source"] != "bundled"
        }

    def skill(self, name: str) -> Any:
        found = get_plugin_manager().find_plugin_skill(name)
        return str(found) if found is not None else None

    def full(self, limit: int) -> Any:
        """From now on no file of this process may grow beyond `limit` bytes (-1: no limit)."""
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
        return None

    def nobody(self, on: bool) -> Any:
        """Act as a user who may read but not write (root may write everywhere); nothing for other users."""
        if os.getuid() == 0:
            os.seteuid(65534 if on else 0)
        return None

    def pace(self, session: str, path: str, times: int) -> Any:
        """Seconds of each decision of the discipline's own hook about a read."""
        hooks = get_plugin_manager()._hooks["pre_tool_call"]
        ours = next(hook for hook in hooks if hook.__qualname__.startswith("Hermes."))
        found = []
        for number in range(times):
            start = perf_counter()
            said = ours(
                tool_name="read_file", args={"path": path}, task_id=session, session_id=session,
                tool_call_id=f"pace-{number}",
            )  # fmt: skip
            found.append(perf_counter() - start)
            assert said is None, said
        return found


def main() -> None:
    answers = os.fdopen(int(sys.argv[2]), "w")
    hermes = Hermes(sys.argv[1])
    for line in sys.stdin:
        request = json.loads(line)
        try:
            answer: Any = getattr(hermes, request.pop("op"))(**request)
        except BaseException as problem:
            answer = {"raised": f"{type(problem).__name__}: {problem}"}
        answers.write(json.dumps(answer, default=str) + "\n")
        answers.flush()
    os._exit(0)  # the host's background threads need not be waited for


main()
