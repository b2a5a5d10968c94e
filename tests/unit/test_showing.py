"""Texts of others are shown as they are: no markup, nothing invisible."""

import pytest

from remeasure import showing


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain words, OldPersist_rem", "plain words, OldPersist_rem"),
        ("<img src=x onerror=alert(1)>", "&lt;img src=x onerror=alert(1)&gt;"),
        ("a|b *c* `d` [e](f) $g$ h\\i", "a\\|b \\*c\\* \\`d\\` \\[e\\](f) \\$g\\$ h\\\\i"),
        ("one\n# two\r\nthree", "one # two three"),
        ("# heading", "\\# heading"),
        ("- item", "\\- item"),
        ("-5.90", "-5.90"),
        ("a\u202eb\u200bc\x00d\ud800", "a⟨U+202E⟩b⟨U+200B⟩c⟨U+0000⟩d⟨U+D800⟩"),
        ("👩\u200d💻 犬 é", "👩\u200d💻 犬 é"),
    ],
)
def test_a_text_is_one_line_of_markdown_without_markup(text, shown):
    assert showing.markdown(text) == shown


def test_lines_and_tabs_of_an_answer_stay():
    assert showing.seen("a\n\tb\x07") == "a\n\tb⟨U+0007⟩"
