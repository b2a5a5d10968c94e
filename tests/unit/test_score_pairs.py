import json
import shutil

import numpy as np
import pyarrow.parquet as pq
import pytest

import score_pairs
from ameskit import (
    SIZES,
    SMALL,
    dense_logits,
    random_weights,
    remapped,
    small_gallery,
    write_first,
    write_locals,
)
from remeasure.errors import RemeasureError
from remeasure.instances.ames import pairs
from remeasure.instances.ames.pairs import Blocks
from remeasure.instances.vectors_file import Rows

SETTINGS = {"gallery": "g", "name": "small", "tokens_query": 40, "tokens_gallery": 40, "shortlist": 5}
SETTINGS |= {"numeric": "fp32"} | SIZES


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    return small_gallery(tmp_path_factory.mktemp("gallery") / "made")


@pytest.fixture
def folder(made, tmp_path):
    return shutil.copytree(made, tmp_path / "gallery")


def run(folder, first=("plain",), large=False, known=(), out="pairs", options=(), **settings):
    pieces = ["1of1", "1of2", "2of2"] if large else ["1of1"]
    words = ["--settings", json.dumps(SETTINGS | settings), "--labels", folder / "labels.json"]
    words += ["--checkpoint", folder / "weights.safetensors", "--queries", folder / "tokens/queries.h5"]
    words += ["--first", *(folder / f"{name}.h5" for name in first)]
    words += ["--tokens", *(folder / f"tokens/{piece}.h5" for piece in pieces)]
    words += ["--order", folder / "order.json"] if large else []
    words += ["--known", *(folder / f"{name}.parquet" for name in known)] if known else []
    words += ["--blocks", folder / f"{out}.blocks", "--out", folder / f"{out}.parquet"]
    words += ["--record", folder / f"{out}.json", *options]
    return score_pairs.main([str(word) for word in words])


def table(folder, out="pairs"):
    found = pq.read_table(folder / f"{out}.parquet")
    assert [str(field.type) for field in found.schema] == ["int16", "int32", "float"]
    assert found.column_names == ["query", "gallery", "logit"]
    return list(zip(*(column.to_pylist() for column in found.columns), strict=True))


def scored(record):
    return json.loads(record.read_text())["counts"]["pairs"]


def test_pairs_are_the_union_of_both_shortlists_with_their_logits(folder):
    assert run(folder) == 0
    rows = table(folder)
    assert rows == sorted(rows) and scored(folder / "pairs.json") == len(rows)
    from remeasure.instances import first_file

    top = first_file.read(folder / "plain.h5").top_id
    expected = set()
    for query in range(3):
        easy, junk = {query}, {query + 6, query + 9}
        for ignored in (junk, junk | easy):
            expected |= {(query, int(i)) for i in [i for i in top[query] if i not in ignored][:5]}
    assert {row[:2] for row in rows} == expected
    sides = {name: Rows(folder / f"locals/{name}.h5") for name in ("queries", "1of1")}
    arrays = [
        part
        for name, column in (("queries", 0), ("1of1", 1))
        for ids in [[row[column] for row in rows]]
        for part in (
            sides[name].read("descriptor").astype(np.float32)[ids],
            sides[name].read("n_valid").astype(int)[ids],
        )
    ]
    dense = dense_logits(random_weights(SMALL, 5), SMALL, *arrays)
    assert np.abs(dense - [row[2] for row in rows]).max() <= 1e-5


def test_a_killed_job_goes_on_and_ends_with_the_same_bytes(folder, monkeypatch):
    monkeypatch.setattr(score_pairs, "PHOTOS_AT_ONCE", {"cpu": 3})
    assert run(folder, out="whole") == 0
    keep, kept = Blocks.keep, []

    def killed(self, *columns):
        if len(kept) == 2:
            raise KeyboardInterrupt
        keep(self, *columns)
        kept.append(columns)

    monkeypatch.setattr(Blocks, "keep", killed)
    assert run(folder) == 130 and not (folder / "pairs.parquet").exists()
    # A block whose writing was cut off is not read.
    (folder / "pairs.blocks/000002.parquet").write_bytes(b"PAR1")
    monkeypatch.setattr(Blocks, "keep", lambda self, *columns: kept.append(columns) or keep(self, *columns))
    assert run(folder) == 0
    assert (folder / "pairs.parquet").read_bytes() == (folder / "whole.parquet").read_bytes()
    # Nothing was scored twice.
    numbers = [
        pair for query, gallery, *_ in kept for pair in zip(query.tolist(), gallery.tolist(), strict=True)
    ]
    assert len(numbers) == len(set(numbers)) == len(table(folder))


def test_a_further_head_scores_only_what_is_new(folder, capsys):
    assert run(folder) == 0
    before = {row[:2]: row[2] for row in table(folder)}
    (folder / "pairs.parquet").unlink()
    capsys.readouterr()
    assert run(folder, ("plain", "other")) == 0
    after = {row[:2]: row[2] for row in table(folder)}
    assert len(after) > len(before) and all(after[pair] == logit for pair, logit in before.items())
    assert f"{len(after)} pairs, {len(after) - len(before)} scored now" in capsys.readouterr().err


def test_pairs_of_the_plain_gallery_are_known_with_distractors(folder, capsys):
    assert run(folder, shortlist=15) == 0
    plain = {row[:2]: row[2] for row in table(folder)}
    assert run(folder, ("large",), large=True, out="alone") == 0
    capsys.readouterr()
    assert run(folder, ("large",), large=True, known=("pairs",)) == 0
    assert (folder / "pairs.parquet").read_bytes() == (folder / "alone.parquet").read_bytes()
    rows = table(folder)
    assert any(row[1] >= 20 for row in rows)
    n_known = sum(row[:2] in plain for row in rows)
    assert n_known and f"{len(rows)} pairs, {len(rows) - n_known} scored now" in capsys.readouterr().err


def test_known_pairs_of_other_weights_are_not_taken(folder, capsys):
    assert run(folder, out="half", numeric="fp16") == 0
    facts = json.loads((folder / "half.json").read_text())["facts"]
    assert facts["numeric"] == "fp16" and 0 < facts["largest_difference_from_fp32"] < 0.02
    assert run(folder, known=("half",)) == 0
    assert "half.parquet: scored by other weights or tokens" in capsys.readouterr().err
    assert table(folder) != table(folder, "half")


def test_blocks_of_other_weights_or_photographs_are_not_taken(folder, capsys):
    assert run(folder) == 0
    before = table(folder)
    other = write_locals(folder / "locals/1of1.h5", [f"g{i}" for i in range(20)], [40] * 20, 77)
    assert remapped(folder, "1of1", other, folder / "tokens/1of1.h5") == 0
    capsys.readouterr()
    assert run(folder) == 0
    after = table(folder)
    assert f"{len(after)} pairs, {len(after)} scored now" in capsys.readouterr().err
    assert all(a[2] != b[2] for a, b in zip(before, after, strict=True))


def test_a_shortlist_longer_than_the_gallery_leaves_ignored_photographs_out(folder):
    assert run(folder, shortlist=100) == 0
    # Of 20 photographs two are junk of each query; easy ones are ignored by hard alone.
    assert len(table(folder)) == 3 * 18


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (
            "no order",
            "tokens of distractors: 1of2, 2of2, expected none; descriptors and local descriptors belong",
        ),
        ("no tokens", "tokens of distractors: none, expected 1of2, 2of2"),
        ("first", "plain.h5: ranks 20 photographs for 3 queries, the tokens are of 31 for 3"),
        ("checkpoint", "its tokens were made by another checkpoint"),
        ("names", "row 0 is 'x0', labels.json has 'g0' there"),
        ("extractor", "local descriptors of 2 extractors (e, f)"),
        ("unwanted", "no tokens of photograph"),
        ("empty", "photograph 'g2' (row 2) has no local descriptor, and is to be reranked"),
        ("zero", "photograph 'g2' (row 2) has a token that is zero or not finite"),
        ("nan", "not finite"),
        ("damaged", "refused as a file of vectors"),
    ],
)
def test_what_does_not_belong_together_is_one_line(folder, capsys, change, says):
    import h5py

    large, options, first = False, [], ("plain",)
    names = [f"g{i}" for i in range(20)]
    one = folder / "tokens/1of1.h5"
    if change == "no order":
        options = ["--tokens", *(str(folder / f"tokens/{piece}.h5") for piece in ("1of1", "1of2", "2of2"))]
    elif change == "no tokens":
        options = ["--order", str(folder / "order.json")]
    elif change == "first":
        large = True
    elif change == "checkpoint":
        from remeasure.instances.ames import weights

        weights.write(folder / "weights.safetensors", random_weights(SMALL, 6))
    elif change == "names":
        write_locals(folder / "locals/1of1.h5", ["x0", *names[1:]], [40] * 20, 1)
        remapped(folder, "1of1", folder / "locals/1of1.h5", one)
    elif change == "extractor":
        write_locals(folder / "locals/1of1.h5", names, [40] * 20, 1, extractor="f")
        remapped(folder, "1of1", folder / "locals/1of1.h5", one)
    elif change == "unwanted":
        write_locals(folder / "locals/1of1.h5", names[:2], [40] * 2, 1)
        remapped(folder, "1of1", folder / "locals/1of1.h5", one)
    elif change == "empty":
        write_locals(folder / "locals/1of1.h5", names, [40, 40, 0] + [40] * 17, 1)
        remapped(folder, "1of1", folder / "locals/1of1.h5", one)
    elif change in ("zero", "nan"):
        with h5py.File(one, "r+") as store:
            store["tok"][2] = 0 if change == "zero" else np.nan
    elif change == "damaged":
        one.write_bytes(one.read_bytes()[:2000])
    assert run(folder, first, large=large, options=options, shortlist=18) == 2
    error = capsys.readouterr().err.strip().splitlines()[-1]
    assert error.startswith("error: ") and says in error
    assert not (folder / "pairs.parquet").exists()


def test_published_and_own_descriptors_mix_only_where_they_were_compared(folder, capsys):
    for piece, n, extractor in (("queries", 3, "given"), ("1of1", 20, "e")):
        names = [f"{piece[0].replace('1', 'g')}{i}" for i in range(n)]
        write_locals(folder / f"locals/{piece}.h5", names, [40] * n, 1, extractor=extractor)
        remapped(folder, piece, folder / f"locals/{piece}.h5", folder / f"tokens/{piece}.h5")
    assert run(folder) == 2 and "local descriptors of 2 extractors" in capsys.readouterr().err
    (folder / "check.json").write_text('{"ok": false}')
    assert run(folder, options=["--checked", str(folder / "check.json")]) == 2
    (folder / "check.json").write_text('{"ok": true}')
    assert run(folder, options=["--checked", str(folder / "check.json")]) == 0


def test_a_ranking_that_was_cut_too_short_is_refused(folder, capsys):
    from remeasure.instances import first_file

    first = first_file.read(folder / "plain.h5")
    first_file.write(
        folder / "plain.h5",
        {"": first._replace(top_id=first.top_id[:, :5], top_score=first.top_score[:, :5])},
        {},
    )
    assert run(folder, shortlist=5) == 2
    assert "a ranking keeps 5 of 20 photographs" in capsys.readouterr().err


def test_a_file_of_pairs_of_another_form_is_refused(tmp_path):
    (tmp_path / "x.parquet").write_bytes(b"PAR1")
    with pytest.raises(RemeasureError, match="refused as a file of scored pairs"):
        pairs.read(tmp_path / "x.parquet")
    columns = {
        "query": np.zeros(1, np.int64),
        "gallery": np.zeros(1, np.int32),
        "logit": np.zeros(1, np.float32),
    }
    pairs.write(tmp_path / "y.parquet", columns, {})
    with pytest.raises(RemeasureError, match="query is of another type"):
        pairs.read(tmp_path / "y.parquet")


def test_a_ranking_of_the_whole_gallery_is_written_for_tests(tmp_path):
    from remeasure.instances import first_file

    top = first_file.read(write_first(tmp_path / "x.h5", 20, 1)).top_id
    assert (np.sort(top, axis=1) == np.arange(20)).all()
