"""OpenRAG Bench, FinQA, HotpotQA and the number problems: what is read, left out, missing.

Source: RAG card 1.2 to 1.4; facts of the original's loaders (haiku.rag e9f6fea5, evaluations/datasets).
"""

import hashlib
import re
from decimal import Decimal
from pathlib import Path

import pytest

import write_number_problems
from datasetkit import document, lines, load, loaded, pdf
from remeasure.records import Document, Turn
from remeasure.requests import question_id

NUMBERS = Path(__file__).resolve().parents[2] / "config" / "data" / "number_problems"


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def refused(capsys) -> str:
    error = capsys.readouterr().err.splitlines()[-1]
    assert error.startswith("error: ")
    return error


# -- OpenRAG Bench -------------------------------------------------------------------------------------------


@pytest.fixture
def papers(tmp_path):
    """Write three papers and four questions; return their paths by name."""

    def write(names=("2407.01528v3", "2401.00001v1", "2402.00002v2"), **changed) -> dict[str, Path]:
        for name in names:
            pdf(Path("papers", f"{name}.pdf"), name)
        urls = {
            name: f"https://arxiv.org/pdf/{name}" for name in ("2407.01528v3", "2401.00001v1", "2402.00002v2")
        }
        told = {"type": "abstractive", "source": "text-image"}
        values = {
            "pdf_urls": urls,
            "queries": {
                "a1b2": {"query": "What is shown?"} | told,
                "no-label": {"query": "What else?"} | told,
                "gone": {"query": "And this?"} | told,
                "blank": {"query": "  "} | told,
            },
            "qrels": {
                "a1b2": {"doc_id": "2407.01528v3", "section_id": 4},
                "gone": {"doc_id": "1234.00000v1", "section_id": 0},
                "blank": {"doc_id": "2407.01528v3", "section_id": 0},
            },
            "answers": {"a1b2": "A curve.", "gone": ""},
        } | changed
        return {name: document(Path(f"{name}.json"), value) for name, value in values.items()} | {
            "pdfs": Path("papers")
        }

    return write


def test_papers_are_files_and_questions_without_a_gold_paper_are_only_answered(tmp_path, papers):
    assert load(tmp_path, "open_rag_bench", papers(), options={"allow_missing": False}) == 0
    documents, questions, counts = loaded(tmp_path)
    data = b"%PDF-1.7\n2407.01528v3"
    assert documents[0] == Document(
        uri="2407.01528v3",
        title="2407.01528v3",
        path="papers/2407.01528v3.pdf",
        sha256=hashlib.sha256(data).hexdigest(),
        format="pdf",
        metadata={"arxiv_id": "2407.01528v3"},
    )
    assert [(one.original_id, one.query, one.expected, one.relevant) for one in questions] == [
        ("a1b2", "What is shown?", "A curve.", ("2407.01528v3",)),
        ("no-label", None, None, ()),
        ("gone", None, None, ()),
    ]
    assert questions[0].turns == (Turn(speaker="user", text="What is shown?"),)
    assert questions[0].strata == {"type": "abstractive", "source": "text-image"}
    assert questions[0].group == "a1b2" and questions[0].turn is None
    named = ("documents", "files", "queries", "answers", "not_searched", "blank_questions", "missing_files")
    assert [counts[name] for name in named] == [3, 3, 1, 3, 2, 1, 0]
    assert (counts["answers_without_reference"], counts["gold_documents"]) == (2, 1)


def test_papers_that_are_missing_or_no_pdf_are_an_error_that_names_them(tmp_path, papers, capsys):
    files = papers(("2402.00002v2",))
    Path("papers/2401.00001v1.pdf").write_text("<html>429 Too many requests</html>")
    assert load(tmp_path, "open_rag_bench", files, options={"allow_missing": False}) == 2
    said = (
        "2 files are missing or no PDF, as papers/2407.01528v3.pdf, papers/2401.00001v1.pdf; put them there"
    )
    assert said in refused(capsys)


def test_papers_may_be_missing_where_the_run_says_so_and_their_questions_remain(tmp_path, papers):
    files = papers(("2402.00002v2",))
    expected = {"documents": 1, "missing_files": 2, "labels_of_missing_files": 1, "queries": 1}
    assert load(tmp_path, "open_rag_bench", files, options={"allow_missing": True}, expected=expected) == 0
    assert [one.relevant for one in loaded(tmp_path)[1]] == [("2407.01528v3",), (), ()]


@pytest.mark.parametrize("name", ["../../etc/passwd", "/etc/passwd", "a/../b", ".hidden", "a\\b", "a\0b"])
def test_a_name_that_leads_out_of_the_folder_is_refused(tmp_path, papers, capsys, name):
    assert (
        load(tmp_path, "open_rag_bench", papers(pdf_urls={name: "x"}), options={"allow_missing": True}) == 2
    )
    assert "is not allowed" in refused(capsys)


def test_a_run_says_whether_papers_may_be_missing(tmp_path, papers, capsys):
    assert load(tmp_path, "open_rag_bench", papers()) == 2
    assert "loader 'open_rag_bench': Object missing required field `allow_missing`" in refused(capsys)


# -- FinQA ---------------------------------------------------------------------------------------------------


def row(name: str, context: str, split: str = "dev", **more) -> dict:
    told = {"id": name, "context_id": context, "split": split, "question": f"What of {name}?"}
    return told | {"file_name": f"{context}.pdf", "program_answer": 0.12, "context": "ignored"} | more


@pytest.fixture
def pages():
    """Write FinQA's three splits; return the folder."""

    def write(*dev: dict) -> dict[str, Path]:
        folder = Path("FinQA")
        lines(folder / "dev/metadata.jsonl", dev)
        lines(folder / "test/metadata.jsonl", [row("t1", "T/2009/page_5", "test", file_name="T_2009.pdf")])
        lines(folder / "train/metadata.jsonl", [row("r1", "c1", "train"), row("r2", "c2", "train")])
        for name in ("dev/c1", "test/T_2009", "train/c1", "train/c2"):
            pdf(folder / f"{name}.pdf", name)
        return {"folder": folder}

    return write


def test_the_first_row_of_a_page_is_its_document_and_splits_follow_each_other(tmp_path, pages):
    first = row("q1", "c1", company_name="Entergy", report_year=2010, company_sector="Utilities")
    again = row("q2", "c1", company_name="Other", program_answer="12.5%")
    files = pages(first, again, row("q3", "c1", question=" "), row("q4", "c1", program_answer=None))
    expected = {"documents": 3, "rows": 7, "blank_questions": 1, "queries": 6}
    assert load(tmp_path, "t2_finqa", files, options={"allow_missing": False}, expected=expected) == 0
    documents, questions, counts = loaded(tmp_path)
    assert [(one.uri, one.title, one.path) for one in documents] == [
        ("c1", "Entergy 2010", "FinQA/dev/c1.pdf"),
        ("T/2009/page_5", "T/2009/page_5", "FinQA/test/T_2009.pdf"),
        ("c2", "c2", "FinQA/train/c2.pdf"),
    ]
    told = {"company_name": "Entergy", "report_year": "2010", "company_sector": "Utilities"}
    assert documents[0].metadata == {"file_name": "c1.pdf"} | told
    assert [(one.question_id, one.expected) for one in questions] == [
        ("q1", "0.12"),
        ("q2", "12.5%"),
        ("q4", None),
        ("t1", "0.12"),
        ("r1", "0.12"),
        ("r2", "0.12"),
    ]
    assert questions[0].strata == {"split": "dev", "sector": "Utilities"}
    assert counts["answers_without_reference"] == 1


def test_rows_of_another_split_or_with_another_hash_are_refused(tmp_path, pages, capsys):
    assert load(tmp_path, "t2_finqa", pages(row("q", "c1", "train")), options={"allow_missing": False}) == 2
    assert "FinQA/dev/metadata.jsonl line 1: split is 'train', expected 'dev'" in refused(capsys)
    options = {"allow_missing": False, "metadata_sha256": {"dev": "0" * 64}}
    assert load(tmp_path, "t2_finqa", pages(row("q", "c1")), options=options) == 2
    assert f"expected {'0' * 64}" in refused(capsys)


# -- HotpotQA ------------------------------------------------------------------------------------------------


def hotpot(name: str, paragraphs: dict[str, list[str]], gold: list[str], **more) -> dict:
    context = {"title": list(paragraphs), "sentences": list(paragraphs.values())}
    facts = {"title": gold, "sent_id": [0] * len(gold)}
    told = {"id": name, "question": f"{name}?", "answer": "yes", "type": "bridge", "level": "hard"}
    return told | {"supporting_facts": facts, "context": context} | more


TWO = [
    hotpot(
        "5a8b57f2", {"Ed Wood": ["Ed was.", " He made."], "Oslo": ["A city."]}, ["Oslo", "Ed Wood", "Oslo"]
    ),
    hotpot("5a8c7595", {"Oslo": ["Another text."], "Bergen": ["Rain."]}, ["Bergen"], answer="no"),
]


@pytest.mark.parametrize("form", ["jsonl", "parquet"])
def test_paragraphs_are_documents_by_title_and_the_first_text_of_two_stays(tmp_path, form):
    path = Path(f"questions.{form}")
    if form == "jsonl":
        lines(path, TWO)
    else:
        import pyarrow
        from pyarrow import parquet

        parquet.write_table(pyarrow.Table.from_pylist(TWO), path)
    assert load(tmp_path, "hotpotqa", {"questions": path}, expected={"queries": 2, "labels": 3}) == 0
    documents, questions, counts = loaded(tmp_path)
    assert [(one.uri, one.title, one.text) for one in documents] == [
        ("Ed Wood", "Ed Wood", "Ed was.  He made."),
        ("Oslo", "Oslo", "A city."),
        ("Bergen", "Bergen", "Rain."),
    ]
    assert [(one.question_id, one.relevant, one.expected) for one in questions] == [
        ("5a8b57f2", ("Oslo", "Ed Wood"), "yes"),
        ("5a8c7595", ("Bergen",), "no"),
    ]
    assert questions[0].strata == {"type": "bridge", "level": "hard"}
    assert (counts["paragraphs"], counts["other_texts"]) == (4, 1)


@pytest.mark.parametrize(("titles", "n"), [(["A", "B"], 1), (["A"], 2)])
def test_titles_and_paragraphs_that_are_not_as_many_are_refused(tmp_path, capsys, titles, n):
    row = hotpot("x", {"A": ["One."]}, ["A"]) | {"context": {"title": titles, "sentences": [["One."]] * n}}
    assert load(tmp_path, "hotpotqa", {"questions": lines(Path("q.jsonl"), [row])}) == 2
    assert f"q.jsonl row 1: has {len(titles)} titles and {n} paragraphs" in refused(capsys)


def test_a_file_that_is_no_parquet_file_is_refused(tmp_path, capsys):
    Path("x.parquet").write_bytes(b"PAR1 not really PAR1")
    assert load(tmp_path, "hotpotqa", {"questions": Path("x.parquet")}) == 2
    assert "x.parquet: no Parquet file that can be read" in refused(capsys)
    assert load(tmp_path, "hotpotqa", {"questions": Path("none.parquet")}) == 2
    assert "none.parquet: cannot be read" in refused(capsys)


# -- number problems -----------------------------------------------------------------------------------------


def test_the_number_problems_are_what_their_script_writes(tmp_path):
    assert write_number_problems.main(["--check"]) == 0
    assert (
        load(tmp_path, "number_problems", {"folder": NUMBERS}, expected={"documents": 32, "queries": 32}) == 0
    )
    documents, questions, _ = loaded(tmp_path)
    assert (documents[0].uri, documents[0].title) == (
        "alderquist-freight-2015",
        "Alderquist Freight Inc. 2015",
    )
    assert sorted(one.relevant[0] for one in questions) == sorted(one.uri for one in documents)
    # Two pages of one company tell of different years.
    both = [one for one in documents if one.uri.startswith("abbotsreed-timber-")]
    assert [one.uri for one in both] == ["abbotsreed-timber-2015", "abbotsreed-timber-2019"]
    first, second = ({*re.findall(r"\b20\d\d\b", one.text)} for one in both)
    assert (first, second) == ({"2015", "2014", "2013", "2012"}, {"2019", "2018", "2017", "2016"})


# By hand, from the tables of the pages in documents.jsonl.
@pytest.mark.parametrize(
    "name, kind, figures, answer",
    [
        ("number-01", "revenue", ("$ 1,479.7",), Decimal("1479.7")),
        ("number-02", "loss", ("( 13.3 )",), Decimal("-13.3")),
        ("number-03", "rate", ("18.8%",), Decimal("0.188")),
        ("number-04", "people", ("5,670",), Decimal(5670)),
        ("number-05", "difference", ("$ 1,750.6 | $ 1,598.5",), Decimal("152.1")),
        # 175.1 / 1600.0 = 0.1094375
        ("number-06", "percent", ("$ 1,775.1 | $ 1,600.0",), Decimal("0.10944")),
        # 1831.2 / 2345.5 = 0.780729...
        ("number-07", "share", ("$ 2,345.5", "1,831.2"), Decimal("0.78073")),
        # 1,338,800,000 / 2387 = 560,871.386...
        ("number-08", "per_head", ("$ 1,338.8", "2,387"), Decimal("560871.39")),
        ("number-25", "two_years", ("$ 682.9",), Decimal("682.9")),
        # -324.0 / 3956.8 = -0.081884...
        ("number-26", "two_years_change", ("$ 3,632.8 | $ 3,956.8",), Decimal("-0.08188")),
        ("number-27", "thousands", ("$ 4,189.2",), Decimal(4189200)),
        ("number-28", "thousands_loss", ("( 49.5 )",), Decimal(-49500)),
        # 294.6 / 1164.7 = 0.252940...
        ("number-29", "three_years", ("$ 1,459.3", "$1,164.7 million in 2011"), Decimal("0.25294")),
        ("number-30", "words", ("opened forty-four sites",), Decimal(44)),
        # 3101 / 85 = 36.482...
        ("number-31", "words_each", ("3,101", "opened eighty-five sites"), Decimal("36.48")),
        # -16.4 - -5.4
        ("number-32", "negatives", ("( 16.4 ) | ( 5.4 )",), Decimal("-11.0")),
    ],
)
def test_answers_follow_from_the_figures_of_the_page(tmp_path, name, kind, figures, answer):
    assert load(tmp_path, "number_problems", {"folder": NUMBERS}) == 0
    documents, questions, _ = loaded(tmp_path)
    asked = {one.question_id: one for one in questions}[name]
    page = {one.uri: one for one in documents}[asked.relevant[0]]
    assert asked.strata == {"kind": kind} and Decimal(asked.expected) == answer
    assert all(figure in page.text for figure in figures)


# -- ids -----------------------------------------------------------------------------------------------------


def test_ids_leave_room_for_a_suffix():
    assert question_id("a" * 50) == "a" * 50
    # printf 'a%.0s' {1..51} | sha256sum
    assert question_id("a" * 51) == "a" * 33 + "-" + hashlib.sha256(b"a" * 51).hexdigest()[:16]
    assert question_id("ETR/2016/page_23.pdf-2").startswith("ETR-2016-page_23-pdf-2-")
    assert len(question_id("ä" * 400)) <= 50
