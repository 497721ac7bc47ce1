"""Bad configuration ends in exit code 2, before anything happens, with what mends it."""

import shutil
import socket

import pytest

from tests.cli.command import Jackstay, bash
from tests.loopback import Loopback


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["run", "go"], ["no model is configured", "--model MODEL", "JACKSTAY_MODEL", "configuration"]),
        (["run", "--model", "opnai:x", "go"], ["did you mean openai:x?"]),
        (["run", "--model", "openai:x", "go"], ["OPENAI_API_KEY"]),
        (["run", "--model", "script:none.json", "go"], ["none.json", "cannot be read"]),
        (["run", "--model", "SCRIPT", "--tools", "read,bsh", "go"], ["there is no tool 'bsh'", "'bash'"]),
        (["run", "--model", "SCRIPT", "--allow", "bash(", "go"], ["'bash(' is not a rule"]),
        (["run", "--model", "SCRIPT", "--workspace", "nowhere", "go"], ["nowhere", "is no directory"]),
        (["run", "--model", "SCRIPT", "--agent", "tester", "go"], ["there is no agent 'tester'", "main"]),
        (["run", "--model", "SCRIPT", "--max-turns", "0", "go"], ["--max-turns"]),
        (["run", "--model", "SCRIPT", "--discipline", "hard", "go"], ["strict", "guided"]),
        (["run", "--model", "SCRIPT", "--session", "a/b", "go"], ["is not a session id"]),
        (["run", "--model", "SCRIPT"], ["say what is to be done"]),
        (["run", "--model", "SCRIPT", "  "], ["say what is to be done"]),
        (["run", "--modle", "x", "go"], ["No such option"]),
        (["rn", "go"], ["there is no command 'rn'", "did you mean 'run'?"]),
    ],
)
def test_bad_usage_is_exit_code_2_with_the_mend(jackstay: Jackstay, words: list[str], told: list[str]) -> None:
    script = jackstay.script("Never said.")
    done = jackstay(*(script if word == "SCRIPT" else word for word in words))
    assert (done.code, done.out) == (2, "")
    for piece in told:
        assert piece in done.err
    assert not (jackstay.home / "sessions.db").exists()


def test_a_wrong_setting_names_file_line_key_and_mend(jackstay: Jackstay) -> None:
    path = jackstay.settings("# mine\nmax_turn = 3\n")
    done = jackstay("run", "--model", jackstay.script("Never said."), "go")
    assert done.code == 2
    assert done.err == f"jackstay: {path}:2: max_turn: there is no such key (did you mean 'max_turns'?)\n"


def test_settings_hold_and_flags_and_variables_go_before_them(jackstay: Jackstay) -> None:
    with Loopback([{"say": "one"}, {"say": "two"}, {"say": "three"}]) as server:
        jackstay.settings(f'model = "file@{server.openai_url}"\n')
        jackstay("run", "go")
        jackstay("run", "go", env={"JACKSTAY_MODEL": f"variable@{server.openai_url}"})
        jackstay(
            "run", "--model", f"flag@{server.openai_url}", "go", env={"JACKSTAY_MODEL": "variable@http://x"}
        )
        assert [body["model"] for body in server.bodies] == ["file", "variable", "flag"]


def test_a_named_model_brings_its_server_key_and_headers(jackstay: Jackstay) -> None:
    with Loopback([bash("echo ran >> count"), {"say": "Done."}], by_turn=True) as server:
        jackstay.settings(
            f'model = "local"\n[models.local]\nmodel = "qwen"\nbase_url = "{server.openai_url}"\n'
            'key_env = "MY_KEY"\ncontext_length = 9000\nheaders = { x-team = "blue" }\n'
        )
        key = {"MY_KEY": "sesame"}
        assert "MY_KEY, which is not set" in jackstay("run", "go").err
        assert jackstay("run", "--session", "s1", "go", env=key).code == 3
        jackstay("approve", "s1", "--all")
        assert jackstay("resume", "s1", env=key).code == 0
        for seen in server.requests:
            assert seen.body["model"] == "qwen"
            assert seen.headers["authorization"] == "Bearer sesame"
            assert seen.headers["x-team"] == "blue"
    assert jackstay("sessions", "export", "s1").objects[0]["settings"]["model"] == "local"


def test_a_project_is_trusted_by_name_and_as_it_is(jackstay: Jackstay) -> None:
    path = jackstay.settings("hitl = false\n", project=True)
    script = jackstay.script(bash("echo ran >> count"), "Done.")
    words = ["run", "--model", script, "--allow", "bash", "--json", "go"]
    warned = jackstay(*words)
    assert f"{path}:1: hitl: left out" in warned.err
    assert f"jackstay trust {jackstay.workspace}" in warned.err
    assert jackstay("trust", str(jackstay.workspace)).out == f"{jackstay.workspace}: trusted\n"
    assert jackstay("trust", "--list", "--json").objects == [
        {"path": str(jackstay.workspace), "state": "trusted"}
    ]
    assert jackstay(*words).err == ""
    path.write_text("hitl = false\nmax_turns = 90\n")
    assert "left out" in jackstay(*words).err
    assert jackstay("trust", "--list").out == f"{jackstay.workspace}  changed since it was trusted\n"
    assert jackstay("trust", "--remove", ".").out == f"{jackstay.workspace}: trusted no more\n"
    assert jackstay("trust", "--list").out == "no project is trusted\n"


def test_a_project_that_is_gone_can_be_trusted_no_more(jackstay: Jackstay) -> None:
    project = jackstay.workspace / "old"
    (project / ".jackstay").mkdir(parents=True)
    (project / ".jackstay" / "config.toml").write_text("hitl = false\n")
    assert jackstay("trust", "old").code == 0
    shutil.rmtree(project)
    assert "there is no directory old" in jackstay("trust", "old").err
    assert jackstay("trust", "--remove", "old").out == f"{project}: trusted no more\n"


def test_trusting_nothing_or_what_cannot_be_read_is_refused(jackstay: Jackstay) -> None:
    assert jackstay("trust", ".").code == 2
    jackstay.settings("hitl = maybe\n", project=True)
    assert jackstay("trust", ".").code == 2
    assert jackstay("trust").code == 2


@pytest.mark.parametrize(
    ("level", "more"),
    [("off", ["skill"]), ("strict", ["skill", "discipline_set_phase", "closure_check", "anchor_set"])],
)
def test_the_tools_an_agent_gets_unless_told_otherwise(jackstay: Jackstay, level: str, more: list[str]) -> None:
    with Loopback([{"say": "[HARNESS: casual]\nHello."}]) as server:
        model = f"m@{server.openai_url}"
        assert jackstay("run", "--model", model, "--discipline", level, "say hello").code == 0
        (body,) = server.bodies
    offered = [tool["function"]["name"] for tool in body["tools"]]
    assert offered == ["read", "write", "edit", "ls", "grep", "glob", "bash", "todo", "webfetch", *more]


def test_a_server_that_is_not_there_is_named_and_nothing_else_is_printed(jackstay: Jackstay) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    done = jackstay("run", "--model", f"m@http://127.0.0.1:{port}/v1", "--session", "s1", "go")
    problem = f"127.0.0.1:{port} could not be reached: Connection refused; check that a server runs there"
    again = [f"warning: the model call failed (connection: {problem}); attempt {n} follows" for n in (2, 3)]
    assert (done.code, done.err.splitlines()) == (1, [*again, f"failed: {problem}", "session s1"])
