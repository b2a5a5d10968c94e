"""What comes back of answers that were written into a spreadsheet, as xlsxwriter and pandas gave it."""

import pytest

from remeasure import roundtrip
from remeasure.records import Response


def answered(text: str | None, status: str = "answered", error: str | None = None) -> Response:
    return Response(custom_id="a", key="k", status=status, text=text, error=error)


@pytest.mark.parametrize(
    ("text", "back"),
    [
        ("1. Foo\n2. Bar", "1. Foo\n2. Bar"),
        ("=1+1", "=1+1"),  # the toolkit writes no formulas
        ("12", "12"),
        ("1. Foo\r\n2. Bar", "1. Foo_x000D_\n2. Bar"),
        ("a\tb\x0bc\x1fd\x7fe", "a\tb_x000B_c_x001F_d\x7fe"),
        ("a\0b", "a_x0000_b"),
        ("a\ufffeb", "a_xFFFE_b"),
        ("x" * 32_767, "x" * 32_767),
        ("x" * 40_000, "x" * 32_767),
        ("\U0001f600" * 20_000, "\U0001f600" * 16_383),  # two units each, and half a one is none
        ("https://" + "y" * 2_071, "https://" + "y" * 2_071),
        ("https://" + "y" * 2_072, "nan"),
        ("http://x\n" + "1. a\n" * 500, "nan"),  # a whole list behind an address
        ("http://x\n" + "1. a\n" * 300, "http://x\n" + "1. a\n" * 300),
        ("http://" + "y" * 1_500 + "#" + "z" * 1_500, "http://" + "y" * 1_500 + "#" + "z" * 1_500),
        ("http://x#" + "y" * 3_000, "nan"),
        ("HTTP://" + "y" * 3_000, "HTTP://" + "y" * 3_000),
        (" see http://" + "y" * 3_000, " see http://" + "y" * 3_000),
        ("mailto:" + "a " * 750, "a " * 750),
        ("file:///" + "y" * 3_000, "nan"),
        ("None", "nan"),
        ("none", "none"),
        ("", "nan"),
        (" ", " "),
        (None, "nan"),
    ],
)
def test_what_comes_back_of_an_answer(text, back):
    assert roundtrip.answer(answered(text)) == back


def test_what_stands_for_an_answer_that_there_is_not():
    assert roundtrip.answer(answered(None, "failed", "timeout: 600 s")) == "Failed to obtain answer via API."
    assert roundtrip.answer(answered(None, "refused")) == "Failed to obtain answer via API."
    assert roundtrip.answer(answered(None, "not_sent")) is None
    assert roundtrip.answer(answered(None, "failed", "empty: empty cell (a spreadsheet …)")) == "nan"
