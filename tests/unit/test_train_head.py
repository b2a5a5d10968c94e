"""Training a head as a step: what it writes, that a kill changes nothing, what it refuses."""

import json
import shutil

import h5py
import numpy as np
import pytest
import torch

import headkit
import train_head
from remeasure.instances import torch_module
from remeasure.instances.heads import checkpoint, model, network
from remeasure.instances.heads.vectors import OnDevice, TrainingVectors

SIZES = {100 + number: 3 + number % 4 for number in range(12)} | {7: 2}
FILES = ("0.safetensors", "0.holdout.safetensors", "0.report.json")


@pytest.fixture(scope="module")
def given(tmp_path_factory):
    """Options of a small training: 12 classes of 3 to 6 photographs, one of 2; two of them leak."""
    folder = tmp_path_factory.mktemp("given")
    return headkit.write_training(folder, SIZES, leaks={101, 102}) | headkit.benches(folder)


def run(options, folder, *more, **changed) -> int:
    words = ["--settings", json.dumps(headkit.SETTINGS | changed), *headkit.words(options)]
    return train_head.main([*words, *headkit.outputs(folder), "--checkpoints", str(folder / "kept"), *more])


def report(folder) -> dict:
    return json.loads((folder / "0.report.json").read_text())


@pytest.fixture(scope="module")
def trained(given, tmp_path_factory):
    folder = tmp_path_factory.mktemp("trained")
    assert run(given, folder) == 0
    return folder


def test_a_report_says_what_was_trained_and_what_came_out(trained):
    found = report(trained)
    # Sizes 3 4 5 6 three times are 54 photographs of 12 classes; 20 % of 12 classes, rounded up, are 3.
    assert (found["rows"], found["classes"]) == (54, 12)
    assert found["left_out"]["small_classes"] == 1 and found["left_out"]["photos_of_small_classes"] == 2
    assert (found["held_out"]["classes"], found["held_out"]["trained_classes"]) == (3, 9)
    assert found["held_out"]["rows"] + found["held_out"]["trained_rows"] == 54
    assert [one["epoch"] for one in found["epochs"]["published"]] == [0, 1, 2, 3]
    for way in ("published", "holdout"):
        values = [one["value"] for one in found["epochs"][way]]
        assert found["best_epoch"][way] == values.index(max(values))
    assert set(found["galleries"]) == {"walls", "things"}
    assert set(found["galleries"]["walls"]) == {"backbone", "published", "holdout"}
    assert set(found["galleries"]["walls"]["published"]) == {"easy", "medium", "hard"}
    # 12·16 + 16 + 16·8 + 2·8
    assert found["n_parameters"] == 352
    assert found["deterministic"] is True and found["device"] == "cpu"
    assert not any("_s" in name and name.endswith("_s") for name in found), "times are no part of a result"


def test_the_chosen_epoch_has_the_value_that_the_final_head_has(trained):
    found = report(trained)
    best = found["best_epoch"]["published"]
    assert found["galleries"]["walls"]["published"]["medium"] == found["epochs"]["published"][best]["value"]
    assert found["held_out"]["map"] == found["epochs"]["holdout"][found["best_epoch"]["holdout"]]["value"]


def test_the_file_is_a_head_and_has_no_class_matrix(trained):
    for name in FILES[:2]:
        found, others = model.read(trained / name, 12, 16, 8)
        assert list(found) == list(model.shapes(12, 16, 8)) and others == []


def test_training_again_gives_the_same_bytes_and_another_seed_others(given, trained, tmp_path):
    assert run(given, tmp_path) == 0
    for name in FILES:
        assert (tmp_path / name).read_bytes() == (trained / name).read_bytes(), name
    assert run(given, tmp_path, seed=1) == 0
    assert (tmp_path / "0.safetensors").read_bytes() != (trained / "0.safetensors").read_bytes()


@pytest.mark.parametrize("n_states", [1, 3, 5, 8])
def test_a_killed_training_goes_on_and_ends_in_the_same_bytes(
    given, trained, tmp_path, monkeypatch, n_states
):
    # Four epochs twice: 5 is within the second training, 8 after the last epoch of all.
    written, n_after = [], 8 - n_states
    write = checkpoint.Folder.write

    def killed(self, *args, **named):
        write(self, *args, **named)
        written.append(self.path.name)
        if len(written) == n_states:
            raise KeyboardInterrupt

    def run_with(function):
        with monkeypatch.context() as patched:
            patched.setattr(checkpoint.Folder, "write", function)
            return run(given, tmp_path)

    assert run_with(killed) == 130
    assert not (tmp_path / "0.safetensors").exists()
    written.clear()
    n_states = 0  # nothing stops the second try
    assert run_with(killed) == 0
    assert len(written) == n_after, "epochs that were done are not done again"
    for name in FILES:
        assert (tmp_path / name).read_bytes() == (trained / name).read_bytes(), name
    assert not (tmp_path / "kept").exists()


def test_a_checkpoint_of_other_settings_or_a_torn_one_is_passed_over(given, trained, tmp_path, monkeypatch):
    with monkeypatch.context() as patched:
        patched.setattr(checkpoint, "remove", lambda path: None)
        assert run(given, tmp_path, seed=1) == 0
    kept = tmp_path / "kept" / "published"
    assert sorted(path.name for path in kept.iterdir()) == ["4.safetensors", "state.json"]
    assert run(given, tmp_path) == 0
    assert (tmp_path / "0.safetensors").read_bytes() == (trained / "0.safetensors").read_bytes()
    folder = checkpoint.Folder(tmp_path / "torn", "a" * 64)
    folder.write((checkpoint.Epoch(epoch=0, rate=1.0, loss=1.0, value=0.5),), {"x": np.ones(3, np.float32)})
    assert folder.read() is not None
    assert checkpoint.Folder(tmp_path / "torn", "b" * 64).read() is None
    (tmp_path / "torn" / "1.safetensors").write_bytes(b"cut off")
    assert folder.read() is None


def test_a_head_learns_what_places_differ_in(tmp_path):
    # Half of the numbers of a toy vector have nothing to do with the place; 12 of 60 classes are never seen.
    options = headkit.write_training(tmp_path, dict.fromkeys(range(60), 6)) | headkit.benches(tmp_path)
    assert run(options, tmp_path, epochs=20, batch=64) == 0
    found = report(tmp_path)["held_out"]
    assert (found["classes"], found["rows"]) == (12, 72)
    assert found["map"] > found["map_of_backbone"] + 0.05


def test_leaking_classes_are_no_part_of_a_decontaminated_head(given, tmp_path):
    assert run(given, tmp_path, decontaminated=True) == 0
    found = report(tmp_path)
    # Classes 101 and 102 have 4 and 5 photographs.
    assert (found["rows"], found["classes"]) == (45, 10)
    assert (found["left_out"]["classes_that_leak"], found["left_out"]["photos_that_leak"]) == (2, 9)


def test_scales_can_be_drawn(given, trained, tmp_path):
    assert run(given, tmp_path, train_scale="random", epochs=1) == 0
    assert (
        report(tmp_path)["epochs"]["published"][0]["loss"]
        != report(trained)["epochs"]["published"][0]["loss"]
    )


def test_vectors_that_lie_on_a_device_are_those_of_the_files(given):
    """What a GPU does with vectors that fit into its memory, done on the processor."""
    vectors = TrainingVectors(given["--cls"], headkit.WIDTH)
    rows, scales = np.array([55, 0, 27, 28, 0]), np.array([0, 1, 1, 0, 0])
    read, moved = OnDevice(vectors, "cpu"), OnDevice(vectors, "cpu")
    moved._all = moved._moved()
    assert moved._all.dtype == torch.float16 and tuple(moved._all.shape) == (56, 2, 12)
    for drawn in (None, scales):
        assert torch.equal(read.batch(rows, drawn), moved.batch(rows, drawn))
    plain = np.concatenate([h5py.File(path)["cls"][:] for path in given["--cls"]])[rows, scales]
    assert read.batch(rows, scales).numpy() == pytest.approx(plain.astype(np.float32), abs=1e-3)


def test_weights_that_are_there_are_not_trained(given, trained, tmp_path):
    head = network.build(12, 16, 8)
    network.load(head, model.read(trained / "0.safetensors", 12, 16, 8)[0])
    torch.save(head.state_dict() | {"classes": torch.zeros(3, 8)}, tmp_path / "full_head.pt")
    options = {name: paths for name, paths in given.items() if name not in ("--plan", "--cls")}
    assert run(options | {"--weights": [tmp_path / "full_head.pt"]}, tmp_path) == 0
    found = report(tmp_path)
    assert found["weights_left_out"] == ["classes"] and "best_epoch" not in found
    for gallery, ways in report(trained)["galleries"].items():
        assert found["galleries"][gallery]["published"] == ways["published"]
        assert found["galleries"][gallery]["holdout"] == ways["published"]
    assert (tmp_path / "0.safetensors").read_bytes() == (trained / "0.safetensors").read_bytes()


def test_either_weights_or_a_training_set(given, tmp_path, capsys):
    options = {name: paths for name, paths in given.items() if name != "--cls"}
    assert run(options, tmp_path) == 2
    assert "give either --weights, or --plan and --cls" in capsys.readouterr().err


def test_without_torch_one_line_says_what_to_do(given, tmp_path, capsys, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "torch", None)
    assert run(given, tmp_path) == 2
    assert capsys.readouterr().err.splitlines()[-1] == (
        "error: torch is missing: run make landmarks (or make setup-torch)"
    )
    with pytest.raises(Exception, match="torch is missing"):
        torch_module.load()


# -- bad input ---------------------------------------------------------------------------------------------


def changed(given, tmp_path, option, place, change) -> dict:
    """Return options where a copy of one HDF5 file is changed."""
    source = given[option][place]
    target = tmp_path / f"changed-{source.name}"
    shutil.copy(source, target)
    with h5py.File(target, "r+") as store:
        change(store)
    paths = list(given[option])
    paths[place] = target
    return given | {option: paths}


def set_row(key, row, value):
    def change(store):
        store[key][row] = value

    return change


def swap_names(store):
    names = store["name"][:]
    names[[0, 1]] = names[[1, 0]]
    store["name"][:] = names


def other_backbone(store):
    store.attrs["about"] = json.dumps({"extractor": "another"})


@pytest.mark.parametrize(
    ("option", "place", "change", "said"),
    [
        ("--cls", 0, set_row("cls", 2, np.nan), "row 2 is not finite"),
        ("--cls", 1, set_row("cls", 1, np.inf), "row 1 is not finite"),
        (
            "--cls",
            0,
            set_row("cls", 3, 0),
            "row 3 has the lengths [0.0, 0.0] with status 0, expected 1",
        ),
        ("--cls", 0, set_row("status", 4, 2), "with status 2, expected 0"),
        ("--cls", 0, set_row("landmark_id", 0, 55), "is of class 55, in the plan of 100"),
        ("--cls", 0, other_backbone, "vectors of different extractors are never mixed"),
        ("--gallery-cls", 1, other_backbone, "vectors of different extractors are never mixed"),
        ("--gallery-cls", 0, swap_names, "row 0 is 'walls_000001', but"),
        ("--query-cls", 0, swap_names, "row 0 is 'walls_query_000001', but"),
    ],
)
def test_vectors_that_are_not_what_they_should_be_are_refused(
    given, tmp_path, capsys, option, place, change, said
):
    assert run(changed(given, tmp_path, option, place, change), tmp_path) == 2
    assert said in capsys.readouterr().err.splitlines()[-1]


def test_a_photograph_that_is_there_twice_or_in_no_plan_is_refused(given, tmp_path, capsys):
    twice = given | {"--cls": [given["--cls"][0], given["--cls"][0]]}
    assert run(twice, tmp_path) == 2
    assert "of row 0 is there twice" in capsys.readouterr().err
    headkit.write_plan(tmp_path / "plan.parquet", ["ffff"], [100])
    assert run(given | {"--plan": [tmp_path / "plan.parquet"]}, tmp_path) == 2
    assert "is not in the plan" in capsys.readouterr().err
    (tmp_path / "torn.parquet").write_bytes(b"PAR1 and no more")
    assert run(given | {"--plan": [tmp_path / "torn.parquet"]}, tmp_path) == 2
    assert "torn.parquet: no plan of photographs" in capsys.readouterr().err


def test_photographs_of_the_plan_without_a_vector_are_counted(given, tmp_path):
    assert run(given | {"--cls": given["--cls"][:1]}, tmp_path) == 0
    # The second of two pieces has 28 of 56 photographs.
    assert report(tmp_path)["left_out"]["photos_without_vector"] == 28


def test_an_audit_that_failed_stops_a_head(given, tmp_path, capsys):
    (tmp_path / "audit.json").write_text('{"dataset": "walls", "checks": [], "ok": false}')
    assert run(given | {"--audits": [tmp_path / "audit.json", given["--audits"][1]]}, tmp_path) == 2
    assert "the audit did not pass" in capsys.readouterr().err


def test_sets_and_files_must_be_as_many(given, tmp_path, capsys):
    assert run(given | {"--labels": given["--labels"][:1]}, tmp_path) == 2
    assert "name 1, 2, 2, 2 files, expected one for each of walls, things" in capsys.readouterr().err


def test_a_rate_that_is_too_high_is_one_line(given, tmp_path, capsys):
    assert run(given, tmp_path, learning_rate=1e20) == 2
    said = capsys.readouterr().err.splitlines()[-1]
    assert "the loss of epoch" in said and "lower learning_rate of head standard" in said
