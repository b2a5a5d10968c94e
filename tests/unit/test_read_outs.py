"""Twelve read-outs of stored vectors, the published choice among them, and the files of both."""

import json

import h5py
import msgspec
import numpy as np
import pytest

import choose_read_out
import headkit
import read_out
from remeasure.errors import RemeasureError
from remeasure.instances import evaluation, first_file, labels, read_outs
from remeasure.instances.read_outs import Grid, ReadOut, Side


def side(*rows) -> Side:
    return Side("cls.h5", np.array(rows, np.float32))


# -- what is read out --------------------------------------------------------------------------------------


def test_there_are_three_queries_two_lengths_and_two_centrings():
    found = [(one.query, one.dim, one.centred) for one in read_outs.all_of(2048)]
    assert found == [
        ("cropped", 1024, False),
        ("cropped", 1024, True),
        ("cropped", 2048, False),
        ("cropped", 2048, True),
        ("instructed", 1024, False),
        ("instructed", 1024, True),
        ("instructed", 2048, False),
        ("instructed", 2048, True),
        ("whole", 1024, False),
        ("whole", 1024, True),
        ("whole", 2048, False),
        ("whole", 2048, True),
    ]


def test_vectors_are_cut_before_their_length_becomes_1():
    found = read_outs.descriptors(side([0.3, 0.4, 0.5, 0.7]), 2, centred=False)
    assert found.dtype == np.float32 and found.tolist() == [pytest.approx([0.6, 0.8])]


def test_the_mean_of_its_side_is_subtracted_after_cutting():
    # Cut to (1, 0) and (0, 1), mean (½, ½): (½, -½) and (-½, ½), of length √½.
    found = read_outs.descriptors(side([1, 0, 9], [0, 1, 5]), 2, centred=True)
    assert found.tolist() == [
        pytest.approx([0.70710678, -0.70710678]),
        pytest.approx([-0.70710678, 0.70710678]),
    ]


def test_photographs_without_a_vector_are_no_part_of_the_mean_and_stay_zero():
    found = read_outs.descriptors(side([1, 0], [0, 0], [0, 1]), 2, centred=True)
    assert found[1].tolist() == [0.0, 0.0]
    assert found[0].tolist() == pytest.approx([0.70710678, -0.70710678])
    assert side([1, 0], [0, 0]).unreadable.tolist() == [1]


def test_a_vector_without_direction_is_refused():
    with pytest.raises(RemeasureError, match=r"cls.h5: row 0 is the mean of its side"):
        read_outs.descriptors(side([1, 0]), 2, centred=True)
    with pytest.raises(RemeasureError, match=r"cls.h5: row 1 is nothing in its first half"):
        read_outs.descriptors(side([1, 0], [0, 1]), 1, centred=False)


# -- what is chosen ----------------------------------------------------------------------------------------

NAMES = tuple(
    ReadOut(query=query, dim=2, centred=centred) for query in read_outs.FORMS for centred in (False, True)
)


def grid(gallery, *medium, names=NAMES) -> Grid:
    return Grid(gallery, f"{gallery}.h5", names, tuple({"medium": m, "hard": 0.1} for m in medium))


def test_the_highest_sum_of_medium_among_cropped_queries_is_chosen():
    # Sums: 1.0, 1.1, 1.2, 0.9, 1.9, 1.8; the last two are of whole queries.
    found = read_outs.choose(
        [grid("ox", 0.5, 0.6, 0.4, 0.3, 0.9, 0.9), grid("par", 0.5, 0.5, 0.8, 0.6, 1.0, 0.9)]
    )
    assert found["chosen"] == 2
    assert found["galleries"] == ["ox", "par"]
    assert found["grid"][2] == {
        "query": "instructed",
        "dim": 2,
        "centred": False,
        "map": {"ox": {"medium": 0.4, "hard": 0.1}, "par": {"medium": 0.8, "hard": 0.1}},
        "sum_medium": pytest.approx(1.2),
    }


def test_the_first_of_equals_is_chosen():
    assert read_outs.choose([grid("ox", 0.1, 0.5, 0.5, 0.5, 0.9, 0.9)])["chosen"] == 1


def test_other_read_outs_and_missing_numbers_are_refused():
    with pytest.raises(RemeasureError, match="par.h5: has other read-outs than ox.h5"):
        read_outs.choose([grid("ox", *[0.5] * 6), grid("par", *[0.5] * 4, names=NAMES[:4])])
    with pytest.raises(RemeasureError, match="no query of gallery ox has a positive at Medium"):
        read_outs.choose([grid("ox", None, *[0.5] * 5)])


# -- the steps ---------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def given(tmp_path_factory):
    folder = tmp_path_factory.mktemp("given")
    for name, seed in (("walls", 1), ("things", 2)):
        headkit.write_bench(folder, name, seed)
    return folder


def rank(given, folder, name="walls", **changed) -> int:
    here = given / name
    paths = {
        "labels": here / "labels.json",
        "audit": here / "audit.json",
        "gallery": here / "1of1.h5",
        "queries": here / "queries.h5",
        "whole": here / "whole.h5",
        "instructed": here / "instructed.h5",
        "out": folder / f"{name}.h5",
        "record": folder / f"{name}.json",
    } | changed
    words = [word for option, path in paths.items() for word in (f"--{option}", str(path))]
    settings = {"gallery": name, "backbone": "toy", "dim": headkit.WIDTH}
    return read_out.main(["--settings", json.dumps(settings), *words])


def choose(folder, names=("walls", "things")) -> int:
    settings = {"backbone": "toy", "galleries": list(names)}
    words = ["--read-outs", *(str(folder / f"{name}.h5") for name in names)]
    out = ["--out", str(folder / "toy.json"), "--record", str(folder / "toy.record.json")]
    return choose_read_out.main(["--settings", json.dumps(settings), *words, *out])


def test_twelve_rankings_are_kept_and_one_is_chosen(given, tmp_path):
    assert rank(given, tmp_path) == rank(given, tmp_path, "things") == choose(tmp_path) == 0
    found = first_file.FirstFile(tmp_path / "walls.h5")
    names = msgspec.convert(found.facts["names"], list[ReadOut])
    assert names == read_outs.all_of(headkit.WIDTH)
    truth = labels.read(given / "walls" / "labels.json")
    for place in range(12):
        one = found.ranking(read_outs.prefix(place))
        assert one.n_gallery == 20 and one.top_id.shape == (5, 20)
        assert evaluation.mean_ap(one.labelled, truth) == found.facts["map"][place]
    document = json.loads((tmp_path / "toy.json").read_text())
    sums = [row["sum_medium"] for row in document["grid"]]
    assert document["chosen"] == sums.index(max(sums[:8]))
    assert document["grid"][3]["map"]["walls"] == found.facts["map"][3]


def test_the_mean_average_precision_is_that_of_plain_numpy(given, tmp_path):
    """The second read-out, worked out in a few lines: half of the numbers, centred."""
    assert rank(given, tmp_path) == 0
    sides = []
    for piece in ("queries", "1of1"):
        with h5py.File(given / "walls" / f"{piece}.h5") as store:
            vectors = store["cls"][:].astype(np.float64).mean(axis=1)
        vectors = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True))[:, :6]
        vectors -= vectors.mean(axis=0)
        sides.append(vectors / np.linalg.norm(vectors, axis=1, keepdims=True))
    precisions = []
    for query, scores in enumerate(sides[0] @ sides[1].T):
        # Places 0 to 3 of a place's own four are easy, easy, hard, junk.
        own = 4 * query
        order = [one for one in np.argsort(-scores, kind="stable") if one != own + 3]
        hits = sorted(order.index(one) for one in (own, own + 1, own + 2))
        steps = [((n / rank if rank else 1.0) + (n + 1) / (rank + 1)) / 2 for n, rank in enumerate(hits)]
        precisions.append(sum(steps) / 3)
    found = first_file.FirstFile(tmp_path / "walls.h5").facts["map"][1]
    assert found["medium"] == pytest.approx(sum(precisions) / 5, abs=1e-12)


def test_again_are_the_same_bytes(given, tmp_path):
    assert rank(given, tmp_path) == 0
    before = (tmp_path / "walls.h5").read_bytes()
    assert rank(given, tmp_path) == 0
    assert (tmp_path / "walls.h5").read_bytes() == before


def test_what_is_refused_is_one_line(given, tmp_path, capsys):
    (tmp_path / "audit.json").write_text('{"ok": false}')
    assert rank(given, tmp_path, audit=tmp_path / "audit.json") == 2
    assert rank(given, tmp_path, gallery=given / "things" / "1of1.h5") == 2
    assert rank(given, tmp_path, whole=given / "walls" / "1of1.h5") == 2
    said = [line for line in capsys.readouterr().err.splitlines() if line.startswith("error: ")]
    assert "the audit did not pass" in said[0]
    assert "row 0 is 'things_000000', but" in said[1]
    assert "20 rows, but" in said[2]


def test_a_file_that_is_none_of_read_outs_is_refused(given, tmp_path, capsys):
    assert rank(given, tmp_path) == 0
    with h5py.File(tmp_path / "walls.h5", "r+") as store:
        store.attrs["names"] = '[{"query": "sideways", "dim": 6, "centred": false}]'
    assert choose(tmp_path, ("walls",)) == 2
    assert "no file of read-outs (Invalid enum value 'sideways'" in capsys.readouterr().err
    with h5py.File(tmp_path / "walls.h5", "r+") as store:
        del store.attrs["names"]
    assert choose(tmp_path, ("walls",)) == 2


def test_galleries_and_files_must_be_as_many(given, tmp_path, capsys):
    settings = json.dumps({"backbone": "toy", "galleries": ["walls", "things"]})
    out = ["--out", str(tmp_path / "o"), "--record", str(tmp_path / "r")]
    assert choose_read_out.main(["--settings", settings, "--read-outs", str(tmp_path / "a.h5"), *out]) == 2
    assert "--read-outs: 1, expected one for each of walls, things" in capsys.readouterr().err
