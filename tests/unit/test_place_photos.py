"""From rankings on disk to responses: the scripts, with files that do not belong together."""

import json

import h5py
import numpy as np
import pytest

import import_ranking
import place_photos
import rankkit
import torchkit
import want_locals
from remeasure import jsonl
from remeasure.errors import RemeasureError
from remeasure.instances import evaluation, first_file, given_ranking, ranking
from remeasure.instances.first_file import First
from remeasure.instances.ranking import Gallery, Kept, Source
from remeasure.records import Item, Response

N_OWN, N_OTHERS = 12, 7
RERANK = {"shortlist": 4, "weight": 0.5, "temperature": 1.0}
GRID = {"grid_weights": [0.25, 0.5], "grid_temperatures": [1.0]}


class Cell:
    """A gallery of 12 photographs and 7 distractors, two queries, a first stage and logits, on disk."""

    def __init__(self, folder) -> None:
        self.folder, self.labels = folder, rankkit.labels(N_OWN, ((1,), (2, 3), (4,)), ((5, 6), (), (7,)))
        rng = np.random.default_rng(8)
        self.scores = rng.uniform(-1, 1, (2, N_OWN + N_OTHERS)).astype(np.float32)
        self.logits = rng.standard_normal(self.scores.shape).astype(np.float32) * 3
        everything = {(q, i): float(self.logits[q, i]) for q in range(2) for i in range(N_OWN + N_OTHERS)}
        self.first_path = folder / "first.h5"
        first_file.write(self.first_path, {"": self.first(), "r1_": self.first()}, {}, reach=[5, 6])
        self.files = {
            "--labels": rankkit.put_labels(folder, self.labels),
            "--items": folder / "items.jsonl",
            "--order": rankkit.put_order(folder, {"1of2": list("abc"), "2of2": list("defg")}),
            "--first": self.first_path,
        }
        self.pairs = rankkit.put_pairs(folder / "pairs.parquet", everything)
        items = [
            Item(item_id=stem, question="", group="g", meta={"photo": stem}) for stem in self.labels.qimlist
        ]
        jsonl.write(self.files["--items"], items)

    def first(self, undecoded=()) -> First:
        source = Source(None, np.eye(N_OWN + N_OTHERS, dtype=np.float32), np.array(undecoded, dtype=np.int64))
        kept = Kept(8, [self.labels.labelled(query) for query in range(2)])
        return ranking.first_stage(self.scores, Gallery([source]), kept)

    def run(self, rerank=None) -> int:
        told = {"study": "s", "bench": "b", "arm": "a", "model": "m", "gallery": "g"}
        if rerank:
            told["rerank"] = rerank
        words = ["--settings", json.dumps(told)]
        for name, path in self.files.items():
            words += [name, str(path)]
        for name in ("responses", "grid", "record"):
            words += [f"--{name}", str(self.folder / f"{name}.json")]
        return place_photos.main(words)

    def responses(self) -> list[Response]:
        return list(jsonl.read(self.folder / "responses.json", Response))


@pytest.fixture
def cell(tmp_path) -> Cell:
    return Cell(tmp_path)


def places(whole: list[int], right, ignored) -> list[int]:
    counted = [i for i in whole if i not in ignored]
    return [place for place, i in enumerate(counted) if i in right]


def test_one_stage_says_where_positives_stand_at_every_difficulty(cell):
    assert cell.run() == 0
    whole = rankkit.by_score(cell.scores)
    for query, response in enumerate(cell.responses()):
        placed = response.placed
        assert response.status == "answered" and placed.n_gallery == 19 and placed.n_tied == 0
        for name, (right, ignored) in rankkit.asked(cell.labels.gnd[query]).items():
            assert list(placed.positions[name]) == places(whole[query], right, ignored)
            assert placed.n_positives[name] == len(right)
            assert list(placed.ignored[name]) == sorted(whole[query].index(i) for i in ignored)
        assert placed.as_sorted == {} and placed.n_undecoded == 0
    assert json.loads((cell.folder / "grid.json").read_text()) == {"best": {}, "cells": [], "reported": None}


def test_positives_that_could_not_be_decoded_are_told_query_by_query(cell):
    """Photographs 2 and 7 have no pixels: 2 is a hard positive of the first query, 7 junk of the second."""
    found = cell.first(np.array([2, 7, 15]))
    assert found.undecoded == (2, 7)
    first_file.write(cell.first_path, {"": found}, {})
    assert cell.run() == 0
    assert [response.placed.n_undecoded for response in cell.responses()] == [1, 0]
    first_file.write(cell.first_path, {"": found._replace(undecoded=(19,))}, {})
    with pytest.raises(RemeasureError, match="could not be decoded are no ids of its gallery"):
        first_file.read(cell.first_path)


def test_the_first_of_a_ranking_are_named_and_marked(cell):
    assert cell.run() == 0
    top = cell.responses()[0].placed.top
    whole = rankkit.by_score(cell.scores)[0][:8]
    others = [f"1of2 row {n}" for n in range(3)] + [f"2of2 row {n}" for n in range(4)]
    names = [f"photo_{i:04d}" for i in range(N_OWN)] + others
    marks = {1: "easy", 2: "hard", 3: "hard", 4: "junk"}
    assert [(one.photo, one.label) for one in top] == [(names[i], marks.get(i)) for i in whole]
    assert cell.responses()[0].text == "\n".join(names[i] for i in whole)


def test_two_stages_rerank_medium_and_hard_and_leave_out_easy(cell):
    cell.files["--pairs"] = cell.pairs
    assert cell.run(RERANK | GRID) == 0
    fused = 0.5 * cell.scores.astype(np.float64) + 0.5 / (1 + np.exp(-cell.logits.astype(np.float64)))
    for query, response in enumerate(cell.responses()):
        whole = rankkit.by_score(cell.scores)[query]
        assert sorted(response.placed.positions) == ["hard", "medium"]
        for name in ("medium", "hard"):
            right, ignored = rankkit.asked(cell.labels.gnd[query])[name]
            counted = [i for i in whole if i not in ignored]
            best = sorted(counted[:4], key=lambda i, query=query: -fused[query, i])
            assert list(response.placed.positions[name]) == places([*best, *counted[4:]], right, ())
    grid = json.loads((cell.folder / "grid.json").read_text())
    assert [(one["weight"], one["temperature"]) for one in grid["cells"]] == [(0.25, 1.0), (0.5, 1.0)]
    assert grid["reported"]["map"]["hard"] == grid["cells"][1]["map"]["hard"]


def test_answers_are_known_by_what_made_them_and_not_by_the_grid(cell):
    cell.files["--pairs"] = cell.pairs
    keys = []
    for rerank in (RERANK | GRID, RERANK, RERANK | {"weight": 0.4}):
        assert cell.run(rerank) == 0
        keys.append([response.key for response in cell.responses()])
    assert keys[0] == keys[1] != keys[2] and len(set(keys[0])) == 2


def test_a_chosen_read_out_is_ranked(cell):
    chosen = cell.folder / "chosen.json"
    chosen.write_text('{"chosen": 1, "grid": []}')
    del cell.files["--first"]
    cell.files |= {"--read-outs": cell.first_path, "--chosen": chosen}
    assert cell.run() == 0 and len(cell.responses()) == 2


def refuse(cell, capsys, says: str, rerank=None) -> None:
    assert cell.run(rerank) == 2
    said = capsys.readouterr().err.strip().splitlines()[-1]
    assert said.startswith("error: ") and says in said, said


def test_what_does_not_belong_together_is_refused(cell, capsys):
    refuse(cell, capsys, "--pairs belongs to settings with `rerank`", RERANK)
    cell.files["--pairs"] = rankkit.put_pairs(cell.folder / "few.parquet", {(0, 1): 0.5})
    refuse(cell, capsys, "has no logit with photograph", RERANK)
    refuse(cell, capsys, "--pairs belongs to settings with `rerank`")
    refuse(cell, capsys, "keeps 8 of 19 photographs", RERANK | {"shortlist": 9})
    del cell.files["--pairs"], cell.files["--order"]
    refuse(cell, capsys, "ranks 19 photographs for 2 queries, labels and order have 12 for 2")
    del cell.files["--first"]
    refuse(cell, capsys, "give either --first, or --read-outs with --chosen")


def test_an_item_about_no_query_is_refused(cell, capsys):
    jsonl.write(cell.files["--items"], [Item(item_id="x", question="", group="g", meta={"photo": "x"})])
    refuse(cell, capsys, "item 'x': its photograph 'x' is no query of small")


# -- distractors that get local descriptors ------------------------------------------------------------------


def want(cell, everything: bool) -> list[tuple[str, int]]:
    from pyarrow import parquet

    told = json.dumps({"photos": "p", "all": everything})
    out = cell.folder / "wanted.parquet"
    words = ["--settings", told, "--order", str(cell.files["--order"]), "--first", str(cell.first_path)]
    assert want_locals.main([*words, "--out", str(out), "--record", str(cell.folder / "w.json")]) == 0
    found = parquet.read_table(out).to_pydict()
    return list(zip(found["piece"], found["row"], strict=True))


def test_shortlisted_distractors_are_wanted_and_no_others(cell):
    whole = rankkit.by_score(cell.scores)
    ids = sorted({i - N_OWN for row, n in zip(whole, (5, 6), strict=True) for i in row[:n] if i >= N_OWN})
    assert ids and want(cell, False) == [("1of2", i) if i < 3 else ("2of2", i - 3) for i in ids]


def test_all_distractors_are_wanted_where_that_is_asked_for(cell):
    assert want(cell, True) == [("1of2", n) for n in range(3)] + [("2of2", n) for n in range(4)]


@pytest.mark.parametrize("reach", ["[1]", '"ab"', "[null, 1]", "[-1, 1]", "[1, 99]", '{"a": 1, "b": 2}'])
def test_how_far_shortlists_reach_must_be_a_number_of_every_query(cell, capsys, reach):
    with h5py.File(cell.first_path, "r+") as store:
        store.attrs["reach"] = reach
    words = ["--settings", '{"photos": "p", "all": false}', "--order", str(cell.files["--order"])]
    out = ["--out", str(cell.folder / "w.parquet"), "--record", str(cell.folder / "w.json")]
    assert want_locals.main([*words, "--first", str(cell.first_path), *out]) == 2
    assert "reach is no list of 2 numbers from 0 to " in capsys.readouterr().err


# -- published rankings --------------------------------------------------------------------------------------


def published(cell, ids, scores=None, *words: str) -> int:
    ids = np.float32(ids)
    scores = np.float32(np.tile(np.linspace(1, 0, ids.shape[1]), (2, 1)) if scores is None else scores)
    tensor = np.stack([scores, ids])
    steps = tuple(step // 4 for step in tensor.strides)
    path = cell.folder / "nn.pkl"
    path.write_bytes(torchkit.plain(torchkit.storage_bytes(tensor.ravel()), tensor.shape, steps))
    given = ["--ranking", str(path), "--labels", str(cell.files["--labels"]), *words]
    out = ["--out", str(cell.folder / "given.h5"), "--record", str(cell.folder / "given.json")]
    return import_ranking.main(["--settings", '{"gallery": "g", "photos": "p"}', *given, *out])


WHOLE = [[3, 1, 4, 2, 0, 5, 6, 7, 8, 9, 10, 11], [7, 6, 5, 0, 1, 2, 3, 4, 8, 9, 10, 11]]


def test_a_published_ranking_is_taken_in_its_own_order(cell):
    """Of query 0, 1 is easy, 2 and 3 hard, 4 junk; of query 1, 5 and 6 are easy, 7 is junk."""
    assert published(cell, WHOLE) == 0
    found = first_file.read(cell.folder / "given.h5")
    assert found.top_id.tolist() == WHOLE and found.n_gallery == found.n_listed == 12
    assert found.labelled[0].ids.tolist() == [1, 2, 3, 4] and found.labelled[0].rank.tolist() == [1, 3, 0, 2]
    # Medium: 3 first, 1 second, junk out, 2 third: all is found at once. Query 1: junk out, 6 and 5.
    assert evaluation.mean_ap(found.labelled, cell.labels)["medium"] == 1.0


def test_a_cut_ranking_is_an_error_unless_that_is_said_and_costs_recall_then(cell, capsys):
    cut = [row[:2] for row in WHOLE]
    assert published(cell, cut) == 2
    assert "ranks 2 photographs, the gallery has 12" in capsys.readouterr().err
    assert published(cell, cut, None, "--truncate") == 0
    found = first_file.read(cell.folder / "given.h5")
    assert found.n_gallery == 12 and found.n_listed == 2 and found.labelled[0].ids.tolist() == [1, 3]
    # Query 0: 2 of 3 found at the first two places: 2/3. Query 1: 6 at the first, 5 is missing: 1/2.
    assert evaluation.mean_ap(found.labelled, cell.labels)["medium"] == pytest.approx(
        (2 / 3 + 1 / 2) / 2, abs=1e-15
    )


@pytest.mark.parametrize(
    ("ids", "scores", "says"),
    [
        ([WHOLE[0]], [[1.0] * 12], "has the shape (2, 1, 12), expected (2, 2, as many as are ranked)"),
        ([WHOLE[0], [0.5, *WHOLE[1][1:]]], None, "no whole number from 0 to 11"),
        ([WHOLE[0], [12, *WHOLE[1][1:]]], None, "no whole number from 0 to 11"),
        ([WHOLE[0], [np.nan, *WHOLE[1][1:]]], None, "no whole number from 0 to 11"),
        ([WHOLE[0], [6, *WHOLE[1][1:]]], None, "names a photograph twice for query 1"),
        (WHOLE, [[1.0] * 12, [np.nan] * 12], "a similarity that is not finite"),
    ],
)
def test_a_published_ranking_of_something_else_is_refused(cell, capsys, ids, scores, says):
    assert published(cell, ids, scores) == 2
    said = capsys.readouterr().err.strip().splitlines()[-1]
    assert said.startswith("error: ") and says in said, said


def test_ids_that_float32_cannot_tell_apart_are_refused(tmp_path):
    """From 2^24 on there are whole numbers that float32 does not have."""
    ids = np.zeros((1, 1), np.float32)
    with pytest.raises(RemeasureError, match="cannot tell 16777216 photographs apart"):
        given_ranking.ids_of(ids, 1 << 24, tmp_path / "nn.pkl")
    assert given_ranking.ids_of(np.float32([[16777214]]), (1 << 24) - 1, tmp_path).tolist() == [[16777214]]
