import hashlib
from collections import Counter
from pathlib import Path

import pytest

import write_lexicon
from remeasure.errors import RemeasureError
from remeasure.mentions import lexicon, lexicon_source
from remeasure.mentions.lexicon import Entry, Row, Table
from remeasure.mentions.plurals import by_rule, numbers

FOLDER = Path(__file__).resolve().parents[2] / "config" / "lexicons"
TSV = FOLDER / "coco.tsv"
STRICT, PUBLISHED = lexicon.read(TSV, "strict"), lexicon.read(TSV, "published")
ROWS = lexicon.rows(TSV.read_text(encoding="utf-8"), TSV)
HEADER = "class\tphrase\tform\tkind\treading\n"


def test_the_committed_table_is_what_the_script_writes(tmp_path):
    assert write_lexicon.main(["--check"]) == 0
    assert write_lexicon.main(["--out", str(tmp_path / "coco.tsv")]) == 0
    assert (tmp_path / "coco.tsv").read_bytes() == TSV.read_bytes()


def test_a_table_that_is_out_of_date_is_one_line(tmp_path, capsys):
    (tmp_path / "coco.tsv").write_text(HEADER)
    assert write_lexicon.main(["--check", "--out", str(tmp_path / "coco.tsv")]) == 2
    assert "run scripts/write_lexicon.py" in capsys.readouterr().err


def test_numbers_of_the_table():
    # TOSC card, section 4.8: 80 classes, about 870 forms with blocks, redirects and prefixed animals.
    kinds = Counter(row.kind for row in ROWS if row.reading in ("both", "strict"))
    assert kinds == {"synonym": 288, "plural": 283, "redirect": 222, "block": 77}
    assert len(STRICT.table.forms) == kinds.total() == 870
    assert len(STRICT.classes) == len(PUBLISHED.classes) == 80
    assert max(form.count(" ") + 1 for form in STRICT.table.forms) == 4
    assert STRICT.sha256 == PUBLISHED.sha256 == hashlib.sha256(TSV.read_bytes()).hexdigest()


def test_every_class_is_its_own_phrase_in_both_readings():
    for found in (STRICT, PUBLISHED):
        assert all(found.table.forms[label] == Entry(label, label) for label in found.classes)


@pytest.mark.parametrize(
    ("form", "strict", "published"),
    [
        # TOSC card, section 4.1: the lineage's broader words are not in the strict lexicon
        ("computer", None, "laptop"),
        ("bow", None, "tie"),
        ("container", None, "bowl"),
        ("sub", None, "sandwich"),
        ("monitor", None, "tv"),
        ("turkey", None, "bird"),
        ("street light", None, "traffic light"),
        # these are in both by the seed list
        ("seat", "chair", "chair"),
        ("stool", "chair", "chair"),
        ("desk", "dining table", "dining table"),
        ("stove", "oven", "oven"),
        ("ball", "sports ball", "sports ball"),
        ("duck", "bird", "bird"),
        ("goose", "bird", "bird"),
        # plurals that are decided by hand
        ("women", "person", "person"),
        ("people", "person", "person"),
        ("oxen", "cow", "cow"),
        ("knives", "knife", "knife"),
        ("geese", "bird", "bird"),
        ("mice", "mouse", "mouse"),
        ("computer mice", "mouse", None),
        ("gentlemans", None, None),
        ("skises", None, None),
        ("broccolis", None, None),
        ("thieves", None, "person"),
        # typing errors of the lineage are not inherited
        ("knive", None, None),
        ("televison", None, None),
        ("bu", None, None),
        # and what it could never find is found
        ("cheesecake", "cake", "cake"),
        ("motor bike", "motorcycle", "motorcycle"),
        ("iphone", "cell phone", "cell phone"),
        ("hair dryer", "hair drier", "hair drier"),
    ],
)
def test_words_and_their_classes(form, strict, published):
    for found, expected in ((STRICT, strict), (PUBLISHED, published)):
        entry = found.table.forms.get(form)
        assert (entry and entry.label) == expected


def test_blocks_stand_for_nothing_and_are_no_names():
    assert STRICT.table.forms["bus stops"] == Entry(None, "bus stop")
    assert STRICT.class_of("bus stop") is None
    assert {row.form for row in ROWS if row.kind == "block" and row.reading != "strict"} == {
        "home plate", "home plates", "train track", "train tracks",
        "baby animal", "baby animals", "adult animal", "adult animals",
        "baby cub", "baby cubs", "adult cub", "adult cubs",
    }  # fmt: skip


def test_a_plural_that_is_no_regular_one_was_looked_at():
    source = lexicon_source.read(FOLDER / "coco.yaml")
    irregular = {
        row.form
        for row in ROWS
        if row.kind == "plural"
        and row.phrase.split()[-1] not in source.plurals
        and row.form.split()[-1] != by_rule(row.phrase.split()[-1])
    }
    assert irregular == {"busses", "school busses", "flamingoes"}


@pytest.mark.parametrize(
    ("word", "plural"),
    [("dog", "dogs"), ("bus", "buses"), ("box", "boxes"), ("bench", "benches"), ("brush", "brushes")]
    + [("ferry", "ferries"), ("toy", "toys"), ("y", "ys")],
)
def test_regular_plurals(word, plural):
    assert by_rule(word) == plural


@pytest.mark.parametrize(
    ("word", "found"),
    [
        ("car", ["car", "cars"]),
        ("cars", ["cars", "car"]),
        ("men", ["men", "man"]),
        ("qwrtch", ["qwrtch", "qwrtches"]),
    ],
)
def test_numbers_of_a_noun(word, found):
    assert numbers(word) == found


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "columns are none"),
        ("class\tform\n", "columns are class, form"),
        (HEADER + "dog\tdog\tdog\tsynonym\n", "line 2: has another number of fields"),
        (HEADER + "dog\tdog\tdog\tnoun\tboth\n", "line 2: kind is 'noun'"),
        (HEADER + "dog\tdog\tdog\tsynonym\tall\n", "line 2: reading is 'all'"),
        (HEADER + "dog\tdog\thot-dog\tsynonym\tboth\n", "line 2: form 'hot-dog' is not words"),
        (HEADER + "dog\tdog\tDog\tsynonym\tboth\n", "line 2: form 'Dog' is not words"),
        (HEADER + "dog\tdog\t\tsynonym\tboth\n", "line 2: form '' is not words"),
        (HEADER + "dog\tdog\tdog\tblock\tboth\n", "line 2: form 'dog': a block has no class"),
        (HEADER + "\tdog\tdog\tsynonym\tboth\n", "line 2: form 'dog': a block has no class"),
        (
            HEADER + "dog\tdog\tdog\tsynonym\tboth\ncat\tdog\tdog\tsynonym\tstrict\n",
            "'dog' stands for dog and for cat",
        ),
    ],
)
def test_a_table_that_is_wrong_is_one_line_with_its_place(tmp_path, text, said):
    path = tmp_path / "words.tsv"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(RemeasureError) as error:
        lexicon.read(path, "strict")
    assert said in str(error.value)


def test_a_table_that_is_missing_or_not_text_is_one_line(tmp_path):
    with pytest.raises(RemeasureError, match="cannot be read"):
        lexicon.read(tmp_path / "none.tsv", "strict")
    (tmp_path / "words.tsv").write_bytes(b"\xff\xfe")
    with pytest.raises(RemeasureError, match="not UTF-8"):
        lexicon.read(tmp_path / "words.tsv", "strict")


def test_a_form_may_mean_two_things_in_two_readings():
    rows = [Row("", "street light", "street light", "block", "strict")]
    rows += [Row("traffic light", "street light", "street light", "synonym", "published")]
    assert lexicon.compile_rows(rows, "strict", "").table.forms["street light"].label is None
    assert lexicon.compile_rows(rows, "published", "").table.forms["street light"].label == "traffic light"


def test_a_word_list_with_an_unknown_class_is_one_line(tmp_path):
    text = (
        (FOLDER / "coco.yaml")
        .read_text(encoding="utf-8")
        .replace("  clock: [clock tower]", "  clok: [clock tower]")
    )
    (tmp_path / "coco.yaml").write_text(text, encoding="utf-8")
    with pytest.raises(RemeasureError, match="clok not among `classes`"):
        lexicon_source.read(tmp_path / "coco.yaml")


def test_further_forms_win_over_equal_ones():
    table = Table.of({"dog": Entry("dog", "dog"), "hot dog": Entry("hot dog", "hot dog")})
    more = table.extended({"dog": Entry("o", "dog"), "hot dog stand": Entry("o", "hot dog stand")})
    assert (more.forms["dog"].label, more.heads) == ("o", {"dog": 1, "hot": 3})
    assert (table.forms["dog"].label, table.heads) == ("dog", {"dog": 1, "hot": 2})
    assert table.extended({}) is table


def test_a_lexicon_is_read_by_its_name_and_another_content_is_an_error():
    named = lexicon.LexiconFile(name="coco", path="config/lexicons/coco.tsv", sha256=STRICT.sha256)
    assert lexicon.read_named(named, "strict") == STRICT
    assert lexicon.read_named(named, "published") == PUBLISHED
    other = lexicon.LexiconFile(name="coco", path=named.path, sha256="0" * 64)
    said = f"SHA-256 is {STRICT.sha256[:12]}…, the settings say 000000000000…; rerun from the workflow"
    with pytest.raises(RemeasureError, match=said):
        lexicon.read_named(other, "strict")
    missing = lexicon.LexiconFile(name="x", path="config/lexicons/x.tsv", sha256="0" * 64)
    with pytest.raises(RemeasureError, match="x.tsv"):
        lexicon.read_named(missing, "strict")
