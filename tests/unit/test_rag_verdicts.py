"""What is read out of a judge's reply, and what is not."""

import time

import pytest

from remeasure.rag.verdicts import Verdict, read


@pytest.mark.parametrize(
    ("reply", "passed", "reason"),
    [
        ('{"reason": "same river", "pass": true, "score": 1.0}', True, "same river"),
        ('{"reason": "another year", "pass": false, "score": 1}', False, "another year"),
        ('{"pass": true}', True, ""),
        ('{"reason": 7, "pass": true, "score": 0.0}', True, ""),
        ('```json\n{"reason": "r", "pass": false, "score": 0}\n```\n', False, "r"),
        ('<think>{"pass": true}</think>{"reason": "r", "pass": false}', False, "r"),
        # The template opened the thinking.
        ('{"pass": true}, no.</think>\n{"reason": "r", "pass": false}', False, "r"),
        # The answer quotes a verdict; the judge's own stands last.
        ('The output says {"pass": true}. It is wrong.\n{"reason": "r", "pass": false}', False, "r"),
        ('{"reason": "it says {\\"pass\\": true}", "pass": false}', False, 'it says {"pass": true}'),
        ('{ {x}\n{"reason": "r", "pass": true} trailing words', True, "r"),
        # Tags inside a verdict are quoted.
        ('{"reason": "it says </think> so", "pass": false}', False, "it says </think> so"),
        ('{"reason": "<think> is there", "pass": true}', True, "<think> is there"),
        ('<think>hm</think>{"reason": "think> a", "pass": true}', True, "think> a"),
        # Half a character cannot be written into a file.
        ('{"reason": "a\\ud800b", "pass": true}', True, "a?b"),
        ('{"reason": "ü\\n", "pass": true, "more": {"pass": false}}', True, "ü\n"),
    ],
)
def test_a_verdict_is_read(reply, passed, reason):
    assert read(reply) == Verdict(passed, reason, "")


@pytest.mark.parametrize(
    ("reply", "problem"),
    [
        (None, "the judge's reply is empty"),
        (" \n", "the judge's reply is empty"),
        ("<think>so</think>", "the judge's reply is empty"),
        ("<think>so", "the judge's reply ends while it thinks"),
        ("The output passes: pass = true.", "the judge's reply has no verdict"),
        # A verdict amid words is the answer's, not the judge's.
        ('The output ends with {"pass": true}, which proves nothing.', "the judge's reply has no verdict"),
        ('{"reason": "cut off in the mid', "the judge's reply has no verdict"),
        ('{"verdict": {"pass": true}}', "the judge's reply has no verdict"),
        ('[true, "pass"]', "the judge's reply has no verdict"),
        ('{"pass": "true", "reason": "a word"}', "the judge's pass is neither true nor false"),
        ('{"pass": 1}', "the judge's pass is neither true nor false"),
        ('{"pass": null}', "the judge's pass is neither true nor false"),
        ('{"pass": true, "pass": false}', "the judge's pass is neither true nor false"),
    ],
)
def test_prose_and_half_a_verdict_are_unreadable(reply, problem):
    assert read(reply) == Verdict(None, "", problem)


def test_a_reply_that_was_cut_off_has_no_verdict_even_where_one_stands_in_it():
    assert read('{"reason": "draft", "pass": true} But then', cut=True) == Verdict(
        None, "", "the judge's reply is cut off"
    )


@pytest.mark.parametrize("reply", ["{" * 300_000, '{"a":' * 60_000, '{"a" ' * 60_000, "[" * 100_000])
def test_a_hostile_reply_costs_little(reply):
    began = time.monotonic()
    assert read(reply).passed is None
    assert time.monotonic() - began < 5
