"""Prompt files: by name, by hash, filled in one pass."""

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
