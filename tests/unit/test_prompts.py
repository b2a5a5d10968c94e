"""Prompt files: by name, by hash, filled in one pass."""

import shutil
from pathlib import Path

import pytest

from remeasure import prompts
from remeasure.errors import RemeasureError
from remeasure.files import sha256_bytes
from remeasure.prompts import PromptFiles


def files_of(tmp_path, **texts: str) -> PromptFiles:
    for name, text in texts.items():
        (tmp_path / f"{name}.txt").write_bytes(text.encode())
    return PromptFiles(
        profile="own",
        files={name: str(tmp_path / f"{name}.txt") for name in texts},
        sha256={name: sha256_bytes(text.encode()) for name, text in texts.items()},
    )


def test_a_prompt_is_loaded_byte_for_byte(tmp_path):
    assert prompts.load(files_of(tmp_path, system="Be brief.\r\n\n")) == {"system": "Be brief.\r\n\n"}


def test_a_changed_file_is_an_error_that_names_it(tmp_path):
    files = files_of(tmp_path, system="Be brief.")
    (tmp_path / "system.txt").write_text("Be long.")
    with pytest.raises(RemeasureError, match=r"system.txt: prompt 'system' has SHA-256"):
        prompts.load(files)


def test_a_missing_file_or_hash_is_an_error(tmp_path):
    files = files_of(tmp_path, system="Be brief.")
    (tmp_path / "system.txt").unlink()
    with pytest.raises(RemeasureError, match="system.txt: cannot be read"):
        prompts.load(files)
    with pytest.raises(RemeasureError, match="lack a path or a sha256"):
        prompts.load(PromptFiles(profile="own", files={"a": "x"}, sha256={}))


def test_text_that_is_not_utf8_is_an_error(tmp_path):
    (tmp_path / "a.txt").write_bytes(b"\xff")
    files = PromptFiles(
        profile="own", files={"a": str(tmp_path / "a.txt")}, sha256={"a": sha256_bytes(b"\xff")}
    )
    with pytest.raises(RemeasureError, match="not UTF-8"):
        prompts.load(files)


def test_every_place_is_filled_and_a_filled_text_is_not_looked_at_again():
    assert prompts.fill("{{a}} and {{b}}, {{a}}", {"a": "{{b}}", "b": r"\1"}) == r"{{b}} and \1, {{b}}"


def test_single_braces_are_text():
    assert prompts.fill('{"x": {{value}}}', {"value": "1"}) == '{"x": 1}'


def test_a_place_without_a_value_is_an_error_with_a_suggestion():
    with pytest.raises(RemeasureError, match=r"\{\{qestion\}\} is unknown \(did you mean 'question'\?\)"):
        prompts.fill("{{qestion}}", {"question": "x"})


def test_an_unknown_prompt_is_an_error_with_a_suggestion():
    with pytest.raises(RemeasureError, match="did you mean 'system_naive'"):
        prompts.get({"system_naive": "x"}, "system_nave")


# -- wordings that are not ours to ship ---------------------------------------------------------------------

SENTENCE = b"Look closely."


def profile_folder(tmp_path, text: str, **texts: str) -> Path:
    folder = tmp_path / "config" / "prompts" / "study" / "published"
    folder.mkdir(parents=True)
    (folder / "elsewhere.yaml").write_text(text)
    for name, prompt in texts.items():
        (folder / f"{name}.txt").write_text(prompt)
    return tmp_path / "config"


def elsewhere(path="results/sources/look.txt", sha256=None) -> str:
    sha256 = sha256 or sha256_bytes(SENTENCE)
    return f"look: {{path: {path!r}, sha256: {sha256!r}}}\n"


def test_a_profile_may_name_files_that_are_brought_like_other_raw_inputs(tmp_path):
    found = prompts.profile(profile_folder(tmp_path, elsewhere(), note="Ours."), "study", "published")
    assert found == {
        "profile": "published",
        "files": {"note": "config/prompts/study/published/note.txt", "look": "results/sources/look.txt"},
        "sha256": {"note": sha256_bytes(b"Ours."), "look": sha256_bytes(SENTENCE)},
    }
    assert [prompts.is_elsewhere(path) for path in found["files"].values()] == [False, True]


def test_a_file_from_elsewhere_is_found_in_the_working_folder_and_checked_to_the_byte(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    files = PromptFiles(**prompts.profile(profile_folder(tmp_path, elsewhere()), "study", "published"))
    with pytest.raises(RemeasureError, match="results/sources/look.txt: cannot be read"):
        prompts.load(files)
    Path("results/sources").mkdir(parents=True)
    Path("results/sources/look.txt").write_bytes(SENTENCE)
    assert prompts.load(files) == {"look": SENTENCE.decode()}
    Path("results/sources/look.txt").write_bytes(SENTENCE + b"\n")
    with pytest.raises(RemeasureError, match="to the byte: config/sources_by_hand.tsv describes it"):
        prompts.load(files)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (elsewhere(path="config/look.txt"), "does not lie below results/sources/"),
        (elsewhere(path="/etc/passwd"), "does not lie below results/sources/"),
        (elsewhere(path="results/sources/../../x"), "does not lie below results/sources/"),
        (elsewhere(sha256="abc"), "is not 64 hexadecimal digits"),
        (elsewhere(sha256="A" * 64), "is not 64 hexadecimal digits"),
        (elsewhere().replace("look:", "note:"), "note.txt lies beside it"),
        ("look: {path: results/sources/x}", "missing required field `sha256`"),
        ("look: {path: results/sources/x, sha256: y, url: z}", "unknown field `url`"),
        ("look: results/sources/x", "Expected `object`"),
        ("- look", "expected keys at the top level"),
    ],
)
def test_a_list_of_files_from_elsewhere_that_is_wrong_is_one_line(tmp_path, text, said):
    with pytest.raises(RemeasureError, match=said) as caught:
        prompts.profile(profile_folder(tmp_path, text, note="Ours."), "study", "published")
    assert "elsewhere.yaml" in str(caught.value) and "\n" not in str(caught.value)


def test_a_profile_without_any_prompt_is_an_error(tmp_path):
    config = profile_folder(tmp_path, "{}")
    with pytest.raises(RemeasureError, match="no prompt files"):
        prompts.profile(config, "study", "published")
    shutil.rmtree(config / "prompts" / "study" / "published")
    with pytest.raises(RemeasureError, match="no prompt files"):
        prompts.profile(config, "study", "other")
