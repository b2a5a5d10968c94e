"""How much detail of an image is looked at: a setting of a model that every request says."""

import json
import shutil
from pathlib import Path

import msgspec
import pytest

from remeasure import building, executors, requests, tokens
from remeasure.cells import AskSettings
from remeasure.errors import RemeasureError
from remeasure.evidence import NOTHING
from remeasure.executors import Call
from remeasure.executors.payload import Payloads
from remeasure.files import sha256_bytes
from remeasure.messages import image_part, text_part
from remeasure.plan import Plan
from remeasure.records import ImageRef, Item

ROOT = Path(__file__).resolve().parents[2]
PLAN = Plan(ROOT / "config")
PICTURE = b"\x89PNG\r\n\x1a\n" + bytes(20)


def request(image_detail: str | None, path: str = "a.png"):
    """Return the request of an item with one image, asked as the paper's GPT-4.1 is."""
    told = PLAN.request("paper", "mrarebench", "diagnosis", "lc", "gpt-4-1") | {"image_detail": image_detail}
    settings = msgspec.convert(told, AskSettings)
    item = Item(
        item_id="7",
        question="What?",
        group="g",
        images=(ImageRef(sha256=sha256_bytes(PICTURE), path=path),),
    )

    def messages(item, evidence, cell):
        return [{"role": "user", "content": [*map(image_part, item.images), text_part(item.question)]}]

    [(made, _)] = building.reader_requests([item], lambda _: NOTHING, messages, settings, {})
    return made


def test_every_image_of_a_request_says_it_and_texts_do_not():
    image, text = request("low").body["messages"][0]["content"]
    assert image["image_url"].keys() == {"url", "detail"} and image["image_url"]["detail"] == "low"
    assert text == {"type": "text", "text": "What?"}
    image, _ = request(None).body["messages"][0]["content"]
    assert image["image_url"].keys() == {"url"}


def test_it_is_part_of_an_answer_s_identity_and_the_place_of_the_image_is_not():
    keys = {word: requests.answer_key(request(word).body, "m", "d", 0) for word in (None, "low", "high")}
    assert len(set(keys.values())) == 3
    assert requests.answer_key(request("low", "elsewhere.png").body, "m", "d", 0) == keys["low"]


def test_it_goes_out_beside_the_bytes_of_the_image(tmp_path):
    (tmp_path / "a.png").write_bytes(PICTURE)
    body = request("low").body
    way = msgspec.convert(PLAN.executor("paper", "gpt-4-1", None), executors.HttpSettings)
    with Payloads(way, "gpt-4.1-2025-04-14", tmp_path) as payloads:
        call = Call(key="", custom_id="7", body=body)
        wire = json.loads(b"".join(payloads.pieces(call, payloads.template(call))))
    sent = wire["messages"][0]["content"][0]["image_url"]
    # `base64` of the eight bytes of a PNG's signature and twenty zeros.
    assert sent == {"url": f"data:image/png;base64,iVBORw0KGgo{'A' * 27}==", "detail": "low"}


def test_an_endpoint_that_has_no_word_for_it_is_told_before_anything_is_sent():
    body = request("low").body
    with pytest.raises(RemeasureError, match="dialect 'vllm' cannot express image_detail='low'"):
        requests.translate(body, requests.dialect_of("vllm"), "m", False)
    assert requests.translate(request(None).body, requests.dialect_of("vllm"), "m", False)["model"] == "m"
    assert requests.translate(body, requests.dialect_of("openai"), "m", False)["messages"] == body["messages"]


def test_low_detail_costs_what_the_service_says():
    # OpenAI, tile-based image tokenization: gpt-4.1 takes 85 tokens for an image in low detail.
    size = tokens.request_size(request("low").body, lambda ref: (2000, 1000), "openai-tiles")
    assert (size.n_images, size.image_tokens) == (1, 85)


def test_a_run_says_it_of_a_model_and_others_stay_as_they_are():
    asked = {
        model: PLAN.request("paper", "mrarebench", "diagnosis", "lc", model)
        for model in ("gpt-4-1", "qwen3-5-4b")
    }
    assert asked["gpt-4-1"]["image_detail"] == "low" and "image_detail" not in asked["qwen3-5-4b"]


def test_a_run_whose_dialect_has_no_word_for_it_is_one_line(tmp_path):
    shutil.copytree(ROOT / "config", tmp_path / "config")
    text = 'extends: paper\ntitle: "t"\nmodels: {gpt-4-1: {dialect: vllm}}\n'
    (tmp_path / "config" / "runs" / "mine.yaml").write_text(text)
    with pytest.raises(RemeasureError, match="mine.yaml: models.gpt-4-1.image_detail: dialect 'vllm' cannot"):
        Plan(tmp_path / "config").request("mine", "mrarebench", "diagnosis", "lc", "gpt-4-1")
