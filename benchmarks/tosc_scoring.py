"""Time the matchers of mentions against lemmatising every word and scanning for phrases.

Captions of 60 to 120 words are made from a seed while they are scored, so that memory shows what scoring
holds. Every measurement runs in a process of its own; only scoring is timed, in CPU seconds, because other
work may share the cores. Ends with 1 if a matcher is too slow, or time or memory grows faster than it may.

The second peer lives in an environment of its own, ``tosc_scoring_requirements.txt`` says what is in it:

    uv venv /tmp/peers && uv pip install -p /tmp/peers -r benchmarks/tosc_scoring_requirements.txt
    .venv/bin/python benchmarks/tosc_scoring.py --peers /tmp/peers/bin/python
"""

import argparse
import hashlib
import itertools
import json
import random
import re
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "scripts"))

LEXICON = ROOT / "config" / "lexicons" / "coco.tsv"
N_CAPTIONS = 17_907
BATCH = 199
FAST = 50
"""How many times as fast as lemmatising every word a matcher must be."""
LINEAR = 1.5
"""CPU time per caption may grow by this factor with four times the captions; above 1 for noise."""
FLAT = 1.2
"""Memory may grow by this factor with four times the captions."""
FUNCTION_WORDS = (
    "a the and of in on at with to near is are two some his her their by for next behind under".split()
)
OTHER_WORDS = (
    "wall window street grass shelf sky shadow building floor corner background sunlight people's hand "
    "scene picture water path fence road kitchen room garden morning city leaves branches flowers "
    "curtains tiles bricks clouds large small wooden bright old white red blue green dark empty busy "
    "quiet metal striped round open parked standing sitting lying hanging holding wearing looking "
    "running visible placed covered filled surrounded seems appears stands rests lies hangs walks "
    "carries creates suggests adds rises no without orange remote slowly"
).split()
SENTENCE_ENDS = (".", ",", ";", " -", "!")
TITLES = {
    "phrase": "ours, phrase",
    "phrase+context": "ours, phrase and context",
    "lemma": "ours, lemma (published)",
    "spans": "ours, phrase and context, with character spans and negation",
    "triplets": "ours, whole triplets: both readings, marks, negation, names",
    "lemminflect": "lemminflect for each word, then scan",
    "lemminflect_once": "lemminflect for each distinct word, then scan",
    "simplemma": "simplemma for each word, then scan",
    "bytes": "floor: lower case and one regular expression for words",
}
MATCHERS = ("phrase", "phrase+context", "lemma")
PEERS = ("lemminflect", "lemminflect_once", "simplemma")
Scorer = Callable[[str], object]


def captions(n: int, seed: int) -> Iterator[str]:
    """Yield captions of 60 to 120 words: about every eighth word begins a form of the lexicon."""
    from remeasure.mentions import lexicon

    forms = list(lexicon.read(LEXICON, "strict").table.forms)
    draw = random.Random(seed)
    for _ in range(n):
        left, sentences = draw.randint(60, 120), []
        while left > 0:
            size = min(left, draw.randint(8, 20))
            kinds = draw.choices((FUNCTION_WORDS, OTHER_WORDS, forms), (45, 43, 12), k=size)
            words = " ".join(draw.choice(kind) for kind in kinds)
            sentences.append(words.capitalize() + draw.choices(SENTENCE_ENDS, (60, 30, 5, 3, 2))[0])
            left -= size
        yield " ".join(sentences)


def lemmatise_and_scan(lemmatise: Callable[[str], str]) -> Scorer:
    """Return the usual way: a lemma for every word, then the longest phrase at each place.

    The phrases are those of the published reading, so that verdicts can be compared.
    """
    from remeasure.mentions import lexicon

    forms = lexicon.read(LEXICON, "published").table.forms
    table = {}
    for form, entry in forms.items():
        table.setdefault(tuple(lemmatise(word) for word in form.split()), entry)
    longest = max(map(len, table))
    word = re.compile(r"[^\W_]+|[^\w\s]")

    def score(caption: str) -> set[str]:
        lemmas = [lemmatise(token) for token in word.findall(caption.lower())]
        found, at, phrases = set(), 0, set()
        while at < len(lemmas):
            for size in range(min(longest, len(lemmas) - at), 0, -1):
                entry = table.get(tuple(lemmas[at : at + size]))
                if entry:
                    found.add((entry.label, entry.phrase))
                    phrases.add(entry.phrase)
                    at += size
                    break
            else:
                at += 1
        if phrases & {"toilet", "toilet seat"}:
            found = {(label, phrase) for label, phrase in found if phrase != "seat"}
        return {label for label, _ in found if label}

    return score


def scorer(name: str) -> Scorer:
    """Return what is timed: a caption in, its classes out."""
    if name == "bytes":
        word = re.compile(r"[^\W_]+")
        return lambda caption: word.findall(caption.lower())
    if name == "simplemma":
        import simplemma

        return lemmatise_and_scan(lambda word: simplemma.lemmatize(word, lang="en"))
    if name.startswith("lemminflect"):
        from lemminflect import getLemma

        if name == "lemminflect":
            return lemmatise_and_scan(lambda word: getLemma(word, upos="NOUN")[0])
        known: dict[str, str] = {}

        def once(word: str) -> str:
            if word not in known:
                known[word] = getLemma(word, upos="NOUN")[0]
            return known[word]

        return lemmatise_and_scan(once)
    from remeasure.mentions import lexicon
    from remeasure.mentions.matching import Matcher

    if name == "triplets":
        return _triplets()
    if name == "spans":
        matcher = Matcher.of("phrase+context", lexicon.read(LEXICON, "strict"))

        def located(caption: str) -> object:
            found = matcher.read(caption)
            return found.mentions(), found.denied()

        return located
    matcher = Matcher.of(name, lexicon.read(LEXICON, "published" if name == "lemma" else "strict"))
    return lambda caption: matcher.read(caption).labels()


def _triplets() -> Scorer:
    """Score every three captions in a row as a triplet, as the grader does."""
    from remeasure.mentions import lexicon
    from remeasure.mentions.matching import Matcher
    from remeasure.mentions.objects import resolve
    from remeasure.mentions.preparing import Prepared
    from remeasure.mentions.triplets import detect

    pairs = itertools.cycle([("dog", "cat"), ("car", "sports car"), ("cup", "snow globe"), ("bird", "kite")])
    read = {name: lexicon.read(LEXICON, name) for name in ("strict", "published")}
    matchers = {
        name: Matcher.of(kind, read[name])
        for name, kind in (("strict", "phrase+context"), ("published", "lemma"))
    }
    waiting: list[str] = []

    def score(caption: str) -> object:
        waiting.append(caption)
        if len(waiting) < 3:
            return None
        o, r = next(pairs)
        three, result = tuple(map(Prepared, waiting)), []
        waiting.clear()
        for name, matcher in matchers.items():
            targets = [
                resolve(word, side, read[name], unknown_objects="other")
                for word, side in ((o, "o"), (r, "r"))
            ]
            found = detect(three, *targets, matcher, negation=False)
            result.append(found.bits)
            if name == "strict":
                result += [found.marks(), found.n_mentions(), found.head_match()]
        return result

    return score


def run_one(name: str, n: int, seed: int, verdicts: Path | None) -> None:
    """Score ``n`` captions and print CPU seconds, peak memory and words as JSON."""
    score = scorer(name)
    stream, seconds, n_words, digest = captions(n, seed), 0.0, 0, hashlib.sha256()
    out = open(verdicts, "w", encoding="utf-8") if verdicts else None
    while batch := list(itertools.islice(stream, BATCH)):
        start = time.process_time()
        results = [score(caption) for caption in batch]
        seconds += time.process_time() - start
        n_words += sum(caption.count(" ") + 1 for caption in batch)
        for caption, result in zip(batch, results, strict=True):
            digest.update(caption.encode())
            if out:
                out.write(json.dumps(sorted(result)) + "\n")
    if out:
        out.close()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    print(json.dumps({"s": seconds, "peak": peak, "words": n_words, "captions": digest.hexdigest()}))


def measured(python: str, name: str, n: int, seed: int, verdicts: Path | None = None) -> dict:
    """Return what a process of its own says of one measurement."""
    words = [python, __file__, "--one", name, "--captions", str(n), "--seed", str(seed)]
    words += ["--verdicts", str(verdicts)] if verdicts else []
    done = subprocess.run(words, check=True, capture_output=True, text=True)
    return json.loads(done.stdout)


def differing(ours: Path, theirs: Path) -> str:
    """Say how many captions have other classes, and which classes make most of it."""
    n, n_differ, which = 0, 0, Counter()
    with open(ours, encoding="utf-8") as left, open(theirs, encoding="utf-8") as right:
        for one, other in zip(left, right, strict=True):
            mine, peers = set(json.loads(one)), set(json.loads(other))
            n, n_differ = n + 1, n_differ + (mine != peers)
            which.update(f"+{label}" for label in mine - peers)
            which.update(f"-{label}" for label in peers - mine)
    most = ", ".join(f"{label} {count}" for label, count in which.most_common(4))
    return f"{n_differ:,} ({n_differ / n:.2%})" + (f": {most}" if most else "")


def main(argv=None) -> int:
    """Measure and print the tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--peers", help="a Python with the packages of tosc_scoring_requirements.txt")
    parser.add_argument("--captions", type=int, default=N_CAPTIONS)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--one", choices=TITLES, help=argparse.SUPPRESS)
    parser.add_argument("--verdicts", type=Path, help=argparse.SUPPRESS)
    args = parser.parse_args(argv)
    if args.one:
        run_one(args.one, args.captions, args.seed, args.verdicts)
        return 0
    names = [name for name in TITLES if name != "simplemma" or args.peers]
    with tempfile.TemporaryDirectory() as folder:
        findings = [*compared(args, names, Path(folder)), *grown(args)]
    for finding in findings:
        print(f"\n**{finding}**")
    return 1 if findings else 0


def compared(args: argparse.Namespace, names: list[str], folder: Path) -> list[str]:
    """Run every scorer and print the table of rates; return what is slower than it may be."""
    comparable = ("lemma", *PEERS)
    seconds: dict[str, list[float]] = {name: [] for name in names}
    words = 0
    for turn in range(args.rounds):
        for name in names:
            if name in PEERS and turn:
                continue  # long, and the ratio does not need it
            python = args.peers if name == "simplemma" else sys.executable
            kept = folder / f"{name}.jsonl" if name in comparable and not turn else None
            said = measured(python, name, args.captions, args.seed, kept)
            seconds[name].append(said["s"])
            words = said["words"]
    print(f"\n{args.captions:,} captions, {words:,} words, seed {args.seed}\n")
    print(
        "| scorer | CPU s | words/s | × lemminflect's rate | captions with other classes than ours, lemma |"
    )
    print("| --- | ---: | ---: | ---: | --- |")
    base = statistics.median(seconds["lemminflect"])
    for name in names:
        took = statistics.median(seconds[name])
        other = ""
        if name in PEERS:
            other = differing(folder / "lemma.jsonl", folder / f"{name}.jsonl")
        print(f"| {TITLES[name]} | {took:.3f} | {words / took:,.0f} | {base / took:.1f} | {other} |")
    rates = {name: base / statistics.median(seconds[name]) for name in MATCHERS}
    return [
        f"{TITLES[name]}: {rate:.1f} times lemminflect's rate, at least {FAST} are expected"
        for name, rate in rates.items()
        if rate < FAST
    ]


def quickest(name: str, n: int, args: argparse.Namespace) -> dict:
    """Return the quickest of all rounds: other work on the machine can only slow one down."""
    runs = [measured(sys.executable, name, n, args.seed) for _ in range(args.rounds)]
    return min(runs, key=lambda run: run["s"])


def grown(args: argparse.Namespace) -> list[str]:
    """Score one, two and four times the captions and print the table; return what grows too fast."""
    findings = []
    print("\n| scorer | n | 2 n | 4 n | time per caption, 4 n to n | peak MB, n | 4 n |")
    print("| --- | ---: | ---: | ---: | ---: | ---: | ---: |")
    for name in (*MATCHERS, "triplets"):
        runs = [quickest(name, times * args.captions, args) for times in (1, 2, 4)]
        took = " | ".join(f"{run['s']:.3f}" for run in runs)
        ratio = runs[2]["s"] / 4 / runs[0]["s"]
        peaks = f"{runs[0]['peak'] / 1e6:.0f} | {runs[2]['peak'] / 1e6:.0f}"
        print(f"| {TITLES[name]} | {took} | × {ratio:.2f} | {peaks} |")
        if ratio > LINEAR:
            findings.append(
                f"{TITLES[name]}: time per caption grows × {ratio:.2f}, at most {LINEAR} is linear"
            )
        memory = runs[2]["peak"] / runs[0]["peak"]
        if memory > FLAT:
            findings.append(f"{TITLES[name]}: memory grows × {memory:.2f}, at most {FLAT} is flat")
    return findings


if __name__ == "__main__":
    raise SystemExit(main())
