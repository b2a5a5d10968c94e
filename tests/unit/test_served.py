"""What an endpoint says of itself, from real sockets: vLLM, llama.cpp, hosted lists, hostile replies."""

import asyncio
import gzip
import json
import socket
import ssl
import subprocess
import sys
import threading
import time
from contextlib import contextmanager

import aiohttp
import pytest

from loopback import Loopback
from remeasure.executors.replies import Failure
from remeasure.executors.served import Served, look, wrong_name


def looked(base_url: str, *more, headers: dict[str, str] | None = None) -> Served | Failure:
    async def run():
        async with aiohttp.ClientSession(headers=headers) as session:
            return await look(session, base_url, *more)

    return asyncio.run(run())


def page(document, status: int = 200, **headers: str) -> tuple[int, bytes, dict[str, str]]:
    body = document if isinstance(document, bytes) else json.dumps(document).encode()
    return status, body, headers


def listing(document, status: int = 200, **headers: str) -> Served | Failure:
    """Return what is made of a reply to GET /v1/models."""
    with Loopback() as server:
        server.pages["/v1/models"] = page(document, status, **headers)
        return looked(server.base_url)


# The fields of vLLM's and llama.cpp's replies that are read, and some that are not.
VLLM = {"id": "org/m", "object": "model", "owned_by": "vllm", "root": "/w", "max_model_len": 32768}
LLAMA = {
    "id": "/w/m.gguf",
    "aliases": ["m"],
    "owned_by": "llamacpp",
    "meta": {"n_ctx": 1024, "n_ctx_train": 8192},
}


def test_a_plain_server_tells_its_model_and_nothing_else():
    with Loopback() as server:
        assert looked(server.base_url) == Served(models=("toy",), build=None, context_tokens=None)
        assert looked(server.base_url + "/") == Served(models=("toy",))


def test_vllm_tells_its_version_and_context_length():
    with Loopback() as server:
        server.pages["/v1/models"] = page({"object": "list", "data": [VLLM]})
        server.pages["/version"] = page({"version": "0.19.0"})
        expected = Served(models=("org/m",), build="vllm 0.19.0", context_tokens=32768)
        assert looked(server.base_url) == expected


def test_llamacpp_tells_its_build_and_the_context_of_one_slot_and_not_the_one_it_was_trained_with():
    with Loopback() as server:
        server.pages["/v1/models"] = page({"models": [], "data": [LLAMA]})
        server.pages["/props"] = page(
            {"build_info": "b9999-abc", "default_generation_settings": {"n_ctx": 1024}}
        )
        expected = Served(models=("/w/m.gguf", "m"), build="llama.cpp b9999-abc", context_tokens=1024)
        assert looked(server.base_url) == expected


def test_an_older_llamacpp_tells_the_context_under_props_alone():
    with Loopback() as server:
        server.pages["/v1/models"] = page({"data": [{"id": "m", "meta": {"n_ctx_train": 8192}}]})
        server.pages["/props"] = page({"default_generation_settings": {"n_ctx": 2048}})
        assert looked(server.base_url) == Served(models=("m",), context_tokens=2048)


def test_of_several_models_the_context_of_the_one_that_is_asked_for_counts_else_the_smallest():
    rows = [{"id": "a", "context_length": 9000}, {"id": "b", "context_window": 4000}, {"id": "c"}]
    with Loopback() as server:
        server.pages["/v1/models"] = page({"data": rows})
        assert looked(server.base_url, "a").context_tokens == 9000
        assert looked(server.base_url, "c").context_tokens is None
        assert looked(server.base_url).context_tokens == 4000


def test_an_adapter_has_the_context_of_the_model_below_it():
    rows = [VLLM, {"id": "lora", "owned_by": "vllm", "parent": "org/m", "max_model_len": None}]
    with Loopback() as server:
        server.pages["/v1/models"] = page({"data": rows})
        assert looked(server.base_url, "lora").context_tokens == 32768


def test_a_bare_list_is_a_list_and_null_is_an_empty_one():
    assert listing([{"id": "a"}]) == Served(models=("a",))
    assert listing({"object": "list", "data": None}) == Served(models=())


@pytest.mark.parametrize(
    ("document", "kind"),
    [
        (b"<html>Please log in</html>", "html"),
        (b"", "empty"),
        (b"hello", "not_json"),
        (b'"\xff"', "not_json"),
        (b"[" * 100_000, "not_json"),
        (b'{"data":' * 5_000 + b"1" + b"}" * 5_000, "not_json"),
        (b"null", "no_list"),
        (b"3", "no_list"),
        ({}, "no_list"),
        ({"data": "toy"}, "no_list"),
        ({"data": {"id": "toy"}}, "no_list"),
        ({"data": ["toy"]}, "no_list"),
        ({"data": [{"id": 5}]}, "no_list"),
        ({"data": [{"id": "toy"}, None]}, "no_list"),
        (b" " * 9_000_000, "too_large"),
    ],
)
def test_a_reply_that_is_no_list_of_models_is_one_failure_with_its_class(document, kind):
    found = listing(document)
    assert isinstance(found, Failure) and found.kind == kind
    assert "\n" not in found.message and len(found.message) < 400


def test_odd_values_beside_a_good_name_are_left_out():
    row = {
        "id": "m",
        "aliases": [3, "n"],
        "owned_by": [],
        "max_model_len": True,
        "context_length": -1,
        "meta": 1,
    }
    with Loopback() as server:
        server.pages["/v1/models"] = page({"data": [row]})
        server.pages["/version"] = page({"version": {"a": 1}})
        server.pages["/props"] = page({"build_info": 7, "default_generation_settings": [1]})
        assert looked(server.base_url) == Served(models=("m", "n"))


@pytest.mark.parametrize(
    ("status", "kind"),
    [(401, "auth"), (403, "auth"), (404, "rejected"), (429, "rate_limit"), (503, "server_error")],
)
def test_an_error_status_keeps_its_class(status, kind):
    found = listing({"error": {"message": "no"}}, status)
    assert (found.kind, found.status) == (kind, status) and "no" in found.message


def test_a_redirect_is_not_followed_for_it_might_carry_the_key_away():
    with Loopback() as other, Loopback() as server:
        server.pages["/v1/models"] = page({}, 302, Location=other.base_url + "/models")
        found = looked(server.base_url, headers={"Authorization": "Bearer k"})
    assert found.kind == "redirect" and "leads on to http://127.0.0.1" in found.message


def test_the_key_is_taken_out_of_what_a_server_echoes_before_it_is_cut_to_length():
    def clean(body: bytes) -> bytes:
        return body.replace(b"sesame-sesame", b"[key]")

    with Loopback() as server:
        # The message is cut after 300 characters, in the middle of the key.
        server.pages["/v1/models"] = page({"error": {"message": "x" * 280 + "sesame-sesame"}}, 400)
        assert "sesame" not in looked(server.base_url, None, clean).message
        server.pages["/v1/models"] = page({}, 302, Location="/login?" + "y" * 85 + "sesame-sesame")
        assert "sesame" not in looked(server.base_url, None, clean).message


def test_an_address_where_nobody_listens_is_refused_without_naming_the_port():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        found = looked(f"http://127.0.0.1:{taken.getsockname()[1]}/v1")
    assert found == Failure(kind="connection", message="connection refused")


def test_a_host_name_that_does_not_exist_is_said_so():
    assert looked("http://nowhere.invalid/v1").message == "no such host name"


@contextmanager
def raw(*parts: bytes, pause_s: float = 0.0, context: ssl.SSLContext | None = None):
    """Give the address of a server that answers every connection with these bytes, whatever is asked."""
    listening = socket.create_server(("127.0.0.1", 0))

    def serve(connection: socket.socket) -> None:
        with connection:
            try:
                connection.recv(65536)
                for part in parts:
                    connection.sendall(part)
                    time.sleep(pause_s)
            except OSError:
                pass

    def accept() -> None:
        while True:
            try:
                connection, _ = listening.accept()
            except OSError:
                return
            threading.Thread(target=serve, args=[connection], daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    yield f"http://127.0.0.1:{listening.getsockname()[1]}/v1"
    listening.close()


HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"


@pytest.mark.parametrize(
    ("parts", "kind"),
    [
        ([b"SSH-2.0-OpenSSH_9.2\r\n"], "not_http"),
        ([HEAD + b"X: " + b"a" * 100_000 + b"\r\n\r\n{}"], "not_http"),
        ([HEAD + b"Content-Length: 50\r\n\r\n{}"], "cut_stream"),
        ([HEAD + b"Content-Encoding: gzip\r\nContent-Length: 4\r\n\r\nnope"], "cut_stream"),
        ([b""], "connection"),
    ],
)
def test_what_is_no_proper_http_is_a_failure_with_its_class(parts, kind):
    with raw(*parts) as base_url:
        assert looked(base_url).kind == kind


def test_an_endless_reply_is_left_when_it_is_longer_than_any_list():
    chunk = b"%x\r\n" % 1_000_000 + b"a" * 1_000_000 + b"\r\n"
    with raw(HEAD + b"Transfer-Encoding: chunked\r\n\r\n", *[chunk] * 30) as base_url:
        assert looked(base_url).kind == "too_large"


def test_a_small_reply_that_unpacks_to_gigabytes_is_left_too():
    body = gzip.compress(b" " * 200_000_000, 1)
    head = HEAD + b"Content-Encoding: gzip\r\nContent-Length: %d\r\n\r\n" % len(body)
    with raw(head, body) as base_url:
        assert looked(base_url).kind == "too_large"


def test_plain_http_behind_https_is_named():
    with raw(b"HTTP/1.1 400 Bad Request\r\n\r\n") as base_url:
        found = looked(base_url.replace("http:", "https:"))
    assert found == Failure(kind="connection", message="no TLS spoken there; is it http:// ?")


def test_extra_pages_that_never_come_cost_two_seconds_each_and_no_more():
    with Loopback() as server:
        server.pages |= {"/version": None, "/props": None}
        began = time.monotonic()
        assert looked(server.base_url) == Served(models=("toy",))
        assert 3.9 < time.monotonic() - began < 6.0


def test_a_look_leaves_one_connection_behind():
    # Of idle ones, each that breaks later costs a request a try.
    with Loopback() as server:
        looked(server.base_url)
        assert server.n_connections == 1


@pytest.mark.slow
def test_a_list_that_never_comes_is_a_timeout_after_ten_seconds():
    with Loopback() as server:
        server.pages["/v1/models"] = None
        assert looked(server.base_url) == Failure(kind="timeout", message="no reply within 10 s")


def test_a_wrong_name_is_told_with_the_closest_one_and_at_most_five():
    assert wrong_name("http://h/v1", "qwen", ("qwen3", "llama")) == (
        "http://h/v1: serves 'qwen3', 'llama' and not 'qwen' (did you mean 'qwen3'?); "
        "correct `served_name`, or start that model"
    )
    assert "serves no model at all and not 'a'" in wrong_name("u", "a", ())
    assert "'m4' and 95 more and not" in wrong_name("u", "x", tuple(f"m{i}" for i in range(100)))


def test_a_list_made_to_take_hours_of_comparing_takes_seconds():
    began = time.monotonic()
    text = wrong_name("u", "model-name", tuple(f"model-nam-{i:0150d}" for i in range(20_000)))
    assert time.monotonic() - began < 5.0 and len(text) < 1000


@pytest.mark.models
def test_a_real_llamacpp_server_tells_all_three(sources, tmp_path):
    program = (
        "import sys, time, xllamacpp\n"
        "p = xllamacpp.CommonParams()\n"
        "p.model.path, p.port = sys.argv[1], int(sys.argv[2])\n"
        "p.n_ctx, p.n_parallel, p.verbosity, p.model_alias = 2048, 2, 0, ['tiny']\n"
        "server = xllamacpp.Server(p)\n"
        "sys.stdin.read()\n"
    )
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-c", program, sources / "smollm2-135m-instruct-q4_1.gguf", str(port)]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    with subprocess.Popen(command, stdin=subprocess.PIPE, **quiet) as process:
        deadline = time.monotonic() + 30
        while (
            isinstance(found := looked(f"http://127.0.0.1:{port}/v1"), Failure)
            and time.monotonic() < deadline
        ):
            time.sleep(0.1)
        process.stdin.close()
    # 2,048 tokens in two slots.
    assert "tiny" in found.models and found.build.startswith("llama.cpp ") and found.context_tokens == 1024
