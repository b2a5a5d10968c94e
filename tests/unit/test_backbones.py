import json
import subprocess
import sys
import time

import numpy as np
import pytest

import extract_cls
import extract_locals
from photokit import benchmark, jpeg, truth
from remeasure.errors import RemeasureError
from remeasure.instances import backbones, describing, local_models
from remeasure.instances.local_models import strongest
from remeasure.instances.vectors_file import Rows

BACKBONE = {
    "name": "small",
    "backend": "efficientnet-lite0",
    "revision": None,
    "dim": 1280,
    "scales": [1.0, 1.414],
    "size_px": 64,
    "patch_px": 32,
    "max_px": 128,
    "precision": "float32",
    "batch": 8,
}
LOCALS = {
    "name": "map",
    "backend": "efficientnet-lite0",
    "dim": 112,
    "n": 10,
    "size_px": 64,
    "precision": "float32",
    "batch": 4,
}


def told(**other):
    return backbones.Told(**BACKBONE | {"scales": (1.0, 1.414)} | other)


def local_told(**other):
    return local_models.Told(**LOCALS | other)


def model_of(sources):
    return sources / "efficientnet-lite0.onnx"


# -- global ------------------------------------------------------------------------------------------------


@pytest.mark.models
def test_a_vector_per_scale_each_of_length_1(sources):
    encoder = backbones.open_backbone(told(), {"model": model_of(sources)}, 1)
    picture = np.random.default_rng(0).integers(0, 256, (48, 64, 3), dtype=np.uint8)
    found = describing.vectors_of(encoder, [picture])
    assert found.shape == (1, 2, 1280) and found.dtype == np.float32
    assert np.linalg.norm(found, axis=2) == pytest.approx(1, abs=1e-6)
    # 64 px are 2 patches; 90.5 px at 1.414 are 2.83 -> 3 patches: the two scales see different pictures.
    assert not np.array_equal(found[0, 0], found[0, 1])


@pytest.mark.models
def test_a_vector_at_a_scale_is_the_pooled_map_of_the_scaled_picture(sources):
    from PIL import Image

    from remeasure.encoders import photo
    from remeasure.encoders.onnx_session import open_session

    picture = np.random.default_rng(1).integers(0, 256, (50, 60, 3), dtype=np.uint8)
    encoder = backbones.open_backbone(told(), {"model": model_of(sources)}, 1)
    found = describing.vectors_of(encoder, [picture])[0, 0]
    # 60 x 50 at scale 1: the shorter side is 64, the longer 76.8 -> 2.4 -> 2 patches.
    scaled = np.asarray(Image.fromarray(picture).resize((64, 64), Image.Resampling.BICUBIC), np.float32)
    feed = ((scaled - 127) / 128).transpose(2, 0, 1)[None]
    plain = open_session(model_of(sources)).run(["features"], {"image": feed})[0][0]
    assert found == pytest.approx(photo.pool(plain), abs=1e-6)


@pytest.mark.models
def test_settings_that_are_not_those_of_the_weights_are_refused(sources):
    with pytest.raises(RemeasureError, match="backbone small: dim is 512, .* gives 1280"):
        backbones.open_backbone(told(dim=512), {"model": model_of(sources)}, 1)
    with pytest.raises(RemeasureError, match="local features map: dim is 100, .* gives 112"):
        local_models.open_local_model(local_told(dim=100), {"model": model_of(sources)}, 1)


def test_missing_weights_are_said_with_their_option(tmp_path):
    with pytest.raises(RemeasureError, match="backbone small: --model is missing"):
        backbones.open_backbone(told(), {}, 1)
    with pytest.raises(
        RemeasureError, match="map: --detector is missing, dinov2-detector needs model, detector"
    ):
        local_models.open_local_model(local_told(backend="dinov2-detector"), {"model": tmp_path}, 1)
    with pytest.raises(RemeasureError, match="is missing; run the target that makes it"):
        backbones.open_backbone(told(), {"model": tmp_path / "no.onnx"}, 1)


def test_vectors_are_stored_with_the_bits_that_the_model_computes_with():
    assert backbones.column(told()).dtype == np.float32
    assert backbones.column(told(precision="float16")).dtype == np.float16
    assert backbones.column(told(precision="bfloat16")).dtype == np.float32


# -- local -------------------------------------------------------------------------------------------------


def test_the_strongest_come_first_and_equal_ones_by_their_place():
    descriptors = np.eye(4, dtype=np.float32)
    found = strongest(descriptors, np.array([1.0, 3.0, 1.0, 2.0]), 3)
    assert found["n_valid"] == 3
    assert found["descriptor"].argmax(axis=1).tolist() == [1, 3, 0]


def test_fewer_places_than_rows_leave_zeros_at_the_end():
    found = strongest(np.ones((2, 3), np.float32), np.array([1.0, 2.0]), 4)
    assert found["n_valid"] == 2
    assert found["descriptor"].any(axis=1).tolist() == [True, True, False, False]


def test_an_attention_that_is_no_number_is_refused():
    with pytest.raises(ValueError, match="not finite"):
        strongest(np.ones((2, 3), np.float32), np.array([1.0, np.nan]), 4)


@pytest.mark.models
def test_local_descriptors_are_the_places_of_a_map_by_their_length(sources):
    from remeasure.encoders.onnx_session import open_session

    picture = np.random.default_rng(0).integers(0, 256, (48, 64, 3), dtype=np.uint8)
    encoder = local_models.open_local_model(local_told(), {"model": model_of(sources)}, 1)
    (_, output), *_ = encoder.prepare(picture)
    found = encoder.finish([output])
    # 64 x 48 stays as it is: 4 x 3 places of 16 px.
    feed = ((picture.astype(np.float32) - 127) / 128).transpose(2, 0, 1)[None]
    places = open_session(model_of(sources)).run(["local"], {"image": feed})[0][0].reshape(112, 12).T
    lengths = np.linalg.norm(places, axis=1)
    order = np.argsort(-lengths)[:10]
    assert found["n_valid"] == 10
    assert found["descriptor"] == pytest.approx(places[order] / lengths[order, None], abs=1e-3)


# -- the two scripts ---------------------------------------------------------------------------------------


@pytest.fixture
def files(tmp_path):
    gallery = {"g0": jpeg(seed=0), "g1": b"none", "g2": jpeg(40, 1, seed=2)}
    return benchmark(tmp_path / "b", gallery, {"q": jpeg(seed=9)}, [truth((4.4, 4.4, 40, 40))])


def ran(script, settings, piece, files, sources, out, *more):
    pictures, labels = map(str, files)
    return script.main(
        ["--settings", json.dumps(settings), "--piece", piece, "--pictures", pictures, "--labels", labels]
        + ["--model", str(model_of(sources)), "--threads", "2", "--out", str(out)]
        + ["--record", str(out.with_suffix(".json")), *more]
    )


@pytest.mark.models
def test_global_vectors_say_what_made_them_and_count_what_was_none(tmp_path, files, sources):
    assert ran(extract_cls, BACKBONE, "1of1", files, sources, tmp_path / "g.h5") == 0
    assert ran(extract_cls, BACKBONE | {"name": "other"}, "queries", files, sources, tmp_path / "q.h5") == 0
    assert ran(extract_cls, BACKBONE | {"size_px": 96}, "whole", files, sources, tmp_path / "w.h5") == 0
    gallery, queries, whole = (Rows(tmp_path / f"{name}.h5") for name in "gqw")
    record = json.loads((tmp_path / "g.json").read_text())
    assert record["counts"] == {"ok": 2, "truncated": 0, "undecodable": 1}
    assert record["settings"] == BACKBONE
    assert (gallery.about["piece"], gallery.about["cropped"], queries.about["cropped"]) == (
        "1of1",
        False,
        True,
    )
    # Names and crops decide nothing about whether vectors may be compared; the scaling does.
    assert gallery.about["extractor"] == queries.about["extractor"] != whole.about["extractor"]
    assert queries.read("box").tolist() == [[4, 4, 40, 40]]


@pytest.mark.models
def test_local_descriptors_have_rows_and_none_for_what_was_none(tmp_path, files, sources):
    assert ran(extract_locals, LOCALS, "1of1", files, sources, tmp_path / "g.h5") == 0
    rows = Rows(tmp_path / "g.h5")
    assert rows.columns["descriptor"] == (np.float16, (10, 112))
    # 64 x 48: 12 places, 10 kept; nothing; a line of 40 x 1 is 64 x 16: 4 places.
    assert rows.read("n_valid").tolist() == [10, 0, 4]
    assert rows.read("row").tolist() == [0, 1, 2]
    norms = np.linalg.norm(rows.read("descriptor").astype(np.float32), axis=2)
    assert norms[2] == pytest.approx([1, 1, 1, 1, 0, 0, 0, 0, 0, 0], abs=2e-3)


@pytest.mark.models
def test_photographs_are_of_a_benchmark_or_of_a_shard(tmp_path, files, sources, capsys):
    code = ran(extract_cls, BACKBONE, "1of1", files, sources, tmp_path / "g.h5", "--shard", "x.tar")
    assert code == 2
    assert "give --pictures and --labels of a benchmark, or --shard and --index" in capsys.readouterr().err


@pytest.mark.models
@pytest.mark.slow
def test_a_job_that_was_killed_goes_on_with_the_same_bytes(tmp_path, sources):
    gallery = {f"g{i}": jpeg(48, 32, seed=i) for i in range(700)}
    pictures, labels = map(str, benchmark(tmp_path / "b", gallery, {"q": jpeg()}))

    def words(out):
        given = ["--settings", json.dumps(BACKBONE), "--piece", "1of1", "--pictures", pictures]
        given += ["--labels", labels, "--model", str(model_of(sources)), "--threads", "1"]
        return [*given, "--out", str(out), "--record", str(out.with_suffix(".json"))]

    assert extract_cls.main(words(tmp_path / "whole.h5")) == 0
    blocks = tmp_path / "killed.h5.blocks"
    job = subprocess.Popen([sys.executable, extract_cls.__file__, *words(tmp_path / "killed.h5")])
    begin = time.monotonic()
    while not (blocks / "000000000.h5").exists() and time.monotonic() - begin < 60:
        time.sleep(0.02)
    job.kill()
    job.wait()
    assert not (tmp_path / "killed.h5").exists()
    kept = {path.name: path.stat().st_mtime_ns for path in blocks.glob("*.h5")}
    assert kept
    assert extract_cls.main(words(tmp_path / "killed.h5")) == 0
    assert (tmp_path / "killed.h5").read_bytes() == (tmp_path / "whole.h5").read_bytes()
    assert not blocks.exists()
