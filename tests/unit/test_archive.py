import struct

import pytest

from remeasure.archive import Archive, client_redirect
from remeasure.errors import RemeasureError
from zimkit import Given, write_zim

ODD = "100% Straße/wo ist?.html"


def refresh(target: str) -> str:
    return f'<html><head><meta http-equiv="refresh" content="0;url={target}"></head></html>'


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return write_zim(
        tmp_path_factory.mktemp("zim") / "a.zim",
        [
            Given("start", "<p>start</p>"),
            Given(ODD, "<p>odd name</p>"),
            Given("old", redirect="start"),
            Given("older", redirect="old"),
            Given("client", refresh("start")),
            Given("ping", refresh("pong")),
            Given("pong", refresh("ping")),
            Given("style.css", "p {}", "text/css"),
        ],
    )


def test_an_entry_gives_its_bytes_and_its_type(path):
    entry = Archive(path).read("style.css")
    assert (entry.data, entry.mimetype, entry.is_page) == (b"p {}", "text/css", False)


def test_names_with_percent_question_mark_space_and_umlaut_are_read(path):
    assert Archive(path).read(ODD).data == b"<p>odd name</p>"


def test_redirects_of_the_archive_are_followed_over_several_hops(path):
    archive = Archive(path)
    assert archive.read("older").path == "start"
    assert archive.redirect_target("start") is None


def test_a_small_page_that_only_sends_its_reader_on_is_followed(path):
    assert Archive(path).resolve("client").path == "start"


def test_two_pages_that_send_the_reader_to_each_other_are_an_error_that_names_both(path):
    with pytest.raises(RemeasureError, match=r"loop.*ping -> pong -> ping"):
        Archive(path).resolve("ping")


def test_an_archive_redirect_to_itself_is_an_error(path, tmp_path):
    data = bytearray(path.read_bytes())
    # A redirect's entry: type 0xffff, no parameters, name space C, revision, index of the target, path.
    place = data.find(b"\xff\xff\x00C\0\0\0\0", 0)
    while data[place + 12 : place + 16] != b"old\0":
        place = data.find(b"\xff\xff\x00C\0\0\0\0", place + 1)
    libzim_archive = Archive(path)._archive
    paths = [libzim_archive._get_entry_by_id(index).path for index in range(libzim_archive.all_entry_count)]
    struct.pack_into("<I", data, place + 8, paths.index("old"))
    broken = tmp_path / "loop.zim"
    broken.write_bytes(data)
    with pytest.raises(RemeasureError, match="loop"):
        Archive(broken).read("old")


def test_pages_are_listed_without_redirects_of_either_kind(path):
    assert sorted(path for path, _ in Archive(path).pages()) == sorted(["start", ODD])


def test_a_missing_entry_is_named(path):
    with pytest.raises(RemeasureError, match="no entry 'nowhere'"):
        Archive(path).read("nowhere")


def test_a_missing_file_says_where_to_correct_it(tmp_path):
    with pytest.raises(RemeasureError, match=r"none.zim: the archive cannot be read .*settings"):
        Archive(tmp_path / "none.zim")


def test_a_folder_or_another_kind_of_file_is_no_archive(tmp_path):
    with pytest.raises(RemeasureError, match="cannot be read"):
        Archive(tmp_path)
    (tmp_path / "a.zim").write_text("hello")
    with pytest.raises(RemeasureError, match="not a ZIM archive"):
        Archive(tmp_path / "a.zim")


@pytest.mark.parametrize("kept", [0.99, 0.5, 0.1])
def test_a_truncated_archive_is_noticed_before_anything_is_read(path, tmp_path, kept):
    whole = path.read_bytes()
    cut = tmp_path / "cut.zim"
    cut.write_bytes(whole[: int(len(whole) * kept)])
    with pytest.raises(RemeasureError, match="cut short|not a ZIM"):
        Archive(cut)


def test_identity_follows_the_content(path, tmp_path):
    other = write_zim(tmp_path / "b.zim", [Given("start", "<p>other</p>")])
    assert Archive(path).identity == Archive(path).identity != Archive(other).identity


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("0;url=b", "dir/b"),
        ("0; URL='../b%20c'", "b c"),
        ("5, url=/x/y", "x/y"),
        ("0;url=b#part", "dir/b"),
        ("300", None),
        ("0;url=https://example.org/", None),
        ("0;url=#top", None),
    ],
)
def test_refresh_addresses_are_resolved_like_a_browser_would(content, expected):
    page = f'<meta http-equiv="Refresh" content="{content}">'.encode()
    assert client_redirect("dir/a", page) == expected


def test_a_long_page_with_a_refresh_is_content():
    assert client_redirect("a", refresh("b").encode() + b" " * 1024) is None


def test_damage_in_the_middle_is_found_by_the_archive_s_own_checksum(path, tmp_path):
    data = bytearray(path.read_bytes())
    place = len(data) // 2
    data[place : place + 16] = bytes(byte ^ 255 for byte in data[place : place + 16])
    broken = tmp_path / "flipped.zim"
    broken.write_bytes(data)
    Archive(path).verify()
    with pytest.raises(RemeasureError, match="checksum does not fit|damaged|cannot be read"):
        Archive(broken).verify()
