"""Connections end with the event loop they belong to, whether or not anybody closes them."""

import asyncio
import gc

from jackstay import HarnessEngine, MemoryStore
from jackstay.models import http
from tests.loopback import Loopback


def test_a_program_that_closes_nothing_leaves_nothing_open() -> None:
    with Loopback([{"say": "Here."}], cycle=True) as server:
        engine = HarnessEngine(model=f"m@{server.openai_url}", session_provider=MemoryStore())
        for _ in range(2):
            assert asyncio.run(engine.prompt("Are you there?").call()).text == "Here."
            assert http._pools == {}
        assert engine.prompt("And now?").call_sync().text == "Here."
        assert http._pools == {}
        gc.collect()  # a connection left open would warn here, and warnings are errors
