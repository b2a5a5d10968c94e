from pathlib import Path
from typing import Annotated, Literal

import msgspec
import pytest

from remeasure.errors import RemeasureError
from remeasure.yaml_files import Settings, convert, read_yaml


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


class Hosted(Settings, tag="hosted", tag_field="kind"):
    url: str


class Local(Settings, tag="local", tag_field="kind"):
    threads: int = 1


class Model(Settings):
    family: Literal["llava", "qwen"] | None = None
    size: int = 0


class Whole(Settings):
    models: dict[str, Model] | None = None
    ways: dict[str, Hosted | Local] = {}
    lists: dict[str, dict[str, list[Model]]] = {}
    reasons: dict[int, Annotated[str, msgspec.Meta(min_length=1)]] = {}


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (
            {"models": {"a": {"family": "llava"}, "b": {"family": "lava"}}},
            "models.b.family: Invalid enum value 'lava' (did you mean 'llava'?); correct the file",
        ),
        (
            {"models": {"a": {"family": "zebra"}}},
            "models.a.family: Invalid enum value 'zebra'; valid are: llava, qwen; correct the file",
        ),
        (
            {"models": {"a": {}, "b": {"sise": 3}}},
            "models.b: Object contains unknown field `sise` (did you mean 'size'?); correct the file",
        ),
        (
            {"models": {"a": {}, "b": {"x": 3}}},
            "models.b: Object contains unknown field `x`; known here: family, size; correct the file",
        ),
        ({"models": {"a.b": {"size": "x"}}}, "models.a.b.size: Expected `int`, got `str`; correct the file"),
        (
            {"ways": {"a": {"kind": "hosted", "url": "x"}, "b": {"kind": "remote"}}},
            "ways.b.kind: Invalid value 'remote'; valid are: hosted, local; correct the file",
        ),
        (
            {"lists": {"p": {"q": []}, "r": {"s": [{}], "t": [{}, {"size": 0.5}]}}},
            "lists.r.t[1].size: Expected `int`, got `float`; correct the file",
        ),
        ({"reasons": {1: "x", 2: ""}}, "reasons.2: Expected `str` of length >= 1; correct the file"),
        (
            {"reasons": {1: "x", "two": "y"}},
            "reasons.two: the key itself: Expected `int`, got `str`; correct the file",
        ),
        ([], "top level: Expected `object`, got `array`; correct the file"),
    ],
)
def test_a_mistake_names_its_place_by_every_key_and_what_may_stand_there(value, said):
    with pytest.raises(RemeasureError) as caught:
        convert(value, Whole, Path("x.yaml"))
    assert str(caught.value) == f"x.yaml: {said}"
