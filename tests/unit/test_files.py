import hashlib
import os
import zipfile
from pathlib import Path

import pytest

from remeasure import files, images, jsonl
from remeasure.errors import RemeasureError
from remeasure.records import ImageRef, Page

PAGE = Page(page_id="a", path="A", title="Ä", set="test")


def test_a_failed_write_leaves_the_old_file_and_no_rest(tmp_path):
    target = tmp_path / "x.txt"
    files.write_text(target, "old")
    with pytest.raises(ZeroDivisionError), files.atomic_open(target) as stream:
        stream.write("new")
        raise ZeroDivisionError
    assert target.read_text() == "old"
    assert os.listdir(tmp_path) == ["x.txt"]


def test_what_a_killed_writer_left_is_removed_by_the_next(tmp_path):
    (tmp_path / ".x.txt.abc123.part").write_text("half")
    (tmp_path / ".xx.txt.abc123.part").write_text("somebody else's")
    files.write_text(tmp_path / "x.txt", "new")
    assert sorted(os.listdir(tmp_path)) == [".xx.txt.abc123.part", "x.txt"]


def test_records_come_back_as_they_were_and_keys_are_sorted(tmp_path):
    path = tmp_path / "pages.jsonl"
    assert jsonl.write(path, [PAGE]) == 1
    assert path.read_bytes() == '{"page_id":"a","path":"A","set":"test","title":"Ä"}\n'.encode()
    assert list(jsonl.read(path, Page)) == [PAGE]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ('{"page_id":"a"}', "missing required field"),
        ('{"page_id":1,"path":"A","set":"t","title":"x"}', "Expected `str`, got `int` - at `$.page_id`"),
        ('{"page_id":"a","path":"A","set":"t","title":"x","more":1}', "unknown field `more`"),
        ("{", "truncated"),
        ("", "truncated"),
    ],
)
def test_a_bad_line_is_named_with_its_number(tmp_path, line, expected):
    path = tmp_path / "pages.jsonl"
    path.write_bytes(jsonl.encode(PAGE) + b"\n" + line.encode() + b"\n")
    with pytest.raises(RemeasureError, match=r"pages\.jsonl line 2: not a valid Page record") as caught:
        list(jsonl.read(path, Page))
    assert expected in str(caught.value)


def test_a_missing_file_is_one_sentence(tmp_path):
    with pytest.raises(RemeasureError, match="cannot be read"):
        list(jsonl.read(tmp_path / "none.jsonl", Page))


def test_a_second_id_names_both_lines(tmp_path):
    with pytest.raises(RemeasureError, match="line 2: page_id 'a' stands already in line 1"):
        list(jsonl.unique([PAGE, PAGE], "page_id", Path("pages.jsonl")))


def test_equal_images_make_equal_stores_and_come_back_checked(tmp_path):
    pixels = b"\x89PNG\r\n\x1a\n rest"
    for name in ("a.zip", "b.zip"):
        assert images.write_store(tmp_path / name, [("x/1.png", pixels)]) == 1
    assert (tmp_path / "a.zip").read_bytes() == (tmp_path / "b.zip").read_bytes()
    ref = ImageRef(sha256=files.sha256_bytes(pixels), path=str(tmp_path / "a.zip"), member="x/1.png")
    assert images.from_url(images.to_url(ref)) == ref
    with images.ImageReader() as reader:
        assert reader.read(ref) == pixels
        with pytest.raises(RemeasureError, match="expected 000000000000"):
            reader.read(ImageRef(sha256="0" * 64, path=ref.path, member=ref.member))
        with pytest.raises(
            RemeasureError, match=r"member x/2\.png: image is not there; restore or replace it"
        ):
            reader.read(ImageRef(sha256=ref.sha256, path=ref.path, member="x/2.png"))


@pytest.mark.parametrize(
    ("n_bytes", "said"),
    [
        # A thousand times smaller when packed, above 10 MB.
        (
            11_000_000,
            r"image unpacks from \d+ to 11000000 bytes: a zip bomb, not an image; restore or replace",
        ),
        (150_000_001, "image has 150000001 bytes, at most 150000000 can be sent; restore or replace it"),
    ],
)
def test_a_member_that_is_a_bomb_is_never_unpacked(tmp_path, monkeypatch, n_bytes, said):
    path = tmp_path / "mine.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as store, store.open("a.png", "w") as out:
        for start in range(0, n_bytes, 1_000_000):
            out.write(bytes(min(1_000_000, n_bytes - start)))
    monkeypatch.setattr(zipfile.ZipFile, "open", lambda *_: pytest.fail("unpacked"))
    with images.ImageReader() as reader, pytest.raises(RemeasureError, match=said):
        reader.read(ImageRef(sha256="a" * 64, path=str(path), member="a.png"))


def test_a_member_says_how_it_is_packed_and_a_small_one_may_pack_well(tmp_path):
    data = b"\x89PNG" + bytes(9_000_000)
    ref = ImageRef(sha256=hashlib.sha256(data).hexdigest(), path=str(tmp_path / "a.zip"), member="a.png")
    for method in (zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2):
        with zipfile.ZipFile(ref.path, "w", method) as store:
            store.writestr("a.png", data)
        with images.ImageReader() as reader:
            if method == zipfile.ZIP_DEFLATED:
                assert reader.read(ref) == data
            else:
                with pytest.raises(RemeasureError, match="packed in another way than store or deflate"):
                    reader.read(ref)


def test_a_file_larger_than_can_be_sent_is_not_read(tmp_path):
    path = tmp_path / "a.png"
    with open(path, "wb") as stream:
        stream.truncate(150_000_001)
    with images.ImageReader() as reader, pytest.raises(RemeasureError, match="at most 150000000 can be sent"):
        reader.read(ImageRef(sha256="a" * 64, path=str(path)))


@pytest.mark.parametrize("name", ["/etc/passwd", "../x", "a/../../x"])
def test_a_member_name_cannot_leave_the_store(tmp_path, name):
    with pytest.raises(RemeasureError, match="unsafe"):
        images.write_store(tmp_path / "a.zip", [(name, b"")])


def test_the_bytes_decide_what_an_image_is():
    assert images.media_type(b"\xff\xd8\xff\xe0") == "image/jpeg"
    with pytest.raises(RemeasureError, match="not an image"):
        images.media_type(b"<svg/>")


def sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


@pytest.fixture
def tree(tmp_path):
    """Two files, one of them deeper."""
    folder = tmp_path / "images"
    (folder / "deeper").mkdir(parents=True)
    (folder / "deeper" / "b.png").write_text("two")
    (folder / "a.jpg").write_text("one")
    return folder


def test_a_folder_hashes_to_its_sorted_names_and_contents(tree):
    lines = f"a.jpg\0{sha256('one')}\ndeeper/b.png\0{sha256('two')}\n"
    assert files.sha256_tree(tree) == files.sha256_of(tree) == sha256(lines)
    assert files.sha256_of(tree / "a.jpg") == sha256("one")


def test_a_folder_s_hash_does_not_depend_on_where_it_lies_or_who_asks(tree, tmp_path, monkeypatch):
    before = files.sha256_tree(tree)
    (tree / "empty").mkdir()
    moved = tree.rename(tmp_path / "elsewhere")
    (tmp_path / "link").symlink_to(moved)
    monkeypatch.chdir(tmp_path)
    assert files.sha256_of(Path("elsewhere")) == files.sha256_of(tmp_path / "link") == before


@pytest.mark.parametrize(("name", "text"), [("a.jpg", "One"), ("c.jpg", ""), ("deeper/a.jpg", "one")])
def test_another_file_another_hash(tree, name, text):
    before = files.sha256_tree(tree)
    (tree / name).write_text(text)
    assert files.sha256_tree(tree) != before


def test_links_in_a_folder_count_as_what_they_say_and_lead_nowhere(tree, tmp_path):
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret").write_text("secret")
    for name, target in {"c": "../outside/secret", "d": "../outside", "e": "e", "deeper/f": ".."}.items():
        (tree / name).symlink_to(target)
    found = files.sha256_tree(tree)
    lines = [("a.jpg", "one"), ("c", "../outside/secret"), ("d", "../outside"), ("deeper/b.png", "two")]
    lines += [("deeper/f", ".."), ("e", "e")]
    assert found == sha256("".join(f"{name}\0{sha256(text)}\n" for name, text in lines))
    (outside / "secret").write_text("changed")
    assert files.sha256_tree(tree) == found


def test_a_pipe_in_a_folder_is_one_sentence_and_not_waited_for(tree):
    os.mkfifo(tree / "pipe")
    with pytest.raises(RemeasureError, match="pipe: neither a file nor a folder nor a link; take it away"):
        files.sha256_tree(tree)
