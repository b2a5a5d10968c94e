"""The TOSC index: names, triplets, and everything that keeps one from being used.

Source: TOSC card, sections 1.1 (grammar and its table), 1.2 (files), 1.3 (missing and conflicting), 4.6.
"""

import json
import logging
import os
import zipfile

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from imagekit import OPTIONS, folder, named, picture, store, triplet
from remeasure.errors import RemeasureError
from remeasure.image_tree import open_tree
from remeasure.looking import look_at_all
from remeasure.mentions.objects import canonical_name
from remeasure.progress import Progress
from remeasure.studies import tosc_index
from remeasure.studies.tosc_index import Settings
from remeasure.studies.tosc_names import Fault, Name, parse
from remeasure.studies.tosc_triplets import Triplet

FILES = ["TOSC_dataset.jsonl", "insertions.jsonl", "index_report.json"]


# -- names --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("file", "index", "state", "original", "replacement"),
    [  # every good row of the card's table
        ("17.jpg", 17, "origin", None, None),
        ("17_masked_dog_repair.png", 17, "removed", "dog", None),
        ("17_masked_hot dog_insert_sports_car.png", 17, "replaced", "hot dog", "sports car"),
        ("0042_masked_cell_phone_insert_teddy bear.png", 42, "replaced", "cell phone", "teddy bear"),
        ("8_masked_t-shirt_repair.PNG", 8, "removed", "t shirt", None),
        # further ones
        ("0017.JPEG", 17, "origin", None, None),
        ("0.jpg", 0, "origin", None, None),
        ("8_masked_a_masked_b_repair.png", 8, "removed", "a masked b", None),
        ("8_masked_dog_repair_repair.png", 8, "removed", "dog repair", None),
        ("8_masked_insert_repair.png", 8, "removed", "insert", None),
        ("8_masked_St. Bernard_insert_Hot--Dog .png", 8, "replaced", "st. bernard", "hot dog"),
        ("8_masked_cafe\u0301_insert_犬.png", 8, "replaced", "caf\u00e9", "犬"),
        ("000000000000000000000000000017.jpg", 17, "origin", None, None),
    ],
)
def test_a_name_says_triplet_state_and_objects(file, index, state, original, replacement):
    found = parse(file)
    names = [None if raw is None else canonical_name(raw) for raw in (found.original, found.replacement)]
    assert (found.index, found.state, *names) == (index, state, original, replacement)


@pytest.mark.parametrize(
    ("file", "said"),
    [  # every error row of the card's table
        ("8_masked_a_insert_b_insert_c.png", "ambiguous"),
        ("8_masked__repair.png", "empty object name"),
        ("8_masked_dog.png", "no state"),
        ("8_masked_dog_insert_.png", "empty object name"),
        # and of its text
        ("8_masked__insert_cat.png", "empty object name"),
        ("8_masked_dog_repair_insert_cat.png", "both `_insert_` and `_repair`"),
        ("8_masked_dog_insert_cat_repair.png", "both `_insert_` and `_repair`"),
        ("8_masked_a_insert_insert_b.png", "ambiguous"),  # a → insert_b, or a_insert → b
        ("8_masked_dog_repair.jpg", "no .png"),
        ("8_masked_dog_repair", "no .png"),
        ("8_masked_dog_REPAIR.png", "no state"),
        ("8_masked_.png", "no state"),
        ("8_masked_ _repair.png", "empty object name"),
        ("8_masked_-_insert_cat.png", "empty object name"),
        ("8_masked_!!_repair.png", "without a letter or digit"),
        ("1234567890123456.jpg", "16 digits"),
        ("9" * 200 + "_masked_dog_repair.png", "200 digits"),
    ],
)
def test_a_broken_name_is_an_error(file, said):
    found = parse(file)
    assert isinstance(found, Fault) and found.is_error and said in found.problem


@pytest.mark.parametrize(
    "file",
    [
        "8_repair.png",
        "17.png",
        "17.jpg.bak",
        "17 copy.jpg",
        "a17.jpg",
        ".17.jpg",
        "._17.jpg",
        "17jpg",
        "jpg",
        "",
    ]
    + ["17_MASKED_dog_repair.png", "17_maskeddog_repair.png", "-17.jpg", "١٧.jpg", "Thumbs.db", "17.jpg "],
)
def test_another_name_is_ignored(file):
    found = parse(file)
    assert isinstance(found, Fault) and not found.is_error


@given(st.text(max_size=40))
def test_any_text_is_a_name_or_a_fault(text):
    for name in (text, f"8_masked_{text}.png", f"8_masked_{text}_repair.png", f"{text}.jpg"):
        assert isinstance(parse(name), Name | Fault)


WORDS = st.from_regex(r"[a-z]{1,8}([ _-][a-z]{1,8}){0,2}", fullmatch=True).filter(
    lambda word: not {"insert", "repair", "masked"} & set(canonical_name(word).split())
)


@given(st.integers(0, 10**9), st.integers(0, 4), WORDS, WORDS)
def test_a_name_that_was_put_together_is_taken_apart_again(index, zeros, original, replacement):
    number = "0" * zeros + str(index)
    assert parse(f"{number}_masked_{original}_insert_{replacement}.png") == (
        index,
        "replaced",
        original,
        replacement,
    )
    assert parse(f"{number}_masked_{original}_repair.png") == (index, "removed", original, None)


# -- triplets -----------------------------------------------------------------------------------------------


def settings(**changes) -> Settings:
    return msgspec.convert(OPTIONS | changes, Settings)


def indexed(source, **changes) -> tosc_index.Index:
    options = settings(**changes)
    with open_tree(source) as tree:
        listing = tree.listing()
        wanted = tosc_index.wanted(listing.paths, options)
        progress = Progress(logging.getLogger("test"), "images", None)

        class Nothing:
            get = staticmethod(lambda sha256: None)
            add = staticmethod(lambda seen: None)

        return tosc_index.index(listing, look_at_all(wanted, tree.read, Nothing(), progress, 2), options)


def report(tmp_path, files: dict[str, bytes], **changes):
    found = indexed(folder(tmp_path / "images", files), **changes)
    return found, found.files[2]


def test_a_complete_triplet_is_one_line_with_exactly_the_fields_of_the_card(tmp_path):
    files = triplet("0017", "hot dog", "sports_car")
    found, _ = report(tmp_path, files)
    [line] = found.files[0]
    plain = msgspec.to_builtins(line)
    paths = {
        "origin": "benchmark/original/images/0017.jpg",
        "removed": "benchmark/repair/images/0017_masked_hot dog_repair.png",
        "replaced": "benchmark/insert/images/0017_masked_hot dog_insert_sports_car.png",
    }
    assert plain.pop("sha256").keys() == paths.keys()
    assert plain == {
        "index": 17,
        "original_object": "hot dog",
        "replacement_object": "sports car",
        "original_raw": "hot dog",
        "replacement_raw": "sports_car",
        "images": paths,
        "size": {state: (8, 6) for state in paths},
        "o_class": "hot dog",
        "r_class": None,
        "overlap": "none",
    }
    [insertion] = found.files[1]
    assert msgspec.to_builtins(insertion) == {
        "index": 17,
        "original_object": "hot dog",
        "replacement_object": "sports car",
        "image": paths["replaced"],
        "sha256": line.sha256["replaced"],
        "complete": True,
    }
    assert found.error is None and found.problems == ()


@pytest.mark.parametrize(
    ("original", "replacement", "classes", "overlap"),
    [
        ("car", "sports car", ("car", None), "o_in_r"),
        ("sports_car", "car", (None, "car"), "r_in_o"),
        ("bear", "teddy bear", ("bear", "teddy bear"), "o_in_r"),
        ("dog", "hot dog", ("dog", "hot dog"), "o_in_r"),
        ("cup", "mug", ("cup", "cup"), "same_class"),
        ("sedan", "sports car", ("car", None), "same_class"),
        ("chair", "couch", ("chair", "couch"), "none"),
        ("dragon", "unicorn", (None, None), "none"),
    ],
)
def test_classes_and_overlap_are_those_of_the_card(tmp_path, original, replacement, classes, overlap):
    found, told = report(tmp_path, triplet(1, original, replacement))
    [line] = found.files[0]
    assert ((line.o_class, line.r_class), line.overlap) == (classes, overlap)
    assert told.overlap[overlap] == 1 and sum(told.overlap.values()) == 1


def test_lines_are_in_order_of_the_number_not_of_its_digits(tmp_path):
    found, _ = report(tmp_path, triplet(10) | triplet(9) | triplet(2) | triplet("0003"))
    assert [line.index for line in found.files[0]] == [2, 3, 9, 10]
    assert [line.index for line in found.files[1]] == [2, 3, 9, 10]


def test_a_folder_and_a_store_in_any_order_give_the_same_bytes(tmp_path):
    files = triplet(1) | triplet(2, "cup", "vase") | {"notes.txt": b"x", named("3.jpg"): picture("JPEG")}
    sources = [
        folder(tmp_path / "a", files),
        folder(tmp_path / "b", dict(reversed(files.items()))),
        store(tmp_path / "c.zip", dict(reversed(files.items()))),
        store(tmp_path / "d.zip", files, zipfile.ZIP_DEFLATED),
    ]
    encoded = {msgspec.json.encode(indexed(source).files, order="sorted") for source in sources}
    assert len(encoded) == 1


def test_a_triplet_without_one_of_its_images_is_not_indexed_and_listed(tmp_path):
    files = triplet(1) | triplet(2) | triplet(3) | triplet(4)
    del files[named("2.jpg")], files[named("3_masked_dog_repair.png")]
    del files[named("4_masked_dog_insert_cat.png")], files[named("4.jpg")]
    found, told = report(tmp_path, files)
    assert [line.index for line in found.files[0]] == [1]
    assert [(one.index, one.missing) for one in told.incomplete] == [
        (2, ["origin"]),
        (3, ["removed"]),
        (4, ["origin", "replaced"]),
    ]
    assert (told.n_triplets, told.n_complete, told.n_incomplete, told.n_conflicting) == (4, 1, 3, 0)
    assert told.images == {"origin": 2, "removed": 3, "replaced": 3}
    assert [(one.index, one.complete) for one in found.files[1]] == [(1, True), (2, False), (3, False)]
    assert found.error is None


def test_the_policy_available_also_takes_triplets_that_name_their_object(tmp_path):
    files = triplet(1) | triplet(2) | triplet(3) | triplet(4)
    del files[named("2.jpg")], files[named("3_masked_dog_insert_cat.png")]
    del files[named("4_masked_dog_insert_cat.png")], files[named("4_masked_dog_repair.png")]
    found, told = report(tmp_path, files, policy="available")
    assert [(line.index, sorted(line.images)) for line in found.files[0]] == [
        (1, ["origin", "removed", "replaced"]),
        (2, ["removed", "replaced"]),
        (3, ["origin", "removed"]),
    ]
    third = found.files[0][2]
    assert (third.original_object, third.replacement_object, third.r_class, third.overlap) == (
        "dog",
        None,
        None,
        "none",
    )
    assert (told.policy, told.n_indexed, told.n_complete, told.n_incomplete) == ("available", 3, 1, 3)


def test_the_same_number_twice_is_a_conflict_whatever_the_zeros_and_the_extension(tmp_path):
    files = triplet(1) | triplet(17) | triplet(18)
    files |= {named("0017.jpg"): picture("JPEG"), named("18.JPEG"): b"broken"}
    found, told = report(tmp_path, files)
    assert [(one.index, one.state, one.images) for one in told.duplicates] == [
        (17, "origin", [named("0017.jpg"), named("17.jpg")]),
        (18, "origin", [named("18.JPEG"), named("18.jpg")]),
    ]
    assert [line.index for line in found.files[0]] == [1] and told.n_conflicting == 2
    assert "2 of 3 triplets are in conflict: triplet 17" in found.error
    found, _ = report(tmp_path, files, fail_on_conflict=False)
    assert found.error is None and [line.index for line in found.files[0]] == [1]


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_a_name_that_several_members_of_a_store_have_is_a_conflict_and_not_missing(tmp_path):
    path = tmp_path / "x.zip"
    with zipfile.ZipFile(path, "w") as out:
        for name, data in (triplet(1) | triplet(17)).items():
            out.writestr(name, data)
        out.writestr(named("17.jpg"), picture("JPEG", seed=5))
        out.writestr(named("19.jpg"), picture("JPEG"))
        out.writestr(named("19.jpg"), picture("JPEG"))
        out.writestr("readme.txt", b"1")
        out.writestr("readme.txt", b"2")
    found = indexed(path)
    told = found.files[2]
    assert [(one.index, one.state, one.images) for one in told.duplicates] == [
        (17, "origin", [named("17.jpg")]),
        (19, "origin", [named("19.jpg")]),
    ]
    assert told.n_conflicting == 2 and told.n_incomplete == 0 and told.n_refused == 3
    assert "triplets are in conflict: triplet 17" in found.error
    assert [line.index for line in found.files[0]] == [1]
    assert indexed(path, exclude={17: "double", 19: "double"}).error is None


def test_two_spellings_of_one_object_are_no_conflict_and_two_objects_are(tmp_path):
    files = triplet(1, "hot dog", "cat") | triplet(2, "dog", "cat")
    del files[named("1_masked_hot dog_repair.png")], files[named("2_masked_dog_repair.png")]
    files |= {named("1_masked_Hot-dog_repair.png"): picture(), named("2_masked_cow_repair.png"): picture()}
    found, told = report(tmp_path, files, fail_on_conflict=False)
    assert [(line.index, line.original_object, line.original_raw) for line in found.files[0]] == [
        (1, "hot dog", "Hot-dog")
    ]
    [conflict] = told.name_conflicts
    assert (conflict.index, conflict.images) == (
        2,
        [named("2_masked_cow_repair.png"), named("2_masked_dog_insert_cat.png")],
    )
    assert conflict.problem == "the original object is 'cow' in one name and 'dog' in the other"
    assert [one.complete for one in found.files[1]] == [True, False]


@pytest.mark.parametrize(
    ("original", "replacement", "said"),
    [("Hot dog", "hot_dog", "both 'hot dog'"), ("dragon egg", "dragonegg", "share the form 'dragonegg'")],
)
def test_objects_that_no_caption_can_tell_apart_are_a_conflict(tmp_path, original, replacement, said):
    _, told = report(tmp_path, triplet(1) | triplet(2, original, replacement), fail_on_conflict=False)
    [conflict] = told.name_conflicts
    assert said in conflict.problem


LARGE = picture("JPEG", size=(64, 64))


@pytest.mark.parametrize("broken", [b"", b"no image", LARGE[: len(LARGE) // 2]])
def test_an_image_that_cannot_be_decoded_counts_as_missing(tmp_path, broken):
    found, told = report(tmp_path, triplet(1) | triplet(2) | {named("2.jpg"): broken})
    assert [line.index for line in found.files[0]] == [1]
    assert [one.image for one in told.unreadable] == [named("2.jpg")]
    assert [(one.index, one.missing) for one in told.incomplete] == [(2, ["origin"])]
    assert told.images["origin"] == 1


def test_the_collection_may_be_the_folder_benchmark_itself(tmp_path):
    outside = triplet(1) | triplet(2)
    inside = {path.removeprefix("benchmark/"): data for path, data in outside.items()}
    found, told = report(tmp_path, inside)
    assert [row.index for row in found.files[0]] == [1, 2] and told.n_ignored == 0
    assert found.files[0][0].images["origin"] == "original/images/1.jpg"


def test_one_image_in_both_layouts_is_there_twice(tmp_path):
    found, told = report(tmp_path, triplet(1) | {"original/images/1.jpg": picture("JPEG")})
    assert told.n_conflicting == 1 and "in conflict" in found.error


def test_an_image_in_the_folder_of_another_state_is_an_error_and_elsewhere_ignored(tmp_path):
    files = triplet(1) | {
        "benchmark/original/images/2_masked_dog_repair.png": picture(),
        "benchmark/repair/images/2.jpg": picture("JPEG"),
        "benchmark/insert/images/2_masked_dog_repair.png": picture(),
        "benchmark/original/images/deeper/2.jpg": picture("JPEG"),
        "mine/original/images/2.jpg": picture("JPEG"),
        "2.jpg": picture("JPEG"),
    }
    _, told = report(tmp_path, files)
    assert [(one.image, one.problem) for one in told.errors] == [
        (
            "benchmark/insert/images/2_masked_dog_repair.png",
            "is named as an image of state removed and lies in the folder of replaced",
        ),
        (
            "benchmark/original/images/2_masked_dog_repair.png",
            "is named as an image of state removed and lies in the folder of origin",
        ),
        (
            "benchmark/repair/images/2.jpg",
            "is named as an image of state origin and lies in the folder of removed",
        ),
    ]
    assert [one.image for one in told.ignored] == [
        "2.jpg",
        "benchmark/original/images/deeper/2.jpg",
        "mine/original/images/2.jpg",
    ]
    assert told.n_triplets == 1


def test_every_other_file_is_listed_with_its_reason(tmp_path):
    files = triplet(1) | {
        named(".17.jpg"): b"x",
        ".git/17.jpg": b"x",
        named("readme.txt"): b"x",
        named("8_masked_dog.png"): b"x",
        named("8_masked__repair.png"): b"x",
    }
    images = folder(tmp_path / "images", files)
    (images / named("9.jpg")).symlink_to("/etc/passwd")
    (images / "benchmark" / "a\nb.jpg").write_bytes(b"x")
    told = indexed(images).files[2]
    assert [(one.image, one.problem) for one in told.ignored] == [
        (".git/17.jpg", "is hidden"),
        (named(".17.jpg"), "is hidden"),
        (named("readme.txt"), "has no name of the benchmark"),
    ]
    assert [(one.image, one.problem) for one in told.errors] == [
        (named("8_masked__repair.png"), "has an empty object name"),
        (
            named("8_masked_dog.png"),
            "has no state: neither `_repair` nor `_insert_` and a name at its end",
        ),
    ]
    assert [one.image for one in told.refused] == ["benchmark/a\\nb.jpg", named("9.jpg")]
    assert (told.n_ignored, told.n_errors, told.n_refused, told.n_complete) == (3, 2, 2, 1)


def test_images_that_are_not_plain_and_sizes_that_differ_are_recorded(tmp_path):
    clear = picture(mode="RGBA", size=(9, 6))
    files = triplet(1) | triplet(2) | triplet(3)
    files[named("1_masked_dog_repair.png")] = picture(mode="P")
    files[named("2_masked_dog_repair.png")] = clear
    files[named("3.jpg")] = picture("PNG")
    found, told = report(tmp_path, files)
    assert [(one.image, one.mode, one.transparent) for one in told.composited] == [
        (named("1_masked_dog_repair.png"), "P", False),
        (named("2_masked_dog_repair.png"), "RGBA", False),
    ]
    assert told.size_mismatch == 1 and found.files[0][1].size["removed"] == (9, 6)
    assert [(one.image, one.facts) for one in told.odd] == [(named("3.jpg"), ["png-content"])]


def test_triplets_with_a_reviewed_reason_are_left_out_and_counted_with_and_without(tmp_path):
    files = triplet(1) | triplet(2) | triplet(3)
    found, told = report(tmp_path, files, exclude={2: "the mask misses the dog", 9: "unclear"})
    assert [row.index for row in found.files[0]] == [1, 3]
    assert (told.n_complete, told.n_indexed, told.n_excluded) == (3, 2, 2)
    assert [(one.index, one.reason, one.known) for one in told.excluded] == [
        (2, "the mask misses the dog", True),
        (9, "unclear", False),
    ]
    assert "triplet 9: is excluded, but there is none" in found.problems
    assert found.counts["excluded"] == 2


def test_an_excluded_triplet_is_no_conflict_and_excluding_all_is_an_error(tmp_path):
    twice = triplet(1) | triplet(2) | {named("0001.jpg"): picture("JPEG")}
    found, told = report(tmp_path, twice, exclude={1: "there twice"})
    assert found.error is None and told.n_conflicting == 0 and [row.index for row in found.files[0]] == [2]
    found, told = report(tmp_path / "all", triplet(1), exclude={1: "unclear"})
    assert "holds no complete triplet that is used" in found.error and "1 excluded" in found.error


@pytest.mark.parametrize(
    ("synonyms", "said"),
    [
        ({"dog": ["hound"]}, "'dog' stands for 'dog' in the lexicon"),
        ({"Sports_Car": ["roadster"]}, "is written 'sports car'"),
        ({"sports car": ["car"]}, "'car' stands for 'car' in the lexicon"),
    ],
)
def test_further_names_of_what_the_lexicon_has_are_refused(tmp_path, synonyms, said):
    with pytest.raises(RemeasureError, match=said):
        report(tmp_path, triplet(1), extra_synonyms=synonyms)


@pytest.mark.parametrize(("expected", "met"), [(None, None), (2, True), (3, False), (1, False)])
def test_the_expected_number_is_compared_and_never_a_crash(tmp_path, expected, met):
    found, told = report(tmp_path, triplet(1) | triplet(2), expected=expected)
    assert (told.expected, told.expected_met, found.error) == (expected, met, None)
    assert (f"2 complete triplets, {expected} were expected" in found.problems) is (met is False)


def test_an_object_outside_the_lexicon_is_an_error_that_names_it_or_looked_for_by_setting(tmp_path):
    files = triplet(1, "dog", "sports car") | triplet(2, "unicorn", "cat") | triplet(3, "unicorn", "cow")
    found, told = report(tmp_path, files, unknown_objects="error")
    assert "object 'sports car' is not in the lexicon" in found.error
    assert "2 such names: sports car, unicorn" in found.error and "unknown_objects: other" in found.error
    found, told = report(tmp_path, files, unknown_objects="other")
    assert found.error is None
    assert [(one.name, one.parent, one.n) for one in told.open_objects] == [
        ("sports car", "car", 1),
        ("unicorn", None, 2),
    ]


@pytest.mark.parametrize("files", [{}, {"17.jpg": b"x"}, {named("17.jpg"): picture("JPEG")}])
def test_an_index_without_any_complete_triplet_is_an_error(tmp_path, files):
    found, _ = report(tmp_path, files)
    assert "holds no complete triplet" in found.error and "original/images" in found.error


def test_a_lexicon_that_changed_is_an_error(tmp_path):
    other = OPTIONS["lexicon"] | {"sha256": "0" * 64}
    with pytest.raises(RemeasureError, match="the settings say 000000000000"):
        report(tmp_path, triplet(1), lexicon=other)


# -- the stage ----------------------------------------------------------------------------------------------


def run(tmp_path, monkeypatch, source, **changes) -> int:
    import index_images

    monkeypatch.chdir(tmp_path)
    told = json.dumps({"files": FILES, "options": OPTIONS | changes})
    options = ["--study", "tosc", "--settings", told, "--source", str(source), "--threads", "2"]
    options += ["--journal", "journal", "--out", *FILES, "--record", "index_images.json"]
    return index_images.main(options)


def test_the_script_writes_the_files_and_ends_its_log_with_the_counts(tmp_path, monkeypatch, capsys):
    source = folder(tmp_path / "images", triplet(2) | triplet(1) | {"x.txt": b""})
    assert run(tmp_path, monkeypatch, "images", expected=5969) == 0
    last = capsys.readouterr().err.splitlines()[-1]
    assert last.endswith(
        "2 triplets indexed (policy complete), 2 complete (5969 expected), 0 incomplete, 0 conflicting; "
        "files: 0 unreadable, 0 errors, 0 refused, 1 ignored; sizes differ in 0"
    )
    first = [(tmp_path / name).read_bytes() for name in FILES]
    assert [json.loads(line)["index"] for line in first[0].splitlines()] == [1, 2]
    record = json.loads((tmp_path / "index_images.json").read_bytes())
    assert record["counts"]["complete"] == 2 and record["counts"]["ignored"] == 1
    assert list(record["inputs"]) == ["images"] and set(record["outputs"]) == set(FILES)
    for path in source.rglob("*.png"):
        os.utime(path, (1, 1))  # times leave no trace
    assert run(tmp_path, monkeypatch, "images", expected=5969) == 0
    assert first == [(tmp_path / name).read_bytes() for name in FILES]


def test_the_script_says_in_one_line_why_there_is_no_index(tmp_path, monkeypatch, capsys):
    folder(tmp_path / "images", triplet(1) | {named("001.jpg"): picture("JPEG")})
    assert run(tmp_path, monkeypatch, "images") == 2
    lines = capsys.readouterr().err.splitlines()
    assert lines[-1].startswith(
        "error: images: 1 of 1 triplets are in conflict: triplet 1: state origin has 2 images"
    )
    assert any("triplet 1: state origin has 2 images" in line for line in lines[:-1])
    assert not any((tmp_path / name).exists() for name in FILES)


def test_a_wrong_option_is_named(tmp_path, monkeypatch, capsys):
    folder(tmp_path / "images", triplet(1))
    assert run(tmp_path, monkeypatch, "images", policy="all") == 2
    assert (
        "index options of tosc: policy: Invalid enum value 'all'; valid are: available, complete; correct"
        in capsys.readouterr().err
    )


def test_a_wrong_lexicon_is_said_before_an_image_is_looked_at(tmp_path, monkeypatch, capsys):
    folder(tmp_path / "images", triplet(1))
    other = OPTIONS["lexicon"] | {"sha256": "0" * 64}
    assert run(tmp_path, monkeypatch, "images", lexicon=other) == 2
    assert "the settings say 000000000000" in capsys.readouterr().err
    assert not (tmp_path / "journal").exists()


def test_the_schema_of_a_line_has_only_the_fields_of_the_card():
    assert set(Triplet.__struct_fields__) == {
        *("index", "original_object", "replacement_object", "original_raw", "replacement_raw"),
        *("images", "sha256", "size", "o_class", "r_class", "overlap"),
    }
