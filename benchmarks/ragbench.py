"""Time ingesting and searching of the built-in system against haiku.rag, and our measures against packages.

Both systems run as the workflow runs them, through their adapters, on the passages and queries of
config/data/clapnq_mini with one embedder, round after round in turn. The embedder is asked as it is, and by
way of a server that knows all answers, so that what is left is the systems' own time.

    uv venv -p 3.12 /tmp/haiku && uv pip install -p /tmp/haiku -r envs/haiku-0.77.0.txt
    uv venv /tmp/peers && uv pip install -p /tmp/peers -r benchmarks/ragbench_requirements.txt
    .venv/bin/python benchmarks/ragbench.py --haiku /tmp/haiku/bin/python --peers /tmp/peers/bin/python

Ends with 1 where a target is missed: the built-in system is to be twice as fast at ingesting as haiku.rag
given the same pieces, 1.5 times at searching one query after the other, and not worse in nDCG@10. All of them
are held against one protocol, which the last lines name: the embedder as it is (``--gate real``), or one that
answers at once (``--gate own``).
"""

import argparse
import contextlib
import csv
import json
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "scripts"))

from ragbench_embedder import Known  # noqa: E402

from remeasure import model_server  # noqa: E402
from remeasure.rag import measures  # noqa: E402

DATA = ROOT / "config" / "data" / "clapnq_mini"
CHUNK_TOKENS, LIMIT = 256, 10
TARGETS = {"documents/s": 2.0, "queries/s, one by one": 1.5, "nDCG@10": 1.0}
"""How many times the built-in system is to be what haiku.rag is, given the same pieces."""
GATES = {
    "real": "the embedder as it is, equal pieces",
    "own": "an embedder that answers at once, equal pieces",
}
SYSTEMS = {
    "builtin": {},
    "haiku.rag, pieces": {"chunking": "own"},
    "haiku.rag, docling": {"chunking": "docling"},
}


def jsonl(name: str) -> list[dict]:
    """Return the lines of a file of the data."""
    return [json.loads(line) for line in (DATA / name).read_text(encoding="utf-8").splitlines()]


def documents(copies: int) -> list[dict]:
    """Return the passages as the contract has documents, each so many times under names of its own."""
    plain = {"path": None, "sha256": None, "format": "md", "metadata": {}}
    return [
        {
            "uri": f"{one['_id']}{f'~{copy}' if copy else ''}",
            "title": one["title"],
            "text": one["text"],
            **plain,
        }
        for copy in range(copies)
        for one in jsonl("passages.jsonl")
    ]


def queries() -> list[tuple[str, set[str]]]:
    """Return query texts with their gold documents: last turns and rewrites."""
    found = []
    for name in ("mtrag", "mtragun"):
        gold: dict[str, set[str]] = {}
        with open(DATA / f"qrels_{name}.tsv", encoding="utf-8") as file:
            for query, uri, _ in list(csv.reader(file, delimiter="\t"))[1:]:
                gold.setdefault(query, set()).add(uri)
        for one in jsonl(f"queries_{name}.jsonl"):
            texts = [one[word] for word in ("lastturn", "rewrite") if one.get(word)]
            found += [(text, gold[one["_id"]]) for text in texts]
    return found


class Talk:
    """An adapter as a process. A context manager."""

    def __init__(self, python: str, adapter: Path) -> None:
        self._process = subprocess.Popen(
            [python, str(adapter)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )

    def __enter__(self) -> "Talk":
        return self

    def __exit__(self, *_) -> None:
        self._process.stdin.close()
        self._process.wait()

    def ask(self, do: str, **more) -> tuple[dict, float]:
        """Return the reply to a command, and the seconds until it came."""
        began = time.perf_counter()
        self._process.stdin.write(json.dumps({"do": do, "id": do, **more}).encode() + b"\n")
        self._process.stdin.flush()
        reply = json.loads(self._process.stdout.readline())
        if not reply["ok"]:
            raise SystemExit(f"{do}: {reply.get('kind')}: {reply.get('error')}")
        return reply, time.perf_counter() - began


def measured(talk: Talk, folder: str, url: str, options: dict, given: list[dict], asked) -> dict[str, float]:
    """Ingest and search once; return documents and queries per second and the quality of the rankings."""
    embedder = {"base_url": url, "model": "embedder", "key_env": None, "vector_dim": 384}
    talk.ask(
        "open",
        database=folder,
        create=True,
        embedder=embedder | {"concurrency": 4, "timeout_s": 600.0, "dialect": "embedded"},
        reranker=None,
        answerer=None,
        options={"chunk_tokens": CHUNK_TOKENS, **options},
    )
    ingest_s = 0.0
    for start in range(0, len(given), 512):
        reply, seconds = talk.ask("ingest", documents=given[start : start + 512])
        if reply["failed"]:
            raise SystemExit(f"not ingested: {reply['failed'][0]}")
        ingest_s += seconds
    counts, finish_s = talk.ask("finish")
    if counts["n_indexed"] != counts["n_chunks"] or counts["n_documents"] != len(given):
        raise SystemExit(f"incomplete: {counts}")
    texts = [text for text, _ in asked]
    common = {"limit": LIMIT, "filter": None, "mode": "hybrid"}
    talk.ask("search", queries=texts[:3], **common)
    one_s = sum(talk.ask("search", queries=[text], **common)[1] for text in texts)
    reply, together_s = talk.ask("search", queries=texts, **common)
    rankings = [[hit["uri"].split("~")[0] for hit in one["found"]] for one in reply["results"]]
    gains = [measures.ndcg(uris, gold, 10) for uris, (_, gold) in zip(rankings, asked, strict=True)]
    return {
        "chunks": counts["n_chunks"],
        "documents/s": len(given) / (ingest_s + finish_s),
        "queries/s, one by one": len(texts) / one_s,
        "queries/s, together": len(texts) / together_s,
        "nDCG@10": statistics.fmean(gains),
    }


@contextlib.contextmanager
def embedder(sources: Path) -> Iterator[Known]:
    """Run the real embedding server with one in front that can remember."""
    files = {
        "model": str(sources / "bge-small-en-v1.5.onnx"),
        "tokenizer": str(sources / "bge-small-en-v1.5.tokenizer.json"),
    }
    words = model_server.command("serve_embedder.py", "embedder", files, {"threads": 2, "max-tokens": 512})
    with (
        tempfile.TemporaryDirectory() as folder,
        model_server.running(words, "embedder", Path(folder, "log"), 60) as server,
    ):
        yield Known(server.base_url)


def tokenizer_folder(sources: Path, folder: Path) -> str:
    """Return a folder as docling's chunker wants its tokenizer."""
    folder.mkdir()
    tokenizer = (sources / "bge-small-en-v1.5.tokenizer.json").read_text(encoding="utf-8")
    (folder / "tokenizer.json").write_text(tokenizer, encoding="utf-8")
    settings = {"tokenizer_class": "PreTrainedTokenizerFast", "model_max_length": 512}
    (folder / "tokenizer_config.json").write_text(json.dumps(settings), encoding="utf-8")
    return str(folder)


def compare(args: argparse.Namespace, title: str, names: list[str], copies: int, rounds: int, known: Known):
    """Measure systems in turn; print a table and return the ratios of ours to each other one."""
    given, asked = documents(copies), queries()
    found: dict[str, list[dict[str, float]]] = {name: [] for name in names}
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        tokenizer = {"tokenizer": tokenizer_folder(args.sources, folder / "tokenizer")}
        for number in range(rounds):
            for name in names if number % 2 == 0 else names[::-1]:
                ours = name == "builtin"
                options = SYSTEMS[name] | (tokenizer if "docling" in name else {})
                adapter = ROOT / "scripts" / "systems" / "builtin.py" if ours else args.haiku_adapter
                with Talk(sys.executable if ours else args.haiku, adapter) as talk:
                    place = str(folder / f"{name.replace(', ', '-')}-{number}")
                    found[name].append(measured(talk, place, known.base_url, options, given, asked))
    print(f"\n{title}: {len(given)} documents, {len(asked)} queries, median of {rounds} rounds\n")
    # Copies take each other's places: their rankings say nothing.
    columns = [name for name in found["builtin"][0] if copies == 1 or name != "nDCG@10"]
    print(f"| system | {' | '.join(columns)} |\n|---|{'---:|' * len(columns)}")
    for name in names:
        middle = [statistics.median(one[column] for one in found[name]) for column in columns]
        print(f"| {name} | {' | '.join(f'{value:.4g}' for value in middle)} |")
    ratios = {}
    for name in names[1:]:
        ratios[name] = {
            column: statistics.median(
                a[column] / b[column] for a, b in zip(found["builtin"], found[name], strict=True)
            )
            for column in columns[1:]
        }
        print(f"| builtin × {name} | | {' | '.join(f'{value:.2f}' for value in ratios[name].values())} |")
    return ratios


def compare_measures(peers: str, n: int = 10_000) -> None:
    """Print how long the measures of n queries take, and whether the means agree."""
    chance = random.Random(7)
    corpus = [f"d{number}" for number in range(500)]
    lists = [chance.sample(corpus, 100) for _ in range(n)]
    gold = [sorted(chance.sample(one, chance.randint(1, 6))) for one in lists]
    rounds = []
    for _ in range(5):
        began = time.perf_counter()
        each = [measures.measured(one, wanted) for one, wanted in zip(lists, gold, strict=True)]
        means = [sum(column) / n for column in zip(*each, strict=True)]
        rounds.append(time.perf_counter() - began)
    print(f"\nMeasures of {n} queries, 100 documents each, best of 5 rounds\n")
    print("| package | s from lists | s of its evaluation alone | means differ by |\n|---|---:|---:|---:|")
    print(f"| ours | {min(rounds):.3f} | {min(rounds):.3f} | – |")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "lists.json")
        path.write_text(json.dumps({"lists": lists, "gold": gold}), encoding="utf-8")
        for package in ("pytrec-eval-terrier", "ranx"):
            words = [peers, str(Path(__file__).with_name("ragbench_peers.py")), package, str(path)]
            told = json.loads(subprocess.run(words, check=True, stdout=subprocess.PIPE).stdout)
            apart = max(abs(a - b) for a, b in zip(means, told["means"].values(), strict=True))
            print(f"| {package} | {min(told['from_lists']):.3f} | {min(told['alone']):.3f} | {apart:.1e} |")


def missed(ratios: dict[str, float], gate: str) -> list[str]:
    """Return a sentence for every target that is missed under a protocol."""
    return [
        f"not met ({GATES[gate]}): {column} x {ratios[column]:.2f}, target x {target:g}"
        for column, target in TARGETS.items()
        if ratios[column] < target
    ]


def main() -> int:
    """Compare and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--haiku", help="a Python with envs/haiku-0.77.0.txt")
    parser.add_argument("--peers", help="a Python with benchmarks/ragbench_requirements.txt")
    adapter = ROOT / "scripts" / "systems" / "haiku_rag.py"
    parser.add_argument("--haiku-adapter", type=Path, default=adapter, help="its adapter")
    parser.add_argument("--sources", type=Path, default=ROOT / "results" / "sources", help="the weights")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--copies", type=int, default=10, help="of every passage, in the last table")
    parser.add_argument("--gate", choices=GATES, default="real", help="what the exit status is held against")
    args = parser.parse_args()
    if args.peers:
        compare_measures(args.peers)
    if not args.haiku:
        return 0
    pieces, docling = list(SYSTEMS)[1:]
    with embedder(args.sources) as known:
        real = compare(args, "The embedder as it is", ["builtin", pieces], 1, args.rounds, known)
        compare(args, "… and haiku.rag's own converter", ["builtin", docling], 1, 1, known)
        known.remembers = True
        own = compare(args, "An embedder that answers at once", ["builtin", pieces], 1, args.rounds, known)
        compare(args, "… and copies of the documents", ["builtin", pieces], args.copies, args.rounds, known)
    lost = missed({"real": real, "own": own}[args.gate][pieces], args.gate)
    print("\n" + ("\n".join(lost) or f"all targets are met ({GATES[args.gate]})"))
    return int(bool(lost))


if __name__ == "__main__":
    raise SystemExit(main())
