"""An embedding server that knows its answers: what it was asked before it says at once (``ragbench.py``).

In front of a real one, so that what remains of a system's time is its own. Both systems ask the same texts in
all rounds but the first.
"""

import base64
import json
import threading
import time
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np


class Known:
    """The server, in a thread of its own; ``busy_s`` is what the real one took since it was last set to 0."""

    def __init__(self, base_url: str) -> None:
        self._base_url, self._vectors = base_url, {}
        self.remembers = True
        self.n_texts, self.busy_s = 0, 0.0
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def do_POST(self):
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                data = outer.answer(body)
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *_):
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        self.base_url = f"http://127.0.0.1:{self._server.server_port}/v1"

    def answer(self, body: dict) -> bytes:
        """Return the reply to a request, vectors in base64 unless numbers are asked for."""
        texts = [body["input"]] if isinstance(body["input"], str) else body["input"]
        self.n_texts += len(texts)
        known = self._vectors if self.remembers else {}
        new = [text for text in dict.fromkeys(texts) if text not in known]
        if new:
            known = known | self._asked(body["model"], new)
            if self.remembers:
                self._vectors.update(known)
        told = [known[text] for text in texts]
        if body.get("encoding_format") != "base64":
            told = [np.frombuffer(base64.b64decode(one), "<f4").tolist() for one in told]
        data = [{"object": "embedding", "index": n, "embedding": one} for n, one in enumerate(told)]
        usage = {"prompt_tokens": len(texts), "total_tokens": len(texts)}
        return json.dumps({"object": "list", "data": data, "model": body["model"], "usage": usage}).encode()

    def _asked(self, model: str, texts: list[str]) -> dict[str, str]:
        body = json.dumps({"model": model, "input": texts, "encoding_format": "base64"}).encode()
        began = time.perf_counter()
        with urllib.request.urlopen(f"{self._base_url}/embeddings", body) as reply:
            data = json.load(reply)["data"]
        self.busy_s += time.perf_counter() - began
        return {text: entry["embedding"] for text, entry in zip(texts, data, strict=True)}
