"""What every model server keeps, asked in our neutral words through the HTTP executor.

The embedded page reader and language model run where their weights are, a real vLLM where ``--vllm-python``
names a Python that has it (with a tiny model of random weights, one token per character).
"""

import json

import msgspec
import pytest

import collect_responses
import real_vllm
from contractkit import LLM, Server, page_reader_files, text
from keeper import MemoryKeeper
from remeasure import executors, jsonl
from remeasure.errors import RemeasureError
from remeasure.executors import Call, VllmBatchSettings
from remeasure.files import sha256_bytes
from remeasure.records import Request, Response

PAGE_READER = pytest.param("page_reader", marks=pytest.mark.models)
PLAIN_LLM = pytest.param("plain_llm", marks=pytest.mark.models)
# Starting takes half a minute, the first schema a quarter.
VLLM = pytest.param("vllm", marks=[pytest.mark.vllm, pytest.mark.timeout(400)])
RIVERS = "Tell me about rivers."
CAPITAL = "What is the capital of Ruritania?"


def of(*servers):
    return pytest.mark.parametrize("server", servers, indirect=True)


def message(entry) -> dict:
    """The first choice of the reply as it came."""
    return msgspec.json.decode(msgspec.json.encode(entry.raw))["choices"][0]


@of(PAGE_READER, PLAIN_LLM, VLLM)
def test_a_text_gets_an_answer_with_usage_and_the_served_name(server):
    entry = server.ask(RIVERS, temperature=0.0)
    assert entry.status in ("answered", "cut_off") and entry.text
    assert entry.model == "slug"
    assert entry.usage["prompt_tokens"] > 10 and 0 < entry.usage["completion_tokens"] <= 12
    assert server.ask(RIVERS, temperature=0.0).text == entry.text


@of(PLAIN_LLM, VLLM)
def test_a_limit_of_tokens_cuts_off(server):
    entry = server.ask(RIVERS, temperature=0.0, max_tokens=5)
    assert (entry.status, entry.finish, entry.error) == ("cut_off", "length", "cut_off: 5 tokens")
    assert entry.usage["completion_tokens"] == 5


@of(PAGE_READER)
def test_a_limit_of_tokens_cuts_off_what_is_thought(server):
    whole = server.ask([text(CAPITAL), server.picture()], thinking=True, max_tokens=99)
    entry = server.ask([text(CAPITAL), server.picture()], thinking=True, max_tokens=5)
    assert (entry.status, entry.error) == ("cut_off", "cut_off: 5 tokens")
    assert whole.status == "answered" and whole.text.startswith(entry.text)


@of(PLAIN_LLM, VLLM)
def test_a_stop_string_ends_the_answer_before_it(server):
    free = server.ask(RIVERS, temperature=0.0).text
    stop = free[3:5]
    entry = server.ask(RIVERS, temperature=0.0, stop=[stop])
    assert (entry.status, entry.finish) == ("answered", "stop")
    assert entry.text == free[: free.index(stop)]


@of(PAGE_READER)
def test_a_stop_string_that_does_not_occur_changes_nothing(server):
    asked = [text(CAPITAL), server.picture()]
    assert server.ask(asked, stop=["\n\n", "####"]).text == server.ask(asked).text == "Strelsau"


@of(PLAIN_LLM, VLLM)
def test_at_temperature_1_the_seed_decides(server):
    one, same, other = (server.ask(RIVERS, temperature=1.0, seed=seed) for seed in (1, 1, 2))
    assert one.text == same.text != other.text


@of(PAGE_READER)
def test_a_page_is_read(server):
    entry = server.ask([server.picture(), text(CAPITAL)])
    assert (entry.status, entry.text) == ("answered", "Strelsau")


@of(VLLM)
def test_a_picture_takes_its_tokens(server):
    # The template makes "user:Hello<end>assistant:" of it, a token per character and one for <end>.
    without = server.ask([text("Hello")])
    assert without.usage["prompt_tokens"] == len("user:Hello") + 1 + len("assistant:")
    # 56 / 28 squared are 4 tokens, and one at each side.
    shown = server.ask([text("Hello"), server.picture()])
    assert shown.usage["prompt_tokens"] == without.usage["prompt_tokens"] + 6
    twice = server.ask([server.picture(), text("Hello"), server.picture()])
    assert twice.usage["prompt_tokens"] == without.usage["prompt_tokens"] + 12


@of(PLAIN_LLM)
def test_a_model_that_sees_nothing_refuses_a_picture_at_once(server):
    entry = server.ask([text("Hello"), server.picture()])
    assert (entry.status, entry.attempts, entry.text) == ("failed", 1, None)
    assert (
        entry.error == "rejected: status 400: messages: this model reads text only, the request has an image"
    )


@of(VLLM)
def test_too_many_pictures_are_refused_at_once(server):
    entry = server.ask([server.picture(), server.picture(), server.picture()])
    assert (entry.status, entry.attempts) == ("failed", 1)
    assert "At most 2 image(s)" in entry.error


@of(PLAIN_LLM, VLLM)
def test_a_prompt_that_is_too_long_is_refused_at_once(server):
    entry = server.ask("river " * 9000)
    assert (entry.status, entry.attempts) == ("failed", 1)
    assert entry.error.startswith("context_overflow: status 400: ") and "context" in entry.error


@of(PAGE_READER)
def test_thinking_is_shown_where_it_is_switched_on(server):
    asked = [text(CAPITAL), server.picture()]
    assert server.ask(asked, thinking=False, max_tokens=99).text == "Strelsau"
    thought = server.ask(asked, thinking=True, max_tokens=99).text
    assert thought == "<think>\nRuritania - Capital: Strelsau\n</think>\n\nStrelsau"


@of(PLAIN_LLM)
def test_a_model_that_cannot_think_takes_off_and_refuses_on(server):
    assert server.ask(RIVERS, thinking=False).text == server.ask(RIVERS).text
    entry = server.ask(RIVERS, thinking=True)
    assert (entry.status, entry.attempts) == ("failed", 1)
    assert "this model has no thinking mode" in entry.error


@of(VLLM)
def test_the_thinking_switch_reaches_the_chat_template(server):
    said_nothing, on, off = (server.ask(RIVERS, thinking=switch) for switch in (None, True, False))
    # The template ends the prompt with <think></think>, two tokens, where thinking is off.
    assert on.usage["prompt_tokens"] == said_nothing.usage["prompt_tokens"]
    assert off.usage["prompt_tokens"] == on.usage["prompt_tokens"] + 2


@of(PLAIN_LLM, VLLM)
def test_an_answer_has_the_shape_that_is_asked_for(server):
    schema = {"type": "string", "enum": ["yes", "no"]}
    shape = {"type": "json_schema", "json_schema": {"name": "verdict", "schema": schema}}
    entry = server.ask("Are rivers wet?", temperature=1.0, seed=1, response_format=shape)
    assert (entry.status, json.loads(entry.text) in ("yes", "no")) == ("answered", True)


@of(PLAIN_LLM, VLLM)
def test_log_probabilities_come_with_every_token_and_stay_in_the_journal(server):
    entry = server.ask(RIVERS, temperature=0.0, max_tokens=4, logprobs=True, top_logprobs=2)
    told = message(entry)["logprobs"]["content"]
    assert len(told) == entry.usage["completion_tokens"] == 4
    assert "".join(token["token"] for token in told) == entry.text
    for token in told:  # greedy: the token is the likeliest
        first, second = token["top_logprobs"]
        assert first["logprob"] == token["logprob"] <= 0 and second["logprob"] <= first["logprob"]


@of(PAGE_READER)
@pytest.mark.parametrize("words", [{"response_format": {"type": "json_object"}}, {"logprobs": True}])
def test_a_word_that_a_server_does_not_speak_is_named_before_anything_is_sent(server, words):
    with pytest.raises(RemeasureError, match=f"'embedded' cannot express {next(iter(words))}="):
        server.ask(CAPITAL, **words)


@of(PAGE_READER, PLAIN_LLM, VLLM)
def test_another_model_name_is_one_line_that_names_both(server):
    with pytest.raises(RemeasureError) as found:
        server.ask(RIVERS, served_name="slugs")
    assert "\n" not in str(found.value)
    assert "'slugs'" in str(found.value) and "slug" in str(found.value).replace("slugs", "")


@of(PAGE_READER, PLAIN_LLM, VLLM)
def test_a_server_says_what_it_is(server, request):
    program = {"page_reader": "serve_page_reader.py", "plain_llm": "serve_llm.py", "vllm": "vllm "}
    assert server.description.startswith(program[request.node.callspec.params["server"]])
    assert "\n" not in server.description


# -- a whole cell, for which the step itself starts and stops the server -------------------------------------


def ask_cell(folder, files, program, dialect, options):
    """Ask three questions, the second of which is too long."""
    rows = [
        Request(
            custom_id=f"q-{number}",
            body={"model": "slug", "messages": [{"role": "user", "content": words}], "max_tokens": 5},
        )
        for number, words in enumerate(("Hello", "river " * 9000, "Hello you"))
    ]
    jsonl.write(folder / "requests.jsonl", rows)
    executor = {
        **{"kind": "server", "program": program, "files": files, "options": options},
        **{"dialect": dialect, "concurrency": 2, "timeout_s": 100},
    }
    identity = {"model": "slug", "served_name": "slug", "identity": {}, "max_failed_share": 0.5}
    words = ["--settings", json.dumps(identity), "--executor", json.dumps(executor)]
    for option, name in (("requests", "requests.jsonl"), ("journal", "journal")):
        words += [f"--{option}", str(folder / name)]
    for option, name in (("out", "responses.jsonl"), ("record", "answers.json")):
        words += [f"--{option}", str(folder / name)]
    assert collect_responses.main(words) == 0
    found = list(jsonl.read(folder / "responses.jsonl", Response))
    record = json.loads((folder / "answers.json").read_text())
    return [row.status for row in found], record["facts"]["answered_by"]


@pytest.mark.models
def test_a_cell_of_the_plain_llm_is_asked(tmp_path, sources):
    files = {"llm": str(sources / LLM)}
    statuses, by = ask_cell(tmp_path, files, "serve_llm.py", "llamacpp", {"threads": 1})
    assert statuses == ["cut_off", "failed", "cut_off"]
    assert [one["server"].partition(",")[0] for one in by] == ["serve_llm.py"]


@pytest.mark.models
def test_a_cell_of_the_page_reader_is_asked(tmp_path, sources):
    files = page_reader_files(sources, tmp_path)
    statuses, by = ask_cell(tmp_path, files, "serve_page_reader.py", "embedded", {"threads": 1})
    assert statuses[0] in ("answered", "cut_off") and len(statuses) == 3
    assert [one["server"].partition(",")[0] for one in by] == ["serve_page_reader.py"]


@pytest.mark.vllm
@pytest.mark.timeout(400)
def test_a_cell_of_vllm_is_asked(tmp_path, tiny_model):
    files = {"model": str(tiny_model)}
    statuses, by = ask_cell(tmp_path, files, "serve_vllm.py", "vllm", real_vllm.OPTIONS)
    assert statuses == ["cut_off", "failed", "cut_off"]
    assert [one["server"].startswith("vllm ") for one in by] == [True]


@pytest.mark.vllm
@pytest.mark.timeout(400)
def test_a_file_is_answered_by_run_batch(tmp_path, tiny_model):
    asker = Server("", "vllm", tmp_path, "")
    contents = {
        "text": "Hello",
        "image": [asker.picture(), text("Hello")],
        "too_long": "river " * 900,
        "too_many": [asker.picture()] * 3,
    }
    calls = [
        Call(
            key=sha256_bytes(name.encode()),
            custom_id=name,
            body={"model": "slug", "messages": [{"role": "user", "content": content}], "max_tokens": 5},
        )
        for name, content in contents.items()
    ]
    settings = VllmBatchSettings(dialect="vllm", model=str(tiny_model), options=real_vllm.OPTIONS)
    keeper = MemoryKeeper()
    with executors.opened(settings, "slug", tmp_path, tmp_path / "journal") as executor:
        executor.run(iter(calls), keeper)
    found = {entry.custom_id: entry for entry in keeper.entries}
    assert {name: entry.status for name, entry in found.items()} == {
        "text": "cut_off",
        "image": "cut_off",
        "too_long": "failed",
        "too_many": "failed",
    }
    # As through the server: "user:Hello<end>assistant:", and 4 tokens and 2 marks for the picture.
    assert found["text"].usage["prompt_tokens"] == 21
    assert found["image"].usage["prompt_tokens"] == 27
    assert "maximum context length" in found["too_long"].error
    assert "At most 2 image(s)" in found["too_many"].error
