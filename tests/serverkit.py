"""A model program that runs, and how a test asks it."""

import base64
import contextlib
import json
import urllib.error
import urllib.request

from remeasure import model_server


def url(data: bytes) -> dict:
    return {
        "type": "image_url",
        "image_url": {"url": "data:image/png;base64," + base64.b64encode(data).decode()},
    }


def text(words: str) -> dict:
    return {"type": "text", "text": words}


@contextlib.contextmanager
def served(program, tmp_path, sources, files, **options):
    """A running server program; gives a function that asks it."""
    paths = {option: str(sources / name) for option, name in files.items()}
    paths |= {option: str(path) for option, path in options.pop("made", {}).items()}
    words = model_server.command(program, "m", paths, {"threads": 1, **options})
    with model_server.running(words, "m", tmp_path / "server.log", 60) as server:

        def ask(content, **more):
            body = {
                "model": "m",
                "messages": [{"role": "user", "content": content}],
                "temperature": 0.0,
                **more,
            }
            request = urllib.request.Request(
                f"{server.base_url}/chat/completions",
                json.dumps(body).encode(),
                {"Content-Type": "application/json"},
            )
            try:
                with urllib.request.urlopen(request, timeout=100) as reply:
                    return json.load(reply)
            except urllib.error.HTTPError as error:
                return json.load(error) | {"status": error.code}

        yield ask


def said(reply) -> str:
    return reply["choices"][0]["message"]["content"]
