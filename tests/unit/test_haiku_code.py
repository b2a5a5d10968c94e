"""The embedded reader behind haiku.rag: it really sends code, and what that prints is its answer."""

import json

import pytest

from haikukit import Scripted, call, say
from remeasure.embedded.chat import parse
from remeasure.embedded.evidence_reader import EvidenceReader
from toolkit import WordEncoder

pytestmark = pytest.mark.haiku
PAGE = {
    "uri": "brill-2015",
    "title": "Brill Inc. 2015",
    "text": "# Brill Inc.: results of 2015\n\n| | 2015 | 2014 |\n| --- | --- | --- |\n"
    "| revenue | $ 400.0 | $ 320.0 |\n| operating expenses | 100.0 | 96.0 |\n",
}


def replies(body):
    """Return what the reader says to a request, as the scripted server has it."""
    reply = EvidenceReader(WordEncoder(), threshold=0.0).answer(parse(json.dumps(body).encode()))
    if not reply.tool_calls:
        return say(reply.text)
    (made,) = reply.tool_calls
    return call(made.function.name, raw=made.function.arguments)


def test_a_ratio_is_computed_by_code(haiku, adapter, tmp_path):
    question = "What was the ratio of operating expenses to revenue of Brill Inc. in 2015?"
    asked = {"turns": [{"speaker": "user", "text": question}], "target": haiku.code_target, "filter": None}
    asked |= {"preamble": "End with `ANSWER: <number>`.", "max_tokens": 99}
    with Scripted() as server:
        server.script = [replies]
        assert adapter.open(server, tmp_path / "db", create=True)["ok"]
        assert adapter("ingest", documents=[PAGE])["ok"] and adapter("finish")["ok"]
        told = adapter("answer", **asked)
    messages = server.bodies[-1]["messages"]
    sent = [tool["function"] for one in messages for tool in one.get("tool_calls") or ()]
    run = haiku.tool("execute_code", "analysis")
    (code,) = [json.loads(one["arguments"])["code"] for one in sent if one["name"] == run]
    assert code == "a = 100.0\nb = 400.0\nprint(a / b)"
    # What the program printed came back, and is the answer: 100 / 400.
    assert "0.25\n" in [one["content"] for one in messages if one["role"] == "tool"]
    assert told["text"] == "Computed from 100.0 and $ 400.0 (ratio).\nANSWER: 0.25"
    assert told["trace"]["tools"] == {"cite": 1, "execute": 1, "search": 1}
    assert told["trace"]["events"] == {"search_keys": 1}
    assert told["trace"]["cited"] == ["brill-2015"]
