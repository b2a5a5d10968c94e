"""A stand-in for the program ``vllm``: its command line, its processes and its pages, without a model.

Like vLLM it starts an engine that lives on when only the first process is killed.
"""

import argparse
import json
import os
import socket
import subprocess
import sys
import time
from pathlib import Path

from loopback import Loopback

ENGINE = "import time; time.sleep(600)"
STUBBORN = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); "


def put(folder: Path, name: str, found) -> None:
    """Write a JSON file whole, for a test that looks for it."""
    (folder / f".{name}").write_text(json.dumps(found))
    os.replace(folder / f".{name}", folder / name)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("command", choices=["serve"])
    parser.add_argument("model")
    parser.add_argument("--host", required=True)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--served-model-name", required=True)
    parser.add_argument(
        "--notes", type=Path, required=True, help="folder that gets what a test wants to know"
    )
    parser.add_argument("--health-after", type=float, default=0.0)
    parser.add_argument("--list-name")
    parser.add_argument("--say", type=Path, help="file whose bytes are said before the end, with status 3")
    parser.add_argument("--die-after", type=int, default=0, help="end in the middle of the n-th call")
    parser.add_argument("--wait-for", type=Path, help="do not listen before this file is there")
    parser.add_argument("--stubborn", action="store_true", help="the engine does not hear SIGTERM")
    parser.add_argument("--max-model-len", type=int)
    parser.add_argument("--murmur", help="a line that is said before it listens, and it goes on")
    parser.add_argument("--enable-lora", action="store_true")
    args = parser.parse_args()
    engine = subprocess.Popen([sys.executable, "-c", (STUBBORN if args.stubborn else "") + ENGINE])
    put(args.notes, "pids", [os.getpid(), engine.pid])
    put(args.notes, "environment", dict(os.environ))
    put(args.notes, "words", sys.argv[1:])
    while args.wait_for and not args.wait_for.exists():
        time.sleep(0.02)
    if args.say:
        sys.stdout.buffer.write(args.say.read_bytes())
        sys.stdout.flush()
        os._exit(3)
    socket.create_server((args.host, args.port)).close()  # a port that is taken ends it at once
    if args.murmur:
        print(args.murmur, flush=True)
    server = Loopback(args.list_name or args.served_model_name, port=args.port, keep=False)
    server.health_after = args.health_after
    server.calls_itself("vllm", "0.0.0")

    def behave(prompt: str, nth: int) -> str:
        if args.die_after and server.n_calls >= args.die_after:
            print("torch.OutOfMemoryError: CUDA out of memory", file=sys.stderr, flush=True)
            os._exit(1)
        return "ok"

    server.behave = behave
    with server:
        while True:
            time.sleep(60)


if __name__ == "__main__":
    main()
