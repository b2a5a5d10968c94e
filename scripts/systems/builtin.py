"""Adapter of the built-in system: hybrid search and a model that calls tools (``systems.contract``)."""

import asyncio
import json
import os
import sys
import threading
from pathlib import Path
from typing import IO, Any

import msgspec

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from remeasure.systems.builtin.failing import Failed  # noqa: E402
from remeasure.systems.builtin.system import System  # noqa: E402

DATABASE_CODE = ("remeasure.systems.builtin.ingesting",)
"""What decides what is in a database: a change of anything else ingests nothing again."""


async def reply_to(system: System, line: bytes) -> dict[str, Any]:
    """Return the reply to a command as it came in."""
    try:
        command = msgspec.json.decode(line, type=dict[str, Any])
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        return {"ok": False, "kind": "fatal", "error": f"a command is no JSON object: {error}"}
    reply = {"id": command["id"]} if "id" in command else {}
    try:
        return {"ok": True, **reply, **await system.do(command)}
    except Failed as error:
        told = {"ok": False, **reply, "kind": error.kind, "error": " ".join(str(error).split())}
        return {**told, "trace": error.trace} if hasattr(error, "trace") else told
    except KeyError as error:
        return {"ok": False, **reply, "kind": "fatal", "error": f"{command['do']}: {error} is missing"}


async def serve(commands: IO[bytes], replies: IO[bytes]) -> None:
    """Answer commands until there are none."""
    system = System()
    while line := await asyncio.to_thread(commands.readline):
        reply = await reply_to(system, line)
        replies.write(json.dumps(reply, ensure_ascii=False).encode("utf-8", "replace") + b"\n")
        replies.flush()


def main() -> int:
    """Talk over standard input and output; what libraries print goes to standard error."""
    replies = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    # It takes seconds to import, and whoever starts us has servers to wait for.
    threading.Thread(target=__import__, args=("lancedb",)).start()
    asyncio.run(serve(sys.stdin.buffer, replies))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
