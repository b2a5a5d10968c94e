import json

import cv2
import msgspec
import numpy as np
import pytest

import build_index
import embed
import search
import train_adapter
from encoderkit import item, text_encoder
from remeasure import images, jsonl, provenance, torch_file, vectors
from remeasure.embedded.lines import text_lines, tile_lines
from remeasure.encoders import adapter, photo_model
from remeasure.files import sha256_bytes, sha256_file, sha256_of
from remeasure.records import (
    ImageRef,
    Item,
    OcrImage,
    OcrLine,
    Passage,
    PictureRef,
    Ranked,
    RenderedPage,
    Stage,
    TileRef,
)

TILES = {"name": "ocr-bge", "unit": "tiles", "model": "bge-small-en-v1.5", "max_tokens": 512, "size_px": None}
PICTURES = {"name": "photo", "unit": "pictures", "model": "efficientnet-lite0", "size_px": 224}


# -- the scripts, end to end with the real models ----------------------------------------------------------


FACTS = {
    "peru": ["Peru", "Capital: Lima", "Highest point: Nevado Huascaran"],
    "chad": ["Chad", "Capital: N'Djamena", "Highest point: Emi Koussi"],
    "oman": ["Oman", "Capital: Muscat", "Highest point: Jabal Shams"],
    "fiji": ["Fiji", "Capital: Suva", "Highest point: Tomanivi"],
}


def flag(number):
    drawn = np.full((90, 120, 3), 255, np.uint8)
    if number == 0:
        drawn[:, :40] = drawn[:, 80:] = (0, 0, 200)
    elif number == 1:
        drawn[:30], drawn[60:] = (0, 0, 0), (0, 160, 0)
    elif number == 2:
        cv2.circle(drawn, (60, 45), 32, (0, 0, 220), -1)
    else:
        cv2.line(drawn, (0, 0), (119, 89), (200, 0, 0), 22)
        cv2.line(drawn, (0, 89), (119, 0), (200, 0, 0), 22)
    return drawn


@pytest.fixture(scope="module")
def corpus(sources, tmp_path_factory):
    """Four pages with a flag each, recognised text given, all indexes built."""
    folder = tmp_path_factory.mktemp("corpus")
    members, pages, ocr = [], [], []
    for number, (name, lines) in enumerate(FACTS.items()):
        canvas = np.full((300, 400, 3), 255, np.uint8)
        canvas[100:190, 200:320] = flag(number)
        data = cv2.imencode(".png", canvas)[1].tobytes()
        tile = TileRef(
            tile_id=f"{name}/0000",
            member=f"{name}.png",
            sha256=sha256_bytes(data),
            y_px=0,
            height_px=300,
            width_px=400,
        )
        picture = PictureRef(picture_id=f"{name}/picture-00", x_px=200, y_px=100, width_px=120, height_px=90)
        members.append((tile.member, data))
        pages.append(
            RenderedPage(
                page_id=name,
                status="rendered",
                width_px=400,
                height_px=300,
                tiles=(tile,),
                pictures=(picture,),
            )
        )
        found = tuple(
            OcrLine(text=text, box=(0, 20 * row, 90, 20 * row + 15), confidence=1.0)
            for row, text in enumerate(lines)
        )
        ocr.append(
            OcrImage(sha256=tile.sha256, tile_id=tile.tile_id, width_px=400, height_px=300, lines=found)
        )
    images.write_store(folder / "tiles.zip", members)
    jsonl.write(folder / "manifest.jsonl", pages)
    jsonl.write(folder / "ocr.jsonl", ocr)
    passages = [
        Passage(
            passage_id=f"{name}/0000",
            page_id=name,
            chunk_index=0,
            char_offset=0,
            n_tokens=9,
            text=f"# {name}\n\n{'. '.join(lines)}.",
            title=name,
            url=name,
        )
        for name, lines in FACTS.items()
    ]
    jsonl.write(folder / "passages.jsonl", passages)
    weights = photo_model.to_onnx(torch_file.read(sources / "efficientnet-lite0.pth"))
    (folder / "photo.onnx").write_bytes(weights)
    return folder


def words(folder, **options):
    """Options of a script; relative paths lie in the folder."""
    found = []
    for name, value in options.items():
        text = json.dumps(value) if isinstance(value, dict) else str(value)
        plain = isinstance(value, dict) or name == "threads" or text.startswith("/")
        found += [f"--{name.replace('_', '-')}", text if plain else str(folder / text)]
    return found


def run_embed(folder, sources, what, name, **more):
    (folder / name).mkdir(exist_ok=True)
    inputs = {
        "tiles": {"manifest": "manifest.jsonl", "ocr": "ocr.jsonl"},
        "lines": {"ocr": "ocr.jsonl", "passages": "passages.jsonl"},
        "passages": {"passages": "passages.jsonl"},
        "pictures": {"manifest": "manifest.jsonl", "tiles": "tiles.zip", "model": "photo.onnx"},
    }[what["unit"]]
    text = {
        "model": sources / "bge-small-en-v1.5.onnx",
        "tokenizer": sources / "bge-small-en-v1.5.tokenizer.json",
    }
    made = {"out": f"{name}/d.h5", "order": f"{name}/order.txt", "record": f"{name}/d.json"}
    given = ({} if what["unit"] == "pictures" else text) | inputs | made | {"threads": 1} | more
    return embed.main(words(folder, settings=what, **given))


def run_index(folder, what, name, **more):
    made = {"out": f"{name}/index.faiss", "record": f"{name}/index.json"}
    inputs = {"descriptors": f"{name}/d.h5", "order": f"{name}/order.txt"}
    told = {"kind": "flat", "encoder": what} | more
    return build_index.main(words(folder, settings=told, **inputs, **made))


@pytest.fixture(scope="module")
def indexed(corpus, sources):
    for what, name in ((TILES, "ocr-bge"), (PICTURES, "photo")):
        assert run_embed(corpus, sources, what, name) == 0
        assert run_index(corpus, what, name) == 0
    return corpus


def run_search(folder, sources, items, text=TILES, index="ocr-bge", with_photo=True, **more):
    jsonl.write(folder / "items.jsonl", items)
    routes = [("text", index)] + ([("photo", "photo")] if with_photo else [])
    files = {
        f"{role}_{part}": f"{name}/{file}"
        for role, name in routes
        for part, file in (("index", "index.faiss"), ("record", "index.json"), ("order", "order.txt"))
    }
    weights = {
        "model": sources / "bge-small-en-v1.5.onnx",
        "tokenizer": sources / "bge-small-en-v1.5.tokenizer.json",
    }
    if with_photo:
        files |= {"photo_model": "photo.onnx", "manifest": "manifest.jsonl"}
    told = {
        "n_docs": 3,
        "text": text,
        "photo": PICTURES if with_photo else None,
        "fusion": {"text_weight": 1.0, "photo_weight": 20.0, "rank_constant": 10} if with_photo else None,
    }
    made = {"items": "items.jsonl", "out": "ranking.jsonl", "record": "retrieval.json"}
    return search.main(words(folder, settings=told, **(files | weights | made | more)))


def flag_item(folder, name, number):
    """A question whose picture is the flag of a page, turned a little and darker."""
    turn = cv2.getRotationMatrix2D((60, 45), 8, 0.9)
    seen = cv2.warpAffine(flag(number), turn, (120, 90), borderValue=(90, 140, 110)) // 4 * 3
    data = cv2.imencode(".png", seen)[1].tobytes()
    (folder / f"q{number}.png").write_bytes(data)
    ref = ImageRef(sha256=sha256_bytes(data), path=str(folder / f"q{number}.png"))
    asked = "What is the capital of the country with this flag?"
    return Item(
        item_id=f"flag-{name}", question=asked, images=(ref,), references=("r",), relevant=(name,), group=name
    )


@pytest.mark.models
def test_questions_and_flags_find_their_pages(indexed, sources, monkeypatch):
    hashed = []
    monkeypatch.setattr(provenance, "sha256_of", lambda path: hashed.append(path.name) or sha256_of(path))
    items = [item(f"capital-{name}", f"What is the capital of {name.title()}?", (name,)) for name in FACTS]
    items += [flag_item(indexed, name, number) for number, name in enumerate(FACTS)]
    assert run_search(indexed, sources, items) == 0
    ranking = list(jsonl.read(indexed / "ranking.jsonl", Ranked))
    assert [ranked.item_id for ranked in ranking] == [one.item_id for one in items]
    assert [ranked.ids[0] for ranked in ranking] == [f"{name}/0000" for name in [*FACTS, *FACTS]]
    stage = jsonl.read_json(indexed / "retrieval.json", Stage)
    assert stage.facts["hits_at"] == {"1": 8, "2": 8, "3": 8}
    assert stage.counts == {"items": 8, "with_images": 4, "with_relevant": 8, "units": 4}
    # Indexes were hashed when they were opened, and are not read again for the record.
    assert "index.faiss" not in hashed and "items.jsonl" in hashed
    for index in (indexed / "ocr-bge/index.faiss", indexed / "photo/index.faiss"):
        assert stage.inputs[str(index)] == sha256_file(index)
    first = (indexed / "ranking.jsonl").read_bytes()
    assert run_search(indexed, sources, items) == 0 and (indexed / "ranking.jsonl").read_bytes() == first


@pytest.mark.models
def test_embedding_twice_with_other_threads_gives_the_same_bytes(indexed, sources):
    before = (indexed / "ocr-bge/d.h5").read_bytes()
    assert run_embed(indexed, sources, TILES, "again", threads=2) == 0
    assert (indexed / "again/d.h5").read_bytes() == before


@pytest.mark.models
def test_lines_are_those_of_the_page_reader_each_once(indexed, sources):
    what = {"name": "lines", "unit": "lines", "model": "bge-small-en-v1.5", "max_tokens": 128}
    assert run_embed(indexed, sources, what, "lines") == 0
    found = vectors.read_descriptors(indexed / "lines/d.h5", indexed / "lines/order.txt")
    expected = [line for image in jsonl.read(indexed / "ocr.jsonl", OcrImage) for line in tile_lines(image)]
    expected += [
        line
        for passage in jsonl.read(indexed / "passages.jsonl", Passage)
        for line in text_lines(passage.text)
    ]
    distinct = list(dict.fromkeys(expected))
    assert found.order == tuple(sha256_bytes(line.encode()) for line in distinct)
    alone = text_encoder(sources, unit="lines", max_tokens=128).documents(distinct[:1])
    assert alone[0].tobytes() == found.vectors[0].tobytes()


@pytest.mark.models
def test_passages_keep_their_ids(indexed, sources):
    what = {"name": "text", "unit": "passages", "model": "bge-small-en-v1.5", "max_tokens": 512}
    assert run_embed(indexed, sources, what, "text") == 0 and run_index(indexed, what, "text") == 0
    assert (indexed / "text/order.txt").read_text().split() == [f"{name}/0000" for name in FACTS]
    asked = [item("a", "What is the highest point of Oman?", ("oman",))]
    assert run_search(indexed, sources, asked, what, "text", with_photo=False) == 0
    assert next(jsonl.read(indexed / "ranking.jsonl", Ranked)).ids[0] == "oman/0000"


@pytest.fixture(scope="module")
def trained(indexed, sources):
    """An adapter trained on two pages, stopped on a third, and the tiles embedded with it."""
    named = {"train": ("peru", "chad"), "dev": ("oman",)}
    for name, pages in named.items():
        asked = [item(f"{page}-{n}", q, (page,)) for page in pages for n, q in enumerate(FACTS[page][1:])]
        jsonl.write(indexed / f"{name}.jsonl", asked)
    told = {"study": "s", "base": "ocr-bge", "base_encoder": TILES, "rank": 4, "temperature": 0.05}
    told |= {"learning_rate": 0.002, "max_steps": 5, "patience": 5, "seed": 7}
    weights = {
        "model": sources / "bge-small-en-v1.5.onnx",
        "tokenizer": sources / "bge-small-en-v1.5.tokenizer.json",
    }
    inputs = {"train": "train.jsonl", "dev": "dev.jsonl"}
    inputs |= {"descriptors": "ocr-bge/d.h5", "order": "ocr-bge/order.txt"}
    made = {"out": "adapter.h5", "report": "training.json", "record": "adapter.json"}
    options = words(indexed, settings=told, **weights, **inputs, **made)
    assert train_adapter.main(options) == 0
    first = (indexed / "adapter.h5").read_bytes()
    assert train_adapter.main(options) == 0 and (indexed / "adapter.h5").read_bytes() == first
    what = TILES | {"name": "trained", "trained": True}
    assert run_embed(indexed, sources, what, "trained", adapter="adapter.h5") == 0
    assert run_index(indexed, what, "trained") == 0
    return indexed, what, options


@pytest.mark.models
def test_training_reports_every_step_and_keeps_other_pages_out(trained):
    folder, _, _ = trained
    report = jsonl.read_json(folder / "training.json")
    assert [step["step"] for step in report["steps"]] == list(range(len(report["steps"])))
    assert report["counts"] == {"train_questions": 4, "train_tiles": 2, "dev_questions": 2, "dev_tiles": 3}
    assert report["is_identity"] == (report["chosen_step"] == 0)
    assert report["is_identity"] != adapter.read(folder / "adapter.h5").up.any()


@pytest.mark.models
def test_an_index_is_refused_when_only_one_side_has_the_adapter(trained, sources, capsys):
    """P7: the trained index with the base query encoder, and the other way round."""
    folder, what, _ = trained
    asked = [item("a", "What is the capital of Peru?")]
    with_adapter = {"adapter": "adapter.h5"}
    good = dict(index="trained", text=what, with_photo=False, **with_adapter)
    assert run_search(folder, sources, asked, **good) == 0
    capsys.readouterr()
    for wrong in ({"index": "ocr-bge"}, {"text": TILES}):
        options = good | wrong
        if "text" in wrong:
            options.pop("adapter")
        assert run_search(folder, sources, asked, **options) == 2
        said = capsys.readouterr().err
        assert "made with adapter_sha256" in said and said.count("error:") == 1


@pytest.mark.models
def test_sets_that_share_a_page_are_refused(trained, capsys):
    folder, _, options = trained
    changed = list(options)
    changed[changed.index("--dev") + 1] = str(folder / "train.jsonl")
    assert train_adapter.main(changed) == 2
    assert "the sets must be disjoint" in capsys.readouterr().err


@pytest.mark.models
def test_mixed_up_files_are_refused_in_one_line(indexed, sources, capsys):
    asked = [item("a", "What is the capital of Peru?")]
    assert run_search(indexed, sources, asked, TILES | {"max_tokens": 256}) == 2
    assert "made with input_limit 512 tokens" in capsys.readouterr().err
    assert run_search(indexed, sources, asked, text_order="photo/order.txt") == 2
    assert "not the order that" in capsys.readouterr().err
    assert run_search(indexed, sources, asked, with_photo=False, manifest="manifest.jsonl") == 2
    assert "--manifest" in capsys.readouterr().err
    assert run_search(indexed, sources, asked * 2) == 2
    assert "item_id 'a' stands already in line 1" in capsys.readouterr().err
    assert run_search(indexed, sources, []) == 2
    assert "holds no questions" in capsys.readouterr().err
    assert run_index(indexed, PICTURES, "ocr-bge") == 2
    assert "vectors of tiles made without an adapter" in capsys.readouterr().err


@pytest.mark.models
def test_a_tile_read_from_other_bytes_is_refused(indexed, sources, capsys):
    changed = [
        msgspec.structs.replace(image, sha256="0" * 64)
        for image in jsonl.read(indexed / "ocr.jsonl", OcrImage)
    ]
    jsonl.write(indexed / "other.jsonl", changed)
    assert run_embed(indexed, sources, TILES, "bad", ocr="other.jsonl") == 2
    assert "tile peru/0000 was read from other bytes" in capsys.readouterr().err
    assert not (indexed / "bad/d.h5").exists()


@pytest.mark.models
def test_an_empty_corpus_is_an_error_at_once(indexed, sources, capsys):
    jsonl.write(indexed / "none.jsonl", [])
    assert run_embed(indexed, sources, TILES, "none", ocr="none.jsonl") == 2
    assert "there is nothing to embed (0 tiles)" in capsys.readouterr().err


def test_missing_options_are_all_named(tmp_path, capsys):
    made = {"out": "d.h5", "order": "o.txt", "record": "d.json", "threads": 1, "model": "m.onnx"}
    assert embed.main(words(tmp_path, settings=TILES, **made)) == 2
    assert "missing --manifest, --ocr, --tokenizer" in capsys.readouterr().err
