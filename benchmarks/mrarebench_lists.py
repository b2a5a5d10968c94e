"""Time the reading of ranked lists and the search for hits against the original's own functions.

Replies of ten diagnoses are made from a seed: seven of ten are numbered lists, the others one line, bullets,
or thinking with a list behind it; two candidates of a hundred are the right diagnosis. The original is a file
of others, given by its path and no part of this repository; only what is compared is taken out of it.

    .venv/bin/python benchmarks/mrarebench_lists.py --peer /path/to/mrarebench.py

Which candidates hit is compared on every reply and on fuzzed text; a difference ends with 1, and so does a
published reading that is not faster than the original. Times are CPU seconds; nothing is remembered before.
"""

import argparse
import ast
import random
import re
import string
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "scripts"))

PAPER = (300, 3, 12)
"""Items, conditions, models."""
WANTED = {"parse_ranked_list", "is_hit", "normalize_answer", "token_set_f1"}
CONSTANTS = {"TOPK", "MATCH_TOKEN_F1_THRESHOLD"}
NAMES = (
    "Fabry",
    "Gaucher",
    "Castleman",
    "Erdheim-Chester",
    "Sjögren's",
    "Langerhans cell",
    "Behçet's",
    "Still's",
)
KINDS = (
    "disease",
    "syndrome",
    "histiocytosis",
    "lymphoma",
    "arteritis",
    "type II",
    "of childhood",
    "dystrophy",
)
PIECES = tuple(
    "<think> </think> <THINK> 1. 2) 3. １. 1． #1. ** - ; Fabry disease nan the İ é 1.5 LCH".split()
)
PIECES += ("\n", "\r\n", "\u2028", " ", "\t", "1. ", "2) ", "- ", "4 - ", "fabry Disease.", "\x00", "\u202e")
Read = Callable[[str, list[str]], list[bool]]


def peer(path: Path) -> Read:
    """Take the functions out of the original; return what says which candidates of a reply hit."""
    found = []
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef) and node.name in WANTED:
            found.append(node)
        elif (
            isinstance(node, ast.Assign)
            and {getattr(target, "id", "") for target in node.targets} & CONSTANTS
        ):
            found.append(node)
    space = {"re": re, "string": string}
    exec(compile(ast.Module(found, []), str(path), "exec"), space)  # noqa: S102
    parse, is_hit = space["parse_ranked_list"], space["is_hit"]
    return lambda reply, accepted: [is_hit(candidate, accepted) for candidate in parse(reply)]


def ours(reading: str) -> Read:
    """Return the same of one of our readings."""
    from remeasure.diagnoses import lists, matching

    if reading == "published":
        return lambda reply, accepted: [
            hit is not None for hit in matching.hits_published(lists.published(reply), accepted)
        ]
    return lambda reply, accepted: [
        hit is not None for hit in matching.hits_strict(lists.strict(reply).candidates, accepted)
    ]


def replies(n: int, seed: int) -> Iterator[tuple[str, list[str]]]:
    """Yield replies with their accepted names, one to four."""
    draw = random.Random(seed)
    for _ in range(n):
        accepted = [name(draw) for _ in range(draw.randint(1, 4))]
        names = [draw.choice(accepted).lower() if draw.random() < 0.02 else name(draw) for _ in range(10)]
        form = draw.random()
        if form < 0.7:
            text = "\n".join(f"{place}. {one}" for place, one in enumerate(names, start=1))
        elif form < 0.8:
            text = " ".join(f"{place}. {one}" for place, one in enumerate(names, start=1))
        elif form < 0.9:
            text = "\n".join(f"- {one}" for one in names)
        else:
            text = f"<think>{' '.join(names * 20)}</think>\n1. {names[0]}\n2. {names[1]}"
        yield text, accepted


def name(draw: random.Random) -> str:
    """Return a name of two to four words; most differ."""
    return f"{draw.choice(NAMES)}{draw.randint(1, 60)} {' '.join(draw.choices(KINDS, k=draw.randint(1, 2)))}"


def fuzzed(n: int, seed: int) -> Iterator[tuple[str, list[str]]]:
    """Yield texts of pieces that parsers stumble over."""
    draw = random.Random(seed)
    for _ in range(n):
        text = "".join(draw.choices(PIECES, k=draw.randint(0, 14)))
        yield (
            text,
            ["".join(draw.choices(PIECES[10:], k=draw.randint(1, 3))) for _ in range(draw.randint(0, 3))],
        )


def seconds(read: Read, cases: list[tuple[str, list[str]]]) -> float:
    """Return the CPU time of reading all cases."""
    from remeasure.diagnoses import matching, names

    for remembered in (matching._short_plain, matching._short_strict, names._short_words):
        remembered.cache_clear()
    start = time.process_time()
    for reply, accepted in cases:
        read(reply, accepted)
    return time.process_time() - start


def main(argv=None) -> int:
    """Compare, time, print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--peer", type=Path, required=True, help="the original's mrarebench.py")
    parser.add_argument("--n", type=int, default=PAPER[0] * PAPER[1] * PAPER[2], help="replies to time")
    parser.add_argument("--fuzzed", type=int, default=100_000, help="further texts to compare")
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args(argv)
    original, published, strict = peer(args.peer), ours("published"), ours("strict")
    n_different = sum(original(*case) != published(*case) for case in fuzzed(args.fuzzed, args.seed))
    cases = list(replies(args.n, args.seed))
    n_different += sum(original(*case) != published(*case) for case in cases)
    print(f"{args.fuzzed + args.n:,} texts compared, {n_different} different")
    base = seconds(original, cases)
    fast = True
    for title, read in (("published", published), ("strict", strict)):
        spent = seconds(read, cases)
        fast &= title != "published" or spent < base
        times = f"{spent:.2f} s, the original {base:.2f} s: {base / spent:.1f} times as fast"
        print(f"{title}: {args.n:,} replies in {times}")
    return int(bool(n_different) or not fast)


if __name__ == "__main__":
    raise SystemExit(main())
