import pytest

from remeasure.errors import RemeasureError
from remeasure.yaml_files import read_yaml


def read(tmp_path, text: str):
    (tmp_path / "x.yaml").write_text(text)
    return read_yaml(tmp_path / "x.yaml")


def test_a_section_may_take_another_over_and_change_what_differs(tmp_path):
    text = """
one: &one {a: 1, b: {c: 2}}
two: &two {<<: *one, a: 3}
three: {<<: *two, d: 4}
list: [{<<: *two}, {<<: [*one, *two], a: 5}]
"""
    found = read(tmp_path, text)
    assert found["two"] == {"a": 3, "b": {"c": 2}}
    assert found["three"] == {"a": 3, "b": {"c": 2}, "d": 4}
    assert found["list"] == [found["two"], {"a": 5, "b": {"c": 2}}]


def test_a_section_that_is_taken_over_before_it_is_read_is_no_doubled_key(tmp_path):
    # The inner one is merged into a shallower one, which is built first.
    text = "x: {deep: {deeper: &in {<<: &base {a: 1}, a: 2}}}\ny: {<<: *in, a: 3}\n"
    assert read(tmp_path, text) == {"x": {"deep": {"deeper": {"a": 2}}}, "y": {"a": 3}}


@pytest.mark.parametrize(
    "text",
    [
        "a: 1\na: 2\n",
        "x: {a: 1, a: 1}\n",
        "one: &one {a: 1}\ntwo: {<<: *one, b: 1, b: 2}\n",
        "one: &one {a: 1, a: 2}\ntwo: {<<: *one}\n",
        "one: &one {a: 1}\ntwo: {<<: *one, <<: *one}\n",
    ],
)
def test_a_key_that_stands_twice_is_an_error(tmp_path, text):
    with pytest.raises(RemeasureError, match="key '(a|b|<<)' stands twice"):
        read(tmp_path, text)


def test_only_a_mapping_can_be_taken_over(tmp_path):
    for text in ("one: &one 1\ntwo: {<<: *one}\n", "one: &one [1]\ntwo: {<<: *one}\n"):
        with pytest.raises(
            RemeasureError, match="line 2: not YAML: `<<` stands before something that is no mapping"
        ):
            read(tmp_path, text)
    assert read(tmp_path, "x: &x {a: 1, <<: *x}\n") == {"x": {"a": 1}}
