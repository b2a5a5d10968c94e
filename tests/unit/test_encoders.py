import cv2
import msgspec
import numpy as np
import pytest

from encoderkit import page, settings, text_encoder
from remeasure.encoders import check_settings, photo, pictures
from remeasure.encoders.text import TextEncoder
from remeasure.errors import RemeasureError

# -- settings ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("other", "says"),
    [
        ({"model": "bge-smal-en-v1.5"}, "did you mean 'bge-small-en-v1.5'"),
        ({"model": "efficientnet-lite0"}, "is not known (bge-small-en-v1.5)"),
        ({"max_tokens": 513}, "needs max_tokens from 8 to 512"),
        ({"size_px": 224}, "no other limit"),
        ({"unit": "pictures", "model": "efficientnet-lite0", "max_tokens": None}, "needs size_px"),
        (
            {
                "unit": "pictures",
                "model": "efficientnet-lite0",
                "max_tokens": None,
                "size_px": 224,
                "trained": True,
            },
            "adapters are for text encoders",
        ),
    ],
)
def test_settings_that_do_not_fit_are_refused(other, says):
    with pytest.raises(RemeasureError) as caught:
        check_settings(settings(**other))
    assert says in str(caught.value)


# -- text encoder ------------------------------------------------------------------------------------------


@pytest.mark.models
def test_a_text_has_one_vector_whatever_is_embedded_beside_it(sources):
    texts = ["Lima is the capital of Peru.", "short", "", "a much longer text " * 40]
    alone = text_encoder(sources)
    together = text_encoder(sources, threads=3).documents(texts)
    assert together.dtype == np.float32 and together.shape == (4, 384)
    for text, row in zip(texts, together, strict=True):
        assert alone.documents([text])[0].tobytes() == row.tobytes()
    assert np.linalg.norm(together, axis=1) == pytest.approx(1, abs=1e-6)
    assert alone.documents([]).shape == (0, 384)


@pytest.mark.models
def test_questions_go_the_same_way_as_documents_behind_the_prefix(sources):
    """P8: one function for both."""
    encoder = text_encoder(sources)
    prefix = "Represent this sentence for searching relevant passages: "
    assert (
        encoder.queries(["Where is Lima?"]).tobytes()
        == encoder.documents([prefix + "Where is Lima?"]).tobytes()
    )
    answers = encoder.documents(["Lima is the capital of Peru.", "Butter melts at 35 degrees."])
    close, far = answers @ encoder.queries(["What is the capital of Peru?"])[0]
    assert close > far + 0.2


@pytest.mark.models
def test_long_texts_are_cut_at_the_limit(sources):
    encoder = text_encoder(sources, max_tokens=16)
    assert encoder.n_tokens("word " * 100) == 16
    assert (
        encoder.documents(["word " * 100]).tobytes() == encoder.documents(["word " * 100 + "end"]).tobytes()
    )


@pytest.mark.models
def test_identity_names_the_files_and_says_ocr_for_tiles(sources):
    found = text_encoder(sources).identity()
    assert found.encoder == "OCR + bge-small-en-v1.5" and found.pooling == "cls" and found.dim == 384
    assert found.model_sha256 == "68807e3ff2abb83cdd708d8243fd398246e397bfee2ba611c2bad728e27df743"
    assert text_encoder(sources, unit="lines").identity().encoder == "bge-small-en-v1.5"


def test_missing_and_broken_models_are_one_line(tmp_path):
    (tmp_path / "m.onnx").write_bytes(b"no model")
    (tmp_path / "t.json").write_text("{}")
    for model, says in (("absent.onnx", "is missing"), ("m.onnx", "not a usable ONNX model")):
        with pytest.raises(RemeasureError, match=says) as caught:
            TextEncoder(settings(), tmp_path / model, tmp_path / "t.json", 1)
        assert "\n" not in str(caught.value)


# -- pictures ----------------------------------------------------------------------------------------------


def pixels_of(tile):
    """A tile whose value is the row of the page."""
    rows = np.arange(tile.y_px, tile.y_px + tile.height_px, dtype=np.uint8)
    return np.broadcast_to(rows[:, None, None], (tile.height_px, tile.width_px, 3))


def test_a_picture_across_two_tiles_is_put_together():
    shown = page()
    found = pictures.crop(shown, shown.pictures[0], pixels_of)
    assert found.shape == (4, 3, 3) and found[:, 0, 0].tolist() == [8, 9, 10, 11]


def test_parts_beyond_the_page_are_left_away_and_nothing_on_the_page_is_an_error():
    shown = page(boxes=((6, 18, 9, 9), (9, 0, 4, 4), (0, 30, 4, 4)))
    assert pictures.crop(shown, shown.pictures[0], pixels_of).shape == (2, 2, 3)
    for lost in shown.pictures[1:]:
        with pytest.raises(RemeasureError, match=lost.picture_id):
            pictures.crop(shown, lost, pixels_of)


def test_a_gap_between_tiles_is_an_error():
    shown = page(heights=(10, 10, 10), boxes=((0, 5, 4, 20),))
    torn = msgspec.structs.replace(shown, tiles=(shown.tiles[0], shown.tiles[2]))
    with pytest.raises(RemeasureError, match="does not lie on the tiles"):
        pictures.crop(torn, torn.pictures[0], pixels_of)


def test_the_tile_under_a_picture_holds_its_middle():
    shown = page(boxes=((0, 8, 4, 3), (0, 8, 4, 4), (0, 50, 4, 4)))
    assert [pictures.tile_under(shown, one) for one in shown.pictures] == ["p/0000", "p/0001", None]


def test_transparent_pixels_become_white_and_grey_images_get_three_channels():
    clear = np.zeros((2, 2, 4), np.uint8)
    clear[0, 0] = (10, 20, 30, 255)
    found = photo.decode(cv2.imencode(".png", clear)[1].tobytes(), "x")
    assert found[0, 0].tolist() == [10, 20, 30] and found[1, 1].tolist() == [255, 255, 255]
    grey = cv2.imencode(".png", np.full((2, 2), 7, np.uint8))[1].tobytes()
    assert photo.decode(grey, "x")[0, 0].tolist() == [7, 7, 7]


def test_generalised_mean_by_hand():
    # Means of cubes: (0 + 8) / 2 = 4 and (1 + 1) / 2 = 1; roots 4^(1/3) and 1.
    found = photo.pool(np.float32([[[0, 2]], [[1, 1]]]))
    assert found[0] / found[1] == pytest.approx(4 ** (1 / 3), rel=1e-6)
    assert np.linalg.norm(found) == pytest.approx(1, abs=1e-6)


def test_colours_are_turned_and_scaled_as_the_network_expects():
    blue = np.zeros((300, 400, 3), np.uint8)
    blue[:, :, 0] = 255
    found = photo.prepare(blue, 32)
    assert found.shape == (1, 3, 32, 32)
    assert found[0, :, 5, 5].tolist() == [-127 / 128, -127 / 128, 1.0]
