"""Photographs come out of archives as they are, whatever else is there and however often a job is killed."""

import gzip
import hashlib
import io
import json
import os
import random
import signal
import subprocess
import sys
import tarfile
import time

import pytest

import stream_photos
from archivekit import PHOTOS, Stage, entry, header, hurt, tar_of
from loopback_files import Files
from remeasure import downloads
from remeasure.errors import RemeasureError
from remeasure.fingerprint import SCRIPTS
from remeasure.instances import shard_job, streaming, tar_stream
from remeasure.instances.photo_store import ShardReader
from remeasure.instances.wanted import read_list

NAMES = list(PHOTOS)
QUICK = downloads.Patience(attempts=3, base_s=0.01, timeout_s=5)


@pytest.fixture
def stage(tmp_path) -> Stage:
    return Stage(tmp_path)


@pytest.fixture
def quick(monkeypatch):
    """Waits between tries are short."""
    monkeypatch.setattr(downloads, "Patience", lambda: QUICK)


def parts(*sizes: int) -> list[dict[str, bytes]]:
    """The photographs in portions."""
    names = iter(NAMES)
    return [{(name := next(names)): PHOTOS[name] for _ in range(size)} for size in sizes]


def check_whole(stage: Stage, names=NAMES) -> None:
    with ShardReader(stage.shard, stage.index) as shard:
        assert list(shard.names) == list(names)
        assert [shard.read(row) for row in range(len(shard))] == [PHOTOS[name] for name in names]
    with tarfile.open(stage.shard) as archive:
        assert {one.name: archive.extractfile(one).read() for one in archive} == {n: PHOTOS[n] for n in names}
    assert sorted(os.listdir(stage.shard.parent)) == ["1of1.index.parquet", "1of1.json", "1of1.tar"]


@pytest.mark.parametrize("is_packed", [False, True])
def test_wanted_photographs_come_in_canonical_order_as_they_were(stage, is_packed):
    for number, members in enumerate(parts(4, 2)):
        backwards = dict(reversed(members.items())) | {"a/b/other.jpg": b"x", "notes.txt": b"y"}
        stage.put(number, tar_of(backwards, is_packed=is_packed))
    assert stage.run(2) == 0
    check_whole(stage)
    assert stage.counts() == {
        "photos": 6,
        "not_wanted": 4,
        "refused": 0,
        "doubled": 0,
        "archives": 2,
        "missing": 0,
        "size_bytes": stage.shard.stat().st_size,
    }
    with ShardReader(stage.shard, stage.index) as shard:
        assert shard.archives == (0, 0, 0, 0, 1, 1) and shard.landmark_id is None


def test_the_same_archives_give_the_same_bytes(stage):
    stage.put(0, tar_of(PHOTOS))
    outputs = []
    for _ in range(2):
        assert stage.run(1) == 0
        outputs.append([path.read_bytes() for path in (stage.shard, stage.index, stage.record)])
    assert outputs[0] == outputs[1]


@pytest.mark.parametrize("prefix", ["./", "jpg/", "./jpg/"])
def test_one_folder_around_everything_is_passed_over(stage, prefix):
    stage.put(0, tar_of({prefix + name: data for name, data in PHOTOS.items()}))
    assert stage.run(1) == 0
    check_whole(stage)


def test_what_is_in_no_archive_is_listed(stage):
    stage.put(0, tar_of(parts(4)[0]))
    assert stage.run(1) == 0
    assert stage.counts()["missing"] == 2 and stage.facts()["missing"] == NAMES[4:]


def test_classes_of_a_training_set_stand_in_the_index(stage, tmp_path):
    from remeasure.instances import gldv2

    csv = tmp_path / "clean.csv"
    csv.write_text("landmark_id,images\n9,00aa 0b11\n4,ff22\n")
    clean = gldv2.read_clean(csv)
    gldv2.write_plan(tmp_path / "plan.parquet", clean, gldv2.class_sizes(clean.landmark_id), set())
    members = {"f/f/2/ff22.jpg": b"1", "0/0/a/00aa.jpg": b"2", "0/b/1/0b11.jpg": b"3"}
    stage.put(0, tar_of(members))
    words = stage.words(1)
    place = words.index("--list")
    words[place : place + 2] = ["--plan", str(tmp_path / "plan.parquet")]
    assert stream_photos.main(words) == 0
    with ShardReader(stage.shard, stage.index) as shard:
        assert shard.names == ("0/0/a/00aa.jpg", "0/b/1/0b11.jpg", "f/f/2/ff22.jpg")
        assert shard.landmark_id.tolist() == [9, 9, 4]


# -- hostile archives ----------------------------------------------------------------------------------------


def test_links_devices_and_names_that_lead_elsewhere_write_nothing(stage, tmp_path):
    first, second = NAMES[0], NAMES[1]
    hostile = {
        "one": entry("../../escaped.jpg", tarfile.REGTYPE),
        "two": entry("/tmp/escaped.jpg", tarfile.REGTYPE),
        "three": entry(first, tarfile.SYMTYPE, linkname="/etc/passwd"),
        "four": entry(second, tarfile.LNKTYPE, linkname="../../etc/passwd"),
        "five": entry("dev", tarfile.CHRTYPE, devmajor=1, devminor=3),
        "six": entry("pipe", tarfile.FIFOTYPE),
        "seven": entry("a/b", tarfile.DIRTYPE),
    }
    stage.put(0, tar_of(parts(0, 4)[1], **hostile))
    stage.put(1, tar_of({NAMES[4]: PHOTOS[NAMES[4]]}))
    assert stage.run(2) == 0
    assert stage.counts()["refused"] == 2
    # The first four photographs came before the links of their names.
    assert stage.facts()["refused"] == [["0", first, "is a link"], ["0", second, "is a hard link"]]
    assert not (tmp_path.parent / "escaped.jpg").exists()


def test_a_member_that_is_too_large_is_refused_and_counted(stage, monkeypatch):
    monkeypatch.setattr(streaming, "MAX_BYTES", 30_000)
    stage.put(0, tar_of(PHOTOS))
    assert stage.run(1) == 0
    # Photographs have 10,000 to 60,000 bytes.
    assert stage.counts()["refused"] == 3 and stage.counts()["missing"] == 3
    assert stage.facts()["refused"][0] == ["0", NAMES[3], "has 40000 bytes, at most 30000 are taken"]


def test_the_same_photograph_twice_is_taken_once_and_another_of_its_name_is_an_error(stage, capsys):
    again = tar_of(PHOTOS)[:-10240] + tar_of({NAMES[0]: PHOTOS[NAMES[0]]})
    stage.put(0, tar_of(PHOTOS))
    stage.put(1, tar_of({NAMES[0]: PHOTOS[NAMES[0]]}))
    assert again and stage.run(2) == 0
    assert stage.counts()["doubled"] == 1
    stage.put(1, tar_of({NAMES[0]: b"other"}))
    assert stage.run(2) == 2
    assert f"{NAMES[0]} comes twice, as different photographs" in capsys.readouterr().err


def read_all(tmp_path, data: bytes) -> list[tar_stream.Member]:
    (tmp_path / "x.tar").write_bytes(data)
    with tar_stream.Tar(tmp_path / "x.tar") as tar:
        return list(tar.members())


END = bytes(1024)


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"", "its end is missing"),
        (b"x" * 100, "it is cut off"),
        (b"no archive at all" * 60, "the checksum of an entry differs|a number of an entry is none"),
        (header(b"a", b"00000002000\0"), "it is cut off"),
        (header(b"a", b"00000002000\0") + bytes(1024), "its end is missing"),
        (header(b"a", b"99999999999\0") + END, "a number of an entry is none"),
        (header(b"a", b"-0000000001\0") + END, "a number of an entry is none"),
        (header(b"a", b"\x80" + b"\xff" * 11) + END, "an impossible size"),
        # A name of a gigabyte, and records of one.
        (header(b"././@LongLink", b"10000000000\0", b"L") + END, "the name of an entry has 1073741824 bytes"),
        (header(b"pax", b"10000000000\0", b"x") + END, "the name of an entry has 1073741824 bytes"),
        (header(b"pax", b"00000000012\0", b"x") + b"99 path=a\n".ljust(512, b"\0") + END, "extended header"),
        (
            header(b"pax", b"00000000013\0", b"x") + b"11 size=-1\n".ljust(512, b"\0") + header(b"a", b"0"),
            "an impossible size",
        ),
    ],
)
def test_a_damaged_archive_is_told_before_anything_large_is_read(tmp_path, data, says):
    with pytest.raises(tar_stream.Damaged, match=says):
        read_all(tmp_path, data)


def test_long_names_of_both_formats_are_read(tmp_path):
    name = "d/" * 120 + "é.jpg"
    for kind in (tarfile.GNU_FORMAT, tarfile.PAX_FORMAT):
        stream = io.BytesIO()
        with tarfile.open(fileobj=stream, mode="w", format=kind) as archive:
            archive.addfile(tarfile.TarInfo(name))
        assert [one.path for one in read_all(tmp_path, stream.getvalue())] == [name]


def test_a_packed_archive_that_is_cut_off_or_changed_is_refused(tmp_path):
    packed = tar_of(PHOTOS, is_packed=True)
    for damaged in (packed[:-4], packed[:-8] + bytes(8), packed[: len(packed) // 2], packed + b"garbage"):
        with pytest.raises(tar_stream.Damaged, match="its packed stream is damaged or cut off"):
            read_all(tmp_path, damaged)


def test_a_bomb_is_noticed_while_it_is_unpacked(tmp_path):
    bomb = gzip.compress(header(b"a", b"00400000000\0") + bytes(1 << 26) + END, mtime=0)
    assert len(bomb) < 100_000
    with pytest.raises(tar_stream.Damaged, match="a bomb"):
        read_all(tmp_path, bomb)


def test_random_damage_of_an_archive_never_ends_in_a_traceback(tmp_path):
    rng, stream = random.Random(0), io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w", format=tarfile.PAX_FORMAT) as archive:
        archive.addfile(tarfile.TarInfo("d/" * 120 + "é.jpg"))
    small = {name: data[:700] for name, data in PHOTOS.items()}
    whole = [tar_of(small), tar_of(small, is_packed=True), stream.getvalue()]
    n_refused = 0
    for _ in range(300):
        try:
            read_all(tmp_path, hurt(rng.choice(whole), rng))
        except tar_stream.Damaged:
            n_refused += 1
    assert n_refused > 100


def test_an_archive_without_any_wanted_photograph_is_told_with_an_example(stage, capsys):
    stage.put(0, tar_of({"x/y.jpg": b"1"}))
    assert stage.run(1) == 2
    assert "none of 1 files is wanted; compare a path" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("a/b.jpg\na/b.jpg\n", "'a/b.jpg' stands in it twice"),
        ("../x.jpg\n", "line 1: '../x.jpg' is no path below a folder"),
        ("a.jpg\n\nb.jpg\n", "line 2: '' is no path below a folder"),
        ("/etc/passwd\n", "is no path below a folder"),
        ("a\tb.jpg\n", "is no path below a folder"),
        ("x" * 600 + "\n", "a path of 600 bytes"),
        ("", "names no photograph"),
        ("\xff", "names no photograph|is no path|"),
    ],
)
def test_a_list_that_is_none_is_refused(tmp_path, text, says):
    (tmp_path / "list").write_bytes(text.encode("latin-1"))
    with pytest.raises(RemeasureError, match=says):
        read_list(tmp_path / "list")


# -- checksums -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["md5", "sha256"])
def test_an_archive_must_be_what_its_checksum_says(stage, capsys, kind):
    archive = stage.put(0, tar_of(PHOTOS))
    digest = hashlib.new(kind, archive.read_bytes()).hexdigest().upper()
    (stage.folder / "sum_0.txt").write_text(f"{digest}  images_0.tar\n")
    told = {"md5": str(stage.folder / "sum_{number}.txt")}
    assert stage.run(1, **told) == 0
    archive.write_bytes(tar_of(PHOTOS | {"x": b"y"}))
    assert stage.run(1, **told) == 2
    assert f"expected {digest.lower()}" in capsys.readouterr().err
    (stage.folder / "sum_0.txt").write_text("<html>")
    assert stage.run(1, **told) == 2
    assert "holds no MD5 and no SHA-256, begins with '<html>'" in capsys.readouterr().err
    (stage.folder / "sum_0.txt").unlink()
    assert stage.run(1, **told) == 2
    assert "sum_0.txt: cannot be read" in capsys.readouterr().err


# -- fetched -------------------------------------------------------------------------------------------------


def place_of(server: Files) -> str:
    return server.url + "?{number}"


def test_a_broken_connection_goes_on_where_it_broke(stage, quick):
    with Files(tar_of(PHOTOS, is_packed=True)) as server:
        server.behave = lambda nth: "cut 20000" if nth < 3 else "ok"
        assert stage.run(1, place_of(server)) == 0
        assert server.ranges == [None, "bytes=20000-", "bytes=40000-"]
    check_whole(stage)


def test_an_archive_that_came_wrong_is_fetched_anew_once(stage, quick, capsys):
    data = tar_of(PHOTOS)
    (stage.folder / "sum.txt").write_text(hashlib.md5(data).hexdigest())
    told = {"md5": str(stage.folder / "sum.txt")}
    with Files(data[:5000] + b"?" + data[5001:]) as server:

        def behave(nth: int) -> str:
            server.data = data if nth == 2 else server.data
            return "ok"

        server.behave = behave
        assert stage.run(1, place_of(server), **told) == 0
        assert len(server.ranges) == 2
    check_whole(stage)
    with Files(data + b"?") as server:
        assert stage.run(1, place_of(server), **told) == 2
        assert len(server.ranges) == 2
    assert "its MD5 is" in capsys.readouterr().err


def test_an_address_that_is_none_and_one_of_another_kind_are_refused(stage, capsys):
    for place, says in (
        ("ftp://host/{number}", "is not https"),
        ("https://user:secret@host/{number}", "holds a user or a password"),
    ):
        assert stage.run(1, place) == 2
        error = capsys.readouterr().err
        assert says in error and "secret" not in error


def test_a_checksum_is_fetched_as_well(stage, quick):
    data = tar_of(PHOTOS)
    with Files(data) as archive, Files(hashlib.md5(data).hexdigest().encode()) as checksum:
        assert stage.run(1, place_of(archive), md5=place_of(checksum)) == 0
    check_whole(stage)


def test_a_missing_archive_is_one_line(stage, quick, capsys):
    with Files(b"") as server:
        server.behave = lambda nth: "status 404"
        assert stage.run(1, place_of(server)) == 2
    assert "status 404" in capsys.readouterr().err
    assert stage.run(1) == 2
    assert "images_0.tar: cannot be read" in capsys.readouterr().err


# -- killed --------------------------------------------------------------------------------------------------


def test_a_killed_job_goes_on_with_the_archive_that_is_not_done(stage, monkeypatch):
    for number, members in enumerate(parts(2, 2, 2)):
        stage.put(number, tar_of(members))
    packed = streaming._packed
    names: list[str] = []

    def counted(path, *rest):
        names.append(path.name)
        if len(names) == 3:
            with open(stage.shard.parent / ".1of1.work" / "shard.tar", "ab") as torn:
                torn.write(b"half a photograph")
            raise KeyboardInterrupt
        return packed(path, *rest)

    monkeypatch.setattr(streaming, "_packed", counted)
    assert stage.run(3) == 130
    assert not stage.shard.exists() and not stage.index.exists()
    with open(stage.shard.parent / ".1of1.work" / "journal.jsonl", "ab") as journal:
        journal.write(b'{"number": "2", "torn')
    assert stage.run(3) == 0
    assert names == ["images_0.tar", "images_1.tar", "images_2.tar", "images_2.tar"]
    check_whole(stage)


def test_a_killed_process_goes_on_with_the_next_byte(stage):
    data = tar_of(PHOTOS, is_packed=True)
    with Files(data) as server:
        server.behave = lambda nth: "slow 60" if nth == 1 else "ok"
        words = stage.words(1, place_of(server))
        process = subprocess.Popen([sys.executable, SCRIPTS / "stream_photos.py", *words])
        assert server.half_sent.wait(20)
        part = stage.shard.parent / ".1of1.work" / "0.archive.part"
        until = time.monotonic() + 20
        while time.monotonic() < until and not (part.exists() and part.stat().st_size == len(data) // 2):
            time.sleep(0.02)
        process.send_signal(signal.SIGKILL)
        process.wait()
        assert stage.run(1, place_of(server)) == 0
        assert server.ranges == [None, f"bytes={len(data) // 2}-"]
    check_whole(stage)


def test_another_list_begins_anew(stage):
    stage.put(0, tar_of(PHOTOS))
    wanted = read_list(stage.list)
    job = shard_job.Job(stage.folder / "work", "one")
    streaming.run(job, streaming.sources(str(stage.folder / "images_{number}.tar"), None, ["0"]), wanted)
    assert len(shard_job.Job(stage.folder / "work", "one").done) == 1
    again = shard_job.Job(stage.folder / "work", "two")
    assert again.done == [] and again.shard.stat().st_size == 0


def test_a_shard_that_was_changed_is_noticed_when_it_is_read(stage):
    stage.put(0, tar_of(PHOTOS))
    assert stage.run(1) == 0
    data = bytearray(stage.shard.read_bytes())
    data[600] ^= 1  # behind the first header
    stage.shard.write_bytes(data)
    with ShardReader(stage.shard, stage.index) as shard:
        with pytest.raises(RemeasureError, match=r"row 0 \(a/b/1.jpg\) is not what its index says"):
            shard.read(0)
    stage.shard.write_bytes(data[:1000])
    with pytest.raises(RemeasureError, match="has 1000 bytes, its index goes further"):
        ShardReader(stage.shard, stage.index)
    stage.index.write_bytes(b"PAR1 nothing PAR1")
    with pytest.raises(RemeasureError, match="no index of a shard"):
        ShardReader(stage.shard, stage.index)


def test_a_setting_that_is_not_known_is_refused(stage, capsys):
    assert stage.run(1, wrong=1) == 2
    assert "unknown field `wrong`" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("piece", "says"),
    [
        ("1of3", "no archive belongs to part 1of3, there are 1; correct `parts`"),
        ("0of0", "expected NofM"),
        ("x", "expected NofM"),
    ],
)
def test_a_part_without_archives_and_one_that_is_none_are_refused(stage, capsys, piece, says):
    settings = {"photos": "views", "piece": piece}
    settings["archives"] = {"place": str(stage.folder / "images_{number}.tar"), "numbers": [0, 1]}
    words = ["--settings", json.dumps(settings), "--list", stage.list, "--shard", stage.shard]
    words += ["--index", stage.index, "--record", stage.record]
    assert stream_photos.main(list(map(str, words))) == 2
    assert says in capsys.readouterr().err
