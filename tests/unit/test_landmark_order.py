"""The canonical order of a set over its parts is that of the published list, name by name."""

import hashlib
import json

import pytest

import order_photos
from archivekit import PHOTOS, Stage, tar_of

NAMES = list(PHOTOS)


@pytest.fixture
def ordered(tmp_path):
    """Stream archives into parts, then order them; return the exit code and where the order is."""

    def called(parts, names=tuple(NAMES), listed=True, expected=None):
        indexes, pieces = [], [f"{n}of{len(parts)}" for n in range(1, len(parts) + 1)]
        for number, (piece, members) in enumerate(zip(pieces, parts, strict=True)):
            stage = Stage(tmp_path, names)
            stage.put(number, tar_of({name: PHOTOS[name] for name in members}))
            stage.shard, stage.index = tmp_path / f"{piece}.tar", tmp_path / f"{piece}.index.parquet"
            assert stage.run(len(parts), piece=piece) == 0
            indexes.append(stage.index)
        settings = {"photos": "tiny", "pieces": pieces, "expected": expected or {}}
        words = ["--settings", json.dumps(settings), "--indexes", *indexes]
        words += ["--list", tmp_path / "list.txt"] if listed else []
        words += ["--out", tmp_path / "order.json", "--record", tmp_path / "order.record.json"]
        return order_photos.main([str(word) for word in words]), tmp_path / "order.json"

    return called


def test_parts_begin_where_the_one_before_ends(ordered):
    code, out = ordered([NAMES[:4], NAMES[4:]], expected={"photos": 6})
    assert code == 0
    sha256 = [
        hashlib.sha256("".join(f"{name}\n" for name in names).encode()).hexdigest()
        for names in (NAMES[:4], NAMES[4:])
    ]
    assert json.loads(out.read_text()) == {
        "n": 6,
        "shards": [
            {"name": "1of2", "rows": 4, "start": 0, "list_sha256": sha256[0]},
            {"name": "2of2", "rows": 2, "start": 4, "list_sha256": sha256[1]},
        ],
    }


def test_a_photograph_that_is_in_no_archive_is_named(ordered, capsys):
    code, out = ordered([NAMES[:4], NAMES[5:]])
    assert code == 2 and not out.exists()
    assert "6 photographs, 5 are in the shards; 1 are in no archive (a/b/5.jpg)" in capsys.readouterr().err


def test_archives_in_another_order_than_the_list_are_named_with_the_line(ordered, capsys):
    code, _ = ordered([NAMES[4:], NAMES[:4]])
    assert code == 2
    assert "list.txt line 1: a/b/1.jpg, the archives in their order have a/b/5.jpg" in capsys.readouterr().err


def test_one_photograph_in_two_parts_is_refused(ordered, capsys):
    code, _ = ordered([NAMES[:4], NAMES[3:]])
    assert code == 2
    assert "'a/b/4.jpg' stands in" in capsys.readouterr().err


def test_another_number_than_expected_is_refused(ordered, capsys):
    code, _ = ordered([NAMES[:4], NAMES[4:]], listed=False, expected={"photos": 1_001_001})
    assert code == 2
    assert "6 photographs, expected 1001001" in capsys.readouterr().err
