"""What a real vLLM (0.32, recorded by ``tests/record_vllm.py``) says is read for what it means."""

import json
from pathlib import Path

import pytest

from remeasure.executors.replies import Failure, Outcome, of_completion, of_http

FOLDER = Path(__file__).resolve().parent.parent / "data" / "vllm"
REPLIES = {
    reply["name"]: reply
    for reply in map(json.loads, (FOLDER / "replies.jsonl").read_text(encoding="utf-8").splitlines())
}
BATCH = {
    line["custom_id"]: line
    for line in map(json.loads, (FOLDER / "run_batch.jsonl").read_text(encoding="utf-8").splitlines())
}
# "user:Hello<end>assistant:" is 21 tokens, with thinking off 2 more; a red pixel is 1 token and 2 marks.
ANSWERS = {
    "stopped": ("answered", "D", "stop", 23, 2),
    "cut_off": ("cut_off", "T9D\\9", "length", 21, 5),
    "image": ("cut_off", "P+dud", "length", 19, 5),
    "schema": ("answered", '"no"', "stop", 21, 5),
}
REFUSALS = {
    "too_long": ("context_overflow", 400, "maximum context length is 512 tokens"),
    "too_many_images": ("rejected", 400, "At most 2 image(s) may be provided"),
    "no_image": ("rejected", 400, "cannot identify image file"),
    "wrong_number": ("rejected", 400, "top_p must be in (0, 1]"),
}


def read(name, names=("slug",)):
    reply = REPLIES[name]
    return of_http(reply["status"], {}, reply["body"].encode(), names)


@pytest.mark.parametrize("name", ANSWERS)
def test_an_answer_is_read(name):
    status, text, finish, n_prompt, n_completion = ANSWERS[name]
    found = read(name)
    assert isinstance(found, Outcome)
    assert (found.status, found.text, found.finish, found.model) == (status, text, finish, "slug")
    assert found.usage["prompt_tokens"] == n_prompt
    assert found.usage["completion_tokens"] == n_completion
    assert found.usage["total_tokens"] == n_prompt + n_completion


@pytest.mark.parametrize("name", REFUSALS)
def test_a_refusal_is_a_permanent_failure_in_vllm_s_words(name):
    kind, status, said = REFUSALS[name]
    found = read(name)
    assert isinstance(found, Failure)
    assert (found.kind, found.status) == (kind, status)
    assert said in found.message


def test_an_unknown_model_is_the_wrong_model():
    found = read("unknown_model", ("other",))
    assert isinstance(found, Failure)
    assert (found.kind, found.status) == ("wrong_model", 404)
    assert "The model `other` does not exist. Valid aliases: slug." in found.message


def test_an_answer_under_another_name_is_the_wrong_model():
    assert read("cut_off", ("other",)).kind == "wrong_model"


def test_the_pages_of_the_server_have_the_shapes_that_are_relied_on():
    assert json.loads(REPLIES["/version"]["body"]) == {"version": "0.32.0"}
    listed = json.loads(REPLIES["/v1/models"]["body"])["data"]
    assert [(m["id"], m["owned_by"], m["root"], m["max_model_len"]) for m in listed] == [
        ("slug", "vllm", "model", 512)
    ]
    assert (REPLIES["/health"]["status"], REPLIES["/health"]["body"]) == (200, "")


@pytest.mark.parametrize("name", ANSWERS)
def test_a_batch_line_holds_the_same_completion(name):
    line = BATCH[name]
    assert (line["error"], line["response"]["status_code"]) == (None, 200)
    found = of_completion(line["response"]["body"], ("slug",))
    assert (found.status, found.text) == ANSWERS[name][:2]


@pytest.mark.parametrize("name", [*REFUSALS, "unknown_model"])
def test_a_batch_line_that_failed_holds_its_error_one_level_deeper(name):
    line = BATCH[name]
    assert line["response"]["body"] is None
    assert line["response"]["status_code"] == REPLIES[name]["status"]
    assert line["error"] == json.loads(REPLIES[name]["body"])
