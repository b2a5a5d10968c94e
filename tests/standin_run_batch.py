"""A stand-in for ``vllm run-batch``: its command line, its files, its ends, without a model.

It behaves as version 0.32 does, which was run beside it: status 0 however many requests fail, errors as
``{"error": {…}}`` beside an empty body, status 1 and no results where a line cannot be read. Some versions
write results as they come, others at the end: ``--ends`` says where it ends.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from urllib.parse import unquote, urlsplit


def envelope(custom_id: str, status: int, body: dict | None, error: dict | None) -> str:
    response = {"status_code": status, "request_id": "vllm-batch-1", "body": body}
    return json.dumps({"id": "vllm-1", "custom_id": custom_id, "response": response, "error": error}) + "\n"


def answered(line: dict, served_name: str) -> str:
    """Return the result line of a request; the text tells what its last message holds."""
    content = line["body"]["messages"][-1]["content"]
    parts = [{"type": "text", "text": content}] if isinstance(content, str) else content
    words = [part["text"] if part["type"] == "text" else seen(part["image_url"]["url"]) for part in parts]
    choice = {
        "index": 0,
        "message": {"role": "assistant", "content": "answer to " + " ".join(words)},
        "finish_reason": "stop",
    }
    body = {
        "id": "chatcmpl-1",
        "model": served_name,
        "choices": [choice],
        "system_fingerprint": "vllm-0.32.0-9a685a77",
        "usage": {"prompt_tokens": 2, "total_tokens": 5, "completion_tokens": 3},
    }
    return envelope(line["custom_id"], 200, body, None)


def seen(url: str) -> str:
    """Return what stands in a local file, as ``[…]``."""
    assert url.startswith("file:///")
    return f"[{Path(unquote(urlsplit(url).path)).read_bytes()[8:].decode()}]"


def main() -> int:
    parser = argparse.ArgumentParser(allow_abbrev=False)
    parser.add_argument("command", choices=["run-batch"])
    parser.add_argument("-i", type=Path, required=True)
    parser.add_argument("-o", type=Path, required=True)
    parser.add_argument("--model", required=True)
    parser.add_argument("--served-model-name", required=True)
    parser.add_argument("--allowed-local-media-path", type=Path, required=True)
    parser.add_argument("--notes", type=Path, help="file that gets what a test wants to know")
    parser.add_argument("--results", type=Path, help="results that are copied instead of made")
    parser.add_argument("--max-model-len", type=int)
    parser.add_argument("--enforce-eager", action="store_true")
    parser.add_argument("--all-fail", action="store_true")
    parser.add_argument("--n-lines", type=int, default=10**9, help="how many requests get a line")
    parser.add_argument(
        "--ends",
        choices=["well", "without results", "in the middle", "at a bad line", "never"],
        default="well",
    )
    args = parser.parse_args()
    engine = subprocess.Popen(["sleep", "600"])
    if args.notes:
        found = {"argv": sys.argv[1:], "environment": dict(os.environ), "pids": [os.getpid(), engine.pid]}
        args.notes.with_suffix(".part").write_text(json.dumps(found))
        os.replace(args.notes.with_suffix(".part"), args.notes)
    try:
        return run(args)
    finally:
        engine.kill()
        engine.wait()


def run(args: argparse.Namespace) -> int:
    print("INFO vLLM batch processing API version 0.32.0", file=sys.stderr)
    if args.ends == "at a bad line":
        print("pydantic_core.ValidationError: 1 validation error for BatchRequestInput", file=sys.stderr)
        return 1
    if args.ends == "without results":
        return 0
    with open(args.o, "w") as output:
        for number, text in enumerate(args.i.read_text().splitlines()):
            line = json.loads(text)
            if number == args.n_lines:
                break
            error = {"message": "EngineCore died", "type": "InternalServerError", "param": None, "code": 500}
            if args.all_fail:
                output.write(envelope(line["custom_id"], 500, None, {"error": error}))
            elif not args.results:
                output.write(answered(line, args.served_model_name))
            output.flush()
            print(f"Running batch: {number}% Completed | {number}/7 [00:01<00:02, 1.0req/s]", file=sys.stderr)
        if args.results:
            output.write(args.results.read_text())
        if args.ends == "in the middle":
            output.write('{"id": "vllm-1", "custom_')
            output.flush()
            print("torch.OutOfMemoryError: CUDA out of memory", file=sys.stderr, flush=True)
            return 1
    if args.ends == "never":
        time.sleep(600)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
