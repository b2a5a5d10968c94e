"""Answers of haiku.rag's capabilities: what is sent, what is counted, what ends a question."""

import json

import pytest

from haikukit import Scripted, call, chunk_ids, returned, say

pytestmark = pytest.mark.haiku

ASKED = [{"speaker": "user", "text": "What is the capital of France?"}]
WORDS = {
    "preamble": None,
    "target": "rag",
    "filter": None,
    "thinking": None,
    "max_tokens": 99,
    "temperature": 0.3,
}


@pytest.fixture()
def server():
    with Scripted() as running:
        yield running


@pytest.fixture()
def ask(adapter, filled, server):
    """Answer one question by a script, with the database open for reading."""
    assert adapter.open(server, filled)["ok"]

    def one(*script, turns=ASKED, **words):
        server.script = list(script)
        return adapter("answer", turns=turns, **(WORDS | words))

    return one


def tools_of(body):
    return [tool["function"]["name"] for tool in body.get("tools", [])]


def test_an_answer_comes_with_all_that_was_done(ask, haiku, server):
    search, cite = haiku.tool("search"), haiku.tool("cite")
    told = ask(
        call(search, query="capital of France"),
        lambda body: call(cite, chunk_ids=chunk_ids(body)[:2]),
        say("Paris."),
    )
    trace = told["trace"]
    assert (told["text"], told["finish"]) == ("Paris.", "stop")
    assert trace["cited"] == ["paris", "berlin"] and len(trace["cited_chunks"]) == 2
    assert trace["searched"][:2] == ["paris", "berlin"]
    assert trace["citation_status"] == "grounded"
    # What the server says of its first three replies.
    assert trace["requests"] == [{"input_tokens": 100 + n, "output_tokens": 7} for n in (1, 2, 3)]
    assert trace["tools"] == {"cite": 1, "search": 1}
    assert trace["events"] == {"search_keys": 1}
    body = server.bodies[0]
    assert (body["model"], body["max_completion_tokens"], body["temperature"]) == ("scripted", 99, 0.3)
    expected = ["search", "execute_code", "cite"] if haiku.merged else ["rag_search", "rag_cite"]
    assert tools_of(body) == expected


def test_what_was_said_before_is_history_without_tools_and_the_domain_comes_first(ask, server):
    turns = [
        {"speaker": "user", "text": "Hello?"},
        {"speaker": "agent", "text": "Yes."},
        {"speaker": "user", "text": "And now?"},
    ]
    told = ask(say("ok"), turns=turns, preamble="About cities.")
    messages = server.bodies[0]["messages"]
    assert [message["role"] for message in messages] == ["system", "user", "assistant", "user"]
    assert messages[0]["content"].startswith("About cities.\n\n#")
    assert [message["content"] for message in messages[1:]] == ["Hello?", "Yes.", "And now?"]
    assert told["trace"]["citation_status"] == "missing"


def test_words_of_sampling_and_the_switch_for_thinking_are_sent(ask, server):
    ask(say("ok"), thinking=True, top_p=0.9, seed=3)
    body = server.bodies[0]
    assert (body["top_p"], body["seed"]) == (0.9, 3)
    assert body["chat_template_kwargs"] == {"enable_thinking": True}


def test_an_empty_citation_says_that_nothing_grounds_the_answer(ask, haiku):
    trace = ask(call(haiku.tool("cite"), chunk_ids=[]), say("I do not know."))["trace"]
    assert (trace["citation_status"], trace["cited"]) == ("ungrounded", [])


def test_damaged_ids_are_repaired_and_unknown_ones_counted(ask, haiku):
    cite = haiku.tool("cite")
    trace = ask(
        call(haiku.tool("search"), query="capital of France"),
        call(cite, chunk_ids=["bogus"]),
        # A bracket too many, two characters too few: 34 of 36 are like it.
        lambda body: call(cite, chunk_ids=[f"[{chunk_ids(body)[0][:-2]}]", "nothing-like-it"]),
        say("Paris."),
    )["trace"]
    assert trace["cited"] == ["paris"]
    assert trace["events"] == {
        "repaired_citations": 1,
        "search_keys": 1,
        "tool_errors": 1,
        "unresolved_citations": 2,
    }


def test_tools_that_there_are_not_and_arguments_that_are_none_are_counted(ask, haiku):
    search = haiku.tool("search")
    told = ask(call("fetch", url="x"), call(search, raw="{bad"), call(search, words="x"), say("ok"))
    assert (told["text"], told["trace"]["events"]) == ("ok", {"unknown_tools": 3})


def test_a_filter_holds_for_searches_of_answers_and_empty_ones_are_counted(ask, haiku):
    search = haiku.tool("search")
    told = ask(call(search, query="capital"), say("ok"), filter="uri = 'berlin'")
    assert told["trace"]["searched"] == ["berlin"]
    told = ask(call(search, query="capital"), say("ok"), filter="uri = 'none'")
    assert told["trace"]["events"] == {"empty_searches": 1, "search_keys": 1}
    assert ask(say("ok"), filter="nonsense ((")["kind"] == "bad_filter"


def test_a_model_that_never_stops_calling_tools_ends_at_the_request_limit(ask, haiku, server):
    told = ask(lambda body: call(haiku.tool("search"), query="capital"))
    # 20 requests, 30 where code belongs to it; then citing is left, and it calls what is gone.
    limit = 30 if haiku.merged else 20
    assert (told["ok"], told["kind"], len(server.bodies)) == (False, "request_limit", limit + 2)
    assert tools_of(server.bodies[limit - 1])[0] == haiku.tool("search")
    assert tools_of(server.bodies[limit]) == [haiku.tool("cite")]
    events = told["trace"]["events"]
    assert (events["rejected_searches"], events["request_limit_reached"]) == (limit - 5, 1)
    assert len(told["trace"]["requests"]) == limit + 2


def test_an_answer_at_the_limit_is_an_answer(ask, adapter, filled, haiku, server):
    options = {"request_limit": 2, "max_searches": 1, "search_limit": 1}
    adapter.open(server, filled, options=options)
    search, cite = haiku.tool("search"), haiku.tool("cite")
    told = ask(
        call(search, query="capital of France"),
        call(search, query="capital of Spain"),
        lambda body: call(cite, chunk_ids=chunk_ids(body)),
        say("Paris."),
    )
    assert (told["text"], told["trace"]["cited"], told["trace"]["searched"]) == (
        "Paris.",
        ["paris"],
        ["paris"],
    )
    assert told["trace"]["events"] == {"rejected_searches": 1, "request_limit_reached": 1, "search_keys": 1}


def test_a_model_that_says_nothing_has_no_answer(ask):
    told = ask(say(""))
    assert (told["kind"], told["trace"]["events"]) == ("no_answer", {"null_answers": 2})
    told = ask(say(None, "length"))
    assert (told["kind"], told["trace"]["events"]) == ("no_answer", {"null_answers": 1})


def test_an_answer_that_is_cut_off_says_so(ask):
    told = ask(say("Par", "length"))
    assert (told["ok"], told["text"], told["finish"]) == (True, "Par", "length")


@pytest.mark.parametrize(
    ("status", "said", "kind"),
    [
        (400, "This model's maximum context length is 10 tokens", "context_length"),
        (400, "no", "refused"),
        (401, "no such key", "fatal"),
        (404, "no such model", "fatal"),
        (500, "boom", "server_error"),
    ],
)
def test_what_the_server_refuses_has_its_class(ask, server, status, said, kind):
    server.status["/v1/chat/completions"] = (status, said)
    told = ask(say("ok"))
    assert (told["kind"], said in told["error"], told["trace"]["requests"]) == (kind, True, [])


def test_a_failure_in_the_middle_keeps_what_was_done(ask, haiku, server):
    def broken(body):
        server.status["/v1/embeddings"] = (500, "boom")
        return call(haiku.tool("search"), query="Germany")

    told = ask(call(haiku.tool("search"), query="capital of France"), broken)
    assert (told["kind"], told["trace"]["tools"], len(told["trace"]["requests"])) == (
        "server_error",
        {"search": 2},
        2,
    )
    assert told["trace"]["searched"][0] == "paris"


def test_an_answerer_that_is_down_or_that_there_is_not(adapter, filled, server):
    gone = {"base_url": "http://127.0.0.1:9/v1", "model": "m", "key_env": None, "timeout_s": 5}
    adapter.open(server, filled, answerer=gone)
    assert adapter("answer", turns=ASKED, **WORDS)["kind"] == "connection"
    adapter.open(server, filled, answerer=None)
    assert "this system only searches" in adapter("answer", turns=ASKED, **WORDS)["error"]


def test_code_is_run_counted_and_cited_from(ask, haiku):
    run, cite = haiku.tool("execute_code", "analysis"), haiku.tool("cite", "analysis")
    told = ask(
        call(run, code="print(len(await list_documents()))"),
        lambda body: call(run, code=f"print({returned(body).strip()} / 0)"),
        call(run, code="found = await search('capital of France')\nprint(found[0]['chunk_id'])"),
        lambda body: call(cite, chunk_ids=[returned(body).strip()]),
        say("ANSWER: 4"),
        target=haiku.code_target,
    )
    assert (told["text"], told["trace"]["cited"]) == ("ANSWER: 4", ["paris"])
    assert told["trace"]["tools"] == {"cite": 1, "execute": 3}
    assert told["trace"]["events"] == {"search_keys": 1, "tool_errors": 1}


def test_code_has_a_budget_and_a_limit_of_its_own(ask, haiku):
    told = ask(
        lambda body: call(haiku.tool("execute_code", "analysis"), code="print(1)"), target=haiku.code_target
    )
    # 30 requests, 15 programs.
    assert (told["kind"], told["trace"]["events"]["rejected_executions"]) == ("request_limit", 15)


def test_a_target_that_the_version_lacks_is_said(ask, haiku):
    told = ask(say("ok"), target="analysis")
    if haiku.merged:
        assert (told["kind"], told["error"]) == ("fatal", "haiku.rag 0.101.1: no 'analysis'; rag")
    else:
        assert told["ok"]


@pytest.mark.parametrize("compact", [True, False])
def test_a_conversation_goes_on_in_another_process_with_or_without_its_evidence(
    adapter, keyed, filled, haiku, server, compact
):
    adapter.open(server, filled)
    search, cite = haiku.tool("search"), haiku.tool("cite")

    def turn(word, answer):
        return [
            call(search, query=f"capital of {word}"),
            lambda body: call(cite, chunk_ids=chunk_ids(body)[:1]),
            say(answer),
        ]

    server.script = turn("France", "Paris.")
    first = adapter("converse", question="The capital of France?", carry=None, compact=compact, **WORDS)
    assert first["trace"]["cited"] == ["paris"]
    carry = json.loads(json.dumps(first["carry"]))
    keyed.open(server, filled)
    server.script = turn("Germany", "Berlin.")
    second = keyed("converse", question="And of Germany?", carry=carry, compact=compact, **WORDS)
    assert (second["text"], second["trace"]["cited"]) == ("Berlin.", ["berlin"])
    assert second["trace"]["tools"] == {"cite": 1, "search": 1}
    assert len(second["trace"]["requests"]) == 3
    messages = server.bodies[3]["messages"]
    roles = [message["role"] for message in messages]
    assert roles == ["system", "user", "assistant", "tool", "assistant", "tool", "assistant", "user"]
    earlier = messages[3]["content"]
    # What was cited is kept, what was only found is not.
    assert "Paris is the capital of France." in earlier
    assert ("Snakes eat mice" in earlier) is (not compact)
    third = adapter("converse", question="Why?", carry={"history": 3}, compact=compact, **WORDS)
    assert (third["kind"], third["error"].startswith("carry: not that of an earlier turn")) == ("fatal", True)


def test_a_key_of_the_answerer_is_sent_to_it_alone(keyed, haiku, server, filled):
    near = {"base_url": server.base_url, "model": "scripted", "key_env": "TOLD", "timeout_s": 5}
    keyed.open(server, filled, answerer=near)
    server.script = [call(haiku.tool("search"), query="x"), say("ok")]
    assert keyed("answer", turns=ASKED, **WORDS)["ok"]
    sent = {(each["path"], each["authorization"]) for each in server.headers}
    assert sent == {("/v1/chat/completions", "Bearer sk-told"), ("/v1/embeddings", "Bearer none")}
