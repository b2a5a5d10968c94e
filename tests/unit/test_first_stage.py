"""The first stage: a gallery in blocks, against whole rankings; and the script with its files."""

import json

import numpy as np
import pytest

import rank_first
import rankkit
from remeasure.errors import RemeasureError
from remeasure.instances import first_file, ranking, shortlist
from remeasure.instances.ranking import Gallery, Kept, Source

NONE = np.empty(0, np.int64)


def gallery(*parts: np.ndarray, unreadable=NONE) -> Gallery:
    return Gallery([Source(None, part, unreadable if not i else NONE) for i, part in enumerate(parts)])


@pytest.mark.parametrize("n_threads", [1, 3])
@pytest.mark.parametrize("scores_bytes", [1, 1 << 30])
def test_a_gallery_in_parts_and_blocks_is_ranked_as_a_whole(monkeypatch, n_threads, scores_bytes):
    """Whether all queries fit into memory or one at a time, and wherever blocks end."""
    monkeypatch.setattr(ranking, "BLOCK_ROWS", 7)
    monkeypatch.setattr(ranking, "SCORES_BYTES", scores_bytes)
    rng = np.random.default_rng(0)
    queries, own, others = rankkit.unit(rng, 5), rankkit.unit(rng, 40), rankkit.unit(rng, 60)
    labels = rankkit.random_labels(rng, 40, 5)
    ids = [labels.labelled(query) for query in range(5)]
    found = ranking.first_stage(queries, gallery(own, others), Kept(30, ids), n_threads)
    whole = rankkit.by_score(queries.astype(np.float64) @ np.concatenate([own, others]).T.astype(np.float64))
    assert found.n_gallery == found.n_listed == 100
    for query, wanted in enumerate(whole):
        assert found.top_id[query].tolist() == wanted[:30]
        assert found.labelled[query].ids.tolist() == ids[query].tolist()
        assert found.labelled[query].rank.tolist() == [wanted.index(i) for i in ids[query]]
        assert (np.diff(found.top_score[query]) <= 0).all()


def test_halves_are_ranked_as_the_numbers_that_they_are():
    rng = np.random.default_rng(1)
    queries, halves = rankkit.unit(rng, 2), rankkit.unit(rng, 50).astype(np.float16)
    whole = rankkit.by_score(queries.astype(np.float64) @ halves.astype(np.float64).T)
    found = ranking.first_stage(queries, gallery(halves), Kept(50, [NONE, NONE]))
    assert found.top_id.tolist() == whole


def test_what_could_not_be_decoded_stands_last_though_others_have_scores_below_zero():
    vectors = np.float32([[-1, 0], [0, 0], [0.6, 0.8], [-0.6, 0.8]])
    found = ranking.first_stage(
        np.float32([[1, 0]]), gallery(vectors, unreadable=np.array([1])), Kept(4, [np.array([0, 1])])
    )
    assert found.top_id.tolist() == [[2, 3, 0, 1]] and found.labelled[0].rank.tolist() == [2, 3]


@pytest.mark.parametrize("number", [np.nan, np.inf, 3.0])
def test_a_descriptor_that_is_none_is_named(number):
    own, others = np.float32([[1, 0], [0, 1]]), np.float32([[1, 0], [number, 0]])
    with pytest.raises(RemeasureError, match="descriptors row 1: has the score .*expected a cosine"):
        ranking.first_stage(np.float32([[1, 0]]), gallery(own, others), Kept(1, [NONE]))


def test_descriptors_of_another_length_are_refused():
    with pytest.raises(RemeasureError, match=r"has the shape \(2, 3\), queries have \(1, 2\)"):
        ranking.first_stage(rankkit.ones(1, 2), gallery(rankkit.ones(2, 3)), Kept(1, [NONE]))


def test_enough_is_kept_for_every_shortlist():
    """Query 0 ignores at most 2 + 1 for Hard, query 1 at most 4 for both: all of them may stand first."""
    labels = rankkit.labels(30, ((0,), (1,), (2, 3)), ((), (5,), (6, 7, 8, 9)))
    assert shortlist.kept(labels, 10, 30) == 14 and shortlist.kept(labels, 28, 30) == 30


def test_shortlists_leave_out_what_a_difficulty_ignores():
    labels = rankkit.labels(8, ((4,), (1,), (0, 6)))
    top = np.array([6, 4, 2, 0, 7, 1, 3, 5])
    settings = labels.settings(0)
    assert shortlist.shortlist(top, settings["medium"][1], 3, 8).tolist() == [4, 2, 7]
    assert shortlist.shortlist(top, settings["hard"][1], 3, 8).tolist() == [2, 7, 1]
    assert shortlist.union(top, settings, 3, 8).tolist() == [1, 2, 4, 7]
    # The last that is reranked is photograph 1, at the sixth place.
    assert shortlist.reach(top, settings, 3) == 6
    # More than there are that count: all of these, and no error.
    assert shortlist.shortlist(top, settings["medium"][1], 20, 8).tolist() == [4, 2, 7, 1, 3, 5]
    with pytest.raises(RemeasureError, match="keeps 4 of 8 photographs, 2 of which are not ignored"):
        shortlist.shortlist(top[:4], settings["medium"][1], 3, 8)


def test_both_shortlists_together_are_as_long_as_the_card_says():
    """K, and the easy ones among the first K of Medium, in whose places Hard has further ones."""
    rng = np.random.default_rng(4)
    labels = rankkit.random_labels(rng, 300, 20, most=40)
    for query in range(20):
        settings, top = labels.settings(query), rng.permutation(300)
        medium = shortlist.shortlist(top, settings["medium"][1], 60, 300).tolist()
        n_easy = len(set(medium) & set(labels.gnd[query].easy))
        assert len(shortlist.union(top, settings, 60, 300)) == 60 + n_easy


class Files:
    """A benchmark of 12 photographs with two queries, and two pieces of distractors, on disk."""

    def __init__(self, folder) -> None:
        rng = np.random.default_rng(5)
        self.folder, self.labels = folder, rankkit.labels(12, ((1,), (2, 3), (4,)), ((5, 6), (), (7,)))
        self.queries, self.own = rankkit.unit(rng, 2), rankkit.unit(rng, 12)
        self.others = {"1of2": rankkit.unit(rng, 3), "2of2": rankkit.unit(rng, 4)}
        self.names = {
            piece: [f"{piece}/{row}.jpg" for row in range(len(v))] for piece, v in self.others.items()
        }
        self.args = {
            "--labels": rankkit.put_labels(folder, self.labels),
            "--queries": self.put("queries", self.labels.qimlist, self.queries),
            "--gallery": self.put("1of1", self.labels.imlist, self.own),
        }
        audit = folder / "audit.json"
        audit.write_text('{"ok": true}')
        self.args["--audit"] = audit

    def put(self, piece: str, names, vectors, **about):
        return rankkit.put_descriptors(self.folder / "d" / f"{piece}.h5", names, vectors, **about)

    def with_distractors(self) -> "Files":
        self.args["--order"] = rankkit.put_order(self.folder, self.names)
        pieces = self.others.items()
        self.args["--distractors"] = [self.put(piece, self.names[piece], v) for piece, v in pieces]
        return self

    def run(self, size: int = 3) -> int:
        told = {"gallery": "g", "photos": "p", "projection": "h-0-published", "shortlist": size}
        words = ["--settings", json.dumps(told)]
        for name, value in self.args.items():
            words += [name, *map(str, value if isinstance(value, list) else [value])]
        here = self.folder / "first"
        return rank_first.main([*words, "--out", f"{here}.h5", "--record", f"{here}.json"])


@pytest.fixture
def files(tmp_path) -> Files:
    return Files(tmp_path)


def test_a_gallery_with_distractors_is_ranked_from_files(files):
    assert files.with_distractors().run() == 0
    found = first_file.read(files.folder / "first.h5")
    vectors = np.concatenate([files.own, *files.others.values()]).astype(np.float64)
    whole = rankkit.by_score(files.queries.astype(np.float64) @ vectors.T)
    # Query 0 ignores one for Medium and two for Hard, query 1 three for Hard: 3 + 3 are kept.
    assert found.n_gallery == 19 and found.top_id.tolist() == [row[:6] for row in whole]
    assert found.labelled[0].rank.tolist() == [whole[0].index(i) for i in (1, 2, 3, 4)]
    record = json.loads((files.folder / "first.json").read_text())
    assert record["counts"] == {"queries": 2, "gallery": 19, "kept": 6, "unreadable": 0, "tied": 0}


def test_the_same_files_give_the_same_bytes(files):
    assert files.with_distractors().run() == 0
    before = (files.folder / "first.h5").read_bytes()
    assert files.run() == 0 and (files.folder / "first.h5").read_bytes() == before


def refuse(files, capsys, says: str) -> None:
    assert files.run() == 2
    said = capsys.readouterr().err.strip().splitlines()[-1]
    assert said.startswith("error: ") and says in said, said
    assert not (files.folder / "first.h5").exists()


def test_a_gallery_in_another_order_is_refused(files, capsys):
    names = list(files.labels.imlist)
    names[3], names[4] = names[4], names[3]
    files.put("1of1", names, files.own)
    refuse(files, capsys, "row 3 is 'photo_0004', the labels have 'photo_0003' there as the gallery")


def test_a_query_too_few_is_refused(files, capsys):
    files.put("queries", files.labels.qimlist[:1], files.queries[:1])
    refuse(files, capsys, "has 1 rows, the labels name 2 as the queries")


def test_a_query_that_could_not_be_decoded_is_refused(files, capsys):
    files.put("queries", files.labels.qimlist, files.queries, status=[0, 2])
    refuse(files, capsys, "query 'query_001' could not be decoded")


def test_descriptors_of_two_heads_are_refused(files, capsys):
    files.put("queries", files.labels.qimlist, files.queries, head="another")
    refuse(files, capsys, "head is 'another', of ")


def test_distractors_by_another_extractor_are_refused(files, capsys):
    files.with_distractors().put("2of2", files.names["2of2"], files.others["2of2"], extractor="another")
    refuse(files, capsys, "extractor is 'another'")


def test_a_distractor_too_few_or_in_another_place_is_refused(files, capsys):
    files.with_distractors()
    files.put("2of2", files.names["2of2"][:3], files.others["2of2"][:3])
    refuse(files, capsys, "has 3 rows, expected the 4 photographs of 2of2 in the order of order.json")
    files.put("2of2", files.names["2of2"][::-1], files.others["2of2"])
    refuse(files, capsys, "has 4 rows, expected the 4 photographs of 2of2 in the order of order.json")


def test_pieces_that_are_missing_or_in_another_order_are_refused(files, capsys):
    files.with_distractors().args["--distractors"].reverse()
    refuse(files, capsys, "expected the 3 photographs of 1of2")
    files.args["--distractors"].pop()
    refuse(files, capsys, "1 files of distractors, and an order of 2 pieces")


def test_an_order_that_does_not_add_up_is_refused(files, capsys):
    order = json.loads(files.with_distractors().args["--order"].read_text())
    order["shards"][1]["start"] = 4
    files.args["--order"].write_text(json.dumps(order))
    refuse(files, capsys, "2of2 starts at 4 with 4 rows, expected to start at 3")


def test_a_benchmark_whose_audit_failed_is_not_ranked(files, capsys):
    files.args["--audit"].write_text('{"ok": false}')
    refuse(files, capsys, "the audit of this benchmark failed")


def damaged(files, name, change) -> None:
    import h5py

    with h5py.File(files.folder / "first.h5", "r+") as store:
        change(store)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda store: store.pop("top_score"), "it has no top_score"),
        (lambda store: store.attrs.__delitem__("n_gallery"), "n_gallery"),
        (lambda store: store["top_id"].write_direct(np.zeros((2, 6), np.int64)), "twice among the best"),
        (lambda store: store["top_id"].__setitem__((0, 0), 12), "top_id reaches beyond a gallery of 12"),
        (lambda store: store["top_score"].__setitem__((0, 3), np.nan), "not finite, or do not descend"),
        (lambda store: store["labelled_id"].__setitem__(0, 9), "not sorted by query and id"),
        (lambda store: store["labelled_query"].__setitem__(-1, 2), "not sorted by query and id"),
    ],
)
def test_a_damaged_ranking_is_refused_in_one_line(files, change, says):
    assert files.run() == 0
    damaged(files, "first.h5", change)
    with pytest.raises(RemeasureError, match=says) as told:
        first_file.read(files.folder / "first.h5")
    assert "\n" not in str(told.value)


def test_a_virtual_dataset_of_a_missing_file_is_refused(files):
    """HDF5 gives zeros for what is missing, without a word."""
    import h5py

    assert files.run() == 0
    path = files.folder / "first.h5"
    with h5py.File(path, "r+") as store:
        shape = store["top_score"].shape
        del store["top_score"]
        layout = h5py.VirtualLayout(shape, np.float32)
        layout[:] = h5py.VirtualSource("gone.h5", "top_score", shape)
        store.create_virtual_dataset("top_score", layout)
    with pytest.raises(RemeasureError, match="top_score is no dataset of numbers in this file"):
        first_file.read(path)


def test_a_ranking_that_is_cut_off_or_no_file_at_all_is_refused(files):
    assert files.run() == 0
    path = files.folder / "first.h5"
    path.write_bytes(path.read_bytes()[:2000])
    for other in (path, files.folder / "none.h5", files.args["--labels"]):
        with pytest.raises(RemeasureError, match="refused as a file of rankings"):
            first_file.read(other)


@pytest.mark.parametrize("factor", [0, 1e-3])
def test_a_descriptor_that_is_too_short_is_refused_though_its_scores_look_like_cosines(files, capsys, factor):
    shortened = files.own.copy()
    shortened[3] *= factor
    files.put("1of1", files.labels.imlist, shortened)
    refuse(files, capsys, f"1of1.h5: row 3 has the length {factor:g}, expected 1 (and 0 more)")
    files.put("1of1", files.labels.imlist, files.own)
    files.put("queries", files.labels.qimlist, files.queries * np.array([[1], [factor]], np.float32))
    refuse(files, capsys, f"queries.h5: row 1 has the length {factor:g}, expected 1")
