"""The loopback server as a process, as command-line tests and benchmarks use it."""

import json
import subprocess
import sys

from jackstay.models.registry import open_model
from tests.models.asking import Heard, ask, request


def test_it_prints_its_port_serves_its_script_and_logs_requests(repository, tmp_path):
    script, log = tmp_path / "answers.json", tmp_path / "log.jsonl"
    script.write_text(json.dumps([{"say": "one"}, {"say": "two"}]))
    command = [sys.executable, str(repository / "tests" / "loopback.py"), "--script", str(script)]
    with subprocess.Popen([*command, "--log", str(log)], stdin=-1, stdout=-1, text=True) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        port = server.stdout.readline().strip()
        heard = ask(open_model(f"m@http://127.0.0.1:{port}/v1", env={}), request(), request())
        server.stdin.close()
        assert server.wait(10) == 0
    assert [h.said() for h in heard if isinstance(h, Heard)] == ["one", "two"]
    assert [json.loads(line)["model"] for line in log.read_text().splitlines()] == ["m", "m"]
