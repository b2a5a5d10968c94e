"""The embedding server: both number formats, batches, token counts, refusals by name, the real weights."""

import base64
import json
import struct
import threading
import urllib.error
import urllib.request

import numpy as np
import pytest

from remeasure import model_server
from remeasure.embedded.embedding_server import Embedder, EmbeddingServer
from remeasure.encoders import EncoderSettings
from remeasure.encoders.text import TextEncoder


class Letters:
    """An encoder of two numbers: how a text's length compares with 3 and 4."""

    dim = 2

    def documents(self, texts):
        rows = np.array([[3.0, 4.0 * len(text)] for text in texts], np.float32)
        return rows / np.linalg.norm(rows, axis=1, keepdims=True)

    def n_tokens(self, text):
        return len(text.split()) + 2


@pytest.fixture
def post():
    """A function that sends a body to a running server and returns status and reply."""
    with EmbeddingServer(0, "letters", Embedder(Letters(), 2)) as server:
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()

        def send(body, path="/v1/embeddings"):
            data = body if isinstance(body, bytes) else json.dumps(body).encode()
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{server.server_port}{path}", data) as reply:
                    return reply.status, json.load(reply)
            except urllib.error.HTTPError as error:
                return error.code, json.load(error)

        yield send
        server.shutdown()


def test_vectors_come_in_order_with_the_tokens_that_were_seen(post):
    status, reply = post({"model": "letters", "input": ["a", "b c d e"]})
    assert status == 200 and reply["model"] == "letters"
    assert [entry["index"] for entry in reply["data"]] == [0, 1]
    assert reply["data"][0]["embedding"] == pytest.approx([0.6, 0.8])  # 3, 4 over 5
    assert reply["usage"] == {"prompt_tokens": 3 + 6, "total_tokens": 9}


def test_base64_holds_the_same_numbers_as_little_endian_floats(post):
    _, reply = post({"model": "letters", "input": "a", "encoding_format": "base64", "dimensions": 2})
    assert struct.unpack("<2f", base64.b64decode(reply["data"][0]["embedding"])) == pytest.approx((0.6, 0.8))


@pytest.mark.parametrize(
    ("body", "status", "said"),
    [
        ({"model": "other", "input": "a"}, 404, "'letters' is"),
        ({"model": "letters"}, 400, "input"),
        ({"model": "letters", "input": []}, 400, "0 texts; expected 1 to 2048"),
        ({"model": "letters", "input": ["a"] * 2049}, 400, "2049 texts"),
        ({"model": "letters", "input": ["a", ""]}, 400, "text 1 is empty"),
        ({"model": "letters", "input": [[1, 2]]}, 400, "input"),
        ({"model": "letters", "input": "a", "dimensions": 3}, 400, "this model's vectors have 2"),
        ({"model": "letters", "input": "a", "truncate": True}, 400, "truncate"),
        ({"model": "letters", "input": "a", "encoding_format": "hex"}, 400, "hex"),
        (b"{", 400, "request body"),
        (b'{"model": "letters", "input": "\xff"}', 400, "request body"),
    ],
)
def test_what_cannot_be_embedded_is_refused_by_name(post, body, status, said):
    found, reply = post(body)
    assert found == status and said in reply["error"]["message"]


def test_only_embeddings_are_served(post):
    assert post({"model": "letters", "messages": []}, "/v1/chat/completions")[0] == 404


def test_the_real_program_gives_the_encoders_own_vectors(sources, tmp_path):
    files = {
        "model": str(sources / "bge-small-en-v1.5.onnx"),
        "tokenizer": str(sources / "bge-small-en-v1.5.tokenizer.json"),
    }
    texts = ["The capital of France is Paris.", "word " * 700, "é"]
    settings = EncoderSettings(unit="passages", model="bge-small-en-v1.5", max_tokens=512)
    expected = TextEncoder(settings, threads=1, **files).documents(texts)
    words = model_server.command("serve_embedder.py", "m", files, {"threads": 2, "max-tokens": 512})
    with model_server.running(words, "m", tmp_path / "server.log", 60) as server:
        body = json.dumps({"model": "m", "input": texts}).encode()
        with urllib.request.urlopen(f"{server.base_url}/embeddings", body) as reply:
            told = json.load(reply)
    found = np.array([entry["embedding"] for entry in told["data"]], np.float32)
    assert np.array_equal(found, expected)
    assert np.linalg.norm(found, axis=1) == pytest.approx(1, abs=1e-6)
    # Six words and a full stop, what fits of the long text, one letter; each with its two ends.
    assert told["usage"]["prompt_tokens"] == (7 + 2) + 512 + (1 + 2)
