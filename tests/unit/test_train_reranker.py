import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import import_reranker
import train_reranker
from ameskit import PUBLISHED, SIZES, SMALL, random_weights
from remeasure.errors import RemeasureError
from remeasure.instances import vectors_file
from remeasure.instances.ames import weights

N_CLASSES, N_EACH, LENGTH = 12, 4, 24
SETTINGS = {"name": "small", "n": LENGTH, "photos": "places", "steps": 12, "batch": 8, "learning_rate": 3e-4}
SETTINGS |= {"seed": 0, "dim": 16, "width": 32, "heads": 2, "layers": 2, "ffn": 64}


def write_classes(folder):
    """Write photographs whose descriptors are those of their class, shuffled and blurred; class 11 leaks."""
    draw = np.random.RandomState(3)
    names, rows, counts, classes = [], [], [], []
    for name in range(N_CLASSES):
        own = draw.standard_normal((LENGTH, 16))
        for number in range(N_EACH):
            n = LENGTH - 4 * (number % 2)
            x = own[draw.permutation(LENGTH)[:n]] + 0.35 * draw.standard_normal((n, 16))
            row = np.zeros((LENGTH, 16), np.float16)
            row[:n] = x / np.linalg.norm(x, axis=1, keepdims=True)
            names.append(f"a/b/c/abc{name:02d}{number}.jpg")
            rows.append(row)
            counts.append(n)
            classes.append(name)
    # One photograph could not be decoded, one is of no class.
    rows[5][:], counts[5] = 0, 0
    names[6] = "a/b/c/unknown.jpg"
    about = {"extractor": "e"}
    numbers = {"n_valid": np.array(counts, np.uint16), "row": np.arange(len(names))}
    vectors_file.write(folder / "locals.h5", names, about=about, descriptor=np.array(rows), **numbers)
    ids = [f"abc{i // N_EACH:02d}{i % N_EACH}" for i in range(len(names))]
    leaks = [name == 11 for name in classes]
    table = pa.table({"image_id": ids, "landmark_id": pa.array(classes, pa.int32()), "leak": leaks})
    pq.write_table(table, folder / "plan.parquet")


def train(folder, out="weights", **settings):
    words = ["--settings", json.dumps(SETTINGS | settings), "--plan", folder / "plan.parquet"]
    words += ["--locals", folder / "locals.h5", "--out", folder / f"{out}.safetensors"]
    words += ["--report", folder / f"{out}.report.json", "--record", folder / f"{out}.json"]
    return train_reranker.main([str(word) for word in words])


def test_training_tells_classes_apart_that_it_never_saw_and_is_the_same_every_time(tmp_path):
    write_classes(tmp_path)
    assert train(tmp_path) == train(tmp_path, "again") == 0
    assert (tmp_path / "weights.safetensors").read_bytes() == (tmp_path / "again.safetensors").read_bytes()
    assert (tmp_path / "weights.report.json").read_bytes() == (tmp_path / "again.report.json").read_bytes()
    report = json.loads((tmp_path / "weights.report.json").read_text())
    # 12 classes of 4, without the one that leaks, the one without descriptors and the one of no class.
    assert (report["n_photographs"], report["n_classes"]) == (42, 11)
    assert report["auc_after"] > 0.9 and report["helps"] is (
        report["auc_after"] > report["auc_of_mean_descriptors"]
    )
    assert [check["step"] for check in report["checks"]] == [0, 3, 6, 9, 12]
    losses = [check["loss"] for check in report["checks"]]
    assert report["chosen_step"] == report["checks"][int(np.argmin(losses))]["step"]
    record = json.loads((tmp_path / "weights.json").read_text())
    assert record["counts"] == {"photographs": 42, "without_descriptors": 1}


def test_another_seed_is_another_reranker(tmp_path):
    write_classes(tmp_path)
    assert train(tmp_path, steps=1) == train(tmp_path, "other", steps=1, seed=1) == 0
    assert (tmp_path / "weights.safetensors").read_bytes() != (tmp_path / "other.safetensors").read_bytes()


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"heads": 3}, "width 32 cannot be shared by 3 heads"),
        ({"dim": 17}, "descriptor is float16 of shape"),
        ({"learning_rate": 1e30}, "make rerankers.small.training.learning_rate smaller than 1e+30"),
        ({"surprise": 1}, "--settings: "),
    ],
)
def test_mistakes_are_one_line(tmp_path, capsys, settings, says):
    write_classes(tmp_path)
    assert train(tmp_path, **settings) == 2
    assert says in capsys.readouterr().err.splitlines()[-1]


def test_a_plan_of_another_form_is_one_line(tmp_path, capsys):
    write_classes(tmp_path)
    pq.write_table(pa.table({"x": [1]}), tmp_path / "plan.parquet")
    assert train(tmp_path) == 2
    assert "plan.parquet: cannot be read as a plan" in capsys.readouterr().err


def bring(folder, path, **sizes):
    settings = {"name": "ames", "n": 600} | SIZES | sizes
    words = ["--settings", json.dumps(settings), "--checkpoint", path, "--out", folder / "w.safetensors"]
    words += ["--report", folder / "w.report.json", "--record", folder / "w.json"]
    return import_reranker.main([str(word) for word in words])


def checkpoint(path, tensors, **beside):
    import torch

    state = {name: torch.from_numpy(value) for name, value in tensors.items()}
    torch.save({"state": state} | beside, path)
    return path


def test_a_published_checkpoint_is_brought_into_the_open_form(tmp_path):
    tensors = random_weights(PUBLISHED, 1)
    path = checkpoint(tmp_path / "dinov2_ames.pt", tensors, epoch=3)
    sizes = {"dim": 768, "width": 128, "layers": 5, "ffn": 1024}
    assert bring(tmp_path, path, **sizes) == 0
    found = weights.read(tmp_path / "w.safetensors", PUBLISHED)
    assert found.keys() == tensors.keys() and all((found[name] == tensors[name]).all() for name in tensors)
    assert json.loads((tmp_path / "w.report.json").read_text())["n_parameters"] == 2_079_745
    # The open form is taken as well.
    assert bring(tmp_path, tmp_path / "w.safetensors", **sizes) == 0


def test_every_tensor_must_be_there_and_no_other(tmp_path, capsys):
    tensors = random_weights(SMALL, 1)
    del tensors["mtc_token"]
    tensors["decoder.norm.weight"] = np.ones(32, np.float32)
    tensors["classifier.bias"] = np.full(1, np.nan, np.float32)
    tensors["classifier.weight"] = np.zeros((2, 32), np.float32)
    assert bring(tmp_path, checkpoint(tmp_path / "x.pt", tensors)) == 2
    error = capsys.readouterr().err
    assert "classifier.bias has numbers that are not finite" in error and "(and 1 more)" in error
    assert "classifier.weight is float32 [2, 32], expected float [1, 32]" in error
    assert "decoder.norm.weight is not known" in error


def test_code_in_a_checkpoint_is_not_run(tmp_path, capsys):
    import os

    import torch

    class Evil:
        def __reduce__(self):
            return os.system, (f"touch {tmp_path}/ran",)

    torch.save({"state": {"mtc_token": torch.zeros(1)}, "args": Evil()}, tmp_path / "x.pt")
    assert bring(tmp_path, tmp_path / "x.pt") == 2
    assert "system" in capsys.readouterr().err and not (tmp_path / "ran").exists()


def test_a_checkpoint_without_state_is_refused(tmp_path, capsys):
    import torch

    torch.save({"model": {"mtc_token": torch.zeros(1)}}, tmp_path / "x.pt")
    assert bring(tmp_path, tmp_path / "x.pt") == 2
    assert "it is not a dictionary of tensors" in capsys.readouterr().err


def test_weights_of_other_sizes_are_refused(tmp_path):
    weights.write(tmp_path / "w.safetensors", random_weights(SMALL, 1))
    with pytest.raises(
        RemeasureError, match=r"classifier.weight is float32 \[1, 32\], expected float \[1, 128\]"
    ):
        weights.read(tmp_path / "w.safetensors", PUBLISHED)
