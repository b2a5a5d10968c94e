"""The chat protocol over HTTP, and when a server ends."""

import contextlib
import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

import toy_server
from remeasure.embedded.chat_server import ChatServer
from remeasure.fingerprint import SCRIPTS

PROGRAM = Path(toy_server.__file__)


@pytest.fixture
def server():
    with contextlib.closing(ChatServer(0, "toy", toy_server.Parrot())) as found:
        found.close = found.server_close
        thread = threading.Thread(target=found.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield found
        found.shutdown()
        thread.join()


def call(port, method, path, body=None, headers=()):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    with contextlib.closing(connection):
        connection.request(method, path, body, dict(headers))
        reply = connection.getresponse()
        return reply.status, json.loads(reply.read())


def say(port, words, model="toy", **more):
    body = {"model": model, "messages": [{"role": "user", "content": words}], **more}
    return call(port, "POST", "/v1/chat/completions", json.dumps(body).encode())


def test_health_and_models_are_told(server):
    assert call(server.server_port, "GET", "/health") == (200, {"status": "ok"})
    status, models = call(server.server_port, "GET", "/v1/models")
    assert (status, [model["id"] for model in models["data"]]) == (200, ["toy"])


def test_a_completion_has_text_finish_and_usage(server):
    status, reply = say(server.server_port, "grüß Gott")
    assert status == 200
    assert reply["choices"] == [
        {"index": 0, "message": {"role": "assistant", "content": "grüß Gott"}, "finish_reason": "stop"}
    ]
    assert reply["usage"] == {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
    assert reply["model"] == "toy"


def test_equal_questions_get_equal_replies(server):
    assert say(server.server_port, "hello") == say(server.server_port, "hello")


@pytest.mark.parametrize(
    ("words", "more", "status", "text"),
    [
        ("hello", {"model": "other"}, 404, "'other' is not served here, 'toy' is"),
        ("refuse", {}, 400, "no thanks"),
        ("hello", {"min_p": 0.1}, 400, "min_p"),
        ("hello", {"response_format": {"type": "json_object"}}, 400, "response_format: this model cannot"),
        ("hello", {"logprobs": True}, 400, "logprobs: this model cannot do that"),
        ("hello", {"top_logprobs": 2}, 400, "top_logprobs needs logprobs: true"),
        ("hello", {"logprobs": True, "top_logprobs": 21}, 400, "top_logprobs must be between 0 and 20"),
        ("hello", {"response_format": {"type": "json_schema"}}, 400, "missing required field `json_schema`"),
        (
            "hello",
            {"response_format": {"type": "json_schema", "json_schema": {"name": "x"}}},
            400,
            "missing required field `schema`",
        ),
        ("break", {}, 500, "ZeroDivisionError: broken"),
    ],
)
def test_errors_come_in_the_form_of_the_protocol(server, words, more, status, text):
    found, reply = say(server.server_port, words, **more)
    assert found == status
    assert text in reply["error"]["message"]
    assert call(server.server_port, "GET", "/health")[0] == 200


def test_words_that_ask_for_nothing_are_taken(server):
    more = {"response_format": {"type": "text"}, "logprobs": False}
    assert say(server.server_port, "hello", **more)[0] == 200


def test_unknown_paths_are_404(server):
    assert call(server.server_port, "GET", "/v1/nothing")[0] == 404
    assert call(server.server_port, "POST", "/v1/embeddings", b"{}")[0] == 404


def test_a_body_without_or_with_a_huge_length_is_not_read(server):
    def head(length):
        with socket.create_connection(("127.0.0.1", server.server_port), timeout=10) as line:
            line.sendall(b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\n" + length + b"\r\n")
            return line.recv(100).split()[1]

    assert head(b"") == b"411"
    assert head(b"Content-Length: -1\r\n") == b"411"
    assert head(b"Content-Length: 99999999999\r\n") == b"413"


def test_many_callers_at_once_each_get_their_own_answer(server):
    found = {}

    def one(number):
        found[number] = say(server.server_port, f"word {number}")[1]["choices"][0]["message"]["content"]

    threads = [threading.Thread(target=one, args=(number,)) for number in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == {number: f"word {number}" for number in range(16)}


def start(port_file, *before, **options):
    words = [sys.executable, str(PROGRAM), "--port", "0", "--port-file", str(port_file)]
    environment = os.environ | {"PYTHONPATH": str(SCRIPTS)}
    return subprocess.Popen(
        [*before, *words, "--served-name", "toy", "--threads", "1"], env=environment, **options
    )


def port_of(port_file, process, limit_s=20):
    deadline = time.monotonic() + limit_s
    while not port_file.exists():
        assert process.poll() is None and time.monotonic() < deadline
        time.sleep(0.02)
    return int(port_file.read_text())


def gone(port, limit_s=5):
    deadline = time.monotonic() + limit_s
    while time.monotonic() < deadline:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            return True
        time.sleep(0.05)
    return False


def test_a_server_writes_its_port_when_ready_and_ends_with_sigterm(tmp_path):
    process = start(tmp_path / "port", stdin=subprocess.DEVNULL, stderr=subprocess.PIPE)
    port = port_of(tmp_path / "port", process)
    assert say(port, "hello")[0] == 200
    process.send_signal(signal.SIGTERM)
    _, log = process.communicate(timeout=10)
    assert process.returncode == 0
    assert b"1 requests answered, 0 refused" in log


def test_a_server_ends_when_its_input_ends(tmp_path):
    process = start(tmp_path / "port", stdin=subprocess.PIPE, stderr=subprocess.DEVNULL)
    port_of(tmp_path / "port", process)
    process.stdin.close()
    assert process.wait(10) == 0


def test_a_server_ends_when_its_parent_is_killed(tmp_path):
    # A shell that starts the server and waits; it is killed, so it can tell the server nothing.
    keep = ["sh", "-c", '"$@" & wait', "sh"]
    parent = start(tmp_path / "port", *keep, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    port = port_of(tmp_path / "port", parent)
    parent.kill()
    parent.wait(10)
    assert gone(port)


def test_a_taken_port_is_one_line_that_says_so(tmp_path, capsys):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        words = [
            "--port",
            str(port),
            "--port-file",
            str(tmp_path / "port"),
            "--served-name",
            "m",
            "--threads",
            "1",
        ]
        assert toy_server.main(words) == 2
    assert f"--port {port}: cannot listen" in capsys.readouterr().err
