"""The three model programs with their real weights: answers, repeatability, errors of the first second."""

import json

import pytest

from remeasure import jsonl
from remeasure.files import sha256_bytes
from remeasure.records import OcrImage, OcrLine
from serverkit import said, served, text, url

READER = {
    "llm": "smollm2-135m-instruct-q4_1.gguf",
    "encoder": "bge-small-en-v1.5.onnx",
    "tokenizer": "bge-small-en-v1.5.tokenizer.json",
}
JUDGE = {"model": "ms-marco-minilm-l-12-v2.onnx", "tokenizer": "ms-marco-minilm-l-12-v2.tokenizer.json"}


def picture(shade: int) -> bytes:
    """A picture without text."""
    import cv2
    import numpy as np

    return cv2.imencode(".png", np.full((60, 80, 3), shade, np.uint8))[1].tobytes()


def page(data: bytes, country: str, capital: str, area: str) -> OcrImage:
    """What OCR would have read in a page about a country."""
    rows = [("Capital", capital), ("Total area", area), ("Internet code", f".{country[:2].lower()}")]
    lines = [(country, 16, 38, 190, 74)]
    for number, (label, value) in enumerate(rows):
        y = 130 + 27 * number
        lines += [(label, 556, y, 640, y + 20), (value, 671, y, 760, y + 20)]
    return OcrImage(
        sha256=sha256_bytes(data),
        tile_id=f"{country.lower()}/0000",
        width_px=875,
        height_px=1024,
        lines=tuple(OcrLine(text=text, box=tuple(box), confidence=0.99) for text, *box in lines),
    )


PAGES = [
    (picture(10), "Ruritania", "Strelsau", "1,204 sq km"),
    (picture(20), "Graustark", "Edelweiss", "900 sq km"),
]


@pytest.fixture
def ocr(tmp_path):
    path = tmp_path / "ocr.jsonl"
    jsonl.write(path, (page(*known) for known in PAGES))
    return path


QUESTIONS = {
    "What is the capital of Ruritania?": "Strelsau",
    "What is the capital of Graustark?": "Edelweiss",
    "What is the total area of Ruritania?": "1,204 sq km",
    "What is the total area of Graustark?": "900 sq km",
}
TILES = [url(data) for data, *_ in PAGES]


@pytest.mark.models
def test_the_page_reader_reads_pages_and_is_the_same_in_any_order_and_process(tmp_path, sources, ocr):
    replies = []
    for order in (list(QUESTIONS), list(reversed(QUESTIONS))):
        with served("serve_page_reader.py", tmp_path, sources, READER, made={"ocr": ocr}) as ask:
            replies.append({question: ask([text(question), *TILES]) for question in order})
    assert replies[0] == replies[1]
    assert {question: said(reply) for question, reply in replies[0].items()} == QUESTIONS


@pytest.mark.models
def test_the_page_reader_answers_in_the_form_that_is_asked_for(tmp_path, sources, ocr):
    with served("serve_page_reader.py", tmp_path, sources, READER, made={"ocr": ocr}) as ask:
        question = "What is the capital of Ruritania?"
        exact = ask([text(f'Question: {question}\n\nAnswer with a line "Exact Answer:".'), *TILES])
        assert said(exact) == "Exact Answer: Strelsau"

        thinking = ask([text(question), *TILES], chat_template_kwargs={"enable_thinking": True})
        assert said(thinking).startswith("<think>\nRuritania - Capital: Strelsau\n")
        assert said(thinking).endswith("\n</think>\n\nStrelsau")
        assert thinking["usage"]["completion_tokens"] > 10

        cut = ask([text(question), *TILES], thinking=True, max_tokens=5)
        assert cut["choices"][0]["finish_reason"] == "length"
        assert cut["usage"]["completion_tokens"] == 5
        assert said(thinking).startswith(said(cut))

        options = "A. Paris\nB. Edelweiss\nC. Strelsau\nD. Rome\nE. Oslo"
        choice = [*TILES, text(f"Question: {question}\n{options}\n\nAnswer with the letter.")]
        assert said(ask(choice, max_tokens=16)) == "C"

        passages = "| Capital | Strelsau |\n|---|---|\n| Total area | 7 sq km |"
        assert said(ask(f"{passages}\n\nQuestion: What is the capital of Ruritania?")) == "Strelsau"

        assert said(ask(question))  # without evidence it says something
        bad = ask([text(question), {"type": "image_url", "image_url": {"url": "file:///x"}}])
        assert bad["status"] == 400
        assert "data: address" in bad["error"]["message"]


@pytest.mark.models
def test_a_picture_without_text_leaves_the_order_of_the_pages_to_decide(tmp_path, sources, ocr):
    with served("serve_page_reader.py", tmp_path, sources, READER, made={"ocr": ocr}) as ask:
        question, photo = text("Question: What is the capital of this country?"), url(picture(200))
        assert said(ask([question, photo, *TILES])) == "Strelsau"
        assert said(ask([question, photo, *reversed(TILES)])) == "Edelweiss"
        broken = ask([question, url(b"no picture")])
        assert broken["status"] == 400


@pytest.mark.models
def test_line_vectors_change_no_answer_and_those_of_another_encoder_are_refused(
    tmp_path, sources, ocr, capsys
):
    from remeasure.embedded.evidence import LINE_TOKENS, line_sha256
    from remeasure.embedded.lines import tile_lines
    from remeasure.encoders import EncoderSettings
    from remeasure.encoders.text import TextEncoder
    from remeasure.vectors import write_descriptors

    lines = [line for known in PAGES for line in tile_lines(page(*known))]
    for limit in (LINE_TOKENS, 64):
        settings = EncoderSettings(unit="lines", model="bge-small-en-v1.5", max_tokens=limit)
        encoder = TextEncoder(settings, sources / READER["encoder"], sources / READER["tokenizer"], 1)
        folder = tmp_path / str(limit)
        folder.mkdir()
        write_descriptors(
            folder / "descriptors.h5",
            folder / "order.txt",
            [([line_sha256(line) for line in lines], encoder.documents(lines))],
            encoder.identity(),
        )
    made = {"ocr": ocr, "line_vectors": tmp_path / str(LINE_TOKENS) / "descriptors.h5"}
    with served("serve_page_reader.py", tmp_path, sources, READER, made=made) as ask:
        for question, answer in QUESTIONS.items():
            assert said(ask([text(question), *TILES])) == answer

    import serve_page_reader

    words = ["--port", "0", "--port-file", str(tmp_path / "port"), "--served-name", "m", "--threads", "1"]
    for option, name in READER.items():
        words += [f"--{option}", str(sources / name)]
    assert serve_page_reader.main([*words, "--line-vectors", str(tmp_path / "64" / "descriptors.h5")]) == 2
    assert "needs bge-small-en-v1.5 with 128 tokens" in capsys.readouterr().err


@pytest.mark.models
def test_the_judge_tells_right_from_wrong(tmp_path, sources, root):
    prompts = root / "config" / "prompts" / "pixelrag" / "own"
    letter = (prompts / "judge_simpleqa.txt").read_text()
    label = (prompts / "judge_worldvqa.txt").read_text()

    def filled(template, gold, answer):
        case = {"question": "What is it?", "gold": gold, "answer": answer}
        return template.replace("{{answer_json}}", json.dumps(case, ensure_ascii=False))

    cases = [
        ("Paris", "The capital is Paris.", "A", "Correct"),
        ("Paris", "London", "B", "Incorrect"),
        ("10.25", "10.25 births/1,000 population (2025 est.)", "A", "Correct"),
        ("36 years", "37 years", "B", "Incorrect"),
        ("Any of: Manx pounds | IMP", "Manx pounds (IMP)", "A", "Correct"),
        ("Paris", "I don't know", "C", "Unattempted"),
    ]
    with served("serve_judge.py", tmp_path, sources, JUDGE, threshold=0.0) as ask:
        for gold, answer, grade, word in cases:
            assert said(ask(filled(letter, gold, answer), seed=42, max_tokens=1000)) == grade
            assert said(ask(filled(label, gold, answer))).endswith(f"\nLabel: {word}")


@pytest.mark.models
def test_the_plain_model_talks_and_keeps_to_its_limit(tmp_path, sources):
    with served("serve_llm.py", tmp_path, sources, {"llm": READER["llm"]}) as ask:
        reply = ask("Tell me about rivers.", max_tokens=5)
        assert reply["usage"]["completion_tokens"] == 5
        assert reply["choices"][0]["finish_reason"] == "length"
        assert ask([text("What?"), url(picture(1))])["status"] == 400
        assert ask("river " * 9000)["status"] == 400


@pytest.mark.models
def test_the_plain_model_keeps_to_a_schema_and_tells_log_probabilities(tmp_path, sources):
    schema = {
        "type": "object",
        "properties": {"capital": {"type": "string"}, "sure": {"type": "boolean"}},
        "required": ["capital", "sure"],
        "additionalProperties": False,
    }
    shape = {"type": "json_schema", "json_schema": {"name": "answer", "schema": schema, "strict": True}}
    question = "What is the capital of France?"
    with served("serve_llm.py", tmp_path, sources, {"llm": READER["llm"]}) as ask:
        kept = json.loads(said(ask(question, max_tokens=60, response_format=shape)))
        assert list(kept) == ["capital", "sure"]
        assert type(kept["sure"]) is bool
        assert said(ask(question, max_tokens=9, response_format={"type": "json_object"})).startswith("{")

        told = ask(question, max_tokens=4, logprobs=True, top_logprobs=2)["choices"][0]["logprobs"]["content"]
        assert len(told) == 4
        assert all(set(token) == {"token", "bytes", "logprob", "top_logprobs"} for token in told)
        for token in told:  # greedy: the token is the likeliest
            first, second = token["top_logprobs"]
            assert (first["token"], first["logprob"]) == (token["token"], token["logprob"])
            assert second["logprob"] < first["logprob"] < 0
        plain = ask(question, max_tokens=4, logprobs=True)["choices"][0]["logprobs"]["content"]
        assert [token["token"] for token in plain] == [token["token"] for token in told]
        assert all(token["top_logprobs"] == [] for token in plain)

        shape["json_schema"]["schema"] = {"type": "nonsense"}
        refused = ask(question, response_format=shape)
        assert refused["status"] == 400
        assert "unrecognized type nonsense" in refused["error"]["message"]
        assert said(ask(question, max_tokens=4)) == "".join(token["token"] for token in told)


@pytest.mark.models
def test_page_reader_and_judge_refuse_by_name_what_they_cannot_do(tmp_path, sources):
    for program, files, more in (
        ("serve_page_reader.py", READER, {}),
        ("serve_judge.py", JUDGE, {"threshold": 0.0}),
    ):
        with served(program, tmp_path, sources, files, **more) as ask:
            reply = ask("Question: What?", response_format={"type": "json_object"})
            assert reply["status"] == 400
            assert reply["error"]["message"] == "response_format: this model cannot do that; ask without it"
            assert ask("Question: What?", logprobs=True)["error"]["message"].startswith("logprobs: ")


@pytest.mark.parametrize("program", ["serve_page_reader", "serve_llm"])
def test_a_missing_or_wrong_model_is_one_line(program, tmp_path, sources, capsys):
    module = __import__(program)
    wrong = tmp_path / "wrong.gguf"
    wrong.write_bytes(b"nothing")
    words = ["--port", "0", "--port-file", str(tmp_path / "port"), "--served-name", "m", "--threads", "1"]
    if program == "serve_page_reader":
        words += [
            "--encoder",
            str(sources / READER["encoder"]),
            "--tokenizer",
            str(sources / READER["tokenizer"]),
        ]
    for path, said_of_it in ((wrong, "not a GGUF model"), (tmp_path / "absent", "cannot be read")):
        assert module.main([*words, "--llm", str(path)]) == 2
        assert said_of_it in capsys.readouterr().err
