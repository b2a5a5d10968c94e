"""The neutral body, the identity of an answer, the words of an endpoint."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remeasure import images, requests
from remeasure.errors import RemeasureError
from remeasure.fingerprint import SCRIPTS
from remeasure.records import ImageRef
from remeasure.requests import Body, answer_key, canonical_body, make_request, read_requests, translate

DIALECTS = requests.read_dialects(SCRIPTS.parent / "config" / "dialects.yaml")


def body(**more) -> dict:
    return {"model": "m", "messages": [{"role": "user", "content": "Hi"}], "max_tokens": 5} | more


def with_image(path: str, sha256: str = "a" * 64) -> dict:
    url = images.to_url(ImageRef(sha256=sha256, path=path, member="x.png"))
    parts = [{"type": "text", "text": "look"}, {"type": "image_url", "image_url": {"url": url}}]
    return body(messages=[{"role": "user", "content": parts}])


def test_words_that_are_not_set_do_not_stand_in_a_request():
    request = make_request("q1", Body(model="m", messages=[], max_tokens=5, temperature=0.0))
    assert request.body == {"model": "m", "messages": [], "max_tokens": 5, "temperature": 0.0}


@pytest.mark.parametrize("custom_id", ["", "a/b", "x" * 65, "a b", "é"])
def test_an_id_that_a_batch_service_would_refuse_is_an_error(custom_id):
    with pytest.raises(RemeasureError, match="1 to 64 characters"):
        make_request(custom_id, Body(model="m", messages=[], max_tokens=5))


def test_the_canonical_body_does_not_know_where_an_image_lies():
    assert canonical_body(with_image("here.zip")) == canonical_body(with_image("there/other.zip"))
    assert canonical_body(with_image("a")) != canonical_body(with_image("a", "b" * 64))
    assert b"remeasure-image:" + b"a" * 64 + b'"' in canonical_body(with_image("here.zip"))


def test_the_canonical_body_does_not_know_the_order_of_words():
    assert canonical_body({"b": 1, "messages": [], "a": 2}) == b'{"a":2,"b":1,"messages":[]}'


def test_everything_that_could_change_an_answer_changes_its_key():
    digest = requests.identity_digest({"weights": "abc"})
    keys = {
        answer_key(body(), "m", digest, 0),
        answer_key(body(), "other", digest, 0),
        answer_key(body(), "m", requests.identity_digest({"weights": "abd"}), 0),
        answer_key(body(), "m", digest, 1),
        answer_key(body(temperature=0.5), "m", digest, 0),
        answer_key(body(thinking=True), "m", digest, 0),
    }
    assert len(keys) == 6 and all(len(key) == 64 for key in keys)


def test_the_key_is_pinned_so_that_old_journals_stay_readable():
    # sha256sum of {"identity":"d","model":"m","protocol":1,"sample":0}, a line end and
    # {"max_tokens":5,"messages":[{"content":"Hi","role":"user"}],"model":"m"}
    expected = "cd417123c62b4deaaf33b502394420a483aa214f1181643f87b6e70f8fc0427b"
    assert answer_key(body(), "m", "d", 0) == expected


def test_replacing_images_leaves_the_original_body_alone():
    before = with_image("here.zip")
    copy = json.loads(json.dumps(before))
    after = requests.with_image_urls(before, lambda ref: "data:x")
    assert before == copy and after["messages"][0]["content"][1]["image_url"]["url"] == "data:x"


def test_thinking_that_the_model_does_anyway_is_not_sent():
    on, off = body(thinking=True), body(thinking=False)
    assert "chat_template_kwargs" not in translate(on, DIALECTS["vllm"], "served", True)
    sent = translate(off, DIALECTS["vllm"], "served", True)
    assert sent["chat_template_kwargs"] == {"enable_thinking": False} and sent["model"] == "served"
    sent = translate(on, DIALECTS["vllm"], "served", None)
    assert sent["chat_template_kwargs"] == {"enable_thinking": True}
    assert "thinking" not in sent


def test_a_word_that_an_endpoint_cannot_express_is_an_error_that_names_it():
    with pytest.raises(RemeasureError, match="'openai' cannot express thinking=True"):
        translate(body(thinking=True), DIALECTS["openai"], "served", False)
    with pytest.raises(RemeasureError, match="'openai' cannot express top_k=5"):
        translate(body(top_k=5), DIALECTS["openai"], "served", None)


def test_an_endpoint_gets_its_own_words():
    sent = translate(body(temperature=0.0, stop=["\n"]), DIALECTS["openai"], "gpt", None)
    assert sent == {
        "model": "gpt",
        "messages": [{"role": "user", "content": "Hi"}],
        "max_completion_tokens": 5,
        "temperature": 0.0,
        "stop": ["\n"],
    }


def write(path, *lines) -> None:
    path.write_text("".join(line + "\n" for line in lines))


def line(custom_id="q1", **more) -> str:
    return json.dumps(
        {"custom_id": custom_id, "method": "POST", "url": "/v1/chat/completions", "body": body(**more)}
    )


def test_good_requests_pass(tmp_path):
    write(tmp_path / "r.jsonl", line("q1"), line("q2", temperature=0.0))
    assert [request.custom_id for request in read_requests(tmp_path / "r.jsonl", "m")] == ["q1", "q2"]


@pytest.mark.parametrize(
    ("second", "message"),
    [
        ("{", "line 2: not a valid Request"),
        (line("q1"), "line 2: custom_id 'q1' stands already in line 1"),
        (line("a/b"), "line 2: custom_id 'a/b' must be"),
        (line("q2", temprature=0.1), r"line 2, request 'q2'.*did you mean 'temperature'"),
        (line("q2", max_tokens="5"), r"line 2, request 'q2'.*max_tokens"),
        (line("q2", model="other"), "line 2, request 'q2': model 'other', the settings ask 'm'"),
        (
            line(
                "q2", messages=[{"content": [{"type": "image_url", "image_url": {"url": "http://x/y.png"}}]}]
            ),
            "line 2, request 'q2': not an image reference",
        ),
    ],
)
def test_a_wrong_request_is_one_line_with_file_and_line(tmp_path, second, message):
    write(tmp_path / "r.jsonl", line("q1"), second)
    with pytest.raises(RemeasureError, match=message) as found:
        list(read_requests(tmp_path / "r.jsonl", "m"))
    assert "\n" not in str(found.value)


def test_text_that_is_not_utf8_is_one_line(tmp_path):
    (tmp_path / "r.jsonl").write_bytes(
        line("q1").replace("Hi", "\udcff").encode("utf-8", "surrogateescape") + b"\n"
    )
    with pytest.raises(RemeasureError, match="line 1"):
        list(read_requests(tmp_path / "r.jsonl", "m"))


@given(st.text(max_size=40), st.integers(1, 9))
def test_a_body_survives_being_written_and_read(text, max_tokens):
    request = make_request(
        "q", Body(model="m", messages=[{"role": "user", "content": text}], max_tokens=max_tokens)
    )
    assert requests.msgspec.convert(request.body, Body).messages[0]["content"] == text
