"""Tools in the chat protocol: what is taken, what is refused by name, what a call looks like in a reply."""

import contextlib
import json
import threading

import pytest

import toy_server
from remeasure.embedded.chat import BadRequest, Completion, parse
from remeasure.embedded.chat_server import ChatServer, reply_of
from remeasure.embedded.chat_tools import TOOL_WORDS, FunctionCall, ToolCall

SEARCH = {
    "type": "function",
    "function": {
        "name": "search",
        "description": "Search.",
        "parameters": {"type": "object", "properties": {"query": {"type": "string"}}},
        "strict": False,
    },
}
CALL = {"id": "c1", "type": "function", "function": {"name": "search", "arguments": '{"query": "x"}'}}
USER = {"role": "user", "content": "q"}
ASKED = {"role": "assistant", "content": None, "tool_calls": [CALL]}
RESULT = {"role": "tool", "tool_call_id": "c1", "content": "found"}


def request(messages=(USER,), **more):
    return parse(json.dumps({"model": "toy", "messages": list(messages), **more}).encode())


@pytest.mark.parametrize(
    "choice", [None, "none", "auto", "required", {"type": "function", "function": {"name": "search"}}]
)
def test_a_conversation_with_tools_is_read(choice):
    found = request(
        [
            USER,
            ASKED,
            RESULT,
            {"role": "assistant", "content": "answer"},
            {"role": "user", "content": "more"},
        ],
        tools=[SEARCH],
        tool_choice=choice,
        parallel_tool_calls=False,
    )
    assert [message.role for message in found.messages] == ["user", "assistant", "tool", "assistant", "user"]
    assert found.messages[1].tool_calls[0].function.arguments == '{"query": "x"}'
    assert found.tools[0].function.name == "search"


@pytest.mark.parametrize(
    ("messages", "more", "said"),
    [
        ([USER], {"tools": [{"type": "function"}]}, "missing required field `function`"),
        ([USER], {"tools": [{"type": "web_search"}]}, "Invalid value 'web_search'"),
        ([USER], {"tools": [{"type": "function", "function": {"name": "a", "x": 1}}]}, "unknown field `x`"),
        ([USER], {"tools": [SEARCH, SEARCH]}, "tools: a name stands twice"),
        ([USER], {"tools": [{"type": "function", "function": {"name": ""}}]}, "tools: a name is empty"),
        ([USER], {"tool_choice": "auto"}, "tool_choice needs tools"),
        ([USER], {"tools": [SEARCH], "tool_choice": "any"}, "tool_choice"),
        (
            [USER],
            {"tools": [SEARCH], "tool_choice": {"type": "function", "function": {"name": "cite"}}},
            "tool_choice: 'cite' is not among the tools",
        ),
        ([USER], {"functions": [SEARCH["function"]]}, "unknown field `functions`"),
        ([{"role": "user"}], {}, "content is missing"),
        ([USER, {"role": "assistant", "content": None}], {}, "content is missing"),
        ([{"role": "user", "content": "q", "tool_calls": [CALL]}], {}, "tool_calls belong to the assistant"),
        ([{"role": "user", "content": "q", "tool_call_id": "c1"}], {}, "tool_call_id to the role tool"),
        (
            [USER, ASKED, {"role": "tool", "content": "found"}],
            {},
            "tool_call_id to the role tool and is needed",
        ),
        ([USER, RESULT], {}, "tool_call_id is that of no call before it"),
        (
            [USER],
            {"max_tokens": 3, "max_completion_tokens": 4},
            "max_tokens and max_completion_tokens differ",
        ),
        ([USER], {"max_completion_tokens": 0}, "max_tokens must be at least 1"),
    ],
)
def test_what_is_wrong_with_tools_is_said(messages, more, said):
    with pytest.raises(BadRequest) as caught:
        request(messages, **more)
    assert said in str(caught.value)


def test_the_newer_name_of_the_limit_is_the_same_limit():
    assert request(max_completion_tokens=7).max_tokens == 7
    assert request(max_completion_tokens=7, max_tokens=7).max_tokens == 7


@pytest.mark.parametrize(
    ("messages", "more", "words"),
    [
        ([USER], {}, []),
        ([USER], {"tools": []}, []),
        ([USER], {"tools": [], "tool_choice": "none"}, []),
        ([USER], {"tools": [SEARCH]}, ["tools"]),
        ([USER], {"tools": [SEARCH], "tool_choice": "auto"}, ["tools", "tool_choice"]),
        ([USER], {"parallel_tool_calls": True}, ["parallel_tool_calls"]),
        ([USER, ASKED, RESULT], {}, ["tools"]),
    ],
)
def test_words_that_only_engines_with_tools_understand(messages, more, words):
    assert request(messages, **more).more_words() == words
    assert {*words} <= {*TOOL_WORDS}


def test_an_engine_without_tools_refuses_them_by_name():
    with contextlib.closing(ChatServer(0, "toy", toy_server.Parrot())) as server:
        server.close = server.server_close
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        body = {"model": "toy", "messages": [USER], "tools": [SEARCH]}
        status, reply = server.complete(json.dumps(body).encode())
        server.shutdown()
        thread.join()
    assert (status, reply["error"]["message"]) == (400, "tools: this model cannot do that; ask without it")


def test_a_reply_that_calls_a_tool_has_no_text():
    call = ToolCall(id="call_1", function=FunctionCall(name="search", arguments="{}"))
    reply = reply_of(Completion("", 5, 2, "tool_calls", tool_calls=(call,)), "toy", b"")
    assert reply["choices"] == [
        {
            "index": 0,
            "finish_reason": "tool_calls",
            "message": {
                "role": "assistant",
                "content": None,
                "tool_calls": [
                    {"type": "function", "id": "call_1", "function": {"name": "search", "arguments": "{}"}}
                ],
            },
        }
    ]


def test_parameters_of_a_tool_without_an_end_are_refused():
    tools = '[{"type": "function", "function": {"name": "a", "parameters": DEEP}}]'
    deep = '{"a":' * 5000 + "1" + "}" * 5000
    body = '{"model": "m", "messages": [{"role": "user", "content": "x"}], "tools": TOOLS}'
    with pytest.raises(BadRequest, match="recursion"):
        parse(body.replace("TOOLS", tools.replace("DEEP", deep)).encode())
