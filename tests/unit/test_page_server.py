import http.client

import pytest

from remeasure.archive import Archive
from remeasure.page_server import PageServer, content_type, host_of, url_of
from zimkit import Given, write_zim

ODD = "100% Straße/wo ist?.html"


@pytest.fixture(scope="module")
def port(tmp_path_factory):
    path = write_zim(
        tmp_path_factory.mktemp("zim") / "a.zim",
        [
            Given("start", "<p>grün</p>"),
            Given(ODD, "<p>odd</p>"),
            Given("old", redirect=ODD),
            Given("dot.png", b"\x89PNG", "image/png"),
            Given("query?a=1", "<p>with query</p>"),
        ],
    )
    with PageServer(Archive(path)) as server:
        yield server.port


def ask(port: int, target: str, method: str = "GET"):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    connection.request(method, target)
    answer = connection.getresponse()
    body = answer.read()
    connection.close()
    return answer, body


def target_of(path: str) -> str:
    return url_of(path).split(host_of(path))[1]


@pytest.mark.parametrize("path", ["start", ODD, "query?a=1", "dot.png"])
def test_every_name_survives_the_way_through_an_address(port, path):
    answer, _ = ask(port, target_of(path))
    assert answer.status == 200


def test_texts_say_that_they_are_utf8_and_pictures_do_not(port):
    assert ask(port, "/start")[0].headers["Content-Type"] == "text/html; charset=utf-8"
    assert ask(port, "/dot.png")[0].headers["Content-Type"] == "image/png"
    assert content_type("text/html", b"gr\xfcn") == "text/html"


def test_redirects_of_the_archive_become_redirects_of_the_server(port):
    answer, _ = ask(port, "/old")
    assert (answer.status, answer.headers["Location"]) == (302, target_of(ODD))


def test_a_query_is_ignored_unless_an_entry_has_it_in_its_name(port):
    assert ask(port, "/start?version=2")[1] == "<p>grün</p>".encode()
    assert ask(port, "/query?a=1")[1] == b"<p>with query</p>"


def test_what_is_not_in_the_archive_is_not_found(port):
    assert ask(port, "/../../etc/passwd")[0].status == 404
    assert ask(port, "/")[0].status == 404


def test_a_question_for_the_header_gets_no_body(port):
    answer, body = ask(port, "/start", "HEAD")
    assert (answer.status, body) == (200, b"")
    assert answer.headers["Content-Length"] == "12"


def test_every_page_has_a_host_of_its_own_that_depends_on_its_path_alone():
    assert host_of("a") != host_of("b")
    assert host_of("a") == "pca978112ca1bbdca.pages.test"
