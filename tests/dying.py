"""A process that works in a session and dies where it is told to: `python -m tests.dying DB WHERE NUMBER`.

WHERE is `turn` (at the model's so-manieth request) or `question` (at the so-manieth question for a summary), or
`overflow` (at the so-manieth question, all of which come from requests that were too long). What the model was shown
last is left in `DB.shown`, what was told in `DB.told`, a line a message and an event.
"""

import os
import sys
from functools import partial
from pathlib import Path
from typing import BinaryIO

from jackstay import SQLiteStore
from jackstay.core import wire
from jackstay.core.events import Event
from jackstay.engine.interceptors import Interceptor
from jackstay.engine.ports import ModelRequest, Reply, Tell
from jackstay.runtime.agent import AgentBuilder
from tests.longruns import Worker, compression, engine, is_question, overflow

CALLS = 60
FILLER = 2_000


class Dying(Worker):
    """The worker, until it dies."""

    def __init__(self, database: str, where: str, number: int) -> None:
        super().__init__(CALLS)
        self.database, self.where, self.number = Path(database), where, number

    async def reply(self, request: ModelRequest, tell: Tell) -> Reply:
        if not is_question(request):
            lines = b"\n".join(wire.encode(message) for message in request.transcript)
            self.database.with_suffix(".shown").write_bytes(lines)
        counted = len(self.requests if self.where == "turn" else self.questions)
        if counted == self.number - 1 and is_question(request) is (self.where != "turn"):
            os._exit(9)
        if self.where == "overflow" and not is_question(request) and len(request.transcript) > 20:
            raise overflow()
        return await super().reply(request, tell)


class Listener(Interceptor):
    """Writes down what is told, as it is told."""

    name = "listener"

    def __init__(self, told: BinaryIO) -> None:
        self._told = told

    def on_event(self, event: Event) -> None:
        if event.seq is not None:
            self._told.write(wire.encode(event) + b"\n")


def listen(told: BinaryIO, engine: object, name: str, builder: AgentBuilder) -> None:
    builder.default_interceptor_add(Listener(told))


def guard(where: str):
    """Compression that passes when the messages are many, or only when a request was too long."""
    return compression(1_000 if where == "overflow" else 15)


def main() -> None:
    """Work, tell, and die."""
    database, where, number = sys.argv[1], sys.argv[2], int(sys.argv[3])
    with Path(database).with_suffix(".told").open("ab", buffering=0) as told:
        made = engine(
            Dying(database, where, number), store=SQLiteStore(database), filler=FILLER,
            compression_interceptor=guard(where), extensions=(partial(listen, told),),
        )  # fmt: skip
        made.prompt("find all facts").session("s").call_sync()


if __name__ == "__main__":
    main()
