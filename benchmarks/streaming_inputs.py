"""Synthetic inputs of every stage, true to the schemas, and the command line that reads them.

Every maker writes its files into the current folder and returns the stage's command line: file name of the
script, then its options. Settings are those of the embedded run. Files are written as streams.
"""

import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from remeasure import images, jsonl, requests
from remeasure.files import sha256_bytes
from remeasure.plan import Plan
from remeasure.records import (
    ImageRef,
    Item,
    Page,
    Passage,
    Ranked,
    RenderedPage,
    Request,
    Response,
    TileRef,
)

ROOT = Path(__file__).resolve().parent.parent
RUN, STUDY = "embedded", "pixelrag"
ENCODER, READER = "bge-small-en-v1.5", "page-reader-smollm2"
BASE_URL = "{base_url}"
"""Stands in a command line for the address of the server, which is known when it runs."""
CORPUS = 2000
"""Passages, tiles or vectors of a corpus whose size is held fixed while the questions grow."""
IMAGE_BYTES = 30_000
WORDS = (
    "river border capital north island people mountain language coast region area climate forest trade port "
    "population century railway copper wheat desert gulf highest lowest lake treaty export harbour plain"
).split()
PLAN = Plan(ROOT / "config")
(READER,) = PLAN.study_run(RUN, STUDY).readers


def text(rng: random.Random, n_words: int) -> str:
    """Return words in random order."""
    return " ".join(rng.choices(WORDS, k=n_words))


def image(number: int) -> bytes:
    """Return bytes that look like a JPEG from outside; different for every number."""
    return b"\xff\xd8\xff" + random.Random(number).randbytes(IMAGE_BYTES)


def items(rng: random.Random, n: int, *, store: str | None = None) -> Iterator[Item]:
    """Yield questions, three per page; with a store every tenth shows an image of its own."""
    for number in range(n):
        shown: tuple[ImageRef, ...] = ()
        if store and number % 10 == 0:
            shown = (ImageRef(sha256=sha256_bytes(image(number)), path=store, member=f"{number:07}.jpg"),)
        yield Item(
            item_id=f"q{number:07}",
            question=f"What is the {text(rng, 10)} of place {number}?",
            images=shown,
            references=(f"answer {number}", f"the answer {number}"),
            relevant=(f"page-{number // 3:07}",),
            group=f"page-{number // 3:07}",
            meta={"field": rng.choice(WORDS), "where": "infobox"},
        )


def write_images(store: str, n: int) -> None:
    """Write the images that ``items`` shows."""
    images.write_store(Path(store), ((f"{i:07}.jpg", image(i)) for i in range(0, n, 10)))


def responses(rng: random.Random, n: int) -> Iterator[Response]:
    """Yield answers, three in five right, one in fifty cut off."""
    for number in range(n):
        words = f"It is answer {number}" if rng.random() < 0.6 else text(rng, 8)
        cut = number % 50 == 49
        yield Response(
            custom_id=f"q{number:07}",
            key=sha256_bytes(str(number).encode()),
            status="cut_off" if cut else "answered",
            text=words,
            finish="length" if cut else "stop",
            usage={"prompt_tokens": 900, "completion_tokens": 12, "total_tokens": 912},
            model=READER,
            error="cut_off" if cut else None,
        )


def ranking(rng: random.Random, n: int, n_units: int) -> Iterator[Ranked]:
    """Yield five different units of a corpus for every question."""
    for number in range(n):
        ids = tuple(f"page-{unit:07}/0000" for unit in rng.sample(range(n_units), 5))
        yield Ranked(item_id=f"q{number:07}", ids=ids, scores=(0.9, 0.8, 0.7, 0.6, 0.5))


def passages(rng: random.Random, n: int) -> Iterator[Passage]:
    """Yield passages of about 200 words, one per page."""
    for number in range(n):
        page = f"page-{number:07}"
        yield Passage(
            passage_id=f"{page}/0000",
            page_id=page,
            chunk_index=0,
            char_offset=0,
            n_tokens=210,
            text=f"{page} {text(rng, 200)}",
            title=f"Page {number}",
            url=f"Page {number}",
        )


def manifest(n: int) -> Iterator[RenderedPage]:
    """Yield rendered pages of one tile each; the tiles themselves are nowhere."""
    for number in range(n):
        page = f"page-{number:07}"
        tile = TileRef(
            tile_id=f"{page}/0000",
            member=f"{page}/0000.jpg",
            sha256=sha256_bytes(page.encode()),
            y_px=0,
            height_px=1024,
            width_px=875,
        )
        yield RenderedPage(page_id=page, status="rendered", width_px=875, height_px=1024, tiles=(tile,))


def options(settings: Any, **files: str) -> list[str]:
    """Return settings and files as options."""
    found = ["--settings", json.dumps(settings)]
    for name, path in files.items():
        found += [f"--{name.replace('_', '-')}", path]
    return found


def _requests(arm: str, n_items: int, n_units: int, rng: random.Random) -> list[str]:
    # References only: the images are looked for, but not opened.
    Path("images.zip").touch()
    jsonl.write(Path("items.jsonl"), items(rng, n_items, store="images.zip" if arm == "base" else None))
    jsonl.write(Path("ranking.jsonl"), ranking(rng, n_items, n_units))
    if arm == "base":
        jsonl.write(Path("manifest.jsonl"), manifest(n_units))
        evidence = {"manifest": "manifest.jsonl", "tiles": "tiles.zip"}
        Path("tiles.zip").write_bytes(b"not read, only hashed")
    else:
        jsonl.write(Path("passages.jsonl"), passages(rng, n_units))
        evidence = {"passages": "passages.jsonl"}
    files = {"study": STUDY, "items": "items.jsonl", "ranking": "ranking.jsonl", **evidence}
    files |= {"out": "requests.jsonl", "record": "ask.json"}
    return ["build_requests.py", *options(PLAN.request(RUN, STUDY, "nq", arm, READER), **files)]


def requests_text(n: int, rng: random.Random, sources: Path) -> list[str]:
    """Requests with passages as evidence."""
    return _requests("traf", n, CORPUS, rng)


def requests_tiles(n: int, rng: random.Random, sources: Path) -> list[str]:
    """Requests with tiles as references, and a query image as a reference in a tenth."""
    return _requests("base", n, CORPUS, rng)


def requests_passages(n: int, rng: random.Random, sources: Path) -> list[str]:
    """Requests of 300 questions over a corpus of n passages."""
    return _requests("traf", 300, n, rng)


def requests_manifest(n: int, rng: random.Random, sources: Path) -> list[str]:
    """Requests of 300 questions over a corpus of n tiles."""
    return _requests("base", 300, n, rng)


def collect(n: int, rng: random.Random, sources: Path) -> list[str]:
    """Asking a server that answers at once; a tenth of the requests sends an image."""
    write_images("images.zip", n)

    def asked() -> Iterator[Request]:
        for item in items(rng, n, store="images.zip"):
            content: list[dict[str, Any]] = [{"type": "text", "text": f"{text(rng, 300)}\n\n{item.question}"}]
            content += [
                {"type": "image_url", "image_url": {"url": images.to_url(ref)}} for ref in item.images
            ]
            messages = [{"role": "user", "content": content}]
            body = requests.Body(
                model=READER, messages=messages, max_tokens=200, temperature=0.0, thinking=False
            )
            yield requests.make_request(item.item_id, body)

    jsonl.write(Path("requests.jsonl"), asked())
    executor = {"kind": "http", "base_url": BASE_URL, "dialect": "vllm", "concurrency": 8, "timeout_s": 60}
    settings = {"model": READER, "served_name": READER, "identity": {"revision": "synthetic"}}
    files = {"requests": "requests.jsonl", "executor": json.dumps(executor), "journal": "journal"}
    return [
        "collect_responses.py",
        *options(settings, **files, out="responses.jsonl", record="answers.json"),
    ]


def judge_requests(n: int, rng: random.Random, sources: Path) -> list[str]:
    """What a judge is asked about every answer."""
    jsonl.write(Path("items.jsonl"), items(rng, n))
    jsonl.write(Path("responses.jsonl"), responses(rng, n))
    files = {"study": STUDY, "items": "items.jsonl", "responses": "responses.jsonl"}
    settings = PLAN.judge_request(RUN, STUDY, "sqa")
    return [
        "build_judge_requests.py",
        *options(settings, **files, out="judge/requests.jsonl", record="judge/ask.json"),
    ]


def _grade(bench: str, n: int, rng: random.Random) -> list[str]:
    jsonl.write(Path("items.jsonl"), items(rng, n))
    jsonl.write(Path("responses.jsonl"), responses(rng, n))
    jsonl.write(Path("ranking.jsonl"), ranking(rng, n, CORPUS))
    files = {"items": "items.jsonl", "responses": "responses.jsonl", "ranking": "ranking.jsonl"}
    if PLAN.has_judge(RUN, STUDY, bench):
        letters = (
            Response(custom_id=f"q{i:07}", key=f"{i:064}", status="answered", text=rng.choice("ABC"))
            for i in range(n)
        )
        jsonl.write(Path("judge.jsonl"), letters)
        files["judge_responses"] = "judge.jsonl"
    files |= {"out": "graded.jsonl", "score": "score.json", "record": "grade.json"}
    return ["grade.py", *options(PLAN.grade(RUN, STUDY, bench, "traf", READER), **files)]


def grade_em(n: int, rng: random.Random, sources: Path) -> list[str]:
    """Grading by exact match."""
    return _grade("nq", n, rng)


def grade_judged(n: int, rng: random.Random, sources: Path) -> list[str]:
    """Grading by the letters of a judge."""
    return _grade("sqa", n, rng)


def table(n: int, rng: random.Random, sources: Path) -> list[str]:
    """A table of 24 cells with n verdicts in all."""
    import tablekit

    cells = [(cell.bench, cell.arm) for cell in PLAN.cells_of("table1")]
    rights = {cell: [rng.random() < 0.6 for _ in range(n // len(cells))] for cell in cells}
    files = tablekit.write_table_inputs(Path("."), rights, model=READER)
    published = ROOT / PLAN.published_path("table1")
    return ["make_table.py", *tablekit.table_argv(Path("."), files, published, PLAN.table(RUN, "table1"))]


def table_of_rates(n: int, rng: random.Random, sources: Path) -> list[str]:
    """A table of 8 models and 9 rates in three readings, with n triplets in all, by 80 objects."""
    import tablekit

    models = {f"model-{number}": f"Model {number}" for number in range(8)}
    lines = {
        model: [
            tablekit.rates_line(
                number,
                tuple(int(rng.random() < share) for share in (0.9, 0.2, 0.2, 0.8)),
                strata={"object": f"object {number % 80:02}"},
            )
            for number in range(n // len(models))
        ]
        for model in models
    }
    files = tablekit.write_rates_inputs(Path("."), lines)
    Path("published.csv").write_text(tablekit.NOTHING_PUBLISHED)
    pairs = [{"axis": "model", "first": model, "second": "model-0"} for model in list(models)[1:]]
    settings = tablekit.rates_settings(models, contrasts=pairs)
    return ["make_table.py", *tablekit.table_argv(Path("."), files, Path("published.csv"), settings)]


def own_items(n: int, rng: random.Random, sources: Path) -> list[str]:
    """A user's own questions, every tenth with an image."""
    write_images("own.zip", n)
    jsonl.write(Path("own.jsonl"), items(rng, n, store="own.zip"))
    _write_pages(n // 3 + 1)
    files = {"study": STUDY, "bench": "nq", "pages": "pages.jsonl", "own": "own.jsonl"}
    files |= {"out": "items.jsonl", "images_out": "images.zip", "record": "items.json"}
    return ["build_items.py", *options({"own": "own.jsonl"}, **files)]


def _write_pages(n: int) -> None:
    pages = (
        Page(page_id=f"page-{i:07}", path=f"Page {i:07}", title=f"Page {i}", set="all") for i in range(n)
    )
    jsonl.write(Path("pages.jsonl"), pages)


def agreement(n: int, rng: random.Random, sources: Path) -> list[str]:
    """Picking the answers that judges are compared on, from four cells with n verdicts in all."""
    import tablekit

    n_items = n // 4
    jsonl.write(Path("items.jsonl"), items(rng, n_items))
    graded, answers = [], []
    for arm in ("naive", "traf", "base", "lora"):
        graded.append(f"{arm}/graded.jsonl")
        answers.append(f"{arm}/responses.jsonl")
        jsonl.write(Path(answers[-1]), responses(rng, n_items))
        lines = (tablekit.graded_line(i, True, grader="judge_simpleqa") for i in range(n_items))
        named = ({**_fields(line), "item_id": f"q{i:07}"} for i, line in enumerate(lines))
        jsonl.write(Path(graded[-1]), named)
    files = {"items": "items.jsonl", "picked": "picked.jsonl", "out": "requests.jsonl", "record": "ask.json"}
    settings = PLAN.agreement(RUN, "judge-cross-encoder")
    found = ["build_agreement_requests.py", *options(settings, **files)]
    return [*found, "--graded", *graded, "--responses", *answers]


def _fields(record: Any) -> dict[str, Any]:
    return {name: getattr(record, name) for name in record.__struct_fields__}


def _text_model(sources: Path) -> dict[str, str]:
    model, tokenizer = sources / f"{ENCODER}.onnx", sources / f"{ENCODER}.tokenizer.json"
    return {"model": str(model), "tokenizer": str(tokenizer)}


def embed(n: int, rng: random.Random, sources: Path) -> list[str]:
    """Vectors of n passages."""
    jsonl.write(Path("passages.jsonl"), passages(rng, n))
    files = _text_model(sources) | {"passages": "passages.jsonl", "threads": "1"}
    files |= {"out": "descriptors.h5", "order": "order.txt", "record": "descriptors.json"}
    return ["embed.py", *options(PLAN.embed(RUN, "text-bge"), **files)]


def index(n: int, rng: random.Random, sources: Path) -> list[str]:
    """A flat index over n vectors of 384 dimensions."""
    import numpy as np

    from remeasure import options as decoding
    from remeasure import vectors
    from remeasure.encoders import EncoderSettings
    from remeasure.encoders.text import TextEncoder

    settings = decoding.decode(json.dumps(PLAN.embed(RUN, "text-bge")), EncoderSettings)
    files = {name: Path(path) for name, path in _text_model(sources).items()}
    identity = TextEncoder(settings, files["model"], files["tokenizer"], 1).identity()
    numbers = np.random.default_rng(rng.getrandbits(32))

    def blocks() -> Iterator[tuple[list[str], np.ndarray]]:
        for start in range(0, n, 1000):
            rows = numbers.standard_normal((min(1000, n - start), identity.dim)).astype(np.float32)
            rows /= np.linalg.norm(rows, axis=1, keepdims=True)
            yield [f"page-{start + i:07}/0000" for i in range(len(rows))], rows

    vectors.write_descriptors(Path("descriptors.h5"), Path("order.txt"), blocks(), identity)
    files = {"descriptors": "descriptors.h5", "order": "order.txt", "out": "index.faiss"}
    return ["build_index.py", *options(PLAN.search_index(RUN, "text-bge"), **files, record="index.json")]


def search(n: int, rng: random.Random, sources: Path) -> list[str]:
    """Ranked lists for n questions over a fixed index."""
    import logging

    import build_index

    logging.disable()
    build_index.main(index(CORPUS, rng, sources)[1:])
    jsonl.write(Path("items.jsonl"), items(rng, n))
    files = {"items": "items.jsonl", "text_index": "index.faiss", "text_record": "index.json"}
    files |= {"text_order": "order.txt", **_text_model(sources)}
    files |= {"out": "ranking.jsonl", "record": "retrieval.json"}
    return ["search.py", *options(PLAN.retrieval(RUN, STUDY, "traf"), **files)]


def tiles_read(n: int, rng: random.Random, sources: Path) -> list[str]:
    """OCR of n small tiles with three short lines each."""
    import io

    from PIL import Image, ImageDraw, ImageFont

    members: list[tuple[str, bytes]] = []
    pages: list[RenderedPage] = []
    font = ImageFont.load_default(24)
    for page in manifest(n):
        picture = Image.new("RGB", (480, 480), "white")
        lines = "\n".join(text(rng, 3) for _ in range(3))
        ImageDraw.Draw(picture).multiline_text((20, 10), lines, "black", font, spacing=14)
        stream = io.BytesIO()
        picture.save(stream, "JPEG", quality=85)
        members.append((page.tiles[0].member, stream.getvalue()))
        tile = _fields(page.tiles[0]) | {"sha256": sha256_bytes(members[-1][1]), "height_px": 480}
        pages.append(RenderedPage(**_fields(page) | {"tiles": (TileRef(**tile),), "height_px": 480}))
    images.write_store(Path("tiles.zip"), members)
    jsonl.write(Path("manifest.jsonl"), pages)
    files = {"manifest": "manifest.jsonl", "tiles": "tiles.zip", "processes": "1", "journal": "journal"}
    settings = PLAN.ocr(RUN, "factbook")
    return ["read_tiles.py", *options(settings, **files, out="ocr.jsonl", record="ocr.json")]


def tiles_known(n: int, rng: random.Random, sources: Path) -> list[str]:
    """Records of n tiles that were read before, of forty lines each: nothing is left to OCR."""
    from remeasure.ocr import TileJournal, engine_version
    from remeasure.records import OcrImage, OcrLine

    jsonl.write(Path("manifest.jsonl"), manifest(n))
    Path("tiles.zip").touch()
    with TileJournal(Path("journal"), engine_version()) as journal:
        for page in manifest(n):
            lines = tuple(
                OcrLine(text=text(rng, 8), box=(20, 24 * row, 800, 24 * row + 20), confidence=0.99)
                for row in range(40)
            )
            tile = page.tiles[0]
            image = OcrImage(
                sha256=tile.sha256, tile_id=tile.tile_id, width_px=875, height_px=1024, lines=lines
            )
            journal.add(image)
    files = {"manifest": "manifest.jsonl", "tiles": "tiles.zip", "processes": "1", "journal": "journal"}
    settings = PLAN.ocr(RUN, "factbook")
    return ["read_tiles.py", *options(settings, **files, out="ocr.jsonl", record="ocr.json")]


def _archive(n: int, rng: random.Random) -> None:
    """Write a ZIM archive of n pages of about 350 words with headings and a table."""
    from remeasure.corpora.zim_writer import Entry, write_archive

    def page(number: int) -> bytes:
        rows = "".join(f"<tr><th>{text(rng, 2)}</th><td>{text(rng, 6)}</td></tr>" for _ in range(8))
        parts = "".join(f"<h2>{text(rng, 2)}</h2><p>{text(rng, 80)}.</p>" for _ in range(4))
        head = f"<html lang='en'><head><title>Page {number}</title></head>"
        return f"{head}<body><h1>Page {number}</h1><table>{rows}</table>{parts}</body></html>".encode()

    entries = [Entry(path=f"Page {i:07}", title=f"Page {i}", content=page(i)) for i in range(n)]
    metadata = {"Title": "Synthetic", "Description": "Synthetic pages", "Name": "synthetic"}
    metadata |= {"Creator": "Remeasure", "Publisher": "Remeasure"}
    write_archive(
        Path("pages.zim"), entries, main="Page 0000000", language="eng", date="2026-01-01", metadata=metadata
    )


def pages_chosen(n: int, rng: random.Random, sources: Path) -> list[str]:
    """Choosing all pages of an archive."""
    _archive(n, rng)
    files = {"archive": "pages.zim", "out": "pages.jsonl", "record": "pages.json"}
    return ["select_pages.py", *options({"pages": {"all": n}}, **files)]


def rendered(n: int, rng: random.Random, sources: Path) -> list[str]:
    """Rendering n pages of an archive with one browser."""
    _archive(n, rng)
    _write_pages(n)
    files = {"archive": "pages.zim", "pages": "pages.jsonl", "browsers": "1"}
    files |= {"manifest_out": "manifest.jsonl", "tiles_out": "tiles.zip", "record": "corpus.json"}
    return ["render_tiles.py", *options(PLAN.render(RUN, "factbook"), **files)]


def extracted(n: int, rng: random.Random, sources: Path) -> list[str]:
    """Passages of n pages of an archive."""
    _archive(n, rng)
    _write_pages(n)
    files = {"archive": "pages.zim", "pages": "pages.jsonl", "tokenizer": _text_model(sources)["tokenizer"]}
    files |= {
        "passages_out": "passages.jsonl",
        "extraction_out": "extraction.jsonl",
        "record": "passages.json",
    }
    return ["extract_text.py", *options(PLAN.text(RUN, "factbook"), **files)]
