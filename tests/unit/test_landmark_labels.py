"""Ground truths of landmarks: one open form, everything checked; the published pickle runs nothing."""

import hashlib
import json
import os
import pickle
import pickletools
import random
import re
import zipfile
from collections import OrderedDict
from pathlib import Path

import numpy as np
import pytest

import import_labels
from archivekit import hurt
from remeasure.errors import RemeasureError
from remeasure.instances import crops, label_pickle, labels, photo_store

# Five photographs, two queries; the second has nothing easy.
RAW = {
    "imlist": ["keble_1", "keble_2", "hertford_1", "hertford_2", "street_1"],
    "qimlist": ["keble_000214", "hertford_000015"],
    "gnd": [
        {"bbx": [13.6, 3.4, 64.8, 95.7], "easy": [1, 0], "hard": [3], "junk": [4]},
        {"bbx": [0.0, 0.0, 10.0, 20.0], "easy": [], "hard": [2, 3], "junk": []},
    ],
}


def as_json(**changes) -> dict:
    """The same in our own form, rows ascending."""
    gnd = [{**one, "easy": sorted(one["easy"])} for one in RAW["gnd"]]
    return RAW | {"schema": 1, "dataset": "tiny", "source_sha256": "0" * 64, "gnd": gnd} | changes


def written(tmp_path, content, name="gnd.json"):
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else json.dumps(content).encode())
    return path


def refused(tmp_path, content, name="gnd.json") -> str:
    with pytest.raises(RemeasureError) as caught:
        labels.read(written(tmp_path, content, name))
    assert str(caught.value).isprintable() and len(str(caught.value)) < 1500
    return str(caught.value)


def test_medium_asks_for_easy_and_hard_and_hard_passes_over_what_is_easy(tmp_path):
    found = labels.read(written(tmp_path, as_json())).settings(0)
    as_lists = {name: (list(ok), list(junk)) for name, (ok, junk) in found.items()}
    assert as_lists == {"easy": ([0, 1], [3, 4]), "medium": ([0, 1, 3], [4]), "hard": ([3], [0, 1, 4])}
    assert list(found) == ["easy", "medium", "hard"]


def test_a_query_without_easy_photographs_has_none(tmp_path):
    found = labels.read(written(tmp_path, as_json())).settings(1)
    assert [len(found[name][0]) for name in labels.DIFFICULTIES] == [0, 2, 2]
    assert list(labels.read(tmp_path / "gnd.json").labelled(0)) == [0, 1, 3, 4]


def with_truth(**changes) -> dict:
    gnd = as_json()["gnd"]
    return as_json(gnd=[{**gnd[0], **changes}, gnd[1]])


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (with_truth(easy=[0, 0]), r"gnd\[0\] easy: rows do not ascend, or one stands twice"),
        (with_truth(easy=[1, 0]), r"gnd\[0\] easy: rows do not ascend"),
        (with_truth(junk=[5]), r"gnd\[0\] junk: row 5 is not in a gallery of 5"),
        (with_truth(hard=[-1]), r"gnd\[0\] hard: row -1 is not in a gallery of 5"),
        (with_truth(junk=[0]), r"gnd\[0\] row 0 is in easy and in junk"),
        (with_truth(bbx=[5, 0, 5, 9]), "expected left, top, right, bottom"),
        (with_truth(bbx=[1, 2, 3]), "gnd"),
        (with_truth(extra=1), "extra"),
        (as_json(imlist=["a", "b", "c", "d", "a"]), "imlist: 'a' stands 2 times"),
        (as_json(qimlist=["keble_1", "x"]), "'keble_1' is both a query and in the gallery"),
        (as_json(qimlist=["../secret", "x"]), "'../secret' is no name of a file"),
        (as_json(qimlist=["a\nb", "x"]), r"a\\+nb' is no name of a file"),
        (as_json(qimlist=["x" * 300, "y"]), "more than 200 bytes"),
        (as_json(qimlist=["only"]), "gnd has 2 entries, qimlist 1"),
        (as_json(schema=2), "schema"),
        (as_json(source_sha256="abc"), "source_sha256"),
        (as_json(dataset="../x"), "dataset"),
        ([], "not a ground truth of our form"),
        (b"\xff\xfe", "not a ground truth of our form"),
        (b"[" * 100_000, "not a ground truth of our form"),
        (b'{"gnd": [{"bbx": [NaN]}]}', "not a ground truth of our form"),
    ],
)
def test_every_mistake_is_one_line_with_its_place(tmp_path, content, says):
    assert re.search(says, refused(tmp_path, content))


def test_many_problems_are_counted_and_the_first_are_told(tmp_path):
    said = refused(tmp_path, as_json(imlist=["/"] * 5, qimlist=["/", "/"]))
    assert "wrong in" in said and "; and " in refused(
        tmp_path, with_truth(easy=[9, 8, 7], hard=[9], junk=[9])
    )


def test_a_missing_file_and_a_pipe_are_told(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for name in ("none.json", "pipe"):
        with pytest.raises(RemeasureError, match="cannot be read"):
            labels.read(tmp_path / name)


# -- boxes ---------------------------------------------------------------------------------------------------


def test_the_two_rules_cut_the_example_of_the_card_to_other_sizes():
    box = (13.6, 3.4, 64.8, 95.7)
    assert crops.pillow_box(box, (200, 200)) == (14, 3, 65, 96)  # 51 x 93 pixels
    assert crops.array_box(box, (200, 200)) == (13, 3, 64, 95)  # 51 x 92 pixels


def test_halves_are_rounded_to_even_as_pillow_does():
    from PIL import Image

    assert crops.pillow_box((0.5, 1.5, 2.5, 3.5), (9, 9)) == (0, 2, 2, 4)
    assert Image.new("L", (9, 9)).crop((0.5, 1.5, 2.5, 3.5)).size == (2, 2)


def test_a_box_that_begins_left_of_the_photograph_is_clamped_by_both_rules():
    # As a slice of an array, -3 would count from the end: an empty or a 3 pixels wide crop.
    assert crops.array_box((-3.2, 0, 64.8, 50), (100, 60)) == (0, 0, 64, 50)
    assert crops.array_box((-3.2, 0, 100, 50), (100, 60)) == (0, 0, 100, 50)
    assert crops.pillow_box((-3.2, -9, 120.4, 99), (100, 60)) == (0, 0, 100, 60)
    assert crops.reaches_outside((-3.2, 0, 64.8, 50), (100, 60))
    assert not crops.reaches_outside((-0.4, 0, 100.4, 60.5), (100, 60))


@pytest.mark.parametrize(
    "box", [(200, 0, 300, 50), (0, 70, 10, 90), (5.1, 0, 5.2, 10), (-9, -9, -1, -1), (0, 0, float("nan"), 5)]
)
def test_a_box_without_a_pixel_is_an_error_that_names_the_photograph(box):
    for rule in (crops.pillow_box, crops.array_box):
        with pytest.raises(RemeasureError, match="keble: box"):
            rule(box, (100, 60), "keble")


# -- photographs of a benchmark ------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["folder", "zip"])
def test_photographs_are_read_by_stem_from_a_folder_or_a_zip(tmp_path, kind):
    place = tmp_path / "photos"
    if kind == "folder":
        place.mkdir()
        (place / "a.jpg").write_bytes(b"one")
    else:
        with zipfile.ZipFile(place, "w") as store:
            store.writestr("a.jpg", b"one")
    with photo_store.open_photos(place) as photos:
        assert photos.read("a") == b"one"
        photos.check(["a"])
        with pytest.raises(RemeasureError, match=r"b\.jpg is missing"):
            photos.read("b")
        with pytest.raises(
            RemeasureError, match=r"2 photographs are missing \(b\.jpg, c\.jpg\), 1 are there"
        ):
            photos.check(["a", "b", "c"])


def test_a_link_out_of_the_folder_is_not_followed(tmp_path):
    (tmp_path / "secret").write_bytes(b"secret")
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos" / "a.jpg").symlink_to(tmp_path / "secret")
    with photo_store.open_photos(tmp_path / "photos") as photos:
        with pytest.raises(RemeasureError, match="is a link that leads out of the folder"):
            photos.read("a")


# -- the published pickle ------------------------------------------------------------------------------------


def imported(data: bytes):
    return label_pickle.read("gnd.pkl", data, "tiny", hashlib.sha256(data).hexdigest())


def as_arrays() -> dict:
    """The same with numpy's arrays and numbers, as some copies have them."""
    gnd = [
        OrderedDict(
            bbx=np.array(one["bbx"]),
            easy=np.array(one["easy"], dtype=np.int32),
            hard=[np.int64(row) for row in one["hard"]],
            junk=np.array(one["junk"], dtype=np.uint16),
        )
        for one in RAW["gnd"]
    ]
    return {
        "imlist": np.array(RAW["imlist"]),
        "qimlist": np.array(RAW["qimlist"], dtype=object),
        "gnd": np.array(gnd, dtype=object),
    }


@pytest.mark.parametrize("protocol", [0, 1, 2, 3, 4])
@pytest.mark.parametrize("made", [lambda: RAW, as_arrays])
@pytest.mark.parametrize("module", ["numpy._core", "numpy.core"])
def test_lists_and_arrays_of_every_protocol_give_the_same_labels(made, protocol, module):
    data = pickle.dumps(made(), protocol)
    if module == "numpy.core":  # as numpy wrote it before version 2
        data = data.replace(b"numpy._core.multiarray", b"numpy.core.multiarray")
        if protocol == 4:  # names carry their length there, and frames theirs
            data = pickle.dumps(made(), 3).replace(b"numpy._core.multiarray", b"numpy.core.multiarray")
    found = imported(data)
    assert found.imlist == tuple(RAW["imlist"]) and found.qimlist == tuple(RAW["qimlist"])
    assert found.gnd[0].bbx == (13.6, 3.4, 64.8, 95.7)
    assert (found.gnd[0].easy, found.gnd[0].hard, found.gnd[0].junk) == ((0, 1), (3,), (4,))
    assert labels.check(found) == []


def test_a_text_pickle_of_python_2_is_read():
    # What Python 2.7 wrote with its first protocol, worked by hand, for {'imlist': ['a'], 'qimlist': ['b'],
    # 'gnd': [{'bbx': [0, 0, 1.5, 2], 'easy': [0], 'hard': [], 'junk': []}]}.
    data = (
        b"(dp0\nS'imlist'\np1\n(lp2\nS'a'\np3\nasS'qimlist'\np4\n(lp5\nS'b'\np6\nasS'gnd'\np7\n(lp8\n(dp9\n"
        b"S'bbx'\np10\n(lp11\nI0\naI0\naF1.5\naI2\nasS'easy'\np12\n(lp13\nI0\nasS'hard'\np14\n(lp15\nsS'junk'\n"
        b"p16\n(lp17\nsas."
    )
    found = imported(data)
    assert found.gnd[0] == labels.Truth(bbx=(0, 0, 1.5, 2), easy=(0,), hard=(), junk=())


class Calls:
    """Pickles as a call of something."""

    def __init__(self, *call) -> None:
        self.call = call

    def __reduce__(self):
        return self.call


def hostile() -> list[tuple[object, str]]:
    import codecs

    return [
        (Calls(os.system, ("touch ran",)), r"posix\.system"),
        (Calls(eval, ("open('ran', 'w')",)), r"(builtins|__builtin__)\.eval"),
        (Calls(getattr, (dict, "clear")), r"(builtins|__builtin__)\.getattr"),
        (Calls(__import__, ("os",)), r"(builtins|__builtin__)\.__import__"),
        (Calls(np.load, ("x.npy",)), r"numpy\.load"),
        (Calls(np.frombuffer, (b"12", "u1")), r"numpy"),
        (Calls(codecs.encode, ("x", "hex")), "a coding that bytes do not need"),
        (Calls(bytes, (10**12,)), "made from something else"),
        (Calls(int, ("9" * 100_000,)), r"made from something else|__builtin__\.long"),
        (Calls(set, ("abc",)), "not made from a list"),
        (Calls(np.dtype, ("O8",)), "holds no ground truth"),
        (Calls(np.dtype, ("V100000000",)), "expected numbers or texts|that is no number"),
    ]


@pytest.mark.parametrize(("thing", "says"), hostile())
def test_a_pickle_that_names_anything_else_is_refused_by_name_and_calls_nothing(
    tmp_path, monkeypatch, thing, says
):
    monkeypatch.chdir(tmp_path)
    for protocol in (0, 2, 4):
        with pytest.raises(RemeasureError, match=says) as caught:
            imported(pickle.dumps(RAW | {"imlist": thing}, protocol))
        assert str(caught.value).isprintable()
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    ("body", "says"),
    [
        (b"}" + b")" + b"\x85" * 3_000_000 + b"Ns", "nested more than 100 deep"),
        (b"(K\x01Nd", "a key of a dictionary is no text"),
        (b"}r\xff\xff\xff\x7f", "it counts 2147483647 objects"),
        # Sets what a name stands for: a function's attributes.
        (b"c_codecs\nencode\n}X\x01\x00\x00\x00aNsb", "changes what it may only call"),
        (b"\x82\x01", "refused"),
        (b"0", "refused"),
        (b"", "refused"),
    ],
)
def test_a_pickle_that_would_end_the_process_is_refused(body, says):
    with pytest.raises(RemeasureError, match=says):
        imported(b"\x80\x02" + body + b".")


def test_an_array_that_says_another_size_than_it_has_is_refused():
    data = pickle.dumps(np.arange(4, dtype=np.int64), 2)
    large = data.replace(b"K\x04\x85", b"K\x7f\x85")
    assert large != data and "BUILD" in {one.name for one, _, _ in pickletools.genops(large)}
    with pytest.raises(RemeasureError, match="more or fewer bytes than its shape"):
        imported(large)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_random_damage_of_a_pickle_never_ends_in_a_traceback():
    rng, n_refused = random.Random(0), 0
    whole = [pickle.dumps(made, protocol) for made in (RAW, as_arrays()) for protocol in (0, 2, 4)]
    for _ in range(300):
        try:
            imported(hurt(rng.choice(whole), rng))
        except RemeasureError as error:
            n_refused += 1
            assert str(error).isprintable()
    assert n_refused > 100


def test_copies_of_a_large_list_are_counted():
    many = b"(" + b"K\x01" * 20_000 + b"lq\x00"
    copies = (b"cbuiltins\nlist\nh\x00\x85R0") * 100
    with pytest.raises(RemeasureError, match="copies more than 1000000 values"):
        imported(b"\x80\x02" + many + copies + b".")


@pytest.mark.parametrize(
    ("raw", "says"),
    [
        ([], "its top level"),
        (RAW | {"gnd": [{"bbx": [1, 2, 3, 4], "ok": [1]}]}, r"gnd\[0\]"),
        (RAW | {"imlist": [1, 2]}, "imlist holds something that is no name"),
        (RAW | {"gnd": [RAW["gnd"][0] | {"bbx": [1, 2, 3]}]}, "3 numbers, expected 4"),
        (RAW | {"gnd": [RAW["gnd"][0] | {"easy": [1.5]}]}, "expected whole numbers"),
        (RAW | {"gnd": [RAW["gnd"][0] | {"easy": [float("nan")]}]}, "no number"),
        (RAW | {"gnd": [RAW["gnd"][0] | {"easy": "abc"}]}, "easy is no list"),
    ],
)
def test_a_harmless_pickle_of_something_else_is_told(raw, says):
    with pytest.raises(RemeasureError, match=f"holds no ground truth: .*{says}"):
        imported(pickle.dumps(raw, 4))


# -- the script ----------------------------------------------------------------------------------------------


def ran(tmp_path, source, settings, *more) -> int:
    words = ["--settings", json.dumps(settings), "--labels", str(source), "--out", str(tmp_path / "out.json")]
    return import_labels.main([*words, "--record", str(tmp_path / "record.json"), *more])


def test_an_unpinned_pickle_is_refused_with_its_hash_and_a_pinned_one_is_imported(tmp_path, capsys):
    data = pickle.dumps(RAW, 4)
    source, sha256 = written(tmp_path, data, "gnd.pkl"), hashlib.sha256(data).hexdigest()
    assert ran(tmp_path, source, {"photos": "tiny"}) == 2
    assert f"it is {sha256}" in capsys.readouterr().err
    assert ran(tmp_path, source, {"photos": "tiny", "labels_sha256": "0" * 64}) == 2
    assert f"SHA-256 is {sha256}, expected {'0' * 64}" in capsys.readouterr().err
    pinned = {"photos": "tiny", "labels_sha256": sha256, "expected": {"queries": 2, "gallery": 5}}
    assert ran(tmp_path, source, pinned) == 0
    written_as = (tmp_path / "out.json").read_text()
    assert written_as.startswith(
        '{"dataset":"tiny","gnd":[{"bbx":[13.6,3.4,64.8,95.7],"easy":[0,1],"hard":[3]'
    )
    assert json.loads(written_as)["source_sha256"] == sha256
    counts = json.loads((tmp_path / "record.json").read_text())["counts"]
    assert counts == {
        "queries": 2,
        "gallery": 5,
        "easy": 2,
        "hard": 3,
        "junk": 1,
        "without_easy": 1,
        "without_medium": 0,
        "without_hard": 0,
    }


def test_a_pinned_ground_truth_in_json_must_be_that_one_as_well(tmp_path, capsys):
    source = written(tmp_path, as_json())
    assert ran(tmp_path, source, {"photos": "tiny", "labels_sha256": "0" * 64}) == 2
    assert f"expected {'0' * 64}" in capsys.readouterr().err
    assert ran(tmp_path, source, {"photos": "tiny"}) == 0


def test_another_number_of_photographs_than_expected_is_refused(tmp_path, capsys):
    assert ran(tmp_path, written(tmp_path, as_json()), {"photos": "tiny", "expected": {"gallery": 4993}}) == 2
    assert "5 gallery, expected 4993" in capsys.readouterr().err
    assert not (tmp_path / "out.json").exists()


def test_anybody_can_check_a_ground_truth_of_their_own(tmp_path, capsys):
    assert import_labels.main(["--check", str(written(tmp_path, as_json()))]) == 0
    assert import_labels.main(["--check", str(written(tmp_path, with_truth(junk=[7])))]) == 2
    assert "row 7 is not in a gallery of 5" in capsys.readouterr().err


def test_the_example_of_the_page_is_a_ground_truth(tmp_path):
    page = (Path(__file__).parents[2] / "docs" / "landmarks.md").read_text(encoding="utf-8")
    example = page.split("```json")[1].split("```")[0]
    (tmp_path / "my.json").write_text(example, encoding="utf-8")
    assert import_labels.main(["--check", str(tmp_path / "my.json")]) == 0


@pytest.mark.parametrize("data", [b"", b"\xef\xbb\xbf{}", "{}".encode("utf-16")])
def test_a_damaged_json_is_not_taken_for_a_pickle(tmp_path, capsys, data):
    (tmp_path / "my.json").write_bytes(data)
    assert import_labels.main(["--check", str(tmp_path / "my.json")]) == 2
    assert "not a ground truth of our form" in capsys.readouterr().err
