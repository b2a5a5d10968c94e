"""The plan of a training set, and the classes of it that show what the benchmarks ask for."""

import csv
import hashlib
import json

import pytest

import plan_photos
from remeasure.errors import RemeasureError
from remeasure.instances import gldv2, leaks

HERE = "http://commons.wikimedia.org/wiki/Category:"
# How the names of queries of the revisited Oxford and Paris benchmarks begin (qimlist, revisitop).
STEMS = {
    *("all_souls", "ashmolean", "balliol", "bodleian", "christ_church", "cornmarket", "hertford", "keble"),
    *("magdalen", "pitt_rivers", "radcliffe_camera"),
    *("paris_defense", "paris_eiffel", "paris_invalides", "paris_louvre", "paris_moulinrouge"),
    *("paris_museedorsay", "paris_notredame", "paris_pantheon", "paris_pompidou", "paris_sacrecoeur"),
    "paris_triomphe",
}


@pytest.fixture(scope="module")
def rules(root):
    return leaks.read_rules(root / "config" / "leaks" / "oxford_paris.yaml")


def test_the_rules_have_the_22_subjects_of_the_benchmarks(rules):
    assert len(rules.subjects) == 22
    assert {stem for subject in rules.subjects.values() for stem in subject.stems} == STEMS


@pytest.mark.parametrize(
    ("category", "is_compared_as"),
    [
        (f"{HERE}Panth%C3%A9on_(Paris)", "pantheon (paris)"),
        (f"{HERE}Mus%C3%A9e_d%27Orsay", "musee d'orsay"),
        ("Category:Tour Eiffel", "tour eiffel"),
        (f"{HERE}Keble_College?uselang=fr#top", "keble college"),
        ("https://x/wiki/Category:A/", "a"),
        ("", ""),
    ],
)
def test_a_category_is_compared_without_address_marks_and_case(category, is_compared_as):
    assert leaks.normalised(category) == is_compared_as


def test_the_words_of_a_name_are_parted_by_punctuation():
    assert leaks.words("Sacré-Cœur, Paris") == ("sacre", "cœur", "paris")


@pytest.mark.parametrize(
    ("category", "rule", "subject"),
    [
        ("Panth%C3%A9on_(Paris)", "exact", "pantheon"),
        ("Bodleian_Library", "exact", "bodleian"),
        ("Notre-Dame_de_Paris", "exact", "notredame"),
        # An alias and the city.
        ("Christ_Church_Meadow,_Oxford", "part", "christ_church"),
        ("North_front_of_the_Louvre_Museum_(Paris)", "part", "louvre"),
        # An alias and a detail.
        ("Interior_of_Keble_College_Chapel", "part", "keble"),
        ("Fa%C3%A7ade_of_Mus%C3%A9e_d%27Orsay", "part", "museedorsay"),
        ("Eiffel_Tower_at_night", "part", "eiffel"),
        # Exclusions.
        ("Panth%C3%A9on_(Rome)", "deny", "pantheon"),
        ("Interior_of_the_Pantheon,_Rome", "deny", "pantheon"),
        ("Magdalen_College_School,_Oxford", "deny", "magdalen"),
        ("Eiffel_Tower_(Las_Vegas)", "deny", "eiffel"),
        ("Replica_of_the_Eiffel_Tower,_Paris", "deny", "eiffel"),
        ("Arc_de_Triomphe_du_Carrousel_(Paris)", "deny", "triomphe"),
    ],
)
def test_classes_that_leak_and_classes_that_are_excluded(rules, category, rule, subject):
    match = leaks.Judge(rules).match(HERE + category)
    assert match is not None and (match.rule, match.subject) == (rule, subject)


@pytest.mark.parametrize(
    "category",
    [
        "Magdalene_College,_Cambridge",  # another word
        "Arc_de_Triomphe",  # a short name without the city
        "People_watching_the_Eiffel_Towers",
        "Rue_de_Louvres,_Paris",  # in the city, and the name only begins like another word
        "Views_from_the_Eiffel_Tower",  # neither city nor detail
        "Oxford",
        "",
    ],
)
def test_classes_that_have_nothing_to_do_with_a_subject(rules, category):
    found = leaks.Judge(rules).match(HERE + category)
    assert found is None or found.rule == "deny"


def small_rules(**changes) -> leaks.Rules:
    keble = leaks.Subject(
        stems=("keble",), city=("oxford",), aliases=("keble college",), short=("keble",), deny=("ontario",)
    )
    return leaks.Rules(subjects={"keble": keble}, details=("chapel",), **changes)


CLASSES = [
    (1, HERE + "Keble_College", 30),
    (2, HERE + "Keble_College_chapel", 5),
    (3, HERE + "Keble,_Ontario", 7),
    (4, HERE + "Hertford_College", 9),
    (5, "", 2),
]


def test_an_equal_name_comes_before_a_longer_one_that_is_a_part():
    """The category is one subject's name as it stands, and has another's name and city as parts."""
    equal = leaks.Subject(stems=("a",), city=("paris",), aliases=("paris arch",))
    wide = leaks.Subject(stems=("b",), city=("paris",), aliases=("arch",))
    for subjects in ({"wide": wide, "equal": equal}, {"equal": equal, "wide": wide}):
        found = leaks.Judge(leaks.Rules(subjects=subjects)).match("Paris Arch")
        assert (found.rule, found.subject) == ("exact", "equal")


def test_exclusion_comes_before_the_list_and_the_list_before_names():
    judge = leaks.Judge(small_rules(), ids=(1, 3, 5))
    found = {number: judge.judge(number, category, n)[0] for number, category, n in CLASSES}
    assert {number: leak and leak.rule for number, leak in found.items()} == {
        1: "id",
        2: "part",
        3: "deny",
        4: None,
        5: "id",
    }
    assert (found[1].subject, found[1].alias) == ("keble", "keble college")
    assert (found[5].subject, found[5].alias) == (None, None)


def test_the_report_lists_differences_instead_of_joining_lists_silently():
    ids = [1, 3, 5, 77]
    told = leaks.report(leaks.Judge(small_rules(reviewed=(2,)), ids), CLASSES, ids, other_ids=[1, 4])
    assert [leak["landmark_id"] for leak in told["classes"]] == [1, 2, 5]
    assert (told["n_classes"], told["n_photos"]) == (3, 37)
    assert told["by_rule"] == {"id": 2, "part": 1}
    assert [leak["landmark_id"] for leak in told["denied"]] == [3]
    assert told["list"] == {
        "n": 4,
        "only_in_list": [3, 5],
        "only_by_name": [2],
        "denied": [3],
        "not_in_training": [77],
    }
    assert told["other_list"] == {"n": 2, "missing": [4]}
    assert [leak["reviewed"] for leak in told["classes"]] == [False, True, False]


@pytest.mark.parametrize(
    "text",
    [
        "3\n1\n2\n",
        "landmark_id\n1\n2\n3\n",
        "[3, 1, 2]",
        '[{"landmark_id": 1, "rule": "x"}, {"landmark_id": 2}, {"landmark_id": 3}]',
        '{"classes": [1, 2, 3]}',
        "landmark_id,category\n1,a\n2,b\n3,c\n",
    ],
)
def test_a_supplied_list_is_read_in_the_forms_that_occur(tmp_path, text):
    (tmp_path / "ids").write_text(text)
    assert leaks.read_ids(tmp_path / "ids") == [1, 2, 3]


@pytest.mark.parametrize("text", ["", "a\n", "[1.5]", "[true]", "[" * 10_000, '{"a": 1}', "[-1]"])
def test_a_list_of_something_else_is_refused(tmp_path, text):
    (tmp_path / "ids").write_text(text)
    with pytest.raises(RemeasureError, match="class ids"):
        leaks.read_ids(tmp_path / "ids")


def test_composed_classes_have_rules_of_their_own(root):
    judge = leaks.Judge(leaks.read_rules(root / "config" / "leaks" / "composed.yaml"))
    names = {
        "Great_Beguinage_of_Leuven": "exact",
        "Interior_of_the_Great_Beguinage,_Leuven": "part",
        "Facade_of_Santa_Prisca,_Taxco": "part",
        "Santa_Prisca,_Rome": "deny",
    }
    assert {name: judge.match(HERE + name).rule for name in names} == names


# -- lists ---------------------------------------------------------------------------------------------------


def write(path, text):
    path.write_text(text)
    return path


CLEAN = "landmark_id,images\n7,0c0a bb01 0001\n3,ff00\n12,a1 a2b\n".replace("a1 ", "a1aa ")


def test_photographs_are_sorted_by_id_with_their_class(tmp_path):
    clean = gldv2.read_clean(write(tmp_path / "clean.csv", CLEAN))
    assert clean.image_id.tolist() == [b"0001", b"0c0a", b"a1aa", b"a2b", b"bb01", b"ff00"]
    assert clean.landmark_id.tolist() == [7, 7, 12, 12, 7, 3]
    assert gldv2.class_sizes(clean.landmark_id) == {3: 1, 7: 3, 12: 2}
    assert gldv2.member_of("abcdef0123456789") == "a/b/c/abcdef0123456789.jpg"


def test_small_classes_are_dropped_after_leaks_are_masked():
    told = gldv2.dropped({3: 1, 7: 3, 12: 2, 13: 40}, {7, 12}, 3)
    assert told == {
        "standard": {"dropped_classes": 2, "dropped_photos": 3, "classes": 2, "photos": 43},
        "decontaminated": {"dropped_classes": 1, "dropped_photos": 1, "classes": 1, "photos": 40},
    }


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("landmark_id,images\n7,abc\n7,abd\n", "line 3: class 7 stands in it twice"),
        ("landmark_id,images\n7,abc\n8,abd abc\n", "photograph abc stands in it twice"),
        ("landmark_id,images\n7,../../etc\n", "is no id of a photograph"),
        ("landmark_id,images\n-7,abc\n", "landmark_id '-7', expected a whole number"),
        ("landmark_id,images\n99999999999,abc\n", "expected a whole number below"),
        ("landmark_id,images\n7,abc,1\n", "3 fields, expected 2"),
        ("landmark_id,photos\n7,abc\n", "lacks column 'images'"),
        ("landmark_id,images\n7,\n", "names no photograph"),
        ("", "lacks column"),
        ('landmark_id,images\n7,"abc\n', "no CSV in UTF-8"),
        ("landmark_id,images\n7,\0\n", "no CSV in UTF-8|no id of a photograph"),
    ],
)
def test_a_damaged_list_is_one_line(tmp_path, text, says):
    with pytest.raises(RemeasureError, match=says) as caught:
        gldv2.read_clean(write(tmp_path / "clean.csv", text))
    assert str(caught.value).isprintable()


def test_reading_leaves_the_limit_of_other_readers_as_it_was(tmp_path):
    before = csv.field_size_limit()
    gldv2.read_clean(write(tmp_path / "clean.csv", CLEAN))
    assert csv.field_size_limit() == before


def test_a_class_with_thousands_of_photographs_is_one_line_of_the_list(tmp_path):
    ids = [f"{number:016x}" for number in range(20_000)]
    clean = gldv2.read_clean(write(tmp_path / "clean.csv", f"landmark_id,images\n1,{' '.join(ids)}\n"))
    assert len(clean.image_id) == 20_000


def test_categories_with_commas_are_read(tmp_path):
    path = write(
        tmp_path / "c.csv", 'landmark_id,category\n1,"http://x/Category:A,_B"\n2,http://x/Category:C\n'
    )
    assert gldv2.read_categories(path) == {1: "http://x/Category:A,_B", 2: "http://x/Category:C"}


# -- the script ----------------------------------------------------------------------------------------------


def ran(tmp_path, settings, **leaks_told) -> int:
    write(tmp_path / "clean.csv", CLEAN)
    write(tmp_path / "cat.csv", f"landmark_id,category\n7,{HERE}Keble_College\n3,{HERE}X\n")
    rules = "subjects:\n  keble: {stems: [keble], city: [oxford], aliases: [keble college]}\n"
    write(tmp_path / "rules.yaml", rules)
    if leaks_told:
        named = {"subjects": str(tmp_path / "rules.yaml")}
        named["subjects_sha256"] = hashlib.sha256(rules.encode()).hexdigest()
        settings = settings | {"leaks": named | leaks_told}
    words = ["--settings", json.dumps(settings), "--clean", tmp_path / "clean.csv"]
    words += ["--categories", tmp_path / "cat.csv", "--out", tmp_path / "plan.parquet"]
    words += ["--counts", tmp_path / "plan.json", "--leaks", tmp_path / "leaks.json"]
    return plan_photos.main([str(word) for word in (*words, "--record", tmp_path / "record.json")])


def test_the_plan_has_a_row_for_every_photograph_and_says_whether_its_class_leaks(tmp_path):
    settings = {"photos": "tiny", "min_class": {"decon": 3}, "expected": {"photos": 6}}
    assert ran(tmp_path, settings, expected_classes=2, expected_photos=3) == 0
    plan = gldv2.read_plan(tmp_path / "plan.parquet")
    assert plan["image_id"] == ["0001", "0c0a", "a1aa", "a2b", "bb01", "ff00"]
    assert plan["landmark_id"].tolist() == [7, 7, 12, 12, 7, 3]
    assert plan["leak"].tolist() == [True, True, False, False, True, False]
    assert plan["class_size"].tolist() == [3, 3, 2, 2, 3, 1]
    assert plan["tar"] == [None] * 6
    counts = json.loads((tmp_path / "plan.json").read_text())
    assert {name: counts[name] for name in ("photos", "classes", "leak_classes", "leak_photos")} == {
        "photos": 6,
        "classes": 3,
        "leak_classes": 1,
        "leak_photos": 3,
    }
    assert counts["classes_without_category"] == 1
    assert counts["min_class"]["decon"]["standard"]["dropped_classes"] == 2
    assert counts["min_class"]["decon"]["decontaminated"]["dropped_classes"] == 2
    report = json.loads((tmp_path / "leaks.json").read_text())
    assert report["expected"] == {"agrees": False, "classes": 2, "photos": 3}


def test_without_rules_nothing_leaks(tmp_path):
    assert ran(tmp_path, {"photos": "tiny"}) == 0
    assert not gldv2.read_plan(tmp_path / "plan.parquet", ["leak"])["leak"].any()


def test_another_number_of_photographs_than_expected_is_refused(tmp_path, capsys):
    assert ran(tmp_path, {"photos": "tiny", "expected": {"classes": 81313}}) == 2
    assert "3 classes, expected 81313" in capsys.readouterr().err
    assert not (tmp_path / "plan.parquet").exists()


def test_the_types_of_the_plan_are_those_of_the_card(tmp_path):
    from pyarrow import parquet

    assert ran(tmp_path, {"photos": "tiny"}) == 0
    schema = parquet.read_schema(tmp_path / "plan.parquet")
    assert {field.name: str(field.type) for field in schema} == {
        "image_id": "string",
        "landmark_id": "int32",
        "tar": "int16",
        "leak": "bool",
        "class_size": "int32",
    }


def test_rules_that_were_changed_since_they_were_planned_are_noticed(tmp_path, capsys):
    assert ran(tmp_path, {"photos": "tiny"}, subjects_sha256="0" * 64) == 2
    assert "rules.yaml: is missing, or was changed" in capsys.readouterr().err


def test_the_plan_names_rules_by_their_content(root):
    from remeasure.plan import Plan

    told = Plan(root / "config").plan_photos("embedded", "places")["leaks"]
    text = (root / "config" / "leaks" / "composed.yaml").read_bytes()
    assert (told["subjects"], told["subjects_sha256"]) == (
        "config/leaks/composed.yaml",
        hashlib.sha256(text).hexdigest(),
    )
