"""An embedding server that knows its answers: what it was asked before it says at once (``ragbench.py``).

In front of a real one, so that what remains of a system's time is its own.
"""

import base64
import json
import threading
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np


class Known:
    """The server, in a thread of its own; it learns all the time, and uses it once it ``remembers``."""

    def __init__(self, base_url: str) -> None:
        self._base_url, self._vectors = base_url, {}
        self.remembers = False
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
        known = self._vectors if self.remembers else {}
        new = [text for text in dict.fromkeys(texts) if text not in known]
        if new:
            self._vectors.update(self._asked(body["model"], new))
        told = [self._vectors[text] for text in texts]
        if body.get("encoding_format") != "base64":
            told = [np.frombuffer(base64.b64decode(one), "<f4").tolist() for one in told]
        data = [{"object": "embedding", "index": n, "embedding": one} for n, one in enumerate(told)]
        usage = {"prompt_tokens": len(texts), "total_tokens": len(texts)}
        return json.dumps({"object": "list", "data": data, "model": body["model"], "usage": usage}).encode()

    def _asked(self, model: str, texts: list[str]) -> dict[str, str]:
        body = json.dumps({"model": model, "input": texts, "encoding_format": "base64"}).encode()
        with urllib.request.urlopen(f"{self._base_url}/embeddings", body) as reply:
            data = json.load(reply)["data"]
        return {text: entry["embedding"] for text, entry in zip(texts, data, strict=True)}
