"""A file from an address arrives whole and verified, or not at all; a real server on the loopback address."""

import hashlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import fetch_url
from loopback_files import Files
from remeasure import addresses, downloads, opening
from remeasure.errors import RemeasureError
from remeasure.fingerprint import SCRIPTS

# 300,000 bytes that repeat nowhere at a block's size.
DATA = b"".join(hashlib.sha256(str(n).encode()).digest() for n in range(9375))
SHA256 = hashlib.sha256(DATA).hexdigest()
OTHER = bytes(len(DATA))
QUICK = downloads.Patience(attempts=3, base_s=0.01, timeout_s=5)


@pytest.fixture
def server():
    with Files(DATA) as running:
        yield running


@pytest.fixture
def fetch(server, tmp_path):
    """Fetch into the folder; return the target."""

    def called(patience=QUICK, **more) -> Path:
        told = {"url": server.url, "sha256": SHA256, "out": tmp_path / "file.bin", "size_bytes": len(DATA)}
        wanted = downloads.Wanted(**(told | more))
        downloads.fetch(wanted, patience)
        return wanted.out

    return called


def part(tmp_path) -> Path:
    return tmp_path / "file.bin.part"


def failed(fetch, **more) -> str:
    with pytest.raises(RemeasureError) as caught:
        fetch(**more)
    assert str(caught.value).isprintable()
    return str(caught.value)


@pytest.mark.parametrize("size_bytes", [len(DATA), None])
@pytest.mark.parametrize("behaviour", ["ok", "whole", "plain"])
def test_a_file_comes_whole_and_leaves_nothing_beside_it(server, fetch, tmp_path, behaviour, size_bytes):
    server.behave = lambda nth: behaviour
    assert fetch(size_bytes=size_bytes).read_bytes() == DATA
    assert [path.name for path in tmp_path.iterdir()] == ["file.bin"] and server.ranges == [None]


@pytest.mark.parametrize("size_bytes", [len(DATA), None])
def test_a_connection_that_is_cut_is_continued_where_it_ended(server, fetch, size_bytes):
    server.behave = lambda nth: "cut 100000" if nth == 1 else "cut 50000" if nth == 2 else "ok"
    assert fetch(size_bytes=size_bytes).read_bytes() == DATA
    assert server.ranges == [None, "bytes=100000-", "bytes=150000-"]


def test_a_part_of_an_earlier_call_is_continued(server, fetch, tmp_path):
    part(tmp_path).write_bytes(DATA[:123456])
    assert fetch().read_bytes() == DATA and server.ranges == ["bytes=123456-"]


def test_a_part_that_is_whole_is_not_asked_for_again(server, fetch, tmp_path):
    part(tmp_path).write_bytes(DATA)
    assert fetch().read_bytes() == DATA and server.ranges == []
    part(tmp_path).write_bytes(DATA)
    # Without a size only the server knows that nothing is missing.
    assert fetch(size_bytes=None).read_bytes() == DATA and server.ranges == ["bytes=300000-"]


def test_a_server_without_ranges_begins_anew(server, fetch, tmp_path):
    server.behave = lambda nth: "whole"
    part(tmp_path).write_bytes(DATA[:1000])
    assert fetch().read_bytes() == DATA and server.ranges == ["bytes=1000-"]


def test_a_server_without_ranges_that_always_cuts_is_given_up(server, fetch):
    server.data = bytes(3 << 20)
    server.behave = lambda nth: "whole 2000000"
    assert "ended after 2000000 of 3145728 bytes" in failed(fetch, size_bytes=3 << 20)
    assert len(server.ranges) == 3  # the attempts of these tests: the same bytes again are nothing new


def test_a_connection_that_brings_something_each_time_is_never_given_up(server, fetch):
    server.data = bytes(8 << 20)
    server.behave = lambda nth: "cut 1048576"
    sha256 = hashlib.sha256(server.data).hexdigest()
    assert fetch(size_bytes=8 << 20, sha256=sha256).stat().st_size == 8 << 20
    assert len(server.ranges) == 8  # a mebibyte each, with three attempts in a row at most


@pytest.mark.parametrize("n", [1, 1000, 299_999])
def test_a_part_of_another_content_is_noticed_and_fetched_anew(server, fetch, tmp_path, n):
    part(tmp_path).write_bytes(OTHER[:n])
    assert fetch().read_bytes() == DATA and server.ranges == [f"bytes={n}-", None]


def test_a_part_that_is_longer_than_the_file_is_dropped(server, fetch, tmp_path):
    part(tmp_path).write_bytes(DATA + b"more")
    assert fetch().read_bytes() == DATA and server.ranges == [None]


def test_a_part_that_the_server_cannot_continue_is_dropped(server, fetch, tmp_path):
    part(tmp_path).write_bytes(DATA + b"more")
    assert fetch(size_bytes=None).read_bytes() == DATA and server.ranges == ["bytes=300004-", None]


def test_another_part_than_was_asked_for_is_not_taken(server, fetch, tmp_path):
    part(tmp_path).write_bytes(DATA[:1000])
    server.behave = lambda nth: "elsewhere" if nth == 1 else "ok"
    assert fetch().read_bytes() == DATA and server.ranges == ["bytes=1000-", None]


@pytest.mark.parametrize("had", [b"", DATA[:1000]])
def test_a_wrong_hash_is_told_with_both_values_and_nothing_is_kept(server, fetch, tmp_path, had):
    server.data = OTHER
    part(tmp_path).write_bytes(had)
    told = failed(fetch)
    # 300,000 zero bytes: `head -c 300000 /dev/zero | sha256sum`.
    assert f"SHA-256 is {hashlib.sha256(OTHER).hexdigest()}, expected {SHA256}" in told
    assert "do not use it" in told and list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("behaviour", ["ok", "cut 10"])
def test_another_size_is_told_before_anything_is_read(server, fetch, tmp_path, behaviour):
    server.behave = lambda nth: behaviour
    assert "has 300000 bytes, expected 299999" in failed(fetch, size_bytes=299_999)
    assert list(tmp_path.iterdir()) == []


def test_a_file_without_an_end_is_stopped_at_its_size(server, fetch, tmp_path):
    server.behave = lambda nth: "endless"
    assert "does not end, at most 300000 may come" in failed(fetch)
    assert list(tmp_path.iterdir()) == []


def test_a_file_of_no_known_size_has_a_bound_too(server, fetch, tmp_path, monkeypatch):
    monkeypatch.setattr(downloads, "CAP_BYTES", 200_000)
    assert "has 300000 bytes, at most 200000 may come" in failed(fetch, size_bytes=None)
    server.behave = lambda nth: "endless"
    assert "does not end, at most 200000 may come" in failed(fetch, size_bytes=None)


def test_a_status_that_does_not_change_is_not_asked_again(server, fetch):
    server.behave = lambda nth: "status 404"
    told = failed(fetch)
    assert "status 404; correct the address and the commit" in told and len(server.ranges) == 1
    server.behave = lambda nth: "status 401"
    told = failed(fetch)
    assert "status 401, it is not for everybody; fetch it with your own account and put it at " in told


@pytest.mark.parametrize("behaviour", ["status 500", "status 503", "reset", "garbage", "cut 0"])
def test_what_may_pass_is_tried_again_and_then_told(server, fetch, tmp_path, behaviour):
    server.behave = lambda nth: behaviour if nth < 3 else "ok"
    assert fetch().read_bytes() == DATA and len(server.ranges) == 3
    server.ranges.clear()
    server.behave = lambda nth: behaviour
    assert "connect or wait, then rerun: 0 bytes are kept" in failed(fetch) and len(server.ranges) == 3


def test_what_has_come_is_kept_when_the_tries_are_used_up(server, fetch, tmp_path):
    server.behave = lambda nth: "cut 1000" if nth == 1 else "status 500"
    assert "1000 bytes are kept" in failed(fetch)
    assert part(tmp_path).read_bytes() == DATA[:1000] and not (tmp_path / "file.bin").exists()


def test_the_server_s_word_on_waiting_is_kept(server, fetch):
    server.behave = lambda nth: "status 429 1" if nth == 1 else "ok"
    assert fetch().read_bytes() == DATA
    assert 1.0 <= server.times[1] - server.times[0] < 3.0


def test_a_wait_of_hours_is_told_and_not_waited_for(server, fetch):
    server.behave = lambda nth: "status 429 7200"
    assert "status 429 and asks to wait 7200 s" in failed(fetch) and len(server.ranges) == 1


def test_a_redirect_on_the_same_computer_is_followed(server, fetch):
    server.behave = lambda nth: "redirect /elsewhere.bin" if nth == 1 else "ok"
    assert fetch().read_bytes() == DATA


@pytest.mark.parametrize(
    ("target", "said"),
    [
        (
            "http://example.org/file.bin?key=secret",
            "leads elsewhere: http://example.org/file.bin is not https",
        ),
        ("file:///etc/passwd", "is no address; expected https://"),
        ("ftp://example.org/f", "leads elsewhere: ftp://example.org/f is not https"),
        ("https://me:secret@example.org/f", "https://example.org/f holds a user or a password"),
        ("http://127.0.0.1@example.org/f", "http://example.org/f holds a user or a password"),
        ("http://[::1/f", "is no address"),
    ],
)
def test_a_redirect_to_an_address_that_is_not_allowed_is_told(server, fetch, target, said):
    server.behave = lambda nth: f"redirect {target}"
    told = failed(fetch)
    assert said in told and "secret" not in told and len(server.ranges) == 1


def test_redirects_in_a_circle_end(server, fetch):
    server.behave = lambda nth: "redirect /again"
    assert "more than 5 redirects" in failed(fetch) and len(server.ranges) == 6


def test_a_public_address_does_not_lead_to_this_computer(monkeypatch, server):
    class Reply:
        status, headers = 302, {"Location": server.url}

        def close(self) -> None:
            pass

    monkeypatch.setattr(opening, "_call", lambda *_: Reply())
    with pytest.raises(RemeasureError, match="is this computer"):
        opening.open_url("https://example.org/f", {}, 5)


def test_a_compressed_reply_is_not_taken(server, fetch):
    server.behave = lambda nth: "gzip"
    assert "comes compressed" in failed(fetch)


@pytest.mark.parametrize(
    ("behaviour", "said"),
    [("slow 30", "the connection broke (TimeoutError)"), ("drip 0.05", "bytes in 0 s")],
)
def test_a_connection_that_brings_too_little_is_given_up(server, fetch, behaviour, said):
    server.behave = lambda nth: behaviour
    begin = time.monotonic()
    patience = downloads.Patience(attempts=2, base_s=0.01, timeout_s=0.3)
    assert said in failed(fetch, patience=patience)
    assert time.monotonic() - begin < 5


def test_two_processes_do_not_write_to_one_part(server, fetch, tmp_path):
    with downloads._alone(part(tmp_path)):
        assert "another process fetches this file" in failed(fetch)
    assert fetch().read_bytes() == DATA


def test_there_must_be_room(fetch):
    assert "needed for a download" in failed(fetch, size_bytes=10**15)


def call(server, tmp_path, *more: str) -> list[str]:
    words = ["--url", server.url, "--sha256", SHA256, "--out", str(tmp_path / "file.bin")]
    return [*words, "--size-bytes", str(len(DATA)), *more]


@pytest.mark.parametrize(("sent", "code"), [(signal.SIGKILL, -9), (signal.SIGTERM, 75)])
def test_a_process_that_is_killed_is_continued_by_the_next(server, tmp_path, sent, code):
    server.behave = lambda nth: "slow 60" if nth == 1 else "ok"
    script = [sys.executable, str(SCRIPTS / "fetch_url.py"), *call(server, tmp_path)]
    running = subprocess.Popen(script, stderr=subprocess.PIPE, text=True)
    assert server.half_sent.wait(30)
    deadline = time.monotonic() + 30
    while not part(tmp_path).exists() or part(tmp_path).stat().st_size < len(DATA) // 2:
        assert time.monotonic() < deadline
        time.sleep(0.02)
    os.kill(running.pid, sent)
    _, said = running.communicate(timeout=30)
    assert running.returncode == code and "Traceback" not in said
    assert part(tmp_path).read_bytes() == DATA[: len(DATA) // 2]
    assert fetch_url.main(call(server, tmp_path)) == 0
    assert (tmp_path / "file.bin").read_bytes() == DATA and server.ranges[1] == "bytes=150000-"


def test_the_script_says_one_line_and_fetches_nothing_without_a_pin(server, tmp_path, capsys):
    assert fetch_url.main(["--not-pinned", "put a commit there", "--out", str(tmp_path / "x")]) == 2
    assert capsys.readouterr().err == "error: put a commit there\n"
    assert fetch_url.main(["--url", server.url, "--sha256", "", "--out", str(tmp_path / "x")]) == 2
    assert "without a hash nothing is fetched" in capsys.readouterr().err
    assert server.ranges == [] and list(tmp_path.iterdir()) == []


def test_this_computer_is_reached_whatever_proxy_is_set(server, fetch, monkeypatch):
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    assert fetch().read_bytes() == DATA


@pytest.mark.parametrize(
    ("url", "problem"),
    [
        ("https://example.org/a", None),
        ("http://127.0.0.1:80/a", None),
        ("http://[::1]/a", None),
        ("http://localhost/a", None),
        ("http://example.org/a", "not https"),
        ("http://127.0.0.1.example.org/a", "not https"),
        ("https://", "no address"),
        ("https://example.org/a b", "no address"),
        ("https://example.org:port/a", "no address"),
        ("https://example.org/\x1b[1m", "no address"),
        ("https://u@example.org/a", "holds a user or a password"),
        ("//example.org/a", "not https"),
    ],
)
def test_only_https_and_this_computer_are_addresses(url, problem):
    found = addresses.problem_of(url)
    assert (found is None) == (problem is None) and (found or "").isprintable()
    assert problem is None or problem in found


def test_a_secret_in_an_address_is_never_told():
    # Signed addresses carry their key behind the question mark.
    assert addresses.said("https://u:secret@cdn.org/f?X-Signature=secret#secret") == "https://cdn.org/f"


# -- places that cannot be written ---------------------------------------------------------------------------


@pytest.mark.parametrize("out", ["file/x.bin", "folder", "taken.bin"])
def test_a_place_that_cannot_be_written_is_one_line(server, tmp_path, capsys, out):
    (tmp_path / "file").write_text("no folder")
    (tmp_path / "folder").mkdir()
    (tmp_path / "taken.bin.part").mkdir()
    words = ["--url", server.url, "--sha256", SHA256, "--out", str(tmp_path / out)]
    assert fetch_url.main(words) == 2
    said = capsys.readouterr().err.splitlines()[-1]
    assert said.startswith(f"error: {tmp_path}/{out.split('/')[0]}") and "cannot be written (" in said
    assert "Traceback" not in said and server.ranges == []


def test_a_full_disk_keeps_what_has_come(server, tmp_path):
    words = ["--url", server.url, "--sha256", SHA256, "--out", str(tmp_path / "file.bin")]
    command = f'ulimit -f 100; exec {sys.executable} {SCRIPTS}/fetch_url.py "$@"'  # 100 KiB a file
    done = subprocess.run(["bash", "-c", command, "-", *words], capture_output=True, text=True, timeout=60)
    assert done.returncode == 2, done.stderr
    assert done.stderr.splitlines()[-1] == (
        f"error: {part(tmp_path)}: cannot be written (File too large); make room, make it writable or "
        "correct --out, then rerun: 102400 bytes are kept"
    )
    assert fetch_url.main(words) == 0 and (tmp_path / "file.bin").read_bytes() == DATA
    assert server.ranges == [None, "bytes=102400-"]


@pytest.mark.parametrize("size_bytes", [len(DATA), None])
def test_a_server_that_always_sends_another_part_is_asked_from_the_start(server, fetch, tmp_path, size_bytes):
    part(tmp_path).write_bytes(DATA[:1000])
    server.behave = lambda nth: "elsewhere"
    assert fetch(size_bytes=size_bytes).read_bytes() == DATA
    assert server.ranges == ["bytes=1000-", None] and not part(tmp_path).exists()


def test_an_empty_part_of_a_killed_process_goes_with_the_next(server, fetch, tmp_path):
    part(tmp_path).touch()
    server.behave = lambda nth: "status 404" if nth == 1 else "ok"
    assert "status 404" in failed(fetch) and not part(tmp_path).exists()
    part(tmp_path).touch()
    assert fetch().read_bytes() == DATA and not part(tmp_path).exists()
