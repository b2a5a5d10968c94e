"""Nothing is ranked on a benchmark that is not what the protocol says: a check for each way to be wrong."""

import io
import json
import zipfile

import numpy as np
import pytest
from PIL import Image

import audit_photos
from remeasure.errors import RemeasureError
from remeasure.instances import anchors, auditing, backbones, decode, labels, parity, vectors_file
from remeasure.instances.describing import unit
from remeasure.instances.vectors_file import Column

SIZE = (40, 30)
SIDE = 4


class Colours:
    """A backbone of sixteen patches: quick, and another vector for every crop."""

    columns = {"cls": Column(np.float32, (1, 3 * SIDE * SIDE))}
    batch, block_rows = 1, 10
    decode = staticmethod(decode.decode)

    def prepare(self, pixels):
        small = Image.fromarray(pixels).resize((SIDE, SIDE), Image.Resampling.BOX)
        return [("any", np.asarray(small, np.float32).reshape(-1) - 128)]

    def run(self, kind, inputs):
        return inputs

    def finish(self, outputs):
        return {"cls": unit(np.stack(outputs))}


def vector(pixels) -> np.ndarray:
    return Colours().finish([value for _, value in Colours().prepare(np.ascontiguousarray(pixels))])["cls"]


TOLD = {
    "name": "colours",
    "backend": "efficientnet-lite0",
    "revision": None,
    "dim": 3 * SIDE * SIDE,
    "scales": [1.0],
    "size_px": 32,
    "patch_px": 32,
    "max_px": 64,
    "precision": "float32",
    "batch": 1,
}
GROUND = {
    "schema": 1,
    "dataset": "tiny",
    "source_sha256": "0" * 64,
    "imlist": [f"g{n}" for n in range(6)],
    "qimlist": ["q0", "q1"],
    "gnd": [
        {"bbx": [4.5, 3.0, 24.2, 21.0], "easy": [0], "hard": [1, 2], "junk": [3]},
        # Reaches out of the photograph on the left; nothing easy.
        {"bbx": [-3.2, 0.0, 20.0, 30.0], "easy": [], "hard": [4], "junk": [0]},
    ],
}
BOXES = [(4, 3, 24, 21), (0, 0, 20, 30)]


def photograph(number: int) -> np.ndarray:
    return np.random.default_rng(number).integers(0, 256, (SIZE[1], SIZE[0], 3), dtype=np.uint8)


class Bench:
    """A benchmark of six photographs and two queries, with its stored vectors."""

    def __init__(self, folder) -> None:
        self.folder = folder
        self.ground = json.loads(json.dumps(GROUND))
        self.pixels = {name: photograph(n) for n, name in enumerate([*GROUND["imlist"], *GROUND["qimlist"]])}
        self.box = np.array(BOXES, np.int32)
        self.more: list[str] = []
        self.expected = {"queries": 2, "gallery": 6}
        stems = GROUND["qimlist"]
        crops = [
            vector(self.pixels[stem][top:bottom, left:right])
            for stem, (left, top, right, bottom) in zip(stems, BOXES, strict=True)
        ]
        self.rows = {
            "queries": (stems, np.stack(crops)),
            "whole": (stems, np.stack([vector(self.pixels[stem]) for stem in stems])),
            "gallery": (GROUND["imlist"], np.stack([vector(self.pixels[n]) for n in GROUND["imlist"]])),
        }

    def audit(self) -> int:
        """Write everything and run the script."""
        (self.folder / "labels.json").write_text(json.dumps(self.ground))
        with zipfile.ZipFile(self.folder / "photos.zip", "w") as store:
            for name, pixels in self.pixels.items():
                stream = io.BytesIO()
                Image.fromarray(pixels).save(stream, "PNG")
                store.writestr(f"{name}.jpg", stream.getvalue())
        for piece, (names, cls) in self.rows.items():
            box = {"box": self.box} if piece == "queries" and self.box is not None else {}
            vectors_file.write(self.folder / f"{piece}.h5", names, about={}, cls=cls, **box)
        settings = {"photos": "tiny", "expected": self.expected, "backbone": TOLD}
        words = ["--settings", json.dumps(settings), "--labels", self.folder / "labels.json"]
        words += ["--pictures", self.folder / "photos.zip", "--out", self.folder / "audit.json"]
        for piece in self.rows:
            words += [f"--{piece}", self.folder / f"{piece}.h5"]
        words += ["--record", self.folder / "record.json", *self.more]
        return audit_photos.main([str(word) for word in words])

    def checks(self, name="audit.json") -> dict[str, dict]:
        """Return the checks of the verdict by name."""
        verdict = json.loads((self.folder / name).read_text())
        assert verdict["dataset"] == "tiny"
        assert verdict["ok"] == all(check["ok"] for check in verdict["checks"]) == (name == "audit.json")
        return {check["name"]: check for check in verdict["checks"]}

    def failed(self, capsys) -> dict[str, dict]:
        """Run it, expect a failure, return the failed checks."""
        assert self.audit() == 2
        assert not (self.folder / "audit.json").exists() and not (self.folder / "record.json").exists()
        found = {n: check for n, check in self.checks("audit.failed.json").items() if not check["ok"]}
        error = capsys.readouterr().err.splitlines()[-1]
        assert all(name in error for name in found) and error.startswith("error: tiny: the audit failed")
        return found


@pytest.fixture
def bench(tmp_path, monkeypatch) -> Bench:
    monkeypatch.setattr(backbones, "open_backbone", lambda told, files, threads: Colours())
    return Bench(tmp_path)


def test_a_good_benchmark_passes_every_check(bench):
    (bench.folder / "audit.failed.json").write_text("{}")
    assert bench.audit() == 0
    found = bench.checks()
    assert found["queries"] == {"name": "queries", "ok": True, "value": 2, "limit": 2}
    assert found["queries_in_gallery"] == {"name": "queries_in_gallery", "ok": True, "value": 0, "limit": 0}
    assert found["boxes_clamped"]["value"] == 1 and found["boxes_clamped"]["limit"] is None
    assert found["crop_cosine_least"]["value"] == pytest.approx(1, abs=1e-6)
    assert found["whole_to_crop_max"]["value"] < 0.9
    assert found["metric_tied_plain"]["limit"] == 1e-12
    assert "anchor: {upstream" in found["metric_published"]["skipped"]
    assert "no public descriptors" in found["anchor"]["skipped"]
    assert not (bench.folder / "audit.failed.json").exists()
    record = json.loads((bench.folder / "record.json").read_text())
    assert record["counts"]["skipped"] == 2


def test_queries_that_were_not_cropped_are_noticed(bench, capsys):
    names, _ = bench.rows["queries"]
    bench.rows["queries"] = (names, bench.rows["whole"][1])
    assert set(bench.failed(capsys)) == {"crop_cosine_least", "whole_closer_than_crop"}


def test_one_uncropped_query_of_several_is_noticed(bench, capsys):
    names, cls = bench.rows["queries"]
    bench.rows["queries"] = (names, np.stack([cls[0], bench.rows["whole"][1][1]]))
    found = bench.failed(capsys)
    assert found["whole_closer_than_crop"]["value"] == 1


def test_boxes_of_the_other_rule_are_noticed(bench, capsys):
    bench.box = np.array([(4, 3, 24, 21), (-3, 0, 20, 30)], np.int32)
    assert bench.failed(capsys)["boxes_differ"]["value"] == 1


def test_given_vectors_without_boxes_pass_with_a_reason(bench):
    bench.box = None
    assert bench.audit() == 0
    assert "were given, without their boxes" in bench.checks()["boxes_differ"]["skipped"]


def test_a_gallery_in_another_order_is_noticed(bench, capsys):
    names, cls = bench.rows["gallery"]
    bench.rows["gallery"] = ([names[1], names[0], *names[2:]], cls)
    assert bench.failed(capsys)["gallery_of_other_photographs"]["value"] == 2


def test_a_missing_row_is_noticed(bench, capsys):
    names, cls = bench.rows["gallery"]
    bench.rows["gallery"] = (names[:-1], cls[:-1])
    assert bench.failed(capsys)["gallery_of_other_photographs"]["value"] == 1


def change(bench: Bench, query: int, **fields) -> None:
    bench.ground["gnd"][query] |= fields


@pytest.mark.parametrize(
    ("wrong", "check", "value"),
    [
        (lambda b: change(b, 0, easy=[0, 1]), "rows_of_two_kinds", 1),
        (lambda b: change(b, 0, junk=[9]), "rows_outside_gallery", 1),
        (lambda b: change(b, 0, junk=[3, 3]), "rows_twice", 1),
        (lambda b: b.ground["imlist"].__setitem__(0, "q0"), "queries_in_gallery", 1),
        (lambda b: b.ground["imlist"].__setitem__(0, "g1"), "names_twice_in_gallery", 1),
        (lambda b: b.ground["qimlist"].__setitem__(0, "q1"), "names_twice_in_queries", 1),
        (lambda b: b.ground["gnd"].pop(), "queries_with_labels", 1),
        (lambda b: b.expected.update(gallery=4993), "gallery", 6),
        (lambda b: b.pixels.pop("g5"), "photographs_missing", 1),
        (lambda b: change(b, 0, bbx=[50, 3, 60, 21]), "boxes_wrong", 1),
        # Less than a pixel, of the array's rule only.
        (lambda b: change(b, 0, bbx=[4.6, 3, 4.9, 21]), "boxes_wrong", 1),
    ],
)
def test_wrong_labels_and_photographs_are_counted(bench, capsys, wrong, check, value):
    wrong(bench)
    found = bench.failed(capsys)
    assert found[check]["value"] == value
    assert any("skipped" in one for one in found.values()) or check == "boxes_wrong"


def test_a_query_that_cannot_be_decoded_is_noticed(bench, capsys, monkeypatch):
    undecodable = decode.Decoded(None, 2, decode.Size(0, 0), "broken")
    monkeypatch.setattr(Colours, "decode", staticmethod(lambda data: undecodable))
    found = bench.failed(capsys)
    assert found["queries_undecodable"]["value"] == 2


# -- metric --------------------------------------------------------------------------------------------------


def truths(*of: tuple[list[int], list[int], list[int]], n: int = 10) -> labels.Labels:
    return labels.Labels(
        schema=1,
        dataset="tiny",
        source_sha256="0" * 64,
        imlist=tuple(f"g{i}" for i in range(n)),
        qimlist=tuple(f"q{i}" for i in range(len(of))),
        gnd=tuple(
            labels.Truth(bbx=(0, 0, 1, 1), easy=tuple(easy), hard=tuple(hard), junk=tuple(junk))
            for easy, hard, junk in of
        ),
    )


@pytest.mark.parametrize(
    ("ranking", "easy", "junk", "ap", "precisions"),
    [
        # Golden vectors of the landmarks card, section 2.4, checked there against the published function.
        ([3, 0, 4, 1, 2], [0, 2], [3], 0.7083333333333333, [1, 0.5, 0.5]),
        ([0, 1, 2, 3, 4], [4], [0, 1, 2, 3], 1.0, [1, 1, 1]),
        ([0, 1, 2, 3, 4], [4], [], 0.1, [0, 0.2, 0.2]),
        ([5, 9, 1, 0, 7, 2, 8, 3, 6, 4], [1, 2, 3, 4], [8, 9], 0.3723214285714286, [0, 0.4, 0.5]),
    ],
)
def test_the_plain_form_gives_the_golden_numbers(ranking, easy, junk, ap, precisions):
    n = len(ranking)
    found = parity.dense(np.array(ranking)[:, None], truths((easy, [], junk), n=n))["easy"]
    assert found.ap[0] == pytest.approx(ap, abs=1e-15)
    assert found.precisions[0].tolist() == pytest.approx(precisions, abs=1e-15)
    scores = np.zeros((1, n), np.float32)
    scores[0, ranking] = np.arange(n, 0, -1)
    assert (
        parity.difference(
            parity.ours(scores, truths((easy, [], junk), n=n)),
            parity.dense(parity.ranks_of(scores), truths((easy, [], junk), n=n)),
        )
        <= 1e-12
    )


def drawn(seed: int, n: int = 200, n_queries: int = 12) -> tuple[np.ndarray, labels.Labels]:
    rng = np.random.default_rng(seed)
    # Few different scores: many ties.
    scores = rng.integers(0, 12, (n_queries, n)).astype(np.float32)
    of = []
    for i in range(n_queries):
        rows = rng.permutation(n)[:60]
        cuts = sorted(rng.integers(0, 60, 2)) if i else [0, 0]
        of.append(tuple(sorted(part.tolist()) for part in np.split(rows, cuts)))
    return scores, truths(*of, n=n)


@pytest.mark.parametrize("seed", range(5))
def test_counted_ranks_and_whole_rankings_agree_under_ties(seed):
    scores, ground = drawn(seed)
    difference = parity.difference(parity.ours(scores, ground), parity.dense(parity.ranks_of(scores), ground))
    assert difference <= 1e-12


def test_a_number_that_only_one_of_two_has_is_an_infinite_difference():
    scores, ground = drawn(0)
    ours = parity.ours(scores, ground)
    assert np.isnan(ours["easy"].ap[0])
    other = ours | {"easy": ours["easy"]._replace(ap=np.zeros(len(ours["easy"].ap)))}
    assert parity.difference(ours, other) == float("inf")
    assert (
        not auditing.at_most("x", float("inf"), 1).ok and auditing.at_most("x", float("inf"), 1).value is None
    )


# A stand-in with the published function's name and results; not its code.
PEER = """
import numpy as np
def compute_map(ranks, gnd, kappas=[]):
    np.in1d([1], [1])
    aps, prs = [], []
    for i, one in enumerate(gnd):
        order = [r for r in ranks[:, i].tolist() if r not in set(one["junk"]) - set(one["ok"])]
        at = [place for place, r in enumerate(order) if r in one["ok"]]
        if not one["ok"]:
            aps.append(np.nan); prs.append([np.nan] * len(kappas)); continue
        terms = [((1 if r == 0 else j / r) + (j + 1) / (r + 1)) / 2 for j, r in enumerate(at)]
        aps.append(sum(terms) / len(one["ok"]) * SCALE)
        prs.append([sum(r < k for r in at) / k for k in (min(at[-1] + 1, kappa) for kappa in kappas)])
    aps, prs = np.array(aps), np.array(prs)
    return np.nanmean(aps), aps, np.nanmean(prs, axis=0), prs
"""


def test_the_published_evaluator_is_run_apart_and_a_difference_fails(bench, capsys):
    path = bench.folder / "evaluate.py"
    bench.more = ["--upstream", str(path)]
    path.write_text(f"SCALE = 1\n{PEER}")
    assert bench.audit() == 0
    assert bench.checks()["metric_mean_published"]["value"] <= 1e-12
    (bench.folder / "audit.json").unlink()
    (bench.folder / "record.json").unlink()
    path.write_text(f"SCALE = 1 + 1e-9\n{PEER}")
    assert "metric_mean_published" in bench.failed(capsys)


@pytest.mark.parametrize(
    ("text", "says"),
    [("raise ValueError('no\\x1b numbers')", "no"), ("def compute_map(*_): return 1, 2", "")],
)
def test_a_published_evaluator_that_fails_is_one_line(tmp_path, text, says):
    (tmp_path / "evaluate.py").write_text(text)
    scores, ground = drawn(1)
    with pytest.raises(RemeasureError, match=f"the published evaluator failed: .*{says}") as caught:
        parity.upstream(parity.ranks_of(scores), ground, tmp_path / "evaluate.py")
    assert str(caught.value).isprintable()


# -- the known answer ----------------------------------------------------------------------------------------


def test_the_known_answer_is_skipped_or_compared(tmp_path, monkeypatch):
    from scipy.io import savemat

    scores, ground = drawn(2)
    assert "nothing is known of tiny" in anchors.anchor(ground, tmp_path / "x.mat")[0].skipped
    rng = np.random.default_rng(0)
    features = {"X": rng.normal(size=(8, 200)), "Q": rng.normal(size=(8, 12))}
    savemat(tmp_path / "x.mat", features)
    known = anchors.Known((0.0, 0.0, 0.0), ((0.0,) * 3,) * 3)
    monkeypatch.setitem(anchors.KNOWN, "tiny", known)
    found = {check.name: check for check in anchors.anchor(ground, tmp_path / "x.mat")}
    assert len(found) == 12 and not found["anchor_map_medium"].ok
    gallery, queries = anchors.read_features(tmp_path / "x.mat")
    assert gallery.shape == (200, 8) and queries.shape == (12, 8)
    right = parity.ours(queries @ gallery.T, ground)
    assert found["anchor_map_hard"].value == pytest.approx(100 * right["hard"].map, abs=0.005)
    savemat(tmp_path / "x.mat", {"X": features["X"][:, :3], "Q": features["Q"]})
    assert not anchors.anchor(ground, tmp_path / "x.mat")[0].ok


@pytest.mark.parametrize("data", [b"", b"no MATLAB", bytes(500)])
def test_public_descriptors_that_are_none_are_one_line(tmp_path, data):
    (tmp_path / "x.mat").write_bytes(data)
    with pytest.raises(RemeasureError, match="no public descriptors"):
        anchors.read_features(tmp_path / "x.mat")
    with pytest.raises(RemeasureError, match="no public descriptors"):
        anchors.read_features(tmp_path / "none.mat")


def test_known_answers_are_those_of_the_benchmarks_own_page():
    assert anchors.KNOWN["roxford5k"].map == (84.81, 64.67, 38.47)
    assert anchors.KNOWN["rparis6k"].map == (92.12, 77.20, 56.32)
    # 66 of 68 queries that have an easy photograph: two of ROxford have none.
    assert round(100 * 66 / 68, 2) == anchors.KNOWN["roxford5k"].mp[0][0]
