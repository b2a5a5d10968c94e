"""The evidence reader: it searches, picks sentences, cites their chunks, answers or declines."""

import json

import pytest

from remeasure.embedded import evidence_words
from remeasure.embedded.chat import BadRequest
from remeasure.embedded.evidence_reader import DECLINED, EvidenceReader
from remeasure.embedded.evidence_request import Chunk, chunks_of, kind_of, understand
from serverkit import said, served
from toolkit import Loop, WordEncoder, body, tool

RIVERS = {
    "river/0": ("Penobscot River", "The Penobscot River is a river in Maine. It ends in Penobscot Bay."),
    "river/1": ("Yukon", "The Yukon flows through Alaska. It is long."),
}
TOOLS = [tool("search", query="string"), tool("cite", chunk_ids="array")]
HAIKU_TOOLS = [tool("rag_search", query="string"), tool("rag_cite", chunk_ids="array")]


def builtin_form(ids) -> str:
    return "\n\n".join(
        f'[{one}] [rank {i} of {len(ids)}]\nSource: "{RIVERS[one][0]}"\nContent:\n{RIVERS[one][1]}'
        for i, one in enumerate(ids, start=1)
    )


def haiku_form(ids) -> str:
    return "\n\n---\n\n".join(
        f'[{one}] [rank {i} of {len(ids)}]\nSource: "{RIVERS[one][0]}" > Course\nType: paragraph\nContent:\n'
        f"{RIVERS[one][1]}"
        for i, one in enumerate(ids, start=1)
    )


def reader(threshold=0.0) -> EvidenceReader:
    return EvidenceReader(WordEncoder(), threshold)


# -- what a request says -------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", [builtin_form, haiku_form])
def test_chunks_are_read_in_the_forms_of_both_systems(form):
    assert chunks_of(form(["river/1", "river/0"])) == [
        Chunk("river/1", "Yukon", "The Yukon flows through Alaska. It is long."),
        Chunk(
            "river/0", "Penobscot River", "The Penobscot River is a river in Maine. It ends in Penobscot Bay."
        ),
    ]


@pytest.mark.parametrize(
    ("result", "found"),
    [
        ("No results found.", []),
        ("Error: all 5 searches are used.", []),
        ("", []),
        ("[1] a footnote\n[2]\nmore", []),
        ("[a] (score: 0.03)\nSome text.\n[1]\nMore.", [Chunk("a", "", "Some text.\n[1]\nMore.")]),
        ('[a b/0] Source: "A B"\nText.', [Chunk("a b/0", "A B", "Text.")]),
        ('head\n\n[x]\nSource: "T"\nContent:\nText.', [Chunk("x", "T", "Text.")]),
        # Headings of compacted evidence, as both systems write them; what a text says in brackets stays.
        (
            '[a]\nSource: "T"\nContent:\nOne.\n\n[Cited for: Why (so)?]\n\n[b]\nSource: "U"\nContent:\nTwo.',
            [Chunk("a", "T", "One."), Chunk("b", "U", "Two.")],
        ),
        (
            "[a] (score: 0.03)\nOne.\n[see note]\n\n[Cited evidence group 2]\n\n"
            "[b] (score: 0.02)\nTwo.\n\n[2]",
            [Chunk("a", "", "One.\n[see note]"), Chunk("b", "", "Two.\n\n[2]")],
        ),
        ("[x] [rank 1 of 1]", [Chunk("x", "", "")]),
        ("[x] [rank 1 of 1]\nSource: plain\nContent:\n", [Chunk("x", "plain", "")]),
    ],
)
def test_what_is_no_chunk_is_none(result, found):
    assert chunks_of(result) == found


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("search", "search"),
        ("rag_search", "search"),
        ("analysis_search", "search"),
        ("research", ""),
        ("cite", "cite"),
        ("rag_cite", "cite"),
        ("analysis_execute_code", "execute_code"),
        ("execute_code", "execute_code"),
        ("list", ""),
    ],
)
def test_a_tool_is_known_by_how_its_name_ends(name, kind):
    assert kind_of(name) == kind


def test_a_conversation_is_taken_apart():
    asked = understand(
        body(
            [
                {"role": "system", "content": "End with `ANSWER: <number>`."},
                {"role": "user", "content": "first"},
                {"role": "assistant", "content": "one"},
                {"role": "user", "content": [{"type": "text", "text": "second"}]},
            ],
            [*HAIKU_TOOLS, tool("other")],
        )
    )
    assert (asked.question, asked.before) == ("second", (("user", "first"), ("assistant", "one")))
    assert asked.tools == {"search": "rag_search", "cite": "rag_cite"}
    assert asked.wants_number and not asked.must_call and asked.calls == ()


@pytest.mark.parametrize(
    ("messages", "more", "text"),
    [
        ([{"role": "system", "content": "x"}], {}, "there is no question"),
        ([{"role": "user", "content": " \n"}], {}, "there is no question"),
        (
            [{"role": "user", "content": "q"}],
            {"thinking": True},
            "thinking: this reader has no thinking mode",
        ),
        (
            [
                {
                    "role": "user",
                    "content": [{"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}}],
                }
            ],
            {},
            "reads text only",
        ),
        ([{"role": "user", "content": "q"}], {"tool_choice": "required"}, "nothing left to call"),
    ],
)
def test_what_it_cannot_do_is_refused(messages, more, text):
    tools = [tool("other")] if "tool_choice" in more else ()
    with pytest.raises(BadRequest, match=text):
        reader().answer(body(messages, tools, **more))


# -- conversations -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("tools", "form"), [(TOOLS, builtin_form), (HAIKU_TOOLS, haiku_form)])
def test_it_searches_cites_and_answers_with_the_sentence_that_fits(tools, form):
    loop = Loop(reader(), tools, search=lambda told: form(["river/0", "river/1"]), cite=lambda told: "Cited.")
    reply = loop.ask("Penobscot ends in the bay?")
    names = [one["function"]["name"] for one in tools]
    assert loop.calls == [
        (names[0], {"query": "Penobscot ends in the bay?"}),
        (names[1], {"chunk_ids": ["river/0"]}),
    ]
    assert (reply.finish_reason, "It ends in Penobscot Bay." in reply.text) == ("stop", True)
    assert "Yukon" not in reply.text and reply.prompt_tokens > 20


@pytest.mark.parametrize(
    "result", ["No results found.", "Error: the search failed.", builtin_form(["river/1"])]
)
def test_where_nothing_fits_it_cites_nothing_and_says_so(result):
    loop = Loop(reader(), TOOLS, search=lambda told: result, cite=lambda told: "Nothing cited.")
    reply = loop.ask("Which composer wrote twelve operas about bees?")
    assert loop.calls[-1] == ("cite", {"chunk_ids": []}) and len(loop.calls) == 2
    assert reply.text == DECLINED


def test_a_question_that_leans_is_searched_with_words_of_earlier_ones_then_as_it_is():
    loop = Loop(reader(), TOOLS, search=lambda told: "Nothing was found.", cite=lambda told: "")
    loop.ask("Where does the Penobscot River start?")
    loop.results["search"] = lambda told: builtin_form(["river/1"])
    loop.ask("And how long is it?")
    queries = [told["query"] for kind, told in loop.calls if kind == "search"]
    assert queries == [
        "Where does the Penobscot River start?",
        "penobscot river start And how long is it?",
        "And how long is it?",
    ]


@pytest.mark.parametrize(
    ("question", "leaning"),
    [
        ("And the second one?", True),
        ("Is it long?", True),
        ("any awards", True),
        ("I meant photos in the air over mountains", True),
        ("Where does the Penobscot River start?", False),
        ("Which companies sell electric cars in Norway?", False),
    ],
)
def test_what_leans_on_what_was_said(question, leaning):
    assert evidence_words.leans(question) is leaning


CAPSULE = "[Evidence cited earlier in this conversation]\n\n[Cited evidence group 1]\n\n"


@pytest.mark.parametrize(
    ("shown", "cited"),
    [
        (builtin_form(["river/0"]), ["river/0"]),
        (CAPSULE + '[river/0] Source: "Penobscot River"\nIt ends in Penobscot Bay.', ["river/0"]),
        ("[Evidence retrieved for an earlier question, no longer shown.]", []),
    ],
)
def test_what_is_still_shown_of_earlier_questions_may_answer_one_that_leans_on_them(shown, cited):
    loop = Loop(reader(), TOOLS, search=lambda told: shown, cite=lambda told: "")
    loop.ask("Penobscot Bay?")
    loop.results["search"] = lambda told: "Nothing was found."
    loop.calls.clear()
    loop.ask("And it ends in?")
    assert loop.calls[-1] == ("cite", {"chunk_ids": cited})


def test_citing_again_is_not_tried_where_it_failed():
    loop = Loop(
        reader(), TOOLS, search=lambda told: builtin_form(["river/0"]), cite=lambda told: "Error: no ids."
    )
    reply = loop.ask("Penobscot River is a river in Maine?")
    assert [kind for kind, _ in loop.calls] == ["search", "cite"] and "Maine" in reply.text


def test_with_the_cite_tool_alone_it_cites_and_without_tools_it_answers():
    loop = Loop(reader(), TOOLS, search=lambda told: builtin_form(["river/0"]), cite=lambda told: "Cited.")
    loop.ask("Penobscot River is a river in Maine?")
    before_citing = loop.messages[:3]
    assert before_citing[-1]["role"] == "tool"
    only_cite = reader().answer(body(before_citing, TOOLS[1:]))
    assert only_cite.tool_calls[0].function.arguments == '{"chunk_ids": ["river/0"]}'
    for told in ({}, {"tools": TOOLS, "tool_choice": "none"}):
        none = reader().answer(body(before_citing, **told))
        assert not none.tool_calls and none.text.startswith("The Penobscot River is a river in Maine.")


def test_calls_that_cannot_be_read_are_looked_over():
    call = {"id": "c", "type": "function", "function": {"name": "search", "arguments": "{no json"}}
    messages = [
        {"role": "user", "content": "Penobscot River is a river in Maine?"},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c", "content": builtin_form(["river/0"])},
    ]
    assert reader().answer(body(messages, TOOLS)).tool_calls[0].function.name == "cite"


def test_equal_requests_get_equal_replies_whatever_came_between():
    loop = Loop(
        reader(), TOOLS, search=lambda told: builtin_form(["river/0", "river/1"]), cite=lambda told: ""
    )
    loop.ask("Penobscot River in Maine?")
    once = reader().answer(body(loop.messages[:3], TOOLS))
    engine = reader()
    engine.answer(body([{"role": "user", "content": "Yukon?"}], TOOLS))
    assert engine.answer(body(loop.messages[:3], TOOLS)) == once


def test_scores_are_kept_between_the_requests_of_a_conversation():
    engine = reader()
    loop = Loop(engine, TOOLS, search=lambda told: builtin_form(["river/0", "river/1"]), cite=lambda told: "")
    loop.ask("Penobscot River in Maine?")
    assert engine._encoder.n_scored == 4  # sentences, each once


def test_a_limit_of_tokens_cuts_off_and_a_stop_ends():
    messages = [{"role": "user", "content": "q"}]
    cut = reader().answer(body(messages, max_tokens=3))
    assert (cut.text, cut.completion_tokens, cut.finish_reason) == ("I do not", 3, "length")
    assert reader().answer(body(messages, stop=["enough"])).text == "I do not have "


def test_a_long_hostile_result_costs_little():
    long = builtin_form(["river/0"]) + "\nA river. " * 60_000
    engine = reader()
    loop = Loop(engine, TOOLS, search=lambda told: long, cite=lambda told: "")
    loop.ask("Penobscot River is a river in Maine?")
    assert engine._encoder.n_scored <= 16


# -- the real models -----------------------------------------------------------------------------------------


@pytest.mark.models
def test_the_server_searches_cites_and_answers_over_http(tmp_path, sources):
    files = {
        "model": "ms-marco-minilm-l-12-v2.onnx",
        "tokenizer": "ms-marco-minilm-l-12-v2.tokenizer.json",
    }
    with served("serve_evidence_reader.py", tmp_path, sources, files, threshold=0.0) as ask:
        question = "Where does the Penobscot River end?"
        first = ask(question, tools=TOOLS)["choices"][0]
        (call,) = first["message"]["tool_calls"]
        assert (first["finish_reason"], first["message"]["content"]) == ("tool_calls", None)
        assert json.loads(call["function"]["arguments"]) == {"query": question}
        messages = [
            {"role": "user", "content": question},
            first["message"],
            {"role": "tool", "tool_call_id": call["id"], "content": haiku_form(["river/1", "river/0"])},
        ]
        second = ask(None, messages=messages, tools=TOOLS)["choices"][0]["message"]
        assert json.loads(second["tool_calls"][0]["function"]["arguments"]) == {"chunk_ids": ["river/0"]}
        last = ask(None, messages=messages)
        assert said(last).endswith("It ends in Penobscot Bay.") and last["usage"]["prompt_tokens"] > 50
