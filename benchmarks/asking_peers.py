"""The clients that ``asking.py`` compares, each as a user would write it, each in a process of its own.

One client per process, kept for all requests; no debug logging. Prints one JSON line with what the client
saw. The process is timed from outside and by the server, so that nothing here needs a clock.
"""

import argparse
import asyncio
import json
import logging
import sys
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

Statuses = Counter[str]
NAME = "toy"


def bodies(path: Path) -> list[dict[str, Any]]:
    """Return the bodies of a request file, with the name that the server knows."""
    with open(path, "rb") as lines:
        return [json.loads(line)["body"] | {"model": NAME} for line in lines]


async def share(work: list[Any], in_flight: int, ask: Callable[[Any], Awaitable[str]]) -> Statuses:
    """Ask all with a fixed number of workers; the least that a loop can do."""
    statuses: Statuses = Counter()
    left = iter(work)

    async def worker() -> None:
        for one in left:
            statuses[await ask(one)] += 1

    await asyncio.gather(*[worker() for _ in range(in_flight)])
    return statuses


async def _post(
    base_url: str, work: list[Any], pieces: Callable[[Any], list[bytes]], in_flight: int
) -> Statuses:
    """Post what ``pieces`` makes of each, and read the reply: a bare aiohttp loop."""
    import aiohttp

    connector, timeout = aiohttp.TCPConnector(limit=0), aiohttp.ClientTimeout(total=None)
    headers = {"Content-Type": "application/json"}
    async with aiohttp.ClientSession(connector=connector, timeout=timeout, headers=headers) as session:

        async def sent(parts: list[bytes]) -> AsyncIterator[bytes]:
            for part in parts:
                yield part

        async def ask(one: Any) -> str:
            parts = pieces(one)
            more = None if len(parts) == 1 else {"Content-Length": str(sum(map(len, parts)))}
            data = parts[0] if len(parts) == 1 else sent(parts)
            async with session.post(f"{base_url}/chat/completions", data=data, headers=more) as response:
                await response.read()
                return str(response.status)

        return await share(work, in_flight, ask)


def floor(base_url: str, path: Path, in_flight: int) -> Statuses:
    """Post bytes that are ready and read the reply; look at neither."""
    payloads = [json.dumps(body).encode() for body in bodies(path)]
    return asyncio.run(_post(base_url, payloads, lambda payload: [payload], in_flight))


def base64_of() -> Callable[[bytes], bytes]:
    """Return the fastest base64 that is installed: pybase64 uses vector instructions."""
    try:
        import pybase64
    except ImportError:
        import base64

        return base64.b64encode
    return pybase64.b64encode


def image_floor(base_url: str, path: Path, in_flight: int) -> Statuses:
    """Per request one read, one SHA-256, one base64 and one sending in pieces, and nothing else."""
    import hashlib
    import os
    import zipfile

    from remeasure import images

    work = [(body, images.from_url(_first_url(body))) for body in bodies(path)]
    store_path, coded = path.parent / work[0][1].path, base64_of()
    with zipfile.ZipFile(store_path) as store:
        # A stored member lies after its local header: 30 bytes and the name, where nothing extra is written.
        places = {
            info.filename: (info.header_offset + 30 + len(info.filename), info.file_size)
            for info in store.infolist()
        }
    file = os.open(store_path, os.O_RDONLY)

    def pieces(job: tuple[dict[str, Any], Any]) -> list[bytes]:
        body, ref = job
        start, size = places[ref.member]
        data = os.pread(file, size, start)
        if hashlib.sha256(data).hexdigest() != ref.sha256:
            raise ValueError(f"{ref.member}: other content")
        before, after = json.dumps(body).encode().split(_first_url(body).encode())
        return [before + b"data:image/png;base64,", coded(data), after]

    return asyncio.run(_post(base_url, work, pieces, in_flight))


def _first_url(body: dict[str, Any]) -> str:
    return next(part["image_url"]["url"] for part in body["messages"][0]["content"] if "image_url" in part)


def openai_plain(base_url: str, path: Path, in_flight: int) -> Statuses:
    """``AsyncOpenAI`` as its README shows it (on httpx2), ``asyncio.gather`` and a semaphore."""
    return asyncio.run(_openai(base_url, path, in_flight, None))


def openai_aiohttp(base_url: str, path: Path, in_flight: int) -> Statuses:
    """The same on the package's aiohttp transport, ``openai[aiohttp]``."""
    import openai

    return asyncio.run(_openai(base_url, path, in_flight, openai.DefaultAioHttpClient()))


async def _openai(base_url: str, path: Path, in_flight: int, http_client: Any) -> Statuses:
    import openai

    gate = asyncio.Semaphore(in_flight)
    async with openai.AsyncOpenAI(base_url=base_url, api_key="none", http_client=http_client) as client:

        async def ask(body: dict[str, Any]) -> str:
            async with gate:
                completion = await client.chat.completions.create(**body)
            return completion.choices[0].finish_reason

        return Counter(await asyncio.gather(*[ask(body) for body in bodies(path)]))


def inspect_ai(base_url: str, path: Path, in_flight: int) -> Statuses:
    """A task of inspect-ai over its OpenAI-compatible provider, log file written as always."""
    from inspect_ai import Task, eval
    from inspect_ai.dataset import MemoryDataset, Sample
    from inspect_ai.model import GenerateConfig, get_model
    from inspect_ai.solver import generate

    samples = [
        Sample(id=str(number), input=body["messages"][0]["content"][0]["text"])
        for number, body in enumerate(bodies(path), start=1)
    ]
    config = GenerateConfig(max_connections=in_flight, max_tokens=200, temperature=0.0)
    model = get_model(f"openai-api/loopback/{NAME}", base_url=base_url, api_key="none", config=config)
    task = Task(dataset=MemoryDataset(samples), solver=generate(), scorer=None)
    found = eval(
        task, model=model, display="none", log_dir=str(path.parent / "inspect"), score=False,
        max_samples=in_flight,
    )  # fmt: skip
    return Counter(sample.output.stop_reason for sample in found[0].samples or [])


def lm_eval(base_url: str, path: Path, in_flight: int) -> Statuses:
    """``local-chat-completions`` of lm-evaluation-harness with a task of one's own."""
    import lm_eval as harness

    questions = path.parent / "questions.jsonl"
    with open(questions, "w", encoding="utf-8") as lines:
        for body in bodies(path):
            lines.write(json.dumps({"question": body["messages"][0]["content"][0]["text"]}) + "\n")
    task = {
        "task": "loopback",
        "dataset_path": "json",
        "dataset_kwargs": {"data_files": {"test": str(questions)}, "cache_dir": str(path.parent / "cache")},
        "test_split": "test",
        "output_type": "generate_until",
        "doc_to_text": "question",
        "doc_to_target": "question",
        "generation_kwargs": {"until": ["\n\n"], "max_gen_toks": 200, "temperature": 0.0},
        "metric_list": [{"metric": "exact_match"}],
    }
    found = harness.simple_evaluate(
        model="local-chat-completions",
        model_args={
            "model": NAME,
            "base_url": f"{base_url}/chat/completions",
            "num_concurrent": in_flight,
            "max_retries": 3,
        },
        tasks=[task],
        apply_chat_template=True,
        bootstrap_iters=0,
    )
    return Counter("answered" if row["resps"][0][0] else "empty" for row in found["samples"]["loopback"])


class _Forgetful:
    """A keeper that counts statuses and keeps nothing."""

    def __init__(self) -> None:
        self.statuses: Statuses = Counter()

    def sent(self, key: str) -> None:
        """See ``remeasure.executors.Keeper``."""

    def keep(self, entry: Any) -> None:
        """See ``remeasure.executors.Keeper``."""
        self.statuses[entry.status] += 1

    def enough(self) -> str | None:
        """See ``remeasure.executors.Keeper``."""
        return None


def ours_kept_nowhere(base_url: str, path: Path, in_flight: int) -> Statuses:
    """Our requests, identities and executor; no journal and no responses."""
    from remeasure import collecting, executors, requests

    settings = collecting.read_executor(str(path.parent / "executor.json"))
    digest = requests.identity_digest({})
    keeper = _Forgetful()
    calls = [
        executors.Call(
            key=requests.answer_key(request.body, "toy", digest, 0),
            custom_id=request.custom_id,
            body=request.body,
        )
        for request in requests.read_requests(path, "toy")
    ]
    with executors.opened(settings, NAME, path.parent, path.parent) as executor:
        executor.run(iter(calls), keeper)
    return keeper.statuses


PEERS = {
    "floor": floor,
    "image_floor": image_floor,
    "openai": openai_plain,
    "openai_aiohttp": openai_aiohttp,
    "inspect_ai": inspect_ai,
    "lm_eval": lm_eval,
    "ours_kept_nowhere": ours_kept_nowhere,
}


def main() -> None:
    """Command-line entry."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("peer", choices=PEERS)
    parser.add_argument("--base-url", required=True)
    parser.add_argument("--requests", type=Path, required=True, help="requests.jsonl")
    parser.add_argument("--in-flight", type=int, required=True)
    parser.add_argument("--scripts", type=Path, required=True, help="folder of our scripts")
    args = parser.parse_args()
    sys.path.insert(0, str(args.scripts))
    logging.disable(logging.INFO)
    statuses = PEERS[args.peer](args.base_url, args.requests.resolve(), args.in_flight)
    print(json.dumps({"statuses": statuses}), flush=True)


if __name__ == "__main__":
    main()
