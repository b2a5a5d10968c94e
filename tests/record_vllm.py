"""Record what a real vLLM says into ``tests/data/vllm``: ``python tests/record_vllm.py PYTHON_WITH_VLLM``.

The recordings let the tests of every day read real shapes (``unit/test_recorded_replies.py``).
"""

import base64
import json
import os
import subprocess
import sys
import tempfile
import urllib.error
import urllib.request
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "scripts")]

import real_vllm  # noqa: E402
from remeasure import model_server, requests  # noqa: E402

OUT = HERE / "data" / "vllm"
# One red pixel.
PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR4nGP4z8AAAAMBAQDJ/pLvAAAAAElFTkSuQmCC"
)
SHAPE = {"type": "json_schema", "json_schema": {"name": "verdict", "schema": {"enum": ["yes", "no"]}}}


def picture(data: bytes) -> dict:
    url = f"data:image/png;base64,{base64.b64encode(data).decode()}"
    return {"type": "image_url", "image_url": {"url": url}}


def bodies() -> dict[str, dict]:
    """Return the wire bodies to send, by the name of what they show."""
    cases = {
        "stopped": ("Hello", {"stop": ["\\"], "thinking": False}),
        "cut_off": ("Hello", {}),
        "image": ([picture(PNG)], {}),
        "schema": ("Hello", {"max_tokens": 9, "response_format": SHAPE, "logprobs": True, "top_logprobs": 1}),
        "too_long": ("x" * 600, {}),
        "too_many_images": ([picture(PNG)] * 3, {}),
        "no_image": ([picture(b"nothing")], {}),
        "unknown_model": ("Hello", {"model": "other"}),
        "wrong_number": ("Hello", {"top_p": 7}),
    }
    dialect = requests.dialect_of("vllm")
    found = {}
    for name, (content, words) in cases.items():
        body = {"messages": [{"role": "user", "content": content}], "max_tokens": 5, "temperature": 0.0}
        model = words.pop("model", "slug")
        found[name] = requests.translate(body | words, dialect, model, None)
    return found


def post(url: str, body: dict) -> tuple[int, str]:
    request = urllib.request.Request(url, json.dumps(body).encode(), {"Content-Type": "application/json"})
    try:
        with urllib.request.urlopen(request, timeout=100) as reply:
            return reply.status, reply.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def record_server(folder: Path) -> list[dict]:
    words = model_server.command("serve_vllm.py", "slug", {"model": "model"}, real_vllm.OPTIONS)
    with model_server.running(words, "slug", folder / "log", 300) as server:
        pages = [(path, *server.get(path)) for path in ("/version", "/v1/models", "/health", "/v1/none")]
        found = [{"name": path, "status": status, "body": body.decode()} for path, status, body in pages]
        for name, body in bodies().items():
            status, text = post(f"{server.base_url}/chat/completions", body)
            found.append({"name": name, "status": status, "body": text})
    return found


def record_batch(folder: Path) -> str:
    lines = [
        {"custom_id": name, "method": "POST", "url": "/v1/chat/completions", "body": body}
        for name, body in bodies().items()
    ]
    (folder / "in.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    options = model_server.command("x", "x", {}, real_vllm.OPTIONS)[4:]
    words = ["vllm", "run-batch", "-i", "in.jsonl", "-o", "out.jsonl", "--model", "model"]
    subprocess.run([*words, "--served-model-name", "slug", *options], check=True)
    return (folder / "out.jsonl").read_text()


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        bin_folder, _ = real_vllm.install(folder, Path(sys.argv[1]))
        os.environ["PATH"] = f"{bin_folder}{os.pathsep}{os.environ['PATH']}"
        os.chdir(folder)  # so that the model's place in the replies is no machine's
        real_vllm.build_model(folder / "model", bin_folder)
        OUT.mkdir(exist_ok=True)
        replies = "".join(json.dumps(reply, sort_keys=True) + "\n" for reply in record_server(folder))
        (OUT / "replies.jsonl").write_text(replies)
        (OUT / "run_batch.jsonl").write_text(record_batch(folder))


if __name__ == "__main__":
    main()
