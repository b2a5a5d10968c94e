"""What a captioner is shown: the image, then the same request for every image; no object is named."""

import hashlib
import re
import subprocess
from pathlib import Path

import pytest

from remeasure import building, prompts, requests
from remeasure.cells import AskSettings, Cell, Sampling
from remeasure.errors import RemeasureError
from remeasure.evidence import NOTHING
from remeasure.fingerprint import SCRIPTS
from remeasure.prompts import PromptFiles
from remeasure.records import ImageRef, Item
from remeasure.studies.tosc_messages import messages

CONFIG = SCRIPTS.parent / "config"
IMAGE = ImageRef(sha256="a" * 64, path="/data/benchmark/insert/images/17_masked_dog_insert_cat.png")
CELL = Cell(
    evidence="none",
    thinking=False,
    instruction=None,
    layout=None,
    prompts={"describe": "Say what you see.\n"},
)


def item(**more) -> Item:
    meta = {"state": "replaced", "original": "dog", "replacement": "cat"}
    return Item(
        **(
            {
                "item_id": "000017-replaced",
                "question": "",
                "images": (IMAGE,),
                "group": "000017",
                "meta": meta,
            }
            | more
        )
    )


def test_one_message_with_the_image_first_and_then_the_request():
    assert messages(item(), NOTHING, CELL) == [
        {
            "role": "user",
            "content": [
                {
                    "type": "image_url",
                    "image_url": {
                        "url": "remeasure-image:"
                        + "a" * 64
                        + "?path=%2Fdata%2Fbenchmark%2Finsert%2Fimages%2F"
                        "17_masked_dog_insert_cat.png"
                    },
                },
                {"type": "text", "text": "Say what you see."},
            ],
        }
    ]


def test_all_three_images_of_a_triplet_are_asked_the_same():
    asked = [
        messages(item(item_id=name, meta={"state": name}), NOTHING, CELL) for name in ("origin", "removed")
    ]
    assert asked[0] == asked[1]


@pytest.mark.parametrize(
    "changes", [{"images": ()}, {"images": (IMAGE, IMAGE)}, {"question": "Is there a dog?"}]
)
def test_an_item_that_is_no_single_image_is_an_error(changes):
    with pytest.raises(RemeasureError, match="item '000017-replaced': has .* images"):
        messages(item(**changes), NOTHING, CELL)


def test_a_profile_without_the_request_is_an_error():
    with pytest.raises(RemeasureError, match="prompt 'describe' is not among"):
        messages(
            item(), NOTHING, Cell(evidence="none", thinking=False, instruction=None, layout=None, prompts={})
        )


def test_the_name_of_the_file_is_no_part_of_an_answer_s_identity():
    def key(image: ImageRef) -> str:
        settings = AskSettings(
            model="m",
            evidence="none",
            n_shown=0,
            grader="triplets",
            thinking=False,
            max_tokens=1024,
            sampling=Sampling(temperature=0.0, seed=0),
            instruction=None,
            layout=None,
            prompts=PromptFiles(profile="own", files={}, sha256={}),
        )
        [(request, _)] = building.reader_requests(
            [item(images=(image,))], lambda _: NOTHING, messages, settings, CELL.prompts
        )
        assert request.body["temperature"] == 0.0 and request.body["seed"] == 0
        return requests.answer_key(request.body, "m", "identity", 0)

    assert key(IMAGE) == key(ImageRef(sha256="a" * 64, path="x.zip", member="1.png"))
    assert key(IMAGE) != key(ImageRef(sha256="b" * 64, path=IMAGE.path))


def test_our_own_request_is_one_line_that_names_no_object():
    text = prompts.load(PromptFiles(**prompts.profile(CONFIG, "tosc", "own")))["describe"]
    assert text == "Write a detailed description of what this picture shows.\n"


def test_the_published_request_is_known_by_its_hash_and_not_shipped():
    found = prompts.profile(CONFIG, "tosc", "published")
    assert found["files"] == {"describe": "results/sources/tosc_describe.txt"}
    # The hash of the sentence in the card's section 2: five words and a full stop, no line end.
    assert found["sha256"]["describe"].startswith("b9dd656520e3ede8")
    shipped = [path for path in (CONFIG / "prompts" / "tosc").rglob("*") if path.is_file()]
    assert {path.name for path in shipped} == {"describe.txt", "elsewhere.yaml"}
    assert "tosc_describe.txt" in Path(CONFIG / "sources_by_hand.tsv").read_text("utf-8")
    tracked = subprocess.run(["git", "ls-files", "-z"], cwd=SCRIPTS.parent, capture_output=True, text=True)
    if tracked.returncode:
        pytest.skip("this copy is no checkout, so what is tracked is not known")
    names = tracked.stdout.split("\0")[:-1]
    assert {"README.md", "tests/unit/test_captioner.py"} <= set(names)
    assert [name for name in names if says_it(SCRIPTS.parent / name, found["sha256"]["describe"])] == []


def says_it(path: Path, sha256: str) -> bool:
    """Say whether any five words in a row, however they are quoted and broken, are the request."""
    try:
        words = re.findall(r"[^\W\d_]+", path.read_text("utf-8")) if path.is_file() else []
    except UnicodeDecodeError:
        return False
    windows = {f"{' '.join(words[at : at + 5])}." for at in range(len(words) - 4)}
    return any(hashlib.sha256(window.encode()).hexdigest() == sha256 for window in windows)


def test_words_are_found_in_whatever_stands_around_them(tmp_path):
    path = tmp_path / "a.py"
    path.write_text('x = say("One two"\n    "three, four five")\n')
    # printf 'One two three four five.' | sha256sum
    assert says_it(path, "e44da3760940327106bf366dfb556e5efd183b00fa6c68d9afc6150bba44abcf")
