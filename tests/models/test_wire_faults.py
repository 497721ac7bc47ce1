"""Everything that a server can do wrong ends in a typed failure with a readable text, and nothing hangs."""

import socket
import time

import anyio
import pytest

from jackstay.core.errors import ConfigError, ErrorInfo
from jackstay.core.messages import Image, Message, Text, user
from jackstay.models import http
from jackstay.models.faults import Fault, Peer, fault_of, kind_of, read_fault, retry_after
from jackstay.models.http import HttpOptions, Limits, proxy_for
from jackstay.models.registry import open_model
from tests.loopback import Loopback
from tests.models.asking import KEY, QUICK, Heard, ask, ask_once, fail_once, open_at, request

WIRES = pytest.mark.parametrize("wire", ["openai", "anthropic"])
FINE = {"say": "fine"}


@WIRES
@pytest.mark.parametrize(
    ("answer", "kind", "words"),
    [
        ({"say": "half a word", "fault": "half", "at": 3}, "broken_reply", "broke off its answer"),
        ({"say": "half a word", "fault": "quiet_half", "at": 3}, "broken_reply", "in the middle"),
        ({"say": "half a word", "fault": "hang", "at": 3}, "timeout", "sent nothing for 0.3 s"),
        ({"fault": "slow_headers"}, "timeout", "sent nothing for 0.3 s"),
        ({"fault": "junk"}, "broken_reply", "text/html"),
        ({"fault": "empty_body"}, "empty_reply", "without a single byte"),
        ({"fault": "disconnect"}, "connection", "could not be reached"),
        ({"say": "abc", "fault": "error_event", "error": "Overloaded"}, "server", "Overloaded"),
        ({"raw": "data: {not json}\n\n"}, "broken_reply", "{not json}"),
        ({"raw": "data: [1, 2]\n\n"}, "broken_reply", ""),
        ({"raw": "data: " + "[" * 5000 + "\n\n"}, "broken_reply", "[["),
        ({"raw": "upstream went away", "content_type": "text/plain"}, "broken_reply", "upstream went away"),
        ({"raw": "{}", "content_type": "application/json"}, "broken_reply", "{}"),
        ({"raw": ": only a comment\n\n"}, "broken_reply", ""),
        ({"raw": "event: error\ndata: {\"message\": \"slot lost\"}\n\n"}, "server", "slot lost"),
    ],
)  # fmt: skip
def test_a_broken_answer_is_a_typed_failure_and_the_next_request_works(wire, answer, kind, words):
    with Loopback([answer, FINE]) as server:
        model = open_at(server, wire, http=HttpOptions(limits=QUICK))
        info, after = ask(model, request(), request())
        assert isinstance(info, ErrorInfo)
        assert info.kind == kind
        assert info.retryable
        assert info.message.startswith(f"127.0.0.1:{server.port} ")
        assert words in info.message
        assert isinstance(after, Heard)
        assert after.parts == (Text("fine"),)


@WIRES
def test_what_was_heard_before_the_break_was_told(wire):
    with Loopback([{"say": "0123456789abcdef", "step": 4, "fault": "half", "at": 5}]) as server:
        model = open_at(server, wire)
        told: list[str] = []

        async def main() -> None:
            try:
                await model.reply(request(), lambda text, _: told.append(text))
            finally:
                await model.close()

        with pytest.raises(Exception, match="broke off"):
            anyio.run(main)
    assert "0123456789abcdef".startswith("".join(told))
    assert told


@WIRES
def test_an_answer_that_drips_for_ever_ends_at_the_total_limit(wire):
    with Loopback([{"say": "x" * 100_000, "step": 1, "pieces": 1}]) as server:
        limits = Limits(connect_s=5.0, idle_s=5.0, total_s=0.4)
        began = time.monotonic()
        info = fail_once(open_at(server, wire, http=HttpOptions(limits=limits)))
        assert (info.kind, time.monotonic() - began < 4) == ("timeout", True)
        assert "within 0.4 s" in info.message


@WIRES
def test_an_answer_without_an_end_in_size_is_given_up(wire, monkeypatch):
    monkeypatch.setattr(http, "MAX_REPLY_BYTES", 1_000)
    with Loopback([{"say": "x" * 2_000}, {"say": "x" * 2_000, "plain": True}]) as server:
        for info in ask(open_at(server, wire), request(), request()):
            assert isinstance(info, ErrorInfo)
            assert (info.kind, "more than 1000 bytes" in info.message) == ("broken_reply", True)


@WIRES
def test_a_cancelled_request_lets_go_of_its_connection(wire):
    with Loopback([{"say": "abcdefghijkl", "fault": "hang", "at": 4}, FINE]) as server:
        model = open_at(server, wire)

        async def main() -> str:
            with anyio.CancelScope() as scope:
                await model.reply(request(), lambda *_: scope.cancel())
            assert scope.cancelled_caught
            reply = await model.reply(request(), lambda *_: None)
            await model.close()
            return reply.message.text

        assert anyio.run(main) == "fine"
        assert server.connections == 2


@WIRES
@pytest.mark.parametrize("pieces", [1, 2, 3, 7])
def test_characters_and_events_split_anywhere_arrive_whole(wire, pieces):
    answer = {
        "say": "naïve 你好 🙂 end",
        "calls": [{"tool": "ls", "args": {"path": "ü你🙂"}}],
        "pieces": pieces,
    }
    with Loopback([answer]) as server:
        heard = ask_once(open_at(server, wire))
        assert heard.said() == heard.reply.message.text == "naïve 你好 🙂 end"
        assert heard.reply.message.calls[0].args == {"path": "ü你🙂"}


@WIRES
def test_broken_utf8_in_a_text_is_replaced_not_fatal(wire):
    with Loopback([_with_bytes(wire, b"ab\xffcd"), _with_bytes(wire, b"half \\ud83d.")]) as server:
        first, second = ask(open_at(server, wire), request(), request())
        assert isinstance(first, Heard)
        assert isinstance(second, Heard)
        assert (first.said(), second.said()) == ("ab\ufffdcd", "half \ufffd.")


def _with_bytes(wire: str, text: bytes) -> dict[str, bytes]:
    if wire == "openai":
        return {"raw": b'data: {"choices":[{"delta":{"content":"%s"},"finish_reason":"stop"}]}\n\n' % text}
    return {
        "raw": b'data: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":"%s"}}\n\n'
        b'data: {"type":"message_stop"}\n\n' % text
    }


@WIRES
def test_an_answer_in_one_piece_is_read_like_a_stream(wire):
    answer = {"say": "whole", "think": "hm", "calls": [{"tool": "ls", "args": {"path": "a"}, "id": "c1"}]}
    with Loopback([answer, {**answer, "plain": True}]) as server:
        streamed, whole = ask(open_at(server, wire), request(), request())
        assert isinstance(streamed, Heard)
        assert isinstance(whole, Heard)
        assert whole.reply.message.calls == streamed.reply.message.calls
        assert whole.reply.message.text == streamed.reply.message.text
        assert (whole.reply.usage, whole.reply.stop) == (streamed.reply.usage, streamed.reply.stop)
        assert whole.said() == streamed.said()


@WIRES
def test_a_request_with_large_pictures_is_sent(wire):
    data = "QUJD" * 500_000
    with Loopback([FINE]) as server:
        model = open_at(server, wire)
        assert (
            ask_once(model, request(Message("user", (Text("look"), Image("image/png", data))))).said() == "fine"
        )
        assert data in str(server.bodies[0])


# -- connections -------------------------------------------------------------------------------------------


@WIRES
def test_one_connection_serves_all_requests_and_all_models_of_a_loop(wire):
    with Loopback([FINE], cycle=True) as server:
        first, second = open_at(server, wire), open_at(server, wire)

        async def main() -> None:
            for model in (first, first, second, first):
                await model.reply(request(), lambda *_: None)
            await first.close()
            await second.reply(request(), lambda *_: None)  # the other one's connections are still there
            await second.close()

        anyio.run(main)
        assert (len(server.requests), server.connections) == (5, 1)


@WIRES
def test_a_connection_is_used_again_though_its_stream_ended_late(wire):
    with Loopback([{**FINE, "fault": "late_end"}, FINE]) as server:
        ask(open_at(server, wire), request(), request())
        assert server.connections == 1


@WIRES
def test_a_stream_that_stays_open_behind_its_last_event_holds_nothing_up(wire, monkeypatch):
    monkeypatch.setattr(http, "DRAIN_S", 0.1)
    with Loopback([{**FINE, "fault": "open_end"}, FINE]) as server:
        heard = ask(open_at(server, wire), request(), request())
        assert [h.said() for h in heard if isinstance(h, Heard)] == ["fine", "fine"]
        assert server.connections == 2


def test_a_loop_that_ended_without_closing_does_not_disturb_the_next_one():
    with Loopback([FINE], cycle=True) as server:
        model = open_at(server, "openai")

        async def main() -> str:
            reply = await model.reply(request(), lambda *_: None)
            await model.close()
            return reply.message.text

        assert [anyio.run(main), anyio.run(main)] == ["fine", "fine"]
        assert http._pools == {}


@WIRES
def test_a_server_that_is_not_there_is_named(wire):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    model = open_model(f"{wire}:m@http://127.0.0.1:{port}/v1", env={})
    info = fail_once(model)
    assert info.kind == "connection"
    assert info.message.startswith(f"127.0.0.1:{port} could not be reached: ")


def test_a_certificate_is_checked_and_a_ca_file_makes_it_known(repository):
    cert, key = (str(repository / "tests" / "data" / f"loopback-{kind}.pem") for kind in ("cert", "key"))
    with Loopback([FINE], cycle=True, tls=(cert, key)) as server:
        info = fail_once(open_at(server, "openai"))
        assert (info.kind, "could not be trusted" in info.message) == ("connection", True)
        assert ask_once(open_at(server, "openai", http=HttpOptions(ca_file=cert))).said() == "fine"
    assert http._ssl_context(cert) is http._ssl_context(cert)


def test_a_ca_file_that_cannot_be_used_is_a_configuration_error(tmp_path):
    with Loopback([]) as server, pytest.raises(ConfigError, match=r"gone\.pem"):
        open_at(server, "openai", http=HttpOptions(ca_file=str(tmp_path / "gone.pem")))


def test_requests_go_through_the_proxy_that_the_environment_names():
    with Loopback([FINE]) as server:
        env = {"HTTP_PROXY": f"http://127.0.0.1:{server.port}"}
        assert ask_once(open_model("m@http://models.example/v1", env=env)).said() == "fine"
        assert server.requests[0].target == "http://models.example/v1/chat/completions"


def test_a_given_proxy_is_used_even_for_this_machine():
    with Loopback([FINE]) as proxy, Loopback([]) as server:
        options = HttpOptions(proxy=f"http://127.0.0.1:{proxy.port}")
        assert ask_once(open_at(server, "openai", http=options)).said() == "fine"
        assert (len(proxy.requests), len(server.requests)) == (1, 0)


@pytest.mark.parametrize(
    ("url", "env", "proxy"),
    [
        ("https://api.example/v1", {}, None),
        ("https://api.example/v1", {"HTTPS_PROXY": "http://p:1"}, "http://p:1"),
        ("https://api.example/v1", {"HTTPS_PROXY": "http://p:1", "https_proxy": "http://q:2"}, "http://q:2"),
        ("https://api.example/v1", {"HTTP_PROXY": "http://p:1"}, None),
        ("http://api.example/v1", {"ALL_PROXY": "http://p:1"}, "http://p:1"),
        ("http://api.example/v1", {"http_proxy": ""}, None),
        ("http://api.example/v1", {"http_proxy": "http://p:1", "no_proxy": "example"}, None),
        ("http://api.example/v1", {"http_proxy": "http://p:1", "NO_PROXY": " .example , other"}, None),
        ("http://api.example/v1", {"http_proxy": "http://p:1", "no_proxy": "ample"}, "http://p:1"),
        ("http://api.example/v1", {"http_proxy": "http://p:1", "no_proxy": "*"}, None),
        ("http://api.example:81/v1", {"http_proxy": "http://p:1", "no_proxy": "api.example:81"}, None),
        ("http://api.example:81/v1", {"http_proxy": "http://p:1", "no_proxy": "api.example:82"}, "http://p:1"),
        ("http://10.1.2.3/v1", {"http_proxy": "http://p:1", "no_proxy": "10.0.0.0/8"}, None),
        ("http://127.0.0.1:8080/v1", {"http_proxy": "http://p:1"}, None),
        ("http://localhost/v1", {"http_proxy": "http://p:1"}, None),
        ("http://[::1]:80/v1", {"http_proxy": "http://p:1"}, None),
    ],
)
def test_which_proxy_the_environment_means(url, env, proxy):
    assert proxy_for(url, env) == proxy


@WIRES
def test_headers_of_the_user_are_sent_and_one_that_cannot_be_is_refused(wire):
    with Loopback([FINE]) as server:
        ask_once(open_at(server, wire, http=HttpOptions(headers={"X-Team": "harbour"})))
        sent = server.requests[0].headers
        assert sent["x-team"] == "harbour"
        assert sent["authorization" if wire == "openai" else "x-api-key"].endswith(KEY)
        with pytest.raises(ConfigError, match="'X-Bad'"):
            open_at(server, wire, http=HttpOptions(headers={"X-Bad": "a\nb"}))


def test_user_and_password_in_the_address_are_sent_instead_of_the_key():
    with Loopback([FINE]) as server:
        url = server.openai_url.replace("//", "//ann:s3cret-word@")
        model = open_model(f"m@{url}", env={"OPENAI_API_KEY": KEY})
        assert ask_once(model).said() == "fine"
        assert server.requests[0].headers["authorization"] == "Basic YW5uOnMzY3JldC13b3Jk"
        assert "s3cret-word" not in model.name


@WIRES
@pytest.mark.parametrize("url", ["http://", "ftp://host/v1", "http://[::1", "http://host:99999/v1"])
def test_an_address_that_is_none_is_a_configuration_error(wire, url):
    with pytest.raises(ConfigError):
        open_model(f"{wire}:m", env={"OPENAI_BASE_URL": url, "ANTHROPIC_BASE_URL": url,
                                     "OPENAI_API_KEY": "k", "ANTHROPIC_API_KEY": "k"})  # fmt: skip


@WIRES
def test_a_redirect_is_not_followed_because_the_key_would_go_along(wire):
    with Loopback([]) as other:
        answer = {"status": 307, "error": "moved", "headers": {"location": other.openai_url}}
        with Loopback([answer]) as server:
            info = fail_once(open_at(server, wire))
        assert (info.kind, info.status) == ("bad_request", 307)
        assert other.openai_url in info.message
        assert other.requests == []


# -- what refusals mean ------------------------------------------------------------------------------------


@WIRES
def test_a_key_never_shows_in_an_error_and_the_text_is_bounded(wire):
    words = f"Incorrect API key provided: {KEY}. " + "You can find more on this page. " * 200
    with Loopback([{"status": 401, "error": words}]) as server:
        info = fail_once(open_at(server, wire, http=HttpOptions(headers={"X-Token": "Bearer hush-hush-hush"})))
    name = "OPENAI_API_KEY" if wire == "openai" else "ANTHROPIC_API_KEY"
    assert KEY not in info.message
    assert "Incorrect API key provided: [secret]" in info.message
    assert info.message.endswith(f"(check {name})")
    assert len(info.message) < 1_200


@WIRES
@pytest.mark.parametrize(
    "words",
    ["prompt is too long: 210000 tokens > 200000 maximum", "This model's maximum context length is 8192"],
)
def test_overflow_is_told_by_its_words_before_and_inside_the_answer(wire, words):
    told = {"error": {"type": "invalid_request_error", "message": words}}
    answers = [{"status": 400, "error": words}, {"say": "abc", "fault": "error_event", "error": told}]
    with Loopback(answers) as server:
        for info in ask(open_at(server, wire), request(), request()):
            assert isinstance(info, ErrorInfo)
            assert info.kind == "overflow"
            assert words in info.message


NOW = 1_700_000_000.0


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"Retry-After": "3"}, 3.0),
        ({"Retry-After": "0.5"}, 0.5),
        ({"Retry-After": "-4"}, 0.0),
        ({"Retry-After": "Tue, 14 Nov 2023 22:13:50 GMT"}, 30.0),
        ({"Retry-After": "Tue, 14 Nov 2023 22:13:00 GMT"}, 0.0),
        ({"Retry-After": "soon"}, None),
        ({"Retry-After": "inf"}, None),
        ({"Retry-After": "nan"}, None),
        ({"retry-after-ms": "1500", "Retry-After": "9"}, 1.5),
        ({"retry-after-ms": "x", "Retry-After": "9"}, 9.0),
    ],
)
def test_how_long_a_server_asks_to_wait(headers, seconds):
    assert retry_after(headers, NOW) == seconds


@pytest.mark.parametrize(
    ("body", "fault"),
    [
        (b'{"error":{"message":"no","type":"t","code":"c"}}', Fault("no", ("c", "t"))),
        (b'{"error":{"message":"no","code":429}}', Fault("no", (), 429)),
        (b'{"error":{"message":"no","code":"502","type":"x"}}', Fault("no", ("502", "x"), 502)),
        (b'{"error":"model not found"}', Fault("model not found")),
        (b'{"object":"error","message":"no","type":"BadRequestError"}', Fault("no", ("BadRequestError",))),
        (b'{"detail":"Not Found"}', Fault("Not Found")),
        (b'{"detail":[{"msg":"field required"}]}', Fault("[{'msg': 'field required'}]")),
        (b'[{"error":{"code":400,"message":"no","status":"INVALID_ARGUMENT"}}]',
         Fault("no", ("INVALID_ARGUMENT",), 400)),
        (b'{"error":{"message":"Provider returned error","code":400,"metadata":{"raw":"too long"}}}',
         Fault("Provider returned error: too long", (), 400)),
        (b"<h1>Bad gateway</h1>", Fault("<h1>Bad gateway</h1>")),
        (b"", Fault("")),
        (b"\xff\xfe", Fault("\ufffd\ufffd")),
    ],
)  # fmt: skip
def test_the_shapes_in_which_servers_explain_themselves(body, fault):
    assert read_fault(body) == fault


@pytest.mark.parametrize(
    ("status", "fault", "kind"),
    [
        (429, Fault("You exceeded your current quota", ("insufficient_quota",)), "auth"),
        (402, Fault("Insufficient Balance"), "auth"),
        (400, Fault("API key not valid", ("API_KEY_INVALID",)), "auth"),
        (400, Fault("", ("context_length_exceeded", "invalid_request_error")), "overflow"),
        (429, Fault("Rate limit reached: too many tokens per min", ("rate_limit_exceeded",)), "rate_limit"),
        (408, Fault(""), "timeout"),
        (422, Fault(""), "bad_request"),
        (502, Fault(""), "server"),
        (None, Fault("", ("overloaded_error",)), "server"),
        (None, Fault("", ("rate_limit_error",)), "rate_limit"),
        (None, Fault("", ("authentication_error",)), "auth"),
        (None, Fault("", ("invalid_request_error",)), "bad_request"),
        (None, Fault("", ("something new",)), "server"),
    ],
)
def test_the_kind_comes_from_codes_words_and_status(status, fault, kind):
    assert kind_of(status, fault) == kind


def test_an_error_inside_an_answer_keeps_the_status_that_it_names():
    info = Peer("h").told({"error": {"code": 429, "message": "slow down"}}).info
    assert (info.kind, info.status, info.message) == (
        "rate_limit",
        429,
        "h sent an error in its answer: slow down",
    )
    assert fault_of("plain words") == Fault("plain words")


def test_requests_of_other_models_are_not_in_the_way():
    with Loopback([{"fault": "slow_headers"}, FINE]) as server:
        slow = open_at(server, "openai", http=HttpOptions(limits=QUICK))
        quick = open_at(server, "anthropic")
        kinds: list[str] = []

        async def stuck() -> None:
            try:
                await slow.reply(request(user("slow")), lambda *_: None)
            except Exception as problem:
                kinds.append(type(problem).__name__)

        async def main() -> None:
            async with anyio.create_task_group() as group:
                group.start_soon(stuck)
                while not server.requests:  # until the slow one is in line
                    await anyio.lowlevel.checkpoint()
                kinds.append((await quick.reply(request(), lambda *_: None)).message.text)
            await slow.close()
            await quick.close()

        anyio.run(main)
        assert kinds == ["fine", "ModelError"]
