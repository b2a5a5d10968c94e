"""A system behind a small real adapter: searches, answers, conversations, and everything that goes wrong."""

import json
import time

import pytest

import systemkit
from remeasure.errors import RemeasureError
from remeasure.executors import Call
from remeasure.executors.system import SystemExecutor
from remeasure.records import JournalEntry, Turn
from remeasure.systems import adapter, conversing, replying, tasks


@pytest.fixture(autouse=True)
def toy(monkeypatch):
    """The toy adapter is found among the tests."""
    monkeypatch.setattr(adapter, "FOLDER", systemkit.TESTS)


@pytest.fixture
def record(tmp_path):
    """A database of three documents."""
    return systemkit.write_database(tmp_path)


def calls_of(*requests):
    """Calls whose turns of conversations follow one another as they stand."""
    before = None
    for request in requests:
        turns = len(request.body["messages"])
        after = before if request.body["task"]["do"] == "converse" and turns > 1 else None
        yield Call(key=request.custom_id, custom_id=request.custom_id, body=request.body, after=after)
        before = request.custom_id


def run(record, *requests, keeper=None, **settings):
    keeper = keeper or systemkit.Kept()
    with SystemExecutor(systemkit.system(record, **settings), record.parent / "journal") as executor:
        executor.run(calls_of(*requests), keeper)
    return keeper.entries


def search(custom_id, query, **task):
    return systemkit.request(custom_id, query, do="search", **task)


def converse(custom_id, *questions):
    return systemkit.request(custom_id, *questions, do="converse", compact=False)


# -- what works --------------------------------------------------------------------------------------------


def test_a_search_gives_hits_and_the_ranked_documents_as_text(record):
    found = run(record, search("q1", "ashes of volcanoes, summer"))["q1"]
    assert (found.status, found.text) == ("answered", "d1\nd3")
    assert [hit.uri for hit in found.trace.found] == ["d1", "d3"]
    assert [hit.score for hit in found.trace.found_documents] == [2.0, 1.0]
    assert found.usage is None and found.trace.seconds >= 0


def test_an_empty_search_is_an_answer(record):
    found = run(record, search("q1", "xylophone"))["q1"]
    assert (found.status, found.text, found.trace.found) == ("answered", "", ())


def test_an_answer_has_a_trace_and_what_its_requests_used(record):
    asked = systemkit.request("q1", "first", "said", "And then?")
    found = run(record, asked)["q1"]
    assert (found.status, found.text, found.finish) == ("answered", "2 before: And then?", "stop")
    assert found.usage == {"prompt_tokens": 12, "completion_tokens": 2}
    assert found.trace.cited == ("d1",) and found.trace.tools == {"search": 1}
    assert found.server == "toy_adapter (toy 1.0)"


def test_an_answer_without_text_is_empty_and_a_cut_one_is_cut_off(record):
    found = run(record, systemkit.request("q1", "nothing"), systemkit.request("q2", "cut"))
    assert (found["q1"].status, found["q1"].text) == ("answered", "")
    assert (found["q2"].status, found["q2"].finish) == ("cut_off", "length")


def test_each_turn_gets_what_the_turn_before_carried_on(record):
    found = run(record, converse("c-1", "a"), converse("c-2", "a", "b"), converse("c-3", "a", "b", "c"))
    assert [found[f"c-{n}"].text for n in (1, 2, 3)] == ["0 before: a", "2 before: b", "4 before: c"]
    assert found["c-1"].trace.before == ()
    assert found["c-3"].trace.before == (
        Turn(speaker="user", text="a"),
        Turn(speaker="agent", text="0 before: a"),
        Turn(speaker="user", text="b"),
        Turn(speaker="agent", text="2 before: b"),
    )
    assert found["c-2"].raw == {"said": ["a", "0 before: a", "b", "2 before: b"]}


def test_a_conversation_goes_on_from_what_was_kept_of_it(record):
    whole = [converse("c-1", "a"), converse("c-2", "a", "b"), converse("c-3", "a", "b", "c")]
    first = run(record, *whole)
    kept = systemkit.Kept({name: first[name] for name in ("c-1", "c-2")})
    with SystemExecutor(systemkit.system(record), record.parent / "journal") as executor:
        call = Call(key="c-3", custom_id="c-3", body=whole[2].body, after="c-2")
        executor.run(iter([call]), kept)
    assert [entry.custom_id for entry in kept.new] == ["c-3"]
    assert kept.entries["c-3"].text == "4 before: c"
    assert kept.entries["c-3"].trace.before == first["c-3"].trace.before


def test_a_failed_turn_ends_its_conversation_and_no_other(record):
    asked = [converse("c-1", "a"), converse("c-2", "a", "limit"), converse("c-3", "a", "limit", "b")]
    found = run(record, *asked, converse("e-1", "z"))
    assert [found[name].status for name in ("c-1", "c-2", "c-3", "e-1")] == [
        "answered",
        "failed",
        "not_sent",
        "answered",
    ]
    assert found["c-2"].error == "request_limit: said limit"
    assert found["c-2"].usage == {"prompt_tokens": 12, "completion_tokens": 2}
    assert found["c-3"].error == "not_sent: an earlier turn failed"


def test_a_turn_behind_a_turn_without_an_answer_starts_nothing(record):
    kept = systemkit.Kept()
    call = Call(key="c-2", custom_id="c-2", body=converse("c-2", "a", "b").body, after="c-1")
    with SystemExecutor(systemkit.system(record, adapter="there_is_none"), record.parent) as executor:
        executor.run(iter([call]), kept)
    assert kept.entries["c-2"].status == "not_sent"


def test_conversations_are_shared_out_between_adapters(record):
    began = time.monotonic()
    options = {"answer_s": 0.5}
    asked = [converse(f"{name}-{n}", *"abc"[:n]) for name in "wxyz" for n in (1, 2)]
    found = run(record, *asked, concurrency=4, options=options)
    assert [found[f"{name}-2"].text for name in "wxyz"] == ["2 before: b"] * 4
    assert time.monotonic() - began < 3.5  # one after the other: 4 s and the starts


# -- what goes wrong ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("word", "error"),
    [
        ("break", "server_error: the adapter ended with exit status 3"),
        ("junk", "server_error: the adapter wrote what is no reply: 'Loading weights: 100%'"),
        ("huge", "server_error: the adapter wrote a line of more than 1 MiB"),
        ("twice", "server_error: the adapter wrote a reply to another command"),
        ("hang", "timeout: no reply within 2 s"),
        ("limit", "request_limit: said limit"),
        ("odd", "server_error: said odd"),
    ],
)
def test_what_goes_wrong_with_one_question_costs_that_question(record, word, error, monkeypatch):
    monkeypatch.setattr(adapter, "LONGEST_REPLY_BYTES", 1 << 20)
    asked = [systemkit.request("q1", "fine"), systemkit.request("q2", word), systemkit.request("q3", "well")]
    found = run(record, *asked, case_timeout_s=2.0)
    assert [found[name].status for name in ("q1", "q2", "q3")] == ["answered", "failed", "answered"]
    assert found["q2"].error == error


def test_a_reply_that_comes_before_its_command_is_no_answer(record):
    asked = [
        systemkit.request("q1", "ahead"),
        systemkit.request("q2", "fine"),
        systemkit.request("q3", "well"),
    ]
    found = run(record, *asked)
    assert found["q1"].text == "a"
    assert found["q2"].error == "server_error: the adapter wrote a reply to another command"
    assert found["q3"].text == "0 before: well"


def test_a_key_that_an_adapter_logs_does_not_stay_there(record, monkeypatch):
    monkeypatch.setenv("TOY_API_KEY", "sk-0123456789abcdef")
    answerer = systemkit.part("toy-answerer", api_key_env="TOY_API_KEY")
    found = run(record, systemkit.request("q1", "leak"), answerer=answerer)
    assert found["q1"].status == "answered"
    said = (record.parent / "journal" / "adapter.log").read_text()
    assert "('TOY_API_KEY', '[key]')" in said and "sk-0123456789abcdef" not in said


def test_a_count_that_cannot_be_is_no_answer():
    reply = {"ok": True, "text": "a", "trace": {"requests": [{"input_tokens": 10**30, "output_tokens": 1}]}}
    told = replying.of_answer(reply, 1.0)
    assert told.error == "server_error: the adapter's answer is none: a count is above 1000000000000"


def test_a_hit_whose_uri_is_two_lines_is_no_hit():
    hits = [{"uri": "a\nb", "chunk": "1", "score": 1.0}]
    told = replying.of_search({"found": hits, "found_documents": hits}, 5, 1.0)
    assert told.error == (
        "server_error: the adapter gave a hit without a uri, or one that is no line of text"
    )


def test_one_search_that_breaks_costs_none_of_those_beside_it(record):
    found = run(record, *(search(f"q{n}", "break" if n == 3 else "rivers") for n in range(6)))
    assert [found[f"q{n}"].status for n in range(6)] == ["answered"] * 3 + ["failed"] + ["answered"] * 2


def test_a_model_that_cannot_be_reached_is_asked_three_times(record, monkeypatch):
    monkeypatch.setattr("remeasure.executors.system._WAITS_S", (0.01, 0.01))
    keeper = systemkit.Kept()
    found = run(record, systemkit.request("q1", "down"), keeper=keeper)
    assert found["q1"].error == "connection: said down"
    assert keeper.n_sent == {"q1": 3} and found["q1"].attempts == 3


def test_an_adapter_is_started_again_three_times_and_no_more(record):
    keeper = systemkit.Kept()
    with pytest.raises(RemeasureError, match="started 3 times again without an answer.*about to break"):
        run(
            record,
            *(systemkit.request(f"q{n}", "break", str(n), f"break {n}") for n in range(9)),
            keeper=keeper,
        )
    assert [entry.custom_id for entry in keeper.new] == ["q0", "q1", "q2", "q3"]


def test_what_ends_everything_is_one_line(record):
    with pytest.raises(RemeasureError, match="said end; repair the cause and run the same command again"):
        run(record, systemkit.request("q1", "end"))


def test_a_bad_filter_is_said_once(record):
    with pytest.raises(
        RemeasureError, match="filter 'bad thing': bad_filter: near bad: syntax error; correct `filter`"
    ):
        run(record, search("q1", "rivers", filter="bad thing"))


def test_nothing_is_asked_beyond_the_limit_of_money(record):
    keeper = systemkit.Kept(enough_after=1)
    with pytest.raises(RemeasureError, match="spent enough"):
        run(record, systemkit.request("q1", "a"), systemkit.request("q2", "b"), keeper=keeper)
    assert len(keeper.new) == 1


@pytest.mark.parametrize(
    ("stamp", "said"),
    [
        ({"model": "other", "vector_dim": 4}, "was built with embedder 'other' of 4 dimensions"),
        (
            {"model": "toy-embedder", "vector_dim": 8},
            "was built with embedder 'toy-embedder' of 8 dimensions",
        ),
        ({}, "does not say which embedder"),
    ],
)
def test_a_database_of_another_embedder_is_refused_with_both_sides(tmp_path, stamp, said):
    record = systemkit.write_database(tmp_path, stamp=stamp)
    with pytest.raises(RemeasureError, match=said) as refused:
        run(record, search("q1", "rivers"))
    assert "the run configures 'toy-embedder' of 4 dimensions" in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_record_of_another_embedder_is_refused_before_anything_is_started(tmp_path):
    record = systemkit.write_database(tmp_path)
    told = json.loads(record.read_text())
    told["facts"]["stamp"]["model"] = "other"
    record.write_text(json.dumps(told))
    with pytest.raises(RemeasureError, match="toy.json: the database was built with embedder 'other' of 4"):
        run(record, search("q1", "rivers"), adapter="not there")


def test_an_adapter_that_there_is_not_is_named(record):
    with pytest.raises(RemeasureError, match="no file scripts/systems/toy.py"):
        run(record, search("q1", "rivers"), adapter="toy")


def test_a_system_without_an_answerer_cannot_answer(record):
    with pytest.raises(RemeasureError, match="has no `answerer`"):
        run(record, systemkit.request("q1", "a"), answerer=None)
    assert run(record, search("q1", "rivers"), answerer=None)["q1"].text == "d2"


@pytest.mark.parametrize(
    ("status", "goes_on"),
    [("answered", True), ("cut_off", True), ("failed", False), ("refused", False), ("not_sent", False)],
)
def test_a_resumed_conversation_goes_on_behind_an_answer_only(status, goes_on):
    entry = JournalEntry(
        key="k",
        custom_id="a-1",
        status=status,
        text="Yes.",
        error=None,
        attempts=1,
        seconds=1.0,
        raw={"n": 1},
    )
    found = conversing.from_journal(entry, "Is it?")
    assert (found is not None) == goes_on
    if found is not None:
        assert [(turn.speaker, turn.text) for turn in found.turns] == [("user", "Is it?"), ("agent", "Yes.")]
        assert found.carry == {"n": 1}
    assert conversing.from_journal(None, "Is it?") is None


def hits(*uris):
    return [{"uri": uri, "chunk": str(n), "score": 1.0, "text": "t"} for n, uri in enumerate(uris)]


def searched(found, documents, limit=2):
    return replying.of_search({"found": hits(*found), "found_documents": hits(*documents)}, limit, 1.0)


def test_results_of_a_search_are_documents_once_and_no_more_than_the_limit():
    found = searched(("a", "a"), ("a", "b"))
    assert (found.status, found.text) == ("answered", "a")
    for bad, said in (
        (searched(("a", "b", "c"), ("a",)), "3 hits, the limit is 2"),
        (searched(("a",), ("a", "b", "c")), "3 hits, the limit is 2"),
        (searched(("a",), ("a", "a")), "named a document twice"),
        (searched(("",), ("a",)), "a hit without a uri"),
    ):
        assert bad.status == "failed" and bad.kind == "server_error" and said in bad.error


def test_searches_in_one_command_share_its_time():
    reply = {"ok": True, "results": [{"found": [], "found_documents": []}] * 4}
    assert [one.trace.seconds for one in replying.of_searches(reply, 4, 2, 2.0)] == [0.5] * 4


@pytest.mark.parametrize(
    ("kind", "status"), [("refused", "refused"), ("timeout", "failed"), ("odd", "failed")]
)
def test_a_refusal_of_the_server_is_a_state_of_its_own(kind, status):
    found = replying.of_answer({"ok": False, "kind": kind, "error": "no"}, 1.0)
    assert found.status == status
    assert found.kind == ("server_error" if kind == "odd" else kind)


def test_turns_stand_together_as_far_as_each_follows_upon_the_one_before_it():
    def turn(name, after):
        body = {"task": {"do": "converse"}, "messages": [{"role": "user", "content": "q"}]}
        return Call(custom_id=name, key=name, body=body, after=after)

    calls = [turn("a-1", None), turn("a-2", "a-1"), turn("b-1", None), turn("c-3", "c-2")]
    found = [[call.custom_id for call in group] for group in tasks.together(iter(calls))]
    assert found == [["a-1", "a-2"], ["b-1"], ["c-3"]]
