"""The four branches of the reader's messages, the choice layout, and what the judge is told."""

import json
from pathlib import Path

import pytest

from remeasure import building, images, jsonl, prompts, requests
from remeasure.cells import AskSettings, Cell, JudgeCell, JudgeSettings, Sampling
from remeasure.embedded import chat
from remeasure.embedded.prompt import understand
from remeasure.errors import RemeasureError
from remeasure.evidence import NOTHING, Evidence
from remeasure.files import sha256_file
from remeasure.fingerprint import SCRIPTS
from remeasure.prompts import PromptFiles
from remeasure.records import ImageRef, Item, Response
from remeasure.studies.pixelrag_messages import judge_messages, messages

PROMPTS = {
    "system_naive": "naive\n",
    "system_evidence": "evidence\n",
    "system_multimodal": "multimodal\n",
    "note_images": "images follow\n",
    "note_text": "text below\n",
    "note_none": "nothing found\n",
    "instruction_short_answer": "Be short.\n",
    "choice": "{{note}}\n\n{{passages}}\n\nQuestion: {{question}}\n{{options}}\n\nOnly the letter.\n",
    "judge_simpleqa": "Grade.\n{{answer_json}}\n",
    "judge_published": "Q: {{question}} T: {{target}} P: {{predicted_answer}}",
}
PHOTO = ImageRef(sha256="a" * 64, path="images.zip", member="q.png")
TILES = tuple(ImageRef(sha256=digit * 64, path="tiles.zip", member=f"{digit}.jpg") for digit in "123")
SHOWN_TILES = Evidence(kind="tiles", ids=("p/1", "p/2", "p/3"), images=TILES)
SHOWN_TEXT = Evidence(kind="text", ids=("p/1", "p/2"), texts=("First chunk.", "Second chunk."))


def item(**more) -> Item:
    return Item(**({"item_id": "q1", "question": "Who?", "references": ("Ada",), "group": "g"} | more))


def cell(**more) -> Cell:
    base = {"evidence": "tiles", "thinking": False, "instruction": "short_answer", "layout": None}
    return Cell(**(base | {"prompts": PROMPTS} | more))


def text(value: str) -> dict:
    return {"type": "text", "text": value}


def image(ref: ImageRef) -> dict:
    return {"type": "image_url", "image_url": {"url": images.to_url(ref)}}


def test_nothing_is_one_string_with_the_bare_question():
    assert messages(item(), NOTHING, cell()) == [
        {"role": "system", "content": "naive\n"},
        {"role": "user", "content": "Who?\n\nBe short."},
    ]
    assert messages(item(), NOTHING, cell(instruction=None))[1]["content"] == "Who?"


def test_text_without_a_photo_is_one_string_with_chunks_first():
    assert messages(item(), SHOWN_TEXT, cell()) == [
        {"role": "system", "content": "evidence\n"},
        {"role": "user", "content": "First chunk.\n\nSecond chunk.\n\nQuestion: Who?\n\nBe short."},
    ]


def test_tiles_without_a_photo_stand_between_question_and_instruction():
    asked = messages(item(), SHOWN_TILES, cell())
    assert asked[0]["content"] == "evidence\n"
    assert asked[1]["content"] == [text("Who?"), *map(image, TILES), text("Be short.")]
    assert messages(item(), SHOWN_TILES, cell(instruction=None))[1]["content"][-1] == image(TILES[2])


@pytest.mark.parametrize(
    ("evidence", "block", "tiles"),
    [
        (SHOWN_TILES, "Question: Who?\n\nimages follow\n\nBe short.", TILES),
        (
            SHOWN_TEXT,
            "Question: Who?\n\ntext below\n\nFirst chunk.\n\nSecond chunk.\n\nBe short.",
            (),
        ),
        (NOTHING, "Question: Who?\n\nnothing found\n\nBe short.", ()),
    ],
)
def test_a_photo_is_shown_with_every_kind_of_evidence(evidence, block, tiles):
    asked = messages(item(images=(PHOTO,)), evidence, cell())
    assert asked[0] == {"role": "system", "content": "multimodal\n"}
    assert asked[1]["content"] == [text(block), image(PHOTO), *map(image, tiles)]


def test_a_choice_has_no_system_message_and_photo_and_tiles_before_the_text():
    question = item(images=(PHOTO,), meta={"options": ["Rome", "Oslo"]}, references=("A",))
    asked = messages(question, SHOWN_TILES, cell(layout="choice"))
    block = "images follow\n\n\n\nQuestion: Who?\nA. Rome\nB. Oslo\n\nOnly the letter.\n"
    assert asked == [{"role": "user", "content": [image(PHOTO), *map(image, TILES), text(block)]}]


def test_a_choice_shows_passages_between_rules_and_keeps_letters_that_are_there():
    question = item(images=(PHOTO,), meta={"options": ["A. Rome", "B. Oslo"]})
    [block] = [
        part for part in messages(question, SHOWN_TEXT, cell(layout="choice"))[0]["content"] if "text" in part
    ]
    assert (
        "text below\n\nFirst chunk.\n---\nSecond chunk.\n\nQuestion: Who?\nA. Rome\nB. Oslo\n"
        in block["text"]
    )


def test_an_instruction_that_has_no_prompt_is_an_error():
    with pytest.raises(RemeasureError, match="did you mean 'instruction_short_answer'"):
        messages(item(), NOTHING, cell(instruction="shrt_answer"))


def response(value="Ada", status="answered", **more) -> Response:
    return Response(custom_id="q1", key="k", status=status, text=value, **more)


def judge(value, grader="judge_simpleqa", gold="first", **more) -> list[dict]:
    return judge_messages(item(**more), response(value), JudgeCell(grader=grader, gold=gold, prompts=PROMPTS))


def test_the_judge_gets_one_line_of_json_as_its_last_line():
    [asked] = judge('<think>Ada?\n</think>It is "Ada"\nLovelace', question="Wer?", references=("Adä", "A."))
    last = asked["content"].rstrip("\n").split("\n")[-1]
    assert json.loads(last) == {"question": "Wer?", "gold": "Adä", "answer": 'It is "Ada"\nLovelace'}
    assert "Adä" in last


def test_the_judge_of_a_photo_question_is_told_all_references():
    [asked] = judge("x", gold="any_of", references=("Ada", "Lovelace"))
    assert json.loads(asked["content"].split("\n")[1])["gold"] == "Any of: Ada | Lovelace"
    [asked] = judge("x", gold="any_of")
    assert json.loads(asked["content"].split("\n")[1])["gold"] == "Any of: Ada"


def test_published_placeholders_are_filled_with_the_same_values():
    assert judge("{{target}}", grader="judge_published")[0]["content"] == "Q: Who? T: Ada P: {{target}}"


def test_a_system_message_for_the_judge_is_sent_where_there_is_one():
    graders = JudgeCell(grader="judge_simpleqa", gold="first", prompts=PROMPTS | {"judge_system": "Judge."})
    assert judge_messages(item(), response(), graders)[0] == {"role": "system", "content": "Judge."}


def settings(**more) -> AskSettings:
    base = {
        "model": "m",
        "evidence": "tiles",
        "n_shown": 3,
        "grader": "em",
        "thinking": False,
        "max_tokens": 9,
    }
    base |= {"sampling": Sampling(temperature=0.0), "instruction": None, "layout": None}
    return AskSettings(**(base | {"prompts": PromptFiles(profile="own", files={}, sha256={})} | more))


def test_a_request_has_the_neutral_words_and_counts_the_evidence_in_its_messages():
    [(request, n_parts)] = building.reader_requests(
        [item()], lambda _: SHOWN_TILES, messages, settings(), PROMPTS
    )
    assert n_parts == 3 and request.custom_id == "q1"
    assert {word: value for word, value in request.body.items() if word != "messages"} == {
        "model": "m",
        "max_tokens": 9,
        "temperature": 0.0,
        "thinking": False,
    }


@pytest.mark.parametrize("lost", [SHOWN_TILES, SHOWN_TEXT])
def test_a_message_function_that_loses_evidence_is_caught(lost):
    with pytest.raises(RemeasureError, match="item 'q1': .*loses evidence"):
        list(
            building.reader_requests(
                [item()], lambda _: lost, lambda i, e, c: messages(i, NOTHING, c), settings(), PROMPTS
            )
        )


def judge_requests(tmp_path: Path, items, responses) -> list:
    jsonl.write(tmp_path / "responses.jsonl", responses)
    given = JudgeSettings(
        model="judge",
        grader="judge_simpleqa",
        gold="first",
        max_tokens=9,
        sampling=Sampling(),
        prompts=PromptFiles(profile="own", files={}, sha256={}),
    )
    return list(building.judge_requests(items, tmp_path / "responses.jsonl", judge_messages, given, PROMPTS))


def test_only_answers_that_can_be_graded_go_to_the_judge(tmp_path):
    statuses = ["answered", "cut_off", "refused", "failed", "not_sent"]
    items = [item(item_id=status) for status in statuses]
    rows = [
        Response(custom_id=status, key="k", status=status, text="x" if status == "answered" else None)
        for status in statuses
    ]
    asked = judge_requests(tmp_path, items, rows)
    assert [request.custom_id for request in asked] == ["answered", "cut_off"]
    assert '"answer": ""' in asked[1].body["messages"][0]["content"]


def test_responses_of_other_items_are_an_error(tmp_path):
    with pytest.raises(RemeasureError, match="2 ids stand only in .*first 'q1'"):
        judge_requests(tmp_path, [item(item_id="q2")], [response()])


@pytest.mark.parametrize(
    ("answered", "said"),
    [
        ("a", "2 ids stand only in the items or only in the responses .first 'b'"),
        ("", "3 ids stand only in the items or only in the responses .first 'a'"),
        ("ac", "1 ids stand only in the items or only in the responses .first 'b'"),
        ("abcd", "1 ids stand only in the items or only in the responses .first 'd'"),
        ("abdc", "1 ids stand only in the items or only in the responses .first 'd'"),
        ("acb", "the responses stand in another order than the items .first at item 'b'"),
        ("cab", "the responses stand in another order than the items .first at item 'a'"),
        ("aabc", "line 2: custom_id 'a' stands already in line 1"),
        ("baa", "line 3: custom_id 'a' stands already in line 2"),
    ],
)
def test_responses_that_do_not_stand_beside_their_items_are_one_line(tmp_path, answered, said):
    items = [item(item_id=name) for name in "abc"]
    rows = [Response(custom_id=name, key="k", status="answered", text="x") for name in answered]
    with pytest.raises(RemeasureError, match=said):
        judge_requests(tmp_path, items, rows)


def own_prompts() -> dict[str, str]:
    """Return the prompts of the repository as the workflow names them: relative to it."""
    paths = sorted((SCRIPTS.parent / "config/prompts/pixelrag/own").glob("*.txt"))
    files = PromptFiles(
        profile="own",
        files={path.stem: str(path.relative_to(SCRIPTS.parent)) for path in paths},
        sha256={path.stem: sha256_file(path) for path in paths},
    )
    return prompts.load(files)


def understood(question: Item, evidence: Evidence, **more):
    """Return what the embedded page reader makes of our messages, sent as the executor sends them."""
    asked = messages(question, evidence, cell(prompts=own_prompts(), **more))
    body = {"model": "m", "messages": asked, "max_tokens": 9, "thinking": False}
    wire = requests.translate(body, requests.dialect_of("embedded"), "m", None)
    with_bytes = requests.with_image_urls(wire, lambda ref: f"data:image/png;base64,{ref.sha256[:4]}")
    return understand(chat.parse(jsonl.encode(with_bytes)))


@pytest.mark.parametrize("photos", [(), (PHOTO,)])
@pytest.mark.parametrize(("evidence", "n_tiles"), [(SHOWN_TILES, 3), (SHOWN_TEXT, 0), (NOTHING, 0)])
@pytest.mark.parametrize("instruction", ["short_answer", "exact_answer", None])
def test_the_embedded_reader_understands_every_layout(photos, evidence, n_tiles, instruction):
    found = understood(item(question="Who wrote it?", images=photos), evidence, instruction=instruction)
    assert found.question == "Who wrote it?" and found.options == ()
    assert len(found.images) == n_tiles + len(photos)
    assert found.evidence == "\n\n".join(evidence.texts)
    assert bool(found.instruction) == bool(instruction)
    assert found.wants_exact_line == (instruction == "exact_answer")


@pytest.mark.parametrize(("evidence", "n_tiles"), [(SHOWN_TILES, 3), (SHOWN_TEXT, 0), (NOTHING, 0)])
def test_the_embedded_reader_understands_a_choice(evidence, n_tiles):
    question = item(question="Which city?", images=(PHOTO,), meta={"options": ["Rome", "Oslo"]})
    found = understood(question, evidence, layout="choice", instruction=None)
    assert found.question == "Which city?"
    assert [(option.letter, option.text) for option in found.options] == [("A", "Rome"), ("B", "Oslo")]
    assert len(found.images) == n_tiles + 1 and found.instruction
    assert [line for line in found.evidence.split("\n") if line.strip("- ")] == list(evidence.texts)
