"""The captioner: it looks at pixels and at nothing else, and says what it sees in plain sentences."""

import base64
import io
import json
import struct
import zipfile
import zlib
from pathlib import Path

import cv2
import numpy as np
import pytest
import yaml
from PIL import Image
from PIL.PngImagePlugin import PngInfo

import serve_captioner
from remeasure import scenes
from remeasure.embedded import captioner, everyday_words, looking
from remeasure.embedded.chat import BadRequest, parse
from remeasure.embedded.looking import Seen, View
from remeasure.errors import RemeasureError
from serverkit import said, served, text, url

CONFIG = Path(__file__).resolve().parents[2] / "config" / "scenes.yaml"
FILES = {
    "weights": "efficientnet-lite0.pth",
    "synsets": "imagenet-synsets.txt",
    "lemmas": "imagenet-lemmas.txt",
}
SCAN = {"scales": 3, "threshold": 0.25}
GLANCE = {"scales": 1, "threshold": 0.2}
NOTHING = "Nothing in it can be made out."


class Fake:
    """Sees a balloon wherever a picture is mostly red."""

    def look(self, image, scales, threshold):
        blue, _, red = image.reshape(-1, 3).mean(axis=0)
        height, width = image.shape[:2]
        return [Seen("balloon", 0.9, View(0, 0, width, height), True)] if red > blue + 50 else []


def png(array) -> bytes:
    return cv2.imencode(".png", np.asarray(array, np.uint8))[1].tobytes()


def flat(*colour, size=(40, 60)) -> bytes:
    return png(np.full((*size, len(colour)), colour))


def request(*parts, **more):
    body = {"model": "m", "messages": [{"role": "user", "content": list(parts)}], **more}
    return parse(json.dumps(body).encode())


def describe(data: bytes) -> str:
    return captioner.Captioner(Fake(), 1, 0.5).describe(data)


RED = flat(0, 0, 255)


def test_a_caption_says_what_is_seen_and_nothing_where_nothing_is():
    assert describe(RED) == "The picture is evenly lit. It shows a balloon."
    assert describe(flat(128, 128, 128)) == f"The picture is evenly lit. {NOTHING}"
    assert describe(flat(0, 0, 0)) == f"The picture is dark. {NOTHING}"
    assert describe(flat(255, 255, 255)) == f"The picture is bright. {NOTHING}"


def test_sentences_say_where_things_are_and_how_many_at_most():
    def thing(word, left, top, whole=False):
        return Seen(word, 0.5, View(left, top, 100, 100), whole)

    size = (400, 300)
    places = [
        ("left", 0, 100),
        ("right", 300, 100),
        ("top", 150, 0),
        ("bottom", 150, 200),
        ("middle", 150, 100),
    ]
    for name, left, top in places:
        assert captioner.place_of(thing("x", left, top), size).endswith(name)
    seen = [thing("umbrella", 0, 100), thing("corn", 300, 100), thing("dog", 150, 100, True)]
    assert captioner.caption(seen, size, 100) == (
        "The picture is evenly lit. It shows an umbrella on the left. It also shows corn on the right. "
        "There is also a dog."
    )
    many = [thing(f"thing {number}", 0, 0) for number in range(20)]
    assert captioner.caption(many, size, 100).count("thing") == captioner.MAX_THINGS


@pytest.mark.parametrize(
    ("word", "named"),
    [
        *(("dog", "a dog"), ("umbrella", "an umbrella"), ("unicycle", "a unicycle"), ("jeans", "jeans")),
        *(("bus", "a bus"), ("dress", "a dress"), ("abacus", "an abacus"), ("sunglasses", "sunglasses")),
        *(("toilet", "a toilet"), ("toilet paper", "toilet paper"), ("octopus", "an octopus")),
    ],
)
def test_things_have_the_right_article(word, named):
    assert looking.with_article(word) == named


def test_words_of_the_request_and_metadata_change_nothing():
    asked = captioner.Captioner(Fake(), 1, 0.5)
    picture = {
        "type": "image_url",
        "image_url": {"url": "data:image/png;base64," + base64.b64encode(RED).decode()},
    }
    texts = {
        asked.answer(request({"type": "text", "text": words}, picture)).text
        for words in ("What does this picture show?", "Is there a cat? file cat.png", "")
    }
    assert texts == {describe(RED)}
    image = Image.open(io.BytesIO(RED))
    named, exif = PngInfo(), Image.Exif()
    named.add_text("Title", "a cat and a dog")
    exif[0x010E], exif[0x0112] = "a cat", 6
    for options in ({"pnginfo": named}, {"exif": exif.tobytes()}):
        out = io.BytesIO()
        image.save(out, "PNG", **options)
        assert out.getvalue() != RED and describe(out.getvalue()) == describe(RED)


def test_an_image_turned_by_its_metadata_is_looked_at_as_it_is_stored():
    rows = np.zeros((40, 60, 3), np.uint8)
    rows[:, :30] = (0, 0, 255)
    exif = Image.Exif()
    exif[0x0112] = 6
    plain, turned = io.BytesIO(), io.BytesIO()
    image = Image.fromarray(rows[:, :, ::-1])
    image.save(plain, "JPEG", quality=95)
    image.save(turned, "JPEG", quality=95, exif=exif.tobytes())
    assert (captioner.decode(plain.getvalue()) == captioner.decode(turned.getvalue())).all()


def test_all_pixel_layouts_are_read():
    for array in (
        *(np.full((9, 9), 200, np.uint8), np.full((9, 9, 4), (0, 0, 255, 0), np.uint8)),
        np.full((9, 9, 3), 200 << 8, np.uint16),
    ):
        found = captioner.decode(cv2.imencode(".png", array)[1].tobytes())
        assert found.shape == (9, 9, 3) and found.dtype == np.uint8 and found.min() >= 200
    palette = io.BytesIO()
    Image.new("P", (9, 9)).save(palette, "GIF")
    assert captioner.decode(palette.getvalue()).shape == (9, 9, 3)
    assert captioner.decode(flat(9, 9, 9, size=(4, 5000))).shape == (1, 1024, 3)


def bomb(width: int, height: int) -> bytes:
    """A PNG of a few bytes that claims a size."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0))
    return b"\x89PNG\r\n\x1a\n" + header + chunk(b"IDAT", zlib.compress(b"\0" * 100)) + chunk(b"IEND", b"")


@pytest.mark.parametrize(
    "data",
    [
        *(b"", b"GIF89a", b"no image at all", b"<svg xmlns='http://www.w3.org/2000/svg'/>", RED[:40]),
        *(bomb(100_000, 100_000), bomb(12_000, 12_000), bomb(0, 5), bomb(300, 300)),
    ],
)
def test_what_is_no_picture_or_too_large_is_refused(data):
    with pytest.raises(BadRequest, match="image"):
        describe(data)


def test_requests_without_a_picture_with_several_or_with_an_address_are_refused():
    asked = captioner.Captioner(Fake(), 1, 0.5)
    one = url(RED)
    for parts, problem in (
        ([text("What does this picture show?")], "0 images"),
        ([one, one], "2 images"),
        ([{"type": "image_url", "image_url": {"url": "http://127.0.0.1/cat.png"}}], "is not a data: address"),
        ([{"type": "image_url", "image_url": {"url": "file:///etc/passwd"}}], "is not a data: address"),
        ([{"type": "image_url", "image_url": {"url": "data:image/png;base64,?"}}], "not base64"),
    ):
        with pytest.raises(BadRequest, match=problem):
            asked.answer(request(*parts))


def test_stops_and_limits_cut_the_caption():
    asked = captioner.Captioner(Fake(), 1, 0.5)
    cut = asked.answer(request(url(RED), max_tokens=3))
    assert (cut.text, cut.finish_reason, cut.completion_tokens) == ("The picture is", "length", 3)
    assert asked.answer(request(url(RED), stop=["It shows"])).text == "The picture is evenly lit. "


def test_a_caption_as_long_as_the_limit_is_not_cut():
    asked = captioner.Captioner(Fake(), 1, 0.5)
    # Nine words.
    whole = asked.answer(request(url(RED), max_tokens=9))
    assert (whole.text, whole.finish_reason) == ("The picture is evenly lit. It shows a balloon.", "stop")
    cut = asked.answer(request(url(RED), max_tokens=8))
    assert (cut.text, cut.finish_reason) == ("The picture is evenly lit. It shows a", "length")


def test_squares_overlap_by_half_and_reach_the_far_edges():
    # Sides 0.85 * 336 = 286: two further steps of 81 make up the 162 that the width is wider, one of 50 the
    # height.
    assert looking.views(448, 336, 2) == [
        View(0, 0, 448, 336),
        *(View(left, top, 286, 286) for top in (0, 50) for left in (0, 81, 162)),
    ]


def looker_of(*rows: tuple[float, float]) -> looking.Looker:
    """A looker to whom the views show a dog and a cat with these probabilities, one row after the other."""
    found = object.__new__(looking.Looker)
    found.words, given = ["dog", "cat"], iter(rows)
    found.shares = lambda *_: np.array(next(given))
    return found


def test_of_several_views_the_surest_counts_and_of_equal_ones_the_first():
    picture = np.zeros((100, 100, 3), np.uint8)
    views = [View(0, 0, 100, 100), *(View(left, top, 85, 85) for top in (0, 15) for left in (0, 15))]
    rows = [(0.5, 0.3), (0.2, 0.6), (0.9, 0.0), (0.7, 0.1), (0.1, 0.6)]
    assert looker_of(*rows).look(picture, 2, 0.4) == [
        Seen("dog", 0.9, views[2], False),
        Seen("cat", 0.6, views[1], False),
    ]
    rows = [(0.9, 0.0), *[(0.8, 0.0)] * 3, (0.0, 0.4)]
    assert looker_of(*rows).look(picture, 2, 0.4) == [
        Seen("dog", 0.9, views[0], True),
        Seen("cat", 0.4, views[4], False),
    ]


def test_a_picture_of_any_shape_is_looked_at_a_bounded_number_of_times():
    assert len(looking.views(448, 336, 1)) == 1
    assert len(looking.views(448, 336, 3)) == 19
    for size in ((1, 1), (1, 1024), (1024, 1), (1024, 2), (7, 5)):
        found = looking.views(*size, 3)
        assert len(found) <= 1 + 2 * looking.MAX_STEPS**2
        for view in found:
            assert view.width >= 1 and view.height >= 1
            assert 0 <= view.left <= size[0] - view.width and 0 <= view.top <= size[1] - view.height
    covered = np.zeros((336, 448), bool)
    for view in looking.views(448, 336, 3)[7:]:
        covered[view.top : view.top + view.height, view.left : view.left + view.width] = True
    assert covered.all()


def test_a_shifted_list_of_classes_is_noticed(tmp_path):
    with pytest.raises(RemeasureError, match="no list of the classes of ImageNet 2012"):
        everyday_words.words_of([f"thing {number}" for number in range(1000)])
    (tmp_path / "s").write_text("n1\nn2\n")
    (tmp_path / "l").write_text("n1\tcat\n")
    with pytest.raises(RemeasureError, match="2 classes, 1 of them without a name"):
        looking.read_words(tmp_path / "s", tmp_path / "l")
    with pytest.raises(RemeasureError, match="cannot be read"):
        looking.read_words(tmp_path / "missing", tmp_path / "l")


@pytest.mark.parametrize(
    ("option", "value"), [("--scales", "0"), ("--scales", "4"), ("--threshold", "0"), ("--threads", "2")]
)
def test_options_out_of_range_are_named(tmp_path, capsys, option, value):
    words = {"--weights": "w", "--synsets": "s", "--lemmas": "l", "--scales": "1", "--threshold": "0.5"}
    words |= {"--port": "0", "--port-file": str(tmp_path / "p"), "--served-name": "m", "--threads": "1"}
    words[option] = value
    assert serve_captioner.main([part for pair in words.items() for part in pair]) == 2
    assert f"{option} {value}" in capsys.readouterr().err


# -- with the real weights -----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def words(sources) -> list[str]:
    return looking.read_words(sources / FILES["synsets"], sources / FILES["lemmas"])


@pytest.fixture(scope="module")
def looker(sources, words) -> looking.Looker:
    return looking.Looker(sources / FILES["weights"], words)


@pytest.fixture(scope="module")
def tuning(sources) -> list[tuple[scenes.Triplet, list[bytes]]]:
    """A few triplets of the seed that thresholds were chosen on."""
    given = yaml.safe_load(CONFIG.read_text("utf-8"))["composed-triplets"] | {
        "seed": "tuning",
        "n_triplets": 24,
    }
    settings = scenes.read_settings(json.dumps(given))
    composer = scenes.Composer(
        settings,
        scenes.read_members(
            sources / "panoramas.zip", {name: f"hdri/{name}.jpg" for name in settings.places}
        ),
        scenes.read_members(
            sources / "twemoji.zip", {name: f"72x72/{code}.png" for name, code in settings.objects.items()}
        ),
    )
    wanted = [
        triplet
        for triplet in scenes.plan(settings)
        if triplet.original in ("soccer ball", "clock", "laptop", "bucket", "ambulance")
        and triplet.bystander is None
    ]
    return [(triplet, [data for _, data in composer.pictures(triplet)]) for triplet in wanted]


@pytest.mark.models
def test_every_class_has_its_word(words):
    assert len(words) == 1000
    chosen = {
        207: "dog",
        285: "cat",
        499: "knife",
        850: "teddy bear",
        851: "television",
        920: "traffic light",
    }
    assert {number: words[number] for number in chosen} == chosen
    assert {words[number] for number in range(151, 269)} == {"dog"}
    assert all(word == word.lower().strip() for word in words)


@pytest.mark.models
@pytest.mark.parametrize("how", [SCAN, GLANCE])
def test_flat_and_noisy_pictures_show_no_object(looker, how):
    asked = captioner.Captioner(looker, **how)
    noise = np.random.RandomState(0)
    pictures = [np.full((336, 448, 3), shade) for shade in (0, 127, 128, 255)]
    pictures += [np.full((1, 1, 3), 128), np.full((1, 900, 3), 128)]
    pictures += [
        noise.randint(0, 256, (336, 448, 3)),
        128 + noise.normal(0, 20, (336, 448, 3)).clip(-128, 127),
    ]
    for picture in pictures:
        assert asked.describe(png(picture)).endswith(NOTHING)


@pytest.mark.models
def test_an_object_is_named_where_it_is_and_not_where_it_was_removed(looker, tuning):
    """It really looks: the pictures of a triplet differ in nothing but the object."""
    asked = captioner.Captioner(looker, **SCAN)
    assert len(tuning) >= 3
    for triplet, (original, removed, _) in tuning:
        assert triplet.original in asked.describe(original)
        assert triplet.original not in asked.describe(removed)


@pytest.mark.models
def test_two_ways_of_looking_differ(looker, tuning):
    pictures = [data for _, (original, _, replaced) in tuning for data in (original, replaced)]
    captions = [
        [captioner.Captioner(looker, **how).describe(data) for data in pictures] for how in (SCAN, GLANCE)
    ]
    assert captions[0] != captions[1]
    assert sum(map(len, captions[0])) > sum(map(len, captions[1]))


@pytest.mark.models
def test_over_http_the_same_pixels_give_the_same_caption_under_any_name_in_any_process(
    sources, tuning, tmp_path
):
    _, (original, removed, _) = tuning[0]
    array = cv2.imdecode(np.frombuffer(removed, np.uint8), cv2.IMREAD_COLOR)
    named = PngInfo()
    named.add_text("Description", "17_masked_hot dog_insert_sports car.png")
    again = io.BytesIO()
    Image.fromarray(array[:, :, ::-1]).save(again, "PNG", pnginfo=named, compress_level=1)
    assert again.getvalue() != removed
    captions = []
    for order in ((original, removed, again.getvalue()), (again.getvalue(), removed, original)):
        with served("serve_captioner.py", tmp_path, sources, FILES, **SCAN) as ask:
            captions.append(
                {data: said(ask([text("What does this picture show?"), url(data)])) for data in order}
            )
            assert ask([url(b"junk")])["status"] == 400
            assert ask([text("What does this picture show?")])["status"] == 400
            assert ask([url(original)], model="other")["status"] == 404
    assert captions[0] == captions[1]
    assert captions[0][removed] == captions[0][again.getvalue()] != captions[0][original]


@pytest.mark.models
def test_graded_pictures_under_other_names_and_without_metadata_keep_their_captions(sources, looker):
    """The whole store renamed: captions follow the pixels."""
    asked = captioner.Captioner(looker, **GLANCE)
    with zipfile.ZipFile(sources / "composed-triplets.zip") as store:
        for name in store.namelist()[:9]:
            data = store.read(name)
            out = io.BytesIO()
            # PNG keeps what was decoded from a JPEG exactly.
            image = cv2.imdecode(np.frombuffer(data, np.uint8), cv2.IMREAD_COLOR)
            Image.fromarray(image[:, :, ::-1]).save(out, "PNG")
            assert asked.describe(out.getvalue()) == asked.describe(data)
