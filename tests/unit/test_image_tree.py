"""Folders and zip stores of images from outside: listed in one order, read, and never trusted."""

import os
import stat
import struct
import threading
import time
import zipfile
import zlib
from pathlib import Path

import pytest

from imagekit import folder, picture, store
from remeasure import image_tree
from remeasure.errors import RemeasureError
from remeasure.files import sha256_bytes
from remeasure.image_tree import Refused, open_tree, printable
from remeasure.images import ImageReader

PIXELS = picture()
FILES = {"b/2.png": PIXELS, "b/10.png": picture(seed=1), "a.jpg": picture("JPEG"), "B/1.png": picture(seed=2)}


def listing(source: Path) -> image_tree.Listing:
    with open_tree(source) as tree:
        return tree.listing()


def refused(source: Path) -> dict[str, str]:
    return {one.path: one.problem for one in listing(source).refused}


@pytest.fixture(params=["folder", "stored", "deflated"])
def source(request, tmp_path) -> Path:
    if request.param == "folder":
        return folder(tmp_path / "images", FILES)
    return store(
        tmp_path / "images.zip",
        FILES,
        zipfile.ZIP_STORED if request.param == "stored" else zipfile.ZIP_DEFLATED,
    )


def test_a_folder_and_a_store_of_the_same_tree_are_listed_alike(source):
    assert listing(source) == image_tree.Listing(("B/1.png", "a.jpg", "b/10.png", "b/2.png"), ())


def test_every_listed_image_can_be_read_and_is_found_again_by_its_reference(source):
    with open_tree(source) as tree, ImageReader() as reader:
        for path in tree.listing().paths:
            assert tree.read(path) == FILES[path]
            assert reader.read(tree.ref(path, sha256_bytes(FILES[path]))) == FILES[path]


def test_a_reference_names_a_file_of_a_folder_or_a_member_of_a_store(tmp_path):
    with open_tree(folder(tmp_path / "x", FILES)) as tree:
        ref = tree.ref("b/2.png", "0" * 64)
        assert (ref.path, ref.member) == (f"{tmp_path}/x/b/2.png", None)
    with open_tree(store(tmp_path / "x.zip", FILES)) as tree:
        ref = tree.ref("b/2.png", "0" * 64)
        assert (ref.path, ref.member) == (f"{tmp_path}/x.zip", "b/2.png")


def test_a_source_that_is_neither_is_one_line(tmp_path):
    (tmp_path / "text").write_text("no zip")
    os.mkfifo(tmp_path / "pipe")
    for name in ("text", "pipe", "absent"):
        with (
            pytest.raises(RemeasureError, match=f"{name}: images cannot be listed") as caught,
            open_tree(tmp_path / name),
        ):
            pass
        assert "\n" not in str(caught.value)


# -- folders -------------------------------------------------------------------------------------------------


def test_links_out_of_the_folder_to_folders_or_to_nothing_are_refused_and_one_inside_is_a_file(tmp_path):
    images = folder(tmp_path / "images", {"17.jpg": PIXELS, "sub/18.jpg": PIXELS})
    folder(tmp_path / "secret", {"key.jpg": PIXELS})
    (images / "out.jpg").symlink_to(tmp_path / "secret" / "key.jpg")
    (images / "up").symlink_to("..")
    (images / "loop").symlink_to("sub")
    (images / "gone.jpg").symlink_to("nowhere")
    (images / "self.jpg").symlink_to("self.jpg")
    (images / "same.jpg").symlink_to("sub/18.jpg")
    assert listing(images).paths == ("17.jpg", "same.jpg", "sub/18.jpg")
    found = refused(images)
    assert set(found) == {"gone.jpg", "loop", "out.jpg", "self.jpg", "up"}
    assert "leads out of the folder" in found["out.jpg"] and "leads out of the folder" in found["up"]
    assert "link to a folder" in found["loop"]
    assert "leads to no file" in found["gone.jpg"] and "leads to no file" in found["self.jpg"]


def test_a_folder_that_is_itself_a_link_is_looked_into(tmp_path):
    folder(tmp_path / "images", {"17.jpg": PIXELS})
    (tmp_path / "link").symlink_to("images")
    assert listing(tmp_path / "link").paths == ("17.jpg",)


def test_a_name_beside_the_folder_that_begins_like_it_is_outside(tmp_path):
    images = folder(tmp_path / "images", {"17.jpg": PIXELS})
    folder(tmp_path / "images2", {"18.jpg": PIXELS})
    (images / "18.jpg").symlink_to(tmp_path / "images2" / "18.jpg")
    assert "leads out" in refused(images)["18.jpg"]


def test_a_pipe_is_named_and_never_waited_for(tmp_path):
    images = folder(tmp_path / "images", {"17.jpg": PIXELS})
    os.mkfifo(images / "18.jpg")
    with pytest.raises(RemeasureError, match=r"18\.jpg: is neither a file nor a folder"):
        listing(images)


def test_names_that_cannot_be_written_are_refused_and_shown_escaped(tmp_path):
    images = folder(tmp_path / "images", {"17.jpg": PIXELS})
    (images / "new\nline.jpg").write_bytes(PIXELS)
    (images / "back\\slash.jpg").write_bytes(PIXELS)
    (images / "turn\u202egpj.png").write_bytes(PIXELS)
    with open(os.fsencode(images) + b"/caf\xe9.jpg", "wb") as stream:
        stream.write(PIXELS)
    found = refused(images)
    assert set(found) == {"back\\slash.jpg", "caf\\udce9.jpg", "new\\nline.jpg", "turn\\u202egpj.png"}
    assert "not UTF-8" in found["caf\\udce9.jpg"] and "cannot be printed" in found["new\\nline.jpg"]
    assert listing(images).paths == ("17.jpg",)


def test_names_in_other_scripts_of_any_normal_form_are_names(tmp_path):
    names = ("犬.jpg", "caf\u00e9.jpg", "cafe\u0301.jpg", "🐕.png", "CAFÉ.JPG", ".hidden.jpg")
    assert set(listing(folder(tmp_path / "x", dict.fromkeys(names, PIXELS))).paths) == set(names)


def test_a_very_deep_folder_is_refused_not_walked(tmp_path):
    images = folder(tmp_path / "images", {"17.jpg": PIXELS})
    here = os.open(images, os.O_RDONLY)
    for _ in range(60):  # deeper than a path may be long
        os.mkdir("d" * 200, dir_fd=here)
        deeper = os.open("d" * 200, os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = deeper
    os.close(here)
    [one] = listing(images).refused
    assert "at most 1000" in one.problem and len(one.path) == 200 and one.path.endswith("…")


def test_a_shown_name_is_bounded_whatever_it_holds():
    assert printable("a" * 200) == "a" * 200
    assert printable("a" * 201) == "a" * 199 + "…"
    assert len(printable("\x00" * 150)) == 200 and printable("\ud800é\t") == "\\ud800é\\t"


# -- zip stores ----------------------------------------------------------------------------------------------


def with_infos(path: Path, *members: tuple[zipfile.ZipInfo, bytes]) -> Path:
    with zipfile.ZipFile(path, "w") as out:
        out.writestr("17.jpg", PIXELS)
        for info, data in members:
            out.writestr(info, data)
    return path


@pytest.mark.parametrize(
    "name", ["/etc/17.jpg", "../17.jpg", "a/../../17.jpg", "C:/17.jpg", "a//17.jpg", "./17.jpg", "a/./17.jpg"]
)
def test_a_member_that_leaves_the_store_is_refused(tmp_path, name):
    path = with_infos(tmp_path / "x.zip", (zipfile.ZipInfo(name), PIXELS))
    assert listing(path).paths == ("17.jpg",)
    assert "leaves the store" in refused(path)[name]


def test_backslashes_in_a_member_are_refused(tmp_path):
    path = with_infos(tmp_path / "x.zip", (zipfile.ZipInfo("..\\..\\17.jpg"), PIXELS))
    assert "backslash" in refused(path)["..\\..\\17.jpg"]


def test_a_link_in_a_store_is_refused(tmp_path):
    link = zipfile.ZipInfo("link.jpg")
    link.external_attr = (stat.S_IFLNK | 0o777) << 16
    assert "is a link" in refused(with_infos(tmp_path / "x.zip", (link, b"/etc/passwd")))["link.jpg"]


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_a_doubled_member_is_refused_altogether(tmp_path):
    path = tmp_path / "x.zip"
    with zipfile.ZipFile(path, "w") as out:
        for data in (PIXELS, picture(seed=1), picture(seed=2)):
            out.writestr("17.jpg", data)
    assert listing(path) == image_tree.Listing(
        (), (Refused("17.jpg", "stands 3 times in the store; leave one", is_doubled=True),)
    )


def test_an_encrypted_member_and_an_odd_packing_are_refused(tmp_path):
    path = with_infos(tmp_path / "x.zip", (zipfile.ZipInfo("lzma.jpg"), PIXELS))
    data = path.read_bytes()
    at = data.rindex(b"PK\1\2")  # the central directory's entry of lzma.jpg
    packed = data[: at + 10] + struct.pack("<H", zipfile.ZIP_LZMA) + data[at + 12 :]
    path.write_bytes(packed)
    assert "packed in another way" in refused(path)["lzma.jpg"]
    path.write_bytes(data[: at + 8] + struct.pack("<H", 1) + data[at + 10 :])
    assert "encrypted" in refused(path)["lzma.jpg"]


def test_a_bomb_that_says_so_is_refused_without_unpacking(tmp_path):
    path = store(tmp_path / "x.zip", {"17.jpg": bytes(20_000_000)}, zipfile.ZIP_DEFLATED)
    assert "zip bomb" in refused(path)["17.jpg"]


def test_a_bomb_that_lies_about_its_size_is_cut_off_where_its_size_ends(tmp_path):
    path = store(tmp_path / "x.zip", {"17.jpg": bytes(500_000_000)}, zipfile.ZIP_DEFLATED)
    data = path.read_bytes()
    at = data.rindex(b"PK\1\2")
    path.write_bytes(data[: at + 24] + struct.pack("<I", 1000) + data[at + 28 :])
    begin = time.monotonic()
    with open_tree(path) as tree:
        assert tree.listing().paths == ("17.jpg",)
        with pytest.raises(RemeasureError, match="has not the 1000 bytes that the store says"):
            tree.read("17.jpg")
    assert time.monotonic() - begin < 1


def test_a_member_that_says_more_packed_bytes_than_there_are_is_refused(tmp_path):
    path = store(tmp_path / "x.zip", {"17.jpg": PIXELS})
    data = path.read_bytes()
    at = data.rindex(b"PK\1\2")
    path.write_bytes(data[: at + 20] + struct.pack("<II", 2**31, 100_000) + data[at + 28 :])
    assert "more than the store holds" in refused(path)["17.jpg"]


def test_a_damaged_member_is_noticed_when_it_is_read(tmp_path):
    path = store(tmp_path / "x.zip", {"17.jpg": PIXELS})
    data = bytearray(path.read_bytes())
    data[50] ^= 1
    path.write_bytes(data)
    with open_tree(path) as tree, pytest.raises(RemeasureError, match="checksum differs"):
        tree.read("17.jpg")


def test_a_member_whose_two_names_differ_is_noticed(tmp_path):
    path = store(tmp_path / "x.zip", {"17.jpg": PIXELS})
    data = path.read_bytes()
    path.write_bytes(data.replace(b"17.jpg", b"18.jpg", 1))
    with open_tree(path) as tree, pytest.raises(RemeasureError, match="its name differs"):
        tree.read("17.jpg")


def test_a_name_that_is_not_marked_as_utf8_is_refused(tmp_path):
    path = store(tmp_path / "x.zip", {"café.jpg": PIXELS})
    assert listing(path).paths == ("café.jpg",)
    data = path.read_bytes()
    for at in (data.index(b"PK\3\4") + 6, data.index(b"PK\1\2") + 8):
        data = data[:at] + b"\0\0" + data[at + 2 :]
    path.write_bytes(data)
    [one] = listing(path).refused
    assert "not marked as UTF-8" in one.problem


def test_a_nul_in_a_name_is_refused(tmp_path):
    path = store(tmp_path / "x.zip", {"17.jpgxevil": PIXELS})
    path.write_bytes(path.read_bytes().replace(b"17.jpgxevil", b"17.jpg\0evil"))
    assert "NUL" in refused(path)["17.jpg\\x00evil"]


def test_a_huge_name_is_refused(tmp_path):
    path = store(tmp_path / "x.zip", {"9" * 60_000 + ".jpg": PIXELS})
    [one] = listing(path).refused
    assert "60004 characters" in one.problem and len(one.path) == 200


def test_a_store_that_poses_as_one_of_several_parts_is_refused(tmp_path):
    path = store(tmp_path / "x.zip", {"17.jpg": PIXELS, "parts.json": b'["../other.zip"]'})
    with pytest.raises(RemeasureError, match=r"holds a member parts\.json"), open_tree(path):
        pass


@pytest.mark.parametrize("cut", [0, 1, 20, 60, -1, -10, -30])
def test_a_cut_store_is_one_line(tmp_path, cut):
    path = store(tmp_path / "x.zip", {"17.jpg": PIXELS})
    path.write_bytes(path.read_bytes()[:cut])
    with pytest.raises(RemeasureError, match="images cannot be listed"), open_tree(path):
        pass


def test_several_threads_read_one_store(tmp_path):
    files = {f"{n}.png": picture(seed=n) for n in range(50)}
    path = store(tmp_path / "x.zip", files, zipfile.ZIP_DEFLATED)
    wrong: list[str] = []
    with open_tree(path) as tree:

        def work():
            wrong.extend(name for _ in range(20) for name in files if tree.read(name) != files[name])

        threads = [threading.Thread(target=work) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert wrong == []


def test_a_store_with_bytes_before_it_is_read(tmp_path):
    path = store(tmp_path / "x.zip", {"17.jpg": PIXELS})
    path.write_bytes(b"#!/bin/sh\n" + path.read_bytes())
    with open_tree(path) as tree:
        assert tree.read("17.jpg") == PIXELS


def test_random_damage_never_crashes(tmp_path):
    import random

    whole = store(
        tmp_path / "x.zip", {"17.jpg": PIXELS, "b/18.png": picture(seed=1)}, zipfile.ZIP_DEFLATED
    ).read_bytes()
    path = tmp_path / "y.zip"
    for seed in range(400):
        dice, data = random.Random(seed), bytearray(whole)
        for _ in range(dice.randint(1, 4)):
            data[dice.randrange(len(data))] = dice.randrange(256)
        path.write_bytes(data)
        try:
            with open_tree(path) as tree:
                for name in tree.listing().paths:
                    tree.read(name)
        except RemeasureError as error:
            assert "\n" not in str(error)
    assert zlib.crc32(whole)  # the original is untouched


def state_after(path, change) -> tuple[str | None, str | None]:
    """Return what a folder looks like before and after a change; times are set, not waited for."""
    before = image_tree.state_of(path)
    change()
    return before, image_tree.state_of(path)


def test_every_change_below_a_folder_is_seen_without_reading_a_file(tmp_path):
    root = folder(tmp_path / "images", {"a/17.jpg": PIXELS, "b/c/18.jpg": PIXELS})
    file = root / "b/c/18.jpg"
    changes = [
        lambda: os.utime(file, ns=(1, 2)),
        lambda: os.utime(file, ns=(1, 3)),  # a nanosecond later
        lambda: file.write_bytes(PIXELS + b"x"),
        lambda: file.rename(root / "b/c/19.jpg"),
        lambda: (root / "b/c/19.jpg").rename(root / "b/19.jpg"),
        lambda: (root / "a/20.jpg").symlink_to("17.jpg"),
        lambda: (root / "b/19.jpg").unlink(),
    ]
    for number, change in enumerate(changes):
        before, after = state_after(root, change)
        assert before != after, number
    link = tmp_path / "link"
    link.symlink_to(root)
    assert image_tree.state_of(link) == image_tree.state_of(root) is not None
    before, after = state_after(root, lambda: (root / "a/17.jpg").read_bytes())
    assert before == after


def test_a_store_and_nothing_have_no_such_state(tmp_path):
    assert image_tree.state_of(store(tmp_path / "x.zip", {"17.jpg": PIXELS})) is None
    assert image_tree.state_of(tmp_path / "gone") is None
