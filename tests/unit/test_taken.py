"""Wording is taken out of Python files by reading them; none of it is run."""

import hashlib
import json
from pathlib import Path

import pytest

import take_prompts
from remeasure import built, prompts, taken
from remeasure.errors import RemeasureError
from remeasure.fingerprint import SCRIPTS
from remeasure.plan import Plan

CONFIG = SCRIPTS.parent / "config"
MODULE = '''
"""A module that must not be run."""
raise SystemExit("it was run")

TOPK = 10
LABEL = "Image"
TAIL = "End."
RUBRIC = "Is it so?\\n"
AGENT = Agent(
    name="judge",
    prompt=dedent(
        """
        Grade.
          Now.
        """
    )
    + TAIL,
)


class Track:
    CONDITIONS = {
        "plain": dict(images=True, basis="words and images"),
        "text": {"images": False, "basis": "words"},
    }

    def build(self, cond, findings):
        def inner():
            return "not this one"

        instruction = (
            f"Based on {cond['basis']}, the {TOPK} best. "
            'Say "1. Name" ' + f"of {LABEL} {len(findings)}.\\n\\n{ findings }"
        )
        once: str = "é"
        parts = [instruction, once]
        return parts

    def judge(self, gold):
        fmt = lambda points: "x"
        return "Gold: " f"{gold}\\nPoints:\\n{fmt(gold)}"
'''
PLACES = {'cond["basis"]': "basis", "len(findings)": "n", "findings": "findings"}


def place(**more) -> taken.Place:
    told = {"at": "Track.build", "value": "instruction", "places": PLACES, "constants": ["TOPK", "LABEL"]}
    return taken.Place(**(told | more))


def text_of(module: str, where: taken.Place, expected: str | None = None) -> str:
    """Take one text; its hash is that of what is expected."""
    data = module.encode()
    wanted = taken.TakeSettings(
        module_sha256=hashlib.sha256(data).hexdigest(),
        prompts={"p": where},
        sha256={"p": hashlib.sha256((expected or "").encode()).hexdigest()},
    )
    return taken.take(data, wanted, "m.py")["p"]


TEXT = 'Based on {{basis}}, the 10 best. Say "1. Name" of Image {{n}}.\n\n{{findings}}'


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        (place(), TEXT),
        (place(value="once"), "é"),
        (
            place(at="Track.judge", value="return", places={"gold": "g", "fmt( gold )": "points"}),
            "Gold: {{g}}\nPoints:\n{{points}}",
        ),
        (place(at="Track", value="CONDITIONS", keys=["plain", "basis"]), "words and images"),
        (place(at="Track", value="CONDITIONS", keys=["text", "basis"]), "words"),
        (
            place(at="", value="AGENT", keys=["prompt"], places={}, constants=["TAIL"]),
            "\nGrade.\n  Now.\nEnd.",
        ),
        (place(at="", value="LABEL", places={}, constants=[]), "Image"),
        # One line end more than the text has, since readers of prompt files drop one.
        (place(at="", value="RUBRIC", places={}, constants=[]), "Is it so?\n\n"),
    ],
)
def test_a_text_is_taken_with_placeholders_for_its_expressions(where, expected):
    assert text_of(MODULE, where, expected) == expected


@pytest.mark.parametrize(
    ("where", "said"),
    [
        (place(at="Trak.build"), "'Trak' is defined 0 times, expected once (did you mean 'Track'?)"),
        (place(at="Track.biuld"), "'biuld' is defined 0 times, expected once (did you mean 'build'?)"),
        (place(at="Track.build.inner.more"), "'more' is defined 0 times"),
        (place(value="instructions"), "'instructions' has a value in 0 places, expected one"),
        (place(places={}), "expression \"cond['basis']\" is not known"),
        (place(constants=["TOPK"]), "expression 'LABEL' is not known"),
        (place(constants=["TOPKS"]), "'TOPKS' has a value in 0 places"),
        (place(constants=["Track"]), "'Track' has a value in 0 places"),
        (place(places={"a b": "c"}), "'a b' is no expression"),
        (place(places={"findings": "a-b"}), "'a-b' is no name of a placeholder"),
        (place(value="return"), "line 37 is a Name, expected texts and f-strings"),
        (place(value="parts"), "is a List, expected texts and f-strings"),
        (place(at="Track", value="CONDITIONS"), "is a Dict, expected texts and f-strings"),
        (place(at="Track", value="CONDITIONS", keys=["other"]), "key 'other' stands 0 times, expected once"),
        (place(at="Track", value="CONDITIONS", keys=["plain", "images"]), "is a Constant, expected texts"),
        (place(at="Track", value="CONDITIONS", keys=["plain", "basis", "x"]), "key 'x' stands 0 times"),
    ],
)
def test_a_place_that_is_not_there_or_not_clear_is_one_line(where, said):
    with pytest.raises(RemeasureError) as caught:
        text_of(MODULE, where)
    assert said in str(caught.value) and str(caught.value).startswith("m.py: prompt 'p': ")


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("x = f'{y!r}'", "expression 'y' has a conversion (!r, !s, !a) or a format (:…), which are not"),
        ("x = f'{y:>3}'", "expression 'y' has a conversion (!r, !s, !a) or a format (:…), which are not"),
        ("x = f'{f\"{y}\"}'", "is not known"),
        ("x = f'{(lambda: y)()}'", "is not known"),
        ("x = dedent(f' {y}')", "is a Call, expected texts"),
        ("x = dedent('a', 'b')", "is a Call, expected texts"),
        ("x = exec('a')", "is a Call, expected texts"),
        ("x = 'a' + y", "is a Name, expected texts"),
        ("x = 'a' 'b' % y", "is a BinOp, expected texts"),
        ("x = 'a' * 9", "is a BinOp, expected texts"),
        ("x = b'a'", "is a Constant, expected texts"),
        ("x = 'a'; x = 'b'", "'x' has a value in 2 places"),
        ("x = 'a'; x += 'b'", "'x' has a value in 2 places"),
        ("x, y = 'ab'", "'x' has a value in 1 places, expected one"),
        ("x = 'a'\n  for x in y: pass", "'x' has a value in 2 places"),
        ("x: str", "'x' has a value in 1 places, expected one"),
        ("x = 'a {{b}} c'", "holds {{, which would be a placeholder"),
        ("x = f'{{{{b}}}}'", "holds {{, which would be a placeholder"),
        ("x = '\\ud800'", "holds characters that no file can hold"),
        ("x = " + " + ".join(["'a'"] * 5000), None),
    ],
)
def test_a_hostile_text_is_one_line(body, said):
    with pytest.raises(RemeasureError) as caught:
        text_of(
            f"class C:\n def f(self):\n  {body}\n",
            taken.Place(at="C.f", value="x", places={"y": "y"} if said and "y" not in said else {}),
        )
    assert str(caught.value).isprintable() and "Traceback" not in str(caught.value)
    assert said is None or said in str(caught.value)


@pytest.mark.parametrize(
    "data",
    [
        b"class C(:\n",
        b"\xff\xfe\x00",
        b"x = '\x00'",
        b"x = " + b"(" * 100_000,
        b"x = " + b"-" * 100_000 + b"1",
        b"x = '" + b"a" * taken.MAX_BYTES + b"'",
        b"if 1:\n" + b"".join(b" " * n + b"if 1:\n" for n in range(1, 300)),
    ],
    ids=["syntax", "bytes", "null", "brackets", "signs", "huge", "deep"],
)
def test_a_file_that_is_no_python_is_one_line(data):
    with pytest.raises(RemeasureError, match=r"m\.py.*another file"):
        taken.parse(data, "m.py")


def test_a_text_with_another_hash_is_told_with_both():
    with pytest.raises(RemeasureError) as caught:
        text_of(MODULE, place(value="once"), "wrong")
    # printf 'é' | sha256sum; printf 'wrong' | sha256sum
    assert (
        "comes to SHA-256 4a99557e4033c3539de2eb65472017cad5f9557f7a0625a09f1c3f6e2ba69c4c, "
        "expected 8810ad581e59f2bc3928b261707a71308f7e139eb04820366dc4d5c18d980225;"
    ) in str(caught.value)


def test_another_module_than_the_settings_name_is_not_read():
    wanted = taken.TakeSettings(module_sha256="0" * 64, prompts={}, sha256={})
    with pytest.raises(RemeasureError, match="has SHA-256 .*the settings say 000000000000"):
        taken.take(b"x = 1", wanted, "m.py")


def test_a_function_that_stands_twice_is_not_guessed():
    twice = "class C:\n def f(self):\n  x = 'a'\n def f(self):\n  x = 'b'\n"
    with pytest.raises(RemeasureError, match="'f' is defined 2 times"):
        text_of(twice, taken.Place(at="C.f", value="x"))


@pytest.fixture
def script(tmp_path):
    """The command line over a module with one prompt; its settings can be changed."""
    path = tmp_path / "m.py"
    path.write_text(MODULE, encoding="utf-8")
    told = {
        "module_sha256": hashlib.sha256(MODULE.encode()).hexdigest(),
        "prompts": {
            "p": {
                "at": "Track.build",
                "value": "instruction",
                "places": PLACES,
                "constants": ["TOPK", "LABEL"],
            }
        },
        "sha256": {"p": hashlib.sha256(TEXT.encode()).hexdigest()},
    }

    def words(out="p.txt", **more) -> list[str]:
        return [
            *("--settings", json.dumps(told | more), "--module", str(path)),
            *("--out", str(tmp_path / out), "--record", str(tmp_path / "r.json")),
        ]

    return words


def test_the_script_writes_the_exact_bytes_and_a_record(script, tmp_path):
    assert take_prompts.main(script()) == 0
    assert (tmp_path / "p.txt").read_bytes() == TEXT.encode()
    record = json.loads((tmp_path / "r.json").read_text())
    assert record["counts"] == {"prompts": 1}
    assert record["outputs"] == {str(tmp_path / "p.txt"): hashlib.sha256(TEXT.encode()).hexdigest()}


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"out": "q.txt"}, "the settings name p; give one file for each"),
        ({"module_sha256": "0" * 64}, "delete it, it is fetched again"),
        ({"sha256": {"p": "0" * 64}}, "belong to another version of the module"),
        ({"prompts": {"p": {"at": "Track"}}}, "missing required field `value`"),
    ],
)
def test_the_script_ends_with_one_line_and_writes_nothing(script, tmp_path, capsys, more, said):
    assert take_prompts.main(script(**more)) == 2
    err = capsys.readouterr().err
    assert said in err and err.count("\n") == 1
    assert [path.name for path in tmp_path.iterdir()] == ["m.py"]


def test_a_module_that_is_missing_is_one_line(script, tmp_path, capsys):
    (tmp_path / "m.py").unlink()
    assert take_prompts.main(script()) == 2
    assert "m.py" in capsys.readouterr().err


def test_the_published_prompts_are_taken_from_the_pinned_module():
    told = Plan(CONFIG).taken("mrarebench", "published")
    # The card's pin, and `sha256sum` of the module at that commit.
    assert told["module_sha256"] == "e3ee6c727ab428a6df1f3c05f39816a60a96ab78ccb43f3f8fe91369fee9c9b0"
    assert told["sha256"] == prompts.profile(CONFIG, "mrarebench", "published")["sha256"]
    own = prompts.profile(CONFIG, "mrarebench", "own")["files"]
    assert told["prompts"].keys() == own.keys()


@pytest.mark.parametrize("body", ["x = f'{y!s}'", "x = f'{y:03d}'", "x = f'{y=}'"])
def test_a_conversion_of_a_known_expression_is_no_spelling_mistake(body):
    with pytest.raises(RemeasureError, match="which are not supported") as caught:
        text_of(f"class C:\n def f(self):\n  {body}\n", taken.Place(at="C.f", value="x", places={"y": "y"}))
    assert "did you mean" not in str(caught.value)


@pytest.fixture
def config(tmp_path):
    """Write profiles of prompts as they stand in ``config/prompts``; return their ``config``."""

    def write(study: str, module: str, prompts: str, **elsewhere: str) -> Path:
        folder = tmp_path / "prompts" / study / "published"
        folder.mkdir(parents=True)
        (folder / "taken.yaml").write_text(f"module: {module}\nprompts: {prompts}\n")
        lines = [f"{name}: {{path: {path}, sha256: {'f' * 64}}}\n" for name, path in elsewhere.items()]
        (folder / "elsewhere.yaml").write_text("".join(lines))
        return tmp_path

    return write


A = "{a: {at: C, value: x}}"


@pytest.mark.parametrize(
    ("module", "names", "path", "said"),
    [
        (
            *("m.py", "{a: {at: C, value: x}, b: {at: C, value: x}}", "results/sources/w/a.txt"),
            "taken.yaml: b stand only there or only in elsewhere.yaml",
        ),
        ("m.py", A, "results/sources/w/b.txt", "elsewhere.yaml: a: path 'results/sources/w/b.txt'"),
        ("m.py", A, "results/sources/a.txt", "elsewhere.yaml: a: path 'results/sources/a.txt'"),
        ("m.py", A, "results/sources/w{x}/a.txt", "elsewhere.yaml: a: path"),
        ("../m.py", A, "results/sources/w/a.txt", "taken.yaml: module:"),
        ("m.py", "{}", "results/sources/w/a.txt", "taken.yaml: prompts:"),
    ],
)
def test_a_profile_that_contradicts_itself_is_one_line(config, module, names, path, said):
    with pytest.raises(RemeasureError) as caught:
        taken.read(config("s", module, names, a=repr(path)), "s", "published")
    assert said in str(caught.value) and "\n" not in str(caught.value)


def test_every_profile_that_is_taken_is_a_rule_of_its_own(config):
    config("s", "m.py", A, a="results/sources/w/a.txt")
    found = built.taken_prompts(config("other-s", "n.py", A, a="results/sources/v/a.txt"))
    assert list(found) == [("other-s", "published", ""), ("s", "published", "")]
    assert found["other-s", "published", ""] == (
        "take_prompts_other_s_published",
        "results/sources/n.py",
        {"a": "results/sources/v/a.txt"},
        "results/sources/v.json",
    )
    assert found["s", "published", ""].log == "results/sources/logs/take_prompts_s_published.log"


# -- several modules, and YAML -------------------------------------------------------------------------------


def test_the_texts_of_a_profile_may_stand_in_several_modules(config):
    folder = config("s", "m.py", A, a="results/sources/w/a.txt", b="results/sources/v/b.txt")
    more = folder / "prompts" / "s" / "published" / "taken_more.yaml"
    more.write_text("module: n.yaml\nprompts: {b: {value: x, keys: [y]}}\n")
    found = built.taken_prompts(folder)
    assert {key: (made.rule, made.source, made.outputs, made.record) for key, made in found.items()} == {
        ("s", "published", ""): (
            *("take_prompts_s_published", "results/sources/m.py"),
            *({"a": "results/sources/w/a.txt"}, "results/sources/w.json"),
        ),
        ("s", "published", "more"): (
            *("take_prompts_s_published_more", "results/sources/n.yaml"),
            *({"b": "results/sources/v/b.txt"}, "results/sources/v.json"),
        ),
    }


@pytest.mark.parametrize(
    ("prompt", "place"), [("a", "results/sources/w/a.txt"), ("b", "results/sources/w/b.txt")]
)
def test_two_modules_neither_give_one_prompt_nor_fill_one_folder(config, prompt, place):
    folder = config("s", "m.py", A, **({"a": "results/sources/w/a.txt"} | {prompt: place}))
    more = folder / "prompts" / "s" / "published" / "taken_more.yaml"
    more.write_text(f"module: n.py\nprompts: {{{prompt}: {{value: x}}}}\n")
    with pytest.raises(RemeasureError, match="names the same prompt or fills the same folder"):
        taken.read(folder, "s", "published")


def yaml_text(text: str, where: taken.Place, expected: str = "") -> str:
    data = text.encode()
    wanted = taken.TakeSettings(
        module_sha256=hashlib.sha256(data).hexdigest(),
        prompts={"p": where},
        sha256={"p": hashlib.sha256(expected.encode()).hexdigest()},
    )
    return taken.take(data, wanted, "m.yaml")["p"]


def test_a_text_is_taken_out_of_yaml():
    text = "prompts:\n  preamble: |\n    Search.\n\n    End with a number.\n"
    expected = "Search.\n\nEnd with a number.\n\n"
    assert yaml_text(text, taken.Place(value="prompts", keys=["preamble"]), expected) == expected


@pytest.mark.parametrize(
    ("text", "where", "said"),
    [
        ("a: {b: c}", taken.Place(value="x"), "key 'x' stands 0 times"),
        ("a: {b: c}", taken.Place(value="a", keys=["b", "c"]), "key 'c' stands 0 times"),
        ("a: {b: c}", taken.Place(value="a"), "is a dict, expected a text"),
        ("a: [1]", taken.Place(value="a", keys=["b"]), "key 'b' stands 0 times"),
        ("a: 'x {{y}}'", taken.Place(value="a"), "holds {{, which would be a placeholder"),
        ("a: b", taken.Place(at="C", value="a"), "a YAML file has neither classes nor expressions"),
        ("a: 'b", taken.Place(value="a"), "cannot be read as YAML"),
        ("a: b", taken.Place(value="a"), "comes to SHA-256"),
    ],
)
def test_yaml_without_the_text_is_one_line(text, where, said):
    with pytest.raises(RemeasureError) as caught:
        yaml_text(text, where)
    assert said in str(caught.value) and str(caught.value).startswith("m.yaml: ")
