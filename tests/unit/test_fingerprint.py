from pathlib import Path

from remeasure import fingerprint

PLAIN = '''"""Say what this is."""


def double(x):
    """Return twice x."""
    if x:
        x = x + 0
    return 2 * x  # as agreed
'''


def project(folder: Path, library: str = PLAIN) -> Path:
    (folder / "remeasure").mkdir(exist_ok=True)
    (folder / "remeasure/__init__.py").write_text("")
    (folder / "remeasure/inner.py").write_text(library)
    (folder / "remeasure/outer.py").write_text("from remeasure.inner import double\n")
    (folder / "remeasure/other.py").write_text("x = 1\n")
    (folder / "stage.py").write_text("from remeasure import outer\n")
    return folder


def of(folder: Path) -> str:
    fingerprint.of_script.cache_clear()
    fingerprint._closure.cache_clear()
    return fingerprint.of_script("stage.py", folder)


def test_comments_docstrings_and_blank_lines_change_nothing(tmp_path):
    before = of(project(tmp_path))
    changed = (
        PLAIN.replace("Say what", "Tell what")
        .replace("# as agreed", "# or not")
        .replace("\n\n\ndef", "\n\ndef")
    )
    assert of(project(tmp_path, changed)) == before


def test_a_changed_operator_in_a_module_imported_by_an_imported_module_changes_it(tmp_path):
    before = of(project(tmp_path))
    assert of(project(tmp_path, PLAIN.replace("2 * x", "2 + x"))) != before


def test_a_changed_text_constant_is_behaviour(tmp_path):
    first = of(project(tmp_path, 'NAME = "a"\n'))
    assert of(project(tmp_path, 'NAME = "b"\n')) != first


def test_moving_a_line_into_a_block_is_behaviour(tmp_path):
    inside = "def f(x):\n    if x:\n        x = 1\n        x = 2\n    return x\n"
    outside = "def f(x):\n    if x:\n        x = 1\n    x = 2\n    return x\n"
    assert of(project(tmp_path, inside)) != of(project(tmp_path, outside))


def test_a_module_that_is_not_imported_does_not_matter(tmp_path):
    before = of(project(tmp_path))
    (tmp_path / "remeasure/other.py").write_text("x = 2\n")
    assert of(tmp_path) == before


def test_a_module_loaded_by_name_counts_when_it_is_given(tmp_path):
    project(tmp_path)
    fingerprint.of_script.cache_clear()
    fingerprint._closure.cache_clear()
    plain = fingerprint.of_script("stage.py", tmp_path)
    assert fingerprint.of_script("stage.py", tmp_path, ("remeasure.other",)) != plain


def test_nested_f_strings_are_one_token_on_every_python():
    assert fingerprint.tokens("x = f\"{a!r} {f'{b}'} c\"\n") == ["x", "=", "f\"{a!r} {f'{b}'} c\"", "\n0"]


def test_what_was_found_is_kept_for_the_next_process_by_content_alone(tmp_path):
    source = tmp_path / "a.py"
    source.write_text("from remeasure import files\nx = 1\n")
    known = fingerprint._Known(tmp_path / "cache" / "known.json")
    first = known.read(source)
    known.save()
    assert first[1] == ["remeasure", "remeasure.files"]
    again = fingerprint._Known(tmp_path / "cache" / "known.json")
    assert tuple(again.read(source)) == first and not again._is_new
    source.write_text("from remeasure import files\nx = 2\n")
    assert again.read(source)[0] != first[0] and again._is_new


def test_a_damaged_memory_of_fingerprints_is_made_again(tmp_path):
    source = tmp_path / "a.py"
    source.write_text("x = 1\n")
    (tmp_path / "known.json").write_text('["old", 3')
    known = fingerprint._Known(tmp_path / "known.json")
    first = known.read(source)
    known.save()
    assert tuple(fingerprint._Known(tmp_path / "known.json").read(source)) == tuple(first)
