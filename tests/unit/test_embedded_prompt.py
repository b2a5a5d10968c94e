"""What a message asks, and which requests are refused."""

import base64
import json

import pytest

from remeasure.embedded.chat import BadRequest, parse
from remeasure.embedded.prompt import Option, understand

IMAGE = {
    "type": "image_url",
    "image_url": {"url": "data:image/png;base64," + base64.b64encode(b"x").decode()},
}
NOTE = "Evidence: the following text comes from pages of an encyclopedia, most fitting first."
SHORT = "Answer in as few words as you can."
EXACT = 'Answer as you like, but close with one line that holds "Exact Answer:" and the final answer.'


def ask(content, **words):
    return parse(
        json.dumps({"model": "m", "messages": [{"role": "user", "content": content}], **words}).encode()
    )


def text(words: str) -> dict:
    return {"type": "text", "text": words}


def test_a_bare_question_with_an_instruction_has_no_evidence():
    prompt = understand(ask(f"Who rules?\n\n{SHORT}"))
    assert (prompt.question, prompt.instruction, prompt.evidence) == ("Who rules?", SHORT, "")


def test_question_tiles_and_instruction_come_apart():
    prompt = understand(ask([text("Who rules?"), IMAGE, IMAGE, text(SHORT)]))
    assert prompt.question == "Who rules?"
    assert prompt.images == (b"x", b"x")
    assert prompt.instruction == SHORT
    assert prompt.evidence == ""


def test_text_before_the_question_is_evidence():
    prompt = understand(ask(f"The king rules.\n\nThe sea is cold.\n\nQuestion: Who rules?\n\n{SHORT}"))
    assert prompt.question == "Who rules?"
    assert prompt.evidence == "The king rules.\n\nThe sea is cold."
    assert not prompt.wants_exact_line


def test_text_between_question_and_instruction_is_evidence_and_the_note_is_not():
    words = f"Question: Who rules?\n\n{NOTE}\n\nThe king rules.\n\n{EXACT}"
    prompt = understand(ask([text(words), IMAGE]))
    assert prompt.evidence == "The king rules."
    assert prompt.wants_exact_line


def test_the_choice_layout_gives_options():
    question = "Question: Who rules?\nA. the king\nB. nobody\n\nAnswer with the letter."
    prompt = understand(ask([IMAGE, text(f"{NOTE}\n\nOld.\n---\nCold.\n\n{question}")]))
    assert prompt.options == (Option("A", "the king"), Option("B", "nobody"))
    assert prompt.evidence == "Old.\n---\nCold."
    assert prompt.question == "Who rules?"


@pytest.mark.parametrize(
    ("body", "named"),
    [
        (b"no json", "malformed"),
        (b'{"messages": []}', "model"),
        (b'{"model": "m", "messages": []}', "messages is empty"),
        (b'{"model": "m", "messages": [], "min_p": 0.1}', "min_p"),
        (b'{"model": "m", "messages": [{"role": "user", "content": "?"}], "max_tokens": 0}', "max_tokens"),
        (b'{"model": "m", "messages": [{"role": "user", "content": "?"}], "temperature": 3}', "temperature"),
        (b'{"model": "m", "messages": [{"role": "user", "content": "?"}], "stream": true}', "stream"),
        (b'{"model": "m", "messages": [{"role": "tool", "content": "?"}]}', "role"),
        (b'{"model": "m", "messages": [{"role": "user", "content": [{"type": "audio"}]}]}', "audio"),
    ],
)
def test_a_wrong_request_is_refused_with_the_key_named(body, named):
    with pytest.raises(BadRequest, match=named):
        parse(body)


@pytest.mark.parametrize(
    ("url", "named"),
    [
        ("http://example.org/a.png", "data: address"),
        ("file:///etc/passwd", "data: address"),
        ("data:image/png,abc", "base64"),
        ("data:image/png;base64,@@@", "base64"),
    ],
)
def test_only_whole_data_addresses_are_images(url, named):
    with pytest.raises(BadRequest, match=named):
        understand(ask([text("Who?"), {"type": "image_url", "image_url": {"url": url}}]))


@pytest.mark.parametrize("content", ["", "  \n", [IMAGE]])
def test_a_message_without_a_question_is_refused(content):
    with pytest.raises(BadRequest, match="no question"):
        understand(ask(content))


def test_only_an_assistant_turn_is_no_question():
    body = {"model": "m", "messages": [{"role": "assistant", "content": "hello"}]}
    with pytest.raises(BadRequest, match="no user message"):
        understand(parse(json.dumps(body).encode()))


@pytest.mark.parametrize(
    ("words", "thinks"),
    [
        ({}, False),
        ({"thinking": True}, True),
        ({"chat_template_kwargs": {"enable_thinking": True}}, True),
        ({"chat_template_kwargs": {"enable_thinking": False}, "thinking": True}, False),
    ],
)
def test_thinking_is_off_unless_switched_on(words, thinks):
    assert ask("Who?", **words).thinks() is thinks
