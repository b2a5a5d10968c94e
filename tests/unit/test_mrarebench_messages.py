"""What a model and a judge are shown: six conditions, each of which differs in one thing from another."""

import json
import subprocess
from pathlib import Path

import pytest

from remeasure import building, images, prompts, requests
from remeasure.cells import AskSettings, Cell, JudgeCell, Sampling
from remeasure.errors import RemeasureError
from remeasure.evidence import NOTHING
from remeasure.fingerprint import SCRIPTS
from remeasure.plan import Plan
from remeasure.prompts import PromptFiles
from remeasure.records import ImageRef, Item, Response
from remeasure.studies.mrarebench_messages import check_arm, judge_messages, messages

CONFIG = SCRIPTS.parent / "config"
PLAN = Plan(CONFIG)
STUDY = PLAN.study("mrarebench")
T1, T2 = ("fd", "lc", "to"), ("img", "txt", "nodx")

OWN = prompts.load(PromptFiles(**prompts.profile(CONFIG, "mrarebench", "own")))
# Stands in for a published profile: without line ends, values named one by one, made-up words.
STAND_IN = {
    "instruction_diagnosis": "Judging by {{basis}}: ten names.",
    "basis_images": "story and pictures",
    "basis_text": "story",
    "instruction_evidence": "Image by image.",
    "judge_ranked_list": "G {{gold}} A {{aliases}} N\n{{numbered}}\nend",
    "judge_rubric": (
        "D {{diagnosis}} R {{rationale}} A {{answer}} {{n_required}} {{n_optional}} {{n_lines}}\n"
        "{{required}}\n{{optional}}\nend"
    ),
}
PROFILES = pytest.mark.parametrize("texts", [OWN, STAND_IN], ids=["own", "published"])


def image(letter: str) -> ImageRef:
    return ImageRef(sha256=letter * 64, path=f"results/images.zip/{letter}")


def case(**more) -> Item:
    """A case of the diagnosis track; the context ends with white space on purpose."""
    meta = {"index": "7", "context": " A boy, 7.\n", "findings": "### CT\nA mass.\n\nLesions."} | more.pop(
        "meta", {}
    )
    told = {"item_id": "7", "question": "What is it?", "images": (image("a"), image("b")), "group": "p1"}
    return Item(**(told | {"references": ("Gaucher disease", "GD"), "meta": meta} | more))


def evidence_case(**more) -> Item:
    """A case of the evidence track, its diagnosis in front of the context."""
    meta = {
        "context": "Established diagnosis: Gaucher disease. A boy, 7. Relevant images: Image 1, Image 2. ",
        "labels": ["Image 1", "Panel B"],
        "diagnosis": "Gaucher disease",
        "rationale": "Both show it.",
        "points": [
            {"point": "a mass", "image": "Image 1", "credit": "required", "category": "modality"},
            {"point": "oedema", "image": "", "credit": "optional", "category": "other"},
            {"point": "both fit", "image": "Image 2", "credit": " Required", "category": "x"},
        ],
    } | more.pop("meta", {})
    told = {"item_id": "8", "question": "Which findings?", "images": (image("a"), image("b")), "group": "p1"}
    return Item(**(told | {"meta": meta} | more))


def parts(item: Item, arm: str, texts: dict[str, str]) -> list[str]:
    """Return the parts of the one message: texts, and ``<sha256 letter>`` for an image."""
    column = STUDY.arms[arm]
    cell = Cell(
        evidence="none",
        thinking=False,
        instruction=None,
        layout=None,
        prompts=texts,
        images=column.images,
        options=column.options,
    )
    [message] = messages(item, NOTHING, cell)
    assert message.keys() == {"role", "content"} and message["role"] == "user"
    return [
        part["text"] if part["type"] == "text" else f"<{images.from_url(part['image_url']['url']).sha256[0]}>"
        for part in message["content"]
    ]


# -- the six conditions (card 3.1 to 3.3) --------------------------------------------------------------------


def test_the_diagnosis_track_shows_images_without_labels_and_then_one_text():
    assert parts(case(), "lc", STAND_IN) == [
        "<a>",
        "<b>",
        " A boy, 7.\n\n\nQuestion: What is it?\n\nJudging by story and pictures: ten names.",
    ]
    # With findings the ends of the told case are stripped, and only then (card 3.2).
    assert parts(case(), "fd", STAND_IN) == [
        "<a>",
        "<b>",
        "A boy, 7.\n\n\n### CT\nA mass.\n\nLesions.\n\nQuestion: What is it?\n\n"
        "Judging by story and pictures: ten names.",
    ]
    assert parts(case(), "to", STAND_IN) == [
        " A boy, 7.\n\n\nQuestion: What is it?\n\nJudging by story: ten names."
    ]


def test_the_evidence_track_shows_each_image_under_its_label_and_then_one_text():
    told = "A boy, 7. Relevant images: Image 1, Image 2."
    asked = "\n\nQuestion: Which findings?\n\nImage by image."
    labelled = ["Image 1:", "<a>", "Panel B:", "<b>"]
    given = f"Established diagnosis: Gaucher disease. {told} {asked}"
    assert parts(evidence_case(), "img", STAND_IN) == [*labelled, given]
    assert parts(evidence_case(), "txt", STAND_IN) == [given]
    # Both ends are stripped by the cut (card 3.3).
    assert parts(evidence_case(), "nodx", STAND_IN) == [*labelled, told + asked]


@pytest.mark.parametrize(
    ("item", "arm", "text"),
    [
        (case(question=""), "lc", " A boy, 7.\n\n\nJudging by story and pictures: ten names."),
        (case(meta={"context": ""}, question=""), "lc", "Judging by story and pictures: ten names."),
        (case(meta={"context": ""}, question=""), "fd", "### CT\nA mass.\n\nLesions.\n\nJudging by"),
        (evidence_case(meta={"context": ""}), "nodx", "Question: Which findings?\n\nImage by image."),
    ],
)
def test_blocks_that_are_empty_are_left_out(item, arm, text):
    assert parts(item, arm, STAND_IN)[-1].startswith(text)


def test_a_case_without_findings_is_not_asked_as_if_they_were_told():
    with pytest.raises(RemeasureError, match=r"item .7.: has no findings \(meta.findings\), and this"):
        parts(case(meta={"findings": None}), "fd", STAND_IN)


def test_braces_in_a_case_are_its_own():
    assert "{{basis}} {x}" in parts(case(meta={"context": "{{basis}} {x}"}), "lc", STAND_IN)[-1]


# -- invariants (card 3.4) -----------------------------------------------------------------------------------


@PROFILES
def test_fd_is_lc_and_the_findings_and_nothing_else(texts):
    # A context without outer white space: the strip of FD then changes nothing.
    item = case(meta={"context": "A boy, 7."})
    lc, fd = parts(item, "lc", texts), parts(item, "fd", texts)
    assert fd[:-1] == lc[:-1] == ["<a>", "<b>"]
    assert fd[-1] == lc[-1].replace("A boy, 7.", "A boy, 7.\n\n### CT\nA mass.\n\nLesions.", 1) != lc[-1]


@PROFILES
def test_to_is_lc_without_images_and_with_the_other_basis_and_nothing_else(texts):
    lc, to = parts(case(), "lc", texts), parts(case(), "to", texts)
    assert len(to) == 1 and lc[:-1] == ["<a>", "<b>"]
    with_images, without = (texts[f"basis_{word}"].removesuffix("\n") for word in ("images", "text"))
    assert lc[-1].count(with_images) == 1
    assert to[0] == lc[-1].replace(with_images, without) != lc[-1]


@PROFILES
def test_txt_is_img_without_images_and_labels_and_nothing_else(texts):
    img, txt = parts(evidence_case(), "img", texts), parts(evidence_case(), "txt", texts)
    assert txt == img[-1:] and img[:-1] == ["Image 1:", "<a>", "Panel B:", "<b>"]


@PROFILES
def test_nodx_is_img_without_the_sentence_and_nothing_else(texts):
    item = evidence_case(meta={"context": "Established diagnosis: Gaucher disease. A boy, 7."})
    img, nodx = parts(item, "img", texts), parts(item, "nodx", texts)
    assert nodx[:-1] == img[:-1]
    assert nodx[-1] == img[-1].replace("Established diagnosis: Gaucher disease. ", "", 1) != img[-1]
    assert "Gaucher" not in "".join(nodx)


@PROFILES
def test_images_are_the_same_wherever_they_are_shown(texts):
    def shown(item, arm):
        return [part for part in parts(item, arm, texts) if part in ("<a>", "<b>")]

    assert shown(case(), "fd") == shown(case(), "lc") == ["<a>", "<b>"]
    assert shown(evidence_case(), "img") == shown(evidence_case(), "nodx") == ["<a>", "<b>"]
    assert shown(case(), "to") == shown(evidence_case(), "txt") == []


@PROFILES
@pytest.mark.parametrize("arm", [*T1, *T2])
def test_nothing_of_the_answer_s_side_is_in_a_request(texts, arm):
    item = case() if arm in T1 else evidence_case()
    said = "".join(parts(item, arm, texts))
    assert "GD" not in said and "Both show it" not in said and "oedema" not in said


def test_requests_hold_what_belongs_there_by_the_check_of_all_studies():
    column = STUDY.arms["to"]
    settings = AskSettings(
        model="m",
        evidence="none",
        n_shown=0,
        item_images=column.images,
        options=column.options,
        grader="judge_ranked_list",
        thinking=False,
        max_tokens=10,
        sampling=Sampling(),
        instruction=None,
        layout=None,
        prompts=PromptFiles(profile="own", files={}, sha256={}),
    )
    [(request, _)] = building.reader_requests([case()], lambda _: NOTHING, messages, settings, OWN)
    assert list(requests.image_refs(request.body)) == []


# -- what is wrong -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({}, "missing required field `findings`"),
        ({"findings": True}, "missing required field `basis`"),
        ({"findings": True, "basis": "words"}, "Invalid enum value 'words'"),
        ({"findings": "yes", "basis": "text"}, "Expected `bool`, got `str`"),
        ({"findings": True, "basis": "text", "more": 1}, "unknown field `more`"),
        ({"diagnosis": True, "findings": True}, "unknown field `findings`"),
        ({"diagnosis": None}, "Expected `bool`, got `null`"),
    ],
)
def test_options_that_are_no_condition_are_one_line(options, said):
    cell = Cell(evidence="none", thinking=False, instruction=None, layout=None, prompts=OWN, options=options)
    with pytest.raises(RemeasureError, match="of an arm: ") as caught:
        messages(case(), NOTHING, cell)
    assert said in str(caught.value)


FD = {"findings": True, "basis": "images"}


@pytest.mark.parametrize(
    ("options", "file", "grader", "said"),
    [
        ({"diagnosis": True}, "diagnosis.jsonl", "judge_rubric", "index diagnosis.jsonl is of the diagnosis"),
        (
            {"diagnosis": True},
            "evidence.jsonl",
            "ranked_list",
            "grader ranked_list is of the diagnosis track",
        ),
        (FD, "evidence.jsonl", "judge_ranked_list", "use diagnosis.jsonl, or an arm of the other track"),
        (FD, "diagnosis.jsonl", "judge_rubric", "use ranked_list or judge_ranked_list, or an arm"),
    ],
)
def test_an_arm_of_the_other_track_is_one_line(options, file, grader, said):
    with pytest.raises(RemeasureError) as caught:
        check_arm(options, file, grader)
    assert said in str(caught.value)


@pytest.mark.parametrize("grader", ["ranked_list", "judge_ranked_list", "em"])
def test_an_arm_of_its_own_track_is_taken(grader):
    check_arm(FD, "diagnosis.jsonl", grader)  # of a grader that is not known here nothing is said


@pytest.mark.parametrize(
    ("item", "arm", "said"),
    [
        (evidence_case(), "lc", "item '8': meta: Object missing required field `findings`"),
        (case(), "img", "item '7': meta: Object missing required field `labels`"),
        (case(meta={"context": None}), "lc", "Expected `str`, got `null`"),
        (evidence_case(meta={"labels": ["Image 1"]}), "img", "item '8': 2 images and 1 labels"),
    ],
)
def test_an_item_of_another_kind_is_one_line(item, arm, said):
    with pytest.raises(RemeasureError) as caught:
        parts(item, arm, OWN)
    assert said in str(caught.value)


def test_a_profile_without_a_prompt_is_one_line():
    with pytest.raises(RemeasureError, match="prompt 'basis_text' is not among"):
        parts(case(), "to", {name: text for name, text in OWN.items() if name != "basis_text"})


# -- judges (card 6.1 and 7) ---------------------------------------------------------------------------------


def judged(item: Item, grader: str, text: str | None, texts: dict[str, str], status="answered") -> str:
    response = Response(custom_id=item.item_id, key="k", status=status, text=text)
    [message] = judge_messages(item, response, JudgeCell(grader=grader, gold="first", prompts=texts))
    assert message["role"] == "user"
    return message["content"]


@pytest.mark.parametrize(
    ("references", "answer", "expected"),
    [
        (("X", "Y", "Z"), "1. A\n2) B", "G X A Y; Z N\n1. A\n2. B\nend"),
        (("X",), "<think>1. q</think>1. A\n2. B", "G X A (none) N\n1. A\n2. B\nend"),
        (("X",), "<think>so</think> ", "G X A (none) N\n(empty)\nend"),
        # An empty cell of the published spreadsheet is read as "nan" (card 4).
        (("X",), "", "G X A (none) N\n1. nan\nend"),
        (("X",), None, "G X A (none) N\n1. nan\nend"),
        ((), "1. {{gold}}", "G  A (none) N\n1. {{gold}}\nend"),
    ],
)
def test_the_judge_of_a_list_is_told_names_and_the_list_as_published(references, answer, expected):
    assert judged(case(references=references), "judge_ranked_list", answer, STAND_IN) == expected


def test_the_judge_of_evidence_is_told_points_and_the_answer_as_it_came():
    answer = "<think>maybe oedema</think>\nImage 1: a mass\n"
    assert judged(evidence_case(), "judge_rubric", answer, STAND_IN) == (
        "D Gaucher disease R Both show it. A <think>maybe oedema</think>\nImage 1: a mass\n 2 1 5\n"
        "1. [Image 1] a mass\n2. [Image 2] both fit\n1. oedema\nend"
    )
    # 2 * 0 + 0 lines.
    assert judged(evidence_case(meta={"points": []}), "judge_rubric", "None", STAND_IN) == (
        "D Gaucher disease R Both show it. A nan 0 0 0\n(none)\n(none)\nend"
    )


def test_our_own_judge_prompts_end_with_the_case_as_one_line():
    # Line ends that only Unicode knows stand in names and answers, and end no line of JSON.
    item = case(references=("Gaucher\u2028disease", "GD\x85"))
    line = judged(item, "judge_ranked_list", "1. A\n2. B", OWN).split("\n")[-1]
    assert line.isprintable()
    assert json.loads(line) == {"gold": "Gaucher\u2028disease", "aliases": ["GD\x85"], "ranked": ["A", "B"]}
    text = judged(evidence_case(), "judge_rubric", "so \u2028 {{x}}\n\x85", OWN)
    assert "Reply with exactly 5 lines" in text and "\n2 lines: for each required" in text
    assert len(text.splitlines()) == text.count("\n") + 1
    assert json.loads(text.split("\n")[-1]) == {
        "diagnosis": "Gaucher disease",
        "rationale": "Both show it.",
        "answer": "so \u2028 {{x}}\n\x85",
        "required": ["[Image 1] a mass", "[Image 2] both fit"],
        "optional": ["oedema"],
    }


def test_a_judge_prompt_of_another_study_is_one_line():
    with pytest.raises(RemeasureError, match="judge prompt 'judge_simpleqa' is none of MRareBench's"):
        judged(case(), "judge_simpleqa", "x", OWN)


# -- the published wording -----------------------------------------------------------------------------------


def test_the_published_wording_is_known_by_its_hashes_and_not_shipped():
    found = prompts.profile(CONFIG, "mrarebench", "published")
    assert found["files"].keys() == OWN.keys()
    assert set(found["files"].values()) == {f"results/sources/mrarebench-prompts/{name}.txt" for name in OWN}
    # `printf '%s' … | sha256sum` of what the diagnosis rests on in the module, with images and without.
    assert {name: digest[:12] for name, digest in found["sha256"].items() if name.startswith("basis")} == {
        "basis_images": "b273607ce86b",
        "basis_text": "3a5b44a026a4",
    }
    tracked = subprocess.run(
        ["git", "ls-files", "-z", "config/prompts/mrarebench"],
        cwd=SCRIPTS.parent,
        capture_output=True,
        text=True,
    )
    if tracked.returncode or not tracked.stdout:
        pytest.skip("this copy is no checkout, so what is tracked is not known")
    names = {Path(name).name for name in tracked.stdout.split("\0")[:-1] if "/published/" in name}
    assert names == {"elsewhere.yaml", "taken.yaml"}


def test_both_profiles_have_every_prompt_of_the_study():
    for name in ("own", "published"):
        files = prompts.profile(CONFIG, "mrarebench", name)["files"]
        assert files.keys() == {
            "instruction_diagnosis",
            "basis_images",
            "basis_text",
            "instruction_evidence",
            "judge_ranked_list",
            "judge_rubric",
        }
